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

-- case: LATERAL that aggregates a unit's rows
SELECT AVG(x.n), AVG(x.m) FROM patients p CROSS JOIN LATERAL (SELECT COUNT(*) AS n, MAX(v.nights) AS m FROM visits v WHERE v.patient_id = p.patient_id) x
---- plan
Aggregate
  - mean n
  - mean m
  Project patient_id, birth_year, sex, insured, weight, key, measure, measure_2, count, n, m = measure_2
    Project patient_id, birth_year, sex, insured, weight, key, measure, measure_2, count, n = count
      Project patient_id, birth_year, sex, insured, weight, key, measure, measure_2, count = coalesce(measure, 0)
        Join left on key = patient_id
          Table patients (unit bigint)
          Each by the unit, key = patient_id_2
            - measure = count_rows(*)
            - measure_2 = max(nights)
            Table visits (unit bigint): patient_id as patient_id_2

-- case: LATERAL with LIMIT numbers a unit's rows
SELECT AVG(x.cost) FROM patients p JOIN LATERAL (SELECT v.cost FROM visits v WHERE v.patient_id = p.patient_id ORDER BY v.at DESC LIMIT 1) x ON TRUE
---- plan
Aggregate
  - mean cost_3
  Join inner on column_c1 = patient_id
    Table patients (unit bigint)
    Project cost_3 = cost_2, column_c1 = patient_id_3
      Filter row_number <= 1
        Window row_number = row_number() by the unit order by at_2 desc
          Table visits (unit bigint): visit_id as visit_id_2, patient_id as patient_id_3, ward as ward_2, kind as kind_2, cost as cost_2, paid as paid_2, at as at_2, nights as nights_2, score as score_2, note as note_2

-- case: DISTINCT ON with the unit numbers its rows
SELECT kind, COUNT(*) FROM (SELECT DISTINCT ON (patient_id) patient_id, kind FROM visits ORDER BY patient_id, at) t GROUP BY kind
---- plan
Aggregate by k1 = kind_2
  - count rows
  Project patient_id_2 = patient_id, kind_2 = kind
    Filter row_number = 1
      Window row_number = row_number() by the unit order by patient_id, at
        Table visits (unit bigint)

-- case: a window's count has bounds as a unit's count has
SELECT AVG(n) FROM (SELECT COUNT(*) OVER (PARTITION BY patient_id) AS n FROM visits) AS t
---- rewritten
Gather
  ClippedSum, l2 norm
    - c1_count = count of x1, each unit scaled to 1
    - c1_sum = sum of x1, each unit scaled to 1
    Project x1 = count_rows
      Window count_rows = count_rows() by the unit
        Scan visits (unit patient_id)
---- privacy
c1_count: l1 27525120, l2² 757632231014400, linf 27525120; grid 1/27525120; gaussian 2.04207e+08; rho 0.00908421, delta 0
c1_sum: l1 27525120, l2² 757632231014400, linf 27525120; grid 1/27525120; gaussian 2.16594e+08; rho 0.00807485, delta 0
loss: rho 0.0171591, delta 0

-- case: a released mean has the bounds of what it is of
SELECT SUM(t.m) FROM visits v JOIN (SELECT ward, AVG(cost) AS m FROM visits GROUP BY ward) AS t ON t.ward = v.ward
---- plan
_r2:
Aggregate by k1 = ward
  - mean cost
  Table visits (unit bigint)
_r1:
Aggregate
  - sum m
  Join inner on ward_2 = ward
    Table visits (unit bigint)
    Hole h1 of at most 1000 rows: ward_2, m
---- privacy
_r2:
selection selection_units: weighted Gaussian threshold, at most 4 keys, scale 1.03546e+06, above 6087289; rho 0.00200291, delta 9.99994e-09
c1_above, c1_below: l1 85899345920000, l2² 26843545600000000, linf 163840000; grid 1/4096; gaussian 1.29433e+09; rho 0.00801166, delta 0
loss: rho 0.0100146, delta 9.99994e-09
_r1:
c1: l1 163840000, l2² 26843545600000000, linf 163840000; grid 1/4096; gaussian 1.15768e+09; rho 0.0100146, delta 0
loss: rho 0.0100146, delta 0

-- case: a value at a unit's greatest one
SELECT k, COUNT(*) FROM (SELECT patient_id, ARG_MAX(kind, cost) AS k FROM visits GROUP BY patient_id) AS t GROUP BY k
---- plan
Aggregate by k1 = k
  - count rows
  Project patient_id_3 = patient_id_2, k = measure
    Each by the unit, patient_id_2 = patient_id
      - measure = max(case when (not (kind is null)) and (finite(cost) = max) then kind else null end)
      Window max = max(case when not (kind is null) then finite(cost) else null end) by the unit, patient_id
        Table visits (unit bigint)

-- case: a unit's most frequent value, by another key too
SELECT k, COUNT(*) FROM (SELECT patient_id, ward, MODE(kind) AS k FROM visits GROUP BY patient_id, ward) AS t GROUP BY k
---- plan
Aggregate by k1 = k
  - count rows
  Project patient_id_3 = patient_id_2, ward_3 = ward_2, k = measure
    Each by the unit, patient_id_2 = patient_id, ward_2 = ward
      - measure = min(case when count = max then kind else null end)
      Window max = max(count) by the unit, patient_id, ward
        Window count = count(kind) by the unit, patient_id, ward, kind
          Table visits (unit bigint)

-- case: a unit's spread has the bounds that its values allow
SELECT AVG(s), AVG(m) FROM (SELECT patient_id, STDDEV(cost) AS s, MEDIAN(cost) AS m FROM visits GROUP BY patient_id) AS t
---- rewritten
Gather
  Sum
    - c1_above, c1_below: moments of x1 in steps of 1/8192, 0 to 30720000
    - c2_above, c2_below: moments of x2 in steps of 1/4096, 0 to 20480000
    Project x1 = measure, x2 = measure_2
      Each by the unit, patient_id_2 = patient_id
        - measure = stddev_samp(cost in steps of 1/2, 0 to 10000)
        - measure_2 = median(finite(cost))
        Scan visits (unit patient_id)
          - patient_id, bigint, id
          - cost, double [0, 5000], grid 1/2
---- privacy
c1_above, c1_below: l1 30720000, l2² 943718400000000, linf 30720000; grid 1/8192; gaussian 2.16214e+08; rho 0.0100936, delta 0
c2_above, c2_below: l1 20480000, l2² 419430400000000, linf 20480000; grid 1/4096; gaussian 1.44143e+08; rho 0.0100936, delta 0
loss: rho 0.0201871, delta 0
