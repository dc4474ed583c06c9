"""SQL text to one syntax tree, with limits checked on tokens before any recursion.

Also: where each of several statements begins and ends, and where in a statement an error stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dpsql.base import lexer
from dpsql.base.lexer import TokenKind, split_tokens
from dpsql.compiler.parse.dialect import DOLLAR_SIGN, AnalystDialect, span_of
from dpsql.compiler.parse.googlesql import GOOGLESQL_WORDS, Option, extract_options, rewrite_googlesql_aggregates
from dpsql.compiler.parse.literals import check_interval_texts
from dpsql.compiler.parse.parameters import (
    MAX_NUMBER_DIGITS,
    Parameter,
    bind_parameters,
    find_foreign_placeholder,
    has_lone_surrogate,
    placeholder_style_error,
)
from dpsql.compiler.parse.syntax_errors import check_statement_complete, misspelled_keyword_hint, syntax_error
from dpsql.errors import (
    DataError,
    Error,
    InvalidParameter,
    InvalidSyntax,
    LimitExceeded,
    ProgrammingError,
    Span,
    Unsupported,
)
from dpsql.types import parse_type

MAX_CHARACTERS = 1_000_000
MAX_TOKENS = 50_000
MAX_DEPTH = 200
"""sqlglot overflows the stack at some 300 parentheses."""

_OPENING = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE}
_CLOSING = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END}
_QUERY_STARTS = {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN, TokenType.VALUES, TokenType.FROM}
_QUERY_ENDINGS = {TokenType.ORDER_BY, TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH, TokenType.SEMICOLON}
_PREFIX_OPERATORS = {TokenType.NOT, TokenType.DASH, TokenType.TILDE, TokenType.PLUS}


@dataclass(frozen=True)
class ParsedQuery:
    """One query, and what GoogleSQL's OPTIONS asked for it."""

    query: exp.Query
    options: tuple[Option, ...]


def parse_query(sql: str, parameters: Sequence[Parameter] = ()) -> exp.Query:
    """The tree of one SELECT statement without options of its own."""
    parsed = parse_query_with_options(sql, parameters)
    if parsed.options:
        raise Unsupported("options cannot stand here", span=parsed.options[0].span)
    return parsed.query


def check_placeholder_style(sql: str) -> None:
    """Raise, with its place, if a placeholder is written as other drivers do."""
    foreign = find_foreign_placeholder(tokenize(sql))
    if foreign is not None:
        error = placeholder_style_error(foreign)
        error.statement = sql
        raise error


def parse_query_with_options(
    sql: str, parameters: Sequence[Parameter] = (), tokenizer: Tokenizer | None = None
) -> ParsedQuery:
    tokens = bind_parameters(normalize_tokens((tokenizer or tokenize)(sql)), parameters)
    check_token_depth(tokens)
    _check_query_start(tokens)
    check_statement_complete(tokens, sql)
    options: tuple[Option, ...] | None = None
    if any(token.text.upper() in GOOGLESQL_WORDS for token in tokens):
        tokens, options = extract_options(rewrite_googlesql_aggregates(tokens))
    try:
        trees = AnalystDialect().parser().parse(tokens, sql)
    except ParseError as error:
        foreign = find_foreign_placeholder(tokens)
        raise (syntax_error(error, tokens, sql) if foreign is None else placeholder_style_error(foreign)) from None
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply") from None
    except ValueError:  # a builder of sqlglot's that takes no empty name, as in DATE_PART('', at)
        raise InvalidSyntax("the statement is not understood") from None
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    if len(statements) > 1:
        raise InvalidSyntax("one statement at a time", hint="Send each statement on its own.")
    tree = statements[0] if not isinstance(statements[0], exp.Values) else _select_values(statements[0])
    if not isinstance(tree, exp.Query):
        raise InvalidSyntax("only SELECT is a query", span=Span(tokens[0].start, tokens[0].end + 1))
    if options is not None and not isinstance(tree, exp.Select):
        raise Unsupported("WITH DIFFERENTIAL_PRIVACY cannot stand in a UNION, INTERSECT or EXCEPT",
                          hint="SELECT WITH DIFFERENTIAL_PRIVACY … FROM (SELECT … UNION …).")  # fmt: skip
    _check_tree_depth(tree)
    _unwrap_literal_texts(tree)
    if any(token.text.upper() in _INTERVAL_WORDS for token in tokens):
        check_interval_texts(tree)
    if tree.find(exp.Placeholder, exp.Parameter) is not None:
        raise placeholder_style_error(find_foreign_placeholder(tokens))
    return ParsedQuery(remove_redundant_parentheses(tree), options or ())


