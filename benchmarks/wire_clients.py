"""The clients of `benchmarks.wire`: a process that imports nothing of dpsql, so that many of them start soon.

It reads its task as a line of JSON and says `ready` when it has connected; told to begin, it works, and writes when it
began and ended, and how long each statement or login took; told to leave, it leaves.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import asdict, dataclass

import psycopg


@dataclass(frozen=True)
class Task:
    """A connection for each address, which sends the statements in turn: all of them, each after the last of them.

    A `{}` of a statement is a number that nobody else sends. Without statements they are idle; with `logins`, the
    first address is connected to so often instead.
    """

    addresses: tuple[str, ...]
    statements: tuple[tuple[str, tuple[int, ...] | None], ...]
    seconds: float
    first: int
    logins: int = 0

    def line(self) -> str:
        return json.dumps(asdict(self)) + "\n"


def work(task: Task, connections: list[psycopg.Connection[tuple[object, ...]]], taken: list[float]) -> None:
    end = time.monotonic() + task.seconds

    def one(place: int) -> None:
        cursor, number = connections[place].cursor(), place
        while (began := time.monotonic()) < end:
            sql, parameters = task.statements[number % len(task.statements)]
            cursor.execute(sql.replace("{}", str(task.first + number)), parameters)
            cursor.fetchall()
            taken.append(time.monotonic() - began)
            number += len(connections)

    threads = [threading.Thread(target=one, args=(place,)) for place in range(len(connections))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def log_in(task: Task, taken: list[float]) -> None:
    for _ in range(task.logins):
        began = time.monotonic()
        connection = psycopg.connect(task.addresses[0])
        taken.append(time.monotonic() - began)
        connection.close()


def main() -> None:
    task = Task(**json.loads(sys.stdin.readline()))
    addresses = task.addresses if not task.logins else ()
    connections = [psycopg.connect(one, autocommit=True, prepare_threshold=None) for one in addresses]
    print("ready", flush=True)
    sys.stdin.readline()
    taken: list[float] = []
    began = time.monotonic()
    if task.logins:
        log_in(task, taken)
    elif task.statements:
        work(task, connections, taken)
    print(json.dumps((began, time.monotonic(), taken)), flush=True)
    sys.stdin.readline()
    for connection in connections:
        connection.close()


if __name__ == "__main__":
    main()
