"""The shape of a release: what it holds, read off the plan that runs, and as text that the ledger keeps beside it.

    SELECT kind, COUNT(*) FROM orders WHERE paid AND kind <> 'web' GROUP BY kind
        →  rows: orders; conditions: paid, kind <> 'web', kind IS NOT NULL; key: kind; cell: rows

All conjuncts of WHERE stand apart from the rows that they filter, so that one lookup finds every release of those rows.
Two releases with the same `rows` aggregate the same relation under the same declarations and caps; they differ in the
conditions that rows must meet, in their keys and in their cells. A shape has no value of any of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any, assert_never

from dpsql.compiler.analysis.canonical import canonical_expr_text, canonical_plan_text, canonicalize_expr
from dpsql.compiler.analysis.domains import derive_domains, domain_of
from dpsql.compiler.analysis.units import derive_unit_facts
from dpsql.compiler.calibrate.calibrate import CalibratedPlan
from dpsql.compiler.plan.aggregate import (
    Aggregate,
    CountBlocks,
    CountUnits,
    Distinct,
    Factor,
    Gather,
    ListedHole,
    Part,
    Sum,
    SumBlocks,
    Weigh,
)
from dpsql.compiler.plan.bundles import Bundle, CountBundle, CovarianceBundle, MomentBundle, SumBundle, VarianceBundle
from dpsql.compiler.plan.clipped_sums import ClippedSum, CountMeans, CountNorms, Norm
from dpsql.compiler.plan.expressions import TRUE, Column, Expr, IsNull, Not, Quantise, split_conjuncts
from dpsql.compiler.plan.relations import Field, Filter, Project, Rows, row_fields
from dpsql.compiler.plan.walk import map_expr
from dpsql.errors import IntegrityError, InternalError

SHAPE_FORMAT = 1

CellForm = tuple[tuple[str, Fraction], ...]
"""What a cell adds up to, in the units of its values: sums over a group's rows, by their text, with coefficients."""


class CellKind(Enum):
    """How a unit's rows enter a cell, and so which groups of cells may be added up."""

    ROWS = "rows"  # every row counts as it is
    WEIGHED = "weighed"  # all rows of a unit are scaled by one weight
    UNITS = "units"  # a unit counts once in each group
    DISTINCT = "distinct"  # equal values count once in each group


@dataclass(frozen=True)
class KeyShape:
    """`text` is its canonical expression. `listing` says by which public rows it is listed, if by any.

    `present` is the condition, as text, that keeps rows out where the key is NULL and NULL is no group. `complete`:
    every other row is in a listed group. `by_unit`: all rows of a unit have the same value.
    """

    text: str
    selected: bool
    listing: str | None
    complete: bool
    by_unit: bool
    present: str | None


@dataclass(frozen=True)
class CellShape:
    """A column of the release. `capped`: a unit is in a limited number of groups, which depend on all of its rows.

    `spread`: a unit's rows are weighed by the L2 norm of their numbers in several groups.
    """

    name: str
    kind: CellKind
    capped: bool
    spread: bool
    form: CellForm


@dataclass(frozen=True)
class ReleaseShape:
    """`conditions` are the canonical texts of what every row meets; `cells` are in the order of the release's columns,
    with None for the one that a selection counts in; `selection` is the text of how groups are selected."""

    rows: str
    conditions: tuple[str, ...]
    keys: tuple[KeyShape, ...]
    cells: tuple[CellShape | None, ...]
    selection: str | None

    @cached_property
    def text(self) -> str:
        return shape_to_text(self)


def shape_to_text(shape: ReleaseShape) -> str:
    keys = [[k.text, k.selected, k.listing, k.complete, k.by_unit, k.present] for k in shape.keys]
    cells = [None if cell is None else _write_cell(cell) for cell in shape.cells]
    document = {"dpsql_shape": SHAPE_FORMAT, "rows": shape.rows, "conditions": list(shape.conditions), "keys": keys,
                "cells": cells, "selection": shape.selection}  # fmt: skip
    return json.dumps(document, separators=(",", ":"), sort_keys=True)


