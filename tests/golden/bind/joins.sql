-- Joins of private rows, which must equate their units.

-- case: on the unit
SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient_id = p.patient_id
---- plan
Aggregate
  - count rows
  Join inner on patient_id = patient_id_2
    Table visits (unit bigint)
    Table patients (unit bigint): patient_id as patient_id_2

-- case: on the unit, with more conditions
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.cost > b.cost
---- plan
Aggregate
  - count rows
  Join inner on (patient_id = patient_id_2) and (cost > cost_2)
    Table visits (unit bigint)
    Table visits (unit bigint): visit_id as visit_id_2, patient_id as patient_id_2, ward as ward_2, kind as kind_2, cost as cost_2, paid as paid_2, at as at_2, nights as nights_2, score as score_2, note as note_2

-- case: along a declared foreign key
SELECT kind, AVG(value) FROM lab_tests l JOIN visits v ON l.visit_id = v.visit_id GROUP BY kind
---- plan
Aggregate by k1 = kind
  - mean value
  Join inner on visit_id = visit_id_2
    Table lab_tests (unit bigint)
    Table visits (unit bigint): visit_id as visit_id_2

-- case: three tables with USING
SELECT sex, AVG(value) FROM lab_tests JOIN visits USING (visit_id) JOIN patients USING (patient_id) GROUP BY sex
---- plan
Aggregate by k1 = sex
  - mean value
  Join inner on patient_id = patient_id_2
    Join inner on visit_id = visit_id_2
      Table lab_tests (unit bigint)
      Table visits (unit bigint): visit_id as visit_id_2
    Table patients (unit bigint): patient_id as patient_id_2

-- case: LEFT JOIN keeps rows without a match
SELECT COUNT(*), COUNT(v.visit_id) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id
---- plan
Aggregate
  - count visit_id
  - count rows
  Join left on patient_id_2 = patient_id
    Table patients (unit bigint)
    Table visits (unit bigint): patient_id as patient_id_2

-- case: a sub-select carries the unit, though it drops the column
SELECT COUNT(*) FROM (SELECT cost FROM visits WHERE kind = 'urgent') s WHERE cost > 5
---- plan
Aggregate
  - count rows
  Filter cost_2 > 5.0
    Project cost_2 = cost
      Filter kind = 'urgent'
        Table visits (unit bigint)

-- case: an owned CTE is written in where it is used
WITH urgent AS (SELECT patient_id, cost FROM visits WHERE kind = 'urgent') SELECT AVG(u.cost) FROM urgent u JOIN patients p ON p.patient_id = u.patient_id WHERE p.insured
---- plan
Aggregate
  - mean cost_2
  Filter insured
    Join inner on patient_id_3 = patient_id_2
      Project patient_id_2 = patient_id, cost_2 = cost
        Filter kind = 'urgent'
          Table visits (unit bigint)
      Table patients (unit bigint): patient_id as patient_id_3

-- case: the unit of a side that a LEFT JOIN may leave empty
SELECT COUNT(*) FROM patients p LEFT JOIN visits a ON p.patient_id = a.patient_id JOIN visits b ON a.patient_id = b.patient_id
---- plan
Aggregate
  - count rows
  Join inner on patient_id_2 = patient_id_3
    Join left on patient_id = patient_id_2
      Table patients (unit bigint)
      Table visits (unit bigint): patient_id as patient_id_2
    Table visits (unit bigint): visit_id as visit_id_2, patient_id as patient_id_3, ward as ward_2, kind as kind_2, cost as cost_2, paid as paid_2, at as at_2, nights as nights_2, score as score_2, note as note_2

-- case: a comma
SELECT COUNT(*) FROM visits, patients WHERE visits.patient_id = patients.patient_id
---- plan
Aggregate
  - count rows
  Join inner on patient_id = patient_id_2
    Table visits (unit bigint)
    Table patients (unit bigint): patient_id as patient_id_2

-- case: NATURAL JOIN
SELECT COUNT(*) FROM visits NATURAL JOIN patients
---- plan
Aggregate
  - count rows
  Join inner on patient_id = patient_id_2
    Table visits (unit bigint)
    Table patients (unit bigint): patient_id as patient_id_2

-- case: RIGHT JOIN
SELECT COUNT(*) FROM visits RIGHT JOIN patients USING (patient_id)
---- plan
Aggregate
  - count rows
  Join left on patient_id = patient_id_2
    Table patients (unit bigint): patient_id as patient_id_2
    Table visits (unit bigint)

-- case: FULL JOIN
SELECT COUNT(*) FROM visits FULL JOIN patients USING (patient_id)
---- plan
Aggregate
  - count rows
  Project visit_id, patient_id, ward, kind, cost, paid, at, nights, score, note, patient_id_2, birth_year, sex, insured, weight, patient_id_3 = coalesce(patient_id, patient_id_2)
    Join full on patient_id = patient_id_2
      Table visits (unit bigint)
      Table patients (unit bigint): patient_id as patient_id_2

-- case: a public table
SELECT COUNT(*) FROM visits JOIN "Wards" USING (ward)
---- plan
Aggregate
  - count rows
  Join inner on ward = ward_2
    Table visits (unit bigint)
    Public Wards: ward_2, floor

-- case: aggregated rows
SELECT COUNT(*) FROM visits v JOIN (SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind) s ON s.kind = v.kind
---- plan
_r2:
Aggregate by k1 = kind
  - count rows
  Table visits (unit bigint)
_r1:
Aggregate
  - count rows
  Join inner on kind_2 = kind
    Table visits (unit bigint)
    Hole h1 of at most 1000 rows: kind_2, n

-- case: SEMI JOIN
SELECT COUNT(*) FROM visits SEMI JOIN patients USING (patient_id)
---- plan
Aggregate
  - count rows
  Filter met
    Mark met: exists where patient_id = patient_id_2
      Table visits (unit bigint)
      Table patients (unit bigint): patient_id as patient_id_2

-- case: joins in parentheses are the same joins
SELECT COUNT(*) FROM ((lab_tests l JOIN visits v ON l.visit_id = v.visit_id) JOIN patients p ON v.patient_id = p.patient_id)
---- plan
Aggregate
  - count rows
  Join inner on patient_id = patient_id_2
    Join inner on visit_id = visit_id_2
      Table lab_tests (unit bigint)
      Table visits (unit bigint): visit_id as visit_id_2
    Table patients (unit bigint): patient_id as patient_id_2

-- case: a sub-select first in parentheses, on the right
SELECT COUNT(*) FROM patients p LEFT JOIN ((SELECT * FROM visits) v JOIN lab_tests l ON l.visit_id = v.visit_id) ON v.patient_id = p.patient_id
---- plan
Aggregate
  - count rows
  Join left on patient_id_3 = patient_id
    Table patients (unit bigint)
    Join inner on visit_id_3 = visit_id_2
      Project visit_id_2 = visit_id, patient_id_3 = patient_id_2, ward_2 = ward, kind_2 = kind, cost_2 = cost, paid_2 = paid, at_2 = at, nights_2 = nights, score_2 = score, note_2 = note
        Table visits (unit bigint): patient_id as patient_id_2
      Table lab_tests (unit bigint): visit_id as visit_id_3
