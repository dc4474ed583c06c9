"""Placeholders: ? and $n, their numbers, and those of other drivers, which are refused with the form that is meant."""

import datetime as dt
from decimal import Decimal
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dpsql.compiler.catalog.query import parse_catalog_tree
from dpsql.compiler.parse.commands import ExplainCommand, SetCommand, read_command
from dpsql.compiler.parse.parameters import Parameter, to_literal
from dpsql.compiler.parse.parser import parse_query, tokenize
from dpsql.errors import Error, InvalidSyntax, ProgrammingError, Unsupported
from tests.support.optional_dependencies import package


def test_numbers_say_which_value() -> None:
    assert parse_query("SELECT $2, $1, $2", ["a", "b"]).sql() == "SELECT 'b', 'a', 'b'"
    many = ", ".join(f"${number}" for number in range(1, 13))
    assert parse_query(f"SELECT {many}", list(range(1, 13))).sql() == f"SELECT {', '.join(map(str, range(1, 13)))}"


def test_a_value_holds_no_placeholder() -> None:
    assert parse_query("SELECT $1, $2", ["$2", "?"]).sql() == "SELECT '$2', '?'"
    assert parse_query("SELECT ?, ?", ["?", "$1"]).sql() == "SELECT '?', '$1'"


def test_an_operator_may_follow_at_once() -> None:
    """PostgreSQL's JSON has operators that begin with a question mark, and sqlglot reads them first."""
    assert (
        parse_query("SELECT ?::date, a LIKE ?||'%'", ["2020-01-01", "x"]).sql()
        == parse_query("SELECT '2020-01-01'::date, a LIKE 'x'||'%'").sql()
    )


def test_quoted_texts_and_names_hold_no_placeholder() -> None:
    tree = parse_query("""SELECT '$1 ? %s :a', $$ $1 $$, "a?b", $1 -- $2 ?""", [7])
    assert tree.sql().startswith("""SELECT '$1 ? %s :a', ' $1 ', "a?b", 7""")


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("SELECT a IN ($1,$2)", "SELECT a IN (1, 2)"),
        ("SELECT a IN ($1,$2) OR b IN ($1,$2)", "SELECT a IN (1, 2) OR b IN (1, 2)"),
        ("SELECT ($1+$2)", "SELECT (1 + 2)"),
        ("SELECT $1||$2", "SELECT 1 || 2"),
        ("SELECT $1::int+$2", "SELECT CAST(1 AS INT) + 2"),
        ("SELECT $1,$2,$1", "SELECT 1, 2, 1"),
        ("SELECT a<$1 AND b>$2", "SELECT a < 1 AND b > 2"),
        ("SELECT a$1,$1,$2,b$2", "SELECT a$1, 1, 2, b$2"),
        ("SELECT $tag$ $1,$2 $tag$,$1,$2", "SELECT ' $1,$2 ', 1, 2"),
        ("SELECT $1,$$ $1,$2 $$,$2", "SELECT 1, ' $1,$2 ', 2"),
        ("SELECT '$1,$2','\x02',$1,$2", "SELECT '$1,$2', '\x02', 1, 2"),
        ("SELECT E'\\'$1,$2',$1,$2", "SELECT '''$1,$2', 1, 2"),
        ('SELECT "$1,$2",$1,$2', 'SELECT "$1,$2", 1, 2'),
        ("SELECT $1,$2 /* $1,$3 /* $4,$5 */ */ -- $7,$8", "SELECT 1, 2"),
    ],
)
def test_numbers_need_no_space_between_them(sql: str, written: str) -> None:
    """`$1,$` opens no quoted text: what names a dollar quote is a word."""
    assert parse_query(sql, [1, 2]).sql(comments=False) == written


