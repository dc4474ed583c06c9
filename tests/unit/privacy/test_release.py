"""Only noisy cells of chosen keys leave, and what is stored is what was released."""

import itertools
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction as F
from uuid import UUID

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpsql.errors import IntegrityError, InternalError
from dpsql.privacy.exact import Exact
from dpsql.privacy.exponential import Exponential, ExtremeTarget, Pick, Rank
from dpsql.privacy.noise import Gaussian, Laplace
from dpsql.privacy.partition_selection import (
    GaussianThreshold,
    KeyReach,
    LaplaceThreshold,
    OptimalSelection,
    WeightedGaussian,
)
from dpsql.privacy.release import (
    BinPicks,
    KeySelection,
    NoiseBundle,
    Release,
    ReleaseSpec,
    perturb,
    release_from_bytes,
    release_to_bytes,
)
from tests.support.likeliest_index import likeliest_index

ONE = F(1)


class Counting:
    """Noise 1000, 1001, 1002…, so that each draw is seen in the cell that it went to; selections see zeros."""

    def __init__(self) -> None:
        self.next = 1000
        self.calls: list[tuple[str, int, F]] = []

    def laplace(self, n: int, scale: F) -> np.ndarray:
        self.calls.append(("laplace", n, scale))
        self.next += n
        return np.arange(self.next - n, self.next, dtype=np.int64)

    def gaussian(self, n: int, sigma: F) -> np.ndarray:
        self.calls.append(("gaussian", n, sigma))
        return np.zeros(n, np.int64)

    def choose(self, penalties: np.ndarray, scale: F) -> np.ndarray:
        self.calls.append(("choose", len(penalties), scale))
        return likeliest_index(penalties)

    def flip(self, penalties: np.ndarray, scale: F) -> np.ndarray:
        self.calls.append(("flip", len(penalties), scale))
        return likeliest_index(penalties)


def exact(keys: list[tuple[object, ...]], *cells: list[int]) -> Exact:
    return Exact(keys, [np.array(column, np.int64) for column in cells])


def test_every_cell_gets_its_own_draw() -> None:
    sampler = Counting()
    spec = ReleaseSpec((ONE, ONE, F(1, 2)), (NoiseBundle((2, 0), Laplace(F(3))), NoiseBundle((1,), Laplace(F(5)))))
    release = perturb(exact([("a",), ("b",)], [0, 0], [0, 0], [0, 0]), spec, sampler)
    draws = list(itertools.chain.from_iterable(column.tolist() for column in release.cells))
    assert sorted(draws) == list(range(1000, 1006))
    assert sampler.calls == [("laplace", 4, F(3)), ("laplace", 2, F(5))]
    assert release.keys == (("a",), ("b",))


def test_noise_is_added_to_the_cell() -> None:
    spec = ReleaseSpec((ONE,), (NoiseBundle((0,), Laplace(F(3))),))
    assert perturb(exact([()], [7]), spec, Counting()).cells[0].tolist() == [1007]


def test_cells_at_the_rim_do_not_overflow() -> None:
    class Most(Counting):
        def laplace(self, n: int, scale: F) -> np.ndarray:
            return np.full(n, (1 << 62) - 1, np.int64)

    spec = ReleaseSpec((ONE,), (NoiseBundle((0,), Laplace(F(3))),))
    release = perturb(exact([(1,), (2,)], [(1 << 63) - 1, -(1 << 63)]), spec, Most())
    assert release.cells[0].tolist() == [(1 << 63) - 2, 0]


def selected() -> ReleaseSpec:
    mechanism = GaussianThreshold(F(2), 10, KeyReach(1))
    return ReleaseSpec((ONE, ONE), (NoiseBundle((1,), Laplace(F(3))),), KeySelection(0, mechanism, 1))


def test_selection_keeps_keys_and_hides_its_column() -> None:
    sampler = Counting()
    release = perturb(exact([("a",), ("b",), ("c",), ("d",)], [10, 11, 0, 12], [5, 6, 7, 8]), selected(), sampler)
    assert release.keys == (("b",), ("d",))
    assert release.cells[0].tolist() == [0, 0]
    assert release.cells[1].tolist() == [6 + 1000, 8 + 1001]
    # One draw per key for the selection, and noise for the kept keys only.
    assert sampler.calls == [("gaussian", 4, F(2)), ("laplace", 2, F(3))]