def shape_from_text(text: str) -> ReleaseShape | None:
    """The shape that `shape_to_text` wrote; None where another version of dpsql did, which knew other shapes."""
    try:
        document = json.loads(text)
        if document["dpsql_shape"] != SHAPE_FORMAT:
            return None
        return ReleaseShape(
            rows=document["rows"],
            conditions=tuple(document["conditions"]),
            keys=tuple(KeyShape(*key) for key in document["keys"]),
            cells=tuple(None if cell is None else _read_cell(cell) for cell in document["cells"]),
            selection=document["selection"],
        )
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        raise IntegrityError("the stored description of a release is damaged") from error


def _write_cell(cell: CellShape) -> list[Any]:
    form = [[atom, str(number)] for atom, number in cell.form]
    return [cell.name, cell.kind.value, cell.capped, cell.spread, form]


def _read_cell(stored: list[Any]) -> CellShape:
    name, kind, capped, spread, form = stored
    return CellShape(name, CellKind(kind), capped, spread, tuple((atom, Fraction(number)) for atom, number in form))


SHAPE_VERSION = 1
"""Part of every hash of rows: releases that were described otherwise are not mistaken for these."""

ONE = Fraction(1)


@dataclass(frozen=True)
class DescribedRelease:
    """`keys` and `conditions` are the expressions of the shape's, in its order."""

    shape: ReleaseShape
    keys: tuple[Expr, ...]
    conditions: tuple[Expr, ...]


def describe_release(
    aggregate: Aggregate, calibrated: CalibratedPlan, context: str, assume: int | None
) -> DescribedRelease | None:
    """`aggregate` is canonical; `context` is the text of all else that fixes the meaning of a cell: declarations of
    tables, caps, neighbors, noise. None for what nothing is derived from: grouping sets, bins, blocks, mere lists."""
    gather = calibrated.gather
    project = _shared_projection(gather)
    blocks = any(isinstance(part, SumBlocks | CountBlocks) for part in gather.parts)
    chosen = calibrated.choice is not None or calibrated.scores is not None
    if aggregate.sets or blocks or chosen or project is None:
        return None
    base, written = _split_conditions(aggregate.input)
    exprs = {column.name: column.expr for column in project.columns}
    dropped = _null_conditions(project, gather)
    keys = tuple(
        _describe_key(field.name, exprs[field.name], gather, project, assume, dropped) for field in gather.keys
    )
    conditions = {canonical_expr_text(part): part for part in (*written, *dropped.values())}
    text = "\n".join([f"v{SHAPE_VERSION}", canonical_plan_text(base), context])
    shape = ReleaseShape(
        rows=hashlib.sha256(text.encode()).hexdigest(),
        conditions=tuple(conditions),
        keys=keys,
        cells=tuple(cell for part in gather.all_parts for cell in _describe_cells(part, gather, exprs, assume)),
        selection=None if gather.selection is None else str(gather.selection.limit),
    )
    return DescribedRelease(shape, tuple(exprs[field.name] for field in gather.keys), tuple(conditions.values()))


def _split_conditions(node: Rows) -> tuple[Rows, tuple[Expr, ...]]:
    """The rows without WHERE, and its conjuncts."""
    parts: list[Expr] = []
    while isinstance(node, Filter):
        parts += [part for part in split_conjuncts(canonicalize_expr(node.condition)) if part != TRUE]
        node = node.input
    return node, tuple(parts)


def _rows_of_part(part: Part) -> Rows:
    return part.input.input if isinstance(part.input, Weigh | Distinct) else part.input


def _shared_projection(gather: Gather) -> Project | None:
    """The columns that all parts read."""
    if not gather.all_parts:
        return None
    rows = _rows_of_part(gather.all_parts[0])
    rows = rows.input if isinstance(rows, Filter) else rows
    return rows if isinstance(rows, Project) else None


# --- keys ------------------------------------------------------------------------------------------------------------


def _null_conditions(project: Project, gather: Gather) -> dict[str, Expr]:
    """The conditions that `list_groups` has added to keep rows out whose key is NULL where NULL is no group."""
    if not isinstance(project.input, Filter):
        return {}
    conditions = split_conjuncts(project.input.condition)
    keys = {field.name for field in gather.keys}
    present = {c.name: Not(IsNull(c.expr)) for c in project.columns if c.name in keys}
    return {name: condition for name, condition in present.items() if condition in conditions}


