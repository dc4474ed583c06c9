-- Sanitised rows with their unit's id.

-- case: only columns that are read; an id is never cast or moved
SELECT COUNT(*) FROM visits WHERE patient_id > 5
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Project
        Filter 6 <= patient_id
          Scan visits (unit patient_id)
            - patient_id, bigint, id

-- case: the data's type differs from the declared one
SELECT kind, COUNT(*) FROM visits WHERE nights > 2 GROUP BY kind
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'urgent', 'planned'
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = kind
        Filter not (kind is null)
          Filter 3 <= nights
            Scan visits (unit patient_id)
              - kind, text of 'urgent', 'planned'
              - nights, smallint [0, 14], cast from integer

-- case: the unit at the end of two foreign keys
SELECT SUM(value) FROM lab_tests
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1/10, 0 to 2000, divided by 2^2
    Weigh each unit as at most 8 rows, l2 norm
      Project x1 = value
        Scan lab_tests (unit visit_id -> visits.visit_id, patient_id)
          - value, double, grid 1/10, as stored

-- case: the unit is unique
SELECT SUM(birth_year) FROM patients
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1, 1920 to 2026
    Project x1 = birth_year
      Scan patients (unit patient_id, one row per unit)
        - birth_year, integer, as stored

-- case: each row is a unit
-- schema: rows
SELECT SUM(seconds) FROM events
---- rewritten
Gather
  Sum
    - c1: x1 in steps of 1, 0 to 600
    Project x1 = seconds
      Scan events (each row is a unit)
        - seconds, integer, as stored

-- case: joins equate the units in what runs
SELECT COUNT(*) FROM lab_tests l JOIN visits v ON l.visit_id = v.visit_id
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm
      Project
        Join inner on visit_id = visit_id_2, units equated
          Scan lab_tests (unit visit_id -> visits.visit_id, patient_id)
            - visit_id, bigint, id
          Scan visits (unit patient_id)
            - visit_id_2 = visit_id, bigint, id
