"""A relation while it is being bound: expressions that are bound over it may still add columns to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dpsql.compiler.bind.scope import BoundColumn, Scope
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.plan.expressions import (
    TRUE,
    UID,
    Cast,
    Column,
    Compare,
    Expr,
    Literal,
    join_conjuncts,
    split_conjuncts,
    split_shared_equalities,
)
from dpsql.compiler.plan.relations import (
    Filter,
    Join,
    JoinKind,
    Mark,
    Named,
    Project,
    Rows,
    UnitWindow,
    is_public,
    row_fields,
)
from dpsql.compiler.plan.walk import columns_of
from dpsql.errors import NotPrivate, Unsupported


@dataclass(frozen=True)
class PrivateJoin:
    """An inner join of private rows, whose units a later condition may equate."""

    join: exp.Expr
    left: range  # places of the pieces on each side
    right: range
    hint: str


@dataclass
class BoundRelation:
    """Rows and the names under which their columns are in scope.

    `node` and `notices` are to be read when everything over the relation is bound. `pieces` are the private rows joined
    in it, `known` what is true of every row; `correlated` are conditions that read the block around a sub-select too.
    """

    node: Rows
    scope: Scope
    pieces: tuple[UnitColumns, ...] = ()
    known: tuple[Expr, ...] = ()
    joined: tuple[PrivateJoin, ...] = ()
    correlated: tuple[Expr, ...] = ()
    told: list[str] = field(default_factory=list)
    bound: dict[str, Expr] = field(default_factory=dict)  # sub-selects and windows that are in the node, by their text

    @property
    def notices(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.told))

    @property
    def is_public(self) -> bool:
        return is_public(self.node)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(f.name for f in row_fields(self.node))

    def filter(self, conditions: Iterable[Expr]) -> None:
        """Keep the rows that meet all conditions; an equality across an inner join is that join's condition."""
        parts = tuple(part for condition in conditions for part in split_shared_equalities(condition))
        remaining: list[Expr] = []
        for part in parts:
            joined = _push_condition(self.node, part) if isinstance(part, Compare) and part.op == "=" else None
            if joined is None:
                remaining.append(part)
            else:
                self.node = joined
        if remaining:
            self.node = Filter(self.node, join_conjuncts(tuple(remaining)))
        self.known += parts

    def add_column(self, name: str, expr: Expr) -> Column:
        """A computed column beside those that are there."""
        existing = tuple(Named(f.name, Column(f.name, f.type)) for f in row_fields(self.node) if f.name != UID)
        self.node = Project(self.node, (*existing, Named(name, expr)))
        return Column(name, expr.type)

    def add_mark(self, right: BoundRelation, name: str, test: tuple[Expr, Expr] | None, node: exp.Expr) -> Column:
        """Whether a row of the right meets what it says of a row here: EXISTS, or IN where `test` is given."""
        condition = join_conjuncts(right.correlated)
        self._check_nesting_level((condition, *(test or ())), right, node)
        mark = Mark(self.node, right.node, name, condition, test)
        self.node = mark
        return Column(name, row_fields(mark)[-1].type)

    def add_left_join(self, right: Rows, condition: Expr) -> None:
        self.node = Join(self.node, right, JoinKind.LEFT, condition)

    def add_window(self, window: UnitWindow) -> Column:
        self.node = window
        return Column(window.name, window.type)

    def _check_nesting_level(self, exprs: Iterable[Expr], right: BoundRelation, node: exp.Expr) -> None:
        for expr in exprs:
            if not columns_of(expr) <= self.names | right.names:
                raise nesting_level_error(node)

    def require_one_unit(self) -> None:
        """Refuse joins of private rows whose units no condition equated."""
        unit_groups = units_equated(self.pieces, self.known)
        for joined in self.joined:
            ours = [group for group in unit_groups if group & set(joined.left)]
            for index in joined.right:
                if not any(index in group for group in ours):
                    hint = second_unit_hint((self.scope,), self.known) + joined.hint
                    raise units_not_equated_error(joined.join, hint)


