"""Locations of the engine, the ledger and the rows: URLs and paths, made absolute.

Law: a message shows what the owner wrote, never what a variable was expanded to; that may be a secret.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from dpsql.schema.document import NodeRef, closest_name, printable_text, quote_text, read_flag, suggest_name
from dpsql.schema.keys import ENCODINGS, ENV_NAME, NAME
from dpsql.schema.model import EngineTable, Files, Source

MEMORY_URL = "duckdb:///:memory:"
FILE_FORMATS = ("parquet", "csv", "json")
_CSV_ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_UNSUPPORTED_ENGINES = {"postgresql": "PostgreSQL", "postgres": "PostgreSQL", "spark": "Spark"}


@lru_cache(maxsize=64)
def database_path(url: str) -> Path | None:
    """The file behind a normalised engine or ledger URL; None for a database in memory or on a server."""
    scheme, _, path = url.partition(":///")
    return None if path in ("", ":memory:") or scheme not in ("duckdb", "sqlite") else Path(path)


def expand_variables(at: NodeRef, env: Mapping[str, str]) -> str:
    """The text with each ${NAME} replaced by the environment variable."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if not re.fullmatch(ENV_NAME, name):
            raise at.error(f"holds {quote_text(match[0])}, which names no environment variable", "Write ${NAME}.")
        if name not in env:
            hint = f"Set it before the schema is opened, for example: export {name}=…"
            raise at.error(f"needs the environment variable {quote_text(name)}, which is not set", hint)
        return env[name]

    expanded = re.sub(r"\$\{([^}]*)\}", value, at.text)
    if any(not c.isprintable() for c in expanded):
        raise at.error("holds a control character", "Remove line breaks and tabs.")
    return expanded


def read_engine(at: NodeRef | None, folder: Path, env: Mapping[str, str]) -> str:
    if at is None:
        return MEMORY_URL
    text = expand_variables(at, env)
    if text in ("duckdb:", "duckdb:/", "duckdb://", "duckdb:///", MEMORY_URL):
        return MEMORY_URL
    hint = "Write duckdb:///file.duckdb (relative to this schema), duckdb:////absolute/path, or duckdb:// for files."
    return _file_url(at, text, "duckdb", folder, hint)


def read_ledger(at: NodeRef | None, folder: Path, stem: str, env: Mapping[str, str]) -> str:
    if at is None:
        return f"sqlite:///{folder / stem}.ledger"
    text = expand_variables(at, env)
    if re.match(r"postgres(ql)?://.", text):
        return text  # read where it is opened, by what knows such URLs; it may hold a password
    hint = (
        "Write sqlite:///file.ledger (relative to this schema), sqlite:////absolute/path, or"
        " postgresql://user@host/database."
    )
    if text.lower().startswith("postgres"):  # not quoted: nobody knows where in it the password is
        raise at.error("must be a URL like postgresql://user@host/database", hint)
    if re.fullmatch(r"sqlite:/{0,3}(:memory:)?", text):
        raise at.error("must be a file: a ledger in memory would forget what was spent", hint)
    return _file_url(at, text, "sqlite", folder, hint)


def _file_url(at: NodeRef, text: str, scheme: str, folder: Path, hint: str) -> str:
    url_scheme, separator, path = text.partition(":///")
    url_scheme = url_scheme.partition(":")[0].lower()
    if url_scheme in _UNSUPPORTED_ENGINES and scheme == "duckdb":
        raise at.error(f"names a {_UNSUPPORTED_ENGINES[url_scheme]} engine, which is not yet served", hint)
    if url_scheme != scheme or not separator or not path:
        near = f'Did you mean "{scheme}"? ' if url_scheme != scheme and closest_name(url_scheme, [scheme]) else ""
        raise at.mismatch_error(f"a URL like {scheme}:///path", near + hint)
    if "?" in path or "#" in path:
        raise at.error('must not hold "?" or "#": there are no options in the URL', hint)
    return f"{scheme}:///{_absolute_path(folder, path)}"


def _absolute_path(folder: Path, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))


