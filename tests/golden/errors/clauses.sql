-- Clauses that are not answered: nothing is dropped silently.

-- case: ORDER BY within an aggregate
SELECT SUM(cost ORDER BY at) FROM visits
---- error
ERROR 0A000 (Unsupported):  ORDER BY within SUM() is not supported
LINE 1: SELECT SUM(cost ORDER BY at) FROM visits
                   ^
HINT:  Leave it out.

-- case: LIMIT within an aggregate
SELECT SUM(cost LIMIT 5) FROM visits
---- error
ERROR 0A000 (Unsupported):  LIMIT is not supported over private rows
LINE 1: SELECT SUM(cost LIMIT 5) FROM visits
                   ^

-- case: COUNT of two columns
SELECT COUNT(ward, kind) FROM visits
---- error
ERROR 0A000 (Unsupported):  a second argument is not supported over private rows
LINE 1: SELECT COUNT(ward, kind) FROM visits
                           ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: IGNORE NULLS
SELECT SUM(cost) IGNORE NULLS FROM visits
---- error
ERROR 0A000 (Unsupported):  IGNORE NULLS and RESPECT NULLS are for window functions
LINE 1: SELECT SUM(cost) IGNORE NULLS FROM visits
               ^

-- case: CUBE
SELECT kind, COUNT(*) FROM visits GROUP BY kind WITH CUBE
---- error
ERROR 0A000 (Unsupported):  CUBE is not supported over private rows
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: GROUP BY ALL with a key
SELECT kind, COUNT(*) FROM visits GROUP BY ALL ward
---- error
ERROR 42601 (InvalidSyntax):  GROUP BY ALL takes no further keys
LINE 1: SELECT kind, COUNT(*) FROM visits GROUP BY ALL ward
                                                       ^

-- case: PIVOT
SELECT * FROM visits PIVOT (SUM(cost) FOR kind IN ('urgent'))
---- error
ERROR 0A000 (NotPrivate):  this would return single private rows
LINE 1: SELECT * FROM visits PIVOT (SUM(cost) FOR kind IN ('urgent'))
               ^
HINT:  Aggregate, for example: SELECT COUNT(*) FROM visits. For rows like them: CREATE SYNTHETIC TABLE visits_like AS SELECT paid, at, nights FROM visits.

-- case: FOR UPDATE
SELECT COUNT(*) FROM visits FOR UPDATE
---- error
ERROR 0A000 (Unsupported):  FOR UPDATE is not supported
HINT:  Leave it out.

-- case: FOR UPDATE of aggregated rows
SELECT n FROM (SELECT COUNT(*) AS n FROM visits) s FOR UPDATE
---- error
ERROR 0A000 (Unsupported):  FOR UPDATE is not supported
HINT:  Leave it out.

-- case: INTO
SELECT COUNT(*) INTO t FROM visits
---- error
ERROR 0A000 (Unsupported):  INTO is not supported
HINT:  Leave it out.

-- case: WITH TIES
SELECT kind, COUNT(*) FROM visits GROUP BY kind ORDER BY 2 FETCH FIRST 1 ROWS WITH TIES
---- error
ERROR 0A000 (Unsupported):  FETCH … WITH TIES and PERCENT are not supported
HINT:  LIMIT takes a number of rows.

-- case: COUNT(* EXCLUDE)
SELECT COUNT(* EXCLUDE (cost)) FROM visits
---- error
ERROR 0A000 (Unsupported):  EXCEPT is not supported over private rows
LINE 1: SELECT COUNT(* EXCLUDE (cost)) FROM visits
                                ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a join without FROM
WITH a AS (SELECT cost FROM visits) SELECT AVG(cost) JOIN patients p ON TRUE
---- error
ERROR 42601 (InvalidSyntax):  a JOIN needs a FROM before it
LINE 1: WITH a AS (SELECT cost FROM visits) SELECT AVG(cost) JOIN patients p ON TRUE
                                                                  ^

-- case: a placeholder behind a column
SELECT COUNT(*) $1 FROM visits
---- error
ERROR 08P01 (ProgrammingError):  the statement has 1 placeholder, but 0 given
HINT:  A placeholder is written ? or $1, and each takes one value: IN (?, ?).

-- case: a recursive CTE
WITH RECURSIVE t AS (SELECT nights AS n FROM visits UNION ALL SELECT n - 1 FROM t WHERE n > 0) SELECT COUNT(*) FROM t
---- error
ERROR 0A000 (Unsupported):  WITH RECURSIVE over private rows is not supported
LINE 1: WITH RECURSIVE t AS (SELECT nights AS n FROM visits UNION ALL SELECT n - 1 FROM t WHERE n > 0) SELECT COUNT(*) FROM t
                       ^
HINT:  Numbers and dates in a row come from generate_series, for example: FROM generate_series(1, 12) AS t(i).

-- case: a CTE that changes data
WITH t AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM t
---- error
ERROR 0A000 (Unsupported):  only SELECT, UNION, INTERSECT, EXCEPT and VALUES are queries here
LINE 1: WITH t AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM t
                               ^

-- case: columns of a table's alias
SELECT SUM(DISTINCT a) FROM visits AS v(a)
---- error
ERROR 0A000 (UnboundedValues):  column "visits.visit_id" has no bounds, and SUM(DISTINCT …) needs some
LINE 1: SELECT SUM(DISTINCT a) FROM visits AS v(a)
               ^
