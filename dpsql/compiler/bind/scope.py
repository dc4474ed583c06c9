"""Which column a name means: sources in scope, matched without regard to case, an exact quoted match first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from dpsql.compiler.parse.dialect import IMPLIED_COLUMN_KEY, refuse_other_args, span_of
from dpsql.compiler.plan.expressions import Column, Expr
from dpsql.errors import AmbiguousColumn, LimitExceeded, UnknownColumn, UnknownTable

UnitLink = tuple[str, str]
"""What a column says of its row's unit: the value of (table, key), an accepted unique key that leads to one unit."""


@dataclass(frozen=True)
class KeyPart:
    """A column that is one of several which lead to a unit together: the value of `column` in a row of `table`, whose
    unique key is `key`. `source` tells the tables of FROM apart, since parts of two rows are no key."""

    table: str
    key: tuple[str, ...]
    column: str
    source: int


UNIT_LINK: UnitLink = ("", "")
"""The column's value is the unit's id itself."""

MAX_SOURCES = 200


@dataclass(frozen=True)
class BoundColumn:
    """A column in scope, under the name that the analyst may use.

    Stability: two rows whose columns have a link in common and equal values belong to one unit; so do rows that have
    equal values of all parts of a composite key, each row's from one source. Neither says anything where a value is
    NULL, so both also hold on the side of an outer join that may be missing; `is_unit` does not.
    """

    name: str
    column: Column
    is_unit: bool = False  # equals the id of the row's unit, in every row
    links: frozenset[UnitLink] = frozenset()
    one_per_unit: bool = False  # the same value in all rows of a unit
    may_be_missing: bool = False  # on the side of an outer join that may have no row
    parts: frozenset[KeyPart] = frozenset()

    @property
    def leads_to_unit(self) -> bool:
        """The unit itself, or a key of which every value belongs to one unit: rows with one value are of one unit.

        Rows whose key is NULL are told apart by their units.
        """
        return self.is_unit or (bool(self.links) and not self.may_be_missing)

    def as_nullable(self) -> BoundColumn:
        """The same column on the side of an outer join that may be missing."""
        return replace(self, is_unit=False, one_per_unit=False, may_be_missing=True)

    def with_name(self, name: str, column: Column) -> BoundColumn:
        """The same values under other names."""
        return replace(self, name=name, column=column)


@dataclass(frozen=True)
class SourceScope:
    alias: str
    columns: tuple[BoundColumn, ...]


@dataclass(frozen=True)
class MergedColumn:
    """A column that USING or NATURAL made of one of each side; those can only be named with their table."""

    column: BoundColumn
    hides: frozenset[str]  # names of the plan


