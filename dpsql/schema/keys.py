"""Every key of the schema format, as data: name, what it holds, whether it must be there, what it means.

Law: the loader, the JSON Schema and the test of docs/schema.md read this table and no other.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpsql.schema.model import SNAP_PATTERN


@dataclass(frozen=True)
class Text:
    """Any scalar, by its text. `pattern` and `due` say what it looks like; `secret` text is never quoted back."""

    due: str = "text"
    pattern: str | None = None
    secret: bool = False


@dataclass(frozen=True)
class Flag:
    """A key whose value is true or false."""


@dataclass(frozen=True)
class OneOf:
    options: tuple[str, ...]


@dataclass(frozen=True)
class Number:
    above: Fraction | None = None
    at_least: Fraction | None = None
    below: Fraction | None = None
    at_most: Fraction | None = None


@dataclass(frozen=True)
class Integer:
    at_least: int
    at_most: int


@dataclass(frozen=True)
class ListOf:
    item: ValueShape
    least: int = 1
    most: int | None = None


@dataclass(frozen=True)
class MapOf:
    """A mapping whose keys are the owner's own names."""

    what: str  # "table"
    item: ValueShape
    pattern: str
    due: str
    most: int | None = None


@dataclass(frozen=True)
class Record:
    """A mapping whose keys are given here; what stands in the place of a `secret` one is never quoted back."""

    keys: tuple[Key, ...]
    example: str
    secret: bool = False


@dataclass(frozen=True)
class Either:
    """One of several, told apart by being text (any, or certain words), a list or a mapping."""

    shapes: tuple[ValueShape, ...]


ValueShape = Text | Flag | OneOf | Number | Integer | ListOf | MapOf | Record | Either


@dataclass(frozen=True)
class Key:
    name: str
    shape: ValueShape
    doc: str
    required: bool = False
    default: str | None = None
    hint: str | None = None  # what to write where it is missing or wrong


MAX_EPSILON = 10**6  # far past any meaning; it keeps a slip of the pen from being read as a budget
MAX_CONTRIBUTIONS = 1 << 20
MAX_GROUP_SIZE = 1000
MAX_UNITS = 10**12
MAX_TEXT = 1 << 20
MAX_KEY_COLUMNS = 8
MAX_THREADS = 1024
MAX_SECONDS = 7 * 24 * 3600
MAX_FAILURES = 1000
MAX_RUNNING = 1000
MAX_LATENCY = 3600
MAX_SKIP = 1000

MAX_NAME = 255
NAME = r'[^".\s\x00-\x1f]([^".\x00-\x1f]{0,253}[^".\s\x00-\x1f])?'
COLUMN_NAME = r'[^"\s\x00-\x1f]([^"\x00-\x1f]{0,253}[^"\s\x00-\x1f])?'
ANALYST_NAME = r"[A-Za-z_][A-Za-z0-9_.@-]{0,62}"
SETTING_NAME = r"[A-Za-z_][A-Za-z0-9_.]{0,62}"
ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_BASE64 = r"[A-Za-z0-9+/]+={0,2}"
DESCRIPTION = r"[^\x00-\x08\x0b-\x1f\x7f]{1,2000}"
TIME_FORMAT = r"(?=.*%)([^%\x00-\x1f]|%-?[YymdHMSIfbBpj]){1,64}"
MEMORY = r"[1-9][0-9]{0,5} ?[KMGT]i?B"
VERIFIER = rf"([Ss][Cc][Rr][Aa][Mm]-[Ss][Hh][Aa]-256)\$[0-9]{{1,9}}:{_BASE64}\${_BASE64}:{_BASE64}"

_EPSILON = Number(above=Fraction(0), at_most=Fraction(MAX_EPSILON))
_DELTA = Number(at_least=Fraction(0), below=Fraction(1))
_EPSILON_DOC = "The epsilon of (epsilon, delta)-differential privacy; read exactly, so 0.1 is one tenth."
_DELTA_DOC = "The delta; 0 means pure differential privacy: Laplace noise, and no keys that are not public."

BUDGET = Record(
    (
        Key("epsilon", _EPSILON, _EPSILON_DOC, required=True, hint="Write for example epsilon: 8."),
        Key("delta", _DELTA, _DELTA_DOC, required=True,
            hint="Write for example delta: 1e-7, or delta: 0 for pure differential privacy."),
    ),
    example="{epsilon: 8, delta: 1e-7}",
)  # fmt: skip

