"""The demo, end to end."""

import csv
import hashlib
import re
import subprocess
import sys
from collections import Counter

import pytest

from dpsql.interfaces.cli.demo import DEMO_QUERIES, REPEATED_QUERY
from dpsql.interfaces.cli.demo_hospital import SplitMix64, make_hospital

pytestmark = pytest.mark.slow

CHARGES = 5 + 4 + 2
"""The questions; a histogram before each, but for that of one row for each patient; one more for each AVG."""

NOTICE = "NOTICE:  rows for which a computed key is NULL are in no group; COALESCE(…) within the key keeps them\n"


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "hospital"
    command = [sys.executable, "-m", "dpsql", "demo", "--keep", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, encoding="utf-8")
    receipts = re.findall(r"^receipt: ana/\d+/[0-9a-f]{64}\n", done.stderr, re.MULTILINE)
    assert done.returncode == 0 and len(set(receipts)) == CHARGES
    rest = [line for line in done.stderr.splitlines(keepends=True) if line not in receipts]
    told = [line for line in rest if not re.search("scaled down|count less|may hold much more|clip is unknown", line)]
    assert told == [NOTICE]
    return done.stdout, folder


def test_five_questions_a_refusal_a_repetition(shown):
    text, _ = shown
    assert len(re.findall(r"^charged: epsilon ≤ 1 at delta 1e-7", text, re.MULTILINE)) == len(DEMO_QUERIES) == 5
    assert text.count("charged: nothing") == 1
    assert "ERROR:  this would return single private rows" in text and "HINT:  " in text
    assert f'account "ana": {CHARGES} charges' in text and "unit: patients.patient_id" in text


def test_it_fits_in_a_hundred_columns(shown):
    text, folder = shown
    assert [line for line in text.replace(str(folder), "hospital").splitlines() if len(line) > 100] == []


def test_the_answers_are_useful(shown):
    """Error bars of a few percent mostly, clipping and all; of few nights, or where the noise is large, more."""
    text, _ = shown
    cells = [(float(value), float(bar)) for value, bar in re.findall(r"([0-9.]+) ± +([0-9.]+)", text)]
    assert len(cells) >= 40
    assert all(bar < value / 5 for value, bar in cells if value > 500)
    assert all(bar < value / 2.5 for value, bar in cells if value < 10)


def test_the_repetition_gives_the_same_values(shown):
    text, _ = shown
    first = text[text.index("1. ") : text.index("2. ")]
    again = text[text.index(REPEATED_QUERY.splitlines()[0]) : text.index("8. ")]
    for ward in ("emergency", "cardiology"):
        (visits,) = re.findall(rf"^ {ward} +│ +(\d+) ±", first, re.MULTILINE)
        assert re.search(rf"^ {ward} .*│ +{visits} ±", again, re.MULTILINE)


def test_rare_diagnoses_do_not_appear(shown):
    text, folder = shown
    with (folder / "visits.csv").open(encoding="utf-8") as file:
        visits = Counter(row["diagnosis"] for row in csv.DictReader(file))
    rare = {name for name, count in visits.items() if count < 16}
    assert len(rare) >= 5 and not any(name in text for name in rare)


def test_kept_hospitals_can_be_queried(shown):
    text, folder = shown
    assert f"dpsql budget {folder / 'hospital.yaml'}" in text
    command = [
        sys.executable,
        "-m",
        "dpsql",
        "query",
        str(folder / "hospital.yaml"),
        DEMO_QUERIES[1][2],
        "--user",
        "ana",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, encoding="utf-8")
    assert done.returncode == 0 and "charged: nothing" in done.stdout


def test_nothing_is_overwritten(run, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    ran = run("demo", "--keep", str(tmp_path))
    assert ran.code == 1 and "is not empty" in ran.err and [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert run("demo", "--keep", str(tmp_path / "mine.txt")).code == 1


def test_the_hospital_is_always_the_same(tmp_path):
    make_hospital(tmp_path)
    made = [(tmp_path / name).read_bytes() for name in ("patients.csv", "visits.csv")]
    digests = [hashlib.sha256(content).hexdigest()[:12] for content in made]
    assert digests == ["414955d669b2", "ec18c3c6259c"]


def test_splitmix64_known_answers():
    """The first outputs for seed 1234567 (Vigna's reference)."""
    stream = SplitMix64(1234567)
    assert [stream.next_word() for _ in range(3)] == [6457827717110365317, 3203168211198807973, 9817491932198370423]
