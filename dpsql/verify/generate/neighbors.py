"""Made-up rows, and pairs of neighboring databases of them.

One or more units are heavy: far more rows than their norm, spread over several groups, some of them their own. Beside
them stand a small crowd, and rows that belong to no unit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dpsql.schema.model import ForeignUnit, Neighbors, OwnUnit, RowUnit, unit_columns_of
from dpsql.types import TEXT
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.columns import NULL, StoredColumn, quote_literal, serial_literal
from dpsql.verify.generate.schemas import GeneratedSchema, StoredTable

RowLiterals = tuple[str, ...]
TableRows = Mapping[str, tuple[RowLiterals, ...]]

MAX_UNITS = 32
"""Numbers of units: those that neighbors differ in from 0, the crowd's above them, then those that take the place of
the first, the last one for strays."""
_FIRST_CROWD_UNIT, _REPLACEMENT_OFFSET, _STRAY_UNIT = 6, 16, MAX_UNITS - 1


@dataclass(frozen=True)
class NeighborPair:
    """Two neighboring databases; `mixed` is the first one in another order, with other rows that belong to no unit."""

    first: TableRows
    second: TableRows
    mixed: TableRows


def random_pair(generated: GeneratedSchema, choices: ChoiceStream) -> NeighborPair:
    """Neighbors differ in all rows of up to `group_size` units, in every table."""
    if choices.draw_bool(0.3):
        return extreme_pair(generated, choices)
    privacy, public = generated.schema.privacy, _public_rows(generated, choices)
    crowd = [
        random_unit_rows(generated, choices, _FIRST_CROWD_UNIT + n, choices.draw_bool(0.15))
        for n in range(choices.draw_between(0, 7))
    ]
    stray_rows = _stray_rows(generated, choices)
    first, second = [stray_rows, *crowd], [stray_rows, *crowd]
    for number in range(min(privacy.group_size, _FIRST_CROWD_UNIT)):
        unit = random_unit_rows(generated, choices, number, choices.draw_bool(0.8))
        index = choices.choice((0, len(crowd)))  # whose row comes first must not show
        if privacy.neighbors is Neighbors.CHANGE_ONE:
            first.insert(index, unit)
            second.insert(
                index,
                random_unit_rows(generated, choices, _replacement_number(number, choices), choices.draw_bool(0.8)),
            )
        else:
            (first if choices.draw_bool(0.7) else second).insert(index, unit)
    units_with_new_strays = [unit for unit in first if unit is not stray_rows] + (
        [_stray_rows(generated, choices)] if choices.draw_bool(0.5) else []
    )
    mixed = _merge_units(generated, units_with_new_strays, public)
    return NeighborPair(
        _merge_units(generated, first, public),
        _merge_units(generated, second, public),
        {name: tuple(choices.shuffle_items(rows)) for name, rows in mixed.items()},
    )


def extreme_pair(generated: GeneratedSchema, choices: ChoiceStream) -> NeighborPair:
    """A group of units at the far end of everything, against none of them or as many at the other end."""
    privacy, public = generated.schema.privacy, _public_rows(generated, choices)
    norm = min(privacy.contributions.rows or 1, 40)
    rows, high, spread = choices.choice((norm, norm + 1, 7, 40)), choices.draw_bool(0.5), choices.draw_bool(0.4)
    numbers = range(min(privacy.group_size, _FIRST_CROWD_UNIT))
    # Others beside them, so that what is cut off in a division is not always the same.
    crowd = [
        _stray_rows(generated, choices),
        *(random_unit_rows(generated, choices, _FIRST_CROWD_UNIT + n, False) for n in range(2)),
    ]
    if choices.draw_bool(0.5):
        # At one end or the other: a statistic of a few of them goes all the way when a heavy unit comes or leaves.
        crowd += [
            _extreme_unit_rows(generated, choices, _FIRST_CROWD_UNIT + 2 + n, 1, choices.draw_bool(0.5), spread)
            for n in range(6)
        ]
    first = _merge_units(
        generated, [*crowd, *(_extreme_unit_rows(generated, choices, n, rows, high, spread) for n in numbers)], public
    )
    changed = []
    if privacy.neighbors is Neighbors.CHANGE_ONE:
        changed = [
            _extreme_unit_rows(generated, choices, _replacement_number(n, choices), rows, not high, spread)
            for n in numbers
        ]
    second = _merge_units(generated, [*crowd, *changed], public)
    return NeighborPair(first, second, {name: tuple(choices.shuffle_items(rows)) for name, rows in first.items()})


def _replacement_number(number: int, choices: ChoiceStream) -> int:
    """Under change_one a unit has other rows, or makes room for one that was not there: of another id."""
    return number + _REPLACEMENT_OFFSET if choices.draw_bool(0.5) else number


def _merge_units(generated: GeneratedSchema, units: Sequence[TableRows], public: TableRows) -> TableRows:
    private = {t.name: tuple(row for unit in units for row in unit.get(t.name, ())) for t in generated.private_tables}
    return {**private, **public}


# --- one unit --------------------------------------------------------------------------------------------------------


def random_unit_rows(generated: GeneratedSchema, choices: ChoiceStream, number: int, heavy: bool) -> TableRows:
    """All rows of one unit; its number makes its ids, so that units never share one."""
    return _build_unit_rows(
        generated,
        choices,
        number,
        lambda stored: _RandomValues(choices, stored, heavy),
        lambda: _random_row_count(choices, heavy),
    )


def _extreme_unit_rows(
    generated: GeneratedSchema, choices: ChoiceStream, number: int, rows: int, high: bool, spread: bool
) -> TableRows:
    """Numbers are as low or as high as can be, mostly in one group: it moves a sum furthest."""
    return _build_unit_rows(
        generated, choices, number, lambda stored: _ExtremeValues(stored, high, spread), lambda: rows
    )


def _random_row_count(choices: ChoiceStream, heavy: bool) -> int:
    return choices.choice((6, 9, 17, 40)) if heavy else choices.draw_between(1, 4)


def _build_unit_rows(
    generated: GeneratedSchema,
    choices: ChoiceStream,
    number: int,
    values_for: Callable[[StoredTable], _RandomValues | _ExtremeValues],
    count: Callable[[], int],
) -> TableRows:
    rows_by_table: dict[str, tuple[RowLiterals, ...]] = {}
    if any(isinstance(stored.table.unit, RowUnit) for stored in generated.private_tables):
        stored = choices.choice(generated.private_tables)  # a row of any table is a unit
        return {stored.name: (_build_row(stored, values_for(stored), None, number),)}
    for stored in generated.private_tables:
        links = _link_values(generated, stored, rows_by_table, number, 1 if stored.single else count(), choices)
        if stored.single and choices.draw_bool(0.1) and not _is_only_table(generated):
            links = []  # referred to, but absent
        values = values_for(stored)
        rows_by_table[stored.name] = tuple(
            _build_row(stored, values, link, index * MAX_UNITS + number) for index, link in enumerate(links)
        )
    return rows_by_table


def _is_only_table(generated: GeneratedSchema) -> bool:
    """Whether a unit without a row in its own table would be none at all, though their number is public."""
    return generated.schema.privacy.neighbors is Neighbors.CHANGE_ONE and len(generated.private_tables) == 1


def _link_values(
    generated: GeneratedSchema,
    stored: StoredTable,
    rows_by_table: Mapping[str, tuple[RowLiterals, ...]],
    number: int,
    count: int,
    choices: ChoiceStream,
) -> list[RowLiterals]:
    """What leads each row to its unit: the unit's own id, or the key of one of its rows in the table referred to."""
    unit = stored.table.unit
    assert isinstance(unit, OwnUnit | ForeignUnit)
    unit_column = stored.column_named(unit.column)
    if isinstance(unit, OwnUnit) or generated.unit_column(stored) is not None:
        return [(serial_literal(unit_column.declared, unit_column.physical, number),)] * count
    target = generated.table_named(unit.table)
    indexes = [[column.name for column in target.columns].index(key) for key in unit.keys]
    keys = [tuple(row[index] for index in indexes) for row in rows_by_table[unit.table]]
    keys = [key for key in keys if NULL not in key]  # one that is too long is kept: it finds nothing
    if stored.once:
        return choices.sample(keys, count)
    return [choices.choice(keys) for _ in range(count)] if keys else []


