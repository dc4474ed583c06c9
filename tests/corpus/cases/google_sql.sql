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