_INTERVAL_WORDS = frozenset({"INTERVAL", "DATE_BIN", "TIME_BUCKET"})


def _unwrap_literal_texts(tree: exp.Expr) -> None:
    """('2024-02-29')::date is '2024-02-29'::date: pgjdbc writes parentheses around what it binds."""
    for paren in list(tree.find_all(exp.Paren)):
        text = paren.unnest()
        plain = isinstance(text, exp.Literal) and text.is_string
        if plain and paren.parent is not None and not isinstance(paren.parent, exp.Paren | exp.Any | exp.All):
            paren.replace(text)


def _select_values(values: exp.Values) -> exp.Select:
    """VALUES as a statement of its own, with the names that PostgreSQL gives its columns."""
    width = max((len(row.expressions) for row in values.expressions if isinstance(row, exp.Tuple)), default=1)
    names = [exp.to_identifier(f"column{number}") for number in range(1, width + 1)]
    values.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True), columns=names))
    return exp.select("*").from_(values)


Tokens = list[Token]
Tokenizer = Callable[[str], Tokens]
"""`tokenize`, or one that remembers what it gave."""


def tokenize(sql: str) -> list[Token]:
    if len(sql) > MAX_CHARACTERS:
        raise LimitExceeded(f"the statement has more than {MAX_CHARACTERS} characters")
    if "\x00" in sql:
        raise InvalidSyntax("the statement holds a zero byte")
    if has_lone_surrogate(sql):
        raise InvalidSyntax("the statement holds half of a character")
    signs = _find_dollar_signs(sql)
    try:
        tokens = join_number_tokens(list(AnalystDialect().tokenize(_mask_dollar_signs(sql, signs))), sql)
    except TokenError:
        raise InvalidSyntax("the statement ends within a quoted text, name or comment") from None
    if len(tokens) > MAX_TOKENS:
        raise LimitExceeded(f"the statement has more than {MAX_TOKENS} words")
    for token in tokens:
        _check_token(token, sql)
    return _unmask_dollar_signs(tokens, signs, sql) if signs else tokens


def copy_tokens(tokens: Iterable[Token]) -> list[Token]:
    """For the parser, which may change the comments of those that it is given."""
    return [Token(t.token_type, t.text, t.line, t.col, t.start, t.end, list(t.comments)) for t in tokens]


def _find_dollar_signs(sql: str) -> frozenset[int]:
    """Where a $ stands that is no part of a quoted text, name or comment: that of a $n, or one that is wrong."""
    if "$" not in sql:
        return frozenset()
    return frozenset(
        token.start for token in split_tokens(sql) if token.text[0] == "$" and token.kind is not TokenKind.STRING
    )


def _mask_dollar_signs(sql: str, signs: Collection[int]) -> str:
    """Each of them as one token, of the same length."""
    return "".join(DOLLAR_SIGN if at in signs else character for at, character in enumerate(sql)) if signs else sql


