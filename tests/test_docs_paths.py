"""Every file, module and class that a document names exists under that name."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = "dpsql|tests|benchmarks|schemas|docs"
FILES = {
    path.relative_to(ROOT).as_posix()
    for folder in FOLDERS.split("|")
    for path in [ROOT / folder, *(ROOT / folder).rglob("*")]
    if "__pycache__" not in path.parts
}

# Hosts and files of the reader's own, whose names look like those of modules.
NOT_OURS = {"dpsql.example", "dpsql.service", "dpsql.fish", "dpsql.schema.json"}
FILES_OF_THE_READER = {"superset_config.py"}


def missing_names(text: str) -> list[str]:
    """The names of files, modules and classes in a page that nothing in the repository has."""
    return [*missing_paths(text), *missing_modules(text), *missing_classes(text)]


def missing_paths(text: str) -> list[str]:
    """Paths in code from the root, and every name of a Python file: `plan/show.py` is the end of some path."""
    paths = re.findall(rf"`((?:{FOLDERS})/[\w./-]*)`", text)
    paths += re.findall(rf"(?<![\w/.-])((?:{FOLDERS})/[\w./-]*\.py)\b", text)
    sources = re.findall(r"(?<![\w/.*~$-])(\w[\w/-]*\.py)\b", text)
    missing = [path for path in paths if path.rstrip("/") not in FILES]
    missing += [name for name in sources if not _ends_a_path(name) and name not in FILES_OF_THE_READER]
    return sorted(set(missing))


def _ends_a_path(name: str) -> bool:
    return any(path == name or path.endswith("/" + name) for path in FILES)


def missing_modules(text: str) -> list[str]:
    """Dotted names: modules of the tests and benchmarks; modules of dpsql, and what is in them."""
    missing = [
        name
        for name in re.findall(r"\b((?:tests|benchmarks)(?:\.[a-z_]\w*)+)", text)
        if not name.endswith(".md")
        if not {name.replace(".", "/") + ".py", name.replace(".", "/") + "/__init__.py"} & set(FILES)
    ]
    names = set(re.findall(r"(?<![\w./-])dpsql(?:\.[A-Za-z_]\w*)+", text)) - NOT_OURS
    return sorted({*missing, *(name for name in names if not _is_importable(name))})


def _is_importable(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[length:]:
            found = getattr(found, attribute, None)
        return found is not None
    return False


def missing_classes(text: str) -> list[str]:
    """Names that stand beside their file: `Name` in `dpsql/file.py`, `dpsql/file.py` (`Name`)."""
    pairs = [(path, name) for name, path in re.findall(r"`(\w+)` in\s+`(dpsql/[\w/]+\.py)`", text)]
    pairs += re.findall(r"`(dpsql/[\w/]+\.py)`\s+\(`(\w+)`\)", text)
    return [f"{name} in {path}" for path, name in pairs if path in FILES and name not in _definitions(path)]


def _definitions(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_names_exists(page: Path) -> None:
    assert missing_names(page.read_text(encoding="utf-8")) == []


def unreadable_addresses(text: str) -> list[str]:
    """Queries of addresses in which libpq finds a second `=` in a value: it wants %3D there."""
    return [
        query
        for query in re.findall(r"[?&`](\w+=[^\s`\"'<>]*)", text)
        if any(part.count("=") > 1 for part in query.split("&")) and "%20" in query
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_addresses_can_be_read_by_libpq(page: Path) -> None:
    assert unreadable_addresses(page.read_text(encoding="utf-8")) == []


def test_an_address_that_libpq_cannot_read_is_found() -> None:
    wrong = "options=-c%20epsilon=0.2"
    assert unreadable_addresses(f"postgresql://a@h/b?{wrong} and `{wrong}`") == [wrong, wrong]
    assert unreadable_addresses("postgresql://a@h/b?sslmode=require&options=-c%20epsilon%3D0.2") == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("`dpsql/sql/parse.py` reads it", ["dpsql/sql/parse.py"]),
        ("dpsql/sql/parse.py without code marks", ["dpsql/sql/parse.py"]),
        ("`dpsql/compiler`, `dpsql/compiler/`, `dpsql/compiler/compile.py`, `plan/show.py`, `tests/unit/`", []),
        ("`tests/unit/catalog/` is elsewhere", ["tests/unit/catalog/"]),
        ("`looks.py` is the only file", ["looks.py"]),
        ("`dpsql.compiler.compile`, `dpsql.connect`, `dpsql.errors.Error`, dpsql.example", []),
        ("`dpsql.sqlalchemy` and `dpsql.errors.Nothing`", ["dpsql.errors.Nothing", "dpsql.sqlalchemy"]),
        ("`python -m benchmarks.accuracy`, [benchmarks](benchmarks.md), `python -m tests.shape`", []),
        ("`python -m benchmarks.nothing`", ["benchmarks.nothing"]),
        ("`Exact` in `dpsql/privacy/exact.py`, `dpsql/privacy/exact.py` (`Exact`)", []),
        ("`Moved` in\n`dpsql/privacy/exact.py`", ["Moved in dpsql/privacy/exact.py"]),
    ],
)
def test_a_name_that_nothing_has_is_found(text: str, missing: list[str]) -> None:
    assert sorted(set(missing_names(text))) == missing
