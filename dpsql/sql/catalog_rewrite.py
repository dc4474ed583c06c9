"""PostgreSQL's SQL about the catalog to DuckDB's: one small rule for each kind of node, children first.

Privacy: what is not on a list here or in `catalog_functions` is refused. So a statement reaches the catalog's own
tables and macros, and nothing of DuckDB: no settings, no files, no tables of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dpsql.catalog.builtin import elements
from dpsql.catalog.lookups import storage
from dpsql.errors import InvalidSyntax, UnknownFunction, Unsupported
from dpsql.pulse import beat
from dpsql.sql.catalog_functions import FUNCTIONS, TABLE_FUNCTIONS
from dpsql.sql.catalog_session import literal_of
from dpsql.sql.catalog_sources import Surroundings, data_type, lateral, table, unnest
from dpsql.sql.catalog_types import REG, TYPE, cast_type, element, session_function
from dpsql.sql.dialect import span_of
from dpsql.sql.growing import check_written

ALLOWED: tuple[type[exp.Expr], ...] = (
    exp.Select, exp.Subquery, exp.SetOperation, exp.Values, exp.Tuple, exp.With, exp.CTE, exp.From, exp.Join, exp.Where,
    exp.Group, exp.Having, exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Fetch, exp.Distinct, exp.Table,
    exp.TableAlias, exp.Lateral, exp.Unnest, exp.Alias, exp.Column, exp.Identifier, exp.Star, exp.Literal, exp.Null,
    exp.Boolean, exp.Paren, exp.Cast, exp.DataType, exp.ObjectIdentifier, exp.Array, exp.Bracket, exp.Slice, exp.Case,
    exp.If, exp.Dot, exp.Anonymous, exp.Collate, exp.Operator, exp.Any, exp.All, exp.Exists, exp.In, exp.Between,
    exp.And, exp.Or, exp.Not, exp.Neg, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.NullSafeEQ,
    exp.NullSafeNEQ, exp.Like, exp.ILike, exp.Escape, exp.RegexpLike, exp.RegexpILike, exp.SimilarTo, exp.Add, exp.Sub,
    exp.Mul, exp.Div, exp.Mod, exp.BitwiseAnd, exp.BitwiseOr, exp.DPipe, exp.Filter, exp.Window, exp.WindowSpec,
    exp.Trim, exp.Substring, exp.StrPosition, exp.Extract, exp.Var, exp.AtTimeZone, exp.Interval, exp.CurrentUser,
    exp.SessionUser, exp.CurrentCatalog, exp.CurrentSchema, exp.CurrentTimestamp, exp.CurrentDate, exp.DataTypeParam,
    exp.ArrayContainsAll, exp.ArrayContainedBy, exp.ArrayOverlaps, exp.Placeholder, exp.Kwarg, exp.Localtimestamp,
)  # fmt: skip
"""All nodes that a statement may have."""


def rewrite(tree: exp.Expr, around: Surroundings) -> exp.Expr:
    """The typed tree as DuckDB runs it; it is changed in place."""
    check_written(tree)
    for node in reversed(list(tree.dfs())):
        beat()
        if not isinstance(node, ALLOWED):
            what = node.key.replace("_", " ")
            raise Unsupported(f"{what} cannot stand in a statement about the catalog", span=span_of(node))
        made = _rewritten(node, around)
        if made is not node:
            made.meta[TYPE] = node.meta.get(TYPE)
            if node is tree:
                tree = made
            else:
                node.replace(made)
    return tree


def _rewritten(node: exp.Expr, around: Surroundings) -> exp.Expr:
    name = session_function(node)
    if name == "pg_typeof":
        kind = node.expressions[0].meta.get(TYPE) if node.expressions else None
        return exp.Literal.number(around.names.number("regtype", str(kind or "unknown"), span_of(node)))
    if name is not None:
        return literal_of(name, node, around.who, around.now)
    for kind, rule in _RULES:
        if isinstance(node, kind):
            return rule(node, around)
    return node


# --- columns and casts ------------------------------------------------------------------------------------------------


def _column(node: exp.Column, around: Surroundings) -> exp.Expr:
    known = node.meta.get("relation")
    system = node.name.lower()
    if known is not None and system in ("tableoid", "xmin", "xmax", "cmin", "cmax", "ctid"):
        return exp.Literal.number(known.oid if system == "tableoid" else 0)
    node.set("db", None)
    node.set("catalog", None)
    return node


def _cast(node: exp.Cast, around: Surroundings) -> exp.Expr:
    target, value = cast_type(node.args["to"]), node.this
    known = value.meta.get(TYPE)
    literal = _string(value)
    if target in REG:
        return _to_reg(target, value, known, literal, around)
    if known == "regtype[]" and target in ("text[]", "varchar[]", "name[]"):
        return exp.Anonymous(this="dp_regtypes_out", expressions=[value])
    if target.endswith("[]") or target in ("int2vector", "oidvector"):
        if literal is not None:
            return _list(literal, element(target) or "text", around)
        return exp.Cast(this=value, to=data_type(storage(target)))
    if known in REG and target in ("text", "varchar", "name", "bpchar"):
        return _shown(value, known)
    if known is not None and known.endswith(("[]", "vector")) and target in ("text", "varchar"):
        between = exp.Literal.string("," if known.endswith("[]") else " ")
        braced = exp.Anonymous(this="dp_array_to_string", expressions=[value, between])
        if not known.endswith("[]"):
            return braced
        return exp.Anonymous(this="concat", expressions=[exp.convert("{"), braced, exp.convert("}")])
    if target == "oid" and literal is not None and not literal.strip().lstrip("-").isdigit():
        raise InvalidSyntax(f'invalid input syntax for type oid: "{literal}"', span=span_of(node), sqlstate="22P02")
    return exp.Cast(this=value, to=data_type(storage(target)))


def _string(value: exp.Expr) -> str | None:
    while isinstance(value, exp.Paren):
        value = value.this
    return str(value.this) if isinstance(value, exp.Literal) and value.is_string else None


def _to_reg(target: str, value: exp.Expr, known: str | None, literal: str | None, around: Surroundings) -> exp.Expr:
    if literal is not None:
        return exp.cast(exp.Literal.number(around.names.number(target, literal, span_of(value))), "uint")
    if known in ("text", "name", "varchar", "unknown"):
        macro = f"dp_{target}_of"
        if target not in ("regclass", "regtype", "regproc", "regnamespace"):
            raise Unsupported(f"text cannot become {target} here", span=span_of(value))
        return exp.Anonymous(this=macro, expressions=[value])
    return exp.cast(value, "uint")


def _shown(value: exp.Expr, known: str) -> exp.Expr:
    """A number of an object, as the text that PostgreSQL prints for it."""
    return exp.Anonymous(this=f"dp_{known}_out", expressions=[value]) if known in _PRINTED else exp.cast(value, "text")


_PRINTED = ("regclass", "regtype", "regproc", "regprocedure", "regnamespace")


def _list(text: str, type_: str, around: Surroundings) -> exp.Expr:
    """'{a,b}' as an array; int2vector and oidvector are written '1 2'."""
    parts = elements(text) if text.lstrip().startswith(("{", "[")) else list(text.split())
    if type_ in REG:
        items = [exp.convert(None if part is None else around.names.number(type_, part, None)) for part in parts]
    else:
        items = [exp.convert(part) for part in parts]
    return exp.Cast(this=exp.Array(expressions=items), to=data_type(f"{storage(type_)}[]"))


# --- operators -------------------------------------------------------------------------------------------------------


def _operator(node: exp.Operator, around: Surroundings) -> exp.Expr:
    word = str(node.args["operator"]).lower().removeprefix("pg_catalog.")
    sides = {"this": node.this, "expression": node.expression}
    made: dict[str, Callable[[], exp.Expr]] = {
        "~": lambda: exp.RegexpLike(**sides),
        "~*": lambda: exp.RegexpILike(**sides),
        "!~": lambda: exp.Not(this=exp.RegexpLike(**sides)),
        "!~*": lambda: exp.Not(this=exp.RegexpILike(**sides)),
        "=": lambda: exp.EQ(**sides),
        "<>": lambda: exp.NEQ(**sides),
        "<": lambda: exp.LT(**sides),
        ">": lambda: exp.GT(**sides),
        "~~": lambda: exp.Like(**sides),
        "||": lambda: exp.DPipe(**sides),
    }
    if word not in made:
        raise UnknownFunction(f"operator does not exist: {word}", span=span_of(node))
    found = made[word]()
    return _pattern(found, around) if isinstance(found, exp.RegexpILike) else found


def _pattern(node: exp.Expr, around: Surroundings) -> exp.Expr:
    arguments = [node.this, node.expression, exp.Literal.string("i")]
    return exp.Anonymous(this="regexp_matches", expressions=arguments)


def _collate(node: exp.Collate, around: Surroundings) -> exp.Expr:
    """All text is compared by its bytes here, as COLLATE "C" asks."""
    inner: exp.Expr = node.this
    return inner


def _comparison(node: exp.Binary, around: Surroundings) -> exp.Expr:
    """Also with ANY and ALL of a list, and of numbers of objects with their names."""
    left, right = node.this, node.expression
    listed = _listed(right)
    if listed is not None:
        return _with_list(node, left, listed, isinstance(right, exp.All), around)
    for side, other in (("this", right), ("expression", left)):
        kind, text = other.meta.get(TYPE), _string(node.args[side])
        if kind in REG and text is not None and not text.isdigit():
            node.set(side, exp.Literal.number(around.names.number(str(kind), text, span_of(node))))
    return node


def _listed(right: exp.Expr) -> exp.Expr | None:
    """The list of ANY(list) or ALL(list); None where it is a sub-select's rows."""
    if not isinstance(right, exp.Any | exp.All):
        return None
    inner: exp.Expr = right.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Subquery | exp.Query):
        outer = right.this
        single = isinstance(inner, exp.Subquery) and isinstance(outer, exp.Paren)
        return inner if single and str(inner.meta.get(TYPE)).endswith(("[]", "vector")) else None
    return inner


