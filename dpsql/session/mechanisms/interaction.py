"""Interactive mechanisms, as one account asks them: threshold queries and the reusable holdout.

The order is the law, as of a statement: compile; charge, once, for all that will be asked; run, compare with the
threshold, store (these three in `runs`); deliver. What is charged and how sensitive a question may be are fixed before
the first one runs, from what the analyst declares and from compiled statements, never from rows.

Privacy: the mechanism is one process's, of one data version. It ends with its last answer above the threshold, with the
connection and its process, with its role and its data version, and where an answer could not be stored; its charge
stands and is never redeemed (SOUNDNESS 7). What was left by a cancel is waited for before the next question, so that
answers come in turn; and the same question again gets the answer that is stored.

Where nobody declared how many rows a unit may count for, the sensitivity decides it: a unit counts for so many rows of
a question as keep to it. If nothing says what the sensitivity is, a histogram of units by their rows in the first
question chooses the rows, and so the sensitivity (`compiler/row_caps.py`): a release of its own, for a part of epsilon,
charged and stored before the mechanism is.

It holds no transcript: what it answered is in the ledger, and memory does not grow with questions.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.amounts import NO_CHARGE, Charge, format_rounded_up
from dpsql.base.cancellation import StatementHandle
from dpsql.compiler.calibrate.calibrate import LossNeed, NoiseKind, split_loss
from dpsql.compiler.compile import Compiled, MeasureSource
from dpsql.compiler.norm_steps import KnownNorms
from dpsql.compiler.parse.parameters import Parameter, to_literals
from dpsql.compiler.plan.estimators import Linear
from dpsql.compiler.rewrite.automatic_norms import MAX_AUTOMATIC_CAP
from dpsql.compiler.row_caps import RowCap, choose_row_cap, rows_of_question
from dpsql.compiler.settings import Settings
from dpsql.errors import (
    AccessDenied,
    BudgetExceeded,
    Error,
    InvalidParameter,
    OperationalError,
    QueryCanceled,
    StaleData,
    UnboundedContribution,
    Unsupported,
)
from dpsql.ledger.base import Entitlement, Receipt, ReleaseRequest
from dpsql.privacy.audit_record import write_sparse_vector_record
from dpsql.privacy.filters import cost_of
from dpsql.privacy.loss import NO_LOSS, Loss, LossTooSmall, sum_losses
from dpsql.privacy.sparse_vector import SparseVector, SparseVectorState, ThresholdQuery, threshold_answer_from_bytes
from dpsql.session.dataset.runs import InteractiveJob
from dpsql.session.mechanisms.forecast import Forecast, MechanismAnswer, MechanismReply, format_fraction
from dpsql.session.norm_purchase import NormPurchase
from dpsql.session.query import QueryExecutor

# The one number that a question to an interactive mechanism asks for, read off the compiled statement.

SINGLE_NUMBER_HINT = "For example: SELECT COUNT(*) FROM visits WHERE ward = 'surgery', or SELECT SUM(cost) FROM visits."

# What post-processing is where it gives a measure out as it is, with or without its error bars.
_UNCHANGED_MEASURE = re.compile(
    r'SELECT (\w+)\."(\w+)" AS "(?:[^"]|"")*"(?:, \1\."\2_(?:stderr|low|high|clipped)" AS "_error\d")* FROM \1'
)

BoundStatement = tuple[str, tuple[Parameter, ...]]


@dataclass(frozen=True)
class MeasuredQuestion:
    """A statement of one number: the engine's SQL, the value of one step of its cell, and how far a unit moves it."""

    sql: str
    cell_step: Fraction
    l1: int

    @property
    def sensitivity(self) -> Fraction:
        return ThresholdQuery(self.cell_step, self.l1).sensitivity


