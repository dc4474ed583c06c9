-- What may stand in FROM, as tools write it: joins in parentheses, series, lists, LATERAL, PIVOT, DISTINCT ON.

-- case: joins in parentheses, as Access nests them
SELECT w.building, COUNT(*) AS visits, AVG(v.nights) AS nights
FROM ((visits v INNER JOIN patients p ON v.patient_id = p.patient_id) INNER JOIN wards w ON v.ward = w.ward) INNER JOIN doctors d ON d.doctor_id = v.doctor_id
WHERE p.insured GROUP BY w.building ORDER BY w.building

-- case: all of FROM in parentheses
SELECT COUNT(*) FROM (((visits v JOIN patients p ON v.patient_id = p.patient_id) JOIN wards w ON v.ward = w.ward) JOIN doctors d ON d.doctor_id = v.doctor_id)

-- case: sub-selects first in parentheses
SELECT w.floor, COUNT(*) AS n
FROM ((SELECT ward, patient_id FROM visits) AS t1 JOIN (SELECT patient_id AS pid FROM patients WHERE insured) AS t3 ON t1.patient_id = t3.pid)
JOIN (SELECT ward AS w, floor FROM wards) AS w ON w.w = t1.ward
GROUP BY w.floor ORDER BY w.floor

-- case: a sub-select and a table in parentheses on the right
SELECT COUNT(*), COUNT(v.visit_id) FROM patients p LEFT JOIN ((SELECT * FROM visits WHERE urgent) v JOIN wards w ON v.ward = w.ward) ON v.patient_id = p.patient_id

-- case: joins in parentheses under one name
SELECT x.ward, COUNT(*) AS n
FROM ((SELECT ward, patient_id FROM visits) v JOIN (SELECT patient_id AS pid FROM patients) p ON v.patient_id = p.pid) AS x
GROUP BY x.ward ORDER BY x.ward

-- case: parentheses without a join
SELECT COUNT(*) FROM ((visits))

-- case: joins in parentheses within EXISTS
SELECT COUNT(*) FROM patients p
WHERE EXISTS (SELECT 1 FROM ((visits v JOIN wards w ON v.ward = w.ward) JOIN doctors d ON d.doctor_id = v.doctor_id)
              WHERE v.patient_id = p.patient_id AND d.specialty = 'surgeon' AND w.floor = 1)

-- case: joins in parentheses of released and public rows
SELECT w.floor, SUM(t.n) AS n FROM wards w JOIN ((SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) t JOIN doctors d ON d.ward = t.ward) ON w.ward = t.ward
GROUP BY w.floor ORDER BY w.floor

-- case: joins in parentheses of public rows
SELECT q.floor, COUNT(*) AS n FROM diagnoses x CROSS JOIN (wards w JOIN doctors d USING (ward)) AS q GROUP BY q.floor ORDER BY q.floor

-- case: a series of days beside private rows
SELECT t.d, COUNT(v.visit_id) AS n
FROM generate_series(DATE '2024-01-01', DATE '2024-01-31', INTERVAL '1 day') AS t(d) LEFT JOIN visits v ON v.day = t.d::date
GROUP BY t.d ORDER BY t.d

-- case: a series of months, as PostgreSQL names its column
SELECT m, COUNT(v.visit_id) AS n
FROM generate_series(TIMESTAMP '2023-01-01', TIMESTAMP '2023-12-01', INTERVAL '1 month') AS m LEFT JOIN visits v ON DATE_TRUNC('month', v.admitted) = m
GROUP BY m ORDER BY m

-- case: a range of numbers beside private rows
SELECT d, COUNT(*) AS n FROM visits v JOIN range(0, 5) AS t(d) ON v.nights = t.d GROUP BY d ORDER BY d

-- case: a list beside private rows
SELECT x, COUNT(*) AS n FROM unnest(ARRAY['emergency', 'scheduled']) AS t(x) JOIN visits v ON v.kind = t.x GROUP BY x ORDER BY x

-- case: MetricFlow's time spine
SELECT s.ds, COUNT(*) AS n
FROM (SELECT DATE_TRUNC('day', gs.ds) AS ds FROM generate_series(DATE '2024-01-01', DATE '2024-01-10', INTERVAL 1 DAY) AS gs(ds)) s
JOIN visits v ON v.day = s.ds GROUP BY s.ds ORDER BY s.ds

-- case: a spine as a CTE that unnests a series
WITH spine AS (SELECT unnest(generate_series(DATE '2024-01-01', DATE '2024-01-10', INTERVAL '1 day')) AS day)
SELECT s.day, COUNT(v.visit_id) AS n FROM spine s LEFT JOIN visits v ON v.day = s.day::date GROUP BY s.day ORDER BY 1

