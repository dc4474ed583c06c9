"""The clauses of a query block as the splitter reads them."""

from __future__ import annotations

from sqlglot import exp

from dpsql.errors import InvalidSyntax, NotPrivate, Unsupported
from dpsql.sql.aggregates import has_aggregate
from dpsql.sql.blocks import RECURSIVE_KEY, Ownership
from dpsql.sql.dialect import CLAUSE_NAMES, span_of
from dpsql.sql.parentheses import join_leaves


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
