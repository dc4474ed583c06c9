-- Time zones, spans of time and buckets, as BI tools and people write them.

-- case: a local day
SELECT DATE(admitted AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS d, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1
---- duckdb
SELECT CAST(admitted AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York' AS DATE) AS d, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1

-- case: a local month of a moment
-- empty: month
SELECT DATE_TRUNC('month', logged AT TIME ZONE 'Europe/Berlin') AS month, SUM(cost) AS cost FROM visits WHERE logged IS NOT NULL GROUP BY 1 ORDER BY 1

-- case: hours of a local day
SELECT EXTRACT(hour FROM timezone('Asia/Kolkata', logged)) AS hour, COUNT(*) AS n FROM visits WHERE logged IS NOT NULL GROUP BY 1 ORDER BY 1

-- case: a month, there and back, as Metabase writes it
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

-- case: a difference compared with an interval
SELECT kind, COUNT(*) AS n FROM visits WHERE logged - admitted < INTERVAL '1 day' GROUP BY kind ORDER BY kind
---- duckdb
SELECT kind, COUNT(*) AS n FROM visits WHERE logged - admitted::timestamptz < INTERVAL '1 day' GROUP BY kind ORDER BY kind

-- case: since when
SELECT COUNT(*) AS n FROM visits WHERE TIMESTAMP '2024-06-01' - admitted BETWEEN INTERVAL '1 day' AND INTERVAL '3 months'

-- case: older than an age
SELECT COUNT(*) AS n FROM patients WHERE AGE(DATE '2024-06-01', birth_date) > INTERVAL '65 years'

-- case: visits soon after another
SELECT SUM(CASE WHEN gap < INTERVAL '7 days' THEN 1 ELSE 0 END) AS soon, COUNT(gap) AS later
FROM (SELECT admitted - LAG(admitted) OVER (PARTITION BY patient_id ORDER BY admitted) AS gap FROM visits) AS t

-- case: sessions
SELECT COUNT(*) AS sessions
FROM (SELECT patient_id, CASE WHEN admitted - LAG(admitted) OVER (PARTITION BY patient_id ORDER BY admitted) < INTERVAL '30 minutes' THEN 0 ELSE 1 END AS is_new FROM visits) AS t
WHERE is_new = 1

-- case: the average of a difference
SELECT kind, ROUND(EXTRACT(epoch FROM AVG(TIMESTAMP '2025-01-01' - admitted)) / 3600, 2) AS hours, AVG(TIMESTAMP '2025-01-01' - admitted) > INTERVAL '9 months' AS long FROM visits GROUP BY kind ORDER BY kind

-- case: from the first visit to the last
SELECT AVG(EXTRACT(epoch FROM span)) AS seconds, AVG(EXTRACT(day FROM span)) AS days, AVG(EXTRACT(hour FROM span)) AS hours
FROM (SELECT patient_id, MAX(admitted) - MIN(admitted) AS span FROM visits GROUP BY patient_id) AS t

-- case: a number of days is no interval
SELECT COUNT(*) FROM visits v JOIN patients p USING (patient_id) WHERE v.day - p.birth_date > INTERVAL '30 days'
---- error
TypeMismatch 42804: the difference of two dates is a number of days, not an interval
LINE 1: SELECT COUNT(*) FROM visits v JOIN patients p USING (patient_id) WHERE v.day - p.birth_date > INTERVAL '30 days'
                                                                               ^
HINT:  Compare it with a number: day - birth_date > 30.

-- case: an interval is no key
SELECT TIMESTAMP '2025-01-01' - admitted AS since, COUNT(*) FROM visits GROUP BY 1
---- error
Unsupported 0A000: an interval cannot be a key of GROUP BY
LINE 1: SELECT TIMESTAMP '2025-01-01' - admitted AS since, COUNT(*) FROM visits GROUP BY 1
                         ^
HINT:  Group by whole days: EXTRACT(day FROM to - from).

-- case: months of a difference
SELECT AVG(EXTRACT(month FROM TIMESTAMP '2025-01-01' - admitted)) FROM visits
---- error
Unsupported 0A000: EXTRACT(month FROM a difference) is not supported
LINE 1: SELECT AVG(EXTRACT(month FROM TIMESTAMP '2025-01-01' - admitted)) FROM visits
                                                ^
HINT:  EXTRACT(epoch FROM to - from) gives all seconds; its parts are day, hour, minute and second. EXTRACT(year FROM AGE(to, from)) counts years.

-- case: the spread of a difference
SELECT STDDEV(TIMESTAMP '2025-01-01' - admitted) FROM visits
---- error
TypeMismatch 42804: STDDEV() needs numbers, not interval
LINE 1: SELECT STDDEV(TIMESTAMP '2025-01-01' - admitted) FROM visits
                                ^
HINT:  STDDEV(EXTRACT(epoch FROM CAST('2025-01-01' AS TIMESTAMP) - admitted)) is in seconds.

-- case: weeks from Sunday on, as Tableau writes them
-- category: tableau
SELECT DATE_TRUNC('DAY', CAST("visits"."admitted" AS TIMESTAMP)) + (-EXTRACT(DOW FROM CAST("visits"."admitted" AS TIMESTAMP)) * INTERVAL '1 DAY') AS "twk:admitted:ok", SUM(1) AS "cnt:visits:ok" FROM "public"."visits" "visits" GROUP BY 1 ORDER BY 1

-- case: the Sunday before each visit
SELECT COUNT(*) AS n FROM visits WHERE admitted - EXTRACT(dow FROM admitted)::int * INTERVAL '1 day' < TIMESTAMP '2024-02-04 12:00'

-- case: quarters of a day from an origin
-- empty: at
SELECT DATE_BIN('6 hours', admitted, TIMESTAMP '2001-01-01 03:00') AS at, COUNT(*) AS n FROM visits WHERE admitted >= TIMESTAMP '2024-03-01' AND admitted < TIMESTAMP '2024-04-01' GROUP BY 1 ORDER BY 1
---- duckdb
SELECT time_bucket(INTERVAL '6 hours', admitted, TIMESTAMP '2001-01-01 03:00') AS "at", COUNT(*) AS n FROM visits WHERE admitted >= TIMESTAMP '2024-03-01' AND admitted < TIMESTAMP '2024-04-01' GROUP BY 1 ORDER BY 1

-- case: bins of a month
SELECT DATE_BIN('1 month', admitted, TIMESTAMP '2001-01-01') AS at, COUNT(*) FROM visits GROUP BY 1
---- error
Unsupported 0A000: buckets that begin at a moment are days or less wide
LINE 1: SELECT DATE_BIN('1 month', admitted, TIMESTAMP '2001-01-01') AS at, COUNT(*) FROM visits GROUP BY 1
               ^
HINT:  For example: time_bucket(INTERVAL '15 minutes', at).

-- case: numbers as text after the noise
SELECT kind, to_char(COUNT(*), '999,999') AS n, to_char(SUM(nights), 'FM999990.00') AS nights FROM visits GROUP BY kind ORDER BY kind
---- duckdb
SELECT kind, lpad(format('{:,}', COUNT(*)), 8, ' ') AS n, format('{:.2f}', SUM(nights)::DOUBLE) AS nights FROM visits GROUP BY kind ORDER BY kind

-- case: a format that is not known
SELECT to_char(COUNT(*), 'RN') FROM visits
---- error
Unsupported 0A000: TO_CHAR of a number has a format such as '999,999', 'FM990.00' or '000'
LINE 1: SELECT to_char(COUNT(*), 'RN') FROM visits
               ^
HINT:  Write ROUND(x, 2), or format('{:,}', x), of a number x.

-- case: an alias in WHERE
SELECT ward, cost * 2 AS twice FROM visits WHERE twice > 100
---- error
UnknownColumn 42703: column "twice" does not exist
LINE 1: SELECT ward, cost * 2 AS twice FROM visits WHERE twice > 100
                                                         ^
HINT:  GROUP BY, HAVING and ORDER BY know an alias; in WHERE write out what it stands for.

-- case: a text in double quotes that is a little like a column
SELECT COUNT(*) FROM visits WHERE ward = "warden"
---- error
UnknownColumn 42703: column "warden" does not exist
LINE 1: SELECT COUNT(*) FROM visits WHERE ward = "warden"
                                                 ^
HINT:  Double quotes are for names; text stands in single quotes: 'warden'.

-- case: a pattern from another column
SELECT COUNT(*) FROM visits WHERE note LIKE '%' || ward || '%'
---- error
Unsupported 0A000: a pattern must be a literal text
LINE 1: SELECT COUNT(*) FROM visits WHERE note LIKE '%' || ward || '%'
                                                    ^
HINT:  Look for one column in another by CONTAINS(a, b), STARTS_WITH(a, b) or ENDS_WITH(a, b).

-- case: an aggregate in WHERE
SELECT ward FROM visits WHERE COUNT(*) > 5 GROUP BY ward
---- error
GroupingError 42803: aggregates cannot be nested or stand in WHERE, ON or GROUP BY
LINE 1: SELECT ward FROM visits WHERE COUNT(*) > 5 GROUP BY ward
                                      ^
HINT:  A condition on aggregates stands in HAVING; an aggregate of aggregates is taken over a sub-select.

-- case: whether there is a visit, beside a public row
SELECT w.ward FROM wards w WHERE EXISTS (SELECT 1 FROM visits v WHERE v.ward = w.ward)
---- error
NotPrivate 0A000: a sub-select over private rows must aggregate them
LINE 1: SELECT w.ward FROM wards w WHERE EXISTS (SELECT 1 FROM visits v WHERE v.ward = w.ward)
                                                        ^
HINT:  Compare a count with a number that the noise does not reach: (SELECT COUNT(*) FROM …) > 20.