def _unmask_dollar_signs(tokens: list[Token], signs: Collection[int], sql: str) -> list[Token]:
    """Each is a $ again, also in the rest of a command, which the tokenizer takes for one text."""
    if DOLLAR_SIGN in sql and sum(token.text == DOLLAR_SIGN for token in tokens) < len(signs):
        raise InvalidSyntax("a $ stands where no placeholder can")
    unchanged = [token.start not in signs and (DOLLAR_SIGN in sql or DOLLAR_SIGN not in token.text) for token in tokens]
    pairs = zip(tokens, unchanged, strict=True)
    return [
        masked if is_unchanged else _retype_token(masked, masked.token_type, masked.text.replace(DOLLAR_SIGN, "$"))
        for masked, is_unchanged in pairs
    ]


def _check_token(token: Token, sql: str) -> None:
    span = Span(token.start, token.end + 1)
    if token.token_type is TokenType.NUMBER and len(token.text) > MAX_NUMBER_DIGITS:
        raise LimitExceeded(f"a number is too large: it has more than {MAX_NUMBER_DIGITS} digits", span=span)
    if token.token_type is TokenType.BYTE_STRING:
        if "\x00" in token.text:
            raise InvalidSyntax("the text holds a zero byte", span=span, sqlstate="22021")
        if "\\" in _ESCAPES.sub("", sql[span.start : span.end]):
            hint = "Write \\u and four, or \\U and eight hexadecimal digits of a character."
            raise InvalidSyntax("an escape is no character", hint=hint, span=span, sqlstate="22025")


_ESCAPES = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u(?![dD][89a-fA-F])[\da-fA-F]{4}"
    r"|U(?!0000[dD][89a-fA-F])00(?:0[\da-fA-F]|10)[\da-fA-F]{4}|[^uU])",
    re.DOTALL,
)
"""Those of E'…' that are characters: no half of a pair alone, none past Unicode's last. sqlglot drops other's \\."""


_TEXT_TOKENS = {TokenType.BYTE_STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING}
"""E'…' and $$…$$: texts, whose escapes the tokenizer has resolved."""
_TIME_TOKENS = frozenset({TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ, TokenType.TIME, TokenType.TIMETZ})


def normalize_tokens(tokens: list[Token]) -> list[Token]:
    """Texts of all spellings are texts; TABLE t is SELECT * FROM t, and PIVOT … is SELECT * FROM (PIVOT …)."""
    plain = [_retype_token(token, TokenType.STRING) if token.token_type in _TEXT_TOKENS else token for token in tokens]
    plain = _normalize_cast_types(plain)
    if len(plain) > 1 and plain[0].token_type is TokenType.TABLE:
        return [*_select_star_tokens(plain[0]), *plain[1:]]
    start, end = _find_pivot_statement(plain)
    if start is None:
        return plain
    opening = _retype_token(plain[start], TokenType.L_PAREN, "(")
    closing = _retype_token(plain[end - 1], TokenType.R_PAREN, ")")
    return [*plain[:start], *_select_star_tokens(plain[start]), opening, *plain[start:end], closing, *plain[end:]]


_FULL_TIME_PRECISION = "6"
_MAX_SINGLE_DIGITS, _MAX_FLOAT_DIGITS = 24, 53


def _normalize_cast_types(tokens: list[Token]) -> list[Token]:
    """Types of casts as drivers and the catalog spell them: pg_catalog.float8, "pg_catalog"."float8", FLOAT(53) and
    TIMESTAMP(6), which are float8, float8, double precision and timestamp."""
    written, at = list[Token](), 0
    while at < len(tokens):
        written.append(tokens[at])
        at += 1
        if tokens[at - 1].token_type not in (TokenType.DCOLON, TokenType.ALIAS):
            continue
        in_catalog = at + 2 < len(tokens) and tokens[at].text.lower() == "pg_catalog" and tokens[at + 1].text == "."
        if in_catalog and parse_type(tokens[at + 2].text) is not None:
            at += 2
            tokens[at] = _retype_token(tokens[at], tokenize(tokens[at].text.lower())[0].token_type)
        precision = _read_precision(tokens, at)
        if precision is not None and tokens[at].text.upper() == "FLOAT":
            written.append(_float_token(tokens[at], precision))
            at += 4
        elif precision == _FULL_TIME_PRECISION and tokens[at].token_type in _TIME_TOKENS:
            written.append(tokens[at])
            at += 4
    return written


