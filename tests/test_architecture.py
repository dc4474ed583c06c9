"""The laws of the package that imports and syntax can show. Each law is also tried on planted violations.

ARCHITECTURE.md has the same tables for readers; the tests at the end compare the two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import pytest

from tests.shape import LARGE, SMALL, Module, fragments

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "dpsql"
MAX_ROOT_MODULES = 8

# What each package may import of dpsql besides itself and COMMON. No edge that no import uses; no other package.
PACKAGES: dict[str, set[str]] = {
    "base": set(),
    "schema": {"base"},
    "privacy": {"base"},
    "compiler": {"base", "schema", "privacy"},
    "engines": {"base", "schema", "privacy"},
    "ledger": {"base", "privacy"},
    "session": {"base", "schema", "privacy", "compiler", "engines", "ledger"},
    "owner": {"base", "schema", "privacy", "engines", "ledger", "session"},
    "verify": {"schema", "privacy", "compiler", "engines", "ledger", "session"},
    "interfaces": {"base", "session", "owner", "verify"},
}
COMMON = {"errors", "types", "amounts", "version"}
"""Modules in the root that every package may import; `base` has no use for the last two."""
ROOT_MODULES: dict[str, set[str]] = {
    "errors": {"amounts"},
    "types": set(),
    "amounts": set(),
    "version": set(),
    "__init__": {"errors", "amounts", "version", "session", "interfaces"},
    "__main__": {"interfaces"},
}
IMPORT_ROOT = {"interfaces/sqlalchemy/dialect.py": "SQLAlchemy asks a dialect for the PEP 249 module, which is dpsql"}
"""Who imports `dpsql` itself, which offers the interfaces, and why."""

# The order inside compiler/: a part may import what stands to its left in a row, and whatever that may import.
COMPILER_ORDER = (
    "plan functions analysis rewrite calibrate reuse compiled",
    "functions parse bind postprocess catalog split settings compiled",
    "analysis bind",
    "functions render split parameter_types",
    "calibrate settings",
    "compiled accuracy compile",
    "compiled planners norm_steps clipping compile",
    "settings empty_groups planners",
    "norm_steps row_caps weighted_rows",
)
# What each interface may import of the other interfaces, and of the packages below, module by module.
INTERFACES: dict[str, set[str]] = {
    "display": set(),
    "pgwire/protocol": {"session.session"},
    "pgwire/backend_session": {"pgwire/protocol", "session.session"},
    "pgwire/server": {
        "pgwire/protocol", "pgwire/backend_session", "session.session", "session.dataset.dataset",
        "session.logins",  # who may log in
    },
    "remote": {"pgwire/protocol", "pgwire/server", "session.session", "session.status_preview"},
    "dbapi": {
        "display", "remote", "session.session", "session.dataset.dataset",
        "session.preload",  # imports a session behind a prompt, and gives out nothing of it
        "session.status_preview",  # what a prompt shows before a session is imported
    },
    "sqlalchemy": {"dbapi", "session.session"},
    "repl": {"dbapi", "display", "session.session"},
    "cli": {"dbapi", "display", "pgwire/server", "repl", "session.session", "owner", "verify"},
}  # fmt: skip

# The only places that may import a library.
HOMES: dict[str, tuple[str, ...]] = {
    "sqlglot": (
        "compiler/parse/", "compiler/bind/", "compiler/postprocess/", "compiler/catalog/", "compiler/split/",
        "compiler/parameter_types.py",
    ),
    "duckdb": (
        "engines/duckdb.py", "engines/duckdb_admin.py", "engines/in_memory.py", "session/postprocess/sandbox.py",
        "session/postprocess/catalog_sandbox.py", "session/postprocess/locked_duckdb.py",
    ),
    "yaml": ("schema/load.py", "schema/edit.py"),
    "sqlite3": ("ledger/",),
    "sqlalchemy": ("interfaces/sqlalchemy/",),
    "prometheus_client": ("interfaces/pgwire/server/metrics.py",),
    "psycopg": ("engines/postgres.py", "ledger/postgres.py", "owner/introspect/postgres.py"),
    "psycopg_pool": ("ledger/postgres.py",),
    "pyspark": ("engines/spark.py",),
    "prompt_toolkit": ("interfaces/repl/prompt.py", "interfaces/repl/main.py"),
    "pyarrow": (
        "interfaces/dbapi/dataframes.py", "interfaces/dbapi/result.py", "interfaces/dbapi/cursor.py",
        "interfaces/repl/run_meta_command.py",
    ),
    "pandas": ("interfaces/dbapi/dataframes.py", "interfaces/dbapi/result.py", "interfaces/dbapi/cursor.py"),
    "polars": ("interfaces/dbapi/dataframes.py", "interfaces/dbapi/result.py", "interfaces/dbapi/cursor.py"),
    "sklearn": ("interfaces/dbapi/model.py",),
    "matplotlib": ("interfaces/display/plot.py",),
    "altair": ("interfaces/display/plot.py",),
    "IPython": (),  # it loads us
    "dp_accounting": ("ledger/accountants.py",),
}  # fmt: skip
# Libraries that may be missing, or are slow to import: inside of a function, or for types alone.
LATE = (
    "prometheus_client",
    "pyarrow",
    "pandas",
    "polars",
    "sklearn",
    "matplotlib",
    "altair",
    "IPython",
    "dp_accounting",
)

PURCHASE = "session/purchase.py"
RELEASE = "privacy/release.py"
PAIRED_ENGINE = "verify/paired_engine.py"
SAMPLING = "privacy/sampling.py"
DRY_RUN = "owner/check/dry_run.py"
CHOICES = "verify/generate/choices.py"
# What makes rows of a synthetic table from what was measured of private rows, and must not see those rows.
BEHIND_MEASUREMENTS = tuple(
    f"privacy/synthetic/{name}.py" for name in ("synthesis", "mwem", "mst", "marginal_error", "sample_rows")
)
# Modules that read the owner's rows and tables beside the releases, and who may import them.
OWNER_MODULES = {
    "dpsql.engines.duckdb_admin": ("owner/", "session/dataset/versions.py", "engines/"),
    "dpsql.owner.introspect.csv_files": ("owner/",),
    "dpsql.owner.introspect.statistics": ("owner/",),
    "dpsql.owner.introspect.tables": ("owner/",),
    "dpsql.owner.introspect.postgres": ("owner/",),
}
# Functions, and one module, that open the owner's data.
OWNER_DATA = ("open_dataset", "open_schema_ledger", "register_data_version", "open_engine", "versions")

PURE = ("compiler/", "schema/dummy_rows.py")
WORLD = {"os", "io", "time", "random", "secrets", "socket", "subprocess", "threading", "pathlib", "logging", "tempfile",
         "asyncio", "ssl", "select", "ctypes", "shutil", "urllib", "signal", "resource", "multiprocessing",
         "concurrent"}  # fmt: skip
# PostgreSQL's protocol without I/O: bytes in, bytes out, and no clock.
WITHOUT_IO = ("interfaces/pgwire/protocol/", "interfaces/pgwire/backend_session/", "base/scram.py")
LOCKS = {"interfaces/pgwire/backend_session/transaction.py": "a statement is canceled from another thread"}
NOW = {"now", "today", "utcnow"}
RANDOM = {"random", "secrets", "urandom", "getrandbits", "randbelow", "token_bytes", "uuid4", "SystemRandom"}
# Not noise, each use counted: the ledger's entries carry a nonce, so that their hashes tell nothing of their contents
# (injected too: the default of one parameter); a new ledger is named by a random id; passwords have salts, or are
# generated; a server makes nonces of logins and keys of cancel requests.
NOT_NOISE = {
    "ledger/ledger.py": ["urandom"],
    "ledger/open.py": ["urandom"],
    "ledger/sqlite.py": ["uuid4", "uuid4"],
    "interfaces/cli/user.py": ["urandom"] * 3,
    "interfaces/pgwire/server/login.py": ["secrets", "token_bytes", "randbelow", "token_bytes"],
}

BY_STRINGS = {"import_module", "importlib", "_import_package"}  # the last are functions that import what they are given
NEVER = {"__import__", "exec", "eval", "runpy", "spec_from_file_location", "spec_from_loader", "spec_from_file"}

# Modules under 80 lines with one importer in their folder, and why they stand alone all the same.
FRAGMENTS = {
    "dpsql.ledger.interactive_answers": "a table of the ledger, beside the modules of its other tables",
}


class File:
    """A parsed file of the package, by its path inside of it."""

    def __init__(self, root: Path, path: Path) -> None:
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.text = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.text, self.name)
        self.package = self.name.split("/")[0].removesuffix(".py")
        self.nodes = list(ast.walk(self.tree))

    @property
    def module(self) -> str:
        return ".".join(("dpsql", *self.name.removesuffix(".py").split("/"))).removesuffix(".__init__")

    def at(self, node: ast.AST, what: str) -> str:
        return f"dpsql/{self.name}:{getattr(node, 'lineno', 0)}: {what}"

    def is_in(self, places: tuple[str, ...]) -> bool:
        return any(self.name == place or (place.endswith("/") and self.name.startswith(place)) for place in places)

    @cached_property
    def imports(self) -> list[tuple[ast.AST, str]]:
        """Every imported module, with `from a import b` as both `a` and `a.b`.

        In a file that imports by strings, every string that can be a module's name is one: a constant, or one of a
        table, whatever becomes of it.
        """
        return [imported for node in self.nodes for imported in self._imports_of(node)]

    def _imports_of(self, node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = self.name.split("/")[: -node.level] if node.level else []
            module = ".".join((["dpsql", *inside] if node.level else []) + ([node.module] if node.module else []))
            yield node, module
            yield from ((node, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and self.imports_by_strings:
            yield from ((node, name) for name in re.findall(r"\A[A-Za-z_]\w*(?:\.\w+)*\Z", node.value))

    @cached_property
    def imports_by_strings(self) -> bool:
        importing = [node for node in self.nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        named = {alias.name for node in importing for alias in node.names}
        named |= {node.module for node in importing if isinstance(node, ast.ImportFrom) and node.module}
        return bool(BY_STRINGS & (named | {name for _, name in self.names}))

    @cached_property
    def imports_at_start(self) -> set[str]:
        """What is imported when this module is: not in functions, and not for types alone."""
        statements: list[ast.stmt] = list(self.tree.body)
        found: set[str] = set()
        while statements:
            node = statements.pop()
            if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
                continue
            found |= {name for _, name in self._imports_of(node)}
            for block in ("body", "orelse", "handlers", "finalbody"):
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    statements += getattr(node, block, [])
        return found

    @cached_property
    def names(self) -> list[tuple[ast.AST, str]]:
        """Every name and attribute that is used."""
        attributes = [(node, node.attr) for node in self.nodes if isinstance(node, ast.Attribute)]
        return attributes + [(node, node.id) for node in self.nodes if isinstance(node, ast.Name)]

    def calls(self, method: str) -> Iterator[ast.AST]:
        for node in self.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
                yield node


def read_files(root: Path) -> list[File]:
    return [File(root, path) for path in sorted(root.rglob("*.py"))]


def below(order: tuple[str, ...]) -> dict[str, set[str]]:
    """For each part of an order, all parts below it."""
    direct: dict[str, set[str]] = {part: set() for part in re.findall(r"\w+", " ".join(order))}
    for low, high in pairs(order):
        direct[high].add(low)
    found = direct
    for _ in direct:
        found = {part: lower.union(*(found[low] for low in lower)) for part, lower in found.items()}
    return found


def pairs(order: tuple[str, ...]) -> list[tuple[str, str]]:
    """Neighbors in the rows of an order, the lower first."""
    rows = [[step.split("|") for step in row.split()] for row in order]
    steps = [(lows, highs) for row in rows for lows, highs in pairwise(row)]
    return [(low, high) for lows, highs in steps for low in lows for high in highs]


def law_1_one_caller_pays(package: list[File]) -> Iterator[str]:
    callers = [(file, node) for file in package for node in file.calls("purchase")]
    for file, node in callers:
        if file.name != PURCHASE:
            yield file.at(node, f"only {PURCHASE} may charge an account")
    for file, node in callers[1:]:
        yield file.at(node, "there is one call of purchase")


def law_5_exact_rows_are_opened_in_one_file(package: list[File]) -> Iterator[str]:
    """And those that `verify` generated itself, in the one that compares them."""
    for file in package:
        if file.name not in ("privacy/exact.py", RELEASE, PAIRED_ENGINE):
            for node, name in file.names:
                if name in ("reveal", "ExactRows") or name.endswith("__revealed"):
                    yield file.at(node, f"exact rows are opened in {RELEASE} only")


def law_5_exact_cells_are_evaluated_in_one_file(package: list[File]) -> Iterator[str]:
    """Only who has opened an exact cell submits it to an interactive mechanism."""
    for file in package:
        for node in file.calls("evaluate_exact_cell") if file.name != RELEASE else ():
            yield file.at(node, f"exact cells are evaluated in {RELEASE} only")


def law_5_weighted_rows_are_seen_in_one_file(package: list[File]) -> Iterator[str]:
    """Weighted rows are made, and given to a mechanism, where exact rows are opened; of synthetic tables `measure`
    alone reads them."""
    for file in package:
        for name in ("perform", "to_weighted_rows"):
            for node in file.calls(name) if file.name != RELEASE else ():
                yield file.at(node, f"weighted rows are made, and mechanisms run on them, in {RELEASE} only")
        for node in file.nodes if file.is_in(BEHIND_MEASUREMENTS) else ():
            if isinstance(node, ast.Attribute) and node.attr in ("codes", "weights"):
                yield file.at(node, "what makes a synthetic table sees private rows through measure.py only")


def law_5_verify_has_generated_rows_only(package: list[File]) -> Iterator[str]:
    """It opens exact rows, so it may reach no other engine than one that it fills itself."""
    allowed = ("dpsql.engines.base", "dpsql.engines.in_memory")
    for file in package:
        for node, module in file.imports if file.package == "verify" else ():
            engine = module.startswith("dpsql.engines") and not module.startswith(allowed) and module != "dpsql.engines"
            if engine or module.split(".")[-1] in OWNER_DATA:
                yield file.at(node, f"verify may not reach the owner's rows: {module}")
        for node, name in file.names if file.package == "verify" else ():
            if name in OWNER_DATA:
                yield file.at(node, f"verify may not reach the owner's rows: {name}")


def law_5_modules_of_the_owner_are_the_owners(package: list[File]) -> Iterator[str]:
    """They give out exact figures, values and names of columns: nothing that answers an analyst may reach them."""
    for file in package:
        for node, module in file.imports:
            for owned, places in OWNER_MODULES.items():
                if f"{module}.".startswith(f"{owned}.") and not file.is_in(places):
                    yield file.at(node, f"{owned} is for {', '.join(places)} only")


def law_6_the_compiler_is_pure(package: list[File]) -> Iterator[str]:
    for file in package:
        if file.is_in(PURE):
            for node, module in file.imports:
                if module.split(".")[0] in WORLD:
                    yield file.at(node, f"a pure module imports {module}")
            for node in file.nodes:
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in NOW:
                    yield file.at(node, "a pure module reads the clock")
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("open", "input"):
                    yield file.at(node, "a pure module reads a file")


def law_6_the_protocol_does_no_io(package: list[File]) -> Iterator[str]:
    for file in package:
        allowed = {"io", "threading"} if file.name in LOCKS else {"io"}
        for node, module in file.imports if file.is_in(WITHOUT_IO) else ():
            if module.split(".")[0] in WORLD - allowed:
                yield file.at(node, f"the protocol without I/O imports {module}")


def law_7_randomness_has_one_source(package: list[File]) -> Iterator[str]:
    for file in package:
        if file.name in (SAMPLING, CHOICES):  # the second generates statements and rows, and no noise
            continue
        excused = list(NOT_NOISE.get(file.name, []))
        uses = [(node, part) for node, module in file.imports for part in sorted(set(module.split(".")) & RANDOM)]
        uses += [(node, name) for node, name in file.names if name in RANDOM and isinstance(node, ast.Attribute)]
        for node, name in uses:
            if name in excused:
                excused.remove(name)
            else:
                yield file.at(node, f"randomness outside of {SAMPLING}: {name}")


def law_7_noise_is_left_out_for_the_owner_alone(package: list[File]) -> Iterator[str]:
    """What draws for a session is sampling.py; what draws nothing stands in dry_run.py, and only `owner` imports it."""
    for file in package:
        if file.package in ("privacy", "verify") or file.name == DRY_RUN:  # verify has generated rows only
            continue
        for node in file.nodes:
            if isinstance(node, ast.FunctionDef) and node.name in ("laplace", "gaussian"):
                yield file.at(node, f"noise comes from {SAMPLING}")
        for node, module in file.imports:
            if file.package != "owner" and module.startswith("dpsql.owner.check.dry_run"):
                yield file.at(node, "only the owner runs without noise")


def law_9_nodes_are_frozen(package: list[File]) -> Iterator[str]:
    for file in package:
        for node in file.nodes if file.is_in(("compiler/plan/",)) else ():
            if isinstance(node, ast.ClassDef) and not {"Enum", "Protocol"} & {_name(base) for base in node.bases}:
                frozen = [decorator for decorator in node.decorator_list if _is_frozen(decorator)]
                if not frozen:
                    yield file.at(node, f"{node.name} is not a frozen dataclass")


def law_9_passes_match_every_node(package: list[File]) -> Iterator[str]:
    """A `match` on a node, in a function that takes one, ends in assert_never or names every node: no wildcard.

    (Where every node is named and the function returns something, mypy finds the one that is missing.)
    """
    plan = [file for file in package if file.is_in(("compiler/plan/",))]
    unions = {name: parts for file in plan for name, parts in _unions(file.tree)}
    for file in package:
        if file.package == "compiler":
            for node, union in _matches(file.tree, unions):
                if not _asserts_never(node) and not _names_all(node, union, unions):
                    yield file.at(node, f"a match on {union} neither ends in assert_never nor names all of them")


def law_11_packages_import_along_the_edges(package: list[File]) -> Iterator[str]:
    """Interfaces see sessions; privacy knows no SQL; compiler, engines and ledger do not know each other."""
    known = {**ROOT_MODULES, **PACKAGES}
    for file in package:
        if file.package not in known:
            yield file.at(file.tree, f"{file.package} is no package of dpsql")
            continue
        common = {"base": {"errors", "types"}}.get(file.package, COMMON if file.package in PACKAGES else set())
        for node, module in file.imports:
            target = [*module.split("."), ""][1] if module.split(".")[0] == "dpsql" else file.package
            if target in known and target not in {file.package, *common, *known[file.package]}:
                yield file.at(node, f"{file.package} may not import {target}")


def law_11_the_root_is_imported_from_outside(package: list[File]) -> Iterator[str]:
    """`import dpsql` imports what offers the interfaces: from below that is a cycle."""
    for file in package:
        for node in file.nodes if file.name not in IMPORT_ROOT else ():
            named = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
            module = node.module if isinstance(node, ast.ImportFrom) and not node.level else None
            if (isinstance(node, ast.Import) and "dpsql" in named) or (
                module == "dpsql" and not named <= PACKAGES.keys() | COMMON
            ):
                yield file.at(node, "import the module that has it, not dpsql")


def law_11_the_compiler_has_an_order(package: list[File]) -> Iterator[str]:
    lower = below(COMPILER_ORDER)
    for file in package:
        part = _part(file.module, "compiler")
        if part and part not in lower:
            yield file.at(file.tree, f"{part} has no place in the order of the compiler")
        for node, module in file.imports if part in lower else ():
            other = _part(module, "compiler")
            if other in lower and other not in {part, *lower[part]}:
                yield file.at(node, f"in compiler, {part} may not import {other}")


def law_11_interfaces_import_what_they_are_given(package: list[File]) -> Iterator[str]:
    """Of sessions single modules; the owner's side and `verify` from the command line only."""
    for file in package:
        own = _interface(file.module)
        if own and own not in INTERFACES and file.name != "interfaces/pgwire/__init__.py":
            yield file.at(file.tree, f"{own} is no interface")
        for node, module in file.imports if own in INTERFACES else ():
            package_name = [*module.split("."), ""][1] if module.startswith("dpsql.") else ""
            if package_name == "interfaces":
                other = _interface(module)
                allowed = other not in INTERFACES or other in {own, *INTERFACES[own]}
            elif package_name in ("session", "owner", "verify"):
                allowed = any(f"{module}.".startswith(f"dpsql.{name}.") for name in INTERFACES[own]) or any(
                    f"dpsql.{name}".startswith(f"{module}.") for name in INTERFACES[own]
                )
            else:
                continue
            if not allowed:
                yield file.at(node, f"{own} may not import {module}")


