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
