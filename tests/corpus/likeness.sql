-- Statements without tables, answered as PostgreSQL answers them: rows, names and types of columns, the command's tag,
-- and of mistakes the SQLSTATE and its place. One statement a line, in order. Those that differ stand at the end,
-- below their reason; the test fails for one that no longer does.

-- # literals
SELECT encode('abc', 'hex'), encode('\xdead', 'base64'), '\xDEAD'::bytea, decode('ff', 'hex')
SELECT 1
SELECT -1
SELECT 2147483647
SELECT 2147483648
SELECT -2147483648
SELECT 9223372036854775807
SELECT 9223372036854775808
SELECT 1.5
SELECT 1.50
SELECT 0.1 + 0.2
SELECT 'x'
SELECT ''
SELECT 'it''s'
SELECT E'a\tb'
SELECT $$dollar$$
SELECT NULL
SELECT true, false
SELECT DATE '2024-02-29'
SELECT TIMESTAMP '2024-02-29 12:34:56.789'
SELECT TIMESTAMPTZ '2024-02-29 12:34:56+00'
SELECT TIME '07:30'
SELECT INTERVAL '1 year 2 months 3 days 4 hours'
SELECT INTERVAL '-1 day'
SELECT INTERVAL '90 minutes'
SELECT INTERVAL '1 month' AS a, INTERVAL '30 days' AS b
SELECT 1 AS a, 'x' AS b, NULL AS c
SELECT 1 AS "A b", 2 AS Mixed
-- # names of columns
SELECT 1::float8
SELECT CAST(1 AS text)
SELECT CAST('2024-01-01' AS date)
SELECT 1 + 1, 2 * 3
SELECT upper('x'), lower('X')
SELECT coalesce(NULL, 1), nullif(1, 1), greatest(1, 2), least(1, 2)
SELECT CASE WHEN true THEN 1 ELSE 2 END
SELECT (SELECT 1 AS inner_name)
SELECT date_trunc('month', TIMESTAMP '2024-02-29 12:00')
SELECT 'a' || 'b'
SELECT EXISTS (SELECT 1)
SELECT ARRAY[1, 2]
SELECT count(*) FROM (VALUES (1), (2)) AS t(x)
SELECT true AND false, NOT true, 1 = 1, 1 IN (1, 2), 'a' LIKE 'a%', 1 IS NULL
SELECT round(1.5), floor(1.5), ceil(1.5), ceiling(1.5)
-- # casts
SELECT '1'::int, '1.5'::numeric, '1.5'::float8, 't'::bool, 'off'::bool
SELECT 1.5::int, 2.5::int, -1.5::int, -2.5::int
SELECT 2.5::float8::int, 3.5::float8::int
SELECT 1::bool, 0::bool
SELECT true::int, true::text
SELECT 1.005::numeric(10,2), 1.999::numeric(10,0)
SELECT 1::numeric, 1.10::numeric
SELECT 1.5::text, 1::text, 1e20::float8::text, 0.1::float8::text
SELECT '2024-02-29'::date, '2024-02-29'::timestamp, '2024-02-29 10:00+02'::timestamptz
SELECT DATE '2024-02-29'::timestamp, TIMESTAMP '2024-02-29 23:59'::date
SELECT '1 day'::interval, '1 day'::interval::text
SELECT DATE '2024-02-29'::text, TIMESTAMP '2024-02-29 00:00'::text
SELECT '{1,2,3}'::int[]
SELECT '0d1f7d1c-5c6b-4f0e-9a53-6d1f4a1c2b3d'::uuid
SELECT ' 7 '::int
SELECT 'infinity'::float8, 'nan'::float8
SELECT 16777217::real
SELECT 1::bigint + 1
-- # numbers
SELECT 1 + 1, 7 / 2, 7 % 2, -7 / 2, -7 % 2
SELECT 7::float8 / 2
SELECT 10 / 4 * 4
SELECT 1.5 * 2, 1.5 + 1, 1.50 - 0.5
SELECT 1.10 * 1.10
SELECT 2147483647 + 1::bigint
SELECT round(0.5), round(1.5), round(2.5), round(-0.5)
SELECT round(1.234, 2), round(1.235, 2), round(1234.5, -2)
SELECT trunc(1.9), trunc(-1.9), trunc(1.987, 2)
SELECT floor(-1.5), ceil(-1.5), floor(1.5::float8)
SELECT sqrt(16::float8), power(2::float8, 3::float8), exp(1::float8), ln(10::float8)
SELECT pi(), degrees(pi()), sin(0), cos(0)
SELECT cbrt(27.0::float8), atan2(1, 1)
SELECT greatest(1, 2, NULL), least(1, 2, NULL)
SELECT 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 3, 8 >> 1
SELECT width_bucket(5, 0, 10, 5)
SELECT 1 = 1.0, 1 < 2, 1 <> 2, 1 != 2, 1 BETWEEN 0 AND 2
-- # truth
SELECT true OR NULL, false AND NULL, NULL IS NULL, true IS NOT TRUE
SELECT true = 't', 'yes'::bool
SELECT CASE 1 WHEN 1 THEN 'one' ELSE 'other' END
SELECT CASE WHEN false THEN 1 END
SELECT nullif(1, 2), nullif('a', 'a')
-- # texts
SELECT 'a' || 1, 1 || 'a', 'a' || NULL
SELECT 'a' || 1.50 || true
SELECT substr('hello', 2), substr('hello', 2, 3), substring('hello', 2, 3), left('hello', 2), right('hello', 2)
SELECT left('hello', -2), right('hello', -2)
SELECT replace('hello', 'l', 'L'), translate('hello', 'el', 'ip'), reverse('abc'), repeat('ab', 3)
SELECT lpad('7', 3, '0'), rpad('7', 3, '0'), lpad('abc', 2)
SELECT trim(both 'x' FROM 'xax'), ltrim('  a'), rtrim('a  '), btrim('xax', 'x')
SELECT initcap('hello world'), ascii('A'), chr(65), md5('a')
SELECT split_part('a,b,c', ',', 2), split_part('a,b,c', ',', -1)
SELECT 'abc' LIKE 'a%', 'abc' ILIKE 'A%', 'abc' NOT LIKE 'b%', 'abc' ~ '^a', 'abc' ~* '^A', 'abc' !~ 'b'
SELECT 'a_c' LIKE 'a\_c', 'abc' SIMILAR TO 'a(b|d)c'
SELECT regexp_replace('abcabc', 'b', 'X'), regexp_replace('abcabc', 'b', 'X', 'g')
SELECT starts_with('abc', 'a'), string_to_array('a,b', ','), array_to_string(ARRAY['a', 'b'], '-')
SELECT quote_literal('it''s'), quote_ident('a b')
SELECT format('%s-%s', 'a', 1)
SELECT 'a' < 'b', 'B' < 'a', 'a' = 'a '
SELECT overlay('abcdef' PLACING 'XX' FROM 2 FOR 2)
-- # dates and times
SELECT DATE '2024-02-29' + 1, DATE '2024-02-29' - 1
SELECT DATE '2024-01-31' + INTERVAL '1 month'
SELECT TIMESTAMP '2024-03-01 12:00' - TIMESTAMP '2024-02-01 00:00'
SELECT TIMESTAMP '2024-01-31 10:00' + INTERVAL '1 month 1 day'
SELECT INTERVAL '1 day' * 2, INTERVAL '1 month' + INTERVAL '1 day'
SELECT -INTERVAL '1 day 2 hours'
SELECT date_trunc('day', TIMESTAMP '2024-02-29 12:34'), date_trunc('week', TIMESTAMP '2024-02-29'), date_trunc('quarter', TIMESTAMP '2024-05-29')
SELECT date_trunc('hour', TIMESTAMPTZ '2024-02-29 12:34+00')
SELECT age(TIMESTAMP '2024-03-01', TIMESTAMP '2023-01-15')
SELECT to_char(TIMESTAMP '2024-02-29 13:04:05', 'YYYY-MM-DD HH24:MI:SS')
SELECT to_char(TIMESTAMP '2024-02-29 13:04:05', 'Mon DD, YYYY'), to_char(DATE '2024-02-09', 'Day'), to_char(DATE '2024-02-09', 'FMMonth FMDD')
SELECT to_char(DATE '2024-02-29', 'YYYY-"Q"Q'), to_char(DATE '2024-02-29', 'IYYY-IW')
SELECT to_char(1234.5, 'FM9,999.00'), to_char(12, '00000')
SELECT to_date('2024-02-29', 'YYYY-MM-DD'), to_timestamp('2024-02-29 10:00', 'YYYY-MM-DD HH24:MI')
SELECT to_timestamp(0)
SELECT make_date(2024, 2, 29), make_timestamp(2024, 2, 29, 1, 2, 3.5)
SELECT make_interval(days => 3)
SELECT TIMESTAMP '2024-01-01 12:00' AT TIME ZONE 'Europe/Zurich'
SELECT TIMESTAMPTZ '2024-01-01 12:00+00' AT TIME ZONE 'Europe/Zurich'
SELECT DATE '2024-01-01' < TIMESTAMP '2024-01-01 00:00:01', DATE '2024-01-01' = '2024-01-01'
SELECT now() > TIMESTAMPTZ '2020-01-01', current_date > DATE '2020-01-01', now() = current_timestamp
SELECT now() - now()
-- # rows
VALUES (1, 'a'), (2, 'b')
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(n, s)
SELECT x FROM (VALUES (2), (NULL), (1)) AS t(x) ORDER BY x
SELECT x FROM (VALUES (2), (NULL), (1)) AS t(x) ORDER BY x DESC
SELECT x FROM (VALUES (2), (NULL), (1)) AS t(x) ORDER BY x NULLS FIRST
SELECT x FROM (VALUES ('b'), ('A'), ('a')) AS t(x) ORDER BY x
SELECT d FROM generate_series(TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-03', INTERVAL '1 day') AS s(d)
SELECT d::date FROM generate_series(DATE '2024-01-01', DATE '2024-01-03', INTERVAL '1 day') AS s(d)
SELECT * FROM unnest(ARRAY['a', 'b']) AS t(x)
SELECT unnest(ARRAY[1, 2, 3])
SELECT * FROM unnest(ARRAY['a', 'b']) WITH ORDINALITY AS t(x, n)
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM a, b
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT n FROM r
SELECT 1 UNION SELECT 2 ORDER BY 1
SELECT 1 AS a UNION ALL SELECT NULL
SELECT 1 INTERSECT SELECT 1
SELECT 1 EXCEPT SELECT 1
SELECT a.x, b.y FROM (VALUES (1), (2)) AS a(x) LEFT JOIN (VALUES (1, 'p')) AS b(x, y) USING (x) ORDER BY 1
SELECT DISTINCT x FROM (VALUES (1), (1), (2)) AS t(x) ORDER BY x
SELECT x FROM (VALUES (1), (2), (3)) AS t(x) ORDER BY x LIMIT 1 OFFSET 1
SELECT x FROM (VALUES (1), (2), (3)) AS t(x) ORDER BY x FETCH FIRST 2 ROWS ONLY
SELECT 1 WHERE false
SELECT DISTINCT ON (a) a, b FROM (VALUES (1, 2), (1, 1), (2, 3)) AS t(a, b) ORDER BY a, b
-- # aggregates and windows
SELECT sum(x), avg(x) FROM (VALUES (1.5::float8), (2.25)) AS t(x)
SELECT g, count(*) FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t(g, x) GROUP BY g HAVING count(*) > 1
SELECT count(*) FILTER (WHERE x > 1) FROM (VALUES (1), (2), (3)) AS t(x)
SELECT string_agg(x, ',' ORDER BY x) FROM (VALUES ('b'), ('a')) AS t(x)
SELECT array_agg(x ORDER BY x DESC) FROM (VALUES (1), (2)) AS t(x)
SELECT bool_and(x), bool_or(x), every(x) FROM (VALUES (true), (false)) AS t(x)
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (4), (8)) AS t(x)
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (2), (8)) AS t(x)
SELECT corr(x, y) FROM (VALUES (1::float8, 2::float8), (2, 4), (3, 6)) AS t(x, y)
SELECT x, row_number() OVER (ORDER BY x), rank() OVER (ORDER BY x), dense_rank() OVER (ORDER BY x) FROM (VALUES (1), (1), (2)) AS t(x) ORDER BY 1, 2
SELECT x, percent_rank() OVER (ORDER BY x), cume_dist() OVER (ORDER BY x) FROM (VALUES (1), (2), (4)) AS t(x) ORDER BY 1
SELECT x, avg(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM (VALUES (1.0::float8), (2), (4)) AS t(x) ORDER BY 1
-- # arrays
SELECT (ARRAY[1, 2, 3])[2], (ARRAY['a', 'b'])[1]
SELECT array_length(ARRAY[1, 2, 3], 1), cardinality(ARRAY[1, 2]), array_upper(ARRAY[1, 2], 1)
SELECT 1 = ANY (ARRAY[1, 2]), 3 = ALL (ARRAY[3, 3]), ARRAY[1] <@ ARRAY[1, 2], ARRAY[1, 2] @> ARRAY[2], ARRAY[1] && ARRAY[2]
SELECT array_append(ARRAY[1], 2), array_cat(ARRAY[1], ARRAY[2]), ARRAY[1] || ARRAY[2], ARRAY[1] || 2
SELECT array_position(ARRAY['a', 'b'], 'b'), array_remove(ARRAY[1, 2, 1], 1)
SELECT ARRAY(SELECT x FROM (VALUES (2), (1)) AS t(x) ORDER BY x)
SELECT ARRAY[]::int[], '{}'::text[]
SELECT ARRAY[DATE '2024-01-01', NULL], ARRAY[TIMESTAMP '2024-01-01 10:00']
-- # json
SELECT '{"a": 1}'::json
SELECT '{"a": 1}'::json -> 'a', '{"a": "x"}'::json ->> 'a'
SELECT to_json(1), row_to_json(t) FROM (SELECT 1 AS a) AS t
-- # of sessions
SELECT version() LIKE 'PostgreSQL 16.2%'
SELECT current_setting('server_version'), current_setting('server_version_num')
SELECT pg_typeof(1), pg_typeof('x'::text), pg_typeof(1.5), pg_typeof(NULL), pg_typeof(1::float8)
SHOW transaction_isolation
SHOW TRANSACTION ISOLATION LEVEL
SHOW default_transaction_isolation
SHOW server_version
SHOW server_encoding
SHOW standard_conforming_strings
SHOW integer_datetimes
SHOW DateStyle
SHOW IntervalStyle
SHOW bytea_output
SHOW extra_float_digits
SHOW max_identifier_length
SHOW search_path
START TRANSACTION
COMMIT
BEGIN
ROLLBACK
BEGIN ISOLATION LEVEL SERIALIZABLE
SHOW transaction_isolation
END
START TRANSACTION READ ONLY
ABORT
SET extra_float_digits = 3
RESET extra_float_digits
SELECT INTERVAL '1 month 3 hours', ARRAY[INTERVAL '2 months', NULL], pg_typeof(1)
SELECT true, pg_typeof(1)
SELECT nope, pg_typeof(1)
-- # numbers, rounded and written
SELECT round(0.5::float8), round(1.5::float8), round(2.5::float8), round(-0.5::float8)
SELECT round(1.005::float8::numeric, 2), round(-2.675::float8::numeric, 2), round(2.5::float8::numeric), round(149.5::float8::numeric, -2)
SELECT round(1e20::float8::numeric, 2), round(1e24::float8::numeric, 2), trunc(0.29::float8::numeric, 2), round(0.1::real::numeric, 12)
SELECT 1.005::float8::numeric(10,2), 12345678901234567.25::numeric(20,2), (12345678901234567.25 * 1)::numeric(30,2)
SELECT round(x::numeric, 3) FROM (VALUES (0.6354999::float8), (1e20), (NULL)) AS t(x)
SELECT 0.0004::numeric, 123456789012345678901234::numeric
SELECT 1_000, 1_000 + 1, 1_000.5, 1_0.2_5, -1_0
SELECT 0x1F, 0b101, 0o17, 0xFF_FF
SELECT 1_0e2::float8
SELECT to_hex(255), to_hex(-1), to_hex(255::bigint), to_hex(-1::bigint), to_hex(NULL::integer)
SELECT to_char(1234.5, '999,999.99'), to_char(1234.5, 'FM999'), to_char(1.5, '0.00'), to_char(-7, '999')
-- # texts, cut and matched
SELECT substr('hello', -1, 3), substr('hello', 0, 2), substr('hello', -2), substring('hello' FROM 0 FOR 3), substr('hello', -5, 2)
SELECT substr(s, p), substr(s, p, n) FROM (VALUES ('hello', -1, 3), ('hello', 2, 3), ('hello', 9, 1), (NULL, 1, 1), ('hello', NULL, 2), ('hello', 2, NULL)) AS t(s, p, n)
SELECT substring('abc' FROM 2 FOR -1)
SELECT 'abc' SIMILAR TO '%b%', 'abc' SIMILAR TO 'a.c', 'a.c' SIMILAR TO 'a.c', 'abc' NOT SIMILAR TO '_b_', 'a%' SIMILAR TO 'a!%' ESCAPE '!', NULL::text SIMILAR TO 'a'
SELECT format('%s-%s', 1, 2), format('%s', true), format('%s|%s', NULL::boolean, false), format('100%%')
SELECT format('%s %s', 'a')
-- # moments
SELECT pg_typeof(now()), pg_typeof(current_date), pg_typeof(localtimestamp)
SELECT localtimestamp < '2100-01-01', pg_typeof(1)
SELECT extract(year FROM now()) > 2000, extract(epoch FROM now()) > 1, date_part('hour', now()) >= 0
SELECT to_char(now(), 'YYYY') > '2000', date_trunc('year', now()) < now(), now()::date = current_date, now()::timestamp = localtimestamp
SELECT now() - TIMESTAMP '2000-01-01' > interval '1 day', now() AT TIME ZONE 'UTC' = localtimestamp, now() BETWEEN now() - interval '1 day' AND now()
SELECT date_trunc('century', now()), date_trunc('century', now() - interval '1 day'), (now() - interval '1 day') - (now() - interval '1 day')
-- # parts of times
SELECT extract(second FROM TIMESTAMP '2024-01-01 00:00:01.5'), extract(milliseconds FROM TIMESTAMP '2024-01-01 00:00:01.5'), extract(second FROM INTERVAL '61.25 seconds')
SELECT extract(second FROM TIMESTAMP '2024-01-01 00:00:01') / 2 > 0.4, extract(second FROM NULL::timestamp)
SELECT date_part('second', TIMESTAMP '2024-01-01 00:00:01.5'), date_part('milliseconds', TIMESTAMP '2024-01-01 00:00:01.5')
SELECT date_trunc('century', TIMESTAMP '2000-12-31'), date_trunc('century', TIMESTAMP '2001-01-01'), date_trunc('millennium', TIMESTAMP '2024-02-29 10:00')
SELECT to_char(TIMESTAMP '2021-02-09 13:04:05.678', 'Mon YYYY|Month|FMMonth|Dy|Day|Q|"Q"Q|WW|IW|HH12|AM|MON|mon|DY|DAY|DDD|D|ID|W|MS|US')
SELECT now() - interval '1 day' < now(), (now() - interval '1 day')::date = current_date - 1
SELECT to_timestamp('2024-01-01', 'YYYY-MM-DD')
-- # paths into JSON
SELECT '[1, 2]'::json -> 0, '{"a": {"b": 2}}'::json #>> '{a,b}'
SELECT '{"a": {"b": 2}}'::json #>> '{a,b}', '{"a": [1, {"b": "x"}]}'::json #>> '{a,1,b}', '{"a": 1}'::json #>> '{b}'
SELECT '{"a": {"b": 2}}'::json #> '{a,b}'
-- # mistakes
SELECT FROM WHERE
SELECT nope
SELECT nope()
SELECT x FROM (VALUES (1)) AS t(y)
SELECT t.x FROM (VALUES (1)) AS t(y)
SELECT z.y FROM (VALUES (1)) AS t(y)
SELECT 'é', nope
SELECT upper(1)
SELECT upper('a', 'b')
SELECT 'a'::int
SELECT 'x'::date
SELECT 'x'::bool
SELECT '2024-02-30'::date
SELECT '1.x'::numeric
SELECT 'x'::uuid
SELECT 'x'::interval
SELECT 'x'::json
SELECT 99999999999::int
SELECT 2147483647 + 1
SELECT 300::smallint * 300::smallint
SELECT 1 + true
SELECT DATE '2024-01-01' + TIMESTAMP '2024-01-01'
SELECT DATE '2024-01-01' + DATE '2024-01-01'
SELECT true + true
SELECT 1, 2 UNION SELECT 1
SELECT x FROM (VALUES (1)) AS t(x) GROUP BY y
SELECT x, count(*) FROM (VALUES (1)) AS t(x)
SELECT count(count(*)) FROM (VALUES (1)) AS t(x)
SELECT x FROM (VALUES (1)) AS t(x) WHERE count(*) > 1
SELECT x FROM (VALUES (1)) AS t(x) ORDER BY 2
SELECT (SELECT x FROM (VALUES (1), (2)) AS t(x))
SELECT (SELECT 1, 2)
SELECT 1::nope
SELECT ARRAY[1, 'a']
SELECT a.x FROM (VALUES (1)) AS a(x), (VALUES (1)) AS b(x) WHERE x = 1
SELECT (VALUES (1), (1, 2))
SELECT 1 +
SELECT (1
SELECT 'abc
SELECT date_trunc('nope', TIMESTAMP '2024-01-01')
SELECT to_date('x', 'YYYY')
SELECT count(*) FROM nope
SELECT * FROM nope.nope
SELECT 1 LIMIT -1
SELECT 1 LIMIT 'x'
SELECT sum('a')
SELECT sum(x) FROM (VALUES ('a')) AS t(x)
SELECT lower(x) FROM (VALUES (1)) AS t(x)
SELECT x > 'a' FROM (VALUES (1)) AS t(x)
SELECT x LIKE 'a' FROM (VALUES (1)) AS t(x)
SELECT extract(nope FROM DATE '2024-01-01')
-- # what differs, and why
-- differs: numbers with an exponent, and quotients, powers and averages of decimals, are doubles: DuckDB has no numeric without a scale
SELECT 1e3
SELECT 1e-3
SELECT 7 / 2.0, 7.0 / 2, 1 / 3.0
SELECT 2 ^ 3, 2 ^ 0.5
SELECT power(2, 10), power(2.0, 3), sqrt(2), sqrt(2.0::float8), exp(0), ln(1), log(100), log10(1000)
SELECT 100 * 1 / 3, 100.0 * 1 / 3
SELECT 3 * 1.0 / 4
SELECT sum(x), avg(x) FROM (VALUES (1.5), (2.25)) AS t(x)
SELECT sum(x), avg(x) FROM (VALUES (1::bigint), (2)) AS t(x)
-- differs: varchar and char are text here; char is not filled up with blanks
SELECT 1::int8, '2'::integer, 3::smallint, 4::numeric, 5::real, 'x'::varchar
SELECT 'abc'::varchar(2)
SELECT 'abc'::char, CAST('xyz' AS char)
SELECT 'abc'::char(5)
-- differs: the parts of a date are whole numbers (bigint), as docs/sql.md says
SELECT extract(year FROM DATE '2024-02-29')
SELECT extract(month FROM DATE '2024-02-29'), extract(dow FROM DATE '2024-02-29'), extract(isodow FROM DATE '2024-02-25')
SELECT extract(epoch FROM TIMESTAMP '2024-01-01'), extract(second FROM TIMESTAMP '2024-01-01 00:00:01.5')
SELECT extract(day FROM INTERVAL '3 days'), extract(quarter FROM DATE '2024-05-01'), extract(week FROM DATE '2024-01-01')
SELECT date_part('year', DATE '2024-02-29'), date_part('hour', TIMESTAMP '2024-01-01 13:00')
-- differs: counts and places are bigint, where PostgreSQL has integer
SELECT trim(' x '), substring('abc' FROM 2 FOR 1), position('b' IN 'abc')
SELECT gcd(12, 18), lcm(4, 6), factorial(5)
SELECT length('äß'), char_length('abc'), octet_length('ä'), bit_length('a')
SELECT strpos('hello', 'l'), position('z' IN 'hello')
SELECT DATE '2024-03-01' - DATE '2024-02-01'
SELECT * FROM generate_series(1, 3)
SELECT i FROM generate_series(1, 10, 4) AS s(i)
SELECT generate_series(1, 3)
SELECT x, first_value(x) OVER w, last_value(x) OVER w, ntile(2) OVER (ORDER BY x) FROM (VALUES (1), (2), (4)) AS t(x) WINDOW w AS (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY 1
-- differs: the type of what a function makes of a whole number or decimal is DuckDB's
SELECT abs(-1), abs(-1.5), sign(-2.5)
SELECT round(7), round(15, -1)
SELECT mod(7, 3), mod(-7, 3), div(7, 2)
-- differs: a comparison with NULL that is written out is refused, with a hint: it is a slip
SELECT NULL = NULL, NULL IS NOT DISTINCT FROM NULL, 1 IS DISTINCT FROM 2
-- differs: a column of decimals has one scale: 1 beside 2.5 is 1.0
SELECT CASE WHEN true THEN 1 ELSE 2.5 END
SELECT coalesce(NULL, 'x'), coalesce(1, 2.5)
SELECT * FROM (VALUES (1, 1.5), (2, 2)) AS t(a, b)
SELECT * FROM (VALUES (1), (2.5)) AS t(a)
SELECT 1 UNION ALL SELECT 2.5
SELECT ARRAY[1, 2, NULL], ARRAY['a', 'b c', 'd"e', ''], ARRAY[true, NULL], ARRAY[1.5, 2]
-- differs: concat writes a truth in full
SELECT concat('a', 1, NULL, true), concat_ws(',', 'a', NULL, 'b')
-- differs: there is no infinite date
SELECT 'infinity'::date
SELECT '-infinity'::timestamp
-- differs: not there: periods that overlap, differences of times of day, and intervals made even
SELECT justify_days(INTERVAL '35 days'), justify_hours(INTERVAL '27 hours')
SELECT TIME '10:00' + INTERVAL '1 hour', TIME '10:00' - TIME '09:30'
SELECT (DATE '2024-01-01', DATE '2024-02-01') OVERLAPS (DATE '2024-01-15', DATE '2024-03-01')
-- differs: a date that is truncated stays without a zone: all is UTC
SELECT date_trunc('month', DATE '2024-02-29')
-- differs: a sum of whole numbers has 128 bits, so it is a numeric; a mean is a double
SELECT count(*), count(x), sum(x), avg(x), min(x), max(x) FROM (VALUES (1), (2), (NULL)) AS t(x)
SELECT g, sum(x) FROM (VALUES ('a', 1), ('b', 2), ('a', 3)) AS t(g, x) GROUP BY g ORDER BY g
SELECT x, sum(x) OVER (ORDER BY x), lag(x) OVER (ORDER BY x), lead(x, 1, 0) OVER (ORDER BY x) FROM (VALUES (1), (2), (4)) AS t(x) ORDER BY 1
SELECT g, sum(x) FROM (VALUES ('a', 1), ('b', 2)) AS t(g, x) GROUP BY ROLLUP (g) ORDER BY g
SELECT g, grouping(g), sum(x) FROM (VALUES ('a', 1), ('b', 2)) AS t(g, x) GROUP BY GROUPING SETS ((g), ()) ORDER BY 2, 1
SELECT sum(1), max('a'), min(DATE '2024-01-01')
SELECT sum(x) FROM (VALUES (1)) AS t(x) WHERE false
-- differs: the last digit of a double
SELECT stddev(x), variance(x), stddev_pop(x), var_pop(x) FROM (VALUES (1.0::float8), (2), (4)) AS t(x)
-- differs: what has more inside than a list of plain values is JSON
SELECT ARRAY[[1, 2], [3, 4]]
SELECT ROW(1, 'a')
-- differs: JSON is written without blanks
SELECT json_build_object('a', 1)
SELECT json_agg(x) FROM (VALUES (1), (2)) AS t(x)
-- differs: nothing can be written here
SHOW default_transaction_read_only
SHOW transaction_read_only
-- differs: a text beside a number is not read as one
SELECT 'a' + 1
SELECT x + 'a' FROM (VALUES (1)) AS t(x)
-- differs: released ratios must not fail: a division by zero is NULL, and so is what has no value or overflows
SELECT 1e400::float8
SELECT 1 / 0
SELECT 1 % 0
SELECT 1.0 / 0
SELECT sqrt(-1)
SELECT ln(0)
-- differs: DuckDB takes a number for a truth, a text for a number where it is not looked at, and writes numbers as text
SELECT 1 AND true
SELECT 1 WHERE 1
SELECT CASE WHEN 1 THEN 2 END
SELECT CASE WHEN true THEN 1 ELSE 'a' END
SELECT coalesce(1, 'a')
SELECT 1 UNION SELECT 'a'
SELECT x || 1 FROM (VALUES (1)) AS t(x)
