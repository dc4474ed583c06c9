"""Random statements from the grammar that is answered: what is asked of the groups, and of the answer afterwards."""

from __future__ import annotations

from dpsql.schema.model import Neighbors, RowUnit
from dpsql.verify.draws import ChoiceStream
from dpsql.verify.expressions import ExpressionGenerator
from dpsql.verify.forms import random_blockwise_call, random_fixed_query
from dpsql.verify.sources import FromClause, FromClauseGenerator
from dpsql.verify.worlds import StoredTable, GeneratedSchema

SUM_FUNCTIONS = ("SUM", "SUM", "AVG", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV")
PAIR_FUNCTIONS = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT", "REGR_AVGX")
QUANTILE_FRACTIONS = ("0.5", "0.25", "0.9", "0.01", "[0.1, 0.5, 0.9]")
BOUNDS_PER_GROUP = "contribution_bounds_per_group"


def random_query(generated: GeneratedSchema, choices: ChoiceStream) -> str:
    # Few schemas have one row for each unit, whose number is public, and declared answers; the rest are refused.
    alone = generated.schema.privacy.neighbors is Neighbors.CHANGE_ONE and len(generated.private_tables) == 1
    if alone and choices.draw_bool(0.4 if _can_randomize(generated.private_tables[0]) else 0.02):
        return _randomized_response_query(generated, choices)
    return _QueryGenerator(generated, choices).generate_query() if choices.draw_bool(0.5) else random_fixed_query(generated, choices)


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
        self._world, self._draws = generated, choices
        sources = FromClauseGenerator(choices, generated)
        self._source: FromClause = sources.random_from()
        self._write: ExpressionGenerator = sources.expressions_over(self._source)

    def generate_query(self) -> str:
        block = self._random_block()
        if not self._draws.draw_bool(0.1):
            return block
        return self._draws.choice((
            f"SELECT COUNT(*), MAX(a0) FROM ({block}) AS t",
            f"WITH t AS ({block}) SELECT t.a0 FROM t JOIN t AS u ON TRUE",
            f"SELECT a0 FROM ({block}) AS t UNION ALL SELECT 0", f"{block} ORDER BY a0 DESC LIMIT 2",
        ))  # fmt: skip

    def _random_block(self) -> str:
        choices, source = self._draws, self._source
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
        having = " HAVING COUNT(*) > 0" if choices.draw_bool(0.05) else ""
        return f"SELECT {items} FROM {source.sql}{where}{self._group_by_clause(keys)}{having}"

    def _group_by_clause(self, keys: list[str]) -> str:
        if not keys:
            return ""
        listed = ", ".join(keys)
        if not self._draws.draw_bool(0.25):
            return f" GROUP BY {listed}"
        return " GROUP BY " + self._draws.choice((
            f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ())",
            f"GROUPING SETS ({', '.join(f'({key})' for key in keys)})", f"GROUPING SETS (({keys[0]}), ({keys[0]}), ())",
        ))  # fmt: skip

    # --- aggregates --------------------------------------------------------------------------------------------------

    def _random_aggregate(self) -> str:
        written = self._unfiltered_aggregate()
        if self._draws.draw_bool(0.2):
            return f"{written} FILTER (WHERE {self._write.random_condition(1)})"
        return written

    def _unfiltered_aggregate(self) -> str:
        choices, write, source = self._draws, self._write, self._source
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
                return f"{choices.choice(('SUM', 'AVG', 'COUNT'))}({write.random_bounded()}, {BOUNDS_PER_GROUP} => {bounds})"
            case 14:
                return f"SUM({write.random_bounded()}) / COUNT(*)"
            case 15:
                return random_blockwise_call(write.random_bounded(), write.random_bounded(), choices.choice(source.names).sql, choices)
            case _:
                return f"{choices.choice(SUM_FUNCTIONS)}({write.random_bounded()})"

    def _random_selection(self) -> str:
        """Bins, frequent values, the best ones, and draws."""
        choices, write = self._draws, self._write
        x, key, fraction = write.random_bounded(), write.random_key(), choices.choice(QUANTILE_FRACTIONS)
        return choices.choice((f"MEDIAN({x})", f"QUANTILE_CONT({x}, {fraction})", f"QUANTILE_DISC({x}, {fraction})",
                             f"MIN({x})", f"MAX({x})", f"MODE({key})", f"APPROX_TOP_K({key}, 2)",
                             f"HISTOGRAM({key})", f"PRIVATE_ARGMAX({key}, COUNT(*))", f"PRIVATE_ARGMAX({key}, {x})",
                             f"PRIVATE_TOP_K({key}, SUM({x}), 2)", f"POSTERIOR_SAMPLE({x} > 0)",
                             f"POSTERIOR_SAMPLE({x} > 0, draws => 3, truncate => 0.2)",
                             f"DIRICHLET_POSTERIOR_MEAN({key})", f"NORMAL_POSTERIOR_LOW({x})",
                             f"BETA_POSTERIOR_MEAN({write.random_condition(1)})"))  # fmt: skip

    def _distinct_argument(self) -> str:
        choices, names = self._draws, self._source.names
        columns = [choices.choice(names).sql for _ in range(choices.choice((1, 1, 1, 2)))]
        if choices.draw_bool(0.3):
            return self._write.random_number(2)
        return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
