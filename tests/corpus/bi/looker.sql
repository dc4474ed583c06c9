-- What Looker, dbt and people who model data send: chains of CTEs, positions, ratios.

-- case: a Looker explore
SELECT visits.ward AS "visits.ward", COUNT(*) AS "visits.count", COALESCE(SUM(visits.paid), 0) AS "visits.total_paid"
FROM public.visits AS visits
GROUP BY 1
ORDER BY 2 DESC, 1
FETCH NEXT 500 ROWS ONLY

-- case: a Looker explore with a join
-- order: any
SELECT patients.language AS "patients.language", COUNT(DISTINCT visits.patient_id) AS "patients.count", AVG(visits.cost) AS "visits.average_cost"
FROM public.visits AS visits
LEFT JOIN public.patients AS patients ON patients.patient_id = visits.patient_id
WHERE ((( visits.admitted ) >= ((TIMESTAMP '2024-01-01')) AND ( visits.admitted ) < ((TIMESTAMP '2025-01-01'))))
GROUP BY 1
FETCH NEXT 500 ROWS ONLY

-- case: a Looker date dimension
SELECT (TO_CHAR(DATE_TRUNC('month', visits.admitted ), 'YYYY-MM')) AS "visits.admitted_month", COUNT(*) AS "visits.count"
FROM public.visits AS visits
GROUP BY (DATE_TRUNC('month', visits.admitted ))
ORDER BY 1 DESC
LIMIT 500
---- duckdb
SELECT strftime(date_trunc('month', admitted), '%Y-%m') AS m, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1 DESC

-- case: a Looker date as a day
-- order: any
SELECT (DATE(visits.admitted )) AS "visits.admitted_date", COUNT(*) AS "visits.count"
FROM public.visits AS visits
WHERE visits.admitted >= TIMESTAMP '2024-03-01' AND visits.admitted < TIMESTAMP '2024-04-01'
GROUP BY 1 LIMIT 500
---- duckdb
SELECT admitted::DATE AS d, COUNT(*) AS n FROM visits WHERE admitted >= '2024-03-01' AND admitted < '2024-04-01' GROUP BY 1

-- case: a Looker tier
-- order: any
SELECT CASE WHEN visits.nights < 0 THEN 'Below 0' WHEN visits.nights >= 0 AND visits.nights < 3 THEN '0 to 2' WHEN visits.nights >= 3 AND visits.nights < 7 THEN '3 to 6' WHEN visits.nights >= 7 THEN '7 or Above' ELSE 'Undefined' END AS "visits.nights_tier", COUNT(*) AS "visits.count"
FROM public.visits AS visits GROUP BY 1

-- case: filter suggestions
SELECT DISTINCT visits.kind AS "visits.kind" FROM public.visits AS visits WHERE visits.kind ILIKE 's%' ORDER BY 1 LIMIT 500

-- case: filter suggestions without a search
SELECT visits.kind AS "visits.kind" FROM public.visits AS visits GROUP BY 1 ORDER BY 1 FETCH NEXT 500 ROWS ONLY

-- case: a pivot with ranks
SELECT * FROM (
SELECT *, DENSE_RANK() OVER (ORDER BY z___min_rank) AS z___pivot_row_rank, RANK() OVER (PARTITION BY z__pivot_col_rank ORDER BY z___min_rank) AS z__pivot_col_ordering FROM (
SELECT *, MIN(z___rank) OVER (PARTITION BY "visits.ward") AS z___min_rank FROM (
SELECT *, RANK() OVER (ORDER BY "visits.ward" ASC, z__pivot_col_rank) AS z___rank FROM (
SELECT *, DENSE_RANK() OVER (ORDER BY "visits.kind" NULLS FIRST) AS z__pivot_col_rank FROM (
SELECT visits.ward AS "visits.ward", visits.kind AS "visits.kind", COUNT(*) AS "visits.count" FROM public.visits AS visits GROUP BY 1, 2) ww
) bb WHERE z__pivot_col_rank <= 16384
) aa
) xx
) zz WHERE (z__pivot_col_rank <= 50 OR z__pivot_col_ordering = 1) AND (z___pivot_row_rank <= 500) ORDER BY z___pivot_row_rank, z__pivot_col_rank

