"""PostgreSQL's types in a statement about the catalog: of its output columns, and where a rewriting needs them.

DuckDB has no oid, name or regclass; clients look at them. So each expression is given its type here, from the columns
of the relations upwards. Where nothing tells, there is none, and DuckDB's own type is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.compiler.catalog.builtin import CatalogRelation
from dpsql.compiler.catalog.functions import CATALOG_FUNCTIONS, SESSION_FUNCTIONS, TABLE_FUNCTIONS

TYPE_KEY = "pg"
"""The note in which a node has its type."""

TYPE_ALIASES = {
    "boolean": "bool", "smallint": "int2", "integer": "int4", "int": "int4", "bigint": "int8", "real": "float4",
    "double precision": "float8", "double": "float8", "float": "float8", "character varying": "varchar",
    '"char"': "char", "timestamp with time zone": "timestamptz", "timestamp without time zone": "timestamp",
    "decimal": "numeric", "string": "text", "character": "bpchar", "char": "bpchar", "tinyint": "int2",
    "varchar": "varchar",
}  # fmt: skip
NUMERIC_TYPES = ("int2", "int4", "int8", "numeric", "float4", "float8")
REG_TYPES = ("regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper", "regoperator",
       "regconfig", "regdictionary", "regcollation")  # fmt: skip
DOMAIN_TYPES = {
    "sql_identifier": "name",
    "character_data": "varchar",
    "cardinal_number": "int4",
    "yes_or_no": "varchar",
    "time_stamp": "timestamptz",
}
_BOOLEAN_NODES = (exp.Predicate, exp.Connector, exp.Not, exp.Exists, exp.Boolean, exp.Between, exp.In, exp.RegexpLike,
           exp.RegexpILike, exp.SimilarTo)  # fmt: skip

ColumnTypes = dict[str, str | None]


@dataclass
class TypeScope:
    """What names mean at a place of a statement; `relations` are the catalog's, by the names that they have there."""

    outer: TypeScope | None = None
    sources: dict[str, ColumnTypes] = field(default_factory=dict)
    relations: dict[str, CatalogRelation] = field(default_factory=dict)
    ctes: dict[str, ColumnTypes] = field(default_factory=dict)

    def find_cte(self, name: str) -> ColumnTypes | None:
        if name in self.ctes:
            return self.ctes[name]
        return self.outer.find_cte(name) if self.outer is not None else None

    def find_relation(self, name: str) -> CatalogRelation | None:
        if name in self.sources:
            return self.relations.get(name)
        return self.outer.find_relation(name) if self.outer is not None else None

    def find_column_type(self, source: str, name: str) -> str | None:
        if source:
            if source in self.sources:
                return self.sources[source].get(name)
        else:
            for columns in self.sources.values():
                if name in columns:
                    return columns[name]
        return self.outer.find_column_type(source, name) if self.outer is not None else None


def canonical_type_name(name: str) -> str:
    """One word for each type, as pg_type has it; arrays end in [].

    >>> [canonical_type_name(name) for name in ("integer[]", '"char"', "_text", "pg_catalog.regtype")]
    ['int4[]', 'char', 'text[]', 'regtype']
    """
    word = name.lower().removeprefix("pg_catalog.").removeprefix("information_schema.")
    if word.endswith("[]"):
        return canonical_type_name(word[:-2]) + "[]"
    if word.startswith("_"):
        return canonical_type_name(word[1:]) + "[]"
    return DOMAIN_TYPES.get(word, TYPE_ALIASES.get(word, word))


def cast_target_type(to: exp.Expr) -> str:
    """The type that a cast names."""
    if isinstance(to, exp.DataType) and to.this is exp.DType.ARRAY:
        inner = to.expressions[0] if to.expressions else None
        return f"{cast_target_type(inner)}[]" if isinstance(inner, exp.Expr) else "text[]"
    kind = to.args.get("kind")
    if isinstance(to, exp.DataType) and isinstance(kind, exp.Expr):
        last = kind.expression if isinstance(kind, exp.Dot) else kind
        return "char" if last.name == "char" else canonical_type_name(last.name)
    if isinstance(to.this, exp.DType):
        return canonical_type_name(str(to.this.value))
    return canonical_type_name(str(to.this))


def array_element_type(type_: str | None) -> str | None:
    if type_ in ("int2vector", "oidvector"):
        return type_.removesuffix("vector")
    return type_[:-2] if type_ is not None and type_.endswith("[]") else None


