"""Which column a name means: sources in scope, matched without regard to case, an exact quoted match first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from dpsql.errors import AmbiguousColumn, LimitExceeded, UnknownColumn, UnknownTable
from dpsql.plan.expr import Column, Expr
from dpsql.sql.dialect import IMPLIED, only, span_of

Link = tuple[str, str]
"""What a column says of its row's unit: the value of (table, key), an accepted unique key that leads to one unit."""

UNIT: Link = ("", "")
"""The column's value is the unit's id itself."""

MOST_SOURCES = 200


@dataclass(frozen=True)
class BoundColumn:
    """A column in scope, under the name that the analyst may use.

    Stability: two rows whose columns have a link in common and equal values belong to one unit. A link says nothing
    where the value is NULL, so it also holds on the side of an outer join that may be missing; `is_unit` does not.
    """

    name: str
    column: Column
    is_unit: bool = False  # equals the id of the row's unit, in every row
    links: frozenset[Link] = frozenset()
    one_per_unit: bool = False  # the same value in all rows of a unit
    may_be_missing: bool = False  # on the side of an outer join that may have no row

    @property
    def leads_to_unit(self) -> bool:
        """The unit itself, or a key of which every value belongs to one unit: rows with one value are of one unit.

        Rows whose key is NULL are told apart by their units.
        """
        return self.is_unit or (bool(self.links) and not self.may_be_missing)

    def nullable(self) -> BoundColumn:
        """The same column on the side of an outer join that may be missing."""
        return replace(self, is_unit=False, one_per_unit=False, may_be_missing=True)

    def renamed(self, name: str, column: Column) -> BoundColumn:
        """The same values under other names."""
        return replace(self, name=name, column=column)


@dataclass(frozen=True)
class SourceScope:
    alias: str
    columns: tuple[BoundColumn, ...]


@dataclass(frozen=True)
class Merged:
    """A column that USING or NATURAL made of one of each side; those can only be named with their table."""

    column: BoundColumn
    hides: frozenset[str]  # names of the plan


@dataclass
class Namer:
    """Names for the plan's columns: the column's own where it is free."""

    taken: set[str] = field(default_factory=set)
    sources: int = 0

    def count_source(self, node: exp.Expr) -> None:
        """CTEs over private rows are written out at each use, so a chain of them may double each time."""
        self.sources += 1
        if self.sources > MOST_SOURCES:
            raise LimitExceeded(
                f"the statement reads tables, sub-selects and CTEs over private rows more than {MOST_SOURCES} times",
                hint="A CTE counts at each use, with all that it reads.",
                span=span_of(node),
            )

    def name(self, wanted: str) -> str:
        base = "column" + wanted if wanted.startswith("_") else wanted
        name, number = base, 1
        while name.lower() in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name.lower())
        return name


