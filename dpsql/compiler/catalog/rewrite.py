"""PostgreSQL's SQL about the catalog to DuckDB's: one small rule for each kind of node, children first.

Privacy: what is not on a list here or in `functions.py` is refused. So a statement reaches the catalog's own
tables and macros, and nothing of DuckDB: no settings, no files, no tables of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from dpsql.base.cancellation import checkpoint
from dpsql.compiler.catalog.builtin import parse_array_text
from dpsql.compiler.catalog.functions import CATALOG_FUNCTIONS, TABLE_FUNCTIONS
from dpsql.compiler.catalog.oids import duckdb_type_of
from dpsql.compiler.catalog.rewrite_from import (
    RewriteContext,
    duckdb_data_type,
    evaluate_session_function,
    rewrite_lateral,
    rewrite_table,
    rewrite_unnest,
)
from dpsql.compiler.catalog.types import REG_TYPES, TYPE_KEY, array_element_type, cast_target_type, session_function_of
from dpsql.compiler.parse.dialect import span_of
from dpsql.compiler.postprocess.size_limits import check_expansion
from dpsql.errors import DataError, InvalidSyntax, UnknownFunction, Unsupported

ALLOWED_NODES: tuple[type[exp.Expr], ...] = (
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


def rewrite_catalog_tree(tree: exp.Expr, context: RewriteContext) -> exp.Expr:
    """The typed tree as DuckDB runs it; it is changed in place."""
    check_expansion(tree)
    for node in reversed(list(tree.dfs())):
        checkpoint()
        if not isinstance(node, ALLOWED_NODES):
            what = node.key.replace("_", " ")
            raise Unsupported(f"{what} cannot stand in a statement about the catalog", span=span_of(node))
        replacement = _rewrite_node(node, context)
        if replacement is not node:
            replacement.meta[TYPE_KEY] = node.meta.get(TYPE_KEY)
            if node is tree:
                tree = replacement
            else:
                node.replace(replacement)
    return tree


def _rewrite_node(node: exp.Expr, context: RewriteContext) -> exp.Expr:
    name = session_function_of(node)
    if name == "pg_typeof":
        kind = node.expressions[0].meta.get(TYPE_KEY) if node.expressions else None
        return exp.Literal.number(context.names.find_oid("regtype", str(kind or "unknown"), span_of(node)))
    if name is not None:
        return evaluate_session_function(name, node, context.who, context.now)
    for kind, rule in _REWRITE_RULES:
        if isinstance(node, kind):
            return rule(node, context)
    return node


# --- columns and casts ------------------------------------------------------------------------------------------------


def _rewrite_column(node: exp.Column, context: RewriteContext) -> exp.Expr:
    relation = node.meta.get("relation")
    system = node.name.lower()
    if relation is not None and system in ("tableoid", "xmin", "xmax", "cmin", "cmax", "ctid"):
        return exp.Literal.number(relation.oid if system == "tableoid" else 0)
    node.set("db", None)
    node.set("catalog", None)
    return node


def _rewrite_cast(node: exp.Cast, context: RewriteContext) -> exp.Expr:
    target, value = cast_target_type(node.args["to"]), node.this
    source_type = value.meta.get(TYPE_KEY)
    literal = _string_literal_of(value)
    if target in REG_TYPES:
        return _cast_to_reg(target, value, source_type, literal, context)
    if source_type == "regtype[]" and target in ("text[]", "varchar[]", "name[]"):
        return exp.Anonymous(this="dp_regtypes_out", expressions=[value])
    if target.endswith("[]") or target in ("int2vector", "oidvector"):
        if literal is not None:
            return _array_from_text(literal, array_element_type(target) or "text", context)
        return exp.Cast(this=value, to=duckdb_data_type(duckdb_type_of(target)))
    if source_type in REG_TYPES and target in ("text", "varchar", "name", "bpchar"):
        return _reg_to_text(value, source_type)
    if source_type is not None and source_type.endswith(("[]", "vector")) and target in ("text", "varchar"):
        between = exp.Literal.string("," if source_type.endswith("[]") else " ")
        braced = exp.Anonymous(this="dp_array_to_string", expressions=[value, between])
        if not source_type.endswith("[]"):
            return braced
        return exp.Anonymous(this="concat", expressions=[exp.convert("{"), braced, exp.convert("}")])
    if target == "oid" and literal is not None and not literal.strip().lstrip("-").isdigit():
        raise InvalidSyntax(f'invalid input syntax for type oid: "{literal}"', span=span_of(node), sqlstate="22P02")
    return exp.Cast(this=value, to=duckdb_data_type(duckdb_type_of(target)))


def _string_literal_of(value: exp.Expr) -> str | None:
    while isinstance(value, exp.Paren):
        value = value.this
    return str(value.this) if isinstance(value, exp.Literal) and value.is_string else None


def _cast_to_reg(
    target: str, value: exp.Expr, source_type: str | None, literal: str | None, context: RewriteContext
) -> exp.Expr:
    if literal is not None:
        return exp.cast(exp.Literal.number(context.names.find_oid(target, literal, span_of(value))), "uint")
    if source_type in ("text", "name", "varchar", "unknown"):
        macro = f"dp_{target}_of"
        if target not in ("regclass", "regtype", "regproc", "regnamespace"):
            raise Unsupported(f"text cannot become {target} here", span=span_of(value))
        return exp.Anonymous(this=macro, expressions=[value])
    return exp.cast(value, "uint")


def _reg_to_text(value: exp.Expr, reg_type: str) -> exp.Expr:
    """A number of an object, as the text that PostgreSQL prints for it."""
    return (
        exp.Anonymous(this=f"dp_{reg_type}_out", expressions=[value])
        if reg_type in _PRINTED_REG_TYPES
        else exp.cast(value, "text")
    )


_PRINTED_REG_TYPES = ("regclass", "regtype", "regproc", "regprocedure", "regnamespace")


def _array_from_text(text: str, type_: str, context: RewriteContext) -> exp.Expr:
    """'{a,b}' as an array; int2vector and oidvector are written '1 2'."""
    listed = text.lstrip().startswith(("{", "["))
    if not listed and type_ in ("int2", "int4", "int8") and not re.fullmatch(r"[\d\s+-]*", text, re.ASCII):
        raise DataError(f'malformed array literal: "{text}"', sqlstate="22P02")
    parts = parse_array_text(text) if listed else list(text.split())
    if type_ in REG_TYPES:
        items = [exp.convert(None if part is None else context.names.find_oid(type_, part, None)) for part in parts]
    else:
        items = [exp.convert(part) for part in parts]
    return exp.Cast(this=exp.Array(expressions=items), to=duckdb_data_type(f"{duckdb_type_of(type_)}[]"))


# --- operators -------------------------------------------------------------------------------------------------------


def _rewrite_operator(node: exp.Operator, context: RewriteContext) -> exp.Expr:
    word = str(node.args["operator"]).lower().removeprefix("pg_catalog.")
    sides = {"this": node.this, "expression": node.expression}
    builders: dict[str, Callable[[], exp.Expr]] = {
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
    if word not in builders:
        raise UnknownFunction(f"operator does not exist: {word}", span=span_of(node))
    rewritten = builders[word]()
    return _rewrite_regexp_ilike(rewritten, context) if isinstance(rewritten, exp.RegexpILike) else rewritten


def _rewrite_regexp_ilike(node: exp.Expr, context: RewriteContext) -> exp.Expr:
    arguments = [node.this, node.expression, exp.Literal.string("i")]
    return exp.Anonymous(this="regexp_matches", expressions=arguments)


def _drop_collate(node: exp.Collate, context: RewriteContext) -> exp.Expr:
    """All text is compared by its bytes here, as COLLATE "C" asks."""
    inner: exp.Expr = node.this
    return inner


def _rewrite_comparison(node: exp.Binary, context: RewriteContext) -> exp.Expr:
    """Also with ANY and ALL of a list, and of numbers of objects with their names."""
    left, right = node.this, node.expression
    listed = _quantified_list(right)
    if listed is not None:
        return _rewrite_quantified(node, left, listed, isinstance(right, exp.All), context)
    for side, other in (("this", right), ("expression", left)):
        kind, text = other.meta.get(TYPE_KEY), _string_literal_of(node.args[side])
        if kind in REG_TYPES and text is not None and not text.isdigit():
            node.set(side, exp.Literal.number(context.names.find_oid(str(kind), text, span_of(node))))
    return node


def _quantified_list(right: exp.Expr) -> exp.Expr | None:
    """The list of ANY(list) or ALL(list); None where it is a sub-select's rows."""
    if not isinstance(right, exp.Any | exp.All):
        return None
    inner: exp.Expr = right.this
    while isinstance(inner, exp.Paren):
        inner = inner.this
    if isinstance(inner, exp.Subquery | exp.Query):
        outer = right.this
        single = isinstance(inner, exp.Subquery) and isinstance(outer, exp.Paren)
        return inner if single and str(inner.meta.get(TYPE_KEY)).endswith(("[]", "vector")) else None
    return inner


