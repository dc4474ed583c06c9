"""One row changes an answer by noise alone: every way in which an engine could tell of a row is tried on neighbors.

A statement is aimed at unit 7 three ways: its rows are the only ones, they are left out (an engine may still work out
what a filter will drop, or its statistics), or all rows are read.
"""

from __future__ import annotations

import pytest

from tests.support.neighboring_databases import Neighbors, assert_alike, assert_answered, assert_refused, outcome

pytestmark = pytest.mark.slow

AIMS = ("pid = 7 AND {}", "pid <> 7 AND {}", "{}")


def aimed(both: Neighbors, condition: str) -> None:
    """Answered on both sides, whichever rows are looked at."""
    for aim in AIMS:
        assert_answered(both, f"SELECT COUNT(*) FROM visits WHERE {aim.format(condition)}")


TYPES = ("smallint", "integer", "bigint", "double precision", "real", "numeric(38,10)", "numeric(6,2)",
"numeric(38,38)",
         "text", "varchar(3)")  # fmt: skip
MOMENTS = ("date", "timestamp", "timestamptz", "time", "boolean", "uuid")


@pytest.mark.parametrize("column", ["ward", "note", "i", "big", "huge", "w", "r", "z", "c"])
def test_casts(both: Neighbors, column: str) -> None:
    counts = ", ".join(f"COUNT(CAST({column} AS {type_}))" for type_ in TYPES)
    assert_answered(both, f"SELECT {counts} FROM visits WHERE pid IN (7, 60)")
    aimed(both, f"TRY_CAST({column} AS integer) > 1")


@pytest.mark.parametrize("column", ["ward", "note"])
@pytest.mark.parametrize("type_", MOMENTS)
def test_casts_of_text_to_what_is_no_number(both: Neighbors, column: str, type_: str) -> None:
    aimed(both, f"CAST({column} AS {type_}) IS NULL")
    assert_answered(both, f"SELECT CAST({column} AS {type_}) AS k, COUNT(*) FROM visits GROUP BY k")


@pytest.mark.parametrize("column", ["i", "n", "x", "c", "d", "p", "o", "h", "ok", "u"])
def test_casts_of_the_scan(both: Neighbors, column: str) -> None:
    """The owner declares types for what is text in the engine."""
    assert_answered(both, f"SELECT COUNT({column}), COUNT(DISTINCT {column}) FROM texts")
    assert_answered(both, f"SELECT {column}, COUNT(*) FROM texts GROUP BY {column}")


@pytest.mark.parametrize("expression", [
    "big + big", "big - big", "big * big", "-big", "abs(big)", "big * big * big", "huge + huge", "huge * huge", "-huge",
    "abs(huge)", "i + i", "i * i", "-i", "abs(i)", "round(i, -9)", "round(big, -15)", "trunc(big, -15)", "n + big",
    "big & -1", "big | i", "big # big", "sign(huge)", "floor(w)", "ceil(huge)", "width_bucket(w, 0, 1, 9)",
    "big << 1", "~big",
])  # fmt: skip
def test_whole_numbers_that_overflow(both: Neighbors, expression: str) -> None:
    aimed(both, f"{expression} > 5")
    assert_answered(both, f"SELECT SUM(CLIP({expression}, 0, 9)) FROM visits WHERE pid IN (7, 60)")
    assert_answered(both, f"SELECT {expression} AS k, COUNT(*) FROM visits GROUP BY k")


@pytest.mark.parametrize("expression", ["big >> 70", "gcd(big, i)", "lcm(big, i)", "factorial(i)",
                                        "bit_count(big)", "i ! 2", "@ big"])  # fmt: skip
def test_whole_number_functions_without_a_total_form(both: Neighbors, expression: str) -> None:
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid = 7 AND {expression} > 5")


@pytest.mark.parametrize("expression", [
    "big // 0", "big // n", "big % n", "big % 0", "big / 0", "big // -1", "big % -1", "huge // -1", "huge % -1",
    "mod(big, i)", "div(big, i)", "n / (n - n)", "x / 0", "w / w", "c / 0", "z / 0", "0 / w", "big / big",
])  # fmt: skip
def test_divisions(both: Neighbors, expression: str) -> None:
    aimed(both, f"{expression} > 5")
    assert_answered(both, f"SELECT SUM(CLIP({expression}, -9, 9)) FROM visits")


