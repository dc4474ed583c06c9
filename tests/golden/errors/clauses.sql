-- Clauses that are not answered: nothing is dropped silently.

-- case: MEDIAN
SELECT MEDIAN(cost) FROM visits
---- error
ERROR 0A000 (Unsupported):  MEDIAN() is not supported yet
LINE 1: SELECT MEDIAN(cost) FROM visits
               ^
HINT:  These are: COUNT(*), COUNT(x), COUNT(DISTINCT unit), SUM and AVG.

-- case: WITHIN GROUP
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits
---- error
ERROR 0A000 (Unsupported):  WITHIN GROUP is not supported yet
LINE 1: SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits
               ^
HINT:  These are: COUNT(*), COUNT(x), COUNT(DISTINCT unit), SUM and AVG.

-- case: COUNT(DISTINCT x)
SELECT COUNT(DISTINCT ward) FROM visits
---- error
ERROR 0A000 (Unsupported):  COUNT(DISTINCT …) is supported for the privacy unit only, so far
LINE 1: SELECT COUNT(DISTINCT ward) FROM visits
                              ^
HINT:  For example: COUNT(DISTINCT visits.patient_id).

-- case: SUM(DISTINCT x)
SELECT SUM(DISTINCT cost) FROM visits
---- error
ERROR 0A000 (Unsupported):  DISTINCT and ORDER BY within SUM() are not supported yet
LINE 1: SELECT SUM(DISTINCT cost) FROM visits
                            ^

-- case: ORDER BY within an aggregate
SELECT SUM(cost ORDER BY at) FROM visits
---- error
ERROR 0A000 (Unsupported):  DISTINCT and ORDER BY within SUM() are not supported yet
LINE 1: SELECT SUM(cost ORDER BY at) FROM visits
                   ^

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

-- case: FILTER with COUNT(DISTINCT unit)
SELECT COUNT(DISTINCT patient_id) FILTER (WHERE cost > 1) FROM visits
---- error
ERROR 0A000 (Unsupported):  FILTER with COUNT(DISTINCT …) is not supported yet
LINE 1: SELECT COUNT(DISTINCT patient_id) FILTER (WHERE cost > 1) FROM visits
               ^

-- case: ROLLUP
SELECT kind, COUNT(*) FROM visits GROUP BY ROLLUP (kind)
---- error
ERROR 0A000 (Unsupported):  ROLLUP is not supported over private rows
LINE 1: SELECT kind, COUNT(*) FROM visits GROUP BY ROLLUP (kind)
                                                           ^

-- case: CUBE
SELECT kind, COUNT(*) FROM visits GROUP BY kind WITH CUBE
---- error
ERROR 0A000 (Unsupported):  CUBE is not supported over private rows
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: GROUPING SETS
SELECT kind, COUNT(*) FROM visits GROUP BY GROUPING SETS ((kind), ())
---- error
ERROR 0A000 (Unsupported):  GROUPING SETS is not supported over private rows
LINE 1: SELECT kind, COUNT(*) FROM visits GROUP BY GROUPING SETS ((kind), ())
                                                                   ^

-- case: GROUP BY ALL with a key
SELECT kind, COUNT(*) FROM visits GROUP BY ALL ward
---- error
ERROR 42601 (InvalidSyntax):  GROUP BY ALL takes no further keys
LINE 1: SELECT kind, COUNT(*) FROM visits GROUP BY ALL ward
                                                       ^

-- case: PIVOT
SELECT * FROM visits PIVOT (SUM(cost) FOR kind IN ('urgent'))
---- error
ERROR 0A000 (Unsupported):  PIVOT is not supported over private rows
LINE 1: SELECT * FROM visits PIVOT (SUM(cost) FOR kind IN ('urgent'))
                                    ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: QUALIFY below an aggregate
SELECT COUNT(*) FROM (SELECT cost FROM visits QUALIFY cost > 1) s
---- error
ERROR 0A000 (Unsupported):  QUALIFY is not supported over private rows
LINE 1: SELECT COUNT(*) FROM (SELECT cost FROM visits QUALIFY cost > 1) s
                                                              ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

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

-- case: an alias that is no name
SELECT COUNT(*) $1 FROM visits
---- error
ERROR 42601 (InvalidSyntax):  an alias is a name
LINE 1: SELECT COUNT(*) $1 FROM visits
                         ^

-- case: a recursive CTE
WITH RECURSIVE t AS (SELECT COUNT(*) AS n FROM visits UNION ALL SELECT n - 1 FROM t WHERE n > 0) SELECT * FROM t
---- error
ERROR 0A000 (Unsupported):  RECURSIVE is not supported over private rows
LINE 1: WITH RECURSIVE t AS (SELECT COUNT(*) AS n FROM visits UNION ALL SELECT n - 1 FROM t WHERE n > 0) SELECT * FROM t
                       ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a CTE that changes data
WITH t AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM t
---- error
ERROR 0A000 (Unsupported):  only SELECT, UNION, INTERSECT, EXCEPT and VALUES are queries here
LINE 1: WITH t AS (DELETE FROM visits RETURNING *) SELECT COUNT(*) FROM t
                               ^

-- case: columns of a CTE's alias
WITH t(a) AS (SELECT cost FROM visits) SELECT SUM(a) FROM t
---- error
ERROR 0A000 (Unsupported):  a list of column names is not supported over private rows
LINE 1: WITH t(a) AS (SELECT cost FROM visits) SELECT SUM(a) FROM t
               ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: columns of a table's alias
