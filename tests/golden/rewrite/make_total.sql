-- Arithmetic that cannot raise.

-- case: bounds prove that 64 bits are enough
SELECT SUM(nights * 3 + 1) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1, 1 to 43
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = (nights * 3) + 1
        Scan visits (unit patient_id)
          - nights, smallint [0, 14], cast from integer

-- case: without bounds 128 bits are used
SELECT COUNT(score * score) FROM visits
---- rewritten
Gather
  Sum
    - c1: rows where x1 is not null
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = score *:wide score
        Scan visits (unit patient_id)
          - score, integer

-- case: infinities are kept out of keys
SELECT cost * 2, COUNT(*) FROM visits GROUP BY 1
---- rewritten
Gather by k1 double
  - selected k1: by selection_units
  CountUnits selection_units by k1: units, at most 4 groups each, weighted
    Project k1 = finite(cost * 2)
      Scan visits (unit patient_id)
        - cost, double [0, 5000], grid 1/2
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = finite(cost * 2)
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
