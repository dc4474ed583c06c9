"""DuckDB's errors in post-processing, with PostgreSQL's words and codes.

Law: the sandbox holds releases and public rows only, so all that it says may be shown.
"""

from __future__ import annotations

import re

from dpsql.errors import DataError, Error, InvalidSyntax, ProgrammingError, UnknownColumn, UnknownFunction, UnknownTable

_ERROR_PREFIX = re.compile(r"^[A-Z][A-Za-z-]*( [A-Za-z-]+)* Error: ")  # it says nothing more
_COLUMN = re.compile(
    r'Referenced column "(?P<name>.+?)" (?:was )?not found|does not have a column named "(?P<own>.+?)"'
    r'|^Column "(?P<output>.+?)" referenced that exists in the SELECT clause'  # as we name the output after it
)
_USING = re.compile(r'^Column "(.+?)" does not exist on (left|right) side of join')
_NATURAL = re.compile(r"^No columns found to join on in NATURAL JOIN")
_TABLE = re.compile(r"Table with name (.+?) does not exist")
_QUALIFIER = re.compile(r'Referenced table "(.+?)" not found')
_FUNCTION = re.compile(r"Function with name (.+?) does not exist")
_CANDIDATES = re.compile(r"Candidate (?:bindings|tables): *:? *(.+)")
_SQLSTATES = (
    (re.compile(r"Ambiguous reference to column name"), "42702"),
    (re.compile(r"must appear in the GROUP BY clause"), "42803"),
    (re.compile(r"cannot contain aggregates|aggregate function calls cannot be nested"), "42803"),
    (re.compile(r"Window functions are not supported here"), "42P20"),
    (re.compile(r"ORDER term out of range|GROUP BY term out of range"), "42P10"),
    (re.compile(r"Set operations can only apply|Subquery returns \d+ columns"), "42601"),
    (re.compile(r"LIMIT/OFFSET cannot be negative"), "2201W"),
)
_CALL = re.compile(
    r"No function matches the given name and argument types '(.+?)\((.*)\)'"
    r'|Could not choose a best candidate function for the function call "(.+?)\((.*)\)"'
)
_TYPE = re.compile(r'Type with name "?(.+?)"? (?:does not exist|is not in the catalog)')
_IN_EXTENSION = re.compile(r'Function with name "?(.+?)"? is not in the catalog')
_CAST = re.compile(r"Unimplemented type for cast \((.+) -> (.+?)\)")
_DECIMAL_OVERFLOW = re.compile(r"Could not cast value .* to DECIMAL\((\d+),(\d+)\)")
_BINARY_TEXT = re.compile(r"string -> (blob|bit) conversion|Cannot cast empty string to (BIT)")
_EXPRESSION = re.compile(
    r"^(missing [])]|invalid (?:escape sequence|character class|perl operator|repetition size)|bad repetition operator"
    r"|no argument for repetition|unexpected \)|trailing \\)"
)
_TEXT = re.compile(r"""Could not convert string ['"](?P<text>.*)['"] to (?P<type>[\w(),]+)""", re.DOTALL)
_DATETIME_FIELD = re.compile(
    r'(?:invalid )?(?P<type>date|timestamp|time) field (?P<what>format|value out of range): "(?P<text>.*?)"'
)
_UNREADABLE_TIME = re.compile(r'Could not parse string "(.*)" according to format', re.DOTALL)
_UNIT = re.compile(r'extract specifier "(.+?)" not recognized')
_OUT_OF_RANGE = re.compile(r"out of range for the destination type (\w+)|^Overflow in \w+ of (\w+)")
_POSTGRES_TYPES = {
    "INT8": "smallint", "INT16": "smallint", "INT32": "integer", "INT64": "bigint", "BOOL": "boolean",
    "INTEGER_LITERAL": "integer", "STRING_LITERAL": "unknown", "VARCHAR": "text", "DOUBLE": "double precision",
    "FLOAT": "real", "TIMESTAMP": "timestamp without time zone", "HUGEINT": "numeric", '"NULL"': "unknown",
    "BOOLEAN": "boolean", "INTEGER": "integer", "BIGINT": "bigint", "SMALLINT": "smallint", "BLOB": "bytea",
    "TIMESTAMP WITH TIME ZONE": "timestamp with time zone", "TIME": "time without time zone",
    "uint32": "oid", "UINT32": "oid",
}  # fmt: skip


