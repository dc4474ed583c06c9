"""A connection's interactive mechanisms by name: declared, asked, explained, listed, closed.

Law: they are the connection's alone, and no name of theirs is in the ledger. Declaring and explaining charge nothing
and ask nothing. A transaction neither ends nor undoes them: what was charged and answered stays so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from dpsql.base.cancellation import StatementHandle
from dpsql.compiler.parse.mechanism_commands import (
    AGAINST_EXAMPLE,
    DECLARE_EXAMPLES,
    HOLDOUT,
    THRESHOLD,
    AgainstValue,
    DeclareMechanismCommand,
    SubmitQuery,
)
from dpsql.compiler.parse.parameters import Parameter, bind_parameters, to_literal
from dpsql.compiler.parse.parser import tokenize
from dpsql.errors import Error, InvalidParameter, InvalidSyntax, LimitExceeded, ProgrammingError, Span, relocate_errors
from dpsql.privacy.sparse_vector import (
    SparseVector,
    calibrate_above_threshold,
    calibrate_thresholdout,
    thresholdout_from_sigma,
)
from dpsql.session.mechanisms.forecast import Forecast, MechanismReply, format_fraction, parse_fraction
from dpsql.session.mechanisms.interaction import Interaction, MechanismTerms
from dpsql.session.query import QueryExecutor
from dpsql.session.result import StatementResult, build_command_result, build_json_result, build_rows_result
from dpsql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, TEXT, Type

# The two mechanisms, as an analyst asks for them: what they are made of, and what may not be asked for.
#
#     watch_threshold   the sparse vector technique: which of many numbers lie above a threshold
# watch_holdout     Thresholdout (Dwork et al. 2015): whether means of a training set hold on private rows. A mean is
#                       a sum divided by a public n, so one unit moves it by C/n; the training set's are public or
#                       released.

MAX_ANSWERS = 10_000
"""Above the threshold, of one mechanism: each costs."""


def declare_threshold(
    queries: QueryExecutor,
    threshold: Fraction,
    *,
    epsilon: Fraction | None = None,
    answers: Fraction = Fraction(1),
    sensitivity: Fraction | None = None,
) -> Interaction:
    """Which of many questions lie above a threshold. Nothing is charged until the first one is asked."""
    epsilon = queries.context.settings.statement.epsilon if epsilon is None else epsilon
    require_positive(epsilon=epsilon, sensitivity=sensitivity)
    times = _require_count("answers", answers)

    def spec(value_sensitivity: Fraction, left: Fraction) -> SparseVector:
        return calibrate_above_threshold(threshold, value_sensitivity, epsilon * left, times)

    text = f"above_threshold({format_fraction(threshold)}, epsilon => {format_fraction(epsilon)}, answers => {times}"
    terms = MechanismTerms(THRESHOLD, "above_threshold", times, spec, text, declared=sensitivity, epsilon=epsilon)
    return Interaction(queries, terms)


def declare_holdout(
    queries: QueryExecutor,
    *,
    n: Fraction,
    threshold: Fraction,
    sigma: Fraction | None = None,
    epsilon: Fraction | None = None,
    budget: Fraction = Fraction(10),
    sensitivity: Fraction | None = None,
) -> Interaction:
    """Whether means of a training set hold on private rows. Nothing is charged until the first one is asked."""
    if (sigma is None) == (epsilon is None):
        raise InvalidParameter(
            "a holdout has sigma or epsilon, one of the two",
            hint="With sigma the loss is 2 * budget * sensitivity / (sigma * n); with epsilon, sigma follows from it.",
        )
    require_positive(threshold=threshold, sigma=sigma, epsilon=epsilon, sensitivity=sensitivity)
    overfits, rows = _require_count("budget", budget), _require_count("n", n, 10**15)

    def spec(value_sensitivity: Fraction, left: Fraction) -> SparseVector:
        if sigma is not None:
            return thresholdout_from_sigma(threshold, value_sensitivity, sigma, overfits)
        assert epsilon is not None
        return calibrate_thresholdout(threshold, value_sensitivity, epsilon * left, overfits)

    noise = (
        f"epsilon => {format_fraction(epsilon)}"
        if epsilon is not None
        else f"sigma => {format_fraction(sigma or Fraction(0))}"
    )
    text = f"holdout(n => {rows}, threshold => {format_fraction(threshold)}, {noise}, budget => {overfits}"
    terms = MechanismTerms(HOLDOUT, "the holdout", overfits, spec, text, Fraction(rows), sensitivity, epsilon)
    return Interaction(queries, terms)


def require_positive(**parameters: Fraction | None) -> None:
    for name, value in parameters.items():
        if value is not None and not 0 < value <= 10**18:
            raise InvalidParameter(f"{name} must be above 0" if value <= 0 else f"{name} must be at most 1e18")


def _require_count(name: str, value: Fraction, max_value: int = MAX_ANSWERS) -> int:
    if value.denominator != 1 or not 1 <= value <= max_value:
        raise InvalidParameter(f"{name} must be a whole number from 1 to {max_value}")
    return int(value)


MAX_MECHANISMS = 100
"""Of one connection."""
MAX_NAME_LENGTH = 63
DEFAULT_QUESTIONS, DEFAULT_CONFIDENCE = 100, 0.95
"""Of a forecast, where nothing else is said."""
MAX_QUESTIONS = 10**12
MEAN_LABEL = "the training set's mean"
MAX_MEAN = 10**30
"""Far beyond any, and far within a double."""

ColumnTypes = tuple[tuple[str, Type], ...]

_COLUMNS: Mapping[str, ColumnTypes] = {
    THRESHOLD: (("above", BOOLEAN), ("left", INTEGER)),
    HOLDOUT: (("value", DOUBLE), ("overfit", BOOLEAN), ("left", INTEGER)),
}
_OPTIONS = {
    THRESHOLD: ("threshold", "epsilon", "answers", "sensitivity"),
    HOLDOUT: ("n", "threshold", "sigma", "epsilon", "budget", "sensitivity"),
}
_REQUIRED_OPTIONS = {THRESHOLD: ("threshold",), HOLDOUT: ("n", "threshold")}


class MechanismRegistry:
    """The interactive mechanisms that one connection has declared, by name."""

    def __init__(self) -> None:
        self._mechanisms: dict[str, Interaction] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._mechanisms

    def get_mechanism(self, name: str) -> Interaction:
        if name not in self._mechanisms:
            raise ProgrammingError(
                f'threshold or holdout "{name}" does not exist', hint=DECLARE_EXAMPLES[THRESHOLD], sqlstate="34000"
            )
        return self._mechanisms[name]

    # --- declaring, listing, ending ----------------------------------------------------------------------------------

    def declare_mechanism(self, queries: QueryExecutor, command: DeclareMechanismCommand) -> StatementResult:
        """Free: what is charged is charged with the first question."""
        self._check_declaration(queries, command)
        self._mechanisms[command.name] = _build_mechanism(queries, command)
        return build_command_result(f"DECLARE {command.kind.upper()}")

    def _check_declaration(self, queries: QueryExecutor, command: DeclareMechanismCommand) -> None:
        name, existing = command.name, self._mechanisms.get(command.name)
        if not name or len(name) > MAX_NAME_LENGTH:
            raise ProgrammingError("a name has 1 to 63 characters", span=command.span, sqlstate="42602")
        if existing is not None and existing.account == queries.context.account:
            hint = "CLOSE it, or take another name."
            raise ProgrammingError(f'{existing.terms.kind} "{name}" already exists', hint=hint, span=command.span,
                                   sqlstate="42P03")  # fmt: skip
        if len(self._mechanisms) >= MAX_MECHANISMS:  # those that a change of the role has ended make room
            self._mechanisms = {
                key: mechanism
                for key, mechanism in self._mechanisms.items()
                if mechanism.account == queries.context.account
            }
        if len(self._mechanisms) >= MAX_MECHANISMS:
            raise LimitExceeded(
                f"there are {MAX_MECHANISMS} thresholds and holdouts already", hint="CLOSE those that are done."
            )

    def list_mechanisms(self, queries: QueryExecutor, kind: str) -> StatementResult:
        columns: ColumnTypes = (
            ("name", TEXT),
            ("asked", BIGINT),
            ("left", INTEGER),
            ("charged", TEXT),
            ("ended", TEXT),
        )
        mechanisms = {
            name: mechanism
            for name, mechanism in self._mechanisms.items()
            if mechanism.account == queries.context.account
        }
        rows = [(name, mechanism.questions_asked, mechanism.answers_left, str(mechanism.charged), mechanism.ended)
                for name, mechanism in mechanisms.items() if mechanism.terms.kind == kind]  # fmt: skip
        return build_rows_result(columns, rows, "SHOW")

    def close(self, name: str) -> str:
        """The word that tells of it."""
        closed = self._mechanisms.pop(name)
        closed.end("it was closed")
        return f"CLOSE {closed.terms.kind.upper()}"

    def close_all(self) -> None:
        for name in list(self._mechanisms):
            self.close(name)

    def end_all(self, why: str) -> None:
        """All of them, whose names tell it until they are closed."""
        for mechanism in self._mechanisms.values():
            mechanism.end(why)

    # --- asking ------------------------------------------------------------------------------------------------------

    def columns_of(self, command: SubmitQuery) -> ColumnTypes:
        kind = self.get_mechanism(command.name).terms.kind
        return (("answer", TEXT),) if command.json else _COLUMNS[kind]

    def submit_query(
        self, queries: QueryExecutor, command: SubmitQuery, sql: str, parameters: Sequence[Parameter]
    ) -> StatementResult:
        mechanism, question = self.get_mechanism(command.name), command.question
        if question is None:
            raise InvalidSyntax("ASK takes a question", hint="For example: ASK busy SELECT COUNT(*) FROM visits.")
        bind_parameters(tokenize(sql), parameters)  # as many as there are placeholders
        mechanism.require_account(queries)
        mean = _read_training_mean(mechanism.terms.kind, command, sql, parameters, queries)
        min_sensitivity = _declared_sensitivity(command)
        begun = mechanism.receipt is not None
        with relocate_errors(sql, question.offset):
            reply = mechanism.submit_query(
                queries, question.sql, question.select_parameters(parameters), mean, min_sensitivity
            )
        answer = self._build_answer(command, reply, mean)
        receipts = () if mechanism.receipt is None else (mechanism.receipt,)
        notices = () if begun else mechanism.cap_notices
        return replace(
            answer,
            receipts=receipts,
            notices=() if command.json else (*_pending_notices(reply), *notices),
            loss=answer.loss if begun else mechanism.loss,
        )

    def _build_answer(self, command: SubmitQuery, reply: MechanismReply, mean: Fraction | None) -> StatementResult:
        if command.json:
            return build_json_result("answer", reply, "ASK")
        answer = reply.told
        row: tuple[object, ...] = (answer.above, reply.left)
        if mean is not None:
            row = (float(mean if answer.value is None else answer.value), *row)
        return build_rows_result(self.columns_of(command), [row], "ASK")

    def forecast(
        self, queries: QueryExecutor, command: SubmitQuery, sql: str, parameters: Sequence[Parameter],
        options: Mapping[str, str],
    ) -> Forecast:  # fmt: skip
        """EXPLAIN: free, and asks nothing; without a question, as far as the declaration tells."""
        mechanism, question = self.get_mechanism(command.name), command.question
        mechanism.require_account(queries)
        bind_parameters(tokenize(sql), parameters)
        questions = parse_fraction("questions", options.get("questions", DEFAULT_QUESTIONS))
        confidence = parse_fraction("confidence", options.get("confidence", DEFAULT_CONFIDENCE))
        if questions.denominator != 1 or not 1 <= questions <= MAX_QUESTIONS or not 0 < confidence < 1:
            raise InvalidParameter("questions must be a whole number above 0, and confidence between 0 and 1")
        if question is None:
            return mechanism.forecast(queries, int(questions), float(confidence))
        with relocate_errors(sql, question.offset):
            statement = (
                question.sql,
                tuple(to_literal(parameter) for parameter in question.select_parameters(parameters)),
            )
            return mechanism.forecast(
                queries, int(questions), float(confidence), statement, _declared_sensitivity(command)
            )


def _declared_sensitivity(command: SubmitQuery) -> Fraction | None:
    if command.sensitivity is None:
        return None
    sensitivity = parse_fraction("sensitivity", command.sensitivity)
    require_positive(sensitivity=sensitivity)
    return sensitivity


def _pending_notices(reply: MechanismReply) -> Iterator[str]:
    for answer in reply.before:
        yield f"the question that was left before was answered: {'above' if answer.above else 'below'}"


# --- what is declared ------------------------------------------------------------------------------------------------


def _build_mechanism(queries: QueryExecutor, command: DeclareMechanismCommand) -> Interaction:
    kind = command.kind
    for option in command.options:
        if option.name not in _OPTIONS[kind]:
            raise InvalidParameter(f'a {kind} has no option "{option.name}"',
                                   hint=f"It has {', '.join(_OPTIONS[kind])}.", span=option.span)  # fmt: skip
    values: dict[str, Fraction] = {}
    for option in command.options:
        with _locate_errors(option.span):
            values[option.name] = parse_fraction(option.name, option.value)
    missing = next((name for name in _REQUIRED_OPTIONS[kind] if name not in values), None)
    if missing is not None:
        raise InvalidParameter(f"a {kind} needs {missing}", hint=DECLARE_EXAMPLES[kind], span=command.span)
    with _locate_errors(command.span):
        return declare_threshold(queries, **values) if kind == THRESHOLD else declare_holdout(queries, **values)


@contextmanager
def _locate_errors(span: Span) -> Iterator[None]:
    try:
        yield
    except Error as error:
        error.span = error.span or span
        raise


# --- what a holdout is held against ----------------------------------------------------------------------------------


def _read_training_mean(
    kind: str, command: SubmitQuery, sql: str, parameters: Sequence[Parameter], queries: QueryExecutor
) -> Fraction | None:
    against = command.against
    if kind == THRESHOLD:
        if against is not None:
            raise InvalidSyntax(f'AGAINST is for a holdout, and "{command.name}" is a threshold', span=against.span)
        return None
    if against is None:
        raise InvalidSyntax("a holdout is asked AGAINST the mean of a training set", hint=AGAINST_EXAMPLE)
    with _locate_errors(against.span):
        mean = parse_fraction(MEAN_LABEL, _evaluate_against(against, sql, parameters, queries))
        if abs(mean) > MAX_MEAN:
            raise InvalidParameter(f"{MEAN_LABEL} is too large")
        return mean


def _evaluate_against(
    against: AgainstValue, sql: str, parameters: Sequence[Parameter], queries: QueryExecutor
) -> int | float | str | Decimal:
    """Privacy: it is told exactly, so it is public or released: what would be charged is refused."""
    if against.text is not None:
        return against.text
    if against.query is None:
        assert against.place is not None
        return to_literal(parameters[against.place]).text
    with relocate_errors(sql, against.query.offset), _refuse_charges(queries.context.cancel):
        rows = queries.execute_nested(against.query.sql, against.query.select_parameters(parameters)).rows
    value = rows[0][0] if len(rows) == 1 and len(rows[0]) == 1 else None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidParameter(f"{MEAN_LABEL} must be a number", hint="The query gives one row with one number.")
    return value


@contextmanager
def _refuse_charges(handle: StatementHandle) -> Iterator[None]:
    before, handle.free = handle.free, True
    try:
        yield
    finally:
        handle.free = before
