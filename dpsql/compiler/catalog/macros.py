"""PostgreSQL's functions over the catalog, as macros of its DuckDB.

Names of columns that end in __ belong to the lookups: an argument that is put into a macro never means one of them.
"""

from __future__ import annotations

MACROS = (
    "dp_no(x := NULL, y := NULL) AS false",
    "dp_yes(x := NULL, y := NULL) AS true",
    "dp_one(x) AS 1::INTEGER",
    "dp_four(x) AS 4::INTEGER",
    "dp_nothing(x := NULL, y := NULL) AS 0::BIGINT",
    "dp_empty(x := NULL) AS ''",
    "dp_no_number(x := NULL) AS NULL::BIGINT",
    "dp_no_text(x := NULL, y := NULL, z := NULL, u := NULL) AS NULL::VARCHAR",
    "dp_no_list(x := NULL, y := NULL) AS NULL::VARCHAR[]",
    "dp_no_rows(x := NULL, y := NULL) AS []::UINTEGER[]",
    "dp_utf8() AS 'UTF8'",
    "dp_is_number(x) AS CASE WHEN x IS NOT NULL THEN true END",
    # objects by their numbers
    "dp_pg_table_is_visible(x) AS (SELECT visible__ FROM lookup__relations WHERE oid__ = x)",
    "dp_pg_type_is_visible(x) AS (SELECT visible__ FROM lookup__types WHERE oid__ = x)",
    "dp_pg_relation_is_publishable(x) AS (SELECT publishable__ FROM lookup__relations WHERE oid__ = x)",
    """dp_format_type(x, m) AS CASE WHEN x IS NULL THEN NULL WHEN x = 0 THEN '-' ELSE coalesce(
        (SELECT CASE WHEN m IS NULL OR m < 0 OR before__ IS NULL THEN name__
                     WHEN numeric__ THEN concat('numeric(', (m - 4) >> 16, ',', (m - 4) & 2047, ')', after__)
                     ELSE concat(before__, '(', CASE WHEN length__ THEN m - 4 ELSE m END, ')', after__) END
         FROM lookup__types WHERE oid__ = x), '???') END""",
    """dp_obj_description(x, c := NULL) AS (SELECT first(text__) FROM lookup__comments
        WHERE object__ = x AND place__ = 0 AND (c IS NULL OR class__ = c))""",
    """dp_col_description(x, n) AS (SELECT text__ FROM lookup__comments
        WHERE object__ = x AND class__ = 'pg_class' AND place__ = n AND n <> 0)""",
    "dp_shobj_description(x, c) AS NULL::VARCHAR",
    "dp_pg_get_constraintdef(x, p := NULL) AS (SELECT text__ FROM lookup__constraints WHERE oid__ = x)",
    """dp_pg_get_indexdef(x, n := 0, p := NULL) AS (SELECT CASE WHEN p THEN pretty__ ELSE text__ END
        FROM lookup__indexes WHERE oid__ = x AND place__ = n)""",
    "dp_pg_get_viewdef(x, p := NULL) AS (SELECT text__ FROM lookup__views WHERE oid__ = x)",
    "dp_pg_get_expr(x, y, p := NULL) AS x::VARCHAR",
    "dp_pg_get_function_arguments(x) AS (SELECT arguments__ FROM lookup__procedures WHERE oid__ = x)",
    "dp_pg_get_function_identity_arguments(x) AS (SELECT identity__ FROM lookup__procedures WHERE oid__ = x)",
    "dp_pg_get_function_result(x) AS (SELECT result__ FROM lookup__procedures WHERE oid__ = x)",
    "dp_pg_encoding_to_char(x) AS CASE x WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' ELSE '' END",
    """dp_pg_char_to_encoding(x) AS CASE WHEN x IS NULL THEN NULL WHEN upper(x) IN ('UTF8', 'UTF-8', 'UNICODE') THEN 6
        ELSE -1 END""",
    """dp_pg_size_pretty(x) AS CASE WHEN abs(x) < 10240 THEN concat(x, ' bytes')
        WHEN abs(x) < 10485760 THEN concat((x + 512) // 1024, ' kB') ELSE concat((x + 524288) // 1048576, ' MB') END""",
    """dp_get_userbyid(x, who) AS CASE WHEN x IS NULL THEN NULL WHEN x = 16384 THEN who ELSE
        coalesce((SELECT name__ FROM lookup__roles WHERE oid__ = x), concat('unknown (OID=', x, ')')) END""",
    # names to numbers, and back
    "dp_number_out(x) AS CASE WHEN x = 0 THEN '-' ELSE x::VARCHAR END",
    "dp_regclass_of(x) AS (SELECT first(oid__) FROM lookup__relation_names WHERE name__ = x)",
    "dp_regtype_of(x) AS (SELECT first(oid__) FROM lookup__type_names WHERE name__ = lower(x))",
    """dp_regproc_of(x) AS (SELECT first(oid__) FROM lookup__procedures
        WHERE name__ = lower(replace(x, 'pg_catalog.', '')))""",
    "dp_regnamespace_of(x) AS (SELECT first(oid__) FROM lookup__spaces WHERE name__ = x)",
    "dp_regclass_out(x) AS coalesce((SELECT shown__ FROM lookup__relations WHERE oid__ = x), dp_number_out(x))",
    "dp_regtype_out(x) AS coalesce((SELECT name__ FROM lookup__types WHERE oid__ = x), dp_number_out(x))",
    "dp_regproc_out(x) AS coalesce((SELECT name__ FROM lookup__procedures WHERE oid__ = x), dp_number_out(x))",
    """dp_regprocedure_out(x) AS coalesce((SELECT signature__ FROM lookup__procedures WHERE oid__ = x),
        dp_number_out(x))""",
    "dp_regnamespace_out(x) AS coalesce((SELECT name__ FROM lookup__spaces WHERE oid__ = x), dp_number_out(x))",
    """dp_regtypes_out(l) AS CASE WHEN len(l) = 0 THEN [] ELSE (
        SELECT list(coalesce(t__.name__, dp_number_out(u__.one__)) ORDER BY u__.place__)
        FROM unnest(l) WITH ORDINALITY AS u__(one__, place__)
        LEFT JOIN lookup__types AS t__ ON t__.oid__ = u__.one__) END""",
    # who may do what: analysts may read everything that the schema shows, and change nothing
    "dp_may_select(p) AS contains(upper(p), 'SELECT')",
    "dp_may_use(p) AS contains(upper(p), 'USAGE')",
    "dp_may_execute(p) AS contains(upper(p), 'EXECUTE')",
    "dp_may_connect(p) AS contains(upper(p), 'CONNECT')",
    # lists
    """dp_array_to_string(l, s, n := NULL) AS CASE WHEN l IS NULL THEN NULL ELSE coalesce(list_aggregate(list_filter(
        list_transform(l, lambda x__: coalesce(x__::VARCHAR, n)), lambda x__: x__ IS NOT NULL), 'string_agg', s), '')
        END""",
    "dp_array_upper(l, d) AS CASE WHEN d = 1 AND len(l) > 0 THEN len(l)::INTEGER END",
    "dp_array_lower(l, d) AS CASE WHEN d = 1 AND len(l) > 0 THEN 1::INTEGER END",
    "dp_vector_upper(l, d) AS CASE WHEN d = 1 AND len(l) > 0 THEN len(l)::INTEGER - 1 END",
    "dp_vector_lower(l, d) AS CASE WHEN d = 1 AND len(l) > 0 THEN 0::INTEGER END",
    "dp_array_length(l, d) AS CASE WHEN d = 1 AND len(l) > 0 THEN len(l)::INTEGER END",
    "dp_array_remove(l, v) AS list_filter(l, lambda x__: x__ IS DISTINCT FROM v)",
    "dp_array_append(l, v) AS list_append(coalesce(l, []), v)",
    "dp_array_cat(l, v) AS CASE WHEN l IS NULL THEN v WHEN v IS NULL THEN l ELSE list_concat(l, v) END",
    "dp_array_position(l, v) AS nullif(list_position(l, v), 0)",
    "dp_string_to_array(x, s) AS CASE WHEN x = '' THEN [] ELSE string_split(x, s) END",
    "dp_generate_subscripts(l, d, r := false) AS range(1, len(l) + 1)",
    "dp_vector_subscripts(l, d, r := false) AS range(0, len(l))",
    """dp_expandarray(l) AS list_transform(range(1, len(l) + 1), lambda i__: {'x': l[i__], 'n': i__::INTEGER})""",
    # text
    "dp_octet_length(x) AS octet_length(encode(x))",
    "dp_quote_literal(x) AS concat('''', replace(x, '''', ''''''), '''')",
    "dp_parse_ident(x) AS list_transform(string_split(x, '.'), lambda p__: trim(p__, '\"'))",
    """dp_quote_ident(x) AS CASE WHEN x IS NULL THEN NULL WHEN regexp_full_match(x, '[a-z_][a-z0-9_]*')
        AND NOT EXISTS (SELECT 1 FROM lookup__keywords AS k__ WHERE k__.word = x AND k__.catcode <> 'U') THEN x
        ELSE concat('"', replace(x, '"', '""'), '"') END""",
)