def _with_list(node: exp.Binary, left: exp.Expr, listed: exp.Expr, every: bool, around: Surroundings) -> exp.Expr:
    text = _string(listed)
    kind = left.meta.get(TYPE)
    if text is not None:
        listed = _list(text, kind if kind not in (None, "unknown") else "text", around)
    if kind in REG or str(element(listed.meta.get(TYPE))) in REG:
        left = exp.cast(left, "uint")
    found = exp.Anonymous(this="list_contains", expressions=[listed, left])
    if isinstance(node, exp.EQ) and not every:
        return found
    if isinstance(node, exp.NEQ) and every:
        return exp.Not(this=found)
    return node


def _divided(node: exp.Div, around: Surroundings) -> exp.Expr:
    """Whole numbers are divided without a rest."""
    whole = all(side.meta.get(TYPE) in ("int2", "int4", "int8", "oid") for side in (node.this, node.expression))
    return exp.IntDiv(this=node.this, expression=node.expression) if whole else node


def _in(node: exp.In, around: Surroundings) -> exp.Expr:
    kind = node.this.meta.get(TYPE)
    if kind in REG:
        for item in node.expressions:
            text = _string(item)
            if text is not None and not text.isdigit():
                item.replace(exp.Literal.number(around.names.number(str(kind), text, span_of(item))))
    return node


