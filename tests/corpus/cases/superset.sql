-- What Superset sends.

-- case: table size
SELECT COUNT(*) AS "count" FROM public.visits LIMIT 50000

-- case: a bar chart
SELECT ward AS ward, COUNT(*) AS count
FROM public.visits
GROUP BY ward
ORDER BY count DESC
LIMIT 10000

-- case: a time series by day
-- order: any
SELECT DATE_TRUNC('day', admitted) AS __timestamp, COUNT(*) AS count
FROM public.visits
WHERE admitted >= TO_TIMESTAMP('2024-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND admitted < TO_TIMESTAMP('2024-04-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('day', admitted)
ORDER BY count DESC
LIMIT 10000
---- duckdb
SELECT DATE_TRUNC('day', admitted) AS __timestamp, COUNT(*) AS count FROM public.visits WHERE admitted >= '2024-03-01' AND admitted < '2024-04-01' GROUP BY 1 ORDER BY count DESC LIMIT 10000

-- case: a time series by month and series
-- order: any
SELECT DATE_TRUNC('month', admitted) AS __timestamp, kind AS kind, AVG(cost) AS "AVG(cost)"
FROM public.visits
WHERE admitted >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND admitted < TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('month', admitted), kind
ORDER BY "AVG(cost)" DESC
LIMIT 10000
---- duckdb
SELECT DATE_TRUNC('month', admitted) AS __timestamp, kind AS kind, AVG(cost) AS "AVG(cost)" FROM visits WHERE admitted >= '2023-01-01' AND admitted < '2024-01-01' GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 10000

-- case: a series limit
-- order: any
SELECT DATE_TRUNC('quarter', admitted) AS __timestamp, ward AS ward, COUNT(*) AS count
FROM public.visits
JOIN (
  SELECT ward AS ward__, COUNT(*) AS mme_inner__
  FROM public.visits
  WHERE admitted >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  GROUP BY ward
  ORDER BY mme_inner__ DESC
  LIMIT 3
) AS anon_1 ON ward = ward__
WHERE admitted >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY DATE_TRUNC('quarter', admitted), ward
ORDER BY count DESC
LIMIT 10000
---- duckdb
SELECT DATE_TRUNC('quarter', admitted) AS __timestamp, ward AS ward, COUNT(*) AS count FROM public.visits
JOIN (SELECT ward AS ward__, COUNT(*) AS mme_inner__ FROM public.visits GROUP BY ward ORDER BY mme_inner__ DESC LIMIT 3) AS anon_1 ON ward = ward__
GROUP BY 1, 2

-- case: a virtual dataset
-- order: any
SELECT ward AS ward, SUM(cost) AS "Total Cost"
FROM (
  SELECT v.ward, v.cost, p.language
  FROM visits v
  JOIN patients p ON p.patient_id = v.patient_id
  WHERE p.insured
) AS virtual_table
WHERE language IN ('en', 'de')
GROUP BY ward
ORDER BY "Total Cost" DESC
LIMIT 1000

-- case: a pivot table of two dimensions
-- order: any
SELECT ward AS ward, kind AS kind, SUM(paid) AS "SUM(paid)", COUNT(DISTINCT patient_id) AS "COUNT_DISTINCT(patient_id)"
FROM public.visits
WHERE urgent = true AND (note ILIKE '%fell%')
GROUP BY ward, kind
ORDER BY "SUM(paid)" DESC
LIMIT 10000

-- case: a big number with a custom metric
SELECT SUM(paid) / COUNT(DISTINCT patient_id) AS "Paid per patient"
FROM public.visits
WHERE admitted >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US') AND admitted < TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
LIMIT 50000
---- duckdb
SELECT SUM(paid) / COUNT(DISTINCT patient_id) FROM visits WHERE admitted >= '2024-01-01' AND admitted < '2025-01-01'

-- case: a filter picker
SELECT ward AS ward FROM public.visits GROUP BY ward ORDER BY ward ASC LIMIT 1000

-- case: the time range of a dataset
-- tolerance: 15
SELECT MIN(admitted) AS min_at, MAX(admitted) AS max_at FROM public.visits

-- case: a histogram of one column
-- order: any
SELECT FLOOR(cost / 250) * 250 AS bin, COUNT(*) AS count FROM public.visits WHERE cost IS NOT NULL GROUP BY FLOOR(cost / 250) * 250 ORDER BY count DESC LIMIT 10000

-- case: a date filter on a date column
-- order: any
SELECT DATE_TRUNC('week', day) AS __timestamp, SUM(nights) AS "SUM(nights)"
FROM public.visits
WHERE day >= TO_DATE('2024-01-01', 'YYYY-MM-DD') AND day < TO_DATE('2024-07-01', 'YYYY-MM-DD')
GROUP BY DATE_TRUNC('week', day)
ORDER BY "SUM(nights)" DESC
LIMIT 10000
---- duckdb
SELECT DATE_TRUNC('week', day) AS __timestamp, SUM(nights) FROM visits WHERE day >= '2024-01-01' AND day < '2024-07-01' GROUP BY 1

-- case: a mixed chart with a HAVING filter
SELECT diagnosis AS diagnosis, COUNT(*) AS count, AVG(nights) AS "Stay" FROM public.visits WHERE diagnosis IS NOT NULL GROUP BY diagnosis HAVING ((COUNT(*) > 700)) ORDER BY count DESC LIMIT 100

-- case: contribution by row, computed in SQL
-- order: any
SELECT kind AS kind, SUM(CASE WHEN urgent THEN 1 ELSE 0 END) * 100.0 / COUNT(*) AS "Urgent %" FROM public.visits GROUP BY kind ORDER BY "Urgent %" DESC LIMIT 50000

-- case: SQL Lab, with its limit
SELECT city, sex, COUNT(*) AS n FROM patients WHERE sex IN ('f', 'm') GROUP BY city, sex ORDER BY city, sex
LIMIT 1001

-- case: a calculated column as dimension
-- order: any
SELECT CASE WHEN EXTRACT(hour FROM admitted) BETWEEN 6 AND 17 THEN 'day' ELSE 'night' END AS shift, COUNT(*) AS count
FROM public.visits
GROUP BY CASE WHEN EXTRACT(hour FROM admitted) BETWEEN 6 AND 17 THEN 'day' ELSE 'night' END
ORDER BY count DESC
LIMIT 100

-- case: row-level security adds a condition
SELECT ward AS ward, COUNT(*) AS count FROM public.visits WHERE ((ward = 'surgery' OR ward = 'oncology')) AND (kind IN ('emergency')) GROUP BY ward ORDER BY count DESC LIMIT 1000

-- case: a preview of rows
SELECT * FROM public.visits LIMIT 1001
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM public.visits LIMIT 1001
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: raw records of a table chart
SELECT ward AS ward, cost AS cost, admitted AS admitted FROM public.visits LIMIT 1000
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT ward AS ward, cost AS cost, admitted AS admitted FROM public.visits LIMIT 1000
               ^
HINT:  Aggregate, for example: SELECT ward, COUNT(*) FROM visits GROUP BY ward.