def _read_precision(tokens: list[Token], at: int) -> str | None:
    """The number that stands alone in parentheses behind the type."""
    behind = tokens[at + 1 : at + 4]
    kinds = [token.token_type for token in behind]
    return behind[1].text if kinds == [TokenType.L_PAREN, TokenType.NUMBER, TokenType.R_PAREN] else None


def _float_token(token: Token, digits: str) -> Token:
    """FLOAT(n) by its binary digits: real up to 24, double precision up to 53."""
    if not digits.isdigit() or not 1 <= int(digits[:9]) <= _MAX_FLOAT_DIGITS:
        least = "at least 1 bit" if digits.strip("0") == "" else "less than 54 bits"
        raise InvalidParameter(f"precision for type float must be {least}", span=Span(token.start, token.end + 1))
    single = int(digits) <= _MAX_SINGLE_DIGITS
    return _retype_token(token, TokenType.FLOAT if single else TokenType.DOUBLE, "REAL" if single else "DOUBLE")


def _select_star_tokens(token: Token) -> list[Token]:
    words = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
    return [_retype_token(token, kind, text) for kind, text in words]


def _find_pivot_statement(tokens: list[Token]) -> tuple[int | None, int]:
    """Where PIVOT or UNPIVOT is the statement itself, perhaps behind WITH, and where ORDER BY or the end follows."""
    depth, start = 0, None
    for at, token in enumerate(tokens):
        kind = token.token_type
        depth += (kind in _OPENING) - (kind in _CLOSING)
        if depth or kind in _CLOSING:
            continue
        if start is not None and kind in _QUERY_ENDINGS:
            return start, at
        if start is None and kind in (TokenType.SELECT, TokenType.FROM, TokenType.VALUES):
            return None, 0
        if start is None and kind in (TokenType.PIVOT, TokenType.UNPIVOT):
            start = at
    return start, len(tokens)


def _retype_token(token: Token, kind: TokenType, text: str | None = None) -> Token:
    return Token(kind, token.text if text is None else text, token.line, token.col, token.start, token.end)


def check_token_depth(tokens: list[Token]) -> None:
    depth = prefixes = 0
    for token in tokens:
        prefixes = prefixes + 1 if token.token_type in _PREFIX_OPERATORS else 0
        if token.token_type in _OPENING:
            depth += 1
        elif token.token_type in _CLOSING:
            depth -= 1
        if depth > MAX_DEPTH or prefixes > MAX_DEPTH:
            raise LimitExceeded(
                f"the statement is nested more than {MAX_DEPTH} deep", span=Span(token.start, token.end + 1)
            )


def _check_query_start(tokens: list[Token]) -> None:
    """Only queries go to the parser, which would take some other statements for commands and pass them on."""
    words = [token for token in tokens if token.token_type is not TokenType.SEMICOLON]
    if not words:
        raise InvalidSyntax("the statement is empty", hint="Write a SELECT, for example: SELECT COUNT(*) FROM visits")
    first = words[0]
    if first.token_type in _QUERY_STARTS:
        return
    span = Span(first.start, first.end + 1)
    refuse_statement("".join(first.text.split()[:1]), span)
    hint = "A query starts with SELECT." if len(words) == 1 else misspelled_keyword_hint(first)
    raise InvalidSyntax(f'syntax error at or near "{first.text}"', hint=hint, span=span)


def _check_tree_depth(tree: exp.Expr) -> None:
    """Chains such as a + a + a … are deep without parentheses; AND and OR are flattened and may be long."""
    stack = [(tree, 0)]
    while stack:
        node, depth = stack.pop()
        if isinstance(node, exp.Select) and not node.expressions:
            raise InvalidSyntax("SELECT needs at least one column", hint="For example: SELECT COUNT(*) FROM visits")
        if isinstance(node, exp.Column) and not isinstance(node.this, exp.Identifier | exp.Star):
            raise InvalidSyntax("a column's name is expected after the point", span=span_of(node))
        if depth > 2 * MAX_DEPTH:
            raise LimitExceeded(f"the statement is nested more than {MAX_DEPTH} deep")
        for child in node.iter_expressions():
            chained = isinstance(child, exp.Connector) and type(child) is type(node)
            stack.append((child, depth if chained else depth + 1))


