-- After the noise: all of SQL over what was released.

-- case: share of the total by a scalar sub-select
SELECT ward, COUNT(*) AS n, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM visits) AS percent FROM visits GROUP BY ward ORDER BY ward

-- case: share of the total by a window
SELECT ward, COUNT(*) AS n, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM visits GROUP BY ward ORDER BY ward

-- case: running total of months
SELECT month, n, SUM(n) OVER (ORDER BY month) AS running
FROM (SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n FROM visits GROUP BY 1) m ORDER BY month

-- case: moving average of three months
SELECT DATE_TRUNC('month', admitted) AS month, SUM(paid) AS paid,
       AVG(SUM(paid)) OVER (ORDER BY DATE_TRUNC('month', admitted) ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS smooth
FROM visits GROUP BY 1 ORDER BY 1

-- case: change against the month before
WITH m AS (SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n FROM visits GROUP BY 1)
SELECT month, n, n - LAG(n) OVER (ORDER BY month) AS change, ROUND(100.0 * (n - LAG(n) OVER (ORDER BY month)) / LAG(n) OVER (ORDER BY month), 2) AS percent
FROM m ORDER BY month

-- case: year over year by LAG twelve back
WITH m AS (SELECT DATE_TRUNC('month', admitted) AS month, SUM(nights) AS nights FROM visits GROUP BY 1)
SELECT month, nights, LAG(nights, 12) OVER (ORDER BY month) AS before FROM m ORDER BY month

-- case: year over year by a join with itself
WITH y AS (SELECT EXTRACT(YEAR FROM admitted) AS year, ward, COUNT(*) AS n FROM visits GROUP BY 1, 2)
SELECT a.ward, a.n AS n_2023, b.n AS n_2024, b.n - a.n AS change FROM y a JOIN y b ON a.ward = b.ward AND a.year = 2023 AND b.year = 2024 ORDER BY a.ward

-- case: the top two of each kind
SELECT kind, ward, n FROM (
  SELECT kind, ward, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY kind ORDER BY COUNT(*) DESC, ward) AS place FROM visits GROUP BY kind, ward) r
WHERE place <= 2 ORDER BY kind, place

-- case: QUALIFY over groups
SELECT kind, diagnosis, COUNT(*) AS n FROM visits GROUP BY kind, diagnosis QUALIFY RANK() OVER (PARTITION BY kind ORDER BY COUNT(*) DESC) = 1 ORDER BY kind, diagnosis

-- case: ranks and tiles
SELECT ward, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place, NTILE(4) OVER (ORDER BY COUNT(*), ward) AS tile FROM visits GROUP BY ward ORDER BY ward

-- case: above the mean of groups
SELECT ward, n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t WHERE n > (SELECT AVG(n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) u) ORDER BY ward

-- case: aggregates of aggregates
SELECT MAX(n) AS most, MIN(n) AS least, AVG(n) AS mean, COUNT(*) AS wards FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t

-- case: a cross table by CASE
SELECT ward,
       SUM(CASE WHEN kind = 'emergency' THEN cost ELSE 0 END) AS emergency,
       SUM(CASE WHEN kind = 'scheduled' THEN cost ELSE 0 END) AS scheduled,
       SUM(CASE WHEN kind = 'follow-up' THEN cost ELSE 0 END) AS follow_up
FROM visits GROUP BY ward ORDER BY ward

-- case: a cross table over released rows
SELECT ward, MAX(CASE WHEN kind = 'emergency' THEN n END) AS emergency, MAX(CASE WHEN kind = 'scheduled' THEN n END) AS scheduled
FROM (SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY ward, kind) t GROUP BY ward ORDER BY ward

-- case: PIVOT of released rows
SELECT * FROM (PIVOT (SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY ward, kind) ON kind IN ('emergency', 'scheduled') USING SUM(n)) ORDER BY ward

-- case: PIVOT of private rows
SELECT * FROM (SELECT ward, kind, nights FROM visits) PIVOT (SUM(nights) FOR kind IN ('emergency', 'scheduled', 'follow-up')) ORDER BY ward

-- case: UNION ALL of releases
SELECT 'visits' AS what, COUNT(*) AS n FROM visits UNION ALL SELECT 'patients', COUNT(*) FROM patients UNION ALL SELECT 'prescriptions', COUNT(*) FROM prescriptions ORDER BY what

