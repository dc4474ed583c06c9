"""One column of a draft: its entry in YAML, and what the owner is asked about it."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.engines.structure import FoundColumn
from dpsql.owner.constraints import Stated, stated
from dpsql.owner.proposals import Proposal
from dpsql.owner.relate import names_rows, words
from dpsql.owner.yaml_text import description, number, quoted, scalar
from dpsql.schema.keys import MAX_TEXT
from dpsql.schema.literals import fits
from dpsql.types import Kind, Type

FROM_DATA = "read from the data"


@dataclass(frozen=True)
class Hint:
    """What else is known of a column: it leads to the unit, is part of a key, what CHECKs say, what rows suggest."""

    is_id: bool = False
    in_key: bool = False
    checks: tuple[str, ...] = ()
    looked: Proposal | None = None


@dataclass(frozen=True)
class Entry:
    """`questions` are the owner's to answer; without any, `note` says where the entry comes from."""

    name: str
    text: str
    questions: tuple[str, ...] = ()
    note: str = ""


def column_entry(column: FoundColumn, hint: Hint) -> Entry:
    assert column.type is not None
    type_, parts, questions = column.type, [f"type: {_type(column.type)}"], []
    note = column.guess or ""
    parts += description(column.comment)
    if hint.is_id:
        return Entry(column.name, _braces(parts), note="an id, never cast" + (f"; {note}" if note else ""))
    known = stated(hint.checks, column.name)
    values, bounds = column.values or known.values, _stated_bounds(known, type_)
    looked = hint.looked or Proposal()
    if values and type_.kind is Kind.TEXT:
        parts.append(_values(values))
        note = "all values, by a CHECK"
        questions += ["all values by the type: does everyone know them?"] if column.values else []
    elif bounds is not None:
        parts.append(f"bounds: [{number(bounds[0])}, {number(bounds[1])}]")
        note = "by a CHECK"
    elif names_rows(column) and looked.bounds is None:
        note = note or "an id"
    elif type_.is_number or type_.is_time:
        questions += _ask_bounds(column, looked, parts)
    elif type_.kind is Kind.TEXT and is_personal(column):
        questions.append("leave it out unless a question needs it: it may name people")
    elif type_.kind is Kind.TEXT and not hint.in_key:
        questions += _ask_values(looked, parts)
    length = column.length or looked.max_length
    if type_.kind is Kind.TEXT and length and not values and length <= MAX_TEXT:
        parts.append(f"max_length: {length}")
    if column.guess and questions:
        questions.append(f"type {column.guess}")
    return Entry(column.name, _braces(parts), tuple(questions), note)


def is_personal(column: FoundColumn) -> bool:
    """Whether a text may be one person's own, by its name. It is not looked at for values."""
    return bool(_PERSONAL & set(words(column.name)))


def _type(type_: Type) -> str:
    return quoted(str(type_)) if type_.kind is Kind.DECIMAL else str(type_)  # its comma would end a flow


def _braces(parts: list[str]) -> str:
    return f"{{{', '.join(parts)}}}"


def _values(values: tuple[str, ...]) -> str:
    return f"values: [{', '.join(scalar(value) for value in values)}]"


def _stated_bounds(known: Stated, type_: Type) -> tuple[str, str] | None:
    if known.low is None or known.high is None or not type_.is_number or known.low > known.high:
        return None
    if not (fits(known.low, type_) and fits(known.high, type_)):
        return None
    return _plain(float(known.low)), _plain(float(known.high))


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


_PERSONAL = {
    "email", "mail", "name", "firstname", "lastname", "surname", "forename", "username", "login", "phone", "mobile",
    "telephone", "fax", "address", "street", "ssn", "iban", "passport", "password", "note", "notes", "comment",
    "comments", "remark", "remarks", "message", "body", "url", "ip",
    "nom", "prenom", "adresse", "courriel", "rue", "vorname", "nachname", "strasse", "telefon", "anschrift",
    "nombre", "apellido", "apellidos", "direccion", "correo", "telefono", "nome", "cognome", "indirizzo", "sobrenome",
    "naam", "voornaam", "achternaam", "imie", "nazwisko", "navn", "namn", "efternavn", "efternamn",
}  # fmt: skip
"""Words in the names of columns that hold one person's own text: no group of many is made of it."""
_USUAL = (
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


def _ask_bounds(column: FoundColumn, looked: Proposal, parts: list[str]) -> list[str]:
    type_ = column.type
    assert type_ is not None
    if looked.bounds is not None:
        parts.append(f"bounds: [{number(looked.bounds[0])}, {number(looked.bounds[1])}]")
        return [f"bounds {FROM_DATA}"]
    if type_.is_time:
        return ["bounds: [first day, last day] for groups by year or month"]
    known = set(words(column.name))
    usual = next((range_ for names, range_ in _USUAL if names & known), "[low, high]")
    money = known & {"cost", "price", "amount", "salary", "income", "revenue", "balance", "fee", "total", "pay"}
    grid = ", and grid: 0.01 if it is money" if type_.is_float and money else ""
    return [f"bounds: {usual} for SUM and AVG{grid}"]


def _ask_values(looked: Proposal, parts: list[str]) -> list[str]:
    if looked.values:
        parts.append(_values(looked.values))
        rare = f", {looked.left_out} rare ones left out" if looked.left_out else ""
        return [f"values {FROM_DATA}{rare}: are they known to everyone?"]
    return ["values: [...] if everyone knows them all"]
