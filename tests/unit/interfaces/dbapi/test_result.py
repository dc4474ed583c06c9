"""An answer as one value: rows, data frames, text and HTML."""

import datetime as dt
import html
import sys
from decimal import Decimal
from uuid import UUID

import pytest

import dpsql
from tests.support.optional_dependencies import package

QUERY = "SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex"
HOSTILE = "<script>alert(1)</script>"
TYPED = (
    "SELECT 1::SMALLINT AS s, 2::INTEGER AS i, 9007199254740993::BIGINT AS b, 170141183460469231731::HUGEINT AS h,"
    " 1.5::DOUBLE AS f, 0.5::REAL AS r, 2.50::DECIMAL(38,2) AS n, 'a' AS t, DATE '2024-02-29' AS d,"
    " TIMESTAMP '2024-02-29 12:34:56.789' AS m, TIMESTAMPTZ '2024-02-29 12:34:56+00' AS z, TIME '01:02:03' AS c,"
    " INTERVAL 36 HOUR AS v, '00000000-0000-0000-0000-000000000005'::UUID AS u, TRUE AS y, [1, 2] AS l"
)
NULLS = f"{TYPED} UNION ALL SELECT {', '.join(['NULL'] * 16)}"
ROW = (1, 2, 9007199254740993, 170141183460469231731, 1.5, 0.5, Decimal("2.50"), "a", dt.date(2024, 2, 29),
       dt.datetime(2024, 2, 29, 12, 34, 56, 789000), dt.datetime(2024, 2, 29, 12, 34, 56, tzinfo=dt.UTC),
       dt.time(1, 2, 3), dt.timedelta(hours=36), UUID(int=5), True, [1, 2])  # fmt: skip


def test_it_is_what_a_cursor_shows(connection):
    answer = connection.sql(QUERY)
    cursor = connection.cursor().execute(QUERY)
    assert isinstance(answer, dpsql.Answer)
    assert answer.columns == ("sex", "n") and answer.rows == list(answer) == cursor.fetchall() and len(answer) == 4
    assert answer.errors == cursor.errors and answer.receipts == cursor.receipts and answer.notices == cursor.notices
    assert answer.types == tuple(column[1] for column in cursor.description) and answer.types[1] == "bigint"
    assert answer.loss.rho == connection.budget().spent_rho > 0 and not cursor.loss
    assert answer.command == "SELECT"


def test_parameters(connection):
    assert connection.sql("SELECT ? AS a", ["x"]).rows == connection.sql("SELECT $1 AS a", ["x"]).rows == [("x",)]


def test_it_is_its_own(connection):
    """What is done to the rows of one answer is not seen in the next."""
    first = connection.sql(QUERY)
    first.rows.clear()
    first.errors.clear()
    again = connection.sql(QUERY)
    assert len(again.rows) == len(again.errors) == 4


def test_scalar(connection):
    assert connection.sql("SELECT 7 AS a").scalar() == 7
    for sql in ("SELECT 1 AS a, 2 AS b", "SELECT 1 AS a WHERE FALSE", "SET epsilon = 1"):
        with pytest.raises(dpsql.ProgrammingError):
            connection.sql(sql).scalar()


def test_a_command_has_no_rows(connection):
    answer = connection.sql("SET epsilon = 0.5")
    assert (answer.rows, answer.columns, repr(answer), answer.left) == ([], (), "SET", None)
    for use in (answer.df, answer.pl, answer.arrow, answer.plot):
        with pytest.raises(dpsql.ProgrammingError, match="SET has no rows"):
            use()
    assert "SET" in answer._repr_html_()


# --- text and HTML ---------------------------------------------------------------------------------------------------


def test_text(connection):
    answer = connection.sql(QUERY)
    head, rule, *rows, count, charged, left = repr(answer).splitlines()
    assert head.split() == ["sex", "│", "n"] and set(rule) == {"─", "┼"} and len(rows) == 4
    assert all("±" in row for row in rows) and count == "(4 rows, ± 95 % intervals)"
    assert charged == f"charged: {answer.loss}" and left.startswith("left of ana's budget: ")
    assert str(answer) == repr(answer)


def test_what_reads_no_private_rows_reports_no_charge(connection):
    assert repr(connection.sql("SELECT 1 AS a")).splitlines()[-1] == "(1 row)"


def test_long_answers_are_shown_in_part(connection):
    answer = connection.sql("SELECT i FROM generate_series(1, 1000) AS s(i)")
    assert len(answer) == 1000 and "the first 100 are shown" in repr(answer)
    assert len(repr(answer).splitlines()) < 110 and answer._repr_html_().count("<tr>") == 101


def test_explain_reads_as_a_plan(connection):
    answer = connection.sql(f"EXPLAIN {QUERY}")
    assert repr(answer).startswith("Loss: at most") and "<pre" in answer._repr_html_()


def test_text_steers_no_terminal(connection):
    for sql in ("SELECT E'a\\x1b[31mb' AS \"c\x1b[0m\"", "EXPLAIN SELECT E'a\\x1b[31mb' AS x, COUNT(*) FROM visits"):
        assert "\x1b" not in repr(connection.sql(sql))


def test_html_escapes_the_analysts_text(connection):
    page = connection.sql(f"SELECT '{HOSTILE}' AS \"{HOSTILE}\"")._repr_html_()
    assert HOSTILE not in page and page.count("&lt;script&gt;") == 2
    plan = connection.explain(f"SELECT COUNT(*) FROM visits WHERE ward = '{HOSTILE}'")
    assert HOSTILE in str(plan) and HOSTILE not in plan._repr_html_() and "&lt;script&gt;" in plan._repr_html_()


