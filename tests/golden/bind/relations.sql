-- Relations over private rows: sub-selects, per-unit blocks, set operations.

-- case: QUALIFY below an aggregate
SELECT COUNT(*) FROM (SELECT cost FROM visits QUALIFY cost > 1) s
---- plan
Aggregate
  - count rows
  Project cost_2 = cost
    Filter cost > 1.0
      Table visits (unit bigint)

-- case: columns of a CTE's alias
WITH t(a) AS (SELECT cost FROM visits) SELECT SUM(a) FROM t
---- plan
Aggregate
  - sum a
  Project a = cost
    Table visits (unit bigint)

-- case: columns of a sub-select's alias
SELECT SUM(a) FROM (SELECT cost FROM visits) AS s(a)
---- plan
Aggregate
  - sum cost_2
  Project cost_2 = cost
    Table visits (unit bigint)

-- case: UNION ALL
SELECT COUNT(*) FROM (SELECT ward FROM visits UNION ALL SELECT sex FROM patients) s
---- plan
Aggregate
  - count rows
  Union all
    Project ward_3 = ward_2
      Project ward_2 = ward
        Table visits (unit bigint)
    Project sex_3 = sex_2
      Project sex_2 = sex
        Table patients (unit bigint): patient_id as patient_id_2

-- case: a sub-select in WHERE
SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)
---- plan
_r2:
Aggregate
  - mean cost
  Table visits (unit bigint)
_r1:
Aggregate
  - count rows
  Filter cost > $h1
    Table visits (unit bigint)

-- case: groups of one unit each, in a sub-select
SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) s
---- plan
Aggregate
  - mean n
  Project patient_id_3 = patient_id_2, n = measure
    Each by the unit, patient_id_2 = patient_id
      - measure = count_rows(*)
      Table visits (unit bigint)
