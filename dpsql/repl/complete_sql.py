"""Candidates within a statement: which names, values and words can come next."""

from __future__ import annotations

from collections.abc import Sequence

from dpsql.lex import Kind, Token
from dpsql.quoting import quoted
from dpsql.repl.around import Around, look_around
from dpsql.repl.complete_made import (
    complete_options,
    complete_own,
    complete_text,
    is_finished,
    known_options,
    models,
    said,
)
from dpsql.repl.joins import equalities, shared_columns
from dpsql.repl.menu import MOST, Candidate, Menu
from dpsql.repl.naming import Names, literal, unquoted
from dpsql.repl.scope import Offered, Source, columns_of
from dpsql.repl.words import STATEMENTS

_FOLLOW = {
    "group": ("BY",), "order": ("BY",), "partition": ("BY",), "left": ("JOIN",), "right": ("JOIN",), "full": ("JOIN",),
    "inner": ("JOIN",), "cross": ("JOIN",), "natural": ("JOIN",), "outer": ("JOIN",), "nulls": ("FIRST", "LAST"),
    "within": ("GROUP",), "is": ("NULL", "NOT NULL", "TRUE", "FALSE", "DISTINCT FROM"), "similar": ("TO",),
    "grouping": ("SETS",),
}  # fmt: skip
_OPERANDS = ("NOT", "CASE", "EXISTS", "NULL", "TRUE", "FALSE", "INTERVAL", "DATE", "TIMESTAMP", "CURRENT_DATE",
             "CURRENT_TIMESTAMP")  # fmt: skip
_OPERATORS = ("AND", "OR", "IN", "NOT IN", "BETWEEN", "LIKE", "NOT LIKE", "ILIKE", "IS NULL", "IS NOT NULL",
              "IS DISTINCT FROM", "SIMILAR TO", "AT TIME ZONE")  # fmt: skip
_COMPARING = ("=", "<", ">", "<=", ">=", "<>")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN", "CROSS JOIN", "NATURAL JOIN")
_ENDS = ("WHERE", "GROUP BY", "HAVING", "QUALIFY", "ORDER BY", "LIMIT", "OFFSET", "UNION ALL", "UNION", "INTERSECT",
         "EXCEPT")  # fmt: skip
_AFTER = {
    "select": ("AS", "FROM", *_OPERATORS, *_ENDS[-4:]),
    "from": (*_ENDS[:1], *_JOINS, *_ENDS[1:], "AS"),
    "on": ("AND", *_JOINS, *_ENDS, *_OPERATORS[1:]),
    "using": (*_JOINS, *_ENDS),
    "where": (*_OPERATORS, *_ENDS[1:]),
    "group": _ENDS[2:],
    "having": (*_OPERATORS, *_ENDS[3:]),
    "qualify": (*_OPERATORS, *_ENDS[4:]),
    "order": ("ASC", "DESC", "NULLS FIRST", "NULLS LAST", *_ENDS[5:]),
    "limit": _ENDS[6:],
    "offset": _ENDS[7:],
}


def complete_sql(
    statement: Sequence[Token], under: Token | None, text: str, cursor: int, names: Names
) -> list[Candidate]:
    """`under` is the token that the cursor is in or behind; it is what is completed where it is a name or a string."""
    grows = under if under is not None and under.kind in (Kind.WORD, Kind.QUOTED, Kind.STRING) else None
    start = cursor if grows is None else grows.start
    written = text[start:cursor]
    around = look_around([token for token in statement if token is not grows], start, names)
    menu = Menu(unquoted(written), start, written.startswith('"'), _is_upper(written, statement))
    words = said(statement, start)
    options = known_options(around, words)
    if options is not None and grows is not None and grows.kind is Kind.STRING:
        complete_text(menu, around, options, written, text[cursor : cursor + 1])
    elif options is not None:
        complete_options(menu, around, options)
    elif is_finished(around, words):
        return []
    elif grows is not None and grows.kind is Kind.STRING:
        _string(menu, around, written, text[cursor : cursor + 1])
    elif around.first in _COMMANDS and not around.is_query:
        _COMMANDS[around.first](menu, around, names)
    elif not around.trail:
        menu.words(*_beginnings(around, statement))
    else:
        _query(menu, around, names)
    return menu.candidates()


