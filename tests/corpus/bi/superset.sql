-- What Superset's charts, filters, explore view and SQL Lab send, beyond cases/superset.sql.

-- case: a filter box of declared values
SELECT kind AS kind FROM public.visits GROUP BY kind ORDER BY kind ASC LIMIT 1000

-- case: a filter box with a search
SELECT kind AS kind FROM public.visits WHERE kind ILIKE '%ed%' GROUP BY kind LIMIT 1000

-- case: a filter box with a search that finds nothing
SELECT kind AS kind FROM public.visits WHERE kind ILIKE '%xyz%' GROUP BY kind LIMIT 1000

-- case: a filter box of a boolean
SELECT urgent AS urgent FROM public.visits GROUP BY urgent LIMIT 10000

-- case: a filter box sorted by a metric
-- order: any
SELECT kind AS kind, COUNT(*) AS count FROM public.visits GROUP BY kind ORDER BY count DESC LIMIT 1000

-- case: a filter box of a virtual dataset
SELECT sex AS sex FROM (SELECT p.sex, p.language, v.kind FROM patients p JOIN visits v ON v.patient_id = p.patient_id) AS virtual_table GROUP BY sex ORDER BY sex ASC LIMIT 1000

-- case: a filter that depends on another
SELECT drug AS drug FROM public.prescriptions WHERE generic IN (true) GROUP BY drug ORDER BY drug LIMIT 1000

-- case: the range of a time filter
-- note: the declared bounds, of which the last is the last second of 2024
SELECT MIN(admitted) AS min, MAX(admitted) AS max FROM public.visits
---- duckdb
SELECT TIMESTAMP '2023-01-01' AS min, TIMESTAMP '2024-12-31 23:59:59' AS max

-- case: the time range of a virtual dataset
SELECT MIN(day) AS min_day, MAX(day) AS max_day FROM (SELECT day, ward FROM visits) AS virtual_table
---- duckdb
SELECT DATE '2023-01-01' AS min_day, DATE '2024-12-31' AS max_day

-- case: a slider of numbers
-- tolerance: 1
SELECT MIN(nights) AS min, MAX(nights) AS max FROM public.visits

