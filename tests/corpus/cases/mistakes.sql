-- Slips that the message must help with.

-- case: a mistyped column
SELECT wrad, count(*) FROM visits GROUP BY wrad
---- error
UnknownColumn 42703: column "wrad" does not exist
LINE 1: SELECT wrad, count(*) FROM visits GROUP BY wrad
               ^
HINT:  Perhaps you meant "ward".

-- case: a mistyped table
SELECT count(*) FROM visit
---- error
UnknownTable 42P01: relation "visit" does not exist
LINE 1: SELECT count(*) FROM visit
                             ^
HINT:  Perhaps you meant "visits".

-- case: a mistyped function
SELECT summ(cost) FROM visits
---- error
UnknownFunction 42883: SUMM() is not supported over private rows
LINE 1: SELECT summ(cost) FROM visits
               ^
HINT:  Perhaps you meant SUM.

-- case: double quotes for a text
SELECT count(*) FROM visits WHERE ward = "surgery"
---- error
UnknownColumn 42703: column "surgery" does not exist
LINE 1: SELECT count(*) FROM visits WHERE ward = "surgery"
                                                 ^
HINT:  Double quotes are for names; text stands in single quotes: 'surgery'.

-- case: a forgotten comma
SELECT ward count(*) FROM visits GROUP BY ward
---- error
InvalidSyntax 42601: syntax error at or near "("
LINE 1: SELECT ward count(*) FROM visits GROUP BY ward
                         ^

-- case: a forgotten GROUP BY
SELECT ward, count(*) FROM visits
---- error
GroupingError 42803: column "ward" must appear in GROUP BY or in an aggregate
LINE 1: SELECT ward, count(*) FROM visits
               ^
HINT:  Add it to GROUP BY, or write COUNT(ward).

-- case: a key that is not grouped
SELECT ward, kind, count(*) FROM visits GROUP BY ward
---- error
GroupingError 42803: column "kind" must appear in GROUP BY or in an aggregate
LINE 1: SELECT ward, kind, count(*) FROM visits GROUP BY ward
                     ^
HINT:  Add it to GROUP BY, or write COUNT(kind).

-- case: an aggregate in WHERE
SELECT ward FROM visits WHERE count(*) > 5 GROUP BY ward
---- error
GroupingError 42803: aggregates cannot be nested or stand in WHERE, ON or GROUP BY
LINE 1: SELECT ward FROM visits WHERE count(*) > 5 GROUP BY ward
                                      ^
HINT:  A condition on aggregates stands in HAVING; an aggregate of aggregates is taken over a sub-select.

-- case: a sum of text
SELECT SUM(ward) FROM visits
---- error
TypeMismatch 42804: SUM() needs numbers, not text
LINE 1: SELECT SUM(ward) FROM visits
                   ^
HINT:  COUNT(ward) counts them, COUNT(DISTINCT ward) how many different ones there are.

-- case: a comparison of unlike types
SELECT count(*) FROM visits WHERE day > 5
---- error
TypeMismatch 42804: comparison of date and bigint: the types do not fit together
LINE 1: SELECT count(*) FROM visits WHERE day > 5
                                          ^
HINT:  Write the literal in the column's type, or cast one side.

-- case: a column of two tables
SELECT count(*) FROM visits v JOIN doctors d ON d.doctor_id = v.doctor_id WHERE ward = 'surgery'
---- error
AmbiguousColumn 42702: column "ward" is ambiguous
LINE 1: SELECT count(*) FROM visits v JOIN doctors d ON d.doctor_id = v.doctor_id WHERE ward = 'surgery'
                                                                                        ^
HINT:  Qualify it with its table: v.ward or d.ward

-- case: an empty statement
;
---- error
InvalidSyntax 42601: the statement is empty
HINT:  Write a SELECT, for example: SELECT COUNT(*) FROM visits

-- case: an alias in WHERE
SELECT cost * 2 AS twice, COUNT(*) AS n FROM visits WHERE twice > 9990 AND cost IS NOT NULL GROUP BY twice HAVING COUNT(*) > 100
---- error
UnknownColumn 42703: column "twice" does not exist
LINE 1: SELECT cost * 2 AS twice, COUNT(*) AS n FROM visits WHERE twice > 9990 AND cost IS NOT NULL GROUP BY twice HAVING COUNT(*) > 100
                                                                  ^
HINT:  GROUP BY, HAVING and ORDER BY know an alias; in WHERE write out what it stands for.
