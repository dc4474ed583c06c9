"""Tests of the suite that no requirement speaks of, and that do not concern dpsql; each with the reason."""

_DDL = "dpsql has no DDL: the schema file declares the tables"
_WRITES = "dpsql reads: data is written by its owner at its source"

EXCLUDED = {
    "TableDDLTest": _DDL,
    "FutureTableDDLTest": _DDL,
    "TableViaSelectTest": _DDL,
    "LongNameBlowoutTest": _DDL,
    "ReturningGuardsTest": _WRITES,
    "InsertBehaviorTest": _WRITES,
    "LastrowidTest": _WRITES,
    "SimpleUpdateDeleteTest": _WRITES,
    "RowCountTest": _WRITES,
    "CTETest::test_insert_from_select_round_trip": _WRITES,
    "ComponentReflectionTestExtra::test_string_length_reflection": "text has no declared length in dpsql",
    "ComponentReflectionTestExtra::test_nullable_reflection": "every column may be NULL: what does not fit becomes it",
    "ComponentReflectionTest::test_comments_unicode": "a table's comment also says whether it is public",
    "TrueDivTest::test_truediv_divisor": "divisions are in doubles: 6.9 / 2.3 is 3.0000000000000004",
    "IsolationLevelTest::test_dialect_user_setting_is_restored": "AUTOCOMMIT is the one level",
    "WindowFunctionTest::test_window_range_numeric": "the order of rows is not promised without ORDER BY",
    "WindowFunctionTest::test_window_range": "the order of rows is not promised without ORDER BY",
}
