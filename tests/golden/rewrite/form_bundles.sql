-- Measures share integer cells.

-- case: COUNT, SUM and AVG of one column are one pair with a third part
SELECT COUNT(*), COUNT(cost), SUM(cost), AVG(cost) FROM visits
---- rewritten
Gather
  Sum
    - c1_above, c1_below, c1_missing: moments of x1 in steps of 1/2, 0 to 10000, divided by 2^4
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost
        Scan visits (unit patient_id)
          - cost, double, grid 1/2, as stored
---- privacy
c1_above, c1_below, c1_missing: l1 327680000, l2² 107374182400000000, linf 327680000; grid 1/8192; gaussian 1.63079e+09; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: SUM alone is one cell
SELECT SUM(cost) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/2, 0 to 10000, divided by 2^4
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost
        Scan visits (unit patient_id)
          - cost, double, grid 1/2, as stored
---- privacy
c1: l1 327680000, l2² 107374182400000000, linf 327680000; grid 1/8192; gaussian 1.63079e+09; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: COUNT of a column alone
SELECT COUNT(cost) FROM visits
---- rewritten
Gather
  Sum
    - c1: rows where x1 is not null
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
---- privacy
c1: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 2.60926e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: COUNT(*) joins the first pair only
SELECT COUNT(*), AVG(cost), AVG(paid) FROM visits
---- rewritten
Gather
  Sum
    - c1_above, c1_below, c1_missing: moments of x1 in steps of 1/2, 0 to 10000, divided by 2^5
    - c2_above, c2_below: moments of x2 in steps of 1/100, -10000 to 100000, divided by 2^8
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost, x2 = paid
        Scan visits (unit patient_id)
          - cost, double, grid 1/2, as stored
          - paid, decimal(10,2), as stored
---- privacy
c1_above, c1_below, c1_missing: l1 163840000, l2² 26843545600000000, linf 163840000; grid 1/4096; gaussian 1.15314e+09; rho 0.0100936, delta 0
c2_above, c2_below: l1 225280000, l2² 50751078400000000, linf 225280000; grid 1/25600; gaussian 1.58557e+09; rho 0.0100936, delta 0
loss: rho 0.0201871, delta 0

-- case: values that are never missing need no third part
SELECT COUNT(*), AVG(coalesce(nights, 0)) FROM visits
---- rewritten
Gather
  Sum
    - c1_above, c1_below: moments of x1 in steps of 1, 0 to 14
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = coalesce(nights, 0)
        Scan visits (unit patient_id)
          - nights, smallint [0, 14], cast from integer
---- privacy
c1_above, c1_below: l1 7340032, l2² 53876069761024, linf 7340032; grid 1/65536; gaussian 3.65297e+07; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: a constant is a multiple of the count
SELECT SUM(3), AVG(3), COUNT(*) FROM visits
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = 3
        Scan visits (unit patient_id)
---- privacy
rows: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 2.60926e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: units are counted in their own part
SELECT kind, COUNT(*), COUNT(DISTINCT patient_id) FROM visits GROUP BY kind
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'urgent', 'planned'
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = kind
        Filter not (kind is null)
          Scan visits (unit patient_id)
            - kind, text of 'urgent', 'planned'
  CountUnits units by k1: units
    Project k1 = kind
      Filter not (kind is null)
        Scan visits (unit patient_id)
          - kind, text of 'urgent', 'planned'
---- privacy
rows: l1 1048576, l2² 274877906944, linf 524288; grid 1/65536; gaussian 3.69005e+06; rho 0.0100936, delta 0
units: l1 2, l2² 2, linf 1; grid 1; gaussian 9.95354; rho 0.0100936, delta 0
loss: rho 0.0201871, delta 0