VALUELESS = ("sqrt({})", "ln({})", "log10({})", "log2({})", "log(2, {})", "asin({})", "acos({})", "exp({})", "cbrt({})",
             "power({}, 1000)", "power({}, -0.5)", "power(0, {})", "tan({})", "atan2({0}, {0})",
             "degrees({})")  # fmt: skip


@pytest.mark.parametrize("column", ["w", "x", "r", "huge", "z", "i"])
def test_functions_without_a_value(both: Neighbors, column: str) -> None:
    calls = [call.format(column) for call in VALUELESS]
    assert_answered(both, f"SELECT {', '.join(f'COUNT({call})' for call in calls)} FROM visits WHERE pid IN (7, 60)")
    assert_answered(both, f"SELECT {', '.join(f'AVG(CLIP({call}, 0, 9))' for call in calls)} FROM visits WHERE pid = 7")
    for call in calls[::4]:
        assert_answered(both, f"SELECT {call} AS k, COUNT(*) FROM visits WHERE pid = 7 GROUP BY k")


@pytest.mark.parametrize("expression", [
    "z + z", "z - z", "z * z", "z / 3", "-z", "abs(z)", "round(z, 2)", "z * c", "c * c * c", "c + z",
    "coalesce(z, huge)", "greatest(z, huge, 1.5)", "CASE WHEN ok THEN z ELSE huge END", "nullif(z, huge)",
    "CASE WHEN ok THEN z ELSE 0.00000000000000000000000000000000000001 END", "least(c, z)",
    "CAST(huge AS numeric(38,0))",
])  # fmt: skip
def test_decimals(both: Neighbors, expression: str) -> None:
    aimed(both, f"{expression} > 5")
    assert_answered(both, f"SELECT SUM(CLIP({expression}, 0, 9)) FROM visits")


@pytest.mark.parametrize("condition", [
    "z = huge", "z > w", "huge = w", "huge > c", "big = w", "w = r", "huge IN (1, 2.5, 1e40)",
    "z BETWEEN 1e-12 AND 1e30",
    "z IN (huge, c, n)", "big < 0.000000000000000000000000000001", "n IN (0.5, 9223372036854775808)", "c <> z", "d = p",
    "d > o", "p <> o", "i = big", "(n, z) IN ((1, 2.5))", "huge IS DISTINCT FROM z", "x = ANY(ARRAY[1, 2.5])",
])  # fmt: skip
def test_comparisons_of_two_types(both: Neighbors, condition: str) -> None:
    aimed(both, condition)


@pytest.mark.parametrize("relation", [
    "(SELECT z AS v FROM visits UNION ALL SELECT huge FROM visits) t",
    "(SELECT pid, z AS v FROM visits UNION SELECT pid, huge FROM visits) t",
    "(SELECT pid, z AS v FROM visits INTERSECT SELECT pid, c FROM visits) t",
    "(SELECT pid, i AS v FROM visits EXCEPT SELECT pid, big FROM visits) t",
    "(SELECT a.z AS v FROM visits a JOIN visits b ON a.pid = b.pid AND a.z = b.huge) t",
    "(SELECT a.big AS v FROM visits a JOIN visits b ON a.pid = b.pid AND a.big = b.w) t",
    "(SELECT LAG(z, 1, huge) OVER (PARTITION BY pid ORDER BY vid) AS v FROM visits) t",
    "(SELECT LAG(i, 1, big) OVER (PARTITION BY pid ORDER BY vid) AS v FROM visits) t",
    "(SELECT v.z AS v FROM visits v JOIN kinds k ON v.z = k.rank) t",
    "(SELECT v.huge AS v FROM visits v LEFT JOIN kinds k ON v.huge = k.rank) t",
])  # fmt: skip
def test_columns_of_two_types_meet(both: Neighbors, relation: str) -> None:
    assert_answered(both, f"SELECT COUNT(*), SUM(CLIP(v, 0, 9)) FROM {relation}")


