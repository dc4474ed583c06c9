"""Interactive mechanisms in Python, many questions for one price: threshold queries and the reusable holdout.

Both are made by a connection, free until their first question, and end with it.
"""

from __future__ import annotations

import itertools
import json
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from dpsql.amounts import NO_CHARGE, Charge
from dpsql.base.lexer import quote_name
from dpsql.base.serialization import from_json
from dpsql.errors import Error, InterfaceError, InvalidParameter, OperationalError, QueryCanceled, Span
from dpsql.interfaces.dbapi.cursor import Cursor
from dpsql.session.session import (
    Forecast,
    MechanismAnswer,
    MechanismReply,
    Number,
    Parameter,
    Receipt,
    SubmitQuery,
    parse_fraction,
    read_command,
    to_literals,
)

if TYPE_CHECKING:
    from dpsql.interfaces.dbapi.connection import Connection

QUESTION_MARKER = "{q}"
"""Where a holdout's statements have the question."""
DEFAULT_QUESTIONS = 100
"""Questions that a forecast is for, where nothing else is said."""

StatementInput = str | tuple[str, Sequence[Parameter]]
TrainingMeans = str | Mapping[str, Number] | Callable[[str], Number]
T = TypeVar("T", MechanismReply, Forecast)


class MechanismNames:
    """The names of the mechanisms behind a connection's Python objects; those whose object is gone are to be closed."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.gone: deque[str] = deque()

    def new_name(self, kind: str) -> str:
        return f"_{kind}_{next(self._numbers)}"


class InteractiveMechanism:
    """What both have: a name by which the connection holds it, and the answers so far.

    All of it goes through SQL (DECLARE, ASK, EXPLAIN ASK), here and on a server; figures are carried as exact texts.
    """

    def __init__(
        self, connection: Connection, kind: str, first: str, answers_left: int, **options: Number | None
    ) -> None:
        self._connection, self._kind = connection, kind
        self._transcript: list[MechanismAnswer] = []
        self._answers_left, self._loss = answers_left, NO_CHARGE
        self._receipt: Receipt | None = None
        names = connection._names
        while names.gone:  # not where an object ends: its connection may be at work then
            with suppress(Error, IndexError):
                self._execute_command(f"CLOSE {quote_name(names.gone.popleft(), always=True)}")
        self._name = quote_name(names.new_name(kind), always=True)
        option_texts = [
            f"{name} = {_quote_number(name, value)}" for name, value in options.items() if value is not None
        ]
        with_clause = f" WITH ({', '.join(option_texts)})" if option_texts else ""
        self._execute_command(f"DECLARE {self._name} {kind.upper()}{first}{with_clause}")
        weakref.finalize(self, names.gone.append, self._name[1:-1]).atexit = False

    def _execute_command(self, sql: str, parameters: Sequence[Parameter] = ()) -> Cursor:
        cursor = self._connection.cursor()
        try:
            return cursor.execute(sql, parameters)
        finally:  # Ctrl-C, too, leaves a charge behind
            self._loss = cursor.loss or self._loss

    def _submit_question(
        self, sql: str, parameters: Sequence[Parameter], against: Fraction | None = None, least: Fraction | None = None
    ) -> MechanismAnswer:
        options = "FORMAT JSON" if least is None else f"FORMAT JSON, SENSITIVITY '{least}'"
        suffix = "" if against is None else f"\nAGAINST '{against}'"
        try:
            reply = self._query_json(MechanismReply, f"ASK ({options}) {self._name} ", sql, parameters, suffix)
        except QueryCanceled:  # it goes on
            raise
        except Error:
            self._refresh_remaining()
            raise
        entry = replace(reply.told, question=sql)  # all of it, which a server does not keep
        self._transcript += [*reply.before, entry]
        self._answers_left = reply.left
        return entry

    def _get_forecast(
        self, sql: str | None, parameters: Sequence[Parameter], questions: int, confidence: float
    ) -> Forecast:
        options = f"FORMAT JSON, QUESTIONS {_format_number('questions', questions)}"
        options += f", CONFIDENCE {_format_number('confidence', confidence)}"
        return self._query_json(Forecast, f"EXPLAIN ({options}) ASK {self._name} ", sql or "", parameters)

    def _query_json(self, kind: type[T], prefix: str, sql: str, parameters: Sequence[Parameter], suffix: str = "") -> T:
        """What a command about a statement tells; errors point into that statement."""
        sql = sql.rstrip("; \t\r\n")
        with _relocate_errors(sql, prefix, suffix):
            cursor = self._execute_command(prefix + sql + suffix, parameters)
        self._receipt = next(iter(cursor.receipts), self._receipt)
        ((cell,),) = cursor.fetchall()
        try:
            return from_json(kind, json.loads(cell))
        except ValueError:
            raise OperationalError("the server tells it in another form", hint="Is it of another version of dpsql?",
                                   sqlstate="08P01") from None  # fmt: skip

    def _refresh_remaining(self) -> None:
        """After an error: it may have ended by that."""
        with suppress(Error):
            rows = self._execute_command(f"SHOW {self._kind.upper()}S").fetchall()
            self._answers_left = next(
                (answers_left for name, _, answers_left, *_ in rows if quote_name(name, always=True) == self._name), 0
            )

    @property
    def transcript(self) -> tuple[MechanismAnswer, ...]:
        """What was asked and answered so far; of a holdout `above` is an overfit, and `value` its mean."""
        return tuple(self._transcript)

    @property
    def left(self) -> int:
        """How many answers above the threshold there may still be; with none, it has ended."""
        return self._answers_left

    @property
    def loss(self) -> Charge:
        """What was charged: nothing before the first question, all of it from then on."""
        return self._loss

    @property
    def receipt(self) -> Receipt | None:
        """The entry of the ledger by which it was paid."""
        return self._receipt

    def __repr__(self) -> str:
        return f"{type(self).__name__}(asked={len(self._transcript)}, left={self.left})"


class AboveThreshold(InteractiveMechanism):
    """Which of many numbers lie above a threshold; `connection.above_threshold` makes it.

    Only answers that are above are paid for, all of them up front, when the first question is asked.
    """

    def __init__(
        self,
        connection: Connection,
        threshold: Number,
        queries: Iterable[StatementInput] | None,
        *,
        epsilon: Number | None,
        answers: int,
        sensitivity: Number | None,
    ) -> None:
        statements = [_split_statement(query) for query in queries] if isinstance(queries, Sequence) else []
        self._statements = statements if sensitivity is None else []
        self._queries: Iterator[StatementInput] = iter(queries or ())
        super().__init__(connection, "threshold", f" {_quote_number('threshold', threshold)}", answers, epsilon=epsilon,
                         answers=answers, sensitivity=sensitivity)  # fmt: skip

    def ask(self, sql: str, parameters: Sequence[Parameter] = ()) -> bool:
        """Whether the statement's number, one COUNT or SUM over private rows, is above the threshold, with noise.

        The first question has all of them charged; later ones cost nothing.
        """
        largest = None if self._loss else self._largest_forecast(DEFAULT_QUESTIONS, 0.95)
        return self._submit_question(
            sql, to_literals(parameters), least=None if largest is None else largest.sensitivity
        ).above

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        """The given statements, each asked when its turn has come, with its answer; up to the last one above."""
        while self.left:
            statement = next(self._queries, None)
            if statement is None:
                return
            sql, parameters = _split_statement(statement)
            yield sql, self.ask(sql, parameters)

    def explain(
        self,
        sql: str | None = None,
        parameters: Sequence[Parameter] = (),
        *,
        questions: int = DEFAULT_QUESTIONS,
        confidence: float = 0.95,
    ) -> Forecast:
        """What is charged and how far from the threshold answers can be trusted; free.

        `sql` may be the first question, from which the sensitivity is known where it was not declared.
        """
        forecast = self._get_forecast(sql, to_literals(parameters), questions, confidence)
        return forecast if forecast.paid else self._largest_forecast(questions, confidence, forecast) or forecast

    def _largest_forecast(
        self, questions: int, confidence: float, other_forecast: Forecast | None = None
    ) -> Forecast | None:
        """By the statement of the list that one unit moves furthest, or `other_forecast` if it is moved further."""
        forecasts = [self._get_forecast(*statement, questions, confidence) for statement in self._statements]
        return max(
            [*forecasts, *([] if other_forecast is None else [other_forecast])], key=_sensitivity_of, default=None
        )


@dataclass(frozen=True)
class Estimate:
    """A mean that holds: the training set's own; where the holdout's is far off (`overfit`), that one with noise."""

    value: float
    overfit: bool

    def __float__(self) -> float:
        return self.value


class Holdout(InteractiveMechanism):
    """Means of a training set, checked on private rows again and again; `connection.holdout` makes it."""

    def __init__(
        self,
        connection: Connection,
        train: TrainingMeans,
        holdout: str,
        *,
        n: int,
        threshold: Number,
        sigma: Number | None,
        epsilon: Number | None,
        budget: int,
        sensitivity: Number | None,
    ) -> None:
        if QUESTION_MARKER not in holdout or (isinstance(train, str) and QUESTION_MARKER not in train):
            raise InterfaceError(
                "the statements of a holdout have {q} where the question stands",
                hint='holdout="SELECT SUM({q}) FROM visits", train="SELECT AVG({q}) FROM synthetic_visits".',
            )
        self._train, self._holdout = train, holdout
        super().__init__(connection, "holdout", "", budget, n=n, threshold=threshold, sigma=sigma, epsilon=epsilon,
                         budget=budget, sensitivity=sensitivity)  # fmt: skip

    def ask(self, question: str) -> Estimate:
        """The mean of an expression, such as CASE WHEN … THEN 1 ELSE 0 END, that holds beyond the training set.

        The first question has all of them charged; later ones cost nothing. After `budget` overfits it is refused.
        """
        mean = self._training_mean(question)
        entry = self._submit_question(_fill_question(self._holdout, question), (), mean)
        return Estimate(float(mean if entry.value is None else entry.value), entry.above)

    def explain(
        self, question: str | None = None, *, questions: int = DEFAULT_QUESTIONS, confidence: float = 0.95
    ) -> Forecast:
        """What is charged and how good the answers are; free. `question` as in `AboveThreshold.explain`."""
        return self._get_forecast(
            None if question is None else _fill_question(self._holdout, question), (), questions, confidence
        )

    def _training_mean(self, question: str) -> Fraction:
        """The exact mean of the training set, which is public or released: a query that would be charged is refused."""
        if isinstance(self._train, str):
            value = self._connection.sql(_fill_question(self._train, question), free=True).scalar()
        elif callable(self._train):
            value = self._train(question)
        elif question in self._train:
            value = self._train[question]
        else:
            raise InterfaceError("the training set has no mean for this question", hint="Add it to the mapping.")
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction | str):
            raise InvalidParameter("the training set's mean must be a number", hint="Is it NULL, as without rows?")
        return parse_fraction("the training set's mean", value)


def _fill_question(template: str, question: str) -> str:
    """The analyst's statement with her own question in it: what runs is compiled as if she had written it so."""
    if not isinstance(question, str) or not question.strip():
        raise InterfaceError("a question is an expression in SQL", hint="CASE WHEN insured THEN 1 ELSE 0 END, say.")
    return template.replace(QUESTION_MARKER, f"({question})")