def _joined(node: exp.DPipe, around: Surroundings) -> exp.Expr:
    if str(node.meta.get(TYPE)).endswith("[]"):
        both = all(str(side.meta.get(TYPE)).endswith("[]") for side in (node.this, node.expression))
        macro = "dp_array_cat" if both else "dp_array_append"
        return exp.Anonymous(this=macro, expressions=[node.this, node.expression])
    for side in ("this", "expression"):
        kind = node.args[side].meta.get(TYPE)
        if kind in REG:
            node.set(side, _shown(node.args[side], str(kind)))
        elif kind in ("oid", "int2", "int4", "int8"):
            node.set(side, exp.cast(node.args[side], "text"))
    return node


def _bracket(node: exp.Bracket, around: Surroundings) -> exp.Expr:
    """Lists are counted from 1, but for int2vector and oidvector, which are counted from 0."""
    if str(node.this.meta.get(TYPE)).endswith("vector"):
        node.set("expressions", [exp.Add(this=part, expression=exp.Literal.number(1)) for part in node.expressions])
    return node


def _dot(node: exp.Dot, around: Surroundings) -> exp.Expr:
    """pg_catalog.f(x) is f(x); (x).n is a field of x."""
    if isinstance(node.this, exp.Identifier):
        if node.this.name.lower() not in ("pg_catalog", "information_schema"):
            raise UnknownFunction(f'schema "{node.this.name}" does not exist', span=span_of(node), sqlstate="3F000")
        call: exp.Expr = node.expression
        return call
    inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
    return exp.Anonymous(this="struct_extract", expressions=[inner, exp.Literal.string(node.name.lower())])


