"""Candidates within a statement: which names, values and words can come next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dpsql.base.lexer import Token, TokenKind, quote_name
from dpsql.interfaces.repl.completion.artifacts import (
    add_models,
    complete_object_names,
    complete_option_text,
    complete_options,
    is_after_create_options,
    options_at_cursor,
    words_before_cursor,
)
from dpsql.interfaces.repl.completion.candidates import (
    MAX_CANDIDATES,
    CandidateMenu,
    CompletionCandidate,
    CompletionNames,
    quote_literal,
    unquote_name,
)
from dpsql.interfaces.repl.completion.context import (
    CursorContext,
    FromItem,
    ScopeColumn,
    output_columns,
    read_cursor_context,
)
from dpsql.interfaces.repl.completion.keywords import STATEMENT_KEYWORDS

# How the tables of a FROM belong together: by declared keys, or by columns of one name that are unique on one side.


def join_conditions(sources: Sequence[FromItem]) -> list[str]:
    """Conditions for ON that join the last table with those before it, the declared ones first."""
    if len(sources) < 2:
        return []
    *others, last = sources
    conditions = [text for other in others for text in _declared_conditions(last, other)]
    conditions += [text for other in others for text in _unique_key_conditions(last, other)]
    return list(dict.fromkeys(conditions))


def _declared_conditions(last: FromItem, other: FromItem) -> Iterator[str]:
    """A key of one that leads to the other; or of both, to the same table."""
    for referencing, referenced in ((last, other), (other, last)):
        for key in referencing.table.foreign if referencing.table else ():
            if referenced.table is not None and referenced.table.name.lower() == key.table.lower():
                yield " AND ".join(
                    _format_equality(last, other, (referencing, column), (referenced, target))
                    for column, target in key.pairs
                )
    for key in last.table.foreign if last.table else ():
        for other_key in other.table.foreign if other.table else ():
            if key.table == other_key.table and set(key.keys) == set(other_key.keys):
                theirs = {target: column for column, target in other_key.pairs}
                yield " AND ".join(
                    _format_equality(last, other, (last, column), (other, theirs[target]))
                    for column, target in key.pairs
                )


def _unique_key_conditions(last: FromItem, other: FromItem) -> Iterator[str]:
    for name in shared_columns([other, last]):
        tables = [source.table for source in (last, other) if source.table is not None]
        if any(key.columns == (name,) for table in tables for key in table.unique):
            yield _format_equality(last, other, (last, name), (other, name))


def _format_equality(last: FromItem, other: FromItem, first: tuple[FromItem, str], second: tuple[FromItem, str]) -> str:
    """The new table's side stands first."""
    sides = sorted((first, second), key=lambda side: side[0] is not last)
    return " = ".join(f"{quote_name(source.name)}.{quote_name(column)}" for source, column in sides)


def shared_columns(sources: Sequence[FromItem]) -> list[str]:
    """Names that the last table has in common with one before it."""
    if len(sources) < 2:
        return []
    *others, last = sources
    other_names = {column.name.lower() for other in others for column in other.columns}
    return [column.name for column in last.columns if column.name.lower() in other_names]


_NEXT_KEYWORDS = {
    "group": ("BY",), "order": ("BY",), "partition": ("BY",), "left": ("JOIN",), "right": ("JOIN",), "full": ("JOIN",),
    "inner": ("JOIN",), "cross": ("JOIN",), "natural": ("JOIN",), "outer": ("JOIN",), "nulls": ("FIRST", "LAST"),
    "within": ("GROUP",), "is": ("NULL", "NOT NULL", "TRUE", "FALSE", "DISTINCT FROM"), "similar": ("TO",),
    "grouping": ("SETS",),
}  # fmt: skip
_OPERAND_KEYWORDS = ("NOT", "CASE", "EXISTS", "NULL", "TRUE", "FALSE", "INTERVAL", "DATE", "TIMESTAMP", "CURRENT_DATE",
             "CURRENT_TIMESTAMP")  # fmt: skip
