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
