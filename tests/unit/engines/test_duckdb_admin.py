"""What registering asks of DuckDB: keys over sanitised rows, collations, typed snapshots of text files."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import duckdb
import pytest

from dpsql import types as t
from dpsql.engines import text_files
from dpsql.engines.duckdb_admin import DuckDBAdmin
from dpsql.errors import OperationalError
from dpsql.schema.locations import MEMORY_URL
from dpsql.schema.model import Column, Domain, EngineTable, Files

T = EngineTable(("t",))


def column(name, type_, lower=None, upper=None, values=None, max_length=1024):
    bound = [None if edge is None else Fraction(edge) for edge in (lower, upper)]
    return Column(name, Domain(type_, True, *bound, values), max_length=max_length)


@pytest.fixture
def table(tmp_path):
    """A function that makes the table t of a database file and gives its owner's connection."""
    opened = []

    def make(sql):
        path = tmp_path / "data.duckdb"
        with duckdb.connect(str(path)) as db:
            db.execute(sql)
        opened.append(DuckDBAdmin(f"duckdb:///{path}"))
        return opened[-1]

    yield make
    for owner in opened:
        owner.__exit__()


@pytest.mark.parametrize(
    ("values", "key", "is_id", "found"),
    [
        ("1, 2, 3", column("x", t.BIGINT), False, False),
        ("1, 2, 2", column("x", t.BIGINT), False, True),
        ("1, NULL, NULL", column("x", t.BIGINT), False, False),
        # Clipping makes one key of two; an id is not clipped but dropped.
        ("1, 200, 300", column("x", t.BIGINT, 0, 100), False, True),
        ("1, 200, 300", column("x", t.BIGINT, 0, 100), True, False),
        ("1, 200, 300", column("x", t.BIGINT, 0, 200), False, True),
        ("9007199254740992, 9007199254740993", column("x", t.BIGINT, 0, 9007199254740992), False, True),
        ("9007199254740992, 9007199254740993", column("x", t.BIGINT, 0, 9007199254740993), False, False),
        ("1, 2", column("x", t.INTEGER, 0, 10**12), False, False),
        ("1.25::DECIMAL(9,2), 2.34, 2.35", column("x", t.decimal_type(9, 2), 0, Fraction(7, 3)), False, True),
        ("1.25::DECIMAL(9,2), 2.33, 2.30", column("x", t.decimal_type(9, 2), 0, Fraction(7, 3)), False, False),
        ("DATE '2020-01-01', DATE '2020-01-02'", column("x", t.DATE, 0, 18262), False, True),
        ("DATE '2020-01-01', DATE '2020-01-02'", column("x", t.DATE, 0, 18263), False, False),
        ("DATE 'infinity', DATE '-infinity', DATE '2020-01-01'", column("x", t.DATE), False, False),
        ("TIMESTAMP '2020-01-01', TIMESTAMP '2021-01-01'", column("x", t.TIMESTAMP, 0, 10**15), False, True),
        ("TIMESTAMPTZ '2020-01-01 00:00+01', '2021-01-01'", column("x", t.TIMESTAMPTZ, 0, 10**15), False, True),
        ("'nan'::DOUBLE, 'nan', 'inf', 'inf'", column("x", t.DOUBLE), False, False),
        ("0.0::DOUBLE, -0.0::DOUBLE", column("x", t.DOUBLE), False, True),
        ("'a', 'b', 'z', 'z'", column("x", t.TEXT, values=("a", "b")), False, False),
        ("'a', 'b', 'b'", column("x", t.TEXT, values=("a", "b")), False, True),
        ("'aaaa', 'aaaa', 'a'", column("x", t.TEXT, max_length=3), False, False),
        ("'a', 'A'", column("x", t.TEXT), False, False),
        # A cast makes one key of two.
        ("'7', '007', 'x'", column("x", t.BIGINT), False, True),
        ("1.4::DOUBLE, 1.3", column("x", t.BIGINT), False, True),
    ],
)
def test_duplicates_are_those_of_sanitised_rows(table, values, key, is_id, found):
    owner = table(f"CREATE TABLE t AS SELECT unnest([{values}]) AS x")
    assert owner.has_duplicates(T, [key], ["x"] if is_id else []) is found


