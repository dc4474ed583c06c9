"""The one SQL that analysts write: sqlglot's PostgreSQL plus DuckDB's spellings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import TokenType

from dpsql.base.cancellation import checkpoint
from dpsql.base.interval_text import (
    ALL_FIELDS,
    FIELD_RANGES,
    UNIT_OF_WORD,
    IntervalFields,
    IntervalTextError,
    read_interval_text,
)
from dpsql.base.intervals import IntervalParts
from dpsql.compiler.parse.function_names import FORMAT_NOTE, PARSED_FUNCTIONS, unwrap_cast_literal
from dpsql.errors import DataError, Span, Unsupported
from dpsql.types import Type, parse_type

# Law 3 for calls: every argument that was written is in the tree. sqlglot's builders leave out what they do not know.
#
#     mod(n, 2, 3)  would be  n % 2

TOO_MANY_ARGUMENTS = "The number of provided arguments"
"""How sqlglot's own message begins, where it counts them."""

WRONG_ARGUMENT_COUNT = "Wrong number of arguments"


def has_dropped_arguments(call: exp.Expr, args: Sequence[object]) -> bool:
    """Whether a call holds less than its arguments: each itself, or what the builder made of it alone."""
    present = {id(node) for node in call.walk()}
    missing = [arg for arg in args if isinstance(arg, exp.Expr) and id(arg) not in present]
    if not missing:
        return False
    own = {id(arg) for arg in args}
    built = [value for value in _values_of_call(call) if not any(id(node) in own for node in value.walk())]
    for arg in missing:
        index = next((index for index, value in enumerate(built) if _is_built_from(call, value, arg)), None)
        if index is None:
            return True
        del built[index]
    return False


def _values_of_call(call: exp.Expr) -> list[exp.Expr]:
    flat = [item for value in call.args.values() for item in (value if isinstance(value, list) else [value])]
    return [item for item in flat if isinstance(item, exp.Expr)]


def _is_built_from(call: exp.Expr, value: exp.Expr, arg: exp.Expr) -> bool:
    """Units become words, paths and intervals are read from texts, a format is translated, a cast has a copy."""
    if isinstance(call, exp.Cast):
        return value == arg
    if FORMAT_NOTE in call.meta:
        arg = unwrap_cast_literal(arg, exp.DType.VARCHAR, exp.DType.TEXT)
    text = isinstance(arg, exp.Literal)
    match value:
        case exp.Var():
            return str(value.name).upper() == arg.name.upper()
        case exp.JSONPath() | exp.Interval():
            return text
        case exp.Literal():
            return text and call.meta.get(FORMAT_NOTE) == arg.name
    return False


_INTERNAL_PREFIXES = ("J_S_O_N_", "PREDICT", "TS_OR_DS_", "X_M_L_")
"""Names that sqlglot has for nodes of its own: nobody's functions, and some cannot be written again."""

_T = TypeVar("_T")
_E = TypeVar("_E", bound=exp.Expr)

WRITTEN_NAME_KEY = "written"
"""The note in which a function keeps its name as it was written."""

IMPLIED_COLUMN_KEY = "implied"
"""The note of a column that nobody wrote: what to write where it is not there, if that is known."""


