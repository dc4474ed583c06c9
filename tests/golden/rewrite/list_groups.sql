-- Public groups are listed, others selected.

-- case: declared values; NULL where the owner says so
SELECT sex, COUNT(*) FROM patients GROUP BY sex
---- rewritten
Gather by k1 text
  - listed k1, 4 groups: 'f', 'm', 'x', NULL
  Sum by k1
    - rows: rows
    Project k1 = sex
      Scan patients (unit patient_id, one row per unit)
        - sex, text of 'f', 'm', 'x', NULL is a group

-- case: NULL that is no group is filtered out
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

-- case: booleans
SELECT insured, COUNT(*) FROM patients GROUP BY insured
---- rewritten
Gather by k1 boolean
  - listed k1, 2 groups: false, true
  Sum by k1
    - rows: rows
    Project k1 = insured
      Filter not (insured is null)
        Scan patients (unit patient_id, one row per unit)
          - insured, boolean of false, true

-- case: an IN list
SELECT ward, COUNT(*) FROM visits WHERE ward IN ('b', 'a', 'b') GROUP BY ward
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'a', 'b'
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = ward
        Filter ward in ('a', 'b')
          Scan visits (unit patient_id)
            - ward, text

-- case: WHERE narrows declared values
SELECT sex, COUNT(*) FROM patients WHERE sex IN ('f', 'q') GROUP BY sex
---- rewritten
Gather by k1 text
  - listed k1, 1 groups: 'f'
  Sum by k1
    - rows: rows
    Project k1 = sex
      Filter sex in ('f', 'q')
        Scan patients (unit patient_id, one row per unit)
          - sex, text of 'f', 'm', 'x', NULL is a group

-- case: CASE with literal branches
SELECT CASE WHEN cost > 100 THEN 'high' WHEN cost > 10 THEN 'middle' ELSE 'low' END AS level, COUNT(*) FROM visits GROUP BY level
---- rewritten
Gather by k1 text
  - listed k1, 3 groups: 'high', 'middle', 'low'
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = case when 100.0 < cost then 'high' when 10.0 < cost then 'middle' else 'low' end
        Scan visits (unit patient_id)
          - cost, double [0, 5000], grid 1/2

-- case: parts and periods of bounded dates
SELECT EXTRACT(year FROM at), date_trunc('quarter', at), COUNT(*) FROM visits GROUP BY 1, 2
---- rewritten
Gather by k1 timestamp, k2 bigint
  - listed k1, k2, 16 groups: (2023-01-01 00:00:00, 2023), (2023-01-01 00:00:00, 2024), …, (2024-10-01 00:00:00, 2024)
  Sum by k1, k2
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1, k2
      Project k1 = date_trunc('quarter', at), k2 = extract('year', at)
        Filter (not (date_trunc('quarter', at) is null)) and (not (extract('year', at) is null))
          Scan visits (unit patient_id)
            - at, timestamp [2023-01-01 00:00:00, 2024-12-31 23:59:59.999999]

-- case: whole numbers and days within bounds
SELECT nights, COUNT(*) FROM visits GROUP BY nights
---- rewritten
Gather by k1 smallint
  - listed k1, 15 groups: 0, 1, …, 14
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = nights
        Filter not (nights is null)
          Scan visits (unit patient_id)
            - nights, smallint [0, 14], cast from integer

-- case: whole numbers narrowed by WHERE
SELECT nights, COUNT(*) FROM visits WHERE nights > 11 GROUP BY nights
---- rewritten
Gather by k1 smallint
  - listed k1, 3 groups: 12, 13, 14
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = nights
        Filter 12 <= nights
          Scan visits (unit patient_id)
            - nights, smallint [0, 14], cast from integer

-- case: a mixed key: the unknown part is selected, then crossed
SELECT ward, kind, COUNT(*) FROM visits GROUP BY ward, kind
---- rewritten
Gather by k2 text, k1 text
  - listed k1, 2 groups: 'urgent', 'planned'
  - selected k2: by selection_units
  CountUnits selection_units by k2: units, at most 4 groups each, weighted
    Project k1 = kind, k2 = ward
      Filter not (kind is null)
        Scan visits (unit patient_id)
          - ward, text
          - kind, text of 'urgent', 'planned'
  Sum by k1, k2
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1, k2
      Project k1 = kind, k2 = ward
        Filter not (kind is null)
          Scan visits (unit patient_id)
            - ward, text
            - kind, text of 'urgent', 'planned'

