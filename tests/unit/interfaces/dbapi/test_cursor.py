"""Parameters, what is charged, error bars, and the tables of other libraries."""

import builtins
import datetime as dt
import re
import sys
from decimal import Decimal
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import dpsql
import dpsql.interfaces.dbapi.connection
from dpsql.amounts import NO_CHARGE, format_remaining, format_rounded_up
from dpsql.session.session import Session
from tests.support.optional_dependencies import package

pytestmark = pytest.mark.slow

HOSTILE = ["'", "''", "f' OR '1'='1", "x'; DROP TABLE patients; --", "--", "/* */", "\\", "\\'", "$1", "?", "%s", "f\n",
           'a"b', "$$", "E'\\x41'", "\u2019", ""]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_text_parameters_are_values(cursor, text):
    assert cursor.execute("SELECT ? AS x", [text]).fetchall() == [(text,)]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_a_private_filter_is_one_value(connection, text):
    """The release compares with one literal: its text, with quotes doubled, and nothing else changes."""
    explanation = connection.explain("SELECT COUNT(*) FROM visits WHERE ward = ?", [text])
    plain = connection.explain("SELECT COUNT(*) FROM visits WHERE ward = ?", ["WARD"])
    literal = "'" + text.replace("'", "''") + "'"
    assert explanation.releases[0].sql == plain.releases[0].sql.replace("'WARD'", literal)
    numbered = connection.explain("SELECT COUNT(*) FROM visits WHERE ward = $2 AND ward <> $1", ["x", text])
    written = connection.explain(f"SELECT COUNT(*) FROM visits WHERE ward = {literal} AND ward <> 'x'")
    assert numbered.releases[0].sql == written.releases[0].sql


def test_parameters_of_each_type(cursor):
    given = [1, -2, 1.5, Decimal("2.50"), True, None, "text"]
    cursor.execute("SELECT " + ", ".join(f"? AS x{i}" for i in range(len(given))), given)
    assert cursor.fetchone() == (1, -2, Decimal("1.5"), Decimal("2.50"), True, None, "text")
    cursor.execute(
        "SELECT CAST(? AS DATE) AS d, CAST(? AS TIMESTAMP) AS t",
        [dt.date(2024, 2, 29), dpsql.Timestamp(2024, 2, 29, 1, 2, 3)],
    )
    assert cursor.fetchone() == (dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3))


@pytest.mark.parametrize("parameters", [[], [1, 2], [float("nan")], [object()]])
def test_wrong_parameters(cursor, parameters):
    with pytest.raises(dpsql.ProgrammingError):
        cursor.execute("SELECT ? AS x", parameters)


@pytest.mark.parametrize("parameters", ["f", b"f", {"sex": "f"}, None, 3])
def test_parameters_are_a_sequence(cursor, parameters):
    with pytest.raises(dpsql.InterfaceError):
        cursor.execute("SELECT ? AS x", parameters)


def test_a_statement_is_text(cursor):
    with pytest.raises(dpsql.InterfaceError):
        cursor.execute(b"SELECT 1")


def test_loss_of_gaussian_noise(connection, cursor):
    assert str(cursor.loss) == "nothing"
    cursor.execute("SELECT COUNT(*) FROM patients")
    loss, balance = cursor.loss, connection.budget()
    assert loss and (loss.epsilon, loss.delta, loss.pure_epsilon) == (1, Fraction(1, 10**7), None)
    assert loss.rho == balance.spent_rho > 0 and loss.selection_delta == 0
    assert str(loss) == f"epsilon ≤ 1 at delta 1e-7 (rho {format_rounded_up(loss.rho)})"


def test_loss_with_selection(connection, cursor):
    cursor.execute("SELECT ward, COUNT(*) FROM visits GROUP BY ward")
    assert 0 < cursor.loss.selection_delta == connection.budget().spent_delta
    assert "selection delta" in str(cursor.loss)


def test_loss_of_pure_noise(connection, cursor):
    cursor.execute("SET delta = 0")
    cursor.execute("SET epsilon = 0.5")
    cursor.execute("SELECT COUNT(*) FROM patients")
    assert str(cursor.loss) == "epsilon 0.5"
    assert cursor.loss.pure_epsilon == connection.budget().pure_epsilon