def translate_duckdb_error(kind: str, text: str) -> Error:
    """Of an exception of DuckDB's driver: its class's name, and what it says.

    >>> text = 'Binder Error: Referenced column "wrd" not found in FROM clause!'
    >>> print(translate_duckdb_error("BinderException", text))
    column "wrd" does not exist
    """
    # DuckDB points into the text with our part in front, which the reader has not written.
    lines = [line for line in text.split("\n\nLINE ")[0].splitlines() if line.strip()]
    message = _ERROR_PREFIX.sub("", lines[0].rstrip(".!")) if lines else kind
    detail = "\n".join(lines[1:]) or None
    return _unknown_name_error(message, detail) or _other_error(kind, message, detail)


def _unknown_name_error(message: str, detail: str | None) -> Error | None:
    near = _CANDIDATES.search(detail or "")
    hint = f"Perhaps you meant {near[1].strip()}." if near else None
    if match := _COLUMN.search(message):
        return UnknownColumn(f'column "{match["name"] or match["own"] or match["output"]}" does not exist', hint=hint)
    if match := _USING.search(message):
        side = f"{match[2]} table"
        return UnknownColumn(f'column "{match[1]}" specified in USING clause does not exist in {side}',
                             hint="Both sides of the join must have it; else write ON.")  # fmt: skip
    if _NATURAL.search(message):
        hint = "Write ON or USING, or CROSS JOIN for every pair of rows."
        return UnknownColumn("the two sides of NATURAL JOIN have no column in common", hint=hint)
    if match := _TABLE.search(message):
        return UnknownTable(f'relation "{match[1]}" does not exist', hint=hint)
    if match := _QUALIFIER.search(message):
        return UnknownTable(f'missing FROM-clause entry for table "{match[1]}"', hint=hint)
    if match := _FUNCTION.search(message) or _IN_EXTENSION.search(message):
        return UnknownFunction(f'function "{match[1]}" does not exist')
    return None


def _other_error(kind: str, message: str, detail: str | None) -> Error:
    error = _unknown_call_error(message, detail) or invalid_value_error(message)
    if error is not None:
        return error
    for pattern, state in _SQLSTATES:
        if pattern.search(message):
            return ProgrammingError(f"post-processing failed: {message}", detail=detail, sqlstate=state)
    text = f"post-processing failed: {message}"
    match kind:
        case "ParserException":
            return InvalidSyntax(text, detail=detail)
        case "OutOfRangeException":
            return DataError(text, detail=detail, sqlstate="22003")
        case "ConversionException":
            state = "22003" if "out of range" in message or "Could not cast value" in message else "22P02"
            return DataError(text, detail=detail, sqlstate=state)
        case "InvalidInputException" if "More than one row" in message:
            return DataError(text, sqlstate="21000")
        case _ if _EXPRESSION.search(message):
            return DataError(f"invalid regular expression: {message}", sqlstate="2201B")
        case _:
            return DataError(text, detail=detail)