-- case: comparisons and maps of listed values
SELECT upper(kind), cost > 10, COUNT(*) FROM visits GROUP BY 1, 2
---- rewritten
Gather by k1 boolean, k2 text
  - listed k1, k2, 4 groups: (false, 'URGENT'), (false, 'PLANNED'), (true, 'URGENT'), (true, 'PLANNED')
  Sum by k1, k2
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1, k2
      Project k1 = 10.0 < cost, k2 = upper(kind)
        Filter (not ((10.0 < cost) is null)) and (not (upper(kind) is null))
          Scan visits (unit patient_id)
            - kind, text of 'urgent', 'planned'
            - cost, double [0, 5000], grid 1/2

-- case: NULL of a LEFT JOIN is a group
SELECT v.kind, COUNT(*) FROM patients p LEFT JOIN visits v ON v.patient_id = p.patient_id GROUP BY 1
---- rewritten
Gather by k1 text
  - listed k1, 3 groups: 'urgent', 'planned', NULL
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = kind
        Join left on patient_id = patient_id_2, units equated
          Scan patients (unit patient_id, one row per unit)
            - patient_id, bigint, id
          Scan visits (unit patient_id)
            - patient_id_2 = patient_id, bigint, id
            - kind, text of 'urgent', 'planned'

-- case: equal numbers are one group, however they are written
SELECT cost, COUNT(*) FROM visits WHERE cost IN (0.5, 5e-1, 1, 1.0) GROUP BY cost
---- rewritten
Gather by k1 double
  - listed k1, 2 groups: 0.5, 1.0
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = finite(cost)
        Filter cost in (0.5, 1.0)
          Scan visits (unit patient_id)
            - cost, double [0, 5000], grid 1/2

-- case: a list with a value that the type does not have is no list of groups
SELECT paid, COUNT(*) FROM visits WHERE paid IN (1.005, 2.5) GROUP BY paid
---- rewritten
Gather by k1 decimal(10,2)
  - selected k1: by selection_units
  CountUnits selection_units by k1: units, at most 4 groups each, weighted
    Project k1 = paid
      Filter cast(paid as double) in (1.005, 2.5)
        Scan visits (unit patient_id)
          - paid, decimal(10,2) [-100, 1000]
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = paid
        Filter cast(paid as double) in (1.005, 2.5)
          Scan visits (unit patient_id)
            - paid, decimal(10,2) [-100, 1000]

-- case: a value that WHERE excludes is no group
SELECT sex, COUNT(*) FROM patients WHERE sex <> 'x' GROUP BY sex
---- rewritten
Gather by k1 text
  - listed k1, 2 groups: 'f', 'm'
  Sum by k1
    - rows: rows
    Project k1 = sex
      Filter sex <> 'x'
        Scan patients (unit patient_id, one row per unit)
          - sex, text of 'f', 'm', 'x', NULL is a group

