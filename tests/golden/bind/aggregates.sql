-- Aggregates: the plan that runs, and what each bundle is charged.

-- case: MEDIAN
SELECT MEDIAN(cost) FROM visits
---- rewritten
Gather by bin bigint
  - listed bin: from 0 to 10000
  Sum by bin
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Filter not (bin is null)
        Project bin = x1 in steps of 1/2, 0 to 10000
          Project x1 = cost
            Scan visits (unit patient_id)
              - cost, double [0, 5000], grid 1/2
---- privacy
Rank(fraction=Fraction(1, 2)): exponential 1.30463e+06, a row is 65536
loss: epsilon 0.401867, rho 0.0201871, delta 0

-- case: WITHIN GROUP
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY cost) FROM visits
---- rewritten
Gather by bin bigint
  - listed bin: from 0 to 10000
  Sum by bin
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Filter not (bin is null)
        Project bin = x1 in steps of 1/2, 0 to 10000
          Project x1 = cost
            Scan visits (unit patient_id)
              - cost, double [0, 5000], grid 1/2
---- privacy
Rank(fraction=Fraction(1, 2)): exponential 1.30463e+06, a row is 65536
loss: epsilon 0.401867, rho 0.0201871, delta 0

-- case: COUNT(DISTINCT x)
SELECT COUNT(DISTINCT ward) FROM visits
---- rewritten
Gather
  Sum
    - d1: rows
    Distinct x1, at most 8 for each unit
      Project x1 = ward
        Scan visits (unit patient_id)
          - ward, text
---- privacy
d1: l1 8, l2² 64, linf 8; grid 1; gaussian 39.8142; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: SUM(DISTINCT x)
SELECT SUM(DISTINCT cost) FROM visits
---- rewritten
Gather
  Sum
    - d1: x1 in steps of 1/4096, 0 to 20480000
    Distinct x1, at most 8 for each unit
      Project x1 = finite(cost)
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
---- privacy
d1: l1 163840000, l2² 26843545600000000, linf 163840000; grid 1/4096; gaussian 8.15394e+08; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: FILTER with COUNT(DISTINCT unit)
SELECT COUNT(DISTINCT patient_id) FILTER (WHERE cost > 1) FROM visits
---- rewritten
Gather
  CountUnits units1: units
    Filter x1
      Project x1 = 1.0 < cost
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
---- privacy
units1: l1 1, l2² 1, linf 1; grid 1; gaussian 4.97677; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: ROLLUP
SELECT kind, COUNT(*) FROM visits GROUP BY ROLLUP (kind)
---- rewritten
Gather by k1 text, _set bigint
  - listed k1, _set, 3 groups: ('urgent', 0), ('planned', 0), (NULL, 1)
  Sum by k1, _set
    - rows: rows
    Weigh each unit as at most 8 rows in each grouping set, l2 norm by k1, _set
      Filter (not (k1 is null)) or (not (_set in (0)))
        Expand to the grouping sets (k1), ()
          Project k1 = kind
            Scan visits (unit patient_id)
              - kind, text of 'urgent', 'planned'
---- privacy
rows: l1 2097152, l2² 549755813888, linf 524288; grid 1/65536; gaussian 3.69005e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: GROUPING SETS
SELECT kind, COUNT(*) FROM visits GROUP BY GROUPING SETS ((kind), ())
---- rewritten
Gather by k1 text, _set bigint
  - listed k1, _set, 3 groups: ('urgent', 0), ('planned', 0), (NULL, 1)
  Sum by k1, _set
    - rows: rows
    Weigh each unit as at most 8 rows in each grouping set, l2 norm by k1, _set
      Filter (not (k1 is null)) or (not (_set in (0)))
        Expand to the grouping sets (k1), ()
          Project k1 = kind
            Scan visits (unit patient_id)
              - kind, text of 'urgent', 'planned'
