"""Statements about the catalog alone: PostgreSQL's SQL over pg_catalog and information_schema, or over no table.

They read no private rows and cost nothing; `session/postprocess/catalog_sandbox.py` answers them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.compiler.catalog.builtin import CatalogRelation, find_relation
from dpsql.compiler.catalog.functions import CATALOG_ONLY_FUNCTIONS
from dpsql.compiler.catalog.oids import object_oids_of
from dpsql.compiler.catalog.rewrite import rewrite_catalog_tree
from dpsql.compiler.catalog.rewrite_from import RewriteContext, SettingChange, find_setting_changes
from dpsql.compiler.catalog.tables import catalog_schema_of, is_catalog_schema
from dpsql.compiler.catalog.types import REG_TYPES, annotate_types, cast_target_type, session_function_of
from dpsql.compiler.catalog.variables import Identity
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.parse.parameters import Parameter, bind_parameters
from dpsql.compiler.parse.parser import Tokenizer, check_token_depth, normalize_tokens, tokenize
from dpsql.errors import Error, UnknownTable, Unsupported
from dpsql.schema.model import Schema

_SYNTAX_FUNCTIONS = ("CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
CATALOG_TYPES = frozenset({*REG_TYPES, "oid", "name", "xid", "cid", "tid", "int2vector", "oidvector", "aclitem", "char",
                           "pg_node_tree"})  # fmt: skip
"""Types that only the catalog has."""
_CATALOG_WORDS = frozenset({*REG_TYPES, "information_schema", "oid", "name", "array", "]"})
_QUERY_STARTS = (TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.VALUES, TokenType.TABLE)


@dataclass(frozen=True)
class CatalogQuery:
    """`sql` is DuckDB's; `columns` have PostgreSQL's types, None where DuckDB's own tells; `sets` are the settings that
    set_config() changes, which the session does first."""

    sql: str
    columns: tuple[tuple[str, str | None], ...]
    sets: tuple[SettingChange, ...] = ()


class CatalogDialect(Postgres):
    """PostgreSQL as it is written: every function by its name."""

    class Parser(PostgresParser):
        FUNCTIONS = {"ARRAY": PostgresParser.FUNCTIONS["ARRAY"]}
        FUNCTION_PARSERS = {n: parse for n, parse in PostgresParser.FUNCTION_PARSERS.items() if n in _SYNTAX_FUNCTIONS}


def read_catalog_query(
    sql: str,
    parameters: Sequence[Parameter],
    schema: Schema,
    identity: Identity,
    now: dt.datetime,
    tokenizer: Tokenizer = tokenize,
) -> CatalogQuery | None:
    """None where the statement is no query, cannot be read, or is not about the catalog alone."""
    try:
        tokens = tokenizer(sql)
    except Error:
        return None
    if not tokens or tokens[0].token_type not in _QUERY_STARTS or not any(_is_catalog_word(token) for token in tokens):
        return None  # most statements, before anything is parsed
    tree = _parse_query(
        _merge_array_types(_mark_keyword_names(normalize_tokens(bind_parameters(tokens, parameters)))), sql
    )
    if tree is None or not _is_about_catalog(tree, schema):
        return None
    sets = find_setting_changes(tree)
    for select in tree.find_all(exp.Select):
        _name_outputs(select)
    columns = tuple(annotate_types(tree))
    rewritten = rewrite_catalog_tree(tree, RewriteContext(object_oids_of(schema), identity, now))
    for name in rewritten.find_all(exp.Identifier):
        if not name.quoted:
            name.set("this", name.name.lower())
            name.set("quoted", True)
    return CatalogQuery(rewritten.sql(dialect="duckdb"), tuple((n, t) for n, t in columns), sets)


def parse_catalog_tree(sql: str, parameters: Sequence[Parameter]) -> exp.Query | None:
    """A statement as PostgreSQL reads it, whatever it is about; None where it cannot."""
    try:
        return _parse_query(_merge_array_types(normalize_tokens(bind_parameters(tokenize(sql), parameters))), sql)
    except Error:
        return None


def _is_catalog_word(token: Token) -> bool:
    word = token.text.lower()
    return word.startswith("pg_") or word in CATALOG_ONLY_FUNCTIONS or word in _CATALOG_WORDS


def _mark_keyword_names(tokens: list[Token]) -> list[Token]:
    """AS select, AS table and t.select: behind AS and a point every word is a name."""
    result = list(tokens)
    for index, token in enumerate(tokens[1:], 1):
        before = tokens[index - 1].token_type
        if token.token_type in (TokenType.SELECT, TokenType.TABLE) and before in (TokenType.ALIAS, TokenType.DOT):
            result[index] = Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)
    return result


def _merge_array_types(tokens: list[Token]) -> list[Token]:
    """oid[] as one name, _oid: the parser knows arrays of the types of its own alone."""
    result: list[Token] = []
    for index, token in enumerate(tokens):
        closing = token.token_type is TokenType.R_BRACKET and len(result) > 2
        if closing and tokens[index - 1].token_type is TokenType.L_BRACKET and _is_catalog_type_name(result):
            result.pop()
            last = result.pop()
            text = f"_{last.text.lower()}"
            result.append(Token(TokenType.VAR, text, last.line, last.col, last.start, token.end))
        else:
            result.append(token)
    return result


def _is_catalog_type_name(tokens: list[Token]) -> bool:
    """Whether what stands before the bracket is a type's name that the parser does not know."""
    name, before = tokens[-2], tokens[-3]
    own = name.token_type is TokenType.OBJECT_IDENTIFIER or name.text.lower() in ("name", "regtype", "aclitem")
    return own and before.token_type in (TokenType.DCOLON, TokenType.ALIAS, TokenType.DOT)