-- case: a quotient by a literal is never NULL
SELECT nights / 7, nights % 3, COUNT(*) FROM visits GROUP BY 1, 2
---- rewritten
Gather by k1 bigint, k2 bigint
  - listed k1, k2, 7 groups: (0, 0), (1, 0), (2, 0), (1, 1), (2, 1), (0, 1), (2, 2)
  Sum by k1, k2
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1, k2
      Project k1 = nights % 3, k2 = nights // 7
        Filter (not ((nights % 3) is null)) and (not ((nights // 7) is null))
          Scan visits (unit patient_id)
            - nights, smallint [0, 14], cast from integer

-- case: too many public groups are selected instead
SELECT date_trunc('hour', at), COUNT(*) FROM visits GROUP BY 1
---- rewritten
Gather by k1 timestamp
  - selected k1: by selection_units
  CountUnits selection_units by k1: units, at most 4 groups each, weighted
    Project k1 = date_trunc('hour', at)
      Scan visits (unit patient_id)
        - at, timestamp [2023-01-01 00:00:00, 2024-12-31 23:59:59.999999]
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = date_trunc('hour', at)
        Scan visits (unit patient_id)
          - at, timestamp [2023-01-01 00:00:00, 2024-12-31 23:59:59.999999]

-- case: a year narrows the days in it
SELECT DATE_TRUNC('quarter', at) AS quarter, COUNT(*) FROM visits WHERE EXTRACT(year FROM at) = 2024 GROUP BY 1
---- rewritten
Gather by k1 timestamp
  - listed k1, 4 groups: 2024-01-01 00:00:00, 2024-04-01 00:00:00, 2024-07-01 00:00:00, 2024-10-01 00:00:00
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = date_trunc('quarter', at)
        Filter extract('year', at) = 2024
          Scan visits (unit patient_id)
            - at, timestamp [2023-01-01 00:00:00, 2024-12-31 23:59:59.999999]

-- case: a key worked out from the years of a column
SELECT EXTRACT(year FROM at) / 2 * 2 AS pair, COUNT(*) FROM visits GROUP BY 1
---- rewritten
Gather by k1 bigint
  - listed k1, 2 groups: 2022, 2024
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = (extract('year', at) // 2) * 2
        Filter not (((extract('year', at) // 2) * 2) is null)
          Scan visits (unit patient_id)
            - at, timestamp [2023-01-01 00:00:00, 2024-12-31 23:59:59.999999]

-- case: buckets of seconds
SELECT floor(extract(epoch FROM at) / 43200) * 43200 AS time, COUNT(*) FROM visits WHERE at::date = DATE '2024-03-01' + 1 GROUP BY 1
---- rewritten
Gather by k1 double
  - listed k1, 2 groups: 1709337600.0, 1709380800.0
  Sum by k1
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1
      Project k1 = finite(floor(epoch(at) / 43200) * 43200)
        Filter cast(at as date) = 2024-03-02
          Scan visits (unit patient_id)
            - at, timestamp [2023-01-01 00:00:00, 2024-12-31 23:59:59.999999]

-- case: the grouping sets of public keys list what stands in the public rows
SELECT w.floor, w.ward, COUNT(*) FROM visits v JOIN "Wards" w ON v.ward = w.ward WHERE w.floor > 0 GROUP BY ROLLUP (w.floor, w.ward)
---- rewritten
Gather by k1 integer, k2 text, _set bigint
  - listed in 3 grouping sets, at most 6 groups: listed k1, k2, at most 3 groups: from Wards | listed k1, 2 groups: 1, 2 | one group of all rows
  Sum by k1, k2, _set
    - rows: rows
    Weigh each unit as at most 8 rows in each grouping set, l2 norm by k1, k2, _set
      Expand to the grouping sets (k1, k2), (k1), ()
        Project k1 = floor, k2 = ward_2
          Join inner on ward = ward_2
            Scan visits (unit patient_id)
              - ward, text
            Filter 1 <= floor
              Scan public Wards, 3 rows
                - ward_2 = ward, text
                - floor, integer, NULL is a group

-- case: beside a declared key each set has the rows of its own keys
SELECT UPPER(w.ward), w.floor, v.kind, COUNT(*) FROM visits v JOIN "Wards" w ON v.ward = w.ward GROUP BY GROUPING SETS ((1, 2, 3), (w.floor, 3), ())
---- rewritten
Gather by k1 text, k2 integer, k3 text, _set bigint
  - listed in 3 grouping sets, at most 13 groups: listed k3, 2 groups: 'urgent', 'planned'; listed k1, k2, at most 3 groups: from Wards | listed k2, k3, 6 groups: (1, 'urgent'), (1, 'planned'), (2, 'urgent'), (2, 'planned'), (NULL, 'urgent'), (NULL, 'planned') | one group of all rows
  Sum by k1, k2, k3, _set
    - rows: rows
    Weigh each unit as at most 8 rows in each grouping set, l2 norm by k1, k2, k3, _set
      Filter (not (k3 is null)) or (not (_set in (0, 1)))
        Expand to the grouping sets (k1, k2, k3), (k2, k3), ()
          Project k1 = upper(ward_2), k2 = floor, k3 = kind
            Join inner on ward = ward_2
              Scan visits (unit patient_id)
                - ward, text
                - kind, text of 'urgent', 'planned'
              Scan public Wards, 3 rows
                - ward_2 = ward, text
                - floor, integer, NULL is a group

-- case: keys that are worked out from one public table are listed together
SELECT UPPER(w.ward), w.floor + 1, COUNT(*) FROM visits v JOIN "Wards" w ON v.ward = w.ward GROUP BY 1, 2
---- rewritten
Gather by k1 bigint, k2 text
  - listed k1, k2, at most 3 groups: from Wards
  Sum by k1, k2
    - rows: rows
    Weigh each unit as at most 8 rows, l2 norm by k1, k2
      Project k1 = floor + 1, k2 = upper(ward_2)
        Join inner on ward = ward_2
          Scan visits (unit patient_id)
            - ward, text
          Scan public Wards, 3 rows
            - ward_2 = ward, text
            - floor, integer, NULL is a group

-- case: of two keys of one column each grouping set has the pairs that the column gives
SELECT nights / 7, nights % 3, COUNT(*) FROM visits WHERE nights > 11 GROUP BY ROLLUP (1, 2)
---- rewritten
Gather by k1 bigint, k2 bigint, _set bigint
  - listed k1, k2, _set, 6 groups: (0, 1, 0), (1, 1, 0), (2, 2, 0), (NULL, 1, 1), (NULL, 2, 1), (NULL, NULL, 2)
  Sum by k1, k2, _set
    - rows: rows
    Weigh each unit as at most 8 rows in each grouping set, l2 norm by k1, k2, _set
      Expand to the grouping sets (k1, k2), (k2), ()
        Project k1 = nights % 3, k2 = nights // 7
          Filter 12 <= nights
            Scan visits (unit patient_id)
              - nights, smallint [0, 14], cast from integer
