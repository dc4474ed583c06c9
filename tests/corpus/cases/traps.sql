-- Statements that would reveal rows, mean something else, or do something else. Each is refused, or answered safely.

-- case: all columns of all rows
SELECT * FROM visits
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM visits
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: one row
SELECT cost FROM visits WHERE visit_id = 17
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT cost FROM visits WHERE visit_id = 17
               ^
HINT:  Aggregate, for example: SELECT AVG(cost), COUNT(*) FROM visits.

-- case: the types only
SELECT * FROM visits LIMIT 0
---- duckdb
SELECT * FROM visits LIMIT 0

-- case: the types only, by a false condition
SELECT visit_id, cost FROM visits WHERE 1 = 0

-- case: one group per patient
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 1: SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id
                                                         ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: one group per visit
SELECT visit_id, SUM(price) FROM prescriptions GROUP BY visit_id
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 1: SELECT visit_id, SUM(price) FROM prescriptions GROUP BY visit_id
                                                                ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: the patients themselves
SELECT DISTINCT patient_id FROM visits
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: LIMIT below an aggregate
SELECT AVG(cost) FROM (SELECT cost FROM visits LIMIT 100) t
---- error
NotPrivate 0A000: LIMIT over private rows lets one unit move another's rows
LINE 1: SELECT AVG(cost) FROM (SELECT cost FROM visits LIMIT 100) t
                                                             ^
HINT:  Aggregate first, then use LIMIT in the outer SELECT; or number each unit's rows: ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …).

-- case: ORDER BY and LIMIT below an aggregate
SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost DESC LIMIT 10) t WHERE ward = 'surgery'
---- error
NotPrivate 0A000: LIMIT over private rows lets one unit move another's rows
LINE 1: SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost DESC LIMIT 10) t WHERE ward = 'surgery'
                                                                            ^
HINT:  Aggregate first, then use LIMIT in the outer SELECT; or number each unit's rows: ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …).

-- case: OFFSET below an aggregate
SELECT SUM(cost) FROM (SELECT cost FROM visits ORDER BY visit_id OFFSET 10) t
---- error
NotPrivate 0A000: OFFSET over private rows lets one unit move another's rows
LINE 1: SELECT SUM(cost) FROM (SELECT cost FROM visits ORDER BY visit_id OFFSET 10) t
                                                                                ^
HINT:  Aggregate first, then use LIMIT in the outer SELECT; or number each unit's rows: ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …).

-- case: ORDER BY without LIMIT below an aggregate does nothing
SELECT COUNT(*) FROM (SELECT * FROM visits ORDER BY cost DESC) t

-- case: DISTINCT ON
SELECT COUNT(*) FROM (SELECT DISTINCT ON (ward) ward, cost FROM visits ORDER BY ward, cost DESC) t
---- error
NotPrivate 0A000: DISTINCT ON over private rows must contain the privacy unit
LINE 1: SELECT COUNT(*) FROM (SELECT DISTINCT ON (ward) ward, cost FROM visits ORDER BY ward, cost DESC) t
                                                  ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add the unit to its list: each unit's rows are then chosen from alone. Or aggregate, with GROUP BY.

-- case: TABLESAMPLE
SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10)
---- error
Unsupported 0A000: TABLESAMPLE over private rows is not supported
LINE 1: SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10)
                                                           ^
DETAIL:  Which rows it takes depends on other units' rows.
HINT:  Leave it out: the noise does not shrink with a sample.

-- case: USING SAMPLE
SELECT COUNT(*) FROM visits USING SAMPLE 10%
---- error
Unsupported 0A000: TABLESAMPLE is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits USING SAMPLE 10%
                                                 ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: row numbers over all rows
SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY admitted) AS rn, cost FROM visits) t WHERE rn <= 10
---- error
NotPrivate 0A000: a window function over private rows must have PARTITION BY the privacy unit
LINE 1: SELECT COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY admitted) AS rn, cost FROM visits) t WHERE rn <= 10
                                     ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add PARTITION BY visits.patient_id; or aggregate first, with GROUP BY: window functions over aggregated rows are fine.

