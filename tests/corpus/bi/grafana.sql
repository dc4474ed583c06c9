-- What Grafana sends once its macros are expanded, beyond cases/grafana.sql.

-- case: five-minute buckets of an hour
-- empty: time
SELECT floor(extract(epoch from admitted)/300)*300 AS "time", count(*) AS "visits" FROM visits
WHERE admitted BETWEEN '2024-06-03T00:00:00Z' AND '2024-06-03T12:00:00Z' GROUP BY 1 ORDER BY 1
---- duckdb
SELECT floor(extract(epoch from admitted)/300)*300 AS "time", count(*) AS "visits" FROM visits WHERE admitted BETWEEN '2024-06-03 00:00:00' AND '2024-06-03 12:00:00' GROUP BY 1 ORDER BY 1

-- case: a bucket as a timestamp
SELECT to_timestamp(floor(extract(epoch from admitted)/86400)*86400) AS "time", sum(nights) AS nights FROM visits
WHERE admitted >= '2024-06-01T00:00:00Z' AND admitted < '2024-06-08T00:00:00Z' GROUP BY 1 ORDER BY 1
---- duckdb
SELECT to_timestamp(floor(extract(epoch from admitted)/86400)*86400) AS "time", sum(nights) AS nights FROM visits WHERE admitted >= '2024-06-01' AND admitted < '2024-06-08' GROUP BY 1 ORDER BY 1

-- case: a zoned column
-- empty: time
SELECT floor(extract(epoch from logged)/86400)*86400 AS "time", count(*) AS n FROM visits
WHERE logged BETWEEN '2024-06-01T00:00:00Z' AND '2024-06-05T00:00:00Z' GROUP BY 1 ORDER BY 1

-- case: milliseconds as the axis
-- order: any
SELECT extract(epoch from date_trunc('month', admitted)) * 1000 AS "time", avg(cost) AS cost FROM visits GROUP BY date_trunc('month', admitted)

-- case: a series for each value, with aliases
SELECT date_trunc('week', admitted) AS time, urgent::text AS metric, count(*) AS "value" FROM visits WHERE admitted >= '2024-01-01' AND admitted < '2024-02-05' GROUP BY time, metric ORDER BY time, metric

-- case: wide series
SELECT date_trunc('month', admitted) AS "time",
  count(*) FILTER (WHERE kind = 'emergency') AS emergency, count(*) FILTER (WHERE kind = 'scheduled') AS scheduled, count(*) FILTER (WHERE kind = 'follow-up') AS "follow-up"
FROM visits WHERE admitted BETWEEN '2023-01-01' AND '2023-12-31 23:59:59' GROUP BY 1 ORDER BY 1

-- case: a bar gauge of the top
SELECT diagnosis AS metric, sum(paid) AS value FROM visits WHERE admitted >= '2024-01-01T00:00:00Z' GROUP BY diagnosis ORDER BY value DESC LIMIT 3
---- duckdb
SELECT diagnosis AS metric, sum(paid) AS value FROM visits WHERE admitted >= '2024-01-01' GROUP BY diagnosis ORDER BY value DESC LIMIT 3

-- case: a stat with the change to the year before
SELECT (count(*) FILTER (WHERE extract(year from admitted) = 2024))::float / nullif(count(*) FILTER (WHERE extract(year from admitted) = 2023), 0) - 1 AS change FROM visits

-- case: a variable of declared values
SELECT drug FROM prescriptions GROUP BY drug ORDER BY drug

-- case: a variable with All, as a regular expression
SELECT count(*) AS n FROM visits WHERE ward ~ '(surgery|urology)'

-- case: a variable with a search
SELECT DISTINCT kind AS __text FROM visits WHERE kind LIKE 'e%' ORDER BY 1 LIMIT 1000

-- case: the time range of a dashboard
SELECT extract(epoch from min(admitted)) AS "from", extract(epoch from max(admitted)) AS "to" FROM visits
---- duckdb
SELECT epoch(TIMESTAMP '2023-01-01') AS "from", epoch(TIMESTAMP '2024-12-31 23:59:59') AS "to"

-- case: an alert
SELECT date_trunc('day', admitted) AS "time", avg(nights) AS value FROM visits WHERE admitted >= timestamp '2024-10-01' - interval '7 days' AND admitted < timestamp '2024-10-01' GROUP BY 1 ORDER BY 1

-- case: percentiles of a panel
-- tolerance: 1%
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY cost) AS p50, percentile_cont(0.95) WITHIN GROUP (ORDER BY cost) AS p95 FROM visits WHERE admitted >= '2024-01-01'

-- case: gaps filled by a series
SELECT s.t AS "time", coalesce(v.n, 0) AS n
FROM generate_series(timestamp '2024-02-01', timestamp '2024-02-05', interval '1 day') AS s(t)
LEFT JOIN (SELECT date_trunc('day', admitted) AS t, count(*) AS n FROM visits WHERE admitted >= '2024-02-01' AND admitted < '2024-02-06' GROUP BY 1) v ON v.t = s.t ORDER BY 1

-- case: a table of rows
SELECT * FROM visits WHERE admitted BETWEEN '2024-06-01T00:00:00Z' AND '2024-06-02T00:00:00Z' LIMIT 50
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM visits WHERE admitted BETWEEN '2024-06-01T00:00:00Z' AND '2024-06-02T00:00:00Z' LIMIT 50
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: an annotation query
SELECT admitted AS time, note AS text FROM visits WHERE urgent ORDER BY admitted LIMIT 10
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT admitted AS time, note AS text FROM visits WHERE urgent ORDER BY admitted LIMIT 10
               ^
HINT:  Aggregate, for example: SELECT note, COUNT(*) FROM visits GROUP BY note.