def annotate_types(query: exp.Expr, outer: TypeScope | None = None) -> list[tuple[str, str | None]]:
    """Give all nodes their types; the output columns of the query."""
    scope = TypeScope(outer)
    with_ = query.args.get("with_")
    if with_ is not None:
        for cte in with_.expressions:
            _annotate_cte(cte, scope, bool(with_.args.get("recursive")))
    if isinstance(query, exp.SetOperation):
        left, right = annotate_types(query.left, scope), annotate_types(query.right, scope)
        for rest in (query.args.get("order"), query.args.get("limit"), query.args.get("offset")):
            if rest is not None:
                _annotate_children(rest, TypeScope(scope, {"": dict(left)}))
        return [
            (name, _prefer_typed(left_type, right_type))
            for (name, left_type), (_, right_type) in zip(left, right, strict=False)
        ]
    if isinstance(query, exp.Subquery):
        return annotate_types(query.this, scope)
    if isinstance(query, exp.Values):
        _annotate_children(query, scope)
        first = query.expressions[0]
        items = first.expressions if isinstance(first, exp.Tuple) else [first]
        return [(f"column{n}", item.meta.get(TYPE_KEY)) for n, item in enumerate(items, 1)]
    for source in _from_items(query):
        _annotate_source(source, scope)
    for join in _all_joins(query):
        if join.args.get("on") is not None:
            infer_type(join.args["on"], scope)
    outputs: list[tuple[str, str | None]] = []
    for item in query.expressions:
        outputs += _output_columns(item, scope)
    for name, part in query.args.items():
        if name not in ("from_", "joins", "laterals", "with_", "expressions"):
            for node in part if isinstance(part, list) else (part,):
                if isinstance(node, exp.Expr):
                    _annotate_clause(node, scope, query)
    return outputs


def _annotate_cte(cte: exp.CTE, scope: TypeScope, recursive: bool) -> None:
    name, titles = cte.alias.lower(), [column.name.lower() for column in cte.args["alias"].args.get("columns") or ()]
    if recursive and isinstance(cte.this, exp.SetOperation) and cte.this.args.get("with_") is None:
        scope.ctes[name] = _name_columns(annotate_types(cte.this.left, scope), titles)
        annotate_types(cte.this.right, scope)  # which may read it
        return
    scope.ctes[name] = _name_columns(annotate_types(cte.this, scope), titles)


def _name_columns(outputs: list[tuple[str, str | None]], titles: list[str]) -> ColumnTypes:
    names = [*titles, *(name.lower() for name, _ in outputs[len(titles) :])]
    return {name: type_ for name, (_, type_) in zip(names, outputs, strict=False)}


def _from_items(query: exp.Expr) -> list[exp.Expr]:
    start = query.args.get("from_")
    first = _flatten_join(start.this) if start is not None else []
    others = [item for join in query.args.get("joins") or () for item in _flatten_join(join.this)]
    return [*first, *others, *(query.args.get("laterals") or ())]


def _all_joins(query: exp.Expr) -> list[exp.Expr]:
    """All joins of a FROM, also those in parentheses, but none of a sub-select."""
    start = query.args.get("from_")
    joins: list[exp.Expr] = []
    pending = [*(query.args.get("joins") or ()), *([start.this] if start is not None else [])]
    while pending:
        node = pending.pop()
        joins += [node] if isinstance(node, exp.Join) else []
        pending += node.args.get("joins") or ()
        if isinstance(node, exp.Join) or _is_parenthesized_join(node):
            pending.append(node.this)
    return joins


def _is_parenthesized_join(source: exp.Expr) -> bool:
    """Whether it is a join in parentheses, and no sub-select."""
    if not isinstance(source, exp.Subquery | exp.Paren):
        return False
    inner = source.this
    if isinstance(inner, exp.Subquery | exp.Paren):
        return bool(inner.args.get("joins")) or _is_parenthesized_join(inner)
    return isinstance(inner, exp.Table | exp.Lateral | exp.Unnest)


def _flatten_join(source: exp.Expr) -> list[exp.Expr]:
    """What a join in parentheses holds, or the source itself."""
    inner = _flatten_join(source.this) if _is_parenthesized_join(source) else [source]
    return [*inner, *(part for join in source.args.get("joins") or () for part in _flatten_join(join.this))]


def _annotate_source(source: exp.Expr, scope: TypeScope) -> None:
    named = source.args.get("alias")
    titles = [column.name.lower() for column in named.args.get("columns") or ()] if named is not None else []
    alias = source.alias_or_name.lower()
    inner = source.this if isinstance(source, exp.Lateral) else source
    if isinstance(inner, exp.Table) and isinstance(inner.this, exp.Identifier):
        relation: CatalogRelation | None = inner.meta.get("relation")
        cte = scope.find_cte(inner.name.lower()) if relation is None else None
        columns: list[tuple[str, str | None]]
        columns = (
            list((cte or {}).items())
            if relation is None
            else [(a.name, canonical_type_name(a.type)) for a in relation.attributes]
        )
        if relation is not None:
            scope.relations[alias] = relation
        scope.sources[alias] = _name_columns(columns, titles)
    elif isinstance(inner, exp.Subquery | exp.Query):
        query = inner.this if isinstance(inner, exp.Subquery) else inner
        scope.sources[alias] = _name_columns(annotate_types(query, scope), titles)
    else:
        scope.sources[alias] = _name_columns(_function_source_columns(inner, alias, scope), titles)


