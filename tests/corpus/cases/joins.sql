-- Joins along the keys, with public tables, and with oneself.

-- case: visits with the patient's sex
SELECT p.sex, COUNT(*) AS visits, AVG(v.cost) AS mean FROM visits v JOIN patients p ON v.patient_id = p.patient_id GROUP BY p.sex ORDER BY p.sex NULLS LAST

-- case: USING
SELECT language, kind, COUNT(*) FROM patients JOIN visits USING (patient_id) GROUP BY language, kind ORDER BY 1, 2

-- case: NATURAL JOIN
SELECT insured, COUNT(*) FROM patients NATURAL JOIN visits GROUP BY insured ORDER BY insured

-- case: two hops
SELECT p.insured, r.drug, COUNT(*) AS n, SUM(r.price) AS price
FROM prescriptions r
JOIN visits v ON r.visit_id = v.visit_id
JOIN patients p ON v.patient_id = p.patient_id
GROUP BY 1, 2 ORDER BY 1, 2

-- case: comma joins
SELECT v.ward, COUNT(*) FROM visits v, prescriptions r WHERE r.visit_id = v.visit_id AND r.drug = 'insulin' GROUP BY v.ward ORDER BY v.ward

-- case: comma joins of three tables
SELECT p.language, COUNT(DISTINCT p.patient_id) AS patients, SUM(r.days) AS days
FROM patients p, visits v, prescriptions r
WHERE p.patient_id = v.patient_id AND v.visit_id = r.visit_id AND v.urgent
GROUP BY p.language ORDER BY p.language

-- case: LEFT JOIN counts patients without visits
SELECT COUNT(*) AS rows, COUNT(v.visit_id) AS visits, COUNT(DISTINCT p.patient_id) AS patients
FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id

-- case: LEFT JOIN with a condition on the right
SELECT p.sex, COUNT(v.visit_id) AS emergencies FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id AND v.kind = 'emergency'
GROUP BY p.sex ORDER BY p.sex NULLS LAST

-- case: patients without any visit by LEFT JOIN
SELECT COUNT(*) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id WHERE v.patient_id IS NULL

-- case: RIGHT JOIN
SELECT COUNT(*), COUNT(v.cost) FROM visits v RIGHT JOIN patients p ON v.patient_id = p.patient_id

-- case: FULL JOIN on the unit
SELECT COUNT(*) AS rows, COUNT(p.patient_id) AS left_side, COUNT(v.visit_id) AS right_side
FROM patients p FULL JOIN visits v ON v.patient_id = p.patient_id AND v.nights = 3

-- case: with a public table
SELECT w.building, COUNT(*) AS n, SUM(v.cost) AS total FROM visits v JOIN wards w ON v.ward = w.ward GROUP BY w.building ORDER BY w.building

-- case: with a public table, by its key
SELECT w.ward, w.floor, COUNT(*) AS n FROM visits v JOIN wards w ON w.ward = v.ward GROUP BY w.ward, w.floor ORDER BY w.ward

-- case: with two public tables
SELECT d.specialty, g.chapter, COUNT(*) AS n
FROM visits v JOIN doctors d ON v.doctor_id = d.doctor_id JOIN diagnoses g ON g.code = v.diagnosis
GROUP BY d.specialty, g.chapter ORDER BY 1, 2

-- case: arithmetic with a public column
SELECT v.ward, SUM(v.nights * 1.0 / w.beds) AS occupancy FROM visits v JOIN wards w USING (ward) GROUP BY v.ward ORDER BY v.ward

-- case: a public condition
SELECT COUNT(*) FROM visits v JOIN diagnoses d ON v.diagnosis = d.code WHERE d.chronic AND d.chapter LIKE 'c%'

-- case: LEFT JOIN with a public table
SELECT COALESCE(w.building, 'elsewhere') AS building, COUNT(*) AS n FROM visits v LEFT JOIN wards w ON w.ward = v.ward AND w.floor > 0
GROUP BY 1 ORDER BY 1

-- case: a public table that keeps its rows
SELECT w.ward, COUNT(v.visit_id) AS n FROM wards w LEFT JOIN visits v ON v.ward = w.ward AND v.nights > 10 GROUP BY w.ward ORDER BY w.ward

