"""Mechanisms that a connection holds by name, as it holds cursors: declared, asked, explained, listed, closed.

Law: they are the connection's alone, and no name of theirs is in the ledger. Declaring and explaining charge nothing
and ask nothing. A transaction neither ends nor undoes them: what was charged and answered stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from dpsql.answer import Answer, done, json_answer, rows_answer
from dpsql.errors import Error, InvalidParameter, InvalidSyntax, LimitExceeded, ProgrammingError, part_of
from dpsql.interactive.decimals import exact
from dpsql.interactive.forecast import Forecast, Reply
from dpsql.interactive.interaction import Interaction
from dpsql.interactive.mechanisms import require_positive, watch_holdout, watch_threshold
from dpsql.queries import Queries
from dpsql.span import Span
from dpsql.sql.asked_commands import (
    AGAINST,
    EXAMPLES,
    HOLDOUT,
    THRESHOLD,
    Against,
    AskCommand,
    DeclareMechanismCommand,
)
from dpsql.sql.parameters import Parameter, bind, literal
from dpsql.sql.parse import tokenize
from dpsql.ticket import Ticket
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Type

MOST = 100
"""Of one connection."""
MOST_NAME = 63
QUESTIONS, CONFIDENCE = 100, 0.95
"""Of a forecast, where nothing else is said."""
MOST_QUESTIONS = 10**12
MEAN = "the training set's mean"
MOST_MEAN = 10**30
"""Far beyond any, and far within a double."""

Columns = tuple[tuple[str, Type], ...]
Ask = Callable[[str, Sequence[Parameter]], Answer]

_COLUMNS: Mapping[str, Columns] = {
    THRESHOLD: (("above", BOOLEAN), ("left", INTEGER)),
    HOLDOUT: (("value", DOUBLE), ("overfit", BOOLEAN), ("left", INTEGER)),
}
_OPTIONS = {
    THRESHOLD: ("threshold", "epsilon", "answers", "sensitivity"),
    HOLDOUT: ("n", "threshold", "sigma", "epsilon", "budget", "sensitivity"),
}
_NEEDED = {THRESHOLD: ("threshold",), HOLDOUT: ("n", "threshold")}


class Mechanisms:
    """Of one connection."""

    def __init__(self) -> None:
        self._held: dict[str, Interaction] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._held

    def of(self, name: str) -> Interaction:
        if name not in self._held:
            raise ProgrammingError(
                f'threshold or holdout "{name}" does not exist', hint=EXAMPLES[THRESHOLD], sqlstate="34000"
            )
        return self._held[name]

    # --- declaring, listing, ending ----------------------------------------------------------------------------------

    def declare(self, queries: Queries, command: DeclareMechanismCommand) -> Answer:
        """Free: what is charged is charged with the first question."""
        self._check_new(queries, command)
        self._held[command.name] = _new(queries, command)
        return done(f"DECLARE {command.kind.upper()}")

    def _check_new(self, queries: Queries, command: DeclareMechanismCommand) -> None:
        name, known = command.name, self._held.get(command.name)
        if not name or len(name) > MOST_NAME:
            raise ProgrammingError("a name has 1 to 63 characters", span=command.span, sqlstate="42602")
        if known is not None and known.account == queries.role.account:
            hint = "CLOSE it, or take another name."
            raise ProgrammingError(f'{known.terms.kind} "{name}" already exists', hint=hint, span=command.span,
                                   sqlstate="42P03")  # fmt: skip
        if len(self._held) >= MOST:  # those that a change of the role has ended make room
            self._held = {at: one for at, one in self._held.items() if one.account == queries.role.account}
        if len(self._held) >= MOST:
            raise LimitExceeded(f"there are {MOST} thresholds and holdouts already", hint="CLOSE those that are done.")

    def listed(self, queries: Queries, kind: str) -> Answer:
        columns: Columns = (("name", TEXT), ("asked", BIGINT), ("left", INTEGER), ("charged", TEXT), ("ended", TEXT))
        own = {name: one for name, one in self._held.items() if one.account == queries.role.account}
        rows = [(name, one.asked, one.left, str(one.charged), one.ended)
                for name, one in own.items() if one.terms.kind == kind]  # fmt: skip
        return rows_answer(columns, rows, "SHOW")

    def close(self, name: str) -> str:
        """The word that tells of it."""
        closed = self._held.pop(name)
        closed.end("it was closed")
        return f"CLOSE {closed.terms.kind.upper()}"

    def close_all(self) -> None:
        for name in list(self._held):
            self.close(name)

    def end(self, why: str) -> None:
        """All of them, whose names tell it until they are closed."""
        for one in self._held.values():
            one.end(why)

    # --- asking ------------------------------------------------------------------------------------------------------

    def columns(self, command: AskCommand) -> Columns:
        kind = self.of(command.name).terms.kind
        return (("answer", TEXT),) if command.json else _COLUMNS[kind]

    def ask(
        self, queries: Queries, command: AskCommand, sql: str, parameters: Sequence[Parameter], query: Ask
    ) -> Answer:
        """`query` answers what stands behind AGAINST, if it is free."""
        mechanism, question = self.of(command.name), command.question
        if question is None:
            raise InvalidSyntax("ASK takes a question", hint="For example: ASK busy SELECT COUNT(*) FROM visits.")
        bind(tokenize(sql), parameters)  # as many as there are placeholders
        mechanism.require_account(queries)
        mean = _mean(mechanism.terms.kind, command, sql, parameters, query, queries.buyer.ticket)
        least = _least(command)
        begun = mechanism.receipt is not None
        with part_of(sql, question.offset):
            reply = mechanism.ask(queries, question.sql, question.own(parameters), mean, least)
        answer = self._answer(command, reply, mean)
        receipts = () if mechanism.receipt is None else (mechanism.receipt,)
        return replace(answer, receipts=receipts, notices=() if command.json else tuple(_notices(reply)),
                       loss=answer.loss if begun else mechanism.loss)  # fmt: skip

    def _answer(self, command: AskCommand, reply: Reply, mean: Fraction | None) -> Answer:
        if command.json:
            return json_answer("answer", reply, "ASK")
        told = reply.told
        row: tuple[object, ...] = (told.above, reply.left)
        if mean is not None:
            row = (float(mean if told.value is None else told.value), *row)
        return rows_answer(self.columns(command), [row], "ASK")

    def forecast(
        self, queries: Queries, command: AskCommand, sql: str, parameters: Sequence[Parameter],
        given: Mapping[str, str],
    ) -> Forecast:  # fmt: skip
        """EXPLAIN: free, and asks nothing; without a question, as far as the declaration tells."""
        mechanism, question = self.of(command.name), command.question
        mechanism.require_account(queries)
        bind(tokenize(sql), parameters)
        questions = exact("questions", given.get("questions", QUESTIONS))
        confidence = exact("confidence", given.get("confidence", CONFIDENCE))
        if questions.denominator != 1 or not 1 <= questions <= MOST_QUESTIONS or not 0 < confidence < 1:
            raise InvalidParameter("questions must be a whole number above 0, and confidence between 0 and 1")
        if question is None:
            return mechanism.forecast(queries, int(questions), float(confidence))
        with part_of(sql, question.offset):
            statement = (question.sql, tuple(literal(one) for one in question.own(parameters)))
            return mechanism.forecast(queries, int(questions), float(confidence), statement, _least(command))


def _least(command: AskCommand) -> Fraction | None:
    if command.sensitivity is None:
        return None
    found = exact("sensitivity", command.sensitivity)
    require_positive(sensitivity=found)
    return found


def _notices(reply: Reply) -> Iterator[str]:
    for told in reply.before:
        yield f"the question that was left before was answered: {'above' if told.above else 'below'}"


# --- what is declared ------------------------------------------------------------------------------------------------


def _new(queries: Queries, command: DeclareMechanismCommand) -> Interaction:
    kind = command.kind
    for option in command.options:
        if option.name not in _OPTIONS[kind]:
            raise InvalidParameter(f'a {kind} has no option "{option.name}"',
                                   hint=f"It has {', '.join(_OPTIONS[kind])}.", span=option.span)  # fmt: skip
    given: dict[str, Fraction] = {}
    for option in command.options:
        with _at(option.span):
            given[option.name] = exact(option.name, option.value)
    missing = next((name for name in _NEEDED[kind] if name not in given), None)
    if missing is not None:
        raise InvalidParameter(f"a {kind} needs {missing}", hint=EXAMPLES[kind], span=command.span)
    with _at(command.span):
        return watch_threshold(queries, **given) if kind == THRESHOLD else watch_holdout(queries, **given)


@contextmanager
def _at(span: Span) -> Iterator[None]:
    try:
        yield
    except Error as error:
        error.span = error.span or span
        raise


# --- what a holdout is held against ----------------------------------------------------------------------------------


def _mean(
    kind: str, command: AskCommand, sql: str, parameters: Sequence[Parameter], query: Ask, ticket: Ticket
) -> Fraction | None:
    against = command.against
    if kind == THRESHOLD:
        if against is not None:
            raise InvalidSyntax(f'AGAINST is for a holdout, and "{command.name}" is a threshold', span=against.span)
        return None
    if against is None:
        raise InvalidSyntax("a holdout is asked AGAINST the mean of a training set", hint=AGAINST)
    with _at(against.span):
        mean = exact(MEAN, _given(against, sql, parameters, query, ticket))
        if abs(mean) > MOST_MEAN:
            raise InvalidParameter(f"{MEAN} is too large")
        return mean


def _given(
    against: Against, sql: str, parameters: Sequence[Parameter], query: Ask, ticket: Ticket
) -> int | float | str | Decimal:
    """Privacy: it is told exactly, so it is public or released: what would be charged is refused."""
    if against.text is not None:
        return against.text
    if against.query is None:
        assert against.place is not None
        return literal(parameters[against.place]).text
    with part_of(sql, against.query.offset), _only_free(ticket):
        rows = query(against.query.sql, against.query.own(parameters)).rows
    value = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidParameter(f"{MEAN} must be a number", hint="The query gives one row with one number.")
    return value


@contextmanager
def _only_free(ticket: Ticket) -> Iterator[None]:
    before, ticket.free = ticket.free, True
    try:
        yield
    finally:
        ticket.free = before
