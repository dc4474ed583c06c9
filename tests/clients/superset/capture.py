"""Writes down what Superset asks of the catalog; `tests.support.wire.capture_catalog_queries` does so for others.

.venv/bin/python -m tests.clients.superset.capture      rewrites tests/corpus/catalog/superset.sql
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from tests.clients.superset.api import User, log_in
from tests.clients.superset.superset_process import running_superset
from tests.support.wire.capture_catalog_queries import FOLDER, SKIPPED, logged, named, numbers
from tests.support.wire.hospital import Place
from tests.support.wire.reference_server import running_reference

TABLES = ("patients", "visits", "wards", "planned_visits")


def introspect(admin: User, place: Place) -> None:
    """From the connection string to datasets, as its pages ask."""
    form = {"database_name": "hospital", "sqlalchemy_uri": place.url()}
    admin.post("/api/v1/database/test_connection/", form)
    database = admin.post("/api/v1/database/", form)["id"]
    admin.get(f"/api/v1/database/{database}/catalogs/")
    admin.get(f"/api/v1/database/{database}/schemas/")
    admin.get(f"/api/v1/database/{database}/tables/?q=(schema_name:public)")
    for table in TABLES:
        admin.get(f"/api/v1/database/{database}/table_metadata/?name={table}&schema=public")
        admin.get(f"/api/v1/database/{database}/select_star/{table}/public/")
        dataset = {"database": database, "schema": "public", "table_name": table}
        made = admin.post("/api/v1/dataset/", dataset)["id"]
        admin.put(f"/api/v1/dataset/{made}/refresh", {})


def capture() -> None:
    settings = ("log_statement=all", "log_line_prefix=%m [%p] ", "log_timezone=UTC")
    with (
        tempfile.TemporaryDirectory(prefix="dpsql-superset-") as folder,
        running_reference(*settings) as (place, server),
        running_superset(Path(folder), ()) as superset,
    ):
        tables, log = numbers(server, place), server.folder / "log"
        start = log.stat().st_size
        introspect(log_in(superset.address, "admin", superset.passwords["admin"]), place)
        asked = [named(one, tables).strip().removesuffix(";") for one in logged(log.read_bytes()[start:].decode())]
    kept = [one for one in dict.fromkeys(asked) if one and not SKIPPED.match(one) and not re.search(r"LIMIT \d+$", one)]
    (FOLDER / "superset.sql").write_text("".join(f"{one};\n\n" for one in kept), encoding="utf-8")
    print(f"superset: {len(kept)} statements")


if __name__ == "__main__":
    capture()
