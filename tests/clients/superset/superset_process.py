"""Superset itself, on a free port of the loopback interface, with its metadata in a folder that is gone at the end.

`make test-superset` installs it beside this project, in `.venv-superset`, from `requirements.txt`.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from tests.support.optional_dependencies import missing, program

HERE = Path(__file__).resolve().parent
ENVIRONMENT = HERE.parents[2] / ".venv-superset" / "bin"
ANALYST = "Alpha"  # Superset's role of those who make charts of any dataset
# One process, so that its cache of answers is one.
SERVER = ("gunicorn", "--workers=1", "--worker-class=gthread", "--threads=8", "superset.app:create_app()")


@dataclass(frozen=True)
class Superset:
    """A running one, and the passwords of its users."""

    address: str
    folder: Path
    passwords: Mapping[str, str]

    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")


@contextmanager
def running_superset(folder: Path, analysts: tuple[str, ...]) -> Iterator[Superset]:
    if not (ENVIRONMENT / "superset").exists():
        missing("Superset", "make test-superset")
    passwords = {name: secrets.token_urlsafe(12) for name in ("admin", *analysts)}
    environment = surroundings(folder)
    prepare(folder, environment, passwords)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            [ENVIRONMENT / SERVER[0], f"--bind=127.0.0.1:{port}", *SERVER[1:]],
            env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT)  # fmt: skip
    superset = Superset(f"http://127.0.0.1:{port}", folder, passwords)
    try:
        wait_for(superset, server)
        yield superset
    finally:
        server.terminate()
        server.wait(timeout=60)


def surroundings(folder: Path) -> dict[str, str]:
    return {
        "PATH": f"{ENVIRONMENT}:{os.environ['PATH']}",
        "HOME": str(folder),
        "SUPERSET_HOME": str(folder),
        "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py"),
        "SUPERSET_TEST_SECRET": secrets.token_urlsafe(42),
        "FLASK_APP": "superset",
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
    }


def prepare(folder: Path, environment: dict[str, str], passwords: Mapping[str, str]) -> None:
    """Its tables and roles, an administrator, and the analysts."""
    run(folder, environment, "db", "upgrade")
    run(folder, environment, "init")
    for name, password in passwords.items():
        who = ("--username", name, "--firstname", name, "--lastname", "Test", "--email", f"{name}@example.com")
        made = ("create-admin",) if name == "admin" else ("create-user", "--role", ANALYST)
        run(folder, environment, "fab", *made, *who, "--password", password)


def run(folder: Path, environment: dict[str, str], *words: str) -> None:
    done = subprocess.run([ENVIRONMENT / "superset", *words], env=environment, cwd=folder,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]


def wait_for(superset: Superset, server: subprocess.Popen[bytes], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            with urlopen(f"{superset.address}/health", timeout=5):
                return
        except (URLError, OSError):
            assert server.poll() is None and time.monotonic() < end, superset.log()[-4000:]
            time.sleep(0.3)


def take_picture(superset: Superset, user: str, path: str, png: Path, charts: int) -> dict[str, object]:
    """Log in as a person does, in Chromium; what the page says is told, and what it looks like goes to `png`."""
    browser = {"chromium": program("chromium"), "driver": program("chromedriver")}
    asked = {**browser, "address": superset.address, "user": user, "password": superset.passwords[user],
             "path": path, "png": str(png), "charts": charts, "folder": str(superset.folder)}  # fmt: skip
    done = subprocess.run([ENVIRONMENT / "python", HERE / "screenshot.py"], input=json.dumps(asked), text=True,
                          env=surroundings(superset.folder), cwd=superset.folder, capture_output=True)  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    told: dict[str, object] = json.loads(done.stdout)
    return told
