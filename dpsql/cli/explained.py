"""`dpsql explain --json`: the fields of an explanation for tools; docs/cli.md describes them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import dpsql


def explanation_to_json(explained: dpsql.Explanation) -> dict[str, Any]:
    """Figures are the nearest floats; the ledger charges the exact ones."""
    outputs = zip(explained.outputs, explained.expected, strict=True)
    paid = explained.paid or (False,) * len(explained.releases)
    sources = explained.sources or (None,) * len(explained.releases)
    return {
        "epsilon": float(explained.epsilon),
        "delta": float(explained.delta),
        "undecided": explained.undecided,
        "outputs": [{"name": name, "type": kind, "stderr": error} for (name, kind), error in outputs],
        "offers": [
            {
                "noise": offer.noise,
                "chosen": offer.chosen,
                "epsilon": float(offer.epsilon),
                "rho": float(offer.rho),
                "price": {"rho": float(offer.price.rho), "delta": float(offer.price.delta)},
                "stderr": list(offer.expected),
                "more": offer.more,
                "paid": offer.paid,
                "refused": offer.refused,
                "reason": offer.reason,
            }
            for offer in explained.offers
        ],
        "releases": [
            {
                "sql": release.sql,
                "engine": release.engine,
                "holes": list(release.holes),
                "keys": list(release.keys),
                "columns": [{"name": column.name, "grid": float(column.grid)} for column in release.columns],
                "bundles": [
                    {
                        "columns": list(bundle.columns),
                        "mechanism": bundle.mechanism,
                        "scale": float(bundle.scale),
                        "l1": bundle.l1,
                        "l2": bundle.l2,
                        "linf": bundle.linf,
                        "stderr": bundle.stderr,
                    }
                    for bundle in release.bundles
                ],
                "selection": release.selection,
                "groups": release.groups,
                "units_to_appear": release.units_to_appear,
                "epsilon": _to_float(release.epsilon),
                "rho": float(release.rho),
                "delta": float(release.delta),
                "paid": has,
                "source": source,
            }
            for release, has, source in zip(explained.releases, paid, sources, strict=True)
        ],
        "post_sql": explained.post_sql,
        "notices": list(explained.notices),
    }


def _to_float(number: Fraction | None) -> float | None:
    return None if number is None else float(number)
