"""Models from statement to prediction, through a session: made, shown, used, dropped, and nobody else's."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import dpsql
from dpsql.errors import (
    Error,
    InterfaceError,
    InvalidParameter,
    InvalidSyntax,
    NotPrivate,
    ProgrammingError,
    TypeMismatch,
    UnboundedValues,
    UnknownColumn,
    UnknownFunction,
    UnknownTable,
    Unsupported,
)
from dpsql.interfaces.dbapi.model import read_model
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.session import Session
from dpsql.types import BOOLEAN, DOUBLE, TEXT
from tests.support.optional_dependencies import package

SCHEMA = """
dpsql: 1
engine: duckdb:///clinic.duckdb
ledger: sqlite:///clinic.ledger
privacy:
  unit: patients.id
  budget: {epsilon: 100000, delta: 0.1}
  query: {epsilon: 1, delta: 1e-6}
  contributions: {rows: 2, groups: 5}
analysts:
  ann: {budget: {epsilon: 9000, delta: 0.01}}
  bob: {budget: {epsilon: 1000, delta: 0.01}}
tables:
  patients:
    unit: id
    unique: [id]
    columns:
      id: {type: bigint}
      age: {type: integer, bounds: [20, 90]}
      cost: {type: double, bounds: [0, 5000]}
      sex: {type: text, values: [f, m]}
      level: {type: integer, values: [1, 2, 10]}
      back: {type: boolean, nullable: true}
      state: {type: text, values: [sick, well]}
      note: {type: text}
      born: {type: date, bounds: [1930-01-01, 2005-12-31]}
  visits:
    unit: {id: patients.id}
    columns:
      id: {type: bigint}
      cost: {type: double, bounds: [0, 5000]}
      back: {type: boolean}
  wards: {public: true, columns: {age: {type: integer}, cost: {type: double}, sex: {type: text}}}
"""

DATA = """
CREATE TABLE patients AS SELECT
  i::BIGINT AS id, (20 + i * 7 % 71)::INTEGER AS age, (i * 131 % 5000)::DOUBLE AS cost,
  CASE WHEN i % 3 = 0 THEN 'f' ELSE 'm' END AS sex, [1, 2, 10][1 + i % 3]::INTEGER AS level,
  CASE WHEN i % 50 = 0 THEN NULL ELSE (20 + i * 7 % 71) + i * 13 % 40 > 75 END AS back,
  CASE WHEN i % 2 = 0 THEN 'sick' ELSE 'well' END AS state, 'x' || i AS note, DATE '1980-01-01' AS born
FROM range(3000) t(i);
CREATE TABLE visits AS SELECT id, cost, COALESCE(back, FALSE) AS back FROM patients UNION ALL
  SELECT id, cost / 2, TRUE FROM patients WHERE id % 4 = 0;
