"""What a user of Superset makes first: a database, and datasets of it."""

from __future__ import annotations

import json

from tests.clients.superset.api import User


def register(admin: User, name: str, address: str, **more: bool) -> int:
    extra = {"cost_estimate_enabled": True}
    form = {"database_name": name, "sqlalchemy_uri": address, "extra": json.dumps(extra), "expose_in_sqllab": True}
    made: int = admin.post("/api/v1/database/", {**form, **more})["id"]
    return made


def made_dataset(user: User, database: int, name: str = "visits", **more: str) -> int:
    """Of a table; or with `sql`, of a statement, which Superset calls virtual."""
    form = {"database": database, "schema": "public", "table_name": name, **more}
    made: int = user.post("/api/v1/dataset/", form)["id"]
    return made