def measure_question(compiled: Compiled) -> MeasuredQuestion | None:
    """The statement's only number, if that is one sum over private rows, given out as it is; else None.

    Privacy: its sensitivity is the claim of the plan whose text runs (law 2).
    """
    if len(compiled.steps) != 1 or len(compiled.tables) != 1 or len(compiled.tables[0].measures) != 1:
        return None
    (step,), (answer,), calibrated = compiled.steps, compiled.tables[0].measures, compiled.steps[0].calibrated
    plain = not step.keys and not step.holes and calibrated.choice is None and calibrated.selection is None
    if not plain or not _UNCHANGED_MEASURE.fullmatch(compiled.post_sql) or len(calibrated.bundles) != 1:
        return None
    match answer:
        case MeasureSource(0, Linear(((cell, coefficient),))) if calibrated.columns == (cell,) and coefficient:
            l1 = calibrated.bundles[0].claim.sensitivity.l1
            return MeasuredQuestion(step.sql, coefficient * calibrated.grids[0], l1)
        case _:
            return None


def not_single_number_error(sql: str) -> Unsupported:
    error = Unsupported(
        "a question is one COUNT or SUM over private rows, and nothing else",
        detail="No groups, no arithmetic on the number, no OPTIONS, no sub-select that is worked out first.",
        hint=SINGLE_NUMBER_HINT,
    )
    error.statement = sql
    return error


def _require_single_number(compiled: Compiled, settings: Settings) -> MeasuredQuestion:
    question = measure_question(compiled) if compiled.settings == settings else None
    if question is None:
        raise not_single_number_error(compiled.statement)
    return question


MAX_UNDELIVERED, MAX_QUESTION_CHARACTERS = 16, 2_000
"""Answers to canceled questions that are kept for a later delivery; and characters of a question that are kept."""
RESTART_HINT = "Begin a new one, which is charged anew."


@dataclass(frozen=True)
class MechanismTerms:
    """What the analyst asks for; `spec` makes the mechanism of it, once the sensitivity of a value is known, with the
    part of epsilon that the choice of rows has left.

    Values are statements' divided by `divisor`, a public number. `declared` is a statement's sensitivity.
    """

    kind: str
    name: str
    answers: int
    spec: Callable[[Fraction, Fraction], SparseVector]
    text: str
    divisor: Fraction = Fraction(1)
    declared: Fraction | None = None
    epsilon: Fraction | None = None  # where it is known before the sensitivity


@dataclass(frozen=True)
class _FittedQuestion:
    """A question and the mechanism for it; None while nobody knows how many rows a unit counts for."""

    question: MeasuredQuestion | None
    spec: SparseVector | None
    cap: RowCap | None = None  # where a histogram of units chooses the rows


NormSource = Callable[[Callable[[KnownNorms], Compiled]], NormPurchase]
"""Buys the histograms that a statement needs, or finds those that are paid for."""


@dataclass(frozen=True)
class _QuestionId:
    """`digest` identifies a question: statement, values and the number that it is compared with. `text` is shown."""

    digest: str
    text: str


def _identify_question(statement: BoundStatement, comparison_value: Fraction | None) -> _QuestionId:
    digest = hashlib.sha256(repr((statement, comparison_value)).encode()).hexdigest()
    return _QuestionId(digest, statement[0][:MAX_QUESTION_CHARACTERS])