def law_11_modules_form_no_cycle(package: list[File]) -> Iterator[str]:
    modules = {file.module: file for file in package}
    edges = {name: (file.imports_at_start & modules.keys()) - {name, "dpsql"} for name, file in modules.items()}
    left = set(edges)
    while free := {name for name in left if not edges[name] & left}:
        left -= free
    while free := left - {other for name in left for other in edges[name]}:
        left -= free  # they import a cycle, and are in none
    for name in sorted(left):
        yield modules[name].at(modules[name].tree, f"a cycle: it imports {', '.join(sorted(edges[name] & left))}")


def law_11_the_loss_checker_is_independent(package: list[File]) -> Iterator[str]:
    """It derives losses once more, so it imports nothing of what derived them first."""
    for file in package:
        for node, module in file.imports if file.is_in(("ledger/loss_checker/",)) else ():
            if module.startswith("dpsql.") and not module.startswith("dpsql.ledger.loss_checker"):
                yield file.at(node, f"the loss checker imports {module}")


def law_12_libraries_have_homes(package: list[File]) -> Iterator[str]:
    for file in package:
        for node, module in file.imports:
            library = module.split(".")[0]
            if library in HOMES and not file.is_in(HOMES[library]):
                yield file.at(node, f"{library} is imported in {', '.join(HOMES[library])} only")


