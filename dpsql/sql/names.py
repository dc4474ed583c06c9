"""Which column a name means: sources in scope, matched without regard to case, an exact quoted match first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from difflib import get_close_matches

from sqlglot import exp

from dpsql.errors import AmbiguousColumn, UnknownColumn, UnknownTable
from dpsql.plan.expr import Column
from dpsql.sql.dialect import span_of


@dataclass(frozen=True)
class BoundColumn:
    """A column in scope, under the name that the analyst may use."""

    name: str
    column: Column
    is_unit: bool = False  # equals the id of the row's unit
    refers_to: tuple[str, str] | None = None  # a declared foreign key: table, column
    is_key_of: tuple[str, str] | None = None  # an accepted unique key of its table

    def nullable(self) -> BoundColumn:
        """The same column on the side of an outer join that may be missing."""
        return replace(self, is_unit=False, refers_to=None, is_key_of=None)


@dataclass(frozen=True)
class SourceScope:
    alias: str
    columns: tuple[BoundColumn, ...]


@dataclass
class Namer:
    """Names for the plan's columns: the column's own where it is free."""

    taken: set[str] = field(default_factory=set)

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
    sources: tuple[SourceScope, ...]
    merged: frozenset[str] = frozenset()  # folded names that USING made one

    def columns(self) -> Iterable[BoundColumn]:
        for source in self.sources:
            yield from source.columns

    def resolve(self, node: exp.Column) -> BoundColumn:
        found = self.lookup(node)
        if found is None:
            raise self._unknown(node)
        return found

    def lookup(self, node: exp.Column) -> BoundColumn | None:
        """None where no column has that name; a qualifier that names no source is an error."""
        sources = self.sources
        if node.args.get("catalog") is not None or node.db.lower() not in ("", "public", "main"):
            raise UnknownTable(f'there is no schema "{node.db}"', hint="Write table.column.", span=span_of(node))
        if node.table:
            sources = tuple(source for source in self.sources if same(node.args["table"], source.alias))
            if not sources:
                raise UnknownTable(f'there is no table "{node.table}" in FROM', span=span_of(node))
        identifier = node.this
        matches = [c for source in sources for c in source.columns if c.name == identifier.name]
        if not matches or not identifier.args.get("quoted"):
            folded = [c for source in sources for c in source.columns if c.name.lower() == identifier.name.lower()]
            matches = folded if not identifier.args.get("quoted") or not matches else matches
        if len(matches) > 1 and not (not node.table and identifier.name.lower() in self.merged):
            raise AmbiguousColumn(
                f'column "{identifier.name}" is ambiguous',
                hint="Qualify it with its table: " + " or ".join(_qualified(sources, identifier.name)),
                span=span_of(node),
            )
        return matches[0] if matches else None

    def _unknown(self, node: exp.Column) -> UnknownColumn:
        names = [column.name for column in self.columns()]
        close = get_close_matches(node.name, names, n=1)
        hint = f'Perhaps you meant "{close[0]}".' if close else f"Columns here: {', '.join(names)}."
        return UnknownColumn(f'column "{node.name}" does not exist', hint=hint, span=span_of(node))


def _qualified(sources: tuple[SourceScope, ...], name: str) -> list[str]:
    return [f"{s.alias}.{name}" for s in sources if any(c.name.lower() == name.lower() for c in s.columns)]


def same(identifier: exp.Expr | str, name: str) -> bool:
    """Whether an identifier of the statement means this name."""
    if isinstance(identifier, str):
        return identifier.lower() == name.lower()
    return identifier.name == name or identifier.name.lower() == name.lower()