def _push_condition(node: Rows, condition: Expr) -> Rows | None:
    """The relation with the condition in the inner join that it spans, where FROM a, b WHERE … has put it.

    Not below a join that was written as LEFT JOIN: what it says of unmatched rows is asked later.
    """
    if isinstance(node, Filter):
        inner = _push_condition(node.input, condition)
        return None if inner is None else replace(node, input=inner)
    if not isinstance(node, Join) or node.unmatched is not None:
        return None
    read = columns_of(condition)
    left, right = ({f.name for f in row_fields(side)} for side in (node.left, node.right))
    if read <= left:
        inner = _push_condition(node.left, condition)
        return None if inner is None else replace(node, left=inner)
    if not node.is_inner:
        return None
    if read <= right:
        inner = _push_condition(node.right, condition)
        return None if inner is None else replace(node, right=inner)
    return replace(node, condition=join_conjuncts((*_conjuncts_of(node.condition), condition)))


def _conjuncts_of(condition: Expr) -> tuple[Expr, ...]:
    return () if condition == TRUE else split_conjuncts(condition)


def nesting_level_error(node: exp.Expr) -> Unsupported:
    return Unsupported(
        "a sub-select may read the block that it stands in, not one further out",
        hint="Join the tables in one FROM, or compare the privacy unit at each level.",
        span=span_of(node),
    )


def units_not_equated_error(node: exp.Expr, hint: str) -> NotPrivate:
    return NotPrivate(
        "a join of private rows must equate their privacy units",
        detail="Otherwise a joined row belongs to two units.",
        hint=hint,
        span=span_of(node),
    )


def equates_unit(relation: BoundRelation, right: BoundRelation, extra: tuple[Expr, ...]) -> bool:
    """Whether a sub-select looks at rows of the outer row's unit only; public rows belong to nobody."""
    if right.is_public and not relation.is_public:
        return True
    facts = relation.known + right.known + right.correlated + extra
    theirs = set(range(len(relation.pieces), len(relation.pieces) + len(right.pieces)))
    return any(theirs <= group and group - theirs for group in units_equated(relation.pieces + right.pieces, facts))


def require_same_unit(relation: BoundRelation, right: BoundRelation, extra: tuple[Expr, ...], node: exp.Expr) -> None:
    """Refuse a sub-select over private rows that may look at other units' rows."""
    if equates_unit(relation, right, extra):
        return
    facts = relation.known + right.known + right.correlated + extra
    hint = second_unit_hint((relation.scope, right.scope), facts) + _subquery_unit_hint(relation.scope, right.scope)
    raise NotPrivate(
        "a sub-select over private rows must equate its privacy unit with the outer one",
        detail="Otherwise one unit's rows decide about another's.",
        hint=hint,
        span=span_of(node),
    )


def _subquery_unit_hint(outer: Scope, inner: Scope) -> str:
    hint = equate_units_hint(inner, outer, "add WHERE").replace(
        "Join on the privacy unit: add", "In the sub-select, add"
    )
    taken = {source.alias.lower() for source in outer.sources}
    clash = next((source.alias for source in inner.sources if source.alias.lower() in taken), None)
    if clash is not None:
        return f'Give "{clash}" in the sub-select another name, and equate the privacy unit of both there.'
    return hint


def equate_units_hint(left: Scope, right: Scope, word: str = "ON") -> str:
    """A condition that would do: columns of both sides that lead to the unit alike."""
    theirs = _linked_columns(right)
    for name, column in sorted(_linked_columns(left), key=lambda linked: not linked[1].is_unit):
        for other_name, other in theirs:
            if column.links & other.links:
                what = "on the privacy unit" if column.is_unit and other.is_unit else "along the foreign key"
                return f"Join {what}: {word} {name} = {other_name}."
    composite = _equate_key_parts(left, right)
    if composite is not None:
        return f"Join along the foreign key: {word} {composite}."
    return "Join along the foreign keys that the schema declares."


def second_unit_hint(scopes: Iterable[Scope], conditions: Iterable[Expr]) -> str:
    """What to say first where a condition equates the unit to a column that names another one, such as a receiver's.

    orders.ship_customer = customers.id, where orders belong to their bill_customer
    """
    sources = [source for scope in scopes for source in scope.sources]
    named = {column.column.name: (source, column) for source in sources for column in source.columns}
    for part in (part for condition in conditions for part in split_conjuncts(condition)):
        terms = (_equality_term(part.left), _equality_term(part.right)) if isinstance(part, Compare) else ()
        found = [named[term] for term in terms if isinstance(term, str) and term in named]
        if len(found) < 2 or not isinstance(part, Compare) or part.op != "=":
            continue
        for (_, unit), (source, other) in (found, found[::-1]):
            own = next((column.name for column in source.columns if column.is_unit), None)
            if unit.is_unit and own is not None and not (other.is_unit or other.links or other.parts):
                return (
                    f'"{source.alias}.{other.name}" is not the privacy unit: a row of "{source.alias}" belongs to that '
                    f'of "{own}", whomever else it names. '
                )
    return ""


