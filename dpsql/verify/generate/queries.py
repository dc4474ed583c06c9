"""Random statements from the grammar that is answered: what is asked of the groups, and of the answer afterwards."""

from __future__ import annotations

from dpsql.schema.literals import show_number
from dpsql.schema.model import Neighbors, OwnUnit, RowUnit
from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.expressions import (
    ExpressionGenerator,
    choose_number_column,
    choose_text_column,
    listed_key,
    quote_name,
)
from dpsql.verify.generate.from_clauses import FromClause, FromClauseGenerator
from dpsql.verify.generate.join_queries import has_composite_keys, random_key_query, random_public_query
from dpsql.verify.generate.schemas import GeneratedSchema, StoredTable

# Short statements of a fixed form: on rows at the far end they reach their claims nearly exactly.
#
# Random statements wander; these go straight to the constants of the proof, so that one that is off by a step is seen.

AGGREGATES = (
    "COUNT(*)", "SUM({n})", "AVG({n})", "COUNT({n})", "COUNT(*), SUM({n})", "COUNT(*), AVG({n})", "VAR_POP({n})",
    "STDDEV({n}), COUNT(*)", "CORR({n}, {m})", "COVAR_POP({n}, {n})", "SUM(DISTINCT {n})", "COUNT(DISTINCT {t})",
    "BOOL_OR({n} > 0)", "MEDIAN({n})", "MAX({n})",
    "SUM({n}), SUM({n} + 3), AVG(2 * {n})", "SUM({n} - 7), SUM(1 - {n}), COUNT(*)", "SUM({n}), SUM(-2 * {n})",
    "VAR_POP({n}), VAR_POP({n} - 5)", "STDDEV({n} / {m}), COUNT(*)", "VAR_POP({n} / {m}), AVG({n} / {m})",
    "BETA_POSTERIOR({n} > 0)", "NORMAL_POSTERIOR({n})", "DIRICHLET_POSTERIOR({t})",
)  # fmt: skip

PRIVATE_SELECTIONS = (
    "PRIVATE_ARGMAX({t}, {n})", "PRIVATE_TOP_K({t}, COUNT(*), 2)", "PRIVATE_ARGMAX({t} = 'own0', COUNT(*))",
    "PRIVATE_ARGMAX({t} = 'own0', SUM({n}))", "PRIVATE_TOP_K({t} = 'own0', SUM({n} - {m}), 2)",
)  # fmt: skip

POSTERIOR_SAMPLES = ("POSTERIOR_SAMPLE({n} > 0)", "POSTERIOR_SAMPLE({n} > {m}, draws => 3, truncate => 0.2)",
         "POSTERIOR_SAMPLE({t} = 'own0')")  # fmt: skip

BOUNDED_QUERIES = (
    "SELECT {a} FROM {table}",
    "SELECT {a}, {b} FROM {table}",
    "SELECT {key}, {a}, {b} FROM {table} GROUP BY {key}",
    "SELECT {key}, {a}, COUNT(*), SUM({n}) FILTER (WHERE {n} > 0) FROM {table} GROUP BY {key}",
    "SELECT {key}, {a} FILTER (WHERE {n} > 0) FROM {table} WHERE {n} > 0 OR {t} IS NULL GROUP BY {key}",
)
"""With bounds per group: `a` and `b` are aggregates with bounds."""

UNIT_AGGREGATES = (
    "ARG_MAX({t}, {n})", "ARG_MIN({t}, {n})", "MAX_BY({n}, {t})", "MIN_BY({n}, {m}) FILTER (WHERE {n} > 0)",
    "MODE({t})", "MODE({n}) FILTER (WHERE {n} > 0)", "ANY_VALUE({t})", "ANY_VALUE({n} > 0)",
    "FIRST({t} ORDER BY {n} DESC)", "LAST({n} ORDER BY {t}, {m})", "MEDIAN({n})", "VAR_POP({n})", "VAR_SAMP({n})",
    "STDDEV({n})", "STDDEV_POP({n})",
)  # fmt: skip
"""Of each unit's rows, to be aggregated again."""


