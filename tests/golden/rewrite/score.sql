-- Choices by scores that are linear in cells.

-- case: the best of listed values
SELECT PRIVATE_ARGMAX(kind, COUNT(*)) FROM visits
---- rewritten
Gather by value text
  - listed value, 2 groups: 'urgent', 'planned'
  Sum by value
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by value
      Project value = kind
        Filter not (kind is null)
          Scan visits (unit patient_id)
            - kind, text of 'urgent', 'planned'
---- privacy
ranking: scale 1.30463e+06, 1 rounds; l1 524288, l2² 274877906944
loss: epsilon 0.401867, rho 0.0201871, delta 0

-- case: the best of values that are selected first
SELECT PRIVATE_TOP_K(ward, SUM(cost), 2) FROM visits
---- rewritten
_r1_m1_keys:
Gather by value text
  - selected value: by selection_units
  CountUnits selection_units by value: units, at most 4 groups each, weighted
    Project value = ward
      Filter not (ward is null)
        Scan visits (unit patient_id)
          - ward, text
_r1_m1:
Gather by value text
  - listed value, at most 10000 groups: from the hole keys
  Sum by value
    - c1: x1 in steps of 1/2, 0 to 10000
    Weigh each unit as at most 8 rows, l2 norm by value
      Project value = ward, x1 = cost
        Filter not (ward is null)
          Scan visits (unit patient_id)
            - ward, text
            - cost, double, grid 1/2, as stored
---- privacy
_r1_m1_keys:
selection selection_units: weighted Gaussian threshold, at most 4 keys, scale 463072, above 2740432; rho 0.0100146, delta 9.99999e-09
loss: rho 0.0100146, delta 9.99999e-09
_r1_m1:
ranking: scale 2.61953e+10, 2 rounds; l1 5242880000, l2² 27487790694400000000
loss: epsilon 0.400291, rho 0.0100146, delta 0

-- case: a draw from a posterior
-- set: noise = laplace
SELECT POSTERIOR_SAMPLE(cost > 100) FROM visits
---- rewritten
Gather
  Sum
    - trues, falses: moments of x1 in steps of 1, 0 to 1
    Weigh each unit as at most 8 rows, l1 norm
      Project x1 = cast(100.0 < cost as integer)
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
---- privacy
posteriordraws: scale 2.58996e+13, 1 rounds; l1 524288, l2² 274877906944
loss: epsilon 1, rho 0.125, delta 0

-- case: a ratio
SELECT PRIVATE_ARGMAX(kind, AVG(cost)) FROM visits
---- error
ERROR 0A000 (Unsupported):  PRIVATE_ARGMAX() compares values by a count or a sum: of a ratio, one privacy unit could move all of it
LINE 1: SELECT PRIVATE_ARGMAX(kind, AVG(cost)) FROM visits
                                    ^
HINT:  Compare by COUNT(*), COUNT(DISTINCT unit) or SUM(x), or ask for the averages with GROUP BY.

-- case: a posterior from the sums of an average
SELECT BETA_POSTERIOR_MEAN(cost > 100), AVG(CASE WHEN cost > 100 THEN 1 ELSE 0 END) FROM visits
---- rewritten
Gather
  Sum
    - c1_above, c1_below: moments of x1 in steps of 1, 0 to 1
    - c2_above, c2_below: moments of x2 in steps of 1, 0 to 1
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cast(100.0 < cost as integer), x2 = case when 100.0 < cost then 1 else 0 end
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
---- privacy
c1_above, c1_below: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 3.69005e+06; rho 0.0100936, delta 0
c2_above, c2_below: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 3.69005e+06; rho 0.0100936, delta 0
loss: rho 0.0201871, delta 0