SELECT SUM(a) FROM visits AS v(a)
---- error
ERROR 0A000 (Unsupported):  a list of column names is not supported over private rows
LINE 1: SELECT SUM(a) FROM visits AS v(a)
                                       ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: columns of a sub-select's alias
SELECT SUM(a) FROM (SELECT cost FROM visits) AS s(a)
---- error
ERROR 0A000 (Unsupported):  a list of column names is not supported over private rows
LINE 1: SELECT SUM(a) FROM (SELECT cost FROM visits) AS s(a)
                                                          ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: UNION ALL of private rows
SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT sex FROM patients) s
---- error
ERROR 0A000 (Unsupported):  UNION over private rows is not supported yet
LINE 1: SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT sex FROM patients) s
                                     ^
HINT:  Aggregate on each side: set operations of aggregated rows are fine.

-- case: EXCEPT of private rows
SELECT ward FROM visits EXCEPT SELECT sex FROM patients
---- error
ERROR 0A000 (Unsupported):  EXCEPT over private rows is not supported yet
LINE 1: SELECT ward FROM visits EXCEPT SELECT sex FROM patients
               ^
HINT:  Aggregate on each side: set operations of aggregated rows are fine.

-- case: LIMIT of a statement in parentheses
(SELECT COUNT(*) FROM visits) LIMIT 1
---- error
ERROR 0A000 (Unsupported):  LIMIT is not supported over private rows
LINE 1: (SELECT COUNT(*) FROM visits) LIMIT 1
                                            ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a sub-select in WHERE
SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)
---- error
ERROR 0A000 (Unsupported):  a sub-select cannot stand here yet
LINE 1: SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)
                                                         ^

-- case: IN with a sub-select
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits)
---- error
ERROR 0A000 (Unsupported):  a sub-select is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM visits)
                                                          ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a correlated sub-select
SELECT kind, (SELECT COUNT(*) FROM patients p WHERE p.sex = v.kind) FROM visits v GROUP BY kind
---- error
ERROR 42P01 (UnknownTable):  there is no table "v" in FROM
LINE 1: SELECT kind, (SELECT COUNT(*) FROM patients p WHERE p.sex = v.kind) FROM visits v GROUP BY kind
                                                                    ^

-- case: a public table alone
SELECT floor FROM Wards
---- error
ERROR 0A000 (Unsupported):  reading the public table "Wards" is not supported yet
LINE 1: SELECT floor FROM Wards
                          ^

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

-- case: * EXCLUDE
SELECT * EXCLUDE (note) FROM visits LIMIT 0
---- error
ERROR 0A000 (Unsupported):  EXCEPT is not supported over private rows
LINE 1: SELECT * EXCLUDE (note) FROM visits LIMIT 0
                          ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: BETWEEN SYMMETRIC
SELECT COUNT(*) FROM visits WHERE cost BETWEEN SYMMETRIC 5 AND 1
---- error
ERROR 0A000 (Unsupported):  SYMMETRIC is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE cost BETWEEN SYMMETRIC 5 AND 1
                                          ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: IS DISTINCT FROM
SELECT COUNT(*) FROM visits WHERE cost IS DISTINCT FROM 5
---- error
ERROR 0A000 (Unsupported):  IS DISTINCT FROM is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE cost IS DISTINCT FROM 5
                                          ^

-- case: a regular expression
SELECT COUNT(*) FROM visits WHERE ward ~ '^a'
---- error
ERROR 42883 (UnknownFunction):  ~ is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE ward ~ '^a'
                                          ^
HINT:  Functions: abs, ceil, coalesce, concat, date_trunc, extract, floor, greatest, least, length, lower, nullif, round, substring, trim, upper, clip, CASE, CAST.

-- case: a row value
SELECT COUNT(*) FROM visits WHERE (cost, score) = (1, 2)
---- error
ERROR 0A000 (Unsupported):  a list of values is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE (cost, score) = (1, 2)
                                           ^

-- case: a cast with a length
SELECT CAST(note AS varchar(3)), COUNT(*) FROM visits GROUP BY 1
---- error
ERROR 0A000 (Unsupported):  a cast to text with a length is not supported
LINE 1: SELECT CAST(note AS varchar(3)), COUNT(*) FROM visits GROUP BY 1
                    ^
HINT:  substring(x, 1, 3) cuts text to 3 characters.

-- case: a cast with a format
SELECT COUNT(CAST(note AS date FORMAT 'YYYY')) FROM visits
---- error
ERROR 42883 (UnknownFunction):  a format is not supported over private rows
LINE 1: SELECT COUNT(CAST(note AS date FORMAT 'YYYY')) FROM visits
                          ^
HINT:  Functions: abs, ceil, coalesce, concat, date_trunc, extract, floor, greatest, least, length, lower, nullif, round, substring, trim, upper, clip, CASE, CAST.

-- case: TRIM with a side
SELECT trim(LEADING 'x' FROM note), COUNT(*) FROM visits GROUP BY 1
---- error
ERROR 0A000 (Unsupported):  BOTH, LEADING or TRAILING is not supported over private rows
LINE 1: SELECT trim(LEADING 'x' FROM note), COUNT(*) FROM visits GROUP BY 1
                            ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a placeholder with a number
SELECT COUNT(*), $1 FROM visits
---- error
ERROR 0A000 (Unsupported):  a parameter is written ?
LINE 1: SELECT COUNT(*), $1 FROM visits
                          ^

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