BLOCK_STATISTICS = (
    "mad({n})", "skewness({n})", "kurtosis({n})", "kurtosis_pop({n})", "entropy({t})", "entropy({n})", "median({n})",
    "quantile_disc({n}, 0.9)", "quantile_cont({n}, 0.3)", "min({n})", "max({n})", "avg({n})", "sum({n})", "stddev({n})",
    "var_pop({n})", "count(*)", "count(DISTINCT {t})", "max({n}) - min({m})", "mad({n}) / median({m})",
    "ln(stddev({n}))", "sqrt(avg({n}) - 1)", "power(max({n}), 9) * 1e300", "count({t}) FILTER (WHERE {n} > 0)",
)  # fmt: skip
"""Of blocks of units; some of them are NULL, NaN or infinite for many rows."""


def random_fixed_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    if generated.schema.views and choices.draw_bool(0.2):
        return f"SELECT COUNT(*) FROM {quote_name(choices.choice(generated.schema.views).name)}"
    makers = (
        random_aggregate_query,
        random_aggregate_query,
        random_bounded_query,
        random_unit_query,
        random_blockwise_query,
        random_synthetic_table,
        random_model,
        random_selection_query,
        random_posterior_query,
        random_median_query,
    )
    return choices.choice(makers)(generated, choices)


def random_join_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """A short statement over public rows, or along keys."""
    makers = [random_public_query] * 3 + [random_key_query] * (5 if has_composite_keys(generated) else 2)
    return choices.choice(makers)(generated, choices) or random_aggregate_query(generated, choices)


def random_aggregate_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """A column summed as it is, alone or with its count, in one group or by a key."""
    return _single_aggregate_query(AGGREGATES, generated, choices)


def random_selection_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """The best of values that are listed, or of those that are selected first."""
    return _single_aggregate_query(PRIVATE_SELECTIONS, generated, choices)


def random_posterior_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """A query for draws from a posterior."""
    return _single_aggregate_query(POSTERIOR_SAMPLES, generated, choices)


def _single_aggregate_query(templates: tuple[str, ...], generated: GeneratedSchema, choices: ChoiceStream) -> str:
    stored = choices.choice(generated.private_tables)
    aggregate = choices.choice(templates).format(
        n=choose_number_column(stored, choices),
        m=choose_number_column(stored, choices),
        t=choose_text_column(stored, choices),
    )
    key = choices.choice((None, None, choose_text_column(stored, choices), listed_key(stored)))
    table = quote_name(stored.name)
    return (
        f"SELECT {aggregate} FROM {table}" if key is None else f"SELECT {key}, {aggregate} FROM {table} GROUP BY {key}"
    )


def random_median_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """A median by its local sensitivity, of one value for each unit: of its only row, or of all of its rows."""
    by = f"WITH DIFFERENTIAL_PRIVACY OPTIONS (mechanism = '{choices.choice(('smooth', 'ptr'))}')"
    single = [stored for stored in generated.private_tables if stored.single or isinstance(stored.table.unit, RowUnit)]
    stored = choices.choice(single or generated.private_tables)
    number, table, unit = choose_number_column(stored, choices), quote_name(stored.name), generated.unit_column(stored)
    if single:
        key = choices.choice((None, listed_key(stored), f"{number} > 0"))
        return f"SELECT {by} MEDIAN({number}) FROM {table}" + ("" if key is None else f" GROUP BY {key}")
    if unit is None:
        return random_bounded_query(generated, choices)
    value = choices.choice(("AVG({n})", "MAX({n})", "MIN({n})")).format(n=number)
    rows = f"SELECT {value} AS v, COUNT(*) > 2 AS k FROM {table} GROUP BY {quote_name(unit)}"
    return f"SELECT {by} MEDIAN(v) FROM ({rows}) AS t" + choices.choice(("", " GROUP BY k"))


def random_bounded_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """A block with bounds per group, in one group, in listed groups or in selected ones."""
    stored = choices.choice(generated.private_tables)
    number, text = choose_number_column(stored, choices), choose_text_column(stored, choices)

    def aggregate() -> str:
        low, high = choices.choice((("0", "1"), ("-2", "5"), ("-7", "-3"), ("3", "3"), ("0", "1000000")))
        other = choose_number_column(stored, choices)
        call = choices.choice(("COUNT(*", f"SUM({other}", f"AVG({number}", f"COUNT({number}"))
        return f"{call}, contribution_bounds_per_group => ({low}, {high}))"

    key = choices.choice((text, listed_key(stored), f"{number} > 0"))
    form = choices.choice(BOUNDED_QUERIES)
    return form.format(a=aggregate(), b=aggregate(), n=number, t=text, table=quote_name(stored.name), key=key)


