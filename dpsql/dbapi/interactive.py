"""Questions that depend on each other, for one price: threshold queries, and a holdout that can be used again.

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

from dpsql.dbapi.cursor import Cursor
from dpsql.errors import Error, InterfaceError, InvalidParameter, OperationalError, QueryCanceled
from dpsql.figures import NOTHING, Charge
from dpsql.plain import from_plain
from dpsql.quoting import quoted
from dpsql.session import AskCommand, Forecast, Number, Parameter, Receipt, Reply, Told, exact, literals, read_command
from dpsql.span import Span

if TYPE_CHECKING:
    from dpsql.dbapi.connection import Connection

HOLE = "{q}"
"""Where a holdout's statements have the question."""
QUESTIONS = 100
"""Questions that a forecast is for, where nothing else is said."""

Statement = str | tuple[str, Sequence[Parameter]]
Train = str | Mapping[str, Number] | Callable[[str], Number]
T = TypeVar("T", Reply, Forecast)


class Names:
    """Of the mechanisms that a connection's Python objects stand for; those whose object is gone are to be closed."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.gone: deque[str] = deque()

    def new(self, kind: str) -> str:
        return f"_{kind}_{next(self._numbers)}"


class Mechanism:
    """What both have: a name by which the connection holds it, and what was told so far.

    All of it goes through SQL (DECLARE, ASK, EXPLAIN ASK), here and on a server; figures are carried as exact texts.
    """

    def __init__(self, connection: Connection, kind: str, first: str, left: int, **options: Number | None) -> None:
        self._connection, self._kind = connection, kind
        self._transcript: list[Told] = []
        self._left, self._loss = left, NOTHING
        self._receipt: Receipt | None = None
        names = connection._names
        while names.gone:  # not where an object ends: its connection may be at work then
            with suppress(Error, IndexError):
                self._do(f"CLOSE {quoted(names.gone.popleft(), always=True)}")
        self._name = quoted(names.new(kind), always=True)
        given = [f"{name} = {_text(name, value)}" for name, value in options.items() if value is not None]
        behind = f" WITH ({', '.join(given)})" if given else ""
        self._do(f"DECLARE {self._name} {kind.upper()}{first}{behind}")
        weakref.finalize(self, names.gone.append, self._name[1:-1]).atexit = False

    def _do(self, sql: str, parameters: Sequence[Parameter] = ()) -> Cursor:
        cursor = self._connection.cursor()
        try:
            return cursor.execute(sql, parameters)
        finally:  # Ctrl-C, too, leaves a charge behind
            self._loss = cursor.loss or self._loss

    def _put(
        self, sql: str, parameters: Sequence[Parameter], against: Fraction | None = None, least: Fraction | None = None
    ) -> Told:
        options = "FORMAT JSON" if least is None else f"FORMAT JSON, SENSITIVITY '{least}'"
        behind = "" if against is None else f"\nAGAINST '{against}'"
        try:
            reply = self._told(Reply, f"ASK ({options}) {self._name} ", sql, parameters, behind)
        except QueryCanceled:  # it goes on
            raise
        except Error:
            self._look()
            raise
        told = replace(reply.told, question=sql)  # all of it, which a server does not keep
        self._transcript += [*reply.before, told]
        self._left = reply.left
        return told

    def _forecast(
        self, sql: str | None, parameters: Sequence[Parameter], questions: int, confidence: float
    ) -> Forecast:
        options = f"FORMAT JSON, QUESTIONS {_figure('questions', questions)}"
        options += f", CONFIDENCE {_figure('confidence', confidence)}"
        return self._told(Forecast, f"EXPLAIN ({options}) ASK {self._name} ", sql or "", parameters)

    def _told(self, kind: type[T], before: str, sql: str, parameters: Sequence[Parameter], behind: str = "") -> T:
        """What a command about a statement tells; errors point into that statement."""
        sql = sql.rstrip("; \t\r\n")
        with _pointing(sql, before, behind):
            cursor = self._do(before + sql + behind, parameters)
        self._receipt = next(iter(cursor.receipts), self._receipt)
        ((cell,),) = cursor.fetchall()
        try:
            return from_plain(kind, json.loads(cell))
        except ValueError:
            raise OperationalError("the server tells it in another form", hint="Is it of another version of dpsql?",
                                   sqlstate="08P01") from None  # fmt: skip

    def _look(self) -> None:
        """After an error: it may have ended by that."""
        with suppress(Error):
            rows = self._do(f"SHOW {self._kind.upper()}S").fetchall()
            self._left = next((left for name, _, left, *_ in rows if quoted(name, always=True) == self._name), 0)

    @property
    def transcript(self) -> tuple[Told, ...]:
        """What was asked and answered so far; of a holdout `above` is an overfit, and `value` its mean."""
        return tuple(self._transcript)

    @property
    def left(self) -> int:
        """How many answers above the threshold there may still be; with none, it has ended."""
        return self._left

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


class AboveThreshold(Mechanism):
    """Which of many numbers lie above a threshold; `connection.above_threshold` makes it.

    Only answers that are above are paid for, all of them up front, when the first question is asked.
    """

    def __init__(
        self,
        connection: Connection,
        threshold: Number,
        queries: Iterable[Statement] | None,
        *,
        epsilon: Number | None,
        answers: int,
        sensitivity: Number | None,
    ) -> None:
        known = [_statement(one) for one in queries] if isinstance(queries, Sequence) else []
        self._known = known if sensitivity is None else []
        self._queries: Iterator[Statement] = iter(queries or ())
        super().__init__(connection, "threshold", f" {_text('threshold', threshold)}", answers, epsilon=epsilon,
                         answers=answers, sensitivity=sensitivity)  # fmt: skip

    def ask(self, sql: str, parameters: Sequence[Parameter] = ()) -> bool:
        """Whether the statement's number, one COUNT or SUM over private rows, is above the threshold, with noise.

        The first question has all of them charged; later ones cost nothing.
        """
        least = None if self._loss else self._largest(QUESTIONS, 0.95)
        return self._put(sql, literals(parameters), least=None if least is None else least.sensitivity).above

    def __iter__(self) -> Iterator[tuple[str, bool]]:
        """The given statements, each asked when its turn has come, with its answer; up to the last one above."""
        while self.left:
            statement = next(self._queries, None)
            if statement is None:
                return
            sql, parameters = _statement(statement)
            yield sql, self.ask(sql, parameters)

    def explain(
        self,
        sql: str | None = None,
        parameters: Sequence[Parameter] = (),
        *,
        questions: int = QUESTIONS,
        confidence: float = 0.95,
    ) -> Forecast:
        """What is charged and how far from the threshold answers can be trusted; free.

        `sql` may be the first question, from which the sensitivity is known where it was not declared.
        """
        told = self._forecast(sql, literals(parameters), questions, confidence)
        return told if told.paid else self._largest(questions, confidence, told) or told

    def _largest(self, questions: int, confidence: float, beside: Forecast | None = None) -> Forecast | None:
        """By the statement of the list that one unit moves furthest, if none of them `beside` is moved further."""
        told = [self._forecast(*one, questions, confidence) for one in self._known]
        return max([*told, *([] if beside is None else [beside])], key=_moved, default=None)


@dataclass(frozen=True)
class Estimate:
    """A mean that holds: the training set's own; where the holdout's is far off (`overfit`), that one with noise."""

    value: float
    overfit: bool

    def __float__(self) -> float:
        return self.value


class Holdout(Mechanism):
    """Means of a training set, checked on private rows again and again; `connection.holdout` makes it."""

    def __init__(
        self,
        connection: Connection,
        train: Train,
        holdout: str,
        *,
        n: int,
        threshold: Number,
        sigma: Number | None,
        epsilon: Number | None,
        budget: int,
        sensitivity: Number | None,
    ) -> None:
        if HOLE not in holdout or (isinstance(train, str) and HOLE not in train):
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
        mean = self._mean(question)
        told = self._put(_put(self._holdout, question), (), mean)
        return Estimate(float(mean if told.value is None else told.value), told.above)

    def explain(
        self, question: str | None = None, *, questions: int = QUESTIONS, confidence: float = 0.95
    ) -> Forecast:
        """What is charged and how good the answers are; free. `question` as in `AboveThreshold.explain`."""
        return self._forecast(None if question is None else _put(self._holdout, question), (), questions, confidence)

    def _mean(self, question: str) -> Fraction:
        """Of the training set, exactly. It is public or released: what would be charged is refused."""
        if isinstance(self._train, str):
            value = self._connection.sql(_put(self._train, question), free=True).scalar()
        elif callable(self._train):
            value = self._train(question)
        elif question in self._train:
            value = self._train[question]
        else:
            raise InterfaceError("the training set has no mean for this question", hint="Add it to the mapping.")
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction | str):
            raise InvalidParameter("the training set's mean must be a number", hint="Is it NULL, as without rows?")
        return exact("the training set's mean", value)


def _put(template: str, question: str) -> str:
    """The analyst's statement with her own question in it: what runs is compiled as if she had written it so."""
    if not isinstance(question, str) or not question.strip():
        raise InterfaceError("a question is an expression in SQL", hint="CASE WHEN insured THEN 1 ELSE 0 END, say.")
    return template.replace(HOLE, f"({question})")


