-- GoogleSQL's differential privacy clause.

-- case: a count with options
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 100, delta = 1e-6) ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward
---- duckdb
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward

-- case: the most groups of one patient
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 500, delta = 1e-5, max_groups_contributed = 20) diagnosis, COUNT(*) AS n, SUM(paid) AS paid
FROM visits GROUP BY diagnosis ORDER BY diagnosis
---- duckdb
SELECT diagnosis, COUNT(*) AS n, SUM(paid) AS paid FROM visits GROUP BY diagnosis ORDER BY diagnosis

-- case: the unit named
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 10, delta = 1e-6, privacy_unit_column = patient_id) COUNT(*) AS n FROM visits
---- duckdb
SELECT COUNT(*) AS n FROM visits

-- case: bounds per row
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000, delta = 1e-6) kind, SUM(cost, contribution_bounds_per_row => (0, 1000)) AS total FROM visits GROUP BY kind ORDER BY kind
---- duckdb
SELECT kind, SUM(LEAST(cost, 1000)) FROM visits WHERE cost IS NOT NULL GROUP BY kind ORDER BY kind

-- case: bounds per group
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000, delta = 1e-6) SUM(cost, contribution_bounds_per_group => (0, 1000)) AS total FROM visits
---- duckdb
SELECT SUM(CLIP(s, 0, 1000)) AS total FROM (SELECT patient_id, SUM(cost) AS s FROM visits GROUP BY patient_id) AS t

-- case: bounds per group, for a sum and a count
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000, delta = 1e-6)
  ward, SUM(cost, contribution_bounds_per_group => (0, 1000)) AS total, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n
FROM visits GROUP BY ward ORDER BY ward
---- duckdb
SELECT ward, SUM(CLIP(s, 0, 1000)) AS total, SUM(CLIP(n, 0, 2)) AS n
FROM (SELECT patient_id, ward, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY patient_id, ward) AS t GROUP BY ward ORDER BY ward

-- case: bounds per group that do not bite
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000, delta = 1e-6)
  kind, urgent, SUM(nights, contribution_bounds_per_group => (-10, 100000)) AS nights, COUNT(rating, contribution_bounds_per_group => (0, 1000)) AS n
FROM visits GROUP BY kind, urgent ORDER BY kind, urgent
---- duckdb
SELECT kind, urgent, SUM(nights) AS nights, COUNT(rating) AS n FROM visits GROUP BY kind, urgent ORDER BY kind, urgent

-- case: bounds per group of an average
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000, delta = 1e-6)
  kind, AVG(cost, contribution_bounds_per_group => (100, 1500)) AS average FROM visits GROUP BY kind ORDER BY kind
---- duckdb
SELECT kind, AVG(CLIP(a, 100, 1500)) AS average
FROM (SELECT patient_id, kind, AVG(cost) AS a FROM visits GROUP BY patient_id, kind) AS t GROUP BY kind ORDER BY kind

-- case: bounds per group beside sums and counts without
SELECT kind, COUNT(*, contribution_bounds_per_group => (0, 1)) AS patients, COUNT(DISTINCT patient_id) AS same, COUNT(*) AS visits,
  SUM(nights) FILTER (WHERE urgent) AS nights, COUNT(DISTINCT patient_id) FILTER (WHERE urgent) AS urgent
FROM visits GROUP BY kind HAVING COUNT(*, contribution_bounds_per_group => (0, 1)) > 0 ORDER BY kind
---- duckdb
SELECT kind, COUNT(DISTINCT patient_id) AS patients, COUNT(DISTINCT patient_id) AS same, COUNT(*) AS visits,
  SUM(nights) FILTER (WHERE urgent) AS nights, COUNT(DISTINCT patient_id) FILTER (WHERE urgent) AS urgent
FROM visits GROUP BY kind ORDER BY kind

-- case: bounds per group over a join, by month
SELECT DATE_TRUNC('month', v.admitted) AS month, d.specialty, SUM(v.cost, contribution_bounds_per_group => (0, 3000)) AS cost
FROM visits v JOIN doctors d USING (doctor_id) WHERE v.cost > 10 GROUP BY 1, 2 ORDER BY 1, 2
---- duckdb
SELECT month, specialty, SUM(CLIP(s, 0, 3000)) AS cost
FROM (SELECT v.patient_id, DATE_TRUNC('month', v.admitted) AS month, d.specialty, SUM(v.cost) AS s
      FROM visits v JOIN doctors d USING (doctor_id) WHERE v.cost > 10 GROUP BY 1, 2, 3) AS t
