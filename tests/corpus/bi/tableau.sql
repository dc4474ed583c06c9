-- What Tableau sends for filters, calculations and connection tests, beyond cases/tableau.sql.

-- case: the domain of a declared column
SELECT "visits"."kind" AS "kind" FROM "public"."visits" "visits" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST

-- case: the domain of a column that may be NULL
SELECT "patients"."sex" AS "sex" FROM "public"."patients" "patients" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST

-- case: the range of a date filter
SELECT MIN("visits"."day") AS "lower", MAX("visits"."day") AS "upper" FROM "public"."visits" "visits"
---- duckdb
SELECT DATE '2023-01-01' AS lower, DATE '2024-12-31' AS upper

-- case: the range of a date filter, with Tableau's HAVING
SELECT MIN("visits"."admitted") AS "TEMP(MIN)", MAX("visits"."admitted") AS "TEMP(MAX)" FROM "public"."visits" "visits" HAVING (COUNT(1) > 0)
---- duckdb
SELECT TIMESTAMP '2023-01-01' AS "TEMP(MIN)", TIMESTAMP '2024-12-31 23:59:59' AS "TEMP(MAX)"

-- case: a filter of members
-- order: any
SELECT "visits"."ward" AS "ward", SUM(1) AS "cnt:n:ok" FROM "public"."visits" "visits" WHERE ("visits"."kind" IN ('emergency', 'scheduled')) GROUP BY 1

-- case: a relative date filter, told from a fixed day
SELECT SUM(1) AS "cnt:n:ok" FROM "public"."visits" "visits" WHERE ("visits"."admitted" >= (DATE_TRUNC('MONTH', TIMESTAMP '2024-07-15 00:00:00') + (-2) * INTERVAL '1 MONTH')) AND ("visits"."admitted" < (DATE_TRUNC('MONTH', TIMESTAMP '2024-07-15 00:00:00') + 1 * INTERVAL '1 MONTH')) HAVING (COUNT(1) > 0)

-- case: a range of dates
SELECT SUM("visits"."paid") AS "sum:paid:ok" FROM "public"."visits" "visits" WHERE (("visits"."day" >= (DATE '2024-03-01')) AND ("visits"."day" <= (DATE '2024-03-31'))) HAVING (COUNT(1) > 0)

-- case: a week axis
-- order: any
SELECT DATE_TRUNC('WEEK', "visits"."day") AS "twk:day:ok", SUM(1) AS "cnt:n:ok" FROM "public"."visits" "visits" WHERE ("visits"."day" >= DATE '2024-04-01' AND "visits"."day" < DATE '2024-07-01') GROUP BY 1
---- duckdb
SELECT DATE_TRUNC('WEEK', "visits"."day")::TIMESTAMP AS "twk:day:ok", SUM(1) AS "cnt:n:ok" FROM "public"."visits" "visits" WHERE ("visits"."day" >= DATE '2024-04-01' AND "visits"."day" < DATE '2024-07-01') GROUP BY 1

-- case: a week axis that starts on Sunday
-- order: any
SELECT (DATE_TRUNC('DAY', "visits"."admitted") + (-EXTRACT(DOW FROM "visits"."admitted") * INTERVAL '1 DAY')) AS "twk:admitted:ok", SUM(1) AS "cnt" FROM "public"."visits" "visits"
WHERE ("visits"."admitted" >= TIMESTAMP '2024-04-07' AND "visits"."admitted" < TIMESTAMP '2024-05-05') GROUP BY 1
---- duckdb
SELECT DATE_TRUNC('week', admitted + INTERVAL '1 day') - INTERVAL '1 day' AS w, SUM(1) AS cnt FROM visits WHERE admitted >= '2024-04-07' AND admitted < '2024-05-05' GROUP BY 1

-- case: a month as text
-- order: any
SELECT TO_CHAR("visits"."admitted", 'YYYY-MM') AS "Calculation_1", SUM(1) AS "cnt" FROM "public"."visits" "visits" GROUP BY 1
---- duckdb
SELECT strftime("visits"."admitted", '%Y-%m') AS "Calculation_1", SUM(1) AS "cnt" FROM "public"."visits" "visits" GROUP BY 1

-- case: numbers as text
-- order: any
SELECT CAST("visits"."nights" AS TEXT) AS "Calculation_2", SUM(1) AS "cnt" FROM "public"."visits" "visits" GROUP BY 1
---- duckdb
SELECT nights::TEXT AS "Calculation_2", COUNT(*) AS "cnt" FROM visits WHERE nights IS NOT NULL GROUP BY 1

-- case: a text of two parts
-- order: any
SELECT (("visits"."kind" || ' / ') || CASE WHEN "visits"."urgent" THEN 'urgent' ELSE 'planned' END) AS "Calculation_3", SUM(1) AS "cnt" FROM "public"."visits" "visits" GROUP BY 1

-- case: IIF
-- order: any
SELECT (CASE WHEN ("visits"."cost" > 1000) THEN 'above' WHEN NOT ("visits"."cost" > 1000) THEN 'below' ELSE NULL END) AS "band", SUM("visits"."nights") AS "sum:nights:ok"
FROM "public"."visits" "visits" WHERE (NOT ("visits"."cost" IS NULL)) GROUP BY 1

