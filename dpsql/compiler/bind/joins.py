"""Joins in FROM. Private rows meet private rows of the same unit, or public rows, which belong to nobody.

Inner joins may be equated by conditions that come later (another ON, or WHERE): they are checked when the block's WHERE
is bound. An outer join must say it in its own ON, since rows that fail it stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.compiler.bind.coercion import coerce, unify_types
from dpsql.compiler.bind.expressions import bind_condition, bind_expr
from dpsql.compiler.bind.relation import (
    BoundRelation,
    PrivateJoin,
    equate_units_hint,
    require_same_unit,
    second_unit_hint,
    units_equated,
    units_not_equated_error,
)
from dpsql.compiler.bind.scope import BoundColumn, MergedColumn, Scope, SourceScope
from dpsql.compiler.parse.dialect import refuse_other_args, span_of
from dpsql.compiler.plan.expressions import (
    TRUE,
    Call,
    Column,
    Compare,
    Expr,
    Not,
    join_conjuncts,
    split_conjuncts,
    split_shared_equalities,
)
from dpsql.compiler.plan.relations import (
    Filter,
    Join,
    JoinKind,
    Project,
    PublicTable,
    Rows,
    Unmatched,
    is_public,
    row_fields,
)
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import InvalidSyntax, NotPrivate, Unsupported
from dpsql.schema.model import Schema

if TYPE_CHECKING:
    from dpsql.compiler.bind.binder import Binder
    from dpsql.compiler.bind.sources import Ctes


def bind_join_tree(binder: Binder, first: exp.Expr, joins: Sequence[exp.Join], ctes: Ctes) -> BoundRelation:
    """Sources in FROM, left to right; a comma binds less tightly than JOIN. `first` may be what `joins` hang on."""
    chains: list[tuple[exp.Expr, list[exp.Join], exp.Expr]] = [(first, [], first)]
    for join in joins:
        if _is_comma_join(join):
            chains.append((join.this, [], join))
        else:
            chains[-1][1].append(join)
    result: BoundRelation | None = None
    for source, chained, where in chains:
        if isinstance(source, exp.Lateral) and isinstance(where, exp.Join) and result is not None:
            result = binder.bind_lateral_join(result, where, ctes)  # it reads all that stands before the comma
            for join in chained:
                result = bind_join(binder, result, join, ctes)
            continue
        relation = binder.bind_from_item(source, ctes, alone=source is first)
        for join in chained:
            relation = bind_join(binder, relation, join, ctes)
        result = relation if result is None else _bind_cross_join(binder, result, relation, where)
    assert result is not None
    return result


def _is_comma_join(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("on", "using", "side", "kind", "method"))


@dataclass(frozen=True)
class _JoinCondition:
    parts: tuple[Expr, ...]
    merged: tuple[tuple[BoundColumn, BoundColumn], ...] = ()  # columns of USING: left, right
    later: tuple[exp.Expr, ...] = ()  # parts that hold sub-selects


def _bind_cross_join(binder: Binder, left: BoundRelation, right: BoundRelation, where: exp.Expr) -> BoundRelation:
    return _join_relations(binder, left, right, "INNER", where, _JoinCondition(()))


def bind_join(binder: Binder, left: BoundRelation, join: exp.Join, ctes: Ctes) -> BoundRelation:
    refuse_other_args(join, "this", "on", "using", "side", "kind", "method")
    if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
        return _bind_semi_join(binder, left, join, ctes)
    if isinstance(join.this, exp.Lateral):
        return binder.bind_lateral_join(left, join, ctes)
    side = _join_side(join)
    right = binder.bind_from_item(join.this, ctes)
    return _join_relations(binder, left, right, side, join, _bind_join_condition(binder, join, left, right, side))


def _bind_semi_join(binder: Binder, left: BoundRelation, join: exp.Join, ctes: Ctes) -> BoundRelation:
    """SEMI JOIN keeps the rows that meet a row of the right, ANTI JOIN the others: EXISTS and NOT EXISTS."""
    kind = str(join.args["kind"]).upper()
    if join.args.get("side") or join.args.get("method") or not (join.args.get("on") or join.args.get("using")):
        raise InvalidSyntax(f"{kind} JOIN takes ON or USING, and no side", span=span_of(join))
    right = binder.bind_from_item(join.this, ctes)
    condition = _bind_join_condition(binder, join, left, right, kind)
    require_same_unit(left, replace(right, correlated=condition.parts), (), join)
    met = left.add_mark(replace(right, correlated=condition.parts), binder.namer.reserve_name("met"), None, join)
    left.filter([met if kind == "SEMI" else Not(met)])
    return left


def _join_side(join: exp.Join) -> str:
    side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    is_supported = method in ("", "NATURAL") and side in ("", "LEFT", "RIGHT", "FULL")
    if not is_supported or kind not in ("", "INNER", "OUTER", "CROSS") or (kind == "CROSS" and side):
        words = " ".join(filter(None, (method, side, kind)))
        raise Unsupported(
            f"{words} JOIN over private rows is not supported",
            hint="INNER, LEFT, RIGHT, FULL, CROSS, NATURAL, SEMI and ANTI joins are.",
            span=span_of(join),
        )  # fmt: skip
    if side and not (join.args.get("on") or join.args.get("using") or method):
        raise InvalidSyntax(f"{side} JOIN needs ON or USING", span=span_of(join))
    return side or "INNER"


# --- the condition ---------------------------------------------------------------------------------------------------


def _bind_join_condition(
    binder: Binder, join: exp.Join, left: BoundRelation, right: BoundRelation, side: str
) -> _JoinCondition:
    check_distinct_aliases(left.scope, right.scope, join)
    using = [exp.Column(this=name) for name in join.args.get("using") or ()]
    if str(join.args.get("method") or "").upper() == "NATURAL":
        theirs = {column.name.lower() for column in right.scope.visible_columns()}
        common = dict.fromkeys(c.name.lower() for c in left.scope.visible_columns() if c.name.lower() in theirs)
        using = [exp.column(exp.to_identifier(name)) for name in common]
    if using:
        return _bind_using(using, left, right)
    on = join.args.get("on")
    if on is None:
        return _JoinCondition(())
    scope = Scope(left.scope.sources + right.scope.sources, left.scope.merged + right.scope.merged)
    nodes = split_condition(on)
    later = tuple(node for node in nodes if has_subquery(node))
    if later and side != "INNER":
        raise Unsupported(
            f"a sub-select cannot stand in ON of a {side} JOIN over private rows",
            hint="Join with a sub-select in FROM that has this condition in its WHERE.",
            span=span_of(later[0]),
        )
    bound = (bind_condition(node, scope) for node in nodes if not has_subquery(node))
    return _JoinCondition(tuple(part for each in bound for part in split_shared_equalities(each)), later=later)


def _bind_using(names: list[exp.Column], left: BoundRelation, right: BoundRelation) -> _JoinCondition:
    parts: list[Expr] = []
    merged: list[tuple[BoundColumn, BoundColumn]] = []
    for name in names:
        if not isinstance(name.this, exp.Identifier):  # such as current_user, which is a function
            hint = "A column of that name stands in double quotes."
            raise InvalidSyntax("USING takes names of columns", hint=hint, span=span_of(name))
        sides: list[Expr] = [bind_expr(name, side.scope) for side in (left, right)]
        (left_value, right_value), _ = unify_types(sides, [name, name], "comparison")
        parts.append(Compare("=", left_value, right_value))
        merged.append((left.scope.resolve_column(name), right.scope.resolve_column(name)))
    return _JoinCondition(tuple(parts), tuple(merged))


def split_condition(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that must all hold, as they are written."""
    if isinstance(node, exp.Paren):
        inner = split_condition(node.this)
        return inner if len(inner) > 1 else [node]
    if isinstance(node, exp.And):
        refuse_other_args(node, "this", "expression")
        return [part for side in (node.this, node.expression) for part in split_condition(side)]
    return [node]


