-- What Metabase sends for questions, filters, its sync and its fingerprints, beyond cases/metabase.sql.

-- case: field values of a category
SELECT "public"."visits"."kind" AS "kind" FROM "public"."visits" GROUP BY "public"."visits"."kind" ORDER BY "public"."visits"."kind" ASC LIMIT 1001

-- case: field values with a search
SELECT "public"."prescriptions"."drug" AS "drug" FROM "public"."prescriptions" WHERE (LOWER("public"."prescriptions"."drug") LIKE '%in%') GROUP BY "public"."prescriptions"."drug" ORDER BY "public"."prescriptions"."drug" ASC LIMIT 100

-- case: distinct field values
SELECT DISTINCT "public"."patients"."language" AS "language" FROM "public"."patients" ORDER BY "public"."patients"."language" ASC

-- case: field values of a model
SELECT "source"."sex" AS "sex" FROM (SELECT "public"."patients"."sex" AS "sex", "public"."patients"."city" AS "city" FROM "public"."patients") AS "source" WHERE "source"."sex" IS NOT NULL GROUP BY "source"."sex" ORDER BY "source"."sex" ASC LIMIT 1000

-- case: the first and the last day
SELECT MIN("public"."visits"."day") AS "min", MAX("public"."visits"."day") AS "max" FROM "public"."visits"
---- duckdb
SELECT DATE '2023-01-01' AS min, DATE '2024-12-31' AS max

-- case: the range of days with a count beside it
SELECT MIN("public"."visits"."day") AS "min", MAX("public"."visits"."day") AS "max", COUNT(*) AS "count" FROM "public"."visits"
---- duckdb
SELECT DATE '2023-01-01' AS min, DATE '2024-12-31' AS max, COUNT(*) AS count FROM visits

-- case: a day of the year
SELECT CAST(extract(doy from "public"."visits"."day") AS integer) AS "day", COUNT(*) AS "count" FROM "public"."visits" WHERE extract(year from "public"."visits"."day") = 2024
GROUP BY CAST(extract(doy from "public"."visits"."day") AS integer) ORDER BY CAST(extract(doy from "public"."visits"."day") AS integer) ASC
---- duckdb
SELECT i::integer AS day, COUNT(visit_id) AS count FROM range(1, 367) t(i) LEFT JOIN visits ON extract(doy from day) = i AND extract(year from day) = 2024 GROUP BY i ORDER BY i

-- case: the quarter of the year
SELECT CAST(extract(quarter from "public"."visits"."admitted") AS integer) AS "admitted", SUM("public"."visits"."paid") AS "sum" FROM "public"."visits"
GROUP BY CAST(extract(quarter from "public"."visits"."admitted") AS integer) ORDER BY CAST(extract(quarter from "public"."visits"."admitted") AS integer) ASC

-- case: the day of the week as Metabase counts it
SELECT (CAST(extract(dow from "public"."visits"."day") AS integer) + 1) AS "day", COUNT(*) AS "count" FROM "public"."visits"
GROUP BY (CAST(extract(dow from "public"."visits"."day") AS integer) + 1) ORDER BY (CAST(extract(dow from "public"."visits"."day") AS integer) + 1) ASC

-- case: years as dates
SELECT CAST(DATE_TRUNC('year', "public"."visits"."admitted") AS date) AS "admitted", AVG("public"."visits"."cost") AS "avg" FROM "public"."visits"
GROUP BY CAST(DATE_TRUNC('year', "public"."visits"."admitted") AS date) ORDER BY CAST(DATE_TRUNC('year', "public"."visits"."admitted") AS date) ASC

-- case: minutes of an hour
SELECT CAST(extract(minute from "public"."visits"."admitted") AS integer) AS "admitted", COUNT(*) AS "count" FROM "public"."visits"
GROUP BY CAST(extract(minute from "public"."visits"."admitted") AS integer) ORDER BY 1 ASC

-- case: the last full year, told from a fixed day
SELECT COUNT(*) AS "count" FROM "public"."visits"
WHERE ("public"."visits"."admitted" >= DATE_TRUNC('year', (timestamp '2025-02-03 10:00:00' + INTERVAL '-1 year'))) AND ("public"."visits"."admitted" < DATE_TRUNC('year', timestamp '2025-02-03 10:00:00'))

-- case: a filter of one month
SELECT COUNT(*) AS "count" FROM "public"."visits" WHERE "public"."visits"."day" >= date '2024-02-01' AND "public"."visits"."day" < date '2024-03-01'

-- case: a filter of exclusions
SELECT COUNT(*) AS "count" FROM "public"."visits" WHERE (("public"."visits"."ward" <> 'surgery') OR ("public"."visits"."ward" IS NULL)) AND (("public"."visits"."ward" <> 'urology') OR ("public"."visits"."ward" IS NULL))

-- case: starts with and ends with
SELECT COUNT(*) AS "count" FROM "public"."visits" WHERE ("public"."visits"."diagnosis" LIKE 'J%') OR ("public"."visits"."note" LIKE '%test')

-- case: a count where
SELECT "public"."visits"."ward" AS "ward", SUM(CASE WHEN "public"."visits"."urgent" = TRUE THEN 1 ELSE 0.0 END) AS "count-where", COUNT(*) AS "count"
FROM "public"."visits" GROUP BY "public"."visits"."ward" ORDER BY "public"."visits"."ward" ASC