class Interaction:
    """One mechanism, from before it is paid for to its end. Its questions come one after another."""

    def __init__(self, queries: QueryExecutor, terms: MechanismTerms) -> None:
        statement = queries.context.settings.statement
        self.terms = terms
        self.account = queries.context.account
        self.questions_asked = 0
        self.charged: Charge = NO_CHARGE
        self.receipt: Receipt | None = None
        self.ended: str | None = None
        # Epsilon decides here how fine the engine's cells are, and nothing else.
        self._settings = replace(
            statement, epsilon=Fraction(1), delta=Fraction(0), noise=NoiseKind.LAPLACE, max_error=None,
            max_relative_error=None,
        )  # fmt: skip
        self.cap_notices: tuple[str, ...] = ()  # of the rows that were chosen for its questions
        self._norm_loss = NO_LOSS
        self._above = 0
        self._undelivered: deque[MechanismAnswer] = deque(maxlen=MAX_UNDELIVERED)
        self._spec: SparseVector | None = None
        self._entitlement: Entitlement | None = None
        self._sparse_vector: SparseVectorState | None = None
        self._pending: tuple[int, _QuestionId] | None = None
        self._last: tuple[_QuestionId, MechanismAnswer, StatementHandle] | None = None

    @property
    def answers_left(self) -> int:
        """How many answers above the threshold there may still be."""
        return 0 if self.ended else self.terms.answers - self._above

    @property
    def loss(self) -> Loss:
        """The loss of all that it may answer, once it is charged, and of the histogram that chose its rows."""
        return NO_LOSS if self._spec is None else sum_losses([self._norm_loss, self._spec.loss])

    def end(self, why: str) -> None:
        """Nothing is answered any more, and the noise is gone; a question that is under way is stored all the same."""
        self.ended = self.ended or why
        self._sparse_vector = self._pending = self._last = None
        self._undelivered.clear()

    # --- before anything is charged ----------------------------------------------------------------------------------

    def forecast(
        self,
        queries: QueryExecutor,
        questions: int,
        confidence: float,
        statement: BoundStatement | None = None,
        min_sensitivity: Fraction | None = None,
    ) -> Forecast:
        """What it would be charged and how good its answers would be. Free."""
        if questions < 1 or not 0 < confidence < 1:
            raise InvalidParameter("questions must be at least 1, and confidence between 0 and 1")
        terms, miss = self.terms, 1 - confidence
        fitted = self._fit_question(queries, statement, min_sensitivity, queries.find_paid_norms)
        spec, chooses = fitted.spec, fitted.cap is not None and fitted.cap.undecided
        if spec is None:
            return Forecast(terms.epsilon, None, terms.answers, None, questions, confidence, chooses_rows=chooses)
        loss, paid = spec.loss, self._entitlement is not None
        ledger = queries.context.dataset.ledger
        refused = not paid and not ledger.get_balance(queries.context.account).admits(cost_of(loss))
        return Forecast(
            loss.epsilon, loss.rho, terms.answers, spec.sensitivity, questions, confidence,
            spec.accuracy_margin(questions, miss), spec.answer_error(miss), paid, refused,
        )  # fmt: skip

    def _fit_question(
        self,
        queries: QueryExecutor,
        statement: BoundStatement | None,
        min_sensitivity: Fraction | None,
        norms: NormSource,
    ) -> _FittedQuestion:
        """The question, and the mechanism as it is fixed, or would be by it, for at least `min_sensitivity`."""
        declared = self.terms.declared
        spec = self._spec if self._spec is not None or declared is None else self._build_spec(declared)
        if statement is None:
            return _FittedQuestion(None, spec)
        limit = min_sensitivity if spec is None else spec.sensitivity * self.terms.divisor
        fitted = self._measure_question(queries, statement, limit, norms)
        if spec is None and fitted.question is not None:
            left = Fraction(1) if fitted.cap is None else 1 - fitted.cap.spent
            spec = self._build_spec(max(fitted.question.sensitivity, min_sensitivity or Fraction(0)), left)
        return replace(fitted, spec=spec)

    def _build_spec(self, sensitivity: Fraction, left: Fraction = Fraction(1)) -> SparseVector:
        try:
            return self.terms.spec(sensitivity / self.terms.divisor, left)
        except LossTooSmall:
            raise InvalidParameter(
                "epsilon is too small, or sigma too large, for this mechanism", hint="Ask for less noise."
            ) from None

    def _measure_question(
        self, queries: QueryExecutor, statement: BoundStatement, limit: Fraction | None, norms: NormSource
    ) -> _FittedQuestion:
        """The question, in which a unit counts for the rows that are declared, that `limit` allows, or that a histogram
        chooses."""
        compiled = queries.compile_statement(*statement, settings=self._settings)
        if not compiled.undecided:
            return _FittedQuestion(_require_single_number(compiled, self._settings), None)
        per_row = self._measure_with_rows(queries, statement, 1)
        if limit is not None:
            rows = min(MAX_AUTOMATIC_CAP, max(1, limit // per_row.sensitivity))
            question = self._measure_with_rows(queries, statement, rows)
            while question.sensitivity > limit and rows > 1:  # its cells may be coarser with more rows
                rows = max(1, min(rows - 1, int(rows * limit / question.sensitivity)))
                question = self._measure_with_rows(queries, statement, rows)
            return _FittedQuestion(question, None)
        cap = self._choose_cap(queries, statement, norms)
        if cap.undecided or cap.rows is None:
            return _FittedQuestion(None, None, cap)
        return _FittedQuestion(self._measure_with_rows(queries, statement, cap.rows), None, cap)

    def _measure_with_rows(self, queries: QueryExecutor, statement: BoundStatement, rows: int) -> MeasuredQuestion:
        settings = replace(self._settings, rows=rows)
        compiled = queries.compile_statement(*statement, settings=settings)
        if compiled.undecided:
            error = UnboundedContribution(
                "one row moves this number by any amount: its values have no bounds",
                hint="Declare bounds for the column in the schema, or write SUM(CLIP(x, 0, 100)) with bounds of your "
                "own.",
            )
            error.statement = statement[0]
            raise error
        return _require_single_number(compiled, settings)

    def _choose_cap(self, queries: QueryExecutor, statement: BoundStatement, norms: NormSource) -> RowCap:
        """The rows that a unit counts for, by a histogram which `norms` buys or finds.

        Privacy: it is charged by itself, and what is left of epsilon is the same whether or not it is stored already.
        """
        epsilon = self.terms.epsilon or queries.context.settings.statement.epsilon
        (share,) = split_loss(NoiseKind.LAPLACE, epsilon, Fraction(0), (LossNeed.EPSILON,))
        compiled = queries.compile_statement(*statement, settings=replace(self._settings, epsilon=epsilon))
        rows = rows_of_question(compiled)
        if rows is None:
            raise not_single_number_error(statement[0])

        def choose(known: KnownNorms) -> RowCap:
            return choose_row_cap("_q1", rows, share, epsilon, Fraction(0), queries.context.dataset.resolved, known)

        def compile_with(known: KnownNorms) -> Compiled:
            """The question beside its histogram, of the loss that the mechanism will have: both must be covered."""
            cap, (step,) = choose(known), compiled.steps
            return replace(compiled, steps=(replace(step, undecided=cap.undecided),), norm_steps=cap.steps)

        bought = norms(compile_with)
        self._norm_loss = sum_losses([self._norm_loss, bought.loss])
        return choose(bought.known)

    # --- asking ------------------------------------------------------------------------------------------------------

    def submit_query(
        self,
        queries: QueryExecutor,
        sql: str,
        parameters: Sequence[Parameter],
        comparison_value: Fraction | None = None,
        min_sensitivity: Fraction | None = None,
    ) -> MechanismReply:
        """The answer to one question; the first one has all of them charged, and fixes how sensitive others may be:
        as itself, or as `min_sensitivity`."""
        self.require_account(queries)
        statement = (sql, to_literals(parameters))
        question_id = _identify_question(statement, comparison_value)
        answer = self._recall_answer(queries, question_id)
        if answer is None:
            self._require_open()
            fitted = self._fit_question(queries, statement, min_sensitivity, queries.buy_norms)
            question, spec = fitted.question, fitted.spec
            assert question is not None and spec is not None
            if fitted.cap is not None:
                self.cap_notices = fitted.cap.notices
            if question.sensitivity / self.terms.divisor > spec.sensitivity:
                raise self._too_sensitive_error(question, spec, sql)
            self._charge_mechanism(queries, spec)
            answer = self._run_question(queries, question_id, question, comparison_value)
        self._last = question_id, answer, queries.context.cancel
        before = tuple(earlier for earlier in self._undelivered if earlier is not answer)
        self._undelivered.clear()
        return MechanismReply(answer, before, self.answers_left)

    def require_account(self, queries: QueryExecutor) -> None:
        if queries.context.account != self.account:
            raise AccessDenied("the mechanism is another account's", hint="Begin one of your own.")

    def _recall_answer(self, queries: QueryExecutor, question_id: _QuestionId) -> MechanismAnswer | None:
        """The answer to the last question, if it is this one and was canceled before its answer was delivered."""
        pending = self._collect_pending(queries)
        if pending is not None:
            self._last = *pending, StatementHandle(canceled=True)
        if self._last is not None and self._last[0] == question_id and self._last[2].canceled:
            return self._last[1]
        return None

    def _charge_mechanism(self, queries: QueryExecutor, spec: SparseVector) -> None:
        """Privacy: nothing is asked before all of it is charged, durably; later questions are charged nothing."""
        try:
            if self._entitlement is not None:
                queries.purchase.require_account_active()
                return
            loss = spec.loss
            assert loss.epsilon is not None
            sensitivity = spec.sensitivity * self.terms.divisor
            text = f"{self.terms.text}, sensitivity => {format_fraction(sensitivity)})"
            plan = hashlib.sha256(f"{text}\n{self._settings!r}".encode()).hexdigest()
            version, record = queries.context.dataset.resolved.version, write_sparse_vector_record(spec)
            request = ReleaseRequest(plan, version, loss, (), mechanisms=record, once=True)
            entitlement = queries.purchase.charge_mechanism(
                request, text, replace(self._settings, epsilon=loss.epsilon)
            )
        except StaleData:
            self.ended = "the data has another version than it was begun on" if self._entitlement else None
            raise
        self._spec, self._entitlement, self.receipt = spec, entitlement, entitlement.receipt
        self._sparse_vector = SparseVectorState(spec, queries.purchase.sampler)
        self.charged = queries.purchase.charge_so_far

    def _run_question(
        self,
        queries: QueryExecutor,
        question_id: _QuestionId,
        question: MeasuredQuestion,
        comparison_value: Fraction | None,
    ) -> MechanismAnswer:
        entitlement, sparse_vector = self._entitlement, self._sparse_vector
        assert entitlement is not None and sparse_vector is not None
        number = sparse_vector.queries_evaluated + 1
        threshold_question = ThresholdQuery(question.cell_step / self.terms.divisor, question.l1, comparison_value)
        self._pending = (number, question_id)
        try:
            body = queries.purchase.submit(
                InteractiveJob(entitlement.release, question.sql, number, threshold_question, sparse_vector)
            )
        except QueryCanceled:  # the run goes on
            raise
        except Error:
            self._record_failure(number)
            raise
        return self._record_answer(question_id, body)

    def _collect_pending(self, queries: QueryExecutor) -> tuple[_QuestionId, MechanismAnswer] | None:
        """The answer to the last question, if it was canceled while the engine ran."""
        if self._pending is None or self._entitlement is None:
            return None
        number, question_id = self._pending
        try:
            body = queries.purchase.pending_answer(self._entitlement.release, number)
        except QueryCanceled:
            raise
        except Error:
            self._record_failure(number)
            raise
        if body is None:
            self._record_failure(number)
            return None
        return question_id, self._record_answer(question_id, body)

    def _record_answer(self, question_id: _QuestionId, body: bytes) -> MechanismAnswer:
        stored_answer = threshold_answer_from_bytes(body)
        answer = MechanismAnswer(question_id.text, stored_answer.above, stored_answer.value)
        self._undelivered.append(answer)
        self.questions_asked += 1
        self._above += answer.above
        self._pending = None
        return answer

    def _record_failure(self, number: int) -> None:
        """Where the engine failed, the question may be asked again; where only storing failed, the mechanism ends."""
        self._pending = None
        if self._sparse_vector is not None and self._sparse_vector.queries_evaluated >= number:
            self.ended = "an answer could not be stored"

    def _require_open(self) -> None:
        if self.ended is not None:
            raise OperationalError(f"{self.terms.name} has ended: {self.ended}", hint=RESTART_HINT, sqlstate="55000")
        if not self.answers_left:
            times = "answer" if self.terms.answers == 1 else "answers"
            raise BudgetExceeded(
                f"{self.terms.name} has given its {self.terms.answers} {times} above the threshold",
                detail="Nothing was charged.",
                hint=RESTART_HINT,
            )

    def _too_sensitive_error(self, question: MeasuredQuestion, spec: SparseVector, sql: str) -> InvalidParameter:
        max_sensitivity = spec.sensitivity * self.terms.divisor
        error = InvalidParameter(
            f"one unit moves this number by up to {format_rounded_up(question.sensitivity)}, and "
            f"{self.terms.name} was made for"
            f" at most {format_rounded_up(max_sensitivity)}",
            detail="Nothing was asked.",
            hint="Narrow its values with CLIP, or begin a new one with a larger sensitivity.",
        )
        error.statement = sql
        return error
