"""PREDICT(model, …) and ACCURACY(model, …) as plain SQL: coefficients are released, so they are constants.

    PREDICT(m, age, sex)   →   1e0 / (1e0 + EXP(-(b0 + b1 * age + CASE sex WHEN 'f' THEN b2 WHEN 'm' THEN b3 END)))
    ACCURACY(m, back, age)  →  AVG(CASE (PREDICT(m, age) >= 0.5) = back WHEN TRUE THEN 1 WHEN FALSE THEN 0 END)

What is left is SQL like any other: over public, synthetic or released rows it is free, over private rows it stands in
an aggregate, or is one, and is bounded and paid for there. Only models of the account that asks are known here.
"""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import InvalidSyntax, LimitExceeded, TypeMismatch, UnknownColumn, UnknownFunction
from dpsql.schema.domain import Scalar
from dpsql.schema.made_models import LOGISTIC, MadeModel, Term
from dpsql.schema.model import Schema
from dpsql.sql.argument_kinds import ArgumentKind, Arguments
from dpsql.sql.dialect import IMPLIED, WRITTEN, span_of

NAME, RIGHT = "PREDICT", "ACCURACY"
MOST = 64
"""Calls in one statement: each is as long as its model has terms."""


def expand_predictions(tree: exp.Query, schema: Schema) -> exp.Query:
    """The query without PREDICT and ACCURACY; it is changed in place."""
    calls = [call for call in tree.find_all(exp.Anonymous) if call.name.upper() in (NAME, RIGHT)]
    if len(calls) > MOST:
        raise LimitExceeded(f"a statement has at most {MOST} calls of {NAME} and {RIGHT}")
    for call in reversed(calls):  # what stands within comes first
        call.replace(_prediction(call, schema) if call.name.upper() == NAME else _accuracy(call, schema))
    return tree


def _model(call: exp.Anonymous, models: tuple[MadeModel, ...]) -> tuple[MadeModel, list[exp.Expression]]:
    """The model that a call names, and the arguments that follow."""
    name = call.name.upper()
    first, *arguments = call.expressions or [None]
    if not isinstance(first, exp.Column) or first.table:
        raise InvalidSyntax(
            f"{name} takes the name of a model first", hint="For example: PREDICT(m, age, sex).", span=span_of(call)
        )
    model = next((one for one in models if one.name.lower() == first.name.lower()), None)
    if model is None:
        yours = f" Yours: {', '.join(one.name for one in models)}." if models else ""
        raise UnknownFunction(
            f'model "{first.name}" does not exist', hint=f"CREATE MODEL makes one.{yours}", span=span_of(first)
        )
    return model, arguments


def _prediction(call: exp.Anonymous, schema: Schema) -> exp.Expression:
    model, arguments = _model(call, schema.models)
    features = model.features
    arguments = arguments or _columns(features, call, model, model.written[1:], schema)
    if len(arguments) != len(features):
        raise InvalidSyntax(
            f'model "{model.name}" has {len(features)} features, not {len(arguments)}',
            hint=f"PREDICT({model.name}, {', '.join(features)}), or PREDICT({model.name}) for columns of these names.",
            span=span_of(call),
        )
    _check_kinds(model, features, arguments, call, schema)
    found = _predicted(model, arguments)
    found.meta[WRITTEN] = NAME.lower()  # what its column is called
    return exp.Paren(this=found)


def _accuracy(call: exp.Anonymous, schema: Schema) -> exp.Expression:
    """The share of rows whose class is the likelier one; rows without a label or a prediction are left out."""
    model, arguments = _model(call, schema.models)
    names = (model.label, *model.features)
    if model.family != LOGISTIC:
        off = f"{model.label} - PREDICT({model.name})"
        raise TypeMismatch(
            f'model "{model.name}" is linear, and {RIGHT} is of models that tell two classes apart',
            hint=f"Its squared error: AVG(POWER(CLIP({off}, -100, 100), 2)), with bounds that fit.",
            span=span_of(call),
        )
    arguments = arguments or _columns(names, call, model, model.written, schema)
    if len(arguments) != len(names):
        raise InvalidSyntax(
            f'{RIGHT} of model "{model.name}" takes the label and {len(model.features)} features',
            hint=f"{RIGHT}({model.name}, {', '.join(names)}), or {RIGHT}({model.name}) for columns of these names.",
            span=span_of(call),
        )
    _check_kinds(model, names, arguments, call, schema)
    label, *features = (argument.copy() for argument in arguments)
    likelier = exp.GTE(this=exp.Paren(this=_predicted(model, features)), expression=exp.Literal.number("0.5"))
    none, one = model.classes
    truth = _case(label, [(one, exp.true()), (none, exp.false())])
    right = exp.EQ(this=exp.Paren(this=likelier), expression=exp.Paren(this=truth))
    counted = _case(exp.Paren(this=right), [(True, exp.Literal.number("1")), (False, exp.Literal.number("0"))])
    mean = exp.Avg(this=counted)
    mean.meta[WRITTEN] = RIGHT.lower()
    return mean


