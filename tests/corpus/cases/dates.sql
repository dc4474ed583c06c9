-- Time as analysts slice it.

-- case: by month
SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS visits, SUM(cost) AS total FROM visits GROUP BY 1 ORDER BY 1

-- case: by quarter and kind
SELECT DATE_TRUNC('quarter', admitted) AS quarter, kind, COUNT(*) FROM visits GROUP BY 1, 2 ORDER BY 1, 2

-- case: by week of one quarter
SELECT DATE_TRUNC('week', admitted) AS week, COUNT(*) FROM visits WHERE admitted >= '2023-04-03' AND admitted < '2023-07-03' GROUP BY 1 ORDER BY 1

-- case: by day of one month
SELECT DATE_TRUNC('day', admitted) AS day, COUNT(*) AS n FROM visits WHERE admitted >= TIMESTAMP '2024-02-01' AND admitted < TIMESTAMP '2024-03-01' GROUP BY 1 ORDER BY 1

-- case: by year, extracted
SELECT EXTRACT(YEAR FROM admitted) AS year, COUNT(*), AVG(cost) FROM visits GROUP BY EXTRACT(YEAR FROM admitted) ORDER BY year

-- case: by month of the year
SELECT EXTRACT(MONTH FROM admitted) AS month, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: by weekday and hour
SELECT EXTRACT(DOW FROM admitted) AS weekday, EXTRACT(HOUR FROM admitted) AS hour, COUNT(*) FROM visits GROUP BY 1, 2 ORDER BY 1, 2

-- case: DATE_PART
SELECT DATE_PART('isodow', admitted) AS weekday, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: week numbers
SELECT EXTRACT(WEEK FROM day) AS week, COUNT(*) FROM visits WHERE day BETWEEN '2024-01-01' AND '2024-12-29' GROUP BY 1 ORDER BY 1

-- case: day of the year
SELECT COUNT(DISTINCT EXTRACT(DOY FROM day)) FROM visits WHERE day < DATE '2024-01-01'

-- case: year and month as two keys
SELECT year(admitted) AS y, month(admitted) AS m, COUNT(*) AS n FROM visits GROUP BY y, m ORDER BY y, m

-- case: year and month as text
SELECT TO_CHAR(admitted, 'YYYY-MM') AS month, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1
---- duckdb
SELECT strftime(admitted, '%Y-%m') AS month, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: strftime
SELECT strftime(admitted, '%Y') AS year, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: names of weekdays
SELECT dayname(day) AS weekday, COUNT(*) AS n FROM visits GROUP BY dayname(day) ORDER BY weekday

-- case: a timestamp cast to a date
SELECT CAST(admitted AS DATE) AS day, COUNT(*) FROM visits WHERE admitted >= '2023-10-01' AND admitted < '2023-11-01' GROUP BY CAST(admitted AS DATE) ORDER BY 1

-- case: a date cast by ::
SELECT admitted::date AS day, COUNT(*) FROM visits WHERE admitted::date BETWEEN '2023-03-05' AND '2023-03-12' GROUP BY admitted::date ORDER BY day

-- case: the last days before a date
SELECT COUNT(*) FROM visits WHERE day >= DATE '2024-06-30' - INTERVAL '30 days' AND day <= DATE '2024-06-30'

-- case: days added to a date
SELECT COUNT(*) FROM visits WHERE day + 7 > DATE '2024-12-31'

-- case: age in years at the visit
SELECT (EXTRACT(YEAR FROM v.admitted) - EXTRACT(YEAR FROM p.birth_date)) / 10 AS decade, COUNT(*) AS n
FROM visits v JOIN patients p ON v.patient_id = p.patient_id
WHERE p.birth_date < DATE '2010-01-01' AND p.birth_date >= DATE '1934-01-01'
GROUP BY 1 ORDER BY 1

-- case: decade of birth
SELECT EXTRACT(DECADE FROM birth_date) * 10 AS decade, COUNT(*) FROM patients WHERE birth_date < DATE '2010-01-01' GROUP BY 1 ORDER BY 1

-- case: days between two dates
SELECT AVG(started - DATE '2023-01-01') AS mean_start FROM prescriptions

-- case: date_diff over two columns
SELECT kind, AVG(DATE_DIFF('day', p.registered, v.day)) AS days FROM visits v JOIN patients p USING (patient_id) GROUP BY kind ORDER BY kind

