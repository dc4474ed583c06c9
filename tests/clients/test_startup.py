"""How long a person waits for the prompt: by the CPU of a real start, and by what is imported before it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

import dpsql
from benchmarks.startup import LIMIT, environment_of, start
from dpsql.interfaces.cli.demo_hospital import make_hospital

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HEAVY = (
    "sqlglot",
    "duckdb",
    "numpy",
    "pandas",
    "polars",
    "pyarrow",
    "matplotlib",
    "altair",
    "IPython",
    "sqlalchemy",
    "psycopg",
    "asyncpg",
    "dpsql.session.session",
    "dpsql.compiler.compile",
    "dpsql.session.dataset.dataset",
    "dpsql.engines.duckdb",
    "dpsql.verify",
)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux tells the CPU of another process")
def test_the_prompt_is_there_within_half_a_second_of_cpu(tmp_path: Path) -> None:
    """The least of a few starts, of all threads: on a busy machine, caches are cold."""
    (tmp_path / "hospital").mkdir()
    path = str(make_hospital(tmp_path / "hospital"))
    dpsql.connect(path, user="ana").close()  # registers the data
    environment = environment_of(tmp_path, sources=False)
    starts = [start(path, environment) for _ in range(4)]  # the first one writes bytecode
    assert min(one["cpu"] for one in starts[1:]) <= LIMIT, starts
    assert min(one["key cpu"] for one in starts[1:]) <= 0.25, ("a key typed at once is seen late", starts)


@pytest.mark.parametrize(
    "module",
    [
        "dpsql",
        "dpsql.interfaces.cli.main",
        "dpsql.interfaces.repl.main",
        "dpsql.interfaces.dbapi.background_open",
        "dpsql.interfaces.cli.user",
    ],
)
def test_what_comes_before_a_prompt_imports_no_engine_and_no_sql(module: str) -> None:
    code = f"import sys, {module}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("typed", ["", "SELECT COU"], ids=["nothing is typed", "a statement is begun"])
def test_a_prompt_whose_data_cannot_be_opened_ends_with_the_error(tmp_path: Path, typed: str) -> None:
    """Settings are read behind the prompt; nobody has to ask something first to be told that they are wrong."""
    path = str(make_hospital(tmp_path))
    dpsql.connect(path, user="ana").close()
    child = pexpect.spawn(
        sys.executable, ["-m", "dpsql", path, "--user", "ana", "--set", "noise=white", "--no-history"],
        encoding="utf-8", timeout=20,
        env={**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"},
    )  # fmt: skip
    child.expect("hospital=>")
    child.send(typed)
    child.expect(r"ERROR:.*noise must be .* not \"white\"")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1 and "Traceback" not in str(child.before)