def has_subquery(node: exp.Expr) -> bool:
    return any(isinstance(part, exp.Query | exp.Subquery) for part in node.walk())


# --- the join --------------------------------------------------------------------------------------------------------


def _join_relations(
    binder: Binder, left: BoundRelation, right: BoundRelation, side: str, where: exp.Expr, condition: _JoinCondition
) -> BoundRelation:
    check_distinct_aliases(left.scope, right.scope, where)
    if not left.is_public and not right.is_public and binder.schema.privacy.unit == "row":
        raise NotPrivate(
            "where each row is its own privacy unit, private tables cannot be joined",
            hint="A joined row would belong to two units.",
            span=span_of(where),
        )
    if side == "FULL" and (left.is_public or right.is_public):
        raise Unsupported(
            "FULL JOIN with public rows is not supported",
            detail="It would make rows that belong to no privacy unit.",
            hint="Use LEFT JOIN with the private rows on the left.",
            span=span_of(where),
        )
    if _keeps_public_rows(left, right, side):
        result = _inner_join(binder, left, right, where, condition)
        assert isinstance(result.node, Join)
        public = left if left.is_public else right
        result.node = replace(result.node, unmatched=Unmatched(span_of(where), _count_unmatched_hint(public.scope)))
        return result
    match side:
        case "LEFT":
            return _left_join(left, right, where, condition)
        case "RIGHT":
            return _restore_column_order(
                _left_join(right, left, where, _swap_sides(condition)), left, right, condition, side
            )
        case "FULL":
            return _full_join(binder, left, right, where, condition)
        case _:
            return _inner_join(binder, left, right, where, condition)