CREATE TABLE wards (age INTEGER, cost DOUBLE, sex VARCHAR);
INSERT INTO wards VALUES (30, 100, 'f'), (80, 4000, 'm'), (50, 10, NULL);
"""

MADE = "CREATE MODEL m AS LOGISTIC REGRESSION ON back USING age, cost, sex FROM patients WITH (epsilon = 20, delta = 0)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    (folder / "clinic.yaml").write_text(SCHEMA, encoding="utf-8")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(DATA)
    return folder


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Iterator[Dataset]:
    dataset = open_dataset(folder / "clinic.yaml")
    yield dataset
    dataset.close()


@pytest.fixture(scope="module")
def ann(dataset: Dataset) -> Session:
    session = Session(dataset, "ann")
    session.execute(MADE)
    session.execute("CREATE MODEL line AS LINEAR REGRESSION ON cost USING age, sex, back FROM patients "
                    "WITH (epsilon = 50, delta = 0)")  # fmt: skip
    return session


def test_a_model_is_made_shown_and_listed(ann: Session) -> None:
    shown = ann.execute("SHOW MODEL m")
    assert [row[0] for row in shown.rows] == ["intercept", "age", "cost", "sex=f", "sex=m"]
    assert all(error > 0 for _, _, error in shown.rows)
    age = shown.rows[1][1]
    assert 0.01 < age < 0.2, "the older come back"
    assert all(error == float(f"{error:.3g}") for _, _, error in shown.rows), "no digits that mean nothing"
    assert max(len(repr(number)) for _, *numbers in shown.rows for number in numbers) < 10
    assert [row[0] for row in ann.execute("SHOW MODELS").rows] == ["line", "m"]
    assert ann.execute("SHOW MODELS").rows[1][1] == MADE


def test_what_lambda_does_is_told(ann: Session) -> None:
    """Of logistic models: by default those of linear ones are not drawn anywhere."""
    text = "WITH (epsilon = 50, delta = 0, lambda = 0.25)"
    told = ann.execute(f"CREATE MODEL held AS LOGISTIC REGRESSION ON back USING age FROM patients {text}").notices
    assert any(notice.startswith("lambda = 0.25 draws the coefficients toward 0") for notice in told)
    told = ann.execute("CREATE MODEL free AS LINEAR REGRESSION ON cost USING age FROM patients "
                       "WITH (epsilon = 50, delta = 0)").notices  # fmt: skip
    assert not any("lambda" in notice for notice in told)
    ann.execute("DROP MODEL held")
    ann.execute("DROP MODEL free")


def test_the_same_model_costs_nothing_more_and_another_name_is_another_model(ann: Session) -> None:
    again = ann.execute(MADE.replace("MODEL m", "MODEL same"))
    assert again.loss.rho == 0 and again.rows == ann.execute("SHOW MODEL m").rows
    ann.execute("DROP MODEL same")


def test_a_name_is_taken_once_and_may_be_given_again(ann: Session) -> None:
    with pytest.raises(ProgrammingError, match="already exists"):
        ann.execute(MADE)
    with pytest.raises(ProgrammingError, match="taken by a table"):
        ann.execute(MADE.replace("MODEL m", "MODEL patients"))
    assert ann.execute(MADE.replace("MODEL m", "MODEL IF NOT EXISTS m")).notices
    ann.execute(MADE.replace("CREATE MODEL m", "CREATE OR REPLACE MODEL m"))


def test_what_is_charged_is_what_the_record_says(ann: Session, dataset: Dataset) -> None:
    sql = "CREATE MODEL paid AS LOGISTIC REGRESSION ON back USING age FROM patients WITH (epsilon = 0.5, delta = 0)"
    answer = ann.execute(sql)
    assert answer.loss.epsilon is not None and 0.49 < answer.loss.epsilon <= 0.5 and answer.receipts
    weighed = ann.execute("CREATE MODEL weighed AS LOGISTIC REGRESSION ON back USING cost FROM visits")
    assert weighed.loss.epsilon is None and weighed.loss.rho > 0
    for name in ("paid", "weighed"):
        ann.execute(f"DROP MODEL {name}")


def test_explain_shows_the_price_and_is_free(ann: Session) -> None:
    before = ann.budget()
    told = str(ann.explain("CREATE MODEL x AS LOGISTIC REGRESSION ON back USING age FROM patients WITH (n = 3000)"))
    assert "coefficients err by" in told and ann.budget() == before


# --- predictions -----------------------------------------------------------------------------------------------------


def test_a_large_delta_charges_no_more_epsilon_than_was_requested(ann: Session) -> None:
    """Objective perturbation is pure: the rho of (0.001, 0.001) would be an epsilon of 0.0025."""
    told = ann.explain("CREATE MODEL tiny AS LOGISTIC REGRESSION ON back USING age FROM patients "
                       "WITH (method = 'objective', epsilon = 0.001, delta = 0.001, n = 1000)")  # fmt: skip
    (release,) = told.releases
    assert release.epsilon is not None and Fraction(9, 10000) < release.epsilon <= Fraction(1, 1000)


def test_predictions_on_public_rows_are_those_of_the_model(ann: Session) -> None:
    model = read_model(ann.execute("SHOW MODEL m (FORMAT JSON)").rows[0][0])
    rows = ann.execute("SELECT age, cost, sex, PREDICT(m) AS p, PREDICT(m, age, cost, sex) AS q FROM wards").rows
    assert ann.execute("SELECT PREDICT(m) FROM wards").loss.rho == 0
    for age, cost, sex, p, q in rows:
        assert p == q
        if sex is None:
            assert p is None
        else:
            assert p == pytest.approx(model.predict_proba([[age, cost, sex]])[0, 1], rel=1e-12)
    (young,), (old,) = ann.execute("SELECT PREDICT(m) FROM wards WHERE sex IS NOT NULL ORDER BY age").rows
    assert 0 < young < old < 1


def test_one_release_under_two_names_is_two_models(ann: Session) -> None:
    """What is remembered of a release that was read under one name is not what another name shows."""
    ask = "SELECT PREDICT({}, 40, 100, 'f')"
    one = ann.execute(ask.format("m")).rows
    ann.execute(MADE.replace("MODEL m", "MODEL twin"))
    assert ann.execute(ask.format("twin")).rows == one
    ann.execute("DROP MODEL m")
    assert ann.execute(ask.format("twin")).rows == one
    with pytest.raises(UnknownFunction):
        ann.execute(ask.format("m"))
    ann.execute(MADE)
    ann.execute("DROP MODEL twin")


def test_a_linear_model_takes_truth_and_gives_values(ann: Session) -> None:
    model = read_model(ann.execute("SHOW MODEL line (FORMAT JSON)").rows[0][0])
    ((yes, no),) = ann.execute("SELECT PREDICT(line, 40, 'f', TRUE), PREDICT(line, 40, 'f', FALSE)").rows
    assert [yes, no] == pytest.approx(model.predict([[40, "f", True], [40, "f", False]]).tolist())
    assert model.terms_ == ["age", "sex=f", "sex=m", "back"] and model.coef_.shape == (4,)


def test_predictions_on_private_rows_stand_in_aggregates_and_are_paid(ann: Session) -> None:
    share = ann.execute("SELECT AVG(PREDICT(m)) AS p FROM patients WHERE back IS NOT NULL")
    assert 0 < share.rows[0][0] < 1 and share.loss.rho > 0 and share.errors[0][0] is not None
    right = "AVG(CASE WHEN (PREDICT(m) > 0.5) = back THEN 1.0 ELSE 0.0 END)"
    assert ann.execute(f"SELECT {right} FROM patients WHERE back IS NOT NULL").rows[0][0] > 0.7
    with pytest.raises(NotPrivate):
        ann.execute("SELECT PREDICT(m) FROM patients")


def test_a_prediction_is_called_so(ann: Session) -> None:
    def names(sql: str) -> list[str]:
        return [column.name for column in ann.describe(sql)]

    assert names("SELECT PREDICT(m), 1 + PREDICT(m) FROM wards ORDER BY predict") == ["predict", "?column?"]
    assert names("SELECT PREDICT(line, age, sex, TRUE)::INTEGER FROM wards") == ["predict"]
    assert names("SELECT PREDICT(m), COUNT(*) FROM wards GROUP BY predict") == ["predict", "count"]
    assert names("SELECT ACCURACY(m) FROM patients") == ["accuracy"]


def test_accuracy_on_units_that_were_held_out(ann: Session) -> None:
    """Charged as the mean that it is, and right: against DuckDB with the coefficients of the model."""
    ann.execute("CREATE MODEL held AS LOGISTIC REGRESSION ON back USING age, cost, sex FROM patients "
                "WHERE id % 5 <> 0 WITH (epsilon = 20, delta = 0)")  # fmt: skip
    before = ann.budget().charges
    with_epsilon = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 50) {} FROM patients WHERE id % 5 = 0"
    answer = ann.execute(with_epsilon.format("ACCURACY(held) AS a, DP_STDERR(ACCURACY(held)) AS e"))
    assert answer.loss.rho > 0 and ann.budget().charges == before + 1
    ((found, error),) = answer.rows
    model = read_model(ann.execute("SHOW MODEL held (FORMAT JSON)").rows[0][0])
    with duckdb.connect() as engine:
        engine.execute(DATA)
        asked = "SELECT age, cost, sex, back FROM patients WHERE id % 5 = 0 AND back IS NOT NULL"
        rows = engine.execute(asked).fetchall()
    exact = np.mean(model.predict([row[:3] for row in rows]) == np.array([row[3] for row in rows]))
    assert 0 < error < 0.01 and found == pytest.approx(exact, abs=6 * error) and exact > 0.7
    again = ann.execute(with_epsilon.format("ACCURACY(held, back, age, cost, sex) AS a"))
    assert again.rows == [(found,)] and again.loss.rho == 0
    ann.execute("DROP MODEL held")


def test_accuracy_of_texts_counts_the_class_that_is_predicted(ann: Session) -> None:
    ann.execute("CREATE MODEL ill AS LOGISTIC REGRESSION ON state USING id % 2 = 0 AS even FROM patients "
                "WITH (epsilon = 50, delta = 0)")  # fmt: skip
    rows = ann.execute("SELECT sex, ACCURACY(ill, state, id % 2 = 0) FROM patients GROUP BY sex").rows
    assert [row[1] for row in rows] == pytest.approx([1, 1], abs=0.1)
    public = "(VALUES ('sick', TRUE), ('well', TRUE), ('x', TRUE)) v(state, even)"
    free = ann.execute(f"SELECT ACCURACY(ill, v.state, v.even) FROM {public}")
    assert free.rows == [(0.5,)] and free.loss.rho == 0
    ann.execute("DROP MODEL ill")


def test_predictions_within_predictions_grow_no_faster_than_they_are_written(ann: Session) -> None:
    text = "age"
    for _ in range(20):
        text = f"PREDICT(m, {text}, 100, 'f')"
    assert 0 < ann.execute(f"SELECT {text} FROM wards LIMIT 1").rows[0][0] < 1
    with pytest.raises(Error, match="at most 64 calls"):
        ann.execute("SELECT " + ", ".join(["PREDICT(m)"] * 65) + " FROM wards")


@pytest.mark.parametrize(
    ("sql", "error", "says"),
    [
        ("SELECT PREDICT(nobody, 1)", UnknownFunction, "does not exist"),
        ("SELECT PREDICT(m, 1)", InvalidSyntax, "has 3 features, not 1"),
        ("SELECT PREDICT('m', 1)", InvalidSyntax, "the name of a model"),
        ("SELECT PREDICT()", InvalidSyntax, "the name of a model"),
        ("SELECT ACCURACY(5) FROM patients", InvalidSyntax, "the name of a model"),
        ("SELECT ACCURACY(m, back) FROM patients", InvalidSyntax, "takes the label and 3 features"),
        ("SELECT ACCURACY(line) FROM patients", TypeMismatch, "is linear"),
        ("SELECT ACCURACY(m) FROM visits", UnknownColumn, 'takes a column "age", which is not there'),
        ("SELECT AVG(PREDICT(m)) FROM visits", UnknownColumn, 'takes a column "age", which is not there'),
        ("SELECT PREDICT(line) FROM wards", UnknownColumn, 'takes a column "sex", which is not there'),
    ],
)
def test_wrong_predictions_are_refused_with_their_place(ann: Session, sql: str, error: type[Error], says: str) -> None:
    sql = sql.replace("FROM wards", "FROM (SELECT age FROM wards) AS w")
    with pytest.raises(error, match=says) as caught:
        ann.execute(sql)
    assert caught.value.span is not None
    assert error is not UnknownColumn or str(caught.value.hint).startswith("Write its arguments out: ")


@pytest.mark.parametrize(
    ("sql", "place", "kind", "at"),
    [
        ("SELECT PREDICT(m, 'f', 3, 30)", 1, "a number", "'f'"),
        ("SELECT PREDICT(m, sex, cost, age) FROM wards", 1, "a number", "sex"),
        ("SELECT PREDICT(m, w.age, 3, w.cost), COUNT(*) FROM wards AS w GROUP BY age, cost", 3, "text", "w.cost"),
        ("SELECT PREDICT(m, age, k, 'f') FROM (SELECT age, upper(sex) AS k FROM wards) AS t", 2, "a number", "k"),
        ("WITH t AS (SELECT sex AS k FROM wards) SELECT PREDICT(m, k, 3, 'f') FROM t", 1, "a number", "k"),
        ("SELECT PREDICT(m, k, 3, 'f') FROM (SELECT sex AS k, COUNT(*) FROM patients GROUP BY sex) q", 1, "a number",
         "k"),
        ("SELECT AVG(PREDICT(m, age, 3, age)) FROM patients", 3, "text", "age"),
        ("SELECT PREDICT(m, PREDICT(m, 30, 3, 'f'), 3, PREDICT(m, 30, 3, 'f'))", 3, "text", None),
        ("SELECT PREDICT(line, 30, 'f', 5)", 3, "true or false", "5"),
        ("SELECT PREDICT(m, DATE '2020-01-01', 3, 'f')", 1, "a number", "'2020-01-01'"),
        ("SELECT (SELECT PREDICT(m, w.sex, 3, 'f') FROM (SELECT 1 AS o) AS t) FROM wards AS w", 1, "a number", "w.sex"),
    ],
)  # fmt: skip
def test_arguments_of_another_kind_are_pointed_at(
    ann: Session, sql: str, place: int, kind: str, at: str | None
) -> None:
    before = ann.budget().charges
    with pytest.raises(TypeMismatch, match=rf"argument {place} of PREDICT\(.*\) must be {kind}") as caught:
        ann.execute(sql)
    span = caught.value.span
    assert span is not None and (at is None or sql[span.start : span.end] == at)
    assert ann.budget().charges == before


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT PREDICT(m, NULL, 3, 'f')",
        "SELECT PREDICT(m, age, cost, CASE WHEN age > 40 THEN 'm' ELSE sex END) FROM wards",
        "SELECT age + 1 AS next, PREDICT(m, next, 3, 'f') FROM wards",
        "SELECT PREDICT(m, day - DATE '2020-01-01', 3, 'f') FROM (SELECT DATE '2020-02-01' AS day) AS t",
        "SELECT PREDICT(m, '30'::INTEGER, 3, 'f'), PREDICT(line, 30, 'f', age > 3) FROM wards",
        "SELECT PREDICT(m, x, 3, 'f') FROM (VALUES (30), (40)) AS v(x)",
        "SELECT PREDICT(m, x, 3, 'f') FROM generate_series(1, 3) AS g(x)",
        "SELECT PREDICT(m) FROM (SELECT * FROM wards) AS w",
        "WITH wards AS (SELECT age AS sex, 'f' AS age FROM wards) SELECT PREDICT(m, sex, 3, age) FROM wards",
        "WITH RECURSIVE t(sex) AS (SELECT 30 UNION ALL SELECT sex + 1 FROM t WHERE sex < 33) "
        "SELECT PREDICT(m, sex, 3, 'f') FROM t",
        "SELECT (SELECT PREDICT(m) FROM (SELECT 1 AS one) AS t) FROM wards",
        "SELECT 30 AS age, 2.5 AS cost, 'm' AS sex, PREDICT(m, 30, 2.5, 'm')",
    ],
)
def test_arguments_whose_kind_fits_or_is_not_known(ann: Session, sql: str) -> None:
    assert ann.execute(sql).rows


def test_kinds_of_columns_of_columns_are_reported_in_time(ann: Session) -> None:
    parts = ["t0 AS (SELECT age AS a, cost AS b FROM wards)"]
    parts += [f"t{n} AS (SELECT a + b + a + b AS a, a + b + a AS b FROM t{n - 1})" for n in range(1, 15)]
    start = time.process_time()
    assert ann.execute(f"WITH {', '.join(parts)} SELECT PREDICT(m, a, b, 'f') FROM t14").rows
    assert time.process_time() - start < 3


def test_parameters_of_a_prediction_have_its_types(ann: Session) -> None:
    prepared = ann.prepare("SELECT PREDICT(m, $1, $2, $3), PREDICT(line, $4, $5, $6)", ())
    assert prepared.parameters == (DOUBLE, DOUBLE, TEXT, DOUBLE, TEXT, BOOLEAN) and prepared.unknown is None


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "error", "says"),
    [
        ("LOGISTIC REGRESSION ON age USING cost FROM patients", TypeMismatch, "71 values"),
        ("LINEAR REGRESSION ON sex USING cost FROM patients", TypeMismatch, "no number"),
        ("LOGISTIC REGRESSION ON back USING born FROM patients", TypeMismatch, "is a time"),
        ("LOGISTIC REGRESSION ON back USING note FROM patients", UnboundedValues, "not known"),
        ("LOGISTIC REGRESSION ON cost > 5 AS dear USING age FROM wards", Unsupported, "gives out none"),
        ("LOGISTIC REGRESSION ON back USING cost FROM visits WITH (method = 'objective')", Unsupported, "one row"),
        ("LOGISTIC REGRESSION ON back USING cost FROM patients WITH (method = 'magic')", InvalidParameter, "method"),
        ("LOGISTIC REGRESSION ON back USING cost FROM patients WITH (lambda = 0)", InvalidParameter, "lambda"),
        ("LOGISTIC REGRESSION ON back USING cost FROM patients WITH (lambda = 'x')", InvalidParameter, "lambda"),
        ("LOGISTIC REGRESSION ON back USING cost FROM patients WITH (n = 1.5)", InvalidParameter, "n must"),
        ("LOGISTIC REGRESSION ON back USING cost FROM patients WITH (bins = 1)", InvalidParameter, "bins"),
        ("LINEAR REGRESSION ON cost USING age FROM patients WITH (n = 5)", InvalidParameter, "needs no n"),
        ("LOGISTIC REGRESSION ON back USING cost FROM patients WITH (lambd = 1)", Unsupported, "no option"),
        ("LOGISTIC REGRESSION ON back USING cost FROM patients WITH (max_error = 1)", InvalidParameter, "max_error"),
        ("RIDGE REGRESSION ON back USING cost FROM patients", InvalidSyntax, "no model of the kind"),
    ],
)
def test_what_is_no_model_is_refused_before_anything_is_charged(
    ann: Session, what: str, error: type[Error], says: str
) -> None:
    before = ann.budget()
    with pytest.raises(error, match=says) as caught:
        ann.execute(f"CREATE MODEL no AS {what}")
    assert caught.value.statement is not None and ann.budget() == before


def test_a_misspelt_option_is_pointed_at_and_the_right_ones_are_reported(ann: Session) -> None:
    rows = "SELECT age FROM patients"
    model = "LOGISTIC REGRESSION ON back USING cost FROM patients"
    for sql, own in [
        (f"CREATE SYNTHETIC TABLE no AS {rows} WITH (rows = 5, epsilo = 1)", "method, rounds, bins, rows."),
        (f"CREATE MODEL no AS {model} WITH (bins = 5, epsilo = 1)", "method, lambda, n, bins."),
    ]:
        with pytest.raises(Unsupported, match='no option "epsilo"') as caught:
            ann.execute(sql)
        error = caught.value
        assert error.hint is not None and error.hint.startswith('Perhaps you meant "epsilon". Options: epsilon, ')
        assert error.hint.endswith(own) and "max_error" not in error.hint
        assert error.span is not None and sql[error.span.start :].startswith("epsilo = 1)")


def test_expressions_need_names(ann: Session) -> None:
    with pytest.raises(InvalidSyntax, match="have no names") as caught:
        ann.execute("CREATE MODEL no AS LOGISTIC REGRESSION ON (age > 50) USING cost > 5, sex FROM patients")
    assert caught.value.hint is not None and "AS" in caught.value.hint
    ann.execute(
        "CREATE MODEL old AS LOGISTIC REGRESSION ON (age > 50) AS old USING cost > 5 AS dear, sex FROM patients"
    )
    assert [row[0] for row in ann.execute("SHOW MODEL old").rows] == ["intercept", "dear", "sex=f", "sex=m"]
    ann.execute("DROP MODEL old")


def test_a_label_that_was_computed_is_to_be_written_out(ann: Session) -> None:
    ann.execute(
        "CREATE MODEL dear AS LOGISTIC REGRESSION ON (cost > 100) AS dear USING age, round(cost, -2) AS c FROM patients"
    )
    for call, better in (("ACCURACY(dear)", "ACCURACY(dear, (cost > 100), age, round(cost, -2))"),
                         ("AVG(PREDICT(dear))", "PREDICT(dear, age, round(cost, -2))")):  # fmt: skip
        with pytest.raises(UnknownColumn) as caught:
            ann.explain(f"SELECT {call} FROM patients")
        assert caught.value.hint == f"Write its arguments out: {better}."
        ann.explain(f"SELECT {better if call.startswith('ACC') else f'AVG({better})'} FROM patients")
    with pytest.raises(UnknownColumn, match='"age"') as caught:
        ann.explain("SELECT AVG(PREDICT(dear)) FROM (SELECT id, cost AS c FROM patients) AS t")
    assert caught.value.hint == "Write its arguments out: PREDICT(dear, age, round(cost, -2))."
    ann.execute("DROP MODEL dear")


def test_labels_and_features_of_every_kind(ann: Session) -> None:
    """Texts with two declared values, booleans, comparisons; numbers that stand unevenly are categories."""
    ann.execute(
        "CREATE MODEL kinds AS LOGISTIC REGRESSION ON state USING level, back, cost > 100 AS dear FROM patients"
    )
    rows = ann.execute("SHOW MODEL kinds").rows
    assert [row[0] for row in rows] == ["intercept", "level=1", "level=2", "level=10", "back", "dear"]
    model = read_model(ann.execute("SHOW MODEL kinds (FORMAT JSON)").rows[0][0])
    assert model.classes_.tolist() == ["sick", "well"] and model.label == "state"
    ((sql,),) = ann.execute("SELECT PREDICT(kinds, 10, TRUE, FALSE)").rows
    assert sql == pytest.approx(model.predict_proba([[10, True, False]])[0, 1])
    ann.execute("DROP MODEL kinds")


# --- whose ----------------------------------------------------------------------------------------------------------


def test_another_account_sees_no_model_and_pays_for_its_own(ann: Session, dataset: Dataset) -> None:
    bob = Session(dataset, "bob")
    with pytest.raises(UnknownTable):
        bob.execute("SHOW MODEL m")
    with pytest.raises(UnknownFunction) as caught:
        bob.execute("SELECT PREDICT(m) FROM wards")
    assert "line" not in str(caught.value)
    with pytest.raises(UnknownFunction, match='model "m" does not exist'):
        bob.execute("SELECT ACCURACY(m) FROM patients")
    assert bob.budget().charges == 0 and bob.execute("SHOW MODELS").rows == []
    with pytest.raises(UnknownTable):
        bob.execute("DROP MODEL m")
    answer = bob.execute(MADE)
    assert answer.loss.epsilon is not None and answer.loss.epsilon > 19, "the same model costs her the same"
    assert answer.rows == ann.execute("SHOW MODEL m").rows, "and is the same release"
    bob.execute("DROP MODEL m")
    with pytest.raises(UnknownFunction):
        bob.execute("SELECT PREDICT(m) FROM wards")
    assert ann.execute("SELECT COUNT(*) FROM wards WHERE PREDICT(m) > 0").rows == [(2,)]


def test_private_values_within_a_prediction_are_released_first(ann: Session) -> None:
    """A sub-select over private rows is a release of its own, charged; a single row of it is refused."""
    answer = ann.execute("SELECT PREDICT(m, (SELECT AVG(age) FROM patients), 100, 'f') AS p")
    assert 0 < answer.rows[0][0] < 1 and answer.loss.rho > 0
    with pytest.raises(Error):
        ann.execute("SELECT PREDICT(m, (SELECT age FROM patients WHERE id = 7), 100, 'f')")


# --- Python ----------------------------------------------------------------------------------------------------------


def test_a_model_in_python(ann: Session, folder: Path) -> None:
    with dpsql.connect(folder / "clinic.yaml", user="ann") as connection:
        model = connection.model("m")
    assert model.coef_.shape == (1, 4) and model.stderr_.shape == (1, 4) and model.intercept_.shape == (1,)
    assert model.feature_names_in_.tolist() == ["age", "cost", "sex"] and model.classes_.tolist() == [False, True]
    rows = [[30, 100.0, "f"], [85, 4000.0, "m"]]
    score = model.decision_function(rows)[0]
    term = dict(zip(model.terms_, model.coef_[0], strict=True))
    by_hand = model.intercept_[0] + 30 * term["age"] + 100 * term["cost"] + term["sex=f"]
    assert score == pytest.approx(by_hand) and model.intercept_stderr_ > 0
    assert model.predict_proba(rows)[0].sum() == pytest.approx(1)
    assert model.predict(rows).tolist() == (model.predict_proba(rows)[:, 1] > 0.5).tolist()
    assert math.isnan(model.decision_function([[30, None, "f"]])[0])
    with pytest.raises(InterfaceError):
        model.predict([[1, 2]])
    line = replace(model, family="linear")
    with pytest.raises(InterfaceError):
        line.predict_proba(rows)
    assert json.dumps(model.terms_)


def test_a_value_that_was_not_declared_has_no_prediction_in_python_as_in_sql(ann: Session) -> None:
    model = read_model(ann.execute("SHOW MODEL m (FORMAT JSON)").rows[0][0])
    rows = [[30, 100.0, "nope"], [30, 100.0, None], [30, math.nan, "f"], [30, 100.0, "f"]]
    told = [ann.execute("SELECT PREDICT(m, ?, ?, ?)", [a, None if b != b else b, c]).rows[0][0] for a, b, c in rows]
    assert told[:3] == [None, None, None] and np.isnan(model.predict_proba(rows)[:3]).all()
    assert model.predict_proba(rows)[3, 1] == pytest.approx(told[3])
    assert model.predict(rows).tolist() == [None, None, None, told[3] > 0.5]
    line = read_model(ann.execute("SHOW MODEL line (FORMAT JSON)").rows[0][0])
    assert np.isnan(line.predict([[40, "nope", True], [40, "f", None]])).all()
    assert line.predict([[40, "f", 1]]) == pytest.approx(line.predict([[40, "f", np.True_]]))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([1, 2, 3], "a row has 3 values: age, cost, sex"),
        (5, "a row has 3 values"),
        ("abc", "a row has 3 values"),
        (["abc"], "a row has 3 values"),
        ([{"age": 1, "cost": 2, "sex": "f"}], "a row has 3 values"),
        ([["x", 2, "f"]], "feature \"age\" takes numbers, not 'x'"),
        ([["30", 2, "f"]], "feature \"age\" takes numbers, not '30'"),
        ([[[1], 2, "f"]], 'feature "age" takes numbers'),
    ],
)
def test_rows_that_are_none_are_reported(ann: Session, rows: object, says: str) -> None:
    model = read_model(ann.execute("SHOW MODEL m (FORMAT JSON)").rows[0][0])
    with pytest.raises(InterfaceError, match=says):
        model.predict(rows)


def test_a_boolean_is_required(ann: Session) -> None:
    line = read_model(ann.execute("SHOW MODEL line (FORMAT JSON)").rows[0][0])
    with pytest.raises(InterfaceError, match='feature "back" takes true or false'):
        line.predict([[40, "f", 5]])


def test_values_of_a_model_are_plain_json(ann: Session) -> None:
    plain = json.loads(ann.execute("SHOW MODEL m (FORMAT JSON)").rows[0][0])
    assert [term["value"] for term in plain["terms"]] == [None, None, "f", "m"] and plain["classes"] == [False, True]


def test_a_frame_without_a_feature(ann: Session) -> None:
    pandas = package("pandas")
    model = read_model(ann.execute("SHOW MODEL m (FORMAT JSON)").rows[0][0])
    with pytest.raises(InterfaceError, match='the frame has no column "cost"'):
        model.predict(pandas.DataFrame({"sex": ["f"], "age": [30]}))
    frame = pandas.DataFrame({"sex": ["f", None], "cost": [1.0, 2.0], "age": pandas.array([None, 3], dtype="Int64")})
    assert np.isnan(model.decision_function(frame)).all()


def test_a_frame_is_read_by_the_names_of_its_columns(ann: Session) -> None:
    pandas = package("pandas")
    model = read_model(ann.execute("SHOW MODEL m (FORMAT JSON)").rows[0][0])
    frame = pandas.DataFrame({"sex": ["f"], "cost": [100.0], "age": [30]})
    assert model.predict_proba(frame) == pytest.approx(model.predict_proba([[30, 100.0, "f"]]))


def test_an_estimator_of_scikit_learn_predicts_the_same(ann: Session) -> None:
    package("sklearn")
    rows = [[30, 100.0, "f"], [85, 4000.0, "m"]]
    model = read_model(ann.execute("SHOW MODEL m (FORMAT JSON)").rows[0][0])
    estimator = model.to_sklearn()
    assert estimator.predict_proba(rows) == pytest.approx(model.predict_proba(rows))
    assert estimator.predict(rows).tolist() == model.predict(rows).tolist()
    line = read_model(ann.execute("SHOW MODEL line (FORMAT JSON)").rows[0][0])
    values = [[40, "f", True]]
    assert line.to_sklearn().predict(values) == pytest.approx(line.predict(values))
    assert np.isfinite(line.predict(values)).all()
    for row in ([30, 100.0, "nope"], [30, None, "f"]):
        with pytest.raises(ValueError, match="NaN"):
            estimator.predict([row])