def _unknown_call_error(message: str, detail: str | None) -> Error | None:
    """A function, operator or type that there is not."""
    if match := _TYPE.search(message):
        name = match[1].lower() if match[1].isupper() else match[1]  # as words that the parser knows are written
        return ProgrammingError(f'type "{name}" does not exist', sqlstate="42704")
    match = _CALL.search(message)
    if match is None:
        return None
    name, arguments = match[1] or match[3], match[2] or match[4] or ""
    types = [postgres_type_name(argument) for argument in re.split(r", (?![^(]*\))", arguments) if argument]
    hint = "You might need to add explicit type casts."
    if not re.fullmatch(r"\w+", name):
        expression = f" {_OPERATORS.get(name, name)} ".join(types if len(types) == 2 else ["", *types]).strip()
        return UnknownFunction(f"operator does not exist: {expression}", detail=detail, hint=hint)
    call = f"{name}({', '.join(types)})"
    if match[3] is not None:
        return UnknownFunction(f"function {call} is not unique", detail=detail, hint=hint, sqlstate="42725")
    return UnknownFunction(f"function {call} does not exist", detail=detail, hint=hint)


_OPERATORS = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}


def invalid_value_error(message: str) -> Error | None:
    """A text that is no value of a type, or a number that does not fit it: what the engine adds is in its own words."""
    if match := _CAST.search(message):
        before, after = postgres_type_name(match[1]), postgres_type_name(match[2])
        return ProgrammingError(f"cannot cast type {before} to {after}", sqlstate="42846")
    if match := _DECIMAL_OVERFLOW.search(message):
        whole = int(match[1]) - int(match[2])
        detail = (
            f"A field with precision {match[1]}, scale {match[2]} must round to an absolute value less than 10^{whole}."
        )
        return DataError("numeric field overflow", detail=detail, sqlstate="22003")
    if message.startswith("invalid input syntax for type bytea"):  # of `compiler/postprocess/typed_texts.py`
        return DataError("invalid input syntax for type bytea", sqlstate="22P02")
    if message.startswith("negative substring length not allowed"):
        return DataError("negative substring length not allowed", sqlstate="22011")
    if message.startswith("Malformed JSON"):
        return DataError("invalid input syntax for type json", sqlstate="22P02")
    if match := _BINARY_TEXT.search(message):
        name = "bytea" if match[1] == "blob" else "bit"
        return DataError(f"invalid input syntax for type {name}", sqlstate="22P02")
    if match := _UNREADABLE_TIME.search(message):
        hint = "Write a format that the text has."
        return DataError(f'the text "{match[1]}" is not of the format that it is read by', hint=hint, sqlstate="22007")
    if match := _TEXT.search(message):
        type_ = postgres_type_name(match["type"])
        if type_ in _INTEGER_TYPES and re.fullmatch(r"\s*[+-]?\d+\s*", match["text"]):
            return DataError(f'value "{match["text"]}" is out of range for type {type_}', sqlstate="22003")
        state = "22007" if type_ == "interval" else "22P02"
        return DataError(f'invalid input syntax for type {type_}: "{match["text"]}"', sqlstate=state)
    if match := _DATETIME_FIELD.search(message):
        if match["what"] == "format" or not re.search(r"\d", match["text"]):
            words = f'invalid input syntax for type {match["type"]}: "{match["text"]}"'
            return DataError(words, sqlstate="22007")
        return DataError(f'date/time field value out of range: "{match["text"]}"', sqlstate="22008")
    if match := _UNIT.search(message):
        return DataError(f'unit "{match[1].lower()}" not recognized', sqlstate="22023")
    if match := _OUT_OF_RANGE.search(message):
        return DataError(f"{postgres_type_name(match[1] or match[2])} out of range", sqlstate="22003")
    return None


_INTEGER_TYPES = frozenset({"smallint", "integer", "bigint"})


def postgres_type_name(type_: str) -> str:
    """A type of DuckDB's, as PostgreSQL calls it.

    >>> [postgres_type_name(type_) for type_ in ("VARCHAR", "DECIMAL(9,2)", "INTEGER_LITERAL[]", "DATE")]
    ['text', 'numeric', 'integer[]', 'date']
    """
    if type_.endswith("[]"):
        return postgres_type_name(type_[:-2]) + "[]"
    return "numeric" if type_.startswith("DECIMAL") else _POSTGRES_TYPES.get(type_, type_.lower())
