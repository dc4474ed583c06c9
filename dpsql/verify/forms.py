"""Short statements of a fixed form: on rows at the far end they reach their claims nearly exactly.

Random statements wander; these go straight to the constants of the proof, so that one that is off by a step is seen.
"""

from __future__ import annotations

from dpsql.schema.model import OwnUnit
from dpsql.verify.draws import Draws
from dpsql.verify.expressions import quoted
from dpsql.verify.worlds import Laid, World

PLAIN = (
    "COUNT(*)", "SUM({n})", "AVG({n})", "COUNT({n})", "COUNT(*), SUM({n})", "COUNT(*), AVG({n})", "VAR_POP({n})",
    "STDDEV({n}), COUNT(*)", "CORR({n}, {m})", "COVAR_POP({n}, {n})", "SUM(DISTINCT {n})", "COUNT(DISTINCT {t})",
    "BOOL_OR({n} > 0)", "MEDIAN({n})", "MAX({n})", "PRIVATE_ARGMAX({t}, {n})", "PRIVATE_TOP_K({t}, COUNT(*), 2)",
    "PRIVATE_ARGMAX({t} = 'own0', COUNT(*))", "POSTERIOR_SAMPLE({n} > 0)",
    "BETA_POSTERIOR({n} > 0)", "NORMAL_POSTERIOR({n})", "DIRICHLET_POSTERIOR({t})",
)  # fmt: skip

BOUNDED = (
    "SELECT {a} FROM {table}",
    "SELECT {a}, {b} FROM {table}",
    "SELECT {key}, {a}, {b} FROM {table} GROUP BY {key}",
    "SELECT {key}, {a}, COUNT(*), SUM({n}) FILTER (WHERE {n} > 0) FROM {table} GROUP BY {key}",
    "SELECT {key}, {a} FILTER (WHERE {n} > 0) FROM {table} WHERE {n} > 0 OR {t} IS NULL GROUP BY {key}",
)
"""With bounds per group: `a` and `b` are aggregates with bounds."""

PICKS = (
    "ARG_MAX({t}, {n})", "ARG_MIN({t}, {n})", "MAX_BY({n}, {t})", "MIN_BY({n}, {m}) FILTER (WHERE {n} > 0)",
    "MODE({t})", "MODE({n}) FILTER (WHERE {n} > 0)", "ANY_VALUE({t})", "ANY_VALUE({n} > 0)",
    "FIRST({t} ORDER BY {n} DESC)", "LAST({n} ORDER BY {t}, {m})", "MEDIAN({n})", "VAR_POP({n})", "VAR_SAMP({n})",
    "STDDEV({n})", "STDDEV_POP({n})",
)  # fmt: skip
"""Of each unit's rows, to be aggregated again."""


STATISTICS = (
    "mad({n})", "skewness({n})", "kurtosis({n})", "kurtosis_pop({n})", "entropy({t})", "entropy({n})", "median({n})",
    "quantile_disc({n}, 0.9)", "quantile_cont({n}, 0.3)", "min({n})", "max({n})", "avg({n})", "sum({n})", "stddev({n})",
    "var_pop({n})", "count(*)", "count(DISTINCT {t})", "max({n}) - min({m})", "mad({n}) / median({m})",
    "ln(stddev({n}))", "sqrt(avg({n}) - 1)", "power(max({n}), 9) * 1e300", "count({t}) FILTER (WHERE {n} > 0)",
)  # fmt: skip
"""Of blocks of units; some of them are NULL, NaN or infinite for many rows."""


def random_form(world: World, draws: Draws) -> str:
    if world.schema.views and draws.chance(0.2):
        return f"SELECT COUNT(*) FROM {quoted(draws.choice(world.schema.views).name)}"
    return draws.choice((plain, plain, bounded, picking, blocked, made))(world, draws)


def plain(world: World, draws: Draws) -> str:
    """A column summed as it is, alone or with its count, in one group or by a key."""
    laid = draws.choice(world.private)
    asked = draws.choice(PLAIN).format(n=_number(laid, draws), m=_number(laid, draws), t=_text(laid, draws))
    key = draws.choice((None, None, _text(laid, draws), _listed(laid)))
    table = quoted(laid.name)
    return f"SELECT {asked} FROM {table}" if key is None else f"SELECT {key}, {asked} FROM {table} GROUP BY {key}"


def bounded(world: World, draws: Draws) -> str:
    """A block with bounds per group, in one group, in listed groups or in selected ones."""
    laid = draws.choice(world.private)
    number, text = _number(laid, draws), _text(laid, draws)

    def aggregate() -> str:
        low, high = draws.choice((("0", "1"), ("-2", "5"), ("-7", "-3"), ("3", "3"), ("0", "1000000")))
        other = _number(laid, draws)
        what = draws.choice(("COUNT(*", f"SUM({other}", f"AVG({number}", f"COUNT({number}"))
        return f"{what}, contribution_bounds_per_group => ({low}, {high}))"

    key = draws.choice((text, _listed(laid), f"{number} > 0"))
    form = draws.choice(BOUNDED)
    return form.format(a=aggregate(), b=aggregate(), n=number, t=text, table=quoted(laid.name), key=key)


