"""Joins in FROM. Private rows meet private rows of the same unit, or public rows, which belong to nobody.

Inner joins may be equated by conditions that come later (another ON, or WHERE): they are checked when the block's WHERE
is bound. An outer join must say it in its own ON, since rows that fail it stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dpsql.errors import InvalidSyntax, NotPrivate, Unsupported
from dpsql.plan.expr import Call, Compare, Expr, Not, conjunction
from dpsql.plan.relations import Join, JoinKind
from dpsql.sql.bind_expr import bind_condition, bind_expr
from dpsql.sql.coerce import coerce, meet
from dpsql.sql.dialect import only, span_of
from dpsql.sql.equated import groups
from dpsql.sql.names import BoundColumn, Merged, Scope, SourceScope
from dpsql.sql.relation import Joined, Relation, equate_hint, not_equated, require_unit

if TYPE_CHECKING:
    from dpsql.sql.bind import Binder, Ctes

UNMATCHED = (
    "rows without a privacy unit are not counted: in a LEFT JOIN from public rows to private ones, COUNT(*) counts"
    " matched rows"
)


def join_tree(
    binder: Binder, first: exp.Expr, joins: Sequence[exp.Join], ctes: Ctes
) -> Relation:
    """Sources in FROM, left to right; a comma binds less tightly than JOIN. `first` may be what `joins` hang on."""
    chains: list[tuple[exp.Expr, list[exp.Join], exp.Expr]] = [(first, [], first)]
    for join in joins:
        if _is_comma(join):
            chains.append((join.this, [], join))
        else:
            chains[-1][1].append(join)
    result: Relation | None = None
    for source, chained, where in chains:
        if isinstance(source, exp.Lateral) and isinstance(where, exp.Join) and result is not None:
            result = binder.lateral(result, where, ctes)  # it reads all that stands before the comma
            for join in chained:
                result = bind_join(binder, result, join, ctes)
            continue
        relation = binder.source(source, ctes, alone=source is first)
        for join in chained:
            relation = bind_join(binder, relation, join, ctes)
        result = relation if result is None else _cross(binder, result, relation, where)
    assert result is not None
    return result


def _is_comma(join: exp.Join) -> bool:
    return not any(join.args.get(name) for name in ("on", "using", "side", "kind", "method"))


@dataclass(frozen=True)
class _Condition:
    parts: tuple[Expr, ...]
    merged: tuple[tuple[BoundColumn, BoundColumn], ...] = ()  # columns of USING: left, right
    later: tuple[exp.Expr, ...] = ()  # parts that hold sub-selects


def _cross(binder: Binder, left: Relation, right: Relation, where: exp.Expr) -> Relation:
    return _joined(binder, left, right, "INNER", where, _Condition(()))


def bind_join(binder: Binder, left: Relation, join: exp.Join, ctes: Ctes) -> Relation:
    only(join, "this", "on", "using", "side", "kind", "method")
    if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
        return _kept(binder, left, join, ctes)
    if isinstance(join.this, exp.Lateral):
        return binder.lateral(left, join, ctes)
    side = _side(join)
    right = binder.source(join.this, ctes)
    return _joined(binder, left, right, side, join, _condition(binder, join, left, right, side))


def _kept(binder: Binder, left: Relation, join: exp.Join, ctes: Ctes) -> Relation:
    """SEMI JOIN keeps the rows that meet a row of the right, ANTI JOIN the others: EXISTS and NOT EXISTS."""
    kind = str(join.args["kind"]).upper()
    if join.args.get("side") or join.args.get("method") or not (join.args.get("on") or join.args.get("using")):
        raise InvalidSyntax(f"{kind} JOIN takes ON or USING, and no side", span=span_of(join))
    right = binder.source(join.this, ctes)
    condition = _condition(binder, join, left, right, kind)
    require_unit(left, replace(right, correlated=condition.parts), (), join)
    met = left.add_mark(replace(right, correlated=condition.parts), binder.namer.name("met"), None, join)
    left.filter([met if kind == "SEMI" else Not(met)])
    return left


def _side(join: exp.Join) -> str:
    side, kind, method = (str(join.args.get(name) or "").upper() for name in ("side", "kind", "method"))
    known = method in ("", "NATURAL") and side in ("", "LEFT", "RIGHT", "FULL")
    if not known or kind not in ("", "INNER", "OUTER", "CROSS") or (kind == "CROSS" and side):
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


def _condition(binder: Binder, join: exp.Join, left: Relation, right: Relation, side: str) -> _Condition:
    check_aliases(left.scope, right.scope, join)
    using = [exp.Column(this=name) for name in join.args.get("using") or ()]
    if str(join.args.get("method") or "").upper() == "NATURAL":
        theirs = {column.name.lower() for column in right.scope.visible()}
        common = dict.fromkeys(c.name.lower() for c in left.scope.visible() if c.name.lower() in theirs)
        using = [exp.column(exp.to_identifier(name)) for name in common]
    if using:
        return _using(using, left, right)
    on = join.args.get("on")
    if on is None:
        return _Condition(())
    scope = Scope(left.scope.sources + right.scope.sources, left.scope.merged + right.scope.merged)
    nodes = conjunct_nodes(on)
    later = tuple(node for node in nodes if holds_query(node))
    if later and side != "INNER":
        raise Unsupported(
            f"a sub-select cannot stand in ON of a {side} JOIN over private rows",
            hint="Join with a sub-select in FROM that has this condition in its WHERE.",
            span=span_of(later[0]),
        )
    return _Condition(tuple(bind_condition(node, scope) for node in nodes if not holds_query(node)), later=later)


def _using(names: list[exp.Column], left: Relation, right: Relation) -> _Condition:
    parts: list[Expr] = []
    merged: list[tuple[BoundColumn, BoundColumn]] = []
    for name in names:
        if not isinstance(name.this, exp.Identifier):  # such as current_user, which is a function
            hint = "A column of that name stands in double quotes."
            raise InvalidSyntax("USING takes names of columns", hint=hint, span=span_of(name))
        sides: list[Expr] = [bind_expr(name, side.scope) for side in (left, right)]
        (one, other), _ = meet(sides, [name, name], "comparison")
        parts.append(Compare("=", one, other))
        merged.append((left.scope.resolve(name), right.scope.resolve(name)))
    return _Condition(tuple(parts), tuple(merged))


def conjunct_nodes(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a condition that must all hold, as they are written."""
    if isinstance(node, exp.Paren):
        inner = conjunct_nodes(node.this)
        return inner if len(inner) > 1 else [node]
    if isinstance(node, exp.And):
        only(node, "this", "expression")
        return [part for side in (node.this, node.expression) for part in conjunct_nodes(side)]
    return [node]