-- case: a public table against a range
SELECT b.label, COUNT(*) AS n
FROM visits v JOIN (VALUES ('cheap', 0, 1000), ('fair', 1000, 3000), ('dear', 3000, 5001)) AS b(label, low, high) ON v.cost >= b.low AND v.cost < b.high
GROUP BY b.label ORDER BY b.label

-- case: a public table two joins away
SELECT g.chapter, r.drug, COUNT(*) FROM prescriptions r JOIN visits v USING (visit_id) JOIN diagnoses g ON g.code = v.diagnosis
GROUP BY 1, 2 ORDER BY 1, 2

-- case: a sub-select of public rows
SELECT v.ward, COUNT(*) FROM visits v JOIN (SELECT ward FROM wards WHERE building = 'east') e ON e.ward = v.ward GROUP BY v.ward ORDER BY 1

-- case: public rows aggregated, then joined
SELECT b.beds, COUNT(*) AS n FROM visits v
JOIN wards w ON w.ward = v.ward
JOIN (SELECT building, SUM(beds) AS beds FROM wards GROUP BY building) b ON b.building = w.building
GROUP BY b.beds ORDER BY b.beds

-- case: only public tables
SELECT w.building, COUNT(*) AS wards, SUM(w.beds) AS beds, MAX(w.floor) AS top FROM wards w GROUP BY w.building ORDER BY w.building

-- case: rows of a public table
SELECT * FROM wards WHERE beds > 20 ORDER BY ward

-- case: a self-join on the patient
SELECT COUNT(*) AS pairs FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.visit_id < b.visit_id

-- case: readmission within thirty days
SELECT a.ward, COUNT(DISTINCT a.visit_id) AS followed
FROM visits a JOIN visits b ON b.patient_id = a.patient_id AND b.admitted > a.admitted AND b.admitted <= a.admitted + INTERVAL '30 days'
GROUP BY a.ward ORDER BY a.ward

-- case: two facts of one patient
SELECT e.ward, COUNT(*) AS n FROM visits e JOIN visits f ON e.patient_id = f.patient_id WHERE e.kind = 'emergency' AND f.kind = 'follow-up' AND f.admitted > e.admitted
GROUP BY e.ward ORDER BY e.ward

-- case: a join of sub-selects
SELECT u.sex, COUNT(*) AS n, AVG(x.nights) AS nights
FROM (SELECT patient_id, sex FROM patients WHERE insured) AS u
JOIN (SELECT patient_id, nights FROM visits WHERE urgent) AS x ON x.patient_id = u.patient_id
GROUP BY u.sex ORDER BY u.sex NULLS FIRST

-- case: a join by the visit alone
SELECT v.kind, AVG(r.dose) AS dose FROM visits v JOIN prescriptions r ON r.visit_id = v.visit_id GROUP BY v.kind ORDER BY v.kind

-- case: brothers and sisters of a join written the long way
SELECT COUNT(*) FROM (visits AS v INNER JOIN patients AS p ON (p.patient_id = v.patient_id)) INNER JOIN wards AS w ON (w.ward = v.ward) WHERE w.floor = 2 AND p.risk > 5

-- case: CROSS JOIN with a small public list
SELECT t.threshold, COUNT(*) AS above FROM visits v CROSS JOIN (VALUES (1000), (2000), (3000)) AS t(threshold) WHERE v.cost > t.threshold GROUP BY t.threshold ORDER BY 1

-- case: public rows LEFT JOIN what was counted
SELECT w.ward, w.beds, c.n, ROUND(1.0 * c.n / w.beds, 2) AS per_bed
FROM wards w LEFT JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) c ON c.ward = w.ward ORDER BY w.ward

-- case: two counts joined
SELECT a.ward, a.n AS visits, b.n AS prescriptions
FROM (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) a
JOIN (SELECT v.ward, COUNT(*) AS n FROM prescriptions r JOIN visits v USING (visit_id) GROUP BY v.ward) b ON a.ward = b.ward
ORDER BY a.ward
