"""`dpsql demo`: a small fictional hospital, five questions, a refusal, a repetition, and what is left."""

from __future__ import annotations

import argparse
import shlex
import tempfile
import textwrap
from pathlib import Path

from dpsql.errors import Error, InterfaceError
from dpsql.interfaces.cli.demo_hospital import SCHEMA, make_hospital
from dpsql.interfaces.cli.query import print_answer
from dpsql.interfaces.dbapi.connection import connect
from dpsql.interfaces.dbapi.cursor import Cursor
from dpsql.interfaces.display.terminal import BOLD, DIM, Screen

WIDTH = 100

DEMO_QUERIES = (
    (
        "Visits and their cost by ward",
        "First two small releases find how many visits most patients have, and about where averages lie.\n"
        "Of the few who have more visits, so many count. Then the question is answered. The true value is\n"
        "within ± in about 95 % of all cases.",
        """\
SELECT ward, COUNT(*) AS visits, AVG(cost) AS average_cost
FROM visits
GROUP BY ward
ORDER BY visits DESC""",
    ),
    (
        "Patients by sex and insurance",
        "Each patient has one row here. That needs little noise, so even small groups are told well.",
        """\
SELECT sex, insured, COUNT(*) AS patients
FROM patients
GROUP BY sex, insured
ORDER BY sex, insured DESC""",
    ),
    (
        "A join: how long do the old stay?",
        "Joined rows still belong to their patient, who is protected with all of them together.",
        """\
SELECT CASE WHEN birth_year > 1985 THEN '0 to 39' WHEN birth_year > 1960 THEN '40 to 64'
            ELSE '65 and older' END AS age,
       COUNT(*) AS visits, AVG(nights) AS average_nights
FROM patients JOIN visits USING (patient_id)
GROUP BY age
ORDER BY age""",
    ),
    (
        "The trend over the years",
        "The years are known from the declared bounds of the column, so each of them is in the answer.",
        """\
SELECT EXTRACT(YEAR FROM at) AS year, COUNT(*) AS visits, SUM(cost) AS revenue
FROM visits
GROUP BY year
ORDER BY year""",
    ),
    (
        "Shares and the top six, of groups that nobody declared",
        "Which diagnoses appear is decided privately: rare ones, which could identify someone, do not.\n"
        "Whatever is computed from noisy values, such as percent, needs no more noise and is free.",
        """\
SELECT diagnosis, COUNT(*) AS visits,
       ROUND(100.0 * COUNT(*) / SUM(COUNT(*)) OVER (), 1) AS percent
FROM visits
GROUP BY diagnosis
ORDER BY visits DESC
LIMIT 6""",
    ),
)
REFUSED_QUERY = "SELECT * FROM visits LIMIT 5"
REPEATED_QUERY = """\
select ward, avg(cost) as average_cost, count(*) as visits
from visits
group by ward
having count(*) > 3000
order by average_cost desc"""


def run(args: argparse.Namespace, screen: Screen) -> None:
    if args.keep is None:
        with tempfile.TemporaryDirectory(prefix="dpsql-demo-") as temporary:
            _show_demo(screen, Path(temporary))
        screen.print("\nTo go on with this hospital yourself: dpsql demo --keep hospital")
        return
    folder = _make_folder(args.keep)
    _show_demo(screen, folder)
    _print_next_steps(screen, folder / "hospital.yaml")


def _make_folder(name: str) -> Path:
    folder = Path(name)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InterfaceError(f'the folder "{name}" is not empty', hint="Name a new one; nothing is overwritten.")
    except OSError as error:
        raise InterfaceError(f'the folder "{name}" cannot be made: {error.strerror}') from None
    return folder


def _show_demo(screen: Screen, folder: Path) -> None:
    schema = make_hospital(folder)
    _print_title(screen, "A hospital, and what its owner declares")
    screen.print("Some thousand patients and their visits, in two CSV files; none of them exists. One YAML file says")
    screen.print("whom to protect and how much may be learned. Nothing else is needed to ask SQL.")
    _print_block(screen, SCHEMA)
    with connect(schema, user="ana") as connection, connection.cursor() as cursor:
        for number, (title, note, sql) in enumerate(DEMO_QUERIES, 1):
            _print_title(screen, f"{number}. {title}", note)
            _run_query(screen, cursor, sql)
        _print_title(screen, "6. What is refused", "Single rows never come out. Trying is free.")
        _show_refusal(screen, cursor)
        again = "The first question in other words: the stored answers serve it, and nothing is charged."
        _print_title(screen, "7. What is asked again is free", again)
        _run_query(screen, cursor, REPEATED_QUERY)
        _print_title(screen, "8. The budget of ana")
        screen.print(str(connection.budget()))


def _run_query(screen: Screen, cursor: Cursor, sql: str) -> None:
    _print_block(screen, sql + ";")
    print_answer(screen, cursor.execute(sql), "table")


def _show_refusal(screen: Screen, cursor: Cursor) -> None:
    _print_block(screen, REFUSED_QUERY + ";")
    try:
        cursor.execute(REFUSED_QUERY)
    except Error as error:
        for line in f"ERROR:  {error}".splitlines():
            for part in textwrap.wrap(line, WIDTH, subsequent_indent=" " * 7) if len(line) > WIDTH else [line]:
                screen.print(part)


def _print_title(screen: Screen, title: str, note: str = "") -> None:
    screen.print(f"\n{screen.style_output(title, BOLD)} {screen.style_output('─' * (WIDTH - len(title) - 1), DIM)}")
    if note:
        screen.print(note)


def _print_block(screen: Screen, text: str) -> None:
    screen.print()
    for line in text.splitlines():
        screen.print(f"  {line}".rstrip())
    screen.print()


def _print_next_steps(screen: Screen, schema: Path) -> None:
    name = shlex.quote(str(schema))
    _print_title(screen, "Go on")
    for command in (
        f'dpsql query {name} "SHOW TABLES" --user ana',
        f'dpsql query {name} "SELECT AVG(cost) FROM visits" --user ana --format csv --errors',
        f'dpsql explain {name} "SELECT AVG(nights) FROM visits" --user ana --epsilon 0.1',
        f"dpsql budget {name}",
    ):
        screen.print(f"  {command}")
