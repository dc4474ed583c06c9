"""The splitter's state: query blocks and what they became, steps, and the names in scope."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction

from sqlglot import exp

from dpsql.base.cancellation import checkpoint
from dpsql.compiler.bind.aggregates import has_aggregate
from dpsql.compiler.bind.outputs import (
    NUMERIC_KEY,
    Output,
    infer_element_type,
    infer_type,
    is_numeric_sum,
    output_name,
    rewrite_integer_division,
)
from dpsql.compiler.bind.sources import Ctes
from dpsql.compiler.parse.dialect import CLAUSE_NAMES, span_of
from dpsql.compiler.parse.parser import join_leaves
from dpsql.compiler.plan.aggregate import Aggregate
from dpsql.compiler.plan.relations import Field
from dpsql.compiler.plan.steps import ReleaseColumn, Shape
from dpsql.compiler.split.release_block import ErrorBar
from dpsql.errors import InvalidSyntax, NotPrivate, Span, Unsupported
from dpsql.schema.model import Domain, Schema

RECURSIVE_KEY = "recursive"
"""The note of a query that reads itself, as a CTE."""


class Ownership(Enum):
    PUBLIC = "public"
    OWNED = "owned"
    RELEASED = "released"


@dataclass(frozen=True)
class Block:
    """A query block and what it became; `outputs` is None where its columns are not known."""

    ownership: Ownership
    post: exp.Query
    errors: tuple[ErrorBar | None, ...] = ()
    outputs: tuple[Output, ...] | None = None


Environment = dict[str, Block]
GroupedSubSelect = tuple[exp.Subquery, tuple[exp.Expr, ...]]
"""A sub-select grouped by what it equates with the block around it, and the outer side of each."""


@dataclass(frozen=True)
class BoundRuntimeParameter:
    """A place in a release that an earlier step fills: `source` is post-processing over earlier steps."""

    name: str
    shape: Shape
    columns: tuple[Field, ...]
    domains: tuple[Domain, ...]
    most: int
    source: exp.Query
    unique: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BoundRelease:
    """What a release asks of private rows, and the columns that post-processing reads of it."""

    name: str
    aggregate: Aggregate
    columns: tuple[ReleaseColumn, ...]
    holes: tuple[BoundRuntimeParameter, ...] = ()
    notices: tuple[str, ...] = ()
    lookup: bool = False  # whether each group answers for one row of the block around it
    epsilon: Fraction | None = None  # of randomized answers of all units: with which each is told
    asks_keys: bool = False  # its groups alone are asked for, and counted to tell which have rows


@dataclass(frozen=True)
class CountedKeys:
    """INTERSECT or EXCEPT of released keys, of which an aggregate makes a number; `releases` are those on its sides."""

    operation: str
    span: Span | None
    releases: frozenset[str]


@dataclass(frozen=True)
class PublicRead:
    """A public table, or one of the catalog (`place` is its schema), that post-processing reads whole."""

    name: str
    place: str
    table: str
    columns: tuple[Field, ...]


@dataclass
class SplitState:
    schema: Schema
    preview: bool = False  # made-up rows stand in the place of every private table
    releases: dict[str, BoundRelease] = field(default_factory=dict)
    reads: dict[tuple[str, str], PublicRead] = field(default_factory=dict)
    scopes: dict[int, Ctes] = field(default_factory=dict)  # of each block over private rows, its owned CTEs
    environments: dict[int, Environment] = field(default_factory=dict)  # of each block, what its names mean
    inner: dict[int, tuple[exp.Expr, Block]] = field(default_factory=dict)  # sub-selects that became holes, once each
    grouped: dict[int, tuple[exp.Select, GroupedSubSelect | None]] = field(
        default_factory=dict
    )  # those that read an outer row
    views: dict[str, Block] = field(default_factory=dict)
    kept_views: list[exp.CTE] = field(default_factory=list)
    made_up: dict[str, str] = field(default_factory=dict)  # of a preview: private tables, and what stands for each
    statement: str = ""
    warnings: list[str] = field(default_factory=list)
    counted: list[CountedKeys] = field(default_factory=list)
    names: int = 0
    kept: list[exp.Expr] = field(default_factory=list)

    def keep(self, node: exp.Expr) -> int:
        """A node's id, which stays its own: one that is dropped would leave it to the next node that is made."""
        self.kept.append(node)
        return id(node)

    def next_release_name(self) -> str:
        self.names += 1
        return f"_r{self.names}"

    def environment_of(self, node: exp.Expr) -> Environment:
        """What names mean where a node stands: the scope of the block around it."""
        ancestor: exp.Expr | None = node
        while ancestor is not None:
            if id(ancestor) in self.environments:
                return self.environments[id(ancestor)]
            ancestor = ancestor.parent
        return {}


