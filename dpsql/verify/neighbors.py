"""Made-up rows, and pairs of neighboring databases of them.

One or more units are heavy: far more rows than their norm, spread over several groups, some of them their own. Beside
them stand a small crowd, and rows that belong to no unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpsql.schema.model import ForeignUnit, Neighbors, OwnUnit, RowUnit
from dpsql.types import TEXT
from dpsql.verify.columns import NULL, Stored, literal, serial
from dpsql.verify.draws import Draws
from dpsql.verify.worlds import Laid, World

Row = tuple[str, ...]
Rows = Mapping[str, tuple[Row, ...]]

UNITS = 32
"""Numbers of units: those that neighbors differ in from 0, the crowd's above them, then those that take the place of
the first, the last one for strays."""
_CROWD, _OTHERS, _STRAY = 6, 16, UNITS - 1


@dataclass(frozen=True)
class Pair:
    """Two neighboring databases; `mixed` is the first one in another order, with other rows that belong to no unit."""

    first: Rows
    second: Rows
    mixed: Rows


def random_pair(world: World, draws: Draws) -> Pair:
    """Neighbors differ in all rows of up to `group_size` units, in every table."""
    if draws.chance(0.3):
        return far_pair(world, draws)
    privacy, public = world.schema.privacy, _public_rows(world, draws)
    crowd = [one_unit(world, draws, _CROWD + n, draws.chance(0.15)) for n in range(draws.between(0, 7))]
    lost = _strays(world, draws)
    one, other = [lost, *crowd], [lost, *crowd]
    for number in range(min(privacy.group_size, _CROWD)):
        unit = one_unit(world, draws, number, draws.chance(0.8))
        place = draws.choice((0, len(crowd)))  # whose row comes first must not show
        if privacy.neighbors is Neighbors.CHANGE_ONE:
            one.insert(place, unit)
            other.insert(place, one_unit(world, draws, _in_place_of(number, draws), draws.chance(0.8)))
        else:
            (one if draws.chance(0.7) else other).insert(place, unit)
    strayed = [unit for unit in one if unit is not lost] + ([_strays(world, draws)] if draws.chance(0.5) else [])
    mixed = _together(world, strayed, public)
    return Pair(
        _together(world, one, public),
        _together(world, other, public),
        {name: tuple(draws.shuffled(rows)) for name, rows in mixed.items()},
    )


def far_pair(world: World, draws: Draws) -> Pair:
    """A group of units at the far end of everything, against none of them or as many at the other end."""
    privacy, public = world.schema.privacy, _public_rows(world, draws)
    norm = min(privacy.contributions.rows or 1, 40)
    rows, high, spread = draws.choice((norm, norm + 1, 7, 40)), draws.chance(0.5), draws.chance(0.4)
    numbers = range(min(privacy.group_size, _CROWD))
    # Others beside them, so that what is cut off in a division is not always the same.
    crowd = [_strays(world, draws), *(one_unit(world, draws, _CROWD + n, False) for n in range(2))]
    if draws.chance(0.5):
        # At one end or the other: a statistic of a few of them goes all the way when a heavy unit comes or leaves.
        crowd += [_far_unit(world, draws, _CROWD + 2 + n, 1, draws.chance(0.5), spread) for n in range(6)]
    one = _together(world, [*crowd, *(_far_unit(world, draws, n, rows, high, spread) for n in numbers)], public)
    changed = []
    if privacy.neighbors is Neighbors.CHANGE_ONE:
        changed = [_far_unit(world, draws, _in_place_of(n, draws), rows, not high, spread) for n in numbers]
    other = _together(world, [*crowd, *changed], public)
    return Pair(one, other, {name: tuple(draws.shuffled(rows)) for name, rows in one.items()})


def _in_place_of(number: int, draws: Draws) -> int:
    """Under change_one a unit has other rows, or makes room for one that was not there: of another id."""
    return number + _OTHERS if draws.chance(0.5) else number


def _together(world: World, units: Sequence[Rows], public: Rows) -> Rows:
    private = {t.name: tuple(row for unit in units for row in unit.get(t.name, ())) for t in world.private}
    return {**private, **public}


# --- one unit --------------------------------------------------------------------------------------------------------


def one_unit(world: World, draws: Draws, number: int, heavy: bool) -> Rows:
    """All rows of one unit; its number makes its ids, so that units never share one."""
    return _rows_of(world, draws, number, lambda laid: _Mixed(draws, laid, heavy), lambda: _count(draws, heavy))


def _far_unit(world: World, draws: Draws, number: int, rows: int, high: bool, spread: bool) -> Rows:
    """Numbers are as low or as high as can be, mostly in one group: it moves a sum furthest."""
    return _rows_of(world, draws, number, lambda laid: _Far(laid, high, spread), lambda: rows)


def _count(draws: Draws, heavy: bool) -> int:
    return draws.choice((6, 9, 17, 40)) if heavy else draws.between(1, 4)


def _rows_of(
    world: World, draws: Draws, number: int, values_for: Callable[[Laid], _Mixed | _Far], count: Callable[[], int]
) -> Rows:
    made: dict[str, tuple[Row, ...]] = {}
    if any(isinstance(laid.table.unit, RowUnit) for laid in world.private):
        laid = draws.choice(world.private)  # a row of any table is a unit
        return {laid.name: (_row(laid, values_for(laid), None, number),)}
    for laid in world.private:
        links = _links(world, laid, made, number, 1 if laid.single else count(), draws)
        if laid.single and draws.chance(0.1) and not _is_all(world):
            links = []  # referred to, but absent
        values = values_for(laid)
        made[laid.name] = tuple(_row(laid, values, link, place * UNITS + number) for place, link in enumerate(links))
    return made


def _is_all(world: World) -> bool:
    """Whether a unit without a row in its own table would be none at all, though their number is public."""
    return world.schema.privacy.neighbors is Neighbors.CHANGE_ONE and len(world.private) == 1


def _links(
    world: World, laid: Laid, made: Mapping[str, tuple[Row, ...]], number: int, count: int, draws: Draws
) -> list[str]:
    """What leads each row to its unit: the unit's own id, or the key of one of its rows in the table referred to."""
    unit = laid.table.unit
    assert isinstance(unit, OwnUnit | ForeignUnit)
    own = laid.stored(unit.column)
    if isinstance(unit, OwnUnit) or world.unit_column(laid) is not None:
        return [serial(own.declared, own.physical, number)] * count
    target = world.laid(unit.table)
    place = [column.name for column in target.columns].index(unit.key)
    keys = [row[place] for row in made[unit.table] if row[place] != NULL]
    if laid.once:
        return draws.sample(keys, count)
    return [draws.choice(keys) for _ in range(count)] if keys else []