@pytest.mark.parametrize("expression", [
    "d + 1", "d - 1", "d + i", "d - i", "d + big", "d + INTERVAL '1 day'", "d - INTERVAL '9999 years'",
    "p + INTERVAL '9999 years'", "p - INTERVAL '1 microsecond'", "p + big * INTERVAL '1 day'", "o + INTERVAL '1 month'",
    "make_date(i, i, i)", "make_date(2020, n, 30)", "to_timestamp(w)", "to_timestamp(big)", "last_day(d)",
    "last_day(p)",
    "date_trunc('week', d)", "date_trunc('millennium', p)", "date_trunc('century', o)",
    "time_bucket(INTERVAL '7 days', d)",
    "time_bucket(INTERVAL '100 years', p)", "o AT TIME ZONE 'Pacific/Kiritimati'", "p AT TIME ZONE 'Etc/GMT+12'",
    "CAST(ward AS date) + 1", "date_bin('3 days', p, TIMESTAMP '9999-12-31')", "strptime(ward, '%Y-%m-%d')",
    "to_date(note, 'YYYY-MM-DD')",
])  # fmt: skip
def test_dates_that_leave_the_calendar(both: Neighbors, expression: str) -> None:
    aimed(both, f"{expression} IS NULL")
    assert_answered(both, f"SELECT {expression} AS k, COUNT(*) FROM visits GROUP BY k")


@pytest.mark.parametrize("expression", [
    "extract(week FROM d)", "extract(isoyear FROM p)", "extract(epoch FROM p)", "extract(microsecond FROM h)",
    "extract(year FROM age(p, q))", "extract(epoch FROM p - q)", "date_diff('microsecond', p, q)",
    "date_diff('year', d, f)", "date_sub('month', p, o)", "d - f", "extract(hour FROM p - q)", "extract(doy FROM o)",
    "date_diff('day', born, CURRENT_DATE)",
])  # fmt: skip
def test_parts_and_differences_of_dates(both: Neighbors, expression: str) -> None:
    table = "people" if "born" in expression else "visits"
    assert_answered(both, f"SELECT SUM(CLIP({expression}, 0, 9)), COUNT({expression}) FROM {table} WHERE pid = 7")
    assert_answered(both, f"SELECT {expression} AS k, COUNT(*) FROM {table} GROUP BY k")


@pytest.mark.parametrize("condition", [
    "date_trunc('eon', p) IS NULL", "date_trunc(ward, p) IS NULL", "extract(nonsense FROM p) > 1",
    "date_part(ward, p) > 1",
    "date_diff('fortnight', p, q) > 1", "date_diff(ward, p, q) > 1", "date_sub('', p, q) > 1",
    "p + INTERVAL '1 eon' > p",
    "p + CAST(note AS interval) > p", "p + n * INTERVAL '1 hour' > p", "p + INTERVAL '99999999999 days' > p",
    "p AT TIME ZONE ward > p", "p AT TIME ZONE 'Nowhere/Zone' > p", "time_bucket(INTERVAL '0 days', p) > p",
    "to_char(p, note) = 'x'", "strftime(p, '%Q') = 'x'", "age(p, q) = 1", "d > '20000-01-01'", "d > 'infinity'",
])  # fmt: skip
def test_parts_and_formats_that_rows_would_choose(both: Neighbors, condition: str) -> None:
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid = 7 AND {condition}")


@pytest.mark.parametrize("condition", [
    "note ~ '('", "note ~ note", "'a' ~ note", "note LIKE ward", "note LIKE 'a' ESCAPE 'ab'",
    "note LIKE 'a' ESCAPE note",
    r"note LIKE 'a\'", "note SIMILAR TO '('", "note SIMILAR TO ward", "regexp_replace(note, ward, 'x') = 'x'",
    r"regexp_replace(note, 'a', '\9') = 'x'", "regexp_matches(note, 'a{2000}')", "note ~ '(a{1000}){1000}'",
    r"note ~ '(a)\1'", "note ~ '(?=a)'", "regexp_split_to_array(note, 'a') IS NULL", "note ~ E'[\\x00-'",
    "note ~ '[[:nope:]]'", "note GLOB '['", "note ^@ n", "note ~ '(a?){500}b'",
])  # fmt: skip
def test_patterns_that_do_not_stand_alone(both: Neighbors, condition: str) -> None:
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid = 7 AND {condition}")


@pytest.mark.parametrize("condition", [
    "note LIKE '%a_%a_%a_%a_%a_%a_%a_%b'", "note ILIKE '%a_%a_%a_%a_%b'", r"note LIKE '\%'", "note ~ '(a*)*b'",
    "note ~ '(.*.*.*.*.*.*)z$'", "regexp_replace(left(note, 30), 'a*', 'b', 'g') = 'x'", "note SIMILAR TO '%(a|b)_%'",
    "length(regexp_substr(repeat(note, 49), '.*[^a]{50}.{100}$')) > 5", "ward ~ '^$'",
    "ord(note) > 97", "unicode(note) IS NULL",
])  # fmt: skip
def test_patterns_of_text_that_no_pattern_expects(both: Neighbors, condition: str) -> None:
    aimed(both, condition)