---- privacy
rows: l1 2097152, l2² 549755813888, linf 524288; grid 1/65536; gaussian 3.69005e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: bounds per group
SELECT ward, SUM(cost, contribution_bounds_per_group => (0, 1000)), COUNT(*, contribution_bounds_per_group => (0, 5)) FROM visits GROUP BY ward
---- rewritten
Gather by k1 text
  - selected k1: by selection_units
  CountUnits selection_units by k1: units, at most 4 groups each, weighted
    Project k1, x1 = clip(part, 0, 1000), x2 = clip(part_2, 0, 5)
      Each by the unit, k1 = ward
        - part = sum(cost in steps of 1/2, 0 to 10000)
        - part_2 = count_rows(*)
        Scan visits (unit patient_id)
          - ward, text
          - cost, double [0, 5000], grid 1/2
  Sum by k1
    - c1: x1 in steps of 1/32768, 0 to 32768000, divided by 2^14
    - c2: x2 in steps of 1, 1 to 5
    Weigh each unit as at most 2 rows, l2 norm by k1
      Project k1, x1 = clip(part, 0, 1000), x2 = clip(part_2, 0, 5)
        Each by the unit, k1 = ward
          - part = sum(cost in steps of 1/2, 0 to 10000)
          - part_2 = count_rows(*)
          Scan visits (unit patient_id)
            - ward, text
            - cost, double [0, 5000], grid 1/2
---- privacy
selection selection_units: weighted Gaussian threshold, at most 4 keys, scale 732182, above 4313961; rho 0.00400583, delta 9.99994e-09
c1: l1 34359738368000, l2² 68719476736000000, linf 262144000; grid 1/131072; gaussian 2.07092e+09; rho 0.00801166, delta 0
c2: l1 85899345920, l2² 429496729600, linf 655360; grid 1/65536; gaussian 5.17731e+06; rho 0.00801166, delta 0
loss: rho 0.0200291, delta 9.99994e-09

-- case: bounds per group, in one group: a unit has one row
SELECT AVG(cost, contribution_bounds_per_group => (0, 1000)) FROM visits
---- rewritten
Gather
  Sum
    - c1_above, c1_below: moments of x1 in steps of 1/32768, 0 to 32768000
    Project x1 = clip(part, 0, 1000)
      Each by the unit
        - part = mean(cost in steps of 1/2, 0 to 10000)
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
---- privacy
c1_above, c1_below: l1 32768000, l2² 1073741824000000, linf 32768000; grid 1/32768; gaussian 1.63079e+08; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: bounds per group beside sums without
SELECT COUNT(*, contribution_bounds_per_group => (0, 5)), COUNT(*), COUNT(DISTINCT patient_id) FILTER (WHERE cost > 1) FROM visits
---- rewritten
Gather
  Sum
    - c1: x2 in steps of 1, 1 to 5
    Project x1 = part_3, x2 = clip(part, 0, 5), x3 = part
      Each by the unit
        - part = count_rows(*)
        - part_3 = any(1.0 < cost)
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
  ClippedSum, l2 norm
    - c2_sum = sum of x3, each unit scaled to 1
    Project x1 = part_3, x2 = clip(part, 0, 5), x3 = part
      Each by the unit
        - part = count_rows(*)
        - part_3 = any(1.0 < cost)
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
  CountUnits units1: rows, one per unit
    Filter x1
      Project x1 = part_3, x2 = clip(part, 0, 5), x3 = part
        Each by the unit
          - part = count_rows(*)
          - part_3 = any(1.0 < cost)
          Scan visits (unit patient_id)
            - cost, double [0, 5000], grid 1/2
---- privacy
c1: l1 5, l2² 25, linf 5; grid 1; gaussian 43.1001; rho 0.00672904, delta 0
c2_sum: l1 27525120, l2² 757632231014400, linf 27525120; grid 1/27525120; gaussian 2.50101e+08; rho 0.00605614, delta 0
units1: l1 1, l2² 1, linf 1; grid 1; gaussian 8.62002; rho 0.00672904, delta 0
loss: rho 0.0195142, delta 0
