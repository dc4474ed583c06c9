"""PostgreSQL's types in a statement about the catalog: of its output columns, and where a rewriting needs them.

DuckDB has no oid, name or regclass; clients look at them. So each expression is given its type here, from the columns
of the relations upwards. Where nothing tells, there is none, and DuckDB's own type is shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dpsql.catalog.builtin import Relation
from dpsql.sql.catalog_functions import FUNCTIONS, SESSION, TABLE_FUNCTIONS

TYPE = "pg"
"""The note in which a node has its type."""

SPELLED = {
    "boolean": "bool", "smallint": "int2", "integer": "int4", "int": "int4", "bigint": "int8", "real": "float4",
    "double precision": "float8", "double": "float8", "float": "float8", "character varying": "varchar",
    '"char"': "char", "timestamp with time zone": "timestamptz", "timestamp without time zone": "timestamp",
    "decimal": "numeric", "string": "text", "character": "bpchar", "char": "bpchar", "tinyint": "int2",
    "varchar": "varchar",
}  # fmt: skip
NUMBERS = ("int2", "int4", "int8", "numeric", "float4", "float8")
REG = ("regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole", "regoper", "regoperator",
       "regconfig", "regdictionary", "regcollation")  # fmt: skip
DOMAINS = {"sql_identifier": "name", "character_data": "varchar", "cardinal_number": "int4", "yes_or_no": "varchar",
           "time_stamp": "timestamptz"}  # fmt: skip
_TRUTHS = (exp.Predicate, exp.Connector, exp.Not, exp.Exists, exp.Boolean, exp.Between, exp.In, exp.RegexpLike,
           exp.RegexpILike, exp.SimilarTo)  # fmt: skip

Columns = dict[str, str | None]


@dataclass
class Scope:
    """What names mean at a place of a statement; `relations` are the catalog's, by the names that they have there."""

    outer: Scope | None = None
    sources: dict[str, Columns] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    ctes: dict[str, Columns] = field(default_factory=dict)

    def cte(self, name: str) -> Columns | None:
        if name in self.ctes:
            return self.ctes[name]
        return self.outer.cte(name) if self.outer is not None else None

    def relation(self, name: str) -> Relation | None:
        if name in self.sources:
            return self.relations.get(name)
        return self.outer.relation(name) if self.outer is not None else None

    def column(self, source: str, name: str) -> str | None:
        if source:
            if source in self.sources:
                return self.sources[source].get(name)
        else:
            for columns in self.sources.values():
                if name in columns:
                    return columns[name]
        return self.outer.column(source, name) if self.outer is not None else None


def plain(spelled: str) -> str:
    """One word for each type, as pg_type has it; arrays end in [].

    >>> plain("integer[]"), plain('"char"'), plain("_text"), plain("pg_catalog.regtype")
    ('int4[]', 'char', 'text[]', 'regtype')
    """
    word = spelled.lower().removeprefix("pg_catalog.").removeprefix("information_schema.")
    if word.endswith("[]"):
        return plain(word[:-2]) + "[]"
    if word.startswith("_"):
        return plain(word[1:]) + "[]"
    return DOMAINS.get(word, SPELLED.get(word, word))


def cast_type(to: exp.Expr) -> str:
    """The type that a cast names."""
    if isinstance(to, exp.DataType) and to.this is exp.DType.ARRAY:
        inner = to.expressions[0] if to.expressions else None
        return f"{cast_type(inner)}[]" if isinstance(inner, exp.Expr) else "text[]"
    kind = to.args.get("kind")
    if isinstance(to, exp.DataType) and isinstance(kind, exp.Expr):
        last = kind.expression if isinstance(kind, exp.Dot) else kind
        return "char" if last.name == "char" else plain(last.name)
    if isinstance(to.this, exp.DType):
        return plain(str(to.this.value))
    return plain(str(to.this))


def element(type_: str | None) -> str | None:
    if type_ in ("int2vector", "oidvector"):
        return type_.removesuffix("vector")
    return type_[:-2] if type_ is not None and type_.endswith("[]") else None


