-- What Excel, Access and Npgsql (through ODBC or ADO.NET), R's dbplyr and pandas send.

-- case: a pivot table's cache
SELECT * FROM "hospital"."public"."visits"
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM "hospital"."public"."visits"
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: a pivot table over a query
SELECT "visits"."ward", "visits"."kind", SUM("visits"."cost") AS "Sum of cost" FROM "hospital"."public"."visits" "visits" GROUP BY "visits"."ward", "visits"."kind" ORDER BY "visits"."ward", "visits"."kind"
---- duckdb
SELECT ward, kind, SUM(cost) AS "Sum of cost" FROM visits GROUP BY ward, kind ORDER BY ward, kind

-- case: a list for a validation
SELECT DISTINCT "visits"."kind" FROM "hospital"."public"."visits" "visits" ORDER BY "visits"."kind"
---- duckdb
SELECT DISTINCT kind FROM visits ORDER BY kind

-- case: a probe with one row
SELECT * FROM "public"."visits" LIMIT 1
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM "public"."visits" LIMIT 1
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: Entity Framework counts
SELECT count(*)::int FROM visits AS v WHERE v.kind = 'emergency' AND v.day >= DATE '2024-01-01'

-- case: Entity Framework groups
SELECT v.ward AS "Key", count(*)::int AS "Count", COALESCE(sum(v.paid), 0.0) AS "Total", avg(v.nights::double precision) AS "Average"
FROM visits AS v
GROUP BY v.ward
ORDER BY v.ward

-- case: Entity Framework pages
SELECT t.ward, t.n FROM (SELECT v.ward, count(*)::int AS n FROM visits AS v GROUP BY v.ward) AS t ORDER BY t.n DESC, t.ward LIMIT 3 OFFSET 2

-- case: Entity Framework's parts of a date
-- order: any
SELECT date_part('year', v.admitted)::int AS "Year", date_part('month', v.admitted)::int AS "Month", count(*)::int AS "Count" FROM visits AS v GROUP BY date_part('year', v.admitted)::int, date_part('month', v.admitted)::int

-- case: Entity Framework asks whether there is any
SELECT count(*) > 0 AS "any" FROM visits AS v WHERE v.diagnosis = 'I10'

-- case: dbplyr
SELECT "ward", AVG("cost") AS "mean_cost", COUNT(*) AS "n"
FROM (
  SELECT "visits".*, "nights" * 1.0 AS "stay"
  FROM "visits"
  WHERE (NOT(("cost" IS NULL)))
) AS "q01"
GROUP BY "ward"
ORDER BY "ward"

-- case: dbplyr counts twice
SELECT COUNT(*) AS "n" FROM (SELECT "ward", COUNT(*) AS "n" FROM "visits" GROUP BY "ward" HAVING (COUNT(*) > 850)) AS "q01"

-- case: dbplyr's head
SELECT * FROM "visits" LIMIT 6
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM "visits" LIMIT 6
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: dbplyr's fields
SELECT * FROM "visits" AS "q02" WHERE (0 = 1)
---- duckdb
SELECT * FROM visits WHERE 0 = 1

-- case: pandas reads an aggregate
SELECT day::date AS day, count(*) AS visits FROM visits WHERE day BETWEEN '2024-01-01' AND '2024-01-31' GROUP BY 1 ORDER BY 1

-- case: nullif in ratios
SELECT kind, sum(paid) / nullif(sum(cost)::numeric, 0) AS ratio FROM visits GROUP BY kind ORDER BY kind
---- duckdb
SELECT kind, sum(paid)::double / nullif(sum(cost), 0) AS ratio FROM visits GROUP BY kind ORDER BY kind

-- case: interval arithmetic
SELECT count(*) AS n FROM visits WHERE admitted >= timestamp '2024-06-30' - interval '90 days' AND admitted < timestamp '2024-06-30' + interval '1 month' - interval '1 day'

-- case: fetch first
SELECT ward, count(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward FETCH FIRST 3 ROWS ONLY

-- case: fetch first, by one
SELECT diagnosis, sum(nights) AS nights FROM visits GROUP BY diagnosis ORDER BY nights DESC, diagnosis FETCH FIRST ROW ONLY
---- duckdb
SELECT diagnosis, sum(nights) AS nights FROM visits GROUP BY diagnosis ORDER BY nights DESC, diagnosis LIMIT 1

-- case: a slip of another dialect
SELECT TOP 10 ward, count(*) FROM visits GROUP BY ward
---- error
InvalidSyntax 42601: syntax error at or near "10"
LINE 1: SELECT TOP 10 ward, count(*) FROM visits GROUP BY ward
                   ^
HINT:  Write LIMIT 10 at the end of the statement.