def _equate_key_parts(left: Scope, right: Scope) -> str | None:
    ours, theirs = _key_columns(left), _key_columns(right)
    for (*key_of_ours, _), columns in ours.items():
        for (*key_of_theirs, _), others in theirs.items():
            _, key = key_of_ours
            if key_of_ours == key_of_theirs and columns.keys() == others.keys() == set(key):
                return " AND ".join(f"{columns[name]} = {others[name]}" for name in key)
    return None


def _key_columns(scope: Scope) -> dict[tuple[str, tuple[str, ...], int], dict[str, str]]:
    """Where each part of a composite key stands."""
    columns_by_key: dict[tuple[str, tuple[str, ...], int], dict[str, str]] = {}
    for source in scope.sources:
        for column in source.columns:
            for part in column.parts:
                names = columns_by_key.setdefault((part.table, part.key, part.source), {})
                names.setdefault(part.column, f"{source.alias}.{column.name}")
    return columns_by_key


def _linked_columns(scope: Scope) -> list[tuple[str, BoundColumn]]:
    return [(f"{s.alias}.{c.name}", c) for s in scope.sources for c in s.columns if c.links]


# Which rows a condition proves to be of one privacy unit.
#
# A join of private rows must equate the units, directly or along declared foreign keys; what the conditions do not say
# is refused, because adding it silently would change the answer (SOUNDNESS 2).

UnitColumns = tuple[BoundColumn, ...]
"""Columns of rows that are known to belong to one unit."""


def units_equated(pieces: Sequence[UnitColumns], conditions: Iterable[Expr]) -> list[set[int]]:
    """The pieces (by place) that are of one unit in every row in which all of `known` is true.

    Stability: equal values of columns with a link in common lead to one unit (BoundColumn), as do equal values of all
    parts of a composite key, and equality is transitive.
    """
    classes = _UnionFind()
    for condition in conditions:
        for part in split_conjuncts(condition):
            match part:
                case Compare("=", left, right):
                    left_term, right_term = _equality_term(left), _equality_term(right)
                    if left_term is not None and right_term is not None:
                        classes.union(left_term, right_term)
                case _:
                    pass
    together = _UnionFind()
    first_seen: dict[object, int] = {}
    for index, piece in enumerate(pieces):
        for column in piece:
            for link in column.links:
                first = first_seen.setdefault((classes.find_root(column.column.name), link), index)
                together.union(first, index)
        for key in _whole_keys(piece, classes):
            together.union(first_seen.setdefault(key, index), index)
    unit_groups: dict[object, set[int]] = {}
    for index in range(len(pieces)):
        unit_groups.setdefault(together.find_root(index), set()).add(index)
    return list(unit_groups.values())


def _whole_keys(piece: UnitColumns, classes: _UnionFind) -> Iterator[object]:
    """The composite keys of which a source of the piece has all parts, with what these are equal to."""
    parts: dict[tuple[str, tuple[str, ...], int], dict[str, object]] = {}
    for column in piece:
        for part in column.parts:
            root = classes.find_root(column.column.name)
            parts.setdefault((part.table, part.key, part.source), {})[part.column] = root
    for (table, key, _), roots in parts.items():
        if roots.keys() == set(key):
            yield table, key, tuple(roots[name] for name in key)


def _equality_term(expr: Expr) -> object | None:
    """A column's name, or a literal; casts between whole numbers keep values apart, NULL aside."""
    if isinstance(expr, Column):
        return expr.name
    if isinstance(expr, Cast) and expr.type.is_integer and expr.arg.type.is_integer:
        return _equality_term(expr.arg)
    return expr if isinstance(expr, Literal) and expr.value is not None else None


class _UnionFind:
    """Union-find."""

    def __init__(self) -> None:
        self._parent: dict[object, object] = {}

    def find_root(self, member: object) -> object:
        parent = self._parent.setdefault(member, member)
        while parent != member:
            member, parent = parent, self._parent[parent]
        return member

    def union(self, first: object, second: object) -> None:
        self._parent[self.find_root(first)] = self.find_root(second)