-- case: bands computed from a range
SELECT b.label, COUNT(*) AS n
FROM visits v JOIN (SELECT 'from ' || (i * 1000) AS label, i * 1000 AS low, (i + 1) * 1000 AS high FROM range(5) t(i)) b ON v.cost >= b.low AND v.cost < b.high
GROUP BY b.label ORDER BY b.label

-- case: IN a list that is unnested
SELECT COUNT(*) FROM visits v WHERE v.kind IN (SELECT x FROM unnest(ARRAY['emergency', 'scheduled']) AS t(x))

-- case: a year worked out of a release
SELECT COUNT(*) FROM visits v WHERE EXTRACT(YEAR FROM v.day) = (SELECT EXTRACT(YEAR FROM MAX(day)) FROM visits)

-- case: all columns of a release but one
SELECT COUNT(*) FROM visits v JOIN (SELECT * EXCLUDE (n) FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward)) t ON t.ward = v.ward

-- case: a list that reads private rows
SELECT COUNT(*) FROM visits v, unnest([v.nights, 2]) AS t(x)
---- error
Unsupported 0A000: a list or series in FROM cannot read private rows
LINE 1: SELECT COUNT(*) FROM visits v, unnest([v.nights, 2]) AS t(x)
                                               ^
HINT:  Write its values out.

-- case: dearer than the average of its ward
SELECT v.kind, COUNT(*) AS n FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.ward = v.ward) GROUP BY v.kind ORDER BY v.kind

-- case: below a part of the average of its ward and kind
SELECT COUNT(*) FROM visits v WHERE v.nights < (SELECT 0.5 * AVG(x.nights) FROM visits x WHERE x.ward = v.ward AND x.kind = v.kind)

-- case: the outer block's columns are found by their table's name
SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(cost) FROM visits WHERE ward = v.ward)

-- case: a count of a group that there is not
SELECT COUNT(*) FROM patients p WHERE (SELECT COUNT(*) + 1 FROM visits x WHERE x.ward = p.city) = 1

-- case: a group's average read per patient
SELECT AVG(n) AS mean FROM (SELECT patient_id, COUNT(*) AS n FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.ward = v.ward) GROUP BY patient_id) t

-- case: a group's average of a CTE, with a sub-select of its own
WITH long AS (SELECT * FROM visits WHERE nights > (SELECT AVG(nights) FROM visits))
SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM long x WHERE x.ward = v.ward)

-- case: a group of all others
SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.ward <> v.ward)
---- error
Unsupported 0A000: a sub-select that gives one value may be compared with the outer block by = only
LINE 1: SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.ward <> v.ward)
                                                                                             ^
HINT:  Join the rows in FROM and aggregate there, or use a window function with PARTITION BY the unit.

-- case: the group of another unit
SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.patient_id = v.doctor_id)
---- error
NotPrivate 0A000: a sub-select over private rows must equate its privacy unit with the outer one
LINE 1: SELECT COUNT(*) FROM visits v WHERE v.cost > (SELECT AVG(x.cost) FROM visits x WHERE x.patient_id = v.doctor_id)
                                                             ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  "v.doctor_id" is not the privacy unit: a row of "v" belongs to that of "patient_id", whomever else it names. In the sub-select, add WHERE x.patient_id = v.patient_id.

-- case: LATERAL, several aggregates of each patient
SELECT p.sex, AVG(x.n) AS visits, AVG(x.m) AS longest
FROM patients p LEFT JOIN LATERAL (SELECT COUNT(*), MAX(v.nights) FROM visits v WHERE v.patient_id = p.patient_id AND v.urgent) AS x(n, m) ON TRUE
GROUP BY p.sex ORDER BY p.sex NULLS LAST

-- case: LATERAL behind a comma
SELECT COUNT(*) FROM patients p, visits v, LATERAL (SELECT COUNT(*) AS n FROM prescriptions r WHERE r.visit_id = v.visit_id) x
WHERE p.patient_id = v.patient_id AND x.n > 1 AND p.insured

-- case: LATERAL with a condition on what it counts
SELECT COUNT(*) FROM patients p JOIN LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.patient_id = p.patient_id) x ON x.n > 10

-- case: LATERAL, the latest visit of each patient
SELECT x.kind, COUNT(*) AS patients
FROM patients p JOIN LATERAL (SELECT v.kind FROM visits v WHERE v.patient_id = p.patient_id ORDER BY v.admitted DESC, v.visit_id LIMIT 1) x ON TRUE
GROUP BY x.kind ORDER BY x.kind

