"""Rows for a study: columns have public codes, units a bounded mass, and nothing but the study gives answers."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

from dpsql.compiler.plan.expressions import ROW_WEIGHT
from dpsql.compiler.plan.show import show_plan
from dpsql.compiler.rewrite.weighted_rows import ColumnCoding
from dpsql.compiler.settings import Settings, default_settings
from dpsql.compiler.weighted_rows import CompiledStudy, compile_study, compile_weighted_rows
from dpsql.errors import Error, IntegrityError, InvalidSyntax, UnboundedValues, Unsupported
from dpsql.privacy import study_codec
from dpsql.privacy.exact import Exact
from dpsql.privacy.norm_choice import NormHistogram
from dpsql.privacy.release import perturb, release_from_bytes, release_to_bytes
from dpsql.privacy.sampling import ExactSampler
from dpsql.privacy.weighted_rows import Axes, UnitMass
from dpsql.schema.model import Contributions, Resolved
from tests.support.count_study import counts, read_counts
from tests.support.duckdb_tables import connect, fill

CODING = ColumnCoding(bins=16, listed={}, nulls=True)


@pytest.fixture()
def settings(clinic: Resolved) -> Settings:
    return default_settings(clinic.schema.privacy).statement


def studied(sql: str, resolved: Resolved, coding: ColumnCoding = CODING) -> CompiledStudy:
    return compile_study(
        compile_weighted_rows(sql, sql, resolved, default_settings(resolved.schema.privacy).statement), coding, counts
    )


def test_columns_have_public_codes(clinic: Resolved) -> None:
    sex, year = studied("SELECT sex, birth_year FROM patients", clinic).axes
    assert (sex.name, sex.values, sex.bins, sex.null) == ("sex", ("f", "m", "x"), None, True)
    assert sex.size == 4 and year.bins is not None and year.size <= 16
    assert year.bins.lower * year.bins.grid >= 1900 and year.bins.upper * year.bins.grid <= 2030


def test_a_unit_of_one_row_has_the_mass_of_one_row(clinic: Resolved) -> None:
    assert studied("SELECT sex FROM patients", clinic).study.mass == UnitMass(1, 1, True, 1, False)


def test_rows_that_the_plan_proves_few_are_not_weighed_and_all_count(clinic: Resolved) -> None:
    """At most two rows of each unit, below the norm of eight: no weights, so that a unit's mass is two whole rows."""
    sql = "SELECT sex FROM (SELECT sex FROM patients UNION ALL SELECT sex FROM patients) AS t"
    found = studied(sql, clinic)
    assert found.study.mass == UnitMass(2, 1, False, 1, False)
    assert "Weigh each unit" not in show_plan(found.compiled.steps[0].calibrated.plan)


def test_a_unit_of_many_rows_is_weighed(clinic: Resolved) -> None:
    rows = clinic.schema.privacy.contributions.rows
    assert rows is not None
    found = studied("SELECT nights FROM visits", clinic)
    assert found.study.mass == UnitMass(rows << 16, 1 << 16, False, 1, False)
    assert "Weigh each unit" in show_plan(found.compiled.steps[0].calibrated.plan)


def test_neighbors_and_group_size_are_in_the_mass(survey: Resolved) -> None:
    table = survey.schema.tables[0]
    column = next(c for c in table.columns if c.domain.is_bounded or c.domain.values)
    mass = studied(f"SELECT {column.name} FROM {table.name}", survey).study.mass
    assert mass.change_one and mass.group_size == 2
    assert mass.l1 == 4 * mass.norm and mass.max_move == 2 * mass.norm and mass.l2_squared == 2 * (2 * mass.norm) ** 2