# --- functions -------------------------------------------------------------------------------------------------------


def _call(node: exp.Anonymous, around: Surroundings) -> exp.Expr:
    name = node.name.lower()
    if name in TABLE_FUNCTIONS and _is_source(node):
        node.meta["function"] = name
        return node
    known = FUNCTIONS.get(name)
    if known is None:
        raise UnknownFunction(f"function {name}({_types(node)}) does not exist", span=span_of(node),
                              hint="A statement about the catalog calls PostgreSQL's functions for it.")  # fmt: skip
    if not known.least <= len(node.expressions) <= known.most:
        raise UnknownFunction(f"function {name}({_types(node)}) does not exist", span=span_of(node))
    arguments = list(node.expressions[-1:] if known.last else node.expressions)
    first = str(arguments[0].meta.get(TYPE)) if arguments else ""
    target = _VECTORS.get(name, known.target) if first.endswith("vector") else known.target
    if name == "pg_get_viewdef" and first in ("text", "unknown", "name"):
        arguments[0] = exp.Anonymous(this="dp_regclass_of", expressions=[arguments[0]])
    if name in ("concat", "format", "quote_ident", "array_to_string", "concat_ws"):
        arguments = [_shown(one, str(one.meta.get(TYPE))) if one.meta.get(TYPE) in REG else one for one in arguments]
    if name == "format":
        return _format(node, arguments)
    if name in ("substring", "substr") and len(arguments) == 2 and _string(arguments[1]) is not None:
        target = "regexp_extract"
    made: exp.Expr = exp.Anonymous(this=target, expressions=arguments)
    made.meta["function"] = name
    if known.rows and not _is_source(node):
        made = exp.Anonymous(this="unnest", expressions=[made])
        made.meta["function"] = name
    return made


_VECTORS = {"array_upper": "dp_vector_upper", "array_lower": "dp_vector_lower",
            "generate_subscripts": "dp_vector_subscripts"}  # fmt: skip


def _is_source(node: exp.Expr) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Dot) and isinstance(parent.this, exp.Identifier):
        parent = parent.parent
    return isinstance(parent, exp.Table | exp.Lateral)


def _types(node: exp.Anonymous) -> str:
    return ", ".join(str(item.meta.get(TYPE) or "unknown") for item in node.expressions)


def _format(node: exp.Anonymous, arguments: list[exp.Expr]) -> exp.Expr:
    """format('%I.%s', a, b) as a concatenation."""
    text, rest = _string(arguments[0]), arguments[1:]
    parts: list[exp.Expr] = []
    if text is None:
        raise Unsupported("format takes its pattern as a literal", span=span_of(node))
    pieces = text.split("%")
    parts.append(exp.Literal.string(pieces[0]))
    for piece in pieces[1:]:
        if piece[:1] not in ("s", "I", "L") or not rest:
            raise Unsupported("format knows %s, %I and %L", span=span_of(node))
        value, rest = rest[0], rest[1:]
        quoting = {"I": "dp_quote_ident", "L": "dp_quote_literal"}.get(piece[0])
        parts.append(exp.Anonymous(this=quoting, expressions=[value]) if quoting else value)
        parts.append(exp.Literal.string(piece[1:]))
    return exp.Anonymous(this="concat", expressions=parts)


_RULES: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[..., exp.Expr]], ...] = (
    (exp.Table, table),
    (exp.Unnest, unnest),
    (exp.Lateral, lateral),
    (exp.Column, _column),
    (exp.Cast, _cast),
    (exp.Operator, _operator),
    (exp.RegexpILike, _pattern),
    (exp.Collate, _collate),
    ((exp.EQ, exp.NEQ, exp.LT, exp.GT, exp.LTE, exp.GTE), _comparison),
    (exp.In, _in),
    (exp.Div, _divided),
    (exp.DPipe, _joined),
    (exp.Bracket, _bracket),
    (exp.Dot, _dot),
    (exp.Anonymous, _call),
)