def test_a_repeat_is_free_and_the_same(connection, cursor):
    first = cursor.execute("SELECT sex, COUNT(*) FROM patients GROUP BY sex").fetchall()
    spent = connection.budget()
    again = cursor.execute("select SEX, count(*) from patients group by 1").fetchall()
    assert again == first and not cursor.loss and str(cursor.loss) == "nothing"
    assert connection.budget() == spent


def test_figures_round_against_the_reader():
    assert format_rounded_up(Fraction(20186, 10**6)) == "0.0202" and format_rounded_up(Fraction(0)) == "0"
    assert format_remaining(Fraction(19999, 10**4), Fraction(2)) == "1.99"


def test_errors_stand_beside_the_rows(cursor):
    cursor.execute("SELECT sex, COUNT(*) AS n, AVG(birth_year) AS y FROM patients GROUP BY sex")
    rows = cursor.fetchall()
    assert len(cursor.errors) == len(rows) == 4
    for (_, n, y), (none, of_n, of_y) in zip(rows, cursor.errors, strict=True):
        assert none is None and isinstance(of_n, dpsql.CellError)
        assert of_n.low <= n <= of_n.high and of_n.stderr > 0
        assert y is None or of_y.low <= y <= of_y.high


def test_errors_without_an_answer(cursor):
    with pytest.raises(dpsql.ProgrammingError):
        _ = cursor.errors


class Silent:
    """A sampler without noise: large noise may happen to fall far from 0, and is then no wider than the value."""

    def laplace(self, n, scale):
        return np.zeros(n, dtype=np.int64)

    def gaussian(self, n, sigma):
        return np.zeros(n, dtype=np.int64)


def test_notices(folder, monkeypatch):
    monkeypatch.setattr(dpsql.interfaces.dbapi.connection, "Session", partial(Session, sampler=Silent()))
    with dpsql.connect(folder / "clinic.yaml", user="ana", epsilon=0.01) as connection:
        cursor = connection.cursor()
        assert cursor.notices == ()
        cursor.execute("SELECT COUNT(*) FROM patients WHERE birth_year = 1950 AND sex = 'x'")
        assert "noise is wider" in cursor.notices[0]


def test_explain_is_free(connection):
    explanation = connection.explain("SELECT COUNT(*) FROM patients WHERE sex = ?", ["f"])
    assert isinstance(explanation, dpsql.Explanation)
    assert explanation.epsilon == 1 and explanation.outputs == (("count", "bigint"),)
    assert explanation.releases[0].bundles[0].mechanism == "gaussian"
    balance = connection.budget()
    assert isinstance(balance, dpsql.Balance) and balance.charges == 0


def test_budget_is_exhausted_with_a_hint(connection):
    cursor = connection.cursor()
    cursor.execute("SET epsilon = 6")
    with pytest.raises(dpsql.OperationalError) as caught:
        cursor.execute("SELECT COUNT(*) FROM patients")
    assert '"ana"' in caught.value.message and "SET epsilon = " in caught.value.hint
    assert connection.budget().charges == 0


# --- tables of other libraries ---------------------------------------------------------------------------------------

TYPED = (
    "SELECT 1::BIGINT AS i, 1.5::DOUBLE AS f, 2.50::DECIMAL(38,2) AS n, 'a' AS t, DATE '2024-02-29' AS d,"
    " TIMESTAMP '2024-02-29 12:34:56' AS m, TRUE AS b UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL"
)


def test_arrow(cursor):
    pa = package("pyarrow")
    table = cursor.execute(TYPED).fetch_arrow()
    assert table.schema.types == [
        pa.int64(),
        pa.float64(),
        pa.decimal128(38, 2),
        pa.string(),
        pa.date32(),
        pa.timestamp("us"),
        pa.bool_(),
    ]
    assert table.schema.names == list("ifntdmb")
    assert table.to_pylist()[0] == {
        "i": 1,
        "f": 1.5,
        "n": Decimal("2.50"),
        "t": "a",
        "d": dt.date(2024, 2, 29),
        "m": dt.datetime(2024, 2, 29, 12, 34, 56),
        "b": True,
    }
    assert set(table.to_pylist()[1].values()) == {None}


def test_arrow_of_nothing_keeps_its_types(cursor):
    pa = package("pyarrow")
    table = cursor.execute("SELECT 1::BIGINT AS i, 'a' AS t WHERE FALSE").fetch_arrow()
    assert table.num_rows == 0 and table.schema.types == [pa.int64(), pa.string()]