-- case: LATERAL, at most two visits of each patient, or none
SELECT COUNT(*), COUNT(x.nights) FROM patients p
LEFT JOIN LATERAL (SELECT v.nights FROM visits v WHERE v.patient_id = p.patient_id AND v.urgent ORDER BY v.admitted DESC, v.visit_id LIMIT 2) x ON TRUE

-- case: LATERAL rows without a limit
SELECT COUNT(*) FROM (SELECT * FROM patients p CROSS JOIN LATERAL (SELECT v.nights FROM visits v WHERE v.patient_id = p.patient_id AND v.urgent) x) t WHERE nights > 2

-- case: LATERAL over a public table
SELECT x.floor, COUNT(*) AS n FROM visits v CROSS JOIN LATERAL (SELECT w.floor FROM wards w WHERE w.ward = v.ward) x GROUP BY x.floor ORDER BY x.floor

-- case: LATERAL that names a computed column
SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT v.nights * 2 AS double) x WHERE x.double > 4

-- case: LATERAL, the average of a group
SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT AVG(y.nights) AS a FROM visits y WHERE y.ward = v.ward) x WHERE v.nights > x.a

-- case: LATERAL, two aggregates of a group
SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT AVG(y.nights) AS a, COUNT(*) AS n FROM visits y WHERE y.ward = v.ward) x WHERE v.nights > x.a
---- error
Unsupported 0A000: LATERAL gives several aggregates of one unit's rows, or one of a group's
LINE 1: SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT AVG(y.nights) AS a, COUNT(*) AS n FROM visits y WHERE y.ward = v.ward) x WHERE v.nights > x.a
                                                                 ^
HINT:  Join with the grouped rows: JOIN (SELECT ward, AVG(cost) AS a, COUNT(*) AS n FROM visits GROUP BY ward) AS x ON x.ward = v.ward.

-- case: LATERAL, the first visit of each ward
SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT y.nights FROM visits y WHERE y.ward = v.ward ORDER BY y.day LIMIT 1) x
---- error
NotPrivate 0A000: a window function over private rows must have PARTITION BY the privacy unit
LINE 1: SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT y.nights FROM visits y WHERE y.ward = v.ward ORDER BY y.day LIMIT 1) x
                                                                                              ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add PARTITION BY y.patient_id; or aggregate first, with GROUP BY: window functions over aggregated rows are fine.

-- case: LATERAL, the visit before
SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT y.nights FROM visits y WHERE y.patient_id = v.patient_id AND y.day < v.day ORDER BY y.day DESC LIMIT 1) x
---- error
Unsupported 0A000: this form of LATERAL over private rows is not supported
LINE 1: SELECT COUNT(*) FROM visits v CROSS JOIN LATERAL (SELECT y.nights FROM visits y WHERE y.patient_id = v.patient_id AND y.day < v.day ORDER BY y.day DESC LIMIT 1) x
                                                                 ^
HINT:  It finds rows by =, for example: JOIN LATERAL (SELECT v.cost FROM visits v WHERE v.patient_id = p.patient_id ORDER BY v.day LIMIT 1) AS x ON TRUE.

-- case: LATERAL from public rows
SELECT d.name, x.n FROM doctors d LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.doctor_id = d.doctor_id) x ON TRUE
---- error
Unsupported 0A000: LATERAL is for private rows that look at rows of their own unit
LINE 1: SELECT d.name, x.n FROM doctors d LEFT JOIN LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.doctor_id = d.doctor_id) x ON TRUE
                                                                    ^
HINT:  Join with a sub-select that is grouped by what it is compared with: LEFT JOIN (SELECT doctor_id, COUNT(*) AS n FROM visits GROUP BY doctor_id) AS x ON x.doctor_id = d.doctor_id.

-- case: EXISTS from public rows
SELECT d.name FROM doctors d WHERE EXISTS (SELECT 1 FROM visits v WHERE v.doctor_id = d.doctor_id)
---- error
NotPrivate 0A000: a sub-select over private rows must aggregate them
LINE 1: SELECT d.name FROM doctors d WHERE EXISTS (SELECT 1 FROM visits v WHERE v.doctor_id = d.doctor_id)
                                                          ^
HINT:  Compare a count with a number that the noise does not reach: (SELECT COUNT(*) FROM …) > 20.

-- case: DISTINCT ON the patient
SELECT kind, COUNT(*) AS patients
FROM (SELECT DISTINCT ON (patient_id) patient_id, kind FROM visits ORDER BY patient_id, admitted, visit_id) t GROUP BY kind ORDER BY kind

