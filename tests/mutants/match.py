"""Find a piece of code by the name of its definition and by its syntax, and put another in its place.

A target is `module:qualified name`: a function, a class, a method (`Class.method`), a function within a function
(`outer.inner`), an assigned name (`NAME`, `Class.field`), or nothing for the statements of the module itself. If the
module no longer defines the name, the one module of the same package that does is taken.

A snippet is Python source: an expression, one statement or several, a keyword argument (`key=value`), some of the
items of a display or of the arguments of a call (`a, b`), or a piece of a string, written as a string. It is compared
as a syntax tree, so layout, comments, quotes and redundant parentheses do not matter. It must stand exactly once in
its definition: else the edit is stale. The changed module is written anew from its tree, without comments.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import setitem
from pathlib import Path
from textwrap import dedent

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
StringItem = str | ast.expr
"""One character of a string, or one replacement field of an f-string."""


class StaleEdit(Exception):
    """The code that an edit replaces is not there, is there more than once, or would stay as it is."""


@dataclass(frozen=True)
class Edit:
    """Replace the snippet `old` in the definition `target` by `new`; an empty `new` removes a statement."""

    target: str
    old: str
    new: str

    @property
    def module(self) -> str:
        return self.target.partition(":")[0]

    @property
    def qualified_name(self) -> str:
        return self.target.partition(":")[2]


def find_file(edit: Edit, root: Path) -> Path:
    """The file below `root` that defines the target."""
    named = root.joinpath(*edit.module.split(".")).with_suffix(".py")
    if named.exists() and _defines(named, edit.qualified_name):
        return named
    others = [
        file
        for file in sorted(named.parent.rglob("*.py"))
        if edit.qualified_name and _defines(file, edit.qualified_name)
    ]
    if len(others) != 1:
        raise StaleEdit(f"{edit.target} is not defined, and {len(others)} other modules of its package define it")
    return others[0]


def apply_edit(edit: Edit, source: str) -> str:
    """The source of the module with the edit made."""
    tree = ast.parse(source)
    scopes = _definitions(tree, edit.qualified_name)
    if not scopes:
        raise StaleEdit(f"{edit.target} is not defined")
    replacements = _find_replacements(scopes, edit)
    if len(replacements) != 1:
        raise StaleEdit(f"the snippet stands {len(replacements)} times in {edit.target}: {edit.old.strip()}")
    before = [ast.dump(scope) for scope in scopes]
    replacements[0]()
    if before == [ast.dump(scope) for scope in scopes]:
        raise StaleEdit(f"nothing changes in {edit.target}")
    return ast.unparse(ast.fix_missing_locations(tree))


def same_syntax(left: object, right: object) -> bool:
    """Whether two trees are equal but for their positions."""
    if isinstance(left, ast.AST):
        return type(left) is type(right) and all(
            same_syntax(getattr(left, field, None), getattr(right, field, None)) for field in left._fields
        )
    if isinstance(left, list):
        return (
            isinstance(right, list)
            and len(left) == len(right)
            and all(same_syntax(one, other) for one, other in zip(left, right, strict=True))
        )
    return type(left) is type(right) and left == right


def _defines(file: Path, qualified_name: str) -> bool:
    return bool(_definitions(ast.parse(file.read_text(encoding="utf-8")), qualified_name))


# --- targets


def _definitions(tree: ast.Module, qualified_name: str) -> list[ast.AST]:
    """The definitions of this name: several where a function is overloaded or a property has a setter."""
    if not qualified_name:
        return [tree]
    scopes: list[ast.AST] = [tree]
    for name in qualified_name.split("."):
        scopes = [node for scope in scopes for node in _defined_in(scope) if name in _defined_names(node)]
    return scopes


def _walk(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a definition; of a module, those outside of its functions and classes."""
    if not isinstance(scope, ast.Module):
        yield from ast.walk(scope)
        return
    yield scope
    for statement in scope.body:
        if not isinstance(statement, Definition):
            yield from ast.walk(statement)