@dataclass(frozen=True)
class Scope:
    """`outer` is the block around a sub-select; `aliases` are output columns that later ones may name.

    `inner` binds sub-selects and window functions: it puts what they need into the relation that is being bound.
    """

    sources: tuple[SourceScope, ...]
    merged: tuple[Merged, ...] = ()
    outer: Scope | None = None
    aliases: Mapping[str, BoundColumn] = field(default_factory=dict)
    inner: Callable[[exp.Expr], Expr] | None = field(default=None, compare=False)

    def columns(self) -> Iterable[BoundColumn]:
        for source in self.sources:
            yield from source.columns

    def visible(self) -> list[BoundColumn]:
        """What `*` means: merged columns first, then the others in order."""
        hidden = self._hidden()
        return [m.column for m in self.merged] + [c for c in self.columns() if c.column.name not in hidden]

    def resolve(self, node: exp.Column) -> BoundColumn:
        found = self.lookup(node)
        if found is None:
            raise self._unknown(node)
        return found

    def lookup(self, node: exp.Column) -> BoundColumn | None:
        """None where no column has that name; a qualifier that names no source is an error."""
        if node.args.get("catalog") is not None or node.db.lower() not in ("", "public", "main"):
            raise UnknownTable(f'there is no schema "{node.db}"', hint="Write table.column.", span=span_of(node))
        if node.table:
            return self._qualified(node)
        found = self._unqualified(node)
        if found is None and self.outer is not None:
            return self.outer.lookup(node)
        return found

    def has_source(self, alias: exp.Expr | str) -> bool:
        return any(same(alias, source.alias) for source in self.sources)

    def _qualified(self, node: exp.Column) -> BoundColumn | None:
        sources = tuple(source for source in self.sources if same(node.args["table"], source.alias))
        if not sources and self.outer is not None:
            return self.outer._qualified(node)
        if not sources:
            names = ", ".join(source.alias for source in self.sources)
            raise UnknownTable(f'there is no table "{node.table}" in FROM', span=span_of(node),
                               hint=f"Tables here: {names}." if names else None)  # fmt: skip
        return self._one(node, [column for source in sources for column in source.columns])

    def _unqualified(self, node: exp.Column) -> BoundColumn | None:
        return self._one(node, self.visible()) or self.aliases.get(node.name.lower())

    def _one(self, node: exp.Column, columns: list[BoundColumn]) -> BoundColumn | None:
        identifier = node.this
        exact = [column for column in columns if column.name == identifier.name]
        matches = [column for column in columns if column.name.lower() == identifier.name.lower()]
        if identifier.args.get("quoted") and exact:
            matches = exact
        if len(matches) > 1:
            qualified = self._qualified_names(identifier.name)
            raise AmbiguousColumn(
                f'column "{identifier.name}" is ambiguous',
                hint=f"Qualify it with its table: {' or '.join(qualified)}" if qualified else None,
                span=span_of(node),
            )
        return matches[0] if matches else None

    def _hidden(self) -> frozenset[str]:
        return frozenset(name for merged in self.merged for name in merged.hides)

    def _unknown(self, node: exp.Column) -> UnknownColumn:
        names = [column.name for column in self.columns()]
        # A text in double quotes is like some column or other; only a slip of the pen in a name is very like one.
        is_text = node.this.quoted and not node.table and IMPLIED not in node.meta
        close = get_close_matches(node.name, names, n=1, cutoff=0.85 if is_text else 0.6)
        hint = f'Perhaps you meant "{close[0]}".' if close else f"Columns here: {', '.join(names)}."
        if is_text and not close:
            hint = f"Double quotes are for names; text stands in single quotes: '{node.name}'."
        hint = node.meta.get(IMPLIED) or hint
        if _is_alias_in_where(node):
            hint = "GROUP BY, HAVING and ORDER BY know an alias; in WHERE write out what it stands for."
        return UnknownColumn(f'column "{node.name}" does not exist', hint=hint, span=span_of(node))

    def _qualified_names(self, name: str) -> list[str]:
        return [f"{s.alias}.{name}" for s in self.sources if any(c.name.lower() == name.lower() for c in s.columns)]


def _is_alias_in_where(node: exp.Column) -> bool:
    """Whether a name in WHERE is that of an output column, which is not there yet."""
    where = node.find_ancestor(exp.Where, exp.Select)
    if not isinstance(where, exp.Where) or node.table or where.parent is None:
        return False
    items = where.parent.expressions
    return any(isinstance(item, exp.Alias) and same(node.this, item.alias) for item in items)


def same(identifier: exp.Expr | str, name: str) -> bool:
    """Whether an identifier of the statement means this name."""
    if isinstance(identifier, str):
        return identifier.lower() == name.lower()
    return identifier.name == name or identifier.name.lower() == name.lower()


def is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def star_columns(item: exp.Expr, scope: Scope) -> list[BoundColumn]:
    """`*` or `t.*` written out, without the columns of EXCLUDE; columns merged by USING once."""
    star = item.this if isinstance(item, exp.Column) else item
    only(star, "except_")
    return starred(item, scope)


def starred(item: exp.Expr, scope: Scope) -> list[BoundColumn]:
    """As `star_columns`; the caller reads what REPLACE says."""
    columns, star = scope.visible(), item
    if isinstance(item, exp.Column):
        star = item.this
        chosen = [source for source in scope.sources if same(item.args["table"], source.alias)]
        if not chosen:
            raise UnknownTable(f'there is no table "{item.table}" in FROM', span=span_of(item))
        columns = [column for source in chosen for column in source.columns]
    for left_out in star.args.get("except_") or ():
        kept = [column for column in columns if not same(left_out, column.name)]
        if len(kept) == len(columns):
            raise UnknownColumn(f'column "{left_out.name}" in EXCLUDE does not exist', span=span_of(left_out))
        columns = kept
    return columns
