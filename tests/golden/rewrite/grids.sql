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
    - c1: x1 in steps of 1/65536, 131072 to 19660800
    Project x1 = weight
      Scan patients (unit patient_id, one row per unit)
        - weight, double, as stored

-- case: bounds of WHERE
SELECT SUM(score) FROM visits WHERE score BETWEEN 0 AND 10
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1, 0 to 10
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = score
        Filter (score <= 10) and (0 <= score)
          Scan visits (unit patient_id)
            - score, integer

-- case: an expression of a column with a grid has none
SELECT SUM(cost * 0.1) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/65536, 0 to 32768000, divided by 2^16
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = 0.1 * cost
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
