-- Statements that would reveal rows, mean something else, or do something else. Each is refused, or answered safely.

-- case: all columns of all rows
SELECT * FROM visits
---- error

-- case: one row
SELECT cost FROM visits WHERE visit_id = 17
---- error

-- case: the types only
SELECT * FROM visits LIMIT 0
---- duckdb
SELECT * FROM visits LIMIT 0

-- case: the types only, by a false condition
SELECT visit_id, cost FROM visits WHERE 1 = 0

-- case: one group per patient
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id
---- error

-- case: one group per visit
SELECT visit_id, SUM(price) FROM prescriptions GROUP BY visit_id
---- error

-- case: the patients themselves
SELECT DISTINCT patient_id FROM visits
---- error

-- case: LIMIT below an aggregate
SELECT AVG(cost) FROM (SELECT cost FROM visits LIMIT 100) t
---- error

-- case: ORDER BY and LIMIT below an aggregate
SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost DESC LIMIT 10) t WHERE ward = 'surgery'
---- error

-- case: OFFSET below an aggregate
SELECT SUM(cost) FROM (SELECT cost FROM visits ORDER BY visit_id OFFSET 10) t
---- error

-- case: ORDER BY without LIMIT below an aggregate does nothing
SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost DESC) t

-- case: DISTINCT ON
SELECT COUNT(*) FROM (SELECT DISTINCT ON (ward) ward, cost FROM visits ORDER BY ward, cost DESC) t
---- error

-- case: TABLESAMPLE
SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10)
---- error

-- case: USING SAMPLE
SELECT COUNT(*) FROM visits USING SAMPLE 10%
---- error

-- case: row numbers over all rows
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY admitted) AS rn, cost FROM visits) t WHERE rn <= 10
---- error

-- case: rank within a ward
SELECT AVG(cost) FROM (SELECT cost, RANK() OVER (PARTITION BY ward ORDER BY cost DESC) AS r FROM visits) t WHERE r = 1
---- error

-- case: a row's share of its ward
SELECT AVG(cost / total) FROM (SELECT cost, SUM(cost) OVER (PARTITION BY ward) AS total FROM visits) t
---- error

-- case: a window over rows at the top
SELECT ward, cost - AVG(cost) OVER (PARTITION BY ward) FROM visits
---- error

-- case: a join of two patients
SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward
---- error

-- case: a join of everything
SELECT COUNT(*) FROM visits a, visits b
---- error

-- case: a join on who is not the same
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id <> b.patient_id
---- error

-- case: a join on the same or another
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id OR a.ward = b.ward
---- error

-- case: households joined
SELECT COUNT(*) FROM patients a JOIN patients b ON a.household = b.household AND a.patient_id < b.patient_id
---- error

-- case: correlated by another patient
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id <> v.patient_id AND w.ward = v.ward)
---- error

-- case: correlated by ward
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.ward = v.ward AND w.cost > 4999)
---- error

-- case: not correlated at all
SELECT COUNT(*) FROM patients WHERE EXISTS (SELECT 1 FROM visits WHERE cost > 4999.25)
---- error

-- case: IN by what is not the patient
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits WHERE cost > 4999)
---- error

-- case: NOT IN by what is not the patient
SELECT COUNT(*) FROM visits WHERE diagnosis NOT IN (SELECT diagnosis FROM visits WHERE nights = 11 AND urgent)
---- error

-- case: the value of one row as a literal
SELECT COUNT(*) FROM visits WHERE cost > (SELECT cost FROM visits WHERE visit_id = 17)
---- error

-- case: the dearest visit by a sub-select
SELECT COUNT(*) FROM visits v WHERE cost = (SELECT MAX(cost) FROM visits w WHERE w.ward = v.ward)
---- error

-- case: an aggregate of an aggregate
SELECT AVG(SUM(cost)) FROM visits GROUP BY ward
---- error

-- case: values that are collected
SELECT ward, ARRAY_AGG(cost) FROM visits GROUP BY ward
---- error

-- case: values that are strung together
SELECT STRING_AGG(name, ', ') FROM patients
---- error

-- case: any value
SELECT ward, ANY_VALUE(note) FROM visits GROUP BY ward
---- error

-- case: the first value
SELECT ward, FIRST(cost ORDER BY admitted) FROM visits GROUP BY ward
---- error

-- case: the row that has the largest value
SELECT ARG_MAX(visit_id, cost) FROM visits
---- error

-- case: the smallest text
SELECT MIN(name) FROM patients
---- error

-- case: a sum of what has no bounds
SELECT SUM(doctor_id) FROM visits
---- error

-- case: a mean of ids
SELECT AVG(patient_id) FROM patients
---- error

-- case: randomness
SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.1
---- error

-- case: a random order of groups after the noise
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY RANDOM()
---- error

-- case: a file
SELECT * FROM read_csv('/etc/passwd')
---- error

-- case: a file by its name
SELECT COUNT(*) FROM '/etc/passwd'
---- error

-- case: a file in post-processing
SELECT ward, COUNT(*), (SELECT content FROM read_text('/etc/hostname')) FROM visits GROUP BY ward
---- error

-- case: the environment
SELECT getenv('HOME')
---- error

-- case: the engine's own catalog
SELECT * FROM duckdb_tables()
---- error

-- case: sleep
SELECT pg_sleep(10)
---- error

-- case: a setting of the engine
SELECT current_setting('memory_limit')
---- error

