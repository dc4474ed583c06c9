-- What DBeaver, DataGrip, pgAdmin and people in them send.

-- case: the data tab
SELECT * FROM public.visits
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM public.visits
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: the data tab with a filter and an order
SELECT x.* FROM public.visits x WHERE kind = 'emergency' ORDER BY x.admitted DESC
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT x.* FROM public.visits x WHERE kind = 'emergency' ORDER BY x.admitted DESC
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, admitted, logged, day FROM visits.

-- case: the data tab of pgAdmin
SELECT * FROM public.patients
ORDER BY patient_id ASC LIMIT 100
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT * FROM public.patients
               ^
HINT:  Aggregate, for example: SELECT sex, COUNT(*) FROM patients GROUP BY sex. For rows like them: CREATE SYNTHETIC TABLE patients_like AS SELECT sex, birth_date, language, insured FROM patients.

-- case: the data tab of DataGrip
SELECT t.*
FROM public.prescriptions t
LIMIT 501
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT t.*
               ^
HINT:  Aggregate, for example: SELECT drug, COUNT(*) FROM prescriptions GROUP BY drug. For rows like them: CREATE SYNTHETIC TABLE prescriptions_like AS SELECT drug, dose, days, refills FROM prescriptions.

-- case: a count of the rows in a tab
SELECT count(*) FROM public.visits x WHERE kind = 'emergency'

-- case: a count around a statement
SELECT COUNT(*) FROM (SELECT ward, kind FROM visits GROUP BY ward, kind) dbvrcnt

-- case: distinct values with their counts, for a filter by value
SELECT kind, COUNT(*) FROM (SELECT x.* FROM public.visits x) dbvrcnt GROUP BY kind ORDER BY kind LIMIT 200

-- case: distinct values for a filter by value
SELECT DISTINCT x.kind FROM public.visits x ORDER BY x.kind LIMIT 200

-- case: distinct values that match
SELECT DISTINCT x.drug FROM public.prescriptions x WHERE x.drug ILIKE '%IN%' ORDER BY x.drug LIMIT 200

-- case: grouping in a panel
SELECT ward, COUNT(*) AS c FROM (SELECT x.* FROM public.visits x WHERE urgent) t GROUP BY ward HAVING COUNT(*) > 1 ORDER BY ward

-- case: a quick look at ends
SELECT min(day), max(day) FROM public.visits
---- duckdb
SELECT DATE '2023-01-01', DATE '2024-12-31'

-- case: a public table's data
SELECT * FROM public.wards ORDER BY ward LIMIT 200

-- case: an edit of a cell
UPDATE public.visits SET cost = 1 WHERE visit_id = 1
---- error
Unsupported 0A000: UPDATE is not answered: data is read, never written
LINE 1: UPDATE public.visits SET cost = 1 WHERE visit_id = 1
        ^
HINT:  Questions are answered here; the owner changes the data at its source, then registers it.

-- case: a deleted row
DELETE FROM public.visits WHERE visit_id = 1
---- error
Unsupported 0A000: DELETE is not answered: data is read, never written
LINE 1: DELETE FROM public.visits WHERE visit_id = 1
        ^
HINT:  Questions are answered here; the owner changes the data at its source, then registers it.

-- case: maintenance
VACUUM ANALYZE public.visits
---- error
Unsupported 0A000: VACUUM is not answered: it would reach the engine
LINE 1: VACUUM ANALYZE public.visits
        ^
HINT:  SELECT, EXPLAIN SELECT, SET, SHOW, RESET and DESCRIBE are understood.

-- case: an index
CREATE INDEX ON public.visits (ward)
---- error
Unsupported 0A000: CREATE is not answered: the schema declares the tables
LINE 1: CREATE INDEX ON public.visits (ward)
        ^
HINT:  The owner adds tables to the schema; for a temporary one, or a view, write WITH name AS (SELECT …) SELECT …. CREATE SYNTHETIC TABLE makes one of rows like those of a private table.

-- case: a grant
GRANT SELECT ON public.visits TO ana
---- error
Unsupported 0A000: GRANT is not answered: the schema declares who may ask, and how much
LINE 1: GRANT SELECT ON public.visits TO ana
        ^
HINT:  The owner edits analysts and budgets in the schema.

-- case: a row lock
SELECT visit_id FROM public.visits WHERE visit_id = 1 FOR UPDATE
---- error
Unsupported 0A000: FOR UPDATE is not supported
HINT:  Leave it out.

-- case: an anonymous block
DO $$ BEGIN PERFORM 1; END $$
---- error
Unsupported 0A000: DO is not answered: it would reach the engine
LINE 1: DO $$ BEGIN PERFORM 1; END $$
        ^
HINT:  SELECT, EXPLAIN SELECT, SET, SHOW, RESET and DESCRIBE are understood.
