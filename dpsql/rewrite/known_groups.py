"""Groups of which nothing is asked, and which the schema lists: who asks for them needs no release.

    SELECT DISTINCT sex FROM patients  (values: [f, m, x])   →  f, m, x: no row is read, and nothing is charged
"""

from __future__ import annotations

from itertools import chain, product

from dpsql.plan.nodes import Gather, ListedRows
from dpsql.schema.domain import Scalar

GroupRows = tuple[tuple[Scalar | None, ...], ...]


def is_list_only(gather: Gather) -> bool:
    """Whether the answer is its list of groups: no cell is asked of them, and none of them is selected.

    Privacy: the list is made of the schema, the statement, public rows and released values (`Listed`), and every group
    of it is in the answer whether rows have it or not. So the answer is the same for all neighbors.
    """
    return not gather.all_parts


def list_declared_groups(gather: Gather) -> tuple[tuple[str, ...], GroupRows] | None:
    """The names of the keys and the groups, where schema and statement alone tell them."""
    if not is_list_only(gather):
        return None
    if gather.listed is None or not gather.keys:
        return (), ((),)
    rows = [factor.rows for factor in gather.listed.factors if isinstance(factor, ListedRows) and factor.where is None]
    if len(rows) != len(gather.listed.factors):
        return None
    names = tuple(key.name for key in gather.listed.keys)
    return names, tuple(tuple(chain.from_iterable(row)) for row in product(*rows))