def read_source(
    at: NodeRef | None, table: NodeRef, name: str, folder: Path, engine: str, env: Mapping[str, str]
) -> Source:
    if at is None:
        source: Source = EngineTable((name,))
    elif (path := at.child("path")) is not None:
        source = _read_csv_source(at, path, folder, env)
    else:
        source = _read_named_source(at, folder, env)
    if isinstance(source, EngineTable) and engine == MEMORY_URL:
        hint = "Write source: data/file.parquet, or engine: duckdb:///file.duckdb for a database with this table."
        if at is None:
            raise table.error("needs a source, since the engine is only a reader of files", hint, line=table.key_line)
        raise at.mismatch_error(
            "a path of .parquet, .csv or .json files, since the engine is only a reader of files", hint
        )
    return source


def _read_named_source(at: NodeRef, folder: Path, env: Mapping[str, str]) -> Source:
    text = expand_variables(at, env)
    extension = text.rpartition(".")[2].lower()
    if text.lower().endswith(_CSV_ENDINGS):
        pattern, delimiter = _absolute_pattern(at, text, folder), _usual_delimiter(text)
        return Files((pattern,), "csv", delimiter=delimiter, written=(at.text,))
    if extension in FILE_FORMATS:
        return Files((_absolute_pattern(at, text, folder),), extension, written=(at.text,))
    parts = tuple(text.split("."))
    if any(c in text for c in "/\\*?[") or len(parts) > 3 or not all(re.fullmatch(NAME, part) for part in parts):
        raise at.mismatch_error(
            "a path that ends in .parquet, .csv or .json, or a table's name",
            suggest_name(extension, list(FILE_FORMATS), "formats") if "." in text else "Give the file its extension.",
        )
    return EngineTable(parts)


def _read_csv_source(at: NodeRef, path: NodeRef, folder: Path, env: Mapping[str, str]) -> Files:
    text = expand_variables(path, env)
    if not text.lower().endswith(_CSV_ENDINGS):
        hint = f"Write source: {printable_text(path.text)} for other files; they have no dialect."
        raise path.mismatch_error("a path that ends in .csv, .tsv or .csv.gz", hint)
    header, delimiter = at.child("header"), at.child("delimiter")
    quote, null = at.child("quote"), at.child("null")
    escape, encoding, skip, decimal = (at.child(name) for name in ("escape", "encoding", "skip", "decimal"))
    files = Files(
        (_absolute_pattern(path, text, folder),),
        "csv",
        header=True if header is None else read_flag(header),
        delimiter=_usual_delimiter(text) if delimiter is None else delimiter.text,
        quote='"' if quote is None else quote.text,
        null="" if null is None else null.text,
        escape="" if escape is None or escape.text == ('"' if quote is None else quote.text) else escape.text,
        encoding="" if encoding is None or encoding.text == ENCODINGS[0] else encoding.text,
        skip=0 if skip is None else int(skip.text),
        decimal="," if decimal is not None and decimal.text == "," else "",
        written=(path.text,),
    )
    if files.delimiter == files.quote:
        raise (quote or delimiter or at).error("must differ from the delimiter", 'Write for example quote: "\'".')
    if any(c and c in files.null for c in (files.delimiter, files.quote)):
        raise (null or at).error("must not hold the delimiter or the quote", 'Write for example null: "".')
    if escape is not None and files.escape == files.delimiter:
        raise escape.error("must differ from the delimiter", "Leave it out: a quote in a field is then written twice.")
    return files


def _usual_delimiter(path: str) -> str:
    return "\t" if path.lower().endswith((".tsv", ".tsv.gz")) else ","


def _absolute_pattern(at: NodeRef, text: str, folder: Path) -> str:
    if "://" in text:
        raise at.mismatch_error("a local path", "Copy the files to this machine; remote files are not served.")
    if os.path.isabs(text):
        return os.path.normpath(text)
    # The owner's pattern may hold wildcards; the folder that the schema happens to stand in must not add any.
    return os.path.normpath(os.path.join(glob.escape(str(folder)), text))
