-- Units per group: partition selection and COUNT(DISTINCT unit).

-- case: keys that are not public are selected by units
SELECT ward, COUNT(*) FROM visits GROUP BY ward
---- rewritten
Gather by k1 text
  - selected k1: by selection_units
  CountUnits selection_units by k1: units, at most 4 groups each, weighted
    Project k1 = ward
      Scan visits (unit patient_id)
        - ward, text
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = ward
        Scan visits (unit patient_id)
          - ward, text
---- privacy
selection selection_units: weighted Gaussian threshold, at most 4 keys, scale 732182, above 4313961; rho 0.00400583, delta 9.99994e-09
rows: l1 274877906944, l2² 274877906944, linf 524288; grid 1/65536; gaussian 2.92873e+06; rho 0.0160233, delta 0
loss: rho 0.0200291, delta 9.99994e-09

-- case: a key that depends on the unit: one group each
SELECT birth_year + weight, COUNT(*) FROM patients GROUP BY 1
---- rewritten
Gather by k1 double
  - selected k1: by selection_units
  CountUnits selection_units by k1: rows, one per unit
    Project k1 = finite(birth_year + weight)
      Scan patients (unit patient_id, one row per unit)
        - birth_year, integer [1920, 2026]
        - weight, double [2, 300]
  Sum by k1
    - rows: rows
    Project k1 = finite(birth_year + weight)
      Scan patients (unit patient_id, one row per unit)
        - birth_year, integer [1920, 2026]
        - weight, double [2, 300]
---- privacy
selection selection_units: Gaussian threshold, at most 1 keys, scale 11.1722, above 64; rho 0.00400583, delta 6.51608e-09
rows: l1 1, l2² 1, linf 1; grid 1; gaussian 5.5861; rho 0.0160233, delta 0
loss: rho 0.0200291, delta 6.51608e-09

-- case: with Laplace noise
-- set: noise = laplace
SELECT ward, SUM(cost) FROM visits GROUP BY ward
---- rewritten
Gather by k1 text
  - selected k1: by selection_units
  CountUnits selection_units by k1: units, at most 4 groups each, weighted
    Project k1 = ward, x1 = cost
      Scan visits (unit patient_id)
        - ward, text
        - cost, double, grid 1/2, as stored
  Sum by k1
    - c1: x1 in steps of 1/2, 0 to 10000, divided by 2^3
    Weigh each unit as at most 8 rows, l1 norm by k1
      Project k1 = ward, x1 = cost
        Scan visits (unit patient_id)
          - ward, text
          - cost, double, grid 1/2, as stored
---- privacy
selection selection_units: weighted Gaussian threshold, at most 4 keys, scale 698234, above 4115464; rho 0.00440482, delta 9.99991e-09
c1: l1 655360000, l2² 429496729600000000, linf 655360000; grid 1/16384; laplace 1.19156e+09; epsilon 0.55, rho 0.15125, delta 0
loss: rho 0.155655, delta 9.99991e-09

-- case: a row unit
-- schema: rows
SELECT page, COUNT(*) FROM events GROUP BY page
---- rewritten
Gather by k1 text
  - selected k1: by selection_units
  CountUnits selection_units by k1: rows, one per unit
    Project k1 = page
      Scan events (each row is a unit)
        - page, text
  Sum by k1
    - rows: rows
    Project k1 = page
      Scan events (each row is a unit)
        - page, text
---- privacy
selection selection_units: Gaussian threshold, at most 1 keys, scale 11.1722, above 64; rho 0.00400583, delta 6.51608e-09
rows: l1 1, l2² 1, linf 1; grid 1; gaussian 5.5861; rho 0.0160233, delta 0
loss: rho 0.0200291, delta 6.51608e-09

-- case: change_one, two units at once
-- schema: survey
SELECT town, COUNT(*) FROM calls GROUP BY town
---- rewritten
Gather by k1 text
  - selected k1: by selection_units
  CountUnits selection_units by k1: units, at most 2 groups each
    Project k1 = town
      Scan calls (unit person)
        - town, text
  Sum by k1
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm by k1
      Project k1 = town
        Scan calls (unit person)
          - town, text
---- privacy
selection selection_units: Gaussian threshold, at most 2 keys, scale 44.6888, above 262; rho 0.00400583, delta 9.73875e-09
rows: l1 274877906944, l2² 549755813888, linf 524288; grid 1/65536; gaussian 4.14184e+06; rho 0.0160233, delta 0
loss: rho 0.0200291, delta 9.73875e-09

-- case: keys alone
SELECT DISTINCT ward FROM visits
---- rewritten
Gather by k1 text
  - selected k1: by selection_units
  CountUnits selection_units by k1: units, at most 4 groups each, weighted
    Project k1 = ward
      Scan visits (unit patient_id)
        - ward, text
---- privacy
selection selection_units: weighted Gaussian threshold, at most 4 keys, scale 327442, above 1947376; rho 0.0200291, delta 9.99994e-09
loss: rho 0.0200291, delta 9.99994e-09

-- case: units in few public groups need no cap
SELECT kind, COUNT(DISTINCT patient_id) FROM visits GROUP BY kind
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'urgent', 'planned'
  CountUnits units by k1: units
    Project k1 = kind
      Filter not (kind is null)
        Scan visits (unit patient_id)
          - kind, text of 'urgent', 'planned'
---- privacy
units: l1 2, l2² 2, linf 1; grid 1; gaussian 7.03822; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: units in many public groups are capped
SELECT EXTRACT(month FROM at), COUNT(DISTINCT patient_id) FROM visits GROUP BY 1
---- rewritten
Gather by k1 bigint
  - listed k1, 12 groups: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
  CountUnits units by k1: units, at most 4 groups each
    Project k1 = extract('month', at)
      Filter not (extract('month', at) is null)
        Scan visits (unit patient_id)
          - at, timestamp [2023-01-01 00:00:00, 2024-12-31 23:59:59.999999]
---- privacy
units: l1 4, l2² 4, linf 1; grid 1; gaussian 9.95354; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: units, without keys
SELECT COUNT(DISTINCT patient_id) FROM lab_tests JOIN visits USING (visit_id)
---- rewritten
Gather
  CountUnits units: units
    Project
      Join inner on visit_id = visit_id_2, units equated
        Scan lab_tests (unit visit_id -> visits.visit_id, patient_id)
          - visit_id, bigint, id
        Scan visits (unit patient_id)
          - visit_id_2 = visit_id, bigint, id
---- privacy
units: l1 1, l2² 1, linf 1; grid 1; gaussian 4.97677; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0

-- case: units where the unit is unique
SELECT sex, COUNT(DISTINCT patient_id) FROM patients GROUP BY sex
---- rewritten
Gather by k1 text
  - listed k1, 4 groups: 'f', 'm', 'x', NULL
  CountUnits units by k1: rows, one per unit
    Project k1 = sex
      Scan patients (unit patient_id, one row per unit)
        - sex, text of 'f', 'm', 'x', NULL is a group
---- privacy
units: l1 1, l2² 1, linf 1; grid 1; gaussian 4.97677; rho 0.0201871, delta 0
loss: rho 0.0201871, delta 0