def _defined_in(scope: ast.AST) -> Iterator[ast.AST]:
    """The definitions and assignments of a scope, also those below an `if` or `try`."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, Definition | ast.Assign | ast.AnnAssign):
            yield node
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _defined_in(node)


def _defined_names(node: ast.AST) -> list[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []


# --- snippets


def _find_replacements(scopes: list[ast.AST], edit: Edit) -> list[Callable[[], None]]:
    """What would make the edit, once for each place where the old snippet stands."""
    old, new = _parse_expression(edit.old), _parse_expression(edit.new)
    if old is not None and new is not None:
        found = [replace for scope in scopes for replace in _replace_expression(scope, old, new)]
        if not found and _string_items(old) is not None and _string_items(new) is not None:
            found = [replace for scope in scopes for replace in _replace_in_string(scope, old, new)]
        if not found and isinstance(old, ast.Tuple):
            items = new.elts if isinstance(new, ast.Tuple) else [new]
            found = [replace for scope in scopes for replace in _replace_items(scope, old.elts, items)]
        return found
    statements = _parse_statements(edit.old), _parse_statements(edit.new)
    found = [replace for scope in scopes for replace in _replace_statements(scope, *statements)]
    keywords = _parse_keywords(edit.old), _parse_keywords(edit.new)
    if not found and keywords[0] and (keywords[1] or not edit.new.strip()):
        found = [replace for scope in scopes for replace in _replace_keywords(scope, *keywords)]
    return found


def _parse_expression(snippet: str) -> ast.expr | None:
    try:
        return ast.parse(f"(\n{snippet}\n)", mode="eval").body if snippet.strip() else None
    except SyntaxError:
        return None


def _parse_statements(snippet: str) -> list[ast.stmt]:
    try:
        return ast.parse(dedent(snippet).strip("\n")).body
    except SyntaxError:
        # Statements such as `return`, `continue` and `yield` parse anywhere; what is left is no whole piece of code.
        raise StaleEdit(f"the snippet is neither an expression nor whole statements: {snippet.strip()}") from None


def _parse_keywords(snippet: str) -> list[ast.keyword]:
    """The keyword arguments that the snippet is; none if it is something else."""
    match _parse_expression(f"f({snippet})"):
        case ast.Call(args=[], keywords=keywords):
            return keywords
    return []


# --- places


def _replace_expression(scope: ast.AST, old: ast.expr, new: ast.expr) -> Iterator[Callable[[], None]]:
    for parent in _walk(scope):
        for field, value in ast.iter_fields(parent):
            if same_syntax(value, old):
                yield partial(setattr, parent, field, new)
            elif isinstance(value, list):
                for position, item in enumerate(value):
                    if same_syntax(item, old) and not isinstance(parent, ast.JoinedStr):
                        yield partial(setitem, value, position, new)


def _replace_statements(scope: ast.AST, old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[Callable[[], None]]:
    for parent in _walk(scope):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(parent, field, None)
            if not isinstance(block, list):
                continue
            for start in _find_sublist(block, old):
                # A body without statements is no Python.
                left = len(block) - len(old) + len(new)
                inserted = new if left or field != "body" else [ast.Pass()]
                yield partial(setitem, block, slice(start, start + len(old)), inserted)


def _replace_keywords(scope: ast.AST, old: list[ast.keyword], new: list[ast.keyword]) -> Iterator[Callable[[], None]]:
    for call in _walk(scope):
        if isinstance(call, ast.Call):
            for start in _find_sublist(call.keywords, old):
                yield partial(setitem, call.keywords, slice(start, start + len(old)), new)


def _replace_items(scope: ast.AST, old: list[ast.expr], new: list[ast.expr]) -> Iterator[Callable[[], None]]:
    for parent in _walk(scope):
        if isinstance(parent, ast.Call | ast.Tuple | ast.List | ast.Set):
            items = parent.args if isinstance(parent, ast.Call) else parent.elts
            for start in _find_sublist(items, old):
                yield partial(setitem, items, slice(start, start + len(old)), new)


def _replace_in_string(scope: ast.AST, old: ast.expr, new: ast.expr) -> Iterator[Callable[[], None]]:
    piece, inserted = _string_items(old), _string_items(new)
    assert piece and inserted is not None
    for parent in _walk(scope):
        if isinstance(parent, ast.JoinedStr | ast.Expr):
            # Parts of an f-string are seen with the whole of it; a string that is a statement is documentation.
            continue
        for field, value in ast.iter_fields(parent):
            for position, string in enumerate(value if isinstance(value, list) else [value]):
                items = _string_items(string) or []
                for start in _find_sublist(items, piece):
                    changed = _string_of([*items[:start], *inserted, *items[start + len(piece) :]])
                    if isinstance(value, list):
                        yield partial(setitem, value, position, changed)
                    else:
                        yield partial(setattr, parent, field, changed)


def _find_sublist(items: Sequence[object], piece: Sequence[object]) -> Iterator[int]:
    for start in range(len(items) - len(piece) + 1):
        if piece and same_syntax(items[start : start + len(piece)], piece):
            yield start


def _string_items(node: object) -> list[StringItem] | None:
    match node:
        case ast.Constant(value=str(text)):
            return list(text)
        case ast.JoinedStr(values=values):
            return [item for value in values for item in _string_items(value) or [value]]
    return None


def _string_of(items: list[StringItem]) -> ast.expr:
    values: list[ast.expr] = []
    for item in items:
        match item, values:
            case str(), [*_, ast.Constant(value=str(before))]:
                values[-1] = ast.Constant(before + item)
            case str(), _:
                values.append(ast.Constant(item))
            case _:
                values.append(item)
    match values:
        case [] | [ast.Constant()]:
            return values[0] if values else ast.Constant("")
    return ast.JoinedStr(values)
