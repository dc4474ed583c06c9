"""What the modules of the tests import of each other is there, also in scripts that no test imports."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent


def missing_imports(tree: ast.Module) -> list[str]:
    """Modules of `tests`, and names in them, that are imported and are not there."""
    missing = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tests":
            missing += [f"{node.module}.{item.name}" for item in node.names if not _exists(node.module, item.name)]
    return missing


def _exists(module: str, name: str) -> bool:
    folder = ROOT.joinpath(*module.split("."))
    if (folder / name).is_dir() or (folder / f"{name}.py").exists():
        return True
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    return file.exists() and name in {
        word
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        for word in (getattr(node, "name", None), getattr(node, "id", None), getattr(node, "asname", None))
        if isinstance(word, str)
    }


def test_imports_are_there() -> None:
    files = sorted((ROOT / "tests").rglob("*.py"))
    trees = {file.relative_to(ROOT).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}
    missing = {name: found for name, tree in trees.items() if (found := missing_imports(tree))}
    assert len(trees) > 100 and missing == {}


def test_an_import_of_nothing_is_found() -> None:
    source = "from tests.support.wire import java, introspect\nfrom tests.support.server import serving, nobody\n"
    assert missing_imports(ast.parse(source)) == ["tests.support.wire.introspect", "tests.support.server.nobody"]


def test_slow_marks_stand_in_test_files() -> None:
    """`make test-slow` collects only the test files that have one."""
    files = [file for file in (ROOT / "tests").rglob("*.py") if not file.name.startswith("test_")]
    marks = ("mark.slow", "mark.thorough")
    assert [str(file) for file in files if any(mark in file.read_text(encoding="utf-8") for mark in marks)] == []