def _build_row(
    stored: StoredTable, values: _RandomValues | _ExtremeValues, link: RowLiterals | None, number: int
) -> RowLiterals:
    linked = {} if link is None else dict(zip(unit_columns_of(stored.table), link, strict=True))
    drawn = values.next_row()
    keys = _key_literals(stored, number)
    if stored.halves and values.breaks_key():  # units may share it as it is stored, but it is no key
        half = min(map(stored.column_named, stored.halves[0]), key=lambda column: column.physical != TEXT)
        keys[half.name] = _overlong_id(half)
    return tuple(
        linked[column.name] if column.name in linked
        else keys[column.name] if column.name in keys
        else drawn[index]
        for index, column in enumerate(stored.columns)
    )  # fmt: skip


def _key_literals(stored: StoredTable, number: int) -> dict[str, str]:
    """What makes a row's keys, from its number: how many rows its unit has before it, and the unit's own number."""
    index, unit = divmod(number, MAX_UNITS)
    own = unit + MAX_UNITS * (index % 3)
    told = unit % 2 if stored.shared or unit == _STRAY_UNIT else own
    numbers: dict[str, int | None] = dict.fromkeys(stored.determining, told if index % 5 < 4 else None)
    for first, second in stored.halves:
        # Each half is that of other units too; beside one that determines the unit, the other one is.
        determined = first in stored.determining and not stored.shared
        numbers |= {first: own if determined else (index + unit) % MAX_UNITS, second: index}
    numbers |= dict.fromkeys(stored.serials, number)
    return {name: _number_literal(stored.column_named(name), n) for name, n in numbers.items()}


