"""A plan as text for people: one line per operator, its inputs indented below. Golden files read it."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from typing import assert_never

from dpsql.compiler.plan.aggregate import (
    Aggregate,
    CountBlocks,
    CountUnits,
    Distinct,
    Factor,
    Gather,
    Listed,
    ListedHole,
    ListedRange,
    ListedSets,
    Node,
    Sum,
    SumBlocks,
    Tally,
    Weigh,
)
from dpsql.compiler.plan.bundles import Bundle, CountBundle, CovarianceBundle, MomentBundle, SumBundle, VarianceBundle
from dpsql.compiler.plan.clipped_sums import ClippedCell, ClippedSum, CountMeans, CountNorms
from dpsql.compiler.plan.expressions import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Clip,
    Column,
    Compare,
    Expr,
    HoleValue,
    InHole,
    InList,
    IsNull,
    Literal,
    Not,
    Or,
    Quantise,
)
from dpsql.compiler.plan.measures import (
    Best,
    Blocks,
    Blockwise,
    ConjugatePosterior,
    CountDistinctUnits,
    CountRows,
    CountValues,
    DistinctValues,
    Extreme,
    Frequent,
    MeanValues,
    Measure,
    PairValues,
    Posterior,
    Quantile,
    SharesPosterior,
    Statistic,
    SumValues,
    Truth,
    VarianceValues,
)
from dpsql.compiler.plan.relations import (
    Expand,
    Filter,
    Hop,
    Join,
    Mark,
    PerUnit,
    Project,
    PublicScan,
    PublicTable,
    Rows,
    RowsHole,
    Scan,
    ScanColumn,
    SetOperation,
    Table,
    UnitId,
    UnitMeasure,
    UnitWindow,
)
from dpsql.compiler.plan.walk import measure_args, node_inputs, walk_rows
from dpsql.schema.model import EPOCH, Domain, EngineTable, Scalar, Source
from dpsql.types import Kind, Type

INDENT = "  "
MAX_LISTED = 12
"""Public groups that are written out; of longer lists the first and last are."""


def show_plan(node: Node) -> str:
    """The tree below a node, one line each, and a line each for what a node holds a list of."""
    return "\n".join(_node_lines(node, ""))


def _node_lines(node: Node, indent: str) -> list[str]:
    head, *details = _describe_node(node)
    lines = [indent + head] + [f"{indent}{INDENT}- {detail}" for detail in details]
    for child in node_inputs(node):
        lines += _node_lines(child, indent + INDENT)
    return lines


# --- operators -------------------------------------------------------------------------------------------------------


def _describe_node(node: Node) -> list[str]:
    """The operator itself, then its details."""
    match node:
        case Table():
            unit = "each row is a unit" if node.unit is None else f"unit {node.unit}"
            renamed = [f"{name} as {f.name}" for name, f in node.columns if name != f.name]
            return [f"Table {node.table} ({unit})" + (f": {', '.join(renamed)}" if renamed else "")]
        case Filter():
            return [f"Filter {show_expr(node.condition)}"]
        case Project():
            return [f"Project {', '.join(_show_named(column.name, column.expr) for column in node.columns)}".rstrip()]
        case Join():
            by_unit = ", units equated" if node.by_unit else ""
            return [f"Join {node.kind.value} on {show_expr(node.condition)}{by_unit}"]
        case PublicTable():
            return [f"Public {node.table}: {', '.join(f.name for _, f in node.columns)}"]
        case PublicScan():
            return [f"Scan public {_show_source(node.source)}, {node.rows} rows", *map(_show_scan_column, node.columns)]
        case RowsHole():
            return [f"Hole {node.hole} of at most {node.most} rows: {', '.join(f.name for f in node.columns)}"]
        case Mark():
            test = "" if node.test is None else f" {show_expr(node.test[0])} in {show_expr(node.test[1])}"
            by_unit = ", units equated" if node.by_unit else ""
            return [f"Mark {node.name}:{test or ' exists'} where {show_expr(node.condition)}{by_unit}"]
        case PerUnit():
            keys = ", ".join(["the unit", *(_show_named(key.name, key.expr) for key in node.keys)])
            return [f"Each{_by_clause(keys)}", *(_show_unit_measure(measure) for measure in node.measures)]
        case UnitWindow():
            return [f"Window {node.name} = {_show_window(node)}"]
        case SetOperation():
            return [node.kind.value.capitalize()]
        case Expand():
            sets = ", ".join(f"({', '.join(sorted(names))})" for names in node.sets)
            return [f"Expand to the grouping sets {sets}"]
        case Distinct():
            limit = (
                ""
                if node.limit is None
                else f", at most {node.limit} for each unit{' and grouping set' if node.per_set else ''}"
            )
            return [f"Distinct {', '.join(node.columns)}{_by_clause(', '.join(node.keys))}{limit}"]
        case Aggregate():
            keys = ", ".join(_show_named(key.name, key.expr) for key in node.keys)
            return [f"Aggregate{_by_clause(keys)}", *(show_measure(measure) for measure in node.measures)]
        case Scan():
            return _show_scan(node)
        case Weigh():
            sets = " in each grouping set" if node.per_set else ""
            by = _by_clause(", ".join(node.keys))
            return [f"Weigh each unit as at most {node.rows} rows{sets}, {node.norm.value} norm{by}"]
        case Sum():
            return [f"Sum{_by_clause(', '.join(node.keys))}", *(_show_bundle(bundle) for bundle in node.bundles)]
        case ClippedSum():
            return [
                f"ClippedSum, {node.norm.value} norm{_by_clause(', '.join(node.keys))}",
                *map(_show_clipped, node.cells),
            ]
        case CountNorms():
            what = "rows" if node.arg is None else show_expr(node.arg)
            what = f"squares of {what}" if node.squared else what
            what = what if node.distinct is None else f"distinct {', '.join(node.distinct)}"
            return [f"CountNorms of {what}, {node.norm.value} norm{_by_clause(', '.join(node.spread))}"]
        case CountMeans():
            return [f"CountMeans of {show_expr(node.arg)}"]
        case CountUnits():
            return [_show_count_units(node)]
        case SumBlocks() | CountBlocks():
            what = "SumBlocks" if isinstance(node, SumBlocks) else "CountBlocks"
            return [f"{what} {node.cell}{_by_clause(', '.join(node.keys))}: {_show_blocks(node.blocks)}"]
        case Gather():
            return _show_gather(node)
        case Tally():
            return [f"Tally of {', '.join(node.part.keys)}"]
        case _:
            assert_never(node)


def _show_clipped(cell: ClippedCell) -> str:
    what = "rows" if cell.arg is None else show_expr(cell.arg)
    centered = f" - {float(cell.center):g}" if cell.center else ""
    verb = "count" if cell.counts else "sum of squares" if cell.squared else "sum"
    return f"{cell.cell} = {verb} of {what}{centered}, each unit scaled to {float(cell.norm):g}"


def _show_unit_measure(measure: UnitMeasure) -> str:
    return f"{measure.name} = {measure.function}({'*' if measure.arg is None else show_expr(measure.arg)})"


def _show_window(node: UnitWindow) -> str:
    parts = [*(show_expr(expr) for expr in node.partition)]
    order = [f"{show_expr(o.expr)}{' desc' if o.descending else ''}" for o in node.order]
    over = f"by {', '.join(['the unit', *parts])}" + (f" order by {', '.join(order)}" if order else "")
    return f"{node.function}({', '.join(map(show_expr, node.args))}) {over}{' ' + node.frame if node.frame else ''}"


def _by_clause(keys: str) -> str:
    return f" by {keys}" if keys else ""


def _show_named(name: str, expr: Expr) -> str:
    text = show_expr(expr)
    return name if text == name else f"{name} = {text}"


def _show_scan(scan: Scan) -> list[str]:
    facts = ", one row per unit" if scan.unit_is_unique else ""
    unit = "each row is a unit" if scan.unit is None else f"unit {_show_unit_path(scan.unit)}{facts}"
    return [f"Scan {_show_source(scan.source)} ({unit})", *(_show_scan_column(column) for column in scan.columns)]


def _show_unit_path(unit: UnitId) -> str:
    path = "".join(f"{_show_hop(hop)}, " for hop in unit.hops)
    return f"{path}{unit.column.source}"


def _show_hop(hop: Hop) -> str:
    if not hop.also:
        return f"{hop.column.source} -> {_show_source(hop.source)}.{hop.key.source}"
    columns, keys = (", ".join(column.source for column in side) for side in zip(*hop.pairs, strict=True))
    return f"({columns}) -> {_show_source(hop.source)} ({keys})"


def _show_source(source: Source) -> str:
    return ".".join(source.name) if isinstance(source, EngineTable) else ", ".join(source.patterns)


def _show_scan_column(column: ScanColumn) -> str:
    words = [column.source if column.source == column.name else f"{column.name} = {column.source}"]
    words.append(show_domain(column.domain))
    if column.physical != column.domain.type:
        words.append(f"cast from {column.physical or 'an unknown type'}")
    if column.is_id:
        words.append("id")
    if column.null_group:
        words.append("NULL is a group")
    if column.grid is not None:
        words.append(f"grid {column.grid}")
    if column.as_stored:
        words.append("as stored")
    return ", ".join(words)


def _show_count_units(part: CountUnits) -> str:
    kind = "rows, one per unit" if part.one_row else "units"
    limit = "" if part.limit is None else f", at most {part.limit} groups each"
    weighted = ", weighted" if part.weighted else ""
    return f"CountUnits {part.cell}{_by_clause(', '.join(part.keys))}: {kind}{limit}{weighted}"


def _show_blocks(blocks: Blocks) -> str:
    steps = f"{blocks.lower} to {blocks.upper} in {blocks.steps} steps"
    return f"{blocks.count} blocks, {steps}: {_show_statistic(blocks.statistic)}"


def _show_statistic(statistic: Statistic) -> str:
    """For example a1 of a1 = mad(cost)."""
    parts = (
        (aggregate, "*" if aggregate.arg is None else show_expr(aggregate.arg)) for aggregate in statistic.aggregates
    )
    named = (
        f"{aggregate.name} = {aggregate.function}({arg})" + f" at {aggregate.fraction}" * bool(aggregate.fraction)
        for aggregate, arg in parts
    )
    return f"{show_expr(statistic.result)} of {', '.join(named)}"


def _show_gather(gather: Gather) -> list[str]:
    lines = ["Gather" + _by_clause(", ".join(f"{key.name} {key.type}" for key in gather.keys))]
    if gather.listed is not None and gather.keys:
        lines.append(_show_listed(gather.listed))
    if gather.selection is not None:
        lines.append(f"selected {', '.join(gather.selection.keys)}: by {gather.selection.cell}")
    return lines


def _show_listed(listed: Listed) -> str:
    return "; ".join(map(_show_factor, listed.factors))


def _show_factor(listed: Factor) -> str:
    if isinstance(listed, ListedHole):
        named = [_public_source_name(node) for node in walk_rows(listed.rows)]
        sources = ", ".join(name for name in named if name is not None)
        return f"listed {', '.join(key.name for key in listed.keys)}, at most {listed.count} groups: from {sources}"
    if isinstance(listed, ListedSets):
        return f"listed in {len(listed.sets)} grouping sets, at most {listed.count} groups: " + " | ".join(
            _show_listed(of) if of.keys else "one group of all rows" for of in listed.sets
        )
    if isinstance(listed, ListedRange):
        return f"listed {listed.key.name}: from {listed.lower} to {listed.upper}"
    rows = [", ".join(show_scalar(value) for value in row) for row in listed.rows]
    if len(listed.keys) > 1:
        rows = [f"({row})" for row in rows]
    shown = rows if len(rows) <= MAX_LISTED else [*rows[:2], "…", rows[-1]]
    text = f"listed {', '.join(key.name for key in listed.keys)}, {len(rows)} groups: {', '.join(shown)}".rstrip(": ")
    return text if listed.where is None else f"{text}, where {show_expr(listed.where)}"


def _public_source_name(node: Rows) -> str | None:
    if isinstance(node, RowsHole):
        return f"the hole {node.hole}"
    return node.table if isinstance(node, PublicScan) else None


def show_measure(measure: Measure) -> str:
    args = ", ".join(show_expr(arg) for arg in measure_args(measure))
    match measure:
        case CountRows():
            return "count rows"
        case CountDistinctUnits(where):
            return "count units" if where is None else f"count units where {args}"
        case CountValues():
            return f"count {args}"
        case SumValues():
            return f"sum {args}"
        case MeanValues():
            return f"mean {args}"
        case DistinctValues():
            return f"{measure.function} distinct {args}"
        case VarianceValues():
            name = "standard deviation" if measure.root else "variance"
            return f"{name} {args}, of a {'sample' if measure.sample else 'population'}"
        case PairValues():
            return f"{measure.function.value} {args}"
        case Truth():
            return f"{'every' if measure.every else 'any'} {args}"
        case Quantile():
            kind = "discrete quantile" if measure.discrete else "quantile"
            how = " as a list" if measure.is_list else f" by {measure.local.by.value}" if measure.local else ""
            return f"{kind} {args} at {', '.join(map(str, measure.fractions))}{how}"
        case Extreme():
            return f"{'max' if measure.high else 'min'} {args}"
        case Frequent():
            return f"{measure.shape} {args}" + ("" if measure.most is None else f", {measure.most} at most")
        case Blockwise():
            clipped = f"clipped to [{measure.lower}, {measure.upper}]"
            return f"{measure.combine} of {measure.blocks} blocks, {clipped}: {_show_statistic(measure.statistic)}"
        case Best():
            many = f", {measure.most} at most" if measure.is_list else ""
            return f"best {show_expr(measure.arg)} by {show_measure(measure.score)}{many}"
        case Posterior():
            prior = f"prior {measure.alpha}, {measure.beta}, {measure.first} thousandths from the ends"
            return f"posterior {args}, {measure.draws} draws{' as a list' if measure.is_list else ''}, {prior}"
        case ConjugatePosterior() | SharesPosterior():
            return f"{measure.signature} {args}"
        case _:
            assert_never(measure)


def _show_bundle(bundle: Bundle) -> str:
    shift = f", divided by 2^{bundle.shift}" if bundle.shift else ""
    match bundle:
        case CountBundle():
            what = "rows" if bundle.present is None else f"rows where {show_expr(bundle.present)} is not null"
            return f"{bundle.cell}: {what}{shift}"
        case SumBundle():
            return f"{bundle.cell}: {show_expr(bundle.value)}{shift}"
        case MomentBundle():
            null = "" if bundle.null_as is None else f", NULL as {bundle.null_as}"
            return f"{', '.join(bundle.cells)}: moments of {show_expr(bundle.value)}{null}{shift}"
        case VarianceBundle():
            return f"{', '.join(bundle.cells)}: squares of {show_expr(bundle.value)}{shift}"
        case CovarianceBundle():
            first, second = (
                f"{show_expr(value)} (times {scale})" for value, scale in zip(bundle.values, bundle.scales, strict=True)
            )
            return f"{', '.join(bundle.cells)}: products of {first} and {second}{shift}"
        case _:
            assert_never(bundle)


# Expressions and domains of a plan as text for people.


def show_expr(expr: Expr) -> str:
    match expr:
        case Column():
            return expr.name
        case Literal():
            return "null" if expr.value is None else show_scalar(expr.value)
        case Compare():
            return f"{_show_operand(expr.left)} {expr.op} {_show_operand(expr.right)}"
        case And():
            return " and ".join(_show_operand(arg) for arg in expr.args)
        case Or():
            return " or ".join(_show_operand(arg) for arg in expr.args)
        case Not():
            return f"not {_show_operand(expr.arg)}"
        case IsNull():
            return f"{_show_operand(expr.arg)} is null"
        case InList():
            return f"{_show_operand(expr.arg)} in ({', '.join(show_expr(value) for value in expr.values)})"
        case Arithmetic():
            wide = ":wide" if expr.type.is_integer and not expr.fits else ""
            return f"{_show_operand(expr.left)} {expr.op}{wide} {_show_operand(expr.right)}"
        case Case():
            branches = (f"when {show_expr(when)} then {show_expr(then)}" for when, then in expr.branches)
            return f"case {' '.join(branches)} else {show_expr(expr.otherwise)} end"
        case Cast():
            return f"cast({show_expr(expr.arg)} as {expr.type})"
        case Call():
            return f"{expr.function}({', '.join(show_expr(arg) for arg in expr.args)})"
        case Clip():
            return f"clip({show_expr(expr.arg)}, {expr.lower}, {expr.upper})"
        case HoleValue():
            return f"${expr.hole}"
        case InHole():
            return f"{show_expr(expr.arg)} in ${expr.hole}"
        case Quantise():
            return f"{_show_operand(expr.arg)} in steps of {expr.grid}, {expr.lower} to {expr.upper}"
        case _:
            assert_never(expr)


def _show_operand(expr: Expr) -> str:
    """An operand, in parentheses where it is an operator itself."""
    text = show_expr(expr)
    return f"({text})" if isinstance(expr, Compare | And | Or | Not | IsNull | InList | Arithmetic | Quantise) else text


def show_domain(domain: Domain) -> str:
    text = str(domain.type)
    if domain.values is not None:
        text += " of " + ", ".join(show_scalar(value) for value in domain.values)
    elif domain.lower is not None or domain.upper is not None:
        text += f" [{_show_bound(domain.lower, domain.type)}, {_show_bound(domain.upper, domain.type)}]"
    return text if domain.nullable else f"{text} not null"


def show_scalar(value: Scalar | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _show_bound(number: Fraction | None, type_: Type) -> str:
    """Dates and times as such, where the calendar has them."""
    if number is None:
        return "…"
    step = dt.timedelta(days=1) if type_.kind is Kind.DATE else dt.timedelta(microseconds=1)
    try:
        bound_time = EPOCH + int(number) * step if type_.is_time else None
    except OverflowError:
        bound_time = None
    return str(number) if bound_time is None else str(bound_time.date() if type_.kind is Kind.DATE else bound_time)