def _columns(
    names: tuple[str, ...], call: exp.Anonymous, model: MadeModel, written: tuple[str, ...], schema: Schema
) -> list[exp.Expression]:
    """Columns that nobody wrote: one that is not there is told at the call, with what the model was made of."""
    better = _written(model, written or names, call)
    hint = f"Write its arguments out: {better}."
    plain = {text.strip('"').lower() for text in written}
    found: list[exp.Expression] = []
    span = span_of(call)
    for name in names:
        if Arguments(schema).lacks(name, call):
            raise UnknownColumn(
                f'{call.name.upper()}({model.name}) takes a column "{name}", which is not there',
                hint=f"Write its arguments out: {better}.",
                span=span,
            )
        column = exp.column(name, quoted=True)
        if span is not None:
            column.this.meta.update(start=span.start, end=span.end - 1)
        column.meta[IMPLIED] = hint if written and name.lower() not in plain else ""
        found.append(column)
    return found


def _written(model: MadeModel, names: tuple[str, ...], call: exp.Anonymous) -> str:
    return f"{call.name.upper()}({', '.join((model.name, *names))})"


def _check_kinds(
    model: MadeModel, names: tuple[str, ...], arguments: list[exp.Expression], call: exp.Anonymous, schema: Schema
) -> None:
    """That each argument may be what its feature was; engines would speak of the arithmetic behind it."""
    for place, (name, argument) in enumerate(zip(names, arguments, strict=True), 1):
        asked, given = _kind(model, name), Arguments(schema).kind(argument)
        if given is not None and given != asked:
            raise TypeMismatch(
                f"argument {place} of {_written(model, names, call)} must be {asked}",
                detail=f"It is {given}.",
                span=span_of(argument) or span_of(call),
            )


def argument_kind(call: exp.Anonymous, place: int, models: tuple[MadeModel, ...]) -> ArgumentKind | None:
    """What a model takes at a place of PREDICT or ACCURACY, where its name is the first; None for other calls."""
    first = call.expressions[0] if call.name.upper() in (NAME, RIGHT) else None
    model = next((one for one in models if first is not None and one.name.lower() == first.name.lower()), None)
    if model is None:
        return None
    names = model.features if call.name.upper() == NAME else (model.label, *model.features)
    return _kind(model, names[place - 1]) if 0 < place <= len(names) else None


def _kind(model: MadeModel, name: str) -> ArgumentKind:
    """Of a feature, or of the label."""
    terms = model.of(name)
    if terms and terms[0].value is None:
        return "true or false" if terms[0].truth else "a number"
    if not terms and not model.classes:
        return "a number"
    value = terms[0].value if terms else model.classes[1]
    return "true or false" if isinstance(value, bool) else "text" if isinstance(value, str) else "a number"


def _predicted(model: MadeModel, arguments: list[exp.Expression]) -> exp.Expression:
    total: exp.Expression = _number(model.intercept.coefficient)
    for feature, argument in zip(model.features, arguments, strict=True):
        total = exp.Add(this=total, expression=_share(model.of(feature), argument.copy()))
    if model.family != LOGISTIC:
        return total
    odds = exp.Exp(this=exp.Neg(this=exp.Paren(this=total)))
    below = exp.Paren(this=exp.Add(this=_number(1.0), expression=odds))
    return exp.Div(this=_number(1.0), expression=below)


def _share(terms: tuple[Term, ...], argument: exp.Expression) -> exp.Expression:
    first = terms[0]
    if first.value is None and len(terms) == 1 and not first.truth:
        return exp.Mul(this=_number(first.coefficient), expression=exp.Paren(this=argument))
    values = [(True, first.coefficient), (False, 0.0)] if first.truth else [(t.value, t.coefficient) for t in terms]
    # The argument stands once: what stands in it may be another prediction.
    return exp.Paren(this=_case(argument, [(value, _number(share)) for value, share in values]))


def _case(argument: exp.Expression, values: list[tuple[Scalar | None, exp.Expression]]) -> exp.Expression:
    """NULL where the argument is none of these."""
    return exp.Case(this=argument, ifs=[exp.If(this=_literal(value), true=result) for value, result in values])


def _literal(value: Scalar | None) -> exp.Expression:
    match value:
        case bool():
            return exp.Boolean(this=value)
        case str():
            return exp.Literal.string(value)
        case _:
            text = str(value)
            literal = exp.Literal.number(text.removeprefix("-"))
            return exp.Neg(this=literal) if text.startswith("-") else literal


def _number(value: float) -> exp.Expression:
    """A DOUBLE, exactly."""
    literal = exp.Literal.number(f"{abs(value):.17e}")
    return exp.Neg(this=literal) if value < 0 else literal
