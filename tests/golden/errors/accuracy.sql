-- An error can be asked for where noise does not depend on values.

-- case: an average
-- set: max_error = 5
SELECT AVG(cost) FROM visits
---- error
ERROR 0A000 (Unsupported):  max_error is for COUNT and SUM; the error of averages depends on the values
HINT:  Ask for SUM and COUNT, and divide what is answered.

-- case: a ratio
-- set: max_error = 5
SELECT kind, SUM(cost) / COUNT(*) FROM visits GROUP BY kind
---- error
ERROR 0A000 (Unsupported):  max_error is for COUNT and SUM; the error of what is computed from them depends on the values
HINT:  Ask for the aggregates, and compute from the answers.

-- case: a quantile beside a count
-- set: max_error = 5
SELECT COUNT(*), MEDIAN(cost) FROM visits
---- error
ERROR 0A000 (Unsupported):  max_error is for COUNT and SUM; the error of quantiles, MIN, MAX and draws depends on the values
HINT:  SET epsilon instead; EXPLAIN shows the error in ranks.

-- case: a relative error of what another SELECT gives out
-- set: max_relative_error = 0.05
SELECT n FROM (SELECT COUNT(*) AS n FROM visits) AS s
---- error
ERROR 0A000 (Unsupported):  max_relative_error is for COUNT and SUM in the outermost SELECT
HINT:  Write SELECT COUNT(*) … without a SELECT around it, or use max_error.

-- case: an error that no epsilon gives
-- set: max_error = 0.001
SELECT SUM(cost) FROM visits
---- error
ERROR 22023 (InvalidParameter):  no epsilon makes the error that small
HINT:  SET max_error to a larger value.

-- case: epsilon and an error
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_error = 5) COUNT(*) FROM visits
---- error
ERROR 22023 (InvalidParameter):  a statement has epsilon or max_error, not both
LINE 1: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1, max_error = 5) COUNT(*) FROM visits
                                                               ^

-- case: a confidence that is none
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_error = 5, confidence = 95) COUNT(*) FROM visits
---- error
ERROR 22023 (InvalidParameter):  confidence must be at least 0.5 and at most 0.999999
LINE 1: SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (max_error = 5, confidence = 95) COUNT(*) FROM visits
                                                                 ^
HINT:  For example: SET confidence = 0.95

-- case: more than half
SET max_relative_error = 0.9
---- error
ERROR 22023 (InvalidParameter):  max_relative_error must be at most 0.5
HINT:  For example: SET max_relative_error = 0.05
