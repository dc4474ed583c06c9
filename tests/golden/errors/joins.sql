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

-- case: the unit of a side that a LEFT JOIN may leave empty
SELECT COUNT(*) FROM patients p LEFT JOIN visits a ON p.patient_id = a.patient_id JOIN visits b ON a.patient_id = b.patient_id
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM patients p LEFT JOIN visits a ON p.patient_id = a.patient_id JOIN visits b ON a.patient_id = b.patient_id
                                                                                               ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON p.patient_id = b.patient_id.

-- case: a unit that was computed
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id + 0 = b.patient_id
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id + 0 = b.patient_id
                                           ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON a.patient_id = b.patient_id.

-- case: a comma
SELECT COUNT(*) FROM visits, patients WHERE visits.patient_id = patients.patient_id
---- error
ERROR 0A000 (NotPrivate):  a join of private rows must equate their privacy units
LINE 1: SELECT COUNT(*) FROM visits, patients WHERE visits.patient_id = patients.patient_id
                                     ^
DETAIL:  Otherwise a joined row belongs to two units.
HINT:  Join on the privacy unit: ON visits.patient_id = patients.patient_id.

-- case: CROSS JOIN
SELECT COUNT(*) FROM visits CROSS JOIN patients
---- error
ERROR 0A000 (Unsupported):  CROSS JOIN over private rows is not supported yet
LINE 1: SELECT COUNT(*) FROM visits CROSS JOIN patients
                                               ^

-- case: NATURAL JOIN
SELECT COUNT(*) FROM visits NATURAL JOIN patients
---- error
ERROR 0A000 (Unsupported):  NATURAL, ASOF or another method is not supported over private rows
LINE 1: SELECT COUNT(*) FROM visits NATURAL JOIN patients
                                                 ^
HINT:  Leave it out, or move it to an outer SELECT over the aggregated rows.

-- case: RIGHT JOIN
SELECT COUNT(*) FROM visits RIGHT JOIN patients USING (patient_id)
---- error
ERROR 0A000 (Unsupported):  RIGHT JOIN over private rows is not supported yet
LINE 1: SELECT COUNT(*) FROM visits RIGHT JOIN patients USING (patient_id)
                                               ^

-- case: FULL JOIN
SELECT COUNT(*) FROM visits FULL JOIN patients USING (patient_id)
---- error
ERROR 0A000 (Unsupported):  FULL JOIN over private rows is not supported yet
LINE 1: SELECT COUNT(*) FROM visits FULL JOIN patients USING (patient_id)
                                              ^

-- case: SEMI JOIN
SELECT COUNT(*) FROM visits SEMI JOIN patients USING (patient_id)
---- error
ERROR 0A000 (Unsupported):  SEMI JOIN over private rows is not supported yet
LINE 1: SELECT COUNT(*) FROM visits SEMI JOIN patients USING (patient_id)
                                              ^

-- case: LATERAL
SELECT COUNT(*) FROM visits, LATERAL (SELECT * FROM patients) p
---- error
ERROR 0A000 (Unsupported):  this cannot stand in FROM
LINE 1: SELECT COUNT(*) FROM visits, LATERAL (SELECT * FROM patients) p
                                                     ^
HINT:  Tables, sub-selects, VALUES and unnest, generate_series, range can.

-- case: a public table
SELECT COUNT(*) FROM visits JOIN "Wards" USING (ward)
---- error
ERROR 0A000 (Unsupported):  reading the public table "Wards" is not supported yet
LINE 1: SELECT COUNT(*) FROM visits JOIN "Wards" USING (ward)
                                         ^

-- case: aggregated rows
SELECT COUNT(*) FROM visits v JOIN (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) s ON s.kind = v.kind
---- error
ERROR 0A000 (Unsupported):  private rows cannot be joined with aggregated or made-up rows yet
LINE 1: SELECT COUNT(*) FROM visits v JOIN (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) s ON s.kind = v.kind
                             ^
HINT:  Aggregate the private rows first, then join in an outer SELECT.

-- case: rows that are units
-- schema: rows
SELECT COUNT(*) FROM events a JOIN events b ON a.kind = b.kind
---- error
ERROR 0A000 (NotPrivate):  where each row is its own privacy unit, private tables cannot be joined
LINE 1: SELECT COUNT(*) FROM events a JOIN events b ON a.kind = b.kind
                                           ^
HINT:  A joined row would belong to two units.