def _keeps_public_rows(left: BoundRelation, right: BoundRelation, side: str) -> bool:
    """Whether public rows without a private one would stay: they have no unit (rule 14 of the split)."""
    if left.is_public and not right.is_public:
        return side == "LEFT"
    return right.is_public and not left.is_public and side == "RIGHT"


def _count_unmatched_hint(public: Scope) -> str:
    name = next((f"{source.alias}.{column.name}" for source in public.sources for column in source.columns), "p.id")
    return (
        f"Of the others, ask how many there are: count the matched ones by COUNT(DISTINCT {name}) of the JOIN, "
        "and subtract that from the public rows' own count."
    )


def _swap_sides(condition: _JoinCondition) -> _JoinCondition:
    return replace(condition, merged=tuple((right, left) for left, right in condition.merged))


def _inner_join(
    binder: Binder, left: BoundRelation, right: BoundRelation, where: exp.Expr, condition: _JoinCondition
) -> BoundRelation:
    first, second = (right, left) if left.is_public and not right.is_public else (left, right)
    scope = _join_scopes(left.scope, right.scope, [(_merge_equal_columns(a, b), a, b) for a, b in condition.merged])
    before, after = len(left.pieces), len(left.pieces) + len(right.pieces)
    moved = tuple(_shift_pieces(joined, before) for joined in right.joined)
    own: tuple[PrivateJoin, ...] = ()
    if left.pieces and right.pieces:
        says_on = isinstance(where, exp.Join) and bool(where.args.get("on"))
        hint = equate_units_hint(left.scope, right.scope, "ON" if says_on else "WHERE")
        own = (PrivateJoin(where, range(before), range(before, after), hint),)
    result = BoundRelation(
        node=Join(first.node, second.node, JoinKind.INNER, join_conjuncts(condition.parts)),
        scope=scope,
        pieces=left.pieces + right.pieces,
        known=left.known + right.known + condition.parts,
        joined=left.joined + moved + own,
        told=binder.told,
    )
    if condition.later:
        binder.enable_subqueries(result)
        result.filter([bind_condition(node, result.scope) for node in condition.later])
    return result


def _shift_pieces(joined: PrivateJoin, by: int) -> PrivateJoin:
    def shift(pieces: range) -> range:
        return range(pieces.start + by, pieces.stop + by)

    return replace(joined, left=shift(joined.left), right=shift(joined.right))


def _left_join(left: BoundRelation, right: BoundRelation, where: exp.Expr, condition: _JoinCondition) -> BoundRelation:
    """LEFT JOIN: all rows of the left stay, so only they keep what is known of them."""
    pieces = left.pieces
    if not left.is_public and not right.is_public:
        at = _find_equated_piece(left, right, where, condition)
        extended = pieces[at] + tuple(column for piece in right.pieces for column in piece)
        pieces = (*pieces[:at], extended, *pieces[at + 1 :])
    missing = _nullable_scope(right.scope)
    merged = [(a, a, b) for a, b in condition.merged]
    return BoundRelation(
        node=Join(left.node, right.node, JoinKind.LEFT, join_conjuncts(condition.parts)),
        scope=_join_scopes(left.scope, missing, merged),
        pieces=pieces,
        known=left.known,
        joined=left.joined,
        told=left.told,
    )