def _beginnings(around: Around, statement: Sequence[Token]) -> Sequence[str]:
    if around.first:
        return ("SELECT", "ALL")  # after UNION
    explained = any(token.text.lower() == "explain" for token in statement)
    return ("SELECT", "WITH", "CREATE", "ASK") if explained else STATEMENTS


def _is_upper(written: str, statement: Sequence[Token]) -> bool:
    """Keywords follow the case of what is typed, or else of the statement's first word."""
    letters = [one for one in written if one.isalpha()]
    if letters:
        return letters[0].isupper()
    return next((token.text[0].isupper() for token in statement if token.kind is Kind.WORD), True)


# --- SET, SHOW, DESCRIBE ---------------------------------------------------------------------------------------------


def _set(menu: Menu, around: Around, names: Names) -> None:
    words = [token.text.lower() for token in around.trail[1:] if token.text.lower() not in ("local", "session")]
    name = "".join(words[: next((at for at, word in enumerate(words) if word in ("=", "to")), len(words))])
    if not words or words[-1] == ".":
        _settings(menu, names, name)
    elif words[-1] in ("=", "to"):
        for one in names.settings:
            if one.name.lower() == name:
                for choice in (*one.choices, "DEFAULT"):
                    menu.add("value", choice, choice, "as it was at first" if choice == "DEFAULT" else "")
    elif len(words) == 1 or words[-2] == ".":
        menu.words("TO")


def _settings(menu: Menu, names: Names, begun: str = "") -> None:
    """`begun` is the part of a name before its dot: contributions.rows is one setting."""
    for one in names.settings:
        if one.name.lower().startswith(begun):
            menu.add("setting", one.name[len(begun) :], one.name[len(begun) :], ", ".join(one.choices))


def _show(menu: Menu, around: Around, names: Names) -> None:
    words = [token.text.lower() for token in around.trail[1:]]
    if not words:
        for word in _SHOWN if around.first == "show" else ("ALL",):
            menu.add("setting", word, word if menu.upper else word.lower())
        _settings(menu, names)
    elif complete_own(menu, words, names):
        return
    elif words[-1] == ".":
        _settings(menu, names, "".join(words))
    elif words[0] == "columns":
        _tables(menu, names, {})


def _describe(menu: Menu, around: Around, names: Names) -> None:
    if len(around.trail) == 1:
        _tables(menu, names, {})
        menu.words("SELECT", "WITH")


def _make(menu: Menu, around: Around, names: Names) -> None:
    """CREATE and DROP of synthetic tables and models, up to the query within."""
    words = [token.text.lower() for token in around.trail[1:]]
    begun = " ".join(words)
    if begun in ("", "or replace"):
        menu.words("SYNTHETIC TABLE", "MODEL", *(("OR REPLACE",) if around.first == "create" and not words else ()))
    elif words[-1] == "as":
        menu.words(*(("SELECT", "WITH") if "table" in words else ("LOGISTIC REGRESSION ON", "LINEAR REGRESSION ON")))
    elif around.first == "drop":
        complete_own(menu, words, names)
        menu.words(*(("IF EXISTS",) if words[-1] in ("table", "model") else ()))
    elif words[-1] == "synthetic":
        menu.words("TABLE")
    elif words[-1] in ("table", "model"):
        menu.words("IF NOT EXISTS")
    elif words[-1] in ("logistic", "linear"):
        menu.words("REGRESSION ON")
    elif "on" not in words:
        menu.words("AS")
    else:
        _model(menu, words, names)


def _model(menu: Menu, words: Sequence[str], names: Names) -> None:
    if words[-1] in ("from", "join"):
        _tables(menu, names, {})
    elif words[-1] in ("on", "using", ",", "where", "and", "or", "not", *_COMPARING):
        for table in names.tables:
            for column in table.columns:
                menu.name("column", column.name, _meta(Offered(column.name, column)))
    elif "from" in words:
        menu.words("WHERE", "JOIN", "WITH")
    elif "on" in words:
        menu.words("AS", "FROM" if "using" in words else "USING")


