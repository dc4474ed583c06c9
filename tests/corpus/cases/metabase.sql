-- What Metabase sends.

-- case: count of rows
SELECT COUNT(*) AS "count" FROM "public"."visits"

-- case: summarise by a category
SELECT "public"."visits"."ward" AS "ward", COUNT(*) AS "count" FROM "public"."visits" GROUP BY "public"."visits"."ward" ORDER BY "public"."visits"."ward" ASC

-- case: summarise by month
SELECT CAST(DATE_TRUNC('month', "public"."visits"."admitted") AS date) AS "admitted", SUM("public"."visits"."cost") AS "sum"
FROM "public"."visits" GROUP BY CAST(DATE_TRUNC('month', "public"."visits"."admitted") AS date) ORDER BY CAST(DATE_TRUNC('month', "public"."visits"."admitted") AS date) ASC

-- case: breakout by month and category
SELECT DATE_TRUNC('month', "public"."visits"."admitted") AS "admitted", "public"."visits"."kind" AS "kind", AVG("public"."visits"."nights") AS "avg"
FROM "public"."visits"
WHERE ("public"."visits"."admitted" >= timestamp '2024-01-01 00:00:00.000') AND ("public"."visits"."admitted" < timestamp '2024-07-01 00:00:00.000')
GROUP BY DATE_TRUNC('month', "public"."visits"."admitted"), "public"."visits"."kind"
ORDER BY DATE_TRUNC('month', "public"."visits"."admitted") ASC, "public"."visits"."kind" ASC

-- case: weeks that start on Sunday
SELECT (CAST(DATE_TRUNC('week', (CAST("public"."visits"."day" AS timestamp) + INTERVAL '1 day')) AS timestamp) + INTERVAL '-1 day') AS "day", COUNT(*) AS "count"
FROM "public"."visits"
WHERE "public"."visits"."day" BETWEEN date '2023-06-04' AND date '2023-08-05'
GROUP BY (CAST(DATE_TRUNC('week', (CAST("public"."visits"."day" AS timestamp) + INTERVAL '1 day')) AS timestamp) + INTERVAL '-1 day')
ORDER BY (CAST(DATE_TRUNC('week', (CAST("public"."visits"."day" AS timestamp) + INTERVAL '1 day')) AS timestamp) + INTERVAL '-1 day') ASC

-- case: bins of a number
SELECT FLOOR(("public"."visits"."cost" / 500.0)) * 500.0 AS "cost", COUNT(*) AS "count"
FROM "public"."visits" WHERE "public"."visits"."cost" IS NOT NULL GROUP BY FLOOR(("public"."visits"."cost" / 500.0)) * 500.0 ORDER BY FLOOR(("public"."visits"."cost" / 500.0)) * 500.0 ASC

-- case: bins with an offset
SELECT (FLOOR((("public"."patients"."weight" - 20.0) / 12.5)) * 12.5) + 20.0 AS "weight", COUNT(*) AS "count"
FROM "public"."patients" WHERE "public"."patients"."weight" >= 20 AND "public"."patients"."weight" < 120 GROUP BY (FLOOR((("public"."patients"."weight" - 20.0) / 12.5)) * 12.5) + 20.0 ORDER BY 1 ASC

-- case: a question on top of a question
SELECT "source"."ward" AS "ward", COUNT(*) AS "count"
FROM (SELECT "public"."visits"."ward" AS "ward", "public"."visits"."cost" AS "cost", "public"."visits"."admitted" AS "admitted" FROM "public"."visits" WHERE "public"."visits"."urgent" = TRUE) AS "source"
WHERE "source"."cost" > 1000
GROUP BY "source"."ward" ORDER BY "source"."ward" ASC

-- case: a summary on top of a summary
SELECT AVG("source"."count") AS "avg" FROM (SELECT "public"."visits"."ward" AS "ward", COUNT(*) AS "count" FROM "public"."visits" GROUP BY "public"."visits"."ward") AS "source"

-- case: a filter on top of a summary
SELECT "source"."diagnosis" AS "diagnosis", "source"."count" AS "count"
FROM (SELECT "public"."visits"."diagnosis" AS "diagnosis", COUNT(*) AS "count" FROM "public"."visits" GROUP BY "public"."visits"."diagnosis" ORDER BY "public"."visits"."diagnosis" ASC) AS "source"
WHERE "source"."count" > 770 LIMIT 1048575