GROUP BY 1, 2 ORDER BY 1, 2

-- case: the older spelling of bounds
SELECT WITH ANONYMIZATION OPTIONS (epsilon = 1000, delta = 1e-6) kind, ANON_SUM(cost CLAMPED BETWEEN 0 AND 1000) AS total, ANON_COUNT(* CLAMPED BETWEEN 0 AND 2) AS n
FROM visits GROUP BY kind ORDER BY kind
---- duckdb
SELECT kind, SUM(CLIP(s, 0, 1000)) AS total, SUM(CLIP(n, 0, 2)) AS n
FROM (SELECT patient_id, kind, SUM(cost) AS s, COUNT(*) AS n FROM visits GROUP BY patient_id, kind) AS t GROUP BY kind ORDER BY kind

-- case: bounds per row of a quantile
-- tolerance: 1% in median
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1000, delta = 1e-6) kind, PERCENTILE_CONT(cost, 0.5, contribution_bounds_per_row => (0, 1000)) AS median
FROM visits GROUP BY kind ORDER BY kind
---- duckdb
SELECT kind, QUANTILE_CONT(CLIP(cost, 0, 1000), 0.5) AS median FROM visits GROUP BY kind ORDER BY kind

-- case: bounds per group with a quantile
SELECT COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, MEDIAN(cost) AS median FROM visits
---- error
Unsupported 0A000: MEDIAN() does not go with contribution_bounds_per_group in one SELECT
LINE 1: SELECT COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, MEDIAN(cost) AS median FROM visits
                                                                       ^
HINT:  COUNT and SUM do, and AVG with bounds of its own; without bounds write SUM(x) / COUNT(x). Ask for others in a SELECT of their own.

-- case: bounds per group with an average that has none
SELECT COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, AVG(cost) AS average FROM visits
---- error
Unsupported 0A000: AVG() does not go with contribution_bounds_per_group in one SELECT
LINE 1: SELECT COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, AVG(cost) AS average FROM visits
                                                                       ^
HINT:  COUNT and SUM do, and AVG with bounds of its own; without bounds write SUM(x) / COUNT(x). Ask for others in a SELECT of their own.

-- case: bounds per group of a variance
SELECT VAR_POP(cost, contribution_bounds_per_group => (0, 2)) AS n FROM visits
---- error
Unsupported 0A000: contribution_bounds_per_group goes with COUNT, SUM and AVG
LINE 1: SELECT VAR_POP(cost, contribution_bounds_per_group => (0, 2)) AS n FROM visits
               ^
HINT:  contribution_bounds_per_row => (lower, upper) bounds each row.

-- case: bounds per group with grouping sets
SELECT kind, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM visits GROUP BY ROLLUP (kind)
---- error
Unsupported 0A000: contribution_bounds_per_group does not go with ROLLUP, CUBE and GROUPING SETS
LINE 1: SELECT kind, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM visits GROUP BY ROLLUP (kind)
                                                                                                         ^
HINT:  Ask for each grouping set in a SELECT of its own.

-- case: bounds per group where a group is a unit
SELECT AVG(n) FROM (SELECT patient_id, SUM(cost, contribution_bounds_per_group => (0, 2)) AS n FROM visits GROUP BY patient_id) AS t
---- error
Unsupported 0A000: contribution_bounds_per_group does not go with groups of single units
LINE 1: SELECT AVG(n) FROM (SELECT patient_id, SUM(cost, contribution_bounds_per_group => (0, 2)) AS n FROM visits GROUP BY patient_id) AS t
                                               ^
HINT:  Clip the unit's result: CLIP(SUM(x), 0, 10).

-- case: bounds per group of released rows
SELECT SUM(n, contribution_bounds_per_group => (0, 2)) FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) AS t
---- error
Unsupported 0A000: contribution_bounds_per_group is for private rows
LINE 1: SELECT SUM(n, contribution_bounds_per_group => (0, 2)) FROM (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) AS t
                   ^
HINT:  Leave it out: released rows belong to no privacy unit.