def _number_literal(column: StoredColumn, number: int | None) -> str:
    return NULL if number is None else serial_literal(column.declared, column.physical, number)


class _RandomValues:
    """Rows of one unit in one table: some repeated as they are, some with keys that no one else has."""

    def __init__(self, choices: ChoiceStream, stored: StoredTable, heavy: bool) -> None:
        self._choices, self._stored, self._heavy = choices, stored, heavy
        self._focus = {column.name: choices.choice(column.pool) for column in stored.columns}
        self._last: RowLiterals | None = None

    def breaks_key(self) -> bool:
        """Whether the row has a composite key that is none once it is sanitised."""
        return self._choices.draw_bool(0.1)

    def next_row(self) -> RowLiterals:
        if self._last is None or not self._choices.draw_bool(0.2):
            self._last = tuple(self._choose_value(column) for column in self._stored.columns)
        return self._last

    def _choose_value(self, column: StoredColumn) -> str:
        if column.own and self._heavy and self._choices.draw_bool(0.5):
            return self._choices.choice(column.own)
        # The same extreme again and again moves a sum furthest.
        return self._focus[column.name] if self._choices.draw_bool(0.4) else self._choices.choice(column.pool)


class _ExtremeValues:
    """Rows whose numbers are all at one end."""

    def __init__(self, stored: StoredTable, high: bool, spread: bool) -> None:
        self._stored, self._high, self._spread, self._row_index = stored, high, spread, 0

    def breaks_key(self) -> bool:
        return False

    def next_row(self) -> RowLiterals:
        self._row_index += 1
        return tuple(self._choose_value(column) for column in self._stored.columns)

    def _choose_value(self, column: StoredColumn) -> str:
        if column.far:
            return column.far[self._high]
        return column.own[self._row_index % 3] if column.own and self._spread else column.pool[0]


# --- rows of nobody --------------------------------------------------------------------------------------------------


