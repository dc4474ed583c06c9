"""Print figures about the shape of the package: files, names, imports.

    python tests/shape.py            the package dpsql
    python tests/shape.py PATH       another package, to compare

They are a mirror and not a quota: a name is good when a stranger guesses the content from it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median

PACKAGE = Path(__file__).resolve().parent.parent / "dpsql"
SMALL, LARGE = 80, 800
"""Lines: a module below the first with one importer in its folder is a fragment, one above the second is large."""
PARTICIPLES = frozenset(
    ("told", "held", "asked", "made", "found", "known", "given", "kept", "taken", "written", "read", "shown", "meant",
     "left", "done", "said", "drawn", "chosen", "built", "put", "paid", "sent", "cut", "set", "spent", "run", "bound",
     "split", "worn", "seen", "lost")
)  # fmt: skip


@dataclass(frozen=True)
class Module:
    path: Path
    name: str
    lines: int
    tree: ast.Module

    @property
    def folder(self) -> str:
        return self.name.rpartition(".")[0]


def load_modules(package: Path) -> list[Module]:
    modules = []
    for path in sorted(package.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(package.parent).with_suffix("").parts
        modules.append(Module(path, ".".join(parts), len(text.splitlines()), ast.parse(text)))
    return modules


def function_names(modules: list[Module]) -> list[str]:
    """Of functions and methods, without dunders and leading underscores."""
    nodes = (node for module in modules for node in ast.walk(module.tree))
    names = (node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [name.strip("_") for name in names if not name.startswith("__")]


def is_one_word(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9]+", name) is not None


def is_bare_participle(name: str) -> bool:
    return name in PARTICIPLES or (is_one_word(name) and name.endswith("ed") and len(name) > 4)


def shared_class_names(modules: list[Module]) -> list[str]:
    """Names that several classes at module level have."""
    counts = Counter(node.name for module in modules for node in module.tree.body if isinstance(node, ast.ClassDef))
    return sorted(name for name, count in counts.items() if count > 1)


def importers(modules: list[Module]) -> dict[str, set[str]]:
    """For each module, the modules of the package that import it."""
    names = {module.name for module in modules}
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    target = f"{node.module}.{alias.name}"
                    found[target if target in names else node.module].add(module.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found[alias.name].add(module.name)
    return found


def fragments(modules: list[Module]) -> list[str]:
    """Small modules whose only importer stands in the same folder."""
    by_module = importers(modules)
    small = (module for module in modules if module.lines < SMALL and module.path.stem not in ("__init__", "__main__"))
    alone = (module for module in small if len(by_module[module.name]) == 1)
    return [m.name for m in alone if next(iter(by_module[m.name])).rpartition(".")[0] == m.folder]


def percent(part: int, whole: int) -> str:
    return f"{part:6,} ({100 * part / max(whole, 1):.0f} %)"


def print_figures(package: Path) -> None:
    modules = load_modules(package)
    names = function_names(modules)
    filled = [module for module in modules if module.path.name != "__init__.py"]
    folders = {m.path.relative_to(package).parts[0] for m in modules if m.path.parent != package}
    rows = {
        "files": f"{len(modules):6,}",
        "files without __init__": f"{len(filled):6,}",
        "lines": f"{sum(module.lines for module in modules):6,}",
        "median lines of a module": f"{median(module.lines for module in filled):6,.0f}",
        "modules in the root": f"{sum(module.path.parent == package for module in modules):6,}",
        "packages in the root": f"{len(folders):6,}",
        f"modules past {LARGE} lines": f"{sum(module.lines > LARGE for module in modules):6,}",
        f"modules under {SMALL} lines with one importer, in their folder": f"{len(fragments(modules)):6,}",
        "functions and methods": f"{len(names):6,}",
        "names of one word": percent(sum(map(is_one_word, names)), len(names)),
        "names that are bare participles": percent(sum(map(is_bare_participle, names)), len(names)),
        "class names of several classes": f"{len(shared_class_names(modules)):6,}",
    }
    width = max(map(len, rows))
    for label, figure in rows.items():
        print(f"{label:{width}}  {figure}")


if __name__ == "__main__":
    print_figures(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else PACKAGE)