def _complete_call_parser(name: str, parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function with a syntax of its own: it holds all lists that it has read, and its parenthesis is closed."""

    def parse_whole(parser: Any) -> Any:
        list_count = len(parser.lists)
        call = parse(parser)
        items = [item for _, some in parser.lists[list_count:] for item in some]
        if isinstance(call, exp.Expr) and has_dropped_arguments(call, items):
            parser.raise_error(TOO_MANY_ARGUMENTS)
        if name == "DATE_PART" and isinstance(call, exp.Expr):
            call.meta[WRITTEN_NAME_KEY] = "date_part"
        if not parser._match(TokenType.R_PAREN, advance=False):
            parser.raise_error("Expecting )")
        return parser.validate_expression(call) if isinstance(call, exp.Func) else call

    return parse_whole


# Interval literals. sqlglot keeps the first amount and unit of a text, and drops what else it says: so all of a text is
# read here, and what cannot be read is refused.
#
#     INTERVAL '1 day 02:00'      INTERVAL '1-2' YEAR TO MONTH      INTERVAL(3) '1.2345'      INTERVAL '3' DAYS

_ONE_AMOUNT = re.compile(r"\s*([+-]?\d+)\s*([a-zA-Z]+)\s*", re.ASCII)
_BARE_AMOUNT = re.compile(r"\s*[+-]?\d+(?:\.\d+)?\s*", re.ASCII)


PARAMETER_MARK = "\x01$"
"""How a text begins that stands for a parameter, as long as its value is not known."""


def read_checked_interval(text: str, span: Span | None, fields: IntervalFields = ALL_FIELDS) -> IntervalParts:
    """PostgreSQL's error where it is none."""
    try:
        return read_interval_text(text, fields)
    except IntervalTextError as error:
        raise DataError(str(error), span=span, sqlstate=error.sqlstate) from None


def build_interval(text: str, fields: IntervalFields, literal: exp.Expr) -> exp.Interval:
    """One amount and unit where that is all; with fields, what is left of the text by them."""
    if text.startswith(PARAMETER_MARK):
        return exp.Interval(this=literal)
    parts = read_checked_interval(text, span_of(literal), fields)
    simple = _ONE_AMOUNT.fullmatch(text) if fields == ALL_FIELDS else None
    if simple is not None:
        amount, unit = simple[1], simple[2].upper()
    elif fields.first is not None and fields.first == fields.last and re.fullmatch(r"-?\d+", text, re.ASCII):
        amount, unit = text, fields.first.upper()
    else:
        amount, unit = text if fields == ALL_FIELDS else "{} months {} days {} microseconds".format(*parts), ""
    written = exp.Literal.string(amount)
    written.meta.update(literal.meta)
    return exp.Interval(this=written, unit=exp.var(unit) if unit else None)


class IntervalParser(PostgresParser):
    """Interval literals, with all that their text says."""

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> Any:
        index = self._index
        if not self._match(TokenType.INTERVAL):
            return None if require_interval else super()._parse_interval(False, parse_function_unit)
        precision = self._parse_digits()
        if self._match(TokenType.STRING, advance=False):
            return self._parse_interval_text(precision)
        if precision is not None:
            self._retreat(index + 1)
        amount = self._parse_term()
        bare = isinstance(amount, exp.Column) and not amount.table and not amount.this.quoted
        if not amount or (bare and not (self._curr and self._curr.text.lower() in UNIT_OF_WORD)):
            self._retreat(index)
            return None
        return self._parse_interval_span(amount, parse_function_unit=parse_function_unit)

    def _parse_interval_text(self, precision: int | None) -> exp.Interval:
        literal: Any = self._parse_primary()
        parts = literal.expressions if isinstance(literal, exp.Concat) else [literal]
        text = "".join(str(part.name) for part in parts)
        if precision is not None:
            return build_interval(text, IntervalFields(precision=precision), literal)
        word = self._curr.text.lower() if self._curr else ""
        if _BARE_AMOUNT.fullmatch(text) and word in UNIT_OF_WORD and (word, word) not in FIELD_RANGES:
            self._advance()
            return build_interval(f"{text.strip()} {word}", ALL_FIELDS, literal)
        return build_interval(text, self._parse_interval_fields(), literal)

    def _parse_interval_fields(self) -> IntervalFields:
        first = self._curr.text.lower() if self._curr else ""
        if (first, first) not in FIELD_RANGES or self._curr.token_type is TokenType.IDENTIFIER:
            return ALL_FIELDS
        self._advance()
        last = first
        if self._match_text_seq("TO"):
            last = self._curr.text.lower() if self._curr else ""
            if (first, last) not in FIELD_RANGES:
                self.raise_error("Expecting a field of an interval")
            self._advance()
        return IntervalFields(first, last, self._parse_digits() if last == "second" else None)

    def _parse_digits(self) -> int | None:
        """A number in parentheses."""
        index = self._index
        if self._match(TokenType.L_PAREN) and self._match(TokenType.NUMBER):
            digits = self._prev.text
            if self._match(TokenType.R_PAREN) and digits.isdigit():
                return int(digits)
        self._retreat(index)
        return None


class TypedLiteralParser(IntervalParser):
    """`DATE '2024-02-29'::timestamp` casts a date: the type in front is the text's own, whatever follows."""

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        checkpoint()
        first = self._curr.token_type if self._curr else None
        parsed = super()._parse_type(parse_interval, fallback_to_identifier)
        if type(parsed) is not exp.Cast or first not in self.TYPE_TOKENS or type(parsed.this) is not exp.Cast:
            return parsed
        outer = inner = parsed.this
        while type(inner.this) is exp.Cast:
            inner = inner.this
        if not isinstance(inner.this, exp.Literal):
            return parsed
        inner.set("this", exp.Cast(this=inner.this, to=parsed.args["to"]))
        return outer


DOLLAR_SIGN = "\x02"
"""What `tokenize` writes for a $ that opens no quoted text: sqlglot takes `$1,$` for the opening of one."""


class AnalystDialect(Postgres):
    ORIGINAL_NAME_META_KEY = WRITTEN_NAME_KEY

    class Tokenizer(Postgres.Tokenizer):
        # Without PostgreSQL's operators on JSON that begin with a question mark: in ?::date it is a placeholder.
        KEYWORDS = {word: kind for word, kind in Postgres.Tokenizer.KEYWORDS.items() if word[0] != "?" or word == "?"}
        KEYWORDS["//"] = TokenType.DIV
        SINGLE_TOKENS = Postgres.Tokenizer.SINGLE_TOKENS | {DOLLAR_SIGN: TokenType.PARAMETER}

    class Parser(TypedLiteralParser):
        """Nothing that is written in a call is left out: see `has_dropped_arguments`."""

        FUNCTIONS = {
            n: f for n, f in PostgresParser.FUNCTIONS.items() if not n.startswith(_INTERNAL_PREFIXES)
        } | PARSED_FUNCTIONS
        FUNCTION_PARSERS = {
            name: _complete_call_parser(name, parse) for name, parse in PostgresParser.FUNCTION_PARSERS.items()
        }

        def reset(self) -> None:
            super().reset()
            self.lists: list[tuple[int, list[Any]]] = []  # where a list began that a call has read, and its items

        def validate_expression(self, expression: _E, args: list[Any] | None = None) -> _E:
            if args and has_dropped_arguments(expression, args):
                self.raise_error(TOO_MANY_ARGUMENTS)
            if isinstance(expression.args.get("expressions"), exp.Expr):  # nodes for another dialect's own syntax
                self.raise_error(WRONG_ARGUMENT_COUNT)
            return super().validate_expression(expression, args)

        def _parse_function_call(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            list_count = len(self.lists)
            try:
                call = super()._parse_function_call(*args, **kwargs)
            except IndexError:  # a builder that takes what is not there
                self.raise_error(WRONG_ARGUMENT_COUNT)
                raise
            del self.lists[list_count:]
            return call

        def _parse_csv(self, parse_method: Callable[[], _T | None], sep: TokenType = TokenType.COMMA) -> list[_T]:
            list_count, start = len(self.lists), self._index
            items = super()._parse_csv(parse_method, sep)
            self.lists[list_count:] = [(start, items)]  # lists inside of its items are theirs
            return items

        def _kv_to_prop_eq(self, expressions: list[exp.Expr], parse_map: bool = False) -> list[exp.Expr]:
            if any(isinstance(pair, exp.Slice) and pair.this is None for pair in expressions):
                self.raise_error("Expecting a key")  # {:1}
            return super()._kv_to_prop_eq(expressions, parse_map)

        def _retreat(self, index: int) -> None:
            super()._retreat(index)
            while self.lists and self.lists[-1][0] >= index:
                self.lists.pop()


def span_of(node: exp.Expr) -> Span | None:
    """From the first to the last character that sqlglot remembers of a node and all below it."""
    spans = [Span(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
    if not spans:
        return None
    result = spans[0]
    for span in spans[1:]:
        result = result.union(span)
    return result


def type_of_cast(to: exp.DataType) -> Type | None:
    """None where dpsql has no such type; how many digits of a second a time keeps makes no other type."""
    timed = to.is_type(exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIME, exp.DType.INTERVAL)
    plain = exp.DataType(this=to.this) if timed and isinstance(to.this, exp.DType) else to
    return parse_type(plain.sql(dialect="postgres"))


def find_calls(tree: exp.Expr, *names: str) -> list[exp.Anonymous]:
    """Calls of functions that sqlglot has no class for, by names in lower case."""
    return [call for call in tree.find_all(exp.Anonymous) if call.name.lower() in names]


# What a node may carry without meaning anything here: notes of the parser for its own generators.
IGNORED_ARGS = frozenset(
    {"typed", "safe", "big_int", "coalesce", "ignore_nulls", "_type", "nested", "value_constructor"}
)


CLAUSE_NAMES = {
    ("", "pivots"): "PIVOT",
    ("", "hints"): "a table hint",
    ("", "hint"): "a hint",
    ("", "locks"): "FOR UPDATE",
    ("", "laterals"): "LATERAL",
    ("", "sample"): "TABLESAMPLE",
    ("", "into"): "INTO",
    ("", "match_condition"): "MATCH_CONDITION",
    ("", "grouping_sets"): "GROUPING SETS",
    ("", "limit_options"): "WITH TIES",
    ("", "query"): "a sub-select",
    ("", "unnest"): "UNNEST",
    ("", "having_max"): "HAVING MAX",
    ("tablealias", "columns"): "a list of column names",
    ("join", "method"): "NATURAL, ASOF or another method",
    ("count", "expressions"): "a second argument",
    ("in", "field"): "a column as list",
    ("distinct", "on"): "DISTINCT ON",
    ("trim", "position"): "BOTH, LEADING or TRAILING",
    ("trim", "expression"): "TRIM of other characters",
    ("select", "kind"): "AS STRUCT or VALUE",
    ("group", "all"): "GROUP BY ALL",
    ("with", "recursive"): "RECURSIVE",
}
NODE_NAMES = {
    "tablealias": "an alias", "anonymous": "a function", "similarto": "SIMILAR TO", "nullsafeneq": "IS DISTINCT FROM",
    "nullsafeeq": "IS NOT DISTINCT FROM", "havingmax": "HAVING MAX", "groupingsets": "GROUPING SETS",
    "regexplike": "~", "regexpilike": "~*", "tuple": "a list of values", "ordered": "ORDER BY", "order": "ORDER BY",
    "withingroup": "WITHIN GROUP", "subquery": "a sub-select", "cte": "a CTE", "collate": "COLLATE", "escape": "ESCAPE",
    "bytestring": "E''", "interval": "INTERVAL", "atttimezone": "AT TIME ZONE", "attimezone": "AT TIME ZONE",
    "rand": "RANDOM()", "currentversion": "VERSION()", "timestamptrunc": "DATE_TRUNC()", "strtodate": "a format",
    "rollup": "ROLLUP", "cube": "CUBE", "limit": "LIMIT", "array": "an array", "bracket": "[ ]",
    "groupconcat": "STRING_AGG()", "jsonarrayagg": "JSON_AGG()", "bitwiseleftshift": "<<", "bitwiserightshift": ">>",
    "parameter": "a parameter $n", "placeholder": "a placeholder",
}  # fmt: skip


def refuse_other_args(node: exp.Expr, *consumed: str) -> None:
    """Refuse a node that carries more than the caller reads (law 3: nothing is dropped silently)."""
    for name, value in node.args.items():
        if name in consumed or name in IGNORED_ARGS or value is None or value is False or value == []:
            continue
        inner = value[0] if isinstance(value, list) else value
        span = span_of(inner) if isinstance(inner, exp.Expr) else span_of(node)
        word = (
            CLAUSE_NAMES.get((node.key, name))
            or CLAUSE_NAMES.get(("", name))
            or name.rstrip("_").replace("_", " ").upper()
        )
        raise Unsupported(
            f"{word} is not supported over private rows",
            hint="Leave it out, or move it to an outer SELECT over the aggregated rows.",
            span=span,
        )


def sql_name_of(node: exp.Expr) -> str:
    """What an analyst would call this node."""
    if isinstance(node, exp.Anonymous):
        return f"{str(node.this).upper()}()"
    if node.meta.get(WRITTEN_NAME_KEY):
        return f"{str(node.meta[WRITTEN_NAME_KEY]).upper()}()"
    if node.key in NODE_NAMES:
        return NODE_NAMES[node.key]
    if isinstance(node, exp.Func):
        return f"{node.sql_name()}()"
    return node.key.replace("_", " ").upper()