def test_blocks_share_one_draw() -> None:
    keys = [(name, half) for name in "abc" for half in (False, True)]
    sampler = Counting()
    release = perturb(exact(keys, [11, 11, 3, 3, 50, 50], [0] * 6), selected(), sampler)
    assert release.keys == (("a", False), ("a", True), ("c", False), ("c", True))
    assert sampler.calls[0] == ("gaussian", 3, F(2))


def test_the_unknown_part_may_be_several_keys() -> None:
    keys = [(*unknown, half) for unknown in [("a", 1), ("a", 2), ("b", 1)] for half in (False, True)]
    spec = ReleaseSpec((ONE,), (), KeySelection(0, GaussianThreshold(F(2), 10, KeyReach(1)), 2))
    sampler = Counting()
    release = perturb(exact(keys, [11, 11, 3, 3, 50, 50]), spec, sampler)
    assert [key[:2] for key in release.keys] == [("a", 1), ("a", 1), ("b", 1), ("b", 1)]
    assert sampler.calls == [("gaussian", 3, F(2))]


INCOMPLETE = "the engine returned an incomplete block of groups"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (exact([(1, 1), (1, 2), (2, 1)], [9] * 3, [0] * 3), INCOMPLETE),
        (exact([(1, 1), (1, 2), (1, 3), (2, 1)], [9] * 4, [0] * 4), INCOMPLETE),
        (exact([(1, 1), (2, 1), (1, 2), (2, 2)], [9] * 4, [0] * 4), INCOMPLETE),
        (exact([(1, 1), (1, 2)], [9, 8], [0, 0]), "the engine returned an inconsistent block of groups"),
        (exact([(1, 1), (1, 1)], [9, 9], [0, 0]), "the engine returned a group twice"),
        (exact([(1,), (2,)], [9, 9]), "the engine returned other columns than the plan has"),
    ],
)
def test_a_wrong_shape_is_our_bug_with_a_fixed_text(rows: Exact, message: str) -> None:
    with pytest.raises(InternalError) as caught:
        perturb(rows, selected(), Counting())
    assert str(caught.value) == message


def test_no_rows() -> None:
    release = perturb(exact([], [], []), selected(), Counting())
    assert release.keys == ()
    assert release_from_bytes(release_to_bytes(release)) == release


@pytest.mark.parametrize("bundles", [((0,),), ((0, 1), (1,)), ((0, 1, 2),), ((0, 0, 1),), ()])
def test_every_column_is_in_one_bundle(bundles: tuple[tuple[int, ...], ...]) -> None:
    with pytest.raises(ValueError, match="exactly one bundle"):
        ReleaseSpec((ONE, ONE), tuple(NoiseBundle(columns, Laplace(ONE)) for columns in bundles))


def test_spec_refuses_nonsense() -> None:
    with pytest.raises(ValueError, match="exactly one bundle"):
        ReleaseSpec(
            (ONE,), (NoiseBundle((0,), Laplace(ONE)),), KeySelection(0, GaussianThreshold(ONE, 5, KeyReach(1)), 1)
        )
    with pytest.raises(ValueError, match="grid"):
        ReleaseSpec((F(0),), (NoiseBundle((0,), Laplace(ONE)),))
    with pytest.raises(ValueError, match="key is selected"):
        KeySelection(0, GaussianThreshold(ONE, 5, KeyReach(1)), 0)
    with pytest.raises(ValueError, match="stands alone"):
        ReleaseSpec((ONE,), (NoiseBundle((0,), Laplace(ONE)),), None, MEDIAN)
    with pytest.raises(ValueError, match="stands alone"):
        ReleaseSpec((ONE,), (), KeySelection(0, GaussianThreshold(ONE, 5, KeyReach(1)), 1), MEDIAN)
    with pytest.raises(ValueError, match="grid for each pick"):
        ReleaseSpec((ONE, ONE), (), None, MEDIAN)
    for picks, lower, upper, whole in [((), 0, 1, 1), (MEDIAN.picks, 1, 0, 1), (MEDIAN.picks, 0, 1, 0)]:
        with pytest.raises(ValueError, match=r"chosen|bins|weight"):
            BinPicks(picks, lower, upper, whole)