-- case: ZN, which is NULL to 0
-- order: any
SELECT "visits"."kind" AS "kind", COALESCE(SUM("visits"."cost"), 0) AS "usr:zn:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: a date difference in days
-- order: any
SELECT "visits"."kind" AS "kind", AVG(CAST(("visits"."day" - CAST('2023-01-01' AS DATE)) AS DOUBLE PRECISION)) AS "avg:days:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: a moving average of a table calculation
SELECT "t0"."m" AS "m", AVG("t0"."n") OVER (ORDER BY "t0"."m" ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS "avg"
FROM (SELECT DATE_TRUNC('MONTH', "visits"."admitted") AS "m", SUM(1) AS "n" FROM "public"."visits" "visits" GROUP BY 1) "t0" ORDER BY 1

-- case: a total beside the parts
-- order: any
SELECT "t0"."kind" AS "kind", "t0"."n" / CAST("t1"."total" AS DOUBLE PRECISION) AS "share"
FROM (SELECT "visits"."kind" AS "kind", SUM(1) AS "n" FROM "public"."visits" "visits" GROUP BY 1) "t0" CROSS JOIN (SELECT SUM(1) AS "total" FROM "public"."visits" "visits") "t1"

-- case: a condition filter
-- order: any
SELECT "visits"."ward" AS "ward", AVG("visits"."paid") AS "avg:paid:ok" FROM "public"."visits" "visits"
INNER JOIN (SELECT "visits"."ward" AS "ward" FROM "public"."visits" "visits" GROUP BY 1 HAVING (SUM("visits"."nights") > 4500)) "t0" ON ("visits"."ward" = "t0"."ward") GROUP BY 1

-- case: a level of detail of a patient
SELECT AVG("t0"."paid") AS "avg" FROM (SELECT "visits"."patient_id" AS "patient_id", SUM("visits"."paid") AS "paid" FROM "public"."visits" "visits" GROUP BY 1) "t0" HAVING (COUNT(1) > 0)

-- case: an excluded level of detail
-- order: any
SELECT "t0"."ward" AS "ward", "t0"."kind" AS "kind", "t0"."n" AS "n", "t1"."n" AS "of"
FROM (SELECT "visits"."ward" AS "ward", "visits"."kind" AS "kind", SUM(1) AS "n" FROM "public"."visits" "visits" GROUP BY 1, 2) "t0"
INNER JOIN (SELECT "visits"."ward" AS "ward", SUM(1) AS "n" FROM "public"."visits" "visits" GROUP BY 1) "t1" ON ("t0"."ward" = "t1"."ward" OR ("t0"."ward" IS NULL AND "t1"."ward" IS NULL))

-- case: variance and deviation
-- order: any
-- tolerance: 0.1%
SELECT "visits"."kind" AS "kind", STDDEV_SAMP("visits"."cost") AS "std:cost:ok", VAR_POP("visits"."paid") AS "vrp:paid:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: a median
-- order: any
-- tolerance: 1%
SELECT "visits"."kind" AS "kind", PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY "visits"."paid") AS "med:paid:ok" FROM "public"."visits" "visits" GROUP BY 1
---- duckdb
SELECT kind, quantile_cont(paid::double, 0.5) AS "med:paid:ok" FROM visits GROUP BY 1

-- case: the number of rows of a source
SELECT COUNT(1) AS "n" FROM "public"."visits" "visits"

-- case: a temporary table probe of the other kind
CREATE TEMPORARY TABLE "#Tableau_9" AS SELECT 1 AS "x"
---- error
Unsupported 0A000: CREATE is not answered: the schema declares the tables
LINE 1: CREATE TEMPORARY TABLE "#Tableau_9" AS SELECT 1 AS "x"
        ^
HINT:  The owner adds tables to the schema; for a temporary one, or a view, write WITH name AS (SELECT …) SELECT …. CREATE SYNTHETIC TABLE makes one of rows like those of a private table.

-- case: a table that is made by SELECT INTO
SELECT "visits"."kind" AS "kind" INTO TEMPORARY "#Tableau_10" FROM "public"."visits" "visits" GROUP BY 1
---- error
Unsupported 0A000: INTO is not supported
HINT:  Leave it out.

-- case: a temporary table is dropped
DROP TABLE "#Tableau_9"
---- error
Unsupported 0A000: DROP is not answered: the schema declares the tables
LINE 1: DROP TABLE "#Tableau_9"
        ^
HINT:  What you have made yourself is dropped by DROP SYNTHETIC TABLE or DROP MODEL.

-- case: view data
SELECT * FROM "public"."visits" "visits" LIMIT 1000
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM "public"."visits" "visits" LIMIT 1000
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: view data below a mark
SELECT "visits"."admitted" AS "admitted", "visits"."nights" AS "nights" FROM "public"."visits" "visits" WHERE ("visits"."kind" = 'emergency') LIMIT 200
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT "visits"."admitted" AS "admitted", "visits"."nights" AS "nights" FROM "public"."visits" "visits" WHERE ("visits"."kind" = 'emergency') LIMIT 200
               ^
HINT:  Aggregate, for example: SELECT DATE_TRUNC('month', admitted), COUNT(*) FROM visits GROUP BY 1.

-- case: a probe of types
SELECT * FROM "public"."visits" "visits" WHERE 1 = 0
---- duckdb
SELECT * FROM visits WHERE 1 = 0