def test_duplicates_of_several_columns(table):
    owner = table("CREATE TABLE t AS FROM (VALUES (1, 'a'), (1, 'b'), (2, 'a'), (2, NULL), (2, NULL)) v(x, y)")
    keys = [column("x", t.INTEGER), column("y", t.TEXT)]
    assert not owner.has_duplicates(T, keys)
    assert owner.has_duplicates(T, keys[:1]) and owner.has_duplicates(T, keys[1:])


def test_bounds_of_a_float_key_are_refused(table):
    owner = table("CREATE TABLE t AS SELECT 1.5::DOUBLE AS x")
    with pytest.raises(OperationalError, match="cannot have bounds"):
        owner.has_duplicates(T, [column("x", t.DOUBLE, 0, 1)])


@pytest.mark.parametrize("collation", ["nocase", "noaccent", "de", "nfc"])
def test_collations_are_found_also_behind_a_view(table, collation):
    owner = table(f"CREATE TABLE s (x TEXT COLLATE {collation}, y TEXT); CREATE VIEW t AS SELECT x, y, x AS z FROM s")
    assert [owner.is_compared_by_bytes(T, name) for name in "xyz"] == [False, True, False]


@pytest.fixture
def load(tmp_path):
    """A function that snapshots text and gives the rows of the Parquet file."""

    def snapshot(text, columns, ids=(), kind="csv", **dialect):
        texts = text if isinstance(text, list) else [text]
        paths = []
        for at, content in enumerate(texts):
            paths.append(tmp_path / f"part{at}.{kind}")
            paths[-1].write_bytes(content if isinstance(content, bytes) else content.encode())
        target = tmp_path / "snapshots" / "t.parquet"
        with DuckDBAdmin(MEMORY_URL) as owner:
            owner.write_snapshot(Files(tuple(map(str, paths)), kind, **dialect), columns, target, ids)
        assert [path.name for path in target.parent.iterdir()] == ["t.parquet"]
        with duckdb.connect() as db:
            return db.execute(f"SELECT * FROM '{target}'").fetchall()

    return snapshot


A, B = column("a", t.BIGINT), column("b", t.TEXT)


def test_fields_are_cast_row_by_row(load):
    columns = [
        column("i", t.INTEGER), column("d", t.decimal_type(6, 2)), column("f", t.DOUBLE), column("day", t.DATE),
        column("at", t.TIMESTAMP), column("ok", t.BOOLEAN), column("s", t.TEXT),
    ]  # fmt: skip
    text = "i,d,f,day,at,ok,s\n1,1.005,1e3,2020-01-02,2020-01-02 03:04:05,true,x\nx,y,z,13/01/2020,never,perhaps,\n"
    assert load(text, columns) == [
        (1, Decimal("1.01"), 1000.0, dt.date(2020, 1, 2), dt.datetime(2020, 1, 2, 3, 4, 5), True, "x"),
        (None, None, None, None, None, None, None),
    ]


def test_every_type_survives_the_snapshot(load):
    cases = [
        (t.HUGEINT, "9007199254740993", 9007199254740993),
        (t.decimal_type(30, 3), "123456789012345678901234567.891", Decimal("123456789012345678901234567.891")),
        (t.TIMESTAMPTZ, "2020-01-02 03:04:05+01", dt.datetime(2020, 1, 2, 2, 4, 5, tzinfo=dt.UTC)),
        (t.TIME, "01:02:03", dt.time(1, 2, 3)),
        (t.UUID, "00000000-0000-0000-0000-000000000001", UUID(int=1)),
        (t.INTERVAL, "3 days", dt.timedelta(days=3)),
        (t.REAL, "0.5", 0.5),
        (t.SMALLINT, "-7", -7),
    ]
    columns = [column(f"c{at}", type_) for at, (type_, _, _) in enumerate(cases)]
    header, line = ",".join(c.name for c in columns), ",".join(text for _, text, _ in cases)
    assert load(f"{header}\n{line}\n", columns) == [tuple(value for _, _, value in cases)]


