"""COPY (query) TO STDOUT: what it asks, and in which format."""

from __future__ import annotations

from dataclasses import dataclass

from dpsql.errors import InvalidSyntax, Unsupported
from dpsql.lex import Kind
from dpsql.sql.words import Words, string_of


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


def read_copy(words: Words) -> CopyCommand:
    start = words.next
    if start is None or start.text != "(":
        raise Unsupported("COPY takes a query in parentheses, and writes it out",
                          hint="For example: COPY (SELECT ward, COUNT(*) FROM visits GROUP BY ward) TO STDOUT "
                          "WITH (FORMAT csv, HEADER).")  # fmt: skip
    sql, offset = words.in_parentheses()
    words.expect("to")
    if not words.accept("stdout"):
        raise Unsupported("COPY writes to STDOUT only: no file of the server can be reached")
    options: dict[str, object] = {}
    words.accept("with")
    if words.accept("("):
        _copy_option(words, options)
        while words.accept(","):
            _copy_option(words, options)
        words.expect(")")
    else:
        while words.next is not None:
            _copy_option(words, options)
    words.end()
    return _copied(sql, offset, options)


def _copy_option(words: Words, options: dict[str, object]) -> None:
    """Both spellings: (FORMAT csv, HEADER true) and CSV HEADER DELIMITER AS ';'."""
    name = words.word()
    match name:
        case "format":
            options["csv"] = _format(words)
        case "csv" | "text":
            options["csv"] = name == "csv"
        case "binary":
            raise Unsupported("COPY in the binary format is not available", hint="FORMAT csv and FORMAT text are.")
        case "header":
            options["header"] = not any(words.accept(one) for one in ("false", "off", "0"))
            any(words.accept(one) for one in ("true", "on", "1"))
        case "delimiter" | "delimiters" | "null" | "quote" | "escape" | "encoding":
            words.accept("as")
            options[name.removesuffix("s")] = words.text()
        case "force_quote":
            options["force_quote"] = ("*",) if words.accept("*") else _names(words)
        case "force":
            words.expect("quote")
            options["force_quote"] = ("*",) if words.accept("*") else (words.name(),)
        case _:
            raise Unsupported(f'COPY has no option "{name}" here')


def _format(words: Words) -> bool:
    token = words.take()
    named = (string_of(token) if token.kind is Kind.STRING else token.text).lower()
    if named not in ("csv", "text"):
        raise Unsupported(f'COPY format "{named}" is not available', hint="FORMAT csv and FORMAT text are.")
    return named == "csv"


def _names(words: Words) -> tuple[str, ...]:
    words.expect("(")
    names = [words.name()]
    while words.accept(","):
        names.append(words.name())
    words.expect(")")
    return tuple(names)


def _copied(sql: str, offset: int, options: dict[str, object]) -> CopyCommand:
    encoding = str(options.pop("encoding", "UTF8")).lower().replace("-", "")
    if encoding not in ("utf8", "unicode"):
        raise Unsupported("COPY writes UTF8")
    csv = bool(options.get("csv"))
    for name in ("quote", "escape", "force_quote"):
        if name in options and not csv:
            raise Unsupported(f"COPY {name} is for CSV", hint="Write FORMAT csv.")
    quote = str(options.get("quote", '"'))
    defaults: dict[str, object] = {"delimiter": ",", "null": "", "escape": quote} if csv else {}
    given = {**defaults, **options}
    for name in ("delimiter", "quote", "escape"):
        one = str(given.get(name, "x"))
        if len(one) != 1 or not one.isascii() or one in "\r\n" or (name == "delimiter" and not csv and one == "\\"):
            raise InvalidSyntax(f"COPY {name} must be a single one-byte character", sqlstate="22023")
    if any(character in str(given.get("null", "")) for character in "\r\n"):
        raise InvalidSyntax("COPY null cannot use newline or carriage return", sqlstate="22023")
    return CopyCommand(sql, offset, **given)  # type: ignore[arg-type]
