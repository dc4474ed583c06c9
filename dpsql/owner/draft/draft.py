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

from dpsql.amounts import format_rounded_down
from dpsql.owner.draft.columns import ColumnEntry, ColumnHint, write_column_entry
from dpsql.owner.draft.relationships import UnitCandidate, key_column_of, second_unit_columns
from dpsql.owner.draft.sources import DataSources
from dpsql.owner.draft.suggestions import ColumnProposal, RepeatedColumn
from dpsql.owner.introspect.tables import IntrospectedColumn, IntrospectedTable
from dpsql.owner.yaml_text import format_comment, format_description, format_path, format_scalar, quote_text
from dpsql.schema.model import EngineTable, Files

DECISION_MARK = "decide:"
WIDTH = 120

NOT_PRIVATE_NOTE = (
    "The marked bounds, values and numbers were read from the data, so they are not private: who sees this file",
    "learns something of the rows. Before you publish it, replace them by what is known without the data.",
)


@dataclass(frozen=True)
class Decision:
    """Something that only the owner can know; `where` is a place in the schema."""

    where: str
    what: str


@dataclass(frozen=True)
class DraftOptions:
    """What the owner has said already."""

    epsilon: Fraction = Fraction(4)
    delta: Fraction = Fraction(1, 10**6)
    neighbors: str = "add_remove"
    analysts: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataProposals:
    """What was read from rows, if the owner asked for it."""

    columns: Mapping[tuple[str, str], ColumnProposal] = field(default_factory=dict)
    unit_keys: Mapping[str, str] = field(
        default_factory=dict
    )  # by table: a column of few values, once in a unit's rows
    public_keys: Mapping[str, str] = field(default_factory=dict)
    repeated: tuple[RepeatedColumn, ...] = ()  # that may be the unit where names tell of none, the likeliest first
    unit_repeats: bool = False  # several rows of the unit's own table have one id


@dataclass(frozen=True)
class SchemaDraft:
    text: str
    decisions: tuple[Decision, ...]
    unit: str
    tables: tuple[str, ...]
    left_out: tuple[str, ...]


def write_draft(
    sources: DataSources,
    unit: UnitCandidate | None,
    folder: str,
    options: DraftOptions,
    proposals: DataProposals | None = None,
) -> SchemaDraft:
    """`unit` is None where each row is its own; paths are written as seen from `folder`."""
    writer = _DraftWriter(sources, unit, folder, options, proposals)
    text = "\n".join(writer.write_lines()) + "\n"
    names = tuple(table.name for table in sources.tables if writer.can_reach_unit(table))
    apart = tuple(
        f'the table "{unreached.name}": no way to the unit'
        for unreached in sources.tables
        if not writer.can_reach_unit(unreached)
    )
    return SchemaDraft(text, tuple(writer.decisions), writer.unit_name, names, (*sources.left_out, *apart))


