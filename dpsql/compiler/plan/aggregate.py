"""The aggregate as it was asked, and the release that runs. Integrity is checked when a node is made.

`Aggregate` over a relation (`relations.py`) is what the binder makes. Rewriting turns it into a `Gather` over
`Sum`, `CountUnits` and `Weigh`, which is what runs and what sensitivity is derived from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod

from dpsql.compiler.plan.bundles import Bundle
from dpsql.compiler.plan.clipped_sums import ClippedSum, CountMeans, CountNorms, Norm
from dpsql.compiler.plan.expressions import ROW, UID, WEIGHT, Expr
from dpsql.compiler.plan.measures import Blocks, Measure
from dpsql.compiler.plan.relations import (
    SET_COLUMN,
    Field,
    Named,
    Rows,
    RowsHole,
    is_public,
    require_distinct_names,
    row_fields,
)
from dpsql.schema.model import Scalar
from dpsql.types import BIGINT


@dataclass(frozen=True)
class Aggregate:
    """What the analyst asks of private rows: a release's keys and measures.

    `sets` are the grouping sets of ROLLUP, CUBE and GROUPING SETS, each by the names of its keys; empty where there is
    one set, that of all keys.
    """

    input: Rows
    keys: tuple[Named, ...]
    measures: tuple[Measure, ...]
    sets: tuple[frozenset[str], ...] = ()

    def __post_init__(self) -> None:
        require_distinct_names([key.name for key in self.keys])
        if not {name for names in self.sets for name in names} <= {key.name for key in self.keys}:
            raise ValueError("a grouping set is made of keys")


def _check_sets(per_set: bool, names: Collection[str]) -> None:
    if per_set and SET_COLUMN not in names:
        raise ValueError("what is done in each grouping set needs its number")


@dataclass(frozen=True)
class Weigh:
    """Adds an integer weight per unit (2^16 is a whole row), so that each unit counts like at most `rows` rows.

    Stability: with n_g the unit's rows in group g, the norm of (weight * n_g) over the groups is at most
    rows * 2^16: the sum for L1, the root of the sum of squares for L2. The weight depends on the unit's
    own rows only. With `per_set`, a unit has a weight in each grouping set, from its rows in that set, and
    the norm is that of one set.
    """

    input: Rows
    keys: tuple[str, ...]
    rows: int
    norm: Norm
    automatic: bool = False  # whether `rows` is chosen from a histogram
    per_set: bool = False

    def __post_init__(self) -> None:
        names = {f.name for f in row_fields(self.input)}
        _check_sets(self.per_set, names)
        if self.rows < 1 or UID not in names or WEIGHT in names or not names.issuperset(self.keys):
            raise ValueError("weights need rows of units and at least one row each")


@dataclass(frozen=True)
class Distinct:
    """The distinct pairs of (group, values of `columns`) over all units, of which each unit brings at most `limit`.

    Rows where the first column is NULL bring none. Without a limit, a unit brings as many as it has rows.

    Stability: a unit keeps the pairs that come first by hash of (id, pair), then by value: a function of its own rows.
    So a unit adds or removes at most `limit` rows, whatever the others hold (SOUNDNESS 4); with `per_set`, as many in
    each grouping set.
    """

    input: Rows
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    limit: int | None
    automatic: bool = False  # whether `limit` is chosen from a histogram
    per_set: bool = False

    def __post_init__(self) -> None:
        names = {f.name for f in row_fields(self.input)}
        _check_sets(self.per_set, self.keys)
        if not self.columns or not names.issuperset((*self.keys, *self.columns)):
            raise ValueError("distinct values are those of columns")
        if self.limit is not None and (self.limit < 1 or UID not in names):
            raise ValueError("a limit is for each unit, and at least one value")


@dataclass(frozen=True)
class Sum:
    """Integer cells summed per group; each row's components are weighted and divided by 2^shift toward zero first."""

    input: Rows | Weigh | Distinct
    keys: tuple[str, ...]
    bundles: tuple[Bundle, ...]

    def __post_init__(self) -> None:
        if not {f.name for f in node_fields(self.input)}.issuperset(self.keys):
            raise ValueError("a key is not a column of the input")
        require_distinct_names([cell for bundle in self.bundles for cell in bundle.cells])

    @property
    def weighted(self) -> bool:
        return isinstance(self.input, Weigh)


