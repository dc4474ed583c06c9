-- The split at the privacy boundary: what is above a release is post-processing.

-- case: HAVING, ORDER BY, LIMIT and arithmetic over aggregates
SELECT kind, SUM(cost) / COUNT(*) AS mean FROM visits GROUP BY kind HAVING COUNT(*) > 10 ORDER BY mean DESC LIMIT 3 OFFSET 1
---- post
SELECT _r1."k1" AS "kind", _r1."m2" / _r1."m1" AS "mean", CASE WHEN CAST(_r1."m2" / _r1."m1" AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m2_cov" + CAST(2 AS DOUBLE) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m1_cov" + CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END AS "_error0", CAST(_r1."m2" / _r1."m1" AS DOUBLE) - (_r1."factor" * (CASE WHEN CAST(_r1."m2" / _r1."m1" AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m2_cov" + CAST(2 AS DOUBLE) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m1_cov" + CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END)) - COALESCE((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m2_clip_half" + ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") - ((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_clip_mid" + CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error1", CAST(_r1."m2" / _r1."m1" AS DOUBLE) + (_r1."factor" * (CASE WHEN CAST(_r1."m2" / _r1."m1" AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m2_cov" + CAST(2 AS DOUBLE) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m1_cov" + CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END)) + COALESCE((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m2_clip_half" + ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") + ((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_clip_mid" + CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error2", ((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m2_clip_half" + ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") + ABS(((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_clip_mid" + CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"))) AS "_error3" FROM _r1 WHERE _r1."m1" > 10 ORDER BY mean DESC NULLS FIRST LIMIT 3 OFFSET 1
---- output
kind VARCHAR
mean DOUBLE

-- case: equal aggregates are one measure
SELECT COUNT(*), COUNT(1), COUNT(*) * 2, SUM(cost), SUM(visits.cost) FROM visits
---- plan
Aggregate
  - count rows
  - sum cost
  Table visits (unit bigint)
---- post
SELECT _r1."m1" AS "count", _r1."m1" AS "count", _r1."m1" * 2 AS "?column?", _r1."m2" AS "sum", _r1."m2" AS "sum", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3", _r1."m1_stderr" AS "_error4", _r1."m1_low" AS "_error5", _r1."m1_high" AS "_error6", _r1."m1_clipped" AS "_error7", CASE WHEN CAST(_r1."m1" * 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(CAST(2 AS DOUBLE) * CAST(2 AS DOUBLE) * _r1."m1_m1_cov")) END AS "_error8", CAST(_r1."m1" * 2 AS DOUBLE) - (_r1."factor" * (CASE WHEN CAST(_r1."m1" * 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(CAST(2 AS DOUBLE) * CAST(2 AS DOUBLE) * _r1."m1_m1_cov")) END)) - COALESCE((ABS(CAST(2 AS DOUBLE)) * _r1."m1_clip_half") - (CAST(2 AS DOUBLE) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error9", CAST(_r1."m1" * 2 AS DOUBLE) + (_r1."factor" * (CASE WHEN CAST(_r1."m1" * 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(CAST(2 AS DOUBLE) * CAST(2 AS DOUBLE) * _r1."m1_m1_cov")) END)) + COALESCE((ABS(CAST(2 AS DOUBLE)) * _r1."m1_clip_half") + (CAST(2 AS DOUBLE) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error10", ((ABS(CAST(2 AS DOUBLE)) * _r1."m1_clip_half") + ABS((CAST(2 AS DOUBLE) * _r1."m1_clip_mid"))) AS "_error11", _r1."m2_stderr" AS "_error12", _r1."m2_low" AS "_error13", _r1."m2_high" AS "_error14", _r1."m2_clipped" AS "_error15", _r1."m2_stderr" AS "_error16", _r1."m2_low" AS "_error17", _r1."m2_high" AS "_error18", _r1."m2_clipped" AS "_error19" FROM _r1
---- output
count BIGINT
count BIGINT
?column? BIGINT
sum DOUBLE
sum DOUBLE

-- case: whole numbers divide like PostgreSQL's
SELECT COUNT(*) / 2, COUNT(*) / 2.0, SUM(nights) / COUNT(*) FROM visits
---- post
SELECT _r1."m1" // 2 AS "?column?", _r1."m1" / 2.0 AS "?column?", _r1."m2" // _r1."m1" AS "?column?", CASE WHEN CAST(_r1."m1" // 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END AS "_error0", CAST(_r1."m1" // 2 AS DOUBLE) - (_r1."factor" * (CASE WHEN CAST(_r1."m1" // 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END)) - COALESCE((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") - ((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error1", CAST(_r1."m1" // 2 AS DOUBLE) + (_r1."factor" * (CASE WHEN CAST(_r1."m1" // 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END)) + COALESCE((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") + ((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error2", ((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") + ABS(((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"))) AS "_error3", CASE WHEN CAST(_r1."m1" / 2.0 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END AS "_error4", CAST(_r1."m1" / 2.0 AS DOUBLE) - (_r1."factor" * (CASE WHEN CAST(_r1."m1" / 2.0 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END)) - COALESCE((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") - ((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error5", CAST(_r1."m1" / 2.0 AS DOUBLE) + (_r1."factor" * (CASE WHEN CAST(_r1."m1" / 2.0 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END)) + COALESCE((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") + ((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error6", ((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") + ABS(((CAST(1 AS DOUBLE) / NULLIF(CAST(2.0 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"))) AS "_error7", CASE WHEN CAST(_r1."m2" // _r1."m1" AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov" + CAST(2 AS DOUBLE) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m2_cov" + (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m2_cov")) END AS "_error8", CAST(_r1."m2" // _r1."m1" AS DOUBLE) - (_r1."factor" * (CASE WHEN CAST(_r1."m2" // _r1."m1" AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov" + CAST(2 AS DOUBLE) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m2_cov" + (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m2_cov")) END)) - COALESCE((ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half" + ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m2_clip_half") - (CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid" + (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_clip_mid"), CAST(0 AS DOUBLE)) AS "_error9", CAST(_r1."m2" // _r1."m1" AS DOUBLE) + (_r1."factor" * (CASE WHEN CAST(_r1."m2" // _r1."m1" AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov" + CAST(2 AS DOUBLE) * CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m2_cov" + (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_m2_cov")) END)) + COALESCE((ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half" + ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m2_clip_half") + (CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid" + (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_clip_mid"), CAST(0 AS DOUBLE)) AS "_error10", ((ABS(CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half" + ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m2_clip_half") + ABS((CAST(-1 AS DOUBLE) * (CAST(_r1."m2" AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE) * CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid" + (CAST(1 AS DOUBLE) / NULLIF(CAST(_r1."m1" AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m2_clip_mid"))) AS "_error11" FROM _r1
---- output
?column? BIGINT
?column? DOUBLE
?column? BIGINT

-- case: the largest sub-expression that is a key is that key
SELECT score + 1 AS next, (score + 1) * 2 AS twice, COUNT(*) FROM visits GROUP BY score + 1
---- plan
Aggregate by k1 = score +:wide 1
  - count rows
  Table visits (unit bigint)
---- post
SELECT _r1."k1" AS "next", _r1."k1" * 2 AS "twice", _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1

-- case: window functions over groups
SELECT kind, RANK() OVER (ORDER BY COUNT(*) DESC), SUM(COUNT(*)) OVER () FROM visits GROUP BY kind
---- plan
Aggregate by k1 = kind
  - count rows
  Table visits (unit bigint)
---- post
SELECT _r1."k1" AS "kind", RANK() OVER (ORDER BY _r1."m1" DESC NULLS FIRST) AS "rank", SUM(_r1."m1") OVER () AS "sum" FROM _r1

-- case: QUALIFY
SELECT ward, COUNT(*) FROM visits GROUP BY ward QUALIFY ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) <= 3
---- post
SELECT _r1."k1" AS "ward", _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1 QUALIFY ROW_NUMBER() OVER (ORDER BY _r1."m1" DESC NULLS FIRST) <= 3

-- case: SELECT DISTINCT of keys is a release of keys
SELECT DISTINCT kind, sex FROM visits JOIN patients USING (patient_id)
---- plan
Aggregate by k1 = kind, k2 = sex
  Join inner on patient_id = patient_id_2
    Table visits (unit bigint)
    Table patients (unit bigint): patient_id as patient_id_2
---- post
SELECT DISTINCT _r1."k1" AS "kind", _r1."k2" AS "sex" FROM (SELECT * FROM _r1 WHERE "m1_low" > 0) AS _r1

-- case: a sub-select of groups
SELECT ward, n FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) s WHERE n > 5
---- post
SELECT ward AS "ward", n AS "n" FROM (SELECT _r1."k1" AS "ward", _r1."m1" AS "n" FROM _r1) AS s WHERE n > 5
---- output
ward VARCHAR
n BIGINT

-- case: scalar sub-selects are releases
SELECT (SELECT COUNT(*) FROM visits) AS v, (SELECT COUNT(*) FROM patients) AS p
---- plan
_r1:
Aggregate
  - count rows
  Table visits (unit bigint)
_r2:
Aggregate
  - count rows
  Table patients (unit bigint)
---- post
SELECT (SELECT _r1."m1" AS "count" FROM _r1) AS "v", (SELECT _r2."m1" AS "count" FROM _r2) AS "p"
---- output
v BIGINT
p BIGINT

-- case: a released CTE is one release however often it is read
WITH w AS (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) SELECT a.kind, a.n, b.n FROM w a JOIN w b ON a.kind <> b.kind
---- plan
Aggregate by k1 = kind
  - count rows
  Table visits (unit bigint)
---- post
WITH w AS (SELECT _r1."k1" AS "kind", _r1."m1" AS "n" FROM _r1) SELECT a.kind AS "kind", a.n AS "n", b.n AS "n" FROM w AS a JOIN w AS b ON a.kind <> b.kind
---- output
kind VARCHAR
n BIGINT
n BIGINT

-- case: a CTE may be named like the table that it reads
WITH visits AS (SELECT cost FROM visits WHERE kind = 'urgent') SELECT COUNT(*) FROM visits
---- plan
Aggregate
  - count rows
  Project cost_2 = cost
    Filter kind = 'urgent'
      Table visits (unit bigint)

-- case: a CTE reads what was in scope where it is written
WITH a AS (SELECT cost FROM visits), visits AS (SELECT birth_year AS cost FROM patients) SELECT (SELECT COUNT(*) FROM a), (SELECT SUM(cost) FROM visits)
---- plan
_r1:
Aggregate
  - count rows
  Project cost_2 = cost
    Table visits (unit bigint)
_r2:
Aggregate
  - sum cost
  Project cost = birth_year
    Table patients (unit bigint)

-- case: generated rows beside a release
SELECT g.n, r.n FROM generate_series(1, 2) AS g(n) CROSS JOIN (SELECT COUNT(*) AS n FROM visits) r
---- post
SELECT g.n AS "n", r.n AS "n" FROM GENERATE_SERIES(1, 2) AS g(n) CROSS JOIN (SELECT _r1."m1" AS "n" FROM _r1) AS r
---- output
n BIGINT
n BIGINT

-- case: UNION of releases
SELECT kind, COUNT(*) FROM visits GROUP BY kind UNION ALL SELECT 'all', COUNT(*) FROM visits
---- post
SELECT _r1."k1" AS "kind", _r1."m1" AS "count" FROM _r1 UNION ALL SELECT 'all' AS "?column?", _r2."m1" AS "count" FROM _r2
---- output
kind VARCHAR
count BIGINT

-- case: error bars in SQL
SELECT COUNT(*), DP_STDERR(COUNT(*)), DP_LOW(AVG(cost)), DP_HIGH(AVG(cost)) FROM visits
---- post
SELECT _r1."m1" AS "count", _r1."m1_stderr" AS "dp_stderr", _r1."m2_low" AS "dp_low", _r1."m2_high" AS "dp_high", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
count BIGINT
dp_stderr DOUBLE
dp_low DOUBLE
dp_high DOUBLE

-- case: LIMIT 0 asks for types only
SELECT ward, cost + 1 AS more FROM visits LIMIT 0
---- post
SELECT CAST(NULL AS TEXT) AS "ward", CAST(NULL AS DOUBLE) AS "more" WHERE FALSE
---- output
ward VARCHAR
more DOUBLE

-- case: WHERE FALSE asks for types only
SELECT * FROM lab_tests WHERE 1 = 0
---- post
SELECT CAST(NULL AS BIGINT) AS "visit_id", CAST(NULL AS TEXT) AS "test", CAST(NULL AS DOUBLE) AS "value", CAST(NULL AS DATE) AS "day", CAST(NULL AS UUID) AS "sample" WHERE FALSE
---- output
visit_id BIGINT
test VARCHAR
value DOUBLE
day DATE
sample UUID

-- case: no private rows, no release
SELECT x * 2 AS y FROM (VALUES (1), (2)) AS v(x)
---- post
SELECT x * 2 AS "y" FROM (VALUES (1), (2)) AS v(x)
---- output
y INTEGER

-- case: a public table alone
SELECT floor FROM Wards
---- post
SELECT floor AS "floor" FROM _p1 AS "Wards"
---- output
floor INTEGER

-- case: * EXCLUDE
SELECT * EXCLUDE (note) FROM visits LIMIT 0
---- output
visit_id BIGINT
patient_id BIGINT
ward VARCHAR
kind VARCHAR
cost DOUBLE
paid DECIMAL(10,2)
at TIMESTAMP
nights SMALLINT
score INTEGER

-- case: the version after the noise
SELECT n, version() FROM (SELECT COUNT(*) AS n FROM visits) s
---- post
SELECT n AS "n", 'PostgreSQL 16.2 (dpsql )' AS "version" FROM (SELECT _r1."m1" AS "n" FROM _r1) AS s
---- output
n BIGINT
version VARCHAR

-- case: within VALUES
SELECT * FROM (VALUES (version())) AS v(x)
---- post
SELECT * FROM (VALUES ('PostgreSQL 16.2 (dpsql )')) AS v(x)
---- output
x VARCHAR

-- case: the time of day
SELECT COUNT(*), CURRENT_TIME FROM visits
---- post
SELECT _r1."m1" AS "count", CAST('12:30:00' AS TIME) AS "current_time", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
count BIGINT
current_time TIME

-- case: VALUES alone
VALUES (1)
---- post
SELECT * FROM (VALUES (1)) AS "values"(column1)
---- output
column1 INTEGER

-- case: a value of a group that the row names
SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.ward = v.ward)
---- plan
_r2:
Aggregate by k1 = ward
  - mean cost
  Table visits (unit bigint)
_r1:
Aggregate
  - count rows
  Filter cost > v
    Join left on column_c1 = ward
      Table visits (unit bigint)
      Hole h1 of at most 100000 rows: v, column_c1

-- case: a value of a public key that a public row names
SELECT w.ward, (SELECT COUNT(*) FROM visits v WHERE v.ward = w.ward) AS n FROM "Wards" w
---- plan
Aggregate by k1 = ward_2
  - count rows
  Join inner on ward = ward_2
    Table visits (unit bigint)
    Public Wards: ward_2, floor
---- post
SELECT w.ward AS "ward", COALESCE((SELECT "q"."v" FROM (SELECT _r1."m1" AS "v", _r1."k1" AS "_c1" FROM _r1) AS "q" WHERE "q"."_c1" = w.ward), 0) AS "n" FROM _p1 AS w

-- case: a value of a public key beside a private row
SELECT COUNT(*) FROM visits v JOIN "Wards" ON v.ward = "Wards".ward WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.ward = "Wards".ward)
---- plan
_r2:
Aggregate by k1 = ward_2
  - mean cost
  Join inner on ward = ward_2
    Table visits (unit bigint)
    Public Wards: ward_2, floor
_r1:
Aggregate
  - count rows
  Filter cost > v
    Join left on column_c1 = ward_2
      Join inner on ward = ward_2
        Table visits (unit bigint)
        Public Wards: ward_2, floor
      Hole h1 of at most 100000 rows: v, column_c1

-- case: a value of a public column that is no key
SELECT COUNT(*) FROM visits v JOIN "Wards" w ON v.ward = w.ward WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.score = w.floor)
---- plan
_r2:
Aggregate by k1 = score
  - mean cost
  Table visits (unit bigint)
_r1:
Aggregate
  - count rows
  Filter cost > v
    Join left on column_c1 = floor
      Join inner on ward = ward_2
        Table visits (unit bigint)
        Public Wards: ward_2, floor
      Hole h1 of at most 100000 rows: v, column_c1

-- case: a value of a CTE with the name of a public table
WITH "Wards" AS (SELECT ward FROM visits GROUP BY ward) SELECT w.ward, (SELECT COUNT(*) FROM visits v WHERE v.ward = w.ward) AS n FROM "Wards" w
---- plan
_r1:
Aggregate by k1 = ward
  Table visits (unit bigint)
_r2:
Aggregate by k1 = ward
  - count rows
  Table visits (unit bigint)

-- case: a count of distinct rows
SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward, kind AS k FROM visits WHERE cost > 3) t
---- plan
Aggregate
  - count distinct 1, ward, kind
  Filter cost > 3.0
    Table visits (unit bigint)
---- output
n BIGINT

-- case: a count of groups
SELECT COUNT(*) FROM (SELECT ward FROM visits GROUP BY ward, score) t
---- plan
Aggregate
  - count distinct 1, ward, score
  Table visits (unit bigint)
---- output
count BIGINT

-- case: a count of distinct rows that are listed
SELECT COUNT(*) AS n FROM (SELECT DISTINCT kind FROM visits) t
---- plan
Aggregate by k1 = kind
  Table visits (unit bigint)
---- post
SELECT COUNT(*) AS "n" FROM (SELECT DISTINCT _r1."k1" AS "kind" FROM _r1) AS t

-- case: a count of distinct rows beside a condition on them
SELECT COUNT(*) AS n FROM (SELECT DISTINCT ward FROM visits) t WHERE ward LIKE 's%'
---- plan
Aggregate by k1 = ward
  Table visits (unit bigint)
---- post
SELECT COUNT(*) AS "n" FROM (SELECT DISTINCT _r1."k1" AS "ward" FROM _r1) AS t WHERE ward LIKE 's%'

-- case: a count of groups of which some are left out
SELECT COUNT(*) AS n FROM (SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 5) t
---- plan
Aggregate by k1 = ward
  - count rows
  Table visits (unit bigint)
---- post
SELECT COUNT(*) AS "n" FROM (SELECT _r1."k1" AS "ward" FROM _r1 WHERE _r1."m1" > 5) AS t

-- case: a count of distinct rows of a CTE
WITH one AS (SELECT * FROM visits WHERE cost > 3), t AS (SELECT DISTINCT ward FROM one) SELECT COUNT(*) AS n FROM t
---- plan
Aggregate
  - count distinct 1, ward_2
  Project visit_id_2 = visit_id, patient_id_2 = patient_id, ward_2 = ward, kind_2 = kind, cost_2 = cost, paid_2 = paid, at_2 = at, nights_2 = nights, score_2 = score, note_2 = note
    Filter cost > 3.0
      Table visits (unit bigint)
---- post
SELECT _r1."m1" AS "n", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1

-- case: a CTE that is counted and read once more
WITH t AS (SELECT DISTINCT ward FROM visits) SELECT COUNT(*) AS n FROM t WHERE ward > (SELECT MIN(ward) FROM t)
---- plan
Aggregate by k1 = ward
  Table visits (unit bigint)
---- post
WITH t AS (SELECT DISTINCT _r1."k1" AS "ward" FROM _r1) SELECT COUNT(*) AS "n" FROM t WHERE ward > (SELECT MIN(ward) AS "min" FROM t)
