"""The types of parameters before their values are known, inferred from the expressions around them.

A client that prepares a statement asks for the types of $1, $2, … first. The tree is read with a mark in the place of
each; its neighbors tell: the column that it is compared with, a cast, LIMIT. Where nothing tells, it is text.

Each comes with a sample value, with which the statement is compiled for the names and types of its columns. A sample is
never asked: what runs is compiled again with the values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from uuid import UUID

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from dpsql.compiler.catalog.query import parse_catalog_tree
from dpsql.compiler.parse.dialect import PARAMETER_MARK, type_of_cast
from dpsql.compiler.parse.parameters import Parameter, ParameterLiteral, count_placeholders
from dpsql.compiler.parse.parser import Tokenizer, normalize_tokens, parse_query_with_options, tokenize
from dpsql.compiler.split.predict import model_argument_kind
from dpsql.errors import Error
from dpsql.schema.model import EPOCH, Column, Schema
from dpsql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    Type,
    parse_type,
    sum_type,
)

# Samples of values that are not known yet: of a type, and of what a function takes at one of its places.


@dataclass(frozen=True)
class Placeholder:
    """`array`: its values are many of that type, written as PostgreSQL writes an array: {1,2}.

    `cast`: the statement itself casts the parameter to the type, so its values are of no other.
    """

    type: Type
    sample: Parameter
    array: bool = False
    cast: bool = False


_SAMPLES: dict[Kind, Parameter] = {
    Kind.BOOLEAN: True, Kind.SMALLINT: 1, Kind.INTEGER: 1, Kind.BIGINT: 1, Kind.HUGEINT: 1,
    Kind.DECIMAL: Decimal("0.5"), Kind.REAL: 0.5, Kind.DOUBLE: 0.5, Kind.TEXT: "a", Kind.DATE: dt.date(2020, 1, 1),
    Kind.TIMESTAMP: dt.datetime(2020, 1, 1), Kind.TIMESTAMPTZ: dt.datetime(2020, 1, 1), Kind.TIME: dt.time(12),
    Kind.INTERVAL: dt.timedelta(days=1), Kind.UUID: UUID(int=0),
}  # fmt: skip


def sample_of(type_: Type) -> Parameter:
    return _SAMPLES[type_.kind]


UNIT_SAMPLE = Placeholder(TEXT, "day")
FORMAT_SAMPLE = Placeholder(TEXT, "YYYY")
_HALF = Placeholder(DOUBLE, 0.5)
_ONE = Placeholder(INTEGER, 1)
_INTERVAL = Placeholder(INTERVAL, dt.timedelta(days=1))
_SEPARATOR = Placeholder(TEXT, ",")

NODE_ARGUMENTS: dict[tuple[type[exp.Expr], str], Placeholder] = {
    (exp.Extract, "this"): UNIT_SAMPLE,
    (exp.TimestampTrunc, "unit"): UNIT_SAMPLE,
    (exp.DateTrunc, "unit"): UNIT_SAMPLE,
    (exp.StrToTime, "format"): FORMAT_SAMPLE,
    (exp.StrToDate, "format"): FORMAT_SAMPLE,
    (exp.AtTimeZone, "zone"): Placeholder(TEXT, "UTC"),
    (exp.WidthBucket, "min_value"): Placeholder(DOUBLE, 0.0),
    (exp.WidthBucket, "max_value"): Placeholder(DOUBLE, 1.0),
    (exp.WidthBucket, "num_buckets"): Placeholder(INTEGER, 4),
    (exp.ApproxTopK, "expression"): Placeholder(INTEGER, 3),
    (exp.Ntile, "this"): Placeholder(INTEGER, 4),
    (exp.PercentileCont, "this"): _HALF,
    (exp.PercentileDisc, "this"): _HALF,
    (exp.Quantile, "quantile"): _HALF,
    (exp.PercentileCont, "expression"): _HALF,
    (exp.PercentileDisc, "expression"): _HALF,
    (exp.ApproxQuantile, "quantile"): _HALF,
    (exp.Lag, "offset"): _ONE,
    (exp.Lead, "offset"): _ONE,
    (exp.NthValue, "offset"): _ONE,
    (exp.Left, "expression"): _ONE,
    (exp.Right, "expression"): _ONE,
    (exp.Round, "decimals"): _ONE,
    (exp.Substring, "start"): _ONE,
    (exp.Substring, "length"): _ONE,
    (exp.Repeat, "times"): _ONE,
    (exp.SplitPart, "part_index"): _ONE,
    (exp.SplitPart, "delimiter"): _SEPARATOR,
    (exp.GroupConcat, "separator"): _SEPARATOR,
    (exp.DateBin, "this"): _INTERVAL,
}
"""By a node and the name that it has for the place."""

FUNCTION_ARGUMENTS: dict[tuple[str, int], Placeholder] = {
    ("timezone", 0): Placeholder(TEXT, "UTC"),
    ("quantile_cont", 1): _HALF,
    ("quantile_disc", 1): _HALF,
    ("quantile", 1): _HALF,
    ("time_bucket", 0): _INTERVAL,
    ("date_trunc", 0): UNIT_SAMPLE,
    ("date_part", 0): UNIT_SAMPLE,
    ("date_diff", 0): UNIT_SAMPLE,
    ("to_char", 1): FORMAT_SAMPLE,
    ("left", 1): _ONE,
    ("right", 1): _ONE,
    ("substr", 1): _ONE,
    ("substr", 2): _ONE,
    ("ntile", 0): _ONE,
}
"""By the name of a function without a node of its own, and the place from 0."""

_INTEGER = Placeholder(BIGINT, 1)
OPTION_SAMPLES: dict[str, Placeholder] = {
    "epsilon": _HALF, "delta": Placeholder(DOUBLE, 1e-9), "lambda": _HALF, "confidence": Placeholder(DOUBLE, 0.95),
    "max_error": Placeholder(DOUBLE, 1e6), "max_relative_error": _HALF, "proposal": _HALF,
    **dict.fromkeys(("n", "bins", "rows", "rounds", "max_rows_contributed", "max_groups_contributed"), _INTEGER),
    "noise": Placeholder(TEXT, "auto"), "mechanism": Placeholder(TEXT, "exponential"),
    "method": Placeholder(TEXT, "auto"),
}  # fmt: skip
"""By the name of an option in WITH (…) or OPTIONS (…)."""


def infer_placeholders(
    sql: str, schema: Schema, declared: Sequence[Type | None] = (), tokenizer: Tokenizer = tokenize
) -> tuple[Placeholder, ...]:
    """What stands for $1, $2, …; types that are `declared` are not inferred."""
    count = count_placeholders(normalize_tokens(tokenizer(sql)))
    if not count:
        return ()
    declared_types = [declared[index] if index < len(declared) else None for index in range(count)]
    inferred = _infer_from_context(sql, schema, count, tokenizer)
    return tuple(_choose_placeholder(type_, inferred.get(index)) for index, type_ in enumerate(declared_types))


def _choose_placeholder(declared: Type | None, inferred: Placeholder | None) -> Placeholder:
    """The type that is given decides what kind of value the sample is: what is divided by it has other types."""
    if declared is None:
        return inferred or Placeholder(TEXT, sample_of(TEXT))
    if inferred is not None and inferred.type.is_number and declared.is_number:
        return Placeholder(declared, _sample_as_number(declared, inferred.sample))
    if inferred is not None and inferred.type == declared:
        return Placeholder(declared, inferred.sample, inferred.array)
    return Placeholder(declared, sample_of(declared))


def _sample_as_number(declared: Type, sample: Parameter) -> Parameter:
    if not isinstance(sample, int | float | Decimal):
        return sample  # many of them, in one text
    if declared.is_integer:
        return int(sample)
    number = Decimal(f"{sample}.5") if type(sample) is int else Decimal(str(sample))
    return number if declared.kind is Kind.DECIMAL else float(number)


def _infer_from_context(sql: str, schema: Schema, count: int, tokenizer: Tokenizer) -> dict[int, Placeholder]:
    marks = [ParameterLiteral(TokenType.STRING, _mark_text(index)) for index in range(count)]
    tree: exp.Query | None
    indexes = {_mark_text(index): index for index in range(count)}
    inferred: dict[int, Placeholder] = {}
    try:
        read = parse_query_with_options(sql, marks, tokenizer)
        tree = read.query
        option_samples = {indexes.get(option.value): OPTION_SAMPLES.get(option.name) for option in read.options}
        inferred.update(
            (index, sample) for index, sample in option_samples.items() if index is not None and sample is not None
        )
    except Error:
        tree = parse_catalog_tree(sql, marks)
    if tree is None:
        return {}  # compiling it says what is wrong
    types = _TypeInference(tree, schema)
    for node in tree.find_all(exp.Literal, exp.Var):
        index = indexes.get(str(node.this))
        placeholder = types.infer_mark(node) if index is not None else None
        if index is not None and placeholder is not None:
            inferred.setdefault(index, placeholder)
    return inferred


def _mark_text(index: int) -> str:
    return f"{PARAMETER_MARK}{index + 1}\x01"


def is_mark(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal | exp.Var) and str(node.this).startswith(PARAMETER_MARK)


# --- samples ---------------------------------------------------------------------------------------------------------


def _column_placeholder(column: Column) -> Placeholder:
    """A value that the column may have, as declared: what is compared with it is then not known to be nothing."""
    domain, type_ = column.domain, column.type
    if domain.values:
        value = next(iter(domain.values))
        return Placeholder(type_, value if isinstance(value, str | bool | int) else sample_of(type_))
    if domain.lower is None:
        return Placeholder(type_, sample_of(type_))
    if type_ == DATE:
        return Placeholder(type_, EPOCH.date() + dt.timedelta(days=int(domain.lower)))
    if type_ in (TIMESTAMP, TIMESTAMPTZ):
        return Placeholder(type_, EPOCH.replace(tzinfo=None) + dt.timedelta(microseconds=int(domain.lower)))
    if type_.is_integer:
        return Placeholder(type_, int(domain.lower))
    return Placeholder(type_, float(domain.lower) if type_.is_number else sample_of(type_))


# --- types -----------------------------------------------------------------------------------------------------------

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_COUNTING = (exp.Count, exp.ApproxDistinct, exp.RowNumber, exp.Length)
_AVERAGING = (exp.Avg, exp.Stddev, exp.StddevSamp, exp.StddevPop, exp.Variance, exp.VariancePop, exp.Corr, exp.Median,
              exp.Sqrt, exp.Ln, exp.Exp, exp.Pow, exp.Extract)  # fmt: skip
_TYPE_PRESERVING = (
    exp.Min,
    exp.Max,
    exp.Abs,
    exp.Coalesce,
    exp.Nullif,
    exp.Paren,
    exp.Neg,
    exp.Round,
    exp.Floor,
    exp.Ceil,
    exp.Least,
    exp.Greatest,
    exp.Distinct,
    exp.Filter,
    exp.Window,
)
_TEXTUAL = (exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.Lower, exp.Upper, exp.Trim,
            exp.DPipe, exp.Concat, exp.Substring, exp.TimeToStr, exp.StrToTime)  # fmt: skip

_MODEL_ARGUMENT_TYPES: dict[str, Type] = {"a number": DOUBLE, "text": TEXT, "true or false": BOOLEAN}


class _TypeInference:
    """The types of expressions in a statement, as far as they can be seen without the schema."""

    def __init__(self, tree: exp.Query, schema: Schema) -> None:
        relations = {relation.name.lower(): relation for relation in schema.relations}
        self._models = schema.models
        self._columns: dict[tuple[str, str], Column] = {}
        for table in tree.find_all(exp.Table):
            relation = relations.get(table.name.lower())
            for column in relation.columns if relation is not None else ():
                for name in ("", table.alias_or_name.lower()):
                    self._columns.setdefault((name, column.name.lower()), column)
        self._outputs: dict[str, exp.Expr] = {}
        for alias in tree.find_all(exp.Alias):
            self._outputs.setdefault(alias.alias.lower(), alias.this)

    def infer_mark(self, mark: exp.Expr) -> Placeholder | None:
        """What the mark is, by its parent and its siblings."""
        node, parent = mark, mark.parent
        while isinstance(parent, exp.Paren | exp.Neg | exp.Tuple | exp.Array | exp.Values):
            node, parent = parent, parent.parent
        of_argument = self._infer_argument(parent, node)
        if of_argument is not None:
            return of_argument
        match parent:
            case exp.Cast() if (element := _array_element_type(parent.to)) is not None:
                return _array_placeholder(_type_placeholder(element))
            case exp.Cast():
                cast = _type_placeholder(_cast_type(parent))
                if cast is None:
                    return _object_id_placeholder(parent.to)
                of_cast = self._infer_argument(parent.parent, parent)  # a cast unit is a unit: date_trunc($1::text, at)
                return replace(cast if of_cast is None else _choose_placeholder(cast.type, of_cast), cast=True)
            case exp.Expression() if _is_quantified_array(parent, node) and parent.parent is not None:
                return _array_placeholder(
                    self._infer_first(_siblings_of(parent.parent, parent)) or _type_placeholder(TEXT)
                )
            case exp.Limit() | exp.Offset() | exp.Fetch():
                return _type_placeholder(BIGINT)
            case exp.And() | exp.Or() | exp.Not() | exp.Where():
                return _type_placeholder(BOOLEAN)
            case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod() | exp.IntDiv():
                return self._infer_operand(parent, node)
            case exp.If() if isinstance(parent.parent, exp.Case) and parent.this is node:
                return self._infer_first([parent.parent.this] if parent.parent.this else []) or _type_placeholder(
                    BOOLEAN
                )
            case exp.If() if isinstance(parent.parent, exp.Case):
                return self._infer_first(_case_branches(parent.parent))
            case exp.Case():
                return self._infer_first(_case_branches(parent))
        if isinstance(parent, _TEXTUAL):
            return _type_placeholder(TEXT)
        if isinstance(parent, (*_COMPARISONS, *_TYPE_PRESERVING, exp.Between, exp.In, exp.Any)):
            above = parent.parent if isinstance(parent, exp.Any) and parent.parent is not None else parent
            return self._infer_first(_siblings_of(above, node))
        return None

    def _infer_argument(self, parent: exp.Expr | None, mark: exp.Expr) -> Placeholder | None:
        """The type from a function that declares what it takes there."""
        if isinstance(mark, exp.Var):
            return UNIT_SAMPLE
        if isinstance(parent, exp.Anonymous):
            kind = model_argument_kind(parent, mark.index or 0, self._models)
            if kind is not None:
                return _type_placeholder(_MODEL_ARGUMENT_TYPES[kind])
            return FUNCTION_ARGUMENTS.get((parent.name.lower(), mark.index or 0))
        if isinstance(parent, exp.TimeToStr) and mark.arg_key == "format":
            shown = self._infer_node(parent.this)
            return Placeholder(TEXT, "999") if shown is not None and shown.type.is_number else FORMAT_SAMPLE
        return None if parent is None else NODE_ARGUMENTS.get((type(parent), mark.arg_key or ""))

    def _infer_operand(self, parent: exp.Expr, mark: exp.Expr) -> Placeholder | None:
        other = self._infer_first(_siblings_of(parent, mark))
        if other is None:
            return None
        if other.type == DATE:
            return _type_placeholder(INTEGER if isinstance(parent, exp.Add | exp.Sub) else DOUBLE)
        if other.type in (TIMESTAMP, TIMESTAMPTZ, TIME):
            return _type_placeholder(INTERVAL)
        return other

    def _infer_first(self, nodes: Sequence[exp.Expr]) -> Placeholder | None:
        return next((placeholder for node in nodes if (placeholder := self._infer_node(node)) is not None), None)

    def _infer_node(self, node: exp.Expr | None, depth: int = 0) -> Placeholder | None:
        if node is None or is_mark(node) or depth > 20:
            return None
        match node:
            case exp.Column():
                column = self._columns.get((node.table.lower(), node.name.lower()))
                if column is not None:
                    return _column_placeholder(column)
                return self._infer_node(self._outputs.get(node.name.lower()), depth + 1)
            case exp.Cast():
                return _type_placeholder(_cast_type(node))
            case exp.Literal() if node.is_string:
                return None
            case exp.Literal():
                return _type_placeholder(BIGINT if node.this.isdigit() else DOUBLE)
            case exp.Boolean():
                return _type_placeholder(BOOLEAN)
            case exp.Sum():
                inner = self._infer_node(node.this, depth + 1)
                return _type_placeholder(sum_type(inner.type)) if inner is not None else None
            case exp.DateTrunc() | exp.TimestampTrunc() | exp.CurrentTimestamp() | exp.Localtimestamp():
                return _type_placeholder(TIMESTAMP)
            case exp.CurrentDate():
                return _type_placeholder(DATE)
        if isinstance(node, _COUNTING):
            return _type_placeholder(BIGINT)
        if isinstance(node, _AVERAGING):
            return _type_placeholder(DOUBLE)
        if isinstance(node, _TEXTUAL):
            return _type_placeholder(TEXT)
        if isinstance(node, (*_TYPE_PRESERVING, exp.Binary, exp.Case, exp.If, exp.Alias, exp.Subquery)):
            return next(
                (
                    placeholder
                    for operand in _iter_operands(node)
                    if (placeholder := self._infer_node(operand, depth + 1)) is not None
                ),
                None,
            )
        return None


def _type_placeholder(type_: Type | None) -> Placeholder | None:
    return None if type_ is None else Placeholder(type_, sample_of(type_))


def _is_quantified_array(parent: exp.Expr, node: exp.Expr) -> bool:
    """= ANY (…) and <> ALL (…) of one array, not of a list of values; sqlglot reads ALL as a function."""
    named = isinstance(parent, exp.Anonymous) and parent.name.lower() == "all"
    return (named or isinstance(parent, exp.Any | exp.All)) and not isinstance(node, exp.Array | exp.Tuple)


def _array_placeholder(element: Placeholder | None) -> Placeholder | None:
    return None if element is None else Placeholder(element.type, f'{{"{element.sample!s}"}}', array=True)


def _array_element_type(to: exp.DataType) -> Type | None:
    """Of a cast such as $1::text[]; None where it is to no array. Object identifiers, which only the catalog has, are
    numbers; and it reads oid[] as _oid."""
    spelled = to.sql(dialect="postgres").lower()
    if not spelled.endswith("[]") and not spelled.startswith("_"):
        return None
    named = spelled.removesuffix("[]").removeprefix("_")
    return BIGINT if named in ("oid", "regclass", "regtype") else parse_type(named) or TEXT


def _object_id_placeholder(to: exp.DataType) -> Placeholder | None:
    """The sample for a cast such as $1::regclass: a number, since a name would have to exist."""
    named = to.sql(dialect="postgres").lower().rpartition(".")[2]
    return Placeholder(TEXT, "0") if named.startswith("reg") else None


def _cast_type(node: exp.Cast) -> Type | None:
    return type_of_cast(node.to)


def _siblings_of(parent: exp.Expr, mark: exp.Expr) -> list[exp.Expr]:
    return [node for node in parent.iter_expressions() if node is not mark and not is_mark(node)]


def _case_branches(case: exp.Expr) -> list[exp.Expr]:
    branches = [branch.args["true"] for branch in case.args.get("ifs", ())]
    return [*branches, *([case.args["default"]] if case.args.get("default") else [])]


def _iter_operands(node: exp.Expr) -> Iterator[exp.Expr]:
    if isinstance(node, exp.Case):
        yield from _case_branches(node)
    elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
        yield from node.this.expressions[:1]
    else:
        yield from node.iter_expressions()