-- case: a chain of CTEs
WITH source AS (
  SELECT * FROM visits
), renamed AS (
  SELECT visit_id, patient_id, ward AS department, cost AS amount, admitted AS admitted_at FROM source
), monthly AS (
  SELECT DATE_TRUNC('month', admitted_at) AS month, department, COUNT(*) AS visits, SUM(amount) AS amount FROM renamed GROUP BY 1, 2
), final AS (
  SELECT month, department, visits, amount / NULLIF(visits, 0) AS amount_per_visit FROM monthly
)
SELECT department, COUNT(*) AS months, ROUND(AVG(amount_per_visit), 2) AS mean FROM final GROUP BY 1 ORDER BY 1

-- case: a ratio measure
SELECT 1.0 * COUNT(CASE WHEN urgent THEN 1 ELSE NULL END) / NULLIF(COUNT(*), 0) AS urgent_share FROM visits

-- case: a distinct count of a condition
SELECT COUNT(DISTINCT CASE WHEN kind = 'emergency' THEN patient_id ELSE NULL END) AS emergency_patients, COUNT(DISTINCT patient_id) AS patients FROM visits

-- case: growth over the month before
WITH monthly AS (SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n FROM visits GROUP BY 1)
SELECT month, n, n - LAG(n) OVER (ORDER BY month) AS more, ROUND(100.0 * n / NULLIF(LAG(n) OVER (ORDER BY month), 0) - 100, 1) AS percent FROM monthly ORDER BY month

-- case: a cohort of first visits
-- order: any
WITH firsts AS (SELECT patient_id, MIN(day) AS first_day FROM visits GROUP BY patient_id)
SELECT DATE_TRUNC('quarter', first_day) AS cohort, COUNT(*) AS patients FROM firsts WHERE first_day < DATE '2023-07-01' GROUP BY 1
---- duckdb
WITH firsts AS (SELECT patient_id, MIN(day) AS first_day FROM visits GROUP BY patient_id)
SELECT DATE_TRUNC('quarter', first_day)::TIMESTAMP AS cohort, COUNT(*) AS patients FROM firsts WHERE first_day < DATE '2023-07-01' GROUP BY 1

-- case: people by how often they came
SELECT n AS visits, COUNT(*) AS patients FROM (SELECT patient_id, LEAST(COUNT(*), 20) AS n FROM visits GROUP BY patient_id) t GROUP BY n ORDER BY n

-- case: dbt's test of accepted values
-- note: the values are declared, so nothing else can be there
SELECT COUNT(*) AS failures FROM (SELECT kind AS value_field, COUNT(*) AS n_records FROM visits GROUP BY kind) all_values WHERE value_field NOT IN ('emergency', 'scheduled', 'follow-up')

-- case: dbt's test of nulls
SELECT COUNT(*) AS failures FROM (SELECT * FROM visits WHERE cost IS NULL) dbt_internal_test

-- case: a metric with grouping sets
-- order: any
SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (kind), ())

-- case: a materialised table
CREATE TABLE analytics.visits_daily AS SELECT day, COUNT(*) AS n FROM visits GROUP BY 1
---- error
Unsupported 0A000: CREATE is not answered: the schema declares the tables
LINE 1: CREATE TABLE analytics.visits_daily AS SELECT day, COUNT(*) AS n FROM visits GROUP BY 1
        ^
HINT:  The owner adds tables to the schema; for a temporary one, or a view, write WITH name AS (SELECT …) SELECT …. CREATE SYNTHETIC TABLE makes one of rows like those of a private table.

-- case: a model that is swapped in
ALTER TABLE visits RENAME TO visits__dbt_backup
---- error
Unsupported 0A000: ALTER is not answered: the schema declares the tables
LINE 1: ALTER TABLE visits RENAME TO visits__dbt_backup
        ^
HINT:  Questions are answered here, and nothing is changed; the owner edits the tables in the schema.

-- case: a derived table that is kept
TRUNCATE TABLE visits
---- error
Unsupported 0A000: TRUNCATE is not answered: data is read, never written
LINE 1: TRUNCATE TABLE visits
        ^
HINT:  Questions are answered here; the owner changes the data at its source, then registers it.
