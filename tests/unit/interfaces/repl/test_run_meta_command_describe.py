"""\\d: what is shown of a table, from names given by hand."""

from __future__ import annotations

from dpsql.interfaces.repl.display_options import DisplayOptions
from dpsql.interfaces.repl.run_meta_command import format_function_list, format_table_description, format_table_list
from dpsql.session.reflection import ForeignKey, NamedColumn, NamedTable, UniqueKey
from dpsql.session.sql_reference import NamedFunction
from dpsql.types import BIGINT, BOOLEAN, TEXT

STEERS = "a\x1b[2Jb"
VISITS = NamedTable(
    "visits", "private",
    (
        NamedColumn("patient_id", BIGINT, is_unit=True),
        NamedColumn("ward", TEXT, values=("surgery", STEERS), description="where"),
        NamedColumn("paid", BOOLEAN, values=("false", "true")),
        NamedColumn("doctor", BIGINT),
    ),
    unique=(UniqueKey("u", ("patient_id", "ward")),),
    foreign=(ForeignKey("f", ("doctor",), "doctors", ("id",)),),
    comment="Each visit. " + "Long. " * 30,
)  # fmt: skip


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("│")]


def test_a_table() -> None:
    lines = format_table_description(VISITS, DisplayOptions(), None)
    assert lines[0] == "Private table visits"
    rows = {cells(line)[0]: cells(line) for line in lines if "│" in line}
    assert rows["column"] == ["column", "type", "note"]  # no column has bounds
    assert rows["patient_id"] == ["patient_id", "bigint", "the privacy unit"]
    assert rows["ward"] == ["ward", "text", "where"] and rows["doctor"] == ["doctor", "bigint", "doctors.id"]
    assert "Unique: patient_id, ward" in lines and not any("Values of paid" in line for line in lines)
    assert all(len(line) <= 100 for line in lines) and "Each visit." in "\n".join(lines)


def test_names_and_values_steer_no_terminal() -> None:
    hostile = NamedTable(STEERS, "public", (NamedColumn(STEERS, TEXT, values=(STEERS,)),), comment=STEERS,
                         unique=(UniqueKey("u", (STEERS,)),), description=STEERS)  # fmt: skip
    lines = format_table_description(hostile, DisplayOptions(), None) + format_table_list(
        [hostile, VISITS], DisplayOptions(), None
    )
    assert "\x1b" not in "".join(lines) and len([line for line in lines if "[2Jb" in line]) >= 6


def test_tables() -> None:
    view = NamedTable("recent", "view", (), description="those of this year", comment="no")
    rows = [cells(line) for line in format_table_list([VISITS, view], DisplayOptions(), None) if "│" in line]
    assert rows[0] == ["name", "kind", "comment"] and rows[2] == ["recent", "view", "those of this year"]
    assert (
        rows[1][:2] == ["visits", "private"]
        and format_table_description(view, DisplayOptions(), None)[0] == "View recent"
    )


def test_functions_are_in_order() -> None:
    functions = [NamedFunction("upper", "scalar", "upper(ward)"), NamedFunction("avg", "aggregate", "AVG(cost)")]
    rows = [cells(line) for line in format_function_list(functions, DisplayOptions(), None) if "│" in line]
    assert rows[1:] == [["avg", "aggregate", "AVG(cost)"], ["upper", "scalar", "upper(ward)"]]