@dataclass
class ColumnNamer:
    """Names for the plan's columns: the column's own where it is free."""

    taken: set[str] = field(default_factory=set)
    sources: int = 0

    def count_source(self, node: exp.Expr) -> None:
        """CTEs over private rows are written out at each use, so a chain of them may double each time."""
        self.sources += 1
        if self.sources > MAX_SOURCES:
            raise LimitExceeded(
                f"the statement reads tables, sub-selects and CTEs over private rows more than {MAX_SOURCES} times",
                hint="A CTE counts at each use, with all that it reads.",
                span=span_of(node),
            )

    def reserve_name(self, wanted: str) -> str:
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
    merged: tuple[MergedColumn, ...] = ()
    outer: Scope | None = None
    aliases: Mapping[str, BoundColumn] = field(default_factory=dict)
    inner: Callable[[exp.Expr], Expr] | None = field(default=None, compare=False)

    def iter_columns(self) -> Iterable[BoundColumn]:
        for source in self.sources:
            yield from source.columns

    def visible_columns(self) -> list[BoundColumn]:
        """What `*` means: merged columns first, then the others in order."""
        hidden = self._hidden_names()
        return [m.column for m in self.merged] + [c for c in self.iter_columns() if c.column.name not in hidden]

    def resolve_column(self, node: exp.Column) -> BoundColumn:
        column = self.find_column(node)
        if column is None:
            raise self._unknown_column_error(node)
        return column

    def find_column(self, node: exp.Column) -> BoundColumn | None:
        """None where no column has that name; a qualifier that names no source is an error."""
        if node.args.get("catalog") is not None or node.db.lower() not in ("", "public", "main"):
            raise UnknownTable(f'there is no schema "{node.db}"', hint="Write table.column.", span=span_of(node))
        if node.table:
            return self._find_qualified(node)
        column = self._find_unqualified(node)
        if column is None and self.outer is not None:
            return self.outer.find_column(node)
        return column

    def has_source(self, alias: exp.Expr | str) -> bool:
        return any(matches_identifier(alias, source.alias) for source in self.sources)

    def _find_qualified(self, node: exp.Column) -> BoundColumn | None:
        sources = tuple(source for source in self.sources if matches_identifier(node.args["table"], source.alias))
        if not sources and self.outer is not None:
            return self.outer._find_qualified(node)
        if not sources:
            names = ", ".join(source.alias for source in self.sources)
            raise UnknownTable(f'there is no table "{node.table}" in FROM', span=span_of(node),
                               hint=f"Tables here: {names}." if names else None)  # fmt: skip
        return self._match_column(node, [column for source in sources for column in source.columns])

    def _find_unqualified(self, node: exp.Column) -> BoundColumn | None:
        return self._match_column(node, self.visible_columns()) or self.aliases.get(node.name.lower())

    def _match_column(self, node: exp.Column, columns: list[BoundColumn]) -> BoundColumn | None:
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

    def _hidden_names(self) -> frozenset[str]:
        return frozenset(name for merged in self.merged for name in merged.hides)

    def _unknown_column_error(self, node: exp.Column) -> UnknownColumn:
        names = [column.name for column in self.iter_columns()]
        # A text in double quotes is like some column or other; only a slip of the pen in a name is very like one.
        is_text = node.this.quoted and not node.table and IMPLIED_COLUMN_KEY not in node.meta
        close = get_close_matches(node.name, names, n=1, cutoff=0.85 if is_text else 0.6)
        hint = f'Perhaps you meant "{close[0]}".' if close else f"Columns here: {', '.join(names)}."
        if is_text and not close:
            hint = f"Double quotes are for names; text stands in single quotes: '{node.name}'."
        hint = node.meta.get(IMPLIED_COLUMN_KEY) or hint
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
    return any(isinstance(item, exp.Alias) and matches_identifier(node.this, item.alias) for item in items)


def matches_identifier(identifier: exp.Expr | str, name: str) -> bool:
    """Whether an identifier of the statement means this name."""
    if isinstance(identifier, str):
        return identifier.lower() == name.lower()
    return identifier.name == name or identifier.name.lower() == name.lower()


def is_star(item: exp.Expr) -> bool:
    return isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))


def expand_plain_star(item: exp.Expr, scope: Scope) -> list[BoundColumn]:
    """`*` or `t.*` written out, without the columns of EXCLUDE; columns merged by USING once."""
    star = item.this if isinstance(item, exp.Column) else item
    refuse_other_args(star, "except_")
    return expand_star(item, scope)


def expand_star(item: exp.Expr, scope: Scope) -> list[BoundColumn]:
    """As `expand_plain_star`; the caller reads what REPLACE says."""
    columns, star = scope.visible_columns(), item
    if isinstance(item, exp.Column):
        star = item.this
        chosen = [source for source in scope.sources if matches_identifier(item.args["table"], source.alias)]
        if not chosen:
            raise UnknownTable(f'there is no table "{item.table}" in FROM', span=span_of(item))
        columns = [column for source in chosen for column in source.columns]
    for left_out in star.args.get("except_") or ():
        remaining = [column for column in columns if not matches_identifier(left_out, column.name)]
        if len(remaining) == len(columns):
            raise UnknownColumn(f'column "{left_out.name}" in EXCLUDE does not exist', span=span_of(left_out))
        columns = remaining
    return columns
