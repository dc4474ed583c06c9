-- By hand, in psql and pgAdmin.

-- case: a count with a semicolon
SELECT count(*) FROM visits;

-- case: lower case, no aliases
select ward, count(*), avg(cost) from visits group by ward order by 2 desc, 1;

-- case: comments and line breaks
/* monthly report */
SELECT
    -- the month
    date_trunc('month', admitted)::date AS month,
    count(*) AS visits      -- how many
FROM visits
WHERE kind = 'scheduled'    /* only planned ones */
GROUP BY month
ORDER BY month;

-- case: a query pgAdmin qualifies
SELECT ward, count(visit_id) AS "number of visits"
	FROM public.visits
	GROUP BY ward
	ORDER BY ward ASC;

-- case: FETCH FIRST
SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward FETCH FIRST 2 ROWS ONLY

-- case: a dollar-quoted text
SELECT count(*) FROM visits WHERE ward = $$surgery$$

-- case: an escaped text
SELECT count(*) FROM patients WHERE city = E'O\'Fallon'
---- duckdb
SELECT count(*) FROM patients WHERE city = 'O''Fallon'

-- case: casts in PostgreSQL's ways
SELECT count(*)::int AS n, avg(cost)::numeric(10,2) AS mean, '2024-01-01'::date AS since FROM visits WHERE day >= '2024-01-01'::date

-- case: a typed literal and a boolean test
SELECT insured IS TRUE AS insured, count(*) FROM patients WHERE registered >= date '2022-07-01' GROUP BY 1 ORDER BY 1

-- case: an array instead of a list
SELECT count(*) FROM visits WHERE ward = ANY (ARRAY['surgery', 'urology'])

-- case: the array as text
SELECT count(*) FROM visits WHERE ward = ANY ('{surgery,urology}'::text[])
---- duckdb
SELECT count(*) FROM visits WHERE ward IN ('surgery', 'urology')

-- case: count by condition with OR in the select list
SELECT count(*) FILTER (WHERE urgent OR nights > 7) AS serious, count(*) AS n FROM visits

-- case: extract through date_part with a cast
SELECT date_part('year', admitted)::int AS y, count(*) FROM visits GROUP BY y ORDER BY y

-- case: TABLE
TABLE wards ORDER BY ward
---- duckdb
SELECT * FROM wards ORDER BY ward

-- case: VALUES
VALUES (1, 'one'), (2, 'two')

-- case: an arithmetic question
SELECT 2 + 2 AS four, upper('x') AS x

-- case: DuckDB's FROM first
FROM visits SELECT ward, count(*) AS n GROUP BY ward ORDER BY ward

-- case: DuckDB's SUMMARIZE
SUMMARIZE visits
---- error
Unsupported 0A000: SUMMARIZE is not answered: it would read every column of every row
LINE 1: SUMMARIZE visits
        ^
HINT:  DESCRIBE shows what the schema declares; ask for the aggregates that you need.

-- case: EXPLAIN ANALYZE
EXPLAIN ANALYZE SELECT count(*) FROM visits
---- error
Unsupported 0A000: EXPLAIN ANALYZE is not answered: it would run the query and tell how many rows were read
HINT:  EXPLAIN alone is free and shows cost, noise and the SQL that would run.