-- case: rank within a ward
SELECT AVG(cost) FROM (SELECT cost, RANK() OVER (PARTITION BY ward ORDER BY cost DESC) AS r FROM visits) t WHERE r = 1
---- error
NotPrivate 0A000: a window function over private rows must have PARTITION BY the privacy unit
LINE 1: SELECT AVG(cost) FROM (SELECT cost, RANK() OVER (PARTITION BY ward ORDER BY cost DESC) AS r FROM visits) t WHERE r = 1
                                            ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add PARTITION BY visits.patient_id; or aggregate first, with GROUP BY: window functions over aggregated rows are fine.

-- case: a row's share of its ward
SELECT AVG(cost / total) FROM (SELECT cost, SUM(cost) OVER (PARTITION BY ward) AS total FROM visits) t
---- error
NotPrivate 0A000: a window function over private rows must have PARTITION BY the privacy unit
LINE 1: SELECT AVG(cost / total) FROM (SELECT cost, SUM(cost) OVER (PARTITION BY ward) AS total FROM visits) t
                                                    ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add PARTITION BY visits.patient_id; or aggregate first, with GROUP BY: window functions over aggregated rows are fine.

-- case: a window over rows at the top
SELECT ward, cost - AVG(cost) OVER (PARTITION BY ward) FROM visits
---- error
NotPrivate 0A000: a window function over private rows must have PARTITION BY the privacy unit
LINE 1: SELECT ward, cost - AVG(cost) OVER (PARTITION BY ward) FROM visits
                            ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add PARTITION BY visits.patient_id; or aggregate first, with GROUP BY: window functions over aggregated rows are fine.

-- case: a join of two patients
SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: a join of everything
SELECT COUNT(*) FROM visits a, visits b
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a, visits b
                                       ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: WHERE a.patient_id = b.patient_id.

-- case: a join on who is not the same
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id <> b.patient_id
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id <> b.patient_id
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: a join on the same or another
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id OR a.ward = b.ward
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id OR a.ward = b.ward
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: households joined
SELECT COUNT(*) FROM patients a JOIN patients b ON a.household = b.household AND a.patient_id < b.patient_id
---- error
NotPrivate 0A000: a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM patients a JOIN patients b ON a.household = b.household AND a.patient_id < b.patient_id
                                             ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: correlated by another patient
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id <> v.patient_id AND w.ward = v.ward)
---- error
NotPrivate 0A000: a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.patient_id <> v.patient_id AND w.ward = v.ward)
                                                           ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  In the sub-select, add WHERE w.patient_id = v.patient_id.

-- case: correlated by ward
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.ward = v.ward AND w.cost > 4999)
---- error
NotPrivate 0A000: a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM visits w WHERE w.ward = v.ward AND w.cost > 4999)
                                                           ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  In the sub-select, add WHERE w.patient_id = v.patient_id.

-- case: not correlated at all
SELECT COUNT(*) FROM patients WHERE EXISTS (SELECT 1 FROM visits WHERE cost > 4999.25)
---- error
NotPrivate 0A000: a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) FROM patients WHERE EXISTS (SELECT 1 FROM visits WHERE cost > 4999.25)
                                                           ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  In the sub-select, add WHERE visits.patient_id = patients.patient_id.

-- case: IN by what is not the patient
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits WHERE cost > 4999)
---- error
NotPrivate 0A000: a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits WHERE cost > 4999)
                                          ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Give "visits" in the sub-select another name, and equate the privacy unit of both there.

-- case: NOT IN by what is not the patient
SELECT COUNT(*) FROM visits WHERE diagnosis NOT IN (SELECT diagnosis FROM visits WHERE nights = 11 AND urgent)
---- error
NotPrivate 0A000: a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) FROM visits WHERE diagnosis NOT IN (SELECT diagnosis FROM visits WHERE nights = 11 AND urgent)
                                          ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Give "visits" in the sub-select another name, and equate the privacy unit of both there.

-- case: the value of one row as a literal
SELECT COUNT(*) FROM visits WHERE cost > (SELECT cost FROM visits WHERE visit_id = 17)
---- error
NotPrivate 0A000: a sub-select over private rows must aggregate them
LINE 1: SELECT COUNT(*) FROM visits WHERE cost > (SELECT cost FROM visits WHERE visit_id = 17)
                                                         ^
HINT:  Aggregate in it, for example: SELECT AVG(cost) FROM visits.