@dataclass(frozen=True)
class CountUnits:
    """Units per group: each unit counts once in a group, in at most `limit` groups.

    With `limit`, a unit keeps the groups that come first by hash of (id, key), then by key: a function of
    its own rows. With `weighted`, a unit that keeps t groups gives each 2^16/sqrt(t), rounded down.
    With `one_row`, a unit has at most one row in each group and rows are counted. With `per_set`, the limit
    is that of each grouping set.
    """

    input: Rows
    keys: tuple[str, ...]
    cell: str
    limit: int | None
    one_row: bool
    weighted: bool = False
    automatic: bool = False  # whether `limit` is chosen from a histogram
    per_set: bool = False

    def __post_init__(self) -> None:
        names = {f.name for f in row_fields(self.input)}
        _check_sets(self.per_set, self.keys)
        if self.per_set and self.weighted:
            raise ValueError("a selection is one, over all grouping sets")
        if not names.issuperset(self.keys) or (not self.one_row and UID not in names):
            raise ValueError("units are counted by their id")
        if self.weighted and not self.may_be_weighted:
            raise ValueError("units are weighted by the groups that they keep")

    @property
    def may_be_weighted(self) -> bool:
        """Whether the SQL knows how many groups a unit has: otherwise each counts as one."""
        return self.limit is not None and not self.one_row

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)


@dataclass(frozen=True)
class SumBlocks:
    """Per group the sum, over its blocks, of how far each block's number lies from the middle.

    A block without rows lies in the middle and adds nothing, so its absence from the rows is not seen; and neither is
    that of a whole group.

    Stability: a row's block is a hash of its unit, or where rows are units of the row as its table holds it: a function
    of the unit alone, so that all rows of a unit are in one block, and no other unit's block depends on it. Hence one
    unit more or less changes one block's number in each group where it has rows, however many they are, and a number
    lies within [0, steps]: the cell of such a group moves by at most `steps`.
    """

    input: Rows
    keys: tuple[str, ...]
    blocks: Blocks
    cell: str

    def __post_init__(self) -> None:
        _check_block_rows(self.input, self.keys)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)


@dataclass(frozen=True)
class CountBlocks:
    """Per group and number (`bin`) how many of its blocks have it; blocks without rows are counted in the middle.

    Stability: as `SumBlocks`; a unit moves one block of each group where it has rows from one bin to another.
    """

    input: Rows
    groups: tuple[str, ...]
    bin: str
    blocks: Blocks
    cell: str

    def __post_init__(self) -> None:
        _check_block_rows(self.input, self.groups)

    @property
    def keys(self) -> tuple[str, ...]:
        return (*self.groups, self.bin)

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.cell,)


def _check_block_rows(rows: Rows, keys: tuple[str, ...]) -> None:
    names = {f.name for f in row_fields(rows)}
    if not names.issuperset(keys) or not names & {UID, ROW}:
        raise ValueError("blocks are made of units, by their ids or, where rows are units, by the rows")


