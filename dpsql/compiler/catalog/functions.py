"""The functions that a statement about the catalog may call: nothing else runs there.

Law: this is an allow-list. A function is one of PostgreSQL's, and is answered by a macro of `macros.py` or by a
harmless function of DuckDB; those that say something about DuckDB, its settings, files or process are not on it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CatalogFunction:
    """`result` is PostgreSQL's type: $1 is that of the first argument, $1[] an array of it, $1. an element of it.

    `target` is what is called instead, `last` the only argument that matters, as of has_table_privilege; `rows` where
    the target gives a list, and the function a row for each element.
    """

    result: str
    target: str
    least: int
    most: int
    last: bool = False
    rows: bool = False


def _same_name_functions(
    result: str, names: str, min_args: int, max_args: int | None = None, prefix: str = ""
) -> dict[str, CatalogFunction]:
    """Several alike, under the names that DuckDB has for them too, or under those of macros."""
    max_args = min_args if max_args is None else max_args
    return {name: CatalogFunction(result, f"{prefix}{name}", min_args, max_args) for name in names.split()}


def _macro_functions(result: str, names: str, min_args: int, max_args: int | None = None) -> dict[str, CatalogFunction]:
    return _same_name_functions(result, names, min_args, max_args, "dp_")


def _single_function(
    result: str,
    name: str,
    target: str,
    min_args: int,
    max_args: int | None = None,
    *,
    last: bool = False,
    rows: bool = False,
) -> dict[str, CatalogFunction]:
    max_args = min_args if max_args is None else max_args
    return {name: CatalogFunction(result, target, min_args, max_args, last, rows)}


def _shared_target_functions(result: str, names: str, target: str, min_args: int, max_args: int | None = None, *,
          last: bool = False) -> dict[str, CatalogFunction]:  # fmt: skip
    return {
        name: CatalogFunction(result, target, min_args, min_args if max_args is None else max_args, last)
        for name in names.split()
    }


MAX_ARGUMENTS = 100

_VISIBILITY_FUNCTIONS = (
    "pg_collation_is_visible pg_conversion_is_visible pg_function_is_visible pg_opclass_is_visible "
    "pg_operator_is_visible pg_opfamily_is_visible pg_statistics_obj_is_visible pg_ts_config_is_visible "
    "pg_ts_dict_is_visible pg_ts_parser_is_visible pg_ts_template_is_visible"
)
_SIZE_FUNCTIONS = (
    "pg_table_size pg_relation_size pg_total_relation_size pg_indexes_size pg_database_size pg_tablespace_size"
)
_NULL_TEXT_FUNCTIONS = ("pg_get_partkeydef pg_get_partition_constraintdef pg_get_statisticsobjdef pg_get_functiondef "
            "pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions pg_get_triggerdef pg_get_ruledef "
            "pg_get_serial_sequence pg_relation_filepath pg_describe_object pg_get_function_sqlbody "
            "pg_get_function_arg_default pg_identify_object")  # fmt: skip

CATALOG_FUNCTIONS: dict[str, CatalogFunction] = {
    # about objects
    **_macro_functions("bool", "pg_table_is_visible pg_type_is_visible", 1),
    **_shared_target_functions("bool", _VISIBILITY_FUNCTIONS, "dp_is_number", 1),
    **_macro_functions("text", "format_type", 2),
    **_macro_functions("text", "obj_description", 1, 2),
    **_macro_functions("text", "col_description shobj_description", 2),
    **_macro_functions("text", "pg_get_constraintdef", 1, 2),
    **_macro_functions("text", "pg_get_indexdef", 1, 3),
    **_macro_functions("text", "pg_get_viewdef", 1, 2),
    **_macro_functions("text", "pg_get_expr", 2, 3),
    **_macro_functions(
        "text", "pg_get_function_arguments pg_get_function_identity_arguments pg_get_function_result", 1
    ),
    **_shared_target_functions("text", _NULL_TEXT_FUNCTIONS, "dp_no_text", 1, 4),
    **_macro_functions("bool", "pg_relation_is_publishable", 1),
    **_shared_target_functions("bool", "pg_is_other_temp_schema pg_index_has_property", "dp_no", 1, 2),
    **_macro_functions("name", "pg_encoding_to_char", 1),
    **_macro_functions("int4", "pg_char_to_encoding", 1),
    **_shared_target_functions("int4", "pg_encoding_max_length", "dp_four", 1),
    **_macro_functions("text", "pg_size_pretty", 1),
    **_shared_target_functions("int8", _SIZE_FUNCTIONS, "dp_nothing", 1, 2),
    **_shared_target_functions("text", "pg_tablespace_location", "dp_empty", 1),
    **_shared_target_functions("int4", "age", "dp_nothing", 1),
    **_shared_target_functions("regclass", "to_regclass", "dp_regclass_of", 1),
    **_shared_target_functions("regtype", "to_regtype", "dp_regtype_of", 1),
    **_shared_target_functions("regproc", "to_regproc", "dp_regproc_of", 1),
    **_shared_target_functions("regnamespace", "to_regnamespace", "dp_regnamespace_of", 1),
    **_shared_target_functions("int8", "pg_sequence_last_value", "dp_no_number", 1),
    **_shared_target_functions("float8", "pg_stat_get_live_tuples pg_stat_get_numscans", "dp_nothing", 1),
    # about who may do what
    **_single_function("bool", "has_table_privilege", "dp_may_select", 2, 3, last=True),
    **_single_function("bool", "has_any_column_privilege", "dp_may_select", 2, 3, last=True),
    **_single_function("bool", "has_column_privilege", "dp_may_select", 3, 4, last=True),
    **_single_function("bool", "has_schema_privilege", "dp_may_use", 2, 3, last=True),
    **_single_function("bool", "has_type_privilege", "dp_may_use", 2, 3, last=True),
    **_single_function("bool", "has_language_privilege", "dp_may_use", 2, 3, last=True),
    **_single_function("bool", "has_function_privilege", "dp_may_execute", 2, 3, last=True),
    **_single_function("bool", "has_database_privilege", "dp_may_connect", 2, 3, last=True),
    **_single_function("bool", "has_tablespace_privilege", "dp_no", 2, 3, last=True),
    **_single_function("bool", "has_sequence_privilege", "dp_no", 2, 3, last=True),
    **_single_function("bool", "has_foreign_data_wrapper_privilege", "dp_no", 2, 3, last=True),
    **_single_function("bool", "has_server_privilege", "dp_no", 2, 3, last=True),
    **_single_function("bool", "has_parameter_privilege", "dp_no", 2, 3, last=True),
    # lists
    **_macro_functions("text", "array_to_string", 2, 3),
    **_macro_functions("int4", "array_upper array_lower array_length", 2),
    **_shared_target_functions("int4", "cardinality", "len", 1),
    **_shared_target_functions("int4", "array_ndims", "dp_one", 1),
    **_macro_functions("$1", "array_remove array_append array_cat", 2),
    **_shared_target_functions("int4", "array_position", "dp_array_position", 2),
    **_shared_target_functions("text[]", "string_to_array", "dp_string_to_array", 2),
    **_shared_target_functions("text[]", "regexp_split_to_array", "string_split_regex", 2),
    **_single_function("text", "regexp_split_to_table", "string_split_regex", 2, rows=True),
    **_single_function("$1.", "unnest", "unnest", 1),
    **_single_function("int4", "generate_series", "generate_series", 2, 3, rows=True),
    **_single_function("int4", "generate_subscripts", "dp_generate_subscripts", 2, 3, rows=True),
    **_single_function("record", "_pg_expandarray", "dp_expandarray", 1, rows=True),
    **_single_function("regclass", "pg_partition_ancestors", "dp_no_rows", 1, rows=True),
    # aggregates and windows
    **_same_name_functions("int8", "count row_number rank dense_rank", 0, 1),
    **_same_name_functions("$1", "min max first_value last_value", 1),
    **_same_name_functions("$1", "lag lead", 1, 3),
    **_same_name_functions("numeric", "sum avg", 1),
    **_same_name_functions("bool", "bool_and bool_or", 1),
    **_shared_target_functions("bool", "every", "bool_and", 1),
    **_same_name_functions("text", "string_agg", 2),
    **_single_function("$1[]", "array_agg", "list", 1),
    **_shared_target_functions("json", "json_agg jsonb_agg", "json_group_array", 1),
    **_shared_target_functions("json", "json_object_agg jsonb_object_agg", "json_group_object", 2),
    **_shared_target_functions("json", "json_build_object jsonb_build_object", "json_object", 0, MAX_ARGUMENTS),
    **_shared_target_functions("json", "json_build_array jsonb_build_array", "json_array", 0, MAX_ARGUMENTS),
    **_same_name_functions("json", "to_json row_to_json", 1),
    # text and numbers
    **_same_name_functions("text", "lower upper reverse md5 chr", 1),
    **_same_name_functions("text", "concat", 1, MAX_ARGUMENTS),
    **_same_name_functions("text", "concat_ws", 2, MAX_ARGUMENTS),
    **_same_name_functions("text", "trim ltrim rtrim", 1, 2),
    **_shared_target_functions("text", "btrim", "trim", 1, 2),
    **_same_name_functions("text", "left right repeat", 2),
    **_same_name_functions("text", "lpad rpad", 2, 3),
    **_same_name_functions("text", "replace split_part translate", 3),
    **_shared_target_functions("text", "substr substring", "substring", 2, 3),
    **_same_name_functions("text", "regexp_replace", 3, 4),
    **_shared_target_functions("int4", "length char_length character_length", "length", 1),
    **_shared_target_functions("int4", "octet_length", "dp_octet_length", 1),
    **_same_name_functions("int4", "strpos", 2),
    **_same_name_functions("int4", "ascii", 1),
    **_same_name_functions("bool", "starts_with", 2),
    **_macro_functions("text", "quote_ident quote_literal", 1),
    **_macro_functions("text[]", "parse_ident", 1),
    **_shared_target_functions("text", "quote_nullable", "dp_quote_literal", 1),
    **_single_function("text", "format", "format", 1, MAX_ARGUMENTS),
    **_same_name_functions("$1", "abs", 1),
    **_same_name_functions("float8", "floor ceil round sign", 1),
    **_same_name_functions("$1", "mod", 2),
    **_same_name_functions("$1", "coalesce greatest least", 1, MAX_ARGUMENTS),
    **_same_name_functions("$1", "nullif", 2),
    # of the server and the session; those with a $ of `evaluate_session_function` are literals
    **_shared_target_functions("text", "getdatabaseencoding", "dp_utf8", 0),
    **_shared_target_functions("oid", "pg_my_temp_schema", "dp_nothing", 0),
    **_shared_target_functions("bool", "pg_is_in_recovery pg_is_wal_replay_paused pg_jit_available", "dp_no", 0),
    **_shared_target_functions("inet", "inet_server_addr inet_client_addr", "dp_no_text", 0),
    **_shared_target_functions("int4", "inet_server_port inet_client_port", "dp_no_number", 0),
    **_shared_target_functions("void", "pg_advisory_unlock_all", "dp_empty", 0),
    **_shared_target_functions("bool", "pg_try_advisory_lock pg_advisory_unlock", "dp_yes", 1, 2),
    **_shared_target_functions("int4[]", "pg_blocking_pids", "dp_no_list", 1),
    **_shared_target_functions("aclitem[]", "acldefault", "dp_no_list", 2),
}
"""By name, without `pg_catalog.`; and those of information_schema."""

SESSION_FUNCTIONS = {
    "current_user": "name", "session_user": "name", "current_role": "name", "user": "name", "system_user": "text",
    "current_catalog": "name", "current_database": "name", "current_schema": "name", "current_schemas": "name[]",
    "version": "text", "pg_client_encoding": "name", "current_setting": "text", "set_config": "text",
    "pg_backend_pid": "int4", "pg_get_userbyid": "name", "pg_has_role": "bool", "pg_typeof": "regtype",
    "row_security_active": "bool",
    "now": "timestamptz", "current_timestamp": "timestamptz", "pg_postmaster_start_time": "timestamptz",
    "pg_conf_load_time": "timestamptz", "clock_timestamp": "timestamptz", "statement_timestamp": "timestamptz",
    "transaction_timestamp": "timestamptz", "current_date": "date", "localtimestamp": "timestamp",
    "to_regrole": "regrole",
}  # fmt: skip
"""What depends on who asks and when: `evaluate_session_function` puts literals in their place."""

TABLE_FUNCTIONS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "pg_get_keywords": (
        "lookup__keywords",
        (("word", "text"), ("catcode", "char"), ("barelabel", "bool"), ("catdesc", "text"), ("baredesc", "text")),
    ),
    "pg_partition_ancestors": ("lookup__none", (("relid", "regclass"),)),
    "pg_partition_tree": (
        "lookup__none", (("relid", "regclass"), ("parentrelid", "regclass"), ("isleaf", "bool"), ("level", "int4")),
    ),
    "aclexplode": (
        "lookup__none", (("grantor", "oid"), ("grantee", "oid"), ("privilege_type", "text"), ("is_grantable", "bool")),
    ),
    "pg_options_to_table": ("lookup__none", (("option_name", "text"), ("option_value", "text"))),
    "pg_get_publication_tables": ("lookup__none", (("pubid", "oid"), ("relid", "oid"))),
    "pg_listening_channels": ("lookup__none", (("pg_listening_channels", "text"),)),
}  # fmt: skip
"""Functions that stand in FROM: the table that has their rows, and the columns with their types."""

CATALOG_ONLY_FUNCTIONS = frozenset({*CATALOG_FUNCTIONS, *SESSION_FUNCTIONS, *TABLE_FUNCTIONS}) - {
    "count", "row_number", "rank", "dense_rank", "min", "max", "first_value", "last_value", "lag", "lead", "sum", "avg",
    "bool_and", "bool_or", "every", "string_agg", "array_agg", "json_agg", "lower", "upper", "reverse",
    "concat", "concat_ws", "trim", "ltrim", "rtrim", "btrim", "left", "right", "repeat", "lpad", "rpad", "replace",
    "split_part", "translate", "substr", "substring", "regexp_replace", "length", "char_length", "character_length",
    "octet_length", "strpos", "ascii", "starts_with", "format", "abs", "floor", "ceil", "round", "sign", "mod",
    "coalesce", "greatest", "least", "nullif", "unnest", "generate_series", "now", "current_timestamp", "current_date",
    "md5", "chr", "age", "localtimestamp", "clock_timestamp", "statement_timestamp", "transaction_timestamp",
}  # fmt: skip
"""Those by which a statement without a table is one about the catalog; the others say nothing about it."""
