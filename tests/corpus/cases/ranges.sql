-- Ranges of time as people and BI tools write them: what a condition says, the listed groups keep to.

-- case: the days before a moment
SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n FROM visits
WHERE admitted >= TIMESTAMP '2025-12-01' - INTERVAL '700 days' GROUP BY 1 ORDER BY 1

-- case: the days before now
SELECT COUNT(*) AS n FROM visits WHERE admitted >= now() - INTERVAL '10000 days' AND day >= CURRENT_DATE - 10000

-- case: a date and an interval
SELECT day, COUNT(*) AS n FROM visits
WHERE day >= DATE '2024-01-01' + INTERVAL '10 days' AND day < DATE '2024-02-01' GROUP BY day ORDER BY day

-- case: a date and a number of days
SELECT day, COUNT(*) AS n FROM visits WHERE day >= DATE '2025-12-01' - 350 GROUP BY day ORDER BY day

-- case: a date of numbers
SELECT day, COUNT(*) AS n FROM visits WHERE day >= make_date(2024, 12, 1) GROUP BY day ORDER BY day

-- case: a moment of seconds
SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n FROM visits
WHERE admitted >= to_timestamp(1704067200) GROUP BY 1 ORDER BY 1

-- case: an interval made of numbers
SELECT day, COUNT(*) AS n FROM visits WHERE day >= DATE '2024-12-01' + make_interval(days => 10) GROUP BY day ORDER BY day
---- duckdb
SELECT day, COUNT(*) AS n FROM visits WHERE day >= DATE '2024-12-11' GROUP BY day ORDER BY day

-- case: an interval made of text
SELECT day, COUNT(*) AS n FROM visits
WHERE day BETWEEN DATE '2024-12-01' + CAST('10 days' AS interval) AND DATE '2024-12-01' + (20 || ' days')::interval GROUP BY day ORDER BY day

-- case: the last six months as Looker writes them
SELECT TO_CHAR(DATE_TRUNC('month', admitted), 'YYYY-MM') AS month, COUNT(*) AS n FROM visits
WHERE ((visits.admitted >= ((SELECT (DATE_TRUNC('month', DATE_TRUNC('day', TIMESTAMP '2024-12-05 10:11:12')) + (-5 || ' month')::INTERVAL)))
  AND visits.admitted < ((SELECT (DATE_TRUNC('month', DATE_TRUNC('day', TIMESTAMP '2024-12-05 10:11:12')) + (-5 || ' month')::INTERVAL + (6 || ' month')::INTERVAL)))))
GROUP BY 1 ORDER BY 1
---- duckdb
SELECT strftime(admitted, '%Y-%m') AS month, COUNT(*) AS n FROM visits WHERE admitted >= '2024-07-01' AND admitted < '2025-01-01' GROUP BY 1 ORDER BY 1

-- case: a pattern put together
SELECT COUNT(*) AS n, COUNT(*) FILTER (WHERE note LIKE concat('%', 'fell', '%')) AS m FROM visits WHERE note LIKE '%' || 'fell' || '%'

-- case: the months of a year
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits WHERE EXTRACT(year FROM day) = 2024 GROUP BY 1 ORDER BY 1

-- case: years from one on, three spellings
SELECT DATE_TRUNC('quarter', admitted) AS quarter, COUNT(*) AS n FROM visits
WHERE year(admitted) >= 2024 AND date_part('year', admitted) < 2030 AND 2024 <= EXTRACT(year FROM admitted) GROUP BY 1 ORDER BY 1

-- case: the days of a range of dates of a timestamp
SELECT DATE_TRUNC('day', admitted) AS day, COUNT(*) AS n FROM visits
WHERE CAST(admitted AS DATE) BETWEEN '2024-03-03' AND '2024-03-08' GROUP BY 1 ORDER BY 1

-- case: the hours of a day
-- empty: hour
SELECT DATE_TRUNC('hour', admitted) AS hour, COUNT(*) AS n FROM visits WHERE DATE(admitted) = '2024-03-03' GROUP BY 1 ORDER BY 1

-- case: two days of a timestamp
-- empty: day
SELECT admitted::date AS day, COUNT(*) AS n FROM visits WHERE admitted::date IN ('2024-03-03', '2024-03-05') GROUP BY 1 ORDER BY 1

-- case: the days of a month
SELECT day, COUNT(*) AS n FROM visits WHERE DATE_TRUNC('month', day) = '2024-03-01' GROUP BY day ORDER BY day