# Several statements in one text, as clients send them: where each begins and ends.

MAX_STATEMENTS = 1_000


def split_statements(sql: str) -> tuple[tuple[str, int], ...]:
    """Each statement without its semicolon and the space around it, and where it begins; comments alone are none.

    >>> split_statements("SET epsilon = 1; ; SELECT ';' /* ; */ -- ;")
    (('SET epsilon = 1', 0), ("SELECT ';' /* ; */ -- ;", 19))
    """
    if len(sql) > MAX_CHARACTERS:
        raise LimitExceeded(f"the statement has more than {MAX_CHARACTERS} characters")
    if ";" not in sql and (only := sql.strip()) and only[0] not in "-/":  # one that begins with no comment
        return ((only, len(sql) - len(sql.lstrip())),)
    statements: list[tuple[str, int]] = []
    waiting: list[lexer.Token] = []
    for token in (*split_tokens(sql), None):
        if token is not None and token.text != ";":
            waiting.append(token)
            continue
        if any(part.kind not in (TokenKind.SPACE, TokenKind.COMMENT) or not part.ended for part in waiting):
            text = sql[waiting[0].start : waiting[-1].end]
            statements.append((text.strip(), waiting[0].start + len(text) - len(text.lstrip())))
        waiting = []
        if len(statements) > MAX_STATEMENTS:
            raise LimitExceeded(f"there are more than {MAX_STATEMENTS} statements in one text")
    return tuple(statements)


# Statements that are not answered at all, family by family: each says why, and what to do instead.


@dataclass(frozen=True)
class RefusedStatements:
    words: frozenset[str]
    why: str
    hint: str


def _refused_statements(words: str, why: str, hint: str) -> RefusedStatements:
    return RefusedStatements(frozenset(words.split()), why, hint)


REFUSED_STATEMENTS = (
    _refused_statements(
        "INSERT UPDATE DELETE MERGE UPSERT REPLACE TRUNCATE COPY IMPORT",
        "data is read, never written",
        "Questions are answered here; the owner changes the data at its source, then registers it.",
    ),
    _refused_statements(
        "CREATE",
        "the schema declares the tables",
        "The owner adds tables to the schema; for a temporary one, or a view, write WITH name AS (SELECT …) SELECT …."
        " CREATE SYNTHETIC TABLE makes one of rows like those of a private table.",
    ),
    _refused_statements(
        "DROP",
        "the schema declares the tables",
        "What you have made yourself is dropped by DROP SYNTHETIC TABLE or DROP MODEL.",
    ),
    _refused_statements(
        "ALTER COMMENT REINDEX REFRESH",
        "the schema declares the tables",
        "Questions are answered here, and nothing is changed; the owner edits the tables in the schema.",
    ),
    _refused_statements(
        "GRANT REVOKE REASSIGN",
        "the schema declares who may ask, and how much",
        "The owner edits analysts and budgets in the schema.",
    ),
    _refused_statements(
        "ANALYZE ATTACH CALL CHECKPOINT CLUSTER DETACH DO EXPORT FORCE INSTALL LOAD PRAGMA SECURITY USE VACUUM",
        "it would reach the engine",
        "SELECT, EXPLAIN SELECT, SET, SHOW, RESET and DESCRIBE are understood.",
    ),
    _refused_statements(
        "DECLARE EXECUTE FETCH MOVE PREPARE",
        "there are no cursors and prepared statements here",
        "Send the SELECT itself; the same question asked again is free.",
    ),
    _refused_statements(
        "ASK",
        "a query is expected here",
        "ASK stands in a statement of its own; EXPLAIN ASK … tells what it would be charged.",
    ),
    _refused_statements(
        "LISTEN LOCK NOTIFY",
        "sessions share nothing",
        "Leave it out.",
    ),
)


