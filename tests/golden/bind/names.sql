-- Which column and which table a name means.

-- case: names match without regard to case
SELECT Kind, count(*) FROM VISITS group by KIND
---- plan
Aggregate by k1 = kind
  - count rows
  Table visits (unit bigint)
---- post
SELECT _r1."k1" AS "kind", _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
kind VARCHAR
count BIGINT

-- case: a quoted name matches exactly first, then without regard to case
SELECT SUM("COST") FROM "Visits"
---- plan
Aggregate
  - sum cost
  Table visits (unit bigint)
---- post
SELECT _r1."m1" AS "sum", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
sum DOUBLE

-- case: public and main may qualify a table
SELECT COUNT(*) FROM public.visits AS v WHERE v.cost > 1
---- plan
Aggregate
  - count rows
  Filter cost > 1.0
    Table visits (unit bigint)
---- post
SELECT _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
count BIGINT

-- case: GROUP BY takes an input column before an alias
SELECT lower(kind) AS kind, COUNT(*) FROM visits GROUP BY kind
---- plan
Aggregate by k1 = kind
  - count rows
  Table visits (unit bigint)
---- post
SELECT LOWER(_r1."k1") AS "kind", _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
kind VARCHAR
count BIGINT

-- case: GROUP BY an alias
SELECT kind || '!' AS k, COUNT(*) FROM visits GROUP BY k
---- plan
Aggregate by k1 = concat(kind, '!')
  - count rows
  Table visits (unit bigint)
---- post
SELECT _r1."k1" AS "k", _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
k VARCHAR
count BIGINT

-- case: GROUP BY a position
SELECT date_trunc('month', at), COUNT(*) FROM visits GROUP BY 1
---- plan
Aggregate by k1 = date_trunc('month', at)
  - count rows
  Table visits (unit bigint)
---- post
SELECT _r1."k1" AS "date_trunc", _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
date_trunc TIMESTAMP
count BIGINT

-- case: GROUP BY ALL takes what is no aggregate
SELECT kind, ward, COUNT(*) FROM visits GROUP BY ALL
---- plan
Aggregate by k1 = kind, k2 = ward
  - count rows
  Table visits (unit bigint)
---- post
SELECT _r1."k1" AS "kind", _r1."k2" AS "ward", _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
kind VARCHAR
ward VARCHAR
count BIGINT

-- case: ORDER BY takes an output alias before an input column
SELECT COUNT(*) AS cost, kind FROM visits GROUP BY kind ORDER BY cost DESC
---- plan
Aggregate by k1 = kind
  - count rows
  Table visits (unit bigint)
---- post
SELECT _r1."m1" AS "cost", _r1."k1" AS "kind", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1 ORDER BY cost DESC NULLS FIRST
---- output
cost BIGINT
kind VARCHAR

-- case: a lateral alias
SELECT SUM(cost) AS total, total / 2 AS half FROM visits
---- plan
Aggregate
  - sum cost
  Table visits (unit bigint)
---- post
SELECT _r1."m1" AS "total", (_r1."m1") / 2 AS "half", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3", CASE WHEN CAST((_r1."m1") / 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END AS "_error4", CAST((_r1."m1") / 2 AS DOUBLE) - (_r1."factor" * (CASE WHEN CAST((_r1."m1") / 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END)) - COALESCE((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") - ((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error5", CAST((_r1."m1") / 2 AS DOUBLE) + (_r1."factor" * (CASE WHEN CAST((_r1."m1") / 2 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * (CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_m1_cov")) END)) + COALESCE((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") + ((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"), CAST(0 AS DOUBLE)) AS "_error6", ((ABS((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE)))) * _r1."m1_clip_half") + ABS(((CAST(1 AS DOUBLE) / NULLIF(CAST(2 AS DOUBLE), CAST(0 AS DOUBLE))) * _r1."m1_clip_mid"))) AS "_error7" FROM _r1
---- output
total DOUBLE
half DOUBLE

-- case: a column merged by USING
SELECT COUNT(patient_id) FROM visits JOIN patients USING (patient_id)
---- plan
Aggregate
  - count patient_id
  Join inner on patient_id = patient_id_2
    Table visits (unit bigint)
    Table patients (unit bigint): patient_id as patient_id_2
---- post
SELECT _r1."m1" AS "count", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
---- output
count BIGINT

-- case: output names are PostgreSQL's
SELECT COUNT(*), SUM(cost) + 1, CASE WHEN COUNT(*) > 1 THEN 1 END, EXTRACT(year FROM at) FROM visits GROUP BY 4
---- plan
Aggregate by k1 = extract('year', at)
  - count rows
  - sum cost
  Table visits (unit bigint)
---- post
SELECT _r1."m1" AS "count", _r1."m2" + 1 AS "?column?", CASE WHEN _r1."m1" > 1 THEN 1 END AS "case", _r1."k1" AS "extract", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3", CASE WHEN CAST(_r1."m2" + 1 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(_r1."m2_m2_cov")) END AS "_error4", CAST(_r1."m2" + 1 AS DOUBLE) - (_r1."factor" * (CASE WHEN CAST(_r1."m2" + 1 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(_r1."m2_m2_cov")) END)) - COALESCE((_r1."m2_clip_half") - (_r1."m2_clip_mid"), CAST(0 AS DOUBLE)) AS "_error5", CAST(_r1."m2" + 1 AS DOUBLE) + (_r1."factor" * (CASE WHEN CAST(_r1."m2" + 1 AS DOUBLE) IS NULL THEN NULL ELSE SQRT(ABS(_r1."m2_m2_cov")) END)) + COALESCE((_r1."m2_clip_half") + (_r1."m2_clip_mid"), CAST(0 AS DOUBLE)) AS "_error6", ((_r1."m2_clip_half") + ABS((_r1."m2_clip_mid"))) AS "_error7" FROM _r1
---- output
count BIGINT
?column? DOUBLE
case INTEGER
extract BIGINT

-- case: tables two hops from the unit
SELECT test, AVG(value) FROM lab_tests GROUP BY test
---- plan
Aggregate by k1 = test
  - mean value
  Table lab_tests (unit bigint)
---- post
SELECT _r1."k1" AS "test", _r1."m1" AS "avg", _r1."m1_stderr" AS "_error0", _r1."m1_low" AS "_error1", _r1."m1_high" AS "_error2", _r1."m1_clipped" AS "_error3" FROM _r1
