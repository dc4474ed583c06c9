-- The integer grid of each sum.

-- case: a declared grid
SELECT SUM(cost) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/2, 0 to 10000, divided by 2^4
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost
        Scan visits (unit patient_id)
          - cost, double, grid 1/2, as stored

-- case: decimals have their own
SELECT SUM(paid) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/100, -10000 to 100000, divided by 2^7
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = paid
        Scan visits (unit patient_id)
          - paid, decimal(10,2), as stored

-- case: whole numbers
SELECT SUM(nights) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1, 0 to 14
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = nights
        Scan visits (unit patient_id)
          - nights, smallint, cast from integer, as stored

-- case: doubles get a power of two
SELECT SUM(weight) FROM patients
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/4194304, 8388608 to 1258291200, divided by 2^2
    Project x1 = weight
      Scan patients (unit patient_id, one row per unit)
        - weight, double, as stored

-- case: an expression of a column with a grid has none
SELECT SUM(cost * 0.1) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/4194304, 0 to 2097152000, divided by 2^22
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost * 0.1
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