def test_numbers_without_a_space_in_commands_and_statements_of_the_catalog() -> None:
    tree = parse_catalog_tree("SELECT oid FROM pg_class WHERE relname IN ($1,$2)", ["a", "b"])
    assert tree is not None and tree.sql() == "SELECT oid FROM pg_class WHERE relname IN ('a', 'b')"
    explained = read_command("EXPLAIN SELECT $1,$2", [1, 2])
    assert isinstance(explained, ExplainCommand) and explained.sql.strip() == "SELECT $1,$2"


def test_the_rest_of_a_command_is_one_text_as_it_was_written() -> None:
    assert [token.text.strip() for token in tokenize("EXPLAIN SELECT $1,$2")] == ["EXPLAIN", "SELECT $1,$2"]


def test_a_name_of_other_drivers_opens_no_text() -> None:
    with pytest.raises(InvalidSyntax, match=r"written \?"):
        parse_query("SELECT a IN ($a,$b) OR c IN ($a,$b)")


def test_the_position_of_what_follows_is_kept() -> None:
    with pytest.raises(InvalidSyntax) as caught:
        parse_query("SELECT $1,$2 FROM t WHERE a = = b", [1, 2])
    assert caught.value.position == 31


def test_a_struct_without_a_key_is_refused() -> None:
    with pytest.raises(InvalidSyntax):
        parse_query("SELECT {:1}")


@pytest.mark.parametrize(
    ("sql", "position", "words"),
    [
        ("SELECT $1, $3", 12, "no \\$2"),
        ("SELECT $2", 8, "no \\$1"),
        ("SELECT $0", 8, "counted from"),
        ("SELECT ?, $1", 11, "not both"),
        ("SELECT $1, ?", 12, "not both"),
    ],
)
def test_wrong_numbers_are_pointed_at(sql: str, position: int, words: str) -> None:
    with pytest.raises(InvalidSyntax, match=words) as caught:
        parse_query(sql, [1, 2])
    assert caught.value.position == position


@pytest.mark.parametrize("given", [0, 1, 3])
def test_values_are_as_many_as_numbers(given: int) -> None:
    with pytest.raises(ProgrammingError, match="2 placeholders") as caught:
        parse_query("SELECT $1, $2, $1", [1] * given)
    assert caught.value.sqlstate == "08P01"


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        ("SELECT 1 WHERE 2 = %s", "%s"),
        ("SELECT %s", "%s"),
        ("SELECT a % 2 FROM t WHERE b IN (%s, %s)", "%s"),
        ("SELECT 1 LIMIT %s", "%s"),
        ("SELECT 1 WHERE 2 = %(name)s", "%(name)s"),
        ("SELECT a::int FROM t WHERE b = :name", ":name"),
        ("SELECT 1 WHERE 2 = :1", ":1"),
        ("SELECT 1 WHERE 2 = $name", "$name"),
        ("SELECT 1 WHERE 2 = @name", "@name"),
    ],
)
@pytest.mark.parametrize("given", [[], ["a"]])
def test_placeholders_of_other_drivers(sql: str, written: str, given: list[str]) -> None:
    """With values and without, they are refused with a hint that shows ?, and never read as something else."""
    with pytest.raises(InvalidSyntax, match=r"written \?") as caught:
        parse_query(sql, given)
    assert caught.value.position is not None and sql[caught.value.position - 1 :].startswith(written)
    assert "= ?" in str(caught.value.hint)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a %s FROM t",
        "SELECT a % s FROM t",
        "SELECT (a) %s FROM t",
        "SELECT 'x' LIKE '%s'",
        "SELECT a::int, CAST(a AS int) FROM t",
        "SELECT [1, 2, 3][1:2], a[:2] FROM t",
    ],
)
def test_what_only_looks_like_one(sql: str) -> None:
    assert parse_query(sql)


