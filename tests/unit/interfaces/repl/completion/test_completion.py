"""What Tab offers. `|` is the cursor; what is offered first stands first."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsql.base.lexer import quote_name, split_tokens
from dpsql.compiler.parse.parser import parse_query
from dpsql.interfaces.repl.completion import candidates
from dpsql.interfaces.repl.completion.candidates import list_paths, unquote_name
from dpsql.interfaces.repl.completion.complete import CompletionCandidate, CompletionNames, complete
from dpsql.interfaces.repl.completion.keywords import KEYWORDS
from dpsql.interfaces.repl.meta_commands import META_COMMANDS
from dpsql.schema.load import load_schema
from dpsql.session.reflection import ForeignKey, NamedColumn, NamedTable, UniqueKey, reflect_tables
from dpsql.session.sql_reference import named_functions, named_settings, own_functions
from dpsql.types import BIGINT, TEXT
from tests.support.prompt_text import typed

SCHEMA = Path(__file__).parents[5] / "schemas" / "clinic.yaml"
ODD = NamedTable(
    "Odd Table", "public", (NamedColumn("order", TEXT), NamedColumn("it's", TEXT, values=("a'b", "c d")),
                            NamedColumn("level", BIGINT, values=("1", "2"))),
)  # fmt: skip
NAMES = CompletionNames(
    (*reflect_tables(load_schema(SCHEMA)), ODD),
    (*named_functions(), *own_functions([("spread", ["x"])], [("costs", ["ward"]), ("Old One", [])])),
    named_settings(),
    lambda typed: [path for path in ("data/", "out.csv", "over.sql") if path.startswith(typed)],
)


def offered(text, names=NAMES) -> list[CompletionCandidate]:
    cursor = text.index("|")
    return complete(text[:cursor] + text[cursor + 1 :], cursor, names, META_COMMANDS)


def texts(text, kind=None):
    return [one.text for one in offered(text) if kind in (None, one.kind)]


def first(text, count):
    return texts(text)[:count]


VISITS = ["visit_id", "patient_id", "ward", "cost", "at", "nights"]
TABLES = ["patients", "visits", "lab_tests", "wards", '"Odd Table"']


# --- tables ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM |", "select ward from visits v join |", "SELECT * FROM visits, |", "SELECT * FROM (|",
        "SELECT COUNT(*) FROM (visits v JOIN |", "SELECT 1; SELECT * FROM |", "EXPLAIN SELECT a FROM |", "\\d |",
        "SELECT * FROM visits WHERE cost IN (SELECT cost FROM |", "DESCRIBE |", "SHOW COLUMNS FROM |",
        "SELECT * FROM | WHERE cost > 5", "\\explain SELECT * FROM |", "\\copy (SELECT * FROM |",
        "SELECT * FROM visits v LEFT JOIN | ON v.a = b", "SELECT 1 UNION ALL SELECT 2 FROM |",
    ],
)  # fmt: skip
def test_tables(text):
    assert texts(text, "table") == TABLES and first(text, 5) == TABLES


def test_tables_that_answer_to_what_is_typed():
    assert texts("SELECT * FROM v|") == ["visits"]
    assert texts("SELECT * FROM tests|") == ["lab_tests"]  # by a word in it
    assert texts("SELECT * FROM lts|") == ["lab_tests"]  # by its letters
    assert texts('SELECT * FROM "v|') == ['"visits"']
    assert texts("SELECT * FROM public.w|") == ["wards"]
    assert offered("SELECT * FROM w|") == [CompletionCandidate("wards", 14, "wards", "table", "public table")]


def test_common_tables_come_first():
    text = "WITH a AS (SELECT 1), b (x, y) AS (SELECT 1, 2) SELECT * FROM |"
    assert first(text, 3) == ["a", "b", "patients"]
    assert "a" not in texts("WITH a AS (SELECT * FROM |), b AS (SELECT 1) SELECT * FROM a")  # not in itself


# --- columns ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT | FROM visits", "SELECT ward, | FROM visits", "SELECT COUNT(*) FROM visits WHERE |",
        "SELECT COUNT(*) FROM visits WHERE cost > 5 AND |", "SELECT SUM(|) FROM visits", "SELECT SUM(| FROM visits",
        "SELECT COUNT(*) FROM visits GROUP BY |", "SELECT COUNT(*) FROM visits GROUP BY ward HAVING |",
        "SELECT v.| FROM visits v", "SELECT COUNT(*) FILTER (WHERE | FROM visits",
        "SELECT x.| FROM (SELECT * FROM visits) x", "SELECT EXTRACT(year FROM |) FROM visits",
        "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM wards WHERE visits.|",
        "WITH a AS (SELECT | FROM visits", "SELECT CASE WHEN | FROM visits",
        "SELECT COUNT(*) OVER (PARTITION BY | FROM visits",
        "SELECT 1 FROM wards UNION SELECT | FROM visits", "SELECT -| FROM visits", "SELECT cost / | FROM visits",
        "SELECT visits.| FROM visits", "SELECT | FROM public.visits", 'SELECT | FROM "visits"',
    ],
)  # fmt: skip
def test_columns_in_scope(text):
    assert texts(text, "column")[:6] == VISITS and first(text, 6) == VISITS


def test_what_a_column_is():
    (found,) = [one for one in offered("SELECT nights| FROM visits") if one.kind == "column"]
    assert (found.meta, found.start) == ("smallint [0, 14]", 7)
    (unit,) = [one for one in offered("SELECT patient_id| FROM patients") if one.kind == "column"]
    assert unit.meta == "bigint (privacy unit)"
    assert offered("SELECT sex| FROM patients")[0].meta == "text f, m, x"


def test_columns_of_two_tables_are_qualified():
    found = texts("SELECT | FROM visits v JOIN patients p ON v.patient_id = p.patient_id", "column")
    assert "v.patient_id" in found and "p.patient_id" in found and "patient_id" not in found and "cost" in found
    assert texts("SELECT | FROM visits v JOIN patients p ON true", "alias") == ["v", "p"]


def test_columns_of_sub_selects():
    inner = "SELECT ward, cost AS c, count(*), v.at FROM visits v"
    assert texts(f"SELECT x.| FROM ({inner}) AS x") == ["ward", "c", "count", "at"]
    assert texts("WITH a AS (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) SELECT a.| FROM a") == ["ward", "n"]
    assert texts("WITH RECURSIVE a AS (SELECT 1 AS x) SELECT a.| FROM a") == ["x"]
    assert texts("WITH a (x, y) AS (SELECT 1, 2), b AS (SELECT * FROM a) SELECT b.| FROM b") == ["x", "y"]
    assert first("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n|", 1) == ["n"]


def test_outer_columns_in_a_sub_select():
    text = "SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM patients p WHERE |)"
    found = texts(text, "column")
    assert found[:4] == ["patient_id", "birth_year", "sex", "insured"] and "v.cost" in found


def test_without_from_all_columns_that_answer():
    assert "ward" in texts("SELECT wa|") and "birth_year" in texts("SELECT year|", "column")
    assert texts("SELECT |", "column") == []


def test_names_are_quoted_where_they_must_be():
    assert texts('SELECT | FROM "Odd Table"', "column") == ['"order"', '"it\'s"', "level"]
    assert texts('SELECT o.ord| FROM "Odd Table" o') == ['"order"']
    assert texts('SELECT "w| FROM visits') == ['"ward"']


# --- values and keys -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM patients WHERE sex = |", "SELECT COUNT(*) FROM patients p WHERE p.sex <> |",
        "SELECT COUNT(*) FROM patients WHERE sex IN (|", "SELECT COUNT(*) FROM patients WHERE sex IN ('f', |)",
        "SELECT COUNT(*) FROM patients WHERE sex NOT IN (|", "SELECT COUNT(*) FROM patients WHERE sex = '|",
        "SELECT COUNT(*) FROM patients WHERE \"sex\" IN ('f', '|",
        "SELECT COUNT(*) FILTER (WHERE sex = |) FROM patients",
    ],
)  # fmt: skip
def test_declared_values(text):
    assert texts(text, "value") == ["'f'", "'m'", "'x'"] and first(text, 3) == ["'f'", "'m'", "'x'"]


def test_values_are_quoted_right():
    assert texts('SELECT 1 FROM "Odd Table" WHERE "it\'s" = |', "value") == ["'a''b'", "'c d'"]
    assert texts("SELECT 1 FROM \"Odd Table\" WHERE \"it's\" = 'a''|", "value") == ["'a''b'"]
    assert texts('SELECT 1 FROM "Odd Table" WHERE level = |', "value") == ["1", "2"]
    assert texts("SELECT COUNT(*) FROM patients WHERE insured = |", "value") == ["FALSE", "TRUE"]
    assert texts("select count(*) from patients where insured = |", "value") == ["false", "true"]
    assert texts("SELECT COUNT(*) FROM patients WHERE sex = m|", "value") == ["'m'"]


def test_a_quote_that_is_there_is_kept():
    assert texts("SELECT COUNT(*) FROM patients WHERE sex = '|'") == ["'f", "'m", "'x"]


@pytest.mark.parametrize(
    "text",
    ["SELECT 'a|' FROM visits", "SELECT * FROM visits WHERE ward = 'e|", "-- SELECT |", "/* FROM |", "/* | */ SELECT",
     "SELECT 12|", "SELECT $1|", "SELECT COUNT(*) AS |", "SELECT ward FROM visits LIMIT |", "SELECT $$ FROM |",
     "SELECT 1 FROM patients WHERE sex = 'f'|", "BEGIN |", "SELECT unknown.| FROM visits", "\\nothing |",
     "SELECT 'done'|", 'SELECT "ward"| FROM visits'],
)  # fmt: skip
def test_nothing_is_offered(text):
    assert offered(text) == []


def test_joins_by_declared_keys():
    assert first("SELECT 1 FROM visits v JOIN patients p ON |", 1) == ["p.patient_id = v.patient_id"]
    assert first("SELECT 1 FROM patients JOIN visits ON |", 1) == ["visits.patient_id = patients.patient_id"]
    assert first("SELECT 1 FROM visits v JOIN lab_tests l ON | WHERE 1 = 1", 1) == ["l.visit_id = v.visit_id"]
    assert first("SELECT 1 FROM visits v JOIN wards w ON |", 1) == ["w.ward = v.ward"]  # unique in wards
    assert texts("SELECT 1 FROM visits v JOIN wards w USING (|") == ["ward"]
    assert texts("SELECT 1 FROM visits JOIN visits v2 ON |", "join") == [
        "v2.patient_id = visits.patient_id", "v2.visit_id = visits.visit_id"
    ]  # fmt: skip


def test_keys_join_whichever_table_comes_first():
    def table(name, column, *foreign):
        return NamedTable(name, "private", (NamedColumn(column, BIGINT),), foreign=foreign)

    stays = table("stays", "who", ForeignKey("f", ("who",), "people", ("id",)))
    names = CompletionNames(
        (table("people", "id"), stays, table("calls", "by", ForeignKey("g", ("by",), "people", ("id",))))
    )

    def joined(text):
        return [one.text for one in offered(f"SELECT 1 FROM {text} ON |", names) if one.kind == "join"]

    assert joined("people p JOIN stays s") == ["s.who = p.id"] and joined("stays s JOIN people p") == ["p.id = s.who"]
    assert joined("stays s JOIN calls c") == ["c.by = s.who"]
    assert joined("people p JOIN stays s ON s.who = p.id JOIN calls c") == ["c.by = p.id", "c.by = s.who"]


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("|", ["SELECT", "WITH"]), ("sel|", ["select"]), ("Sel|", ["SELECT"]), ("EXPLAIN |", ["SELECT", "WITH"]),
        ("SELECT ward |", ["AS", "FROM"]), ("SELECT * FROM visits |", ["WHERE", "JOIN"]),
        ("SELECT * FROM visits v JOIN patients p |", ["ON", "USING"]), ("SELECT 1 FROM visits GROUP |", ["BY"]),
        ("SELECT * FROM visits WHERE ward |", ["AND", "OR"]), ("SELECT * FROM visits LEFT |", ["JOIN"]),
        ("SELECT * FROM visits ORDER BY ward |", ["ASC", "DESC"]), ("SELECT * FROM visits WHERE ward IS |", ["NULL"]),
        ("SELECT COUNT(*) FROM visits UNION |", ["SELECT", "ALL"]),
        ("SELECT COUNT(*) FROM visits UNION ALL |", ["SELECT"]),
        ("WITH a AS (|", ["SELECT"]), ("WITH a |", ["AS"]), ("WITH a AS (SELECT 1) |", ["SELECT"]),
        ("SELECT CASE WHEN cost > 5 | FROM visits", ["WHEN", "THEN"]), ("SELECT COUNT(*) |", ["FILTER", "OVER"]),
        ("select ward from visits wh|", ["where"]), ("SELECT ward FROM visits wh|", ["where"]),
        ("SELECT SUM(cost |) FROM visits", ["AND", "OR"]), ("SELECT 1 FROM visits WHERE at |", ["AND", "OR"]),
        ("WITH |", ["RECURSIVE"]),
        ("cre|", ["create"]), ("DR|", ["DROP"]), ("CREATE |", ["SYNTHETIC TABLE", "MODEL", "OR REPLACE"]),
        ("CREATE SYN|", ["SYNTHETIC TABLE"]), ("CREATE OR REPLACE MO|", ["MODEL"]), ("DROP MODEL |", ["IF EXISTS"]),
        ("CREATE SYNTHETIC TABLE v |", ["AS"]), ("CREATE SYNTHETIC TABLE v AS |", ["SELECT", "WITH"]),
        ("CREATE SYNTHETIC TABLE v AS SELECT ward |", ["AS", "FROM"]),
        ("CREATE MODEL m AS |", ["LOGISTIC REGRESSION ON", "LINEAR REGRESSION ON"]),
        ("DEC|", ["DECLARE"]), ("DECLARE busy |", ["THRESHOLD", "HOLDOUT", "CURSOR FOR"]),
        ("DECLARE busy THRESHOLD 10 |", ["WITH"]), ("DECLARE h HOLDOUT |", ["WITH"]),
        ("ASK busy |", ["SELECT"]), ("EXPLAIN AS|", ["ASK"]), ("DECLARE |", []), ("CLOSE |", []),
        ("CREATE MODEL m AS LINEAR REGRESSION ON cost |", ["AS", "USING"]),
        ("CREATE MODEL m AS LINEAR REGRESSION ON cost USING nights |", ["AS", "FROM"]),
    ],
)  # fmt: skip
def test_keywords(text, words):
    assert texts(text, "keyword")[: len(words)] == words


def test_functions():
    assert first("SELECT cou|", 2) == ["count(", "count_if("]
    assert "count(" not in texts("SELECT 1 FROM visits WHERE |") and "lower(" in texts("SELECT 1 FROM visits WHERE |")
    (found,) = [one for one in offered("SELECT median|") if one.kind == "function"]
    assert (found.display, found.meta) == ("median()", "median(cost)")


def test_models():
    assert "predict(" in texts("SELECT pre|") and "accuracy(" in texts("SELECT acc|")
    assert texts("CREATE MODEL m AS LINEAR REGRESSION ON cos|") == ["cost"]
    assert first("ASK busy SELECT COUNT(*) FROM |", 2) == TABLES[:2] and texts("SHOW THR|") == ["THRESHOLDS"]
    assert texts("ASK busy SELECT COUNT(*) FROM visits WHERE nig|") == ["nights"]
    assert texts("EXPLAIN ASK busy SELECT COUNT(*) FROM visits WHERE nig|") == ["nights"]
    assert first("CREATE MODEL m AS LINEAR REGRESSION ON cost USING nights FROM |", 2) == TABLES[:2]
    assert {"SYNTHETIC TABLES", "MODELS"} <= set(texts("SHOW |"))


def test_settings():
    assert texts("SET eps|")[0] == "epsilon" and texts("SET contributions.|") == ["rows", "groups"]
    assert texts("SET noise = |") == ["auto", "laplace", "gaussian", "DEFAULT"] == texts("set noise to |")
    assert texts("SET LOCAL noise = g|") == ["gaussian"]
    assert first("SHOW |", 2) == ["BUDGET", "TABLES"] and texts("RESET eps|")[0] == "epsilon"
    assert texts("SET epsilon |") == ["TO"]


# --- commands --------------------------------------------------------------------------------------------------------


def test_commands():
    assert texts("\\|")[:3] == ["\\g", "\\gx", "\\e"] and len(texts("\\|")) == len(META_COMMANDS)
    assert offered("\\d|")[0] == CompletionCandidate(
        "\\d", 0, "\\d", "command", next(c.help for c in META_COMMANDS if c.name == "d")
    )
    assert texts("SELECT 1 \\ch|") == ["\\chart"]
    assert texts("\\x |") == ["on", "off", "auto"] and texts("\\chart b|") == ["bars"] and texts("\\x on |") == []
    assert texts("\\d wa|") == ["wards"] and texts("\\set noise |") == ["auto", "laplace", "gaussian"]
    assert texts("\\i o|") == ["out.csv", "over.sql"] == texts("\\o o|")
    assert texts("\\copy |") == ["to"] and texts("\\copy (SELECT 1) to o|") == ["out.csv", "over.sql"]
    assert texts("\\copy to out.csv |") == ["csv", "json", "parquet", "errors"]
    assert texts("\\df medi|") == ["median"] and "epsilon" in texts("\\unset |")


def test_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name in ("a.sql", "data/b.sql", ".hidden"):
        (tmp_path / name).touch()
    assert list_paths("") == ["a.sql", "data/"] and list_paths("data/") == ["data/b.sql"]
    assert list_paths(".h") == [".hidden"] and list_paths("none/") == []


# --- laws ------------------------------------------------------------------------------------------------------------


STATEMENTS = [
    "SELECT v.ward, COUNT(*) AS n FROM visits v JOIN patients p ON v.patient_id = p.patient_id "
    "WHERE p.sex IN ('f', 'm') GROUP BY v.ward HAVING COUNT(*) > 5 ORDER BY n DESC LIMIT 3;",
    "WITH a (x) AS (SELECT 1), b AS (SELECT * FROM a) SELECT CASE WHEN x > 1 THEN 'y' END FROM b "
    "UNION ALL SELECT (2); \\d v",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_position_of_a_statement(statement):
    """Whatever is cut away behind the cursor: what is offered begins before it, on one line, once."""
    for cursor in range(len(statement) + 1):
        for text in (statement, statement[:cursor]):
            found = complete(text, cursor, NAMES, META_COMMANDS)
            assert all(one.start <= cursor and "\n" not in one.text for one in found)
            assert len({(one.kind, one.text) for one in found}) == len(found)


@settings(deadline=None)
@given(typed, st.data())
def test_any_text(text, data):
    cursor = data.draw(st.integers(0, len(text)))
    complete(text, cursor, NAMES, META_COMMANDS)


@given(st.text(min_size=1).filter(lambda name: "\x00" not in name))
def test_names_are_read_back(name):
    assert unquote_name(quote_name(name)) == name == unquote_name(quote_name(name, always=True))
    assert len(split_tokens(quote_name(name))) == 1


def test_deep_parentheses():
    assert offered("SELECT " + "(" * 3000 + "|") is not None
    assert offered("SELECT * FROM " + "(SELECT * FROM " * 200 + "|") is not None


def test_work_does_not_grow_with_the_schema(monkeypatch):
    """200 tables of 50 columns: only names that can stand there are held against what is typed."""
    columns = [tuple(NamedColumn(f"column_{at}_{n}", BIGINT) for n in range(50)) for at in range(200)]
    foreign = (ForeignKey("f", ("column_1_0",), "table_0", ("column_0_0",)),)
    tables = tuple(
        NamedTable(
            f"table_{at}", "private", columns[at], (UniqueKey("u", (f"column_{at}_0",)),), foreign if at == 1 else ()
        )
        for at in range(200)
    )
    names = CompletionNames(tables, named_functions(), named_settings())
    asked = []
    real = candidates.rank_match
    monkeypatch.setattr(candidates, "rank_match", lambda *args: asked.append(args) or real(*args))

    def work(text):
        asked.clear()
        offered(text, names)
        return len(asked)

    others = len(names.functions) + 60  # functions and keywords
    assert work("SELECT * FROM |") == 200
    assert work("SELECT t.| FROM table_7 t") == 50
    assert work("SELECT | FROM table_7 t JOIN table_8 u ON true") <= 102 + others
    assert work("SELECT column_199_4|") <= 11 + others  # of 10,000
    assert (
        work("SELECT col|") <= candidates.MAX_CANDIDATES + others
        and len(offered("SELECT col|", names)) == candidates.MAX_CANDIDATES
    )
    assert work("SELECT 1 FROM table_0 JOIN table_1 ON |") <= 103 + others


def test_a_word_that_is_offered_as_a_name_is_read_as_one():
    for word in sorted(KEYWORDS | {"at", "day", "date", "rows", "first", "value", "user"}):
        sql = f"SELECT COUNT({quote_name(word)}) FROM t GROUP BY {quote_name(word)}"
        assert parse_query(sql) is not None, word


# --- what an account makes -------------------------------------------------------------------------------------------

LIKE = NamedTable("like", "view", (NamedColumn("ward", TEXT),), description="synthetic rows: made by CREATE …")
OWNED = CompletionNames((*NAMES.tables, LIKE), NAMES.functions, NAMES.settings)
MODEL = "CREATE MODEL m AS LINEAR REGRESSION ON cost USING nights FROM visits"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (|",
         ["epsilon", "delta", "noise", "max_rows_contributed", "max_groups_contributed", "method", "rounds", "bins",
          "rows"]),
        ("EXPLAIN CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (epsilon = 1, met|", ["method"]),
        ("CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (method = |",
         ["mwem", "marginals", "independent", "auto"]),
        ("CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (method = 'mw|", ["'mwem'"]),
        ("CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (epsilon = 1 |", []),
        ("CREATE SYNTHETIC TABLE v AS SELECT ward FROM visits WITH (epsilon = 1) |", []),
        (f"{MODEL} WITH (method = |", ["moments"]), (f"{MODEL} WITH (epsilon = 1) |", []),
        (f"{MODEL.replace('LINEAR', 'LOGISTIC')} WITH (method = |", ["objective", "output"]),
        ("CREATE MODEL m AS LINEAR REGRESSION ON cost USING nights FROM visits WITH (la|", ["lambda"]),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_err|", ["max_error"]),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (noise = |", ["auto", "laplace", "gaussian"]),
        ("SHOW MODEL |", ["costs", '"Old One"']), ("DROP MODEL |", ["costs", '"Old One"', "IF EXISTS"]),
        ("DROP MODEL IF EXISTS |", ["costs", '"Old One"']), ("DROP MODEL costs |", []),
        ("SHOW SYNTHETIC TABLE |", ['"like"']), ("DROP SYNTHETIC TABLE |", ['"like"', "IF EXISTS"]),
        ("DROP SYNTHETIC |", ["TABLE"]), ("DROP |", ["SYNTHETIC TABLE", "MODEL"]),
        ("SELECT PREDICT(|", ["costs", '"Old One"']), ("SELECT ACCURACY(co|", ["costs"]),
        ("SELECT BLOCKWISE(spre|", ["spread("]), ("SELECT BLOCKWISE(ma|", ["mad(", "max("]),
    ],
)  # fmt: skip
def test_options_and_own_objects(text, found):
    assert [one.display.removesuffix(")") if one.kind == "function" else one.display
            for one in offered(text, OWNED)][: len(found) or None] == found  # fmt: skip


def test_an_option_is_inserted_with_its_sign():
    assert texts("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (eps|") == ["epsilon = "]


def test_statistics_are_for_blocks_and_models_for_predictions():
    assert "mad(" not in texts("SELECT ma|") and "spread(" not in texts("SELECT spr| FROM visits")
    assert "costs" not in texts("SELECT cos|") and "WITH" in texts("CREATE SYNTHETIC TABLE v AS SELECT a FROM visits |")
    assert "WITH" not in texts("SELECT a FROM visits |")
