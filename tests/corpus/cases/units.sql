-- What is worked out within each unit, and bounds that pass from one block to the next.

-- case: the mean of a window's count
SELECT AVG(n) AS mean FROM (SELECT COUNT(*) OVER (PARTITION BY patient_id) AS n FROM visits) AS t

-- case: a window's count beside its sum
SELECT kind, SUM(n) AS n, AVG(s) AS s
FROM (SELECT kind, COUNT(*) OVER (PARTITION BY patient_id ORDER BY day) AS n, SUM(nights) OVER (PARTITION BY patient_id ORDER BY day) AS s FROM visits) AS t
GROUP BY kind ORDER BY kind

-- case: a level of detail: the mean of each ward, beside its visits
SELECT AVG(t0.m) AS mean FROM visits v JOIN (SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward) t0 ON t0.ward = v.ward

-- case: a level of detail in arithmetic
-- tolerance: 0.1
SELECT v.kind, SUM(v.cost - t0.m) AS above, AVG(t0.half) AS half
FROM visits v JOIN (SELECT ward, AVG(cost) AS m, ROUND(AVG(cost) / 2, 1) AS half FROM visits GROUP BY ward) t0 ON t0.ward = v.ward
GROUP BY v.kind ORDER BY v.kind

-- case: a released mean that each row is compared with
-- tolerance: 2
SELECT SUM(cost - (SELECT AVG(cost) FROM visits)) AS around FROM visits WHERE cost IS NOT NULL

-- case: a level of detail over a released level
SELECT AVG(t0.m) AS mean
FROM visits v JOIN (SELECT MAX(m) AS m, 'emergency' AS kind FROM (SELECT ward, AVG(nights) AS m FROM visits GROUP BY ward) AS w) t0 ON t0.kind = v.kind

-- case: a level of detail of a count has no bounds
SELECT AVG(t0.n) AS mean FROM visits v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t0 ON t0.ward = v.ward
---- error
UnboundedValues 0A000: the values of AVG have no bounds
LINE 1: SELECT AVG(t0.n) AS mean FROM visits v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t0 ON t0.ward = v.ward
               ^
HINT:  Write AVG(CLIP(t0.n, 0, 100)) with bounds of your own.
