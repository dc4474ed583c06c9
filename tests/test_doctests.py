"""Examples in docstrings are true: of every module that has some."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = [path for path in sorted((ROOT / "dpsql").rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in FILES]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_are_true(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted and not results.failed


def test_an_example_that_is_wrong_is_found(tmp_path, monkeypatch, capsys):
    (tmp_path / "planted_example.py").write_text('"""\n>>> 1 + 1\n3\n"""\n')
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(AssertionError):
        test_examples_of_docstrings_are_true("planted_example")
    assert "Expected:" in capsys.readouterr().out