def order_releases(releases: dict[str, BoundRelease]) -> tuple[BoundRelease, ...]:
    """By name, but what a hole's source reads comes first."""
    done: dict[str, BoundRelease] = {}

    def add(release: BoundRelease) -> None:
        for table in (table for hole in release.holes for table in hole.source.find_all(exp.Table)):
            if table.name in releases and table.name not in done:
                add(releases[table.name])
        done.setdefault(release.name, release)

    for name in sorted(releases, key=lambda name: int(name.removeprefix("_r"))):
        add(releases[name])
    return tuple(done.values())


# What a post-processing block gives out: names, and types as far as they are known before it runs.


def unify_outputs(left: tuple[Output, ...] | None, right: tuple[Output, ...] | None) -> tuple[Output, ...] | None:
    if left is None or right is None or len(left) != len(right):
        return None
    return tuple(
        Output(a.name, a.type if a.type == b.type else None, a.is_numeric or b.is_numeric)
        for a, b in zip(left, right, strict=True)
    )


def annotate_outputs(
    select: exp.Select, sources: list[exp.Expr], blocks: list[Block]
) -> tuple[tuple[Output, ...] | None, list[exp.Div]]:
    """Tell the columns of a post-processing block their types, give `/` of whole numbers PostgreSQL's meaning, and
    say what the block gives out, and which quotients were given that meaning. A name has a type if every source that
    could mean it says so."""
    source_types = [{o.name.lower(): (o.type, o.is_numeric) for o in block.outputs or ()} for block in blocks]
    by_alias = {source.alias_or_name.lower(): types for source, types in zip(sources, source_types, strict=True)}
    for column in [node for node in select.walk() if isinstance(node, exp.Column)]:
        name = column.name.lower()
        candidates = [types for types in source_types if name in types]
        if column.table:
            candidates = [by_alias.get(column.table.lower(), {})]
        possible_types = {types.get(name) for types in candidates}
        type_, is_numeric = (possible_types.pop() or (None, False)) if len(possible_types) == 1 else (None, False)
        column.meta["type"], column.meta[NUMERIC_KEY] = type_, is_numeric
    ratios: list[exp.Div] = []
    for node in [node for node in select.walk() if isinstance(node, exp.Div)]:
        ratio = node.copy()
        divided = rewrite_integer_division(node)
        if divided is not node:
            ratios.append(ratio)
            node.replace(divided)
    return _outputs_of_items(select, sources, blocks), ratios


def _outputs_of_items(select: exp.Select, sources: list[exp.Expr], blocks: list[Block]) -> tuple[Output, ...] | None:
    outputs: list[Output] = []
    for item in select.selects:
        if item.is_star:
            if isinstance(item, exp.Column):
                pairs = zip(sources, blocks, strict=True)
                chosen = [block for source, block in pairs if source.alias_or_name.lower() == item.table.lower()]
            else:
                chosen = blocks
            star = item.this if isinstance(item, exp.Column) else item
            if any(block.outputs is None for block in chosen) or star.args.get("replace"):
                return None
            without = {name.name.lower() for name in star.args.get("except_") or ()}
            star_outputs = [output for block in chosen for output in block.outputs or ()]
            outputs += [output for output in star_outputs if output.name.lower() not in without]
        else:
            value = item.unalias()
            outputs.append(Output(item.alias_or_name, infer_type(value), is_numeric_sum(value)))
    return tuple(outputs)