QUERY = Record(
    (
        Key("epsilon", _EPSILON, _EPSILON_DOC, default="a 20th of the budget's"),
        Key("delta", _DELTA, _DELTA_DOC, default="a 100th of the budget's"),
    ),
    example="{epsilon: 0.1, delta: 1e-9}",
)

CONTRIBUTIONS = Record(
    (
        Key("rows", Integer(1, MAX_CONTRIBUTIONS), "A unit counts like at most so many rows; it is scaled down as a "
            "whole, no row is dropped.", default="chosen for each answer, from a noisy histogram of units"),
        Key("groups", Integer(1, MAX_CONTRIBUTIONS), "A unit helps to reveal at most so many unknown keys.",
            default="chosen for each answer, from a noisy histogram of units"),
    ),
    example="{rows: 20, groups: 50}",
)  # fmt: skip

LARGEST_QUERY = Record(
    (
        Key("epsilon", _EPSILON, _EPSILON_DOC, default="the budget's"),
        Key("delta", _DELTA, _DELTA_DOC, default="the budget's"),
    ),
    example="{epsilon: 0.5, delta: 1e-9}",
)

_POLICY = (
    Key("composition", OneOf(("zcdp", "basic", "advanced")), "How charges add up: as concentrated losses (zcdp), as "
        "sums of epsilons and deltas (basic), or by advanced composition. Pure losses may always add up as epsilons.",
        default="zcdp; for analysts and groups that of privacy"),
    Key("largest_query", LARGEST_QUERY, "The most that one statement may ask for.", default="none but the budget",
        hint="Write for example largest_query: {epsilon: 0.5}."),
    Key("expires", Text("a date such as 2027-01-01", r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), "The first day, in UTC, on which "
        "the account may ask no more.", default="never", hint="Write for example expires: 2027-01-01."),
)  # fmt: skip
_PARENT = Key("parent", Text("the name of a group"), "The group that pays with it, from a budget that its members "
              "share. What was paid before joining is charged to the group then.", default="the dataset")  # fmt: skip

PRIVACY = Record(
    (
        Key("neighbors", OneOf(("add_remove", "change_one")), "What differs between neighboring databases: one unit "
            "more or less (add_remove), or one unit's rows replaced (change_one: the number of units is public).",
            default="add_remove"),
        Key("unit", Text("a column written table.column, or row"), "Whom we protect: a column, or each row on its own.",
            required=True, hint="Write for example unit: patients.patient_id, or unit: row."),
        Key("budget", BUDGET, "The most that all analysts together may learn, over the lifetime of the ledger.",
            required=True, hint="Write for example budget: {epsilon: 8, delta: 1e-7}."),
        Key("query", QUERY, "What a statement may spend unless it says otherwise.",
            default="epsilon a 20th and delta a 100th of the budget's"),
        Key("contributions", Either((OneOf(("auto",)), CONTRIBUTIONS)), "The most that one unit may contribute to an "
            "answer: auto, or caps.", default="auto", hint="Write contributions: auto, or {rows: 20, groups: 50}."),
        Key("units", Integer(1, MAX_UNITS), "About how many units there are: an order of magnitude that everyone may "
            "know. It makes automatic contributions more accurate.", default="not said"),
        Key("group_size", Integer(1, MAX_GROUP_SIZE), "Protect every group of so many units at once.", default="1"),
        *_POLICY,
    ),
    example="{unit: patients.patient_id, budget: {epsilon: 8, delta: 1e-7}}",
)  # fmt: skip

ANALYST = Record(
    (
        Key("budget", BUDGET, "The most that this analyst may learn.", required=True,
            hint="Write for example budget: {epsilon: 2, delta: 1e-8}."),
        _PARENT,
        *_POLICY,
        Key("password", Text("a SCRAM-SHA-256 verifier", VERIFIER, secret=True), "A SCRAM-SHA-256 verifier as "
            "PostgreSQL stores it; never the password itself.", default="none: in-process connections only",
            hint="Make one with `dpsql user add`, or name a variable with password_env."),
        Key("password_env", Text("the name of an environment variable", ENV_NAME, secret=True), "The environment "
            "variable that holds the password when the server starts.", default="none"),
        Key("settings", MapOf("setting", Text("a value, as in SQL's SET"), SETTING_NAME, "the name of a setting", 50),
            "What holds for the analyst's connections unless they set it themselves.", default="none",
            hint="Write for example settings: {epsilon: 0.2}."),
        Key("may_act_for", ListOf(Text("the name of an analyst")), "Analysts in whose place it may ask, by SET ROLE: "
            "they pay and not it.", default="none", hint="Write for example may_act_for: [ana]."),
    ),
    example="{budget: {epsilon: 2, delta: 1e-8}}",
    secret=True,
)  # fmt: skip

