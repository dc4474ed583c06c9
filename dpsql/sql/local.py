"""What a statement may ask that is no table's: the time, which becomes a literal when it is compiled."""

from __future__ import annotations

import datetime as dt

from sqlglot import exp

from dpsql.errors import Unsupported
from dpsql.sql.dialect import span_of


def with_time(tree: exp.Query, now: dt.datetime | None) -> exp.Query:
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