def test_html_has_bars_loss_and_what_is_left(connection):
    page = connection.sql(QUERY)._repr_html_()
    assert page.count("±") == 5 and "charged: epsilon" in page and "left of ana&#x27;s budget" in page


def test_budgets_and_explanations_read_as_text(connection):
    for one in (connection.budget(), connection.explain(QUERY), connection.sql(QUERY).loss):
        assert one._repr_html_().startswith("<pre") and str(one) in html.unescape(one._repr_html_())


# --- data frames -----------------------------------------------------------------------------------------------------


def test_arrow(connection):
    pa = package("pyarrow")
    table = connection.sql(NULLS).arrow()
    assert table.schema.types == [
        pa.int16(), pa.int32(), pa.int64(), pa.decimal128(38, 0), pa.float64(), pa.float32(), pa.decimal128(38, 2),
        pa.string(), pa.date32(), pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.time64("us"), pa.duration("us"),
        pa.string(), pa.bool_(), pa.list_(pa.int64()),
    ]  # fmt: skip
    expected = dict(zip("sibhfrntdmzcvuyl", ROW, strict=True)) | {"h": Decimal(ROW[3]), "u": str(ROW[13])}
    assert table.to_pylist()[0] == expected and set(table.to_pylist()[1].values()) == {None}


def test_polars(connection):
    pl = package("polars")
    frame = connection.sql(NULLS).pl()
    assert frame.dtypes == [
        pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.Float64, pl.Float32, pl.Decimal(38, 2), pl.String, pl.Date,
        pl.Datetime("us"), pl.Datetime("us", "UTC"), pl.Time, pl.Duration("us"), pl.String, pl.Boolean,
        pl.List(pl.Int64),
    ]  # fmt: skip
    assert frame.row(0) == (*ROW[:13], str(ROW[13]), True, [1, 2]) and set(frame.row(1)) == {None}


def test_polars_of_nothing_and_of_names_twice(connection):
    pl = package("polars")
    frame = connection.sql("SELECT 1::BIGINT AS a, 'x' AS a WHERE FALSE").pl()
    assert frame.schema == {"a": pl.Int64, "a_2": pl.String} and len(frame) == 0


def test_pandas_keeps_values(connection):
    package("pandas")
    frame = connection.sql(NULLS).df()
    assert frame["b"][0] == 9007199254740993 and frame["h"][0] == ROW[3] and frame["n"][0] == Decimal("2.50")
    assert frame["v"][0] == dt.timedelta(hours=36) and frame["u"][0] == UUID(int=5) and frame.iloc[1].isna().all()


def test_frames_with_errors(connection):
    answer = connection.sql(QUERY)
    names = ["sex", "n", "n_stderr", "n_low", "n_high", "n_clipped"]
    package("pandas"), package("polars"), package("pyarrow")
    assert list(answer.df(errors=True).columns) == answer.pl(errors=True).columns == names
    assert answer.arrow(errors=True).column_names == names and list(answer.df().columns) == names[:2]
    assert answer.pl(errors=True)["n_low"].to_list() == [bars[1].low for bars in answer.errors]


def test_cursors_take_what_is_left_as_polars(cursor):
    package("polars")
    cursor.execute("SELECT i FROM generate_series(1, 3) AS s(i) ORDER BY i")
    cursor.fetchone()
    assert cursor.fetch_pl()["i"].to_list() == [2, 3] and cursor.fetchall() == []


@pytest.mark.filterwarnings("ignore:pandas only supports")
def test_what_other_libraries_read_by_themselves(connection):
    """They take any connection of PEP 249."""
    pandas, polars = package("pandas"), package("polars")
    rows = connection.sql(QUERY).rows
    frame = pandas.read_sql("SELECT sex, COUNT(*) AS n FROM patients WHERE birth_year < ? GROUP BY sex", connection,
                            params=[3000])  # fmt: skip
    assert list(frame["n"]) and list(frame.columns) == ["sex", "n"]
    assert polars.read_database(QUERY, connection).rows() == rows
    assert connection.budget().charges == 2


@pytest.mark.parametrize(("module", "extra", "method"), [("polars", "polars", "pl"), ("pandas", "pandas", "df"),
                                                         ("pyarrow", "arrow", "arrow"), ("altair", "altair", "plot"),
                                                         ("matplotlib.pyplot", "plot", "plot")])  # fmt: skip
def test_a_missing_library_is_reported_with_the_line_that_installs_it(connection, monkeypatch, module, extra, method):
    answer = connection.sql(QUERY)
    monkeypatch.setitem(sys.modules, module, None)
    more = {"library": "altair"} if module == "altair" else {}
    with pytest.raises(dpsql.InterfaceError, match="is not installed") as caught:
        getattr(answer, method)(**more)
    assert f'pip install "dpsql[{extra}]"' in caught.value.hint


def test_plot(connection):
    matplotlib = package("matplotlib")
    matplotlib.use("Agg")
    answer = connection.sql(QUERY)
    axes = answer.plot()
    assert [bar.get_height() for bar in axes.patches] == [n for _, n in answer.rows]
    assert answer.plot(y="n", ax=axes) is axes
    matplotlib.pyplot.close("all")


def test_an_answer_outlives_its_connection(folder):
    with dpsql.connect(folder / "clinic.yaml", user="ana") as connection:
        answer = connection.sql(QUERY)
    assert len(answer.rows) == 4 and "±" in repr(answer) and "left of" in answer._repr_html_()
