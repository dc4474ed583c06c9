"""Values on the wire against a real PostgreSQL: it must write, byte for byte, what we write, and read what we read."""

import datetime as dt
import math
import struct
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dpsql.base.intervals import IntervalParts, interval_parts, make_interval
from dpsql.errors import Error
from dpsql.interfaces.pgwire.protocol.decode import decode_parameter, decode_value, from_text
from dpsql.interfaces.pgwire.protocol.encode import BINARY_FORMAT, TEXT_FORMAT, make_encoder
from dpsql.interfaces.pgwire.protocol.types import (
    TYPES_BY_NAME,
    TYPES_BY_OID,
    WireType,
    column_wire_type,
    wire_type_of_spelling,
)
from dpsql.session.session import OutputColumn
from dpsql.types import Type, parse_type

COMMON = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))

FLOATS = st.floats(allow_nan=True, allow_infinity=True)
SINGLES = st.floats(width=32, allow_nan=True, allow_infinity=True)
NUMERICS = st.decimals(-(10**40), 10**40, allow_nan=False).filter(lambda one: abs(one.adjusted()) < 60)
TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=20)
DATES = st.dates()
MOMENTS = st.datetimes()
ZONED = st.datetimes(dt.datetime(2, 1, 1), dt.datetime(9998, 1, 1), timezones=st.just(dt.UTC))
INTERVALS = st.builds(
    IntervalParts, st.integers(-30_000, 30_000), st.integers(-1_000_000, 1_000_000), st.integers(-(10**15), 10**15)
)
VALUES = {
    "bool": st.booleans(),
    "int2": st.integers(-(2**15), 2**15 - 1),
    "int4": st.integers(-(2**31), 2**31 - 1),
    "int8": st.integers(-(2**63), 2**63 - 1),
    "oid": st.integers(0, 2**32 - 1),
    "float4": SINGLES,
    "float8": FLOATS,
    "numeric": NUMERICS | st.sampled_from([Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity")]),
    "text": TEXTS,
    "varchar": TEXTS,
    "date": DATES,
    "time": st.times(),
    "timestamp": MOMENTS,
    "timestamptz": ZONED,
    "interval": INTERVALS,
    "uuid": st.uuids(),
    "bytea": st.binary(max_size=20),
}


@pytest.fixture(scope="module")
def real(postgres):
    with psycopg.connect(postgres.database(), autocommit=True) as db:
        db.execute("SET TimeZone = 'UTC'")
        yield db.pgconn


def asked(real, oid: int, data: bytes | None, format_: int, result: int) -> bytes | None:
    """What PostgreSQL gives back for one value that it is given."""
    got = real.exec_params(b"SELECT $1", [data], [oid], [format_], result)
    assert got.status == psycopg.pq.ExecStatus.TUPLES_OK, got.error_message
    return got.get_value(0, 0)


def is_same(one: object, other: object) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, float | Decimal) and isinstance(other, float | Decimal) and one != one:
        return other != other
    if isinstance(one, float) and one == 0:
        return other == 0 and math.copysign(1, one) == math.copysign(1, other)
    return one == other and type(one) is type(other)


def check(real, wire: WireType, value: object) -> None:
    text, binary = make_encoder(wire, TEXT_FORMAT)(value), make_encoder(wire, BINARY_FORMAT)(value)
    assert asked(real, wire.oid, text, TEXT_FORMAT, TEXT_FORMAT) == text
    assert asked(real, wire.oid, binary, BINARY_FORMAT, TEXT_FORMAT) == text
    assert asked(real, wire.oid, text, TEXT_FORMAT, BINARY_FORMAT) == binary
    assert asked(real, wire.oid, binary, BINARY_FORMAT, BINARY_FORMAT) == binary
    for data, format_ in ((text, TEXT_FORMAT), (binary, BINARY_FORMAT)):
        assert is_same(decode_value(data, wire, format_), value), (data, format_)


@pytest.mark.parametrize("name", VALUES)
def test_postgresql_writes_the_same_bytes_and_we_read_them_back(real, name):
    @COMMON
    @given(VALUES[name])
    def holds(value):
        check(real, TYPES_BY_NAME[name], value)

    holds()


@pytest.mark.parametrize("name", [name for name in VALUES if name not in ("bytea", "varchar")])
def test_arrays(real, name):
    @settings(COMMON, max_examples=60)
    @given(st.lists(st.none() | VALUES[name], max_size=5))
    def holds(values):
        check(real, TYPES_BY_NAME[f"_{name}"], values)

    holds()


@pytest.mark.parametrize(
    "value", ["", "NULL", "null", "{", "}", "a,b", 'a"b', "a\\b", " a", "a b", "\t", "\v", "é", "\x85"]
)
def test_what_arrays_quote(real, value):
    check(real, TYPES_BY_NAME["_text"], [value, None, value])


@pytest.mark.parametrize(
    "value",
    [1e23, 9007199254740993.0, 5e-324, 1.7976931348623157e308, 2.0**-44, 9.5e-5, 1e-4, 999999999999999.0, 1e15, 1e16,
     123456789012345680.0, 2.0**60, 2.0**63, 1e22, 1e17, 5e22, 0.1 + 0.2, -0.0, 2.2250738585072014e-308],
)  # fmt: skip
def test_floats_that_are_hard_to_write(real, value):
    check(real, TYPES_BY_NAME["float8"], value)


@settings(COMMON, max_examples=400)
@given(st.integers(0, 1074 + 1023), st.integers(-2, 2))
def test_floats_beside_powers_of_two(real, power, step):
    bits = struct.unpack("!q", struct.pack("!d", math.ldexp(1.0, power - 1074)))[0] + step
    value = struct.unpack("!d", struct.pack("!q", max(bits, 1)))[0]
    if math.isfinite(value):
        check(real, TYPES_BY_NAME["float8"], value)


@settings(COMMON, max_examples=400)
@given(st.integers(1, 0x7F7FFFFF))
@example(0x00800000)
@example(1)
@example(0x7F7FFFFF)
@example(0x4B800000)
def test_singles_of_all_sizes(real, bits):
    check(real, TYPES_BY_NAME["float4"], struct.unpack("!f", struct.pack("!I", bits))[0])


@settings(COMMON, max_examples=100)
@given(st.integers(0, 254), st.integers(-1, 1))
def test_singles_beside_powers_of_two(real, exponent, step):
    check(real, TYPES_BY_NAME["float4"], struct.unpack("!f", struct.pack("!I", max((exponent << 23) + step, 1)))[0])


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("date", "0044-03-15 (BC)", "0044-03-15 BC"),
        ("date", "12345-01-02", "12345-01-02"),
        ("date", "infinity", "infinity"),
        ("date", "-infinity", "-infinity"),
        ("timestamp", "0044-03-15 (BC) 10:00:00.5", "0044-03-15 10:00:00.5 BC"),
        ("timestamp", "12345-01-02 00:00:00", "12345-01-02 00:00:00"),
        ("timestamp", "infinity", "infinity"),
        ("timestamptz", "12345-01-02 00:00:00+00", "12345-01-02 00:00:00+00"),
        ("timestamptz", "0044-03-15 (BC) 10:00:00+00", "0044-03-15 10:00:00+00 BC"),
        ("time", "24:00:00", "24:00:00"),
        ("interval", dt.timedelta(hours=-2), "-02:00:00"),
        ("interval", dt.timedelta(days=-1, hours=-2), "-1 days -02:00:00"),
        ("interval", dt.timedelta(days=400, seconds=1), "400 days 00:00:01"),
        ("interval", IntervalParts(-14, 3, -1), "-1 years -2 mons +3 days -00:00:00.000001"),
        ("timetz", dt.time(10, 0, tzinfo=dt.timezone(dt.timedelta(hours=-3, minutes=-30))), "10:00:00-03:30"),
        ("json", {"a": [1, None, 2.5, "x\"y\n"], "b": dt.date(2020, 1, 1)},
         '{"a": [1, null, 2.5, "x\\"y\\n"], "b": "2020-01-01"}'),
        ("jsonb", {"a": Decimal("1.50")}, '{"a": 1.50}'),
        ("int2vector", [1, 2, 3], "1 2 3"),
        ("oidvector", [1, 2], "1 2"),
    ],
)  # fmt: skip
def test_what_python_does_not_count(real, name, value, text):
    wire = TYPES_BY_NAME[name]
    assert make_encoder(wire, TEXT_FORMAT)(value) == text.encode()
    binary = make_encoder(wire, BINARY_FORMAT)(value)
    assert asked(real, wire.oid, binary, BINARY_FORMAT, TEXT_FORMAT) == text.encode()
    assert asked(real, wire.oid, text.encode(), TEXT_FORMAT, BINARY_FORMAT) == binary