MEDIAN = BinPicks((Pick(Rank(F(1, 2)), Exponential(F(4))),), -1, 2, 1 << 16)


def test_a_bin_is_chosen_in_each_block() -> None:
    keys = [(group, bin_) for group in "ab" for bin_ in (-1, 0, 1, 2)]
    picks = (*MEDIAN.picks, Pick(ExtremeTarget(True), Exponential(F(3))))
    sampler = Counting()
    spec = ReleaseSpec((ONE, F(1, 2)), (), None, BinPicks(picks, -1, 2, 1))
    release = perturb(exact(keys, [9, 1, 1, 0, 0, 2, 5, 0]), spec, sampler)
    assert release.keys == (("a",), ("b",))
    assert [column.tolist() for column in release.cells] == [[-1, 1], [1, 1]]
    # Scores are halves here and there: a step of a penalty is half a unit of weight.
    assert sampler.calls == [("choose", 2, F(8)), ("choose", 2, F(6))]


def test_without_groups_there_is_one_block() -> None:
    release = perturb(exact([(-1,), (0,), (1,), (2,)], [0, 0, 7, 0]), ReleaseSpec((ONE,), (), None, MEDIAN), Counting())
    assert release.keys == ((),)
    assert release.cells[0].tolist() == [1]
    assert perturb(exact([], []), ReleaseSpec((ONE,), (), None, MEDIAN), Counting()).keys == ()


BINS = (-1, 0, 1, 2)


@pytest.mark.parametrize(
    "keys",
    [
        [("a", b) for b in BINS[:3]],
        [("a", b) for b in (-1, 0, 2, 1)],
        [("a", b) for b in (-1, 0, 1, 3)],
        [("a", b) for b in BINS] + [("b", -1)],
        [(group, b) for b in BINS for group in "ab"],
    ],
    ids=["missing", "unsorted", "other", "too many", "interleaved"],
)
def test_blocks_of_bins_are_complete(keys: list[tuple[object, ...]]) -> None:
    with pytest.raises(InternalError, match="the engine returned an incomplete block of bins"):
        perturb(exact(keys, [0] * len(keys)), ReleaseSpec((ONE,), (), None, MEDIAN), Counting())


reaches = st.builds(KeyReach, st.integers(1, 100), st.integers(1, 3), st.booleans())
kinds = st.sampled_from([OptimalSelection, LaplaceThreshold, GaussianThreshold, WeightedGaussian])
scales = st.fractions(F(1, 1000), F(2**40))
selections = st.builds(lambda kind, *rest: kind(*rest), kinds, scales, st.integers(1, 1 << 70), reaches)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(1 << 130), 1 << 130)
    | st.floats(allow_nan=False)
    | st.decimals(allow_nan=False)
    | st.text(st.characters())
    | st.dates()
    | st.datetimes()
    | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))]))
    | st.times()
    | st.timedeltas()
    | st.uuids()
)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)


@st.composite
def releases(draw: st.DrawFn) -> Release:
    mechanism = st.builds(Laplace, scales) | st.builds(Gaussian, scales)
    bundles = (NoiseBundle((2, 0), draw(mechanism)), NoiseBundle((3,), draw(mechanism)))
    selection = KeySelection(1, draw(selections), draw(st.integers(1, 2)))
    grids = tuple(draw(st.lists(st.fractions(F(1, 10**9), F(10**9)), min_size=4, max_size=4)))
    keys = tuple(tuple(row) for row in draw(st.lists(st.lists(scalars, min_size=2, max_size=2), max_size=5)))
    cells = tuple(
        np.array(draw(st.lists(int64, min_size=len(keys), max_size=len(keys))), dtype=np.int64) for _ in grids
    )
    return Release(keys, cells, ReleaseSpec(grids, bundles, selection))


targets = st.builds(Rank, st.fractions(F(1, 1000), F(999, 1000))) | st.builds(
    ExtremeTarget, st.booleans(), st.integers(0, 1 << 70)
)
picks = st.builds(Pick, targets, st.builds(Exponential, st.fractions(F(1, 1 << 20), F(2**60))))


