"""What the best values and posterior draws rest on, attacked through a session: rule by rule."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as F

import pytest

from dpsql.errors import InvalidParameter, Unsupported
from dpsql.ledger.loss_checker.checker import recompute_loss
from dpsql.privacy.score_selection import PosteriorDraws, Ranking
from dpsql.session.session import Session
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.neighbors import random_pair
from dpsql.verify.generate.schemas import generate_from_schema, random_schema
from dpsql.verify.invariants import find_undercharges
from dpsql.verify.trial import open_harness, random_trial_statement
from tests.support.loss_checker import agree
from tests.support.shop import open_shop

pytestmark = pytest.mark.slow

STATEMENTS = [
    "SELECT PRIVATE_ARGMAX(kind, COUNT(*)) FROM orders",
    "SELECT city, PRIVATE_TOP_K(kind, SUM(amount), 2) FROM orders GROUP BY city",
    "SELECT kind, PRIVATE_ARGMAX(city, COUNT(DISTINCT uid)) FROM orders GROUP BY kind",
    "SELECT region, PRIVATE_ARGMAX(kind, qty) FROM people JOIN orders USING (uid) GROUP BY ROLLUP (region)",
    "SELECT kind, POSTERIOR_SAMPLE(paid, draws => 3, alpha => 2) FROM orders GROUP BY kind",
    "SELECT city, POSTERIOR_SAMPLE(qty > 2, truncate => 0.2) FROM orders GROUP BY city",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    made, reference = open_shop(tmp_path_factory.mktemp("best"))
    yield made
    reference.close()
    made.close()


def asked(session: Session, sql: str, noise: str = "gaussian") -> list[Ranking | PosteriorDraws | None]:
    session.set("noise", noise)
    return [step.calibrated.scores for step in session.compile_statement(sql, ()).steps]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_ledger_works_out_the_same_loss(session: Session, sql: str, noise: str) -> None:
    session.set("noise", noise)
    compiled = session.compile_statement(sql, ())
    assert find_undercharges(compiled) == []
    for step in compiled.steps:
        lost = recompute_loss(step.calibrated.record)
        agree(step.loss, lost)


def test_permute_and_flip_only_where_epsilon_is_charged(session: Session) -> None:
    """At an eighth of epsilon squared it would lose more than is charged (SOUNDNESS 6)."""
    (gaussian,), (laplace,) = (asked(session, STATEMENTS[0], noise) for noise in ("gaussian", "laplace"))
    assert isinstance(gaussian, Ranking) and not gaussian.flips
    assert isinstance(laplace, Ranking) and laplace.flips


def test_each_value_of_a_list_is_charged(session: Session) -> None:
    session.set("noise", "laplace")
    one, five = (
        session.compile_statement(f"SELECT PRIVATE_TOP_K(kind, COUNT(*), {k}) FROM orders", ()) for k in (1, 5)
    )
    first, last = one.steps[0].calibrated.scores, five.steps[0].calibrated.scores
    assert first is not None and last is not None and last.scale >= first.scale * F(49, 10)


def test_unknown_values_are_selected_first(session: Session) -> None:
    """A choice among all values that rows hold would show one that only one unit has."""
    compiled = session.compile_statement("SELECT PRIVATE_ARGMAX(note, COUNT(*)) FROM orders", ())
    selected, chosen = compiled.steps
    assert selected.calibrated.selection is not None and selected.loss.delta > 0
    assert [hole.name for hole in chosen.holes] == ["keys"] and chosen.after == (0,)


def test_without_delta_unknown_values_are_refused(session: Session) -> None:
    session.set("noise", "auto")
    session.set("delta", "0")
    try:
        with pytest.raises(InvalidParameter, match="not public"):
            session.compile_statement("SELECT PRIVATE_ARGMAX(note, COUNT(*)) FROM orders", ())
    finally:
        session.set("delta", "1e-3")


@pytest.mark.parametrize(
    "score", ["AVG(qty)", "SUM(qty) / COUNT(*)", "MEDIAN(qty)", "MAX(qty)", "STDDEV(qty)", "COUNT(*) + 1"]
)
def test_what_one_unit_could_move_as_a_whole_is_no_score(session: Session, score: str) -> None:
    with pytest.raises(Unsupported, match="by a count or a sum"):
        session.compile_statement(f"SELECT PRIVATE_ARGMAX(kind, {score}) FROM orders", ())


@pytest.mark.parametrize("truncate", ["0", "0.0001", "0.4995", "0.5", "1"])
def test_an_untruncated_posterior_is_refused(session: Session, truncate: str) -> None:
    with pytest.raises(InvalidParameter, match="truncate"):
        session.compile_statement(f"SELECT POSTERIOR_SAMPLE(paid, truncate => {truncate}) FROM orders", ())


def test_a_posterior_is_never_sharper_than_itself(session: Session) -> None:
    (drawing,) = asked(session, "SELECT POSTERIOR_SAMPLE(vip) FROM people")
    assert isinstance(drawing, PosteriorDraws) and drawing.likelihood_power == 1


def test_answers_are_the_engines(session: Session) -> None:
    session.set("noise", "auto")
    rows = session.execute("SELECT PRIVATE_TOP_K(kind, SUM(qty), 2), PRIVATE_ARGMAX(kind, qty) FROM orders").rows
    counted = session.execute("SELECT kind, SUM(qty) AS s FROM orders GROUP BY kind ORDER BY s DESC").rows
    best = [kind for kind, _ in counted]
    assert rows == [(best[:2], best[0])]
    nothing = "SELECT PRIVATE_TOP_K(kind, COUNT(*), 9), PRIVATE_ARGMAX(NULLIF(kind, kind), COUNT(*)) FROM orders"
    ((three, none),) = session.execute(nothing).rows
    assert sorted(three) == ["phone", "shop", "web"] and none is None


# --- neighbors -------------------------------------------------------------------------------------------------------

FORMS = (
    "PRIVATE_ARGMAX({t}, {n})", "PRIVATE_TOP_K({t}, COUNT(*), 2)", "PRIVATE_ARGMAX({t} = 'own0', SUM({n}))",
    "PRIVATE_ARGMAX({t} = 'own0', COUNT(*)) FILTER (WHERE {n} > 0)", "POSTERIOR_SAMPLE({n} > 0)",
    "POSTERIOR_SAMPLE({n} > 0, draws => 2, truncate => 0.3)",
)  # fmt: skip


def test_neighbors_stay_within_the_claims() -> None:
    """Made-up schemas, heavy units, both relations and groups of units: what is lost on a pair, exactly."""
    answered = 0
    with open_harness() as bench:
        for number in range(14):
            draws = ChoiceStream(f"best/{number}")
            world = generate_from_schema(random_schema(draws), draws)
            bench.load_pair(world, random_pair(world, draws))
            for form in FORMS:
                laid = draws.choice(world.private_tables)
                numbers = [c.name for c in laid.columns if c.declared.type.is_number and c.declared.domain.is_bounded]
                texts = [c.name for c in laid.columns if c.own]
                if not numbers or not texts:
                    continue
                n, t = f'"{draws.choice(numbers)}"', f'"{draws.choice(texts)}"'
                group = draws.choice(("", "", f" GROUP BY {n} > 0"))
                sql = f'SELECT {form.format(n=n, t=t)} FROM "{laid.name}"{group}'
                outcome = bench.run_trial(random_trial_statement(world, sql, draws))
                assert not outcome.findings, (sql, outcome.findings)
                answered += outcome.kind == "answered"
    assert answered > 20