def _rewrite_quantified(
    node: exp.Binary, left: exp.Expr, listed: exp.Expr, every: bool, context: RewriteContext
) -> exp.Expr:
    text = _string_literal_of(listed)
    kind = left.meta.get(TYPE_KEY)
    if text is not None:
        listed = _array_from_text(text, kind if kind not in (None, "unknown") else "text", context)
    if kind in REG_TYPES or str(array_element_type(listed.meta.get(TYPE_KEY))) in REG_TYPES:
        left = exp.cast(left, "uint")
    contains = exp.Anonymous(this="list_contains", expressions=[listed, left])
    if isinstance(node, exp.EQ) and not every:
        return contains
    if isinstance(node, exp.NEQ) and every:
        return exp.Not(this=contains)
    return node


def _rewrite_division(node: exp.Div, context: RewriteContext) -> exp.Expr:
    """Whole numbers are divided without a rest."""
    integers = all(side.meta.get(TYPE_KEY) in ("int2", "int4", "int8", "oid") for side in (node.this, node.expression))
    return exp.IntDiv(this=node.this, expression=node.expression) if integers else node


def _rewrite_in(node: exp.In, context: RewriteContext) -> exp.Expr:
    kind = node.this.meta.get(TYPE_KEY)
    if kind in REG_TYPES:
        for item in node.expressions:
            text = _string_literal_of(item)
            if text is not None and not text.isdigit():
                item.replace(exp.Literal.number(context.names.find_oid(str(kind), text, span_of(item))))
    return node


