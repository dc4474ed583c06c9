"""A wrong tree cannot be built."""

from fractions import Fraction

import pytest

from dpsql.compiler.plan.aggregate import (
    CountUnits,
    Distinct,
    Gather,
    Listed,
    ListedRows,
    ListedSets,
    Sum,
    Weigh,
    count_set_groups,
    node_fields,
)
from dpsql.compiler.plan.bundles import CountBundle, MomentBundle
from dpsql.compiler.plan.clipped_sums import Norm
from dpsql.compiler.plan.expressions import (
    FALSE,
    TRUE,
    UID,
    And,
    Column,
    Compare,
    Literal,
    Quantise,
    join_conjuncts,
    split_conjuncts,
)
from dpsql.compiler.plan.relations import SET_COLUMN, Field, Filter, Join, JoinKind, Named, Project, Table
from dpsql.compiler.plan.walk import child_exprs, columns_of, map_expr, map_rows, node_inputs, walk_exprs, walk_nodes
from dpsql.types import BIGINT, BOOLEAN, TEXT

X = Column("x", BIGINT)
TABLE = Table("t", (("x", Field("x", BIGINT)),), BIGINT)
ROWS = Table("r", (("x", Field("x", BIGINT)),), None)
KEY = Field("x", BIGINT)
COUNT = CountBundle("rows", None)


def test_literals_of_another_type_are_refused() -> None:
    with pytest.raises(TypeError):
        Literal(True, BIGINT)
    with pytest.raises(TypeError):
        Literal(1, BOOLEAN)


def test_conditions_are_booleans() -> None:
    with pytest.raises(TypeError):
        Filter(TABLE, X)
    other = Table("u", (("x", Field("y", BIGINT)),), BIGINT)
    with pytest.raises(TypeError):
        Join(TABLE, other, JoinKind.INNER, X)


def test_names_are_not_repeated() -> None:
    with pytest.raises(ValueError, match="repeat"):
        Project(TABLE, (Named("a", X), Named("a", X)))
    with pytest.raises(ValueError, match="repeat"):
        Join(TABLE, TABLE, JoinKind.INNER, TRUE)
    with pytest.raises(ValueError, match="repeat"):
        Sum(TABLE, ("x",), (COUNT, COUNT))


def test_listed_groups_are_distinct_and_complete() -> None:
    with pytest.raises(ValueError, match="repeat"):
        ListedRows((KEY,), ((1,), (2,), (1,)))
    with pytest.raises(ValueError, match="a value for each key"):
        ListedRows((KEY,), ((1, 2),))
    assert len(ListedRows((Field("b", BOOLEAN), KEY), ((True, 1), (True, 0), (False, 1))).rows) == 3


def test_grouping_sets_list_keys_of_theirs_and_count_together() -> None:
    number = Field(SET_COLUMN, BIGINT)
    two = Listed((ListedRows((KEY,), ((1,), (2,))),))
    sets = ListedSets((KEY, number), (two, Listed(())))
    assert sets.count == 3 and count_set_groups(Listed((sets,))) == {0: 2, 1: 1}
    assert count_set_groups(Listed((ListedRows((KEY, number), ((1, 0), (2, 0), (None, 1))),))) == {0: 2, 1: 1}
    assert not count_set_groups(two)
    for keys in ((KEY,), (number,)):
        with pytest.raises(ValueError, match="grouping set"):
            ListedSets(keys, (two,))


def test_weights_need_rows_of_units_at_least_one_row_and_their_keys() -> None:
    for bad in ((ROWS, (), 5), (TABLE, (), 0), (TABLE, ("nope",), 5)):
        with pytest.raises(ValueError, match="weights"):
            Weigh(bad[0], bad[1], bad[2], Norm.L1)


def test_distinct_values_are_of_columns_and_a_limit_is_of_units() -> None:
    for bad in ((TABLE, (), 5), (TABLE, ("nope",), 5), (TABLE, ("x",), 0), (ROWS, ("x",), 5)):
        with pytest.raises(ValueError, match="value"):
            Distinct(bad[0], (), bad[1], bad[2])
    assert node_fields(Distinct(ROWS, (), ("x",), None)) == (KEY,)
    assert Field(UID, BIGINT) not in node_fields(Distinct(TABLE, (), ("x",), 5))


def test_units_are_counted_by_their_id() -> None:
    with pytest.raises(ValueError, match="id"):
        CountUnits(ROWS, ("x",), "units", 1, one_row=False)
    assert CountUnits(ROWS, ("x",), "units", 1, one_row=True).cells == ("units",)


def test_each_key_of_a_gather_is_listed_or_selected_and_not_both() -> None:
    selection = CountUnits(TABLE, ("x",), "units", 4, False)
    part = Sum(TABLE, ("x",), (COUNT,))
    with pytest.raises(ValueError, match="either listed or selected"):
        Gather((KEY,), None, None, (part,))
    with pytest.raises(ValueError, match="either listed or selected"):
        Gather((KEY,), Listed((ListedRows((KEY,), ((1,),)),)), selection, (part,))
    assert Gather((KEY,), None, selection, (part,)).all_parts == (selection, part)


def test_grids_are_positive_and_their_bounds_ordered_and_within_64_bits() -> None:
    for grid, lower, upper in ((0, 0, 1), (1, 2, 1), (1, 0, 2**46)):
        with pytest.raises(ValueError):
            Quantise(X, Fraction(grid), lower, upper)
    with pytest.raises(ValueError, match="apart"):
        MomentBundle("a", "b", None, Quantise(X, Fraction(1), 5, 5))


def test_the_units_id_is_carried_through_every_relation() -> None:
    assert node_fields(TABLE)[0] == Field(UID, BIGINT)
    assert node_fields(Project(TABLE, (Named("y", X),))) == (Field(UID, BIGINT), Field("y", BIGINT))
    other = Table("u", (("x", Field("y", TEXT)),), BIGINT)
    joined = node_fields(Join(TABLE, other, JoinKind.INNER, TRUE))
    assert joined == (Field(UID, BIGINT), Field("x", BIGINT), Field("y", TEXT))
    assert Field(UID, BIGINT) not in node_fields(ROWS) and Field(UID, BIGINT) in node_fields(Filter(TABLE, TRUE))


def test_conditions_flatten_into_parts_and_back() -> None:
    less = Compare("<", X, Literal(1, BIGINT))
    assert split_conjuncts(And((less, And((TRUE, FALSE))))) == (less, TRUE, FALSE)
    assert (
        join_conjuncts(()) == TRUE
        and join_conjuncts((less,)) == less
        and join_conjuncts((less, TRUE)) == And((less, TRUE))
    )


def test_walking_sees_every_part_once_and_mapping_rebuilds_the_same() -> None:
    less = Compare("<", X, Literal(1, BIGINT))
    nested = And((less, less))
    assert [type(part).__name__ for part in walk_exprs(nested)] == ["And", *["Compare", "Column", "Literal"] * 2]
    assert child_exprs(X) == () and columns_of(nested) == {"x"}
    assert map_expr(nested, lambda part: part) == nested
    tree = Filter(Project(TABLE, (Named("x", X),)), less)
    assert map_rows(tree, lambda node: node) == tree
    assert [type(node).__name__ for node in walk_nodes(tree)] == ["Filter", "Project", "Table"]
    assert node_inputs(tree) == (tree.input,)
