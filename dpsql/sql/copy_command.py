"""COPY (query) TO STDOUT: what it asks, and in which format."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.errors import InvalidSyntax, Unsupported
from dpsql.lex import TokenKind
from dpsql.sql.words import CommandReader, string_value


@dataclass(frozen=True)
class CopyCommand:
    """COPY (query) TO STDOUT. `force_quote`: columns whose values are quoted, ("*",) for all."""

    sql: str
    offset: int
    csv: bool = False
    header: bool = False
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'
    escape: str = '"'
    force_quote: tuple[str, ...] = ()


def read_copy(words: CommandReader) -> CopyCommand:
    start = words.next_token
    if start is None or start.text != "(":
        raise Unsupported("COPY takes a query in parentheses, and writes it out",
                          hint="For example: COPY (SELECT ward, COUNT(*) FROM visits GROUP BY ward) TO STDOUT "
                          "WITH (FORMAT csv, HEADER).")  # fmt: skip
    sql, offset = words.read_parenthesized()
    words.expect("to")
    if not words.accept("stdout"):
        raise Unsupported("COPY writes to STDOUT only: no file of the server can be reached")
    options: dict[str, object] = {}
    words.accept("with")
    if words.accept("("):
        _read_copy_option(words, options)
        while words.accept(","):
            _read_copy_option(words, options)
        words.expect(")")
    else:
        while words.next_token is not None:
            _read_copy_option(words, options)
    words.expect_end()
    return _build_copy_command(sql, offset, options)


def _read_copy_option(words: CommandReader, options: dict[str, object]) -> None:
    """Both spellings: (FORMAT csv, HEADER true) and CSV HEADER DELIMITER AS ';'."""
    name = words.read_word()
    match name:
        case "format":
            options["csv"] = _read_copy_format(words)
        case "csv" | "text":
            options["csv"] = name == "csv"
        case "binary":
            raise Unsupported("COPY in the binary format is not available", hint="FORMAT csv and FORMAT text are.")
        case "header":
            options["header"] = not any(words.accept(word) for word in ("false", "off", "0"))
            any(words.accept(word) for word in ("true", "on", "1"))
        case "delimiter" | "delimiters" | "null" | "quote" | "escape" | "encoding":
            words.accept("as")
            options[name.removesuffix("s")] = words.read_string()
        case "force_quote":
            options["force_quote"] = ("*",) if words.accept("*") else _read_copy_names(words)
        case "force":
            words.expect("quote")
            options["force_quote"] = ("*",) if words.accept("*") else (words.read_name(),)
        case _:
            raise Unsupported(f'COPY has no option "{name}" here')


def _read_copy_format(words: CommandReader) -> bool:
    token = words.take_token()
    named = (string_value(token) if token.kind is TokenKind.STRING else token.text).lower()
    if named not in ("csv", "text"):
        raise Unsupported(f'COPY format "{named}" is not available', hint="FORMAT csv and FORMAT text are.")
    return named == "csv"


def _read_copy_names(words: CommandReader) -> tuple[str, ...]:
    words.expect("(")
    names = [words.read_name()]
    while words.accept(","):
        names.append(words.read_name())
    words.expect(")")
    return tuple(names)


def _build_copy_command(sql: str, offset: int, options: dict[str, object]) -> CopyCommand:
    encoding = str(options.pop("encoding", "UTF8")).lower().replace("-", "")
    if encoding not in ("utf8", "unicode"):
        raise Unsupported("COPY writes UTF8")
    csv = bool(options.get("csv"))
    for name in ("quote", "escape", "force_quote"):
        if name in options and not csv:
            raise Unsupported(f"COPY {name} is for CSV", hint="Write FORMAT csv.")
    quote = str(options.get("quote", '"'))
    defaults: dict[str, object] = {"delimiter": ",", "null": "", "escape": quote} if csv else {}
    merged = {**defaults, **options}
    for name in ("delimiter", "quote", "escape"):
        value = str(merged.get(name, "x"))
        if len(value) != 1 or not value.isascii() or value in "\r\n" or (name == "delimiter" and not csv and value == "\\"):
            raise InvalidSyntax(f"COPY {name} must be a single one-byte character", sqlstate="22023")
    if any(character in str(merged.get("null", "")) for character in "\r\n"):
        raise InvalidSyntax("COPY null cannot use newline or carriage return", sqlstate="22023")
    return CopyCommand(sql, offset, **merged)  # type: ignore[arg-type]