def _function_source_columns(source: exp.Expr, alias: str, scope: TypeScope) -> list[tuple[str, str | None]]:
    """The columns of a function in FROM: one that is named as the function's alias, or those of a list."""
    if isinstance(source, exp.Unnest):
        types = [infer_type(item, scope) for item in source.expressions]
        columns: list[tuple[str, str | None]] = [(alias or "unnest", array_element_type(type_)) for type_ in types]
        offset = source.args.get("offset")
        named = offset.name.lower() if isinstance(offset, exp.Identifier) else "ordinality"
        return [*columns, (named, "int8")] if offset else columns
    call = source.this if isinstance(source, exp.Table) else source
    call = call.expression if isinstance(call, exp.Dot) else call
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    counted = [("ordinality", "int8")] if source.args.get("ordinality") else []
    if name in TABLE_FUNCTIONS:
        _annotate_children(call, scope)
        return [*TABLE_FUNCTIONS[name][1], *counted]
    type_ = infer_type(call, scope)
    if name == "_pg_expandarray":
        return [("x", array_element_type(call.expressions[0].meta.get(TYPE_KEY))), ("n", "int4")]
    return [(alias or name, type_), *counted]


def _output_columns(item: exp.Expr, scope: TypeScope) -> list[tuple[str, str | None]]:
    if isinstance(item, exp.Star):
        return [(name, type_) for columns in scope.sources.values() for name, type_ in columns.items()]
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return list(scope.sources.get(item.table.lower(), {}).items())
    return [(_output_name(item), infer_type(item, scope))]


def _output_name(item: exp.Expr) -> str:
    """As it is shown: in lower case, unless it is quoted."""
    name = item.args.get("alias") if isinstance(item, exp.Alias) else item.this
    return name.name if isinstance(name, exp.Identifier) and name.quoted else item.alias_or_name.lower()


def _annotate_clause(node: exp.Expr, scope: TypeScope, query: exp.Expr) -> None:
    """ORDER BY, GROUP BY and HAVING may name output columns."""
    aliased: ColumnTypes = {
        i.alias.lower(): i.meta.get(TYPE_KEY) for i in query.expressions if isinstance(i, exp.Alias)
    }
    _annotate_children(
        node, TypeScope(TypeScope(scope.outer, {"": aliased}, {}, {}), scope.sources, scope.relations, scope.ctes)
    )


def _annotate_children(node: exp.Expr, scope: TypeScope) -> None:
    for child in node.iter_expressions():
        infer_type(child, scope)


def _prefer_typed(left: str | None, right: str | None) -> str | None:
    return left if left not in (None, "unknown") else right


def infer_type(node: exp.Expr, scope: TypeScope) -> str | None:
    """The type of an expression; it and all below have it as a note then."""
    if isinstance(node, exp.Query | exp.Values) and not isinstance(node, exp.Subquery):
        outputs = annotate_types(node, scope)
        inferred = outputs[0][1] if outputs else None
    elif isinstance(node, exp.Subquery):
        outputs = annotate_types(node.this, scope)
        inferred = outputs[0][1] if outputs else None
    else:
        _annotate_children(node, scope)
        inferred = _infer_node_type(node, scope)
    node.meta[TYPE_KEY] = inferred
    if isinstance(node, exp.Column):
        node.meta["relation"] = scope.find_relation(node.table.lower()) if node.table else _first_relation(scope)
    return inferred


def _first_relation(scope: TypeScope) -> CatalogRelation | None:
    return next(iter(scope.relations.values()), None)


