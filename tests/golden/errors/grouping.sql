-- Private columns outside of aggregates, and aggregates in the wrong place.

-- case: a column beside an aggregate
SELECT ward, COUNT(*) FROM visits
---- error
ERROR 42803 (GroupingError):  column "ward" must appear in GROUP BY or in an aggregate
LINE 1: SELECT ward, COUNT(*) FROM visits
               ^
HINT:  Add it to GROUP BY, or write COUNT(ward).

-- case: a column that is not a key
SELECT ward, COUNT(*) FROM visits GROUP BY kind
---- error
ERROR 42803 (GroupingError):  column "ward" must appear in GROUP BY or in an aggregate
LINE 1: SELECT ward, COUNT(*) FROM visits GROUP BY kind
               ^
HINT:  Add it to GROUP BY, or write COUNT(ward).

-- case: in HAVING
SELECT kind, COUNT(*) FROM visits GROUP BY kind HAVING cost > 1
---- error
ERROR 42803 (GroupingError):  column "cost" must appear in GROUP BY or in an aggregate
LINE 1: SELECT kind, COUNT(*) FROM visits GROUP BY kind HAVING cost > 1
                                                               ^
HINT:  Add it to GROUP BY, or write SUM(cost), AVG(cost) or COUNT(cost).

-- case: in ORDER BY
SELECT kind, COUNT(*) FROM visits GROUP BY kind ORDER BY cost
---- error
ERROR 42803 (GroupingError):  column "cost" must appear in GROUP BY or in an aggregate
LINE 1: SELECT kind, COUNT(*) FROM visits GROUP BY kind ORDER BY cost
                                                                 ^
HINT:  Add it to GROUP BY, or write SUM(cost), AVG(cost) or COUNT(cost).

-- case: nested aggregates
SELECT SUM(COUNT(*)) FROM visits
---- error
ERROR 42803 (GroupingError):  aggregates cannot be nested or stand in WHERE, ON or GROUP BY
LINE 1: SELECT SUM(COUNT(*)) FROM visits
                   ^
HINT:  A condition on aggregates stands in HAVING; an aggregate of aggregates is taken over a sub-select.

-- case: an aggregate in WHERE
SELECT kind FROM visits WHERE COUNT(*) > 1 GROUP BY kind
---- error
ERROR 42803 (GroupingError):  aggregates cannot be nested or stand in WHERE, ON or GROUP BY
LINE 1: SELECT kind FROM visits WHERE COUNT(*) > 1 GROUP BY kind
                                      ^
HINT:  A condition on aggregates stands in HAVING; an aggregate of aggregates is taken over a sub-select.

-- case: an aggregate in GROUP BY
SELECT COUNT(*) AS n FROM visits GROUP BY n
---- error
ERROR 42803 (GroupingError):  aggregates cannot stand in GROUP BY
LINE 1: SELECT COUNT(*) AS n FROM visits GROUP BY n
               ^

-- case: a window over private rows beside groups
SELECT kind, SUM(cost) OVER () FROM visits GROUP BY kind
---- error
ERROR 42803 (GroupingError):  column "cost" must appear in GROUP BY or in an aggregate
LINE 1: SELECT kind, SUM(cost) OVER () FROM visits GROUP BY kind
                         ^
HINT:  Add it to GROUP BY, or write SUM(cost), AVG(cost) or COUNT(cost).

-- case: an aggregate within FILTER
SELECT COUNT(*) FILTER (WHERE SUM(cost) > 1) FROM visits
---- error
ERROR 42803 (GroupingError):  aggregates cannot be nested or stand in WHERE, ON or GROUP BY
LINE 1: SELECT COUNT(*) FILTER (WHERE SUM(cost) > 1) FROM visits
                                      ^
HINT:  A condition on aggregates stands in HAVING; an aggregate of aggregates is taken over a sub-select.
