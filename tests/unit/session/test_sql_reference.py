"""What is offered can be written: every example is answered, every choice of a setting is taken."""

from pathlib import Path

import duckdb
import pytest

from dpsql.base.option_names import (
    LINEAR_METHODS,
    LOGISTIC_METHODS,
    MODEL_OPTIONS,
    QUERY_OPTIONS,
    SYNTHETIC_TABLE_OPTIONS,
    list_option_choices,
    list_option_names,
)
from dpsql.compiler.bind.aggregates import _BINDERS
from dpsql.compiler.calibrate.calibrate import NoiseKind
from dpsql.compiler.parameter_types import OPTION_SAMPLES as SAMPLES
from dpsql.compiler.plan.measures import MedianBy
from dpsql.compiler.settings import OPTION_SETTINGS, SETTING_NAMES
from dpsql.privacy.synthetic.synthesis import SynthesisMethod
from dpsql.session.artifacts.create_model import MOMENTS, OBJECTIVE, OUTPUT
from dpsql.session.dataset.dataset import open_dataset
from dpsql.session.session import Session
from dpsql.session.sql_reference import named_functions, named_settings

CORPUS = Path(__file__).parents[2] / "corpus"
BY_NAME = {one.name: one for one in named_functions()}
ALONE = {"randomized"}
"""Told of each unit, where their number is public: alone in a SELECT over the only private table."""
VISITS = """\
dpsql: 1
engine: duckdb:///visits.duckdb
privacy:
  unit: row
  neighbors: change_one
  budget: {epsilon: 8, delta: 1e-6}
tables:
  visits:
    unit: row
    columns: {kind: {type: text, values: [in, out]}}
"""


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabulary")
    (folder / "hospital.yaml").write_text((CORPUS / "hospital.yaml").read_text())
    with duckdb.connect(str(folder / "hospital.duckdb")) as connection:
        connection.execute((CORPUS / "mix.sql").read_text() + (CORPUS / "hospital.sql").read_text())
    dataset = open_dataset(folder / "hospital.yaml")
    session = Session(dataset)
    session.execute("CREATE MODEL m AS LOGISTIC REGRESSION ON urgent USING cost, nights FROM visits")
    yield session
    dataset.close()


@pytest.mark.parametrize("name", sorted(ALONE))
def test_every_example_of_units_is_answered(tmp_path, name):
    (tmp_path / "visits.yaml").write_text(VISITS)
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 'in' AS kind")
    dataset = open_dataset(tmp_path / "visits.yaml")
    assert Session(dataset).describe(f"SELECT {BY_NAME[name].example} FROM visits")
    dataset.close()


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in ALONE])
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


def test_a_session_lists_them(session):
    assert [one.name for one in session.named_settings() if one.ours] == list(SETTING_NAMES)
    told = session.functions()
    assert told[: len(named_functions())] == named_functions()
    own = {(one.name, one.kind): one.example for one in told[len(named_functions()) :]}
    assert own["m", "model"] == "predict(m, cost, nights)"
    for (_, kind), example in own.items():
        source = "visits" if kind == "statistic" else "(SELECT 1.0 AS cost, 2 AS nights) AS t"
        assert session.describe(f"SELECT {example} FROM {source}")


def test_options_are_those_that_are_read():
    assert {*list_option_names(QUERY_OPTIONS)} == {*OPTION_SETTINGS}
    assert list_option_choices("method", SYNTHETIC_TABLE_OPTIONS) == (*(one.value for one in SynthesisMethod), "auto")
    assert (*LOGISTIC_METHODS, *LINEAR_METHODS) == (OBJECTIVE, OUTPUT, MOMENTS)
    assert list_option_choices("noise", QUERY_OPTIONS) == ("auto", *(noise.value for noise in NoiseKind))
    assert list_option_choices("mechanism", QUERY_OPTIONS) == tuple(by.value for by in MedianBy)
    assert {*list_option_names((*QUERY_OPTIONS, *SYNTHETIC_TABLE_OPTIONS, *MODEL_OPTIONS))} == {*SAMPLES}