def infer_source_outputs(source: exp.Expr) -> tuple[Output, ...] | None:
    """What VALUES, unnest or a series gives out; None where that is not written in it."""
    if isinstance(source, exp.Values):
        return _infer_values_outputs(source) if source.expressions else None
    expression = (
        source.expressions[0] if isinstance(source, exp.Unnest) and len(source.expressions) == 1 else source.this
    )
    if expression is None or source.args.get("offset") or expression.find(exp.Column):
        return None
    type_ = infer_element_type(expression)
    if type_ is None:
        return None
    names = _column_aliases(source)
    own = "unnest" if isinstance(source, exp.Unnest) else output_name(expression)
    # As in PostgreSQL, the one column of t has the name t, unless a list of names says otherwise.
    return (Output(names[0] if names else source.alias or own, type_),)


def _column_aliases(source: exp.Expr) -> list[str]:
    alias = source.args.get("alias")
    return [c.name for c in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []


def _infer_values_outputs(source: exp.Values) -> tuple[Output, ...]:
    names = _column_aliases(source)
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in source.expressions]
    outputs: list[Output] = []
    for index in range(len(rows[0])):
        types = {infer_type(row[index]) for row in rows if index < len(row) and not isinstance(row[index], exp.Null)}
        name = names[index] if index < len(names) else f"col{index}"
        outputs.append(Output(name, types.pop() if len(types) == 1 else None))
    return tuple(outputs)


# The clauses of a query block as the splitter reads them.


def check_clauses(select: exp.Select) -> None:
    for clause in ("locks", "into", "hint", "kind", "operation_modifiers"):
        if select.args.get(clause):
            word = CLAUSE_NAMES.get(("select", clause)) or CLAUSE_NAMES.get(("", clause)) or clause.upper()
            raise Unsupported(f"{word} is not supported", hint="Leave it out.")
    limit = select.args.get("limit")
    options = limit.args.get("limit_options") if isinstance(limit, exp.Fetch) else None
    if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
        raise Unsupported("FETCH … WITH TIES and PERCENT are not supported", hint="LIMIT takes a number of rows.")


