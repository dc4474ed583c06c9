"""`dpsql serve` under load beside a PostgreSQL that serves the plain queries over the same rows, in the same run.

    python -m benchmarks.wire                  three seconds for each figure
    python -m benchmarks.wire --quick          one second
    python -m benchmarks.wire --only stored    one kind of statement

The hospital is that of `dpsql demo`, with eight analysts and a budget that does not end. Statements are

- `stored`: ten charts of a dashboard that each analyst has paid for, as simple queries;
- `bound`: one of them with a parameter, by Parse, Bind, Describe, Execute and Sync each time, as JDBC sends it;
- `fresh`: a question that nobody has asked before, each of them a release;
- `catalog`: four statements about tables and columns, as tools ask them when they connect.

Clients are psycopg 3, in processes of their own. `CPU` is what all processes of the server used for one statement:
other jobs on the machine, and the clients, change the rates and the latencies, but hardly that.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.dashboard import CHARTS, write_dashboard
from benchmarks.processes import cpu_seconds, memory_mb
from benchmarks.wire_clients import Task
from tests.support.postgres import find_binaries, start
from tests.support.server import serving

ROOT = Path(__file__).resolve().parents[1]
CLIENT = (sys.executable, "-m", "benchmarks.wire_clients")
CONNECTIONS = (1, 8, 32)
SECONDS = 3.0
CLIENTS = 4
"""Processes, at most, that the connections are spread over."""
BUDGET = "epsilon: 8, delta: 1e-6"
USERS = tuple(f"user{number:02}" for number in range(8))
IDLE, ACTIVE, LOGINS = 300, 64, 40
STORED = tuple(chart for chart in CHARTS if "{now}" not in chart)[:10]
BOUND = (
    "SELECT ward, COUNT(*) AS visits, AVG(cost) AS average FROM visits WHERE nights > %s GROUP BY ward ORDER BY ward"
)
FRESH = "SELECT ward, COUNT(*) AS visits, SUM(cost) AS revenue FROM visits WHERE patient_id <> {} GROUP BY ward"
CATALOG = (
    "SELECT table_schema, table_name, table_type FROM information_schema.tables"
    " WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2",
    "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = 'visits'"
    " ORDER BY ordinal_position",
    "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'public' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY 1, a.attnum",
    "SELECT version(), current_schema()",
)

TABLES = """
CREATE TABLE patients (patient_id integer PRIMARY KEY, birth_year integer, sex text, insured boolean);
CREATE TABLE visits (patient_id integer, ward text, diagnosis text, at timestamp, nights integer, cost double precision)
"""

STATEMENTS: dict[str, tuple[tuple[str, tuple[int, ...] | None], ...]] = {
    "stored": tuple((chart, None) for chart in STORED),
    "bound": tuple((BOUND, (nights,)) for nights in range(5)),
    "fresh": ((FRESH, None),),
    "catalog": tuple((sql, None) for sql in CATALOG),
}


# --- servers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    name: str
    process: int
    addresses: tuple[str, ...]  # one for each analyst

    def spread(self, connections: int) -> list[str]:
        return [self.addresses[place % len(self.addresses)] for place in range(connections)]


@dataclass(frozen=True)
class Figures:
    rate: float
    median_ms: float
    late_ms: float
    cpu_ms: float
    memory_mb: float

    def __str__(self) -> str:
        return f"{self.rate:>9,.0f}{self.median_ms:>9.1f}{self.late_ms:>9.1f}{self.cpu_ms:>9.2f}"


HEAD = f"{'a second':>9}{'median':>9}{'95th':>9}{'CPU':>9}"
_numbers = iter(range(10**9, 2 * 10**9, 10**6))


def measure(target: Target, kind: str | None, connections: int, seconds: float) -> Figures:
    """All connections at once, idle where there is no kind; the server's CPU and memory are read while they stand."""
    addresses, clients = target.spread(connections), min(CLIENTS, connections)
    statements = STATEMENTS[kind] if kind is not None else ()
    return _measured(
        target,
        [Task(tuple(addresses[place::clients]), statements, seconds, next(_numbers)) for place in range(clients)],
    )


def measure_logins(target: Target, times: int) -> Figures:
    return _measured(target, [Task(target.addresses, (), 0.0, 0, times)])