def annotate(query: exp.Expr, outer: Scope | None = None) -> list[tuple[str, str | None]]:
    """Give all nodes their types; the output columns of the query."""
    scope = Scope(outer)
    with_ = query.args.get("with_")
    if with_ is not None:
        for cte in with_.expressions:
            _cte(cte, scope, bool(with_.args.get("recursive")))
    if isinstance(query, exp.SetOperation):
        left, right = annotate(query.left, scope), annotate(query.right, scope)
        for rest in (query.args.get("order"), query.args.get("limit"), query.args.get("offset")):
            if rest is not None:
                _below(rest, Scope(scope, {"": dict(left)}))
        return [(name, _either(one, other)) for (name, one), (_, other) in zip(left, right, strict=False)]
    if isinstance(query, exp.Subquery):
        return annotate(query.this, scope)
    if isinstance(query, exp.Values):
        _below(query, scope)
        first = query.expressions[0]
        items = first.expressions if isinstance(first, exp.Tuple) else [first]
        return [(f"column{n}", item.meta.get(TYPE)) for n, item in enumerate(items, 1)]
    for source in _sources(query):
        _source(source, scope)
    for join in _joins(query):
        if join.args.get("on") is not None:
            type_of(join.args["on"], scope)
    outputs: list[tuple[str, str | None]] = []
    for item in query.expressions:
        outputs += _outputs(item, scope)
    for name, part in query.args.items():
        if name not in ("from_", "joins", "laterals", "with_", "expressions"):
            for node in part if isinstance(part, list) else (part,):
                if isinstance(node, exp.Expr):
                    _below_aliased(node, scope, query)
    return outputs


def _cte(cte: exp.CTE, scope: Scope, recursive: bool) -> None:
    name, titles = cte.alias.lower(), [one.name.lower() for one in cte.args["alias"].args.get("columns") or ()]
    if recursive and isinstance(cte.this, exp.SetOperation) and cte.this.args.get("with_") is None:
        scope.ctes[name] = _named(annotate(cte.this.left, scope), titles)
        annotate(cte.this.right, scope)  # which may read it
        return
    scope.ctes[name] = _named(annotate(cte.this, scope), titles)


def _named(outputs: list[tuple[str, str | None]], titles: list[str]) -> Columns:
    names = [*titles, *(name.lower() for name, _ in outputs[len(titles) :])]
    return {name: type_ for name, (_, type_) in zip(names, outputs, strict=False)}


def _sources(query: exp.Expr) -> list[exp.Expr]:
    start = query.args.get("from_")
    first = _joined(start.this) if start is not None else []
    others = [one for join in query.args.get("joins") or () for one in _joined(join.this)]
    return [*first, *others, *(query.args.get("laterals") or ())]


def _joins(query: exp.Expr) -> list[exp.Expr]:
    """All joins of a FROM, also those in parentheses, but none of a sub-select."""
    start = query.args.get("from_")
    found: list[exp.Expr] = []
    left = [*(query.args.get("joins") or ()), *([start.this] if start is not None else [])]
    while left:
        one = left.pop()
        found += [one] if isinstance(one, exp.Join) else []
        left += one.args.get("joins") or ()
        if isinstance(one, exp.Join) or _is_tree(one):
            left.append(one.this)
    return found


def _is_tree(source: exp.Expr) -> bool:
    """Whether it is a join in parentheses, and no sub-select."""
    if not isinstance(source, exp.Subquery | exp.Paren):
        return False
    inner = source.this
    if isinstance(inner, exp.Subquery | exp.Paren):
        return bool(inner.args.get("joins")) or _is_tree(inner)
    return isinstance(inner, exp.Table | exp.Lateral | exp.Unnest)


def _joined(source: exp.Expr) -> list[exp.Expr]:
    """What a join in parentheses holds, or the source itself."""
    inner = _joined(source.this) if _is_tree(source) else [source]
    return [*inner, *(one for join in source.args.get("joins") or () for one in _joined(join.this))]


