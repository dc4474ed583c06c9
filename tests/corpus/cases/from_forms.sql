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
