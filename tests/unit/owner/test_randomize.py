"""`dpsql randomize`: a file with randomized answers, all else as it was, and an entry that a schema takes."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

from dpsql.errors import InterfaceError
from dpsql.interfaces.cli.main import main
from dpsql.owner.randomize import RandomizationRequest, randomize_file
from dpsql.privacy.randomized_response import randomize_responses
from dpsql.schema.load import load_schema
from tests.support.shop import Silence

CSV = 'id,answer,note\n1,yes,"a, b"\n2,no,\n3,yes,\n4,no,x\n'
SCHEMA = """\
dpsql: 1
privacy: {unit: t.id, budget: {epsilon: 1, delta: 0}}
tables: {t: {source: out.csv, unit: id, columns: {id: {type: bigint}, answer: {type: text, ENTRY}}}}
"""


def test_a_csv_file_keeps_all_but_its_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.csv").write_text(CSV)
    line = f"randomize {tmp_path}/in.csv --column answer --values yes,no --epsilon 1.0986 -o {tmp_path}/out.csv"
    assert main(line.split()) == 0
    entry = capsys.readouterr().out.strip()
    assert entry == 'randomized: {epsilon: 1.0986, values: ["yes", "no"]}'
    found = [text.split(",", 2) for text in (tmp_path / "out.csv").read_text().splitlines()]
    assert [(row[0], row[2]) for row in found[1:]] == [("1", '"a, b"'), ("2", ""), ("3", ""), ("4", "x")]
    assert {row[1] for row in found[1:]} <= {"yes", "no"} and found[0] == ["id", "answer", "note"]
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600
    (tmp_path / "s.yaml").write_text(SCHEMA.replace("ENTRY", entry))
    column = load_schema(tmp_path / "s.yaml", {}).tables[0].column("answer")
    assert column is not None and column.randomized is not None and column.randomized.epsilon == Fraction("1.0986")
    assert main([*line.split(), "--json"]) == 1  # it is there already
    capsys.readouterr()
    assert main([*line.split(), "--json", "--force"]) == 0
    assert json.loads(capsys.readouterr().out)["declaration"] == entry


@pytest.mark.parametrize("null", [None, "unknown"])
def test_a_parquet_file_keeps_its_types(tmp_path: Path, null: str | None) -> None:
    flag = "i % 2 = 0" if null is None else "CASE WHEN i > 2 THEN i = 3 END"
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT i AS id, {flag} AS flag FROM range(5) t(i)) TO '{source}' (FORMAT parquet)")
        values = ("true", "false") if null is None else ("true", "false", null)
        wanted = RandomizationRequest("flag", values, Fraction(1), null)
        randomize_file(str(source), str(target), wanted, force=False, sampler=Silence())
        types = {name: kind for name, kind, *_ in connection.execute(f"DESCRIBE FROM '{target}'").fetchall()}
        assert types == {"id": "BIGINT", "flag": "BOOLEAN" if null is None else "VARCHAR"}
        found = connection.execute(f"SELECT flag FROM '{target}'").fetchall()
    expected = [True, False, True, False, True] if null is None else ["unknown"] * 3 + ["true", "false"]
    assert [row[0] for row in found] == expected  # without noise, all answers are kept


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("answer\nyes\nmaybe\n", "row 2 .* holds a value that was not named"),
        ("answer,x\nyes,1\n,2\n", "row 2 .* holds NULL"),
    ],
)
def test_an_answer_that_is_not_named_is_an_error_and_nothing_is_written(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "in.csv").write_text(text)
    wanted = RandomizationRequest("answer", ("yes", "no"), Fraction(1))
    with pytest.raises(InterfaceError, match=told):
        randomize_file(str(tmp_path / "in.csv"), str(tmp_path / "out.csv"), wanted, force=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


@pytest.mark.parametrize(
    "arguments",
    ["--values yes --epsilon 1", "--values yes,yes --epsilon 1", "--values yes,no --epsilon 0",
     "--values yes,no --epsilon 1 --column missing", "--values yes,no --epsilon 1 -o out.parquet"],
)  # fmt: skip
def test_wrong_wishes(tmp_path: Path, arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("in.csv").write_text("answer\nyes\n")
    assert main(["randomize", "in.csv", "--column", "answer", "-o", "out.csv", *arguments.split()]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_the_file_itself_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("answer\nyes\n")
    for force in (True, False):
        with pytest.raises(InterfaceError, match="has the true answers") as caught:
            randomize_file(
                str(path), str(path), RandomizationRequest("answer", ("yes", "no"), Fraction(1)), force=force
            )
        assert "--force" not in str(caught.value.hint)


def test_wrong_calls_of_the_mechanism() -> None:
    for answers, epsilon in ((1, Fraction(1)), (2, Fraction(0))):
        with pytest.raises(ValueError, match="two or more"):
            randomize_responses(np.zeros(1, np.int64), answers, epsilon, Silence())
