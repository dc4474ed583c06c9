-- Time zones, spans of time and buckets, as BI tools and people write them.

-- case: a local day
-- empty: d
SELECT DATE(admitted AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS d, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1
---- duckdb
SELECT CAST(admitted AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York' AS DATE) AS d, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1

-- case: a local month of a moment
-- empty: month
SELECT DATE_TRUNC('month', logged AT TIME ZONE 'Europe/Berlin') AS month, SUM(cost) AS cost FROM visits WHERE logged IS NOT NULL GROUP BY 1 ORDER BY 1

-- case: hours of a local day
-- empty: hour
SELECT EXTRACT(hour FROM timezone('Asia/Kolkata', logged)) AS hour, COUNT(*) AS n FROM visits WHERE logged IS NOT NULL GROUP BY 1 ORDER BY 1

-- case: a month, there and back, as Metabase writes it
-- empty: month
SELECT (DATE_TRUNC('month', (logged AT TIME ZONE 'Europe/Berlin')) AT TIME ZONE 'Europe/Berlin') AS month, COUNT(*) AS n FROM visits WHERE logged IS NOT NULL GROUP BY 1 ORDER BY 1

-- case: the moment of a local time
SELECT COUNT(*) AS n FROM visits WHERE admitted AT TIME ZONE 'Europe/Berlin' < logged

-- case: from a local midnight on
SELECT COUNT(*) AS n FROM visits WHERE logged >= TIMESTAMP '2024-03-31 00:00' AT TIME ZONE 'Europe/Berlin' AND (logged AT TIME ZONE 'America/Los_Angeles')::date < DATE '2024-11-03'

-- case: where clocks are changed
SELECT COUNT(*) AS n FROM visits WHERE EXTRACT(hour FROM admitted AT TIME ZONE 'Europe/Berlin') <> EXTRACT(hour FROM admitted) - 1

-- case: a zone by a slip
SELECT COUNT(*) FROM visits WHERE (logged AT TIME ZONE 'Berlin')::date = DATE '2024-01-01'
---- error
Unsupported 0A000: there is no time zone "Berlin"
LINE 1: SELECT COUNT(*) FROM visits WHERE (logged AT TIME ZONE 'Berlin')::date = DATE '2024-01-01'
                                                               ^
HINT:  Perhaps you meant 'Europe/Berlin'.

-- case: a zone from a column
SELECT COUNT(*) FROM visits WHERE (logged AT TIME ZONE note)::date = DATE '2024-01-01'
---- error
Unsupported 0A000: a time zone must be a literal
LINE 1: SELECT COUNT(*) FROM visits WHERE (logged AT TIME ZONE note)::date = DATE '2024-01-01'
                                                               ^
HINT:  For example: admitted AT TIME ZONE 'Europe/Berlin'.
