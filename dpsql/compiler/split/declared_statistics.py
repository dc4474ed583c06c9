"""Statistics that the owner declares: within BLOCKWISE, a call of one is the expression that it stands for.

    spread: {of: [x], sql: "quantile_disc(x, 0.9) - quantile_disc(x, 0.1)"}
    BLOCKWISE(spread(cost), 0, 5000)  →  BLOCKWISE((quantile_disc(cost, 0.9) - quantile_disc(cost, 0.1)), 0, 5000)

Privacy: what is written out is bound as if the analyst had written it, so a declaration can loosen nothing.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from sqlglot import exp

from dpsql.compiler.bind.aggregates import is_aggregate
from dpsql.compiler.bind.blockwise import BLOCKWISE_NAME, SUPPORTED_STATISTICS, bind_blockwise, is_blockwise
from dpsql.compiler.bind.scope import BoundColumn, Scope, SourceScope
from dpsql.compiler.functions.table import FUNCTIONS
from dpsql.compiler.parse.dialect import find_calls, span_of
from dpsql.compiler.parse.parser import parse_query
from dpsql.compiler.plan.expressions import Column
from dpsql.errors import Error, SchemaError, TypeMismatch, UnknownFunction
from dpsql.schema.model import Schema, StatisticDeclared
from dpsql.types import DOUBLE


def expand_statistics(tree: exp.Query, schema: Schema) -> exp.Query:
    """The statement with the owner's statistics written out."""
    for call in [node for node in find_calls(tree, BLOCKWISE_NAME) if is_blockwise(node) and node.expressions]:
        for node in list(call.expressions[0].find_all(exp.Anonymous)):
            declared = _find_statistic(node, schema)
            if declared is not None:
                node.replace(_expand_call(node, declared))
            elif _is_unknown_statistic(node):
                raise _unknown_statistic_error(node, schema)
    return tree


def _is_unknown_statistic(node: exp.Anonymous) -> bool:
    """Whether it stands where a statistic is meant: over a column, with no aggregate around or within."""
    if is_aggregate(node) or node.name.lower() in (*FUNCTIONS, "clip"):
        return False
    ancestor = node.parent
    while ancestor is not None and not is_blockwise(ancestor):
        if is_aggregate(ancestor):
            return False
        ancestor = ancestor.parent
    return node.find(exp.Column) is not None and not any(is_aggregate(call) for call in node.find_all(exp.Func))


def _unknown_statistic_error(node: exp.Anonymous, schema: Schema) -> UnknownFunction:
    own = [declared.name for declared in schema.statistics]
    names = {name.lower(): name for name in (*_AGGREGATE_NAMES, *own)}
    close = get_close_matches(node.name.lower(), names, n=1)
    listed = f" The owner's statistics: {', '.join(own)}." if own else ""
    hint = f"Perhaps you meant {names[close[0]]}." if close else f"Aggregates: {SUPPORTED_STATISTICS}.{listed}"
    return UnknownFunction(f"there is no aggregate or statistic {node.name.upper()}()", hint=hint, span=span_of(node))


def check_statistics(schema: Schema) -> None:
    """Each must be an expression over aggregates of its arguments, which are tried as doubles."""
    for declared in schema.statistics:
        try:
            if is_aggregate(exp.Anonymous(this=declared.name)):
                raise TypeMismatch(f"{declared.name} is the name of an aggregate", hint="Give it another name.")
            zero, one = exp.Literal.number(0), exp.Literal.number(1)
            call = exp.Anonymous(this="BLOCKWISE", expressions=[_parse_statistic(declared), zero, one])
            columns = tuple(BoundColumn(name, Column(name, DOUBLE)) for name in declared.of)
            bind_blockwise(call, Scope((SourceScope("", columns),)), is_aggregate)
        except Error as error:
            location = f"{schema.path.name}:{declared.line}: " if declared.line else ""
            at = "" if error.span is None else f" (at character {max(0, error.span.start - len(_SELECT_PREFIX)) + 1})"
            raise SchemaError(
                f"{location}statistics.{declared.name}.sql{at}: {error.message}", hint=error.hint
            ) from None


_SELECT_PREFIX = "SELECT "
_AGGREGATE_NAMES = re.findall(r"[A-Z]+(?:_[A-Z]+)*", SUPPORTED_STATISTICS.replace("DISTINCT", ""))


def _find_statistic(node: exp.Anonymous, schema: Schema) -> StatisticDeclared | None:
    name = str(node.this).lower()
    return next((declared for declared in schema.statistics if declared.name.lower() == name), None)


def _expand_call(call: exp.Anonymous, declared: StatisticDeclared) -> exp.Expr:
    if len(call.expressions) != len(declared.of):
        takes = ", ".join(declared.of)
        raise TypeMismatch(f"{declared.name}({takes}) takes {len(declared.of)} arguments", span=span_of(call))
    arguments = {name.lower(): arg for name, arg in zip(declared.of, call.expressions, strict=True)}
    body = exp.Paren(this=_parse_statistic(declared))
    for node in body.walk():  # places in the schema's text are none in the statement's
        node.meta.clear()
    for column in list(body.find_all(exp.Column)):
        if not column.table and column.name.lower() in arguments:
            column.replace(exp.Paren(this=arguments[column.name.lower()].copy()))
    body.meta.update(call.meta)
    return body


def _parse_statistic(declared: StatisticDeclared) -> exp.Expr:
    query = parse_query(_SELECT_PREFIX + declared.sql)
    if not isinstance(query, exp.Select) or len(query.selects) != 1 or isinstance(query.selects[0], exp.Alias):
        raise TypeMismatch("a statistic is one expression, without a name")
    if any(value for key, value in query.args.items() if key not in ("expressions", "kind")):
        raise TypeMismatch("a statistic is an expression, and has no FROM or other clause")
    expression: exp.Expr = query.selects[0]
    expression.pop()
    return expression
