"""Bugs planted in `dpsql.compiler.render`."""

from tests.mutants.match import Edit
from tests.mutants.mutant import Mutant, mutant
from tests.mutants.selections import (
    ATTACKS_BLOCKWISE,
    ATTACKS_KNOWN_PITFALLS_PRICING,
    ATTACKS_NEIGHBORING_ROWS,
    ATTACKS_SIDE_CHANNELS,
    ATTACKS_SOUNDNESS_ROWS,
    COMPILER_RENDER_RELEASE,
    FAR_END,
    ONE_UNIT_MOVES,
    PROPERTY_CLIPPED_SUMS,
    PROPERTY_DOMAINS,
    PROPERTY_IDENTITY,
    PROPERTY_RELATIONS,
    PROPERTY_SANITISING,
    PROPERTY_SENSITIVITY,
    select,
)

MUTANTS = (
    mutant(
        "a heavy unit is not scaled to its norm",
        "dpsql.compiler.render.clipped_sums:_scale_units",
        'f"({name} * w) // {WEIGHT_STEPS} AS {name}"',
        'f"{name} AS {name}"',
        select(PROPERTY_CLIPPED_SUMS, "beyond_its_norm"),
    ),
    mutant(
        "a norm is that of rows in one group each",
        "dpsql.compiler.render.clipped_sums:_render_norm",
        'f"SUM(abs({name}))"',
        'f"MAX(abs({name}))"',
        select(PROPERTY_CLIPPED_SUMS, "beyond_its_norm"),
    ),
    mutant(
        "a light unit is one whose sums cancel out",
        "dpsql.compiler.render.clipped_sums:_scale_units",
        'f"SUM(abs({name})) > {NORM_STEPS}"',
        'f"abs(SUM({name})) > {NORM_STEPS}"',
        select(PROPERTY_CLIPPED_SUMS, "beyond_its_norm"),
    ),
    mutant(
        "a row that is a unit is not scaled",
        "dpsql.compiler.render.clipped_sums:_scale_rows",
        'f"(CAST({name} AS HUGEINT) * w) // {WEIGHT_STEPS} AS {name}"',
        'f"{name} AS {name}"',
        select(PROPERTY_CLIPPED_SUMS, "rows_are_units"),
    ),
    mutant(
        "a unit is in a bin for each of its groups",
        "dpsql.compiler.render.clipped_sums:_render_unit_bins",
        'f"SELECT SUM({term}) AS n, MAX(bin_offset) AS bin_offset FROM {partials} GROUP BY {UID}"',
        'f"SELECT SUM({term}) AS n, MAX(bin_offset) AS bin_offset FROM {partials} GROUP BY {UID}, s"',
        select(PROPERTY_CLIPPED_SUMS, "beyond_its_norm"),
    ),
    mutant(
        "blocks are made of rows and not of units",
        "dpsql.compiler.render.blockwise:_render_block_steps",
        'f"hash({UID}, {render_text(BLOCK_SALT)})"',
        'f"hash({UID}, {render_text(BLOCK_SALT)}, COLUMNS(*)::VARCHAR)"',
        select(ATTACKS_BLOCKWISE, "not refusals"),
    ),
    mutant(
        "copies of a row that is a unit lie in several blocks",
        "dpsql.compiler.render.blockwise:_render_block_steps",
        'f"hash({quote_identifier(ROW)}, {render_text(BLOCK_SALT)})"',
        'f"hash({quote_identifier(ROW)}, random())"',
        select(ATTACKS_BLOCKWISE, "not refusals"),
    ),
    mutant(
        "a block without a number is at the lower bound",
        "dpsql.compiler.render.blockwise:_render_step",
        'f"CASE WHEN isfinite(r) THEN {clipped} ELSE CAST({blocks.middle} AS BIGINT) END"',
        'f"CASE WHEN isfinite(r) THEN {clipped} ELSE CAST(0 AS BIGINT) END"',
        select(ATTACKS_BLOCKWISE, "not refusals"),
    ),
    mutant(
        "blocks without rows are at the lower bound",
        "dpsql.compiler.render.blockwise:render_sum_blocks",
        'f"SUM({STEP} - {part.blocks.middle}) AS {quote_identifier(part.cell)}"',
        'f"SUM({STEP}) AS {quote_identifier(part.cell)}"',
        select(ATTACKS_BLOCKWISE, "not refusals"),
    ),
    mutant(
        "blocks without rows are in no bin",
        "dpsql.compiler.render.blockwise:fill_empty_blocks",
        'f"({count} + CASE WHEN {is_middle} THEN {without} ELSE 0 END)"',
        'f"({count} + CASE WHEN {is_middle} THEN 0 ELSE 0 END)"',
        select(ATTACKS_BLOCKWISE, "not refusals"),
    ),
    mutant(
        "a block's number is not clipped",
        "dpsql.compiler.render.blockwise:_render_step",
        'f"LEAST(GREATEST(COALESCE({steps}, {blocks.middle}), 0), {blocks.steps})"',
        'f"COALESCE(round((r - {lower}) * {scale})::HUGEINT, 0)"',
        select(ATTACKS_BLOCKWISE, "not refusals"),
    ),
    mutant(
        "a block's mean is a sum of doubles",
        "dpsql.compiler.render.blockwise:_render_block_aggregate",
        'scale_steps(f"(CAST(SUM({value}) AS DOUBLE) / NULLIF(COUNT({value}), 0))", arg.grid)',
        'f"AVG(0.1::DOUBLE * {value} + 1e15)"',
        select(ATTACKS_BLOCKWISE, "not refusals"),
    ),
    mutant(
        "a decimal bound has more digits than its type",
        "dpsql.compiler.render.expressions:_render_decimal",
        "max(-max_unscaled, min(max_unscaled, int(number * 10**scale)))",
        "int(number * 10**scale)",
        select(PROPERTY_SANITISING, "declared_bounds"),
    ),
    mutant(
        "a whole bound is longer than any integer",
        "dpsql.compiler.render.expressions:_integer_bound",
        "max(-MAX_HUGEINT, min(MAX_HUGEINT, bound.__ceil__() if lower else bound.__floor__()))",
        "bound.__ceil__() if lower else bound.__floor__()",
        select(PROPERTY_SANITISING, "declared_bounds"),
    ),
    mutant(
        "the clip of a double is forgotten",
        "dpsql.compiler.render.expressions:_render_quantise",
        'f"CASE WHEN {steps} BETWEEN {lower} AND {upper} THEN {steps} WHEN"',
        'f"CASE WHEN {steps} IS NOT NULL THEN {steps} WHEN"',
        ONE_UNIT_MOVES,
    ),
    mutant(
        "the clip of a whole number is off by one",
        "dpsql.compiler.render.expressions:_render_quantise",
        'f"BETWEEN {lower} AND {upper} THEN {render_cast(arg, BIGINT)} WHEN"',
        'f"BETWEEN {lower} AND {upper + 1} THEN {render_cast(arg, BIGINT)} WHEN"',
        FAR_END,
    ),
    mutant(
        "NaN and infinities count as a bound",
        "dpsql.compiler.render.expressions:_render_quantise",
        'f"THEN {steps} WHEN isfinite({arg}) THEN CASE WHEN"',
        'f"THEN {steps} WHEN {arg} IS NOT NULL THEN CASE WHEN"',
        PROPERTY_IDENTITY,
    ),
    mutant(
        "a cast raises on what does not fit",
        "dpsql.compiler.render.expressions:render_cast",
        'f"TRY_CAST({sql} AS {render_type_name(type_)})"',
        'f"CAST({sql} AS {render_type_name(type_)})"',
        PROPERTY_DOMAINS,
    ),
    mutant(
        "24:00:00 is a time of day",
        "dpsql.compiler.render.expressions:_limit_to_midnight",
        "return f\"CASE WHEN {raw} < CAST('24:00:00' AS TIME) THEN {raw} END\"",
        "return raw",
        ATTACKS_NEIGHBORING_ROWS,
    ),
    mutant(
        "a year that Python cannot say is a key",
        "dpsql.compiler.render.expressions:_render_unchecked",
        "return _limit_to_python_range(sql, expr.type) if expr.arg.type == TEXT else sql",
        "return sql",
        select(ATTACKS_SIDE_CHANNELS, "casts"),
    ),
    mutant(
        "rows without a unit are kept",
        "dpsql.compiler.render.relations:_render_scan",
        "f\"SELECT {', '.join([f'{uid} AS {UID}', *columns])} FROM {sources} WHERE {uid} IS NOT NULL\"",
        "f\"SELECT {', '.join([f'{uid} AS {UID}', *columns])} FROM {sources}\"",
        ONE_UNIT_MOVES,
    ),
    Mutant(
        "rows of two units are joined",
        (
            Edit(
                "dpsql.compiler.render.relations:_render_join",
                'render_expr(node.condition) if public else f"l.{UID} = r.{UID} AND {render_expr(node.condition)}"',
                "render_expr(node.condition)",
            ),
            Edit(
                "dpsql.compiler.bind.relation:BoundRelation.require_one_unit",
                "raise units_not_equated_error(joined.join, joined.hint)",
                "pass",
            ),
        ),
        PROPERTY_RELATIONS,
    ),
    Mutant(
        "what all units add to a group is one part",
        (
            Edit(
                "dpsql.compiler.render.relations:_render_per_unit",
                "[UID, *keys, *measures]",
                "[f'MIN({UID}) AS {UID}', *keys, *measures]",
            ),
            Edit(
                "dpsql.compiler.render.relations:_render_per_unit",
                '", ".join(str(position) for position in range(1, len(keys) + 2))',
                "\", \".join(str(position) for position in range(2, len(keys) + 2)) or '()'",
            ),
        ),
        select(PROPERTY_SENSITIVITY, "within_a_unit and bounds"),
    ),
    mutant(
        "a window looks at the rows of all units",
        "dpsql.compiler.render.relations:_render_window",
        'partition = ", ".join([*_uid_columns(node.input), *map(render_expr, node.partition)])',
        'partition = ", ".join(["1", *map(render_expr, node.partition)])',
        PROPERTY_RELATIONS,
    ),
    mutant(
        "the least value of a unit is any of them",
        "dpsql.compiler.render.relations:render_exact_aggregate",
        'return f"{function.upper()}({sql}){over}"',
        'return f"any_value({sql}){over}"',
        PROPERTY_RELATIONS,
    ),
    mutant(
        "squares within a unit are added up as doubles",
        "dpsql.compiler.render.relations:_render_spread",
        'f"CAST(SUM({part}) AS DOUBLE)"',
        'f"SUM(CAST({part} AS DOUBLE))"',
        PROPERTY_RELATIONS,
    ),
    mutant(
        "components are divided after they are summed",
        "dpsql.compiler.render.release:_render_sums",
        'f"SUM({render_component(names[0], weight, bundle.shift, bundle.value.lower >= 0)})"',
        'f"(SUM({render_component(names[0], weight, 0, True)}) // {1 << bundle.shift})"',
        FAR_END,
    ),
    mutant(
        "products count rows where one value is missing",
        "dpsql.compiler.render.release:_render_sums",
        'f"(CASE WHEN {other} IS NOT NULL THEN {value} END)"',
        'f"COALESCE({value}, 0)"',
        PROPERTY_IDENTITY,
    ),
    mutant(
        "a product far from zero does not fit",
        "dpsql.compiler.render.release:_render_centered",
        'f"({scale} * (2 * {above} - {step_width(value)}))"',
        'f"({2 * scale} * {render_expr(value)} - {scale} * CAST({value.lower + value.upper} AS BIGINT))"',
        COMPILER_RENDER_RELEASE,
    ),
    mutant(
        "the weight is not applied",
        "dpsql.compiler.render.release:_render_weighted_rows",
        'f"(SELECT {columns}COALESCE(weights.{WEIGHT}, {ROW_WEIGHT}) AS {WEIGHT} FROM {rows}"',
        'f"(SELECT {columns}{ROW_WEIGHT} AS {WEIGHT} FROM {rows}"',
        ONE_UNIT_MOVES,
    ),
    mutant(
        "the weight depends on other units",
        "dpsql.compiler.render.release:_add_weights",
        """
        f"(SELECT {UID}, {max_weight} // COUNT(*) AS {WEIGHT} "
        f"FROM {rows} GROUP BY {UID} HAVING COUNT(*) > {weigh.rows})"
        """,
        """
        f"(SELECT {UID}, {max_weight} // GREATEST({weigh.rows}, (SELECT MAX(n) FROM "
        f"(SELECT COUNT(*) AS n FROM {rows} GROUP BY {UID}))) AS {WEIGHT} "
        f"FROM {rows} GROUP BY {UID})"
        """,
        ONE_UNIT_MOVES,
    ),
    mutant(
        "the root of the norm is rounded down",
        "dpsql.compiler.render.release:_add_weights",
        '"(CAST(ceil(sqrt(CAST(squares AS DOUBLE))) AS BIGINT) + 1)"',
        '"CAST(floor(sqrt(CAST(squares AS DOUBLE))) AS BIGINT)"',
        FAR_END,
    ),
    mutant(
        "heavy units are found one row too late",
        "dpsql.compiler.render.release:_add_weights",
        'f"WHERE total > {weigh.rows})"',
        'f"WHERE total > {weigh.rows} + 1)"',
        FAR_END,
    ),
    mutant(
        "distinct values have no limit",
        "dpsql.compiler.render.release:render_distinct_rows",
        'f"(SELECT {names} FROM {pairs} ANTI JOIN {many} USING ({UID}) UNION SELECT"',
        'f"(SELECT {names} FROM {pairs} UNION SELECT"',
        ONE_UNIT_MOVES,
    ),
    mutant(
        "a unit keeps one distinct value too many",
        "dpsql.compiler.render.release:render_distinct_rows",
        'f"WHERE place <= {node.limit})"',
        'f"WHERE place <= {node.limit + 1})"',
        ONE_UNIT_MOVES,
    ),
    mutant(
        "distinct values of heavy units are counted each",
        "dpsql.compiler.render.release:render_distinct_rows",
        'f"USING ({UID}) UNION SELECT {names} FROM"',
        'f"USING ({UID}) UNION ALL SELECT {names} FROM"',
        PROPERTY_IDENTITY,
    ),
    mutant(
        "a unit keeps one key too many",
        "dpsql.compiler.render.release:_render_limited_pairs",
        'f"WHERE place <= {limit})"',
        'f"WHERE place <= {limit + 1})"',
        ONE_UNIT_MOVES,
    ),
    mutant(
        "rows, not units, decide which keys appear",
        "dpsql.compiler.render.release:_render_pairs",
        'return f"MATERIALIZED (SELECT {names}, COUNT(*) AS n FROM {rows} GROUP BY {names})"',
        'return f"MATERIALIZED (SELECT {names}, 1 AS n FROM {rows})"',
        ONE_UNIT_MOVES,
    ),
    mutant(
        "public groups come from the rows",
        "dpsql.compiler.render.release:render_release",
        "_render_listed(gather.listed)",
        """
        {
            name: '(SELECT 0 AS "_order", '
            + ", ".join(quote_identifier(f.name) for f in factor.keys)
            + f" FROM {names[0]} GROUP BY ALL)"
            for name, factor in zip(_factor_names(gather.listed), gather.listed.factors)
        }
        """,
        ONE_UNIT_MOVES,
    ),
    mutant(
        "the public NULL group loses its rows",
        "dpsql.compiler.render.release:_join_part",
        'f"{name}.{quote_identifier(key)} IS NOT DISTINCT FROM {owner[key]}.{quote_identifier(key)}"',
        'f"{name}.{quote_identifier(key)} = {owner[key]}.{quote_identifier(key)}"',
        PROPERTY_IDENTITY,
    ),
    mutant(
        "groups stand in the engine's order",
        "dpsql.compiler.render.release:_render_gather",
        "f\"SELECT {', '.join(columns)}\\nFROM {sources}\\nORDER BY {', '.join(order)}\"",
        "f\"SELECT {', '.join(columns)}\\nFROM {sources}{' ' * len(order)}\"",
        select(ATTACKS_KNOWN_PITFALLS_PRICING, "trap_20"),
    ),
    mutant(
        "a public group is listed as often as it stands there",
        "dpsql.compiler.render.release:_render_listed_public",
        'f"SELECT DISTINCT {named} FROM ({render_rows(factor.rows)})"',
        'f"SELECT {named} FROM ({render_rows(factor.rows)})"',
        select(ATTACKS_SOUNDNESS_ROWS, "drawn_once"),
    ),
)