GROUP = Record(
    (
        Key("budget", BUDGET, "The most that all members together may learn.", required=True,
            hint="Write for example budget: {epsilon: 4, delta: 1e-8}."),
        _PARENT,
        *_POLICY,
    ),
    example="{budget: {epsilon: 4, delta: 1e-8}}",
)  # fmt: skip

LIMITS = Record(
    (
        Key("memory", Text("a size such as 4GB", MEMORY), "The memory of the engine; what does not fit is spilled to "
            "disk.", default="80 % of the machine's", hint="Write for example memory: 4GB."),
        Key("threads", Integer(1, MAX_THREADS), "The threads of the engine.", default="one for each core"),
        Key("seconds", Integer(1, MAX_SECONDS), "The time of one run of the engine; one that takes longer is stopped, "
            "and counts as a failure.", default="600"),
        Key("failures", Integer(1, MAX_FAILURES), "Failed runs that suspend an account until the owner resumes it; ten "
            "times as many, of all accounts, suspend the dataset.", default="3"),
        Key("min_latency", Number(at_least=Fraction(0), below=Fraction(MAX_LATENCY)), "Seconds: a run of the engine is "
            "seen to end at a multiple of it, so that its time tells less of the rows; 0 is as soon as it ends.",
            default="0", hint="Write for example min_latency: 0.5."),
        Key("running", Integer(1, MAX_RUNNING), "Runs of the engine that one account may have under way in a process; "
            "further ones wait for their turn.", default="8"),
    ),
    example="{memory: 4GB, seconds: 600}",
)  # fmt: skip

ANSWERS = Record(
    (
        Key(
            "retention",
            Text("a span of days or weeks", r"[1-9][0-9]{0,4} (days?|weeks?)"),
            "How long after its charge an answer about an older data version is kept.",
            default="for ever",
            hint="Write for example retention: 365 days.",
        ),
        Key(
            "refresh",
            Text("minutes or hours that divide a day, days or weeks", SNAP_PATTERN),
            "The schedule by which the "
            "data as it is becomes the next version, without the owner's act; whether it has changed does not matter.",
            default="none: dpsql data changed",
            hint="Write for example refresh: 1 day.",
        ),
    ),
    example="{retention: 365 days, refresh: 1 day}",
)

_DESCRIPTION = Key("description", Text("a sentence or two", DESCRIPTION), "What it is, for those who ask: it is shown "
                   "as a comment, and changes neither answers nor what they cost.", default="none",
                   hint="Write for example description: Stays on a ward, one row each.")  # fmt: skip

_PREVIEW = OneOf(("refuse", "dummy"))

ENCODINGS = ("utf-8", "windows-1252", "latin-1", "utf-16")

_ONE_CHARACTER = Text("one character", r"[^\r\n]")

CSV_SOURCE = Record(
    (
        Key("path", Text("the path of .csv files"), "The CSV files (.csv, .tsv, or packed: .csv.gz): a path or a glob.",
            required=True, hint="Write for example source: {path: data/visits.csv, delimiter: \";\"}."),
        Key("header", Flag(), "Whether the first line names the columns; without it they stand in declared order.",
            default="true"),
        Key("delimiter", _ONE_CHARACTER, "What stands between two fields.", default="\",\"; a tab for .tsv"),
        Key("quote", Text("one character, or nothing", r"[^\r\n]?"), "What encloses a field that holds the delimiter.",
            default="'\"'"),
        Key("null", Text("text of one line", r"[^\r\n]{0,64}"), "The unquoted text that stands for NULL.",
            default="\"\", the empty field"),
        Key("escape", _ONE_CHARACTER, "What stands before a quote that is part of a field.", default="the quote"),
        Key("encoding", OneOf(ENCODINGS), "How characters are written; a file may be packed, too (.csv.gz).",
            default="utf-8"),
        Key("decimal", OneOf((".", ",")), "What stands before the decimals of a number.", default="\".\""),
        Key("skip", Integer(0, MAX_SKIP), "Lines to leave out at the top, before the header.", default="0"),
    ),
    example="{path: data/visits.csv, delimiter: \";\", null: NA}",
)  # fmt: skip