-- case: the dearest visit by a sub-select
-- tolerance: 10
-- note: MAX is an extreme quantile, which few visits cost exactly
SELECT COUNT(*) FROM visits v WHERE cost = (SELECT MAX(cost) FROM visits w WHERE w.ward = v.ward)

-- case: an aggregate of an aggregate
SELECT AVG(SUM(cost)) FROM visits GROUP BY ward
---- error
GroupingError 42803: aggregates cannot be nested or stand in WHERE, ON or GROUP BY
LINE 1: SELECT AVG(SUM(cost)) FROM visits GROUP BY ward
                   ^
HINT:  A condition on aggregates stands in HAVING; an aggregate of aggregates is taken over a sub-select.

-- case: values that are collected
SELECT ward, ARRAY_AGG(cost) FROM visits GROUP BY ward
---- error
Unsupported 0A000: ARRAY_AGG() would show the values of all rows
LINE 1: SELECT ward, ARRAY_AGG(cost) FROM visits GROUP BY ward
                     ^
HINT:  COUNT(*) with GROUP BY x, or HISTOGRAM(x), counts how often each value is there.

-- case: values that are strung together
SELECT STRING_AGG(name, ', ') FROM patients
---- error
Unsupported 0A000: STRING_AGG() would show the values of all rows
LINE 1: SELECT STRING_AGG(name, ', ') FROM patients
                          ^
HINT:  COUNT(*) with GROUP BY x, or HISTOGRAM(x), counts how often each value is there.

-- case: any value
SELECT ward, ANY_VALUE(note) FROM visits GROUP BY ward
---- error
Unsupported 0A000: ANY_VALUE() would show the value of one row
LINE 1: SELECT ward, ANY_VALUE(note) FROM visits GROUP BY ward
                     ^
HINT:  MODE(x) gives the most frequent value, MIN(x) and MAX(x) the ends.

-- case: the first value
SELECT ward, FIRST(cost ORDER BY admitted) FROM visits GROUP BY ward
---- error
Unsupported 0A000: FIRST() would show the value of one row
LINE 1: SELECT ward, FIRST(cost ORDER BY admitted) FROM visits GROUP BY ward
                     ^
HINT:  MODE(x) gives the most frequent value, MIN(x) and MAX(x) the ends.

-- case: the row that has the largest value
SELECT ARG_MAX(visit_id, cost) FROM visits
---- error
Unsupported 0A000: ARG_MAX() would show the value of one row
LINE 1: SELECT ARG_MAX(visit_id, cost) FROM visits
                       ^
HINT:  MODE(x) gives the most frequent value, MIN(x) and MAX(x) the ends.

-- case: the smallest text
SELECT MIN(name) FROM patients
---- error
Unsupported 0A000: MIN() is for numbers, dates and timestamps, not text
LINE 1: SELECT MIN(name) FROM patients
                   ^
HINT:  MODE(name) gives its most frequent value; COUNT(*) with GROUP BY lists its values.

-- case: a sum of distinct values that have no bounds
SELECT SUM(DISTINCT doctor_id) FROM visits
---- error
UnboundedValues 0A000: column "visits.doctor_id" has no bounds, and SUM(DISTINCT …) needs some
LINE 1: SELECT SUM(DISTINCT doctor_id) FROM visits
               ^
HINT:  Declare them in the schema, doctor_id: {bounds: [0, 100]} under visits. Or write SUM(DISTINCT CLIP(doctor_id, 0, 100)) with bounds of your own.

-- case: a sum of distinct ids
SELECT SUM(DISTINCT patient_id) FROM patients
---- error
UnboundedValues 0A000: column "patients.patient_id" has no bounds, and SUM(DISTINCT …) needs some
LINE 1: SELECT SUM(DISTINCT patient_id) FROM patients
               ^
HINT:  Declare them in the schema, patient_id: {bounds: [0, 100]} under patients. Or write SUM(DISTINCT CLIP(patient_id, 0, 100)) with bounds of your own.

-- case: randomness
SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.1
---- error
UnknownFunction 42883: RANDOM() is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE RANDOM() < 0.1
                                          ^
HINT:  docs/sql.md lists the functions over private rows; on aggregated rows all of SQL's may be used.