-- case: hours of a week
SELECT DATE_TRUNC('hour', admitted) AS __timestamp, COUNT(*) AS count
FROM public.visits
WHERE admitted >= TO_TIMESTAMP('2024-05-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND admitted < TO_TIMESTAMP('2024-05-08 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('hour', admitted)
ORDER BY __timestamp
LIMIT 10000
---- duckdb
SELECT h AS __timestamp, COUNT(visit_id) AS count FROM generate_series(TIMESTAMP '2024-05-06', TIMESTAMP '2024-05-07 23:00:00', INTERVAL 1 HOUR) t(h) LEFT JOIN visits ON DATE_TRUNC('hour', admitted) = h GROUP BY h ORDER BY h

-- case: a minute grain written with division
-- order: any
-- empty: __timestamp
SELECT DATE_TRUNC('hour', admitted) + INTERVAL '30 min' * FLOOR(DATE_PART('MINUTE', admitted) / 30) AS __timestamp, COUNT(*) AS count
FROM public.visits
WHERE admitted >= TO_TIMESTAMP('2024-05-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND admitted < TO_TIMESTAMP('2024-05-07 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('hour', admitted) + INTERVAL '30 min' * FLOOR(DATE_PART('MINUTE', admitted) / 30)
LIMIT 10000
---- duckdb
SELECT time_bucket(INTERVAL 30 MINUTE, admitted) AS __timestamp, COUNT(*) AS count FROM visits WHERE admitted >= '2024-05-06' AND admitted < '2024-05-07' GROUP BY 1

-- case: a grain of five minutes
-- order: any
-- empty: __timestamp
SELECT DATE_TRUNC('hour', admitted) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM admitted) / 5) AS __timestamp, SUM(paid) AS "SUM(paid)"
FROM public.visits WHERE admitted >= TO_TIMESTAMP('2024-05-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND admitted < TO_TIMESTAMP('2024-05-08 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('hour', admitted) + INTERVAL '5 minutes' * FLOOR(EXTRACT(MINUTE FROM admitted) / 5) ORDER BY "SUM(paid)" DESC LIMIT 50000
---- duckdb
SELECT time_bucket(INTERVAL 5 MINUTE, admitted) AS __timestamp, SUM(paid) AS s FROM visits WHERE admitted >= '2024-05-06' AND admitted < '2024-05-08' GROUP BY 1

-- case: a grain of fifteen minutes, of a zoned column
-- order: any
-- empty: __timestamp
SELECT DATE_TRUNC('hour', logged) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM logged) / 15) AS __timestamp, COUNT(*) AS count
FROM public.visits WHERE logged >= TO_TIMESTAMP('2024-05-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND logged < TO_TIMESTAMP('2024-05-07 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('hour', logged) + INTERVAL '15 minutes' * FLOOR(EXTRACT(MINUTE FROM logged) / 15) LIMIT 50000
---- duckdb
SELECT time_bucket(INTERVAL 15 MINUTE, logged) AS __timestamp, COUNT(*) AS count FROM visits WHERE logged >= '2024-05-06 00:00:00+00' AND logged < '2024-05-07 00:00:00+00' GROUP BY 1

-- case: weeks ending on Saturday
-- order: any
SELECT DATE_TRUNC('week', admitted + INTERVAL '1 day') + INTERVAL '5 days' AS __timestamp, SUM(nights) AS "SUM(nights)"
FROM public.visits
WHERE admitted >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND admitted < TO_TIMESTAMP('2024-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('week', admitted + INTERVAL '1 day') + INTERVAL '5 days'
LIMIT 50000
---- duckdb
SELECT DATE_TRUNC('week', admitted + INTERVAL '1 day') + INTERVAL '5 days' AS __timestamp, SUM(nights) AS "SUM(nights)" FROM visits WHERE admitted >= '2024-01-01' AND admitted < '2024-03-01' GROUP BY 1

-- case: a date column with TO_DATE
-- order: any
SELECT DATE_TRUNC('month', day) AS __timestamp, ward AS ward, COUNT(*) AS count
FROM public.visits
WHERE day >= TO_DATE('2024-01-01', 'YYYY-MM-DD') AND day < TO_DATE('2024-04-01', 'YYYY-MM-DD')
GROUP BY DATE_TRUNC('month', day), ward
LIMIT 10000
---- duckdb
SELECT DATE_TRUNC('month', day)::TIMESTAMP AS __timestamp, ward AS ward, COUNT(*) AS count FROM visits WHERE day >= '2024-01-01' AND day < '2024-04-01' GROUP BY 1, 2

-- case: a zoned column, by month
-- order: any
SELECT DATE_TRUNC('month', logged) AS __timestamp, COUNT(*) AS count FROM public.visits
WHERE logged >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND logged < TO_TIMESTAMP('2024-07-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('month', logged) LIMIT 10000
---- duckdb
SELECT DATE_TRUNC('month', logged) AS __timestamp, COUNT(*) AS count FROM visits WHERE logged >= '2024-01-01 00:00:00+00' AND logged < '2024-07-01 00:00:00+00' GROUP BY 1

-- case: a series limit with two metrics and a filter
-- order: any
SELECT DATE_TRUNC('month', admitted) AS __timestamp, diagnosis AS diagnosis, SUM(paid) AS "SUM(paid)", AVG(nights) AS "AVG(nights)"
FROM public.visits
JOIN (
  SELECT diagnosis AS diagnosis__, SUM(paid) AS mme_inner__
  FROM public.visits
  WHERE kind IN ('emergency', 'scheduled')
  GROUP BY diagnosis
  ORDER BY mme_inner__ DESC
  LIMIT 2
) AS anon_1 ON diagnosis = diagnosis__
WHERE kind IN ('emergency', 'scheduled')
GROUP BY DATE_TRUNC('month', admitted), diagnosis
ORDER BY "SUM(paid)" DESC
LIMIT 10000

-- case: a series limit by rows, as a list of conditions
-- order: any
SELECT DATE_TRUNC('quarter', admitted) AS __timestamp, ward AS ward, COUNT(*) AS count
FROM public.visits
WHERE (ward = 'surgery' OR ward = 'oncology' OR ward = 'urology')
GROUP BY DATE_TRUNC('quarter', admitted), ward
LIMIT 10000

-- case: ad-hoc filters of every kind
SELECT COUNT(*) AS count FROM public.visits
WHERE ward NOT IN ('surgery') AND (diagnosis LIKE 'I%') AND note IS NOT NULL AND cost >= 100 AND cost <= 2000 AND (kind != 'follow-up') AND urgent IS true

-- case: an ad-hoc SQL filter
SELECT AVG(cost) AS "AVG(cost)" FROM public.visits WHERE ((EXTRACT(DOW FROM day) IN (0, 6)) AND (LENGTH(note) > 2))

-- case: a pie with a HAVING filter
-- order: any
SELECT ward AS ward, SUM(paid) AS "SUM(paid)" FROM public.visits GROUP BY ward HAVING ((SUM(paid) > 2000000)) ORDER BY "SUM(paid)" DESC LIMIT 100

-- case: a histogram in buckets
-- order: any
SELECT FLOOR(cost / 250) * 250 AS bucket, COUNT(*) AS count FROM public.visits WHERE cost IS NOT NULL GROUP BY FLOOR(cost / 250) * 250 LIMIT 10000

-- case: a heat map of weekday and hour
-- order: any
SELECT EXTRACT(DOW FROM admitted) AS dow, EXTRACT(HOUR FROM admitted) AS hour, COUNT(*) AS count FROM public.visits GROUP BY EXTRACT(DOW FROM admitted), EXTRACT(HOUR FROM admitted) LIMIT 10000

-- case: custom metrics
-- order: any
SELECT kind AS kind, SUM(CASE WHEN urgent THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS "% urgent", COUNT(DISTINCT CASE WHEN cost > 1000 THEN patient_id END) AS "patients over 1000"
FROM public.visits GROUP BY kind LIMIT 10000

-- case: a box plot
-- tolerance: 1%
SELECT ward AS ward, PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY cost) AS q1, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY cost) AS q3 FROM public.visits GROUP BY ward ORDER BY ward LIMIT 10000

-- case: a comparison of periods in one statement
-- order: any
SELECT kind AS kind, SUM(CASE WHEN day >= DATE '2024-01-01' THEN paid ELSE 0 END) AS this_year, SUM(CASE WHEN day < DATE '2024-01-01' THEN paid ELSE 0 END) AS last_year
FROM public.visits GROUP BY kind LIMIT 1000

-- case: SQL Lab wraps a statement
SELECT * FROM (
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward
) AS inner_qry LIMIT 1001

-- case: a table chart's count of its rows
SELECT COUNT(*) AS rowcount FROM (SELECT ward AS ward, kind AS kind FROM public.visits GROUP BY ward, kind) AS rowcount_qry

-- case: samples of a dataset
SELECT visit_id AS visit_id, ward AS ward, kind AS kind FROM public.visits LIMIT 1000 OFFSET 0
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT visit_id AS visit_id, ward AS ward, kind AS kind FROM public.visits LIMIT 1000 OFFSET 0
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind.

-- case: a preview in SQL Lab
SELECT * FROM public.visits LIMIT 100
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM public.visits LIMIT 100
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: a preview of chosen columns
SELECT "admitted", "cost" FROM "public"."visits" LIMIT 100
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT "admitted", "cost" FROM "public"."visits" LIMIT 100
               ^
HINT:  Aggregate, for example: SELECT DATE_TRUNC('month', admitted), COUNT(*) FROM visits GROUP BY 1.

-- case: the columns of a virtual dataset
SELECT * FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) AS virtual_table LIMIT 0

-- case: a probe with a false condition
SELECT visit_id, kind FROM visits WHERE false