-- case: division by zero does not raise
SELECT COUNT(*) FROM visits WHERE 1 / (visit_id - 17) > 0
---- duckdb
SELECT COUNT(*) FROM visits WHERE visit_id = 18

-- case: a cast of bad text does not raise
SELECT COUNT(*) FROM visits WHERE CAST(ward AS INTEGER) > 0
---- duckdb
SELECT 0

-- case: an overflow does not raise
SELECT COUNT(*) FROM visits WHERE visit_id * 9000000000000000000 > 0
---- duckdb
SELECT COUNT(*) FROM visits WHERE visit_id * 9000000000000000000::HUGEINT BETWEEN 1 AND 9223372036854775807

-- case: the logarithm of zero does not raise
SELECT COUNT(*) FROM visits WHERE LN(nights) > 1
---- duckdb
SELECT COUNT(*) FROM visits WHERE nights > 0 AND LN(nights) > 1

-- case: the root of a negative number does not raise
SELECT COUNT(*) FROM visits WHERE SQRT(nights - 5) >= 2
---- duckdb
SELECT COUNT(*) FROM visits WHERE nights >= 9

-- case: a date out of the calendar does not raise
SELECT COUNT(*) FROM visits WHERE make_date(2023, nights + 1, 31) IS NULL
---- duckdb
SELECT COUNT(*) FROM visits WHERE nights + 1 IN (2, 4, 6, 9, 11)

-- case: error as a signal
SELECT COUNT(*) FROM visits WHERE CASE WHEN visit_id = 17 THEN error('here') ELSE TRUE END
---- error

-- case: a recursive CTE over rows
WITH RECURSIVE t AS (SELECT visit_id, patient_id FROM visits WHERE visit_id = 1 UNION ALL SELECT v.visit_id, v.patient_id FROM visits v JOIN t ON v.visit_id = t.visit_id + 1) SELECT COUNT(*) FROM t
---- error

-- case: UNION of rows drops twins across patients
SELECT COUNT(*) FROM (SELECT ward, kind FROM visits UNION SELECT ward, kind FROM visits) t
---- error

-- case: EXCEPT of rows across patients
SELECT COUNT(*) FROM (SELECT ward FROM visits EXCEPT SELECT ward FROM visits WHERE urgent) t
---- error

-- case: DISTINCT rows below a count
SELECT COUNT(*) FROM (SELECT DISTINCT ward, kind FROM visits) t

-- case: DISTINCT of free text below a count
SELECT COUNT(*) AS notes FROM (SELECT DISTINCT note FROM visits) t

-- case: nested aggregates by sub-selects are two releases
SELECT SUM(n) AS n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 100) t

-- case: a unit hidden by an alias
SELECT who, COUNT(*) FROM (SELECT patient_id AS who FROM visits) t GROUP BY who
---- error

-- case: a unit hidden by arithmetic
-- note: keys that one patient alone has do not appear
SELECT patient_id * 2 AS who, COUNT(*) AS n FROM visits GROUP BY 1
---- duckdb
SELECT 0, 0 WHERE FALSE

-- case: a unit in the ordering
SELECT COUNT(*) FROM visits ORDER BY patient_id
---- error

-- case: an INSERT
INSERT INTO visits (visit_id) VALUES (1)
---- error

-- case: an UPDATE
UPDATE visits SET cost = 0
---- error

-- case: a DELETE
DELETE FROM visits
---- error

-- case: a DROP
DROP TABLE visits
---- error

-- case: a CREATE TABLE AS
CREATE TABLE copy AS SELECT * FROM visits
---- error

-- case: a COPY
COPY visits TO '/tmp/visits.csv'
---- error

-- case: an ATTACH
ATTACH '/tmp/other.duckdb' AS other
---- error

-- case: a PRAGMA
PRAGMA database_list
---- error

-- case: several statements
SELECT COUNT(*) FROM visits; DROP TABLE visits
---- error

-- case: SELECT INTO
SELECT COUNT(*) INTO copy FROM visits
---- error

-- case: FOR UPDATE
SELECT COUNT(*) FROM visits FOR UPDATE
---- error

-- case: a larger norm than the owner allows
SET contributions.rows = 1000000
---- error

-- case: no noise, please
SET noise = off
---- error

-- case: a table beyond the schema
SELECT COUNT(*) FROM sqlite_master
---- error

-- case: a column beyond the schema
SELECT COUNT(rowid) FROM visits
---- error

-- case: another database
SELECT COUNT(*) FROM other.public.visits
---- error

-- case: an unknown key with every value its own
SELECT cost, COUNT(*) AS n FROM visits WHERE cost IS NOT NULL GROUP BY cost HAVING COUNT(*) > 1000000
---- duckdb
SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost HAVING COUNT(*) > 1000000

-- case: one more key than there are
SELECT ward, COUNT(*) FROM visits GROUP BY 3
---- error

-- case: an ordinal out of range
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 9
---- error

-- case: a negative LIMIT
SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT -1
---- error

-- case: GoogleSQL: bounds per group
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, delta = 1e-6) SUM(cost, contribution_bounds_per_group => (0, 1000)) AS total FROM visits
---- error

-- case: GoogleSQL: more than the owner allows
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 1000) ward, COUNT(*) FROM visits GROUP BY ward
---- error

-- case: GoogleSQL: another unit than the declared one
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, privacy_unit_column = doctor_id) COUNT(*) FROM visits
---- error

-- case: GoogleSQL: an unknown option
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, kappa = 3) COUNT(*) FROM visits
---- error

-- case: GoogleSQL: no loss at all
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0) COUNT(*) FROM visits
---- error