def _source(source: exp.Expr, scope: Scope) -> None:
    named = source.args.get("alias")
    titles = [one.name.lower() for one in named.args.get("columns") or ()] if named is not None else []
    alias = source.alias_or_name.lower()
    inner = source.this if isinstance(source, exp.Lateral) else source
    if isinstance(inner, exp.Table) and isinstance(inner.this, exp.Identifier):
        known: Relation | None = inner.meta.get("relation")
        cte = scope.cte(inner.name.lower()) if known is None else None
        columns: list[tuple[str, str | None]]
        columns = list((cte or {}).items()) if known is None else [(a.name, plain(a.type)) for a in known.attributes]
        if known is not None:
            scope.relations[alias] = known
        scope.sources[alias] = _named(columns, titles)
    elif isinstance(inner, exp.Subquery | exp.Query):
        query = inner.this if isinstance(inner, exp.Subquery) else inner
        scope.sources[alias] = _named(annotate(query, scope), titles)
    else:
        scope.sources[alias] = _named(_function_columns(inner, alias, scope), titles)


def _function_columns(source: exp.Expr, alias: str, scope: Scope) -> list[tuple[str, str | None]]:
    """Of a function in FROM: one column that is named as the function's alias, or those of a list."""
    if isinstance(source, exp.Unnest):
        types = [type_of(item, scope) for item in source.expressions]
        columns: list[tuple[str, str | None]] = [(alias or "unnest", element(type_)) for type_ in types]
        offset = source.args.get("offset")
        named = offset.name.lower() if isinstance(offset, exp.Identifier) else "ordinality"
        return [*columns, (named, "int8")] if offset else columns
    call = source.this if isinstance(source, exp.Table) else source
    call = call.expression if isinstance(call, exp.Dot) else call
    name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
    counted = [("ordinality", "int8")] if source.args.get("ordinality") else []
    if name in TABLE_FUNCTIONS:
        _below(call, scope)
        return [*TABLE_FUNCTIONS[name][1], *counted]
    type_ = type_of(call, scope)
    if name == "_pg_expandarray":
        return [("x", element(call.expressions[0].meta.get(TYPE))), ("n", "int4")]
    return [(alias or name, type_), *counted]


def _outputs(item: exp.Expr, scope: Scope) -> list[tuple[str, str | None]]:
    if isinstance(item, exp.Star):
        return [(name, type_) for columns in scope.sources.values() for name, type_ in columns.items()]
    if isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
        return list(scope.sources.get(item.table.lower(), {}).items())
    return [(_name(item), type_of(item, scope))]


def _name(item: exp.Expr) -> str:
    """As it is shown: in lower case, unless it is quoted."""
    name = item.args.get("alias") if isinstance(item, exp.Alias) else item.this
    return name.name if isinstance(name, exp.Identifier) and name.quoted else item.alias_or_name.lower()


def _below_aliased(node: exp.Expr, scope: Scope, query: exp.Expr) -> None:
    """ORDER BY, GROUP BY and HAVING may name output columns."""
    aliased: Columns = {i.alias.lower(): i.meta.get(TYPE) for i in query.expressions if isinstance(i, exp.Alias)}
    _below(node, Scope(Scope(scope.outer, {"": aliased}, {}, {}), scope.sources, scope.relations, scope.ctes))


def _below(node: exp.Expr, scope: Scope) -> None:
    for child in node.iter_expressions():
        type_of(child, scope)


def _either(one: str | None, other: str | None) -> str | None:
    return one if one not in (None, "unknown") else other


def type_of(node: exp.Expr, scope: Scope) -> str | None:
    """The type of an expression; it and all below have it as a note then."""
    if isinstance(node, exp.Query | exp.Values) and not isinstance(node, exp.Subquery):
        outputs = annotate(node, scope)
        found = outputs[0][1] if outputs else None
    elif isinstance(node, exp.Subquery):
        outputs = annotate(node.this, scope)
        found = outputs[0][1] if outputs else None
    else:
        _below(node, scope)
        found = _type(node, scope)
    node.meta[TYPE] = found
    if isinstance(node, exp.Column):
        node.meta["relation"] = scope.relation(node.table.lower()) if node.table else _only(scope)
    return found


def _only(scope: Scope) -> Relation | None:
    return next(iter(scope.relations.values()), None)