-- case: a random order of groups after the noise
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY RANDOM()
---- error
Unsupported 0A000: RANDOM() is not available
LINE 1: SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY RANDOM()
                                                                 ^

-- case: a file
SELECT * FROM read_csv('/etc/passwd')
---- error
Unsupported 0A000: this cannot stand in FROM
LINE 1: SELECT * FROM read_csv('/etc/passwd')
                      ^
HINT:  Tables, sub-selects, VALUES and unnest, generate_series, range can.

-- case: a file by its name
SELECT COUNT(*) FROM '/etc/passwd'
---- error
UnknownTable 42P01: relation "/etc/passwd" does not exist
LINE 1: SELECT COUNT(*) FROM '/etc/passwd'
                             ^
HINT:  Tables: patients, visits, prescriptions, wards, doctors, diagnoses.

-- case: a file in post-processing
SELECT ward, COUNT(*), (SELECT content FROM read_text('/etc/hostname')) FROM visits GROUP BY ward
---- error
Unsupported 0A000: this cannot stand in FROM
LINE 1: SELECT ward, COUNT(*), (SELECT content FROM read_text('/etc/hostname')) FROM visits GROUP BY ward
                                                    ^
HINT:  Tables, sub-selects, VALUES and unnest, generate_series, range can.

-- case: the environment
SELECT getenv('HOME')
---- error
Unsupported 0A000: GETENV() is not available
LINE 1: SELECT getenv('HOME')
               ^

-- case: the engine's own catalog
SELECT * FROM duckdb_tables()
---- error
Unsupported 0A000: this cannot stand in FROM
LINE 1: SELECT * FROM duckdb_tables()
                      ^
HINT:  Tables, sub-selects, VALUES and unnest, generate_series, range can.

-- case: sleep
SELECT pg_sleep(10)
---- error
Unsupported 0A000: PG_SLEEP() is not available
LINE 1: SELECT pg_sleep(10)
               ^

-- case: a setting of the engine
SELECT current_setting('memory_limit')
---- error
InvalidParameter 42704: unrecognized configuration parameter "memory_limit"
LINE 1: SELECT current_setting('memory_limit')
               ^

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
UnknownFunction 42883: ERROR() is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE CASE WHEN visit_id = 17 THEN error('here') ELSE TRUE END
                                                                       ^
HINT:  docs/sql.md lists the functions over private rows; on aggregated rows all of SQL's may be used.

-- case: a recursive CTE over rows
WITH RECURSIVE t AS (SELECT visit_id, patient_id FROM visits WHERE visit_id = 1 UNION ALL SELECT v.visit_id, v.patient_id FROM visits v JOIN t ON v.visit_id = t.visit_id + 1) SELECT COUNT(*) FROM t
---- error
Unsupported 0A000: WITH RECURSIVE over private rows is not supported
LINE 1: WITH RECURSIVE t AS (SELECT visit_id, patient_id FROM visits WHERE visit_id = 1 UNION ALL SELECT v.visit_id, v.patient_id FROM visits v JOIN t ON v.visit_id = t.visit_id + 1) SELECT COUNT(*) FROM t
                       ^
HINT:  Numbers and dates in a row come from generate_series, for example: FROM generate_series(1, 12) AS t(i).

-- case: UNION of rows drops twins across patients
SELECT COUNT(*) FROM (SELECT ward, kind FROM visits UNION SELECT ward, kind FROM visits) t
---- error
NotPrivate 0A000: UNION of private rows needs the privacy unit among the columns
LINE 1: SELECT COUNT(*) FROM (SELECT ward, kind FROM visits UNION SELECT ward, kind FROM visits) t
                                     ^
DETAIL:  Equal rows of two units would become one.
HINT:  Add the unit's column in the same place on both sides, or write UNION ALL.

-- case: EXCEPT of rows across patients
SELECT COUNT(*) FROM (SELECT ward FROM visits EXCEPT SELECT ward FROM visits WHERE urgent) t
---- error
NotPrivate 0A000: EXCEPT of private rows needs the privacy unit among the columns
LINE 1: SELECT COUNT(*) FROM (SELECT ward FROM visits EXCEPT SELECT ward FROM visits WHERE urgent) t
                                     ^