def is_randomized(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() == "randomized"


def has_randomized_call(select: exp.Select) -> bool:
    """Whether a block calls RANDOMIZED in its SELECT list; sub-selects are blocks of their own."""

    def holds(node: exp.Expr) -> bool:
        if isinstance(node, exp.Query | exp.Subquery):
            return False
        return is_randomized(node) or any(map(holds, node.iter_expressions()))

    return any(map(holds, select.expressions))


def is_release_select(select: exp.Select) -> bool:
    """Whether a block over private rows is a release, unless it is one of each unit."""
    if select.args.get("group") is not None or select.args.get("distinct") is not None or has_randomized_call(select):
        return True
    parts = [*select.expressions, select.args.get("having"), select.args.get("qualify"), select.args.get("order")]
    return any(has_aggregate(part) for part in parts if part is not None)


def single_unit_group_error(select: exp.Select) -> NotPrivate:
    return NotPrivate(
        "grouping by the privacy unit would return a row for each unit",
        detail="Each such group holds one unit, and no group of one may appear in an answer.",
        hint="Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.",
        span=span_of(select.args["group"]) if select.args.get("group") is not None else None,
    )


def sources_of(select: exp.Select) -> list[exp.Expr]:
    """What stands in FROM, also in parentheses."""
    from_ = select.args.get("from_")
    if from_ is None and select.args.get("joins"):
        raise InvalidSyntax("a JOIN needs a FROM before it", span=span_of(select.args["joins"][0]))
    sources = [] if from_ is None else [from_.this]
    sources += [join.this for join in select.args.get("joins") or ()]
    return [leaf for source in sources for leaf in join_leaves(source)]


def find_counted_keys(
    sources: Iterable[tuple[exp.Expr, Span | None]], env: Environment, releases: Collection[str]
) -> Iterator[CountedKeys]:
    """The outermost set operations of keys that a block reads, in sub-selects and CTEs at any depth."""
    for source, span in sources:
        for query in _read_queries(source, env, (exp.Intersect, exp.Except)):
            if isinstance(query, exp.Intersect | exp.Except):
                names = {part.name for part in _read_queries(query, env) if isinstance(part, exp.Table)}
                yield CountedKeys(query.key.upper(), span, frozenset(names & set(releases)))


def _read_queries(query: exp.Expr, env: Environment, ends: tuple[type[exp.Expr], ...] = ()) -> Iterator[exp.Expr]:
    """A query or table and all that it reads in FROM, those of each CTE once, and nothing below what `ends` it."""
    waiting, seen = [query], set[str]()
    while waiting:
        checkpoint()
        query = waiting.pop()
        while isinstance(query, exp.Subquery):
            query = query.this
        yield query
        if isinstance(query, ends):
            continue
        if isinstance(query, exp.SetOperation):
            waiting += [query.left, query.right]
        elif isinstance(query, exp.Select):
            waiting += sources_of(query)
        elif isinstance(query, exp.Table) and not query.db and query.name.lower() in env.keys() - seen:
            seen.add(query.name.lower())
            waiting.append(env[query.name.lower()].post)


def gives_out_rows(post: exp.Query, table: str, groups: int | None) -> bool:
    """Whether the rows of a table are the statement's own, but for their order and for conditions.

    SELECT day, n FROM r ORDER BY day LIMIT 1000              →  yes, of at most 1,000 groups
    … LIMIT 3, SELECT AVG(n) FROM r, LAG(n) OVER (…), joins   →  no
    """
    reads = Counter(read.name.lower() for read in post.find_all(exp.Table))
    ctes = {cte.alias.lower(): cte.this for cte in post.find_all(exp.CTE) if reads[cte.alias.lower()] == 1}
    query: exp.Expr = post
    while reads[table.lower()] == 1:
        if isinstance(query, exp.Subquery):
            query = query.this
        elif isinstance(query, exp.Union) and not query.args.get("distinct") and not query.args.get("limit"):
            query = query.left if any(part.name == table for part in query.left.find_all(exp.Table)) else query.right
        elif isinstance(query, exp.Table):
            if query.name == table:
                return True
            if query.name.lower() not in ctes:
                return False
            query = ctes.pop(query.name.lower())
        elif isinstance(query, exp.Select) and not _changes_rows(query, groups):
            query = query.args["from_"].this
        else:
            return False
    return False


def _changes_rows(select: exp.Select, groups: int | None) -> bool:
    """Whether a block makes other rows of those that it reads, or leaves some out by their place."""
    limit = select.args.get("limit")
    count = limit.expression if isinstance(limit, exp.Limit) else None
    cuts = limit is not None and not (
        isinstance(count, exp.Literal) and count.is_int and groups is not None and int(count.name) >= groups
    )
    clauses = ("joins", "laterals", "group", "having", "distinct", "qualify", "offset")
    items = any(has_aggregate(item) or item.find(exp.Window) is not None for item in select.expressions)
    return cuts or items or select.args.get("from_") is None or any(select.args.get(clause) for clause in clauses)


def combine_ownership(kinds: list[Ownership]) -> Ownership:
    for kind in (Ownership.OWNED, Ownership.RELEASED):
        if kind in kinds:
            return kind
    return Ownership.PUBLIC


def prepend_ctes(post: exp.Query, ctes: list[exp.CTE]) -> None:
    if not ctes:
        return
    own = post.args.get("with_")
    post.set("with_", build_with(ctes + (own.expressions if own is not None else [])))


def drop_unread_ctes(post: exp.Query) -> None:
    """Take out common tables that nothing reads: their releases are not bought.

    WITH spare AS (SELECT AVG(cost) …) SELECT COUNT(*) …   →   SELECT COUNT(*) …
    """
    reads = defaultdict[int | None, set[str]](set)
    for table in post.find_all(exp.Table):
        reads[_enclosing_cte(table)].add(table.name.lower())
    named = defaultdict[str, set[str]](set)  # what is read under a name; two scopes may have it
    for cte in post.find_all(exp.CTE):
        named[cte.alias.lower()] |= reads[id(cte)]
    read, names = set(reads[None]), list(reads[None])
    while names:
        below = named[names.pop()] - read
        read |= below
        names += below
    for with_ in list(post.find_all(exp.With)):
        kept = [cte for cte in with_.expressions if cte.alias.lower() in read]
        if kept:
            with_.set("expressions", kept)
        else:
            with_.pop()


def _enclosing_cte(node: exp.Expr) -> int | None:
    cte = node.find_ancestor(exp.CTE)
    return None if cte is None else id(cte)


def build_with(ctes: list[exp.CTE]) -> exp.With:
    """WITH, RECURSIVE where one of the queries reads itself."""
    return exp.With(expressions=ctes, recursive=any(cte.this.meta.get(RECURSIVE_KEY) for cte in ctes) or None)


def restore_parentheses(side: exp.Expr, post: exp.Query) -> exp.Query:
    """One side of a set operation, with the parentheses that keep its order, its limit or its own sides to itself.

    Not around WITH, with which post-processing may not begin in parentheses.
    """
    own = isinstance(post, exp.SetOperation) or any(post.args.get(name) for name in ("order", "limit", "offset"))
    return exp.Subquery(this=post) if isinstance(side, exp.Subquery) and own and not post.args.get("with_") else post


def name_columns(query: exp.Expr, names: list[exp.Identifier]) -> None:
    """WITH t(a, b) AS (SELECT x, y …) is WITH t AS (SELECT x AS a, y AS b …); so with VALUES."""
    select = query
    while isinstance(select, exp.SetOperation | exp.Subquery):
        select = select.left if isinstance(select, exp.SetOperation) else select.this
    values = _find_bare_values(select)
    if values is not None and len(names) == len(values.expressions[0].expressions):
        values.args["alias"].set("columns", [name.copy() for name in names])
        return
    items = list(select.selects) if isinstance(select, exp.Select) else []
    if len(names) > len(items) or any(item.is_star for item in items):
        raise Unsupported("the list of column names does not fit the columns", span=span_of(names[0]))
    for item, name in zip(items, names, strict=False):
        inner = item.this if isinstance(item, exp.Alias) else item.copy()
        item.replace(exp.Alias(this=inner, alias=name.copy()))


def _find_bare_values(select: exp.Expr) -> exp.Values | None:
    """VALUES that stand where a query may, which sqlglot reads as SELECT * FROM (VALUES …) AS _values."""
    from_ = select.args.get("from_")
    values = from_.this if isinstance(from_, exp.From) else None
    if not isinstance(values, exp.Values) or values.alias_column_names or values.args.get("alias") is None:
        return None
    is_all = isinstance(select, exp.Select) and [type(item) for item in select.selects] == [exp.Star]
    rows = all(isinstance(row, exp.Tuple) for row in values.expressions)
    return values if rows and is_all and not select.args.get("joins") else None


# WITH RECURSIVE over public rows and releases, such as a spine of dates: it runs after the noise, in the sandbox.
#
# Each round reads what the last one gave, so no round may read private rows: that would be a release for each of them.


def reads_itself(cte: exp.CTE) -> bool:
    return any(not table.db and table.name.lower() == cte.alias.lower() for table in cte.this.find_all(exp.Table))


def make_recursive_block(
    cte: exp.CTE, env: Environment, query: Callable[[exp.Expr, Environment], Block], state: SplitState
) -> Block:
    union = cte.this
    if not isinstance(union, exp.Union) or union.args.get("with_") is not None:
        raise Unsupported(
            "WITH RECURSIVE takes a first SELECT, UNION [ALL], and a SELECT that reads the name",
            hint=_SERIES_HINT,
            span=span_of(cte.args["alias"]),
        )
    first = query(union.left, env)
    releases = state.names
    if first.ownership is Ownership.OWNED:
        raise _private_recursion_error(cte)
    inside = {**env, cte.alias.lower(): Block(first.ownership, union.left, (), first.outputs)}
    step = query(union.right, inside)
    if step.ownership is Ownership.OWNED or state.names != releases:
        raise _private_recursion_error(cte)
    union.set("this", first.post)
    union.set("expression", step.post)
    union.meta[RECURSIVE_KEY] = True
    return Block(first.ownership, union, (), unify_outputs(first.outputs, step.outputs))


_SERIES_HINT = "Numbers and dates in a row come from generate_series, for example: FROM generate_series(1, 12) AS t(i)."


def _private_recursion_error(cte: exp.CTE) -> Unsupported:
    return Unsupported(
        "WITH RECURSIVE over private rows is not supported", hint=_SERIES_HINT, span=span_of(cte.args["alias"])
    )
