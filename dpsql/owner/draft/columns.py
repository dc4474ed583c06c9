"""One column of a draft: its entry in YAML, and what the owner is asked about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from dpsql.owner.draft.relationships import is_id_column, split_words
from dpsql.owner.draft.suggestions import ColumnProposal, usual_range
from dpsql.owner.introspect.tables import IntrospectedColumn
from dpsql.owner.yaml_text import format_description, format_number, format_scalar, quote_text
from dpsql.schema.keys import MAX_TEXT
from dpsql.schema.literals import fits_type, read_number
from dpsql.types import Kind, Type

# Bounds and values that CHECK constraints state. What is not plainly a range or a list of one column is not read.

_NAME = r'(?P<name>"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)'
_NUMBER = r"'?(?P<number>[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)'?"
_COMPARISON = re.compile(rf"{_NAME} *(?P<sign><=|>=|<|>) *{_NUMBER}")
_BETWEEN = re.compile(rf"{_NAME} BETWEEN {_NUMBER} AND {_NUMBER.replace('number', 'other')}", re.IGNORECASE)
_TEXT = r"'(?:[^']|'')*'"
_LIST = re.compile(rf"{_NAME} *(?:IN|= *ANY) *(?:ARRAY)? *(?P<list>{_TEXT}(?: *, *{_TEXT})*)", re.IGNORECASE)
_CAST = re.compile(r"::[a-z][a-z ]*(\(\d+(,\d+)?\))?(\[\])?", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnConstraints:
    """What constraints say of a column; bounds that they leave open are None."""

    low: Fraction | None = None
    high: Fraction | None = None
    values: tuple[str, ...] = ()


def read_constraints(checks: tuple[str, ...], column: str) -> ColumnConstraints:
    """
    >>> read_constraints(("(((age >= 0) AND (age <= 120)))",), "age")
    ColumnConstraints(low=Fraction(0, 1), high=Fraction(120, 1), values=())
    >>> read_constraints(("((sex = ANY (ARRAY['f'::text, 'm'::text])))",), "sex").values
    ('f', 'm')
    """
    result = ColumnConstraints()
    for check in checks:
        for part in _read_check(check, column):
            result = ColumnConstraints(
                part.low if result.low is None else result.low,
                part.high if result.high is None else result.high,
                part.values or result.values,
            )
    return result


def _read_check(check: str, column: str) -> list[ColumnConstraints]:
    value_list = _LIST.fullmatch(_strip_casts(check, quotes=True))
    if value_list is not None:
        return (
            [ColumnConstraints(values=_split_items(value_list["list"]))]
            if _is_same_name(value_list["name"], column)
            else []
        )
    text = _strip_casts(check, quotes=False)
    between = _BETWEEN.fullmatch(text)
    if between is not None:
        low, high = read_number(between["number"]), read_number(between["other"])
        return [ColumnConstraints(low, high)] if _is_same_name(between["name"], column) else []
    matches = [_COMPARISON.fullmatch(part.strip()) for part in re.split(r" AND ", text, flags=re.IGNORECASE)]
    if any(match is None for match in matches):  # one part that is not read could be an OR of all
        return []
    return [_read_comparison(match) for match in matches if match is not None and _is_same_name(match["name"], column)]


def _strip_casts(check: str, quotes: bool) -> str:
    """Without casts and parentheses; those inside of quotes would be lost too, so a check with such is not read."""
    text = _CAST.sub("", check.strip())
    if quotes and any(c in "()[]" for literal in re.findall(_TEXT, text) for c in literal):
        return ""
    return " ".join(re.sub(r"[()\[\]]", " ", text).split())


def _read_comparison(match: re.Match[str]) -> ColumnConstraints:
    bound = read_number(match["number"])
    return ColumnConstraints(low=bound) if match["sign"].startswith(">") else ColumnConstraints(high=bound)


def _split_items(text: str) -> tuple[str, ...]:
    return tuple(item[1:-1].replace("''", "'") for item in re.findall(_TEXT, text))


def _is_same_name(name: str, column: str) -> bool:
    plain = name[1:-1].replace('""', '"') if name.startswith('"') else name
    return plain.casefold() == column.casefold()


FROM_DATA = "read from the data"


@dataclass(frozen=True)
class ColumnHint:
    """What else is known of a column: it leads to the unit, is part of a key, what CHECKs say, what rows suggest."""

    is_id: bool = False
    in_key: bool = False
    checks: tuple[str, ...] = ()
    looked: ColumnProposal | None = None


@dataclass(frozen=True)
class ColumnEntry:
    """`questions` are the owner's to answer; without any, `note` says where the entry comes from."""

    name: str
    text: str
    questions: tuple[str, ...] = ()
    note: str = ""


