"""Questions that depend on each other, for one price: threshold queries, and a holdout that can be used again.

Both are made by a connection, free until their first question, and end with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from dpsql.errors import InterfaceError, InvalidParameter, NotSupportedError
from dpsql.figures import Charge
from dpsql.session import (
    Forecast,
    Interaction,
    Number,
    Parameter,
    Receipt,
    Session,
    Told,
    exact,
    literals,
    watch_holdout,
    watch_threshold,
)

if TYPE_CHECKING:
    from dpsql.dbapi.asking import Asking
    from dpsql.dbapi.connection import Connection

HOLE = "{q}"
"""Where a holdout's statements have the question."""
QUESTIONS = 100
"""Questions that a forecast is for, where nothing else is said."""

Statement = str | tuple[str, Sequence[Parameter]]
Train = str | Mapping[str, Number] | Callable[[str], Number]


def require_here(session: Asking) -> Session:
    """A mechanism is one process's, and holds noise between questions: a server's would be lost with each login."""
    if not isinstance(session, Session):
        raise NotSupportedError(
            "above_threshold and holdout are not answered by a server yet",
            detail="Nothing was charged.",
            hint="Open the schema where the data is, or ask COUNT and SUM with error bars.",
        )
    return session


class AboveThreshold:
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
        self._connection = connection
        self._queries: Iterator[Statement] = iter(queries or ())
        self._state: Interaction = connection._interact(
            lambda asker: watch_threshold(
                asker,
                exact("threshold", threshold),
                epsilon=_exact("epsilon", epsilon),
                answers=answers,
                sensitivity=_exact("sensitivity", sensitivity),
                foreseen=known,
            )
        )

    def ask(self, sql: str, parameters: Sequence[Parameter] = ()) -> bool:
        """Whether the statement's number, one COUNT or SUM over private rows, is above the threshold, with noise.

        The first question has all of them charged; later ones cost nothing.
        """
        return self._connection._interact(lambda asker: self._state.ask(asker, sql, parameters)).above

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
        first = None if sql is None else (sql, literals(parameters))
        return self._connection._interact(lambda asker: self._state.forecast(asker, questions, confidence, first))

    @property
    def transcript(self) -> tuple[Told, ...]:
        """What was asked and answered so far."""
        return tuple(self._state.transcript)

    @property
    def left(self) -> int:
        """How many answers above the threshold there may still be; with none, it has ended."""
        return self._state.left

    @property
    def loss(self) -> Charge:
        """What was charged: nothing before the first question, all of it from then on."""
        return self._state.charged

    @property
    def receipt(self) -> Receipt | None:
        """The entry of the ledger by which it was paid."""
        return self._state.receipt

    def __repr__(self) -> str:
        return f"AboveThreshold(asked={len(self._state.transcript)}, left={self.left})"


@dataclass(frozen=True)
class Estimate:
    """A mean that holds: the training set's own; where the holdout's is far off (`overfit`), that one with noise."""

    value: float
    overfit: bool

    def __float__(self) -> float:
        return self.value


class Holdout:
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
        self._connection = connection
        self._train, self._holdout = train, holdout
        self._state: Interaction = connection._interact(
            lambda asker: watch_holdout(
                asker,
                n=n,
                threshold=exact("threshold", threshold),
                sigma=_exact("sigma", sigma),
                epsilon=_exact("epsilon", epsilon),
                budget=budget,
                sensitivity=_exact("sensitivity", sensitivity),
            )
        )

    def ask(self, question: str) -> Estimate:
        """The mean of an expression, such as CASE WHEN … THEN 1 ELSE 0 END, that holds beyond the training set.

        The first question has all of them charged; later ones cost nothing. After `budget` overfits it is refused.
        """
        mean = self._mean(question)
        sql = _put(self._holdout, question)
        told = self._connection._interact(lambda asker: self._state.ask(asker, sql, (), mean))
        return Estimate(float(mean if told.value is None else told.value), told.above)

    def explain(
        self, question: str | None = None, *, questions: int = QUESTIONS, confidence: float = 0.95
    ) -> Forecast:
        """What is charged and how good the answers are; free. `question` as in `AboveThreshold.explain`."""
        first = None if question is None else (_put(self._holdout, question), ())
        return self._connection._interact(lambda asker: self._state.forecast(asker, questions, confidence, first))

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

    @property
    def transcript(self) -> tuple[Told, ...]:
        """What was asked of the holdout and answered so far; `above` is an overfit, `value` the holdout's mean."""
        return tuple(self._state.transcript)

    @property
    def left(self) -> int:
        """How many overfits may still be found; with none, it has ended."""
        return self._state.left

    @property
    def loss(self) -> Charge:
        """What was charged: nothing before the first question, all of it from then on."""
        return self._state.charged

    @property
    def receipt(self) -> Receipt | None:
        """The entry of the ledger by which it was paid."""
        return self._state.receipt

    def __repr__(self) -> str:
        return f"Holdout(asked={len(self._state.transcript)}, left={self.left})"


def _put(template: str, question: str) -> str:
    """The analyst's statement with her own question in it: what runs is compiled as if she had written it so."""
    if not isinstance(question, str) or not question.strip():
        raise InterfaceError("a question is an expression in SQL", hint="CASE WHEN insured THEN 1 ELSE 0 END, say.")
    return template.replace(HOLE, f"({question})")


def _statement(one: Statement) -> tuple[str, tuple[Parameter, ...]]:
    sql, parameters = (one, ()) if isinstance(one, str) else one
    return sql, literals(parameters)


def _exact(name: str, value: Number | None) -> Fraction | None:
    return None if value is None else exact(name, value)

