"""CPU time from typing `dpsql SCHEMA` to its prompt, and where it goes; then what happens behind the prompt.

    python -m benchmarks.startup               one table
    python -m benchmarks.startup --modules     and the modules that take longest before the prompt
    python -m benchmarks.startup --sources     without bytecode of dpsql itself: the first start of a checkout

The total is that of a real process in a pseudo-terminal, all of its threads, at the moment when its prompt is read from
the terminal. The parts are those of processes that do the same one after the other, so they need not add up to it.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import re
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from dpsql.interfaces.cli.demo_hospital import make_hospital

RUNS = 9
LIMIT = 0.5
"""Seconds of CPU to the prompt."""
_KEY = "S"

# Each part is timed in the order in which a start does them; what an earlier one has imported is there already.
PARTS = {
    "interpreter": "pass",
    "command line (argparse, arguments)": "import dpsql.interfaces.cli.main; dpsql.interfaces.cli.main.build_parser()",
    "yaml": "import yaml",
    "schema/": "import dpsql.schema.load",
    "ledger/ (and sqlite3)": "import dpsql.ledger.open",
    "status preview, background opening": "import dpsql.interfaces.dbapi.background_open",
    "prompt_toolkit": "import prompt_toolkit, prompt_toolkit.shortcuts",
    "interfaces/display, interfaces/repl": "import dpsql.interfaces.repl.main",
    "the schema is loaded": "from dpsql.schema.load import load_schema; load_schema(PATH)",
    "the ledger tells what is left": "from dpsql.session.status_preview import preview_status;"
    " assert preview_status(PATH, 'ana')",
}
BEHIND = {
    "numpy": "import numpy",
    "duckdb": "import duckdb",
    "sqlglot": "import sqlglot, sqlglot.dialects.postgres, sqlglot.dialects.duckdb",
    "dpsql: compiler/ to rewrite, privacy": "import dpsql.compiler.rewrite.pipeline, "
    "dpsql.compiler.functions.table,"
    " dpsql.privacy.release",
    "dpsql: the rest of compiler/": "import dpsql.compiler.compile",
    "dpsql: all else": "import dpsql.interfaces.dbapi.connection",
    "the data is opened": "import dpsql; CONNECTION = dpsql.connect(PATH, 'ana')",
    "the first statement": "CONNECTION.cursor().execute('SELECT COUNT(*) FROM visits')",
}
_TIMED = """
import json, sys, time
PATH, parts, spent = {path!r}, {parts!r}, {{}}
before = 0.0
for name, code in parts.items():
    exec(code)
    now = time.process_time()
    spent[name], before = now - before, now
print(json.dumps(spent))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU time to the prompt, and where it goes")
    parser.add_argument("--modules", action="store_true", help="the modules that take longest before the prompt")
    parser.add_argument("--sources", action="store_true", help="without bytecode of dpsql itself")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = environment_of(Path(folder), given.sources)
        place = Path(folder) / "hospital"
        place.mkdir()
        path = str(make_hospital(place))
        _parts(path, BEHIND, environment)  # registers the data, writes bytecode
        start(path, environment)
        _print_totals([start(path, environment) for _ in range(RUNS)])
        before, after = _median(path, PARTS, environment), _median(path, {**PARTS, **BEHIND}, environment)
        _print_parts("before the prompt", before)
        _print_parts("behind the prompt, on a thread", {name: after[name] for name in BEHIND})
        if given.modules:
            _print_modules(environment)


