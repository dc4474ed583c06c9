"""Drafting a schema: from sources to a file that loads, and the list of what is left to decide."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from dpsql.errors import InterfaceError, OperationalError
from dpsql.owner.draft import Decision as Decision
from dpsql.owner.draft import Draft as Draft
from dpsql.owner.draft import Wishes as Wishes
from dpsql.owner.draft import write_draft
from dpsql.owner.look import look, norm_of
from dpsql.owner.relate import Candidate as Candidate
from dpsql.owner.relate import candidate, find_candidates
from dpsql.owner.scratch import scratch
from dpsql.owner.sources import Sources as Sources
from dpsql.owner.sources import find_sources as find_sources
from dpsql.owner.sources import plain_name
from dpsql.private_files import open_private
from dpsql.schema.document import closest, quoted, shown
from dpsql.schema.keys import ANALYST_NAME, MAX_EPSILON
from dpsql.schema.literals import read_number
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema

ROW = "row"
Choose = Callable[[Sequence[Candidate]], Candidate]


@dataclass(frozen=True)
class Drafted:
    """A draft, its unit among the candidates for it, and how it was chosen: "named", "picked" or "asked"."""

    draft: Draft
    candidates: tuple[Candidate, ...]
    chosen: str


def read_wishes(
    epsilon: str | None, delta: str | None, neighbors: str | None, analysts: Sequence[str] = ()
) -> Wishes:
    """What the owner has typed; None is the default. ValueError says what it should be."""
    wishes = Wishes()
    if epsilon is not None:
        most = MAX_EPSILON
        wishes = replace(wishes, epsilon=_number("epsilon", epsilon, "a number above 0", lambda n: 0 < n <= most))
    if delta is not None:
        wishes = replace(wishes, delta=_number("delta", delta, "from 0 to below 1", lambda n: 0 <= n < 1))
    for name in analysts:
        if not re.fullmatch(ANALYST_NAME, name):
            raise ValueError(f"--analyst takes letters, digits and _ . @ -, not {shown(name)}")
    if len(set(analysts)) < len(analysts):
        raise ValueError("--analyst names someone twice")
    return replace(wishes, neighbors=neighbors or wishes.neighbors, analysts=tuple(analysts))


def _number(name: str, text: str, due: str, fits: Callable[[Fraction], bool]) -> Fraction:
    number = read_number(text)
    if number is None or not fits(number):
        raise ValueError(f"--{name} is {due}, not {shown(text)}")
    return number


def draft_schema(
    sources: Sources,
    folder: str,
    wishes: Wishes,
    *,
    unit: str | None = None,
    choose: Choose | None = None,
    look_at_data: bool = False,
    name: str | None = None,
) -> Drafted:
    """The draft as it would stand in `folder`, with a ledger of its `name`. `unit` is "table.column" or "row"; else the
    likeliest candidate is taken, or the one that `choose` says. Of rows, only `look_at_data` reads any."""
    if not sources.tables:
        raise OperationalError(
            "there is no table to draft a schema from",
            detail=f"Left out: {'; '.join(sources.left_out[:5])}." if sources.left_out else None,
            hint="Name a DuckDB file with tables, or .parquet or .csv files.",
        )
    if look_at_data and sources.server:
        raise InterfaceError(
            "--look-at-data reads files, not a PostgreSQL server",
            hint="Export the tables as the draft says, and name the files.",
        )
    if name is not None:
        sources = replace(sources, name=plain_name(name))
    found = find_candidates(sources.tables)
    if unit is not None:
        picked, chosen = _named(sources, unit), "named"
    elif choose is not None and len(found) > 1:
        picked, chosen = choose(found), "asked"
    else:
        picked, chosen = found[0] if found else None, "picked"
    looked = look(sources, picked) if look_at_data else None
    draft = write_draft(sources, picked, folder, wishes, looked)
    schema = _loaded(draft, folder)
    if looked is not None:
        draft = write_draft(sources, picked, folder, wishes, replace(looked, rows=norm_of(schema, sources)))
        _loaded(draft, folder)
    return Drafted(draft, found, chosen)


def _named(sources: Sources, unit: str) -> Candidate | None:
    if unit == ROW:
        return None
    name, dot, column = unit.partition(".")
    tables = {table.name: table for table in sources.tables}
    if not dot or name not in tables:
        near = closest(name, list(tables))
        raise InterfaceError(
            f"--unit must be table.column or row, and there is no table {quoted(name)}",
            hint=f'Did you mean "{near}"?' if near else f"Tables: {', '.join(shown(one) for one in tables)}.",
        )
    if tables[name].column(column) is None:
        columns = [one.name for one in tables[name].columns]
        near = closest(column, columns)
        raise InterfaceError(
            f"the table {quoted(name)} has no column {quoted(column)}",
            hint=f'Did you mean "{near}"?' if near else f"Columns: {', '.join(map(shown, columns))}.",
        )
    return candidate(sources.tables, name, column)


def _loaded(draft: Draft, folder: str) -> Schema:
    """A draft is a schema: what the loader says against it is told now, not when the owner opens it."""
    with scratch("draft") as temporary:
        path = temporary / "draft.yaml"
        path.write_text(draft.text, encoding="utf-8")
        return replace(load_schema(path), path=Path(folder) / "draft.yaml")


def write_file(path: str, text: str, *, force: bool, secret: bool) -> None:
    """`secret`: it holds what was read from rows, and is its owner's alone. An existing file stays unless `force`."""
    flags = os.O_WRONLY | (os.O_TRUNC if force else os.O_EXCL)
    try:
        descriptor = open_private(path, flags) if secret else os.open(path, flags | os.O_CREAT, 0o666)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InterfaceError(
            f'"{shown(path, 200)}" is there already', hint="Write to another file with -o, or replace it with --force."
        ) from None
    except OSError as error:
        raise OperationalError(f'"{shown(path, 200)}" cannot be written', detail=f"{error.strerror}.") from None
