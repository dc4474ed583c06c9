"""What of SQLAlchemy's suite concerns dpsql. Each requirement that is closed says why; those not named are open.

The suite takes a database that is written to. Here its tables and rows are made by `owner_side`, and what is tested is
what an analyst sees: statements, values of all types, and what an inspector shows.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

_WRITES = "dpsql reads: data is written by its owner at its source"
_DDL = "dpsql has no DDL: the schema file declares the tables"
_ONE_SCHEMA = "all tables are in one schema"
_NO_TEMPORARY = "there are no temporary tables: WITH does their work"
_NO_INDEXES = "indexes are the engine's matter and not shown"
_FOREIGN = "the only foreign key that is declared is the way to the privacy unit: see test_dialect_reflection.py"
_NO_TYPE = "dpsql has no such type"
_NAMES = "keys have no names in the schema; those that are shown are made of table and columns"

CLOSED = {
    # Writing.
    **dict.fromkeys(
        ("autoincrement_insert", "autoincrement_without_sequence", "ctes_on_dml", "ctes_with_update_delete",
         "delete_from", "delete_returning", "duplicate_key_raises_integrity_error", "empty_inserts",
         "empty_inserts_executemany", "emulated_lastrowid", "implements_get_lastrowid", "insert_executemany_returning",
         "insert_from_select", "insert_returning", "insertmanyvalues", "multivalues_inserts", "on_update_cascade",
         "recursive_fk_cascade", "sane_multi_rowcount", "sane_rowcount", "sane_rowcount_w_returning",
         "supports_lastrowid", "update_from", "update_returning", "update_where_target_in_subquery",
         "update_returning_dialect_not_supported"), _WRITES),
    "two_phase_transactions": "nothing is written that could be prepared",
    "autocommit": "the suite tells autocommit by what a rollback undoes of what was written",
    # Declaring.
    **dict.fromkeys(
        ("create_table", "drop_table", "create_table_as", "create_temp_table_as", "table_ddl_if_exists",
         "index_ddl_if_exists", "computed_columns", "identity_columns", "server_defaults",
         "deferrable_fks", "unicode_ddl", "create_or_replace_view", "schema_create_delete", "sequences"), _DDL),
    **dict.fromkeys(("schemas", "cross_schema_fk_reflection", "default_schema_name_switch"), _ONE_SCHEMA),
    **dict.fromkeys(("temporary_tables", "temporary_views", "temp_table_reflection", "temp_table_names",
                     "has_temp_table", "temp_table_reflect_indexes", "temp_table_comment_reflection"), _NO_TEMPORARY),
    # What is shown.
    **dict.fromkeys(("index_reflection", "indexes_with_ascdesc", "reflect_indexes_with_ascdesc"), _NO_INDEXES),
    **dict.fromkeys(("foreign_key_constraint_reflection", "self_referential_foreign_keys",
                     "repeated_column_foreign_keys", "repeated_remote_col_foreign_keys"), _FOREIGN),
    **dict.fromkeys(("unique_constraint_reflection", "named_constraints", "implicitly_named_constraints"), _NAMES),
    **dict.fromkeys(("indexes_check_column_order", "indexes_with_expressions", "index_reflects_included_columns"),
                    _NO_INDEXES),
    **dict.fromkeys(("foreign_key_constraint_option_reflection_ondelete",
                     "fk_constraint_option_reflection_ondelete_restrict",
                     "fk_constraint_option_reflection_ondelete_noaction",
                     "foreign_key_constraint_option_reflection_onupdate",
                     "fk_constraint_option_reflection_onupdate_restrict"), _FOREIGN),
    "reflects_pk_names": _NAMES,
    "comment_reflection_full_unicode": "a comment says more than the description",
    "inline_check_constraint_reflection": "bounds and values are no constraints",
    "expression_server_defaults": _DDL,
    **dict.fromkeys(("fetch_percent", "fetch_ties", "fetch_offset_with_options"), "FETCH has no PERCENT or TIES"),
    "order_by_collation": "text is compared by its code points in all columns",
    "check_constraint_reflection": "bounds and values are no constraints: what is beyond them is clipped or NULL",
    "reflect_table_options": "tables have no options",
    "reflect_tables_no_columns": "a table that declares no column does not exist",
    "column_collation_reflection": "text is compared by its code points in all columns",
    "materialized_views": "views are read as if their text stood in FROM",
    "symbol_names_w_double_quote": "names in a schema hold no double quotes",
    "denormalized_names": "names are as they are written",
    # Types.
    **dict.fromkeys(("array_type", "json_type", "binary_comparisons", "binary_literals", "time_timezone",
                     "infinity_floats"), _NO_TYPE),
    "nvarchar_types": "there is one type of text",
    "numeric_received_as_decimal_untyped": "what SQL has as DOUBLE is a float",
}  # fmt: skip

OPEN = (
    "bitwise", "ctes", "ctes_with_values", "date_historic", "datetime_historic", "datetime_interval",
    "datetime_literals", "datetime_timezone", "datetime_timezone_historic", "except_", "fetch_expression",
    "fetch_first", "fetch_no_order_by", "intersect", "mod_operator_as_percent_sign", "nullsordering",
    "order_by_label_with_expression", "precision_numerics_enotation_large",
    "precision_numerics_retains_significant_digits", "regexp_match", "regexp_replace", "savepoints",
    "sql_expression_limit_offset", "supports_distinct_on", "supports_is_distinct_from", "table_value_constructor",
    "timestamp_microseconds", "tuple_in", "unusual_column_name_characters", "uuid_data_type", "views",
    "window_functions", "window_range", "window_range_numeric", "window_range_non_numeric", "supports_bitwise_or",
    "supports_bitwise_and", "supports_bitwise_not", "supports_bitwise_xor", "supports_bitwise_shift",
    "comment_reflection", "aggregate_order_by", "float_or_double_precision_behaves_generically", "percent_schema_names",
    "precision_numerics_many_significant_digits", "cast_precision_numerics_many_significant_digits",
    "skip_autocommit_rollback",
    "isolation_level", "date_coerces_from_datetime", "time_microseconds", "implicit_default_schema", "float_cast",
    "precision_numerics_general", "precision_numerics_enotation_small",
)  # fmt: skip


class Requirements(SuiteRequirements):
    def get_isolation_levels(self, config: Any) -> dict[str, Any]:
        return {"default": "AUTOCOMMIT", "supported": ["AUTOCOMMIT"]}


def _property(requirement: Any) -> property:
    return property(lambda self: requirement)


for _name, _reason in CLOSED.items():
    setattr(Requirements, _name, _property(exclusions.closed(_reason)))
for _name in OPEN:
    setattr(Requirements, _name, _property(exclusions.open()))
