"""Short statements of a fixed form that join: along keys, and with public rows that are counted or looked up.

Like the other statements of a fixed form they go straight to what they are for, on rows at the far end.
"""

from __future__ import annotations

from dpsql.verify.generate.choices import ChoiceStream
from dpsql.verify.generate.expressions import choose_number_column, choose_text_column, listed_key, quote_name
from dpsql.verify.generate.key_links import find_key_links
from dpsql.verify.generate.schemas import GeneratedSchema, StoredTable

AGGREGATES = ("COUNT(*)", "SUM({n})", "AVG({n})", "COUNT(*), SUM({n})", "COUNT(DISTINCT {t})", "COUNT({n})")

JOIN_KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")

KEY_CONDITIONS = (
    "EXISTS (SELECT 1 FROM {right} AS q2 WHERE {equal})",
    "NOT EXISTS (SELECT 1 FROM {right} AS q2 WHERE {equal})",
    "EXISTS (SELECT 1 FROM {right} AS q2 WHERE {equal} AND {m} > 0)",
    "{ours} IN (SELECT {theirs} FROM {right} AS q2)",
    "{ours} NOT IN (SELECT {theirs} FROM {right} AS q2 WHERE {m} > 0)",
    "(SELECT COUNT(*) FROM {right} AS q2 WHERE {equal}) > 1",
    "(SELECT MAX({m}) FROM {right} AS q2 WHERE {equal}) > 0",
)
"""What a key finds: `ours` and `theirs` are its columns, and `equal` equates them."""


def has_composite_keys(generated: GeneratedSchema) -> bool:
    return any(link.width > 1 for link in find_key_links(generated.schema))


def random_key_query(generated: GeneratedSchema, choices: ChoiceStream) -> str | None:
    """Rows that a composite key finds, or a column that determines the unit, or that neither finds."""
    links = [link for link in find_key_links(generated.schema) if link.width > 1 or link.determining]
    if not links:
        return None
    link = choices.choice(sorted(links, key=lambda link: -link.width) + [link for link in links if link.width > 1])
    first, second = choices.choice(link.members), choices.choice(link.members)
    left, right = generated.table_named(first[0][0]), generated.table_named(second[0][0])
    ours = [f"q1.{quote_name(column)}" for _, column in first]
    theirs = [f"q2.{quote_name(column)}" for _, column in second]
    if len(ours) > 1 and choices.draw_bool(0.05):  # a part of a key, which is to be refused
        ours, theirs = ours[1:], theirs[1:]
    if choices.draw_bool(0.15) and link.determining:
        return _rows_of_each_value(left, ours[0], choices)
    equal = " AND ".join(f"{mine} = {other}" for mine, other in zip(ours, theirs, strict=True))
    source = f"{quote_name(left.name)} AS q1"
    if choices.draw_bool(0.5):
        condition = choices.choice(KEY_CONDITIONS).format(
            right=quote_name(right.name), equal=equal, m=choose_number_column(right, choices, "q2."),
            ours=_row_of(ours), theirs=", ".join(theirs),
        )  # fmt: skip
        return _aggregate_over(left, f"{source} WHERE {condition}", choices)
    joined = f"{source} {choices.choice(JOIN_KINDS)} {quote_name(right.name)} AS q2 ON {equal}"
    if choices.draw_bool(0.25):
        missing, side = choices.choice(((theirs[0], "LEFT JOIN"), (ours[0], "RIGHT JOIN")))
        joined = f"{source} {side} {quote_name(right.name)} AS q2 ON {equal} WHERE {missing} IS NULL"
    if choices.draw_bool(0.4):
        return _aggregate_over(right, joined, choices, "q2.")
    return _aggregate_over(left, joined, choices)


def _row_of(columns: list[str]) -> str:
    return columns[0] if len(columns) == 1 else f"({', '.join(columns)})"


def _rows_of_each_value(stored: StoredTable, column: str, choices: ChoiceStream) -> str:
    """A row for each order of a unit: of what determines it."""
    number = choose_number_column(stored, choices, "q1.")
    figure = choices.choice(("COUNT(*)", f"SUM({number})", f"MAX({number})"))
    inner = f"SELECT {column}, {figure} AS n FROM {quote_name(stored.name)} AS q1 GROUP BY {column}"
    return f"SELECT {choices.choice(('COUNT(*)', 'COUNT(n)', 'SUM(CLIP(n, 0, 5))'))} FROM ({inner}) AS t"


