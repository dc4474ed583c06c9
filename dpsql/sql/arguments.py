"""Law 3 for calls: every argument that was written is in the tree. sqlglot's builders leave out what they do not know.

    mod(n, 2, 3)  would be  n % 2
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dpsql.sql.spellings import FORMAT_NOTE

TOO_MANY_ARGUMENTS = "The number of provided arguments"
"""How sqlglot's own message begins, where it counts them."""

WRONG_ARGUMENT_COUNT = "Wrong number of arguments"


def has_dropped_arguments(call: exp.Expr, args: Sequence[object]) -> bool:
    """Whether a call holds less than its arguments: each itself, or what the builder made of it alone."""
    present = {id(node) for node in call.walk()}
    missing = [arg for arg in args if isinstance(arg, exp.Expr) and id(arg) not in present]
    if not missing:
        return False
    own = {id(arg) for arg in args}
    built = [value for value in _values_of_call(call) if not any(id(node) in own for node in value.walk())]
    for arg in missing:
        index = next((index for index, value in enumerate(built) if _is_built_from(call, value, arg)), None)
        if index is None:
            return True
        del built[index]
    return False


def _values_of_call(call: exp.Expr) -> list[exp.Expr]:
    flat = [item for value in call.args.values() for item in (value if isinstance(value, list) else [value])]
    return [item for item in flat if isinstance(item, exp.Expr)]


def _is_built_from(call: exp.Expr, value: exp.Expr, arg: exp.Expr) -> bool:
    """Units become words, paths and intervals are read from texts, a format is translated, a cast has a copy."""
    if isinstance(call, exp.Cast):
        return value == arg
    text = isinstance(arg, exp.Literal)
    match value:
        case exp.Var():
            return str(value.name).upper() == arg.name.upper()
        case exp.JSONPath() | exp.Interval():
            return text
        case exp.Literal():
            return text and call.meta.get(FORMAT_NOTE) == arg.name
    return False