RANDOMIZED = Record(
    (
        Key("epsilon", _EPSILON, "The epsilon with which each answer was randomized on its own; the coin-flip survey "
            "has that of ln 3, 1.0986.", required=True, hint="Write for example epsilon: 1.0986."),
        Key("values", ListOf(Text("a value of the column's type"), least=2), "All answers that there are; one that was "
            "not kept became each of the others equally often.", required=True,
            hint="Write for example values: [yes, no]."),
    ),
    example="{epsilon: 1.0986, values: [yes, no]}",
)  # fmt: skip

COLUMN = Record(
    (
        Key(
            "type",
            Text("a type"),
            "The SQL type: boolean, smallint, integer, bigint, hugeint, decimal(p,s), real, "
            "double, text, date, timestamp, timestamptz, time, interval or uuid.",
            required=True,
            hint="Write for example type: bigint.",
        ),
        Key(
            "bounds",
            ListOf(Text("a number, date or timestamp"), 2, 2),
            "The range of a number, date or timestamp; values beyond it are clipped into it.",
            default="none: sums are answered with automatic contributions, else they need CLIP(x, low, high)",
            hint="Write for example bounds: [0, 5000].",
        ),
        Key(
            "values",
            ListOf(Text("a value of the column's type")),
            "All values that there are, known to everyone: they are public groups, and other values become NULL.",
            default="none: keys are found by partition selection; booleans have both",
            hint="Write for example values: [f, m, x].",
        ),
        Key(
            "nullable",
            Flag(),
            "Whether NULL is one of the public groups. It is not a promise about the data.",
            default="false",
        ),
        Key(
            "grid",
            Number(above=Fraction(0)),
            "The step to which numbers are rounded before they are summed.",
            default="picked for each query",
            hint="Write for example grid: 0.01.",
        ),
        Key(
            "format",
            Text("a format of dates such as %d.%m.%Y", TIME_FORMAT),
            "How dates or timestamps are written in a text file: %Y %y years, %m months, %b %B their names, %d days, "
            "%H %I %p hours, %M minutes, %S seconds.",
            default="2024-12-31, and 2024-12-31 23:59:59",
            hint="Write for example format: %d.%m.%Y in quotes.",
        ),
        Key("max_length", Integer(1, MAX_TEXT), "Text of more characters becomes NULL.", default="1024"),
        Key(
            "snap",
            Text("minutes or hours that divide a day, days or weeks", SNAP_PATTERN),
            "The grid to which times are "
            "rounded down that statements compare with the column, so that dashboards which send the current time ask "
            "the same question again.",
            default="none: times are compared as they are",
            hint="Write for example snap: 1 hour, snap: 15 minutes or snap: 1 day.",
        ),
        Key(
            "randomized",
            RANDOMIZED,
            "How the answers in it were randomized before they were recorded (randomized "
            "response): counts are debiased by it. It lowers neither charges nor noise.",
            default="none: values are what they say",
            hint="Write for example randomized: {epsilon: 1.0986, values: [yes, no]}.",
        ),
        Key(
            "determines_unit",
            Flag(),
            "true: rows that share a value of it belong to one unit, as the lines of an order do; checked when data is "
            "registered. Joins, EXISTS and IN by it are then of one unit.",
            default="false",
        ),
        _DESCRIPTION,
    ),
    example="{type: bigint}",
)

_COLUMNS = MapOf("column", COLUMN, COLUMN_NAME, "a column name: printable text without double quotes")

TABLE = Record(
    (
        Key("source", Either((Text("a path or a table's name"), CSV_SOURCE)), "Where the rows are: a path or glob of "
            ".parquet, .csv or .json files, or a table of the engine; a mapping states the dialect of CSV files.",
            default="the engine's table of the same name"),
        Key("unit", Either((Text("row or the name of a column"), MapOf("column", Text("a key written table.column"),
            COLUMN_NAME, "a column name", most=MAX_KEY_COLUMNS))), "Which unit a row belongs to: a column that is the "
            "unit, an entry {column: table.key} that leads to it (several, if together they refer to one key), or row.",
            hint="Write for example unit: patient_id, unit: {patient_id: patients.patient_id}, unit: {ticket: "
            "sales.ticket, item: sales.item}, unit: row, or public: true."),
        Key("public", Flag(), "true: the table holds nothing private, and is read as it is.", default="false"),
        Key("unique", ListOf(Either((Text("the name of a column"), ListOf(Text("the name of a column")))), 1),
            "Columns, or lists of columns, of which no two rows share a value; checked when data is registered.",
            default="none", hint="Write for example unique: [visit_id], or unique: [[ward, day]]."),
        Key("columns", _COLUMNS, "The columns that may be asked for; others do not exist.", required=True,
            hint="Write for example columns: {patient_id: {type: bigint}}."),
        Key("preview", _PREVIEW, "What a statement gets that asks for single rows of the table.",
            default="that of the schema", hint="Write for example preview: dummy."),
        _DESCRIPTION,
    ),
    example="{unit: patient_id, columns: {patient_id: {type: bigint}}}",
)  # fmt: skip

