-- A clip that Quantise repeats is left to it.

-- case: a column that is only summed
SELECT SUM(cost) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/2, 0 to 10000, divided by 2^4
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost
        Scan visits (unit patient_id)
          - cost, double, grid 1/2, as stored

-- case: a column that is also compared keeps its clip
SELECT SUM(cost) FROM visits WHERE cost > 10
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/2, 20 to 10000, divided by 2^4
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost
        Filter 10.0 < cost
          Scan visits (unit patient_id)
            - cost, double [0, 5000], grid 1/2

-- case: a column that is also counted keeps its clip
SELECT SUM(score2), COUNT(score2) FROM (SELECT CLIP(score, 0, 9) AS score2 FROM visits) s
---- rewritten
Gather
  Sum
    - c1_above, c1_below: moments of x1 in steps of 1, 0 to 9
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = score2
        Project score2 = clip(score, 0, 9)
          Scan visits (unit patient_id)
            - score, integer

-- case: a column within an expression keeps its clip
SELECT SUM(cost), SUM(cost * cost) FROM visits
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1, 0 to 25000000, divided by 2^16
    - c2: x2 in steps of 1/2, 0 to 10000, divided by 2^5
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = cost * cost, x2 = cost
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2
