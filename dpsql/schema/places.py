"""Where the engine, the ledger and the rows are: URLs and paths, made absolute.

Law: a message shows what the owner wrote, never what a variable was expanded to; that may be a secret.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from pathlib import Path

from dpsql.schema.document import At, closest, quoted, shown, suggestion
from dpsql.schema.keys import ENV_NAME, NAME
from dpsql.schema.model import EngineTable, Files, Source
from dpsql.schema.shape import read_flag

MEMORY = "duckdb:///:memory:"
FORMATS = ("parquet", "csv", "json")
_NOT_YET = {"postgresql": "PostgreSQL", "postgres": "PostgreSQL", "spark": "Spark"}


def database_path(url: str) -> Path | None:
    """The file behind a normalised engine or ledger URL; None for a database in memory or on a server."""
    scheme, _, path = url.partition(":///")
    return None if path in ("", ":memory:") or scheme not in ("duckdb", "sqlite") else Path(path)


def expand(at: At, env: Mapping[str, str]) -> str:
    """The text with each ${NAME} replaced by the environment variable."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if not re.fullmatch(ENV_NAME, name):
            raise at.error(f"holds {quoted(match[0])}, which names no environment variable", "Write ${NAME}.")
        if name not in env:
            hint = f"Set it before the schema is opened, for example: export {name}=…"
            raise at.error(f"needs the environment variable {quoted(name)}, which is not set", hint)
        return env[name]

    expanded = re.sub(r"\$\{([^}]*)\}", value, at.text)
    if any(not c.isprintable() for c in expanded):
        raise at.error("holds a control character", "Remove line breaks and tabs.")
    return expanded


def read_engine(at: At | None, folder: Path, env: Mapping[str, str]) -> str:
    if at is None:
        return MEMORY
    text = expand(at, env)
    if text in ("duckdb:", "duckdb:/", "duckdb://", "duckdb:///", MEMORY):
        return MEMORY
    hint = "Write duckdb:///file.duckdb (relative to this schema), duckdb:////absolute/path, or duckdb:// for files."
    return _file_url(at, text, "duckdb", folder, hint)


def read_ledger(at: At | None, folder: Path, stem: str, env: Mapping[str, str]) -> str:
    if at is None:
        return f"sqlite:///{folder / stem}.ledger"
    text = expand(at, env)
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


def _file_url(at: At, text: str, scheme: str, folder: Path, hint: str) -> str:
    found, separator, path = text.partition(":///")
    found = found.partition(":")[0].lower()
    if found in _NOT_YET and scheme == "duckdb":
        raise at.error(f"names a {_NOT_YET[found]} engine, which is not yet served", hint)
    if found != scheme or not separator or not path:
        near = f'Did you mean "{scheme}"? ' if found != scheme and closest(found, [scheme]) else ""
        raise at.wrong(f"a URL like {scheme}:///path", near + hint)
    if "?" in path or "#" in path:
        raise at.error('must not hold "?" or "#": there are no options in the URL', hint)
    return f"{scheme}:///{_absolute(folder, path)}"


def _absolute(folder: Path, path: str) -> str:
    return os.path.normpath(os.path.join(folder, path))


def read_source(at: At | None, table: At, name: str, folder: Path, engine: str, env: Mapping[str, str]) -> Source:
    if at is None:
        source: Source = EngineTable((name,))
    elif (path := at.child("path")) is not None:
        source = _csv(at, path, folder, env)
    else:
        source = _named_or_files(at, folder, env)
    if isinstance(source, EngineTable) and engine == MEMORY:
        hint = "Write source: data/file.parquet, or engine: duckdb:///file.duckdb for a database with this table."
        if at is None:
            raise table.error("needs a source, since the engine is only a reader of files", hint, line=table.key_line)
        raise at.wrong("a path of .parquet, .csv or .json files, since the engine is only a reader of files", hint)
    return source


def _named_or_files(at: At, folder: Path, env: Mapping[str, str]) -> Source:
    text = expand(at, env)
    extension = text.rpartition(".")[2].lower()
    if extension in FORMATS:
        return Files((_pattern(at, text, folder),), extension, written=(at.text,))
    parts = tuple(text.split("."))
    if any(c in text for c in "/\\*?[") or len(parts) > 3 or not all(re.fullmatch(NAME, part) for part in parts):
        raise at.wrong(
            "a path that ends in .parquet, .csv or .json, or a table's name",
            suggestion(extension, list(FORMATS), "formats") if "." in text else "Give the file its extension.",
        )
    return EngineTable(parts)


def _csv(at: At, path: At, folder: Path, env: Mapping[str, str]) -> Files:
    text = expand(path, env)
    if not text.lower().endswith(".csv"):
        hint = f"Write source: {shown(path.text)} for other files; they have no dialect."
        raise path.wrong("a path that ends in .csv", hint)
    header, delimiter = at.child("header"), at.child("delimiter")
    quote, null = at.child("quote"), at.child("null")
    files = Files(
        (_pattern(path, text, folder),),
        "csv",
        header=True if header is None else read_flag(header),
        delimiter="," if delimiter is None else delimiter.text,
        quote='"' if quote is None else quote.text,
        null="" if null is None else null.text,
        written=(path.text,),
    )
    if files.delimiter == files.quote:
        raise (quote or delimiter or at).error("must differ from the delimiter", 'Write for example quote: "\'".')
    if any(c and c in files.null for c in (files.delimiter, files.quote)):
        raise (null or at).error("must not hold the delimiter or the quote", 'Write for example null: "".')
    return files


def _pattern(at: At, text: str, folder: Path) -> str:
    if "://" in text:
        raise at.wrong("a local path", "Copy the files to this machine; remote files are not served.")
    if os.path.isabs(text):
        return os.path.normpath(text)
    # The owner's pattern may hold wildcards; the folder that the schema happens to stand in must not add any.
    return os.path.normpath(os.path.join(glob.escape(str(folder)), text))