def _aggregate_over(stored: StoredTable, source: str, choices: ChoiceStream, alias: str = "q1.") -> str:
    """Of columns of one of the tables that a source has, in one group or by a key of it."""
    text = choose_text_column(stored, choices, alias)
    aggregate = choices.choice(AGGREGATES).format(n=choose_number_column(stored, choices, alias), t=text)
    key = choices.choice((None, None, text, listed_key(stored, alias)))
    return f"SELECT {aggregate} FROM {source}" + ("" if key is None else f" GROUP BY {key}")


# --- public rows -----------------------------------------------------------------------------------------------------


def random_public_query(generated: GeneratedSchema, choices: ChoiceStream) -> str | None:
    """Rows that meet public ones which no key finds, or that name those of which an aggregate is looked up."""
    if not generated.public_tables:
        return None
    single = [stored for stored in generated.private_tables if stored.single]
    stored = choices.choice(single or generated.private_tables)
    if choices.draw_bool(0.3):
        stored = choices.choice(generated.private_tables)
    repeating = [public for public in generated.public_tables if not public.serials]
    public = choices.choice(repeating or generated.public_tables)
    shared = _columns_alike(stored, public)
    if not shared:
        return None
    if choices.draw_bool(0.4):
        return _looked_up(stored, public, shared, choices)
    if choices.draw_bool(0.3):
        return _without_partner(stored, public, shared, choices)
    source = f"{quote_name(stored.name)} AS q1"
    for number in range(choices.choice((2, 1, 2))):
        kind, alias = choices.choice(("JOIN", "JOIN", "LEFT JOIN")), f"q{number + 2}"
        source += f" {kind} {quote_name(public.name)} AS {alias} ON {_equality('q1', alias, shared, choices)}"
        if choices.draw_bool(0.3):
            source += f" AND {choose_number_column(public, choices, f'{alias}.')} > {choices.draw_between(0, 1)}"
    return _aggregate_over(stored, source, choices)


def _columns_alike(stored: StoredTable, public: StoredTable) -> list[tuple[str, str]]:
    """Pairs of a private column and a public one that statements may equate: words first."""
    pairs = [(ours, theirs) for ours in stored.columns for theirs in public.columns
             if ours.declared.type == theirs.declared.type and not ours.declared.type.is_float]  # fmt: skip
    pairs.sort(key=lambda pair: not pair[0].own)
    return [(quote_name(ours.name), quote_name(theirs.name)) for ours, theirs in pairs]


def _equality(left: str, right: str, shared: list[tuple[str, str]], choices: ChoiceStream) -> str:
    ours, theirs = choices.choice(shared)
    return f"{left}.{ours} = {right}.{theirs}"


def _without_partner(
    stored: StoredTable, public: StoredTable, shared: list[tuple[str, str]], choices: ChoiceStream
) -> str:
    """Rows that meet none of the others: private ones; or public ones, which depends on single units and is refused."""
    ours, theirs = choices.choice(shared)
    private_side, public_side = f"{quote_name(stored.name)} AS q1", f"{quote_name(public.name)} AS q2"
    if choices.draw_bool(0.5):
        source = f"{public_side} LEFT JOIN {private_side} ON q1.{ours} = q2.{theirs} WHERE q1.{ours} IS NULL"
        return _aggregate_over(public, source, choices, "q2.")
    source = f"{private_side} LEFT JOIN {public_side} ON q1.{ours} = q2.{theirs} WHERE q2.{theirs} IS NULL"
    return _aggregate_over(stored, source, choices)


def _looked_up(stored: StoredTable, public: StoredTable, shared: list[tuple[str, str]], choices: ChoiceStream) -> str:
    """Rows beside an aggregate of the public rows that they name: of one column, or of two."""
    figure = choices.choice(("AVG({})", "COUNT(*)", "MAX({})", "SUM({})")).format(
        choose_number_column(public, choices, "z.")
    )
    factor, source = choices.choice(("", "1.2 * ", "-1 * ")), f"{quote_name(public.name)} AS z"
    conditions = dict.fromkeys(_equality("q1", "z", shared, choices) for _ in range(choices.choice((1, 2))))
    value = f"(SELECT {factor}{figure} FROM {source} WHERE {' AND '.join(conditions)})"
    number, table = choose_number_column(stored, choices, "q1."), f"{quote_name(stored.name)} AS q1"
    if choices.draw_bool(0.3):
        return f"SELECT SUM(CLIP({number} - {value}, -1, 5)) FROM {table}"
    return _aggregate_over(stored, f"{table} WHERE {number} {choices.choice(('>', '<='))} {value}", choices)