def _rewrite_concat(node: exp.DPipe, context: RewriteContext) -> exp.Expr:
    if str(node.meta.get(TYPE_KEY)).endswith("[]"):
        both = all(str(side.meta.get(TYPE_KEY)).endswith("[]") for side in (node.this, node.expression))
        macro = "dp_array_cat" if both else "dp_array_append"
        return exp.Anonymous(this=macro, expressions=[node.this, node.expression])
    for side in ("this", "expression"):
        kind = node.args[side].meta.get(TYPE_KEY)
        if kind in REG_TYPES:
            node.set(side, _reg_to_text(node.args[side], str(kind)))
        elif kind in ("oid", "int2", "int4", "int8"):
            node.set(side, exp.cast(node.args[side], "text"))
    return node


def _rewrite_subscript(node: exp.Bracket, context: RewriteContext) -> exp.Expr:
    """Lists are counted from 1, but for int2vector and oidvector, which are counted from 0."""
    if str(node.this.meta.get(TYPE_KEY)).endswith("vector"):
        node.set("expressions", [exp.Add(this=part, expression=exp.Literal.number(1)) for part in node.expressions])
    return node


def _rewrite_dot(node: exp.Dot, context: RewriteContext) -> exp.Expr:
    """pg_catalog.f(x) is f(x); (x).n is a field of x."""
    if isinstance(node.this, exp.Identifier):
        if node.this.name.lower() not in ("pg_catalog", "information_schema"):
            raise UnknownFunction(f'schema "{node.this.name}" does not exist', span=span_of(node), sqlstate="3F000")
        call: exp.Expr = node.expression
        return call
    inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
    return exp.Anonymous(this="struct_extract", expressions=[inner, exp.Literal.string(node.name.lower())])