HINT:  Declare them in the schema, visit_id: {bounds: [0, 100]} under visits. Or write SUM(DISTINCT CLIP(a, 0, 100)) with bounds of your own.

-- case: EXCEPT of private rows
SELECT ward FROM visits EXCEPT SELECT sex FROM patients
---- error
ERROR 0A000 (NotPrivate):  this would return single private rows
LINE 1: SELECT ward FROM visits EXCEPT SELECT sex FROM patients
               ^
HINT:  Aggregate them, for example: SELECT COUNT(*) FROM (…) AS t.

-- case: LIMIT of a statement in parentheses
(SELECT COUNT(*) FROM visits) LIMIT 1
---- error
ERROR 0A000 (Unsupported):  LIMIT is not supported over private rows
LINE 1: (SELECT COUNT(*) FROM visits) LIMIT 1
                                            ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: IN with a sub-select
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits)
---- error
ERROR 0A000 (NotPrivate):  a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits)
                                          ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Give "visits" in the sub-select another name, and equate the privacy unit of both there.

-- case: ONLY
SELECT COUNT(*) FROM ONLY visits
---- error
ERROR 0A000 (Unsupported):  ONLY is not supported over private rows
LINE 1: SELECT COUNT(*) FROM ONLY visits
                                  ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a table's history
SELECT COUNT(*) FROM visits FOR SYSTEM_TIME AS OF '2024-01-01'
---- error
ERROR 0A000 (Unsupported):  VERSION is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits FOR SYSTEM_TIME AS OF '2024-01-01'
                                                          ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a table hint
SELECT COUNT(*) FROM visits WITH (NOLOCK)
---- error
ERROR 0A000 (Unsupported):  a table hint is not supported over private rows
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: LATERAL VIEW
SELECT COUNT(*) FROM visits LATERAL VIEW explode(note) t AS y
---- error
ERROR 0A000 (Unsupported):  LATERAL is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits LATERAL VIEW explode(note) t AS y
                                                 ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: DISTRIBUTE BY
SELECT COUNT(*) FROM visits DISTRIBUTE BY ward
---- error
ERROR 0A000 (Unsupported):  DISTRIBUTE is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits DISTRIBUTE BY ward
                                                  ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a cast with a format
SELECT COUNT(CAST(note AS date FORMAT 'YYYY')) FROM visits
---- error
ERROR 0A000 (Unsupported):  a format must be a literal
LINE 1: SELECT COUNT(CAST(note AS date FORMAT 'YYYY')) FROM visits
                          ^
HINT:  For example: to_date(note, 'YYYY-MM-DD').

-- case: a placeholder with a number, and no value
SELECT COUNT(*), $1 FROM visits
---- error
ERROR 08P01 (ProgrammingError):  the statement has 1 placeholder, but 0 given
HINT:  A placeholder is written ? or $1, and each takes one value: IN (?, ?).

-- case: SELECT AS STRUCT
SELECT AS STRUCT COUNT(*) AS n FROM visits
---- error
ERROR 0A000 (Unsupported):  AS STRUCT or VALUE is not supported
HINT:  Leave it out.

-- case: a column qualified by a schema that is not there
SELECT SUM(secret.visits.cost) FROM visits
---- error
ERROR 42P01 (UnknownTable):  there is no schema "secret"
LINE 1: SELECT SUM(secret.visits.cost) FROM visits
                   ^
HINT:  Write table.column.

-- case: ORDER BY of a column that is not there, below an aggregate
SELECT COUNT(*) FROM (SELECT cost FROM visits ORDER BY quux) s
---- error
ERROR 42703 (UnknownColumn):  column "quux" does not exist
LINE 1: SELECT COUNT(*) FROM (SELECT cost FROM visits ORDER BY quux) s
                                                               ^
HINT:  Columns here: visit_id, patient_id, ward, kind, cost, paid, at, nights, score, note.

-- case: a CTE of a name twice
WITH t AS (SELECT ward FROM visits), t AS (SELECT kind FROM visits) SELECT COUNT(*) FROM t
---- error
ERROR 42712 (InvalidSyntax):  the name "t" is used more than once in WITH
LINE 1: WITH t AS (SELECT ward FROM visits), t AS (SELECT kind FROM visits) SELECT COUNT(*) FROM t
                                             ^

-- case: a literal condition that is true
SELECT ward FROM visits WHERE 1 = 1.0
---- error
ERROR 0A000 (NotPrivate):  this would return single private rows
LINE 1: SELECT ward FROM visits WHERE 1 = 1.0
               ^
HINT:  Aggregate, for example: SELECT ward, COUNT(*) FROM visits GROUP BY ward.

-- case: DROP
DROP TABLE visits
---- error
ERROR 0A000 (Unsupported):  DROP is not answered: the schema declares the tables
LINE 1: DROP TABLE visits
        ^
HINT:  What you have made yourself is dropped by DROP SYNTHETIC TABLE or DROP MODEL.

-- case: CREATE
CREATE TABLE mine AS SELECT ward FROM visits
---- error
ERROR 0A000 (Unsupported):  CREATE is not answered: the schema declares the tables
LINE 1: CREATE TABLE mine AS SELECT ward FROM visits
        ^
HINT:  The owner adds tables to the schema; for a temporary one, or a view, write WITH name AS (SELECT …) SELECT …. CREATE SYNTHETIC TABLE makes one of rows like those of a private table.
