"""What a post-processing block gives out: names, and types as far as they are known before it runs."""

from __future__ import annotations

from sqlglot import exp

from dpsql.sql.blocks import Block
from dpsql.sql.outputs import Output, integer_division, type_of


def same_outputs(left: tuple[Output, ...] | None, right: tuple[Output, ...] | None) -> tuple[Output, ...] | None:
    if left is None or right is None or len(left) != len(right):
        return None
    return tuple(Output(a.name, a.type if a.type == b.type else None) for a, b in zip(left, right, strict=True))


def typed_outputs(select: exp.Select, sources: list[exp.Expr], blocks: list[Block]) -> tuple[Output, ...] | None:
    """Tell the columns of a post-processing block their types, give `/` of whole numbers PostgreSQL's meaning, and
    say what the block gives out. A name has a type if every source that could mean it says so."""
    known = [{o.name.lower(): o.type for o in block.outputs or ()} for block in blocks]
    by_alias = {source.alias_or_name.lower(): types for source, types in zip(sources, known, strict=True)}
    for column in [node for node in select.walk() if isinstance(node, exp.Column)]:
        name = column.name.lower()
        having = [types for types in known if name in types]
        if column.table:
            having = [by_alias.get(column.table.lower(), {})]
        found = {types.get(name) for types in having}
        column.meta["type"] = found.pop() if len(found) == 1 else None
    for node in [node for node in select.walk() if isinstance(node, exp.Div)]:
        divided = integer_division(node)
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
            if any(block.outputs is None for block in chosen) or item.args.get("except_") or item.args.get("replace"):
                return None
            outputs += [output for block in chosen for output in block.outputs or ()]
        else:
            outputs.append(Output(item.alias_or_name, type_of(item.unalias())))
    return tuple(outputs)


def values_outputs(source: exp.Expr) -> tuple[Output, ...] | None:
    if not isinstance(source, exp.Values) or not source.expressions:
        return None
    alias = source.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []
    rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in source.expressions]
    outputs: list[Output] = []
    for place in range(len(rows[0])):
        types = {type_of(row[place]) for row in rows if place < len(row) and not isinstance(row[place], exp.Null)}
        name = names[place] if place < len(names) else f"col{place}"
        outputs.append(Output(name, types.pop() if len(types) == 1 else None))
    return tuple(outputs)
