"""What a post-processing block gives out: names, and types as far as they are known before it runs."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.blocks import Block
from dpsql.sql.output_names import output_name
from dpsql.sql.outputs import Output, infer_element_type, rewrite_integer_division, infer_type


def unify_outputs(left: tuple[Output, ...] | None, right: tuple[Output, ...] | None) -> tuple[Output, ...] | None:
    if left is None or right is None or len(left) != len(right):
        return None
    return tuple(Output(a.name, a.type if a.type == b.type else None) for a, b in zip(left, right, strict=True))


def annotate_outputs(select: exp.Select, sources: list[exp.Expr], blocks: list[Block]) -> tuple[Output, ...] | None:
    """Tell the columns of a post-processing block their types, give `/` of whole numbers PostgreSQL's meaning, and
    say what the block gives out. A name has a type if every source that could mean it says so."""
    source_types = [{o.name.lower(): o.type for o in block.outputs or ()} for block in blocks]
    by_alias = {source.alias_or_name.lower(): types for source, types in zip(sources, source_types, strict=True)}
    for column in [node for node in select.walk() if isinstance(node, exp.Column)]:
        name = column.name.lower()
        candidates = [types for types in source_types if name in types]
        if column.table:
            candidates = [by_alias.get(column.table.lower(), {})]
        possible_types = {types.get(name) for types in candidates}
        column.meta["type"] = possible_types.pop() if len(possible_types) == 1 else None
    for node in [node for node in select.walk() if isinstance(node, exp.Div)]:
        divided = rewrite_integer_division(node)
        if divided is not node:
            node.replace(divided)
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
            outputs.append(Output(item.alias_or_name, infer_type(item.unalias())))
    return tuple(outputs)


def infer_source_outputs(source: exp.Expr) -> tuple[Output, ...] | None:
    """What VALUES, unnest or a series gives out; None where that is not written in it."""
    if isinstance(source, exp.Values):
        return _infer_values_outputs(source) if source.expressions else None
    expression = source.expressions[0] if isinstance(source, exp.Unnest) and len(source.expressions) == 1 else source.this
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