# --- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spelling", "name"),
    [("DOUBLE[]", "_float8"), ("DECIMAL(10,2)[]", "_numeric"), ("HUGEINT", "numeric"), ("UHUGEINT", "numeric"),
     ("UBIGINT", "numeric"), ("VARCHAR", "text"), ("INTEGER[3]", "_int4"), ("INTEGER[][]", "json"),
     ("MAP(VARCHAR, BIGINT)", "json"), ("STRUCT(a INTEGER)[]", "json"), ("STRUCT(a INTEGER[])", "json"),
     ('"NULL"', "text"), ("ENUM('a', 'b')", "text"), ("BLOB", "bytea"), ("TIMESTAMP_NS", "timestamp"),
     ("TIMESTAMP WITH TIME ZONE[]", "_timestamptz"), ("oid", "oid"), ("name", "name"), ("int2vector", "int2vector"),
     ("name[]", "_name"), ("oid[]", "_oid"), ("regclass", "regclass"), ("JSON", "json"), ("BIT", "text")],
)  # fmt: skip
def test_types_of_columns(spelling, name):
    assert column_wire_type(OutputColumn("x", parse_type(spelling), spelling))[0].name == name
    assert wire_type_of_spelling(spelling).name == name


def test_a_decimal_type_has_its_digits(real):
    wire, modifier = column_wire_type(OutputColumn("x", parse_type("decimal(10,2)"), "DECIMAL(10,2)"))
    assert real.exec_(b"SELECT 1::numeric(10,2)").fmod(0) == modifier and wire.name == "numeric"


