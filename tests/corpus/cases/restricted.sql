-- Groups that released or public rows restrict: top-n, series limits, spines, columns looked up in a dimension.

-- case: the two most frequent kinds, by IN
SELECT kind, COUNT(*) AS n FROM visits WHERE kind IN (SELECT kind FROM visits GROUP BY kind ORDER BY COUNT(*) DESC LIMIT 2) GROUP BY kind ORDER BY kind

-- case: the two most frequent kinds, by a join
SELECT v.kind, COUNT(*) AS n FROM visits v JOIN (SELECT kind AS k, COUNT(*) AS c FROM visits GROUP BY 1 ORDER BY 2 DESC LIMIT 2) top ON top.k = v.kind GROUP BY 1 ORDER BY 1

-- case: groups that are asked for by VALUES, one of them unknown
SELECT t.k, COUNT(v.visit_id) AS n FROM (VALUES ('emergency'), ('telehealth')) t(k) LEFT JOIN visits v ON v.kind = t.k GROUP BY 1 ORDER BY 1

-- case: a spine of days past the bounds
SELECT days.d, COUNT(v.visit_id) AS n FROM (SELECT CAST(d AS date) AS d FROM generate_series(DATE '2024-12-20', DATE '2025-01-05', INTERVAL '1 day') g(d)) days LEFT JOIN visits v ON v.day = days.d GROUP BY days.d ORDER BY 1

-- case: a column of a dimension beside its key
SELECT v.ward, w.floor, COUNT(*) AS n FROM visits v LEFT JOIN wards w ON v.ward = w.ward GROUP BY 1, 2 ORDER BY 1, 2

-- case: the same with a condition that lets NULLs meet
SELECT v.ward, w.floor, SUM(v.nights) AS n FROM visits v LEFT JOIN wards w ON v.ward = w.ward OR (v.ward IS NULL AND w.ward IS NULL) GROUP BY 1, 2 ORDER BY 1, 2

-- case: two tiers of one column
SELECT CASE WHEN risk > 5 THEN 'high' ELSE 'low' END AS a, CASE WHEN risk > 8 THEN 'x' WHEN risk > 5 THEN 'y' ELSE 'z' END AS b, COUNT(*) AS n FROM patients WHERE risk IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2

-- case: two texts of one column
SELECT UPPER(city) AS city, LENGTH(city) AS letters, COUNT(*) AS n FROM patients GROUP BY 1, 2 ORDER BY 1, 2

-- case: days above a released day
SELECT day, COUNT(*) AS n FROM visits WHERE day > (SELECT DATE '2024-12-20' FROM (SELECT COUNT(*) AS c FROM visits) t WHERE c > 0) GROUP BY day ORDER BY day
