-- The SQL that DuckDB runs. Each is run on empty tables too.

-- case: a unique unit, no keys
SELECT COUNT(*), AVG(birth_year) FROM patients WHERE insured
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT _uid, "birth_year" AS "x1" FROM (SELECT * FROM (SELECT t."patient_id" AS _uid, t."birth_year" AS "birth_year", t."insured" AS "insured" FROM "patients" AS t WHERE t."patient_id" IS NOT NULL) WHERE "insured")),
part1 AS (SELECT (SUM(v1) - COUNT(v1) * CAST(1920 AS HUGEINT)) AS "c1_above", (COUNT(v1) * CAST(2026 AS HUGEINT) - SUM(v1)) AS "c1_below", ((COUNT(*) - COUNT(v1)) * CAST(106 AS HUGEINT)) AS "c1_missing" FROM (SELECT *, CASE WHEN "x1" BETWEEN 1920 AND 2026 THEN TRY_CAST("x1" AS BIGINT) WHEN "x1" < 1920 THEN CAST(1920 AS BIGINT) WHEN "x1" > 2026 THEN CAST(2026 AS BIGINT) END AS v1 FROM rows1))
SELECT CAST(LEAST(GREATEST(COALESCE(part1."c1_above", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_above", CAST(LEAST(GREATEST(COALESCE(part1."c1_below", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_below", CAST(LEAST(GREATEST(COALESCE(part1."c1_missing", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_missing" FROM part1

-- case: weights without keys
SELECT COUNT(*), SUM(cost) FROM visits
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT _uid, "cost" AS "x1" FROM (SELECT t."patient_id" AS _uid, t."cost" AS "cost" FROM "visits" AS t WHERE t."patient_id" IS NOT NULL)),
weights AS MATERIALIZED (SELECT _uid, 524288 // COUNT(*) AS _weight FROM rows1 GROUP BY _uid HAVING COUNT(*) > 8),
part1 AS (SELECT SUM((((v1 - 0) * _weight) >> 4)) AS "c1_above", SUM((((10000 - v1) * _weight) >> 4)) AS "c1_below" FROM (SELECT *, COALESCE(CASE WHEN TRY_CAST(("x1" * CAST('2.0' AS DOUBLE)) AS BIGINT) BETWEEN 0 AND 10000 THEN TRY_CAST(("x1" * CAST('2.0' AS DOUBLE)) AS BIGINT) WHEN isfinite("x1") THEN CASE WHEN "x1" > CAST('2500.0' AS DOUBLE) THEN CAST(10000 AS BIGINT) ELSE CAST(0 AS BIGINT) END END, CAST(0 AS BIGINT)) AS v1 FROM (SELECT rows1."x1", COALESCE(weights._weight, 65536) AS _weight FROM rows1 LEFT JOIN weights ON rows1._uid = weights._uid)))
SELECT CAST(LEAST(GREATEST(COALESCE(part1."c1_above", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_above", CAST(LEAST(GREATEST(COALESCE(part1."c1_below", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_below" FROM part1

-- case: weights by group with listed keys
SELECT kind, COUNT(*), AVG(cost) FROM visits GROUP BY kind
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT _uid, "kind" AS "k1", "cost" AS "x1" FROM (SELECT * FROM (SELECT t."patient_id" AS _uid, CASE WHEN t."kind" IN ('urgent', 'planned') THEN t."kind" END AS "kind", t."cost" AS "cost" FROM "visits" AS t WHERE t."patient_id" IS NOT NULL) WHERE (NOT ("kind" IS NULL)))),
heavy AS MATERIALIZED (SELECT _uid FROM rows1 GROUP BY _uid HAVING COUNT(*) > 8),
heavy_sizes AS MATERIALIZED (SELECT _uid, COUNT(*) AS t, SUM(n) AS total, SUM(CAST(n AS HUGEINT) * n) AS squares FROM (SELECT _uid, "k1", COUNT(*) AS n FROM rows1 SEMI JOIN heavy USING (_uid) GROUP BY _uid, "k1") GROUP BY _uid),
weights AS MATERIALIZED (SELECT _uid, LEAST(65536, 536870912 // (CAST(ceil(sqrt(CAST(squares AS DOUBLE)) * 1024 * (1 + pow(2, -50))) AS BIGINT) + 1)) AS _weight FROM heavy_sizes WHERE total > 8),
part1 AS (SELECT "k1", SUM((((v1 - 0) * _weight) >> 4)) AS "c1_above", SUM((((10000 - v1) * _weight) >> 4)) AS "c1_below", SUM(((CAST(10000 AS BIGINT) * _weight) >> 4)) FILTER (WHERE v1 IS NULL) AS "c1_missing" FROM (SELECT *, CASE WHEN TRY_CAST(("x1" * CAST('2.0' AS DOUBLE)) AS BIGINT) BETWEEN 0 AND 10000 THEN TRY_CAST(("x1" * CAST('2.0' AS DOUBLE)) AS BIGINT) WHEN isfinite("x1") THEN CASE WHEN "x1" > CAST('2500.0' AS DOUBLE) THEN CAST(10000 AS BIGINT) ELSE CAST(0 AS BIGINT) END END AS v1 FROM (SELECT rows1."k1", rows1."x1", COALESCE(weights._weight, 65536) AS _weight FROM rows1 LEFT JOIN weights ON rows1._uid = weights._uid)) GROUP BY "k1"),
listed AS (SELECT * FROM (VALUES (0, 'urgent'), (1, 'planned')) AS listed("_order", "k1"))
SELECT listed."k1", CAST(LEAST(GREATEST(COALESCE(part1."c1_above", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_above", CAST(LEAST(GREATEST(COALESCE(part1."c1_below", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_below", CAST(LEAST(GREATEST(COALESCE(part1."c1_missing", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_missing"
FROM listed
LEFT JOIN part1 ON part1."k1" IS NOT DISTINCT FROM listed."k1"
ORDER BY listed."_order"

-- case: selected keys
SELECT ward, COUNT(*) FROM visits GROUP BY ward
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT _uid, "ward" AS "k1" FROM (SELECT t."patient_id" AS _uid, CASE WHEN length(t."ward") <= 40 THEN t."ward" END AS "ward" FROM "visits" AS t WHERE t."patient_id" IS NOT NULL)),
pairs1 AS MATERIALIZED (SELECT _uid, "k1", COUNT(*) AS n FROM rows1 GROUP BY _uid, "k1"),
sizes1 AS MATERIALIZED (SELECT _uid, COUNT(*) AS t, SUM(n) AS total, SUM(CAST(n AS HUGEINT) * n) AS squares FROM pairs1 GROUP BY _uid),
part1 AS (SELECT "k1", SUM(CAST(floor(65536 / sqrt(LEAST(t, 4)) * (1 - pow(2, -40))) AS BIGINT)) AS "selection_units" FROM (SELECT "k1", t FROM pairs1 JOIN sizes1 USING (_uid) WHERE t <= 4 UNION ALL SELECT "k1", t FROM (SELECT "k1", t, row_number() OVER (PARTITION BY _uid ORDER BY hash(_uid, "k1"), "k1") AS place FROM pairs1 JOIN sizes1 USING (_uid) WHERE t > 4) WHERE place <= 4) GROUP BY "k1"),
weights AS MATERIALIZED (SELECT _uid, LEAST(65536, 536870912 // (CAST(ceil(sqrt(CAST(squares AS DOUBLE)) * 1024 * (1 + pow(2, -50))) AS BIGINT) + 1)) AS _weight FROM sizes1 WHERE total > 8),
part2 AS (SELECT pairs1."k1", SUM(n * COALESCE(weights._weight, 65536)) AS "rows" FROM pairs1 LEFT JOIN weights ON pairs1._uid = weights._uid GROUP BY pairs1."k1")
SELECT part1."k1", CAST(LEAST(GREATEST(COALESCE(part1."selection_units", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "selection_units", CAST(LEAST(GREATEST(COALESCE(part2."rows", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "rows"
FROM part1
LEFT JOIN part2 ON part2."k1" IS NOT DISTINCT FROM part1."k1"
ORDER BY part1."k1" NULLS LAST

-- case: mixed keys and a join
-- set: empty_groups = show
SELECT ward, sex, SUM(paid) FROM visits JOIN patients USING (patient_id) GROUP BY ward, sex
---- duckdb
WITH rows1 AS MATERIALIZED (SELECT _uid, "sex" AS "k1", "ward" AS "k2", "paid" AS "x1" FROM (SELECT l._uid, l."patient_id", l."sex", r."patient_id_2", r."ward", r."paid" FROM (SELECT t."patient_id" AS _uid, t."patient_id" AS "patient_id", CASE WHEN t."sex" IN ('f', 'm', 'x') THEN t."sex" END AS "sex" FROM "patients" AS t WHERE t."patient_id" IS NOT NULL) AS l INNER JOIN (SELECT t."patient_id" AS _uid, t."patient_id" AS "patient_id_2", CASE WHEN length(t."ward") <= 40 THEN t."ward" END AS "ward", t."paid" AS "paid" FROM "visits" AS t WHERE t."patient_id" IS NOT NULL) AS r ON l._uid = r._uid AND ("patient_id" = "patient_id_2"))),
pairs1 AS MATERIALIZED (SELECT _uid, "k2", COUNT(*) AS n FROM rows1 GROUP BY _uid, "k2"),
sizes1 AS MATERIALIZED (SELECT _uid, COUNT(*) AS t, SUM(n) AS total, SUM(CAST(n AS HUGEINT) * n) AS squares FROM pairs1 GROUP BY _uid),
part1 AS (SELECT "k2", SUM(CAST(floor(65536 / sqrt(LEAST(t, 4)) * (1 - pow(2, -40))) AS BIGINT)) AS "selection_units" FROM (SELECT "k2", t FROM pairs1 JOIN sizes1 USING (_uid) WHERE t <= 4 UNION ALL SELECT "k2", t FROM (SELECT "k2", t, row_number() OVER (PARTITION BY _uid ORDER BY hash(_uid, "k2"), "k2") AS place FROM pairs1 JOIN sizes1 USING (_uid) WHERE t > 4) WHERE place <= 4) GROUP BY "k2"),
weights AS MATERIALIZED (SELECT _uid, LEAST(65536, 536870912 // (CAST(ceil(sqrt(CAST(squares AS DOUBLE)) * 1024 * (1 + pow(2, -50))) AS BIGINT) + 1)) AS _weight FROM sizes1 WHERE total > 8),
part2 AS (SELECT "k1", "k2", SUM(((v1 * _weight) // 256)) AS "c1" FROM (SELECT *, CASE WHEN TRY_CAST((TRY_CAST("x1" AS DOUBLE) * CAST('100.0' AS DOUBLE)) AS BIGINT) BETWEEN -10000 AND 100000 THEN TRY_CAST((TRY_CAST("x1" AS DOUBLE) * CAST('100.0' AS DOUBLE)) AS BIGINT) WHEN isfinite(TRY_CAST("x1" AS DOUBLE)) THEN CASE WHEN TRY_CAST("x1" AS DOUBLE) > CAST('450.0' AS DOUBLE) THEN CAST(100000 AS BIGINT) ELSE CAST(-10000 AS BIGINT) END END AS v1 FROM (SELECT rows1."k1", rows1."k2", rows1."x1", COALESCE(weights._weight, 65536) AS _weight FROM rows1 LEFT JOIN weights ON rows1._uid = weights._uid)) GROUP BY "k1", "k2"),
listed AS (SELECT * FROM (VALUES (0, 'f'), (1, 'm'), (2, 'x'), (3, CAST(NULL AS VARCHAR))) AS listed("_order", "k1"))
SELECT part1."k2", listed."k1", CAST(LEAST(GREATEST(COALESCE(part1."selection_units", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "selection_units", CAST(LEAST(GREATEST(COALESCE(part2."c1", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1"
FROM part1 CROSS JOIN listed
LEFT JOIN part2 ON part2."k1" IS NOT DISTINCT FROM listed."k1" AND part2."k2" IS NOT DISTINCT FROM part1."k2"
ORDER BY part1."k2" NULLS LAST, listed."_order"

-- case: mixed keys, both of which spread a unit's rows
SELECT ward, kind, COUNT(*), COUNT(DISTINCT patient_id) FROM visits GROUP BY ward, kind
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT _uid, "kind" AS "k1", "ward" AS "k2" FROM (SELECT * FROM (SELECT t."patient_id" AS _uid, CASE WHEN length(t."ward") <= 40 THEN t."ward" END AS "ward", CASE WHEN t."kind" IN ('urgent', 'planned') THEN t."kind" END AS "kind" FROM "visits" AS t WHERE t."patient_id" IS NOT NULL) WHERE (NOT ("kind" IS NULL)))),
pairs1 AS MATERIALIZED (SELECT _uid, "k2", COUNT(*) AS n FROM rows1 GROUP BY _uid, "k2"),
sizes1 AS MATERIALIZED (SELECT _uid, COUNT(*) AS t, SUM(n) AS total, SUM(CAST(n AS HUGEINT) * n) AS squares FROM pairs1 GROUP BY _uid),
part1 AS (SELECT "k2", SUM(CAST(floor(65536 / sqrt(LEAST(t, 4)) * (1 - pow(2, -40))) AS BIGINT)) AS "selection_units" FROM (SELECT "k2", t FROM pairs1 JOIN sizes1 USING (_uid) WHERE t <= 4 UNION ALL SELECT "k2", t FROM (SELECT "k2", t, row_number() OVER (PARTITION BY _uid ORDER BY hash(_uid, "k2"), "k2") AS place FROM pairs1 JOIN sizes1 USING (_uid) WHERE t > 4) WHERE place <= 4) GROUP BY "k2"),
heavy AS MATERIALIZED (SELECT _uid FROM rows1 GROUP BY _uid HAVING COUNT(*) > 8),
heavy_sizes AS MATERIALIZED (SELECT _uid, COUNT(*) AS t, SUM(n) AS total, SUM(CAST(n AS HUGEINT) * n) AS squares FROM (SELECT _uid, "k1", "k2", COUNT(*) AS n FROM rows1 SEMI JOIN heavy USING (_uid) GROUP BY _uid, "k1", "k2") GROUP BY _uid),
weights AS MATERIALIZED (SELECT _uid, LEAST(65536, 536870912 // (CAST(ceil(sqrt(CAST(squares AS DOUBLE)) * 1024 * (1 + pow(2, -50))) AS BIGINT) + 1)) AS _weight FROM heavy_sizes WHERE total > 8),
part2 AS (SELECT "k1", "k2", SUM(_weight) AS "rows" FROM (SELECT rows1."k1", rows1."k2", COALESCE(weights._weight, 65536) AS _weight FROM rows1 LEFT JOIN weights ON rows1._uid = weights._uid) GROUP BY "k1", "k2"),
pairs2 AS MATERIALIZED (SELECT _uid, "k1", "k2", COUNT(*) AS n FROM rows1 GROUP BY _uid, "k1", "k2"),
sizes3 AS MATERIALIZED (SELECT _uid, COUNT(*) AS t, SUM(n) AS total, SUM(CAST(n AS HUGEINT) * n) AS squares FROM pairs2 GROUP BY _uid),
part3 AS (SELECT "k1", "k2", SUM(1) AS "units" FROM (SELECT "k1", "k2", t FROM pairs2 JOIN sizes3 USING (_uid) WHERE t <= 8 UNION ALL SELECT "k1", "k2", t FROM (SELECT "k1", "k2", t, row_number() OVER (PARTITION BY _uid ORDER BY hash(_uid, "k1", "k2"), "k1", "k2") AS place FROM pairs2 JOIN sizes3 USING (_uid) WHERE t > 8) WHERE place <= 8) GROUP BY "k1", "k2"),
listed AS (SELECT * FROM (VALUES (0, 'urgent'), (1, 'planned')) AS listed("_order", "k1"))
SELECT part1."k2", listed."k1", CAST(LEAST(GREATEST(COALESCE(part1."selection_units", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "selection_units", CAST(LEAST(GREATEST(COALESCE(part2."rows", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "rows", CAST(LEAST(GREATEST(COALESCE(part3."units", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "units"
FROM part1 CROSS JOIN listed
LEFT JOIN part2 ON part2."k1" IS NOT DISTINCT FROM listed."k1" AND part2."k2" IS NOT DISTINCT FROM part1."k2"
LEFT JOIN part3 ON part3."k1" IS NOT DISTINCT FROM listed."k1" AND part3."k2" IS NOT DISTINCT FROM part1."k2"
ORDER BY part1."k2" NULLS LAST, listed."_order"

-- case: two hops, with Laplace noise
-- set: noise = laplace
SELECT test, COUNT(*), COUNT(DISTINCT visits.patient_id) FROM lab_tests JOIN visits USING (visit_id) GROUP BY test
---- duckdb
WITH rows1 AS MATERIALIZED (SELECT _uid, "test" AS "k1" FROM (SELECT * FROM (SELECT l._uid, l."visit_id", l."test", r."visit_id_2" FROM (SELECT h1."patient_id" AS _uid, t."visit_id" AS "visit_id", CASE WHEN t."test" IN ('glucose', 'sodium') THEN t."test" END AS "test" FROM "lab_tests" AS t JOIN "visits" AS h1 ON t."visit_id" = h1."visit_id" WHERE h1."patient_id" IS NOT NULL) AS l INNER JOIN (SELECT t."patient_id" AS _uid, t."visit_id" AS "visit_id_2" FROM "visits" AS t WHERE t."patient_id" IS NOT NULL) AS r ON l._uid = r._uid AND ("visit_id" = "visit_id_2")) WHERE (NOT ("test" IS NULL)))),
weights AS MATERIALIZED (SELECT _uid, 524288 // COUNT(*) AS _weight FROM rows1 GROUP BY _uid HAVING COUNT(*) > 8),
part1 AS (SELECT "k1", SUM(_weight) AS "rows" FROM (SELECT rows1."k1", COALESCE(weights._weight, 65536) AS _weight FROM rows1 LEFT JOIN weights ON rows1._uid = weights._uid) GROUP BY "k1"),
part2 AS (SELECT "k1", COUNT(DISTINCT _uid) AS "units" FROM rows1 GROUP BY "k1"),
listed AS (SELECT * FROM (VALUES (0, 'glucose'), (1, 'sodium')) AS listed("_order", "k1"))
SELECT listed."k1", CAST(LEAST(GREATEST(COALESCE(part1."rows", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "rows", CAST(LEAST(GREATEST(COALESCE(part2."units", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "units"
FROM listed
LEFT JOIN part1 ON part1."k1" IS NOT DISTINCT FROM listed."k1"
LEFT JOIN part2 ON part2."k1" IS NOT DISTINCT FROM listed."k1"
ORDER BY listed."_order"

-- case: a row unit
-- schema: rows
SELECT kind, yes_page, COUNT(*), SUM(change) FROM (SELECT kind, page = 'x''y' AS yes_page, change FROM events) s GROUP BY 1, 2
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT "kind_2" AS "k1", "yes_page" AS "k2", "change_2" AS "x1" FROM (SELECT * FROM (SELECT "kind" AS "kind_2", ("page" = 'x''y') AS "yes_page", "change" AS "change_2" FROM (SELECT CASE WHEN t."kind" IN ('open', 'click', 'buy') THEN t."kind" END AS "kind", CASE WHEN length(t."page") <= 1024 THEN t."page" END AS "page", (CASE WHEN TRY_CAST(t."change" AS DOUBLE) BETWEEN CAST('-1.0' AS DOUBLE) AND CAST('1.0' AS DOUBLE) THEN TRY_CAST(t."change" AS DOUBLE) WHEN isfinite(TRY_CAST(t."change" AS DOUBLE)) THEN CASE WHEN TRY_CAST(t."change" AS DOUBLE) < CAST('-1.0' AS DOUBLE) THEN CAST('-1.0' AS DOUBLE) ELSE CAST('1.0' AS DOUBLE) END END + CAST('0.0' AS DOUBLE)) AS "change" FROM "events" AS t)) WHERE ((NOT ("kind_2" IS NULL)) AND (NOT ("yes_page" IS NULL))))),
part1 AS (SELECT "k1", "k2", (SUM(v1) - COUNT(v1) * CAST(-8388608 AS HUGEINT)) AS "c1_above", (COUNT(v1) * CAST(8388608 AS HUGEINT) - SUM(v1)) AS "c1_below" FROM (SELECT *, COALESCE(CASE WHEN TRY_CAST(("x1" * CAST('8388608.0' AS DOUBLE)) AS BIGINT) BETWEEN -8388608 AND 8388608 THEN TRY_CAST(("x1" * CAST('8388608.0' AS DOUBLE)) AS BIGINT) WHEN isfinite("x1") THEN CASE WHEN "x1" > CAST('0.0' AS DOUBLE) THEN CAST(8388608 AS BIGINT) ELSE CAST(-8388608 AS BIGINT) END END, CAST(0 AS BIGINT)) AS v1 FROM rows1) GROUP BY "k1", "k2"),
listed AS (SELECT * FROM (VALUES (0, 'open', FALSE), (1, 'open', TRUE), (2, 'click', FALSE), (3, 'click', TRUE), (4, 'buy', FALSE), (5, 'buy', TRUE)) AS listed("_order", "k1", "k2"))
SELECT listed."k1", listed."k2", CAST(LEAST(GREATEST(COALESCE(part1."c1_above", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_above", CAST(LEAST(GREATEST(COALESCE(part1."c1_below", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1_below"
FROM listed
LEFT JOIN part1 ON part1."k1" IS NOT DISTINCT FROM listed."k1" AND part1."k2" IS NOT DISTINCT FROM listed."k2"
ORDER BY listed."_order"

-- case: functions in their total forms
SELECT COUNT(*) FROM visits WHERE score / nights = 2 AND abs(score) < 5 AND CAST(note AS integer) > 3 AND date_trunc('month', at) = '2024-01-01' AND ward || note LIKE 'a''%' AND round(cost, 1) BETWEEN -0.5 AND 1e3 AND EXTRACT(dow FROM at) IN (0, 6)
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT _uid FROM (SELECT * FROM (SELECT t."patient_id" AS _uid, CASE WHEN length(t."ward") <= 40 THEN t."ward" END AS "ward", (CASE WHEN TRY_CAST(t."cost" AS DOUBLE) BETWEEN CAST('0.0' AS DOUBLE) AND CAST('5000.0' AS DOUBLE) THEN TRY_CAST(t."cost" AS DOUBLE) WHEN isfinite(TRY_CAST(t."cost" AS DOUBLE)) THEN CASE WHEN TRY_CAST(t."cost" AS DOUBLE) < CAST('0.0' AS DOUBLE) THEN CAST('0.0' AS DOUBLE) ELSE CAST('5000.0' AS DOUBLE) END END + CAST('0.0' AS DOUBLE)) AS "cost", CASE WHEN t."at" BETWEEN CAST('2023-01-01T00:00:00' AS TIMESTAMP) AND CAST('2024-12-31T23:59:59.999999' AS TIMESTAMP) THEN t."at" WHEN isfinite(t."at") THEN CASE WHEN t."at" < CAST('2023-01-01T00:00:00' AS TIMESTAMP) THEN CAST('2023-01-01T00:00:00' AS TIMESTAMP) ELSE CAST('2024-12-31T23:59:59.999999' AS TIMESTAMP) END END AS "at", TRY_CAST(CASE WHEN TRY_CAST(t."nights" AS SMALLINT) BETWEEN 0 AND 14 THEN TRY_CAST(t."nights" AS SMALLINT) WHEN TRY_CAST(t."nights" AS SMALLINT) IS NOT NULL THEN CASE WHEN TRY_CAST(t."nights" AS SMALLINT) < 0 THEN 0 ELSE 14 END END AS SMALLINT) AS "nights", t."score" AS "score", CASE WHEN length(t."note") <= 1024 THEN t."note" END AS "note" FROM "visits" AS t WHERE t."patient_id" IS NOT NULL) WHERE ((TRY_CAST(abs(CAST("score" AS HUGEINT)) AS BIGINT) <= CAST(4 AS BIGINT)) AND (round("cost", CAST(1 AS INTEGER)) <= CAST('1000.0' AS DOUBLE)) AND (CAST('-0.5' AS DOUBLE) <= round("cost", CAST(1 AS INTEGER))) AND (CAST(4 AS INTEGER) <= TRY_CAST("note" AS INTEGER)) AND (TRY_CAST((CAST("score" AS HUGEINT) // NULLIF(CAST("nights" AS HUGEINT), CAST(0 AS HUGEINT))) AS BIGINT) = CAST(2 AS BIGINT)) AND (CAST(date_trunc('month', "at") AS TIMESTAMP) = CAST('2024-01-01T00:00:00' AS TIMESTAMP)) AND (CAST(date_part('dow', "at") AS BIGINT) IN (CAST(0 AS BIGINT), CAST(6 AS BIGINT))) AND (("ward" || "note") LIKE 'a''%')))),
weights AS MATERIALIZED (SELECT _uid, 524288 // COUNT(*) AS _weight FROM rows1 GROUP BY _uid HAVING COUNT(*) > 8),
part1 AS (SELECT SUM(_weight) AS "rows" FROM (SELECT COALESCE(weights._weight, 65536) AS _weight FROM rows1 LEFT JOIN weights ON rows1._uid = weights._uid))
SELECT CAST(LEAST(GREATEST(COALESCE(part1."rows", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "rows" FROM part1

-- case: a left join
SELECT COUNT(*), COUNT(kind) FROM patients LEFT JOIN visits USING (patient_id)
---- duckdb
WITH rows1 AS MATERIALIZED (SELECT _uid, "kind" AS "x1" FROM (SELECT l._uid, l."patient_id", r."patient_id_2", r."kind" FROM (SELECT t."patient_id" AS _uid, t."patient_id" AS "patient_id" FROM "patients" AS t WHERE t."patient_id" IS NOT NULL) AS l LEFT JOIN (SELECT t."patient_id" AS _uid, t."patient_id" AS "patient_id_2", CASE WHEN t."kind" IN ('urgent', 'planned') THEN t."kind" END AS "kind" FROM "visits" AS t WHERE t."patient_id" IS NOT NULL) AS r ON l._uid = r._uid AND ("patient_id" = "patient_id_2"))),
weights AS MATERIALIZED (SELECT _uid, 524288 // COUNT(*) AS _weight FROM rows1 GROUP BY _uid HAVING COUNT(*) > 8),
part1 AS (SELECT SUM(_weight) FILTER (WHERE "x1" IS NOT NULL) AS "c1", SUM(_weight) AS "rows" FROM (SELECT rows1."x1", COALESCE(weights._weight, 65536) AS _weight FROM rows1 LEFT JOIN weights ON rows1._uid = weights._uid))
SELECT CAST(LEAST(GREATEST(COALESCE(part1."c1", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "c1", CAST(LEAST(GREATEST(COALESCE(part1."rows", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "rows" FROM part1

-- case: no group is possible
SELECT sex, COUNT(*) FROM patients WHERE sex IN ('q') GROUP BY sex
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT _uid, "sex" AS "k1" FROM (SELECT * FROM (SELECT t."patient_id" AS _uid, CASE WHEN t."sex" IN ('f', 'm', 'x') THEN t."sex" END AS "sex" FROM "patients" AS t WHERE t."patient_id" IS NOT NULL) WHERE ("sex" IN ('q')))),
part1 AS (SELECT "k1", COUNT(*) AS "rows" FROM rows1 GROUP BY "k1"),
listed AS (SELECT * FROM (VALUES (0, CAST(NULL AS VARCHAR))) AS listed("_order", "k1") WHERE FALSE)
SELECT listed."k1", CAST(LEAST(GREATEST(COALESCE(part1."rows", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "rows"
FROM listed
LEFT JOIN part1 ON part1."k1" IS NOT DISTINCT FROM listed."k1"
ORDER BY listed."_order"

-- case: a unit whose id is text, with a cap on its length
-- schema: survey
SELECT town, COUNT(*) FROM people GROUP BY town
---- duckdb
WITH rows1 AS NOT MATERIALIZED (SELECT _uid, "town" AS "k1" FROM (SELECT CASE WHEN length(t."person") <= 1024 THEN t."person" END AS _uid, CASE WHEN length(t."town") <= 1024 THEN t."town" END AS "town" FROM "people" AS t WHERE CASE WHEN length(t."person") <= 1024 THEN t."person" END IS NOT NULL)),
part1 AS (SELECT "k1", COUNT(*) AS "selection_units" FROM rows1 GROUP BY "k1"),
part2 AS (SELECT "k1", COUNT(*) AS "rows" FROM rows1 GROUP BY "k1")
SELECT part1."k1", CAST(LEAST(GREATEST(COALESCE(part1."selection_units", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "selection_units", CAST(LEAST(GREATEST(COALESCE(part2."rows", 0), -4611686018427387904), 4611686018427387904) AS BIGINT) AS "rows"
FROM part1
LEFT JOIN part2 ON part2."k1" IS NOT DISTINCT FROM part1."k1"
ORDER BY part1."k1" NULLS LAST
