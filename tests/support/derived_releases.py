"""Pairs of statements over made-up worlds, and whether what is derived for one from the other is what it would be.

Releases are drawn without noise, so that derived and fresh cells must be equal, to the last unit of the grid.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.compiler.compile import Compiled, ReleaseStep, compile_query
from dpsql.compiler.plan.aggregate import Sum, Weigh
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.reuse.derive import DerivedRelease, derive_release
from dpsql.compiler.reuse.describe import CellKind, shape_from_text, shape_to_text
from dpsql.compiler.rewrite.count_matches import CountsNeeded
from dpsql.compiler.settings import SessionSettings, Settings, change_setting, default_settings
from dpsql.engines.in_memory import InMemoryEngine
from dpsql.errors import Error
from dpsql.privacy.release import Release, perturb, release_from_bytes, release_to_bytes
from dpsql.schema.model import Column, Contributions, Neighbors, Resolved
from dpsql.session.dataset.public_facts import find_facts
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.expressions import ExpressionGenerator, ScopedColumn
from dpsql.verify.generate.from_clauses import FromClauseGenerator
from dpsql.verify.generate.neighbors import random_pair
from dpsql.verify.generate.schemas import GeneratedSchema, generate_from_schema, random_schema
from dpsql.verify.paired_engine import fill_engine
from tests.support.shop import Silence

STORED, ASKED = "1000000", "2000"
"""Epsilons: the stored release is accurate enough for anything that is added up of it."""

MANY = 1000
"""Rows that a unit may count for where norms shall not bite."""


# --- statements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """What was asked before, and what is asked now; `about` says how they differ."""

    stored: str
    asked: str
    about: frozenset[str]


@dataclass(frozen=True)
class WrittenKey:
    sql: str
    kind: str


FUNCTIONS = {
    "text": ("UPPER({0})", "{0} IN ('a', 'k1')", "({0} IS NULL)", "NULLIF({0}, 'a')",
             "CASE WHEN {0} = 'a' THEN 'x' WHEN {0} = 'b' THEN NULL ELSE 'y' END"),
    "number": ("({0}) % 2", "({0} > 0)", "CASE WHEN {0} = 1 THEN 'x' ELSE 'y' END", "{0} + 1", "({0} IS NULL)"),
    "boolean": ("NOT {0}", "COALESCE({0}, FALSE)", "({0} IS NULL)", "CASE WHEN {0} THEN 'yes' END"),
    "time": ("DATE_TRUNC('year', {0})", "EXTRACT(month FROM {0})", "({0} IS NULL)", "CAST({0} AS DATE)"),
}  # fmt: skip
CONDITIONS = {
    "text": ("{0} = 'a'", "{0} IN ('a', 'k1')", "{0} IN ('own0', 'own1', 'a', 'b')", "{0} IS NOT NULL", "{0} <> 'b'",
             "({0} = 'a' OR {0} IS NULL)", "{0} IN ('a', 'b', '', 'it''s', 'k1', '?')", "UPPER({0}) = 'A'"),
    "number": ("{0} = 1", "{0} IN (0, 1)", "{0} > 0", "{0} IS NOT NULL", "{0} <> 2", "{0} >= -100", "{0} IS NULL"),
    "boolean": ("{0}", "NOT {0}", "{0} IS NOT NULL", "{0} IS NULL", "COALESCE({0}, TRUE)"),
    "time": ("{0} IS NOT NULL", "EXTRACT(month FROM {0}) = 2", "{0} = DATE '2020-02-01'",
             "EXTRACT(year FROM {0}) > 2020"),
}  # fmt: skip


class Pairs:
    """Statements over one FROM clause of a world."""

    def __init__(self, draws: ChoiceStream, world: GeneratedSchema) -> None:
        sources = FromClauseGenerator(draws, world)
        self._draws = draws
        self._source = sources.random_from(draws.choice((0, 0, 1, 2)))
        self._write: ExpressionGenerator = sources.expressions_over(self._source)
        x, y = (self._write.random_bounded() for _ in range(2))
        self._pool = ["COUNT(*)", *(f"{f}({z})" for z in (x, y) for f in ("COUNT", "SUM", "AVG", "VAR_POP", "STDDEV"))]
        self._pool += [f"CORR({x}, {y})", f"BOOL_OR({x} > 0)", f"COUNT(DISTINCT {x})", f"SUM(DISTINCT {y})"]
        self._pool += [f"COUNT(*) FILTER (WHERE {x} > 0)", "COUNT(*)"]
        self._pool += [f"COUNT(DISTINCT {unit})" for unit in self._source.units[:1]] * 2

    def pair(self) -> Pair:
        draws, about = self._draws, set[str]()
        keys = list(dict.fromkeys(self._key() for _ in range(draws.choice((0, 1, 1, 2, 2, 3)))))
        where = [self._write.random_condition(0)] if draws.draw_bool(0.2) else []
        held = draws.sample(self._pool, draws.draw_between(1, 4))
        stored = self._statement([key.sql for key in keys], held, where)
        asked_keys: list[str] = []
        for key in keys:
            match draws.draw_below(5):
                case 0 | 1:
                    asked_keys.append(key.sql)
                case 2:
                    about.add("function")
                    asked_keys.append(draws.choice(FUNCTIONS[key.kind]).format(key.sql))
                case _:
                    about.add("rolled up")
        more = list(where)
        if keys and draws.draw_bool(0.5):
            about.add("filtered")
            for key in (draws.choice(keys) for _ in range(draws.choice((1, 1, 2)))):
                more.append(draws.choice(CONDITIONS[key.kind]).format(key.sql))
        same = draws.draw_bool(0.6)
        about.add("some" if same else "others")
        pool = held if same else self._pool
        measures = draws.sample(pool, draws.draw_between(1, min(3, len(pool))))
        return Pair(stored, self._statement(asked_keys, measures, draws.shuffle_items(more)), frozenset(about))

    def _statement(self, keys: list[str], measures: list[str], where: list[str]) -> str:
        said = f" WHERE {' AND '.join(f'({part})' for part in where)}" if where else ""
        grouped = f" GROUP BY {', '.join(keys)}" if keys else ""
        return f"SELECT {', '.join((*keys, *measures))} FROM {self._source.sql}{said}{grouped}"

    def _key(self) -> WrittenKey:
        """Mostly keys with public groups."""
        draws = self._draws
        name = draws.choice(self._source.names)
        one = name.sql
        match name.kind:
            case "number" if not _few(name):
                return draws.choice((
                    WrittenKey(f"({one} > 0)", "boolean"), WrittenKey(f"COALESCE({one} > 1, FALSE)", "boolean"),
                    WrittenKey(f"CASE WHEN {one} < 1 THEN 'a' WHEN {one} < 9 THEN 'b' ELSE 'k1' END", "text"),
                    WrittenKey(f"CAST({one} AS INTEGER) % 3", "number"), WrittenKey(f"({one} IS NULL)", "boolean"),
                ))  # fmt: skip
            case "time":
                unit = draws.choice(("month", "week", "day"))
                return draws.choice((WrittenKey(f"DATE_TRUNC('{unit}', {one})", "time"),
                                     WrittenKey(f"EXTRACT(year FROM {one})", "number"),
                                     WrittenKey(f"CAST({one} AS DATE)", "time")))  # fmt: skip
            case "text":
                return draws.choice((WrittenKey(one, "text"), WrittenKey(f"COALESCE({one}, '?')", "text"),
                                     WrittenKey(f"({one} IN ('k1', 'a'))", "boolean")))  # fmt: skip
            case kind:
                return WrittenKey(one, kind)


def _few(name: ScopedColumn) -> bool:
    domain = name.domain
    return domain.type.is_integer and domain.is_bounded and domain.bounds[1] - domain.bounds[0] < 12


# --- releases --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ground:
    """A world in an engine, and how it is asked."""

    resolved: Resolved
    engine: InMemoryEngine
    settings: Settings

    def compiled(self, sql: str, epsilon: str) -> Compiled | None:
        now = change_setting(SessionSettings(self.settings), self.resolved.schema.privacy, "epsilon", epsilon).statement
        try:
            return compile_query(sql, self.resolved, now)
        except (Error, CountsNeeded):  # or public rows would have to be counted, which a session does
            return None

    def release(self, step: ReleaseStep) -> Release:
        exact = self.engine.run_release(step.sql, len(step.keys), {})
        return release_from_bytes(release_to_bytes(perturb(exact, step.calibrated.spec, Silence())))


@contextmanager
def engine_for_worlds() -> Iterator[InMemoryEngine]:
    engine = InMemoryEngine(1)
    try:
        yield engine
    finally:
        engine.close()


def ground(engine: InMemoryEngine, draws: ChoiceStream, noise: str, biting: bool) -> tuple[Ground, GeneratedSchema]:
    """A random world; norms bite only where that is wanted. NULL is a group of most keys, which may then be dropped."""
    schema = random_schema(draws)
    tables = tuple(replace(t, columns=tuple(_with_null(c, draws) for c in t.columns)) for t in schema.tables)
    caps = schema.privacy.contributions
    bounds = caps if biting else Contributions(MANY, caps.groups)
    privacy = replace(schema.privacy, contributions=bounds, neighbors=Neighbors.ADD_REMOVE, group_size=1)
    world = generate_from_schema(replace(schema, privacy=privacy, tables=tables), draws)
    fill_engine(engine, world, random_pair(world, draws).first)
    facts = {
        laid.name: find_facts(laid.table, laid.table.source, world.physical_types[laid.name], engine.query_rows)
        for laid in world.public_tables
    }
    resolved = replace(world.resolved_schema, public=facts)
    settings = change_setting(default_settings(world.schema.privacy), world.schema.privacy, "noise", noise)
    return Ground(resolved, engine, settings.statement), world


def _with_null(column: Column, draws: ChoiceStream) -> Column:
    listed = column.domain.values is not None or column.domain.is_bounded
    return replace(column, null_group=True) if listed and draws.draw_bool(0.6) else column


# --- comparing -------------------------------------------------------------------------------------------------------


def derived(asked: ReleaseStep, stored: ReleaseStep, release: Release) -> DerivedRelease | None:
    """By way of the text that a ledger keeps."""
    if asked.described is None or stored.described is None:
        return None
    shape = shape_from_text(shape_to_text(stored.described.shape))
    assert shape == stored.described.shape
    return derive_release(asked.described, asked.calibrated, shape, release)


def unlike(asked: ReleaseStep, fresh: Release, found: DerivedRelease, stored: ReleaseStep) -> str | None:
    """Where a derived cell is not what a fresh one is."""
    ours, theirs = set(map(repr, found.release.keys)), set(map(repr, fresh.keys))
    keener = asked.calibrated.selection is not None and ours > theirs  # the stored selection has the lower threshold
    if (ours != theirs and not keener) or len(ours) != len(found.release.keys):
        return f"groups: {found.release.keys} instead of {fresh.keys}"
    places = {key: place for place, key in enumerate(fresh.keys)}
    names = {name: place for place, name in enumerate(found.columns)}
    for column, (cell, grid) in enumerate(zip(asked.calibrated.columns, asked.calibrated.grids, strict=True)):
        if cell not in found.terms:
            continue
        for place, key in ((place, key) for place, key in enumerate(found.release.keys) if key in places):
            told = sum(
                (
                    number * int(found.release.cells[names[name]][place]) * found.release.spec.grids[names[name]]
                    for name, number in found.terms[cell]
                ),
                Fraction(0),
            )
            real = int(fresh.cells[column][places[key]]) * grid
            if told != real and not _clipped_less(asked, stored, cell, told, real):
                return f"{cell} of {key}: {told} instead of {real}"
    return None


def _clipped_less(asked: ReleaseStep, stored: ReleaseStep, cell: str, told: Fraction, real: Fraction) -> bool:
    """A weighed cell, added up over groups in which its units' norms are smaller: each row weighs as much or more."""
    if asked.described is None or stored.described is None:
        return False
    own = next(c for c in asked.described.shape.cells if c is not None and c.name == cell)
    if own.kind is not CellKind.WEIGHED or _norm_keys(asked) == _norm_keys(stored):
        return False
    counts = len(own.form) == 1 and not {"rows", "count"}.isdisjoint(own.form[0][0].split(" ")[:4])
    return told >= real or not counts


def _norm_keys(step: ReleaseStep) -> tuple[str, ...]:
    """Keys over which an L2 norm is taken; an L1 norm is the same over any."""
    assert step.described is not None
    texts = dict(zip((key.name for key in step.keys), (key.text for key in step.described.shape.keys), strict=True))
    for part in step.calibrated.gather.parts:
        if isinstance(part, Sum) and isinstance(part.input, Weigh) and part.input.norm is Norm.L2:
            return tuple(sorted(texts[name] for name in part.input.keys))
    return ()