@pytest.mark.parametrize("call", [
    "from_hex(note)", "unhex(note)", "from_base64(note)", "from_binary(note)", "decode(note)", "chr(i)",
    "url_decode(note)",
    "hamming(note, ward)", "mismatches(note, ward)", "jaccard(note, ward)", "levenshtein(note, ward)",
    "format(note, n)",
    "printf(note, n)", "parse_formatted_bytes(note)", "to_base(big, i)", "bar(w, 0, 1, i)", "strptime(note, ward)",
    "json(note)", "bit(note)", "encode(note)", "md5(note)", "string_split(note, '')",
    "nfc_normalize(note)", "strip_accents(note)", "format_bytes(big)", "concat(chr(i), note)", "set_bit(note, i, 1)",
])  # fmt: skip
def test_text_functions_that_throw(both: Neighbors, call: str) -> None:
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid = 7 AND {call} IS NULL")


@pytest.mark.parametrize("call", [
    "substring(note, big)", "substring(note, 1, big)", "substring(note, 9223372036854775807)", "left(note, i)",
    "left(note, -9223372036854775808)", "right(note, 99999999999)", "repeat(note, n)", "repeat(note, 1000000000)",
    "repeat(repeat(repeat(note, 50), 50), 50)", "lpad(note, 1000000000, 'x')", "rpad(note, i, 'x')",
    "lpad(note, 5, ward)",
    "array_extract(note, big)", "note[i]", "note[1:i]", "replace(note, '', 'x')", "replace(note, ward, 'x')",
    "split_part(note, ward, i)", "overlay(note PLACING 'x' FROM i)", "range(i)", "generate_series(1, big)",
    "list_resize([1], big)", "lpad(lpad(note, 100000, 'x'), 100000, 'y')",
    r"regexp_replace(repeat(note, 49), 'a*', '\&\&')",
])  # fmt: skip
def test_lengths_that_rows_would_choose(both: Neighbors, call: str) -> None:
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid = 7 AND {call} IS NULL")


@pytest.mark.parametrize("call", [
    "note || note || note", "repeat(note, 49)", "lpad(note, 1000, 'é')", "replace(note, 'a', 'aaaaa')", "reverse(note)",
    "initcap(note)", "translate(note, 'a', 'ß')", "left(note, 10000)", "right(note, -1)",
    "substring(note, 10000, 10000)",
    "concat(note, ward, big, w, d)", "concat_ws('-', note, ward)", "split_part(note, 'a', 5000)", "trim(note)",
    "ascii(ward)", "octet_length(note)",
])  # fmt: skip
def test_long_and_odd_text(both: Neighbors, call: str) -> None:
    aimed(both, f"{call} IS NULL")
    assert_answered(both, f"SELECT {call} AS k, COUNT(*) FROM visits GROUP BY k")


