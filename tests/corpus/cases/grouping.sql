-- Rolled-up groups.

-- case: ROLLUP
SELECT kind, urgent, COUNT(*) AS n FROM visits GROUP BY ROLLUP (kind, urgent) ORDER BY kind NULLS LAST, urgent NULLS LAST

-- case: CUBE
SELECT kind, urgent, COUNT(*) AS n, SUM(nights) AS nights FROM visits GROUP BY CUBE (kind, urgent) ORDER BY 1 NULLS LAST, 2 NULLS LAST

-- case: GROUPING SETS
SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY GROUPING SETS ((ward), (kind), ()) ORDER BY ward NULLS LAST, kind NULLS LAST

-- case: GROUPING tells which key was rolled up
SELECT GROUPING(sex) AS rolled, sex, COUNT(*) AS n FROM patients GROUP BY ROLLUP (sex) ORDER BY rolled, sex NULLS LAST

-- case: GROUPING of two keys
SELECT language, insured, GROUPING(language, insured) AS level, AVG(weight) AS weight FROM patients GROUP BY CUBE (language, insured) ORDER BY level, language NULLS LAST, insured NULLS LAST

-- case: ROLLUP over time
SELECT EXTRACT(YEAR FROM admitted) AS year, EXTRACT(QUARTER FROM admitted) AS quarter, COUNT(*) AS n FROM visits GROUP BY ROLLUP (1, 2) ORDER BY 1 NULLS LAST, 2 NULLS LAST

-- case: subtotals with names
SELECT CASE WHEN GROUPING(kind) = 1 THEN 'all' ELSE kind END AS kind, COUNT(*) AS n FROM visits GROUP BY ROLLUP (kind) ORDER BY kind

-- case: a key beside a ROLLUP
SELECT urgent, kind, COUNT(*) AS n FROM visits GROUP BY urgent, ROLLUP (kind) ORDER BY urgent, kind NULLS LAST

-- case: ROLLUP of unknown keys
SELECT ward, diagnosis, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward, diagnosis) ORDER BY ward NULLS LAST, diagnosis NULLS LAST

-- case: HAVING over a ROLLUP
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward) HAVING COUNT(*) > 880 ORDER BY n, ward

-- case: two-column sets
SELECT language, smoker, sex, COUNT(*) FROM patients GROUP BY GROUPING SETS ((language, sex), (smoker)) ORDER BY 1 NULLS LAST, 2 NULLS LAST, 3 NULLS LAST

-- case: ROLLUP over a join with a public table
SELECT w.building, v.kind, COUNT(*) AS n FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY ROLLUP (w.building, v.kind) ORDER BY 1 NULLS LAST, 2 NULLS LAST