def holds_query(node: exp.Expr) -> bool:
    return any(isinstance(part, exp.Query | exp.Subquery) for part in node.walk())


# --- the join --------------------------------------------------------------------------------------------------------


def _joined(
    binder: Binder, left: Relation, right: Relation, side: str, where: exp.Expr, condition: _Condition
) -> Relation:
    check_aliases(left.scope, right.scope, where)
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
    if _keeps_public(left, right, side):
        binder.told.append(UNMATCHED)
        side = "INNER"
    match side:
        case "LEFT":
            return _outer(left, right, where, condition)
        case "RIGHT":
            return _in_order(_outer(right, left, where, _turned(condition)), left, right, condition, side)
        case "FULL":
            return _full(binder, left, right, where, condition)
        case _:
            return _inner(binder, left, right, where, condition)


def _keeps_public(left: Relation, right: Relation, side: str) -> bool:
    """Whether public rows without a private one would stay: they have no unit (rule 14 of the split)."""
    if left.is_public and not right.is_public:
        return side == "LEFT"
    return right.is_public and not left.is_public and side == "RIGHT"


def _turned(condition: _Condition) -> _Condition:
    return replace(condition, merged=tuple((right, left) for left, right in condition.merged))


def _inner(
    binder: Binder, left: Relation, right: Relation, where: exp.Expr, condition: _Condition
) -> Relation:
    first, second = (right, left) if left.is_public and not right.is_public else (left, right)
    scope = _scope(left.scope, right.scope, [(_either(a, b), a, b) for a, b in condition.merged])
    before, after = len(left.pieces), len(left.pieces) + len(right.pieces)
    moved = tuple(_moved(joined, before) for joined in right.joined)
    own: tuple[Joined, ...] = ()
    if left.pieces and right.pieces:
        says_on = isinstance(where, exp.Join) and bool(where.args.get("on"))
        hint = equate_hint(left.scope, right.scope, "ON" if says_on else "WHERE")
        own = (Joined(where, range(before), range(before, after), hint),)
    result = Relation(
        node=Join(first.node, second.node, JoinKind.INNER, conjunction(condition.parts)),
        scope=scope,
        pieces=left.pieces + right.pieces,
        known=left.known + right.known + condition.parts,
        joined=left.joined + moved + own,
        told=binder.told,
    )
    if condition.later:
        binder.open(result)
        result.filter([bind_condition(node, result.scope) for node in condition.later])
    return result


def _moved(joined: Joined, by: int) -> Joined:
    def shift(places: range) -> range:
        return range(places.start + by, places.stop + by)

    return replace(joined, left=shift(joined.left), right=shift(joined.right))