def test_columns_are_found_by_name_in_any_order_and_file(load):
    assert load(["b,extra,a\nx,?,1\n", "\ufeffA,b\n2,y\n"], [A, B]) == [(1, "x"), (2, "y")]


def test_the_dialect_is_the_declared_one(load):
    text = "a;b\n1;'x;y''z'\nNA;NA\n3;\n"
    assert load(text, [A, B], delimiter=";", quote="'", null="NA") == [(1, "x;y'z"), (None, None), (3, "")]
    assert load("1,x\n2,y\n", [A, B], header=False) == [(1, "x"), (2, "y")]
    assert load('a,b\r\n1,"x\r\n""y"""\r\n', [A, B]) == [(1, 'x\r\n"y"')]
    assert load("a,b\n", [A, B]) == []


def test_an_id_is_never_cast(load):
    text = "a,b\n7,r\n007,s\n 7,t\n7.4,u\n+7,v\n70,w\n"
    assert load(text, [A, B], ids=["a"]) == [(7, "r"), (None, "s"), (None, "t"), (None, "u"), (None, "v"), (70, "w")]
    assert [row[0] for row in load("b\n007\n 7\n", [B], ids=["b"])] == ["007", " 7"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\n2\n3,y\n", r'"part0\.csv", line 3 cannot be read'),
        ("a,b\n1,x\n2,y,secret\n", r'"part0\.csv", line 3 cannot be read'),
        (b"a,b\n1,\xff\xfe\n", r'"part0\.csv", line 2 cannot be read'),
        ("a,c\n1,x\n", r'"part0\.csv" has no column "b"'),
        ("", 'has no column "a"'),
    ],
)
def test_a_wrong_file_fails_and_leaves_nothing(load, tmp_path, text, message):
    with pytest.raises(OperationalError, match=message) as caught:
        load(text, [A, B])
    assert "secret" not in str(caught.value)
    assert not list(tmp_path.glob("snapshots/*"))


def test_json_as_array_and_as_lines(load):
    rows = [(1, "x"), (2, None), (None, '{"q":1}')]
    assert load('[{"a": 1, "b": "x"}, {"a": 2, "b": null}, {"b": {"q": 1}, "more": 1}]', [A, B], kind="json") == rows
    assert load('{"a": 1, "b": "x"}\n{"a": 2}\n{"b": {"q":1}}\n', [A, B], kind="json") == rows
    with pytest.raises(OperationalError, match=r'"part0\.json", line \d cannot be read'):
        load('{"a": 1}\n{"a": ', [A, B], kind="json")


@pytest.mark.parametrize(("quote", "escape"), [('"', ""), ('"', "\\"), ("'", "")])
@pytest.mark.parametrize("piece", [1, 2, 7, 1 << 20])
def test_a_line_that_ends_in_another_way_changes_no_text(tmp_path, monkeypatch, quote, escape, piece):
    """Else a unit's row would change the texts of all others."""
    monkeypatch.setattr(text_files, "_CHUNK", piece)
    texts = ["a\r\nb", "a\rb", "a\nb", f"a{quote}b\r", "a\\\\\r\n" if not escape else "a\\\r\n", "\n\n"]

    def quoted(text):
        text = text.replace("\\", "\\\\") if escape else text
        return f"{quote}{text.replace(quote, (escape or quote) + quote)}{quote}"

    lines = [f"{number},{quoted(text)}" for number, text in enumerate(texts)]
    seen = []
    for own_end in ("\r\n", "\n", "\r"):
        path = tmp_path / "notes.csv"
        path.write_bytes("\r\n".join(["id,note", *lines]).encode() + b"\r\n9,z" + own_end.encode())
        files = Files((str(path),), "csv", quote=quote, escape=escape)
        columns = [Column("id", Domain(t.BIGINT)), Column("note", Domain(t.TEXT))]
        with DuckDBAdmin(MEMORY_URL) as admin:
            target = tmp_path / "notes.parquet"
            admin.write_snapshot(files, columns, target)
            seen.append(admin.query_rows(f"SELECT note FROM '{target}' ORDER BY id"))
    assert seen[0] == seen[1] == seen[2] == [(text,) for text in [*texts, "z"]]