-- case: epoch arithmetic
SELECT FLOOR(EXTRACT(EPOCH FROM admitted) / 86400) AS day_number, COUNT(*) AS n FROM visits
WHERE admitted >= '2024-05-01' AND admitted < '2024-05-15' GROUP BY 1 ORDER BY 1

-- case: buckets of two weeks
SELECT time_bucket(INTERVAL '14 days', day) AS fortnight, COUNT(*) FROM visits WHERE day BETWEEN '2023-05-01' AND '2023-08-31' GROUP BY 1 ORDER BY 1

-- case: six-hour buckets of the time of day
SELECT EXTRACT(HOUR FROM arrived) / 6 AS part, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: the time of day as a condition
SELECT COUNT(*) FROM visits WHERE arrived BETWEEN TIME '08:00' AND TIME '16:30'

-- case: a timestamp with time zone
SELECT DATE_TRUNC('month', logged) AS month, COUNT(*) AS n FROM visits WHERE logged >= '2023-02-01T00:00:00Z' AND logged < '2023-06-01T00:00:00Z' GROUP BY 1 ORDER BY 1

-- case: delay between two timestamps in minutes
-- tolerance: 0.01
SELECT kind, AVG(EXTRACT(EPOCH FROM logged::timestamp - admitted) / 60) AS minutes FROM visits WHERE logged IS NOT NULL GROUP BY kind ORDER BY kind

-- case: this year against last, by CASE
SELECT ward,
       COUNT(CASE WHEN admitted >= '2023-01-01' AND admitted < '2024-01-01' THEN 1 END) AS y2023,
       COUNT(CASE WHEN admitted >= '2024-01-01' AND admitted < '2025-01-01' THEN 1 END) AS y2024
FROM visits GROUP BY ward ORDER BY ward

-- case: weekdays against weekends
SELECT CASE WHEN EXTRACT(ISODOW FROM day) IN (6, 7) THEN 'weekend' ELSE 'weekday' END AS part, COUNT(*) AS n, AVG(nights) AS stay
FROM visits GROUP BY 1 ORDER BY 1

-- case: the last day of the month
SELECT COUNT(*) FROM visits WHERE day = last_day(day)

-- case: months since registration
-- tolerance: 0.000001
SELECT AVG((EXTRACT(YEAR FROM v.day) - EXTRACT(YEAR FROM p.registered)) * 12 + EXTRACT(MONTH FROM v.day) - EXTRACT(MONTH FROM p.registered)) AS months
FROM visits v JOIN patients p ON p.patient_id = v.patient_id

-- case: make_date
SELECT make_date(2000 + CAST(EXTRACT(YEAR FROM day) AS INTEGER) % 100, 1, 1) AS year, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: nothing after today
SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE

-- case: all before now
SELECT COUNT(*) FROM visits WHERE admitted < NOW()
---- duckdb
SELECT COUNT(*) FROM visits

-- case: an interval by its parts
SELECT COUNT(*) FROM visits WHERE admitted >= TIMESTAMP '2024-01-31 12:00:00' - INTERVAL '1 month' AND admitted < TIMESTAMP '2024-01-31 12:00:00'

-- case: an interval of days and a time
SELECT COUNT(*) AS n FROM visits WHERE admitted < TIMESTAMP '2024-03-01' - INTERVAL '10 days 12:00:00'

-- case: an interval that lies ahead
SELECT COUNT(*) AS n FROM visits WHERE admitted < TIMESTAMP '2024-03-01' - INTERVAL '@ 10 days 2 hours ago'
---- duckdb
SELECT COUNT(*) AS n FROM visits WHERE admitted < TIMESTAMP '2024-03-01' + INTERVAL '10 days 2 hours'

-- case: an interval of years and months, and of its fields
SELECT COUNT(*) AS n FROM visits WHERE admitted >= TIMESTAMP '2024-06-01' - INTERVAL '1-2' YEAR TO MONTH AND admitted < TIMESTAMP '2024-06-01' + '1 02:03:04'::interval
---- duckdb
SELECT COUNT(*) AS n FROM visits WHERE admitted >= TIMESTAMP '2024-06-01' - INTERVAL '14 months' AND admitted < TIMESTAMP '2024-06-01' + INTERVAL '1 day 2 hours 3 minutes 4 seconds'