DETAIL:  Equal rows of two units would become one.
HINT:  Add the unit's column in the same place on both sides, or write SELECT DISTINCT on both sides, to compare what groups there are.

-- case: DISTINCT rows below a count
SELECT COUNT(*) FROM (SELECT DISTINCT ward, kind FROM visits) t

-- case: DISTINCT of free text below a count
SELECT COUNT(*) AS notes FROM (SELECT DISTINCT note FROM visits) t

-- case: nested aggregates by sub-selects are two releases
SELECT SUM(n) AS n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 100) t

-- case: a unit hidden by an alias
SELECT who, COUNT(*) FROM (SELECT patient_id AS who FROM visits) t GROUP BY who
---- error
NotPrivate 0A000: grouping by the privacy unit would return a row for each unit
LINE 1: SELECT who, COUNT(*) FROM (SELECT patient_id AS who FROM visits) t GROUP BY who
                                                                                    ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.

-- case: a unit hidden by arithmetic
-- note: keys that one patient alone has do not appear
SELECT patient_id * 2 AS who, COUNT(*) AS n FROM visits GROUP BY 1
---- duckdb
SELECT 0, 0 WHERE FALSE

-- case: a unit in the ordering
SELECT COUNT(*) FROM visits ORDER BY patient_id
---- error
GroupingError 42803: column "patient_id" must appear in GROUP BY or in an aggregate
LINE 1: SELECT COUNT(*) FROM visits ORDER BY patient_id
                                             ^
HINT:  Add it to GROUP BY, or write SUM(patient_id), AVG(patient_id) or COUNT(patient_id).

-- case: an INSERT
INSERT INTO visits (visit_id) VALUES (1)
---- error
Unsupported 0A000: INSERT is not answered: data is read, never written
LINE 1: INSERT INTO visits (visit_id) VALUES (1)
        ^
HINT:  Questions are answered here; the owner changes the data at its source, then registers it.

-- case: an UPDATE
UPDATE visits SET cost = 0
---- error
Unsupported 0A000: UPDATE is not answered: data is read, never written
LINE 1: UPDATE visits SET cost = 0
        ^
HINT:  Questions are answered here; the owner changes the data at its source, then registers it.

-- case: a DELETE
DELETE FROM visits
---- error
Unsupported 0A000: DELETE is not answered: data is read, never written
LINE 1: DELETE FROM visits
        ^
HINT:  Questions are answered here; the owner changes the data at its source, then registers it.

-- case: a DROP
DROP TABLE visits
---- error
Unsupported 0A000: DROP is not answered: the schema declares the tables
LINE 1: DROP TABLE visits
        ^
HINT:  What you have made yourself is dropped by DROP SYNTHETIC TABLE or DROP MODEL.

-- case: a CREATE TABLE AS
CREATE TABLE copy AS SELECT * FROM visits
---- error
Unsupported 0A000: CREATE is not answered: the schema declares the tables
LINE 1: CREATE TABLE copy AS SELECT * FROM visits
        ^
HINT:  The owner adds tables to the schema; for a temporary one, or a view, write WITH name AS (SELECT …) SELECT …. CREATE SYNTHETIC TABLE makes one of rows like those of a private table.

-- case: a COPY
COPY visits TO '/tmp/visits.csv'
---- error
Unsupported 0A000: COPY writes to STDOUT only: no file of the server can be reached

-- case: an ATTACH
ATTACH '/tmp/other.duckdb' AS other
---- error
Unsupported 0A000: ATTACH is not answered: it would reach the engine
LINE 1: ATTACH '/tmp/other.duckdb' AS other
        ^
HINT:  SELECT, EXPLAIN SELECT, SET, SHOW, RESET and DESCRIBE are understood.

-- case: a PRAGMA
PRAGMA database_list
---- error
Unsupported 0A000: PRAGMA is not answered: it would reach the engine
LINE 1: PRAGMA database_list
        ^
HINT:  SELECT, EXPLAIN SELECT, SET, SHOW, RESET and DESCRIBE are understood.

-- case: several statements
SELECT COUNT(*) FROM visits; DROP TABLE visits
---- error
InvalidSyntax 42601: one statement at a time
HINT:  Send each statement on its own.