@pytest.mark.parametrize("call", [
    "[n, i][big]", "list_value(n)[i]", "array_length(ARRAY[n])", "note::json", "note -> 'a'", "note ->> 'a'",
    "json_extract(note, ward)", "json_extract(note, '$')", "json_valid(note)", "to_json(note)", "row(n, i)", "{'a': n}",
    "map([n], [i])", "struct_pack(a := n)", "list_transform([n], x -> x + 1)", "unnest([n])", "note::integer[]",
    "string_to_array(note, ',')", "cardinality(ARRAY[n])", "list_distance([w], [w])",
])  # fmt: skip
def test_lists_structs_and_json(both: Neighbors, call: str) -> None:
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid = 7 AND ({call}) IS NULL")


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM visits WHERE n = (SELECT n FROM visits)",
    "SELECT COUNT(*) FROM visits v WHERE n = (SELECT w.n FROM visits w WHERE w.pid = v.pid)",
    "SELECT COUNT(*) FROM visits v WHERE n = (SELECT w.n FROM visits w WHERE w.pid = v.pid LIMIT 1)",
    "SELECT COUNT(*) FROM visits v WHERE n = (SELECT MAX(w.n) FROM visits w WHERE w.pid <> v.pid)",
    "SELECT COUNT(*) FROM visits v WHERE n = (SELECT rank FROM kinds k WHERE k.rank > v.n)",
    "SELECT COUNT(*) FROM visits LIMIT (SELECT n FROM visits)",
    "SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 1) t",
    "SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY w OFFSET 5) t",
    "SELECT COUNT(*) FROM (SELECT * FROM visits FETCH FIRST 1 ROW ONLY) t",
    "SELECT COUNT(*) FROM visits LIMIT -1",
    "SELECT kind, COUNT(*) FROM visits GROUP BY kind LIMIT 9223372036854775808",
    "SELECT kind, COUNT(*) FROM visits GROUP BY kind LIMIT n",
    "SELECT SUM(CLIP(s, 0, 5)) FROM (SELECT pid, MAX(n, 2) AS s FROM visits GROUP BY pid) t",
    "SELECT QUANTILE_CONT(x, n) FROM visits", "SELECT QUANTILE_CONT(x, 2) FROM visits",
    "SELECT APPROX_TOP_K(kind, n) FROM visits", "SELECT MAX(x, 3) FROM visits", "SELECT ARG_MAX(x, n) FROM visits",
    "SELECT bitstring_agg(n) FROM visits", "SELECT STRING_AGG(note, ',') FROM visits",
])  # fmt: skip
def test_one_row_limits_and_other_numbers_from_rows(both: Neighbors, sql: str) -> None:
    assert_refused(both, sql)


@pytest.mark.parametrize("window", [
    "SUM(n) OVER (PARTITION BY pid ORDER BY vid ROWS n PRECEDING)",
    "SUM(n) OVER (PARTITION BY pid ORDER BY vid ROWS -1 PRECEDING)",
    "SUM(n) OVER (PARTITION BY pid ORDER BY vid ROWS 9223372036854775807 PRECEDING)",
    "SUM(n) OVER (PARTITION BY pid ORDER BY vid ROWS BETWEEN CURRENT ROW AND 9223372036854775807 FOLLOWING)",
    "SUM(n) OVER (PARTITION BY pid ORDER BY p RANGE INTERVAL '9999 years' PRECEDING)",
    "SUM(n) OVER (PARTITION BY pid ORDER BY w RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
    "SUM(n) OVER (PARTITION BY pid ORDER BY vid GROUPS 1 PRECEDING)",
    "SUM(n) OVER (ORDER BY vid)", "ROW_NUMBER() OVER ()",
    "NTILE(n) OVER (PARTITION BY pid ORDER BY vid)", "NTILE(0) OVER (PARTITION BY pid ORDER BY vid)",
    "LAG(n, big) OVER (PARTITION BY pid ORDER BY vid)", "LEAD(n, -1) OVER (PARTITION BY pid ORDER BY vid)",
    "LEAD(n, 9223372036854775807) OVER (PARTITION BY pid ORDER BY vid)",
    "NTH_VALUE(n, 0) OVER (PARTITION BY pid ORDER BY vid)", "NTH_VALUE(n, i) OVER (PARTITION BY pid ORDER BY vid)",
])  # fmt: skip
def test_frames_and_offsets(both: Neighbors, window: str) -> None:
    assert_refused(both, f"SELECT SUM(CLIP(s, 0, 5)) FROM (SELECT {window} AS s FROM visits) t")


OWN = ("SUM({})", "AVG({})", "VAR_POP({})", "STDDEV({})", "MIN({})", "MAX({})", "MEDIAN({})")
PICKED = "MIN({0}), MAX({0}), MEDIAN({0}), MODE({0}), COUNT(DISTINCT {0}), ARG_MAX({0}, vid), ANY_VALUE({0})"


@pytest.mark.parametrize("column", ["big", "huge", "i", "x", "n", "z", "w", "CLIP(w, -1e30, 1e30)", "r"])
def test_a_units_own_aggregates_of_the_worst_values(both: Neighbors, column: str) -> None:
    """Without bounds some are refused; none fails, nor as a window."""
    for aggregate in OWN:
        own = f"SELECT pid, {aggregate.format(column)} AS s FROM visits GROUP BY pid"
        said = assert_alike(both, f"SELECT SUM(CLIP(s, 0, 5)), COUNT(s) FROM ({own}) t")
        assert said.kind in ("answered", "UnboundedValues")
    picked = f"SELECT pid, {PICKED.format(column)} FROM visits GROUP BY pid"
    counts = ", ".join(f"COUNT({name})" for name in "abcdefg")
    assert_answered(both, f"SELECT {counts} FROM ({picked}) t(pid, a, b, c, d, e, f, g)")
    for aggregate in ("SUM({})", "AVG({})", "MAX({})"):
        window = f"{aggregate.format(column)} OVER (PARTITION BY pid ORDER BY vid ROWS 2 PRECEDING)"
        assert_alike(both, f"SELECT SUM(CLIP(s, 0, 5)) FROM (SELECT {window} AS s FROM visits) t")


