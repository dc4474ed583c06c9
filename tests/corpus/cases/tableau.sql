-- What Tableau sends.

-- case: number of records
SELECT SUM(1) AS "cnt:visits_9F2C:ok" FROM "public"."visits" "visits" HAVING (COUNT(1) > 0)

-- case: a bar per ward
-- order: any
SELECT "visits"."ward" AS "ward", SUM("visits"."cost") AS "sum:cost:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: several measures
-- order: any
SELECT "visits"."kind" AS "kind", AVG(CAST("visits"."nights" AS DOUBLE PRECISION)) AS "avg:nights:ok", COUNT(DISTINCT "visits"."patient_id") AS "ctd:patient_id:ok", SUM("visits"."paid") AS "sum:paid:ok"
FROM "public"."visits" "visits" GROUP BY 1

-- case: a month axis
-- order: any
SELECT DATE_TRUNC('MONTH', CAST("visits"."admitted" AS TIMESTAMP WITHOUT TIME ZONE)) AS "tmn:admitted:ok", SUM(1) AS "cnt:visits:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: a discrete year
-- order: any
SELECT CAST(EXTRACT(YEAR FROM "visits"."admitted") AS INTEGER) AS "yr:admitted:ok", SUM("visits"."paid") AS "sum:paid:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: year and quarter
-- order: any
SELECT CAST(TRUNC(EXTRACT(QUARTER FROM "visits"."admitted")) AS INTEGER) AS "qr:admitted:ok", CAST(TRUNC(EXTRACT(YEAR FROM "visits"."admitted")) AS INTEGER) AS "yr:admitted:ok", COUNT("visits"."cost") AS "cnt:cost:ok"
FROM "public"."visits" "visits" GROUP BY 1, 2

-- case: a date axis from a date
-- order: any
SELECT DATE_TRUNC('MONTH', CAST("visits"."day" AS DATE)) AS "tmn:day:ok", AVG("visits"."cost") AS "avg:cost:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: weekday names as Tableau numbers them
-- order: any
SELECT (1 + CAST(EXTRACT(DOW FROM "visits"."day") AS INTEGER)) AS "wd:day:ok", SUM(1) AS "cnt:visits:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: custom SQL
-- order: any
SELECT "Custom SQL Query"."ward" AS "ward", SUM("Custom SQL Query"."n") AS "sum:n:ok"
FROM (
  SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY ward, kind
) "Custom SQL Query"
GROUP BY 1

-- case: custom SQL over rows
-- order: any
SELECT "Custom SQL Query"."language" AS "language", AVG("Custom SQL Query"."cost") AS "avg:cost:ok"
FROM (
  select p.language, v.cost from patients p join visits v on p.patient_id = v.patient_id
) "Custom SQL Query"
WHERE (NOT ("Custom SQL Query"."cost" IS NULL))
GROUP BY 1

-- case: bins
-- order: any
SELECT FLOOR("visits"."cost" / 1000) AS "cost (bin)", SUM(1) AS "cnt:visits:ok" FROM "public"."visits" "visits" WHERE (NOT ("visits"."cost" IS NULL)) GROUP BY 1

-- case: a group of members
-- order: any
SELECT (CASE WHEN ("visits"."ward" IN ('cardiology', 'neurology')) THEN 'medical' WHEN ("visits"."ward" = 'surgery') THEN 'surgical' ELSE "visits"."ward" END) AS "ward (group)", SUM(1) AS "cnt:visits:ok"
FROM "public"."visits" "visits" GROUP BY 1

-- case: an in/out set
-- order: any
SELECT (CASE WHEN ("visits"."diagnosis" IN ('I10', 'I21', 'E11')) THEN 1 ELSE 0 END) AS "io:Set 1:nk", AVG("visits"."paid") AS "avg:paid:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: a filter picker
SELECT "visits"."ward" AS "ward" FROM "public"."visits" "visits" GROUP BY 1 ORDER BY 1 ASC NULLS FIRST

-- case: the range of a filter
-- tolerance: 100 in min:cost:ok, max:cost:ok
SELECT MIN("visits"."cost") AS "min:cost:ok", MAX("visits"."cost") AS "max:cost:ok", SUM(1) AS "n" FROM "public"."visits" "visits" HAVING (COUNT(1) > 0)

-- case: a top-N filter
-- order: any
SELECT "visits"."diagnosis" AS "diagnosis", SUM("visits"."paid") AS "sum:paid:ok"
FROM "public"."visits" "visits"
INNER JOIN (
  SELECT "visits"."diagnosis" AS "diagnosis", SUM("visits"."paid") AS "$__alias__0" FROM "public"."visits" "visits" GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 4
) "t0" ON ("visits"."diagnosis" = "t0"."diagnosis")
GROUP BY 1

-- case: a relationship of two tables
-- order: any
SELECT "wards"."building" AS "building", SUM("visits"."nights") AS "sum:nights:ok"
FROM "public"."visits" "visits" LEFT JOIN "public"."wards" "wards" ON ("visits"."ward" = "wards"."ward") GROUP BY 1

-- case: a calculated field
-- order: any
SELECT "visits"."kind" AS "kind", (SUM("visits"."paid") / NULLIF(SUM("visits"."cost"), 0)) AS "usr:Calculation_42:ok" FROM "public"."visits" "visits" GROUP BY 1

-- case: a fixed level of detail
-- order: any
SELECT "t0"."first" AS "yr:first:ok", COUNT(*) AS "cnt"
FROM (SELECT "visits"."patient_id" AS "patient_id", MIN(CAST(EXTRACT(YEAR FROM "visits"."admitted") AS INTEGER)) AS "first" FROM "public"."visits" "visits" GROUP BY 1) "t0"
GROUP BY 1

-- case: a connection check
SELECT 1

-- case: a temporary table probe
CREATE LOCAL TEMPORARY TABLE "#Tableau_3_0_Connect" ("COL" INTEGER) ON COMMIT PRESERVE ROWS
---- error
Unsupported 0A000: CREATE is not answered: the schema declares the tables
LINE 1: CREATE LOCAL TEMPORARY TABLE "#Tableau_3_0_Connect" ("COL" INTEGER) ON COMMIT PRESERVE ROWS
        ^
HINT:  The owner adds tables to the schema; for a temporary one, or a view, write WITH name AS (SELECT …) SELECT …. CREATE SYNTHETIC TABLE makes one of rows like those of a private table.

-- case: underlying data
SELECT "visits"."visit_id" AS "visit_id", "visits"."cost" AS "cost" FROM "public"."visits" "visits" LIMIT 10000
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT "visits"."visit_id" AS "visit_id", "visits"."cost" AS "cost" FROM "public"."visits" "visits" LIMIT 10000
               ^
HINT:  Aggregate, for example: SELECT AVG(cost), COUNT(*) FROM visits.