def law_12_libraries_that_may_be_missing_are_imported_late(package: list[File]) -> Iterator[str]:
    for file in package:
        for node in file.tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                named = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                for library in {name.split(".")[0] for name in named} & set(LATE):
                    yield file.at(node, f"{library} may be missing: import it where it is used")


def law_12_names_of_modules_can_be_read(package: list[File]) -> Iterator[str]:
    """What is imported by a string is a constant, or one of a table: never put together, so that these laws see it."""
    for file in package:
        for node, name in file.names:
            if name in NEVER and not (isinstance(node, ast.Attribute) and name in ("exec", "eval")):
                yield file.at(node, f"{name} imports what no law sees")
        for node in file.nodes:
            by_string = isinstance(node, ast.Call) and _name(node.func) in BY_STRINGS
            if by_string and not isinstance([*node.args, None][0], ast.Constant | ast.Name | ast.Subscript):
                yield file.at(node, "the name of a module is put together")


def law_modules_are_one_subject(package: list[File]) -> Iterator[str]:
    for file in package:
        lines = file.text.count("\n")
        if lines > LARGE:
            yield file.at(file.tree, f"{lines} lines, more than {LARGE}: two subjects")


def law_modules_are_no_fragments(package: list[File]) -> Iterator[str]:
    by_name = {_full_name(file): file for file in package}
    for name in fragments(_modules(package)):
        if name not in FRAGMENTS:
            file = by_name[name]
            yield file.at(file.tree, f"under {SMALL} lines, with one importer in its folder: part of that module")