def _split_statement(statement: StatementInput) -> tuple[str, tuple[Parameter, ...]]:
    sql, parameters = (statement, ()) if isinstance(statement, str) else statement
    return sql, to_literals(parameters)


def _quote_number(name: str, value: Number) -> str:
    """A number as SQL has it: exactly, in quotes."""
    return f"'{parse_fraction(name, value)}'"


def _format_number(name: str, value: float) -> str:
    """Among the options of EXPLAIN, which take no quotes."""
    return str(parse_fraction(name, value))


def _sensitivity_of(forecast: Forecast) -> Fraction:
    return forecast.sensitivity or Fraction(0)


def get_ask_forecast(connection: Connection, sql: str) -> Forecast | None:
    """What an ASK would be charged, and how good it would be; free. None for any other statement."""
    if not isinstance(read_command(sql), SubmitQuery):
        return None
    ((cell,),) = connection.cursor().execute(f"EXPLAIN (FORMAT JSON) {sql}", free=True).fetchall()
    return from_json(Forecast, json.loads(cell))


@contextmanager
def _relocate_errors(sql: str, prefix: str, suffix: str) -> Iterator[None]:
    """Errors are about the statement that was given, and not about the command around it."""
    try:
        yield
    except Error as error:
        if error.statement in (None, prefix + sql + suffix):
            start = len(prefix)
            span, error.statement = error.span, sql
            inside = span is not None and start <= span.start < start + len(sql)
            error.span = Span(span.start - start, min(span.end - start, len(sql))) if span and inside else None
        raise