-- case: months from one until before another
SELECT DATE_TRUNC('month', admitted) AS month, SUM(cost) AS cost FROM visits
WHERE DATE_TRUNC('month', admitted) >= '2024-03-01' AND DATE_TRUNC('month', admitted) < '2024-06-01' GROUP BY 1 ORDER BY 1

-- case: the days of a month as it is printed
SELECT day, COUNT(*) AS n FROM visits WHERE to_char(day, 'YYYY-MM') = '2024-03' GROUP BY day ORDER BY day
---- duckdb
SELECT day, COUNT(*) AS n FROM visits WHERE strftime(day, '%Y-%m') = '2024-03' GROUP BY day ORDER BY day

-- case: two ranges of days
SELECT day, COUNT(*) AS n FROM visits
WHERE day BETWEEN '2024-03-01' AND '2024-03-03' OR day BETWEEN '2024-04-01' AND '2024-04-03' GROUP BY day ORDER BY day

-- case: one value or a range
SELECT rating, COUNT(*) AS n FROM visits WHERE rating = 1 OR rating >= 4 GROUP BY rating ORDER BY rating

-- case: a value or none
SELECT rating, COUNT(*) AS n FROM visits WHERE rating IS NULL OR rating > 3 GROUP BY rating ORDER BY rating

-- case: a range that no day is in
SELECT day, COUNT(*) AS n FROM visits WHERE day > '2024-12-01' AND day < '2024-01-01' GROUP BY day ORDER BY day

-- case: a year that no day is in
SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits WHERE EXTRACT(year FROM day) = 2031 GROUP BY 1 ORDER BY 1

-- case: seconds as Grafana filters them
SELECT DATE_TRUNC('day', admitted) AS day, COUNT(*) AS n FROM visits WHERE EXTRACT(epoch FROM admitted) BETWEEN 1709251200 AND 1709855999 GROUP BY 1 ORDER BY 1

-- case: a range of one unit's sum keeps to its clip
SELECT SUM(CASE WHEN year(day) = 2024 THEN cost ELSE 0 END) AS cost FROM visits WHERE year(day) = 2024 OR day < '2023-02-01'

-- case: decades of ages
SELECT FLOOR(EXTRACT(year FROM AGE(DATE '2025-01-01', birth_date)) / 10) * 10 AS age, COUNT(*) AS n FROM patients GROUP BY 1 ORDER BY 1

-- case: decades of birth
SELECT EXTRACT(year FROM birth_date)::int / 10 * 10 AS decade, COUNT(*) AS n FROM patients GROUP BY 1 ORDER BY 1

-- case: bands of the age at admission
SELECT CASE WHEN EXTRACT(year FROM AGE(day, birth_date)) < 18 THEN 'child' WHEN EXTRACT(year FROM AGE(day, birth_date)) < 65 THEN 'adult' ELSE 'old' END AS band,
       COUNT(*) AS n FROM visits JOIN patients USING (patient_id) GROUP BY 1 ORDER BY 1

-- case: the age between two days
SELECT AVG(EXTRACT(year FROM AGE(DATE_TRUNC('day', admitted), DATE_TRUNC('day', birth_date)))) AS age
FROM visits JOIN patients USING (patient_id)

-- case: the first and the last month
-- tolerance: 31
SELECT MIN(DATE_TRUNC('month', admitted)) AS first, MAX(DATE_TRUNC('month', admitted)) AS last FROM visits

-- case: months as dates
SELECT DATE_TRUNC('month', admitted)::date AS month, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1

-- case: buckets of an hour as Grafana counts them
-- empty: time
SELECT floor(extract(epoch from admitted)/3600)*3600 AS time, COUNT(*) AS n FROM visits
WHERE admitted BETWEEN '2024-03-03T00:00:00Z' AND '2024-03-05T00:00:00Z' GROUP BY 1 ORDER BY 1

-- case: buckets of a day as Grafana counts them
SELECT floor(extract(epoch from admitted)/86400)*86400 AS time, SUM(cost) AS cost FROM visits GROUP BY 1 ORDER BY 1

-- case: buckets of whole seconds
-- empty: time
SELECT (extract(epoch from admitted)::bigint/3600)*3600 AS time, COUNT(*) AS n FROM visits
WHERE admitted >= '2024-03-03' AND admitted < '2024-03-05' GROUP BY 1 ORDER BY 1

-- case: buckets of six hours as moments
SELECT to_timestamp(floor(extract(epoch from admitted)/21600)*21600) AS time, COUNT(*) AS n FROM visits
WHERE admitted >= '2024-03-03' AND admitted < '2024-03-05' GROUP BY 1 ORDER BY 1