def picking(world: World, draws: Draws) -> str:
    """Picks and spreads of each unit's rows, as keys and as what is summed, counted and compared."""
    able = [laid for laid in world.private if world.unit_column(laid) is not None]
    if not able:
        return bounded(world, draws)
    laid = draws.choice([laid for laid in able if not isinstance(laid.table.unit, OwnUnit)] or able)
    number, other, text = _number(laid, draws), _number(laid, draws), _text(laid, draws)
    pick = draws.choice(PICKS).format(t=text, n=number, m=other)
    unit = quoted(world.unit_column(laid) or "")
    keys = draws.choice((unit, f"{unit}, {text}", f"{unit}, {number} > 0"))
    inner = f"SELECT {pick} AS x, COUNT(*) AS n FROM {quoted(laid.name)} GROUP BY {keys}"
    asked = draws.choice(("COUNT(x)", "SUM(n)", "COUNT(*) FILTER (WHERE x IS NOT NULL)", "COUNT(DISTINCT x)", "AVG(n)"))
    return f"SELECT {asked} FROM ({inner}) AS t{draws.choice(('', ' GROUP BY x', ' GROUP BY x IS NULL'))}"


def blocked(world: World, draws: Draws) -> str:
    """A statistic of blocks, few of them or many, in one group or by a key, alone or beside a count."""
    laid = draws.choice(world.private)
    written = blockwise(_number(laid, draws), _number(laid, draws), _text(laid, draws), draws)
    where = f" FILTER (WHERE {_number(laid, draws)} > 0)" if draws.chance(0.2) else ""
    beside = draws.choice(("", "", ", COUNT(*)"))
    key = draws.choice((None, None, _text(laid, draws), _listed(laid), f"{_number(laid, draws)} > 0"))
    by = "" if key is None else f" GROUP BY {key}"
    return f"SELECT {written}{where} AS b{beside} FROM {quoted(laid.name)}{by}"


def made(world: World, draws: Draws) -> str:
    """A synthetic table or a model of columns whose ranges the schema declares."""
    laid = draws.choice(world.private)
    one, other = _number(laid, draws), _number(laid, draws)
    table, where = quoted(laid.name), draws.choice(("", "", f" WHERE {one} > 0"))
    if draws.chance(0.5):
        options = draws.choice(("bins = 2", "bins = 5, method = 'mwem', rounds = 2", "method = 'independent'",
                                "bins = 4, method = 'marginals'"))  # fmt: skip
        columns = f"{one} AS a, {_listed(laid)} AS b, {other} AS c"
        return f"CREATE OR REPLACE SYNTHETIC TABLE made AS SELECT {columns} FROM {table}{where} WITH ({options})"
    family, label, method = draws.choice((
        ("LINEAR", one, "bins = 8"), ("LOGISTIC", f"({one} > 0)", "method = 'output'"),
        ("LOGISTIC", f"({one} > 0)", "method = 'objective'"), ("LOGISTIC", f"({one} > 0)", "method = 'output', n = 10"),
    ))  # fmt: skip
    rows = f"ON {label} AS y USING {other} AS f, {_listed(laid)} AS g FROM {table}{where}"
    return f"CREATE OR REPLACE MODEL fitted AS {family} REGRESSION {rows} WITH ({method}, lambda = 0.1)"


def blockwise(number: str, other: str, text: str, draws: Draws) -> str:
    statistic = draws.choice(STATISTICS).format(n=number, m=other, t=text)
    low, high = draws.choice((("0", "1"), ("-2", "5"), ("-1000000", "1000000"), ("0.1", "0.3"), ("-7", "-3")))
    combine = ", combine => 'median'" if draws.chance(0.3) else ""
    return f"BLOCKWISE({statistic}, {low}, {high}, blocks => {draws.choice((2, 2, 3, 7, 100))}{combine})"


def _number(laid: Laid, draws: Draws) -> str:
    """A number with bounds, one that is stored as such if there is one."""
    far = [column.name for column in laid.columns if column.far]
    known = far or [c.name for c in laid.columns if c.declared.type.is_number and c.declared.domain.bounded]
    return quoted(draws.choice(known)) if known else "1"


def _text(laid: Laid, draws: Draws) -> str:
    free = [column.name for column in laid.columns if column.own] or [laid.columns[-1].name]
    return quoted(draws.choice(free))


def _listed(laid: Laid) -> str:
    """A key of public groups."""
    text = next((column.name for column in laid.columns if column.own), None)
    return "1 = 1" if text is None else f"{quoted(text)} IN ('own0', 'own1')"