@st.composite
def choices(draw: st.DrawFn) -> Release:
    chosen = tuple(draw(st.lists(picks, min_size=1, max_size=3)))
    lower, upper = sorted((draw(int64), draw(int64)))
    grids = tuple(F(1, i + 1) for i in range(len(chosen)))
    spec = ReleaseSpec(grids, (), None, BinPicks(chosen, lower, upper, draw(st.integers(1, 1 << 16))))
    keys = tuple((key,) for key in draw(st.lists(scalars, max_size=4)))
    return Release(keys, tuple(np.full(len(keys), lower, np.int64) for _ in chosen), spec)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(releases() | choices())
def test_stored_and_read_back(release: Release) -> None:
    data = release_to_bytes(release)
    back = release_from_bytes(data)
    assert back == release
    assert [[type(v) for v in key] for key in back.keys] == [[type(v) for v in key] for key in release.keys]
    assert [[str(v) for v in key] for key in back.keys] == [[str(v) for v in key] for key in release.keys]
    assert release_to_bytes(back) == data


def one_key(*key: object) -> Release:
    return Release((key,), (np.array([1], np.int64),), ReleaseSpec((ONE,), (NoiseBundle((0,), Laplace(ONE)),)))


def test_stored_form_is_stable() -> None:
    """Stored releases outlive versions: this text may only change together with the format number."""
    release = one_key(
        None,
        True,
        1,
        1.5,
        Decimal("1.50"),
        "ä",
        date(2024, 2, 29),
        datetime(2024, 1, 2, 3, 4, 5),
        time(1, 2),
        timedelta(1, 2, 3),
        UUID(int=7),
    )
    assert release_to_bytes(release).decode() == (
        '{"dpsql_release":2,"grids":["1"],"bundles":[[[0],"laplace","1"]],"selection":null,"choice":null,"keys":[[null,true,'
        '["int","1"],["float","0x1.8000000000000p+0"],["decimal","1.50"],["str","ä"],["date","2024-02-29"],'
        '["datetime","2024-01-02T03:04:05"],["time","01:02:00"],["interval","1 2 3"],'
        '["uuid","00000000-0000-0000-0000-000000000007"]]],"cells":[[1]]}'
    )
    picks = (
        *MEDIAN.picks,
        Pick(ExtremeTarget(True, 7), Exponential(F(5, 2))),
        Pick(ExtremeTarget(False), Exponential(ONE)),
    )
    cells = tuple(np.array([bin_], np.int64) for bin_ in (-1, 2, 0))
    chosen = Release(((),), cells, ReleaseSpec((ONE, ONE, ONE), (), None, BinPicks(picks, -1, 2, 65536)))
    assert release_to_bytes(chosen).decode() == (
        '{"dpsql_release":2,"grids":["1","1","1"],"bundles":[],"selection":null,"choice":[-1,2,65536,'
        '[["rank","1/2","4"],["max","7","5/2"],["min","0","1"]]],"keys":[[]],"cells":[[-1],[2],[0]]}'
    )
    selection = KeySelection(0, GaussianThreshold(ONE, 5, KeyReach(3)), 2)
    selecting = Release((), (np.zeros(0, np.int64),), ReleaseSpec((ONE,), (), selection))
    assert b'"selection":[0,2,"gaussian","1",5,3,1,false]' in release_to_bytes(selecting)


def test_floats_that_are_no_numbers() -> None:
    value = release_from_bytes(release_to_bytes(one_key(float("nan")))).keys[0][0]
    assert value != value


def test_numpy_scalars_are_stored_as_their_values() -> None:
    assert release_from_bytes(release_to_bytes(one_key(np.int64(5), np.float64(0.5)))).keys == ((5, 0.5),)


def test_keys_of_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match="list"):
        release_to_bytes(one_key([1]))


def test_damage_is_noticed() -> None:
    data = release_to_bytes(one_key(1))
    with pytest.raises(IntegrityError, match="format"):
        release_from_bytes(data.replace(b'"dpsql_release":2', b'"dpsql_release":1'))
    for broken in (b"", b"{}", data[:-3], data.replace(b"[[1]]", b"[[1,2]]"), data.replace(b"laplace", b"other")):
        with pytest.raises(IntegrityError, match="damaged"):
            release_from_bytes(broken)
