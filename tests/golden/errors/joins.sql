-- Joins that would make a row of two units.

-- case: on something else than the unit
SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.ward = b.ward
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: the unit only in an OR
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id OR a.cost = b.cost
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id OR a.cost = b.cost
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: the unit compared by <
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id < b.patient_id
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id < b.patient_id
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: the unit equated within one side
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = a.patient_id
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = a.patient_id
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: a unit that was computed
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id + 0 = b.patient_id
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id + 0 = b.patient_id
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: CROSS JOIN
SELECT COUNT(*) FROM visits CROSS JOIN patients
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits CROSS JOIN patients
                                               ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: WHERE visits.patient_id = patients.patient_id.

-- case: LATERAL
SELECT COUNT(*) FROM visits, LATERAL (SELECT * FROM patients) p
---- error
ERROR 0A000 (Unsupported):  this form of LATERAL over private rows is not supported
LINE 1: SELECT COUNT(*) FROM visits, LATERAL (SELECT * FROM patients) p
                                                     ^
HINT:  It finds rows by =, for example: JOIN LATERAL (SELECT v.cost FROM visits v WHERE v.patient_id = p.patient_id ORDER BY v.day LIMIT 1) AS x ON TRUE.

-- case: rows that are units
-- schema: rows
SELECT COUNT(*) FROM events a JOIN events b ON a.kind = b.kind
---- error
ERROR 0A000 (NotPrivate):  where each row is its own privacy unit, private tables cannot be joined
LINE 1: SELECT COUNT(*) FROM events a JOIN events b ON a.kind = b.kind
                                           ^
HINT:  A joined row would belong to two units.

-- case: a function where USING has names
SELECT COUNT(*) FROM visits a JOIN visits b USING (patient_id, current_user)
---- error
ERROR 42601 (InvalidSyntax):  USING takes names of columns
HINT:  A column of that name stands in double quotes.

-- case: public rows without a private one
SELECT w.floor, COUNT(*) FROM wards w LEFT JOIN visits v ON v.ward = w.ward WHERE v.visit_id IS NULL GROUP BY 1
---- error
ERROR 0A000 (Unsupported):  the answer would depend on public rows that match no private row, which are not counted
LINE 1: SELECT w.floor, COUNT(*) FROM wards w LEFT JOIN visits v ON v.ward = w.ward WHERE v.visit_id IS NULL GROUP BY 1
                                                        ^
DETAIL:  They belong to no privacy unit, and a single one can match or leave many of them unmatched.
HINT:  Write JOIN instead of LEFT JOIN to ask about matched rows. Of the others, ask how many there are: count the matched ones by COUNT(DISTINCT w.ward) of the JOIN, and subtract that from the public rows' own count.