def _measured(target: Target, tasks: Sequence[Task]) -> Figures:
    clients = [
        subprocess.Popen(CLIENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in tasks
    ]
    _tell(clients, [task.line() for task in tasks])
    ready = [_answered(client) for client in clients]
    assert set(ready) == {"ready\n"}, "a client could not connect"
    before = cpu_seconds(target.process)
    _tell(clients, ["begin\n"] * len(clients))
    done = [json.loads(_answered(client)) for client in clients]
    used, held = cpu_seconds(target.process) - before, memory_mb(target.process)
    for client in clients:
        client.communicate("leave\n")
    return _figures(done, used, held)


def _tell(clients: Sequence[subprocess.Popen[str]], lines: Sequence[str]) -> None:
    for client, line in zip(clients, lines, strict=True):
        assert client.stdin is not None
        client.stdin.write(line)
        client.stdin.flush()


def _answered(client: subprocess.Popen[str]) -> str:
    assert client.stdout is not None
    return client.stdout.readline()


def _figures(done: Sequence[tuple[float, float, list[float]]], used: float, held: float) -> Figures:
    taken = sorted(one for _, _, each in done for one in each)
    if not taken:
        return Figures(0.0, 0.0, 0.0, 0.0, held)
    lasted = max(end for _, end, _ in done) - min(began for began, _, _ in done)
    late = taken[int(len(taken) * 0.95)]
    return Figures(len(taken) / lasted, statistics.median(taken) * 1e3, late * 1e3, used / len(taken) * 1e3, held)


@contextmanager
def dpsql(folder: Path) -> Iterator[Target]:
    schema = write_dashboard(folder, users=USERS)
    text = schema.read_text(encoding="utf-8")
    assert text.count(BUDGET) == 1 + len(USERS)
    schema.write_text(text.replace(BUDGET, "epsilon: 1000000, delta: 0.5"), encoding="utf-8")
    passwords = {user: secrets.token_hex(8) for user in USERS}
    with serving(schema, passwords=passwords) as server:
        assert server.process is not None
        yield Target("dpsql", server.process.pid, tuple(server.dsn(user) for user in USERS))


@contextmanager
def postgres(folder: Path) -> Iterator[Target]:
    """The same rows, the same analysts, passwords by SCRAM over TCP: what the other server does."""
    binaries = find_binaries()
    if binaries is None:
        raise SystemExit("PostgreSQL is not installed: pip install pgserver")
    port, password = 20_000 + os.getpid() % 20_000, secrets.token_hex(8)
    settings = ("listen_addresses=127.0.0.1", "max_connections=400", "shared_buffers=32MB", "autovacuum=off")
    server = start(binaries, settings, port=port)
    try:
        with psycopg.connect(server.database(), autocommit=True) as db:
            db.execute(TABLES)
            for table in ("patients", "visits"):
                with db.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv, HEADER)") as copy:
                    copy.write((folder / f"{table}.csv").read_bytes())
            for user in USERS:
                db.execute(f"CREATE ROLE {user} LOGIN PASSWORD '{password}'")
            db.execute("GRANT SELECT ON patients, visits TO PUBLIC")
            db.execute("VACUUM ANALYZE")
            with (server.folder / "data" / "pg_hba.conf").open("w") as rules:
                rules.write("local all postgres trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
            db.execute("SELECT pg_reload_conf()")
        addresses = tuple(f"postgresql://{user}:{password}@127.0.0.1:{port}/postgres" for user in USERS)
        yield Target("PostgreSQL", server.guard.pid, addresses)
    finally:
        server.stop()


def pay(target: Target) -> None:
    """Each analyst asks all that is to be stored; then all at once, so that what is opened once is open."""
    for address in target.addresses:
        with psycopg.connect(address, autocommit=True) as db:
            for kind in ("stored", "bound", "catalog"):
                for sql, parameters in STATEMENTS[kind]:
                    db.execute(sql, parameters).fetchall()
    measure(target, "catalog", max(CONNECTIONS), 1.0)


# --- tables ----------------------------------------------------------------------------------------------------------


def print_rates(ours: Target, theirs: Target, kinds: Sequence[str], seconds: float) -> None:
    print(f"{'':<22}{ours.name:>36}{theirs.name:>36}{'CPU':>9}")
    print(f"{'statements, clients':<22}{HEAD}{HEAD}{'ratio':>9}")
    for kind in kinds:
        for connections in CONNECTIONS:
            own = measure(ours, kind, connections, seconds)
            plain = measure(theirs, kind, connections, seconds)
            print(f"{kind:<14}{connections:>8}{own}{plain}{own.cpu_ms / plain.cpu_ms:>9.1f}", flush=True)


def print_logins(ours: Target, theirs: Target, times: int) -> None:
    own, plain = measure_logins(ours, times), measure_logins(theirs, times)
    print(f"{'connecting':<14}{1:>8}{own}{plain}{own.cpu_ms / plain.cpu_ms:>9.1f}", flush=True)


def print_memory(targets: Sequence[Target], seconds: float) -> None:
    print(f"\n{'MB':<22}{'at rest':>12}{f'{IDLE} idle':>12}{f'{ACTIVE} active':>12}")
    for target in targets:
        at_rest = memory_mb(target.process)
        idle = measure(target, None, IDLE, 0.0).memory_mb
        active = measure(target, "stored", ACTIVE, seconds).memory_mb
        print(f"{target.name:<22}{at_rest:>12.0f}{idle:>12.0f}{active:>12.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one second for each figure")
    parser.add_argument(
        "--only", choices=tuple(STATEMENTS), action="append", help="these statements alone, and no memory"
    )
    options = parser.parse_args()
    seconds = 1.0 if options.quick else SECONDS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with dpsql(folder) as ours, postgres(folder) as theirs:
            for target in (ours, theirs):
                pay(target)
            print(f"load before: {os.getloadavg()[0]:.1f}; milliseconds; {len(USERS)} analysts")
            print_rates(ours, theirs, options.only or tuple(STATEMENTS), seconds)
            if not options.only:
                print_logins(ours, theirs, LOGINS)
                print_memory((ours, theirs), seconds)


if __name__ == "__main__":
    main()