_OPERATOR_KEYWORDS = ("AND", "OR", "IN", "NOT IN", "BETWEEN", "LIKE", "NOT LIKE", "ILIKE", "IS NULL", "IS NOT NULL",
              "IS DISTINCT FROM", "SIMILAR TO", "AT TIME ZONE")  # fmt: skip
_COMPARISON_SIGNS = ("=", "<", ">", "<=", ">=", "<>")
_JOIN_KEYWORDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "INNER JOIN", "CROSS JOIN", "NATURAL JOIN")
_TRAILING_CLAUSES = (
    "WHERE",
    "GROUP BY",
    "HAVING",
    "QUALIFY",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
    "UNION ALL",
    "UNION",
    "INTERSECT",
    "EXCEPT",
)
_KEYWORDS_AFTER_CLAUSE = {
    "select": ("AS", "FROM", *_OPERATOR_KEYWORDS, *_TRAILING_CLAUSES[-4:]),
    "from": (*_TRAILING_CLAUSES[:1], *_JOIN_KEYWORDS, *_TRAILING_CLAUSES[1:], "AS"),
    "on": ("AND", *_JOIN_KEYWORDS, *_TRAILING_CLAUSES, *_OPERATOR_KEYWORDS[1:]),
    "using": (*_JOIN_KEYWORDS, *_TRAILING_CLAUSES),
    "where": (*_OPERATOR_KEYWORDS, *_TRAILING_CLAUSES[1:]),
    "group": _TRAILING_CLAUSES[2:],
    "having": (*_OPERATOR_KEYWORDS, *_TRAILING_CLAUSES[3:]),
    "qualify": (*_OPERATOR_KEYWORDS, *_TRAILING_CLAUSES[4:]),
    "order": ("ASC", "DESC", "NULLS FIRST", "NULLS LAST", *_TRAILING_CLAUSES[5:]),
    "limit": _TRAILING_CLAUSES[6:],
    "offset": _TRAILING_CLAUSES[7:],
}


def complete_sql(
    statement: Sequence[Token], under: Token | None, text: str, cursor: int, names: CompletionNames
) -> list[CompletionCandidate]:
    """`under` is the token that the cursor is in or behind; it is what is completed where it is a name or a string."""
    grows = under if under is not None and under.kind in (TokenKind.WORD, TokenKind.QUOTED, TokenKind.STRING) else None
    start = cursor if grows is None else grows.start
    typed_text = text[start:cursor]
    context = read_cursor_context([token for token in statement if token is not grows], start, names)
    menu = CandidateMenu(unquote_name(typed_text), start, typed_text.startswith('"'), _is_upper(typed_text, statement))
    words = words_before_cursor(statement, start)
    options = options_at_cursor(context, words)
    if options is not None and grows is not None and grows.kind is TokenKind.STRING:
        complete_option_text(menu, context, options, typed_text, text[cursor : cursor + 1])
    elif options is not None:
        complete_options(menu, context, options)
    elif is_after_create_options(context, words):
        return []
    elif grows is not None and grows.kind is TokenKind.STRING:
        _complete_string(menu, context, typed_text, text[cursor : cursor + 1])
    elif context.first in _COMMAND_COMPLETERS and not context.is_query:
        _COMMAND_COMPLETERS[context.first](menu, context, names)
    elif not context.trail:
        menu.add_keywords(*_statement_beginnings(context, statement))
    else:
        _complete_query(menu, context, names)
    return menu.list_candidates()


def _statement_beginnings(context: CursorContext, statement: Sequence[Token]) -> Sequence[str]:
    if context.first:
        return ("SELECT", "ALL")  # after UNION
    explained = any(token.text.lower() == "explain" for token in statement)
    return ("SELECT", "WITH", "CREATE", "ASK") if explained else STATEMENT_KEYWORDS


def _is_upper(typed_text: str, statement: Sequence[Token]) -> bool:
    """Keywords follow the case of what is typed, or else of the statement's first word."""
    letters = [letter for letter in typed_text if letter.isalpha()]
    if letters:
        return letters[0].isupper()
    return next((token.text[0].isupper() for token in statement if token.kind is TokenKind.WORD), True)