def _describe_key(
    name: str, expr: Expr, gather: Gather, project: Project, assume: int | None, dropped: dict[str, Expr]
) -> KeyShape:
    selected = gather.selection is not None and name in gather.selection.keys
    factor = None if gather.listed is None else next((f for f in gather.listed.factors if name in _key_names(f)), None)
    listing, complete = None, not selected
    if isinstance(factor, ListedHole):
        rows = hashlib.sha256(repr(factor.rows).encode()).hexdigest()
        listing = f"{rows} {factor.columns[_key_names(factor).index(name)]} {factor.and_null}"
        complete = factor.and_null or not domain_of(expr, derive_domains(project.input, assume)).nullable
    present = canonical_expr_text(dropped[name]) if name in dropped else None
    by_unit = name in derive_unit_facts(project).determined
    return KeyShape(canonical_expr_text(expr), selected, listing, complete, by_unit, present)


def _key_names(factor: Factor) -> list[str]:
    return [field.name for field in factor.keys]


# --- cells -----------------------------------------------------------------------------------------------------------


def _describe_cells(
    part: Part, gather: Gather, exprs: dict[str, Expr], assume: int | None
) -> tuple[CellShape | None, ...]:
    text = _make_text_renderer(exprs)
    match part:
        case CountUnits():
            if part is gather.selection:
                return (None,)
            where = text(part.input.condition) if isinstance(part.input, Filter) else ""
            form = ((f"units {part.limit} {where}", ONE),)
            return (CellShape(part.cell, CellKind.UNITS, part.limit is not None, False, form),)
        case Sum():
            return _describe_sums(part, text, assume)
        case SumBlocks() | CountBlocks() | ClippedSum() | CountNorms() | CountMeans():
            raise InternalError("nothing is derived from blocks or clipped sums")
        case _:
            assert_never(part)


def _describe_sums(part: Sum, text: Callable[[Expr], str], assume: int | None) -> tuple[CellShape, ...]:
    rows = part.input
    env = derive_domains(_rows_of_part(part), assume)
    former = FormBuilder("rows", text, lambda arg: domain_of(arg, env).nullable)
    kind, capped, spread = CellKind.ROWS, False, False
    if isinstance(rows, Weigh):
        kind, spread = CellKind.WEIGHED, rows.norm is Norm.L2 and bool(rows.keys)
        former = FormBuilder(f"weighed {rows.rows} {rows.norm.value}", text, lambda arg: domain_of(arg, env).nullable)
    elif isinstance(rows, Distinct):
        kind, capped = CellKind.DISTINCT, rows.limit is not None
        columns = " ".join(text(Column(f.name, f.type)) for f in _distinct_fields(rows))
        former = FormBuilder(f"distinct {rows.limit} {columns}", text, lambda arg: False)  # NULL is no distinct value
    return tuple(
        CellShape(name, kind, capped, spread, form)
        for bundle in part.bundles
        for name, form in zip(bundle.cells, former.build_forms(bundle), strict=True)
    )


def _distinct_fields(rows: Distinct) -> list[Field]:
    fields = {field.name: field for field in row_fields(rows.input)}
    return [fields[name] for name in rows.columns]


def _make_text_renderer(exprs: dict[str, Expr]) -> Callable[[Expr], str]:
    """The canonical text of an expression over the narrowed columns, in terms of the release's rows."""

    def text(expr: Expr) -> str:
        return canonical_expr_text(map_expr(expr, lambda e: exprs[e.name] if isinstance(e, Column) else e))

    return text


# What the cells of a bundle add up to, in terms of sums that other bundles share.
#
#     v - lower, upper - v              →  SUM(v) - lower * COUNT(v), upper * COUNT(v) - SUM(v)
#     (W^2 - z^2, z^2, W z) / W^2       →  COUNT(v) - SQUARES(v), SQUARES(v), (2 SUM(v) - (lower + upper) COUNT(v)) / W
#
# Two sums are one where their text is: the same expression on the same grid, clipped to the same bounds, of rows that
# are weighed alike. COUNT of what is never NULL is COUNT(*).