def law_the_root_is_small(package: list[File]) -> Iterator[str]:
    loose = [file for file in package if "/" not in file.name]
    for file in loose[MAX_ROOT_MODULES:]:
        yield file.at(file.tree, f"more than {MAX_ROOT_MODULES} modules in the root")


def law_modules_say_what_they_are_for(package: list[File]) -> Iterator[str]:
    for file in package:
        if file.text.strip() and not ast.get_docstring(file.tree):
            yield file.at(file.tree, "no docstring")


def _part(module: str, package: str) -> str | None:
    """The sub-package or module of a package that a module is, or is in."""
    prefix = f"dpsql.{package}."
    return module.removeprefix(prefix).split(".")[0] if module.startswith(prefix) else None


def _interface(module: str) -> str | None:
    parts = module.split(".")[2:] if module.startswith("dpsql.interfaces.") else []
    return "/".join(parts[:2] if parts[:1] == ["pgwire"] else parts[:1]) or None


def _full_name(file: File) -> str:
    return ".".join(("dpsql", *file.name.removesuffix(".py").split("/")))


def _modules(package: list[File]) -> list[Module]:
    return [Module(file.path, _full_name(file), len(file.text.splitlines()), file.tree) for file in package]


def _name(node: ast.AST | None) -> str | None:
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str() as name):
            return name
        case _:
            return None