@pytest.mark.parametrize("call", [
    "error('x')", "error(note)", "assert_true(n > 0)", "sleep_ms(1000)", "pg_sleep(1)", "write_log(note)",
    "raise(note)",
    "system.main.error('x')", '"error"(note)', "CASE WHEN pid = 7 THEN error('x') END",
    "CASE WHEN n > 0 THEN 1 ELSE error('x') END",
])  # fmt: skip
def test_functions_that_fail_or_wait_on_purpose(both: Neighbors, call: str) -> None:
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid = 7 AND {call} IS NULL")
    assert_refused(both, f"SELECT COUNT(*), MAX({call}) FROM visits")
    assert_refused(both, f"SELECT {call}, c FROM (SELECT COUNT(*) AS c, 1 AS n, 'a' AS note, 7 AS pid FROM visits) t")


@pytest.mark.parametrize("call", [
    "random()", "setseed(0.5)", "uuid()", "uuidv7()", "gen_random_uuid()", "nextval('s')", "currval('s')",
    "txid_current()",
    "getvariable('v')", "current_query()", "stats(n)", "hash(pid)", "rowid", "getenv('HOME')", "visits.rowid", "_uid",
    "_weight", "pg_relation_size('visits')", "current_setting('memory_limit')", "pg_typeof(n)", "typeof(n)",
    "in_search_path('a', 'b')", "system.main.random()", '"random"()', "alias(n)",
])  # fmt: skip
def test_chance_and_what_the_engine_knows(both: Neighbors, call: str) -> None:
    assert_refused(both, f"SELECT COUNT(*) FROM visits WHERE pid = 7 AND {call} IS NULL")


@pytest.mark.parametrize("aggregate", ["first(n)", "last(n)", "any_value(n)", "arbitrary(n)", "list(n)", "array_agg(n)",
                                       "string_agg(note, '')", "approx_top_k(n, 0)", "reservoir_quantile(x, 0.5)",
                                       "bit_xor(n)", "product(n)", "entropy(n)", "kurtosis(x)", "arg_min(n, x)",
                                       "max_by(n, x)", "json_group_array(n)", "histogram_exact(n, [1])", "sem(x)",
                                       "mad(x)", "fsum(x)", "kahan_sum(x)", "favg(x)", "sum_no_overflow(big)",
                                       "bit_and(i)", "geomean(x)", "first_value(n)"])  # fmt: skip
def test_aggregates_that_show_rows_or_throw(both: Neighbors, aggregate: str) -> None:
    assert_refused(both, f"SELECT {aggregate} FROM visits WHERE pid = 7")


