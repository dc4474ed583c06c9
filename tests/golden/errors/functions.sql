-- Functions that are not total, not known, or reach the environment.

-- case: a function with a near name
SELECT COUNT(*) FROM visits WHERE lowr(ward) = 'a'
---- error
ERROR 42883 (UnknownFunction):  LOWR() is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE lowr(ward) = 'a'
                                          ^
HINT:  Perhaps you meant LOWER.

-- case: a random one over rows
SELECT COUNT(*) FROM visits WHERE random() < 0.5
---- error
ERROR 42883 (UnknownFunction):  RANDOM() is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE random() < 0.5
                                          ^
HINT:  docs/sql.md lists the functions over private rows; on aggregated rows all of SQL's may be used.

-- case: the environment after the noise
SELECT COUNT(*), current_setting('threads') FROM visits
---- error
ERROR 42704 (InvalidParameter):  there is no setting "threads"
LINE 1: SELECT COUNT(*), current_setting('threads') FROM visits
                         ^

-- case: a random one after the noise
SELECT COUNT(*), random() FROM visits
---- error
ERROR 0A000 (Unsupported):  RANDOM() is not available
LINE 1: SELECT COUNT(*), random() FROM visits
                         ^

-- case: a file after the noise
SELECT COUNT(*), read_text('x') FROM visits
---- error
ERROR 0A000 (Unsupported):  READ_TEXT() is not available
LINE 1: SELECT COUNT(*), read_text('x') FROM visits
                         ^

-- case: a file in FROM
SELECT * FROM read_csv('visits.csv')
---- error
ERROR 0A000 (Unsupported):  this cannot stand in FROM
LINE 1: SELECT * FROM read_csv('visits.csv')
                      ^
HINT:  Tables, sub-selects, VALUES and unnest, generate_series, range can.

-- case: a pattern from a column
SELECT COUNT(*) FROM visits WHERE ward LIKE note
---- error
ERROR 0A000 (Unsupported):  a pattern must be a literal text
LINE 1: SELECT COUNT(*) FROM visits WHERE ward LIKE note
                                                    ^
HINT:  Look for one column in another by CONTAINS(a, b), STARTS_WITH(a, b) or ENDS_WITH(a, b).

-- case: a length from a column
SELECT substring(ward, score), COUNT(*) FROM visits GROUP BY 1
---- error
ERROR 0A000 (Unsupported):  argument 2 of substring must be a literal
LINE 1: SELECT substring(ward, score), COUNT(*) FROM visits GROUP BY 1
                               ^
HINT:  For example: substring(ward, 1, 3).

-- case: CLIP takes literals
SELECT SUM(CLIP(score, 0, nights)) FROM visits
---- error
ERROR 0A000 (Unsupported):  CLIP takes a number and two literal bounds
LINE 1: SELECT SUM(CLIP(score, 0, nights)) FROM visits
                   ^
HINT:  For example: CLIP(cost, 0, 100).

-- case: a time zone
SELECT date_trunc('month', at, 'Europe/Paris'), COUNT(*) FROM visits GROUP BY 1
---- error
ERROR 0A000 (Unsupported):  ZONE is not supported over private rows
LINE 1: SELECT date_trunc('month', at, 'Europe/Paris'), COUNT(*) FROM visits GROUP BY 1
                                       ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: a type that is not known
SELECT CAST(ward AS point), COUNT(*) FROM visits GROUP BY 1
---- error
ERROR 0A000 (Unsupported):  no cast to POINT over private rows
LINE 1: SELECT CAST(ward AS point), COUNT(*) FROM visits GROUP BY 1
                    ^

-- case: error bars take an aggregate
SELECT COUNT(*), DP_STDERR(5) FROM visits
---- error
ERROR 0A000 (Unsupported):  DP_STDERR takes an aggregate of this SELECT, or arithmetic of such aggregates
LINE 1: SELECT COUNT(*), DP_STDERR(5) FROM visits
                                   ^
HINT:  For example: DP_STDERR(SUM(x) / COUNT(*)).

-- case: a collation
SELECT COUNT(*) FROM visits WHERE ward COLLATE "de" = 'a'
---- error
ERROR 0A000 (Unsupported):  COLLATE is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits WHERE ward COLLATE "de" = 'a'
                                          ^

-- case: a statistic with a near name
SELECT BLOCKWISE(madd(cost), 0, 100) FROM visits
---- error
ERROR 42883 (UnknownFunction):  there is no aggregate or statistic MADD()
LINE 1: SELECT BLOCKWISE(madd(cost), 0, 100) FROM visits
                         ^
HINT:  Perhaps you meant MAD.

-- case: a statistic that nobody knows
SELECT BLOCKWISE(frobnicate(cost) / 2, 0, 100) FROM visits
---- error
ERROR 42883 (UnknownFunction):  there is no aggregate or statistic FROBNICATE()
LINE 1: SELECT BLOCKWISE(frobnicate(cost) / 2, 0, 100) FROM visits
                         ^
HINT:  Aggregates: MAD, SKEWNESS, KURTOSIS, KURTOSIS_POP, ENTROPY, MEDIAN, QUANTILE_CONT, QUANTILE_DISC, PERCENTILE_CONT, PERCENTILE_DISC, MIN, MAX, AVG, SUM, COUNT, also with DISTINCT, COUNT_IF, VAR_POP, VAR_SAMP, STDDEV_POP and STDDEV_SAMP.

-- case: blocks of public rows
SELECT BLOCKWISE(mad(floor), 0, 100) FROM Wards
---- error
ERROR 0A000 (Unsupported):  BLOCKWISE() is for private rows, and these are public or released
LINE 1: SELECT BLOCKWISE(mad(floor), 0, 100) FROM Wards
               ^
HINT:  Nothing of them is hidden: write MAD(floor).

-- case: the best of public rows
SELECT PRIVATE_TOP_K(ward, floor, 3) FROM Wards
---- error
ERROR 0A000 (Unsupported):  PRIVATE_TOP_K() is for private rows, and these are public or released
LINE 1: SELECT PRIVATE_TOP_K(ward, floor, 3) FROM Wards
               ^
HINT:  Nothing of them is hidden: write SELECT ward … GROUP BY ward ORDER BY SUM(floor) DESC LIMIT 3.

-- case: a posterior of released rows
SELECT BETA_POSTERIOR(n > 5) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t
---- error
ERROR 0A000 (Unsupported):  BETA_POSTERIOR() is for private rows, and these are public or released
LINE 1: SELECT BETA_POSTERIOR(n > 5) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS t
               ^
HINT:  Nothing of them is hidden: write AVG(CAST(n > 5 AS INTEGER)).

-- case: public rows, randomized
SELECT RANDOMIZED(ward, 1) FROM Wards
---- error
ERROR 0A000 (Unsupported):  RANDOMIZED() is for private rows, and these are public or released
LINE 1: SELECT RANDOMIZED(ward, 1) FROM Wards
               ^
HINT:  Nothing of them is hidden: write ward.