@dataclass
class _DraftWriter:
    sources: DataSources
    unit: UnitCandidate | None
    folder: str
    options: DraftOptions
    looked: DataProposals | None
    decisions: list[Decision] = field(default_factory=list)

    @property
    def unit_name(self) -> str:
        return "row" if self.unit is None else self.unit.name

    def can_reach_unit(self, table: IntrospectedTable) -> bool:
        return self.unit is None or table.name == self.unit.table or table.name in self.unit.links_to_unit

    def write_lines(self) -> list[str]:
        ordered = sorted(
            self.sources.tables, key=lambda table: (not self.can_reach_unit(table), self._distance_to_unit(table))
        )
        body = self._write_privacy() + self._write_analysts() + ["", "tables:"]
        for index, table in enumerate(ordered):
            body += [""] if index else []
            body += self._write_table(table) if self.can_reach_unit(table) else self._write_unreachable_table(table)
        return [*self._write_head(), "", *body]

    def _distance_to_unit(self, table: IntrospectedTable) -> int:
        """The number of foreign keys to follow to the unit."""
        steps, name = 0, table.name
        while self.unit is not None and name in self.unit.links_to_unit and steps < len(self.sources.tables):
            steps, name = steps + 1, self.unit.links_to_unit[name].target
        return steps

    def _add_decision(self, where: str, what: str) -> str:
        self.decisions.append(Decision(where, what))
        return f"{DECISION_MARK} {format_comment(what)}"

    # --- the head ----------------------------------------------------------------------------------------------------

    def _write_head(self) -> list[str]:
        lines = [
            "# A draft by `dpsql init`, from names, types and keys. What to do next:",
            f"#   1. Decide each line with the mark `{DECISION_MARK}`, most of all privacy.unit and privacy.budget:",
            "#      nobody but you knows these. Then take the mark away. docs/schema.md explains all keys.",
            "#   2. Run: dpsql check, with this file. It reads the data, charges nothing, and says what to mend.",
            '#   3. Ask: dpsql query, with this file and a question such as "SELECT COUNT(*) FROM …".',
            "#   bounds  what is beyond them is clipped. Without them, groups by time are found privately, and",
            "#           quantiles need CLIP(x, low, high). Choose them by what is known without the data.",
            "#   values  all that there are, if everyone knows them: each is a group that is always shown. Without",
            "#           them, groups are found privately, and rare ones stay hidden.",
        ]
        if self.looked is not None:
            lines += ["#", *(f"# {line}" for line in NOT_PRIVATE_NOTE)]
        if self.sources.server:
            lines += ["#", *self._write_exports()]
        if self.sources.left_out:
            lines += ["#", "# Left out of this draft:"]
            lines += [f"#   {format_comment(what)}" for what in self.sources.left_out]
        lines += ["dpsql: 1"]
        if self.sources.database is not None:
            lines.append(f"engine: {format_path('duckdb:///' + self._relative_path(self.sources.database))}")
        ledger = format_path(f"sqlite:///{self.sources.name}.ledger")
        return [*lines, f"ledger: {ledger}  # every charge; keep it, and back it up"]

    def _write_exports(self) -> list[str]:
        """PostgreSQL is no engine yet; what psql writes is in the default dialect."""
        lines = ["# Tables of PostgreSQL are not yet read in place. Export them to files beside this schema:"]
        for table in self.sources.tables:
            columns = ", ".join(_quote_identifier(column.name) for column in table.columns if column.type is not None)
            qualified_name = ".".join(_quote_identifier(part) for part in table.server_path)
            assert isinstance(table.source, Files)
            text = (
                f"\\copy (SELECT {columns} FROM {qualified_name}) TO "
                f"{_quote_sql_text(table.source.patterns[0])} CSV HEADER"
            )
            lines.append(f'#   psql "$DATABASE_URL" -c {format_comment(_quote_shell(text))}')
        return lines

    def _write_privacy(self) -> list[str]:
        options, unit = self.options, self.unit
        why = f"is it whom to protect? {unit.why}" if unit else _ROW_UNIT_QUESTION + self._ask_repeated()
        which = self._add_decision("privacy.unit", why)
        budget = self._add_decision("privacy.budget", "the most that all analysts together may learn")
        epsilon, delta = format_rounded_down(options.epsilon), format_rounded_down(options.delta)
        return _align_comments(
            "privacy:",
            [
                (f"unit: {format_scalar(self.unit_name)}", which),
                (f"neighbors: {options.neighbors}", _NEIGHBORS_NOTES[options.neighbors]),
                (f"budget: {{epsilon: {epsilon}, delta: {delta}}}", budget),
                (
                    f"query: {{epsilon: {format_rounded_down(options.epsilon / 20)}, delta: "
                    f"{format_rounded_down(options.delta / 100)}}}",
                    "what a statement asks for unless it says otherwise",
                ),
                ("contributions: auto", "nothing to decide: how much of one unit counts is chosen privately"),
                ("# units: 100000", "about how many units there are, if that is no secret: answers get better"),
            ],
        )

    def _ask_repeated(self) -> str:
        """Where each row would be its own unit: columns that name whatever several rows are about."""
        repeated = self.looked.repeated[:3] if self.looked is not None else ()
        if not repeated:
            return ""
        each = "; ".join(f"{column} (--unit {column.table}.{column.column})" for column in repeated)
        return f". Does one of these name people: {each}?"

    def _write_analysts(self) -> list[str]:
        names = self.options.analysts
        if not names:
            return [
                "",
                "# analysts:  # without them, whoever opens this file asks on the dataset's budget",
                "#   ana: {budget: {epsilon: 2, delta: 5e-7}}",
            ]
        each = (
            f"{{epsilon: {format_rounded_down(self.options.epsilon / len(names))}, delta: "
            f"{format_rounded_down(self.options.delta / len(names))}}}"
        )
        decide = self._add_decision("analysts", "who may learn how much; together they share the dataset's budget")
        return ["", f"analysts:  # {decide}", *(f"  {format_scalar(name)}: {{budget: {each}}}" for name in names)]

    # --- tables ------------------------------------------------------------------------------------------------------

    def _write_table(self, table: IntrospectedTable) -> list[str]:
        lines = [f"  {format_scalar(table.name)}:"]
        lines += [f"    {line}" for line in self._write_source(table)]
        lines += [f"    {line}" for line in format_description(table.comment)]
        lines += [f"    {line}" for line in self._write_unit(table)]
        unique = self._write_unique(table)
        lines += [f"    {unique}"] if unique else []
        return [*lines, *(f"    {line}" for line in self._write_columns(table, self._id_columns(table)))]

    def _write_unreachable_table(self, table: IntrospectedTable) -> list[str]:
        """In comments that become a public table when the # are taken away: that is the owner's word."""
        what = f"{table.name} has no way to the unit, and is left out; take the # away only if nothing in it is private"
        block = [
            f"{format_scalar(table.name)}:",
            *(f"  {line}" for line in self._write_source(table)),
            "  public: true",
        ]
        keys = [key for key in table.unique if all(_has_type(table, name) for name in key)]
        if not keys and self.looked is not None and table.name in self.looked.public_keys:
            keys = [(self.looked.public_keys[table.name],)]
        block += [f"  unique: [{', '.join(map(_write_key, keys))}]  # checked when data is registered"] if keys else []
        entries = [write_column_entry(column, ColumnHint()) for column in table.columns if column.type is not None]
        block += ["  columns:", *(f"    {format_scalar(entry.name)}: {entry.text}" for entry in entries)]
        return [f"  # {self._add_decision(f'tables.{table.name}', what)}", *(f"  # {line}" for line in block)]

    def _write_source(self, table: IntrospectedTable) -> list[str]:
        match table.source:
            case EngineTable((_,)):
                return []
            case EngineTable(parts):
                return [f"source: {format_scalar('.'.join(parts))}"]
            case Files(patterns) as files:
                file_path = format_path(self._relative_path(patterns[0]))
                tabs = patterns[0].lower().endswith((".tsv", ".tsv.gz"))
                if files == Files(patterns, files.format, delimiter="\t" if tabs else ","):
                    return [f"source: {file_path}"]
                dialect = [f"path: {file_path}", *(["header: false"] if not files.header else [])]
                dialect += [f"delimiter: {quote_text(files.delimiter)}"] if files.delimiter != "," or tabs else []
                dialect += [f"quote: {quote_text(files.quote)}"] if files.quote != '"' else []
                dialect += [f"escape: {quote_text(files.escape)}"] if files.escape else []
                dialect += [f"encoding: {files.encoding}"] if files.encoding else []
                dialect += ['decimal: ","'] if files.decimal else []
                dialect += [f"skip: {files.skip}"] if files.skip else []
                return [f"source: {{{', '.join(dialect)}}}"]

    def _relative_path(self, file_path: str) -> str:
        if not os.path.isabs(file_path):
            return file_path
        relative = os.path.relpath(file_path, self.folder)
        return file_path if relative.startswith(os.path.join("..", "..", "..")) else relative

    def _write_unit(self, table: IntrospectedTable) -> list[str]:
        if self.unit is None:
            return ["unit: row"]
        if table.name == self.unit.table:
            lines = [f"unit: {format_scalar(self.unit.column)}"]
        else:
            link = self.unit.links_to_unit[table.name]
            lines = [f"unit: {{{format_scalar(link.column)}: {format_scalar(f'{link.target}.{link.key}')}}}"]
            if not link.declared:
                lines[0] += (
                    f"  # {self._add_decision(f'tables.{table.name}.unit', _GUESS_QUESTION.format(link.column))}"
                )
        others = second_unit_columns(self.unit, self.sources.tables, table.name)
        if others:
            what = f"{', '.join(others)} may name a second person, whom rows of this table do not protect"
            lines.append(f"# {self._add_decision(f'tables.{table.name}.unit', what)}")
        return lines

    def _referenced_columns(self, table: IntrospectedTable) -> set[str]:
        """Columns that others' ways arrive at."""
        links_to_unit = self.unit.links_to_unit.values() if self.unit else ()
        return {link.key for link in links_to_unit if link.target == table.name}

    def _id_columns(self, table: IntrospectedTable) -> set[str]:
        if self.unit is None:
            return set()
        own_columns = (
            {self.unit.column} if table.name == self.unit.table else {self.unit.links_to_unit[table.name].column}
        )
        return own_columns | self._referenced_columns(table)

    def _write_unique(self, table: IntrospectedTable) -> str | None:
        keys = [key for key in table.unique if all(_has_type(table, name) for name in key)]
        declared = {key[0] for key in keys if len(key) == 1}
        key = key_column_of(table)
        unique_columns = self._referenced_columns(table)
        if self.unit is not None and table.name == self.unit.table:
            unique_columns.discard(self.unit.column)  # a reference to the unit itself needs no unique key
            refuted = self.looked is not None and self.looked.unit_repeats
            if not refuted and key is not None and key[0] == self.unit.column:
                unique_columns.add(self.unit.column)  # in the table of its own, it saves noise
        guessed = sorted(unique_columns - declared)
        items = [_write_key(key) for key in keys]
        items += [format_scalar(name) for name in guessed]
        seen = self._unit_key_of(table)
        if seen is not None:
            items.append(f"[{', '.join(map(format_scalar, seen))}]")
        if not items:
            return None
        line = f"unique: [{', '.join(items)}]"
        if not guessed and seen is None:
            return line
        questions = [f"no two rows share {' or '.join(guessed)}? guessed from its name"] if guessed else []
        if seen is not None:
            questions.append(f"does no {seen[0]} have two rows of one {seen[1]}? so it is in the data of today")
        what = f"{'; '.join(questions)}; checked when data is registered"
        return f"{line}  # {self._add_decision(f'tables.{table.name}.unique', what)}"

    def _unit_key_of(self, table: IntrospectedTable) -> tuple[str, str] | None:
        if self.looked is None or self.unit is None or table.name not in self.looked.unit_keys:
            return None
        link = self.unit.links_to_unit.get(table.name)
        column = self.unit.column if link is None else link.column
        return column, self.looked.unit_keys[table.name]

    def _write_columns(self, table: IntrospectedTable, ids: set[str]) -> list[str]:
        rows: list[tuple[str, str]] = []
        for column in table.columns:
            if column.type is None:
                what = f"{format_comment(column.spelling)} is no type of dpsql; cast it in a view of the engine"
                rows.append((f"# {format_scalar(column.name)}: {what}", ""))
                continue
            rows.append(self._write_column(table, column, column.name in ids))
        return _align_comments("columns:", rows)

    def _write_column(self, table: IntrospectedTable, column: IntrospectedColumn, is_id: bool) -> tuple[str, str]:
        proposal = None if self.looked is None else self.looked.columns.get((table.name, column.name))
        public_key = any(column.name in key for key in table.unique)
        entry: ColumnEntry = write_column_entry(column, ColumnHint(is_id, public_key, table.checks, proposal))
        what = "; ".join(entry.questions)
        note = self._add_decision(f"tables.{table.name}.{column.name}", what) if what else entry.note
        return f"{format_scalar(entry.name)}: {entry.text}", note


