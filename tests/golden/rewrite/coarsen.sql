-- Cells finer than their noise are divided by a power of two.

-- case: little noise: a grid of 2^-16
-- set: epsilon = 100
SELECT COUNT(*) FROM visits
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Project
        Scan visits (unit patient_id)
---- privacy
rows: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 54170.6; rho 46.8362, delta 0
loss: rho 46.8362, delta 0

-- case: much noise: a coarser grid
-- set: epsilon = 0.001
SELECT SUM(weight) FROM patients
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/65536, 131072 to 19660800, divided by 2^5
    Project x1 = weight
      Scan patients (unit patient_id, one row per unit)
        - weight, double, as stored
---- privacy
c1: l1 614400, l2² 377487360000, linf 614400; grid 1/2048; gaussian 2.08017e+09; rho 4.3619e-08, delta 0
loss: rho 4.3619e-08, delta 0

-- case: a share of the statement's loss for each bundle
SELECT SUM(cost), SUM(paid), COUNT(*) FROM visits
---- rewritten
Gather
  Sum
    - c1_above, c1_below: moments of x1 in steps of 1/2, 0 to 10000, NULL as 0, divided by 2^5
    - c2: x2 in steps of 1/100, -10000 to 100000, divided by 2^8
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost, x2 = paid
        Scan visits (unit patient_id)
          - cost, double, grid 1/2, as stored
          - paid, decimal(10,2), as stored
---- privacy
c1_above, c1_below: l1 163840000, l2² 26843545600000000, linf 163840000; grid 1/4096; gaussian 1.15314e+09; rho 0.0100936, delta 0
c2: l1 204800000, l2² 41943040000000000, linf 204800000; grid 1/25600; gaussian 1.44143e+09; rho 0.0100936, delta 0
loss: rho 0.0201871, delta 0

-- case: a share for each release
SELECT (SELECT COUNT(*) FROM visits) AS v, (SELECT COUNT(*) FROM patients) AS p
---- rewritten
_r1:
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Project
        Scan visits (unit patient_id)
_r2:
Gather
  Sum
    - rows: rows
    Project
      Scan patients (unit patient_id, one row per unit)
---- privacy
_r1:
rows: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 3.69005e+06; rho 0.0100936, delta 0
loss: rho 0.0100936, delta 0
_r2:
rows: l1 1, l2² 1, linf 1; grid 1; gaussian 7.03822; rho 0.0100936, delta 0
loss: rho 0.0100936, delta 0