def write_column_entry(column: IntrospectedColumn, hint: ColumnHint) -> ColumnEntry:
    assert column.type is not None
    proposal = hint.looked or ColumnProposal()
    type_, questions = proposal.type or column.type, list[str]()
    parts = [f"type: {_format_type(type_)}"]
    parts += [f"format: {quote_text(column.format)}"] if column.format else []
    note = column.guess or ""
    parts += format_description(column.comment)
    if hint.is_id:
        return ColumnEntry(column.name, _wrap_braces(parts), note="an id, never cast" + (f"; {note}" if note else ""))
    constraints = read_constraints(hint.checks, column.name)
    values, bounds = column.values or constraints.values, _constraint_bounds(constraints, type_)
    if values and type_.kind is Kind.TEXT:
        parts.append(_format_values(values, type_))
        note = "all values, by a CHECK"
        questions += ["all values by the type: does everyone know them?"] if column.values else []
    elif bounds is not None:
        parts.append(f"bounds: [{format_number(bounds[0])}, {format_number(bounds[1])}]")
        note = "by a CHECK"
    elif is_id_column(column) and proposal.bounds is None:
        note = note or "an id"
    elif type_.is_number or type_.is_time:
        questions += _ask_bounds(column, type_, proposal, parts)
    elif type_.kind is Kind.TEXT and is_personal(column):
        questions.append("leave it out unless a question needs it: it may name people")
    elif type_.kind is Kind.TEXT and not hint.in_key:
        questions += _ask_values(type_, proposal, parts)
    length = column.length or proposal.max_length
    if type_.kind is Kind.TEXT and length and not values and length <= MAX_TEXT:
        parts.append(f"max_length: {length}")
    if proposal.type is not None:
        questions.append("type, too: the source holds texts")
    elif column.guess and questions:
        questions.append(f"type {column.guess}")
    return ColumnEntry(column.name, _wrap_braces(parts), tuple(questions), note)


def is_personal(column: IntrospectedColumn) -> bool:
    """Whether a text may be one person's own, by its name. It is not looked at for values."""
    return bool(_PERSONAL_WORDS & set(split_words(column.name)))


def _format_type(type_: Type) -> str:
    return quote_text(str(type_)) if type_.kind is Kind.DECIMAL else str(type_)  # its comma would end a flow


def _wrap_braces(parts: list[str]) -> str:
    return f"{{{', '.join(parts)}}}"


def _format_values(values: tuple[str, ...], type_: Type) -> str:
    return f"values: [{', '.join(value if type_.is_integer else format_scalar(value) for value in values)}]"


def _constraint_bounds(constraints: ColumnConstraints, type_: Type) -> tuple[str, str] | None:
    if constraints.low is None or constraints.high is None or not type_.is_number or constraints.low > constraints.high:
        return None
    if not (fits_type(constraints.low, type_) and fits_type(constraints.high, type_)):
        return None
    return _format_float(float(constraints.low)), _format_float(float(constraints.high))


def _format_float(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


_PERSONAL_WORDS = {
    "email", "mail", "name", "firstname", "lastname", "surname", "forename", "username", "login", "phone", "mobile",
    "telephone", "fax", "address", "street", "ssn", "iban", "passport", "password", "note", "notes", "comment",
    "comments", "remark", "remarks", "message", "body", "url", "ip",
    "nom", "prenom", "adresse", "courriel", "rue", "vorname", "nachname", "strasse", "telefon", "anschrift",
    "nombre", "apellido", "apellidos", "direccion", "correo", "telefono", "nome", "cognome", "indirizzo", "sobrenome",
    "naam", "voornaam", "achternaam", "imie", "nazwisko", "navn", "namn", "efternavn", "efternamn",
}  # fmt: skip
"""Words in the names of columns that hold one person's own text: no group of many is made of it."""


def _ask_bounds(column: IntrospectedColumn, type_: Type, proposal: ColumnProposal, parts: list[str]) -> list[str]:
    if proposal.values:
        return _ask_values(type_, proposal, parts)
    if proposal.bounds is not None:
        parts.append(f"bounds: [{format_number(proposal.bounds[0])}, {format_number(proposal.bounds[1])}]")
        return [f"bounds {FROM_DATA}"]
    if type_.is_time:
        return ["bounds: [first day, last day] for groups by year or month"]
    name_words = set(split_words(column.name))
    range_ = usual_range(column.name)
    usual = "[low, high]" if range_ is None else f"[{range_[0]}, {range_[1]}]"
    money = name_words & {"cost", "price", "amount", "salary", "income", "revenue", "balance", "fee", "total", "pay"}
    grid = ", and grid: 0.01 if it is money" if type_.is_float and money else ""
    return [f"bounds: {usual} make SUM and AVG more accurate, and quantiles possible{grid}"]


def _ask_values(type_: Type, proposal: ColumnProposal, parts: list[str]) -> list[str]:
    if proposal.values:
        parts.append(_format_values(proposal.values, type_))
        rare = f", {proposal.left_out} rare ones left out" if proposal.left_out else ""
        return [f"values {FROM_DATA}{rare}: are they known to everyone?"]
    return ["values: [...] if everyone knows them all"]
