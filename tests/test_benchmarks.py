"""Benchmarks run rarely: what they import, time and count by name must exist all the same."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from benchmarks.compile import STAGES
from benchmarks.trace import COUNTED

ROOT = Path(__file__).parents[1]
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__init__")


def qualified_names(text: str) -> set[str]:
    """The functions of a module and the methods of its classes, as `__qualname__` spells them."""
    found = set[str]()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name: str) -> None:
    importlib.import_module(f"benchmarks.{name}")


def test_what_is_timed_exists_in_the_module_that_calls_it() -> None:
    """`benchmarks.compile` puts a clock there: under another name it would measure nothing."""
    assert STAGES
    for stage, (module, name) in STAGES.items():
        assert callable(getattr(module, name, None)), stage
        assert module.__file__ is not None
        calls = [node.func for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8")))
                 if isinstance(node, ast.Call)]  # fmt: skip
        assert any(isinstance(call, ast.Name) and call.id == name for call in calls), stage


def test_what_is_counted_exists_in_its_file() -> None:
    assert COUNTED
    for kind, functions in COUNTED.items():
        assert functions, kind
        for file, name in functions:
            assert name in qualified_names((ROOT / "dpsql" / file).read_text(encoding="utf-8")), (kind, file, name)


def test_what_is_missing_is_found() -> None:
    text = "def run(): pass\nclass Store:\n    def read(self): pass\n"
    assert qualified_names(text) == {"run", "Store.read"}
