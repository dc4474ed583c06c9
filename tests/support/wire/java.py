"""The program in Java of the matrix: compiled once for each process of the tests, run once for each server."""

from __future__ import annotations

import json
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.optional_dependencies import missing, program
from tests.support.wire.hospital import Place

SOURCE = Path(__file__).resolve().parents[2] / "clients" / "wire" / "Matrix.java"
DRIVERS = (Path("/usr/share/java/postgresql.jar"),)
QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Dfile.encoding=UTF-8")


@cache
def compiled() -> str:
    """The class path."""
    javac = program("javac")
    driver = next((one for one in DRIVERS if one.exists()), None)
    if driver is None:
        missing("PostgreSQL's JDBC driver", "apt-get install libpostgresql-jdbc-java")
    folder = tempfile.TemporaryDirectory(prefix="dpsql-java-")
    _kept.append(folder)
    subprocess.run([javac, "-encoding", "UTF-8", "-cp", str(driver), "-d", folder.name, str(SOURCE)], check=True)
    return f"{folder.name}:{driver}"


_kept: list[tempfile.TemporaryDirectory[str]] = []


def run(place: Place, only: str = "all", options: str = "", zone: str = "UTC") -> dict[str, Any]:
    """What each part of the program told."""
    url = f"jdbc:postgresql://{place.host}:{place.port}/{place.database}{options}"
    machine = [program("java"), *QUICK, f"-Duser.timezone={zone}", "-cp", compiled()]
    command = [*machine, "Matrix", url, place.user, place.password, only]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return dict(json.loads(line) for line in ran.stdout.splitlines())