def _infer_node_type(node: exp.Expr, scope: TypeScope) -> str | None:
    operand_type = node.this.meta.get(TYPE_KEY) if isinstance(node.this, exp.Expr) else None
    match node:
        case exp.Column():
            return _SYSTEM_COLUMN_TYPES.get(node.name.lower()) or scope.find_column_type(
                node.table.lower(), node.name.lower()
            )
        case exp.Cast():
            return cast_target_type(node.args["to"])
        case exp.Literal():
            if node.is_string:
                return "unknown"
            return "numeric" if "." in node.name else "int4" if len(node.name) < 10 else "int8"
        case exp.Null():
            return "unknown"
        case exp.Array():
            return _array_type(node)
        case exp.Bracket():
            sliced = any(isinstance(part, exp.Slice) for part in node.expressions)
            return operand_type if sliced else array_element_type(operand_type)
        case exp.Case():
            return _case_type(node)
        case exp.DPipe():
            sides = (operand_type, node.expression.meta.get(TYPE_KEY))
            return next((side for side in sides if side is not None and side.endswith("[]")), "text")
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _arithmetic_type(operand_type, node.expression.meta.get(TYPE_KEY))
        case exp.Dot():
            return _field_type(node, operand_type)
        case exp.Anonymous():
            return _call_type(node)
        case exp.Collate():
            return "text" if operand_type == "unknown" else operand_type
        case exp.AtTimeZone():
            return "timestamp"
        case exp.Interval():
            return "interval"
        case exp.Trim() | exp.Substring() | exp.GroupConcat():
            return "text"
        case exp.StrPosition():
            return "int4"
        case exp.Extract():
            return "numeric"
    if isinstance(node, _BOOLEAN_NODES):
        return "bool"
    name = session_function_of(node)
    return SESSION_FUNCTIONS[name] if name is not None else operand_type


_SYSTEM_COLUMN_TYPES = {"tableoid": "oid", "xmin": "xid", "xmax": "xid", "ctid": "tid", "cmin": "cid", "cmax": "cid"}

_SESSION_NODES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.CurrentUser, "current_user"),
    (exp.SessionUser, "session_user"),
    (exp.CurrentCatalog, "current_catalog"),
    (exp.CurrentSchema, "current_schema"),
    (exp.CurrentTimestamp, "current_timestamp"),
    (exp.Localtimestamp, "localtimestamp"),
    (exp.CurrentDate, "current_date"),
)


def session_function_of(node: exp.Expr) -> str | None:
    """The function of the session that a node calls, also where it is written without parentheses."""
    for kind, name in _SESSION_NODES:
        if isinstance(node, kind):
            return name
    if isinstance(node, exp.Anonymous) and node.name.lower() in SESSION_FUNCTIONS:
        return str(node.name).lower()
    bare = isinstance(node, exp.Column) and not node.table and not getattr(node.this, "quoted", True)
    return node.name.lower() if bare and node.name.lower() in ("user", "current_role", "system_user") else None


def _array_type(node: exp.Array) -> str | None:
    types = [item.meta.get(TYPE_KEY) for item in node.expressions]
    first = next((type_ for type_ in types if type_ not in (None, "unknown")), "text" if types else None)
    return None if first is None else first if first.endswith("[]") and len(types) > 1 else f"{first}[]"


def _case_type(node: exp.Case) -> str | None:
    branches = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    types = [value.meta.get(TYPE_KEY) for value in (*branches, default) if isinstance(value, exp.Expr)]
    return next((type_ for type_ in types if type_ not in (None, "unknown")), "text" if "unknown" in types else None)


def _arithmetic_type(left: str | None, right: str | None) -> str | None:
    ranks = [NUMERIC_TYPES.index(type_) for type_ in (left, right) if type_ in NUMERIC_TYPES]
    return NUMERIC_TYPES[max(ranks)] if len(ranks) == 2 else None


def _field_type(node: exp.Dot, known: str | None) -> str | None:
    if isinstance(node.expression, exp.Anonymous):
        return node.expression.meta.get(TYPE_KEY)
    call = node.find(exp.Anonymous)
    if node.name == "n":
        return "int4"
    return array_element_type(call.expressions[0].meta.get(TYPE_KEY)) if call is not None and call.expressions else None


def _call_type(node: exp.Anonymous) -> str | None:
    name = node.name.lower()
    arguments = [_argument_type(item) for item in node.expressions]
    if name in SESSION_FUNCTIONS:
        return SESSION_FUNCTIONS[name]
    if name not in CATALOG_FUNCTIONS:
        return None
    result = CATALOG_FUNCTIONS[name].result
    if result == "$1":
        return next((type_ for type_ in arguments if type_ not in (None, "unknown")), "text" if arguments else None)
    first = arguments[0] if arguments else None
    if result == "$1[]":
        return None if first is None else f"{'text' if first == 'unknown' else first}[]"
    return array_element_type(first) if result == "$1." else result


def _argument_type(item: exp.Expr) -> str | None:
    """Also of array_agg(DISTINCT x ORDER BY y)."""
    if isinstance(item, exp.Order):
        return _argument_type(item.this)
    if isinstance(item, exp.Distinct):
        return item.expressions[0].meta.get(TYPE_KEY) if item.expressions else None
    return item.meta.get(TYPE_KEY)