def _find_equated_piece(left: BoundRelation, right: BoundRelation, where: exp.Expr, condition: _JoinCondition) -> int:
    """The piece of the left whose unit the ON equates to that of all private rows on the right."""
    unit_groups = units_equated(left.pieces + right.pieces, left.known + right.known + condition.parts)
    theirs = set(range(len(left.pieces), len(left.pieces) + len(right.pieces)))
    for group in unit_groups:
        ours = [index for index in sorted(group) if index < len(left.pieces)]
        if theirs <= group and ours:
            return ours[0]
    raise units_not_equated_error(where, _equate_sides_hint(left, right, condition))


def _equate_sides_hint(left: BoundRelation, right: BoundRelation, condition: _JoinCondition) -> str:
    scopes = (left.scope, right.scope)
    return second_unit_hint(scopes, condition.parts) + equate_units_hint(*scopes)


def _full_join(
    binder: Binder, left: BoundRelation, right: BoundRelation, where: exp.Expr, condition: _JoinCondition
) -> BoundRelation:
    unit_groups = units_equated(left.pieces + right.pieces, left.known + right.known + condition.parts)
    sides = [units_equated(side.pieces, side.known) for side in (left, right)]
    if len(unit_groups) > 1 or any(len(side) > 1 for side in sides):
        raise units_not_equated_error(where, _equate_sides_hint(left, right, condition))
    columns = tuple(c.as_nullable() for side in (left, right) for piece in side.pieces for c in piece)
    node = Join(left.node, right.node, JoinKind.FULL, join_conjuncts(condition.parts))
    result = BoundRelation(node, Scope(()), (columns,), told=binder.told)
    merged: list[tuple[BoundColumn, BoundColumn, BoundColumn]] = []
    for left_column, right_column in condition.merged:
        nodes: list[exp.Expr] = [exp.column(left_column.name), exp.column(right_column.name)]
        sides_met, type_ = unify_types([left_column.column, right_column.column], nodes, "USING")
        both = Call("coalesce", tuple(coerce(s, type_, n) for s, n in zip(sides_met, nodes, strict=True)), type_)
        column = result.add_column(binder.namer.reserve_name(left_column.name), both)
        unit = left_column.is_unit and right_column.is_unit
        merged.append(
            (
                BoundColumn(left_column.name, column, unit, left_column.links & right_column.links, unit),
                left_column,
                right_column,
            )
        )
    result.pieces = ((*columns, *(m[0] for m in merged)),)
    result.scope = _join_scopes(_nullable_scope(left.scope), _nullable_scope(right.scope), merged)
    return result


def _restore_column_order(
    turned: BoundRelation, left: BoundRelation, right: BoundRelation, condition: _JoinCondition, side: str
) -> BoundRelation:
    """RIGHT JOIN is LEFT JOIN turned around; the order of the columns is as written."""
    assert side == "RIGHT"
    merged = [(b, a, b) for a, b in condition.merged]
    turned.scope = _join_scopes(_nullable_scope(left.scope), right.scope, merged)
    return turned


# --- scopes ----------------------------------------------------------------------------------------------------------


def _join_scopes(left: Scope, right: Scope, merged: Sequence[tuple[BoundColumn, BoundColumn, BoundColumn]]) -> Scope:
    """Both sides; of each column of USING the merged one takes the place of both."""
    old = {m.column.column.name: m for m in (*left.merged, *right.merged)}
    new: list[MergedColumn] = []
    for column, left_column, right_column in merged:
        hides = {left_column.column.name, right_column.column.name}
        for name in list(hides):
            if name in old:
                hides |= old.pop(name).hides
        new.append(MergedColumn(column, frozenset(hides)))
    return Scope(left.sources + right.sources, (*new, *old.values()))


def _nullable_scope(scope: Scope) -> Scope:
    sources = tuple(SourceScope(s.alias, tuple(c.as_nullable() for c in s.columns)) for s in scope.sources)
    return Scope(sources, tuple(replace(m, column=m.column.as_nullable()) for m in scope.merged))


def _merge_equal_columns(left: BoundColumn, right: BoundColumn) -> BoundColumn:
    """An inner join on equality: what is said of either column is true of both."""
    return replace(
        left,
        is_unit=left.is_unit or right.is_unit,
        links=left.links | right.links,
        parts=left.parts | right.parts,
        one_per_unit=left.one_per_unit or right.one_per_unit,
    )