def test_what_nothing_public_bounds_is_reported_and_refused_unless_its_values_are_given(clinic: Resolved) -> None:
    sql = "SELECT ward, nights FROM visits"
    rows = compile_weighted_rows(sql, sql, clinic, default_settings(clinic.schema.privacy).statement)
    assert rows.unknown_columns == ("ward",)
    with pytest.raises(UnboundedValues, match='"ward"'):
        compile_study(rows, CODING, counts)
    given = compile_study(rows, ColumnCoding(16, {"ward": ("a", "b")}, True), counts)
    assert given.axes[0].values == ("a", "b")


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT COUNT(*) FROM visits", Unsupported),
        ("SELECT ward FROM Wards", Unsupported),
        ("SELECT sex, sex FROM patients", InvalidSyntax),
        ("SELECT sex FROM patients WHERE birth_year > (SELECT AVG(birth_year) FROM patients)", Unsupported),
        ("SELECT sex FROM patients LIMIT 5", Error),
        ("SELECT nope FROM patients", Error),
    ],
)
def test_what_is_no_plain_rows_of_units_is_refused(clinic: Resolved, sql: str, error: type[Error]) -> None:
    with pytest.raises(error) as caught:
        studied(sql, clinic)
    assert caught.value.statement == sql


def without_caps(clinic: Resolved, units: int | None = None) -> Resolved:
    privacy = replace(clinic.schema.privacy, contributions=Contributions(), units=units)
    return replace(clinic, schema=replace(clinic.schema, privacy=privacy))


def studied_with_units_of_one_row(resolved: Resolved) -> CompiledStudy:
    """The cap is chosen from a histogram of many units in its first bin."""
    sql = "SELECT nights FROM visits"
    rows = compile_weighted_rows(sql, sql, resolved, default_settings(resolved.schema.privacy).statement)
    (norm,) = compile_study(rows, CODING, counts).compiled.norm_steps
    crowd = (1_000_000, *(0 for _ in range(norm.bins.count - 1)))
    histogram = NormHistogram(norm.bins, crowd, norm.step.calibrated.bundles[0].mechanism)
    return compile_study(rows, CODING, counts, {norm.step.plan_hash: histogram})


def test_rows_without_a_declared_cap_wait_for_a_histogram_of_units(clinic: Resolved) -> None:
    waiting = studied("SELECT nights FROM visits", without_caps(clinic)).compiled
    assert waiting.undecided and [norm.decided for norm in waiting.norm_steps] == [False]
    decided = studied_with_units_of_one_row(without_caps(clinic))
    assert not decided.compiled.undecided and decided.study.mass.norm == ROW_WEIGHT
    assert "a unit counts like at most 1 rows" in decided.compiled.notices[-1]
    assert decided.compiled.steps[0].plan_hash != waiting.steps[0].plan_hash


def test_where_a_cap_is_from_is_part_of_the_key(clinic: Resolved) -> None:
    one, other = (studied_with_units_of_one_row(without_caps(clinic, units)) for units in (None, 100_000))
    assert one.study == other.study
    assert one.compiled.steps[0].plan_hash != other.compiled.steps[0].plan_hash


def test_what_the_plan_proves_needs_no_histogram(clinic: Resolved) -> None:
    found = studied("SELECT sex FROM patients", without_caps(clinic))
    assert not found.compiled.norm_steps and found.study.mass.one_row


def test_another_study_of_the_same_rows_is_another_release(clinic: Resolved, settings: Settings) -> None:
    one = studied("SELECT sex FROM patients", clinic).compiled.steps[0]
    same = studied("SELECT p.sex FROM patients AS p", clinic).compiled.steps[0]
    other = studied("SELECT sex FROM patients WHERE birth_year > 1950", clinic).compiled.steps[0]
    assert one.plan_hash == same.plan_hash != other.plan_hash
    sql = "SELECT sex FROM patients"
    rows = compile_weighted_rows(sql, sql, clinic, replace(settings, epsilon=settings.epsilon / 2))
    assert compile_study(rows, CODING, counts).compiled.steps[0].plan_hash != one.plan_hash


def test_the_same_codes_of_other_values_are_another_release(clinic: Resolved, settings: Settings) -> None:
    sql = "SELECT ward FROM visits"
    rows = compile_weighted_rows(sql, sql, clinic, settings)
    one, other = (
        compile_study(rows, ColumnCoding(16, {"ward": named}, True), counts) for named in (("a", "b"), ("a", "c"))
    )
    assert one.study == other.study and one.axes != other.axes
    assert one.compiled.steps[0].plan_hash != other.compiled.steps[0].plan_hash


# --- perturbing ------------------------------------------------------------------------------------------------------