-- case: DISTINCT ON the patient and more, by position and alias
SELECT w, COUNT(*) AS n
FROM (SELECT DISTINCT ON (1, kind) patient_id AS p, ward AS w, kind FROM visits ORDER BY p, kind, admitted DESC, visit_id) t GROUP BY w ORDER BY w

-- case: DISTINCT ON within a CTE over a join
WITH firsts AS (SELECT DISTINCT ON (v.patient_id) v.*, p.sex FROM visits v JOIN patients p USING (patient_id) ORDER BY v.patient_id, v.admitted, v.visit_id)
SELECT sex, AVG(nights) AS nights FROM firsts GROUP BY sex ORDER BY sex NULLS LAST

-- case: DISTINCT ON without the patient
SELECT COUNT(*) FROM (SELECT DISTINCT ON (ward) ward, patient_id FROM visits ORDER BY ward, admitted) t
---- error
NotPrivate 0A000: DISTINCT ON over private rows must contain the privacy unit
LINE 1: SELECT COUNT(*) FROM (SELECT DISTINCT ON (ward) ward, patient_id FROM visits ORDER BY ward, admitted) t
                                                  ^
DETAIL:  Otherwise one unit's rows decide about another's.
HINT:  Add the unit to its list: each unit's rows are then chosen from alone. Or aggregate, with GROUP BY.

-- case: PIVOT as a statement
PIVOT visits ON kind IN ('emergency', 'scheduled') USING COUNT(*) GROUP BY ward ORDER BY ward

-- case: PIVOT as a statement, of a sub-select, two aggregates
PIVOT (SELECT ward, kind, nights FROM visits) ON kind IN ('emergency', 'scheduled') USING SUM(nights) AS nights, COUNT(*) AS n ORDER BY ward

-- case: PIVOT as a statement, behind WITH
WITH t AS (SELECT ward, kind FROM visits WHERE urgent) PIVOT t ON kind IN ('emergency', 'scheduled') USING COUNT(*) ORDER BY ward

-- case: UNPIVOT as a statement, of a release
UNPIVOT (SELECT ward, COUNT(*) AS visits, SUM(nights) AS nights FROM visits GROUP BY ward) ON visits, nights INTO NAME what VALUE n ORDER BY ward, what

-- case: PIVOT as a statement without a list
PIVOT visits ON kind USING COUNT(*) GROUP BY ward
---- error
Unsupported 0A000: PIVOT needs the list of values that become columns
LINE 1: PIVOT visits ON kind USING COUNT(*) GROUP BY ward
              ^
HINT:  For example: PIVOT (SUM(cost) FOR sex IN ('f', 'm')).

-- case: a recursive spine beside a release
WITH RECURSIVE d AS (SELECT DATE '2024-01-01' AS day UNION ALL SELECT CAST(day + INTERVAL 1 DAY AS DATE) FROM d WHERE day < DATE '2024-01-05')
SELECT d.day, n FROM d LEFT JOIN (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) v ON v.day = d.day ORDER BY d.day

-- case: recursive numbers beside private rows
WITH RECURSIVE d(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM d WHERE i < 5)
SELECT d.i, COUNT(v.visit_id) AS n FROM d LEFT JOIN visits v ON v.nights = d.i GROUP BY d.i ORDER BY d.i

-- case: recursion over released rows
WITH RECURSIVE d AS (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind UNION ALL SELECT kind, n - 1000 FROM d WHERE n > 1000)
SELECT kind, MIN(n) AS rest FROM d GROUP BY kind ORDER BY kind

-- case: recursion that begins with private rows
WITH RECURSIVE d(i) AS (SELECT nights FROM visits UNION ALL SELECT i + 1 FROM d WHERE i < 5) SELECT SUM(i) FROM d
---- error
Unsupported 0A000: WITH RECURSIVE over private rows is not supported
LINE 1: WITH RECURSIVE d(i) AS (SELECT nights FROM visits UNION ALL SELECT i + 1 FROM d WHERE i < 5) SELECT SUM(i) FROM d
                       ^
HINT:  Numbers and dates in a row come from generate_series, for example: FROM generate_series(1, 12) AS t(i).

-- case: recursion whose step reads private rows
WITH RECURSIVE d(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM d WHERE i < (SELECT COUNT(*) FROM visits)) SELECT COUNT(i) FROM d
---- error
Unsupported 0A000: WITH RECURSIVE over private rows is not supported
LINE 1: WITH RECURSIVE d(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM d WHERE i < (SELECT COUNT(*) FROM visits)) SELECT COUNT(i) FROM d
                       ^
HINT:  Numbers and dates in a row come from generate_series, for example: FROM generate_series(1, 12) AS t(i).
