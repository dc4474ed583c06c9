"""A running `dpsql serve` for tests and benchmarks: on a free port, with analysts whose passwords are known.

    with serving() as server:                        # the demo's hospital, ana and bob
        psycopg.connect(server.dsn("ana"))

    with serving(schema, tls=True, options=("--require-tls",)) as server:
        psycopg.connect(server.dsn("ana", sslmode="verify-full"))

The schema's folder is copied, so nothing of it changes; `server.folder` is the copy, with its ledger. What the server
logs, as JSON lines, is in `server.log()`. Whatever the test did, the process is gone at the end.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

from dpsql.interfaces.cli.demo_hospital import make_hospital
from dpsql.owner.users import add_user, find_user, set_user_password
from tests.support.optional_dependencies import program

ROOT = Path(__file__).resolve().parents[2]
USERS = {"ana": "correct horse: battery/staple", "bob": "schlüssel @ 5 €"}
BUDGET = ("2", "1e-7")
"""Epsilon and delta of users whom the schema does not have."""
SECONDS = 60.0
"""For the server to start."""


@dataclass
class Server:
    folder: Path
    schema: Path
    passwords: Mapping[str, str]
    certificate: Path | None = None
    options: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    port: int = 0
    metrics: str | None = None
    told: str = ""  # as it started
    process: subprocess.Popen[str] | None = None

    @property
    def database(self) -> str:
        return self.schema.stem

    def dsn(self, user: str = "ana", password: str | None = None, database: str | None = None, **more: str) -> str:
        """A connection string of libpq. With TLS it trusts the server's certificate: sslmode=verify-full works too."""
        known = self.passwords[user] if password is None else password
        if self.certificate is not None:
            more = {"sslmode": "verify-ca", "sslrootcert": str(self.certificate), **more}
        asked = f"?{urlencode(more, quote_via=quote)}" if more else ""
        who = f"{quote(user, safe='')}:{quote(known, safe='')}"
        return f"postgresql://{who}@{self.host}:{self.port}/{quote(database or self.database, safe='')}{asked}"

    def start(self) -> None:
        tls = () if self.certificate is None else ("--tls-cert", self.certificate, "--tls-key", _key(self.certificate))
        words = [sys.executable, "-m", "dpsql", "serve", self.schema, "--port", str(self.port), "--log-format", "json"]
        with (self.folder / "server.log").open("a") as log:
            self.process = subprocess.Popen(
                [*map(str, (*words, *tls, *self.options))], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT), **self.environment},
            )  # fmt: skip
        self._wait()

    def _wait(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        told = []
        for line in self.process.stdout:
            told.append(line)
            if "postgresql://" in line:
                self.port = int(line.split("?")[0].rsplit(":", 1)[1].split("/")[0])
            if line.startswith("metrics"):
                self.metrics = line.split()[1].removesuffix("/metrics")
            if line == "ready\n":
                self.told = "".join(told)
                return
        raise AssertionError(f"the server did not start: {''.join(told)}{self.log()}")

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 60.0) -> int:
        """Its exit code, once it has ended."""
        assert self.process is not None
        if self.process.poll() is None:
            self.send(number)
        try:
            return self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()

    def log(self) -> str:
        return (self.folder / "server.log").read_text()

    def logged(self, text: str, seconds: float = 10.0) -> bool:
        """Whether the log has it, now or soon."""
        end = time.monotonic() + seconds
        while text not in self.log():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True


def _key(certificate: Path) -> Path:
    return certificate.with_suffix(".key")


def make_certificate(folder: Path, name: str = "server") -> Path:
    """Self-signed, for 127.0.0.1 and localhost; its key beside it."""
    certificate = folder / f"{name}.crt"
    subprocess.run(
        [program("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", _key(certificate), "-out", certificate, "-days", "2", "-subj", f"/CN={name}",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    _key(certificate).chmod(0o600)
    return certificate


def give_passwords(schema: Path, passwords: Mapping[str, str]) -> None:
    for name, password in passwords.items():
        if find_user(schema, name) is None:
            add_user(schema, name, *BUDGET, password, os.urandom)
        else:
            set_user_password(schema, name, password, os.urandom)


def make_declared_hospital(folder: Path) -> Path:
    """The demo's hospital with declared contributions: one charge for each question, and errors known before it."""
    path = make_hospital(folder)
    text, automatic = path.read_text(encoding="utf-8"), "contributions: auto "
    assert automatic in text
    path.write_text(text.replace(automatic, "contributions: {rows: 6, groups: 4} "), encoding="utf-8")
    return path


@contextmanager
def serving(
    schema: Path | None = None,
    *,
    passwords: Mapping[str, str] = USERS,
    tls: bool = False,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """Without a schema: the demo's hospital. Analysts of `passwords` are added where the schema does not have them."""
    with tempfile.TemporaryDirectory(prefix="dpsql-served-") as name:
        folder = Path(name) / "data"
        if schema is None:
            folder.mkdir()
            path = make_declared_hospital(folder)
        else:
            shutil.copytree(schema.parent, folder)
            path = folder / schema.name
        path.chmod(0o600)
        give_passwords(path, passwords)
        certificate = make_certificate(folder) if tls else None
        server = Server(folder, path, dict(passwords), certificate, options, environment or {})
        try:
            server.start()
            yield server
        finally:
            if server.process is not None:
                server.stop()