_NEIGHBORS_NOTES = {
    "add_remove": "one unit more or less; how many units there are is protected too",
    "change_one": "one unit's rows replaced; how many units there are is public",
}
_ROW_UNIT_QUESTION = "each row for itself: right only if no two rows are about one person"
_GUESS_QUESTION = "{} guessed from its name: does each row belong to one unit by it?"


def _write_key(key: Sequence[str]) -> str:
    return format_scalar(key[0]) if len(key) == 1 else f"[{', '.join(map(format_scalar, key))}]"


def _has_type(table: IntrospectedTable, name: str) -> bool:
    column = table.find_column(name)
    return column is not None and column.type is not None


def _align_comments(head: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines below a key, with their comments in one column."""
    widest = max((len(text) for text, note in rows if note and len(text) <= 60), default=0)
    lines = [f"  {text}" + (f"{' ' * max(0, widest - len(text))}  # {note}" if note else "") for text, note in rows]
    return [head, *(line.rstrip() for line in lines)]


def _quote_identifier(name: str) -> str:
    return name if name.isidentifier() and name == name.lower() else '"' + name.replace('"', '""') + '"'


def _quote_sql_text(text: str) -> str:
    return text if re.fullmatch(r"[\w.-]+", text) else "'" + text.replace("'", "''") + "'"


def _quote_shell(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
