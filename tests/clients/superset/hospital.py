"""The demo's hospital behind `dpsql serve`, with a service account for Superset."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from dpsql.interfaces.cli.demo_hospital import make_hospital
from tests.support.server import USERS, Server, serving

PASSWORDS = {**USERS, "superset": "for all of them"}
CHANGES = {
    "budget: {epsilon: 8, delta: 1e-6}": "budget: {epsilon: 20, delta: 2e-6}",
    "  ana: {budget: {epsilon: 4, delta: 5e-7}}\n": """\
  ana: {budget: {epsilon: 8, delta: 5e-7}}
  bob: {budget: {epsilon: 8, delta: 5e-7}}
  admin: {budget: {epsilon: 1e-3, delta: 1e-9}}
  superset: {budget: {epsilon: 1e-3, delta: 1e-9}, may_act_for: [admin, ana, bob]}
""",
    "    source: patients.csv\n": "    source: patients.csv\n    preview: dummy\n",
}


@dataclass(frozen=True)
class Hospital:
    server: Server

    def address(self, user: str, port: int | None = None, host: str = "127.0.0.1", password: str | None = None) -> str:
        """A connection string; `port` is that of a relay."""
        server = self.server
        return server.dsn(user, password).replace(f"@{server.host}:{server.port}/", f"@{host}:{port or server.port}/")

    def rows(self, user: str, sql: str) -> list[tuple[Any, ...]]:
        """What psycopg gets for a statement."""
        with psycopg.connect(self.server.dsn(user), autocommit=True) as db:
            return db.execute(sql).fetchall()

    def charges(self, user: str) -> str:
        """What was charged to the user until now, as she is told."""
        return "\n".join(line for (line,) in self.rows(user, "SHOW BUDGET"))


@contextmanager
def served_hospital() -> Iterator[Hospital]:
    with tempfile.TemporaryDirectory(prefix="dpsql-hospital-") as folder:
        schema = make_hospital(Path(folder))
        text = schema.read_text(encoding="utf-8")  # one charge for each question
        schema.write_text(text.replace("contributions: auto ", "contributions: {rows: 6, groups: 4} "), "utf-8")
        text = schema.read_text()
        for before, after in CHANGES.items():
            assert before in text
            text = text.replace(before, after)
        schema.write_text(text)
        with serving(schema, passwords=PASSWORDS) as server:
            yield Hospital(server)