def refuse_statement(word: str, span: Span | None) -> None:
    """Raise if the statement's first word belongs to a family."""
    for family in REFUSED_STATEMENTS:
        if word.upper() in family.words:
            raise Unsupported(f"{word.upper()} is not answered: {family.why}", hint=family.hint, span=span)


# Numbers as PostgreSQL writes them since version 16: digits in groups, and those of other bases.
#
#     1_000_000 → 1000000        0o17 → 15        0x_FF → 255
#
# sqlglot reads `1_000` as 1 with the alias _000: another number. So they are put together before it reads them.

_DECIMAL = re.compile(r"\d+(_\d+)*(\.(\d+(_\d+)*)?)?(e[+-]?\d+(_\d+)*)?", re.IGNORECASE | re.ASCII)
_BASES = {"x": (16, r"(_?[\da-f])+"), "o": (8, r"(_?[0-7])+"), "b": (2, r"(_?[01])+")}
_GROUPED = re.compile(r"[\d_.]+(e[+-]?[\d_]*)?", re.IGNORECASE | re.ASCII)
_BASED = re.compile(r"0[xob]\w*", re.IGNORECASE | re.ASCII)


def join_number_tokens(tokens: list[Token], sql: str) -> list[Token]:
    """Each such number as one token."""
    return list(_join_numbers(tokens, sql)) if "_" in sql or _BASED.search(sql) else tokens


def _join_numbers(tokens: list[Token], sql: str) -> Iterator[Token]:
    end = -1  # of the number that was joined last
    for token in tokens:
        if token.start <= end:
            continue
        text = _number_text(token, sql)
        if text is None:
            yield token
            continue
        end = token.start + len(text) - 1
        yield Token(TokenType.NUMBER, _plain_number(text, Span(token.start, end + 1)), token.line, token.col,
                    token.start, end)  # fmt: skip


def _number_text(token: Token, sql: str) -> str | None:
    """All that is written as one number, where sqlglot has read a part of it."""
    if token.token_type not in (TokenType.NUMBER, TokenType.HEX_STRING, TokenType.BIT_STRING):
        return None
    matched = _BASED.match(sql, token.start) or _GROUPED.match(sql, token.start)
    return matched[0] if matched and (matched.re is _BASED or "_" in matched[0]) else None


def _plain_number(text: str, span: Span) -> str:
    if len(text) > MAX_NUMBER_DIGITS:
        raise LimitExceeded(f"a number is too large: it has more than {MAX_NUMBER_DIGITS} digits", span=span)
    base, digits = _BASES.get(text[1:2].lower(), (10, ""))
    whole = re.fullmatch(digits, text[2:], re.IGNORECASE) if digits else _DECIMAL.fullmatch(text)
    if whole is None:
        raise InvalidSyntax(f'trailing junk after numeric literal at or near "{text}"', span=span)
    plain = text.replace("_", "")
    return str(int(plain[2:], base)) if digits else plain


# Joins in parentheses, however deep, as Access and Power BI write them.
#
#     FROM ((visits v JOIN patients p ON …) JOIN wards w ON …) JOIN doctors d ON …
#     →  FROM visits v JOIN patients p ON … JOIN wards w ON … JOIN doctors d ON …
#
# JOIN is left-associative, so parentheses around the first source say nothing. Those around a later one stay: sqlglot
# hangs the joins within them on their first source.


def remove_redundant_parentheses(tree: exp.Query) -> exp.Query:
    """FROM with the parentheses that change nothing taken off."""
    for select in [tree, *tree.find_all(exp.Select)]:
        from_ = select.args.get("from_")
        if from_ is None:
            continue
        for join in select.args.get("joins") or ():
            _unwrap_source(join)
        _unwrap_source(from_)
        first = from_.this
        if is_join_tree(first) and first.args.get("alias") is None:
            joins = [*_detach_joins(first.this), *(select.args.get("joins") or ())]
            from_.set("this", first.this)
            select.set("joins", joins or None)
    return tree


