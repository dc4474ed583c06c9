-- What would give out private rows, or let one unit move another's.

-- case: a row
SELECT ward, cost FROM visits
---- error
ERROR 0A000 (NotPrivate):  this would return single private rows
LINE 1: SELECT ward, cost FROM visits
               ^
HINT:  Aggregate, for example: SELECT ward, COUNT(*) FROM visits GROUP BY ward.

-- case: all columns
SELECT * FROM visits
---- error
ERROR 0A000 (NotPrivate):  this would return single private rows
LINE 1: SELECT * FROM visits
               ^
HINT:  Aggregate, for example: SELECT kind, COUNT(*) FROM visits GROUP BY kind. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT kind, cost, paid, at FROM visits.

-- case: rows of a join
SELECT v.cost FROM visits v JOIN patients p ON v.patient_id = p.patient_id
---- error
ERROR 0A000 (NotPrivate):  this would return single private rows
LINE 1: SELECT v.cost FROM visits v JOIN patients p ON v.patient_id = p.patient_id
               ^
HINT:  Aggregate, for example: SELECT AVG(cost), COUNT(*) FROM visits.

-- case: rows with LIMIT
SELECT ward FROM visits LIMIT 5
---- error
ERROR 0A000 (NotPrivate):  this would return single private rows
LINE 1: SELECT ward FROM visits LIMIT 5
               ^
HINT:  Aggregate, for example: SELECT ward, COUNT(*) FROM visits GROUP BY ward.

-- case: LIMIT below an aggregate
SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 5) s
---- error
ERROR 0A000 (NotPrivate):  LIMIT over private rows lets one unit move another's rows
LINE 1: SELECT COUNT(*) FROM (SELECT * FROM visits LIMIT 5) s
                                                         ^
HINT:  Aggregate first, then use LIMIT in the outer SELECT; or number each unit's rows: ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …).

-- case: OFFSET below an aggregate
SELECT COUNT(*) FROM (SELECT * FROM visits OFFSET 5) s
---- error
ERROR 0A000 (NotPrivate):  OFFSET over private rows lets one unit move another's rows
LINE 1: SELECT COUNT(*) FROM (SELECT * FROM visits OFFSET 5) s
                                                          ^
HINT:  Aggregate first, then use LIMIT in the outer SELECT; or number each unit's rows: ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …).

-- case: FETCH below an aggregate
SELECT COUNT(*) FROM (SELECT * FROM visits FETCH FIRST 5 ROWS ONLY) s
---- error
ERROR 0A000 (NotPrivate):  LIMIT over private rows lets one unit move another's rows
LINE 1: SELECT COUNT(*) FROM (SELECT * FROM visits FETCH FIRST 5 ROWS ONLY) s
                                                               ^
HINT:  Aggregate first, then use LIMIT in the outer SELECT; or number each unit's rows: ROW_NUMBER() OVER (PARTITION BY the unit ORDER BY …).

-- case: DISTINCT ON
SELECT DISTINCT ON (ward) ward, kind FROM visits
---- error
ERROR 0A000 (NotPrivate):  DISTINCT ON over private rows must contain the privacy unit
LINE 1: SELECT DISTINCT ON (ward) ward, kind FROM visits
                            ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add the unit to its list: each unit's rows are then chosen from alone. Or aggregate, with GROUP BY.

-- case: TABLESAMPLE
SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10)
---- error
ERROR 0A000 (Unsupported):  TABLESAMPLE over private rows is not supported
LINE 1: SELECT COUNT(*) FROM visits TABLESAMPLE BERNOULLI (10)
                                                           ^
DETAIL:  Which rows it takes depends on other units' rows.
HINT:  Leave it out: the noise does not shrink with a sample.

-- case: TABLESAMPLE of a sub-select
SELECT COUNT(*) FROM (SELECT * FROM visits) AS s TABLESAMPLE (10)
---- error
ERROR 0A000 (Unsupported):  TABLESAMPLE over private rows is not supported
LINE 1: SELECT COUNT(*) FROM (SELECT * FROM visits) AS s TABLESAMPLE (10)
                                                                      ^
DETAIL:  Which rows it takes depends on other units' rows.
HINT:  Leave it out: the noise does not shrink with a sample.

-- case: EXISTS of private rows
SELECT EXISTS (SELECT 1 FROM visits WHERE cost > 4000)
---- error
ERROR 0A000 (NotPrivate):  a sub-select over private rows must aggregate them
LINE 1: SELECT EXISTS (SELECT 1 FROM visits WHERE cost > 4000)
                              ^
HINT:  Compare a count with a number that the noise does not reach: (SELECT COUNT(*) FROM …) > 20.

-- case: a scalar sub-select of a private row
SELECT (SELECT cost FROM visits) AS c
---- error
ERROR 0A000 (NotPrivate):  a sub-select over private rows must aggregate them
LINE 1: SELECT (SELECT cost FROM visits) AS c
                       ^
HINT:  Aggregate in it, for example: SELECT AVG(cost) FROM visits.

-- case: a window over private rows
SELECT ROW_NUMBER() OVER (ORDER BY cost) FROM visits
---- error
ERROR 0A000 (NotPrivate):  a window function over private rows must have PARTITION BY the privacy unit
LINE 1: SELECT ROW_NUMBER() OVER (ORDER BY cost) FROM visits
               ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add PARTITION BY visits.patient_id; or aggregate first, with GROUP BY: window functions over aggregated rows are fine.

-- case: a window below an aggregate
SELECT AVG(r) FROM (SELECT RANK() OVER (ORDER BY cost) AS r FROM visits) s
---- error
ERROR 0A000 (NotPrivate):  a window function over private rows must have PARTITION BY the privacy unit
LINE 1: SELECT AVG(r) FROM (SELECT RANK() OVER (ORDER BY cost) AS r FROM visits) s
                                   ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add PARTITION BY visits.patient_id; or aggregate first, with GROUP BY: window functions over aggregated rows are fine.

-- case: groups of one unit each
SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id
---- error
ERROR 0A000 (NotPrivate):  grouping by the privacy unit would return a row for each unit
LINE 1: SELECT patient_id, COUNT(*) FROM visits GROUP BY patient_id
                                                         ^
DETAIL:  Each such group holds one unit, and no group of one may appear in an answer.
HINT:  Aggregate once more: SELECT COUNT(*), AVG(n) FROM (SELECT …, COUNT(*) AS n … GROUP BY …) AS t.
