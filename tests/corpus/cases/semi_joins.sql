-- IN, EXISTS and their negations.

-- case: visits of smokers
SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT patient_id FROM patients WHERE smoker)

-- case: patients who were never urgent
SELECT COUNT(*) FROM patients WHERE patient_id NOT IN (SELECT patient_id FROM visits WHERE urgent)

-- case: EXISTS
SELECT p.sex, COUNT(*) AS n FROM patients p WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.kind = 'emergency')
GROUP BY p.sex ORDER BY p.sex NULLS LAST

-- case: NOT EXISTS
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT * FROM visits v WHERE v.patient_id = p.patient_id)

-- case: EXISTS over two tables
SELECT COUNT(DISTINCT p.patient_id) FROM patients p
WHERE EXISTS (SELECT 1 FROM visits v JOIN prescriptions r ON r.visit_id = v.visit_id WHERE v.patient_id = p.patient_id AND r.drug = 'statin')

-- case: EXISTS along a key below the patient
SELECT v.ward, COUNT(*) AS n FROM visits v WHERE EXISTS (SELECT 1 FROM prescriptions r WHERE r.visit_id = v.visit_id AND r.price > 400)
GROUP BY v.ward ORDER BY v.ward

-- case: visits without a prescription
SELECT kind, COUNT(*) FROM visits v WHERE NOT EXISTS (SELECT 1 FROM prescriptions r WHERE r.visit_id = v.visit_id) GROUP BY kind ORDER BY kind

-- case: IN along a key below the patient
SELECT COUNT(*), AVG(cost) FROM visits WHERE visit_id IN (SELECT visit_id FROM prescriptions WHERE drug = 'metformin')

-- case: NOT IN along a key below the patient
SELECT COUNT(*) FROM visits WHERE visit_id NOT IN (SELECT visit_id FROM prescriptions WHERE generic)

-- case: IN over public rows
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE building = 'main')

-- case: NOT IN over public rows
SELECT diagnosis, COUNT(*) FROM visits WHERE diagnosis NOT IN (SELECT code FROM diagnoses WHERE chronic) GROUP BY diagnosis ORDER BY diagnosis

-- case: EXISTS over public rows
SELECT COUNT(*) FROM visits v WHERE EXISTS (SELECT 1 FROM diagnoses d WHERE d.code = v.diagnosis AND d.chapter = 'respiratory')

-- case: IN over what was released
SELECT kind, COUNT(*) AS n FROM visits WHERE ward IN (SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 3) GROUP BY kind ORDER BY kind

-- case: IN by a per-patient aggregate
SELECT COUNT(*) AS visits_of_regulars FROM visits WHERE patient_id IN (SELECT patient_id FROM visits GROUP BY patient_id HAVING COUNT(*) >= 15)

-- case: a flag by EXISTS in the select list of a sub-select
SELECT had_emergency, COUNT(*) AS n, AVG(risk) AS risk
FROM (SELECT p.risk, EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.kind = 'emergency' AND v.nights > 8) AS had_emergency FROM patients p) t
GROUP BY had_emergency ORDER BY had_emergency

-- case: both conditions
SELECT COUNT(*) FROM patients p
WHERE EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.ward = 'surgery')
  AND NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.ward = 'urology')

-- case: EXISTS under OR
SELECT COUNT(*) FROM patients p WHERE p.risk > 8 OR EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.nights = 11)

-- case: nested EXISTS
SELECT COUNT(*) FROM patients p WHERE EXISTS (
  SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND EXISTS (SELECT 1 FROM prescriptions r WHERE r.visit_id = v.visit_id AND r.refills > 6))

-- case: IN correlated too
SELECT COUNT(*) FROM visits v WHERE 'insulin' IN (SELECT r.drug FROM prescriptions r WHERE r.visit_id = v.visit_id)

-- case: = ANY
SELECT COUNT(*) FROM visits WHERE patient_id = ANY (SELECT patient_id FROM patients WHERE language = 'pl')

-- case: a count below a condition, by a correlated scalar
SELECT COUNT(*) FROM patients p WHERE (SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id) > 12

-- case: above one's own mean
SELECT COUNT(*) FROM visits v WHERE v.paid > (SELECT AVG(w.paid) FROM visits w WHERE w.patient_id = v.patient_id)

-- case: above the mean of all
SELECT ward, COUNT(*) AS n FROM visits WHERE cost > (SELECT AVG(cost) FROM visits) GROUP BY ward ORDER BY ward

-- case: IN within IN over public tables
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT ward FROM wards WHERE floor IN (SELECT floor FROM wards WHERE beds > 20))

-- case: EXISTS within IN over public tables
SELECT COUNT(*) FROM visits WHERE ward IN (SELECT w.ward FROM wards w WHERE EXISTS (SELECT 1 FROM doctors d WHERE d.ward = w.ward))

-- case: SEMI JOIN
SELECT COUNT(*) FROM patients SEMI JOIN visits USING (patient_id)

-- case: ANTI JOIN
SELECT sex, COUNT(*) FROM patients ANTI JOIN visits USING (patient_id) GROUP BY sex ORDER BY sex NULLS LAST

-- case: a union of public rows and a release, joined
SELECT w.floor, COUNT(*) FROM visits v JOIN wards w ON v.ward = w.ward JOIN (SELECT ward AS k FROM wards UNION SELECT ward FROM visits GROUP BY ward) u ON w.ward = u.k GROUP BY w.floor ORDER BY w.floor
