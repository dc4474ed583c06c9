-- Names that mean nothing, or too much.

-- case: a table with a near name
SELECT COUNT(*) FROM visit
---- error
ERROR 42P01 (UnknownTable):  relation "visit" does not exist
LINE 1: SELECT COUNT(*) FROM visit
                             ^
HINT:  Perhaps you meant "visits".

-- case: a table with no near name
SELECT COUNT(*) FROM quux
---- error
ERROR 42P01 (UnknownTable):  relation "quux" does not exist
LINE 1: SELECT COUNT(*) FROM quux
                             ^
HINT:  Tables: patients, visits, lab_tests, Wards.

-- case: a table of another schema
SELECT COUNT(*) FROM secret.visits
---- error
ERROR 42P01 (UnknownTable):  there is no schema "secret"
LINE 1: SELECT COUNT(*) FROM secret.visits
                             ^
HINT:  Write the table's name alone.

-- case: a file is no table
SELECT COUNT(*) FROM 'visits.parquet'
---- error
ERROR 42P01 (UnknownTable):  relation "visits.parquet" does not exist
LINE 1: SELECT COUNT(*) FROM 'visits.parquet'
                             ^
HINT:  Perhaps you meant "visits".

-- case: a column with a near name
SELECT AVG(costs) FROM visits
---- error
ERROR 42703 (UnknownColumn):  column "costs" does not exist
LINE 1: SELECT AVG(costs) FROM visits
                   ^
HINT:  Perhaps you meant "cost".

-- case: a column with no near name
SELECT AVG(quux) FROM patients
---- error
ERROR 42703 (UnknownColumn):  column "quux" does not exist
LINE 1: SELECT AVG(quux) FROM patients
                   ^
HINT:  Columns here: patient_id, birth_year, sex, insured, weight.

-- case: a table that is not in FROM
SELECT AVG(p.cost) FROM visits v
---- error
ERROR 42P01 (UnknownTable):  there is no table "p" in FROM
LINE 1: SELECT AVG(p.cost) FROM visits v
                   ^
HINT:  Tables here: v.

-- case: a column of two tables
SELECT COUNT(patient_id) FROM visits JOIN patients ON visits.patient_id = patients.patient_id
---- error
ERROR 42702 (AmbiguousColumn):  column "patient_id" is ambiguous
LINE 1: SELECT COUNT(patient_id) FROM visits JOIN patients ON visits.patient_id = patients.patient_id
                     ^
HINT:  Qualify it with its table: visits.patient_id or patients.patient_id

-- case: a position that is not there
SELECT COUNT(*) FROM visits GROUP BY 3
---- error
ERROR 42P10 (InvalidSyntax):  GROUP BY position 3 is not in the select list
LINE 1: SELECT COUNT(*) FROM visits GROUP BY 3
                                             ^

-- case: names of releases are taken
WITH _r1 AS (SELECT COUNT(*) FROM visits) SELECT * FROM _r1
---- error
ERROR 0A000 (Unsupported):  names that begin with _ are taken
LINE 1: WITH _r1 AS (SELECT COUNT(*) FROM visits) SELECT * FROM _r1
             ^

-- case: a star of no table
SELECT x.* FROM visits LIMIT 0
---- error
ERROR 42P01 (UnknownTable):  there is no table "x" in FROM
LINE 1: SELECT x.* FROM visits LIMIT 0
               ^
