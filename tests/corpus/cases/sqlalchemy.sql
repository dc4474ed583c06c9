-- What SQLAlchemy and ORMs render.

-- case: count of a table
SELECT count(*) AS count_1
FROM visits

-- case: count of a sub-select
SELECT count(*) AS count_1
FROM (SELECT visits.visit_id AS visits_visit_id, visits.patient_id AS visits_patient_id, visits.ward AS visits_ward
FROM visits
WHERE visits.urgent IS true) AS anon_1

-- case: group by a labelled column
SELECT visits.ward, count(visits.visit_id) AS n
FROM visits GROUP BY visits.ward ORDER BY n DESC

-- case: anonymous sub-selects joined
SELECT anon_1.ward, anon_1.n, anon_2.total
FROM (SELECT visits.ward AS ward, count(*) AS n
FROM visits GROUP BY visits.ward) AS anon_1 JOIN (SELECT visits.ward AS ward, sum(visits.paid) AS total
FROM visits GROUP BY visits.ward) AS anon_2 ON anon_1.ward = anon_2.ward ORDER BY anon_1.ward

-- case: a long IN list
SELECT count(*) AS count_1
FROM visits
WHERE visits.doctor_id IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30) AND (visits.diagnosis NOT IN ('I10', 'I21', 'Z99'))

-- case: an aliased self-join
SELECT count(DISTINCT visits_1.patient_id) AS count_1
FROM visits AS visits_1 JOIN visits AS visits_2 ON visits_1.patient_id = visits_2.patient_id AND visits_2.admitted > visits_1.admitted
WHERE visits_1.kind = 'emergency' AND visits_2.kind = 'follow-up'

-- case: case and coalesce
SELECT CASE WHEN (visits.cost > 1000) THEN 'dear' ELSE 'cheap' END AS band, coalesce(sum(visits.paid), 0) AS paid
FROM visits GROUP BY CASE WHEN (visits.cost > 1000) THEN 'dear' ELSE 'cheap' END ORDER BY band

-- case: casts and extract
SELECT CAST(EXTRACT(year FROM visits.admitted) AS INTEGER) AS y, CAST(avg(visits.cost) AS FLOAT) AS mean
FROM visits GROUP BY y ORDER BY y

-- case: a CTE
WITH totals AS
(SELECT visits.patient_id AS patient_id, count(*) AS n
FROM visits GROUP BY visits.patient_id)
SELECT patients.language, avg(totals.n) AS avg_1
FROM patients JOIN totals ON patients.patient_id = totals.patient_id GROUP BY patients.language ORDER BY patients.language

-- case: exists
SELECT count(*) AS count_1
FROM patients
WHERE EXISTS (SELECT *
FROM visits
WHERE visits.patient_id = patients.patient_id AND visits.ward = 'surgery')

-- case: Django's aggregation over an annotation
SELECT AVG("__col1") AS "n__avg" FROM (SELECT "patients"."patient_id" AS "Col1", COUNT("visits"."visit_id") AS "__col1" FROM "patients" LEFT OUTER JOIN "visits" ON ("patients"."patient_id" = "visits"."patient_id") GROUP BY "patients"."patient_id") subquery

-- case: Django's values and count
SELECT "visits"."kind", COUNT("visits"."visit_id") AS "n" FROM "visits" WHERE ("visits"."admitted" >= '2024-01-01T00:00:00'::timestamp AND NOT ("visits"."note" LIKE '%test%' AND "visits"."note" IS NOT NULL)) GROUP BY "visits"."kind" ORDER BY "n" DESC

-- case: pandas reading a query
SELECT "ward", COUNT(*) AS "n", SUM("nights") AS "nights" FROM visits WHERE ("nights" > 0) GROUP BY "ward" HAVING (COUNT(*) > 10) ORDER BY "ward"

-- case: ibis
SELECT "t0"."ward", COUNT(*) AS "CountStar()", SUM("t0"."paid") AS "paid" FROM "visits" AS "t0" WHERE "t0"."nights" > CAST(2 AS TINYINT) GROUP BY 1 ORDER BY "t0"."ward" ASC
---- duckdb
SELECT ward, COUNT(*), SUM(paid) FROM visits WHERE nights > 2 GROUP BY 1 ORDER BY 1

-- case: dbplyr
SELECT "ward", COUNT(*) AS "n", AVG("cost") AS "mean" FROM (SELECT "visits".*, CASE WHEN ("nights" > 2.0) THEN 'long' ELSE 'short' END AS "stay" FROM "visits") AS "q01" WHERE ("stay" = 'long') GROUP BY "ward" ORDER BY "ward"

-- case: an ORM loading objects
SELECT patients.patient_id AS patients_patient_id, patients.name AS patients_name
FROM patients
WHERE patients.patient_id = 17
LIMIT 1
---- error
NotPrivate 0A000: this would return single private rows
LINE 1: SELECT patients.patient_id AS patients_patient_id, patients.name AS patients_name
               ^
HINT:  Aggregate, for example: SELECT "name", COUNT(*) FROM patients GROUP BY "name".