def _is_frozen(decorator: ast.AST) -> bool:
    return (
        isinstance(decorator, ast.Call)
        and _name(decorator.func) == "dataclass"
        and any(
            keyword.arg == "frozen" and isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            for keyword in decorator.keywords
        )
    )


def _unions(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr):
            members = {name for part in ast.walk(node.value) if (name := _name(part))}
            yield from ((name, members) for target in node.targets if (name := _name(target)))


def _matches(tree: ast.Module, unions: dict[str, set[str]]) -> Iterator[tuple[ast.Match, str]]:
    """Each `match` on a parameter whose annotation is a union, with the union's name."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            # A dotted annotation is another library's class: sqlglot's exp.Expr is not our Expr.
            own = [arg for arg in function.args.args if not isinstance(arg.annotation, ast.Attribute)]
            taken = {arg.arg: name for arg in own if (name := _name(arg.annotation)) in unions}
            for node in ast.walk(function):
                if isinstance(node, ast.Match) and (subject := _name(node.subject)) in taken:
                    yield node, taken[subject]


def _names_all(match: ast.Match, union: str, unions: dict[str, set[str]]) -> bool:
    wanted = {union}
    while nested := wanted & unions.keys():
        wanted = (wanted - nested).union(*(unions[name] for name in nested))
    parts = [part for case in match.cases if case.guard is None for part in _alternatives(case.pattern)]
    return wanted <= {_name(part.cls) for part in parts if isinstance(part, ast.MatchClass)}


def _alternatives(pattern: ast.pattern) -> list[ast.pattern]:
    match pattern:
        case ast.MatchOr(patterns=patterns):
            return patterns
        case ast.MatchAs(pattern=ast.pattern() as inner):
            return _alternatives(inner)
        case _:
            return [pattern]


def _asserts_never(match: ast.Match) -> bool:
    last = match.cases[-1]
    if not (isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None and last.guard is None):
        return False
    return any(isinstance(node, ast.Call) and _name(node.func) == "assert_never" for node in ast.walk(last))


Law = Callable[[list[File]], Iterator[str]]
LAWS: list[Law] = [value for name, value in list(globals().items()) if name.startswith("law_")]


@pytest.fixture(scope="module")
def package() -> list[File]:
    return read_files(PACKAGE)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_the_package_keeps_the_law(package: list[File], law: Law) -> None:
    assert list(law(package)) == []


# --- the tables say no more than is so -------------------------------------------------------------------------------


def test_every_package_is_listed(package: list[File]) -> None:
    assert PACKAGES.keys() == {file.package for file in package if "/" in file.name} and len(PACKAGES) == 10
    assert ROOT_MODULES.keys() == {file.package for file in package if "/" not in file.name}
    assert ROOT_MODULES.keys() > COMMON


def test_every_edge_is_used(package: list[File]) -> None:
    used = {(file.package, part) for file in package for _, name in file.imports for part in name.split(".")[1:2]}
    table = {**ROOT_MODULES, **PACKAGES}
    assert {(name, other) for name, others in table.items() for other in others} - used == set()
    assert COMMON - {other for name, other in used if name in PACKAGES} == set()


def test_packages_form_no_cycle() -> None:
    done: set[str] = set()
    while ready := {name for name in PACKAGES.keys() - done if PACKAGES[name] <= done}:
        done |= ready
    assert PACKAGES.keys() - done == set()


def test_the_order_of_the_compiler_is_strict_and_used(package: list[File]) -> None:
    lower = below(COMPILER_ORDER)
    assert [part for part, others in lower.items() if part in others] == []
    assert lower.keys() == {part for file in package if (part := _part(file.module, "compiler"))}
    own = {(_part(name, "compiler"), _part(file.module, "compiler")) for file in package for _, name in file.imports}
    assert [pair for pair in pairs(COMPILER_ORDER) if pair not in own] == []


def test_every_edge_of_an_interface_is_used(package: list[File]) -> None:
    used = {(_interface(file.module), name) for file in package for _, name in file.imports}
    others = {(own, _interface(name)) for own, name in used}
    for own, names in INTERFACES.items():
        for name in names:
            below_it = {(own, f"dpsql.{name}")} & used or any(
                one == own and other.startswith(f"dpsql.{name}.") for one, other in used
            )
            assert below_it or (own, name) in others, (own, name)


def test_the_command_line_alone_sees_what_the_owner_sees() -> None:
    assert [name for name, others in PACKAGES.items() if "owner" in others] == ["interfaces"]
    assert [name for name, others in INTERFACES.items() if {"owner", "verify"} & others] == ["cli"]


def test_homes_that_are_there_hold_their_library(package: list[File]) -> None:
    """Engines that are not there yet have a home all the same."""
    names = {file.name for file in package}
    for library, places in HOMES.items():
        homes = {file.name for file in package for _, name in file.imports if name.split(".")[0] == library}
        there = [place for place in places if any(name.startswith(place) for name in names)]
        assert [place for place in there if not any(name.startswith(place) for name in homes)] == [], library


def test_exceptions_are_needed(package: list[File]) -> None:
    by_name = {file.name: file for file in package}
    for name in IMPORT_ROOT:
        assert "dpsql" in {imported for _, imported in by_name[name].imports}, name
    for name in LOCKS:
        assert "threading" in {imported for _, imported in by_name[name].imports}, name
    assert FRAGMENTS.keys() <= set(fragments(_modules(package)))
    for name, uses in NOT_NOISE.items():
        parts = [part for _, imported in by_name[name].imports for part in set(imported.split("."))]
        used = parts + [used for node, used in by_name[name].names if isinstance(node, ast.Attribute)]
        assert [use for use in set(uses) if used.count(use) != uses.count(use)] == [], name


def test_files_that_laws_name_are_there(package: list[File]) -> None:
    places = [PURCHASE, RELEASE, PAIRED_ENGINE, SAMPLING, DRY_RUN, CHOICES, "privacy/exact.py", *BEHIND_MEASUREMENTS]
    places += [*PURE, *WITHOUT_IO, *NOT_NOISE, *LOCKS, *IMPORT_ROOT, "ledger/loss_checker/", "compiler/plan/"]
    places += [place for allowed in OWNER_MODULES.values() for place in allowed]
    places += [f"{module.removeprefix('dpsql.').replace('.', '/')}.py" for module in (*OWNER_MODULES, *FRAGMENTS)]
    places += ["engines/base.py", "engines/in_memory.py", "privacy/synthetic/measure.py"]
    assert [place for place in places if not any(file.is_in((place,)) for file in package)] == []


CALLED = [
    ("purchase", PURCHASE),
    ("reveal", RELEASE),
    ("reveal", PAIRED_ENGINE),
    ("evaluate_exact_cell", RELEASE),
    ("perform", RELEASE),
    ("to_weighted_rows", RELEASE),
]
USED = [
    ("ExactRows", "privacy/exact.py"),
    ("__revealed", "privacy/exact.py"),
    ("codes", "privacy/synthetic/measure.py"),
    ("weights", "privacy/synthetic/measure.py"),
    ("urandom", SAMPLING),
    ("import_module", "interfaces/cli/main.py"),
    ("_import_package", "interfaces/dbapi/dataframes.py"),
    ("assert_never", "compiler/plan/walk.py"),
]
DEFINED = [
    ("purchase", "ledger/ledger.py"),
    ("reveal", "privacy/exact.py"),
    ("evaluate_exact_cell", "privacy/sparse_vector.py"),
    ("to_weighted_rows", "privacy/weighted_rows.py"),
    ("perform", "privacy/weighted_rows.py"),
    ("laplace", SAMPLING),
    ("gaussian", SAMPLING),
    ("laplace", DRY_RUN),
    ("gaussian", DRY_RUN),
    ("open_dataset", "session/dataset/dataset.py"),
    ("open_engine", "session/dataset/versions.py"),
    ("open_schema_ledger", "owner/administration.py"),
    ("register_data_version", "owner/administration.py"),
]


def test_names_that_laws_look_for_are_there(package: list[File]) -> None:
    """A law that looks for a name that was changed finds nothing, and is lost."""
    by_name = {file.name: file for file in package}
    assert [(name, file) for name, file in CALLED if not list(by_name[file].calls(name))] == []
    assert [(name, file) for name, file in USED if name not in {used for _, used in by_name[file].names}] == []
    functions = {(node.name, file.name) for file in package for node in file.nodes if isinstance(node, ast.FunctionDef)}
    assert [pair for pair in DEFINED if pair not in functions] == []
    assert {name for name, _ in DEFINED} >= set(OWNER_DATA) - {"versions"} and "session/dataset/versions.py" in by_name
    assert "random" in {name for _, name in by_name[CHOICES].imports}


def test_the_law_of_every_node_has_something_to_hold(package: list[File]) -> None:
    plan = [file for file in package if file.is_in(("compiler/plan/",))]
    unions = {name: parts for file in plan for name, parts in _unions(file.tree)}
    matched = {union for file in package if file.package == "compiler" for _, union in _matches(file.tree, unions)}
    assert {"Expr", "Rows", "Measure"} <= matched


# --- ARCHITECTURE.md and CONTRIBUTING.md -----------------------------------------------------------------------------

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PATH = r"(?<![/.\w])[a-z][\w.-]*/(?:[\w*-]+[\w.*/-]*)?|`\w+\.(?:py|md)`"


def test_the_page_has_the_packages_and_what_they_may_import() -> None:
    """In order, so that "all above" are the rows before it."""
    said: dict[str, set[str]] = {}
    for name, others in re.findall(r"^\| `(\w+)/` \|.*\| ([^|]*) \|$", ARCHITECTURE, re.MULTILINE):
        named, above = set(re.findall(r"\w+", others)), set(said)
        said[name] = above - named if others.startswith("all above") else named - {"root"}
    assert said == PACKAGES


def test_the_page_has_the_order_of_the_compiler() -> None:
    assert [row for row in COMPILER_ORDER if row.replace(" ", " < ").replace("|", ", ") not in ARCHITECTURE] == []
    folders = {path.parent.name for path in (PACKAGE / "compiler").glob("*/__init__.py")}
    assert folders - set(re.findall(r"\w+", " ".join(COMPILER_ORDER))) == set() and len(folders) == 12


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_a_page_names_are_there(page: str) -> None:
    """A path stands below the repository, or below dpsql/. Commands may name files that they make."""
    text = (ROOT / page).read_text(encoding="utf-8")
    text = re.sub(r"```sh\n.*?```", lambda block: " ".join(re.findall(r"\btests/\S+", block[0])), text, flags=re.DOTALL)
    named = [name.strip("`.") for name in re.findall(PATH, text)]
    folders = (ROOT, PACKAGE, *{(PACKAGE / name).parent for name in named if (PACKAGE / name).exists()})
    assert len(named) > 20
    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


@pytest.mark.parametrize(("page", "lines"), [("ARCHITECTURE.md", 120), ("CONTRIBUTING.md", 200)])
def test_a_page_stays_short(page: str, lines: int) -> None:
    text = (ROOT / page).read_text(encoding="utf-8").splitlines()
    assert len(text) <= lines and [line for line in text if len(line) > 100] == []


def test_the_page_names_the_test_of_each_law() -> None:
    """A law of this file by its number; the others by a folder or a make target that is there."""
    section = ARCHITECTURE.split("## The laws")[1].split("\n## ")[0]
    laws = dict(re.findall(r"^(\d+)\. (.*(?:\n   .*)*)", section, re.MULTILINE))
    assert list(laws) == [str(number) for number in range(1, 13)]
    held = {law.__name__.split("_")[1] for law in LAWS if law.__name__.split("_")[1].isdigit()}
    for number, text in laws.items():
        assert re.search(r"\[(?:test_architecture|`tests/[\w/.]+`|`make \w+`)", text), number
        assert (number in held) == ("[test_architecture" in text), number


# --- planted violations ----------------------------------------------------------------------------------------------

NODES = """
class A: pass
class B: pass
Node = A | B
"""
PLANTED: dict[Law, list[tuple[str, str]]] = {
    law_1_one_caller_pays: [
        ("interfaces/dbapi/cursor.py", "ledger.purchase(account, asked)"),
        ("session/purchase.py", "a.purchase(1)\nb.purchase(2)"),
    ],
    law_5_exact_rows_are_opened_in_one_file: [
        ("session/session.py", "rows = exact.reveal()"),
        ("session/session.py", "open_it = exact.reveal"),
        ("session/session.py", "def f(rows: ExactRows): ..."),
        ("session/postprocess/a.py", "exact._Exact__revealed"),
        ("verify/trial.py", "rows = exact.reveal()"),
    ],
    law_5_exact_cells_are_evaluated_in_one_file: [
        ("session/dataset/runs.py", "answer = state.evaluate_exact_cell(7, query, 1)"),
    ],
    law_5_weighted_rows_are_seen_in_one_file: [
        ("session/artifacts/a.py", "released = study.perform(weighted_rows, sampler)"),
        ("session/artifacts/a.py", "rows = study.axes.to_weighted_rows(columns)"),
        ("compiler/weighted_rows.py", "rows = axes.to_weighted_rows(columns)"),
        ("privacy/synthetic/mwem.py", "sums = weighted_rows.weights"),
    ],
    law_5_verify_has_generated_rows_only: [
        ("verify/trial.py", "from dpsql.engines.duckdb import DuckDBEngine"),
        ("verify/trial.py", "from dpsql.session.dataset.dataset import open_dataset"),
        ("verify/trial.py", "import dpsql.session.dataset.versions as v\nv.open_engine(resolved)"),
        ("verify/trial.py", "dataset.open_engine(resolved)"),
    ],
    law_5_modules_of_the_owner_are_the_owners: [
        ("session/dataset/runs.py", "from dpsql.owner.introspect.statistics import column_facts"),
        ("session/postprocess/release_tables.py", "from dpsql.engines.duckdb_admin import DuckDBAdmin"),
        ("session/dataset/versions.py", "from dpsql.owner.introspect import tables"),
        ("session/postprocess/a.py", 'import_module("dpsql.owner.introspect.postgres")'),
    ],
    law_6_the_compiler_is_pure: [
        ("compiler/split/a.py", 'import_module("os")'),
        ("compiler/compile.py", "import os"),
        ("compiler/planners.py", "from asyncio import run"),
        ("schema/dummy_rows.py", "import ctypes"),
        ("compiler/plan/a.py", "from urllib.request import urlopen"),
        ("compiler/parse/parser.py", "from time import monotonic"),
        ("compiler/analysis/a.py", "import datetime as dt\nx = dt.datetime.now()"),
        ("compiler/rewrite/a.py", "from datetime import date\nx = date.today()"),
        ("compiler/bind/a.py", "text = open('x').read()"),
    ],
    law_6_the_protocol_does_no_io: [
        ("interfaces/pgwire/protocol/framing.py", "import socket"),
        ("interfaces/pgwire/backend_session/portals.py", "import threading"),
        ("interfaces/pgwire/backend_session/transaction.py", "import time"),
        ("base/scram.py", "from time import monotonic"),
    ],
    law_7_randomness_has_one_source: [
        ("verify/trial.py", "from random import Random"),
        ("privacy/noise.py", "import random"),
        ("session/session.py", "from os import urandom"),
        ("session/session.py", "import os\nx = os.urandom(8)"),
        ("session/postprocess/a.py", "import numpy as np\nx = np.random.default_rng()"),
        ("session/postprocess/a.py", "from numpy.random import default_rng"),
        ("ledger/sqlite.py", "import os\nx = os.urandom\ny = os.urandom"),
        ("interfaces/pgwire/server/login.py", "import secrets\nsecrets.randbelow(3)\nsecrets.randbelow(3)"),
        ("session/postprocess/a.py", 'import importlib as i\ni.import_module("secrets")'),
        ("session/postprocess/a.py", 'from importlib import import_module as i\ni("secrets")'),
    ],
    law_7_noise_is_left_out_for_the_owner_alone: [
        ("interfaces/dbapi/a.py", "class Noiseless:\n    def laplace(self, n, s): ..."),
        ("interfaces/cli/a.py", "from dpsql.owner.check.dry_run import NoiselessSampler"),
        ("interfaces/dbapi/a.py", 'import_module("dpsql.owner.check.dry_run").NoiselessSampler'),
    ],
    law_9_nodes_are_frozen: [
        ("compiler/plan/aggregate.py", "@dataclass\nclass A:\n    x: int"),
        ("compiler/plan/aggregate.py", "@dataclass(frozen=False)\nclass A:\n    x: int"),
        ("compiler/plan/aggregate.py", "class A: pass"),
    ],
    law_9_passes_match_every_node: [
        ("compiler/plan/aggregate.py",
         NODES + "def f(node: Node):\n    match node:\n        case A(): return 1\n        case _: return 2"),
        ("compiler/plan/aggregate.py",
         NODES + "def f(node: Node):\n    match node:\n        case A(): return 1\n        case B() if x: return 2"),
    ],
    law_11_packages_import_along_the_edges: [
        ("interfaces/pgwire/server/monitored_session.py", "from dpsql.compiler.catalog.tables import rows"),
        ("interfaces/pgwire/server/monitored_session.py", "from dpsql.compiler.catalog import database"),
        ("interfaces/cli/main.py", "from dpsql.ledger.open import open_ledger"),
        ("interfaces/cli/main.py", "from dpsql import compiler"),
        ("interfaces/dbapi/a.py", "from ...engines import duckdb"),
        ("privacy/a.py", "import dpsql.schema.model"),
        ("base/a.py", "from dpsql.amounts import Charge"),
        ("ledger/a.py", "from dpsql.engines.base import Engine"),
        ("owner/a.py", "from dpsql.compiler.compile import compile_statement"),
        ("compiler/parse/a.py", "def f():\n    from dpsql.engines.base import Engine"),
        ("cellar/a.py", "x = 1"),
        ("interfaces/dbapi/a.py", 'P = ("dpsql.compiler.parse.parser",)\nfor p in P:\n    import_module(p)'),
        ("__init__.py", 'L = {"a": "dpsql.ledger.open"}\nimport_module(L["a"])'),
    ],
    law_11_the_root_is_imported_from_outside: [
        ("interfaces/cli/main.py", "import dpsql"),
        ("interfaces/cli/main.py", "def f():\n    from dpsql import connect"),
    ],
    law_11_the_compiler_has_an_order: [
        ("compiler/plan/a.py", "from dpsql.compiler.functions.function import f"),
        ("compiler/rewrite/a.py", "from dpsql.compiler.split.split import split"),
        ("compiler/bind/a.py", "from dpsql.compiler import split"),
        ("compiler/accuracy.py", "from dpsql.compiler import planners"),
        ("compiler/cellar.py", "x = 1"),
    ],
    law_11_interfaces_import_what_they_are_given: [
        ("interfaces/pgwire/server/monitored_session.py",
         "from dpsql.session.postprocess.catalog_sandbox import CatalogSandbox"),
        ("interfaces/pgwire/server/monitored_session.py", "from dpsql.session import query"),
        ("interfaces/repl/a.py", "from dpsql.owner import users"),
        ("interfaces/dbapi/a.py", "from dpsql.interfaces.cli.main import main"),
        ("interfaces/web/a.py", "x = 1"),
        ("interfaces/dbapi/a.py", 'import_module("dpsql.owner.check.dry_run")'),
    ],
    law_11_the_loss_checker_is_independent: [
        ("ledger/loss_checker/a.py", "from dpsql.privacy.loss import Loss"),
    ],
    law_12_libraries_have_homes: [
        ("interfaces/dbapi/connection.py", 'import_module("duckdb")'),
        ("interfaces/dbapi/cursor.py",
         'from dpsql.interfaces.dbapi.dataframes import _import_package\n_import_package("duckdb", "x")'),
        ("interfaces/repl/a.py", "import pandas"),
        ("interfaces/cli/a.py", "from prompt_toolkit import prompt"),
        ("interfaces/dbapi/notebook.py", "def f():\n    from IPython import get_ipython"),
        ("compiler/analysis/a.py", "from sqlglot import exp"),
        ("engines/base.py", "import duckdb"),
        ("schema/build.py", "import yaml"),
        ("session/dataset/versions.py", "def f():\n    import duckdb"),
    ],
    law_12_libraries_that_may_be_missing_are_imported_late: [
        ("interfaces/dbapi/dataframes.py", "import pyarrow.parquet"),
        ("interfaces/dbapi/dataframes.py", "from pandas import DataFrame"),
    ],
    law_12_names_of_modules_can_be_read: [
        ("interfaces/dbapi/a.py", 'import_module("duck" + "db")'),
        ("interfaces/dbapi/a.py", 'import_module(f"dpsql.{package}")'),
        ("interfaces/dbapi/a.py", '__import__("duckdb")'),
    ],
    law_modules_are_one_subject: [
        ("session/session.py", "x = 1\n" * 801),
    ],
    law_modules_say_what_they_are_for: [
        ("session/session.py", "x = 1"),
    ],
}  # fmt: skip
PLANTED_TREES: list[tuple[Law, dict[str, str]]] = [
    (law_modules_are_no_fragments, {"session/a.py": "x = 1", "session/b.py": "from dpsql.session.a import x"}),
    (law_modules_are_no_fragments, {"session/a.py": "x = 1", "session/b.py": "from dpsql.session import a"}),
    (
        law_11_modules_form_no_cycle,
        {
            "session/a.py": "from dpsql.session.b import y",
            "session/b.py": "try:\n    import dpsql.session.a\nexcept ImportError:\n    y = 1",
            "session/c.py": "from dpsql.session import a",
        },
    ),
    (law_the_root_is_small, {f"{name}.py": "" for name in "iabcdefgh"}),
]


def plant(folder: Path, tree: dict[str, str]) -> list[File]:
    for name, code in tree.items():
        path = folder / "dpsql" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code, encoding="utf-8")
    return read_files(folder / "dpsql")


def test_planted_violations_are_found(tmp_path: Path) -> None:
    cases = [(law, {name: code}) for law, planted in PLANTED.items() for name, code in planted] + PLANTED_TREES
    missed = []
    for number, (law, tree) in enumerate(cases):
        found = list(law(plant(tmp_path / str(number), tree)))
        if not found or not re.match(rf"dpsql/{re.escape(next(iter(tree)))}:\d+: \w", found[0]):
            missed.append((law.__name__, tree, found))
    assert missed == []


def test_every_law_is_tried() -> None:
    assert PLANTED.keys() | {law for law, _ in PLANTED_TREES} == set(LAWS)


ALLOWED = [
    (
        "session/purchase.py",
        '"""Doc."""\nledger.purchase(1)\nfrom dpsql.session.postprocess.sandbox import run\n',
    ),
    ("privacy/release.py", '"""Doc."""\nrows = exact.reveal()\n'),
    ("privacy/sampling.py", '"""Doc."""\nimport os\nx = os.urandom(8)\n'),
    ("ledger/ledger.py", '"""Doc."""\nimport os\ndef f(entropy=os.urandom): ...\n'),
    ("compiler/parse/parser.py", '"""Doc."""\nimport sqlglot\nfrom dpsql.schema.model import Schema\n'),
    (
        "compiler/plan/aggregate.py",
        '"""Doc."""\n@dataclass(frozen=True)\nclass A: ...\n@dataclass(frozen=True)\nclass B: ...\nNode = A | B\n'
        "def f(node: Node):\n    match node:\n        case A(): return 1\n        case _: assert_never(node)\n"
        "def g(node: Node):\n    match node:\n        case A() as a: return 1\n        case B(): return 2\n",
    ),
    ("compiler/compile.py", '"""Doc."""\nfrom dpsql.compiler.plan.show import show\nimport dpsql.compiler.accuracy\n'),
    (
        "interfaces/cli/main.py",
        '"""Doc."""\nfrom dpsql.interfaces.dbapi.connection import connect\nfrom dpsql.owner import users\n',
    ),
    ("interfaces/sqlalchemy/dialect.py", '"""Doc."""\nimport dpsql\nfrom dpsql.session.session import NamedTable\n'),
    ("interfaces/dbapi/__init__.py", ""),
    (
        "interfaces/dbapi/cursor.py",
        '"""Doc."""\nimport dpsql.interfaces.dbapi.types\nif TYPE_CHECKING:\n    import dpsql.interfaces.dbapi.a\n',
    ),
]


def test_what_is_allowed_is_not_found(tmp_path: Path) -> None:
    for number, (name, code) in enumerate(ALLOWED):
        files = plant(tmp_path / str(number), {name: code})
        assert [found for law in LAWS for found in law(files)] == [], name
