"""Split a statement at the privacy boundary: releases below, post-processing above.

Every query block is *public*, *owned* or *released*, bottom up. A block over owned rows that aggregates is a
release; its post-processing is the same block with FROM set to the release, HAVING turned into WHERE, aggregates
and keys replaced by the release's columns. What is above may use all of SQL.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from enum import Enum

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dpsql.errors import InternalError, InvalidSyntax, NotPrivate, UnknownTable, Unsupported
from dpsql.plan.nodes import Aggregate
from dpsql.schema.model import Schema
from dpsql.sql.aggregates import holds_aggregate
from dpsql.sql.bind import Binder, Ctes, find_table
from dpsql.sql.block import ErrorBar, ReleaseBlock, ReleaseColumn
from dpsql.sql.coerce import bind_literal
from dpsql.sql.dialect import CLAUSES, only, span_of
from dpsql.sql.outputs import integer_division, is_whole, name_outputs
from dpsql.sql.sandboxed import check_function, check_source


class Ownership(Enum):
    PUBLIC = "public"
    OWNED = "owned"
    RELEASED = "released"


@dataclass(frozen=True)
class BoundRelease:
    """What a release asks of private rows, and the columns that post-processing reads of it."""

    name: str
    aggregate: Aggregate
    columns: tuple[ReleaseColumn, ...]


@dataclass(frozen=True)
class Split:
    releases: tuple[BoundRelease, ...]
    post: exp.Query
    errors: tuple[ErrorBar | None, ...]  # per output column, where it is an aggregate as it stands


@dataclass
class _State:
    schema: Schema
    releases: list[BoundRelease] = field(default_factory=list)
    scopes: dict[int, Ctes] = field(default_factory=dict)

    def release_name(self) -> str:
        return f"_r{len(self.releases) + 1}"


@dataclass(frozen=True)
class Block:
    """A query block and what it became; `whole` names its output columns that are whole numbers."""

    ownership: Ownership
    post: exp.Query
    errors: tuple[ErrorBar | None, ...] = ()
    whole: frozenset[str] = frozenset()


Environment = dict[str, Block]


def split(tree: exp.Query, schema: Schema, now: dt.datetime | None = None) -> Split:
    state = _State(schema)
    try:
        block = _query(_with_time(tree, now), {}, state, top=True)
    except SqlglotError:  # a tree that its own generator cannot write
        raise InvalidSyntax("the statement is not understood") from None
    if block.ownership is Ownership.OWNED:
        raise InternalError("a block that gives out rows was not refused")
    return Split(tuple(state.releases), block.post, block.errors)


def _with_time(tree: exp.Query, now: dt.datetime | None) -> exp.Query:
    """CURRENT_DATE and now() become literals, so that a statement means one thing."""

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.CurrentTime | exp.Localtimestamp):
            if now is None or isinstance(node, exp.CurrentTime):
                raise Unsupported("the time of day is not known here", span=span_of(node))
            if isinstance(node, exp.CurrentDate):
                return exp.cast(exp.Literal.string(now.date().isoformat()), "date")
            return exp.cast(exp.Literal.string(now.replace(tzinfo=None).isoformat(" ")), "timestamp")
        return node

    changed = tree.transform(change, copy=False)
    assert isinstance(changed, exp.Query)
    return changed


# --- queries ---------------------------------------------------------------------------------------------------------

def _query(query: exp.Expr, outer: Environment, state: _State, top: bool = False) -> Block:
    if isinstance(query, exp.Subquery):
        only(query, "this")
        return _query(query.this, outer, state, top)
    if not isinstance(query, exp.Select | exp.SetOperation | exp.Values):
        raise Unsupported("only SELECT, UNION, INTERSECT, EXCEPT and VALUES are queries here", span=span_of(query))
    if isinstance(query, exp.Values):
        raise Unsupported("VALUES stands in FROM", hint="SELECT * FROM (VALUES …) AS v.", span=span_of(query))
    env, kept = _ctes(query, outer, state)
    if isinstance(query, exp.SetOperation):
        result = _set_operation(query, env, state)
    else:
        result = _select(query, env, state, top)
    _keep_ctes(result.post, kept)
    return result


def _ctes(query: exp.Query, outer: Environment, state: _State) -> tuple[Environment, list[exp.CTE]]:
    """Owned CTEs are inlined where they are used; released ones stay, one release however often they are read."""
    with_ = query.args.get("with_")
    if with_ is None:
        return outer, []
    only(with_, "expressions")
    env, kept, own = dict(outer), [], set[str]()
    for cte in with_.expressions:
        only(cte, "this", "alias", "materialized")
        only(cte.args["alias"], "this")
        if cte.alias.startswith("_"):
            raise Unsupported("names that begin with _ are taken", span=span_of(cte.args["alias"]))
        if cte.alias.lower() in own:
            raise InvalidSyntax(f'the name "{cte.alias}" is used more than once in WITH',
                                span=span_of(cte.args["alias"]), sqlstate="42712")  # fmt: skip
        own.add(cte.alias.lower())
        block = env[cte.alias.lower()] = _query(cte.this, env, state)
        if block.ownership is not Ownership.OWNED:
            kept.append(exp.CTE(this=block.post, alias=cte.args["alias"]))
    query.set("with_", None)
    return env, kept


def _keep_ctes(post: exp.Query, kept: list[exp.CTE]) -> None:
    if not kept:
        return
    own = post.args.get("with_")
    post.set("with_", exp.With(expressions=kept + (own.expressions if own is not None else [])))


def _set_operation(query: exp.SetOperation, env: Environment, state: _State) -> Block:
    sides = [_query(side, env, state) for side in (query.left, query.right)]
    if any(side.ownership is Ownership.OWNED for side in sides):
        raise Unsupported(
            f"{query.key.upper()} over private rows is not supported yet",
            hint="Aggregate on each side: set operations of aggregated rows are fine.",
            span=span_of(query),
        )
    query.set("this", sides[0].post)
    query.set("expression", sides[1].post)
    _nested(query, env, state, skip={"this", "expression"})
    released = any(side.ownership is Ownership.RELEASED for side in sides)
    return Block(Ownership.RELEASED if released else Ownership.PUBLIC, query, (), sides[0].whole & sides[1].whole)


def _select(select: exp.Select, env: Environment, state: _State, top: bool) -> Block:
    for clause in ("locks", "into", "hint", "kind", "operation_modifiers"):
        if select.args.get(clause):
            word = CLAUSES.get(("select", clause)) or CLAUSES.get(("", clause)) or clause.upper()
            raise Unsupported(f"{word} is not supported", hint="Leave it out.")
    limit = select.args.get("limit")
    options = limit.args.get("limit_options") if isinstance(limit, exp.Fetch) else None
    if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
        raise Unsupported("FETCH … WITH TIES and PERCENT are not supported", hint="LIMIT takes a number of rows.")
    sources = _sources(select)
    blocks = [_classify(source, env, state) for source in sources]
    kinds = [block.ownership for block in blocks]
    if Ownership.OWNED not in kinds:
        _nested(select, env, state)
        name_outputs(select)
        whole = _divide_whole(select, sources, blocks)
        return Block(Ownership.RELEASED if Ownership.RELEASED in kinds else Ownership.PUBLIC, select, (), whole)
    if Ownership.RELEASED in kinds or Ownership.PUBLIC in kinds:
        raise Unsupported(
            "private rows cannot be joined with aggregated or made-up rows yet",
            hint="Aggregate the private rows first, then join in an outer SELECT.",
            span=span_of(select.args["from_"]),
        )
    state.scopes[id(select)] = {n: b.post for n, b in env.items() if b.ownership is Ownership.OWNED}
    binder = Binder(state.schema, state.scopes)
    if _aggregates(select):
        return _release(select, binder, env, state, top)
    if top:
        return _no_rows(select, binder)
    return Block(Ownership.OWNED, select)


def _release(select: exp.Select, binder: Binder, env: Environment, state: _State, top: bool) -> Block:
    name = state.release_name()
    state.releases.append(None)  # type: ignore[arg-type]  # keeps the name while sub-selects take theirs
    place = len(state.releases) - 1

    def sub_select(node: exp.Expr) -> exp.Query:
        inner = _query(node, env, state)
        if inner.ownership is Ownership.OWNED:
            raise NotPrivate("a sub-select over private rows must aggregate them", span=span_of(node))
        return inner.post

    block = ReleaseBlock(select, binder, name, sub_select, top)
    state.releases[place] = BoundRelease(name, block.aggregate, block.columns)
    return Block(Ownership.RELEASED, block.post, block.errors, block.whole)


def _aggregates(select: exp.Select) -> bool:
    if select.args.get("group") is not None or select.args.get("distinct") is not None:
        return True
    parts = [*select.expressions, select.args.get("having"), select.args.get("qualify"), select.args.get("order")]
    return any(holds_aggregate(part) for part in parts if part is not None)


def _no_rows(select: exp.Select, binder: Binder) -> Block:
    """LIMIT 0 and WHERE FALSE ask for types only; everything else without an aggregate asks for rows."""
    limit, where = select.args.get("limit"), select.args.get("where")
    asks_types = limit is not None and isinstance(limit.expression, exp.Literal) and str(limit.expression.this) == "0"
    if where is not None and isinstance(where.this, exp.Boolean) and not where.this.this:
        asks_types = True
    if where is not None and isinstance(where.this, exp.EQ) and _is_false(where.this):
        asks_types = True
    select.set("limit", None)
    select.set("offset", None)
    _, columns = binder.owned_select(select)  # a misspelt name or function is said first
    if not asks_types:
        raise NotPrivate(
            "this would return single private rows",
            hint=_aggregate_hint(select),
            span=span_of(select.expressions[0]) if select.expressions else None,
        )
    items = [exp.alias_(exp.cast(exp.Null(), str(c.column.type)), c.name, quoted=True) for c in columns]
    return Block(Ownership.PUBLIC, exp.select(*items).where(exp.false()))


def _is_false(node: exp.EQ) -> bool:
    sides = [bind_literal(side) for side in (node.this, node.expression) if isinstance(side, exp.Literal)]
    if len(sides) != 2 or not all(side.type.is_number for side in sides):
        return False
    left, right = (side.value for side in sides)
    return left != right


def _aggregate_hint(select: exp.Select) -> str:
    source = select.args["from_"].this
    table = source.name if isinstance(source, exp.Table) else source.alias or "t"
    column = next((e.name for e in select.expressions if isinstance(e, exp.Column) and e.name != "*"), None)
    if column is None:
        return f"Aggregate, for example: SELECT COUNT(*) FROM {table}."
    return f"Aggregate, for example: SELECT {column}, COUNT(*) FROM {table} GROUP BY {column}."


# --- sources and what is nested --------------------------------------------------------------------------------------


def _sources(select: exp.Select) -> list[exp.Expr]:
    from_ = select.args.get("from_")
    if from_ is None and select.args.get("joins"):
        raise InvalidSyntax("a JOIN needs a FROM before it", span=span_of(select.args["joins"][0]))
    sources = [] if from_ is None else [from_.this]
    return sources + [join.this for join in select.args.get("joins") or ()]


def _divide_whole(select: exp.Select, sources: list[exp.Expr], blocks: list[Block]) -> frozenset[str]:
    """Give `/` of whole numbers PostgreSQL's meaning in a post-processing block; name its whole outputs.

    A name counts as whole if every source that could mean it says so.
    """
    by_alias = {source.alias_or_name.lower(): block.whole for source, block in zip(sources, blocks, strict=True)}
    outputs = [{c.alias_or_name.lower() for c in block.post.selects} for block in blocks]
    for column in [node for node in select.walk() if isinstance(node, exp.Column)]:
        name = column.name.lower()
        if column.table:
            column.meta["integer"] = name in by_alias.get(column.table.lower(), frozenset())
        else:
            having = [block.whole for block, names in zip(blocks, outputs, strict=True) if name in names]
            column.meta["integer"] = bool(having) and all(name in whole for whole in having)
    for node in [node for node in select.walk() if isinstance(node, exp.Div)]:
        divided = integer_division(node)
        if divided is not node:
            node.replace(divided)
    return frozenset(item.alias_or_name.lower() for item in select.selects if is_whole(item.unalias()))


def _classify(source: exp.Expr, env: Environment, state: _State) -> Block:
    """What a source is; released and public sub-selects are replaced by their post-processing in place."""
    if isinstance(source, exp.Subquery):
        block = _query(source.this, env, state)
        if block.ownership is not Ownership.OWNED:
            source.set("this", block.post)
        return block
    if isinstance(source, exp.Table) and not isinstance(source.this, exp.Func):
        known = None if source.db else env.get(source.name.lower())
        if known is not None:
            return known
        table = find_table(state.schema, source)
        if table.public:
            raise Unsupported(f'reading the public table "{table.name}" is not supported yet', span=span_of(source))
        return Block(Ownership.OWNED, exp.select())
    check_source(source)
    for child in source.walk():
        if isinstance(child, exp.Query):
            raise Unsupported("a sub-select cannot stand here", span=span_of(child))
        check_function(child)
    return Block(Ownership.PUBLIC, exp.select())


def _nested(query: exp.Query, env: Environment, state: _State, skip: frozenset[str] | set[str] = frozenset()) -> None:
    """Sub-selects in the expressions of a post-processing block, and the functions that it may not call."""
    for key, value in list(query.args.items()):
        if key in skip or key in ("from_", "with_"):
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, exp.Join):
                for part in (item.args.get("on"), *(item.args.get("using") or ())):
                    _nested_expr(part, env, state)
            elif isinstance(item, exp.Expr):
                _nested_expr(item, env, state)


def _nested_expr(node: exp.Expr | None, env: Environment, state: _State) -> None:
    if node is None:
        return
    if isinstance(node, exp.Subquery | exp.Query):
        holder = node if isinstance(node, exp.Subquery) else None
        block = _query(node.this if holder is not None else node, env, state)
        if block.ownership is Ownership.OWNED:
            raise NotPrivate("a sub-select over private rows must aggregate them", span=span_of(node))
        if holder is not None:
            holder.set("this", block.post)
        elif block.post is not node:
            node.replace(block.post)
        return
    if isinstance(node, exp.Table):
        raise UnknownTable("a table cannot stand here", span=span_of(node))
    check_function(node)
    for child in list(node.iter_expressions()):
        _nested_expr(child, env, state)
