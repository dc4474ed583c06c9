"""Interactive mechanisms, as one account asks them: threshold queries and the reusable holdout.

The order is the law, as of a statement: compile; charge, once, for all that will be asked; run, judge, store (these
three in `runs`); deliver. What is charged and how sensitive a question may be are fixed before the first one runs, from
what the analyst declares and from compiled statements, never from rows.

Privacy: the mechanism is one process's, of one data version. It ends with its last answer above the threshold, with the
connection and its process, with its role and its data version, and where an answer could not be stored; its charge
stands and is never redeemed (SOUNDNESS 7). What was left by a cancel is waited for before the next question, so that
answers come in turn; and the same question again is answered with the verdict that is stored.

It holds no transcript: what it answered is in the ledger, and memory does not grow with questions.
"""

from __future__ import annotations

import hashlib
from collections import deque
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
from dpsql.interactive.forecast import Forecast, Reply, Told
from dpsql.interactive.question import Measured, Statement, measured, not_one_number
from dpsql.ledger.base import Asked, Claim, Receipt
from dpsql.privacy.filters import cost_of
from dpsql.privacy.loss import NO_LOSS, Loss, TooSmall
from dpsql.privacy.records import write_sparse
from dpsql.privacy.threshold import Question, SparseVector, Watch, verdict_from_bytes
from dpsql.queries import Queries
from dpsql.runs import Asking
from dpsql.sql.parameters import Parameter, literals
from dpsql.ticket import Ticket

MOST_UNTOLD, MOST_CHARACTERS = 16, 2_000
"""Answers to questions that were left, until they are told with a later one; and of the text of each."""
ANEW = "Begin a new one, which is charged anew."


@dataclass(frozen=True)
class Terms:
    """What the analyst asks for; `spec` makes the mechanism of it, once the sensitivity of a value is known.

    Values are statements' divided by `divisor`, a public number. `declared` is a statement's sensitivity.
    """

    kind: str
    name: str
    answers: int
    spec: Callable[[Fraction], SparseVector]
    text: str
    divisor: Fraction = Fraction(1)
    declared: Fraction | None = None
    epsilon: Fraction | None = None  # where it is known before the sensitivity


@dataclass(frozen=True)
class _Asked:
    """Which question it is, values and the number that it is held against among it; and what is told of it."""

    digest: str
    text: str


def _asked(statement: Statement, beside: Fraction | None) -> _Asked:
    digest = hashlib.sha256(repr((statement, beside)).encode()).hexdigest()
    return _Asked(digest, statement[0][:MOST_CHARACTERS])