def test_every_number_and_size_is_postgresqls(real):
    for wire in TYPES_BY_OID.values():
        asked = f"SELECT typname, typlen, format_type(oid, NULL), typelem FROM pg_type WHERE oid = {wire.oid}"
        got = real.exec_(asked.encode())
        name, size, spelled, element = (got.get_value(0, at).decode() for at in range(4))
        assert (wire.name, wire.size, wire.spelled) == (name, int(size), spelled)
        assert wire.element is None or wire.element.oid == int(element)


# --- parameters ------------------------------------------------------------------------------------------------------

WRONG = {
    "int4": ["", "abc", "1.5", "99999999999", "-2147483649", "1e3", "١", "--1", "1 2"],
    "int2": ["32768", "-32769"],
    "int8": ["9223372036854775808"],
    "float8": ["", "abc", "1e400", "1e-400", "1,5"],
    "float4": ["1e39", "1e-50"],
    "numeric": ["", "abc", "1.2.3"],
    "bool": ["", "o", "maybe", "2", "tru e"],
    "date": ["", "abc", "2020-13-01", "2020-02-30", "2020-00-10"],
    "timestamp": ["", "2020-01-01 25:00:00", "2020-01-01 10:60:00", "yesterdayish"],
    "time": ["", "25:00:00", "10:61"],
    "interval": ["", "abc", "1 fortnight", "1 day x"],
    "uuid": ["", "abc", "{12345678-1234-1234-1234-123456789abc", "12345678-1234-1234-1234-123456789abg"],
    "_int4": ["", "1", "{1", "{1,}", "{1}}", "{a}", "{1,2}x"],
}
RIGHT = {
    "int4": ["1", " -2 ", "+3", "0x1F", "1_000", "0b11", "0o17", "007"],
    "float8": ["1", ".5", "5.", "1e3", " 2.5 ", "-0"],
    "numeric": ["1", "1.50", ".5", "1e3", "-0.00", "1_000"],
    "bool": ["t", "TRUE", "y", "on", "1", "f", "no", "off", "0", " true ", "of", "fal"],
    "date": ["2020-01-31", "20200131", "2020-1-5", "2020-01-01 10:00:00", "2020-01-01 +00"],
    "timestamp": ["2020-01-01", "2020-01-01 10:00", "2020-01-01T10:00:00.25", "2020-01-01 10:00:00+05",
                  "2020-01-01 24:00:00", "2020-01-01 10:00:60", "2020-01-01 10:00:00.1234567"],
    "timestamptz": ["2020-01-01 10:00:00+02", "2020-01-01 10:00:00Z", "2020-01-01 10:00:00",
                    "2020-01-01T10:00:00-03:30"],
    "time": ["10:00", "10:00:00.5", "23:59:59"],
    "interval": ["1 day", "02:00", "-1 year 2 mons", "P1Y2M3DT4H5M6S", "1.5 days", "1 day ago", "3 weeks", "1h 5m",
                 "90 minutes", "@ 1 hour", "1.5 months", "-00:00:01.5"],
    "uuid": ["12345678-1234-1234-1234-123456789abc", "{12345678-1234-1234-1234-123456789ABC}",
             "12345678123412341234123456789abc"],
    "_int4": ["{}", "{1,2,NULL}", "{ 1 , 2 }", '{"1"}'],
    "_text": ['{a,"b c",NULL,"NULL"}', '{"a\\"b"}', "{a b,c}", "{é}"],
}  # fmt: skip


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in WRONG.items() for text in texts])
def test_what_postgresql_cannot_read_is_refused_in_its_words(real, name, text):
    wire = TYPES_BY_NAME[name]
    got = real.exec_params(b"SELECT $1", [text.encode()], [wire.oid])
    assert got.status == psycopg.pq.ExecStatus.FATAL_ERROR
    with pytest.raises(Error) as caught:
        decode_parameter(text.encode(), wire, TEXT_FORMAT)
    field = psycopg.pq.DiagnosticField
    assert caught.value.sqlstate == got.error_field(field.SQLSTATE).decode()
    assert caught.value.message == got.error_field(field.MESSAGE_PRIMARY).decode()


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in RIGHT.items() for text in texts])
def test_what_postgresql_reads_is_read_the_same(real, name, text):
    wire = TYPES_BY_NAME[name]
    value = from_text(text, wire)
    assert make_encoder(wire, TEXT_FORMAT)(value) == asked(real, wire.oid, text.encode(), TEXT_FORMAT, TEXT_FORMAT)