@dataclass(frozen=True)
class ListedRows:
    """Public values of some keys: distinct rows, one value per key.

    `where` is a condition on the keys that reads holes: which rows meet it is known when they are bound.
    """

    keys: tuple[Field, ...]
    rows: tuple[tuple[Scalar | None, ...], ...]
    where: Expr | None = None

    def __post_init__(self) -> None:
        if any(len(row) != len(self.keys) for row in self.rows):
            raise ValueError("each listed group has a value for each key")
        # Typed, because 1 == True == 1.0 in Python.
        require_distinct_names([str([(type(value).__name__, value) for value in row]) for row in self.rows])

    @property
    def count(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class ListedHole:
    """Public values of some keys that stand together in public rows or in a hole, each combination once.

    `columns` are those of `rows`, in the order of the keys. `most` bounds the combinations, where `rows` are not a
    hole; with `and_null` there is one more, of NULLs, for rows that an outer join found no partner for.
    """

    keys: tuple[Field, ...]
    rows: Rows
    columns: tuple[str, ...]
    most: int = 0
    and_null: bool = False

    def __post_init__(self) -> None:
        names = {f.name for f in row_fields(self.rows)}
        if not is_public(self.rows) or len(self.columns) != len(self.keys) or not names.issuperset(self.columns):
            raise ValueError("public groups are columns of public rows")

    @property
    def count(self) -> int:
        return (self.rows.most if isinstance(self.rows, RowsHole) else self.most) + self.and_null


@dataclass(frozen=True)
class ListedRange:
    """The whole numbers from `lower` to `upper`, as a key."""

    key: Field
    lower: int
    upper: int

    @property
    def keys(self) -> tuple[Field, ...]:
        return (self.key,)

    @property
    def count(self) -> int:
        return self.upper - self.lower + 1


@dataclass(frozen=True)
class ListedSets:
    """The groups of every grouping set, by its number: NULL stands for the keys that are not in it.

    Each set has a list of its own, so that its groups are those which a GROUP BY of its keys alone would list.
    """

    keys: tuple[Field, ...]  # of all sets, and the set's number
    sets: tuple[Listed, ...]

    def __post_init__(self) -> None:
        names = {f.name for f in self.keys}
        if SET_COLUMN not in names or any(f.name not in names - {SET_COLUMN} for of in self.sets for f in of.keys):
            raise ValueError("the keys of a grouping set are among those of all sets, which have a number")

    @property
    def count(self) -> int:
        return sum(of.count for of in self.sets)


Factor = ListedRows | ListedHole | ListedRange | ListedSets


@dataclass(frozen=True)
class Listed:
    """The public groups: all combinations of the factors' rows, in order."""

    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        require_distinct_names([f.name for f in self.keys])

    @property
    def keys(self) -> tuple[Field, ...]:
        return tuple(f for factor in self.factors for f in factor.keys)

    @property
    def count(self) -> int:
        """How many groups there are at most; with a hole, the real number is known when it is bound."""
        return prod(factor.count for factor in self.factors)


def count_set_groups(listed: Listed) -> Mapping[int, int]:
    """How many groups each grouping set lists at most, by its number; nothing where there are no sets."""
    for factor in listed.factors:
        if isinstance(factor, ListedSets):
            return {number: of.count for number, of in enumerate(factor.sets)}
        names = [key.name for key in factor.keys]
        if isinstance(factor, ListedRows) and SET_COLUMN in names:
            numbers = [row[names.index(SET_COLUMN)] for row in factor.rows]
            return Counter(number for number in numbers if isinstance(number, int))
    return {}


Part = Sum | ClippedSum | CountUnits | CountNorms | CountMeans | SumBlocks | CountBlocks


@dataclass(frozen=True)
class Gather:
    """One row per group: groups are listed, or selected by `selection`, or both crossed; missing cells are 0.

    Stability: each cell is that of its part or 0; no group leaves that is not listed or counted by `selection`.
    """

    keys: tuple[Field, ...]
    listed: Listed | None
    selection: CountUnits | None
    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        covered = [f.name for f in self.listed.keys] if self.listed else []
        covered += list(self.selection.keys) if self.selection else []
        if sorted(covered) != sorted(f.name for f in self.keys):
            raise ValueError("each key is either listed or selected")
        require_distinct_names([cell for part in self.all_parts for cell in cells_of(part)])

    @property
    def all_parts(self) -> tuple[Part, ...]:
        return self.parts if self.selection is None else (self.selection, *self.parts)


@dataclass(frozen=True)
class Tally:
    """Every distinct tuple of whole numbers among the rows, with the weight of the rows that have it.

    Stability: a unit's weights have L1 norm `rows * 2^16`, or the plan proves how many rows it has at most; so has what
    it adds to the tuples, over all of them. No tuple is public: a tally is for a study, which gives out none of it.
    """

    part: Sum

    def __post_init__(self) -> None:
        if not self.part.keys or len(cells_of(self.part)) != 1 or isinstance(self.part.input, Distinct):
            raise ValueError("a tally counts the rows of tuples")
        if isinstance(self.part.input, Weigh) and (self.part.input.norm is not Norm.L1 or self.part.input.keys):
            raise ValueError("the rows of a unit are weighed over all tuples together")

    @property
    def columns(self) -> tuple[str, ...]:
        """As the engine returns them: the codes of a tuple, then its weight."""
        return (*self.part.keys, *cells_of(self.part))


Node = Rows | Aggregate | Weigh | Distinct | Part | Gather | Tally


def needs_norm(part: Part) -> bool:
    """Whether a histogram chooses what a unit counts for in the part."""
    if isinstance(part, ClippedSum):
        return True
    capped = part.input if isinstance(part, Sum) else part
    return isinstance(capped, CountUnits | Weigh | Distinct) and capped.automatic


def cells_of(part: Part) -> tuple[str, ...]:
    if isinstance(part, Sum):
        return tuple(cell for bundle in part.bundles for cell in bundle.cells)
    return part.cell_names if isinstance(part, ClippedSum) else part.cells


def node_fields(node: Node) -> tuple[Field, ...]:
    """The columns that a node gives out, the unit's id among them where rows belong to units."""
    if isinstance(node, Weigh):
        return (*row_fields(node.input), Field(WEIGHT, BIGINT))
    if isinstance(node, Distinct):
        names = (*node.keys, *node.columns)
        return tuple(f for f in row_fields(node.input) if f.name in names)
    if isinstance(node, Aggregate):
        return tuple(Field(key.name, key.expr.type) for key in node.keys)
    if isinstance(node, CountBlocks):
        inputs = {f.name: f for f in node_fields(node.input)}
        return (*(inputs[key] for key in node.groups), Field(node.bin, BIGINT), Field(node.cell, BIGINT))
    if isinstance(node, CountNorms | CountMeans):
        return (Field(node.bin, BIGINT), Field(node.cell, BIGINT))
    if isinstance(node, Sum | ClippedSum | CountUnits | SumBlocks):
        inputs = {f.name: f for f in node_fields(node.input)}
        return tuple(inputs[key] for key in node.keys) + tuple(Field(cell, BIGINT) for cell in cells_of(node))
    if isinstance(node, Gather):
        return node.keys + tuple(Field(cell, BIGINT) for part in node.all_parts for cell in cells_of(part))
    if isinstance(node, Tally):
        return tuple(Field(name, BIGINT) for name in node.columns)
    return row_fields(node)