def test_a_wrong_number_of_values_beside_a_remainder_is_reported_as_such() -> None:
    with pytest.raises(ProgrammingError, match="0 placeholders"):
        parse_query("SELECT a %s FROM t", [1])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.time(1, 2, 3), "01:02:03"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (dt.datetime(2024, 1, 2, tzinfo=dt.UTC), "2024-01-02 00:00:00+00:00"),
        (np.datetime64("2024-01-02T03:04:05", "us"), "2024-01-02 03:04:05"),
        (np.str_("a"), "a"),
    ],
)
def test_values_as_texts(value: object, text: str) -> None:
    assert to_literal(value)[1] == text  # type: ignore[arg-type]


def test_timestamps_of_numpy_and_pandas_never_become_numbers() -> None:
    """The `item` of nanoseconds is an integer, and NaT a datetime of the year 1."""
    for value in (np.datetime64("2024-01-02", "ns"), np.timedelta64(3, "ns")):
        with pytest.raises(ProgrammingError, match="cannot be bound"):
            to_literal(value)  # type: ignore[arg-type]
    pandas = package("pandas")
    assert to_literal(pandas.NaT)[1] == to_literal(np.datetime64("NaT"))[1] == "NULL"  # type: ignore[arg-type]


def test_commands_take_values() -> None:
    assert read_command("SET epsilon = ?", [0.5]) == SetCommand("epsilon", "0.5")
    assert read_command("SET epsilon TO $1", ["1; RESET ALL"]) == SetCommand("epsilon", "1; RESET ALL")
    for sql, values in (("SET epsilon = 1", [1]), ("SET epsilon = ?", []), ("SHOW epsilon", [1])):
        with pytest.raises(ProgrammingError, match="placeholder"):
            read_command(sql, values)


PIECES = ["$", "$1", "$2", "$10", "?", "%s", "%(a)s", "%(", ":a", ":1", "::int", "@a", "a", "1", "'?'", "[", "]", ",",
          "(", ")", " ", "%", "{", "}", "=", "$$ $1 $$", "-- ?"]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12), st.lists(st.sampled_from(["x'", 3, None]), max_size=3))
def test_any_text_is_read_or_refused(pieces: list[str], values: list[Parameter]) -> None:
    """What is read holds no placeholder."""
    sql = "SELECT " + "".join(pieces)
    try:
        tree = parse_query(sql, values)
    except Error:
        return
    assert tree.find(exp.Placeholder, exp.Parameter) is None


@pytest.mark.parametrize(
    ("value", "way"),
    [
        ([1, 2], "IN (?, ?)"), ((1, 2), "IN (?, ?)"), ({1, 2}, "IN (?, ?)"), (np.array([1, 2]), "IN (?, ?)"),
        (float("nan"), "None"), (Decimal("nan"), "None"),
        (object(), "datetime"),
    ],
)  # fmt: skip
def test_a_value_that_is_none_is_refused_with_a_way_out(value: object, way: str) -> None:
    with pytest.raises(ProgrammingError) as caught:
        to_literal(value)  # type: ignore[arg-type]
    assert way in str(caught.value.hint)


def test_two_kinds_of_placeholders_are_refused_with_both_ways() -> None:
    with pytest.raises(ProgrammingError) as caught:
        parse_query("SELECT ?, $1", [1, 2])
    assert "$1, $2" in str(caught.value.hint)


@pytest.mark.parametrize("written", ["x ? 'a'", "'{}'::jsonb ? 'a'", "(x) ? 'a'", "x ?| ARRAY['a']"])
def test_an_operator_of_jsonb_is_no_missing_value(written: str) -> None:
    with pytest.raises(Unsupported, match="not an operator of jsonb") as caught:
        parse_query(f"SELECT {written} FROM t")
    assert caught.value.hint == "Write x -> 'a' IS NOT NULL."


def test_a_missing_value_is_reported_in_no_drivers_words() -> None:
    """The same words go over the wire."""
    with pytest.raises(ProgrammingError) as caught:
        parse_query("SELECT ? + 1, x = ? FROM t")
    assert caught.value.hint == "A placeholder is written ? or $1, and each takes one value: IN (?, ?)."
