"""Plant known privacy bugs, one at a time, in a copy of the package; each must make a test fail.

    make mutants                     all of them
    python tests/mutants.py clip     those with "clip" in their name

Prints a table; exits 1 if a mutant survives, if its patch no longer applies, or if the tests fail without any.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parent.parent
WORKERS = 2
TIMEOUT = 240

CLAIM = ("tests/property/test_sensitivity.py", "-k", "one_unit_moves")
FAR = ("tests/property/test_sensitivity.py", "-k", "far_end")
SPELLING = ("tests/property/test_sensitivity.py", "-k", "spelling")
TALLIES = ("tests/property/test_weighted_rows.py",)
STUDIES = ("tests/unit/compiler/test_weighted_rows.py",)
COVERED = ("tests/unit/session/artifacts/test_create_synthetic_table.py", "-k", "together_or or made_again")
OBJECTS = ("tests/unit/ledger/test_named_objects.py", "-k", "sqlite")
MINIMISER = ("tests/property/test_logistic_solver.py",)
SANITISING = ("tests/property/test_sanitising.py", "-k", "declared_bounds")
IDENTITY = ("tests/property/test_identity.py",)
RELATIONS = ("tests/property/test_relations.py",)
BOUNDED = ("tests/property/test_sensitivity.py", "-k", "within_a_unit and bounds")
DOMAINS = ("tests/property/test_domains.py",)
WORDS = ("tests/unit/engines/test_duckdb.py", "-k", "says_nothing_about_rows")
ERRORS = ("tests/property/test_errors.py", "-k", "no_row or fixed_text")
CANON = ("tests/property/test_canonical.py",)
PAID = ("tests/property/test_charge_order.py",)
CONCURRENT = ("tests/property/test_ledger_concurrency.py",)
ATTACKS = ("tests/attacks/test_neighboring_rows.py",)
WIDE = ("tests/attacks/test_joins.py",)
CHANNELS = ("tests/attacks/test_side_channels.py",)
TRAPS = ("tests/attacks/test_known_pitfalls.py",)
PRICES = ("tests/attacks/test_known_pitfalls_pricing.py",)
HOLES = ("tests/unit/session/postprocess/test_runtime_parameters.py",)
LEDGER = ("tests/unit/ledger/test_ledger.py",)
ACCOUNTS = ("tests/unit/ledger/test_ledger_accounts.py",)
FILTERS = ("tests/unit/privacy/test_filters.py",)
CHAIN = ("tests/unit/ledger/test_hash_chain.py",)
CHECKER = ("tests/unit/ledger/loss_checker/test_checker.py",)
DERIVE = ("tests/property/test_derive.py",)
DERIVED = ("tests/unit/session/test_reuse.py",)
SUMS = ("tests/unit/compiler/reuse/test_derive_noise.py",)
VERSIONS = ("tests/unit/session/dataset/test_versions.py", "-k", "TestSchedule")
FOUND = ("tests/attacks/test_ledger.py",)
READING = ("tests/unit/ledger/test_ledger_snapshots.py",)
REMEMBERED = ("tests/unit/session/test_session.py", "-k", "remembered or asked_again")
REMEMBERED_ANSWERS = ("tests/unit/session/test_session_results_cache.py",)
LEASES = ("tests/unit/ledger/test_leases.py",)
PROCESSES = ("tests/unit/session/dataset/test_runs_processes.py",)
PILOT = ("tests/unit/session/test_pilot.py",)
QUOTES = ("tests/unit/session/test_pricing.py",)
ACCURATE = ("tests/unit/compiler/test_accuracy.py",)
SELECTION = ("tests/unit/privacy/test_partition_selection.py",)
CHOICE = ("tests/property/test_exponential.py",)
MODELS = ("tests/unit/privacy/regression/test_regression.py",)
MODEL_MOVES = ("tests/property/test_regression.py",)
BLOCKWISE = ("tests/attacks/test_blockwise.py", "-k", "not refusals")
LOCAL = ("tests/property/test_local_sensitivity.py",)
MEDIANS = ("tests/unit/compiler/calibrate/test_local_sensitivity.py",)
SMOOTHED = ("tests/unit/privacy/test_median.py",)
DRAFTS = ("tests/unit/interfaces/cli/test_init.py",)
CHECKS = ("tests/unit/interfaces/cli/test_check.py",)
PRICE = ("tests/unit/privacy/test_exponential.py",)
SCORES = ("tests/property/test_score_selection.py",)
BEST = ("tests/unit/privacy/test_score_selection.py",)
BEST_ATTACKS = ("tests/attacks/test_score_selection.py",)
DRAWS = ("tests/unit/privacy/test_sampling.py",)
DRAWN = ("tests/unit/privacy/test_audit_record_draws.py",)
CALIBRATED = ("tests/unit/compiler/calibrate/test_calibrate.py",)
MADE_UP_BLOCKS = ("tests/unit/verify/test_trial.py", "-k", "one_block")
NAMED_MODELS = ("tests/unit/session/artifacts/test_create_model.py", "-k", "two_names")
BLOCKS = ("tests/unit/privacy/test_release.py",)
RUNS = ("tests/unit/session/dataset/test_runs.py", "tests/unit/session/dataset/test_runs_errors.py")
SHARED = ("tests/unit/session/dataset/test_runs_shared.py",)
ENGINE = ("tests/unit/engines/test_duckdb.py",)
FILE = ("tests/unit/ledger/test_sqlite.py",)
SEALED = ("tests/unit/privacy/test_exact.py",)
RULES = ("tests/attacks/test_soundness_rows.py",)
ANSWERS = ("tests/attacks/test_soundness_answers.py",)
INJECTION = ("tests/attacks/test_injection.py",)
EVASION = ("tests/attacks/test_ledger_evasion.py",)
PINS = ("tests/unit/session/dataset/test_file_identity.py",)
STALE = ("tests/unit/session/dataset/test_versions.py", "-k", "no_names")
STATE = ("tests/unit/session/test_transaction.py",)
ROLES = ("tests/unit/session/test_roles.py",)
CHILDREN = ("tests/unit/session/postprocess/test_worker_pool.py",)
OPTIONS = ("tests/clients/sqlalchemy/test_dialect_statements.py", "-k", "nearly_a_setting")
PLANTED = ("tests/unit/owner/draft/test_init_regressions.py", "-k")
USERS = ("tests/unit/owner/test_users.py", "-k", "more_than_was_meant or nowhere")
PASSWORDS = ("tests/unit/base/test_scram_verifier.py", "-k", "rfc or schema_takes")
OPENING = ("tests/unit/interfaces/dbapi/test_background_open.py", "-k", "changed or nothing")
DOORS = ("tests/attacks/test_interfaces.py",)
SHELL = ("tests/unit/interfaces/repl/test_shell.py",)
PYTHON = ("tests/attacks/test_python_interface.py",)
FREE = ("tests/attacks/test_free_statements.py",)
MADE_UP = ("tests/corpus/test_previews.py",)
EXPLAINED = ("tests/attacks/test_neighboring_rows.py", "-k", "explain")
CATALOG = ("tests/unit/session/postprocess/test_catalog_sandbox.py",)
TALK = ("tests/unit/interfaces/pgwire/backend_session/test_protocol_session.py",)
BYTES = ("tests/unit/interfaces/pgwire/protocol/test_frontend.py",)
SCRAM = ("tests/unit/base/test_scram_server.py",)
NAMES = ("tests/unit/interfaces/pgwire/backend_session/test_portals.py",)
LOGINS = ("tests/unit/session/test_logins.py",)
FAILING = ("tests/unit/interfaces/pgwire/server/test_login_throttle.py",)
TURNS = ("tests/unit/interfaces/pgwire/server/test_scheduler.py",)
WATCHED = ("tests/unit/interfaces/pgwire/server/test_health_endpoint.py",)
DATABASES = ("tests/unit/interfaces/pgwire/server/test_databases.py",)
ROBUST = ("tests/clients/wire/test_server_robustness.py", "-k")
LIFE = ("tests/clients/wire/test_server_lifecycle.py", "-k")
REMOTE = ("tests/unit/remote",)
POSTERIORS = ("tests/unit/session/postprocess/test_posteriors.py",)
POSTERIOR_STATEMENTS = ("tests/unit/session/test_session_posteriors.py",)
RESPONDED = ("tests/attacks/test_randomized_response.py",)
RESPONSE = ("tests/property/test_randomized_response.py",)
POLLS = ("tests/unit/session/postprocess/test_estimates_randomized_response.py",)
SYNTHESIS = ("tests/property/test_synthesis.py",)
SYNTHETIC_LOSS = ("tests/unit/privacy/synthetic/test_synthesis.py",)
TRUSTED = ("tests/clients/wire/test_remote_connection.py", "-k", "trusted or certificate")


@dataclass(frozen=True)
class Edit:
    file: str
    old: str
    new: str


@dataclass(frozen=True)
class Mutant:
    """One bug: text that is replaced, and the tests that must see it."""

    name: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


def mutant(name: str, file: str, old: str, new: str, tests: tuple[str, ...] = CLAIM) -> Mutant:
    return Mutant(name, (Edit(file, old, new),), tests)


RENDER, ROWS, EXPR, FUNCTIONS = "sql/render.py", "sql/render_rows.py", "sql/render_expr.py", "functions/numbers.py"
BUNDLES, CELLS, DISTINCT = "plan/bundles.py", "sql/render_bundles.py", "sql/render_distinct.py"
SENSITIVITY, UNITS, CALIBRATE = "analysis/sensitivity.py", "analysis/units.py", "calibrate.py"
MECHANISMS, CHOOSE, SAMPLING = "privacy/mechanisms.py", "privacy/selection.py", "privacy/sampling.py"
BINS = "privacy/choice.py"
SMOOTH, TESTING = "privacy/smooth.py", "privacy/ptr.py"
LOOKS, SYNTHETIC = "privacy/looks.py", "privacy/synthesis.py"

BLOCK_SQL = "sql/render_blocks.py"

THRESHOLD, QUESTIONS = ("tests/property/test_sparse_vector.py",), ("tests/unit/privacy/test_sparse_vector.py",)
TOLD = ("tests/unit/ledger/test_interactive_answers.py", "-k", "sqlite")
INTERACTIVE = ("tests/unit/session/mechanisms/test_interaction.py", "-k")
NAMED = ("tests/unit/session/mechanisms/test_registry.py", "-k")

MUTANTS = (
    mutant("a minimiser that floats do not certify is used", "privacy/minimiser.py",
           "    if is_certified(problem, w, problem.gradient(w), tolerance):\n", "    if True:\n", MINIMISER),
    mutant("the exact solver stops too soon", "privacy/decimals.py",
           "near = (decimal(tolerance) / 2) ** 2", "near = Decimal(10) ** 40", MINIMISER),
    mutant("a slope may be as far out as it likes", "privacy/objective.py",
           "jacobian <= each * MOST_JACOBIAN", "jacobian < each", MINIMISER),
    # --- models
    mutant("a model forgets the determinant (the form of 2008)", "privacy/objective.py",
           "(root_above(self.design.width) / self.scale + self.jacobian)",
           "(root_above(self.design.width) / self.scale)", MODELS),
    mutant("a model's determinant is not held against its ridge", "privacy/objective.py",
           "log_at_least(1 + CURVATURE / self.ridge.least) > self.jacobian", "False", MODELS),
    mutant("a model's solver is taken to be exact", "privacy/regression.py",
           "(Fraction(mass.l1, mass.whole) + 2 * TOLERANCE) * steps", "Fraction(mass.l1, mass.whole) * steps", MODELS),
    mutant("a model's solver is taken to be exact under objective perturbation", "privacy/objective.py",
           "2 * (TOLERANCE + 2 * root * scale / SLOPE_STEPS) * STEPS", "2 * (2 * root * scale / SLOPE_STEPS) * STEPS",
           MODELS),
    mutant("a model's slope is taken to be real", "privacy/objective.py",
           "2 * (TOLERANCE + 2 * root * scale / SLOPE_STEPS) * STEPS", "2 * TOLERANCE * STEPS", MODELS),
    mutant("a model's float error is not in its certificate", "privacy/minimiser.py",
           "* (1 + 2.0**-40) + problem.error(w) <= float(tolerance)", "<= float(tolerance)", MODELS),
    mutant("a model's objective forgets the rows that leave", "privacy/objective.py",
           "return mass.group_size * (2 if mass.change_one else 1)", "return mass.group_size", MODELS),
    mutant("a model's objective forgets the group", "privacy/objective.py",
           "return mass.group_size * (2 if mass.change_one else 1)", "return 2 if mass.change_one else 1", MODEL_MOVES),
    mutant("a model's ridge counts rows as if a unit had one", "privacy/tally.py",
           "return Sensitivity(mass.moved, mass.moved**2, mass.moved)",
           "return Sensitivity(mass.whole, mass.whole**2, mass.whole)", MODELS),
    mutant("a model's coefficients move in L1 as in L2", "privacy/regression.py",
           "return Sensitivity(ceil(root * far) + d,", "return Sensitivity(far + d,", MODELS),
    mutant("models: the checker forgets the solver", "ledger/check_models.py",
           "far = (gradient + 2 * fraction(figures[\"tolerance\"])) * steps", "far = gradient * steps", MODELS),
    mutant("models: the checker forgets the determinant", "ledger/check_models.py",
           "* (_root(d) / scale + jacobian)", "* (_root(d) / scale)", MODELS),
    mutant("models: the checker forgets the rows that leave", "ledger/check_models.py",
           "Fraction(mass.sides * mass.moved, mass.whole)", "Fraction(mass.moved, mass.whole)", MODELS),
    mutant("a model's objective is perturbed for units of many rows", "privacy/objective.py",
           "if not self.mass.one_row:", "if False:", MODELS),
    mutant("a model's features leave the unit ball", "privacy/design.py",
           "return root_above(1 + len(self.axes))", "return root_above(len(self.axes))", MODEL_MOVES),
    mutant("a model's intercept is free", "privacy/minimiser.py",
           "return pulled + (self.ridge * w + self.slope)",
           "return pulled + (self.ridge * np.concatenate([[1e-6 * w[0]], w[1:]]) + self.slope)", MODEL_MOVES),
    mutant("a model's moments are those of half a row", "privacy/moments.py",
           "return Sensitivity(far * row, far**2 * row, far)",
           "return Sensitivity(far * row // 2, far**2 * row // 4, far)", MODEL_MOVES),
    mutant("a model's unit weighs one row", "privacy/moments.py",
           "far = mass.l1 << 2 * STEPS - shift", "far = mass.whole << 2 * STEPS - shift", MODEL_MOVES),
    # --- what is drawn is what is charged
    mutant("drawn: a model's ridge follows from the exact count", "privacy/regression.py",
           "ridge = self.ridge.at(counted, self.mass)", "ridge = self.ridge.at(int(tally.weights.sum()), self.mass)",
           DRAWN),
    mutant("drawn: an objective's ridge follows from the exact count", "privacy/objective.py",
           "ridge = self.ridge.at(counted, self.mass)", "ridge = self.ridge.at(int(tally.weights.sum()), self.mass)",
           DRAWN),
    mutant("drawn: a model's rows are counted without noise", "privacy/ridge.py",
           "min(1 << 62, weight)) + int(draw(self.counting, 1, sampler)[0])", "min(1 << 62, weight))", DRAWN),
    mutant("drawn: half of the noise in an objective's coefficients", "privacy/objective.py",
           "draw(self.noise, self.design.width, sampler)",
           "draw(Laplace(self.noise.scale / 2), self.design.width, sampler)", DRAWN),
    mutant("drawn: half of each draw in a look", LOOKS,
           "exact + noise.reshape(exact.shape)", "exact + noise.reshape(exact.shape) // 2", DRAWN),
    mutant("drawn: one draw for all cells of a look", LOOKS,
           "noise = draw(mechanism, exact.size, self.__sampler)",
           "noise = np.repeat(draw(mechanism, 1, self.__sampler), exact.size)", DRAWN),
    mutant("drawn: the furthest is chosen twice as sharply as is charged", LOOKS,
           "self.__sampler.choose(penalties, scale)", "self.__sampler.choose(penalties, scale / 2)", DRAWN),
    mutant("drawn: a posterior is twice as sharp as is charged", "privacy/scores.py",
           "sampler.choose(found, drawing.scale)", "sampler.choose(found, drawing.scale / 2)", DRAWN),
    mutant("drawn: half of the noise of every mechanism", MECHANISMS,
           "return sampler.laplace(n, scale)", "return sampler.laplace(n, scale / 2)", DRAWN),
    mutant("calibrated: many groups of scores are taken for one", CALIBRATE,
           "single = len(gather.keys) == (1 if is_best else 0)", "single = True", CALIBRATED),
    mutant("calibrated: signed scores are taken to move one way", CALIBRATE,
           "non_negative = not isinstance(part, Sum) or all(bundle.non_negative for bundle in part.bundles)",
           "non_negative = True", CALIBRATED),
    mutant("calibrated: each group of a smooth median has all of delta", "medians.py",
           "calibrate_smooth(each, delta / reached.blocks, reached, count)",
           "calibrate_smooth(each, delta, reached, count)", MEDIANS),
    mutant("calibrated: each group of a tested median has all of delta", "medians.py",
           "calibrate_proposed(each, delta / reached.blocks, _proposal", "calibrate_proposed(each, delta, _proposal",
           MEDIANS),
    mutant("calibrated: rows that are not weighed are one", "analysis/sensitivity.py",
           "return UnitMass(rows, 1, rows == 1, k, change_one)", "return UnitMass(1, 1, True, k, change_one)", TALLIES),
    # --- threshold queries and the holdout
    mutant("sparse: the threshold's noise is drawn once", "privacy/threshold.py",
           "        if self.__left:\n", "        if False:\n", THRESHOLD),
    mutant("sparse: questions have no noise", "privacy/threshold.py",
           "compared + self.__draw(spec.query_scale) <", "compared <", THRESHOLD),
    mutant("sparse: half of the noise in questions", "privacy/threshold.py",
           "scale_at_least(4 * STEPS / each)", "scale_at_least(2 * STEPS / each)", QUESTIONS),
    mutant("sparse: the noise of the threshold is not charged", "privacy/threshold.py",
           "parts = [STEPS / self.threshold_scale + 2 *", "parts = [2 *", QUESTIONS),
    mutant("sparse: the number given is the one compared", "privacy/threshold.py",
           "(steps + self.__draw(spec.answer_scale)) * spec.step", "steps * spec.step", THRESHOLD),
    mutant("sparse: it goes on after its last answer", "privacy/threshold.py",
           "self.__asked + 1 or not self.__left:", "self.__asked + 1:", QUESTIONS),
    mutant("sparse: questions that move further are judged", "privacy/threshold.py",
           "if question.sensitivity > spec.sensitivity:", "if False:", QUESTIONS),
    mutant("sparse: the checker counts one move of the last question", "ledger/check_sparse.py",
           "Fraction(2 * sparse.l1)", "Fraction(sparse.l1)", QUESTIONS),
    mutant("sparse: a question that is turned around moves nothing", "privacy/threshold.py",
           "return abs(self.worth) * self.l1", "return self.worth * self.l1", QUESTIONS),
    mutant("sparse: the checker forgets the numbers that are given", "ledger/check_sparse.py",
           "sparse.answers * (finding**2 + telling**2) / 2", "sparse.answers * (finding**2) / 2", QUESTIONS),
    mutant("picks: the checker counts one of two blocks that change", "ledger/checker.py",
           "in_one = (f + g) * (2 if weights.change_one else 1) * weights.group_size",
           "in_one = (f + g) * weights.group_size", CHECKER),
    mutant("models: the checker takes a count for free", "ledger/check_models.py",
           'if "count" not in figures:', "if True:", MODELS),
    mutant("objects: a model is shown under the name that was seen first", "objects/own.py",
           "key = (made.release, made.name, made.definition)", "key = (made.release,)", NAMED_MODELS),
    mutant("sparse: a question with a hole is put as it stands", "interactive/question.py",
           "plain = not step.keys and not step.holes and", "plain = not step.keys and",
           (*INTERACTIVE, "one_number")),
    mutant("sparse: a mechanism's charge is redeemed", "ledger/answers.py",
           '"void" if asked.once else "paid"', '"paid"', TOLD),
    mutant("sparse: a question's number is taken twice", "ledger/transcripts.py",
           "if _find(db, release, number) is not None or (", "if (", TOLD),
    mutant("sparse: what is done to the number is left out", "interactive/question.py",
           "if not plain or not _AS_IT_IS.fullmatch(compiled.post_sql) or", "if not plain or",
           (*INTERACTIVE, "one_number")),
    mutant("sparse: an answer that was not stored is asked again", "interactive/interaction.py",
           "self._watch.asked >= number:", "False:", (*INTERACTIVE, "could_not_be_stored")),
    mutant("mechanisms: another account asks", "interactive/interaction.py",
           "if queries.role.account != self.account:", "if False:", (*NAMED, "change_of_the_role")),
    mutant("mechanisms: a change of the role ends none", "held.py",
           'self.mechanisms.end("the role of its connection has changed")', "pass", (*NAMED, "change_of_the_role")),
    mutant("mechanisms: CLOSE ALL leaves them", "held.py",
           '            self.mechanisms.close_all()\n            return "CLOSE CURSOR ALL"',
           '            return "CLOSE CURSOR ALL"', (*NAMED, "closing_ends")),
    mutant("mechanisms: a question that was left is judged again", "interactive/interaction.py",
           "self._last = *found, Ticket(canceled=True)", "pass", (*NAMED, "left_is_judged_once")),
    mutant("mechanisms: an answer that nobody got is judged again", "interactive/interaction.py",
           "self._last[0] == asked and self._last[2].canceled:", "False:", (*NAMED, "delivery_was_canceled")),
    mutant("mechanisms: a question is the same whatever it is held against", "interactive/interaction.py",
           "repr((statement, beside))", "repr(statement)", (*NAMED, "another_mean")),
    mutant("mechanisms: what a holdout is held against is bought", "interactive/named.py",
           "before, ticket.free = ticket.free, True", "before = ticket.free", (*NAMED, "where_that_is_free")),
    mutant("mechanisms: a connection holds any number", "interactive/named.py",
           "        if len(self._held) >= MOST:\n            raise", "        if False:\n            raise",
           (*NAMED, "number_is_bounded")),
    mutant("mechanisms: what was left is kept without end", "interactive/interaction.py",
           "deque(maxlen=MOST_UNTOLD)", "deque()", (*NAMED, "memory")),
    mutant("mechanisms: EXPLAIN pays", "interactive/interaction.py",
           "        loss, paid = spec.loss, self._claim is not None\n",
           "        self._pay(queries, spec)\n        loss, paid = spec.loss, self._claim is not None\n",
           (*NAMED, "explaining_and_preparing")),
    mutant("mechanisms: each question is a mechanism of its own", "interactive/interaction.py",
           "            if self._claim is not None:\n                queries.buyer.require_allowed()",
           "            if False:\n                queries.buyer.require_allowed()", (*NAMED, "pays_for_all")),
    mutant("a changed unit of made-up rows keeps its id", "verify/neighbors.py",
           "return number + _OTHERS if draws.chance(0.5) else number", "return number", MADE_UP_BLOCKS),
    mutant("a tally's rows are not weighed", "rewrite/tally.py",
           "summed = weigh_units(kept, (), (CountBundle(CELL, None),), replace(policy, norm=Norm.L1))",
           "summed = Sum(kept, (), (CountBundle(CELL, None),))", TALLIES),
    mutant("the mass of a weighed unit is one row", "analysis/sensitivity.py",
           "return UnitMass(part.input.rows * ONE, ONE, False, k, change_one)",
           "return UnitMass(ONE, ONE, False, k, change_one)", TALLIES),
    mutant("a mass forgets the group", "privacy/tally.py",
           "return self.group_size * self.norm", "return self.norm", STUDIES),
    mutant("a mass forgets what leaves", "privacy/tally.py",
           "return self.moved * (2 if self.change_one else 1)", "return self.moved", STUDIES),
    mutant("a study is for any tally", "calibrate.py",
           "if study.mass != unit_mass(tally, relation):", "if False:", STUDIES),
    mutant("two studies of the same rows are one release", "studying.py",
           "*declared, repr(axes), written])", "*declared, repr(axes)])", STUDIES),
    mutant("two codings of the same rows are one release", "studying.py",
           "*declared, repr(axes), written])", "*declared, written])", STUDIES),
    mutant("a synthetic table's looks have no noise", LOOKS,
           "noisy: Cells = exact + noise.reshape(exact.shape)", "noisy: Cells = exact + 0 * noise.reshape(exact.shape)",
           DRAWN),
    mutant("studies: the checker counts one side of a marginal", "ledger/check_studies.py",
           '"marginal": mass.sides, "furthest"', '"marginal": 1, "furthest"', SYNTHETIC_LOSS),
    mutant("studies: the checker takes a choice for half of what it tells", "ledger/check_studies.py",
           "pure, concentrated = 2 * l1 / scale, (2 * l1 / scale) ** 2 / 8",
           "pure, concentrated = l1 / scale, (l1 / scale) ** 2 / 8", SYNTHETIC_LOSS),
    mutant("scores: the checker takes permute-and-flip for the exponential mechanism", "ledger/check_scores.py",
           'if scoring.kind != "flip":', "if True:", CHECKER),
    mutant("scores: the checker forgets the rounds", "ledger/check_scores.py",
           "return scoring.rounds * spread * rate, scoring.rounds * each", "return spread * rate, each", CHECKER),
    mutant("medians: the checker forgets the blocks", "ledger/check_medians.py",
           "return self.blocks * self.epsilon**2 / 2,", "return self.epsilon**2 / 2,", SMOOTHED),
    mutant("medians: the checker takes a scale to grow by one step", "ledger/check_medians.py",
           "grown = _decimal(self.steps * self.rate).exp() - 1", "grown = _decimal(self.rate).exp() - 1", MEDIANS),
    mutant("the training set of a holdout is bought", "dbapi/interactive.py",
           "self._connection.sql(_put(self._train, question), free=True)",
           "self._connection.sql(_put(self._train, question))", (*INTERACTIVE, "training_set_is_free")),
    mutant("an object names what others paid for", "ledger/objects.py",
           "if unpaid(db, made.release, [account]):", "if False:", OBJECTS),
    mutant("an object is dropped by anybody", "ledger/objects.py",
           'db.rows("DELETE FROM object WHERE account = ? AND folded = ? AND kind = ?", account, name.lower(), kind)',
           'db.rows("DELETE FROM object WHERE folded = ? AND kind = ?", name.lower(), kind)', OBJECTS),
    mutant("randomized answers are kept too often", "privacy/response.py",
           "sampler.choose(penalties, 1 / epsilon)", "sampler.choose(2 * penalties, 1 / epsilon)", RESPONSE),
    mutant("a group of units loses like one", "privacy/response.py",
           "changed = self.mass.group_size", "changed = 1", RESPONSE),
    mutant("rows without an answer are not told", "rewrite/respond.py",
           "Coding(MOST_VALUES, {}, True, every=True)", "Coding(MOST_VALUES, {}, True)", RESPONDED),
    mutant("randomized answers of some rows alone are told", "sql/randomized.py",
           "if not isinstance(column, Column) or not isinstance(relation.node, Table):",
           "if not isinstance(column, Column):", RESPONDED),
    mutant("randomized answers of units with several rows are told", "sql/randomized.py",
           "elif not _one_row(found):", "elif False:", RESPONDED),
    mutant("the number of randomized answers is told under add_remove", "sql/randomized.py",
           "if schema.privacy.neighbors is not Neighbors.CHANGE_ONE:", "if False:", RESPONDED),
    mutant("WHERE decides whose randomized answers are told", "sql/randomized.py",
           'ALLOWED = ("expressions", "from_")', 'ALLOWED = ("expressions", "from_", "where")', RESPONDED),
    mutant("units in other tables alone are missed among randomized answers", "sql/randomized.py",
           "elif sum(not table.public for table in schema.tables) > 1:", "elif False:", RESPONDED),
    mutant("an account's largest query does not see RANDOMIZED", "settings.py",
           "return replace(settings, epsilon=sum(named, Fraction(0)), delta=Fraction(0))", "return settings",
           RESPONDED),
    mutant("randomized answers are debiased beside a condition on them", "rewrite/debias.py",
           "if origin is not None and origin not in self.rows and", "if origin is not None and", POLLS),
    mutant("what counts answers as recorded says nothing", "rewrite/debias.py",
           "        if self.aggregate.measures:\n            self.as_recorded |= self.rows\n", "", POLLS),
    mutant("one answer in two keys is taken for two", "rewrite/debias.py",
           " and sum(origin in origins for origins in each) == 1", "", POLLS),
    mutant("the chance of the randomizing is left out of the bars", "post/randomized.py",
           "return np.maximum(self.squares(seen) - self.sums(seen), 0.0)", "return np.zeros_like(seen)", POLLS),
    mutant("the recorded answer hides in a per-unit aggregate", "analysis/randomized.py",
           "NONE if m.arg is None else below.of(m.arg)", "NONE", POLLS),
    # --- synthetic tables
    mutant("a marginal moves as little as a total", LOOKS, "return Sensitivity(mass.l1, mass.l2_squared, mass.moved)",
           "return Sensitivity(mass.moved, mass.moved**2, mass.moved)", SYNTHESIS),
    mutant("the furthest marginal is chosen at half its price", LOOKS,
           "return Loss(2 * mass.l1 / scale, mass.l1**2 / (2 * scale**2), Fraction(0))",
           "return Loss(mass.l1 / scale, mass.l1**2 / (8 * scale**2), Fraction(0))", SYNTHESIS),
    mutant("distances count twice", LOOKS, "return int(np.abs(self.__exact(marginal) - whole).sum())",
           "return 2 * int(np.abs(self.__exact(marginal) - whole).sum())", SYNTHESIS),
    mutant("a tuple's weight enters a marginal squared", LOOKS, "np.add.at(sums, places, self.__tally.weights)",
           "np.add.at(sums, places, self.__tally.weights * self.__tally.weights)", SYNTHESIS),
    mutant("rounds are paid once", SYNTHETIC, "losses += [marginal_loss(self.pairs, self.mass)] * self.rounds",
           "losses += [marginal_loss(self.pairs, self.mass)]", SYNTHESIS),
    mutant("choices are free", SYNTHETIC, "losses += [furthest_loss(self.choosing, self.mass)] * self.rounds",
           "losses += []", SYNTHESIS),
    mutant("the total is free", SYNTHETIC, "losses = [total_loss(self.total, self.mass)]", "losses = []", SYNTHESIS),
    mutant("a unit of many rows weighs one in marginals", LOOKS,
           "    return Sensitivity(mass.l1, mass.l2_squared, mass.moved)",
           "    return Sensitivity(mass.l1 // mass.norm * mass.whole, mass.l2_squared, mass.moved)", SYNTHESIS),
    # --- blocks of units
    mutant("blocks are made of rows and not of units", BLOCK_SQL,
           "hash({UID}, {text(SALT)})", "hash({UID}, {text(SALT)}, COLUMNS(*)::VARCHAR)", BLOCKWISE),
    mutant("copies of a row that is a unit lie in several blocks", BLOCK_SQL,
           'f"hash({identifier(ROW)}, {text(SALT)})"', 'f"hash({identifier(ROW)}, random())"', BLOCKWISE),
    mutant("a block without a number is at the lower bound", BLOCK_SQL,
           "ELSE CAST({blocks.middle} AS BIGINT) END", "ELSE CAST(0 AS BIGINT) END", BLOCKWISE),
    mutant("blocks without rows are at the lower bound", BLOCK_SQL,
           "SUM({STEP} - {part.blocks.middle})", "SUM({STEP})", BLOCKWISE),
    mutant("blocks without rows are in no bin", BLOCK_SQL,
           "THEN {without} ELSE 0 END", "THEN 0 ELSE 0 END", BLOCKWISE),
    mutant("a block's number is not clipped", BLOCK_SQL,
           "LEAST(GREATEST(COALESCE({steps}, {blocks.middle}), 0), {blocks.steps})",
           "COALESCE(round((r - {lower}) * {scale})::HUGEINT, 0)", BLOCKWISE),
    mutant("a block's mean is a sum of doubles", BLOCK_SQL,
           'worth(f"(CAST(SUM({value}) AS DOUBLE) / NULLIF(COUNT({value}), 0))", arg.grid)',
           'f"AVG(0.1::DOUBLE * {value} + 1e15)"', BLOCKWISE),
    mutant("a unit changes one block, also where another takes its place", SENSITIVITY,
           "return 2 if relation.change_one else 1", "return 1", BLOCKWISE),
    mutant("a unit reaches one group, whatever the keys", SENSITIVITY,
           "    return max(1, min(bounds))\n\n\ndef _combinations", "    return 1\n\n\ndef _combinations", BLOCKWISE),
    mutant("keys that are selected count as listed", SENSITIVITY,
           "    if spread <= {f.name for factor in factors for f in factor.keys}:", "    if True:",
           ("tests/attacks/test_blockwise.py", "-k", "refusals")),
    mutant("a block that changes only leaves its bin", BINS,
           "return self.group_size * self.each * self.groups * sum(_moves(target), Fraction(0))",
           "return self.group_size * self.each * self.groups * _moves(target)[0]", BLOCKWISE),
    # --- what is free
    mutant("groups that must be selected count as listed", "rewrite/known_groups.py",
           "return not gather.all_parts", "return not gather.parts", FREE),
    mutant("the range of some rows is the declared one", "sql/ranges.py",
           "if isinstance(node, Filter) and all(_is_present(part, column) for part in conjuncts(node.condition)):",
           "if isinstance(node, Filter):", FREE),
    mutant("bounds stand for rows within conditions", "sql/split.py",
           "DeclaredEnds(self.state.schema, self.ranges) if id(select) in self.shown else None",
           "DeclaredEnds(self.state.schema, self.ranges)", FREE),
    mutant("a preview reads the table itself", "sql/public_sources.py",
           "        if not declared.public:\n", "        if False:\n", FREE),
    mutant("made-up rows are aggregated", "sql/previews.py",
           "if groups or isinstance(node, exp.Window | exp.Pivot) or is_aggregate(node):", "if False:", FREE),
    mutant("that rows are made up is no warning", "compile.py",
           "warnings=(MADE_UP,) if parts.made_up else (),", "warnings=(),", MADE_UP),
    mutant("who wants no notices is not warned of made-up rows", "pgwire/telling.py",
           "yield from map(warning, answer.warnings)", "yield from map(notice, answer.warnings)", TALK),
    mutant("EXPLAIN tells where snapshots stand", "explain.py",
           "        if isinstance(table.source, Files):\n",
           "        if isinstance(table.source, Files) and table.source.format == \"parquet\":\n", EXPLAINED),
    mutant("EXPLAIN tells what a variable holds", "explain.py",
           "patterns=source.written or source.patterns", "patterns=source.patterns", EXPLAINED),
    mutant("one table's preview is every table's", "sql/previews.py",
           "if not state.preview or not table.preview:", "if not state.preview:", FREE),
    mutant("a release that is not needed is bought", "free.py",
           "        if release.name not in read | in_holes:\n            continue\n", "", FREE),
    mutant("a pattern's last character may be missing", "functions/patterns.py",
           'return all(part == "%%" for part in parts[place:])', "return len(parts) - place < 2",
           ("tests/property/test_functions.py",)),
    # --- the client of a server
    mutant("remote: a server's signature is not looked at", "remote/scram.py",
           "if self._signature is None or not hmac.compare_digest(signed, self._signature):",
           "if self._signature is None:", REMOTE),
    mutant("remote: a server that has proven nothing is believed", "remote/login.py",
           "                if not proven:\n", "                if False:\n", REMOTE),
    mutant("remote: a server gets as many proofs as it asks for", "remote/scram.py",
           "if self._signature is not None:", "if False:", REMOTE),
    mutant("remote: rows that a server tells of need not come", "remote/exchange.py",
           "if self.told.command is not None and self.told.rows != len(self.rows):", "if False:", REMOTE),
    mutant("remote: another server's nonce will do", "remote/scram.py",
           "if not nonce.startswith(self._nonce) or nonce == self._nonce:", "if False:", REMOTE),
    mutant("remote: channel binding that is required may be missing", "remote/scram.py",
           'if self.binding == "require":', "if False:", REMOTE),
    mutant("remote: any PostgreSQL is taken for dpsql", "remote/login.py",
           "    except (KeyError, ValueError):\n", "    except (KeyError, ValueError):\n"
           '        return meta.Server("", "", None)\n', REMOTE),
    mutant("remote: any certificate is trusted", "remote/sockets.py",
           'ssl.CERT_REQUIRED if mode in ("verify-ca", "verify-full") else ssl.CERT_NONE', "ssl.CERT_NONE", TRUSTED),
    mutant("remote: a certificate may be another host's", "remote/sockets.py",
           'context.check_hostname = mode == "verify-full"', "context.check_hostname = False", TRUSTED),
    mutant("remote: what must be free may be charged", "remote/session.py",
           "Wishes(tuple((settings or {}).items()), ticket.free)", "Wishes(tuple((settings or {}).items()))", REMOTE),
    mutant("remote: a cancel is for whatever is under way", "remote/session.py",
           "            if running is not None and ticket in (None, running):\n"
           "                running.canceled = True\n                self._link.cancel()\n",
           "            self._link.cancel()\n", REMOTE),
    mutant("remote: a statement that was canceled is sent", "remote/session.py",
           "            ticket.check(0)\n", "", REMOTE),
    mutant("remote: what failed was not charged", "remote/failures.py",
           "error.charge, error.statement = told.charge, inside", "error.statement = inside", REMOTE),
    mutant("remote: the charge of the statement before is told", "remote/session.py",
           "self._charged, self._heard = NOTHING, Heard()", "self._charged = NOTHING", REMOTE),
    mutant("remote: a password file that others can read is used", "remote/password.py",
           "if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):", "if False:", REMOTE),
    mutant("remote: the password is in the text of an address", "remote/address.py",
           "field(default=None, repr=False)  # never in a log or on a screen", "None", REMOTE),
    mutant("remote: figures are told as floats", "plain.py",
           "            return str(value)\n        case dt.date():", "            return str(Fraction(float(value)))\n"
           "        case dt.date():", ("tests/unit/remote", "tests/unit/base/test_serialization.py")),
    # --- the wire
    mutant("wire: describing a portal runs it", "pgwire/conversation.py",
           "        portal = self._held.portal(name)\n        if portal.statement.gives_rows:",
           "        portal = self._held.portal(name)\n        list(self._execute(portal, 1))\n"
           "        if portal.statement.gives_rows:", TALK),
    mutant("wire: a portal runs whenever it is executed", "pgwire/conversation.py",
           "            if portal.rows is None:\n                told", "            if True:\n                told",
           TALK),
    mutant("wire: the text of any exception is told", "pgwire/errors.py",
           'InternalError("internal error")', "InternalError(repr(error))", TALK),
    mutant("wire: what was charged is not told of a failure", "pgwire/errors.py",
           "sentences = [told.detail, charge_sentence(charge)]", "sentences = [told.detail]", TALK),
    mutant("wire: a failed transaction goes on", "pgwire/exchange.py",
           "if self.failed and command not in _ENDS:", "if False:", TALK),
    mutant("wire: after an error messages are obeyed", "pgwire/conversation.py",
           "                    self._skipping = True\n", "", TALK),
    mutant("wire: a cancel is kept for the next statement", "pgwire/exchange.py",
           "            with self._guard:\n                self._under_way = None\n",
           "            pass\n", TALK),
    mutant("wire: an answer is made all at once", "pgwire/results.py",
           "        if size >= CHUNK:", "        if False:", TALK),
    mutant("wire: portals hold any number of rows", "pgwire/conversation.py",
           "        self._held.check_rows()\n", "", TALK),
    mutant("wire: texts and values are held without limit", "pgwire/held.py",
           "if held + more > MOST_BYTES:", "if False:", TALK),
    mutant("wire: a message of any length is waited for", "pgwire/protocol.py",
           "if not 4 <= length <= self._most:", "if not 4 <= length:", BYTES),
    mutant("wire: more is kept than a message may have", "pgwire/protocol.py",
           "if len(data) > self.room:", "if False:", BYTES),
    mutant("wire: a transaction that failed begins again", "pgwire/exchange.py",
           '_ENDS = ("COMMIT", "ROLLBACK")', '_ENDS = ("COMMIT", "ROLLBACK", "BEGIN")', NAMES),
    mutant("wire: the values of portals are held without limit", "pgwire/held.py",
           " + sum(one.size for one in self.portals.values())", "", NAMES),
    # --- the server
    mutant("server: of a key four bytes are looked at", "passwords.py",
           "hmac.compare_digest(hashlib.sha256(client_key).digest(), self.stored_key)",
           "hmac.compare_digest(hashlib.sha256(client_key).digest()[:4], self.stored_key[:4])", SCRAM),
    mutant("server: the nonce of a login is always the same", "pgwire/nonces.py",
           "base64.b64encode(secrets.token_bytes(NONCE))", "base64.b64encode(bytes(NONCE))", SCRAM),
    mutant("server: whoever logs in is told all databases", "pgwire/login.py",
           " if opening.user in one.logins.known]", "]", DATABASES),
    mutant("server: any proof is right", "passwords.py",
           "return proven and len(proof) == len(signature)", "return len(proof) == len(signature)", SCRAM),
    mutant("server: who is unknown is let in", "pgwire/scram.py",
           "if not (proven and self.known):", "if not proven:", SCRAM),
    mutant("server: a login is bound to no certificate", "pgwire/scram.py",
           'if _base64_text(self.binding) != fields["c"]:', "if False:", SCRAM),
    mutant("server: someone between may take binding out of the list", "pgwire/scram.py",
           'if flag == "y" and channel.end_point is not None and mechanism == PLAIN:', "if False:", SCRAM),
    mutant("server: a proof of another exchange is right", "pgwire/scram.py",
           'if fields["r"] != self.nonce:', "if False:", SCRAM),
    mutant("server: a stranger's salt is none", "logins.py",
           "_salt_of(self.secret, user, self.salt)", "bytes(self.salt)", LOGINS),
    mutant("server: strangers have as many iterations as nobody else", "logins.py",
           "            self.iterations,\n            _salt", "            ITERATIONS,\n            _salt", LOGINS),
    mutant("server: failed logins cost nothing", "pgwire/failures.py",
           "            entry.free_at = max(entry.free_at, start) + step\n", "            pass\n", FAILING),
    mutant("server: many guesses at once take no longer than one", "pgwire/failures.py",
           "entry.free_at = max(entry.free_at, start) + step", "entry.free_at = now + step", FAILING),
    mutant("server: names and addresses are remembered without end", "pgwire/failures.py",
           "        while len(self._entries) > MOST:", "        while False:", FAILING),
    mutant("server: one account takes all threads", "pgwire/turns.py",
           "return self.taken < self.places and self.held[account] < (free_of_others + 1) // 2",
           "return self.taken < self.places", TURNS),
    mutant("server: who gives up waiting keeps the turn", "pgwire/turns.py",
           "            else:  # it was given the turn, and leaves without having used it\n"
           "                self.leave(account)\n", "", TURNS),
    mutant("server: the log has how long a statement took", "pgwire/logs.py",
           "return float(max(1, math.ceil(seconds / grid)) * grid) if grid else None", "return seconds", WATCHED),
    mutant("server: budgets are told to who brings any token", "pgwire/health.py",
           "if given is not None and not self._is_owner(given):", "if False:", WATCHED),
    mutant("server: without TLS it listens to everyone", "pgwire/server.py",
           "if open_to_all and options.certificate is None and not options.allow_plain:", "if False:", WATCHED),
    mutant("server: analysts share what was worked out", "pgwire/databases.py",
           "self._memories.setdefault((user, known), Memory())", 'self._memories.setdefault(("", ""), Memory())',
           DATABASES),
    mutant("server: a login of one database opens another", "pgwire/databases.py",
           "one if known and one is named else None", "one if known else None", DATABASES),
    mutant("server: bytes before TLS are obeyed inside it", "pgwire/login.py",
           "    if protocol.waiting or link.waiting:\n", "    if False:\n", (*ROBUST, "behind_a_request")),
    mutant("server: plain connections pass where TLS is required", "pgwire/login.py",
           "if rules.require_tls and link.tls is None and not link.is_local:", "if False:", (*ROBUST, "required")),
    mutant("server: half messages are kept without end", "pgwire/visit.py",
           "if self.house.buffered > self.house.bounds.buffered_bytes and waiting > CHUNK:", "if False:",
           (*ROBUST, "half_messages")),
    mutant("server: who does not read is written to without end", "pgwire/visit.py",
           "                    await self.link.drain(self.house.bounds.write_seconds or None)\n", "",
           (*ROBUST, "never_reads")),
    mutant("server: a cancel needs no key", "pgwire/visit.py",
           "if are_equal(key, message.secret) and visit is not None:", "if visit is not None:",
           (*LIFE, "needs_the_key")),
    mutant("server: who has left is still waited for", "pgwire/visit.py",
           "        self.link.left = self.detach\n", "", (*LIFE, "frees_its_thread")),
    mutant("server: running answers are cut off at the end", "pgwire/visit.py",
           "if self._idle and self._task is not None:", "if self._task is not None:", (*LIFE, "running_answers")),
    mutant("server: everyone sees all budgets", "pgwire/watching.py",
           "list(self._server.databases) if owner else []", "list(self._server.databases)", (*LIFE, "owners_token")),
    mutant("server: an unknown database is told before the login", "pgwire/login.py",
           "    channel = scram.Channel(", "    if opening.database not in databases.names:\n"
           "        raise _no_database(opening, databases)\n    channel = scram.Channel(", (*LIFE, "who_there_is")),
    # --- values
    mutant("a decimal bound has more digits than its type", EXPR,
           "max(-most, min(most, int(number * 10**scale)))", "int(number * 10**scale)", SANITISING),
    mutant("a whole bound is longer than any integer", EXPR,
           "max(-MOST_WHOLE, min(MOST_WHOLE, bound.__ceil__() if lower else bound.__floor__()))",
           "bound.__ceil__() if lower else bound.__floor__()", SANITISING),
    mutant("the clip of a double is forgotten", EXPR,
           'f"CASE WHEN {steps} BETWEEN {lower} AND {upper} THEN {steps} "',
           'f"CASE WHEN {steps} IS NOT NULL THEN {steps} "'),
    mutant("the clip of a whole number is off by one", EXPR,
           'f"CASE WHEN {arg} BETWEEN {lower} AND {upper} THEN',
           'f"CASE WHEN {arg} BETWEEN {lower} AND {upper + 1} THEN', FAR),
    mutant("NaN and infinities count as a bound", EXPR,
           'f"WHEN isfinite({arg}) THEN CASE WHEN', 'f"WHEN {arg} IS NOT NULL THEN CASE WHEN', IDENTITY),
    mutant("sensitivity is taken from the nearer bound", BUNDLES,
           "return max(abs(self.value.lower), abs(self.value.upper), 1)",
           "return max(min(abs(self.value.lower), abs(self.value.upper)), 1)"),
    mutant("components are divided after they are summed", CELLS,
           'f"SUM({component(names[0], weight, bundle.shift, bundle.value.lower >= 0)})"',
           'f"(SUM({component(names[0], weight, 0, True)}) // {1 << bundle.shift})"', FAR),
    mutant("the L2 norm of squares is that of one cell", BUNDLES,
           "return 2 * self.wide**4", "return self.wide**4", FAR),
    mutant("the L1 norm of squares is that of one cell", BUNDLES,
           "return 2 * self.wide**2", "return self.wide**2", FAR),
    mutant("the norms of products are those of squares", BUNDLES,
           "return 5 * self.wide**4", "return 2 * self.wide**4", FAR),
    mutant("squares are taken for non-negative", BUNDLES,
           "        return False\n\n\n@dataclass(frozen=True)\nclass CovarianceBundle",
           "        return True\n\n\n@dataclass(frozen=True)\nclass CovarianceBundle", FAR),
    mutant("a value that is multiplied may be wider than the other", BUNDLES,
           "max(self.scales[0] * width(self.first), self.scales[1] * width(self.second), 1)",
           "max(self.scales[0] * width(self.first), 1)"),
    mutant("products count rows where one value is missing", CELLS,
           'f"(CASE WHEN {other} IS NOT NULL THEN {one} END)"', 'f"COALESCE({one}, 0)"', IDENTITY),
    mutant("a product far from zero does not fit", CELLS,
           'return f"({scale} * (2 * {above} - {width(value)}))"',
           'return f"({2 * scale} * {render_expr(value)} - {scale} * CAST({value.lower + value.upper} AS BIGINT))"'),
    # --- contributions
    mutant("the weight is not applied", RENDER,
           'f"(SELECT {columns}COALESCE(weights.{WEIGHT}, {ONE}) AS {WEIGHT} "',
           'f"(SELECT {columns}{ONE} AS {WEIGHT} "'),
    mutant("the weight depends on other units", RENDER,
           'f"MATERIALIZED (SELECT {UID}, {most} // COUNT(*) AS {WEIGHT} "\n'
           '            f"FROM {rows} GROUP BY {UID} HAVING COUNT(*) > {weigh.rows})"',
           'f"MATERIALIZED (SELECT {UID}, {most} // GREATEST({weigh.rows}, (SELECT MAX(n) FROM "\n'
           '            f"(SELECT COUNT(*) AS n FROM {rows} GROUP BY {UID}))) AS {WEIGHT} "\n'
           '            f"FROM {rows} GROUP BY {UID})"'),
    mutant("the root of the norm is rounded down", RENDER,
           '"(CAST(ceil(sqrt(CAST(squares AS DOUBLE))) AS BIGINT) + 1)"',
           '"CAST(floor(sqrt(CAST(squares AS DOUBLE))) AS BIGINT)"', FAR),
    mutant("heavy units are found one row too late", RENDER,
           "WHERE total > {weigh.rows})", "WHERE total > {weigh.rows} + 1)", FAR),
    mutant("a unit with many rows is taken for unique", "rewrite/scan_tables.py",
           "unit_is_unique=direct is not None and table.is_unique(direct)", "unit_is_unique=direct is not None"),
    mutant("replacing a unit counts like removing it", SENSITIVITY,
           "if relation.change_one and not (single and non_negative):", "if False:"),
    mutant("a single cell of both signs is taken for non-negative", SENSITIVITY,
           "if relation.change_one and not (single and non_negative):", "if relation.change_one and not single:", FAR),
    mutant("the group size is ignored", SENSITIVITY, "    k = relation.group_size\n", "    k = 1\n"),
    mutant("each row counts for one group only", SENSITIVITY,
           "    return min(bounds)\n", "    return 1\n"),
    mutant("the far side of a LEFT JOIN is taken for the unit's", UNITS,
           "left.determined | (right.determined if join.is_inner else frozenset())",
           "left.determined | right.determined", (*WIDE, "-k", "votes")),
    mutant("distinct values have no limit", DISTINCT,
           "ANTI JOIN {many} USING ({UID}) UNION ", "UNION "),
    mutant("a unit keeps one distinct value too many", DISTINCT,
           "WHERE place <= {node.limit})", "WHERE place <= {node.limit + 1})"),
    mutant("distinct values of heavy units are counted each", DISTINCT,
           "USING ({UID}) UNION \"", "USING ({UID}) UNION ALL \"", IDENTITY),
    mutant("a unit's distinct values count once in all", SENSITIVITY,
           "        return node.limit\n", "        return 1\n"),
    # --- rows and units
    mutant("rows without a unit are kept", ROWS, ' FROM {sources} WHERE {uid} IS NOT NULL"', ' FROM {sources}"'),
    Mutant("rows of two units are joined",
           (Edit(ROWS, 'if public else f"l.{UID} = r.{UID} AND {render_expr(node.condition)}"', ""),
            Edit("sql/relation.py", "raise not_equated(joined.join, joined.hint)", "pass")), RELATIONS),
    mutant("a unit with a row for each of its groups is taken to have one", UNITS,
           "rows = 1 if len(determined) == len(node.keys) else inner.rows", "rows = 1", BOUNDED),
    Mutant("what all units add to a group is one part",
           (Edit(ROWS, "', '.join([UID, *keys, *measures])", "', '.join([f'MIN({UID}) AS {UID}', *keys, *measures])"),
            Edit(ROWS, "for place in range(1, len(keys) + 2))", "for place in range(2, len(keys) + 2)) or '()'")),
           BOUNDED),
    mutant("a window looks at the rows of all units", ROWS,
           'partition = ", ".join([*_uid(node.input), *map(render_expr, node.partition)])',
           'partition = ", ".join(["1", *map(render_expr, node.partition)])', RELATIONS),
    mutant("the least value of a unit is any of them", ROWS,
           'return f"{function.upper()}({sql}){over}"', 'return f"any_value({sql}){over}"', RELATIONS),
    mutant("squares within a unit are added up as doubles", ROWS,
           'f"CAST(SUM({part}) AS DOUBLE)" for part', 'f"SUM(CAST({part} AS DOUBLE))" for part', RELATIONS),
    # --- groups
    mutant("a unit keeps one key too many", RENDER, "WHERE place <= {limit})", "WHERE place <= {limit + 1})"),
    mutant("rows, not units, decide which keys appear", RENDER,
           'return f"MATERIALIZED (SELECT {names}, COUNT(*) AS n FROM {rows} GROUP BY {names})"',
           'return f"MATERIALIZED (SELECT {names}, 1 AS n FROM {rows})"'),
    mutant("public groups come from the rows", RENDER, "ctes |= _listed(gather.listed)",
           'ctes |= {name: "(SELECT 0 AS \\"_order\\", " + ", ".join(identifier(f.name) for f in factor.keys) + '
           'f" FROM {names[0]} GROUP BY ALL)" '
           "for name, factor in zip(_factor_names(gather.listed), gather.listed.factors)}"),
    mutant("the public NULL group loses its rows", RENDER,
           "{name}.{identifier(key)} IS NOT DISTINCT FROM {owner[key]}.{identifier(key)}",
           "{name}.{identifier(key)} = {owner[key]}.{identifier(key)}", IDENTITY),
    mutant("-0.0 and 0.0 are one key with two faces", FUNCTIONS,
           " THEN {args[0]} + CAST('0.0' AS DOUBLE) END", " THEN {args[0]} END", SPELLING),
    mutant("the threshold is one lower", CHOOSE, "+ noise > limit)", "+ noise >= limit)", SELECTION),
    mutant("keys that no unit has may appear", CHOOSE, "(counts >= 1) & ", "", SELECTION),
    # --- errors
    mutant("the engine plans outer joins that fail on some rows", "engines/duckdb.py",
           "type_pushdown,projection_pullup", "type_pushdown",
           ("tests/unit/engines/test_duckdb.py", "-k", "outer_joins")),
    mutant("one statement's internal error fails those of all others", "engines/duckdb.py",
           "            self._renew(instance)  # its cursor is closed: nobody waits for it\n", "",
           ("tests/unit/engines/test_duckdb.py", "-k", "internal_error")),
    mutant("a cast raises on what does not fit", EXPR,
           'return f"TRY_CAST({sql} AS', 'return f"CAST({sql} AS', DOMAINS),
    mutant("the engine's words are passed on", "engines/base.py",
           '    except Exception:\n        log.error("the engine failed", exc_info=True)\n',
           "    except Exception as error:\n        raise EngineFailed(str(error)) from None\n", WORDS),
    mutant("bounds of doubles prove that whole numbers fit", "rewrite/make_total.py",
           "all(operand.bounded and operand.exact for operand in (left, right))",
           "all(operand.bounded for operand in (left, right))", ATTACKS),
    mutant("a clip takes a double's bounds for its own", "analysis/values.py",
           "            if inner.exact:  #", "            if True:  #", ATTACKS),
    Mutant("USING compares columns of two types",
           (Edit("sql/joins.py", '(one, other), _ = meet(sides, [name, name], "comparison")', "one, other = sides"),
            Edit("plan/expr.py", 'raise TypeError(f"{left} is compared with {right}")', "pass")), ATTACKS),
    mutant("data that a reader raises on is registered", "versions.py",
           "    owner.check_readable(source, table.columns)\n", "", ATTACKS),
    mutant("24:00:00 is a time of day", EXPR,
           "return f\"CASE WHEN {raw} < CAST('24:00:00' AS TIME) THEN {raw} END\"", "return raw", ATTACKS),
    mutant("what was released may lie beyond a hole's bounds", "post/holes.py",
           "return _clipped(found, *domain.bounds)", "return found", HOLES),
    # --- noise and its price
    mutant("Gaussian noise is half as wide", MECHANISMS,
           "sensitivity.l2_squared / (2 * positive_share(rho))", "sensitivity.l2_squared / (8 * positive_share(rho))"),
    mutant("Laplace noise is half as wide", MECHANISMS,
           "Laplace(scale_at_least(sensitivity.l1 / positive_share(epsilon)))",
           "Laplace(scale_at_least(sensitivity.l1 / (2 * positive_share(epsilon))))"),
    mutant("Gaussian noise is charged a quarter", MECHANISMS,
           "Loss(None, sensitivity.l2_squared / (2 * sigma**2)",
           "Loss(None, sensitivity.l2_squared / (8 * sigma**2)"),
    mutant("every bundle spends the whole of rho", CALIBRATE,
           "each = _part(share, (1 - selecting) / max(1, count))", "each = share"),
    mutant("noise is drawn once per column", "privacy/release.py",
           "noise = draw(bundle.mechanism, len(keys) * len(bundle.columns), sampler)",
           "noise = np.repeat(draw(bundle.mechanism, len(bundle.columns), sampler), len(keys))", PAID),
    mutant("noise starts from a fixed seed", SAMPLING,
           'np.frombuffer(self._bits(8 * n), dtype="<u8")',
           "np.random.default_rng(1).integers(0, 2**64, n, dtype=np.uint64)", PAID),
    # --- chosen bins
    mutant("the two sides of a bin's score are taken to move alike", BINS,
           "Loss(None if l1 is None else 2 * l1 / scale", "Loss(None if l1 is None else l1 / scale", CHOICE),
    mutant("a bin is chosen twice as sharply as is charged", BINS,
           "scale_at_least(2 * _summed(contribution, target) / share)",
           "scale_at_least(_summed(contribution, target) / share)", PRICE),
    mutant("a bin is charged half its rho", BINS,
           "l2_squared / (2 * scale**2)", "l2_squared / (4 * scale**2)", CHOICE),
    mutant("a score that falls and one that rises count as one", "privacy/scores.py",
           "return self.non_negative and not self.change_one", "return True", SCORES),
    mutant("under change_one all scores are taken to move one way", "privacy/scores.py",
           "return self.non_negative and not self.change_one", "return self.non_negative", SCORES),
    mutant("permute-and-flip is charged as the exponential mechanism", "privacy/scores.py",
           "parts = 2 if isinstance(scores, Ranking) and scores.flips else 8", "parts = 8", SCORES),
    mutant("all rounds of a ranking cost as one", "privacy/scores.py",
           "return Loss(scores.rounds * epsilon, scores.rounds * rho, Fraction(0))",
           "return Loss(epsilon, rho, Fraction(0))", BEST),
    mutant("the range of a log-likelihood is taken for half of it", "privacy/scores.py",
           "return surprises()[first - 1] - surprises()[STEPS - first - 1]",
           "return (surprises()[first - 1] - surprises()[STEPS - first - 1]) // 2", SCORES),
    mutant("a posterior reaches down to 0 and 1", "sql/scores.py",
           "Fraction(1, 20), _THOUSANDTH, _NEARLY_HALF)", "Fraction(1, 20), Fraction(0), _NEARLY_HALF)", BEST_ATTACKS),
    mutant("permute-and-flip for a loss in rho", "calibrate.py",
           "scores = Ranking(scale, asked.most, pure,", "scores = Ranking(scale, asked.most, True,", BEST_ATTACKS),
    mutant("the best of values that only one unit may have", "compile.py",
           "        if found.gather.selection is not None:\n            keys, table",
           "        if False:\n            keys, table", BEST_ATTACKS),
    mutant("the best by an average", "sql/scores.py",
           "if not isinstance(score, Score):", "if score is None:", BEST_ATTACKS),
    mutant("floats decide who passes", "privacy/sampling.py",
           "_CLOSE = 2.0**-48", "_CLOSE = -1.0", DRAWS),
    mutant("a bin's score moves by the lesser of both fractions", BINS,
           "return max(fraction, 1 - fraction), min(fraction, 1 - fraction)",
           "return min(fraction, 1 - fraction), min(fraction, 1 - fraction)", CHOICE),
    mutant("a bin may be left and entered for the price of one", BINS,
           "factor = most if not self.change_one else most + least if self.single else 2 * most",
           "factor = most if not self.change_one else most + least", CHOICE),
    mutant("moving to another group's bins costs nothing in rho", BINS,
           "        if self.change_one:\n            factor = (most", "        if False:\n            factor = (most",
           CHOICE),
    mutant("one unit's bins are paid for, not a group's", BINS,
           "return (self.group_size * self.norm) ** 2 * factor", "return self.norm ** 2 * factor", CHOICE),
    mutant("an L2 norm pays for bins as if it were a sum", BINS,
           "if not (self.summed or self.single):", "if False:", CHOICE),
    mutant("each pick of bins spends the whole share", BINS,
           "share = positive_share(rho / len(targets))", "share = positive_share(rho)", PRICE),
    mutant("the last steps of a bin's score are forgotten", BINS,
           "scale = scale * _steps(target)", "scale = scale * 1", PRICE),
    mutant("the median's sensitivity is that of the rows at hand", SMOOTH,
           "    starts = np.unique(starts[starts >= 0])", "    starts = np.array([0])", LOCAL),
    mutant("neighbors of a median differ by one value, however many units change", SMOOTH,
           "upward = at(n + 1 + starts + steps) - at(n + 1 - starts)",
           "upward = at(n + 1 + starts + 1) - at(n + 1 - starts)", LOCAL),
    mutant("half of the smooth noise", SMOOTH,
           "scale = 2 * smooth_sensitivity(", "scale = smooth_sensitivity(", SMOOTHED),
    mutant("the smooth sensitivity falls off too fast", SMOOTH,
           "rate = grows.ln() / reached.steps * (1 - Decimal(10) ** -12)", "rate = grows.ln() * 2", LOCAL),
    mutant("the test of a proposal is always passed", TESTING,
           "sampler.laplace(blocks, mechanism.test_scale) > mechanism.limit",
           "sampler.laplace(blocks, mechanism.test_scale) > -1 << 60", MEDIANS),
    mutant("the test of a proposal has the noise of one value", TESTING,
           "return self.reached.steps / self.epsilon", "return 1 / self.epsilon", LOCAL),
    mutant("a median by its local sensitivity takes many rows of a unit", "rewrite/choose.py",
           "if unit_facts(rows).rows != 1:", "if False:", MEDIANS),
    mutant("a changed unit is one value of a median", "medians.py",
           "steps = contribution.group_size * (2 if contribution.change_one else 1)",
           "steps = contribution.group_size", MEDIANS),
    mutant("groups of a median share one charge", "medians.py",
           "return Reached(steps, 1 if contribution.single else max(steps, contribution.norm))",
           "return Reached(steps, 1)", MEDIANS),
    mutant("floats decide between two bins", SAMPLING,
           "doubts = wholes * ((sums.shape[1] + 32) * 2.0**-48)", "doubts = wholes * 0.0", DRAWS),
    mutant("all blocks of bins share one draw", SAMPLING,
           "words = self._words(len(sums))\n", "words = np.repeat(self._words(1), len(sums))\n", PRICE),
    mutant("a bin may be missing", "privacy/release.py",
           "any(key != wanted for key, wanted in zip(keys, expected, strict=True))", "False", BLOCKS),
    mutant("an unknown key may come back in a second block", "privacy/release.py",
           "if rest or any(parts[row] != parts[row - row % length] for row in range(len(parts))):", "if rest:", BLOCKS),
    # --- the order of things
    mutant("the engine runs before the charge", "buying.py",
           "            claims = self._paid(list(asked.values()),",
           "            for step in compiled.steps:\n"
           "                self.dataset.engine.execute(step.sql, len(step.keys), {})\n"
           "            claims = self._paid(list(asked.values()),", PAID),
    mutant("what is delivered is not what was stored", "runs.py",
           "    return data.ledger.store(job.release, body, job.errors)\n",
           "    data.ledger.store(job.release, body, job.errors)\n    return body\n", PAID),
    mutant("two charges may pass the same check", "ledger/sqlite.py",
           'self._transaction("BEGIN IMMEDIATE")', 'self._transaction("BEGIN DEFERRED")', CONCURRENT),
    mutant("two charges of two machines may pass the same check", "ledger/postgres.py",
           "FROM ledger FOR UPDATE\")", "FROM ledger\")", CONCURRENT),
    mutant("the dataset does not pay", "ledger/books.py",
           "return (*payers, self.dataset)", "return tuple(payers)", LEDGER),
    mutant("groups do not pay", "ledger/books.py",
           "return (*payers, self.dataset)", "return (account, self.dataset)", ACCOUNTS),
    mutant("what others paid for is free", "ledger/books.py",
           "owing = answers.unpaid(db, release.release, bills)",
           "owing = [] if release.stored else answers.unpaid(db, release.release, bills)", LEDGER),
    mutant("a member's history is not her group's", "ledger/terms.py",
           "        if not owed:\n            return\n", "        if True:\n            return\n", ACCOUNTS),
    mutant("a budget is raised by editing the schema", "ledger/terms.py",
           "if head.terms is not None and not self._is_less(account, head.terms):", "if False:", ACCOUNTS),
    mutant("leaving a group is no raise", "ledger/terms.py",
           "account.terms.within(recorded) and self._keeps_parent(account, recorded)", "account.terms.within(recorded)",
           ACCOUNTS),
    mutant("a raised delta is no raise", "ledger/accounts.py",
           "self.epsilon <= other.epsilon and self.delta <= other.delta and", "self.epsilon <= other.epsilon and",
           ACCOUNTS),
    mutant("an expired account may ask", "ledger/books.py",
           "            require_unexpired(payer, now.astimezone(UTC).date())\n", "            pass\n", ACCOUNTS),
    mutant("one query may ask for more than its policy", "ledger/books.py",
           "            require_policy(payer, statement)\n", "            pass\n", ACCOUNTS),
    mutant("the asked epsilon counts whatever is lost", "privacy/filters.py",
           "if epsilon < lost and loss.rho <= rho_from(epsilon, conversion):", "if epsilon < lost:", FILTERS),
    mutant("basic composition forgets the conversion's delta", "privacy/filters.py",
           "_decimal_up(loss.delta + conversion)", "_decimal_up(loss.delta)", FILTERS),
    mutant("basic composition adds no deltas", "privacy/filters.py",
           "return within and spent.basic_delta <= limits.delta", "return within", FILTERS),
    mutant("advanced composition by the whole delta twice", "privacy/filters.py",
           "return Limits(epsilon, _ZERO, ADVANCED_SHARE * delta, composition, log)",
           "return Limits(epsilon, _ZERO, delta, composition, log)", FILTERS),
    mutant("advanced composition with half the logarithm", "privacy/filters.py",
           "2 * limits.log * spent.squares <= room**2", "limits.log * spent.squares <= room**2", FILTERS),
    mutant("what has no epsilon costs basic composition nothing", "privacy/filters.py",
           "None if spent.basic_epsilon is None or cost.epsilon is None else spent.basic_epsilon + cost.epsilon",
           "(spent.basic_epsilon or _ZERO) + (cost.epsilon or _ZERO)", FILTERS),
    mutant("an entry may be changed", "ledger/verify.py",
           "if chain.content_hash(db, entry) != entry.hash:", "if False:", CHAIN),
    mutant("an audit believes the budget was kept", "ledger/verify.py",
           "if entry.charges and not holds(entry.terms.limits, entry.spent):", "if False:", CHAIN),
    mutant("an audit believes what was granted", "ledger/verify.py",
           "if entry.kind is not Kind.CHANGED and end.terms is not None and entry.terms != end.terms:", "if False:",
           CHAIN),
    mutant("a quote tells what others have asked", "ledger/books.py",
           "own = answers.find_own(db, account.name, matching.filled(asked[place], found), hidden)",
           "own = next(iter(answers._of_plan(db, asked[place], hidden)), None)", ACCOUNTS),
    mutant("others' releases are derived from", "ledger/answers.py",
           "AND state = 'stored' AND payment.account = ?\"", "AND state = 'stored' AND (TRUE OR payment.account = ?)\"",
           ACCOUNTS),
    mutant("releases of older data are derived from", "ledger/answers.py",
           "WHERE rows_of IN ({marks}) AND version = ? AND", "WHERE rows_of IN ({marks}) AND version <= ? + 9 AND",
           ACCOUNTS),
    mutant("the dataset need not have paid", "ledger/verify.py",
           "        if answers.owed(db, account, payer):\n", "        if False:\n", FOUND),
    mutant("a body may be taken away", "ledger/verify.py",
           'elif id in noted and state not in ("stored", "void"):', "elif False:", FOUND),
    mutant("a charge is redeemed with the noise of another", "ledger/answers.py",
           "        return (found.loss, found.errors) == (asked.loss, asked.errors)\n", "        pass\n", FOUND),
    mutant("answers go by the time of who asked first", "ledger/answers.py",
           " AND version < (SELECT max(number) FROM version)", "", FOUND),
    mutant("a newer version times a run", "dataset.py",
           "        pins.check_read(self.resolved)\n", "        self.check_unchanged()\n", FOUND),
    mutant("a better inner release is another question", "ledger/matching.py",
           "_MOST_TRIED = 8", "_MOST_TRIED = 1", FOUND),
    Mutant("a column named key is a stored key",
           (Edit("derive/regroup.py", 'KEY = "\\0key"', 'KEY = "key"'),
            Edit("derive/regroup.py", "    if KEY in columns_of(expr):\n        raise NotDerived\n", "")), FOUND),
    mutant("what runs is seen by its price", "ledger/leases.py",
           "    if not grid:\n        return frozenset()\n", "    return frozenset()\n", (*ACCOUNTS, "-k", "Hidden")),
    mutant("groups that were selected are added up", "derive/regroup.py",
           "    _check_selected(asked.shape, stored, extra, narrowed, groups)\n", "", DERIVE),
    mutant("units of several groups are added up", "derive/derive.py",
           "fits = groups.most == 1 or apart", "fits = True", DERIVED),
    mutant("weights of other groups are taken for these", "derive/derive.py",
           "fits = whole_units and cell.spread == spread", "fits = True", DERIVE),
    mutant("noise that adds up is told as that of one cell", "derive/derive.py",
           "return Gaussian(root_at_least(most * sigma**2))", "return Gaussian(sigma)", SUMS),
    mutant("what is derived may be worse", "derive/derive.py",
           "if not never_negative(room):", "if False:", DERIVED),
    mutant("a pilot is answered by what followed from it", "compile.py",
           "pilot=self._is_pilot)\n\n\ndef", "pilot=False)\n\n\ndef", PILOT),
    mutant("an error that is asked for is kept on one side", "accuracy.py",
           "return min(Fraction(1), 2 * _tail(mechanism, int(most / worth) + 1))",
           "return min(Fraction(1), _tail(mechanism, int(most / worth) + 1))", ACCURATE),
    mutant("what is paid for has a price", "prices.py",
           "for place, quote in enumerate(self.quotes) if not quote.paid]", "for place, _ in enumerate(self.quotes)]",
           QUOTES),
    mutant("what is asked for twice has two prices", "prices.py",
           "return one.plan, one.version,", "return place, one.plan, one.version,", QUOTES),
    mutant("the error told is that of a fresh release", "prices.py",
           "return expected_errors(self.told.compiled, self._delivered)",
           "return expected_errors(self.compiled)", QUOTES),
    mutant("progress is a clock of the engine", "buying.py",
           "        self.ticket.releases = len({claim.release for claim in claims})\n",
           "        self.ticket.releases = len({claim.release for claim in claims})\n"
           "        self.ticket.delivered = len(bodies) + (len(claims) > 1)\n", (*DOORS, "-k", "clock_of_the_engine")),
    mutant("a pilot is not asked about", "repl/shell.py",
           "if explained.undecided:", "if False:", (*DOORS, "-k", "pilot")),
    mutant("a selected key steers the terminal", "display/screen.py",
           "ERROR:', RED)}  {shown_lines(text)}", "ERROR:', RED)}  {text}", (*DOORS, "-k", "steers")),
    mutant("a command asks the statement before it", "repl/shell.py",
           "if sql and not self.behind:", "if sql:", (*SHELL, "-k", "unfinished")),
    mutant("a parent's policy is not told of", "prices.py",
           "        for payer in payers:\n", "        for payer in payers[:1]:\n", QUOTES),
    mutant("an account that expired is promised answers", "prices.py",
           "            return error.message\n        return None\n\n\n@dataclass", "            return None\n"
           "        return None\n\n\n@dataclass", QUOTES),
    mutant("the price of a pilot is told as that of the statement", "queries.py",
           "answer = None if stored is None else self._made(asked, stored)", "answer = None", PILOT),
    mutant("what a pilot may lead to is not looked at along the payers", "pilot.py",
           "for payer in payers if payer.largest_epsilon is not None]",
           "for payer in payers[:1] if payer.largest_epsilon is not None]", PILOT),
    mutant("a version is made when the data has changed", "pins.py",
           "return grid is not None and (made is None or grid.down(made) < grid.down(now))",
           "return grid is not None and current.identity != identify(schema, expand_sources(schema))", VERSIONS),
    mutant("an inner and an outer join are one question", "analysis/canon.py",
           'f"join({node.kind.value};{_sides(node)};', 'f"join({_sides(node)};', CANON),
    mutant("a filter is not part of the question", "analysis/canon.py",
           'return f"filter({rows};', 'return f"{rows}" if True else f"filter({rows};', CANON),
    # --- holes and joins
    Mutant("a hole keeps what its type does not hold",
           (Edit("post/holes.py", "return None if value is None else _moved(value, type_)", "return value"),
            Edit(EXPR, '_within_python(f"TRY_CAST(${expr.hole} AS {type_name(expr.type)})", expr.type)',
                 'f"CAST(${expr.hole} AS {type_name(expr.type)})"')), WIDE),
    Mutant("a literal is beyond what its type holds",
           (Edit("plan/expr.py", "if not _holds(self.type, self.value):", "if False:"),
            Edit("sql/intervals.py", "if not product.fits:", "if False:")), WIDE),
    Mutant("a number of a few characters is written out",
           (Edit("sql/choices.py", "exact_number(str(node.this), span_of(node))", "Fraction(str(node.this))"),),
           ("tests/unit/compiler/parse/test_literals.py", "-k", "one_place")),
    mutant("compiling goes on after its deadline", "pulse.py", "if self._beats % EVERY == 0:", "if False:",
           ("tests/unit/compiler/test_compile_cancellation.py", "-k", "deadline and whens")),
    mutant("one account compiles all at once", "turns.py", "while line.index(one) >= self._most:", "while False:",
           ("tests/unit/compiler/test_compile_cancellation.py", "-k", "Turns")),
    mutant("what doubles with each level has no end", "sql/growing.py", "    check_written(post)\n", "",
           ("tests/unit/compiler/postprocess/test_size_limits.py", "-k", "doubles")),
    mutant("a unit is joined with itself at will", "rewrite/limit_joins.py", "MOST_POWER = 3", "MOST_POWER = 99",
           (*WIDE, "-k", "at_will")),
    mutant("public tables behind a hole have no part in the question", "store_keys.py",
           "*filled, sources, *(", "*filled, *(", WIDE),
    mutant("units that count as one are selected as weighted ones", "plan/nodes.py",
           "return self.limit is not None and not self.one_row", "return True", WIDE),
    mutant("that a run has ended is seen at once", "runs.py",
           "- elapsed) if self._grid else 0", "- elapsed) if False else 0", RUNS),
    mutant("the grid begins at the end of a run", "runs.py",
           "        elapsed = self._clock.now() - start\n", "        elapsed = 0\n", RUNS),
    mutant("what is stored is seen before its run has ended", "runs.py",
           "        if run is not None:\n            return self._wait(run, ticket)\n        if", "        if", RUNS),
    mutant("another process's run is seen when it ends", "runs.py",
           "return self._until_due(running.ended * MICROSECOND, running.elapsed * MICROSECOND)", "return 0", PROCESSES),
    mutant("two processes run one charge", "ledger/leases.py",
           "    if known is not None and not known.over:\n        return known\n", "", LEASES),
    mutant("two who ask are two runs", "runs.py",
           "run = run or self._begin(data, job, account)", "run = self._begin(data, job, account)", RUNS),
    mutant("each connection has runs of its own", "dataset.py", ", ledger=ledger.identity,", ",", SHARED),
    mutant("a statement takes the memory of all", "post/child.py",
           "resource.setrlimit(resource.RLIMIT_AS, (now + MOST, now + MOST))", "pass", CHILDREN),
    mutant("a child has the secrets of the schema", "post/children.py",
           'replace(schema, engine="", ledger="", analysts=(), groups=())', "schema", CHILDREN),
    mutant("what a child sends is run", "post/children.py", "if (module, name) in _PLAIN:", "if True:", CHILDREN),
    mutant("a child has the secrets of the server", "post/children.py", "env=known,", "env={**os.environ, **known},",
           CHILDREN),
    mutant("an account takes all runs", "runs.py", " or own >= self._most_of_one", "", RUNS),
    mutant("anyone may act for anyone", "roles.py",
           "        for one in allowed:\n", "        for one in [one.name for one in self._schema.analysts]:\n", STATE),
    mutant("who acts for another pays herself", "roles.py",
           "self._user if role == NOBODY else role)", "self._user)", ROLES),
    mutant("an analyst leaves the role that a service opened for her", "roles.py",
           ' or "role" not in self._given:', " or True:", ROLES),
    mutant("an analyst with the name of nobody leaves the role of the service", "roles.py",
           '"role" not in self._given:', 'self.first == NOBODY:', ROLES),
    mutant("what was to be free is bought", "buying.py", "if self.ticket.free and loss", "if False and loss", PYTHON),
    mutant("a charge that was interrupted is not told", "buying.py",
           "if one.made or self._was_made(one)", "if one.made", PYTHON),
    mutant("who waits for her turn cannot be canceled", "dbapi/connection.py",
           "self._waiting.copy() if running is None", "() if running is None", PYTHON),
    mutant("a statement runs with the session's settings", "session.py",
           "before.for_one(settings or {})\n            ended", "before\n            ended", PYTHON),
    mutant("a statement's own epsilon is forgotten for the session's aim", "settings.py",
           'return {**dict.fromkeys(AIMS, "none"), **named} if "epsilon" in named else named', "return named", PYTHON),
    mutant("parameters are asked twice", "sql/parameters.py",
           "return tuple(literal(parameter) for parameter in parameters)", "return tuple(parameters)", PYTHON),
    mutant("values are charged for a table that the budget does not cover", "making/synthetic.py",
           "queries.require_covered([*parts, draft.studied.compiled], asked.sql, chosen.settings)", "pass", COVERED),
    mutant("a charge that is tried is kept", "buying.py", "        raise Covered\n", "", COVERED),
    mutant("runs without number", "buying.py", "        self.dataset.runs.admit(claims)\n", "", SHARED),
    mutant("what was stored meanwhile is run again", "ledger/leases.py",
           '    if answers.read_body(db, release) is not None:\n        return known or Running("", 0, 0, 0)\n', "",
           LEASES),
    mutant("who waits for another's run has no failure", "runs.py",
           "for account, ledger in told if outcome.failure else ():",
           "for account, ledger in told[:1] if outcome.failure else ():", RUNS),
    mutant("a failure is counted for each time that it was asked for", "runs.py",
           "run.asked.setdefault(account.name,", "run.asked.setdefault(str(len(run.asked)),", RUNS),
    Mutant("an error of a run is passed on with its frames", (
        Edit("runs.py", "hint=error.hint, sqlstate=error.sqlstate)",
             "hint=error.hint, sqlstate=error.sqlstate).with_traceback(error.__traceback__)"),
        Edit("runs.py", "return Outcome(error=EngineFailed(FAILED, hint=FAILED_HINT), failure=True)\n    except",
             "return Outcome(error=EngineFailed(FAILED, hint=FAILED_HINT).with_traceback(error.__traceback__), "
             "failure=True)\n    except"),
    ), RUNS),
    mutant("the catalog calls any function of DuckDB", "sql/catalog_rewrite.py",
           "    known = FUNCTIONS.get(name)\n    if known is None:\n",
           "    known = FUNCTIONS.get(name)\n    if known is None:\n        return node\n    if known is None:\n",
           CATALOG),
    mutant("the catalog reads any table of DuckDB", "sql/catalog_query.py",
           "    if any(place_of(schema, table.db, table.name) is None for table in named):\n        return False\n", "",
           CATALOG),
    mutant("syntax that is not listed reaches the catalog", "sql/catalog_rewrite.py",
           "if not isinstance(node, ALLOWED):", "if False:", CATALOG),
    mutant("the catalog's database can be reconfigured", "catalog/database.py", "    lock(connection, _SETTINGS)\n", "",
           CATALOG),
    mutant("the catalog's database runs more than one SELECT", "catalog/database.py",
           "if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:", "if False:", CATALOG),
    mutant("statements about the catalog take as long as they like", "catalog/database.py",
           "with _watch.limit(timeout, cursor.interrupt):", "with _watch.limit(timeout + 15, cursor.interrupt):",
           CATALOG),
    mutant("the catalog tells one user of another", "catalog/contents.py",
           '    yield {"usename": who.user, "usesysid": USER,', '    yield {"usename": "bob", "usesysid": USER,',
           CATALOG),
    mutant("the catalog says who acts as who connected", "sql/catalog_session.py",
           "exp.Literal.string(who.login or who.user)", "exp.Literal.string(who.user)", CATALOG),
    mutant("closing is a failure", "runs.py",
           "    except BaseException:  # the engine was closed, which is nobody's failure\n",
           "    except BaseException:\n"
           "        return Outcome(error=EngineFailed(FAILED, hint=FAILED_HINT), failure=True)\n"
           "    except BaseException:\n", RUNS),
    mutant("a run past its time is nobody's failure", "engines/duckdb.py",
           "        if late.is_set():\n", "        if False:\n", ENGINE),
    mutant("a ledger that others can read is opened", "private_files.py",
           "    if mode & 0o077:\n", "    if mode & 0o033:\n", FILE),
    mutant("exact rows can be copied", "exact.py",
           "__copy__ = __deepcopy__ = _refuse", "_other = _refuse; __deepcopy__ = lambda self, _: self", SEALED),
    mutant("a type whose cast is not total is registered", "versions.py",
           "if _READABLE.fullmatch(spelled) is None:", "if False:", WIDE),
    # --- what an attacker would try first
    mutant("a year that Python cannot say is a key", EXPR,
           "return _within_python(sql, expr.type) if expr.arg.type == TEXT else sql", "return sql",
           (*CHANNELS, "-k", "casts")),
    mutant("rows may be cut into no tiles", "sql/windows.py",
           'least = 1 if what in ("NTILE", "NTH_VALUE()") else 0', "least = 0", (*CHANNELS, "-k", "frames")),
    mutant("groups stand in the engine's order", RENDER,
           "\\nORDER BY {', '.join(order)}\"", "{' ' * len(order)}\"", (*PRICES, "-k", "trap_20")),
    mutant("the analyst may draw", "sql/sandboxed.py", '"random", "scan_arrow_ipc"', '"scan_arrow_ipc"',
           (*TRAPS, "-k", "trap_06")),
    mutant("epsilon may be negative", "settings.py", "if not 0 < number <= 10**6:", "if not number <= 10**6:",
           (*PRICES, "-k", "trap_11")),
    mutant("delta may be one", "settings.py", "if not 0 <= number < 1:", "if not 0 <= number <= 1:",
           (*PRICES, "-k", "trap_11")),
    # --- what attackers try at the door
    mutant("who reads the schema can log in", "passwords.py",
           'stored = hashlib.sha256(_keyed(salted, b"Client Key")).digest()', 'stored = _keyed(salted, b"Client Key")',
           PASSWORDS),
    mutant("an old log of the owner's stays open to others", "private_files.py",
           "            os.fchmod(descriptor, 0o600)\n", "            pass\n", ("tests/unit/base/test_private_files.py",)),
    mutant("an edit of one analyst may change a budget", "owner/users.py",
           "or replace(after, analysts=before.analysts) != before:", "or False:", USERS),
    mutant("a prompt stands above data that has changed", "outlook.py",
           "        pins.check_unchanged(", "        0 and pins.check_unchanged(", OPENING),
    mutant("a parameter is what it prints", "sql/parameters.py",
           "return Literal(TokenType.NUMBER, float.__repr__(parameter))",
           "return Literal(TokenType.NUMBER, repr(parameter))",
           (*INJECTION, "-k", "read_as_its_value")),
    mutant("a column with a collation is served", "versions.py",
           "        _check_collations(owner, table, source)\n", "        pass\n", (*RULES, "-k", "by_bytes")),
    mutant("an id of another type is cast", "versions.py",
           "    if parse_type(spelling) != column.type:\n", "    if False:\n", (*RULES, "-k", "another_type")),
    mutant("a declared key is not checked", "versions.py",
           "        if owner.duplicates(", "        if False and owner.duplicates(", (*RULES, "-k", "parent_key")),
    mutant("a refusal names files that may be named after units", "pins.py",
           "if len(old) == 1 else", "if old else", STALE),
    mutant("what a connection was opened with is forgotten by resets", "roles.py",
           "for name, value in self._given.items():", "for name, value in ():", STATE),
    mutant("an option that is nearly a setting is passed over, and the default charged", "sqlalchemy/context.py",
           "if near or name", "if name", OPTIONS),
    mutant("rows in the log of a database are served unchecked", "pins.py",
           '[database, database.with_name(database.name + ".wal")]', "[database]", PINS),
    mutant("keys are made shorter, and served unchecked", "pins.py",
           "str(domain.upper), values, column.max_length]", "str(domain.upper), values]", PINS),
    mutant("a draft of rows can be read by everyone where it replaces a file", "private_files.py",
           "            os.fchmod(descriptor, 0o600)", "            pass", (*PLANTED, "alone")),
    mutant("a draft does not ask about a second person", "owner/relate.py",
           "(*named, *_named_alike(unit, tables, found))", "()", (*PLANTED, "second")),
    mutant("a check tells less noise than there is", "owner/questions.py",
           "else factor * bar.stderr", "else 1.96 * bar.stderr", (*PLANTED, "interval")),
    mutant("figures of a budget stay as they were", "ledger/books.py",
           "key == (account, end):", "key is not None:", READING),
    mutant("what was read of the ledger goes on being read", "ledger/transactions.py",
           "                self._reading.db = None\n", "                pass\n", READING),
    mutant("an account's stored answers are served without a look at the version", "buying.py",
           "            self.dataset.check_current()\n", "            pass\n", REMEMBERED),
    mutant("a remembered answer is given out without a look at the ledger", "queries.py",
           "        served = self.buyer.served(compiled)\n        if served is None:\n",
           "        served = self.buyer.served(compiled) if not len(self.memory.answered) else ()\n"
           "        if served is None:\n", REMEMBERED),
    mutant("who is given an answer changes the one that is remembered", "queries.py",
           "self._same(compiled, bought.numbers), answer.again())", "self._same(compiled, bought.numbers), answer)",
           REMEMBERED),
    mutant("what is left is told as before the charge", "buying.py",
           "        self.balance = None\n", "        pass\n", (*REMEMBERED_ANSWERS, "-k", "what_is_left")),
    mutant("data that has changed is served", "pins.py",
           "    if current is None or current.identity != identity:\n", "    if current is None:\n",
           (*RULES, "-k", "analyst_waits")),
    mutant("a public group is listed as often as it stands there", RENDER,
           'distinct = f"SELECT DISTINCT {named} FROM', 'distinct = f"SELECT {named} FROM',
           (*RULES, "-k", "drawn_once")),
    mutant("public rows multiply a unit's rows without end", "rewrite/limit_public.py",
           "    if most <= MOST_MATCHED:\n", "    if True:\n", (*RULES, "-k", "at_will")),
    mutant("another's release serves whoever asks for less", "ledger/answers.py",
           "equal = [f for f in _of_plan(db, asked, hidden) if (f.loss, f.errors) == (asked.loss, asked.errors)]",
           "equal = [f for f in _of_plan(db, asked, hidden) if _serves(f, asked)]", (*ANSWERS, "-k", "rule_9")),
    mutant("holes are bound anew by each who runs", "ledger/answers.py",
           "SET holes = COALESCE(holes, ?), state", "SET holes = ?, state", (*ANSWERS, "-k", "two_processes")),
    mutant("the last of two runs is kept", "ledger/answers.py",
           '" WHERE id = ? AND body IS NULL AND state <> \'void\' RETURNING id",',
           '" WHERE id = ? AND state <> \'void\' RETURNING id",',
           (*ANSWERS, "-k", "two_processes")),
    mutant("the dataset's figures are told", "ledger/books.py",
           "len(charges)) if own else refuse_shared()", "len(charges))", (*ANSWERS, "-k", "fixed_text")),
    mutant("another ledger in the same place will do", "ledger/sqlite.py",
           'if db.execute("SELECT id FROM ledger").fetchall() != [(self.id,)]:', "if False:",
           (*EVASION, "-k", "replaced")),
    mutant("a ledger that is gone comes back empty", "ledger/sqlite.py",
           'f"{path.as_uri()}?mode=rw"', 'f"{path.as_uri()}?mode=rwc"',
           (*EVASION, "-k", "replaced")),
    mutant("a ledger adds up losses of other neighbors", "ledger/database.py",
           "    if made_for != binding:\n", "    if False:\n", (*EVASION, "-k", "bound_to")),
    # --- the owner's drafts and checks
    mutant("a draft is made from rows that nobody asked to look at", "owner/init.py",
           "looked = look(sources, picked) if look_at_data else None", "looked = look(sources, picked)",
           (*DRAFTS, "-k", "no_value_of_a_row")),
    mutant("the first row of a file becomes the names of its columns", "engines/structure.py",
           "    if not told:\n", "    if False:\n", (*DRAFTS, "-k", "without_a_header")),
    mutant("a first row with an odd null becomes names", "engines/structure.py",
           "above + telling >= min(2, len(typed))", "above + telling >= 1", (*DOORS, "-k", "odd_null")),
    mutant("a first row whose values come again becomes names", "engines/structure.py",
           " and not _comes_again(owner, first, dialect))", ")", (*DOORS, "-k", "odd_null")),
    mutant("labels that were made of rows are drafted as public groups", "engines/structure.py",
           "found_type(spelling), comment=comment)",
           "found_type(spelling), tuple(re.findall(r\"'(\\w+)'\", spelling)), comment=comment)",
           (*DOORS, "-k", "labels")),
    mutant("labels that were made of rows are told with a type", "types.py",
           'return (word[0] if word else "?") + ', "return spelling + ", (*DOORS, "-k", "labels_of")),
    mutant("an id's labels are told with its type", "versions.py",
           "there = spelling if parse_type(spelling) else outermost(spelling)", "there = spelling",
           (*DOORS, "-k", "labels")),
    mutant("a check that is ended leaves its rows", "owner/scratch.py",
           "for number in _ENDS if", "for number in () if", (*DOORS, "-k", "signal")),
    mutant("a check that is killed leaves its rows for ever", "owner/scratch.py",
           "    _remove_left()\n    with", "    with", (*DOORS, "-k", "killed")),
    mutant("others read verifiers while a schema is written", "owner/users.py",
           "open_private(draft, os.O_EXCL | os.O_WRONLY)",
           "os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)",
           ("tests/unit/owner/test_users.py", "-k", "alone")),
    mutant("a table without a way to the unit is drafted as public", "owner/draft.py",
           'f"  # {self._decide(f\'tables.{table.name}\', what)}", *(f"  # {line}" for line in block)',
           'f"  # {self._decide(f\'tables.{table.name}\', what)}", *(f"  {line}" for line in block)',
           (*DRAFTS, "-k", "loads_from_every_source")),
    mutant("a column's name breaks out of its draft", "owner/yaml_text.py",
           "        return text\n    return quoted(text)\n", "        return text\n    return text\n",
           (*DRAFTS, "-k", "odd_names")),
    mutant("a value of few units is proposed for a list", "owner/look.py",
           "common_values(ask, source, column, unit, LEAST_UNITS, MOST_VALUES)",
           "common_values(ask, source, column, unit, 1, MOST_VALUES)", (*DRAFTS, "-k", "rare")),
    mutant("a value of one unit with many rows is proposed for a list", "engines/measure.py",
           'counted = "count(*)" if unit is None else f"count(DISTINCT {identifier(unit)})"', 'counted = "count(*)"',
           (*DRAFTS, "-k", "rare")),
    mutant("a check is charged to the dataset", "owner/rehearsal.py",
           "        ledger=f\"sqlite:///{folder / 'rehearsal.ledger'}\",\n", "", (*CHECKS, "-k", "no_trace")),
    mutant("a check does not say for whom it is", "cli/check.py",
           "        screen.print(screen.style(HEADING, BOLD))\n", "        pass\n", (*CHECKS, "-k", "for_whom")),
    mutant("a posterior knows of another noise", "post/cells.py",
           "float(abs(coefficient) * grid * scale_of(mechanism))", "float(abs(coefficient) * grid)", POSTERIORS),
    mutant("a posterior's counts are what the noise made of them", "post/posteriors.py",
           "many_nodes(n, noise, low, high, _SHARE_SIDE)", "few_nodes(n, noise)", POSTERIORS),
    mutant("a posterior's arguments have no range", "sql/bind_call.py",
           "if number is None or not least <= number <= most:", "if number is None:",
           POSTERIOR_STATEMENTS),
    mutant("any whole number is true or false", "rewrite/need_flag.py",
           "if lower is None or upper is None or not 0 <= lower <= upper <= 1:", "if False:", POSTERIOR_STATEMENTS),
    mutant("a posterior's counts are paid for each column", "compile.py",
           "if plan_hash not in counted:", "if True:", POSTERIOR_STATEMENTS),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    mutant: str
    verdict: str  # killed, survived, stale, broken
    seconds: float
    detail: str = ""


def copy_house(to: Path) -> None:
    for name in ("dpsql", "tests", "schemas", "docs"):
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns("__pycache__", "*.ledger*"))
    shutil.copy(ROOT / "pyproject.toml", to)


def run_tests(house: Path, tests: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "DPSQL_TRIALS": "240", "DPSQL_SHRINK": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=house, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)


def try_mutant(mutant: Mutant, house: Path) -> Outcome:
    """Plant the bug, run its tests, take it out again."""
    before = {edit.file: (house / "dpsql" / edit.file).read_text(encoding="utf-8") for edit in mutant.edits}
    started = time.monotonic()
    try:
        for edit in mutant.edits:
            path = house / "dpsql" / edit.file
            text = path.read_text(encoding="utf-8")
            if text.count(edit.old) != 1:
                found = f"the text stands {text.count(edit.old)} times in {edit.file}"
                return Outcome(mutant.name, "stale", 0.0, found)
            path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
        try:
            done = run_tests(house, mutant.tests)
        except subprocess.TimeoutExpired:
            return Outcome(mutant.name, "survived", time.monotonic() - started, "out of time")
        seconds = time.monotonic() - started
        # 1: a test failed. Anything else but 0 means that the tests did not run, which proves nothing.
        verdict = {0: "survived", 1: "killed"}.get(done.returncode, "broken")
        return Outcome(mutant.name, verdict, seconds, first_failure(done.stdout) if verdict == "killed" else "")
    finally:
        for file, text in before.items():
            (house / "dpsql" / file).write_text(text, encoding="utf-8")


def first_failure(output: str) -> str:
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].partition("::")[2].partition(" - ")[0] if failed else ""


def baseline(house: Path) -> str | None:
    """The tests must pass without a bug, or they would kill everything."""
    for tests in dict.fromkeys(mutant.tests for mutant in MUTANTS):
        done = run_tests(house, tests)
        if done.returncode != 0:
            return f"{' '.join(tests)} fails without any bug:\n{done.stdout[-2000:]}"
    return None


def main(words: list[str]) -> int:
    chosen = [m for m in MUTANTS if not words or any(word in m.name for word in words)]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        houses: Queue[Path] = Queue()
        for number in range(WORKERS):
            house = Path(folder) / str(number)
            house.mkdir()
            copy_house(house)
            houses.put(house)

        def one(mutant: Mutant) -> Outcome:
            house = houses.get()
            try:
                outcome = try_mutant(mutant, house)
            finally:
                houses.put(house)
            print(f"{outcome.verdict:9}{outcome.seconds:6.1f} s  {outcome.mutant}  {outcome.detail}", flush=True)
            return outcome

        with ThreadPoolExecutor(WORKERS) as pool:
            outcomes = list(pool.map(one, chosen))
        wrong = None if words else baseline(houses.get())
    killed = sum(outcome.verdict == "killed" for outcome in outcomes)
    print(f"{killed} of {len(outcomes)} mutants killed in {time.monotonic() - started:.0f} s")
    if wrong is not None:
        print(wrong)
    return int(killed < len(outcomes) or wrong is not None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
