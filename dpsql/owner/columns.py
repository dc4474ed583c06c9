"""One column of a draft: its entry in YAML, and what the owner is asked about it."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.engines.structure import IntrospectedColumn
from dpsql.owner.constraints import ColumnConstraints, read_constraints
from dpsql.owner.proposals import ColumnProposal
from dpsql.owner.relate import is_id_column, split_words
from dpsql.owner.yaml_text import format_description, format_number, quote_text, format_scalar
from dpsql.schema.keys import MAX_TEXT
from dpsql.schema.literals import fits_type
from dpsql.types import Kind, Type

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
    type_, parts, questions = column.type, [f"type: {_format_type(column.type)}"], []
    note = column.guess or ""
    parts += format_description(column.comment)
    if hint.is_id:
        return ColumnEntry(column.name, _wrap_braces(parts), note="an id, never cast" + (f"; {note}" if note else ""))
    constraints = read_constraints(hint.checks, column.name)
    values, bounds = column.values or constraints.values, _constraint_bounds(constraints, type_)
    proposal = hint.looked or ColumnProposal()
    if values and type_.kind is Kind.TEXT:
        parts.append(_format_values(values))
        note = "all values, by a CHECK"
        questions += ["all values by the type: does everyone know them?"] if column.values else []
    elif bounds is not None:
        parts.append(f"bounds: [{format_number(bounds[0])}, {format_number(bounds[1])}]")
        note = "by a CHECK"
    elif is_id_column(column) and proposal.bounds is None:
        note = note or "an id"
    elif type_.is_number or type_.is_time:
        questions += _ask_bounds(column, proposal, parts)
    elif type_.kind is Kind.TEXT and is_personal(column):
        questions.append("leave it out unless a question needs it: it may name people")
    elif type_.kind is Kind.TEXT and not hint.in_key:
        questions += _ask_values(proposal, parts)
    length = column.length or proposal.max_length
    if type_.kind is Kind.TEXT and length and not values and length <= MAX_TEXT:
        parts.append(f"max_length: {length}")
    if column.guess and questions:
        questions.append(f"type {column.guess}")
    return ColumnEntry(column.name, _wrap_braces(parts), tuple(questions), note)


def is_personal(column: IntrospectedColumn) -> bool:
    """Whether a text may be one person's own, by its name. It is not looked at for values."""
    return bool(_PERSONAL_WORDS & set(split_words(column.name)))


def _format_type(type_: Type) -> str:
    return quote_text(str(type_)) if type_.kind is Kind.DECIMAL else str(type_)  # its comma would end a flow


def _wrap_braces(parts: list[str]) -> str:
    return f"{{{', '.join(parts)}}}"


def _format_values(values: tuple[str, ...]) -> str:
    return f"values: [{', '.join(format_scalar(value) for value in values)}]"


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
_USUAL_RANGES = (
    ({"age", "years"}, "[0, 120]"),
    ({"year"}, "[1900, 2030]"),
    ({"month"}, "[1, 12]"),
    ({"day"}, "[1, 31]"),
    ({"hour"}, "[0, 23]"),
    ({"weekday", "dow"}, "[0, 7]"),
    ({"percent", "pct", "percentage"}, "[0, 100]"),
    ({"latitude", "lat"}, "[-90, 90]"),
    ({"longitude", "lon", "lng"}, "[-180, 180]"),
)
"""Ranges that everyone knows without the data, by a word of the column's name."""


def _ask_bounds(column: IntrospectedColumn, proposal: ColumnProposal, parts: list[str]) -> list[str]:
    type_ = column.type
    assert type_ is not None
    if proposal.bounds is not None:
        parts.append(f"bounds: [{format_number(proposal.bounds[0])}, {format_number(proposal.bounds[1])}]")
        return [f"bounds {FROM_DATA}"]
    if type_.is_time:
        return ["bounds: [first day, last day] for groups by year or month"]
    name_words = set(split_words(column.name))
    usual = next((range_ for names, range_ in _USUAL_RANGES if names & name_words), "[low, high]")
    money = name_words & {"cost", "price", "amount", "salary", "income", "revenue", "balance", "fee", "total", "pay"}
    grid = ", and grid: 0.01 if it is money" if type_.is_float and money else ""
    return [f"bounds: {usual} for SUM and AVG{grid}"]


def _ask_values(proposal: ColumnProposal, parts: list[str]) -> list[str]:
    if proposal.values:
        parts.append(_format_values(proposal.values))
        rare = f", {proposal.left_out} rare ones left out" if proposal.left_out else ""
        return [f"values {FROM_DATA}{rare}: are they known to everyone?"]
    return ["values: [...] if everyone knows them all"]
