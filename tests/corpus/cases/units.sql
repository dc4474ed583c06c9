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
SELECT SUM(DISTINCT t0.n) AS mean FROM visits v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t0 ON t0.ward = v.ward
---- error
UnboundedValues 0A000: the values of SUM(DISTINCT …) have no bounds
LINE 1: SELECT SUM(DISTINCT t0.n) AS mean FROM visits v JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t0 ON t0.ward = v.ward
               ^
HINT:  Write SUM(DISTINCT CLIP(t0.n, 0, 100)) with bounds of your own.

-- case: what the last visit of each patient was
SELECT last_kind, COUNT(*) AS n FROM (SELECT patient_id, ARG_MAX(kind, admitted) AS last_kind FROM visits GROUP BY patient_id) AS t GROUP BY last_kind ORDER BY last_kind
---- duckdb
SELECT last_kind, COUNT(*) AS n
FROM (SELECT patient_id, MAX(kind) AS last_kind FROM visits v
      WHERE admitted = (SELECT MAX(admitted) FROM visits w WHERE w.patient_id = v.patient_id AND w.kind IS NOT NULL) GROUP BY patient_id) AS t
WHERE last_kind IS NOT NULL GROUP BY last_kind ORDER BY last_kind

-- case: the cheapest visit, by other names, with a filter
SELECT AVG(a) AS a, AVG(b) AS b
FROM (SELECT patient_id, MIN_BY(nights, cost * 100000 + visit_id) AS a, MAX_BY(nights, cost * 100000 + visit_id) FILTER (WHERE urgent) AS b FROM visits GROUP BY patient_id) AS t

-- case: the first and the last in an order
SELECT AVG(a) AS a, AVG(b) AS b
FROM (SELECT patient_id, FIRST(nights ORDER BY admitted, visit_id) AS a, LAST(nights ORDER BY admitted, visit_id) AS b FROM visits GROUP BY patient_id) AS t

-- case: the kind that each patient has most often
SELECT k, COUNT(*) AS n FROM (SELECT patient_id, MODE(kind) AS k FROM visits GROUP BY patient_id) AS t GROUP BY k ORDER BY k
---- duckdb
SELECT k, COUNT(*) AS n
FROM (SELECT patient_id, MIN(kind) AS k
      FROM (SELECT *, MAX(n) OVER (PARTITION BY patient_id) AS most FROM (SELECT patient_id, kind, COUNT(*) AS n FROM visits WHERE kind IS NOT NULL GROUP BY patient_id, kind) AS a) AS b
      WHERE n = most GROUP BY patient_id) AS t
GROUP BY k ORDER BY k

-- case: the median and the spread of each patient
SELECT AVG(m) AS m, AVG(s) AS s, AVG(v) AS v, AVG(w) AS w
FROM (SELECT patient_id, MEDIAN(cost) AS m, STDDEV(cost) AS s, VAR_POP(nights) AS v, VARIANCE(paid) AS w FROM visits GROUP BY patient_id) AS t

-- case: any value is the least
SELECT AVG(a) AS a FROM (SELECT patient_id, ANY_VALUE(nights) AS a FROM visits GROUP BY patient_id) AS t
---- duckdb
SELECT AVG(a) AS a FROM (SELECT patient_id, MIN(nights) AS a FROM visits GROUP BY patient_id) AS t

-- case: a pick of the patient's rows, as a value
SELECT p.insured, AVG((SELECT ARG_MAX(v.nights, v.cost * 100000 + v.visit_id) FROM visits v WHERE v.patient_id = p.patient_id)) AS nights
FROM patients p GROUP BY p.insured ORDER BY p.insured

-- case: a pick beside another key
SELECT ward, AVG(x) AS x FROM (SELECT patient_id, ward, ARG_MAX(nights, visit_id) AS x, COUNT(*) AS n FROM visits GROUP BY patient_id, ward) AS t GROUP BY ward ORDER BY ward

-- case: the first without an order
SELECT COUNT(x) FROM (SELECT patient_id, FIRST(kind) AS x FROM visits GROUP BY patient_id) AS t
---- error
Unsupported 0A000: FIRST() of each unit's rows needs ORDER BY
LINE 1: SELECT COUNT(x) FROM (SELECT patient_id, FIRST(kind) AS x FROM visits GROUP BY patient_id) AS t
                                                 ^
HINT:  For example: FIRST(kind ORDER BY day); ANY_VALUE(x) gives the least value.

-- case: a list of each patient's values
SELECT COUNT(x) FROM (SELECT patient_id, LIST(kind) AS x FROM visits GROUP BY patient_id) AS t
---- error
Unsupported 0A000: LIST() of each unit's rows is not supported
LINE 1: SELECT COUNT(x) FROM (SELECT patient_id, LIST(kind) AS x FROM visits GROUP BY patient_id) AS t
                                                 ^
HINT:  These are: COUNT, COUNT(DISTINCT x), SUM, AVG, MIN, MAX, MEDIAN, MODE, VAR_POP, VAR_SAMP, STDDEV_POP, STDDEV_SAMP, ARG_MIN, ARG_MAX, FIRST and LAST with ORDER BY, ANY_VALUE, BOOL_AND, BOOL_OR and COUNT_IF.

-- case: the median over a window
SELECT AVG(x) FROM (SELECT MEDIAN(cost) OVER (PARTITION BY patient_id) AS x FROM visits) AS t
---- error
Unsupported 0A000: MEDIAN() is not supported as a window function over private rows
LINE 1: SELECT AVG(x) FROM (SELECT MEDIAN(cost) OVER (PARTITION BY patient_id) AS x FROM visits) AS t
                                   ^
HINT:  ROW_NUMBER, RANK, DENSE_RANK, NTILE, LAG, LEAD, FIRST_VALUE, LAST_VALUE, NTH_VALUE, COUNT, SUM, AVG, MIN and MAX are.