@pytest.mark.parametrize("sql", [
    "SELECT * FROM visits", "TABLE visits", "FROM visits", "SELECT * FROM read_csv('data.duckdb')",
    "SELECT * FROM glob('*')",
    "SELECT * FROM 'data.duckdb'", "SELECT * FROM query('SELECT * FROM visits')", "SELECT * FROM query_table('visits')",
    "SELECT * FROM duckdb_tables()", "SELECT * FROM pragma_storage_info('visits')",
    "SELECT * FROM pragma_table_info('visits')",
    "SELECT * FROM duckdb_settings()", "SELECT * FROM system.main.duckdb_settings()", "SELECT * FROM sqlite_master",
    "SELECT COUNT(*) FROM visits, duckdb_tables() t", "SELECT COUNT(*) FROM visits TABLESAMPLE SYSTEM (10)",
    "SELECT COUNT(*) FROM visits USING SAMPLE 10", "COPY visits TO 'x.csv'",
    "COPY (SELECT COUNT(*) FROM visits) TO 'x.csv'",
    "EXPORT DATABASE 'x'", "ATTACH 'data.duckdb'", "DETACH data", "USE data", "INSTALL httpfs", "LOAD httpfs",
    "CHECKPOINT",
    "VACUUM", "ANALYZE visits", "PRAGMA storage_info('visits')", "PRAGMA database_list", "CALL pragma_version()",
    "SET memory_limit = '1MB'", "SET threads = 1", "SET error_on_division_by_zero = true", "SET GLOBAL threads = 1",
    "SET VARIABLE v = 1", "RESET memory_limit", "PREPARE p AS DROP TABLE visits", "EXECUTE p",
    "CREATE TABLE t AS SELECT * FROM visits",
    "CREATE TEMP MACRO f(x) AS x", "INSERT INTO visits SELECT * FROM visits", "UPDATE visits SET n = 1",
    "DELETE FROM visits",
    "WITH t AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM t", "SELECT * INTO t FROM visits",
    "SELECT COUNT(*) FROM visits FOR UPDATE", "EXPLAIN ANALYZE SELECT COUNT(*) FROM visits", "SUMMARIZE visits",
    "EXPLAIN (ANALYZE, BUFFERS) SELECT COUNT(*) FROM visits", "EXPLAIN (FORMAT xml) SELECT COUNT(*) FROM visits",
    "SHOW ALL TABLES", "SELECT COUNT(*) FROM temp.visits", "SELECT COUNT(*) FROM information_schema.visits",
    "SELECT COUNT(*) FROM visits ASOF JOIN people ON visits.p > people.born", "DO $$ BEGIN END $$", "LISTEN x",
])  # fmt: skip
def test_table_functions_and_statements(both: Neighbors, sql: str) -> None:
    assert_refused(both, sql)


@pytest.mark.parametrize("sql", [
    "SELECT SUM(note) FROM visits", "SELECT note FROM visits WHERE pid = 7",
    "SELECT COUNT(*) FROM visits WHERE note = 1",
    "SELECT COUNT(*) FROM visits WHERE nosuch = 1", "SELECT CORR(w, x) FROM visits WHERE pid = 7",
    "SELECT MEDIAN(big) FROM visits",
    "SELECT pid, COUNT(*) FROM visits GROUP BY pid", "SELECT COUNT(*) FROM visits GROUP BY nosuch(note)",
    "SELECT CAST('x' AS integer), COUNT(*) FROM visits",
])  # fmt: skip
def test_what_an_error_says(both: Neighbors, sql: str) -> None:
    """No word of it is a row's; with a tenth of the rows it is the same."""
    said = assert_alike(both, sql)
    assert said.kind != "answered" and outcome(both.small, sql) == said
    assert not any(word in said.text for word in ("Nowhere", "2147483647", "20000-01-01", "aaaa", "fine"))


KEYS = ("kind", "rank", "ok", "n", "date_trunc")


@pytest.mark.parametrize("sql", [
    "SELECT COUNT(*) FROM visits",
    "SELECT SUM(x), AVG(x), STDDEV(x), MEDIAN(x), MIN(f), MAX(q) FROM visits WHERE pid = 7",
    "SELECT kind, COUNT(*), MODE(sex) FROM visits JOIN people USING (pid) GROUP BY kind",
    "SELECT HISTOGRAM(kind) FROM visits",
    "SELECT ok, n, COUNT(*) FROM visits GROUP BY ROLLUP (ok, n)",
    "SELECT kind, rank, COUNT(*) FROM visits JOIN kinds USING (kind)"
    " GROUP BY kind, rank",
    "SELECT n, COUNT(*) FROM (SELECT pid, LEAST(COUNT(*), 5) AS n FROM visits GROUP BY pid) t GROUP BY n",
    "SELECT DATE_TRUNC('month', f), COUNT(*) FROM visits GROUP BY 1", "SELECT COUNT(*) FROM visits WHERE FALSE",
])  # fmt: skip
def test_the_shape_of_a_result(both: Neighbors, sql: str) -> None:
    """As many rows, with the same keys in the same order: groups are listed, whoever is in them."""
    assert_answered(both, sql)
    shapes = []
    for side in (both.without, both.with_victim, both.small):
        answer = side.execute(sql)
        noisy = {place for bars in answer.errors for place, bar in enumerate(bars) if bar is not None}
        keys = [c for c, column in enumerate(answer.columns) if column.name in KEYS]
        assert not noisy & set(keys)
        shapes.append((answer.columns, len(answer.rows), [tuple(row[c] for c in keys) for row in answer.rows]))
    assert shapes[0] == shapes[1] == shapes[2]