def check_distinct_aliases(left: Scope, right: Scope, join: exp.Expr) -> None:
    taken = {source.alias.lower() for source in left.sources}
    for source in right.sources:
        if source.alias.lower() in taken:
            raise InvalidSyntax(
                f'table name "{source.alias}" is used more than once',
                hint=f"Give one of them another name: {source.alias} AS {source.alias}2.",
                span=span_of(join),
                sqlstate="42712",
            )


# The order of inner joins: private rows first, then public rows by their keys.
#
#     FROM nation, supplier, lineitem WHERE s_suppkey = l_suppkey AND s_nationkey = n_nationkey
#     →  (lineitem JOIN supplier ON s_suppkey = l_suppkey) JOIN nation ON s_nationkey = n_nationkey
#
# Inner joins give the same rows in any order. In this one a private row meets one public row at a time wherever a
# condition names a unique key, so that nothing is multiplied that the statement does not multiply.


def order_inner_joins(node: Rows, schema: Schema) -> Rows:
    if isinstance(node, Filter):
        return Filter(order_inner_joins(node.input, schema), node.condition)
    leaves, conditions = _flatten_inner_joins(node)
    if sum(map(is_public, leaves)) == 0 or len(leaves) < 3:
        return node
    private = [leaf for leaf in leaves if not is_public(leaf)]
    waiting = private[1:] + [leaf for leaf in leaves if is_public(leaf)] if private else leaves[1:]
    result = private[0] if private else leaves[0]
    while waiting:
        chosen = min(waiting, key=lambda leaf: _join_rank(leaf, result, conditions, schema))  # the first of equals
        waiting.remove(chosen)
        names = _column_names(result) | _column_names(chosen)
        ready = tuple(part for part in conditions if columns_of(part) <= names)
        conditions = tuple(part for part in conditions if part not in ready)
        result = Join(result, chosen, JoinKind.INNER, join_conjuncts(ready))
    return result


def _flatten_inner_joins(node: Rows) -> tuple[list[Rows], tuple[Expr, ...]]:
    """What a tree of inner joins joins, in order, and all its conditions."""
    if not isinstance(node, Join) or not node.is_inner or node.unmatched is not None:
        return [node], ()
    (left, left_conditions), (right, right_conditions) = (
        _flatten_inner_joins(node.left),
        _flatten_inner_joins(node.right),
    )
    own = () if node.condition == TRUE else split_conjuncts(node.condition)
    return left + right, left_conditions + right_conditions + own


def _join_rank(leaf: Rows, joined: Rows, conditions: tuple[Expr, ...], schema: Schema) -> int:
    """Private rows in their order; then public rows found by a unique key, by another equality, by none."""
    if not is_public(leaf):
        return 0
    equated = _equated_columns(leaf, _column_names(joined), conditions)
    if any(key <= equated for key in _unique_keys(leaf, schema)):
        return 1
    return 2 if equated else 3


def _equated_columns(leaf: Rows, available: frozenset[str], conditions: tuple[Expr, ...]) -> frozenset[str]:
    own = _column_names(leaf)
    equated: set[str] = set()
    for part in conditions:
        if isinstance(part, Compare) and part.op == "=":
            for column, other in ((part.left, part.right), (part.right, part.left)):
                if isinstance(column, Column) and column.name in own and columns_of(other) <= available:
                    equated.add(column.name)
    return frozenset(equated)


def _unique_keys(node: Rows, schema: Schema) -> list[frozenset[str]]:
    """Declared unique keys of public rows, by the plan's names."""
    if isinstance(node, PublicTable):
        table = schema.table(node.table)
        names = {declared: field.name for declared, field in node.columns}
        return [frozenset(names[name] for name in key) for key in (table.unique if table is not None else ())]
    if isinstance(node, Filter):
        return _unique_keys(node.input, schema)
    if isinstance(node, Project):
        renamed = {c.expr.name: c.name for c in node.columns if isinstance(c.expr, Column)}
        return [frozenset(renamed[n] for n in key) for key in _unique_keys(node.input, schema) if key <= renamed.keys()]
    return []  # unknown is right, only slower: what multiplies is counted on the plan that runs


def _column_names(node: Rows) -> frozenset[str]:
    return frozenset(field.name for field in row_fields(node))