def test_arrow_of_wide_integers_and_lists(cursor):
    package("pyarrow")
    table = cursor.execute("SELECT 2::HUGEINT AS h, [1, 2] AS l, 1::SMALLINT AS s, NULL AS n").fetch_arrow()
    assert table.to_pylist() == [{"h": Decimal(2), "l": [1, 2], "s": 1, "n": None}]
    with pytest.raises(dpsql.DataError):
        cursor.execute("SELECT 170141183460469231731687303715884105727::HUGEINT AS h").fetch_arrow()


def test_arrow_takes_the_rows_that_are_left(cursor):
    package("pyarrow")
    cursor.execute("SELECT i FROM generate_series(1, 3) AS s(i) ORDER BY i")
    cursor.fetchone()
    assert cursor.fetch_arrow().column("i").to_pylist() == [2, 3]
    assert cursor.fetchall() == []


def test_arrow_with_errors(cursor):
    package("pyarrow")
    cursor.execute("SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex")
    table = cursor.fetch_arrow(errors=True)
    assert table.schema.names == ["sex", "n", "n_stderr", "n_low", "n_high", "n_clipped"]
    assert table.column("n_stderr").to_pylist() == [bars[1].stderr for bars in cursor.errors]


def test_pandas(cursor):
    pd = package("pandas")
    frame = cursor.execute(TYPED).fetch_df()
    assert [str(t) for t in frame.dtypes][:2] == ["Int64", "float64"]
    assert str(frame.dtypes["m"]) == "datetime64[us]" and str(frame.dtypes["b"]) == "boolean"
    assert frame["n"][0] == Decimal("2.50") and frame["d"][0] == dt.date(2024, 2, 29) and frame["t"][0] == "a"
    assert frame.iloc[1].isna().all()
    whole = cursor.execute("SELECT 9007199254740993::BIGINT AS i, TRUE AS b").fetch_df()
    assert [str(t) for t in whole.dtypes] == ["int64", "bool"] and whole["i"][0] == 9007199254740993
    assert isinstance(whole, pd.DataFrame)


def test_pandas_with_equal_names_and_no_rows(cursor):
    package("pandas")
    frame = cursor.execute("SELECT 1 AS a, 2 AS a WHERE FALSE").fetch_df()
    assert list(frame.columns) == ["a", "a"] and len(frame) == 0


@pytest.mark.parametrize(
    ("module", "extra", "method"), [("pyarrow", "arrow", "fetch_arrow"), ("pandas", "pandas", "fetch_df")]
)
def test_a_missing_library_is_reported_with_the_line_that_installs_it(cursor, monkeypatch, module, extra, method):
    monkeypatch.setitem(sys.modules, module, None)
    cursor.execute("SELECT 1 AS a")
    with pytest.raises(dpsql.InterfaceError) as caught:
        getattr(cursor, method)()
    assert f'pip install "dpsql[{extra}]"' in caught.value.hint


def test_warning_is_a_warning():
    assert issubclass(dpsql.Warning, builtins.Warning)


def test_what_is_printed_is_for_people_and_what_is_read_is_exact(connection):
    """A loss is rounded up to a multiple of 2^-80, of which nobody wants the digits."""
    answer = connection.sql("SELECT COUNT(*) FROM visits")
    plan, balance = connection.explain("SELECT SUM(cost) FROM visits"), connection.budget()
    for one in (answer.loss, plan, balance):
        assert type(one).__name__ in repr(one) and "Fraction" not in repr(one)
        assert not re.search(r"[0-9]{6}", repr(one)) and "epsilon=" in repr(one)
    assert isinstance(answer.loss.rho, Fraction) and isinstance(balance.left_epsilon, Fraction)
    assert repr(NO_CHARGE) == "Charge(epsilon=0, delta=0, rho=0, selection_delta=0, pure_epsilon=0)"


@pytest.mark.parametrize(("mark", "position"), [(":w", 44), ("%(w)s", 44), ("$w", 44)])
def test_a_dict_of_parameters_is_refused_where_the_placeholder_is(connection, mark, position):
    for ask in (connection.sql, connection.explain, connection.cursor().execute):
        with pytest.raises(dpsql.ProgrammingError, match="a placeholder is written") as caught:
            ask(f"SELECT COUNT(*) FROM visits WHERE ward   = {mark}", {"w": "surgery"})
        assert caught.value.position == position and "^" in str(caught.value)
    with pytest.raises(dpsql.InterfaceError, match="a sequence"):
        connection.sql("SELECT COUNT(*) FROM visits WHERE ward = ?", {"w": "surgery"})