def _parse_query(tokens: list[Token], sql: str) -> exp.Query | None:
    check_token_depth(tokens)
    try:
        trees = [tree for tree in CatalogDialect().parser().parse(tokens, sql) if tree is not None]
    except (ParseError, RecursionError):
        return None
    trees = [tree for tree in trees if not isinstance(tree, exp.Semicolon)]
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        return None
    tree = trees[0]
    for node in list(tree.find_all(exp.Anonymous)):
        if node.name.lower() in ("any", "all", "some") and len(node.expressions) == 1:
            kind = exp.All if node.name.lower() == "all" else exp.Any
            node.replace(kind(this=exp.Paren(this=node.expressions[0])))
    return tree


def _is_about_catalog(tree: exp.Query, schema: Schema) -> bool:
    """Whether all tables that it names are the catalog's; each gets its relation as a note."""
    ctes = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    tables = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    named = [table for table in tables if table.db or table.name.lower() not in ctes]
    if not named:
        return any(_is_catalog_call(node) for node in tree.walk())
    if any(catalog_schema_of(schema, table.db, table.name) is None for table in named):
        return False
    for table in named:
        table.meta["relation"] = _resolve_relation(table, schema)
    return True


def _resolve_relation(table: exp.Table, schema: Schema) -> CatalogRelation:
    if table.catalog and table.catalog.lower() != schema.database.lower():
        raise Unsupported(
            f'cross-database references are not implemented: "{table.catalog}.{table.db}.{table.name}"',
            span=span_of(table),
        )
    resolved = find_relation(catalog_schema_of(schema, table.db, table.name) or "", table.name.lower())
    if resolved is None:
        display_name = f"{table.db}.{table.name}" if is_catalog_schema(table.db) else table.name
        raise UnknownTable(f'relation "{display_name}" does not exist', span=span_of(table))
    return resolved


