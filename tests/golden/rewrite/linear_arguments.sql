-- Aggregates of multiples of one value are read off the sums of it.

-- case: multiples of a value with a constant added are one bundle
SELECT SUM(cost), SUM(cost + 1), AVG(2 * cost) FROM visits
---- rewritten
Gather
  Sum
    - c1_above, c1_below: moments of x3 in steps of 1/2, 0 to 10000, divided by 2^4
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost * 2, x2 = cost + 1, x3 = cost
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2

-- case: multiples alone are one sum
SELECT SUM(cost), SUM(cost / 4) FROM visits
---- rewritten
Gather
  Sum
    - c1: x2 in steps of 1/2, 0 to 10000, divided by 2^4
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost / 4, x2 = cost
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2

-- case: a sum alone keeps its own bounds
SELECT SUM(cost - 2500) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/4096, -10240000 to 10240000, divided by 2^14
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost - 2500
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
