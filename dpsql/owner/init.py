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
from dpsql.owner.draft import SchemaDraft as SchemaDraft
from dpsql.owner.draft import DraftOptions as DraftOptions
from dpsql.owner.draft import write_draft
from dpsql.owner.look import propose_from_data, propose_norm
from dpsql.owner.relate import UnitCandidate as UnitCandidate
from dpsql.owner.relate import make_candidate, find_candidates
from dpsql.owner.scratch import open_temp_folder
from dpsql.owner.sources import DataSources as DataSources
from dpsql.owner.sources import find_sources as find_sources
from dpsql.owner.sources import to_file_name
from dpsql.private_files import open_private_file
from dpsql.schema.document import closest_name, quote_text, printable_text
from dpsql.schema.keys import ANALYST_NAME, MAX_EPSILON
from dpsql.schema.literals import read_number
from dpsql.schema.load import load_schema
from dpsql.schema.model import Schema

ROW_UNIT = "row"
ChooseUnit = Callable[[Sequence[UnitCandidate]], UnitCandidate]


@dataclass(frozen=True)
class DraftResult:
    """A draft, its unit among the candidates for it, and how it was chosen: "named", "picked" or "asked"."""

    draft: SchemaDraft
    candidates: tuple[UnitCandidate, ...]
    chosen: str


def read_draft_options(
    epsilon: str | None, delta: str | None, neighbors: str | None, analysts: Sequence[str] = ()
) -> DraftOptions:
    """What the owner has typed; None is the default. ValueError says what it should be."""
    options = DraftOptions()
    if epsilon is not None:
        max_epsilon = MAX_EPSILON
        options = replace(options, epsilon=_parse_number("epsilon", epsilon, "a number above 0", lambda n: 0 < n <= max_epsilon))
    if delta is not None:
        options = replace(options, delta=_parse_number("delta", delta, "from 0 to below 1", lambda n: 0 <= n < 1))
    for name in analysts:
        if not re.fullmatch(ANALYST_NAME, name):
            raise ValueError(f"--analyst takes letters, digits and _ . @ -, not {printable_text(name)}")
    if len(set(analysts)) < len(analysts):
        raise ValueError("--analyst names someone twice")
    return replace(options, neighbors=neighbors or options.neighbors, analysts=tuple(analysts))


def _parse_number(name: str, text: str, due: str, fits: Callable[[Fraction], bool]) -> Fraction:
    number = read_number(text)
    if number is None or not fits(number):
        raise ValueError(f"--{name} is {due}, not {printable_text(text)}")
    return number


def draft_schema(
    sources: DataSources,
    folder: str,
    options: DraftOptions,
    *,
    unit: str | None = None,
    choose: ChooseUnit | None = None,
    look_at_data: bool = False,
    name: str | None = None,
) -> DraftResult:
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
        sources = replace(sources, name=to_file_name(name))
    candidates = find_candidates(sources.tables)
    if unit is not None:
        picked, chosen = _find_named_unit(sources, unit), "named"
    elif choose is not None and len(candidates) > 1:
        picked, chosen = choose(candidates), "asked"
    else:
        picked, chosen = candidates[0] if candidates else None, "picked"
    proposals = propose_from_data(sources, picked) if look_at_data else None
    draft = write_draft(sources, picked, folder, options, proposals)
    schema = _load_draft(draft, folder)
    if proposals is not None:
        draft = write_draft(sources, picked, folder, options, replace(proposals, rows=propose_norm(schema, sources)))
        _load_draft(draft, folder)
    return DraftResult(draft, candidates, chosen)


def _find_named_unit(sources: DataSources, unit: str) -> UnitCandidate | None:
    if unit == ROW_UNIT:
        return None
    name, dot, column = unit.partition(".")
    tables = {table.name: table for table in sources.tables}
    if not dot or name not in tables:
        match_name = closest_name(name, list(tables))
        raise InterfaceError(
            f"--unit must be table.column or row, and there is no table {quote_text(name)}",
            hint=f'Did you mean "{match_name}"?' if match_name else f"Tables: {', '.join(printable_text(item) for item in tables)}.",
        )
    if tables[name].find_column(column) is None:
        columns = [item.name for item in tables[name].columns]
        match_name = closest_name(column, columns)
        raise InterfaceError(
            f"the table {quote_text(name)} has no column {quote_text(column)}",
            hint=f'Did you mean "{match_name}"?' if match_name else f"Columns: {', '.join(map(printable_text, columns))}.",
        )
    return make_candidate(sources.tables, name, column)


def _load_draft(draft: SchemaDraft, folder: str) -> Schema:
    """A draft is a schema: what the loader says against it is told now, not when the owner opens it."""
    with open_temp_folder("draft") as temporary:
        path = temporary / "draft.yaml"
        path.write_text(draft.text, encoding="utf-8")
        return replace(load_schema(path), path=Path(folder) / "draft.yaml")


def write_schema_file(path: str, text: str, *, force: bool, secret: bool) -> None:
    """`secret`: it holds what was read from rows, and is its owner's alone. An existing file stays unless `force`."""
    flags = os.O_WRONLY | (os.O_TRUNC if force else os.O_EXCL)
    try:
        descriptor = open_private_file(path, flags) if secret else os.open(path, flags | os.O_CREAT, 0o666)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InterfaceError(
            f'"{printable_text(path, 200)}" is there already', hint="Write to another file with -o, or replace it with --force."
        ) from None
    except OSError as error:
        raise OperationalError(f'"{printable_text(path, 200)}" cannot be written', detail=f"{error.strerror}.") from None