def _row(laid: Laid, values: _Mixed | _Far, link: str | None, number: int) -> Row:
    unit = laid.table.unit
    linked = unit.column if isinstance(unit, OwnUnit | ForeignUnit) else None
    drawn = values.row()
    return tuple(
        link if column.name == linked and link is not None
        else serial(column.declared, column.physical, number) if column.name in laid.serials
        else drawn[place]
        for place, column in enumerate(laid.columns)
    )  # fmt: skip


class _Mixed:
    """Rows of one unit in one table: some repeated as they are, some with keys that no one else has."""

    def __init__(self, draws: Draws, laid: Laid, heavy: bool) -> None:
        self._draws, self._laid, self._heavy = draws, laid, heavy
        self._focus = {column.name: draws.choice(column.pool) for column in laid.columns}
        self._last: Row | None = None

    def row(self) -> Row:
        if self._last is None or not self._draws.chance(0.2):
            self._last = tuple(self._value(column) for column in self._laid.columns)
        return self._last

    def _value(self, column: Stored) -> str:
        if column.own and self._heavy and self._draws.chance(0.5):
            return self._draws.choice(column.own)
        # The same extreme again and again moves a sum furthest.
        return self._focus[column.name] if self._draws.chance(0.4) else self._draws.choice(column.pool)


class _Far:
    """Rows whose numbers are all at one end."""

    def __init__(self, laid: Laid, high: bool, spread: bool) -> None:
        self._laid, self._high, self._spread, self._place = laid, high, spread, 0

    def row(self) -> Row:
        self._place += 1
        return tuple(self._value(column) for column in self._laid.columns)

    def _value(self, column: Stored) -> str:
        if column.far:
            return column.far[self._high]
        return column.own[self._place % 3] if column.own and self._spread else column.pool[0]


# --- rows of nobody --------------------------------------------------------------------------------------------------


def _strays(world: World, draws: Draws) -> Rows:
    """Rows that belong to no unit: they must never matter."""
    made: dict[str, tuple[Row, ...]] = {}
    for laid in world.private:
        unit = laid.table.unit
        if isinstance(unit, OwnUnit | ForeignUnit):
            own, values = laid.stored(unit.column), _Mixed(draws, laid, True)
            links = [NULL, NULL, _too_long(own)]
            if world.unit_column(laid) is None:  # a key that no row has
                links.append(serial(own.declared, own.physical, 999 * UNITS + _STRAY))
            if laid.once:
                links = [NULL, NULL]
            made[laid.name] = tuple(
                _row(laid, values, link, place * UNITS + _STRAY) for place, link in enumerate(links)
            )
    return made


def _too_long(column: Stored) -> str:
    """Longer than an id may be, so no id at all."""
    return literal("x" * (column.declared.max_length + 1), TEXT) if column.physical == TEXT else NULL


def _public_rows(world: World, draws: Draws) -> Rows:
    """The same on both sides. A unique key has each value once; other columns repeat."""
    made: dict[str, tuple[Row, ...]] = {}
    for laid in world.public:
        keys = {name: draws.shuffled(laid.stored(name).pool) for name in sorted(laid.serials)}
        most = min((len(pool) for pool in keys.values()), default=6)
        values = _Mixed(draws, laid, False)
        rows = [dict(zip((c.name for c in laid.columns), values.row(), strict=True)) for _ in range(min(most, 6))]
        for name, pool in keys.items():
            distinct = _distinct(laid.stored(name), pool)
            rows = rows[: len(distinct)]
            for place, row in enumerate(rows):
                row[name] = distinct[place]
        made[laid.name] = tuple(tuple(row.values()) for row in rows)
    return made


def _distinct(column: Stored, pool: Sequence[str]) -> list[str]:
    """Texts differ as they stand; other types may be moved onto each other by sanitising, so they are counted."""
    if column.declared.type == TEXT and column.physical == TEXT:
        return [text for text in pool if text != NULL]
    return [serial(column.declared, column.physical, number) for number in range(len(pool))]