-- case: a custom column
SELECT "source"."Profit band" AS "Profit band", COUNT(*) AS "count"
FROM (SELECT "public"."visits"."paid" AS "paid", CASE WHEN ("public"."visits"."paid" > 3000) THEN 'high' WHEN ("public"."visits"."paid" > 1000) THEN 'mid' ELSE 'low' END AS "Profit band" FROM "public"."visits") AS "source"
GROUP BY "source"."Profit band" ORDER BY "source"."Profit band" ASC

-- case: a custom expression of two aggregates
SELECT "public"."visits"."kind" AS "kind", CAST(SUM(CASE WHEN "public"."visits"."nights" > 3 THEN 1 ELSE 0.0 END) AS double precision) / NULLIF(CAST(COUNT(*) AS double precision), 0.0) AS "share"
FROM "public"."visits" GROUP BY "public"."visits"."kind" ORDER BY "public"."visits"."kind" ASC

-- case: an implicit join
SELECT "wards__via__ward"."building" AS "wards__via__ward__building", COUNT(*) AS "count"
FROM "public"."visits" LEFT JOIN "public"."wards" AS "wards__via__ward" ON "public"."visits"."ward" = "wards__via__ward"."ward"
GROUP BY "wards__via__ward"."building" ORDER BY "wards__via__ward"."building" ASC

-- case: a join by hand
SELECT "Patients"."language" AS "Patients__language", COUNT(DISTINCT "public"."visits"."patient_id") AS "count"
FROM "public"."visits" INNER JOIN "public"."patients" AS "Patients" ON "public"."visits"."patient_id" = "Patients"."patient_id"
WHERE "Patients"."insured" = TRUE GROUP BY "Patients"."language" ORDER BY "count" DESC, "Patients"."language" ASC

-- case: cumulative count
SELECT "source"."admitted" AS "admitted", SUM("source"."count") OVER (ORDER BY "source"."admitted" ASC ROWS UNBOUNDED PRECEDING) AS "count"
FROM (SELECT DATE_TRUNC('quarter', "public"."visits"."admitted") AS "admitted", COUNT(*) AS "count" FROM "public"."visits" GROUP BY DATE_TRUNC('quarter', "public"."visits"."admitted")) AS "source" ORDER BY "source"."admitted" ASC

-- case: a text filter without case
SELECT COUNT(*) AS "count" FROM "public"."visits" WHERE (LOWER("public"."visits"."note") LIKE '%fell%') AND ("public"."visits"."note" IS NOT NULL) AND (("public"."visits"."note" <> '') OR ("public"."visits"."note" IS NULL))

-- case: the hour of the day
SELECT CAST(extract(hour from "public"."visits"."admitted") AS integer) AS "admitted", COUNT(*) AS "count"
FROM "public"."visits" GROUP BY CAST(extract(hour from "public"."visits"."admitted") AS integer) ORDER BY CAST(extract(hour from "public"."visits"."admitted") AS integer) ASC

-- case: percentiles and deviation
-- tolerance: 0.1%
SELECT "public"."visits"."kind" AS "kind", STDDEV_POP("public"."visits"."cost") AS "stddev", PERCENTILE_CONT(0.5) within group (order by "public"."visits"."cost") AS "median"
FROM "public"."visits" GROUP BY "public"."visits"."kind" ORDER BY "public"."visits"."kind" ASC

-- case: field values for a filter
SELECT "public"."visits"."ward" AS "ward" FROM "public"."visits" GROUP BY "public"."visits"."ward" ORDER BY "public"."visits"."ward" ASC LIMIT 1000

-- case: a fingerprinting scan
SELECT "public"."visits"."ward" AS "ward", "public"."visits"."cost" AS "cost" FROM "public"."visits" LIMIT 10000
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT "public"."visits"."ward" AS "ward", "public"."visits"."cost" AS "cost" FROM "public"."visits" LIMIT 10000
               ^
HINT:  Aggregate, for example: SELECT ward, COUNT(*) FROM visits GROUP BY ward.