def random_unit_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """Picks and spreads of each unit's rows, as keys and as what is summed, counted and compared."""
    able = [stored for stored in generated.private_tables if generated.unit_column(stored) is not None]
    if not able:
        return random_bounded_query(generated, choices)
    stored = choices.choice([stored for stored in able if not isinstance(stored.table.unit, OwnUnit)] or able)
    number, other, text = (
        choose_number_column(stored, choices),
        choose_number_column(stored, choices),
        choose_text_column(stored, choices),
    )
    pick = choices.choice(UNIT_AGGREGATES).format(t=text, n=number, m=other)
    unit = quote_name(generated.unit_column(stored) or "")
    keys = choices.choice((unit, f"{unit}, {text}", f"{unit}, {number} > 0"))
    inner = f"SELECT {pick} AS x, COUNT(*) AS n FROM {quote_name(stored.name)} GROUP BY {keys}"
    aggregate = choices.choice(
        ("COUNT(x)", "SUM(n)", "COUNT(*) FILTER (WHERE x IS NOT NULL)", "COUNT(DISTINCT x)", "AVG(n)")
    )
    return f"SELECT {aggregate} FROM ({inner}) AS t{choices.choice(('', ' GROUP BY x', ' GROUP BY x IS NULL'))}"


def random_blockwise_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """A statistic of blocks, few of them or many, in one group or by a key, alone or beside a count."""
    stored = choices.choice(generated.private_tables)
    fitting = _blockwise_within_range(stored, choices) if choices.draw_bool(0.5) else None
    written = fitting or random_blockwise_call(
        choose_number_column(stored, choices),
        choose_number_column(stored, choices),
        choose_text_column(stored, choices),
        choices,
    )
    where = f" FILTER (WHERE {choose_number_column(stored, choices)} > 0)" if choices.draw_bool(0.2) else ""
    count_column = choices.choice(("", "", ", COUNT(*)"))
    key = choices.choice(
        (
            None,
            None,
            choose_text_column(stored, choices),
            listed_key(stored),
            f"{choose_number_column(stored, choices)} > 0",
        )
    )
    by = "" if key is None else f" GROUP BY {key}"
    return f"SELECT {written}{where} AS b{count_column} FROM {quote_name(stored.name)}{by}"


