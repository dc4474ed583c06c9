"""Run as a script: ask each statement of a file in one process with little memory, and say what became of it."""

from __future__ import annotations

import json
import resource
import signal
import sys
import time
from pathlib import Path

from dpsql.errors import Error
from tests.support.attack_hospital import DATA, build, schema_text, spent

SECONDS = 8  # of processor time: tests share their machine
MEGABYTES = 500
LARGE = {"public rows of 12 joins", "a long series", "no end"}
"""They run in the sandbox until its own limits end them: 1 GB, and here 0.7 s."""


def main(folder: Path) -> None:
    session = build(folder, "wide", schema_text("wide"), DATA)
    session.execute("SELECT COUNT(*) FROM visits")
    signal.signal(signal.SIGPROF, _too_slow)
    for name, sql in json.loads((folder / "statements.json").read_text()).items():
        session.timeout = 0.7 if name in LARGE else 30  # others end by themselves, also on a busy machine
        before, memory, started = spent(session), _peak(), time.process_time()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            session.execute(sql)
            said = "answered"
        except Error as error:
            said = f"{type(error).__name__}: {str(error)[:300]}"
        except BaseException as error:
            said = f"!!! {type(error).__name__}: {str(error)[:300]}"
        signal.setitimer(signal.ITIMER_PROF, 0)
        row = {"said": said, "seconds": time.process_time() - started, "megabytes": _peak() - memory,
               "charges": spent(session)[0] - before[0]}  # fmt: skip
        print(json.dumps({name: row}), flush=True)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def _too_slow(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s of processor time")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
