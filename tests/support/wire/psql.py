"""psql itself, with a script on its input: what it prints, errors among it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.support.optional_dependencies import missing
from tests.support.postgres import find_binaries
from tests.support.wire.hospital import Place


def bundled() -> Path:
    """The psql of PyPI's PostgreSQL, which is of the version that dpsql says it is. It was built without TLS."""
    folder = find_binaries()
    if folder is None or not (folder / "psql").exists():
        missing("psql", "make setup")
    return folder / "psql"


def run(
    place: Place,
    script: str,
    program: Path | None = None,
    *arguments: str,
    encoding: str = "utf-8",
    **variables: str,
) -> str:
    command = [str(program or bundled()), "-X", "-P", "pager=off", "-P", "null=<null>", *arguments]
    ran = subprocess.run(command, input=script, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding=encoding,
                         timeout=60, env={**place.environment(), "LC_ALL": "C.UTF-8", **variables})  # fmt: skip
    return ran.stdout


def without_places(text: str) -> str:
    """Verbose errors of PostgreSQL name the line of its own source, and hints are each server's own."""
    return re.sub(r"^(LOCATION|HINT):.*\n", "", text, flags=re.M)