VIEW = Record(
    (
        Key("sql", Text("a SELECT statement"), "The query.", required=True,
            hint="Write for example sql: SELECT * FROM visits WHERE at >= '2024-01-01'."),
        _DESCRIPTION,
    ),
    example="{sql: SELECT * FROM visits, description: All visits}",
)  # fmt: skip

STATISTIC = Record(
    (
        Key("of", ListOf(Text("an argument's name", ENV_NAME), 1, 8), "The names of its arguments.", required=True,
            hint="Write for example of: [x]."),
        Key("sql", Text("an expression over aggregates"), "An expression over aggregates of the arguments.",
            required=True, hint="Write for example sql: quantile_disc(x, 0.9) - quantile_disc(x, 0.1)."),
    ),
    example="{of: [x], sql: \"quantile_disc(x, 0.9) - quantile_disc(x, 0.1)\"}",
)  # fmt: skip

SCHEMA = Record(
    (
        Key("dpsql", OneOf(("1",)), "The version of this format.", required=True, hint="Write dpsql: 1."),
        Key("engine", Text("a URL like duckdb:///file.duckdb"), "The database that holds the tables: duckdb:///path, "
            "or duckdb:// where all sources are files. ${NAME} is replaced by the environment variable.",
            default="duckdb://"),
        Key("ledger", Text("a URL like sqlite:///file.ledger"), "Where losses and answers are recorded: sqlite:///path,"
            " or postgresql://user@host/database?schema=name for proxies on several machines."
            " ${NAME} is replaced by the environment variable.", default="beside the schema: <schema's name>.ledger"),
        Key("privacy", PRIVACY, "What is protected, and how well.", required=True,
            hint="Write for example privacy: {unit: patients.patient_id, budget: {epsilon: 8, delta: 1e-7}}."),
        Key("limits", LIMITS, "What the engine may use, and how many failures are borne.", default="see there"),
        Key("answers", ANSWERS, "How long answers are kept, and how often the data is read anew.", default="see there"),
        Key("analysts", MapOf("analyst", ANALYST, ANALYST_NAME, "an analyst's name: letters, digits and _ . @ -, at "
            "most 63"), "Who may ask, each with a budget of their own. Where there are none, whoever connects has the "
            "dataset's budget.", default="none"),
        Key("groups", MapOf("group", GROUP, ANALYST_NAME, "a group's name: letters, digits and _ . @ -, at most 63"),
            "Groups of analysts, each with a budget that its members share; an analyst names hers with parent.",
            default="none"),
        Key("tables", MapOf("table", TABLE, NAME, "a table name: printable text without dots and double quotes"),
            "The tables; one that is not listed does not exist.", required=True,
            hint="Write for example tables: {patients: {unit: patient_id, columns: {patient_id: {type: bigint}}}}."),
        Key("views", MapOf("view", Either((Text("a SELECT statement"), VIEW)), NAME, "a view's name: printable text "
            "without dots and double quotes"), "Named queries over the tables, which analysts read like tables.",
            default="none", hint="Write for example views: {recent: SELECT * FROM visits WHERE at >= '2024-01-01'}."),
        Key("statistics", MapOf("statistic", STATISTIC, ENV_NAME, "a statistic's name: letters, digits and _"),
            "Named statistics for BLOCKWISE, each an expression over aggregates.", default="none",
            hint="Write for example statistics: {spread: {of: [x], sql: max(x) - min(x)}}."),
        Key("preview", _PREVIEW, "What a statement gets that asks for single private rows, as BI tools preview a "
            "table: an error (refuse), or rows that are made up from this schema and never from data (dummy).",
            default="refuse", hint="Write for example preview: dummy."),
        _DESCRIPTION,
    ),
    example="dpsql: 1",
)  # fmt: skip
