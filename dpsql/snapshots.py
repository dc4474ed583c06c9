"""Snapshots of text files: typed, so that a value which is no number is found when it is registered, not when asked.

They stand in <ledger>.snapshots/v1, v2 …, beside a note of the identity that they were made from. The name is that of
the version and nothing else: analysts see it in EXPLAIN, and a name made from sizes or times would tell them of rows.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from dpsql.engines.owner import DuckDBAdmin
from dpsql.private_files import make_private_folder
from dpsql.schema.model import Files, Schema, Source, Table
from dpsql.schema.places import MEMORY_URL, database_path

_IDENTITY_FILE = "identity.sha256"


def snapshot_folder(schema: Schema) -> Path:
    """Beside the ledger's file; where the ledger is on a server, beside the schema."""
    beside = database_path(schema.ledger) or schema.path
    return beside.with_name(beside.name + ".snapshots")


def list_text_tables(schema: Schema, sources: Mapping[str, Source]) -> list[tuple[Table, Files, str]]:
    """The tables that are read from text, and the name of each one's snapshot."""
    result: list[tuple[Table, Files, str]] = []
    for at, table in enumerate(schema.tables):
        source = sources[table.name]
        if isinstance(source, Files) and source.format != "parquet":
            result.append((table, source, f"{at}-{re.sub(r'[^A-Za-z0-9_]', '_', table.name)[:60]}.parquet"))
    return result


def snapshot_relations(schema: Schema, sources: Mapping[str, Source], folder: Path) -> dict[str, Source]:
    """Where the engine reads: text files in their snapshot, all else in place."""
    snapshots = {t.name: Files((str(folder / name),), "parquet") for t, _, name in list_text_tables(schema, sources)}
    return dict(sources) | snapshots


@contextmanager
def stage_snapshots(schema: Schema, sources: Mapping[str, Source], identity: str) -> Iterator[dict[str, Source]]:
    """Snapshots in a folder of this thread's own; what is not published is gone at the end."""
    folder = _staging_folder(schema)
    try:
        tables = list_text_tables(schema, sources)
        if tables:
            shutil.rmtree(folder, ignore_errors=True)
            make_private_folder(snapshot_folder(schema), "the folder of snapshots")
            with DuckDBAdmin(MEMORY_URL) as owner:
                for table, source, name in tables:
                    owner.write_snapshot(source, table.columns, folder / name, schema.find_id_columns(table))
            (folder / _IDENTITY_FILE).write_text(_identity_digest(identity))
        yield snapshot_relations(schema, sources, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _staging_folder(schema: Schema) -> Path:
    return snapshot_folder(schema) / f"new-{os.getpid()}-{threading.get_ident()}"


def publish_snapshots(schema: Schema, identity: str, version: int) -> None:
    """Give the staged snapshots the version's name, unless another thread or process has done so."""
    new, folder = _staging_folder(schema), snapshot_folder(schema) / f"v{version}"
    if not new.exists() or has_snapshot(folder, identity):
        return
    shutil.rmtree(folder, ignore_errors=True)  # of another ledger that stood here
    try:
        new.rename(folder)
    except OSError:
        if not has_snapshot(folder, identity):
            raise


def has_snapshot(folder: Path, identity: str) -> bool:
    note = folder / _IDENTITY_FILE
    return note.exists() and note.read_text() == _identity_digest(identity)


def _identity_digest(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()
