"""Joins in parentheses, however deep, as Access and Power BI write them.

    FROM ((visits v JOIN patients p ON …) JOIN wards w ON …) JOIN doctors d ON …
    →  FROM visits v JOIN patients p ON … JOIN wards w ON … JOIN doctors d ON …

JOIN is left-associative, so parentheses around the first source say nothing. Those around a later one stay: sqlglot
hangs the joins within them on their first source.
"""

from __future__ import annotations

from sqlglot import exp


def remove_redundant_parentheses(tree: exp.Query) -> exp.Query:
    """FROM with the parentheses that change nothing taken off."""
    for select in [tree, *tree.find_all(exp.Select)]:
        from_ = select.args.get("from_")
        if from_ is None:
            continue
        for join in select.args.get("joins") or ():
            _unwrap_source(join)
        _unwrap_source(from_)
        first = from_.this
        if is_join_tree(first) and first.args.get("alias") is None:
            joins = [*_detach_joins(first.this), *(select.args.get("joins") or ())]
            from_.set("this", first.this)
            select.set("joins", joins or None)
    return tree


def is_join_tree(source: exp.Expr) -> bool:
    """Whether a source is others in parentheses, and no query of its own."""
    if not isinstance(source, exp.Subquery) or isinstance(source.this, exp.Select | exp.SetOperation):
        return False
    inner = source.this
    return isinstance(inner, exp.Table) or bool(inner.args.get("joins")) or _has_alias(inner)


def join_leaves(source: exp.Expr) -> list[exp.Expr]:
    """The sources within parentheses that have no name of their own, in order; else the source itself."""
    inner = join_leaves(source.this) if is_join_tree(source) and source.args.get("alias") is None else [source]
    return inner + [leaf for join in source.args.get("joins") or () for leaf in join_leaves(join.this)]


def _has_alias(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery) and node.args.get("alias") is not None


def _unwrap_source(holder: exp.Expr) -> None:
    """Take double parentheses off the source that stands in FROM, in JOIN or in parentheses."""
    source = holder.this
    if not isinstance(source, exp.Subquery | exp.Table):
        return
    for join in source.args.get("joins") or ():
        _unwrap_source(join)
    if not isinstance(source, exp.Subquery) or not isinstance(source.this, exp.Subquery | exp.Table):
        return
    _unwrap_source(source)
    inner = source.this
    if isinstance(inner, exp.Subquery) and _has_only_joins(inner):
        first, joins = inner.this, inner.args.get("joins") or []
        if not joins or is_join_tree(inner):
            if joins:
                first.set("joins", [*(first.args.get("joins") or ()), *joins])
            source.set("this", first)
    elif _has_only_joins(source) and not source.args.get("joins") and not inner.args.get("joins"):
        holder.set("this", inner)


def _has_only_joins(source: exp.Expr) -> bool:
    return not any(value for key, value in source.args.items() if key not in ("this", "joins"))


def _detach_joins(source: exp.Expr) -> list[exp.Expr]:
    joins = source.args.get("joins") or []
    source.set("joins", None)
    return list(joins)