# --- SET, SHOW, DESCRIBE ---------------------------------------------------------------------------------------------


def _complete_set(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    words = [token.text.lower() for token in context.trail[1:] if token.text.lower() not in ("local", "session")]
    name = "".join(words[: next((at for at, word in enumerate(words) if word in ("=", "to")), len(words))])
    if not words or words[-1] == ".":
        _add_settings(menu, names, name)
    elif words[-1] in ("=", "to"):
        for setting in names.settings:
            if setting.name.lower() == name:
                for choice in (*setting.choices, "DEFAULT"):
                    menu.add("value", choice, choice, "as it was at first" if choice == "DEFAULT" else "")
    elif len(words) == 1 or words[-2] == ".":
        menu.add_keywords("TO")


def _add_settings(menu: CandidateMenu, names: CompletionNames, prefix: str = "") -> None:
    """`prefix` is the part of a name before its dot: contributions.rows is one setting."""
    for setting in names.settings:
        if setting.name.lower().startswith(prefix):
            menu.add("setting", setting.name[len(prefix) :], setting.name[len(prefix) :], ", ".join(setting.choices))


def _complete_show(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    words = [token.text.lower() for token in context.trail[1:]]
    if not words:
        for word in _SHOW_TARGETS if context.first == "show" else ("ALL",):
            menu.add("setting", word, word if menu.upper else word.lower())
        _add_settings(menu, names)
    elif complete_object_names(menu, words, names):
        return
    elif words[-1] == ".":
        _add_settings(menu, names, "".join(words))
    elif words[0] == "columns":
        _add_tables(menu, names, {})


def _complete_describe(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    if len(context.trail) == 1:
        _add_tables(menu, names, {})
        menu.add_keywords("SELECT", "WITH")


def _complete_create(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    """CREATE and DROP of synthetic tables and models, up to the query within."""
    words = [token.text.lower() for token in context.trail[1:]]
    prefix = " ".join(words)
    if prefix in ("", "or replace"):
        menu.add_keywords(
            "SYNTHETIC TABLE", "MODEL", *(("OR REPLACE",) if context.first == "create" and not words else ())
        )
    elif words[-1] == "as":
        menu.add_keywords(
            *(("SELECT", "WITH") if "table" in words else ("LOGISTIC REGRESSION ON", "LINEAR REGRESSION ON"))
        )
    elif context.first == "drop":
        complete_object_names(menu, words, names)
        menu.add_keywords(*(("IF EXISTS",) if words[-1] in ("table", "model") else ()))
    elif words[-1] == "synthetic":
        menu.add_keywords("TABLE")
    elif words[-1] in ("table", "model"):
        menu.add_keywords("IF NOT EXISTS")
    elif words[-1] in ("logistic", "linear"):
        menu.add_keywords("REGRESSION ON")
    elif "on" not in words:
        menu.add_keywords("AS")
    else:
        _complete_model(menu, words, names)


def _complete_model(menu: CandidateMenu, words: Sequence[str], names: CompletionNames) -> None:
    if words[-1] in ("from", "join"):
        _add_tables(menu, names, {})
    elif words[-1] in ("on", "using", ",", "where", "and", "or", "not", *_COMPARISON_SIGNS):
        for table in names.tables:
            for column in table.columns:
                menu.add_name("column", column.name, _describe_column(ScopeColumn(column.name, column)))
    elif "from" in words:
        menu.add_keywords("WHERE", "JOIN", "WITH")
    elif "on" in words:
        menu.add_keywords("AS", "FROM" if "using" in words else "USING")


def _complete_declare(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    """DECLARE of a mechanism, or of a cursor up to the query within."""
    words = [token.text.lower() for token in context.trail[1:]]
    if len(words) == 1:
        menu.add_keywords("THRESHOLD", "HOLDOUT", "CURSOR FOR")
    elif words[1:] == ["holdout"] or (words[1:2] == ["threshold"] and len(words) == 3):
        menu.add_keywords("WITH")
    elif words and words[-1] == "for":
        menu.add_keywords("SELECT", "WITH")


def _complete_ask(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    """Behind the mechanism's name, which the prompt does not know, a query."""
    if len(context.trail) == 2:
        menu.add_keywords("SELECT")


def _complete_nothing(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    """Nothing is offered: commands of transactions take no names."""


_SHOW_TARGETS = (
    "BUDGET",
    "TABLES",
    "COLUMNS FROM",
    "SYNTHETIC TABLES",
    "SYNTHETIC TABLE",
    "MODELS",
    "MODEL",
    "THRESHOLDS",
    "HOLDOUTS",
    "ALL",
)
_COMMAND_COMPLETERS = {
    "set": _complete_set,
    "show": _complete_show,
    "reset": _complete_show,
    "describe": _complete_describe,
    "desc": _complete_describe,
    "create": _complete_create,
    "drop": _complete_create,
    "declare": _complete_declare,
    "ask": _complete_ask,
    "close": _complete_nothing,
    **dict.fromkeys(("begin", "commit", "rollback", "savepoint", "discard", "start"), _complete_nothing),
}


# --- queries ---------------------------------------------------------------------------------------------------------


def _complete_query(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    last = context.last
    if last == ".":
        _complete_qualified_name(menu, context, names)
    elif context.expects_table:
        _add_tables(menu, names, context.ctes)
        if last == "(":
            menu.add_keywords("SELECT")
    elif last in _NEXT_KEYWORDS:
        menu.add_keywords(*_NEXT_KEYWORDS[last])
    elif last == "as" or (context.clause in ("limit", "offset") and context.expects_operand):
        return
    elif context.opener in ("predict", "accuracy") and last == "(":
        add_models(menu, names)
    elif context.clause == "using" and last in ("(", ","):
        for name in shared_columns(context.sources):
            menu.add_name("column", name)
    elif context.clause == "with":
        menu.add_keywords(*{"with": ("RECURSIVE",), "(": ("SELECT",), ")": ("SELECT",), ",": ()}.get(last, ("AS",)))
    elif not context.clause:
        menu.add_keywords("SELECT")
    elif context.expects_operand:
        _complete_operand(menu, context, names)
    else:
        _complete_operator(menu, context)


def _add_tables(menu: CandidateMenu, names: CompletionNames, ctes: dict[str, FromItem]) -> None:
    for source in ctes.values():
        menu.add_name("table", source.name, "WITH")
    for table in names.tables:
        menu.add_name("table", table.name, "view" if table.kind == "view" else f"{table.kind} table")


def _complete_qualified_name(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    qualifier = unquote_name(context.qualifier).lower()
    for source in (*context.sources, *context.outer):
        if source.name.lower() == qualifier and source.columns:
            _add_columns(menu, source.columns)
            return
    if qualifier in ("public", "main"):
        _add_tables(menu, names, {})
    elif qualifier in names.tables_by_name:
        for column in names.tables_by_name[qualifier].columns:
            menu.add_name("column", column.name, _describe_column(ScopeColumn(column.name, column)))


def _add_columns(menu: CandidateMenu, columns: Sequence[ScopeColumn], before: str = "") -> None:
    for column in columns:
        menu.add_name("column", column.name, _describe_column(column), before)


def _describe_column(column: ScopeColumn) -> str:
    declared = column.declared
    if declared is None:
        return ""
    about = declared.bounds or (", ".join(declared.values) if declared.values else "")
    return f"{declared.type} {about}".strip() + (" (privacy unit)" if declared.is_unit else "")


def _complete_operand(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    compared = context.compared_column
    if compared is not None:
        _add_values(menu, compared)
    if context.last == "on":
        for text in join_conditions(context.sources):
            menu.add("join", text, text, "declared key")
    if context.last == "(" and context.before_last in ("in", "exists", "from", "any", "all", "as", "lateral"):
        menu.add_keywords("SELECT")
    _add_names_in_scope(menu, context, names)
    released = context.clause in ("select", "having", "order", "qualify")
    for function in sorted(
        names.functions, key=lambda candidate: candidate.kind != "statistic"
    ):  # where they are offered, first
        if function.kind == "model" or (function.kind == "statistic" and not context.in_blockwise):
            continue
        if (released or function.kind == "function") and not menu.quotes:
            call = f"{function.name}("
            menu.add("function", function.name, call, function.example, call + ")", loosely=len(menu.typed) > 2)
    menu.add_keywords(*(("DISTINCT", "ALL") if context.last == "select" else ()), *_OPERAND_KEYWORDS)
    if context.clause == "group":
        menu.add_keywords("ROLLUP", "CUBE", "GROUPING SETS", "ALL")
    if context.last == "(" and context.in_window:
        menu.add_keywords("PARTITION BY", "ORDER BY")


def _add_values(menu: CandidateMenu, column: ScopeColumn) -> None:
    declared = column.declared
    if declared is None:
        return
    for value in declared.values or ():
        if str(declared.type) == "boolean":
            menu.add("value", value, value.upper() if menu.upper else value.lower())
            continue
        text = value if declared.type.is_number else quote_literal(value)
        menu.add("value", value, text, "declared value")


def _add_names_in_scope(menu: CandidateMenu, context: CursorContext, names: CompletionNames) -> None:
    """Columns of FROM, qualified where two tables have them; the names of tables; names that SELECT gives."""
    count: dict[str, int] = {}
    for source in context.sources:
        for column in source.columns:
            count[column.name.lower()] = count.get(column.name.lower(), 0) + 1
    for source in context.sources:
        for column in source.columns:
            twice = count[column.name.lower()] > 1 and source.name
            _add_columns(menu, [column], f"{quote_name(source.name)}." if twice else "")
    for source in context.outer:
        _add_columns(menu, source.columns, f"{quote_name(source.name)}." if source.name else "")
    if context.clause in ("group", "having", "order", "qualify"):
        _add_columns(menu, output_columns(context.query, names, context.ctes))
    for source in (*context.sources, *context.outer) if len(context.sources) + len(context.outer) > 1 else ():
        if source.name:
            menu.add_name("alias", source.name, "" if source.table is None else source.table.name)
    if not context.sources and menu.typed:
        _add_matching_columns(menu, names)


def _add_matching_columns(menu: CandidateMenu, names: CompletionNames) -> None:
    """Before there is a FROM, the columns of all tables that answer to what is typed: as many as are shown."""
    typed = menu.typed.lower()
    matches = [entry for entry in names.all_columns if entry[0].startswith(typed)][:MAX_CANDIDATES]
    matches += [entry for entry in names.all_columns if typed in entry[0]][: MAX_CANDIDATES - len(matches)]
    for _, table, column in matches:
        menu.add_name("column", column.name, f"{table.name}: {column.type}")


def _complete_operator(menu: CandidateMenu, context: CursorContext) -> None:
    if context.in_case:
        menu.add_keywords("WHEN", "THEN", "ELSE", "END")
    if context.last == ")":
        menu.add_keywords("FILTER", "OVER", "WITHIN GROUP")
    if context.is_nested:
        menu.add_keywords(
            *_OPERATOR_KEYWORDS, *(("ORDER BY", "PARTITION BY", "ASC", "DESC") if context.in_window else ())
        )
    else:
        menu.add_keywords(
            *(("ON", "USING") if context.needs_join_condition else ()), *_KEYWORDS_AFTER_CLAUSE.get(context.clause, ())
        )
        if context.first == "create" and context.clause in ("from", "on", "using", "where"):
            menu.add_keywords("WITH")


# --- strings ---------------------------------------------------------------------------------------------------------


def _complete_string(menu: CandidateMenu, context: CursorContext, typed_text: str, next_: str) -> None:
    """Declared values, if the string is compared with a column that has some; a quote that stands there is kept."""
    column = context.compared_column
    if column is None or column.declared is None or not typed_text.startswith("'"):
        return
    menu.typed = typed_text[1:].replace("''", "'")
    for value in column.declared.values or ():
        text = quote_literal(value)
        menu.add("value", value, text[:-1] if next_ == "'" else text, "declared value", text)
