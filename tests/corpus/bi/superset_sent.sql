-- What Superset 6.1 sent for the charts of tests/clients/superset/gallery.py, word for word.

-- case: a line by seconds
-- empty: admitted
SELECT
  DATE_TRUNC('SECOND', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2024-05-06 10:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-05-06 10:00:30.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('SECOND', admitted)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('SECOND', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2024-05-06 10:00:00.000000'
  AND admitted < TIMESTAMP '2024-05-06 10:00:30.000000'
GROUP BY
  DATE_TRUNC('SECOND', admitted)
LIMIT 10000

-- case: a line by five seconds
-- empty: admitted
SELECT
  DATE_TRUNC('MINUTE', admitted) + INTERVAL '5 SECONDS' * FLOOR(EXTRACT(SECOND FROM admitted) / 5) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2024-05-06 10:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-05-06 10:01:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('MINUTE', admitted) + INTERVAL '5 SECONDS' * FLOOR(EXTRACT(SECOND FROM admitted) / 5)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('MINUTE', admitted) + INTERVAL '5 SECONDS' * FLOOR(EXTRACT(SECOND FROM admitted) / 5) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2024-05-06 10:00:00.000000'
  AND admitted < TIMESTAMP '2024-05-06 10:01:00.000000'
GROUP BY
  DATE_TRUNC('MINUTE', admitted) + INTERVAL '5 SECONDS' * FLOOR(EXTRACT(SECOND FROM admitted) / 5)
LIMIT 10000

-- case: a line by minutes
-- empty: admitted
SELECT
  DATE_TRUNC('MINUTE', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2024-05-06 10:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-05-06 11:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('MINUTE', admitted)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('MINUTE', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2024-05-06 10:00:00.000000'
  AND admitted < TIMESTAMP '2024-05-06 11:00:00.000000'
GROUP BY
  DATE_TRUNC('MINUTE', admitted)
LIMIT 10000

-- case: a line by five minutes
-- empty: admitted
SELECT
  DATE_TRUNC('HOUR', admitted) + INTERVAL '5 MINUTES' * FLOOR(EXTRACT(MINUTE FROM admitted) / 5) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2024-05-06 10:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-05-06 11:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('HOUR', admitted) + INTERVAL '5 MINUTES' * FLOOR(EXTRACT(MINUTE FROM admitted) / 5)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('HOUR', admitted) + INTERVAL '5 MINUTES' * FLOOR(EXTRACT(MINUTE FROM admitted) / 5) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2024-05-06 10:00:00.000000'
  AND admitted < TIMESTAMP '2024-05-06 11:00:00.000000'
GROUP BY
  DATE_TRUNC('HOUR', admitted) + INTERVAL '5 MINUTES' * FLOOR(EXTRACT(MINUTE FROM admitted) / 5)
LIMIT 10000

-- case: a line by half hours
-- empty: admitted
SELECT
  DATE_TRUNC('HOUR', admitted) + INTERVAL '30 MINUTES' * FLOOR(EXTRACT(MINUTE FROM admitted) / 30) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2024-05-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-05-07 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('HOUR', admitted) + INTERVAL '30 MINUTES' * FLOOR(EXTRACT(MINUTE FROM admitted) / 30)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('HOUR', admitted) + INTERVAL '30 MINUTES' * FLOOR(EXTRACT(MINUTE FROM admitted) / 30) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2024-05-06 00:00:00.000000'
  AND admitted < TIMESTAMP '2024-05-07 00:00:00.000000'
GROUP BY
  DATE_TRUNC('HOUR', admitted) + INTERVAL '30 MINUTES' * FLOOR(EXTRACT(MINUTE FROM admitted) / 30)
LIMIT 10000

-- case: a line by hours
-- empty: admitted
SELECT
  DATE_TRUNC('HOUR', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2024-05-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-05-07 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('HOUR', admitted)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('HOUR', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2024-05-06 00:00:00.000000'
  AND admitted < TIMESTAMP '2024-05-07 00:00:00.000000'
GROUP BY
  DATE_TRUNC('HOUR', admitted)
LIMIT 10000

-- case: a line by days
SELECT
  DATE_TRUNC('DAY', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2024-05-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-05-13 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('DAY', admitted)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('DAY', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2024-05-06 00:00:00.000000'
  AND admitted < TIMESTAMP '2024-05-13 00:00:00.000000'
GROUP BY
  DATE_TRUNC('DAY', admitted)
LIMIT 10000

-- case: a line by weeks
SELECT
  DATE_TRUNC('WEEK', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2024-03-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-04-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('WEEK', admitted)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('WEEK', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2024-03-01 00:00:00.000000'
  AND admitted < TIMESTAMP '2024-04-01 00:00:00.000000'
GROUP BY
  DATE_TRUNC('WEEK', admitted)
LIMIT 10000

-- case: a line by quarters
SELECT
  DATE_TRUNC('QUARTER', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('QUARTER', admitted)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('QUARTER', admitted) AS admitted,
  COUNT(*) AS count
FROM public.visits
WHERE
  admitted >= TIMESTAMP '2023-01-01 00:00:00.000000'
  AND admitted < TIMESTAMP '2025-01-01 00:00:00.000000'
GROUP BY
  DATE_TRUNC('QUARTER', admitted)
LIMIT 10000

-- case: a line over a date
-- order: any
SELECT
  DATE_TRUNC('WEEK', day) AS day,
  SUM(nights) AS "SUM(nights)"
FROM public.visits
WHERE
  day >= TO_DATE('2024-03-01', 'YYYY-MM-DD')
  AND day < TO_DATE('2024-04-01', 'YYYY-MM-DD')
GROUP BY
  DATE_TRUNC('WEEK', day)
ORDER BY
  COUNT(*) DESC
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('WEEK', day) AS day,
  SUM(nights) AS "SUM(nights)"
FROM public.visits
WHERE
  day >= DATE '2024-03-01'
  AND day < DATE '2024-04-01'
GROUP BY
  DATE_TRUNC('WEEK', day)
ORDER BY
  COUNT(*) DESC
LIMIT 10000

-- case: a line over moments with a zone
SELECT
  DATE_TRUNC('DAY', logged) AS logged,
  COUNT(*) AS count
FROM public.visits
WHERE
  logged >= TO_TIMESTAMP('2024-05-06 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND logged < TO_TIMESTAMP('2024-05-13 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('DAY', logged)
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('DAY', logged) AS logged,
  COUNT(*) AS count
FROM public.visits
WHERE
  logged >= TIMESTAMP '2024-05-06 00:00:00.000000'
  AND logged < TIMESTAMP '2024-05-13 00:00:00.000000'
GROUP BY
  DATE_TRUNC('DAY', logged)
LIMIT 10000

-- case: a big number with a trend
SELECT
  DATE_TRUNC('MONTH', admitted) AS admitted,
  SUM(cost) AS "SUM(cost)"
FROM public.visits
GROUP BY
  DATE_TRUNC('MONTH', admitted)
LIMIT 10000

-- case: sums, averages and distinct ones
SELECT
  kind AS kind,
  SUM(paid) AS "SUM(paid)",
  AVG(rating) AS "AVG(rating)",
  COUNT(DISTINCT patient_id) AS "COUNT_DISTINCT(patient_id)",
  COUNT(note) AS "COUNT(note)"
FROM public.visits
GROUP BY
  kind
ORDER BY
  "SUM(paid)" DESC
LIMIT 10000

-- case: a ratio of one's own
SELECT
  kind AS kind,
  SUM(cost) / NULLIF(SUM(nights), 0) AS "per night"
FROM public.visits
GROUP BY
  kind
LIMIT 10000

-- case: a share of one's own
SELECT
  COUNT(*) FILTER(WHERE
    urgent) * 100.0 / COUNT(*) AS urgent
FROM public.visits
LIMIT 10000

-- case: a dimension of one's own
SELECT
  CASE WHEN EXTRACT(DOW FROM day) IN (0, 6) THEN 'yes' ELSE 'no' END AS weekend,
  COUNT(*) AS count
FROM public.visits
GROUP BY
  CASE WHEN EXTRACT(DOW FROM day) IN (0, 6) THEN 'yes' ELSE 'no' END
LIMIT 10000

-- case: filters on text
SELECT
  COUNT(*) AS count
FROM public.visits
WHERE
  kind = 'scheduled'
  AND ward <> 'surgery'
  AND diagnosis LIKE 'I%'
  AND note ILIKE '%a%'
  AND (
    NOT ward IN ('oncology', 'urology')
  )
  AND NOT note IS NULL
LIMIT 10000

-- case: filters on numbers
SELECT
  COUNT(*) AS count
FROM public.visits
WHERE
  nights > 1 AND nights <= 7 AND cost >= 99.5 AND cost < 4000 AND rating IN (3, 4, 5)
LIMIT 10000

-- case: filters on what is missing and on truth
SELECT
  kind AS kind,
  COUNT(*) AS count
FROM public.visits
WHERE
  rating IS NULL AND urgent IS TRUE
GROUP BY
  kind
LIMIT 10000

-- case: a filter in SQL, and one on groups
SELECT
  kind AS kind,
  COUNT(*) AS count
FROM public.visits
WHERE
  (
    (
      nights BETWEEN 1 AND 3
    )
  )
GROUP BY
  kind
HAVING
  (
    (
      COUNT(*) > 10
    )
  )
LIMIT 10000

-- case: a series limit by another metric
SELECT
  DATE_TRUNC('QUARTER', admitted) AS admitted,
  kind AS kind,
  COUNT(*) AS count
FROM public.visits
JOIN (
  SELECT
    kind AS kind__,
    COUNT(*) AS mme_inner__
  FROM public.visits
  WHERE
    admitted >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
    AND admitted < TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  GROUP BY
    kind
  ORDER BY
    SUM(cost) DESC
  LIMIT 2
) AS series_limit
  ON kind = kind__
WHERE
  admitted >= TO_TIMESTAMP('2023-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2025-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('QUARTER', admitted),
  kind
ORDER BY
  count DESC
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('QUARTER', admitted) AS admitted,
  kind AS kind,
  COUNT(*) AS count
FROM public.visits
JOIN (
  SELECT
    kind AS kind__,
    COUNT(*) AS mme_inner__
  FROM public.visits
  WHERE
    admitted >= TIMESTAMP '2023-01-01 00:00:00.000000'
    AND admitted < TIMESTAMP '2025-01-01 00:00:00.000000'
  GROUP BY
    kind
  ORDER BY
    SUM(cost) DESC
  LIMIT 2
) AS series_limit
  ON kind = kind__
WHERE
  admitted >= TIMESTAMP '2023-01-01 00:00:00.000000'
  AND admitted < TIMESTAMP '2025-01-01 00:00:00.000000'
GROUP BY
  DATE_TRUNC('QUARTER', admitted),
  kind
ORDER BY
  count DESC
LIMIT 10000

-- case: a series limit, the rest together
SELECT
  CASE WHEN (
    NOT series_limit.kind__ IS NULL
  ) THEN kind ELSE 'Others' END AS kind,
  COUNT(*) AS count
FROM public.visits
LEFT OUTER JOIN (
  SELECT
    kind AS kind__,
    COUNT(*) AS mme_inner__
  FROM public.visits
  GROUP BY
    kind
  ORDER BY
    COUNT(*) DESC
  LIMIT 2
) AS series_limit
  ON kind = kind__
GROUP BY
  CASE WHEN (
    NOT series_limit.kind__ IS NULL
  ) THEN kind ELSE 'Others' END

-- case: totals below a table
SELECT
  COUNT(*) AS count,
  SUM(paid) AS "SUM(paid)"
FROM public.visits
LIMIT 50000

-- case: how many rows a table has
SELECT
  COUNT(*) AS rowcount
FROM (
  SELECT
    kind AS kind,
    COUNT(*) AS count
  FROM public.visits
  GROUP BY
    kind
  LIMIT 10000
) AS rowcount_qry

-- case: the second page of a table
SELECT
  kind AS kind,
  COUNT(*) AS count
FROM public.visits
GROUP BY
  kind
ORDER BY
  count DESC
LIMIT 2
OFFSET 1

-- case: a heat map
SELECT
  kind AS kind,
  urgent AS urgent,
  AVG(cost) AS "AVG(cost)"
FROM public.visits
GROUP BY
  kind,
  urgent
LIMIT 10000

-- case: a box plot
SELECT
  DATE_TRUNC('MONTH', admitted) AS admitted,
  kind AS kind,
  AVG(cost) AS "AVG(cost)"
FROM public.visits
GROUP BY
  DATE_TRUNC('MONTH', admitted),
  kind
LIMIT 10000

-- case: a list of filter values
SELECT
  kind AS kind
FROM public.visits
GROUP BY
  kind
ORDER BY
  kind ASC
LIMIT 1000

-- case: filter values that are searched for
SELECT
  kind AS kind
FROM public.visits
WHERE
  kind ILIKE '%e%'
GROUP BY
  kind
LIMIT 1000

-- case: a list of filter values that are numbers
SELECT
  rating AS rating
FROM public.visits
GROUP BY
  rating
ORDER BY
  rating ASC
LIMIT 10000

-- case: a range of numbers
-- tolerance: 80
SELECT
  MIN(cost) AS min,
  MAX(cost) AS max
FROM public.visits
LIMIT 10000

-- case: raw records
SELECT
  kind AS kind,
  cost AS cost,
  admitted AS admitted
FROM public.visits
ORDER BY
  cost DESC
LIMIT 10000
---- error
NotPrivate 0A000: this would return single private rows
LINE 2:   kind AS kind,
          ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind.

-- case: a histogram
SELECT
  cost AS cost
FROM public.visits
LIMIT 10000
---- error
NotPrivate 0A000: this would return single private rows
LINE 2:   cost AS cost
          ^
HINT:  Aggregate, for example: SELECT AVG(cost), COUNT(*) FROM visits.

-- case: a bar chart of a virtual dataset
SELECT
  sex AS sex,
  COUNT(*) AS count
FROM (
  SELECT
    v.kind,
    v.cost,
    v.admitted,
    p.sex
  FROM visits AS v
  JOIN patients AS p
    ON p.patient_id = v.patient_id
) AS virtual_table
WHERE
  kind IN ('emergency', 'scheduled')
GROUP BY
  sex
ORDER BY
  count DESC
LIMIT 10000

-- case: a line of a virtual dataset
SELECT
  DATE_TRUNC('MONTH', admitted) AS admitted,
  sex AS sex,
  SUM(cost) AS "SUM(cost)"
FROM (
  SELECT
    v.kind,
    v.cost,
    v.admitted,
    p.sex
  FROM visits AS v
  JOIN patients AS p
    ON p.patient_id = v.patient_id
) AS virtual_table
WHERE
  admitted >= TO_TIMESTAMP('2024-01-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
  AND admitted < TO_TIMESTAMP('2024-07-01 00:00:00.000000', 'YYYY-MM-DD HH24:MI:SS.US')
GROUP BY
  DATE_TRUNC('MONTH', admitted),
  sex
LIMIT 10000
---- duckdb
SELECT
  DATE_TRUNC('MONTH', admitted) AS admitted,
  sex AS sex,
  SUM(cost) AS "SUM(cost)"
FROM (
  SELECT
    v.kind,
    v.cost,
    v.admitted,
    p.sex
  FROM visits AS v
  JOIN patients AS p
    ON p.patient_id = v.patient_id
) AS virtual_table
WHERE
  admitted >= TIMESTAMP '2024-01-01 00:00:00.000000'
  AND admitted < TIMESTAMP '2024-07-01 00:00:00.000000'
GROUP BY
  DATE_TRUNC('MONTH', admitted),
  sex
LIMIT 10000

-- case: a list of filter values of a virtual dataset
SELECT
  sex AS sex
FROM (
  SELECT
    v.kind,
    v.cost,
    v.admitted,
    p.sex
  FROM visits AS v
  JOIN patients AS p
    ON p.patient_id = v.patient_id
) AS virtual_table
GROUP BY
  sex
ORDER BY
  sex ASC
LIMIT 1000