def _statement(one: Statement) -> tuple[str, tuple[Parameter, ...]]:
    sql, parameters = (one, ()) if isinstance(one, str) else one
    return sql, literals(parameters)


def _text(name: str, value: Number) -> str:
    """A number as SQL has it: exactly, in quotes."""
    return f"'{exact(name, value)}'"


def _figure(name: str, value: float) -> str:
    """Among the options of EXPLAIN, which take no quotes."""
    return str(exact(name, value))


def _moved(forecast: Forecast) -> Fraction:
    return forecast.sensitivity or Fraction(0)


def forecast_of(connection: Connection, sql: str) -> Forecast | None:
    """Of an ASK: what it would be charged, and how good it would be; free. None where it is another statement."""
    if not isinstance(read_command(sql), AskCommand):
        return None
    ((cell,),) = connection.cursor().execute(f"EXPLAIN (FORMAT JSON) {sql}", free=True).fetchall()
    return from_plain(Forecast, json.loads(cell))


@contextmanager
def _pointing(sql: str, before: str, behind: str) -> Iterator[None]:
    """Errors are about the statement that was given, and not about the command around it."""
    try:
        yield
    except Error as error:
        if error.statement in (None, before + sql + behind):
            start = len(before)
            span, error.statement = error.span, sql
            inside = span is not None and start <= span.start < start + len(sql)
            error.span = Span(span.start - start, min(span.end - start, len(sql))) if span and inside else None
        raise