def _is_catalog_call(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in CATALOG_ONLY_FUNCTIONS
    if isinstance(node, exp.Cast):
        named = cast_target_type(node.args["to"])
        if named.endswith("[]") and node.this.is_string:  # '{a,b}'::text[], which DuckDB writes [a, b]
            return True
        to = node.args["to"].find(exp.DataType)
        is_row_type = to is not None and any(part.args.get("kind") is not None for part in to.find_all(exp.DataType))
        return is_row_type or named.removesuffix("[]") in CATALOG_TYPES  # the row of a table is a type too
    name = session_function_of(node)
    return name is not None and name in CATALOG_ONLY_FUNCTIONS


def _name_outputs(select: exp.Select) -> None:
    """Columns that have no name get PostgreSQL's."""
    if isinstance(select.parent, exp.Exists | exp.Array | exp.In):
        return
    for item in list(select.expressions):
        starred = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
        plain = isinstance(item, exp.Column) and session_function_of(item) is None
        if not (starred or isinstance(item, exp.Alias) or plain):
            name = postgres_column_name(item)
            item.replace(exp.alias_(item.copy(), name.lower() if name.isupper() else name, quoted=True))


# The name of an output column that has none of its own, as PostgreSQL makes it up.

UNNAMED_COLUMN = "?column?"


def postgres_column_name(node: exp.Expr) -> str:
    """The last name that stands in an expression: a column's or function's, else a cast's type, else what it is."""
    return _name_and_strength(node)[0] or UNNAMED_COLUMN


_WEAK_NAME, _STRONG_NAME = 1, 2
"""A name of a column or function stays under a cast; that of a type, or CASE, does not."""


def _name_and_strength(node: exp.Expr) -> tuple[str | None, int]:
    name = session_function_of(node)
    if name is not None:
        return name, _STRONG_NAME
    match node:
        case exp.Column() | exp.Dot():
            inner = node.expression if isinstance(node, exp.Dot) else None
            return _name_and_strength(inner) if isinstance(inner, exp.Anonymous) else (str(node.name), _STRONG_NAME)
        case exp.Anonymous():
            return str(node.name).lower(), _STRONG_NAME
        case exp.Cast():
            below, strength = _name_and_strength(node.this)
            return (below, strength) if strength == _STRONG_NAME else (_cast_type_name(node.args["to"]), _WEAK_NAME)
        case exp.Paren() | exp.Collate() | exp.Bracket() | exp.Filter() | exp.Window():
            return _name_and_strength(node.this)
        case exp.Case():
            default = node.args.get("default")
            below, strength = _name_and_strength(default) if isinstance(default, exp.Expr) else (None, 0)
            return (below, strength) if strength == _STRONG_NAME else ("case", _WEAK_NAME)
        case exp.Subquery():
            return _query_column_name(node.this)
        case exp.Trim():
            side = str(node.args.get("position")).upper()
            return {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(side, "btrim"), _STRONG_NAME
    for kind, word in _NODE_FUNCTION_NAMES:
        if isinstance(node, kind):
            return word, _STRONG_NAME
    return ("interval", _WEAK_NAME) if isinstance(node, exp.Interval) else (None, 0)


_NODE_FUNCTION_NAMES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Array, "array"),
    (exp.Exists, "exists"),
    (exp.Substring, "substring"),
    (exp.StrPosition, "position"),
    (exp.Extract, "extract"),
    (exp.AtTimeZone, "timezone"),
)


def _cast_type_name(to: exp.Expr) -> str:
    """As it is written, or as pg_type has it."""
    kind = to.args.get("kind")
    if isinstance(kind, exp.Expr):
        return str((kind.expression if isinstance(kind, exp.Dot) else kind).name)
    return cast_target_type(to).removesuffix("[]")


def _query_column_name(query: exp.Expr) -> tuple[str | None, int]:
    first = query.expressions[0] if isinstance(query, exp.Select) and query.expressions else None
    if isinstance(first, exp.Alias):
        return str(first.alias), _STRONG_NAME
    return _name_and_strength(first) if isinstance(first, exp.Expr) else (None, 0)