def _outer(left: Relation, right: Relation, where: exp.Expr, condition: _Condition) -> Relation:
    """LEFT JOIN: all rows of the left stay, so only they keep what is known of them."""
    pieces = left.pieces
    if not left.is_public and not right.is_public:
        at = _attached(left, right, where, condition)
        extended = pieces[at] + tuple(column for piece in right.pieces for column in piece)
        pieces = (*pieces[:at], extended, *pieces[at + 1 :])
    missing = _missing(right.scope)
    merged = [(a, a, b) for a, b in condition.merged]
    return Relation(
        node=Join(left.node, right.node, JoinKind.LEFT, conjunction(condition.parts)),
        scope=_scope(left.scope, missing, merged),
        pieces=pieces,
        known=left.known,
        joined=left.joined,
        told=left.told,
    )


def _attached(left: Relation, right: Relation, where: exp.Expr, condition: _Condition) -> int:
    """The piece of the left whose unit the ON equates to that of all private rows on the right."""
    found = groups(left.pieces + right.pieces, left.known + right.known + condition.parts)
    theirs = set(range(len(left.pieces), len(left.pieces) + len(right.pieces)))
    for group in found:
        ours = [place for place in sorted(group) if place < len(left.pieces)]
        if theirs <= group and ours:
            return ours[0]
    raise not_equated(where, equate_hint(left.scope, right.scope))


def _full(binder: Binder, left: Relation, right: Relation, where: exp.Expr, condition: _Condition) -> Relation:
    found = groups(left.pieces + right.pieces, left.known + right.known + condition.parts)
    sides = [groups(side.pieces, side.known) for side in (left, right)]
    if len(found) > 1 or any(len(side) > 1 for side in sides):
        raise not_equated(where, equate_hint(left.scope, right.scope))
    columns = tuple(c.nullable() for side in (left, right) for piece in side.pieces for c in piece)
    node = Join(left.node, right.node, JoinKind.FULL, conjunction(condition.parts))
    result = Relation(node, Scope(()), (columns,), told=binder.told)
    merged: list[tuple[BoundColumn, BoundColumn, BoundColumn]] = []
    for one, other in condition.merged:
        nodes: list[exp.Expr] = [exp.column(one.name), exp.column(other.name)]
        sides_met, type_ = meet([one.column, other.column], nodes, "USING")
        both = Call("coalesce", tuple(coerce(s, type_, n) for s, n in zip(sides_met, nodes, strict=True)), type_)
        column = result.add_column(binder.namer.name(one.name), both)
        unit = one.is_unit and other.is_unit
        merged.append((BoundColumn(one.name, column, unit, one.links & other.links, unit), one, other))
    result.pieces = ((*columns, *(m[0] for m in merged)),)
    result.scope = _scope(_missing(left.scope), _missing(right.scope), merged)
    return result


def _in_order(turned: Relation, left: Relation, right: Relation, condition: _Condition, side: str) -> Relation:
    """RIGHT JOIN is LEFT JOIN turned around; the order of the columns is as written."""
    assert side == "RIGHT"
    merged = [(b, a, b) for a, b in condition.merged]
    turned.scope = _scope(_missing(left.scope), right.scope, merged)
    return turned


# --- scopes ----------------------------------------------------------------------------------------------------------


def _scope(left: Scope, right: Scope, merged: Sequence[tuple[BoundColumn, BoundColumn, BoundColumn]]) -> Scope:
    """Both sides; of each column of USING the merged one takes the place of both."""
    old = {m.column.column.name: m for m in (*left.merged, *right.merged)}
    new: list[Merged] = []
    for column, one, other in merged:
        hides = {one.column.name, other.column.name}
        for name in list(hides):
            if name in old:
                hides |= old.pop(name).hides
        new.append(Merged(column, frozenset(hides)))
    return Scope(left.sources + right.sources, (*new, *old.values()))


def _missing(scope: Scope) -> Scope:
    sources = tuple(SourceScope(s.alias, tuple(c.nullable() for c in s.columns)) for s in scope.sources)
    return Scope(sources, tuple(replace(m, column=m.column.nullable()) for m in scope.merged))


def _either(one: BoundColumn, other: BoundColumn) -> BoundColumn:
    """An inner join on equality: what is said of either column is true of both."""
    return replace(
        one,
        is_unit=one.is_unit or other.is_unit,
        links=one.links | other.links,
        one_per_unit=one.one_per_unit or other.one_per_unit,
    )


def check_aliases(left: Scope, right: Scope, join: exp.Expr) -> None:
    taken = {source.alias.lower() for source in left.sources}
    for source in right.sources:
        if source.alias.lower() in taken:
            raise InvalidSyntax(
                f'table name "{source.alias}" is used more than once',
                hint=f"Give one of them another name: {source.alias} AS {source.alias}2.",
                span=span_of(join),
                sqlstate="42712",
            )