def _stray_rows(generated: GeneratedSchema, choices: ChoiceStream) -> TableRows:
    """Rows that belong to no unit: they must never matter."""
    rows_by_table: dict[str, tuple[RowLiterals, ...]] = {}
    for stored in generated.private_tables:
        unit = stored.table.unit
        if isinstance(unit, OwnUnit | ForeignUnit):
            columns = [stored.column_named(name) for name in unit_columns_of(stored.table)]
            values, nothing = _RandomValues(choices, stored, True), (NULL,) * len(columns)
            links = [nothing, nothing, tuple(map(_overlong_id, columns))]
            if generated.unit_column(stored) is None:  # a key that no row has, though rows have its halves
                absent = 999 * MAX_UNITS + _STRAY_UNIT
                link, present = (
                    tuple(serial_literal(column.declared, column.physical, number) for column in columns)
                    for number in (absent, 0)
                )
                links.append(link)
                if len(columns) > 1:
                    links += [
                        (*link[:at], half, *link[at + 1 :]) for at, key in enumerate(present) for half in (NULL, key)
                    ]
            if stored.once:
                links = [nothing, nothing]
            rows_by_table[stored.name] = tuple(
                _build_row(stored, values, link, index * MAX_UNITS + _STRAY_UNIT) for index, link in enumerate(links)
            )
    return rows_by_table


def _overlong_id(column: StoredColumn) -> str:
    """Longer than an id may be, so no id at all."""
    return quote_literal("x" * (column.declared.max_length + 1), TEXT) if column.physical == TEXT else NULL


def _public_rows(generated: GeneratedSchema, choices: ChoiceStream) -> TableRows:
    """The same on both sides. A unique key has each value once; other columns repeat."""
    rows_by_table: dict[str, tuple[RowLiterals, ...]] = {}
    for stored in generated.public_tables:
        if not stored.serials:
            rows_by_table[stored.name] = _repeating_rows(stored, choices)
            continue
        keys = {name: choices.shuffle_items(stored.column_named(name).pool) for name in sorted(stored.serials)}
        max_rows = min((len(pool) for pool in keys.values()), default=6)
        values = _RandomValues(choices, stored, False)
        rows = [
            dict(zip((c.name for c in stored.columns), values.next_row(), strict=True)) for _ in range(min(max_rows, 6))
        ]
        for name, pool in keys.items():
            distinct = _distinct_values(stored.column_named(name), pool)
            rows = rows[: len(distinct)]
            for index, row in enumerate(rows):
                row[name] = distinct[index]
        rows_by_table[stored.name] = tuple(tuple(row.values()) for row in rows)
    return rows_by_table


def _repeating_rows(stored: StoredTable, choices: ChoiceStream) -> tuple[RowLiterals, ...]:
    """Rows of a public table without a key: few, or so many that one private row might meet too many of them.

    A limit on that is 1,000 rows: two joins with the middle number of rows come to it, or one with the largest. Words
    that private rows have come several times, most others once.
    """
    count, values = choices.choice((6, 6, 36, 36, 1050)), _RandomValues(choices, stored, True)
    rows = [values.next_row() for _ in range(6 if count == 6 else 10)]
    for _ in range(choices.draw_between(0, 5)):
        cells = zip(stored.columns, values.next_row(), strict=True)
        rows.append(tuple(column.pool[0] if column.own else cell for column, cell in cells))
    while len(rows) < count:
        number, drawn = len(rows), values.next_row()
        cells = zip(stored.columns, drawn, strict=True)
        rows.append(tuple(quote_literal(f"f{number}", TEXT) if column.own else cell for column, cell in cells))
    return tuple(rows)


def _distinct_values(column: StoredColumn, pool: Sequence[str]) -> list[str]:
    """Texts differ as they stand; other types may be moved onto each other by sanitising, so they are counted."""
    if column.declared.type == TEXT and column.physical == TEXT:
        return [text for text in pool if text != NULL]
    return [serial_literal(column.declared, column.physical, number) for number in range(len(pool))]
