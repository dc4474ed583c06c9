-- One integer weight per unit where a unit may have many rows.

-- case: without keys
SELECT COUNT(*) FROM visits
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Project
        Scan visits (unit patient_id)
---- privacy
rows: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 2.60926e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: by group, L2 norm for Gaussian noise
SELECT kind, COUNT(*) FROM visits GROUP BY kind
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
---- privacy
rows: l1 1048576, l2² 274877906944, linf 524288; grid 1/65536; gaussian 2.60926e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: by group, L1 norm for Laplace noise
-- set: noise = laplace
SELECT kind, COUNT(*) FROM visits GROUP BY kind
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'urgent', 'planned'
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l1 norm by k1
      Project k1 = kind
        Filter not (kind is null)
          Scan visits (unit patient_id)
            - kind, text of 'urgent', 'planned'
---- privacy
rows: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; laplace 524288; epsilon 1, rho 0.5, delta 0
loss: epsilon 1, rho 0.5, delta 0

-- case: a unique unit needs no weight
SELECT sex, COUNT(*) FROM patients GROUP BY sex
---- rewritten
Gather by k1 text
  - listed k1, 4 groups: 'f', 'm', 'x', NULL
  Sum by k1
    - rows: rows
    Project k1 = sex
      Scan patients (unit patient_id, one row per unit)
        - sex, text of 'f', 'm', 'x', NULL is a group
---- privacy
rows: l1 1, l2² 1, linf 1; grid 1; gaussian 4.97677; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: a row unit needs no weight
-- schema: rows
SELECT kind, COUNT(*), SUM(change) FROM events GROUP BY kind
---- rewritten
Gather by k1 text
  - listed k1, 3 groups: 'open', 'click', 'buy'
  Sum by k1
    - c1_above, c1_below: moments of x1 in steps of 1/8388608, -8388608 to 8388608, NULL as 0
    Project k1 = kind, x1 = change
      Filter not (kind is null)
        Scan events (each row is a unit)
          - kind, text of 'open', 'click', 'buy'
          - change, double, as stored
---- privacy
c1_above, c1_below: l1 16777216, l2² 281474976710656, linf 16777216; grid 1/8388608; gaussian 8.34964e+07; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: a key that depends on the unit does not spread its rows
SELECT sex, COUNT(*) FROM visits JOIN patients USING (patient_id) GROUP BY sex
---- rewritten
Gather by k1 text
  - listed k1, 4 groups: 'f', 'm', 'x', NULL
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Project k1 = sex
        Join inner on patient_id = patient_id_2, units equated
          Scan patients (unit patient_id, one row per unit)
            - patient_id, bigint, id
            - sex, text of 'f', 'm', 'x', NULL is a group
          Scan visits (unit patient_id)
            - patient_id_2 = patient_id, bigint, id
---- privacy
rows: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 2.60926e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: a lower norm of the analyst
-- set: contributions.rows = 2
SELECT COUNT(*) FROM visits
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 2 rows, l2 norm
      Project
        Scan visits (unit patient_id)
---- privacy
rows: l1 131072, l2² 17179869184, linf 131072; grid 1/65536; gaussian 652315; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: a join may multiply rows: they are counted after it
SELECT COUNT(*) FROM visits a JOIN visits b ON a.patient_id = b.patient_id
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Project
        Join inner on patient_id = patient_id_2, units equated
          Scan visits (unit patient_id)
            - patient_id, bigint, id
          Scan visits (unit patient_id)
            - patient_id_2 = patient_id, bigint, id
---- privacy
rows: l1 524288, l2² 274877906944, linf 524288; grid 1/65536; gaussian 2.60926e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: change_one, two units at once: a single cell of one person
-- schema: survey
SELECT COUNT(*) FROM people
---- rewritten
Gather
  Sum
    - rows: rows
    Project
      Scan people (unit person, one row per unit)
---- privacy
rows: l1 2, l2² 4, linf 2; grid 1; gaussian 9.95354; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: change_one, two units at once: groups
-- schema: survey
SELECT region, COUNT(*) FROM people GROUP BY region
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'north', 'south'
  Sum by k1
    - rows: rows
    Project k1 = region
      Filter not (region is null)
        Scan people (unit person, one row per unit)
          - region, text of 'north', 'south'
---- privacy
rows: l1 4, l2² 8, linf 2; grid 1; gaussian 14.0764; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: change_one, two units at once: signed values
-- schema: survey
-- set: empty_groups = show
SELECT region, SUM(balance) FROM people GROUP BY region
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'north', 'south'
  Sum by k1
    - c1: x1 in steps of 1/100, -100000 to 100000
    Project k1 = region, x1 = balance
      Filter not (region is null)
        Scan people (unit person, one row per unit)
          - balance, decimal(10,2), as stored
          - region, text of 'north', 'south'
---- privacy
c1: l1 400000, l2² 160000000000, linf 400000; grid 1/100; gaussian 1.99071e+06; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: change_one, two units at once: weighted
-- schema: survey
-- set: noise = laplace
-- set: empty_groups = show
SELECT answered, AVG(minutes) FROM calls GROUP BY answered
---- rewritten
Gather by k1 boolean
  - listed k1, 2 groups: false, true
  Sum by k1
    - c1_above, c1_below: moments of x1 in steps of 1/524288, 0 to 31457280, divided by 2^14
    Weigh each unit as at most 4 rows, l1 norm by k1
      Project k1 = answered, x1 = minutes
        Filter not (answered is null)
          Scan calls (unit person)
            - minutes, double, as stored
            - answered, boolean of false, true
---- privacy
c1_above, c1_below: l1 2013265920, l2² 2026619832316723200, linf 1006632960; grid 1/2097152; laplace 2.01327e+09; epsilon 1, rho 0.25, delta 0
loss: epsilon 1, rho 0.25, delta 0
