"""Interactive mechanisms, as one account asks them: threshold queries and the reusable holdout.

The order is the law, as of a statement: compile; charge, once, for all that will be asked; run, judge, store (these
three in `runs`); deliver. What is charged and how sensitive a question may be are fixed before the first one runs, from
what the analyst declares and from compiled statements, never from rows.

Privacy: the mechanism is one process's, of one data version. It ends with its last answer above the threshold, with the
process, with the data version, and where an answer could not be stored; its charge stands and is never redeemed
(SOUNDNESS 7). What was left by a cancel is waited for before the next question, so that answers come in turn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from dpsql.calibrate import Noise
from dpsql.errors import (
    AccessDenied,
    BudgetExceeded,
    Error,
    InvalidParameter,
    OperationalError,
    QueryCanceled,
    StaleData,
)
from dpsql.figures import NOTHING, Charge, short_up
from dpsql.interactive.decimals import plain
from dpsql.interactive.forecast import Forecast, Told
from dpsql.interactive.question import Measured, Statement, measured, not_one_number
from dpsql.ledger.base import Asked, Claim, Receipt
from dpsql.privacy.loss import TooSmall
from dpsql.privacy.records import write_sparse
from dpsql.privacy.threshold import Question, SparseVector, Watch, verdict_from_bytes
from dpsql.queries import Queries
from dpsql.runs import Asking
from dpsql.sql.parameters import Parameter, literals

ANEW = "Begin a new one, which is charged anew."


@dataclass(frozen=True)
class Terms:
    """What the analyst asks for; `spec` makes the mechanism of it, once the sensitivity of a value is known.

    Values are statements' divided by `divisor`, a public number. `declared` is a statement's sensitivity.
    """

    name: str
    answers: int
    spec: Callable[[Fraction], SparseVector]
    text: str
    divisor: Fraction = Fraction(1)
    declared: Fraction | None = None
    epsilon: Fraction | None = None  # where it is known before the sensitivity


class Interaction:
    """One mechanism, from before it is paid for to its end. Its questions come one after another."""

    def __init__(self, queries: Queries, terms: Terms, foreseen: Sequence[Statement] = ()) -> None:
        statement = queries.settings.statement
        self.terms = terms
        self.transcript: list[Told] = []
        self.charged: Charge = NOTHING
        self.receipt: Receipt | None = None
        self._account = queries.role.account
        # Epsilon decides here how fine the engine's cells are, and nothing else.
        self._settings = replace(
            statement, epsilon=Fraction(1), delta=Fraction(0), noise=Noise.LAPLACE, max_error=None,
            max_relative_error=None,
        )  # fmt: skip
        self._foreseen = foreseen
        self._spec: SparseVector | None = None
        self._claim: Claim | None = None
        self._watch: Watch | None = None
        self._pending: tuple[int, Statement] | None = None
        self._ended: str | None = None

    @property
    def left(self) -> int:
        """How many answers above the threshold there may still be."""
        return 0 if self._ended else self.terms.answers - sum(told.above for told in self.transcript)

    # --- before anything is charged ----------------------------------------------------------------------------------

    def forecast(
        self, queries: Queries, questions: int, confidence: float, statement: Statement | None = None
    ) -> Forecast:
        """Free."""
        if questions < 1 or not 0 < confidence < 1:
            raise InvalidParameter("questions must be at least 1, and confidence between 0 and 1")
        terms, miss = self.terms, 1 - confidence
        spec = self._spec_for(queries, statement)
        if spec is None:
            return Forecast(terms.epsilon, None, terms.answers, None, questions, confidence)
        loss = spec.loss
        return Forecast(
            loss.epsilon, loss.rho, terms.answers, spec.sensitivity, questions, confidence,
            spec.reach(questions, miss), spec.answer_error(miss),
        )  # fmt: skip

    def _spec_for(self, queries: Queries, statement: Statement | None) -> SparseVector | None:
        """The mechanism as it is fixed, or would be by this question."""
        if self._spec is not None:
            return self._spec
        if self.terms.declared is not None:
            return self._made(self.terms.declared)
        known = [*self._foreseen, *([] if statement is None else [statement])]
        return self._made(max(self._measured(queries, one).sensitivity for one in known)) if known else None

    def _made(self, sensitivity: Fraction) -> SparseVector:
        try:
            return self.terms.spec(sensitivity / self.terms.divisor)
        except TooSmall:
            raise InvalidParameter(
                "epsilon is too small, or sigma too large, for this mechanism", hint="Ask for less noise."
            ) from None

    def _measured(self, queries: Queries, statement: Statement) -> Measured:
        sql, parameters = statement
        compiled = queries.compiled(sql, parameters, settings=self._settings)
        found = measured(compiled) if compiled.settings == self._settings else None
        if found is None:
            raise not_one_number(sql)
        return found

    # --- asking ------------------------------------------------------------------------------------------------------

    def ask(self, queries: Queries, sql: str, parameters: Sequence[Parameter], beside: Fraction | None = None) -> Told:
        """The answer to one question; the first one has all of them charged."""
        statement = (sql, literals(parameters))
        if queries.role.account != self._account:
            raise AccessDenied("the mechanism is another account's", hint="SET ROLE back, or begin one of your own.")
        found = self._left_behind(queries)
        if found is not None and found[0] == statement:
            return found[1]
        self._require_open()
        question = self._measured(queries, statement)
        spec = self._spec or self._spec_for(queries, statement)
        assert spec is not None
        if question.sensitivity / self.terms.divisor > spec.sensitivity:
            raise self._too_sensitive(question, spec, sql)
        self._pay(queries, spec)
        return self._put(queries, statement, question, beside)

    def _pay(self, queries: Queries, spec: SparseVector) -> None:
        """Privacy: nothing is asked before all of it is charged, durably; later questions are charged nothing."""
        try:
            if self._claim is not None:
                queries.buyer.require_allowed()
                return
            loss = spec.loss
            assert loss.epsilon is not None
            sensitivity = spec.sensitivity * self.terms.divisor
            text = f"{self.terms.text}, sensitivity => {plain(sensitivity)})"
            plan = hashlib.sha256(f"{text}\n{self._settings!r}".encode()).hexdigest()
            asked = Asked(plan, queries.dataset.resolved.version, loss, (), mechanisms=write_sparse(spec), once=True)
            claim = queries.buyer.begin(asked, text, replace(self._settings, epsilon=loss.epsilon))
        except StaleData:
            self._ended = "the data has another version than it was begun on" if self._claim else None
            raise
        self._spec, self._claim, self.receipt = spec, claim, claim.receipt
        self._watch = Watch(spec, queries.buyer.sampler)
        self.charged = queries.buyer.charged

    def _put(self, queries: Queries, statement: Statement, question: Measured, beside: Fraction | None) -> Told:
        claim, watch = self._claim, self._watch
        assert claim is not None and watch is not None
        number = watch.asked + 1
        asked = Question(question.worth / self.terms.divisor, question.l1, beside)
        self._pending = (number, statement)
        try:
            body = queries.buyer.put(Asking(claim.release, question.sql, number, asked, watch))
        except QueryCanceled:  # the run goes on
            raise
        except Error:
            self._failed(number)
            raise
        return self._record(statement, body)

    def _left_behind(self, queries: Queries) -> tuple[Statement, Told] | None:
        """What the last question was answered, if who asked it left before."""
        if self._pending is None or self._claim is None:
            return None
        number, statement = self._pending
        try:
            body = queries.buyer.left_behind(self._claim.release, number)
        except QueryCanceled:
            raise
        except Error:
            self._failed(number)
            raise
        if body is None:
            self._failed(number)
            return None
        return statement, self._record(statement, body)

    def _record(self, statement: Statement, body: bytes) -> Told:
        verdict = verdict_from_bytes(body)
        told = Told(statement[0], verdict.above, verdict.value)
        self.transcript.append(told)
        self._pending = None
        return told

    def _failed(self, number: int) -> None:
        """A question that the engine failed at was not judged, and may be asked again; one that was, not."""
        self._pending = None
        if self._watch is not None and self._watch.asked >= number:
            self._ended = "an answer could not be stored"

    def _require_open(self) -> None:
        if self._ended is not None:
            raise OperationalError(f"{self.terms.name} has ended: {self._ended}", hint=ANEW, sqlstate="55000")
        if not self.left:
            times = "answer" if self.terms.answers == 1 else "answers"
            raise BudgetExceeded(
                f"{self.terms.name} has given its {self.terms.answers} {times} above the threshold",
                detail="Nothing was charged.",
                hint=ANEW,
            )

    def _too_sensitive(self, question: Measured, spec: SparseVector, sql: str) -> InvalidParameter:
        most = spec.sensitivity * self.terms.divisor
        error = InvalidParameter(
            f"one unit moves this number by up to {short_up(question.sensitivity)}, and {self.terms.name} was made for"
            f" at most {short_up(most)}",
            detail="Nothing was asked.",
            hint="Narrow its values with CLIP, or begin a new one with a larger sensitivity.",
        )
        error.statement = sql
        return error