def test_weighted_rows_are_sealed() -> None:
    tally = Axes((0,), (3,)).to_weighted_rows((np.array([2, 0, 2]), np.array([1, 1, 1])))
    assert repr(tally) == str(tally) == "Tally(sealed)"
    for act in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            act(tally)


def test_weighted_rows_add_up_equal_tuples_and_keep_to_their_axes() -> None:
    columns = (np.array([5, 7, 5, 99, -4]), np.array([0, 1, 0, 1, 0]), np.array([2, 3, 4, 1, -8]))
    tally = Axes((5, 0), (4, 2)).to_weighted_rows(columns)
    assert tally.codes.tolist() == [[0, 0], [2, 1], [3, 1]] and tally.weights.tolist() == [6, 3, 1]


def test_a_release_of_a_study_is_read_as_it_was_written(clinic: Resolved, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = studied("SELECT sex, birth_year FROM patients", clinic).compiled.steps[0].calibrated.spec
    exact = Exact(((),) * 3, (np.array([0, 1, 3]), np.array([140, 141, 140]), np.array([5, 6, 7])))
    release = perturb(exact, spec, ExactSampler())
    assert len(release.cells) == 2 and len(release.keys) == 4
    with pytest.raises(IntegrityError):
        release_from_bytes(release_to_bytes(release))
    monkeypatch.setitem(study_codec.STUDY_READERS, "counts", read_counts)
    assert release_from_bytes(release_to_bytes(release)) == release


def test_the_study_is_made_for_the_weighted_rows_that_run(clinic: Resolved) -> None:
    found = studied("SELECT nights FROM visits", clinic)
    lighter = UnitMass(1, 1, True, 1, False)
    rows = compile_weighted_rows("SELECT nights FROM visits", "SELECT nights FROM visits", clinic,
                      default_settings(clinic.schema.privacy).statement)  # fmt: skip
    with pytest.raises(Error, match="another tally"):
        compile_study(rows, CODING, lambda axes, ranges, mass, share: counts(axes, ranges, lighter, share))
    assert found.compiled.loss.epsilon == found.study.loss.epsilon


def test_neighbors_move_weighted_rows_by_one_units_mass(clinic: Resolved) -> None:
    """A heavy unit with values at and beyond the bounds, beside a small crowd, comes and goes."""
    found = studied("SELECT nights, cost FROM visits", clinic)
    visits = next(table for table in clinic.schema.tables if table.name == "visits")
    physical = clinic.physical["visits"]
    names = [(c.name, str(physical[c.name] or c.type)) for c in visits.columns]
    sql = found.compiled.steps[0].sql

    def row(unit: int, nights: str, cost: str) -> list[str]:
        own = {"patient_id": str(unit), "nights": nights, "cost": cost}
        return [own.get(name, "NULL") for name, _ in names]

    heavy = [row(7, str(n % 40 - 5), f"'{v}'::DOUBLE") for n in range(60) for v in ("nan", "inf", 1e9, -1e9, n)]
    crowd = [row(unit, str(unit % 3), "100") for unit in range(100, 120)]
    tallies: list[dict[tuple[int, ...], int]] = []
    for rows in (crowd, [*crowd, *heavy]):
        connection = connect()
        fill(connection, "visits", names, rows)
        cells = connection.execute(sql).fetchall()
        tallies.append({tuple(cell[:-1]): cell[-1] for cell in cells})
    without, with_heavy = tallies
    steps = [with_heavy.get(key, 0) - without.get(key, 0) for key in {*without, *with_heavy}]
    assert min(steps) >= 0 and 0 < sum(steps) <= found.study.mass.norm
    ranges = found.study.axes
    for *codes, _ in ((*key, 0) for key in with_heavy):
        assert all(low <= code < low + size for code, low, size in zip(codes, ranges.lowers, ranges.sizes, strict=True))


def test_a_mass_of_nothing_is_refused() -> None:
    for broken in ((0, 1, False, 1), (2, 1, True, 1), (1, 1, True, 0)):
        with pytest.raises(ValueError):
            UnitMass(*broken, change_one=False)  # type: ignore[arg-type]
    assert UnitMass.from_json(UnitMass(3, 1, False, 2, True).to_json()) == UnitMass(3, 1, False, 2, True)