def random_synthetic_table(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """A synthetic table of columns whose ranges the schema declares."""
    stored = choices.choice(generated.private_tables)
    first, second = choose_number_column(stored, choices), choose_number_column(stored, choices)
    options = choices.choice(("bins = 2", "bins = 5, method = 'mwem', rounds = 2", "method = 'independent'",
                            "bins = 4, method = 'marginals'"))  # fmt: skip
    rows = f"SELECT {first} AS a, {listed_key(stored)} AS b, {second} AS c FROM {quote_name(stored.name)}"
    where = choices.choice(("", "", f" WHERE {first} > 0"))
    return f"CREATE OR REPLACE SYNTHETIC TABLE made AS {rows}{where} WITH ({options})"


def random_model(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    """A CREATE MODEL over such columns."""
    stored = choices.choice(generated.private_tables)
    first, second = choose_number_column(stored, choices), choose_number_column(stored, choices)
    table, where = quote_name(stored.name), choices.choice(("", "", f" WHERE {first} > 0"))
    family, label, method = choices.choice(
        (
            ("LINEAR", first, "bins = 8"),
            ("LOGISTIC", f"({first} > 0)", "method = 'output'"),
            ("LOGISTIC", f"({first} > 0)", "method = 'objective'"),
            ("LOGISTIC", f"({first} > 0)", "method = 'output', n = 10"),
        )
    )
    rows = f"ON {label} AS y USING {second} AS f, {listed_key(stored)} AS g FROM {table}{where}"
    return f"CREATE OR REPLACE MODEL fitted AS {family} REGRESSION {rows} WITH ({method}, lambda = 0.1)"


def random_blockwise_call(number: str, other: str, text: str, choices: ChoiceStream) -> str:
    statistic = choices.choice(BLOCK_STATISTICS).format(n=number, m=other, t=text)
    low, high = choices.choice((("0", "1"), ("-2", "5"), ("-1000000", "1000000"), ("0.1", "0.3"), ("-7", "-3")))
    combine = ", combine => 'median'" if choices.draw_bool(0.3) else ""
    return f"BLOCKWISE({statistic}, {low}, {high}, blocks => {choices.choice((2, 2, 3, 7, 100))}{combine})"


def _blockwise_within_range(stored: StoredTable, choices: ChoiceStream) -> str | None:
    """A statistic whose values lie within the range, so that a block may go all the way."""
    blocks, combine = choices.choice((2, 3, 7)), choices.choice(("", ", combine => 'median'"))
    if choices.draw_bool(0.4):
        return f"BLOCKWISE(count(*), 0, 30, blocks => {blocks}{combine})"
    ranges = {column.name: [show_number(end) for end in column.declared.domain.bounds] for column in stored.columns
              if column.far}  # fmt: skip
    candidates = [name for name, (low, high) in ranges.items() if low != high]
    if not candidates:
        return None
    name, statistic = choices.choice(candidates), choices.choice(("avg", "median", "max", "min"))
    low, high = ranges[name]
    return f"BLOCKWISE({statistic}({quote_name(name)}), {low}, {high}, blocks => {blocks}{combine})"


SUM_FUNCTIONS = ("SUM", "SUM", "AVG", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV")
PAIR_FUNCTIONS = (
    "CORR",
    "COVAR_POP",
    "COVAR_SAMP",
    "REGR_SLOPE",
    "REGR_INTERCEPT",
    "REGR_R2",
    "REGR_COUNT",
    "REGR_AVGX",
)
QUANTILE_FRACTIONS = ("0.5", "0.25", "0.9", "0.01", "[0.1, 0.5, 0.9]")
BOUNDS_PER_GROUP = "contribution_bounds_per_group"


def random_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    # Few schemas have one row for each unit, whose number is public, and declared answers; the rest are refused.
    alone = generated.schema.privacy.neighbors is Neighbors.CHANGE_ONE and len(generated.private_tables) == 1
    if alone and choices.draw_bool(0.5 if _can_randomize(generated.private_tables[0]) else 0.02):
        return _randomized_response_query(generated, choices)
    if choices.draw_bool(0.5):
        return random_fixed_query(generated, choices)
    if choices.draw_bool(0.3):
        return random_join_query(generated, choices)
    return _QueryGenerator(generated, choices).generate_query()


def _can_randomize(stored: StoredTable) -> bool:
    return bool(_enumerated_columns(stored)) and (stored.single or isinstance(stored.table.unit, RowUnit))


def _enumerated_columns(stored: StoredTable) -> list[str]:
    """Columns with declared values."""
    return [column.declared.name for column in stored.columns if column.declared.domain.values is not None]


def _randomized_response_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    (stored,) = generated.private_tables
    column = choices.choice(_enumerated_columns(stored) or [column.declared.name for column in stored.columns])
    block = f'SELECT RANDOMIZED("{column}", {choices.choice(("0.1", "1", "3"))}) AS a0 FROM "{stored.name}"'
    return block if choices.draw_bool(0.7) else f"SELECT a0, COUNT(*) FROM ({block}) AS t GROUP BY a0"


class _QueryGenerator:
    def __init__(self, generated: GeneratedSchema, choices: ChoiceStream) -> None:
        self._generated, self._choices = generated, choices
        sources = FromClauseGenerator(choices, generated)
        self._source: FromClause = sources.random_from()
        self._write: ExpressionGenerator = sources.expressions_over(self._source)

    def generate_query(self) -> str:
        block = self._random_block()
        if not self._choices.draw_bool(0.1):
            return block
        return self._choices.choice((
            f"SELECT COUNT(*), MAX(a0) FROM ({block}) AS t",
            f"WITH t AS ({block}) SELECT t.a0 FROM t JOIN t AS u ON TRUE",
            f"SELECT a0 FROM ({block}) AS t UNION ALL SELECT 0", f"{block} ORDER BY a0 DESC LIMIT 2",
        ))  # fmt: skip

    def _random_block(self) -> str:
        choices, source = self._choices, self._source
        if source.outer and source.unit is not None and choices.draw_bool(0.2):
            # A unit's rows of one side lie in several groups of the other's columns: some have no match.
            key = choices.choice(source.outer).sql
            return f"SELECT COUNT(DISTINCT {source.unit}) AS a0 FROM {source.sql} GROUP BY {key} IS NULL"
        keys = list(dict.fromkeys(self._write.random_key() for _ in range(choices.choice((0, 0, 1, 1, 1, 2, 2, 3)))))
        if choices.draw_bool(0.06) and keys:
            return f"SELECT DISTINCT {keys[0]} AS a0 FROM {source.sql}"
        aggregates = [self._random_aggregate() for _ in range(choices.choice((1, 1, 2, 3)))]
        items = ", ".join([*keys, *(f"{aggregate} AS a{index}" for index, aggregate in enumerate(aggregates))])
        where = f" WHERE {self._write.random_condition(2)}" if choices.draw_bool(0.4) else ""
        if source.outer and choices.draw_bool(0.2):  # those that meet none
            where = f" WHERE {choices.choice(source.outer).sql} IS NULL"
        having = " HAVING COUNT(*) > 0" if choices.draw_bool(0.05) else ""
        return f"SELECT {items} FROM {source.sql}{where}{self._group_by_clause(keys)}{having}"

    def _group_by_clause(self, keys: list[str]) -> str:
        if not keys:
            return ""
        listed = ", ".join(keys)
        if not self._choices.draw_bool(0.25):
            return f" GROUP BY {listed}"
        return " GROUP BY " + self._choices.choice((
            f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ())",
            f"GROUPING SETS ({', '.join(f'({key})' for key in keys)})", f"GROUPING SETS (({keys[0]}), ({keys[0]}), ())",
        ))  # fmt: skip

    # --- aggregates --------------------------------------------------------------------------------------------------

    def _random_aggregate(self) -> str:
        written = self._unfiltered_aggregate()
        if self._choices.draw_bool(0.2):
            return f"{written} FILTER (WHERE {self._write.random_condition(1)})"
        return written

    def _unfiltered_aggregate(self) -> str:
        choices, write, source = self._choices, self._write, self._source
        match choices.draw_below(20):
            case 0 | 1 | 2:
                return "COUNT(*)"
            case 3:
                return f"COUNT({choices.choice(source.names).sql})"
            case 4 | 5 if source.units:
                return f"COUNT(DISTINCT {choices.choice(source.units)})"
            case 6 | 7:
                return f"COUNT(DISTINCT {self._distinct_argument()})"
            case 8:
                return f"{choices.choice(('BOOL_OR', 'BOOL_AND', 'COUNT_IF'))}({write.random_condition(1)})"
            case 9:
                return f"{choices.choice(PAIR_FUNCTIONS)}({write.random_bounded()}, {write.random_bounded()})"
            case 10 | 11:
                return self._random_selection()
            case 12:
                return f"{choices.choice(('SUM', 'AVG'))}(DISTINCT {write.random_bounded()})"
            case 13:
                bounds = choices.choice(("(0, 1)", "(-2, 5)", "(-7, -3)", "(3, 3)", "(0, 1000000)"))
                return (
                    f"{choices.choice(('SUM', 'AVG', 'COUNT'))}({write.random_bounded()}, {BOUNDS_PER_GROUP} "
                    f"=> {bounds})"
                )
            case 14:
                return f"SUM({write.random_bounded()}) / COUNT(*)"
            case 15:
                return random_blockwise_call(
                    write.random_bounded(), write.random_bounded(), choices.choice(source.names).sql, choices
                )
            case _:
                return f"{choices.choice(SUM_FUNCTIONS)}({write.random_bounded()})"

    def _random_selection(self) -> str:
        """Bins, frequent values, the best ones, and draws."""
        choices, write = self._choices, self._write
        x, key, fraction = write.random_bounded(), write.random_key(), choices.choice(QUANTILE_FRACTIONS)
        return choices.choice(
            (
                f"MEDIAN({x})",
                f"QUANTILE_CONT({x}, {fraction})",
                f"QUANTILE_DISC({x}, {fraction})",
                f"MIN({x})",
                f"MAX({x})",
                f"MODE({key})",
                f"APPROX_TOP_K({key}, 2)",
                f"HISTOGRAM({key})",
                f"PRIVATE_ARGMAX({key}, COUNT(*))",
                f"PRIVATE_ARGMAX({key}, {x})",
                f"PRIVATE_TOP_K({key}, SUM({x}), 2)",
                f"POSTERIOR_SAMPLE({x} > 0)",
                f"POSTERIOR_SAMPLE({x} > 0, draws => 3, truncate => 0.2)",
                f"DIRICHLET_POSTERIOR_MEAN({key})",
                f"NORMAL_POSTERIOR_LOW({x})",
                f"BETA_POSTERIOR_MEAN({write.random_condition(1)})",
            )
        )

    def _distinct_argument(self) -> str:
        choices, names = self._choices, self._source.names
        columns = [choices.choice(names).sql for _ in range(choices.choice((1, 1, 1, 2)))]
        if choices.draw_bool(0.3):
            return self._write.random_number(2)
        return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
