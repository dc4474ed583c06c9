"""Random statements from the grammar that is answered: what is asked of the groups, and of the answer afterwards."""

from __future__ import annotations

from dpsql.schema.model import Neighbors, RowUnit
from dpsql.verify.draws import Draws
from dpsql.verify.expressions import Writer
from dpsql.verify.forms import blockwise, random_form
from dpsql.verify.sources import Source, Sources
from dpsql.verify.worlds import Laid, World

SUMMED = ("SUM", "SUM", "AVG", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV")
PAIRED = ("CORR", "COVAR_POP", "COVAR_SAMP", "REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT", "REGR_AVGX")
FRACTIONS = ("0.5", "0.25", "0.9", "0.01", "[0.1, 0.5, 0.9]")
PER_GROUP = "contribution_bounds_per_group"


def random_question(world: World, draws: Draws) -> str:
    # Few schemas have one row for each unit, whose number is public, and declared answers; the rest are refused.
    alone = world.schema.privacy.neighbors is Neighbors.CHANGE_ONE and len(world.private) == 1
    if alone and draws.chance(0.4 if _can_be_randomized(world.private[0]) else 0.02):
        return _randomized(world, draws)
    return _Question(world, draws).text() if draws.chance(0.5) else random_form(world, draws)


def _can_be_randomized(laid: Laid) -> bool:
    return bool(_answers(laid)) and (laid.single or isinstance(laid.table.unit, RowUnit))


def _answers(laid: Laid) -> list[str]:
    """Columns with declared values."""
    return [column.declared.name for column in laid.columns if column.declared.domain.values is not None]


def _randomized(world: World, draws: Draws) -> str:
    (laid,) = world.private
    column = draws.choice(_answers(laid) or [column.declared.name for column in laid.columns])
    block = f'SELECT RANDOMIZED("{column}", {draws.choice(("0.1", "1", "3"))}) AS a0 FROM "{laid.name}"'
    return block if draws.chance(0.7) else f"SELECT a0, COUNT(*) FROM ({block}) AS t GROUP BY a0"


class _Question:
    def __init__(self, world: World, draws: Draws) -> None:
        self._world, self._draws = world, draws
        sources = Sources(draws, world)
        self._source: Source = sources.source()
        self._write: Writer = sources.writer(self._source)

    def text(self) -> str:
        block = self._block()
        if not self._draws.chance(0.1):
            return block
        return self._draws.choice((
            f"SELECT COUNT(*), MAX(a0) FROM ({block}) AS t",
            f"WITH t AS ({block}) SELECT t.a0 FROM t JOIN t AS u ON TRUE",
            f"SELECT a0 FROM ({block}) AS t UNION ALL SELECT 0", f"{block} ORDER BY a0 DESC LIMIT 2",
        ))  # fmt: skip

    def _block(self) -> str:
        draws, source = self._draws, self._source
        if source.outer and source.unit is not None and draws.chance(0.2):
            # A unit's rows of one side lie in several groups of the other's columns: some have no match.
            key = draws.choice(source.outer).sql
            return f"SELECT COUNT(DISTINCT {source.unit}) AS a0 FROM {source.sql} GROUP BY {key} IS NULL"
        keys = list(dict.fromkeys(self._write.key() for _ in range(draws.choice((0, 0, 1, 1, 1, 2, 2, 3)))))
        if draws.chance(0.06) and keys:
            return f"SELECT DISTINCT {keys[0]} AS a0 FROM {source.sql}"
        asked = [self._aggregate() for _ in range(draws.choice((1, 1, 2, 3)))]
        items = ", ".join([*keys, *(f"{one} AS a{place}" for place, one in enumerate(asked))])
        where = f" WHERE {self._write.condition(2)}" if draws.chance(0.4) else ""
        having = " HAVING COUNT(*) > 0" if draws.chance(0.05) else ""
        return f"SELECT {items} FROM {source.sql}{where}{self._grouped(keys)}{having}"

    def _grouped(self, keys: list[str]) -> str:
        if not keys:
            return ""
        listed = ", ".join(keys)
        if not self._draws.chance(0.25):
            return f" GROUP BY {listed}"
        return " GROUP BY " + self._draws.choice((
            f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ())",
            f"GROUPING SETS ({', '.join(f'({key})' for key in keys)})", f"GROUPING SETS (({keys[0]}), ({keys[0]}), ())",
        ))  # fmt: skip

    # --- aggregates --------------------------------------------------------------------------------------------------

    def _aggregate(self) -> str:
        written = self._plain()
        if self._draws.chance(0.2):
            return f"{written} FILTER (WHERE {self._write.condition(1)})"
        return written

    def _plain(self) -> str:
        draws, write, source = self._draws, self._write, self._source
        match draws.below(20):
            case 0 | 1 | 2:
                return "COUNT(*)"
            case 3:
                return f"COUNT({draws.choice(source.names).sql})"
            case 4 | 5 if source.units:
                return f"COUNT(DISTINCT {draws.choice(source.units)})"
            case 6 | 7:
                return f"COUNT(DISTINCT {self._distinct()})"
            case 8:
                return f"{draws.choice(('BOOL_OR', 'BOOL_AND', 'COUNT_IF'))}({write.condition(1)})"
            case 9:
                return f"{draws.choice(PAIRED)}({write.summed()}, {write.summed()})"
            case 10 | 11:
                return self._chosen()
            case 12:
                return f"{draws.choice(('SUM', 'AVG'))}(DISTINCT {write.summed()})"
            case 13:
                bounds = draws.choice(("(0, 1)", "(-2, 5)", "(-7, -3)", "(3, 3)", "(0, 1000000)"))
                return f"{draws.choice(('SUM', 'AVG', 'COUNT'))}({write.summed()}, {PER_GROUP} => {bounds})"
            case 14:
                return f"SUM({write.summed()}) / COUNT(*)"
            case 15:
                return blockwise(write.summed(), write.summed(), draws.choice(source.names).sql, draws)
            case _:
                return f"{draws.choice(SUMMED)}({write.summed()})"

    def _chosen(self) -> str:
        """Bins, frequent values, the best ones, and draws."""
        draws, write = self._draws, self._write
        x, key, fraction = write.summed(), write.key(), draws.choice(FRACTIONS)
        return draws.choice((f"MEDIAN({x})", f"QUANTILE_CONT({x}, {fraction})", f"QUANTILE_DISC({x}, {fraction})",
                             f"MIN({x})", f"MAX({x})", f"MODE({key})", f"APPROX_TOP_K({key}, 2)",
                             f"HISTOGRAM({key})", f"PRIVATE_ARGMAX({key}, COUNT(*))", f"PRIVATE_ARGMAX({key}, {x})",
                             f"PRIVATE_TOP_K({key}, SUM({x}), 2)", f"POSTERIOR_SAMPLE({x} > 0)",
                             f"POSTERIOR_SAMPLE({x} > 0, draws => 3, truncate => 0.2)",
                             f"DIRICHLET_POSTERIOR_MEAN({key})", f"NORMAL_POSTERIOR_LOW({x})",
                             f"BETA_POSTERIOR_MEAN({write.condition(1)})"))  # fmt: skip

    def _distinct(self) -> str:
        draws, names = self._draws, self._source.names
        columns = [draws.choice(names).sql for _ in range(draws.choice((1, 1, 1, 2)))]
        if draws.chance(0.3):
            return self._write.number(2)
        return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