AtomSums = Mapping[str, Fraction]
RenderExpr = Callable[[Expr], str]
IsNullable = Callable[[Expr], bool]


class FormBuilder:
    """Forms of the bundles over one relation of rows; `prefix` tells how these rows are weighed or chosen."""

    def __init__(self, prefix: str, text: RenderExpr, nullable: IsNullable) -> None:
        self._prefix, self._text, self._nullable = prefix, text, nullable

    def build_forms(self, bundle: Bundle) -> tuple[CellForm, ...]:
        """One for each of the bundle's cells, in order."""
        return tuple(_sums_to_form(sums) for sums in self._sums_of_bundle(bundle))

    def _sums_of_bundle(self, bundle: Bundle) -> list[AtomSums]:
        match bundle:
            case CountBundle(_, None):
                return [self._row_count]
            case CountBundle(_, present):
                assert present is not None
                return [self._count_sum(present)]
            case SumBundle():
                return [self._value_sum(bundle.value)]
            case MomentBundle():
                return self._mean_sums(bundle)
            case VarianceBundle():
                return self._variance_sums(bundle)
            case CovarianceBundle():
                return self._covariance_sums(bundle)
            case _:
                assert_never(bundle)

    def _mean_sums(self, bundle: MomentBundle) -> list[AtomSums]:
        value = bundle.value
        lower, upper = value.lower * value.grid, value.upper * value.grid
        count, total = self._count_sum(value.arg), self._value_sum(value)
        missing = _add_sums((self._row_count, 1), (count, -1))
        if bundle.null_as is not None:
            total, count = _add_sums((total, 1), (missing, bundle.null_as * value.grid)), self._row_count
        cells = [_add_sums((total, 1), (count, -lower)), _add_sums((count, upper), (total, -1))]
        return cells if bundle.missing is None else [*cells, _add_sums((missing, upper - lower))]

    def _variance_sums(self, bundle: VarianceBundle) -> list[AtomSums]:
        value = bundle.value
        count, square = self._count_sum(value.arg), self._make_atom("square", self._value_text(value))
        linear = _add_sums(
            (self._value_sum(value), 2 / (value.grid * bundle.max_width)),
            (count, Fraction(-(value.lower + value.upper), bundle.max_width)),
        )
        return [_add_sums((count, 1), (square, -1)), square, linear]

    def _covariance_sums(self, bundle: CovarianceBundle) -> list[AtomSums]:
        """Of one pair, whichever of the two comes first."""
        first, second = (self._value_text(value) for value in bundle.values)
        both = " and ".join(sorted((first, second)))
        nullable = any(self._nullable(value.arg) for value in bundle.values)
        count = self._make_atom("count", both) if nullable else self._row_count
        a, b = (self._make_atom("linear", f"{x} of {both}") for x in (first, second))
        aa, bb = (self._make_atom("squared", f"{x} of {both}") for x in (first, second))
        return [_add_sums((count, 1), (aa, -1)), aa, a, b, bb, self._make_atom("product", both)]

    # --- sums that bundles share -------------------------------------------------------------------------------------

    @property
    def _row_count(self) -> AtomSums:
        return self._make_atom("rows", "")

    def _count_sum(self, arg: Expr) -> AtomSums:
        return self._make_atom("count", self._text(arg)) if self._nullable(arg) else self._row_count

    def _value_sum(self, value: Quantise) -> AtomSums:
        return self._make_atom("sum", self._value_text(value))

    def _value_text(self, value: Quantise) -> str:
        return f"{self._text(value.arg)} {value.grid} {value.lower} {value.upper}"

    def _make_atom(self, name: str, of: str) -> AtomSums:
        return {f"{self._prefix} {name} {of}": Fraction(1)}


def _add_sums(*parts: tuple[AtomSums, Fraction | int]) -> AtomSums:
    result: dict[str, Fraction] = {}
    for sums, factor in parts:
        for atom, number in sums.items():
            result[atom] = result.get(atom, Fraction(0)) + number * factor
    return result


def _sums_to_form(sums: AtomSums) -> CellForm:
    return tuple(sorted((atom, number) for atom, number in sums.items() if number))