def _type(node: exp.Expr, scope: Scope) -> str | None:
    known = node.this.meta.get(TYPE) if isinstance(node.this, exp.Expr) else None
    match node:
        case exp.Column():
            return _SYSTEM.get(node.name.lower()) or scope.column(node.table.lower(), node.name.lower())
        case exp.Cast():
            return cast_type(node.args["to"])
        case exp.Literal():
            if node.is_string:
                return "unknown"
            return "numeric" if "." in node.name else "int4" if len(node.name) < 10 else "int8"
        case exp.Null():
            return "unknown"
        case exp.Array():
            return _array(node)
        case exp.Bracket():
            sliced = any(isinstance(part, exp.Slice) for part in node.expressions)
            return known if sliced else element(known)
        case exp.Case():
            return _case(node)
        case exp.DPipe():
            sides = (known, node.expression.meta.get(TYPE))
            return next((side for side in sides if side is not None and side.endswith("[]")), "text")
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod():
            return _arithmetic(known, node.expression.meta.get(TYPE))
        case exp.Dot():
            return _dot(node, known)
        case exp.Anonymous():
            return _call(node)
        case exp.Collate():
            return "text" if known == "unknown" else known
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
    if isinstance(node, _TRUTHS):
        return "bool"
    name = session_function(node)
    return SESSION[name] if name is not None else known


_SYSTEM = {"tableoid": "oid", "xmin": "xid", "xmax": "xid", "ctid": "tid", "cmin": "cid", "cmax": "cid"}

_SESSION_NODES: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.CurrentUser, "current_user"),
    (exp.SessionUser, "session_user"),
    (exp.CurrentCatalog, "current_catalog"),
    (exp.CurrentSchema, "current_schema"),
    (exp.CurrentTimestamp, "current_timestamp"),
    (exp.Localtimestamp, "localtimestamp"),
    (exp.CurrentDate, "current_date"),
)


def session_function(node: exp.Expr) -> str | None:
    """The function of the session that a node calls, also where it is written without parentheses."""
    for kind, name in _SESSION_NODES:
        if isinstance(node, kind):
            return name
    if isinstance(node, exp.Anonymous) and node.name.lower() in SESSION:
        return str(node.name).lower()
    bare = isinstance(node, exp.Column) and not node.table and not getattr(node.this, "quoted", True)
    return node.name.lower() if bare and node.name.lower() in ("user", "current_role", "system_user") else None


def _array(node: exp.Array) -> str | None:
    types = [item.meta.get(TYPE) for item in node.expressions]
    first = next((one for one in types if one not in (None, "unknown")), "text" if types else None)
    return None if first is None else first if first.endswith("[]") and len(types) > 1 else f"{first}[]"


def _case(node: exp.Case) -> str | None:
    branches = [one.args["true"] for one in node.args["ifs"]]
    default = node.args.get("default")
    types = [one.meta.get(TYPE) for one in (*branches, default) if isinstance(one, exp.Expr)]
    return next((one for one in types if one not in (None, "unknown")), "text" if "unknown" in types else None)


def _arithmetic(one: str | None, other: str | None) -> str | None:
    known = [NUMBERS.index(type_) for type_ in (one, other) if type_ in NUMBERS]
    return NUMBERS[max(known)] if len(known) == 2 else None


def _dot(node: exp.Dot, known: str | None) -> str | None:
    if isinstance(node.expression, exp.Anonymous):
        return node.expression.meta.get(TYPE)
    call = node.find(exp.Anonymous)
    if node.name == "n":
        return "int4"
    return element(call.expressions[0].meta.get(TYPE)) if call is not None and call.expressions else None


def _call(node: exp.Anonymous) -> str | None:
    name = node.name.lower()
    arguments = [_argument(item) for item in node.expressions]
    if name in SESSION:
        return SESSION[name]
    if name not in FUNCTIONS:
        return None
    result = FUNCTIONS[name].result
    if result == "$1":
        return next((one for one in arguments if one not in (None, "unknown")), "text" if arguments else None)
    first = arguments[0] if arguments else None
    if result == "$1[]":
        return None if first is None else f"{'text' if first == 'unknown' else first}[]"
    return element(first) if result == "$1." else result


def _argument(item: exp.Expr) -> str | None:
    """Also of array_agg(DISTINCT x ORDER BY y)."""
    if isinstance(item, exp.Order):
        return _argument(item.this)
    if isinstance(item, exp.Distinct):
        return item.expressions[0].meta.get(TYPE) if item.expressions else None
    return item.meta.get(TYPE)