def _declare(menu: Menu, around: Around, names: Names) -> None:
    """DECLARE of a mechanism, or of a cursor up to the query within."""
    words = [token.text.lower() for token in around.trail[1:]]
    if len(words) == 1:
        menu.words("THRESHOLD", "HOLDOUT", "CURSOR FOR")
    elif words[1:] == ["holdout"] or (words[1:2] == ["threshold"] and len(words) == 3):
        menu.words("WITH")
    elif words and words[-1] == "for":
        menu.words("SELECT", "WITH")


def _ask(menu: Menu, around: Around, names: Names) -> None:
    """Behind the mechanism's name, which the prompt does not know, a query."""
    if len(around.trail) == 2:
        menu.words("SELECT")


def _nothing(menu: Menu, around: Around, names: Names) -> None:
    """Transactions take no names."""


_SHOWN = ("BUDGET", "TABLES", "COLUMNS FROM", "SYNTHETIC TABLES", "SYNTHETIC TABLE", "MODELS", "MODEL", "THRESHOLDS",
          "HOLDOUTS", "ALL")  # fmt: skip
_COMMANDS = {"set": _set, "show": _show, "reset": _show, "describe": _describe, "desc": _describe,
             "create": _make, "drop": _make, "declare": _declare, "ask": _ask, "close": _nothing,
             **dict.fromkeys(("begin", "commit", "rollback", "savepoint", "discard", "start"), _nothing)}  # fmt: skip


# --- queries ---------------------------------------------------------------------------------------------------------


def _query(menu: Menu, around: Around, names: Names) -> None:
    last = around.last
    if last == ".":
        _qualified(menu, around, names)
    elif around.expects_table:
        _tables(menu, names, around.known)
        if last == "(":
            menu.words("SELECT")
    elif last in _FOLLOW:
        menu.words(*_FOLLOW[last])
    elif last == "as" or (around.clause in ("limit", "offset") and around.expects_operand):
        return
    elif around.opener in ("predict", "accuracy") and last == "(":
        models(menu, names)
    elif around.clause == "using" and last in ("(", ","):
        for name in shared_columns(around.sources):
            menu.name("column", name)
    elif around.clause == "with":
        menu.words(*{"with": ("RECURSIVE",), "(": ("SELECT",), ")": ("SELECT",), ",": ()}.get(last, ("AS",)))
    elif not around.clause:
        menu.words("SELECT")
    elif around.expects_operand:
        _operand(menu, around, names)
    else:
        _operator(menu, around)


def _tables(menu: Menu, names: Names, known: dict[str, Source]) -> None:
    for source in known.values():
        menu.name("table", source.name, "WITH")
    for table in names.tables:
        menu.name("table", table.name, "view" if table.kind == "view" else f"{table.kind} table")


def _qualified(menu: Menu, around: Around, names: Names) -> None:
    qualifier = unquoted(around.qualifier).lower()
    for source in (*around.sources, *around.outer):
        if source.name.lower() == qualifier and source.columns:
            _columns(menu, source.columns)
            return
    if qualifier in ("public", "main"):
        _tables(menu, names, {})
    elif qualifier in names.by_name:
        for column in names.by_name[qualifier].columns:
            menu.name("column", column.name, _meta(Offered(column.name, column)))


def _columns(menu: Menu, columns: Sequence[Offered], before: str = "") -> None:
    for column in columns:
        menu.name("column", column.name, _meta(column), before)


def _meta(column: Offered) -> str:
    one = column.declared
    if one is None:
        return ""
    about = one.bounds or (", ".join(one.values) if one.values else "")
    return f"{one.type} {about}".strip() + (" (privacy unit)" if one.is_unit else "")


