"""A first schema as commented YAML: what is known stands there, what the owner must decide is marked `decide:`.

Law: it is made of names, types, keys and constraints; of rows only what the owner asked to look at, and then it says
so. It fails closed: a table without a way to the unit stands in comments, and none is public by itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from dpsql.engines.structure import FoundColumn, FoundTable
from dpsql.figures import short_down
from dpsql.owner.columns import Entry, Hint, column_entry
from dpsql.owner.proposals import Proposal
from dpsql.owner.relate import Candidate, key_of, second_ways
from dpsql.owner.sources import Sources
from dpsql.owner.yaml_text import comment, description, path, quoted, scalar
from dpsql.schema.model import EngineTable, Files

MARK = "decide:"
ROWS, GROUPS = 20, 10
"""Contributions that a draft begins with: any number is private, and `dpsql check` tells which is good."""
WIDTH = 120

PEEKED = (
    "The marked bounds, values and norms were read from the data, so they are not private: whoever sees this file",
    "learns something of the rows. Before you publish it, replace them by what is known without the data.",
)


@dataclass(frozen=True)
class Decision:
    """Something that only the owner can know; `where` is a place in the schema."""

    where: str
    what: str


@dataclass(frozen=True)
class Wishes:
    """What the owner has said already."""

    epsilon: Fraction = Fraction(4)
    delta: Fraction = Fraction(1, 10**6)
    neighbors: str = "add_remove"
    analysts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Looked:
    """What was read from rows, if the owner asked for it."""

    columns: Mapping[tuple[str, str], Proposal] = field(default_factory=dict)
    rows: int | None = None  # the norm


@dataclass(frozen=True)
class Draft:
    text: str
    decisions: tuple[Decision, ...]
    unit: str
    tables: tuple[str, ...]
    left_out: tuple[str, ...]


def write_draft(
    sources: Sources, unit: Candidate | None, folder: str, wishes: Wishes, looked: Looked | None = None
) -> Draft:
    """`unit` is None where each row is its own; paths are written as seen from `folder`."""
    writer = _Writer(sources, unit, folder, wishes, looked)
    text = "\n".join(writer.lines()) + "\n"
    names = tuple(table.name for table in sources.tables if writer.reaches(table))
    apart = tuple(f'the table "{one.name}": no way to the unit' for one in sources.tables if not writer.reaches(one))
    return Draft(text, tuple(writer.decisions), writer.unit_name, names, (*sources.left_out, *apart))


@dataclass
class _Writer:
    sources: Sources
    unit: Candidate | None
    folder: str
    wishes: Wishes
    looked: Looked | None
    decisions: list[Decision] = field(default_factory=list)

    @property
    def unit_name(self) -> str:
        return "row" if self.unit is None else self.unit.name

    def reaches(self, table: FoundTable) -> bool:
        return self.unit is None or table.name == self.unit.table or table.name in self.unit.ways

    def lines(self) -> list[str]:
        ordered = sorted(self.sources.tables, key=lambda table: (not self.reaches(table), self._far(table)))
        body = self._privacy() + self._analysts() + ["", "tables:"]
        for place, table in enumerate(ordered):
            body += [""] if place else []
            body += self._table(table) if self.reaches(table) else self._apart(table)
        return [*self._head(), "", *body]

    def _far(self, table: FoundTable) -> int:
        """Steps to the unit."""
        steps, name = 0, table.name
        while self.unit is not None and name in self.unit.ways and steps < len(self.sources.tables):
            steps, name = steps + 1, self.unit.ways[name].target
        return steps

    def _decide(self, where: str, what: str) -> str:
        self.decisions.append(Decision(where, what))
        return f"{MARK} {comment(what)}"

    # --- the head ----------------------------------------------------------------------------------------------------

    def _head(self) -> list[str]:
        lines = [
            "# A draft by `dpsql init`, from names, types and keys. Decide what is marked, and then run: dpsql check",
            f"# Every open question has the mark `{MARK}` on its line; docs/schema.md explains all keys.",
            "#   bounds  what is beyond them is clipped. Without them, SUM and AVG need CLIP(x, low, high), and groups",
            "#           by time are found privately. Choose them by what is known without the data.",
            "#   values  all that there are, if everyone knows them: each is a group that is always shown. Without",
            "#           them, groups are found privately, and rare ones stay hidden.",
        ]
        if self.looked is not None:
            lines += ["#", *(f"# {line}" for line in PEEKED)]
        if self.sources.server:
            lines += ["#", *self._exports()]
        if self.sources.left_out:
            lines += ["#", "# Left out of this draft:"]
            lines += [f"#   {comment(what)}" for what in self.sources.left_out]
        lines += ["dpsql: 1"]
        if self.sources.database is not None:
            lines.append(f"engine: {path('duckdb:///' + self._relative(self.sources.database))}")
        ledger = path(f"sqlite:///{self.sources.name}.ledger")
        return [*lines, f"ledger: {ledger}  # every charge; keep it, and back it up"]

    def _exports(self) -> list[str]:
        """PostgreSQL is no engine yet; what psql writes is in the default dialect."""
        lines = ["# Tables of PostgreSQL are not yet read in place. Export them to files beside this schema:"]
        for table in self.sources.tables:
            columns = ", ".join(_identifier(column.name) for column in table.columns if column.type is not None)
            place = ".".join(_identifier(part) for part in table.place)
            assert isinstance(table.source, Files)
            text = f"\\copy (SELECT {columns} FROM {place}) TO {_sql_text(table.source.patterns[0])} CSV HEADER"
            lines.append(f"#   psql \"$DATABASE_URL\" -c {comment(_shell(text))}")
        return lines

    def _privacy(self) -> list[str]:
        wishes, unit = self.wishes, self.unit
        why = f"is it whom to protect? {unit.why}" if unit else _ROW
        which = self._decide("privacy.unit", why)
        budget = self._decide("privacy.budget", "the most that all analysts together may learn")
        rows = ROWS if self.looked is None or self.looked.rows is None else self.looked.rows
        norm = "a unit counts like at most so many rows, and reveals so many unknown keys"
        norm += "; read from the data" if self.looked is not None and self.looked.rows is not None else ""
        epsilon, delta = short_down(wishes.epsilon), short_down(wishes.delta)
        return _aligned(
            "privacy:",
            [
                (f"unit: {scalar(self.unit_name)}", which),
                (f"neighbors: {wishes.neighbors}", _NEIGHBORS[wishes.neighbors]),
                (f"budget: {{epsilon: {epsilon}, delta: {delta}}}", budget),
                (
                    f"query: {{epsilon: {short_down(wishes.epsilon / 20)}, delta: {short_down(wishes.delta / 100)}}}",
                    "what a statement asks for unless it says otherwise",
                ),
                (
                    f"contributions: {{rows: {rows}, groups: {GROUPS}}}",
                    self._decide("privacy.contributions", norm),
                ),
            ],
        )

    def _analysts(self) -> list[str]:
        names = self.wishes.analysts
        if not names:
            return ["", "# analysts:  # without them, whoever opens this file asks on the dataset's budget",
                    "#   ana: {budget: {epsilon: 2, delta: 5e-7}}"]  # fmt: skip
        each = f"{{epsilon: {short_down(self.wishes.epsilon / len(names))}, delta: " \
               f"{short_down(self.wishes.delta / len(names))}}}"  # fmt: skip
        decide = self._decide("analysts", "who may learn how much; together they share the dataset's budget")
        return ["", f"analysts:  # {decide}", *(f"  {scalar(name)}: {{budget: {each}}}" for name in names)]

    # --- tables ------------------------------------------------------------------------------------------------------

    def _table(self, table: FoundTable) -> list[str]:
        lines = [f"  {scalar(table.name)}:"]
        lines += [f"    {line}" for line in self._source(table)]
        lines += [f"    {line}" for line in description(table.comment)]
        lines += [f"    {line}" for line in self._way(table)]
        unique = self._unique(table)
        lines += [f"    {unique}"] if unique else []
        return [*lines, *(f"    {line}" for line in self._columns(table, self._ids(table)))]

    def _apart(self, table: FoundTable) -> list[str]:
        """In comments that become a public table when the # are taken away: that is the owner's word."""
        what = f"{table.name} has no way to the unit, and is left out; take the # away only if nothing in it is private"
        block = [f"{scalar(table.name)}:", *(f"  {line}" for line in self._source(table)), "  public: true"]
        entries = [column_entry(column, Hint()) for column in table.columns if column.type is not None]
        block += ["  columns:", *(f"    {scalar(entry.name)}: {entry.text}" for entry in entries)]
        return [f"  # {self._decide(f'tables.{table.name}', what)}", *(f"  # {line}" for line in block)]

    def _source(self, table: FoundTable) -> list[str]:
        match table.source:
            case EngineTable((_,)):
                return []
            case EngineTable(parts):
                return [f"source: {scalar('.'.join(parts))}"]
            case Files(patterns) as files:
                place = path(self._relative(patterns[0]))
                if files == Files(patterns, files.format):
                    return [f"source: {place}"]
                dialect = [f"path: {place}", *(["header: false"] if not files.header else [])]
                dialect += [f"delimiter: {quoted(files.delimiter)}"] if files.delimiter != "," else []
                dialect += [f"quote: {quoted(files.quote)}"] if files.quote != '"' else []
                return [f"source: {{{', '.join(dialect)}}}"]

    def _relative(self, place: str) -> str:
        if not os.path.isabs(place):
            return place
        relative = os.path.relpath(place, self.folder)
        return place if relative.startswith(os.path.join("..", "..", "..")) else relative

    def _way(self, table: FoundTable) -> list[str]:
        if self.unit is None:
            return ["unit: row"]
        if table.name == self.unit.table:
            lines = [f"unit: {scalar(self.unit.column)}"]
        else:
            way = self.unit.ways[table.name]
            lines = [f"unit: {{{scalar(way.column)}: {scalar(f'{way.target}.{way.key}')}}}"]
            if not way.declared:
                lines[0] += f"  # {self._decide(f'tables.{table.name}.unit', _GUESS.format(way.column))}"
        others = second_ways(self.unit, self.sources.tables, table.name)
        if others:
            what = f"{', '.join(others)} may name a second person, whom rows of this table do not protect"
            lines.append(f"# {self._decide(f'tables.{table.name}.unit', what)}")
        return lines

    def _arrived(self, table: FoundTable) -> set[str]:
        """Columns that others' ways arrive at."""
        ways = self.unit.ways.values() if self.unit else ()
        return {way.key for way in ways if way.target == table.name}

    def _ids(self, table: FoundTable) -> set[str]:
        if self.unit is None:
            return set()
        own = {self.unit.column} if table.name == self.unit.table else {self.unit.ways[table.name].column}
        return own | self._arrived(table)

    def _unique(self, table: FoundTable) -> str | None:
        keys = [key for key in table.unique if all(_typed(table, name) for name in key)]
        declared = {key[0] for key in keys if len(key) == 1}
        key = key_of(table)
        wanted = self._arrived(table)
        if self.unit is not None and table.name == self.unit.table:
            wanted.discard(self.unit.column)  # a reference to the unit itself needs no unique key
            wanted |= {self.unit.column} & ({key[0]} if key else set())  # in the table of its own, it saves noise
        guessed = sorted(wanted - declared)
        items = [scalar(key[0]) if len(key) == 1 else f"[{', '.join(map(scalar, key))}]" for key in keys]
        items += [scalar(name) for name in guessed]
        if not items:
            return None
        line = f"unique: [{', '.join(items)}]"
        if not guessed:
            return line
        what = f"no two rows share {' or '.join(guessed)}? guessed from its name, checked when data is registered"
        return f"{line}  # {self._decide(f'tables.{table.name}.unique', what)}"

    def _columns(self, table: FoundTable, ids: set[str]) -> list[str]:
        rows: list[tuple[str, str]] = []
        for column in table.columns:
            if column.type is None:
                what = f"{comment(column.spelling)} is no type of dpsql; cast it in a view of the engine"
                rows.append((f"# {scalar(column.name)}: {what}", ""))
                continue
            rows.append(self._column(table, column, column.name in ids))
        return _aligned("columns:", rows)

    def _column(self, table: FoundTable, column: FoundColumn, is_id: bool) -> tuple[str, str]:
        looked = None if self.looked is None else self.looked.columns.get((table.name, column.name))
        public_key = any(column.name in key for key in table.unique)
        entry: Entry = column_entry(column, Hint(is_id, public_key, table.checks, looked))
        what = "; ".join(entry.questions)
        note = self._decide(f"tables.{table.name}.{column.name}", what) if what else entry.note
        return f"{scalar(entry.name)}: {entry.text}", note


_NEIGHBORS = {
    "add_remove": "one unit more or less; how many units there are is protected too",
    "change_one": "one unit's rows replaced; how many units there are is public",
}
_ROW = "each row for itself: right only if no two rows are about one person"
_GUESS = "{} guessed from its name: does each row belong to one unit by it?"


def _typed(table: FoundTable, name: str) -> bool:
    column = table.column(name)
    return column is not None and column.type is not None


def _aligned(head: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines below a key, with their comments in one column."""
    widest = max((len(text) for text, note in rows if note and len(text) <= 60), default=0)
    lines = [f"  {text}" + (f"{' ' * max(0, widest - len(text))}  # {note}" if note else "") for text, note in rows]
    return [head, *(line.rstrip() for line in lines)]


def _identifier(name: str) -> str:
    return name if name.isidentifier() and name == name.lower() else '"' + name.replace('"', '""') + '"'


def _sql_text(text: str) -> str:
    return text if re.fullmatch(r"[\w.-]+", text) else "'" + text.replace("'", "''") + "'"


def _shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