-- case: a sum where
SELECT SUM(CASE WHEN "public"."visits"."kind" = 'emergency' THEN "public"."visits"."paid" ELSE 0.0 END) AS "sum-where" FROM "public"."visits"

-- case: a share
SELECT CAST(SUM(CASE WHEN "public"."visits"."rating" >= 4 THEN 1 ELSE 0.0 END) AS float) / CASE WHEN COUNT(*) = 0 THEN NULL ELSE COUNT(*) END AS "share" FROM "public"."visits"

-- case: a distinct count by month
SELECT DATE_TRUNC('month', "public"."visits"."admitted") AS "admitted", COUNT(DISTINCT "public"."visits"."patient_id") AS "count" FROM "public"."visits"
WHERE "public"."visits"."admitted" >= timestamp '2024-06-01 00:00:00' AND "public"."visits"."admitted" < timestamp '2024-09-01 00:00:00'
GROUP BY DATE_TRUNC('month', "public"."visits"."admitted") ORDER BY DATE_TRUNC('month', "public"."visits"."admitted") ASC

-- case: bins of years
SELECT FLOOR((CAST(extract(year from "public"."patients"."birth_date") AS integer) / 10.0)) * 10.0 AS "birth_date", COUNT(*) AS "count"
FROM "public"."patients" GROUP BY FLOOR((CAST(extract(year from "public"."patients"."birth_date") AS integer) / 10.0)) * 10.0 ORDER BY 1 ASC

-- case: a join with a question
-- order: any
SELECT "Question 7"."language" AS "language", SUM("public"."visits"."paid") AS "sum"
FROM "public"."visits" LEFT JOIN (SELECT "public"."patients"."patient_id" AS "patient_id", "public"."patients"."language" AS "language" FROM "public"."patients" WHERE "public"."patients"."insured" = TRUE) AS "Question 7"
ON "public"."visits"."patient_id" = "Question 7"."patient_id" WHERE "Question 7"."language" IS NOT NULL
GROUP BY "Question 7"."language"

-- case: three levels of questions
SELECT "source"."n" AS "n", COUNT(*) AS "count"
FROM (SELECT "source"."ward" AS "ward", FLOOR("source"."count" / 100) AS "n" FROM (SELECT "public"."visits"."ward" AS "ward", COUNT(*) AS "count" FROM "public"."visits" GROUP BY "public"."visits"."ward") AS "source") AS "source"
GROUP BY "source"."n" ORDER BY "source"."n" ASC

-- case: a cumulative sum
SELECT "source"."admitted" AS "admitted", SUM("source"."sum") OVER (ORDER BY "source"."admitted" ASC ROWS UNBOUNDED PRECEDING) AS "sum"
FROM (SELECT CAST(DATE_TRUNC('quarter', "public"."visits"."admitted") AS date) AS "admitted", SUM("public"."visits"."paid") AS "sum" FROM "public"."visits" GROUP BY CAST(DATE_TRUNC('quarter', "public"."visits"."admitted") AS date)) AS "source"
ORDER BY "source"."admitted" ASC

-- case: a native question with a filter
SELECT ward, count(*) AS n FROM visits WHERE kind = 'emergency' AND admitted::date >= '2024-01-01'::date GROUP BY ward ORDER BY n DESC, ward LIMIT 5

-- case: a remark before the statement
-- note: Metabase begins each statement with who asks
-- Metabase:: userID: 1 queryType: MBQL queryHash: 2f5c
SELECT COUNT(*) AS "count" FROM "public"."patients"

-- case: names of other tables of the schema
SELECT "public"."wards"."building" AS "building", COUNT(*) AS "count" FROM "public"."wards" WHERE "public"."wards"."floor" > 0 GROUP BY "public"."wards"."building" ORDER BY "public"."wards"."building" ASC

-- case: rows of a public table
SELECT "public"."doctors"."doctor_id" AS "doctor_id", "public"."doctors"."name" AS "name" FROM "public"."doctors" ORDER BY "public"."doctors"."doctor_id" ASC LIMIT 1048575

-- case: browsing a table
SELECT "public"."patients"."patient_id" AS "patient_id", "public"."patients"."sex" AS "sex", "public"."patients"."city" AS "city" FROM "public"."patients" LIMIT 2000
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT "public"."patients"."patient_id" AS "patient_id", "public"."patients"."sex" AS "sex", "public"."patients"."city" AS "city" FROM "public"."patients" LIMIT 2000
               ^
HINT:  Aggregate, for example: SELECT sex, COUNT(*) FROM patients GROUP BY sex.

-- case: a row by its key
SELECT "public"."patients"."patient_id" AS "patient_id", "public"."patients"."name" AS "name" FROM "public"."patients" WHERE "public"."patients"."patient_id" = 7 LIMIT 2000
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT "public"."patients"."patient_id" AS "patient_id", "public"."patients"."name" AS "name" FROM "public"."patients" WHERE "public"."patients"."patient_id" = 7 LIMIT 2000
               ^
HINT:  Aggregate, for example: SELECT "name", COUNT(*) FROM patients GROUP BY "name".

-- case: the sync's probe of a table
SELECT TRUE AS "_" FROM "public"."visits" WHERE 1 <> 1 LIMIT 0

-- case: a write-back
INSERT INTO "public"."visits" ("visit_id") VALUES (1)
---- error
Unsupported 0A000: INSERT is not answered: data is read, never written
LINE 1: INSERT INTO "public"."visits" ("visit_id") VALUES (1)
        ^
HINT:  Questions are answered here; the owner changes the data at its source, then registers it.