def _operand(menu: Menu, around: Around, names: Names) -> None:
    compared = around.compared
    if compared is not None:
        _values(menu, compared)
    if around.last == "on":
        for text in equalities(around.sources):
            menu.add("join", text, text, "declared key")
    if around.last == "(" and around.before_last in ("in", "exists", "from", "any", "all", "as", "lateral"):
        menu.words("SELECT")
    _names_in_scope(menu, around, names)
    released = around.clause in ("select", "having", "order", "qualify")
    for function in sorted(names.functions, key=lambda one: one.kind != "statistic"):  # where they are offered, first
        if function.kind == "model" or (function.kind == "statistic" and not around.in_blockwise):
            continue
        if (released or function.kind == "function") and not menu.quotes:
            call = f"{function.name}("
            menu.add("function", function.name, call, function.example, call + ")", loosely=len(menu.typed) > 2)
    menu.words(*(("DISTINCT", "ALL") if around.last == "select" else ()), *_OPERANDS)
    if around.clause == "group":
        menu.words("ROLLUP", "CUBE", "GROUPING SETS", "ALL")
    if around.last == "(" and around.in_window:
        menu.words("PARTITION BY", "ORDER BY")


def _values(menu: Menu, column: Offered) -> None:
    one = column.declared
    if one is None:
        return
    for value in one.values or ():
        if str(one.type) == "boolean":
            menu.add("value", value, value.upper() if menu.upper else value.lower())
            continue
        text = value if one.type.is_number else literal(value)
        menu.add("value", value, text, "declared value")


def _names_in_scope(menu: Menu, around: Around, names: Names) -> None:
    """Columns of FROM, qualified where two tables have them; the names of tables; names that SELECT gives."""
    count: dict[str, int] = {}
    for source in around.sources:
        for column in source.columns:
            count[column.name.lower()] = count.get(column.name.lower(), 0) + 1
    for source in around.sources:
        for column in source.columns:
            twice = count[column.name.lower()] > 1 and source.name
            _columns(menu, [column], f"{quoted(source.name)}." if twice else "")
    for source in around.outer:
        _columns(menu, source.columns, f"{quoted(source.name)}." if source.name else "")
    if around.clause in ("group", "having", "order", "qualify"):
        _columns(menu, columns_of(around.query, names, around.known))
    for source in (*around.sources, *around.outer) if len(around.sources) + len(around.outer) > 1 else ():
        if source.name:
            menu.name("alias", source.name, "" if source.table is None else source.table.name)
    if not around.sources and menu.typed:
        _any_columns(menu, names)


def _any_columns(menu: Menu, names: Names) -> None:
    """Before there is a FROM, the columns of all tables that answer to what is typed: as many as are shown."""
    sought = menu.typed.lower()
    found = [one for one in names.all_columns if one[0].startswith(sought)][:MOST]
    found += [one for one in names.all_columns if sought in one[0]][: MOST - len(found)]
    for _, table, column in found:
        menu.name("column", column.name, f"{table.name}: {column.type}")


def _operator(menu: Menu, around: Around) -> None:
    if around.in_case:
        menu.words("WHEN", "THEN", "ELSE", "END")
    if around.last == ")":
        menu.words("FILTER", "OVER", "WITHIN GROUP")
    if around.is_nested:
        menu.words(*_OPERATORS, *(("ORDER BY", "PARTITION BY", "ASC", "DESC") if around.in_window else ()))
    else:
        menu.words(*(("ON", "USING") if around.waits_for_on else ()), *_AFTER.get(around.clause, ()))
        if around.first == "create" and around.clause in ("from", "on", "using", "where"):
            menu.words("WITH")


# --- strings ---------------------------------------------------------------------------------------------------------


def _string(menu: Menu, around: Around, written: str, next_: str) -> None:
    """Declared values, if the string is compared with a column that has some; a quote that stands there is kept."""
    column = around.compared
    if column is None or column.declared is None or not written.startswith("'"):
        return
    menu.typed = written[1:].replace("''", "'")
    for value in column.declared.values or ():
        text = literal(value)
        menu.add("value", value, text[:-1] if next_ == "'" else text, "declared value", text)
