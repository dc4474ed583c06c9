-- What Grafana panels send, macros expanded.

-- case: a time series by day
SELECT floor(extract(epoch from admitted)/86400)*86400 AS "time", count(*) AS value
FROM visits
WHERE admitted BETWEEN '2024-06-01T00:00:00Z' AND '2024-08-31T23:59:59Z'
GROUP BY 1
ORDER BY 1
---- duckdb
SELECT floor(extract(epoch from admitted)/86400)*86400 AS "time", count(*) AS value FROM visits WHERE admitted BETWEEN '2024-06-01 00:00:00' AND '2024-08-31 23:59:59' GROUP BY 1 ORDER BY 1

-- case: a time series by day and metric
-- empty: time, metric
SELECT floor(extract(epoch from admitted)/86400)*86400 AS "time", kind AS metric, avg(cost) AS value
FROM visits
WHERE admitted BETWEEN '2024-06-01T00:00:00Z' AND '2024-06-14T23:59:59.999Z'
GROUP BY 1, 2
ORDER BY 1, 2
---- duckdb
SELECT floor(extract(epoch from admitted)/86400)*86400 AS "time", kind AS metric, avg(cost) AS value FROM visits
WHERE admitted BETWEEN '2024-06-01 00:00:00' AND '2024-06-14 23:59:59.999' GROUP BY 1, 2 ORDER BY 1, 2

-- case: a time series of ninety days by week
SELECT date_trunc('week', admitted) AS "time", count(*) AS visits, sum(nights) AS nights
FROM visits
WHERE admitted >= '2024-01-01T00:00:00Z' AND admitted < '2024-04-01T00:00:00Z'
GROUP BY "time"
ORDER BY "time"
---- duckdb
SELECT date_trunc('week', admitted) AS "time", count(*) AS visits, sum(nights) AS nights FROM visits WHERE admitted >= '2024-01-01' AND admitted < '2024-04-01' GROUP BY 1 ORDER BY 1

-- case: a stat panel
SELECT count(*) AS "urgent" FROM visits WHERE urgent AND admitted BETWEEN '2024-01-01T00:00:00Z' AND '2024-12-31T23:59:59Z'
---- duckdb
SELECT count(*) AS "urgent" FROM visits WHERE urgent AND admitted BETWEEN '2024-01-01 00:00:00' AND '2024-12-31 23:59:59'

-- case: a gauge with a ratio
SELECT sum(case when rating >= 4 then 1 else 0 end)::float / nullif(count(rating), 0) AS satisfied FROM visits

-- case: a table panel
SELECT ward AS "Ward", count(*) AS "Visits", round(avg(paid)::numeric, 2) AS "Mean paid" FROM visits GROUP BY ward ORDER BY "Visits" DESC
---- duckdb
SELECT ward, count(*) AS n, round(avg(paid), 2) FROM visits GROUP BY ward ORDER BY n DESC

-- case: a variable query
SELECT DISTINCT kind FROM visits ORDER BY kind

-- case: a variable query with text and value
SELECT ward AS __text, ward AS __value FROM visits GROUP BY ward ORDER BY 1

-- case: unix epochs as the time filter
SELECT floor(extract(epoch from admitted)/604800)*604800 AS "time", sum(paid) AS paid FROM visits
WHERE extract(epoch from admitted) >= 1704067200 AND extract(epoch from admitted) <= 1711929599 GROUP BY "time" ORDER BY "time"

-- case: a multi-value variable
SELECT date_trunc('month', admitted) AS "time", ward AS metric, count(*) AS value FROM visits WHERE ward IN ('surgery','urology') GROUP BY 1, 2 ORDER BY 1, 2

-- case: time_bucket as TimescaleDB users write it
SELECT time_bucket('1 day', admitted) AS "time", count(*) AS n FROM visits WHERE admitted >= '2024-09-01' AND admitted < '2024-09-08' GROUP BY 1 ORDER BY 1
---- duckdb
SELECT date_trunc('day', admitted) AS "time", count(*) AS n FROM visits WHERE admitted >= '2024-09-01' AND admitted < '2024-09-08' GROUP BY 1 ORDER BY 1

-- case: a logs panel of rows
SELECT admitted AS "time", note AS body FROM visits WHERE admitted BETWEEN '2024-06-01T00:00:00Z' AND '2024-06-02T00:00:00Z' ORDER BY admitted DESC LIMIT 100
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT admitted AS "time", note AS body FROM visits WHERE admitted BETWEEN '2024-06-01T00:00:00Z' AND '2024-06-02T00:00:00Z' ORDER BY admitted DESC LIMIT 100
               ^
HINT:  Aggregate, for example: SELECT note, COUNT(*) FROM visits GROUP BY note.
