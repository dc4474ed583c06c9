"""What is offered can be written: every example is answered, every choice of a setting is taken."""

from pathlib import Path

import duckdb
import pytest

from dpsql.dataset import open_dataset
from dpsql.session import Session
from dpsql.settings import NAMES
from dpsql.sql.aggregates import _BINDERS
from dpsql.vocabulary import named_functions, named_settings

CORPUS = Path(__file__).parents[1] / "corpus"
BY_NAME = {one.name: one for one in named_functions()}


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    (folder / "hospital.yaml").write_text((CORPUS / "hospital.yaml").read_text())
    with duckdb.connect(str(folder / "hospital.duckdb")) as connection:
        connection.execute((CORPUS / "mix.sql").read_text() + (CORPUS / "hospital.sql").read_text())
    dataset = open_dataset(folder / "hospital.yaml")
    yield Session(dataset)
    dataset.close()


@pytest.mark.parametrize("name", BY_NAME)
def test_every_example_is_answered(session, name):
    example, joined = BY_NAME[name].example, "visits JOIN patients USING (patient_id)"
    rows = f"(SELECT *, admitted AS at, rating AS score FROM {joined}) AS v"
    assert example.startswith(f"{name}(")
    if BY_NAME[name].kind == "function":
        assert session.describe(f"SELECT COUNT(*) FROM {rows} WHERE ({example}) IS NOT NULL")
    else:
        assert session.describe(f"SELECT kind, {example} FROM visits GROUP BY kind")


def test_every_aggregate_is_offered():
    offered = {one.name for one in named_functions() if one.kind == "aggregate"}
    for spelled in _BINDERS:
        assert offered & {name.lower() for name in spelled.sql_names()}, spelled


@pytest.mark.parametrize("setting", named_settings(), ids=lambda setting: setting.name)
def test_every_choice_is_taken(session, setting):
    for choice in setting.choices:
        session.execute(f"SET {setting.name} = '{choice}'")
    session.execute(f"SHOW {setting.name}")
    session.execute(f"RESET {setting.name}")


def test_a_session_tells_them(session):
    assert session.functions() == named_functions()
    assert [one.name for one in session.named_settings() if one.ours] == list(NAMES)