@pytest.mark.parametrize("name", [*VALUES, "_int4", "_text", "jsonb"])
@COMMON
@given(st.binary(max_size=40))
def test_any_bytes_are_a_value_or_a_clean_error(name, data):
    wire = TYPES_BY_NAME[name]
    for format_ in (TEXT_FORMAT, BINARY_FORMAT):
        try:
            decode_parameter(data, wire, format_)
        except Error as error:
            assert error.sqlstate[:2] in ("22", "0A"), error


def test_a_parameter_is_never_more_than_one_value():
    assert decode_parameter(b"'; DROP TABLE x", TYPES_BY_NAME["text"], TEXT_FORMAT) == "'; DROP TABLE x"
    assert decode_parameter(None, TYPES_BY_NAME["int4"], TEXT_FORMAT) is None
    assert decode_parameter(b"{1,2}", TYPES_BY_NAME["_int4"], TEXT_FORMAT) == "{1,2}"
    assert decode_parameter(
        make_encoder(TYPES_BY_NAME["interval"], BINARY_FORMAT)(IntervalParts(1, 2, 3)),
        TYPES_BY_NAME["interval"],
        BINARY_FORMAT,
    ) == make_interval(1, 2, 3)
    assert decode_parameter(UUID(int=5).bytes, TYPES_BY_NAME["uuid"], BINARY_FORMAT) == UUID(int=5)


@pytest.mark.parametrize("data", [b"\xff", b"a\0b", b"\xed\xa0\x80"])
def test_text_that_is_no_utf8_is_refused(real, data):
    with pytest.raises(Error) as caught:
        decode_parameter(data, TYPES_BY_NAME["text"], BINARY_FORMAT)
    got = real.exec_params(b"SELECT $1", [data], [25], [1])
    assert caught.value.sqlstate == got.error_field(psycopg.pq.DiagnosticField.SQLSTATE).decode() == "22021"


def test_a_value_that_does_not_fit_its_type_is_an_error_of_data():
    for name, value in (("int2", 70_000), ("int4", 1.5), ("int8", "x"), ("uuid", "x"), ("date", "x")):
        with pytest.raises(Error) as caught:
            make_encoder(TYPES_BY_NAME[name], BINARY_FORMAT)(value)
        assert caught.value.sqlstate == "22003"
    assert make_encoder(TYPES_BY_NAME["int8"], BINARY_FORMAT)(Decimal("3.0")) == struct.pack("!q", 3)


def test_timedeltas_are_intervals():
    assert interval_parts(dt.timedelta(days=1, seconds=-1)) == (0, 0, 86_399_000_000)
    assert make_interval(1, 1, 1) == dt.timedelta(days=31, microseconds=1)
    assert isinstance(parse_type("interval"), Type)