class Interaction:
    """One mechanism, from before it is paid for to its end. Its questions come one after another."""

    def __init__(self, queries: Queries, terms: Terms) -> None:
        statement = queries.settings.statement
        self.terms = terms
        self.account = queries.role.account
        self.asked = 0
        self.charged: Charge = NOTHING
        self.receipt: Receipt | None = None
        self.ended: str | None = None
        # Epsilon decides here how fine the engine's cells are, and nothing else.
        self._settings = replace(
            statement, epsilon=Fraction(1), delta=Fraction(0), noise=Noise.LAPLACE, max_error=None,
            max_relative_error=None,
        )  # fmt: skip
        self._above = 0
        self._untold: deque[Told] = deque(maxlen=MOST_UNTOLD)
        self._spec: SparseVector | None = None
        self._claim: Claim | None = None
        self._watch: Watch | None = None
        self._pending: tuple[int, _Asked] | None = None
        self._last: tuple[_Asked, Told, Ticket] | None = None

    @property
    def left(self) -> int:
        """How many answers above the threshold there may still be."""
        return 0 if self.ended else self.terms.answers - self._above

    @property
    def loss(self) -> Loss:
        """Of all that it may answer, once it is charged."""
        return NO_LOSS if self._spec is None else self._spec.loss

    def end(self, why: str) -> None:
        """Nothing is answered any more, and the noise is gone; a question that is under way is stored all the same."""
        self.ended = self.ended or why
        self._watch = self._pending = self._last = None
        self._untold.clear()

    # --- before anything is charged ----------------------------------------------------------------------------------

    def forecast(
        self,
        queries: Queries,
        questions: int,
        confidence: float,
        statement: Statement | None = None,
        least: Fraction | None = None,
    ) -> Forecast:
        """Free."""
        if questions < 1 or not 0 < confidence < 1:
            raise InvalidParameter("questions must be at least 1, and confidence between 0 and 1")
        terms, miss = self.terms, 1 - confidence
        spec = self._spec_for(queries, statement, least)
        if spec is None:
            return Forecast(terms.epsilon, None, terms.answers, None, questions, confidence)
        loss, paid = spec.loss, self._claim is not None
        refused = not paid and not queries.dataset.ledger.balance(queries.role.account).admits(cost_of(loss))
        return Forecast(
            loss.epsilon, loss.rho, terms.answers, spec.sensitivity, questions, confidence,
            spec.reach(questions, miss), spec.answer_error(miss), paid, refused,
        )  # fmt: skip

    def _spec_for(
        self, queries: Queries, statement: Statement | None, least: Fraction | None = None
    ) -> SparseVector | None:
        """The mechanism as it is fixed, or would be by this question, if it is to move by no more than `least`."""
        if self._spec is not None:
            return self._spec
        if self.terms.declared is not None:
            return self._made(self.terms.declared)
        if statement is None:
            return None
        return self._made(max(self._measured(queries, statement).sensitivity, least or Fraction(0)))

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

    def ask(
        self,
        queries: Queries,
        sql: str,
        parameters: Sequence[Parameter],
        beside: Fraction | None = None,
        least: Fraction | None = None,
    ) -> Reply:
        """The answer to one question; the first one has all of them charged, and fixes how sensitive others may be:
        as itself, or as `least`."""
        self.require_account(queries)
        statement = (sql, literals(parameters))
        asked = _asked(statement, beside)
        told = self._again(queries, asked)
        if told is None:
            self._require_open()
            question = self._measured(queries, statement)
            spec = self._spec_for(queries, statement, least)
            assert spec is not None
            if question.sensitivity / self.terms.divisor > spec.sensitivity:
                raise self._too_sensitive(question, spec, sql)
            self._pay(queries, spec)
            told = self._put(queries, asked, question, beside)
        self._last = asked, told, queries.buyer.ticket
        before = tuple(one for one in self._untold if one is not told)
        self._untold.clear()
        return Reply(told, before, self.left)

    def require_account(self, queries: Queries) -> None:
        if queries.role.account != self.account:
            raise AccessDenied("the mechanism is another account's", hint="Begin one of your own.")

    def _again(self, queries: Queries, asked: _Asked) -> Told | None:
        """What the question was answered, if it was asked before and who asked left before she was told."""
        found = self._left_behind(queries)
        if found is not None:
            self._last = *found, Ticket(canceled=True)
        if self._last is not None and self._last[0] == asked and self._last[2].canceled:
            return self._last[1]
        return None

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
            self.ended = "the data has another version than it was begun on" if self._claim else None
            raise
        self._spec, self._claim, self.receipt = spec, claim, claim.receipt
        self._watch = Watch(spec, queries.buyer.sampler)
        self.charged = queries.buyer.charged

    def _put(self, queries: Queries, asked: _Asked, question: Measured, beside: Fraction | None) -> Told:
        claim, watch = self._claim, self._watch
        assert claim is not None and watch is not None
        number = watch.asked + 1
        put = Question(question.worth / self.terms.divisor, question.l1, beside)
        self._pending = (number, asked)
        try:
            body = queries.buyer.put(Asking(claim.release, question.sql, number, put, watch))
        except QueryCanceled:  # the run goes on
            raise
        except Error:
            self._failed(number)
            raise
        return self._record(asked, body)

    def _left_behind(self, queries: Queries) -> tuple[_Asked, Told] | None:
        """What the last question was answered, if who asked it left before."""
        if self._pending is None or self._claim is None:
            return None
        number, asked = self._pending
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
        return asked, self._record(asked, body)

    def _record(self, asked: _Asked, body: bytes) -> Told:
        verdict = verdict_from_bytes(body)
        told = Told(asked.text, verdict.above, verdict.value)
        self._untold.append(told)
        self.asked += 1
        self._above += told.above
        self._pending = None
        return told

    def _failed(self, number: int) -> None:
        """A question that the engine failed at was not judged, and may be asked again; one that was, not."""
        self._pending = None
        if self._watch is not None and self._watch.asked >= number:
            self.ended = "an answer could not be stored"

    def _require_open(self) -> None:
        if self.ended is not None:
            raise OperationalError(f"{self.terms.name} has ended: {self.ended}", hint=ANEW, sqlstate="55000")
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
