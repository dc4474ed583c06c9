"""PREDICT(model, …) and ACCURACY(model, …) as plain SQL: coefficients are released, so they are constants.

    PREDICT(m, age, sex)   →   1e0 / (1e0 + EXP(-(b0 + b1 * age + CASE sex WHEN 'f' THEN b2 WHEN 'm' THEN b3 END)))
    ACCURACY(m, back, age)  →  AVG(CASE (PREDICT(m, age) >= 0.5) = back WHEN TRUE THEN 1 WHEN FALSE THEN 0 END)

What is left is SQL like any other: over public, synthetic or released rows it is free, over private rows it stands in
an aggregate, or is one, and is bounded and paid for there. Only models of the account that asks are known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from dpsql.compiler.bind.sources import lookup_table
from dpsql.compiler.parse.dialect import IMPLIED_COLUMN_KEY, WRITTEN_NAME_KEY, find_calls, span_of
from dpsql.errors import InvalidSyntax, LimitExceeded, TypeMismatch, UnknownColumn, UnknownFunction
from dpsql.schema.model import CREATED_SCHEMA, LOGISTIC, MadeModel, Scalar, Schema, Term
from dpsql.types import Kind, Type, parse_type

PREDICT, ACCURACY = "PREDICT", "ACCURACY"
MODEL_FUNCTIONS = (PREDICT.lower(), ACCURACY.lower())
MAX_CALLS = 64
"""Calls in one statement: each is as long as its model has terms."""


def expand_predictions(tree: exp.Query, schema: Schema) -> exp.Query:
    """The query without PREDICT and ACCURACY; it is changed in place."""
    calls = find_calls(tree, *MODEL_FUNCTIONS)
    if len(calls) > MAX_CALLS:
        raise LimitExceeded(f"a statement has at most {MAX_CALLS} calls of {PREDICT} and {ACCURACY}")
    for call in reversed(calls):  # what stands within comes first
        call.replace(_expand_predict(call, schema) if call.name.upper() == PREDICT else _expand_accuracy(call, schema))
    return tree


def _find_model(call: exp.Anonymous, models: tuple[MadeModel, ...]) -> tuple[MadeModel, list[exp.Expression]]:
    """The model that a call names, and the arguments that follow."""
    name = call.name.upper()
    first, *arguments = call.expressions or [None]
    if not isinstance(first, exp.Column) or first.table:
        raise InvalidSyntax(
            f"{name} takes the name of a model first", hint="For example: PREDICT(m, age, sex).", span=span_of(call)
        )
    model = next((candidate for candidate in models if candidate.name.lower() == first.name.lower()), None)
    if model is None:
        yours = f" Yours: {', '.join(candidate.name for candidate in models)}." if models else ""
        raise UnknownFunction(
            f'model "{first.name}" does not exist', hint=f"CREATE MODEL makes one.{yours}", span=span_of(first)
        )
    return model, arguments


def _expand_predict(call: exp.Anonymous, schema: Schema) -> exp.Expression:
    model, arguments = _find_model(call, schema.models)
    features = model.features
    arguments = arguments or _implied_columns(features, call, model, model.written[1:], schema)
    if len(arguments) != len(features):
        raise InvalidSyntax(
            f'model "{model.name}" has {len(features)} features, not {len(arguments)}',
            hint=f"PREDICT({model.name}, {', '.join(features)}), or PREDICT({model.name}) for columns of these names.",
            span=span_of(call),
        )
    _check_argument_kinds(model, features, arguments, call, schema)
    formula = _prediction_formula(model, arguments)
    formula.meta[WRITTEN_NAME_KEY] = PREDICT.lower()  # what its column is called
    return exp.Paren(this=formula)


def _expand_accuracy(call: exp.Anonymous, schema: Schema) -> exp.Expression:
    """The share of rows whose class is the likelier one; rows without a label or a prediction are left out."""
    model, arguments = _find_model(call, schema.models)
    names = (model.label, *model.features)
    if model.family != LOGISTIC:
        off = f"{model.label} - PREDICT({model.name})"
        raise TypeMismatch(
            f'model "{model.name}" is linear, and {ACCURACY} is of models that tell two classes apart',
            hint=f"Its squared error: AVG(POWER(CLIP({off}, -100, 100), 2)), with bounds that fit.",
            span=span_of(call),
        )
    arguments = arguments or _implied_columns(names, call, model, model.written, schema)
    if len(arguments) != len(names):
        raise InvalidSyntax(
            f'{ACCURACY} of model "{model.name}" takes the label and {len(model.features)} features',
            hint=f"{ACCURACY}({model.name}, {', '.join(names)}), "
            f"or {ACCURACY}({model.name}) for columns of these names.",
            span=span_of(call),
        )
    _check_argument_kinds(model, names, arguments, call, schema)
    label, *features = (argument.copy() for argument in arguments)
    likelier = exp.GTE(this=exp.Paren(this=_prediction_formula(model, features)), expression=exp.Literal.number("0.5"))
    negative, positive = model.classes
    truth = _case_expression(label, [(positive, exp.true()), (negative, exp.false())])
    right = exp.EQ(this=exp.Paren(this=likelier), expression=exp.Paren(this=truth))
    counted = _case_expression(
        exp.Paren(this=right), [(True, exp.Literal.number("1")), (False, exp.Literal.number("0"))]
    )
    mean = exp.Avg(this=counted)
    mean.meta[WRITTEN_NAME_KEY] = ACCURACY.lower()
    return mean


def _implied_columns(
    names: tuple[str, ...], call: exp.Anonymous, model: MadeModel, written: tuple[str, ...], schema: Schema
) -> list[exp.Expression]:
    """Columns that nobody wrote: one that is not there is told at the call, with what the model was made of."""
    better = _call_text(model, written or names, call)
    hint = f"Write its arguments out: {better}."
    plain = {text.strip('"').lower() for text in written}
    columns: list[exp.Expression] = []
    span = span_of(call)
    for name in names:
        if ArgumentKindResolver(schema).is_column_missing(name, call):
            raise UnknownColumn(
                f'{call.name.upper()}({model.name}) takes a column "{name}", which is not there',
                hint=f"Write its arguments out: {better}.",
                span=span,
            )
        column = exp.column(name, quoted=True)
        if span is not None:
            column.this.meta.update(start=span.start, end=span.end - 1)
        column.meta[IMPLIED_COLUMN_KEY] = hint if written and name.lower() not in plain else ""
        columns.append(column)
    return columns


def _call_text(model: MadeModel, names: tuple[str, ...], call: exp.Anonymous) -> str:
    return f"{call.name.upper()}({', '.join((model.name, *names))})"


def _check_argument_kinds(
    model: MadeModel, names: tuple[str, ...], arguments: list[exp.Expression], call: exp.Anonymous, schema: Schema
) -> None:
    """That each argument may be what its feature was; engines would speak of the arithmetic behind it."""
    for position, (name, argument) in enumerate(zip(names, arguments, strict=True), 1):
        expected, actual = _feature_kind(model, name), ArgumentKindResolver(schema).resolve_kind(argument)
        if actual is not None and actual != expected:
            raise TypeMismatch(
                f"argument {position} of {_call_text(model, names, call)} must be {expected}",
                detail=f"It is {actual}.",
                span=span_of(argument) or span_of(call),
            )


def model_argument_kind(call: exp.Anonymous, position: int, models: tuple[MadeModel, ...]) -> ArgumentKind | None:
    """What a model takes at a place of PREDICT or ACCURACY, where its name is the first; None for other calls."""
    first = call.expressions[0] if call.name.upper() in (PREDICT, ACCURACY) else None
    model = next(
        (candidate for candidate in models if first is not None and candidate.name.lower() == first.name.lower()), None
    )
    if model is None:
        return None
    names = model.features if call.name.upper() == PREDICT else (model.label, *model.features)
    return _feature_kind(model, names[position - 1]) if 0 < position <= len(names) else None


def _feature_kind(model: MadeModel, name: str) -> ArgumentKind:
    """Of a feature, or of the label."""
    terms = model.terms_of(name)
    if terms and terms[0].value is None:
        return "true or false" if terms[0].truth else "a number"
    if not terms and not model.classes:
        return "a number"
    value = terms[0].value if terms else model.classes[1]
    return "true or false" if isinstance(value, bool) else "text" if isinstance(value, str) else "a number"


def _prediction_formula(model: MadeModel, arguments: list[exp.Expression]) -> exp.Expression:
    total: exp.Expression = _double_literal(model.intercept.coefficient)
    for feature, argument in zip(model.features, arguments, strict=True):
        total = exp.Add(this=total, expression=_feature_term(model.terms_of(feature), argument.copy()))
    if model.family != LOGISTIC:
        return total
    odds = exp.Exp(this=exp.Neg(this=exp.Paren(this=total)))
    below = exp.Paren(this=exp.Add(this=_double_literal(1.0), expression=odds))
    return exp.Div(this=_double_literal(1.0), expression=below)


def _feature_term(terms: tuple[Term, ...], argument: exp.Expression) -> exp.Expression:
    first = terms[0]
    if first.value is None and len(terms) == 1 and not first.truth:
        return exp.Mul(this=_double_literal(first.coefficient), expression=exp.Paren(this=argument))
    values = [(True, first.coefficient), (False, 0.0)] if first.truth else [(t.value, t.coefficient) for t in terms]
    # The argument stands once: what stands in it may be another prediction.
    return exp.Paren(this=_case_expression(argument, [(value, _double_literal(share)) for value, share in values]))


def _case_expression(argument: exp.Expression, values: list[tuple[Scalar | None, exp.Expression]]) -> exp.Expression:
    """NULL where the argument is none of these."""
    return exp.Case(this=argument, ifs=[exp.If(this=_scalar_literal(value), true=result) for value, result in values])


def _scalar_literal(value: Scalar | None) -> exp.Expression:
    match value:
        case bool():
            return exp.Boolean(this=value)
        case str():
            return exp.Literal.string(value)
        case _:
            text = str(value)
            literal = exp.Literal.number(text.removeprefix("-"))
            return exp.Neg(this=literal) if text.startswith("-") else literal


def _double_literal(value: float) -> exp.Expression:
    """A DOUBLE, exactly."""
    literal = exp.Literal.number(f"{abs(value):.17e}")
    return exp.Neg(this=literal) if value < 0 else literal


# Of which kind an argument is, as far as it can be told before anything is bound: what PREDICT is given.
#
# Nothing is refused for what is not known: None is any kind.

ArgumentKind = Literal["a number", "text", "true or false", "a time"]
ColumnDefinition = exp.Expr | ArgumentKind | None
"""An expression of a query within is looked into when it is asked for."""

MAX_LOOKUPS = 100
"""Columns that are looked up for one argument: those of columns of columns are many."""

_NUMERIC_NODES = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs, exp.Round, exp.Count, exp.Length, exp.Extract)
_TEXT_NODES = (exp.Upper, exp.Lower, exp.Trim, exp.Concat, exp.Substring)
_BOOLEAN_NODES = (exp.Predicate, exp.Not, exp.And, exp.Or, exp.Boolean)
_TRANSPARENT_NODES = (exp.Paren, exp.Coalesce, exp.Max, exp.Min)
_TIME_ARITHMETIC_NODES = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg)
_KIND_BY_TYPE: Mapping[Kind, ArgumentKind] = {Kind.TEXT: "text", Kind.BOOLEAN: "true or false"}


def kind_of_type(type_: Type | None) -> ArgumentKind | None:
    if type_ is None:
        return None
    if type_.is_number:
        return "a number"
    return "a time" if type_.is_time else _KIND_BY_TYPE.get(type_.kind)


@dataclass(frozen=True)
class SourceColumns:
    """The columns of a source by name. None: it may have any."""

    name: str
    columns: Mapping[str, ColumnDefinition] | None


@dataclass
class ArgumentKindResolver:
    """Finds out whether one argument is a number, a text, a time or a truth value."""

    schema: Schema
    steps: int = MAX_LOOKUPS

    def resolve_kind(self, node: ColumnDefinition) -> ArgumentKind | None:
        match node:
            case None | str():
                return node
            case exp.Literal():
                return "text" if node.is_string else "a number"
            case exp.Cast() | exp.TryCast():
                return kind_of_type(parse_type(node.to.sql("duckdb")))
            case exp.Column():
                return self._resolve_column(node)
            case exp.Case():
                branches = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
                return self._resolve_first_kind([branch for branch in branches if branch is not None])
            case _ if node.meta.get(WRITTEN_NAME_KEY) in ("predict", "accuracy"):  # written out already, and long
                return "a number"
            case _ if isinstance(node, _TRANSPARENT_NODES):
                return self._resolve_first_kind([node.this, *node.expressions])
            case _ if isinstance(node, _TIME_ARITHMETIC_NODES) and self._may_be_time(node):
                return None
            case _ if isinstance(node, _NUMERIC_NODES):
                return "a number"
            case _ if isinstance(node, _TEXT_NODES):
                return "text"
            case _ if isinstance(node, _BOOLEAN_NODES):
                return "true or false"
        return None

    def is_column_missing(self, name: str, call: exp.Expr) -> bool:
        """Whether no source around has such a column, for certain, and no output beside the call is called so."""
        output_names = (
            item.alias_or_name.lower() for select in _enclosing_selects(call) for item in select.expressions
        )
        if name.lower() in output_names:
            return False
        sources = [source for select in _enclosing_selects(call) for source in self._sources_of(select)]
        return all(source.columns is not None and name.lower() not in source.columns for source in sources)

    def _resolve_first_kind(self, nodes: Sequence[exp.Expr]) -> ArgumentKind | None:
        return next((kind for kind in map(self.resolve_kind, nodes) if kind is not None), None)

    def _may_be_time(self, node: exp.Expr) -> bool:
        """A time less an interval is a time, and two times are neither: only of numbers it is known."""
        sides = [side for side in (node.this, node.args.get("expression")) if side is not None]
        return any(self.resolve_kind(side) != "a number" for side in sides)

    def _resolve_column(self, column: exp.Column) -> ArgumentKind | None:
        """In the nearest query that has it; None where a source before might have it too."""
        self.steps -= 1
        if self.steps < 0:
            return None
        name, table = column.name.lower(), column.table.lower()
        for select in _enclosing_selects(column):
            for source in self._sources_of(select):
                if table and source.name != table:
                    continue
                if source.columns is None:
                    return None
                if name in source.columns:
                    return self.resolve_kind(source.columns[name])
        return None

    def _sources_of(self, select: exp.Select) -> Iterator[SourceColumns]:
        start = select.args.get("from_")
        nodes = [] if start is None else [start.this]
        nodes += [join.this for join in select.args.get("joins") or ()]
        nodes += select.args.get("laterals") or ()
        return map(self._describe_source, nodes)

    def _describe_source(self, node: exp.Expr) -> SourceColumns:
        name, alias = node.alias_or_name.lower(), node.args.get("alias")
        if (alias is not None and alias.args.get("columns")) or node.args.get("joins"):
            return SourceColumns(name, None)
        if isinstance(node, exp.Subquery):
            return SourceColumns(name, _output_definitions(node.this))
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            return SourceColumns(name, None)
        part = None if node.db else _find_cte(node)
        if part is not None:
            return SourceColumns(
                name, None if part.args["alias"].args.get("columns") else _output_definitions(part.this)
            )
        return SourceColumns(name, self._declared_columns(node))

    def _declared_columns(self, node: exp.Table) -> Mapping[str, ColumnDefinition] | None:
        table = lookup_table(self.schema, node) if node.db.lower() in ("", "public", "main") else None
        view = self.schema.view(node.name) if table is None and node.db != CREATED_SCHEMA else None
        columns = table.columns if table is not None else () if view is None else view.columns
        return {column.name.lower(): kind_of_type(column.type) for column in columns} or None


def _output_definitions(query: exp.Expr) -> Mapping[str, ColumnDefinition] | None:
    if not isinstance(query, exp.Select) or query.is_star:
        return None
    return {item.alias_or_name.lower(): item.unalias() for item in query.expressions}


def _enclosing_selects(node: exp.Expr) -> Iterator[exp.Select]:
    """The queries that a node stands in, the nearest first."""
    select = node.find_ancestor(exp.Select)
    while select is not None:
        yield select
        select = select.find_ancestor(exp.Select)


def _find_cte(table: exp.Table) -> exp.CTE | None:
    """What a name means by a WITH around it, whose parts know those before them; a recursive one also itself."""
    parents, parent = list[exp.Expr](), table.parent
    while parent is not None:
        parents.append(parent)
        parent = parent.parent
    within = {id(parent) for parent in parents}
    for query in parents:
        with_ = query.args.get("with_")
        if not isinstance(with_, exp.With):
            continue
        for part in with_.expressions:
            if id(part) in within and not with_.args.get("recursive"):
                break
            if part.alias.lower() == table.name.lower():
                cte: exp.CTE = part
                return cte
    return None