def is_join_tree(source: exp.Expr) -> bool:
    """Whether a source is others in parentheses, and no query of its own."""
    if not isinstance(source, exp.Subquery) or isinstance(source.this, exp.Select | exp.SetOperation):
        return False
    inner = source.this
    return isinstance(inner, exp.Table) or bool(inner.args.get("joins")) or _has_alias(inner)


def join_leaves(source: exp.Expr) -> list[exp.Expr]:
    """The sources within parentheses that have no name of their own, in order; else the source itself."""
    inner = join_leaves(source.this) if is_join_tree(source) and source.args.get("alias") is None else [source]
    return inner + [leaf for join in source.args.get("joins") or () for leaf in join_leaves(join.this)]


def _has_alias(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery) and node.args.get("alias") is not None


def _unwrap_source(holder: exp.Expr) -> None:
    """Take double parentheses off the source that stands in FROM, in JOIN or in parentheses."""
    source = holder.this
    if not isinstance(source, exp.Subquery | exp.Table):
        return
    for join in source.args.get("joins") or ():
        _unwrap_source(join)
    if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Subquery | exp.Table):
        return
    _unwrap_source(source)
    inner = source.this
    if isinstance(inner, exp.Subquery) and _has_only_joins(inner):
        first, joins = inner.this, inner.args.get("joins") or []
        if not joins or is_join_tree(inner):
            if joins:
                first.set("joins", [*(first.args.get("joins") or ()), *joins])
            source.set("this", first)
    elif _has_only_joins(source) and not source.args.get("joins") and not inner.args.get("joins"):
        holder.set("this", inner)


def _has_only_joins(source: exp.Expr) -> bool:
    return not any(value for key, value in source.args.items() if key not in ("this", "joins"))


def _detach_joins(source: exp.Expr) -> list[exp.Expr]:
    joins = source.args.get("joins") or []
    source.set("joins", None)
    return list(joins)


# Where in a statement stands what post-processing does not know: it reads a text of ours, not the reader's.

_NAME_IN_MESSAGE = re.compile(
    r'(?:column|table|type) "(?P<name>.+)" (?:specified in USING clause )?does not exist'
    r'|function "?(?P<call>\w+)"?(?:\(.*\))? (?:does not exist|is not)'
    r"|operator does not exist: .*? ?(?P<operator>[-+*/%^|&<>=~!#@]+|(?:NOT )?I?LIKE) "
    r'|(?:invalid input syntax for type [^:]+: |date/time field value out of range: |value )"(?P<text>.*?)"',
    re.DOTALL,
)


@contextmanager
def locate_error(sql: str) -> Iterator[None]:
    """Give an error the span of the name or value in its message, if the statement has that word once."""
    try:
        yield
    except (ProgrammingError, DataError) as error:
        if error.span is None:
            error.span = _find_error_span(error, sql)
        raise


def _find_error_span(error: Error, sql: str) -> Span | None:
    named = _NAME_IN_MESSAGE.match(error.message)
    if named is None:
        return None
    name = named["name"] or named["call"] or named["operator"]
    tokens = tokenize(sql)
    spans = [
        Span(_qualified_start(tokens, index), token.end + 1)
        for index, token in enumerate(tokens)
        if (token.text == named["text"] if name is None else token.text.lower() == name.lower())
        and (token.token_type is TokenType.STRING) == (name is None)
    ]
    return spans[0] if len(spans) == 1 else None


def _qualified_start(tokens: list[Token], index: int) -> int:
    """Where a name begins, its qualifier included."""
    qualified = index > 1 and tokens[index - 1].token_type is TokenType.DOT
    return tokens[index - 2 if qualified else index].start