# --- functions -------------------------------------------------------------------------------------------------------


def _rewrite_call(node: exp.Anonymous, context: RewriteContext) -> exp.Expr:
    name = node.name.lower()
    if name in TABLE_FUNCTIONS and _is_in_from(node):
        node.meta["function"] = name
        return node
    function = CATALOG_FUNCTIONS.get(name)
    if function is None:
        raise UnknownFunction(f"function {name}({_argument_types(node)}) does not exist", span=span_of(node),
                              hint="A statement about the catalog calls PostgreSQL's functions for it.")  # fmt: skip
    if not function.least <= len(node.expressions) <= function.most:
        raise UnknownFunction(f"function {name}({_argument_types(node)}) does not exist", span=span_of(node))
    arguments = list(node.expressions[-1:] if function.last else node.expressions)
    first = str(arguments[0].meta.get(TYPE_KEY)) if arguments else ""
    target = _VECTOR_MACROS.get(name, function.target) if first.endswith("vector") else function.target
    if name == "pg_get_viewdef" and first in ("text", "unknown", "name"):
        arguments[0] = exp.Anonymous(this="dp_regclass_of", expressions=[arguments[0]])
    if name in ("concat", "format", "quote_ident", "array_to_string", "concat_ws"):
        arguments = [
            _reg_to_text(argument, str(argument.meta.get(TYPE_KEY)))
            if argument.meta.get(TYPE_KEY) in REG_TYPES
            else argument
            for argument in arguments
        ]
    if name == "format":
        return _rewrite_format(node, arguments)
    if name in ("substring", "substr") and len(arguments) == 2 and _string_literal_of(arguments[1]) is not None:
        target = "regexp_extract"
    call: exp.Expr = exp.Anonymous(this=target, expressions=arguments)
    call.meta["function"] = name
    if function.rows and not _is_in_from(node):
        call = exp.Anonymous(this="unnest", expressions=[call])
        call.meta["function"] = name
    return call


_VECTOR_MACROS = {"array_upper": "dp_vector_upper", "array_lower": "dp_vector_lower",
            "generate_subscripts": "dp_vector_subscripts"}  # fmt: skip


def _is_in_from(node: exp.Expr) -> bool:
    parent = node.parent
    if isinstance(parent, exp.Dot) and isinstance(parent.this, exp.Identifier):
        parent = parent.parent
    return isinstance(parent, exp.Table | exp.Lateral)


def _argument_types(node: exp.Anonymous) -> str:
    return ", ".join(str(item.meta.get(TYPE_KEY) or "unknown") for item in node.expressions)


def _rewrite_format(node: exp.Anonymous, arguments: list[exp.Expr]) -> exp.Expr:
    """format('%I.%s', a, b) as a concatenation."""
    text, rest = _string_literal_of(arguments[0]), arguments[1:]
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


_REWRITE_RULES: tuple[tuple[type[exp.Expr] | tuple[type[exp.Expr], ...], Callable[..., exp.Expr]], ...] = (
    (exp.Table, rewrite_table),
    (exp.Unnest, rewrite_unnest),
    (exp.Lateral, rewrite_lateral),
    (exp.Column, _rewrite_column),
    (exp.Cast, _rewrite_cast),
    (exp.Operator, _rewrite_operator),
    (exp.RegexpILike, _rewrite_regexp_ilike),
    (exp.Collate, _drop_collate),
    ((exp.EQ, exp.NEQ, exp.LT, exp.GT, exp.LTE, exp.GTE), _rewrite_comparison),
    (exp.In, _rewrite_in),
    (exp.Div, _rewrite_division),
    (exp.DPipe, _rewrite_concat),
    (exp.Bracket, _rewrite_subscript),
    (exp.Dot, _rewrite_dot),
    (exp.Anonymous, _rewrite_call),
)
