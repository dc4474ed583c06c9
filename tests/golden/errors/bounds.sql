-- What has no bound.

-- case: a sum of distinct values without bounds
SELECT kind, SUM(DISTINCT score) AS total FROM visits GROUP BY kind
---- error
ERROR 0A000 (UnboundedValues):  column "visits.score" has no bounds, and SUM(DISTINCT …) needs some
LINE 1: SELECT kind, SUM(DISTINCT score) AS total FROM visits GROUP BY kind
                     ^
HINT:  Declare them in the schema, score: {bounds: [0, 100]} under visits. Or write SUM(DISTINCT CLIP(score, 0, 100)) with bounds of your own.

-- case: a sum of distinct texts that are cast
SELECT SUM(DISTINCT CAST(note AS integer)) FROM visits
---- error
ERROR 0A000 (UnboundedValues):  the values of SUM(DISTINCT …) have no bounds
LINE 1: SELECT SUM(DISTINCT CAST(note AS integer)) FROM visits
               ^
HINT:  Write SUM(DISTINCT CLIP(CAST(note AS INT), 0, 100)) with bounds of your own.

-- case: a quotient whose divisor may be near zero
SELECT SUM(DISTINCT cost / nights) FROM visits
---- error
ERROR 0A000 (UnboundedValues):  the values of SUM(DISTINCT …) have no bounds
LINE 1: SELECT SUM(DISTINCT cost / nights) FROM visits
               ^
HINT:  Write SUM(DISTINCT CLIP(cost / nights, 0, 100)) with bounds of your own.

-- case: a sum of NULL
SELECT SUM(NULL) FROM visits
---- error
ERROR 0A000 (UnboundedValues):  the values of SUM have no bounds
LINE 1: SELECT SUM(NULL) FROM visits
               ^
HINT:  Write SUM(CLIP(NULL, 0, 100)) with bounds of your own.

-- case: one bound is not enough
SELECT SUM(DISTINCT score) FROM visits WHERE score > 0
---- error
ERROR 0A000 (UnboundedValues):  column "visits.score" has no bounds, and SUM(DISTINCT …) needs some
LINE 1: SELECT SUM(DISTINCT score) FROM visits WHERE score > 0
               ^
HINT:  Declare them in the schema, score: {bounds: [0, 100]} under visits. Or write SUM(DISTINCT CLIP(score, 0, 100)) with bounds of your own.

-- case: unknown groups need a delta
-- set: delta = 0
SELECT ward, COUNT(*) FROM visits GROUP BY ward
---- error
ERROR 22023 (InvalidParameter):  the groups asked for are not public, and finding them needs a delta above 0
HINT:  SET delta = 1e-9, or group by a column whose values the schema declares.

-- case: Gaussian noise needs a delta
-- set: noise = gaussian
-- set: delta = 0
SELECT COUNT(*) FROM visits
---- error
ERROR 22023 (InvalidParameter):  gaussian noise needs a delta above 0
HINT:  SET delta = 1e-9, or SET noise = laplace.

-- case: an epsilon that is too small
-- set: noise = laplace
-- set: epsilon = 1e-13
SELECT COUNT(*) FROM visits
---- error
ERROR 22023 (InvalidParameter):  epsilon or delta is too small for this query
HINT:  SET epsilon or delta to a larger value.

-- case: a delta that is too small
-- set: delta = 1e-30
SELECT ward, COUNT(*) FROM visits GROUP BY ward
---- error
ERROR 22023 (InvalidParameter):  epsilon or delta is too small for this query
HINT:  SET epsilon or delta to a larger value.