def environment_of(folder: Path, sources: bool) -> dict[str, str]:
    """Bytecode in a folder of its own, whatever the machine's settings; or none that is not there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept |= {"PYTHONPATH": str(Path(__file__).parent.parent), "TERM": "xterm-256color", "HOME": str(folder)}
    return kept | ({"PYTHONDONTWRITEBYTECODE": "1"} if sources else {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")})


# --- the whole, in a pseudo-terminal ---------------------------------------------------------------------------------


def start(path: str, environment: Mapping[str, str]) -> dict[str, float]:
    """A start, a key, and leaving: CPU and time to the prompt, and from there until the key is seen."""
    started = time.monotonic()
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(sys.executable, [sys.executable, "-m", "dpsql", path, "--user", "ana", "--no-history"], environment)
    try:
        _read_until(terminal, r"hospital=>")
        threads = _cpu(process)
        seen = {"cpu": sum(threads.values()), "main": threads[process], "wall": time.monotonic() - started}
        pressed = time.monotonic()
        os.write(terminal, _KEY.encode())
        _read_until(terminal, _KEY)
        seen["key"] = time.monotonic() - pressed
        seen["key cpu"] = sum(_cpu(process).values()) - seen["cpu"]
        os.write(terminal, b"\x03\x04")
        _read_until(terminal, None)
        return seen
    finally:
        os.close(terminal)
        os.waitpid(process, 0)


def _read_until(terminal: int, pattern: str | None) -> None:
    """Until the text is on the terminal, or with None until it is closed; answers where the cursor is, if asked."""
    text, end = "", time.monotonic() + 60
    while pattern is None or re.search(pattern, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)) is None:
        if not select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
            raise TimeoutError(f"no {pattern} in: {text!r}")
        try:
            read = os.read(terminal, 65536).decode(errors="replace")
        except OSError:  # Linux says so where the other side is closed
            read = ""
        if not read:
            if pattern is None:
                return
            raise EOFError(f"no {pattern} in: {text!r}")
        if "\x1b[6n" in read:
            os.write(terminal, b"\x1b[1;1R")
        text += read


def _cpu(process: int) -> dict[int, float]:
    """Seconds that each thread of a process has had, as Linux counts them, in nanoseconds."""
    spent = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        spent[int(task.name)] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return spent


def _print_totals(runs: list[dict[str, float]]) -> None:
    cpu, main_, wall, key = (statistics.median(run[name] for run in runs) for name in ("cpu", "main", "wall", "key"))
    most = max(run["cpu"] for run in runs)
    verdict = "within" if most <= LIMIT else "BEYOND"
    print(f"CPU to the prompt: {cpu:.3f} s, at most {most:.3f} s of {RUNS} starts; {verdict} the limit of {LIMIT} s")
    print(f"of the main thread: {main_:.3f} s; on the clock: {wall:.3f} s; a key at once is seen after {key:.3f} s\n")


# --- its parts -------------------------------------------------------------------------------------------------------


def _parts(path: str, parts: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, float]:
    code = _TIMED.format(path=path, parts=dict(parts))
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(ran.stdout)
    return found


def _median(path: str, parts: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, float]:
    runs = [_parts(path, parts, environment) for _ in range(RUNS)]
    return {name: statistics.median(run[name] for run in runs) for name in parts}


def _print_parts(title: str, spent: Mapping[str, float]) -> None:
    wide = max(map(len, (*PARTS, *BEHIND)))
    print(f"| {title:<{wide}} | ms CPU |\n|{'-' * (wide + 2)}|-------:|")
    for name, seconds in (*spent.items(), ("together", sum(spent.values()))):
        print(f"| {name:<{wide}} | {1000 * seconds:6.1f} |")
    print()


def _print_modules(environment: Mapping[str, str], most: int = 20) -> None:
    command = [sys.executable, "-X", "importtime", "-c", "import dpsql.interfaces.cli.main, dpsql.interfaces.repl.main"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = re.findall(r"import time: +(\d+) \| +\d+ \| +(\S+)", ran.stderr)
    print("| module | ms by itself |\n|---|---:|")
    for own, name in sorted(found, key=lambda one: -int(one[0]))[:most]:
        print(f"| `{name}` | {int(own) / 1000:.1f} |")


if __name__ == "__main__":
    main()