-- case: SELECT INTO
SELECT COUNT(*) INTO copy FROM visits
---- error
Unsupported 0A000: INTO is not supported
HINT:  Leave it out.

-- case: FOR UPDATE
SELECT COUNT(*) FROM visits FOR UPDATE
---- error
Unsupported 0A000: FOR UPDATE is not supported
HINT:  Leave it out.

-- case: a larger norm than the owner allows
SET contributions.rows = 1000000
---- error
InvalidParameter 22023: contributions.rows cannot be raised above the owner's 1000

-- case: no noise, please
SET noise = off
---- error
InvalidParameter 22023: noise must be laplace, gaussian or auto, not "off"

-- case: a table beyond the schema
SELECT COUNT(*) FROM sqlite_master
---- error
UnknownTable 42P01: relation "sqlite_master" does not exist
LINE 1: SELECT COUNT(*) FROM sqlite_master
                             ^
HINT:  Tables: patients, visits, prescriptions, wards, doctors, diagnoses.

-- case: a column beyond the schema
SELECT COUNT(rowid) FROM visits
---- error
UnknownColumn 42703: column "rowid" does not exist
LINE 1: SELECT COUNT(rowid) FROM visits
                     ^
HINT:  Columns here: visit_id, patient_id, ward, doctor_id, diagnosis, kind, admitted, logged, arrived, day, cost, paid, nights, rating, urgent, note, insurer.

-- case: another database
SELECT COUNT(*) FROM other.public.visits
---- error
UnknownTable 42P01: there is no schema "other"
LINE 1: SELECT COUNT(*) FROM other.public.visits
                             ^
HINT:  Write the table's name alone.

-- case: an unknown key with every value its own
SELECT cost, COUNT(*) AS n FROM visits WHERE cost IS NOT NULL GROUP BY cost HAVING COUNT(*) > 1000000
---- duckdb
SELECT cost, COUNT(*) AS n FROM visits GROUP BY cost HAVING COUNT(*) > 1000000

-- case: one more key than there are
SELECT ward, COUNT(*) FROM visits GROUP BY 3
---- error
InvalidSyntax 42P10: GROUP BY position 3 is not in the select list
LINE 1: SELECT ward, COUNT(*) FROM visits GROUP BY 3
                                                   ^

-- case: an ordinal out of range
SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 9
---- error
InvalidSyntax 42P10: ORDER BY position 9 is not in the select list
LINE 1: SELECT ward, COUNT(*) FROM visits GROUP BY ward ORDER BY 9
                                                                 ^

-- case: a negative LIMIT
SELECT ward, COUNT(*) FROM visits GROUP BY ward LIMIT -1
---- error
ProgrammingError 2201W: post-processing failed: LIMIT/OFFSET cannot be negative

-- case: GoogleSQL: more than the owner allows
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 1000) ward, COUNT(*) FROM visits GROUP BY ward
---- error
InvalidParameter 22023: contributions.groups cannot be raised above the owner's 60
LINE 1: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_groups_contributed = 1000) ward, COUNT(*) FROM visits GROUP BY ward
                                                               ^

-- case: GoogleSQL: another unit than the declared one
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, privacy_unit_column = doctor_id) COUNT(*) FROM visits
---- error
InvalidParameter 22023: the privacy unit is "patients.patient_id", not "doctor_id"
LINE 1: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, privacy_unit_column = doctor_id) COUNT(*) FROM visits
                                                               ^
HINT:  Leave privacy_unit_column out.

-- case: GoogleSQL: an unknown option
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, kappa = 3) COUNT(*) FROM visits
---- error
Unsupported 42704: there is no option "kappa"
LINE 1: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, kappa = 3) COUNT(*) FROM visits
                                                               ^
HINT:  Options: epsilon, delta, max_groups_contributed, max_rows_contributed, noise, max_error, max_relative_error, confidence, mechanism, proposal, privacy_unit_column.

-- case: GoogleSQL: no loss at all
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0) COUNT(*) FROM visits
---- error
InvalidParameter 22023: epsilon must be above 0 and at most 1000000
LINE 1: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0) COUNT(*) FROM visits
                                                  ^
HINT:  For example: SET epsilon = 0.5
