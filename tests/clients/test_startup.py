"""How long a person waits for the prompt: by the CPU of a real start, and by what is imported before it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import dpsql
from benchmarks.startup import LIMIT, environment_of, start
from dpsql.cli.hospital import make_hospital

HEAVY = ("sqlglot", "duckdb", "numpy", "pandas", "pyarrow", "matplotlib", "IPython", "sqlalchemy", "psycopg", "asyncpg",
         "dpsql.session", "dpsql.compile", "dpsql.dataset", "dpsql.engines.duckdb", "dpsql.verify")  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux tells the CPU of another process")
def test_the_prompt_is_there_within_half_a_second_of_cpu(tmp_path: Path) -> None:
    """The least of a few starts, of all threads: on a busy machine, caches are cold."""
    (tmp_path / "hospital").mkdir()
    path = str(make_hospital(tmp_path / "hospital"))
    dpsql.connect(path, user="ana").close()  # registers the data
    environment = environment_of(tmp_path, sources=False)
    starts = [start(path, environment) for _ in range(4)]  # the first one writes bytecode
    assert min(one["cpu"] for one in starts[1:]) <= LIMIT, starts
    assert min(one["key"] for one in starts[1:]) <= 0.25, ("a key typed at once is seen late", starts)


@pytest.mark.parametrize(
    "module", ["dpsql", "dpsql.cli.run", "dpsql.repl.run", "dpsql.dbapi.opening", "dpsql.cli.user"]
)
def test_what_comes_before_a_prompt_imports_no_engine_and_no_sql(module: str) -> None:
    code = f"import sys, {module}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
