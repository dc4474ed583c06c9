"""Short statements of a fixed form: on rows at the far end they reach their claims nearly exactly.

Random statements wander; these go straight to the constants of the proof, so that one that is off by a step is seen.
"""

from __future__ import annotations

from dpsql.schema.literals import show_number
from dpsql.schema.model import OwnUnit, RowUnit
from dpsql.verify.draws import Draws
from dpsql.verify.expressions import quoted
from dpsql.verify.worlds import Laid, World

PLAIN = (
    "COUNT(*)", "SUM({n})", "AVG({n})", "COUNT({n})", "COUNT(*), SUM({n})", "COUNT(*), AVG({n})", "VAR_POP({n})",
    "STDDEV({n}), COUNT(*)", "CORR({n}, {m})", "COVAR_POP({n}, {n})", "SUM(DISTINCT {n})", "COUNT(DISTINCT {t})",
    "BOOL_OR({n} > 0)", "MEDIAN({n})", "MAX({n})",
    "BETA_POSTERIOR({n} > 0)", "NORMAL_POSTERIOR({n})", "DIRICHLET_POSTERIOR({t})",
)  # fmt: skip

BEST = (
    "PRIVATE_ARGMAX({t}, {n})", "PRIVATE_TOP_K({t}, COUNT(*), 2)", "PRIVATE_ARGMAX({t} = 'own0', COUNT(*))",
    "PRIVATE_ARGMAX({t} = 'own0', SUM({n}))", "PRIVATE_TOP_K({t} = 'own0', SUM({n} - {m}), 2)",
)  # fmt: skip

DRAWN = ("POSTERIOR_SAMPLE({n} > 0)", "POSTERIOR_SAMPLE({n} > {m}, draws => 3, truncate => 0.2)",
         "POSTERIOR_SAMPLE({t} = 'own0')")  # fmt: skip

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
    makers = (plain, plain, bounded, picking, blocked, synthetic, fitted, best, drawn, central)
    return draws.choice(makers)(world, draws)


def plain(world: World, draws: Draws) -> str:
    """A column summed as it is, alone or with its count, in one group or by a key."""
    return _alone(PLAIN, world, draws)


def best(world: World, draws: Draws) -> str:
    """The best of values that are listed, or of those that are selected first."""
    return _alone(BEST, world, draws)


def drawn(world: World, draws: Draws) -> str:
    """Draws from a posterior."""
    return _alone(DRAWN, world, draws)


def _alone(asked: tuple[str, ...], world: World, draws: Draws) -> str:
    laid = draws.choice(world.private)
    one = draws.choice(asked).format(n=_number(laid, draws), m=_number(laid, draws), t=_text(laid, draws))
    key = draws.choice((None, None, _text(laid, draws), _listed(laid)))
    table = quoted(laid.name)
    return f"SELECT {one} FROM {table}" if key is None else f"SELECT {key}, {one} FROM {table} GROUP BY {key}"


def central(world: World, draws: Draws) -> str:
    """A median by its local sensitivity, of one value for each unit: of its only row, or of all of its rows."""
    by = f"WITH DIFFERENTIAL_PRIVACY OPTIONS (mechanism = '{draws.choice(('smooth', 'ptr'))}')"
    single = [laid for laid in world.private if laid.single or isinstance(laid.table.unit, RowUnit)]
    laid = draws.choice(single or world.private)
    number, table, unit = _number(laid, draws), quoted(laid.name), world.unit_column(laid)
    if single:
        key = draws.choice((None, _listed(laid), f"{number} > 0"))
        return f"SELECT {by} MEDIAN({number}) FROM {table}" + ("" if key is None else f" GROUP BY {key}")
    if unit is None:
        return bounded(world, draws)
    value = draws.choice(("AVG({n})", "MAX({n})", "MIN({n})")).format(n=number)
    rows = f"SELECT {value} AS v, COUNT(*) > 2 AS k FROM {table} GROUP BY {quoted(unit)}"
    return f"SELECT {by} MEDIAN(v) FROM ({rows}) AS t" + draws.choice(("", " GROUP BY k"))


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
    fitting = _fitting(laid, draws) if draws.chance(0.5) else None
    written = fitting or blockwise(_number(laid, draws), _number(laid, draws), _text(laid, draws), draws)
    where = f" FILTER (WHERE {_number(laid, draws)} > 0)" if draws.chance(0.2) else ""
    beside = draws.choice(("", "", ", COUNT(*)"))
    key = draws.choice((None, None, _text(laid, draws), _listed(laid), f"{_number(laid, draws)} > 0"))
    by = "" if key is None else f" GROUP BY {key}"
    return f"SELECT {written}{where} AS b{beside} FROM {quoted(laid.name)}{by}"


def synthetic(world: World, draws: Draws) -> str:
    """A synthetic table of columns whose ranges the schema declares."""
    laid = draws.choice(world.private)
    one, other = _number(laid, draws), _number(laid, draws)
    options = draws.choice(("bins = 2", "bins = 5, method = 'mwem', rounds = 2", "method = 'independent'",
                            "bins = 4, method = 'marginals'"))  # fmt: skip
    rows = f"SELECT {one} AS a, {_listed(laid)} AS b, {other} AS c FROM {quoted(laid.name)}"
    where = draws.choice(("", "", f" WHERE {one} > 0"))
    return f"CREATE OR REPLACE SYNTHETIC TABLE made AS {rows}{where} WITH ({options})"


def fitted(world: World, draws: Draws) -> str:
    """A model of such columns."""
    laid = draws.choice(world.private)
    one, other = _number(laid, draws), _number(laid, draws)
    table, where = quoted(laid.name), draws.choice(("", "", f" WHERE {one} > 0"))
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


def _fitting(laid: Laid, draws: Draws) -> str | None:
    """A statistic whose values lie within the range, so that a block may go all the way."""
    blocks, combine = draws.choice((2, 3, 7)), draws.choice(("", ", combine => 'median'"))
    if draws.chance(0.4):
        return f"BLOCKWISE(count(*), 0, 30, blocks => {blocks}{combine})"
    ranges = {column.name: [show_number(end) for end in column.declared.domain.bounds] for column in laid.columns
              if column.far}  # fmt: skip
    known = [name for name, (low, high) in ranges.items() if low != high]
    if not known:
        return None
    name, statistic = draws.choice(known), draws.choice(("avg", "median", "max", "min"))
    low, high = ranges[name]
    return f"BLOCKWISE({statistic}({quoted(name)}), {low}, {high}, blocks => {blocks}{combine})"


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
