"""`/` of whole numbers cuts off the fraction, as in PostgreSQL: that is told, or refused if only 0 or 1 can come of it.

    SUM(CASE WHEN late THEN 1 ELSE 0 END) / COUNT(*)   is 0 however many are late, and 1 if all are

Whoever writes it nearly always wants the fraction, and would pay for 0. So a quotient is refused if its numerator is
a part of its denominator for any rows; other quotients of aggregates are answered, with a warning.

Privacy: what is refused, and what is told, follows from the statement and the schema alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from sqlglot import exp

from dpsql.compiler.analysis.canonical import canonical_expr_text
from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.analysis.narrowing import Environment
from dpsql.compiler.bind.aggregates import has_aggregate, is_aggregate
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.plan.expressions import (
    Case,
    Expr,
    Literal,
    split_conjuncts,
)
from dpsql.compiler.plan.measures import CountDistinctUnits, CountRows, CountValues, DistinctValues, Measure, SumValues
from dpsql.compiler.plan.relations import Rows
from dpsql.errors import Span, Unsupported

FACTOR = "1.0 * "
MAX_SHOWN_CHARACTERS = 80
"""Of an expression in a warning; a longer one is cut."""
MAX_HINTED_CHARACTERS = 400
"""Of a statement that a hint repeats with the factor in it."""


class IntegerDivision(Enum):
    """What becomes of a quotient that can only be 0 or 1: it is refused, or answered like any other."""

    REFUSE = "refuse"
    ALLOW = "allow"


def _truncated_ratio_error(ratio: exp.Div, mean: str | None, statement: str) -> Unsupported:
    """The hint has the whole statement, mended, where it is short and says where the quotient stands."""
    above, below, span = _sql_of(ratio.this), _sql_of(ratio.expression), span_of(ratio)
    mended = f"{FACTOR}{above} / {below}"
    if span is not None and is_aggregate(ratio.this) and 0 < len(statement) <= MAX_HINTED_CHARACTERS:
        mended = _insert_factor(statement, span)
    either = f", or AVG({mean})" if mean else ""
    return Unsupported(
        "a quotient of whole numbers that can only be 0 or 1",
        detail=f"As in PostgreSQL, / of whole numbers cuts off the fraction, and {_cut(above)} lies between 0 and "
        f"{_cut(below)}.",
        hint=f"Write {mended}{either}; SET integer_division = allow gives what is written.",
        span=span,
    )


def _insert_factor(statement: str, span: Span) -> str:
    return " ".join(f"{statement[: span.start]}{FACTOR}{statement[span.start :]}".split()).rstrip("; ")


# --- what a block divides --------------------------------------------------------------------------------------------


@dataclass
class IntegerRatios:
    """The quotients of whole numbers in one block, as they were written and with the aliases in them written out."""

    ratios: dict[str, tuple[exp.Div, exp.Div]] = field(default_factory=dict)  # by their texts

    def add(self, written: exp.Div, spelled_out: exp.Expr) -> None:
        if isinstance(spelled_out, exp.Div):
            self.ratios.setdefault(_sql_of(written), (written, spelled_out))

    def warn(self) -> tuple[str, ...]:
        """Warnings of those of aggregates: dividing by a number loses less than one, and is often meant."""
        return tuple(
            truncation_warning(text)
            for text, (_, ratio) in self.ratios.items()
            if has_aggregate(ratio.this) and _has_aggregate_or_total(ratio.expression)
        )

    def refuse_parts(self, bind: Callable[[exp.Expr], Measure], rows: Rows, statement: str) -> None:
        """Refuse what can only be 0 or 1; `bind` gives the measure of an aggregate."""
        for written, ratio in self.ratios.values():
            sides = _RatioSides(ratio, bind, rows)
            if sides.is_part():
                raise _truncated_ratio_error(written, sides.mean_argument(), statement)


class _RatioSides:
    """Numerator and denominator without parentheses, and without what guards against 0 and NULL."""

    def __init__(self, ratio: exp.Div, bind: Callable[[exp.Expr], Measure], rows: Rows) -> None:
        self._above, self._below = _plain_side(ratio.this), _plain_side(ratio.expression)
        self._bind = bind
        self._rows = rows

    def is_part(self) -> bool:
        if not is_aggregate(self._above):
            return False
        if not is_aggregate(self._below):
            return False
        return is_part_of(self._bind(self._above), self._bind(self._below), derive_domains(self._rows))

    def mean_argument(self) -> str | None:
        """The argument of the AVG that gives the same fraction, where there is one."""
        above = self._above
        if not isinstance(self._bind(self._below), CountRows):
            return None
        if isinstance(above, exp.Filter) and isinstance(self._bind(above.this), CountRows):
            return f"CASE WHEN {_sql_of(above.expression.this)} THEN 1 ELSE 0 END"
        measure = self._bind(above)
        if not isinstance(above, exp.Sum) or not isinstance(measure, SumValues):
            return None
        return None if domain_of(measure.arg, derive_domains(self._rows)).nullable else _sql_of(above.this)


def truncation_warning(text: str) -> str:
    return (
        f"{_cut(text)} is a quotient of whole numbers, whose fraction is cut off as in PostgreSQL;"
        f" {FACTOR}{_cut(text)} keeps it"
    )


def warn_of_columns(ratios: list[exp.Div]) -> tuple[str, ...]:
    """Quotients of columns of an inner query, where what they are parts of is not known."""
    texts = dict.fromkeys(_sql_of(ratio) for ratio in ratios if _names_column(ratio.this, ratio.expression))
    return tuple(map(truncation_warning, texts))


def _names_column(*sides: exp.Expr) -> bool:
    return all(side.find(exp.Column) is not None for side in sides)


# --- when a numerator is a part of its denominator -------------------------------------------------------------------


def is_part_of(numerator: Measure, denominator: Measure, domains: Environment) -> bool:
    """Whether, of any rows within the domains, 0 <= numerator <= denominator."""
    match numerator, denominator:
        case (CountRows() | CountValues() | CountDistinctUnits() | DistinctValues(function="count"), CountRows()):
            return True
        case SumValues(arg), CountRows():
            domain = domain_of(arg, domains)
            return domain.is_bounded and domain.bounds[0] >= 0 and domain.bounds[1] <= 1
        case CountValues(part), CountValues(whole):
            return _keeps_some(part, whole)
        case CountDistinctUnits(part), CountDistinctUnits(whole):
            return whole is None or (part is not None and _implies(part, whole))
        case SumValues(part), SumValues(whole):
            domain = domain_of(whole, domains)
            return domain.lower is not None and domain.lower >= 0 and _keeps_some(part, whole)
        case _:
            return False


def _keeps_some(part: Expr, whole: Expr) -> bool:
    """Whether `part` is `whole` in some rows, and 0 or NULL in the others."""
    if _same(part, whole):
        return True
    if not isinstance(part, Case) or len(part.branches) != 1 or not _is_nothing(part.otherwise):
        return False
    ((condition, kept),) = part.branches
    if _same(kept, whole):
        return True
    if not isinstance(whole, Case) or len(whole.branches) != 1 or not _is_nothing(whole.otherwise):
        return False
    ((wider, all_kept),) = whole.branches
    return _same(kept, all_kept) and _implies(condition, wider)


def _implies(condition: Expr, wider: Expr) -> bool:
    """Whether every part of `wider` is one of `condition`'s."""
    parts = {canonical_expr_text(part) for part in split_conjuncts(condition)}
    return all(canonical_expr_text(part) in parts for part in split_conjuncts(wider))


def _same(first: Expr, second: Expr) -> bool:
    return canonical_expr_text(first) == canonical_expr_text(second)


def _is_nothing(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value in (None, 0)


# --- the text of a quotient ------------------------------------------------------------------------------------------


def _plain_side(node: exp.Expr) -> exp.Expr:
    """Without parentheses, and without what only guards against a denominator of 0 or a sum of no rows."""
    while True:
        match node:
            case exp.Paren():
                node = node.this
            case exp.Nullif() if _is_zero(node.expression):
                node = node.this
            case exp.Coalesce() if len(node.expressions) == 1 and _is_zero(node.expressions[0]):
                node = node.this
            case _:
                return node


def _is_zero(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name == "0"


def _has_aggregate_or_total(node: exp.Expr) -> bool:
    """Also an aggregate within a window, whose total is divided by."""
    return has_aggregate(node) or any(map(is_aggregate, node.find_all(exp.AggFunc, exp.Filter)))


def _sql_of(node: exp.Expr) -> str:
    return " ".join(str(node.sql(dialect="postgres")).split())


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[: MAX_SHOWN_CHARACTERS - 1] + "…"