-- case: UNION of keys
SELECT ward AS label FROM visits GROUP BY ward UNION SELECT kind FROM visits GROUP BY kind ORDER BY label

-- case: a total row below
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward UNION ALL SELECT 'all wards', COUNT(*) FROM visits ORDER BY ward

-- case: EXCEPT of public and released keys
SELECT ward FROM wards EXCEPT SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 880 ORDER BY ward

-- case: EXCEPT of a set operation in parentheses
SELECT ward FROM wards EXCEPT (SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 880 UNION SELECT ward FROM wards WHERE floor > 2) ORDER BY ward

-- case: the first of each, in parentheses
(SELECT ward FROM visits GROUP BY ward ORDER BY ward LIMIT 2) UNION ALL (SELECT kind FROM visits GROUP BY kind ORDER BY kind) ORDER BY ward

-- case: VALUES as a WITH of named columns
WITH picked(name, label) AS (VALUES ('surgery', 'S'), ('cardiology', 'C'))
SELECT label, COUNT(*) AS n FROM visits JOIN picked ON ward = name GROUP BY label ORDER BY label

-- case: scalar sub-selects side by side
SELECT (SELECT COUNT(*) FROM visits) AS visits, (SELECT COUNT(*) FROM patients) AS patients, (SELECT AVG(price) FROM prescriptions) AS price

-- case: an expression of two totals
SELECT ROUND((SELECT COUNT(*) FROM visits) * 1.0 / (SELECT COUNT(*) FROM patients), 3) AS visits_per_patient

-- case: CASE over a sum
SELECT ward, CASE WHEN SUM(nights) > 4850 THEN 'busy' ELSE 'quiet' END AS state FROM visits GROUP BY ward ORDER BY ward

-- case: text over a sum
SELECT CONCAT(ward, ': ', COUNT(*)) AS line FROM visits GROUP BY ward ORDER BY ward

-- case: DISTINCT over groups
SELECT DISTINCT COUNT(*) > 870 AS big FROM visits GROUP BY ward ORDER BY big

-- case: string_agg of released keys
SELECT STRING_AGG(ward, ', ' ORDER BY ward) AS wards FROM (SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 850) t

-- case: cumulative share, as in a Pareto chart
WITH c AS (SELECT diagnosis, SUM(paid) AS paid FROM visits GROUP BY diagnosis)
SELECT diagnosis, paid, SUM(paid) OVER (ORDER BY paid DESC) / SUM(paid) OVER () AS share FROM c ORDER BY paid DESC

-- case: a correlated lookup of released figures
SELECT w.ward, (SELECT COUNT(*) FROM visits v WHERE v.ward = w.ward) AS n FROM wards w ORDER BY w.ward

-- case: a calendar of months, with zeros where nothing was
SELECT m.month, COALESCE(c.n, 0) AS n
FROM (SELECT UNNEST(generate_series(TIMESTAMP '2022-11-01', TIMESTAMP '2023-03-01', INTERVAL '1 month')) AS month) m
LEFT JOIN (SELECT DATE_TRUNC('month', admitted) AS month, COUNT(*) AS n FROM visits GROUP BY 1) c ON c.month = m.month ORDER BY m.month

-- case: lateral column aliases
SELECT ward, COUNT(*) AS n, SUM(paid) AS total, total / n AS mean FROM visits GROUP BY ward ORDER BY ward

-- case: first and last of released rows
SELECT FIRST_VALUE(ward) OVER (ORDER BY COUNT(*) DESC, ward) AS top, ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY n DESC, ward LIMIT 2

-- case: VALUES joined to a release
SELECT t.target, c.n FROM (VALUES ('surgery', 900), ('urology', 880)) AS t(ward, target) JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) c ON c.ward = t.ward ORDER BY t.target

-- case: VALUES of columns before them, by LATERAL over released rows
SELECT t.ward, v.what, v.amount FROM (SELECT ward, COUNT(*) AS n, SUM(nights) AS s FROM visits GROUP BY ward) t
CROSS JOIN LATERAL (VALUES ('n', t.n), ('s', t.s)) AS v(what, amount) ORDER BY 1, 2
