-- Times compared with a column that has a grid are rounded down to it. It is Friday, 2024-03-01 12:30.

-- case: both ends of a window are rounded down
-- schema: snap
SELECT COUNT(*) FROM calls WHERE at >= now() - INTERVAL '24 hours' AND now() > at
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter (at < 2024-03-01 12:00:00) and (2024-02-29 12:00:00 <= at)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: BETWEEN keeps its upper end
-- schema: snap
SELECT COUNT(*) FROM calls WHERE at BETWEEN '2024-03-01 10:59:59' AND '2024-03-01 12:59:59'
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter (at <= 2024-03-01 12:00:00) and (2024-03-01 10:00:00 <= at)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: a parameter is a literal
-- schema: snap
-- parameters: ["2024-03-01 10:59:59"]
SELECT COUNT(*) FROM calls WHERE ? <= at
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter 2024-03-01 10:00:00 <= at
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: a range within one step becomes that step
-- schema: snap
SELECT COUNT(*) FROM calls WHERE at >= '2024-03-01 12:10' AND at < '2024-03-01 12:25'
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter (at < 2024-03-01 13:00:00) and (2024-03-01 12:00:00 <= at)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: a range within one step that is left out, too
-- schema: snap
SELECT COUNT(*) FROM calls WHERE NOT (at >= '2024-03-01 12:10' AND at < '2024-03-01 12:25')
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter (at < 2024-03-01 12:00:00) or (2024-03-01 13:00:00 <= at)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: a range that was empty stays empty
-- schema: snap
SELECT COUNT(*) FROM calls WHERE at >= '2024-03-01 12:25' AND at < '2024-03-01 12:10'
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter (at < 2024-03-01 12:00:00) and (2024-03-01 12:00:00 <= at)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: times on the grid are left alone
-- schema: snap
SELECT COUNT(*) FROM calls WHERE at >= '2024-03-01' AND at < date_trunc('hour', now())
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter (at < 2024-03-01 12:00:00) and (2024-03-01 00:00:00 <= at)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
none

-- case: equality is left alone
-- schema: snap
SELECT COUNT(*) FROM calls WHERE at = '2024-03-01 12:10' OR at IN ('2024-03-01 12:11', '2024-03-01 12:12')
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter at in (2024-03-01 12:10:00, 2024-03-01 12:11:00, 2024-03-01 12:12:00)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
none

-- case: columns without a grid are left alone
-- schema: snap
SELECT COUNT(*) FROM calls WHERE seen >= now()
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter 2024-03-01 12:30:00 <= seen
          Scan calls (unit person)
            - seen, timestamp
---- notices
none

-- case: days of timestamps in UTC
-- schema: snap
SELECT COUNT(*) FROM calls WHERE paid >= TIMESTAMPTZ '2024-03-01 01:00:00+02' AND paid < now()
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter (paid < 2024-03-01 00:00:00+00:00) and (2024-02-29 00:00:00+00:00 <= paid)
          Scan calls (unit person)
            - paid, timestamptz
---- notices
times compared with calls.paid were rounded to 1 day

-- case: weeks of dates begin on Mondays and end before Mondays
-- schema: snap
SELECT COUNT(*) FROM people WHERE joined BETWEEN '2024-02-19' AND '2024-02-25'
---- rewritten
Gather
  Sum
    - rows: rows
    Project
      Filter (joined < 2024-02-26) and (2024-02-19 <= joined)
        Scan people (unit person, one row per unit)
          - joined, date
---- notices
none

-- case: half a week is a week
-- schema: snap
SELECT COUNT(*) FROM people WHERE joined > '2024-02-20' AND joined <= '2024-02-22'
---- rewritten
Gather
  Sum
    - rows: rows
    Project
      Filter (joined < 2024-02-26) and (2024-02-19 <= joined)
        Scan people (unit person, one row per unit)
          - joined, date
---- notices
times compared with people.joined were rounded to 1 week

-- case: a date compared with the current time
-- schema: snap
SELECT COUNT(*) FROM people WHERE joined >= now() - INTERVAL '1 month'
---- rewritten
Gather
  Sum
    - rows: rows
    Project
      Filter 2024-01-29 00:00:00 <= cast(joined as timestamp)
        Scan people (unit person, one row per unit)
          - joined, date
---- notices
times compared with people.joined were rounded to 1 week

-- case: through a view, a CTE, aliases and a join
-- schema: snap
WITH c AS (SELECT r.person AS who, r.moment AS m FROM recent r)
SELECT COUNT(*) FROM (SELECT who, m AS last FROM c) x JOIN people p ON p.person = x.who AND x.last >= now()
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Join inner on person_2 = who_2, units equated
          Filter 2024-03-01 12:00:00 <= last
            Project who_2 = person, last = at
              Filter 1 <= seconds
                Scan calls (unit person)
                  - person, bigint, id
                  - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
                  - seconds, integer [0, 600]
          Scan people (unit person, one row per unit)
            - person_2 = person, bigint, id
---- notices
times compared with calls.at were rounded to 1 hour

-- case: through what is computed from the column
-- schema: snap
SELECT COUNT(*) FROM calls
WHERE date_trunc('minute', at) >= now() AND CAST(at AS timestamptz) < '2024-03-01 13:31Z'
  AND at + INTERVAL '2 hours' > now() AND at AT TIME ZONE 'Europe/Berlin' > now()
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter (cast(at as timestamptz) < 2024-03-01 13:00:00+00:00) and (2024-03-01 12:00:00 < add_interval(at, 0, 0, 7200000000)) and (2024-03-01 12:00:00+00:00 < timezone('Europe/Berlin', at)) and (2024-03-01 12:00:00 <= date_trunc('minute', at))
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: the last call of each person
-- schema: snap
SELECT COUNT(*) FROM (SELECT person, MAX(at) AS last FROM calls GROUP BY person) s WHERE last < now() - INTERVAL '7 days'
---- rewritten
Gather
  Sum
    - rows: rows
    Project
      Filter measure < 2024-02-23 12:00:00
        Each by the unit, person_2 = person
          - measure = max(at)
          Scan calls (unit person)
            - person, bigint, id
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: in a window function and in EXISTS
-- schema: snap
SELECT COUNT(*) FROM people p WHERE EXISTS (
  SELECT 1 FROM (SELECT person, LAG(at) OVER (PARTITION BY person ORDER BY at) AS before FROM calls) w
  WHERE w.person = p.person AND w.before > now())
---- rewritten
Gather
  Sum
    - rows: rows
    Project
      Filter exists
        Mark exists: exists where person = person_3, units equated
          Scan people (unit person, one row per unit)
            - person, bigint, id
          Project person_3 = person_2, before = lag
            Filter 2024-03-01 12:00:00 < lag
              Window lag = lag(at) by the unit order by at
                Scan calls (unit person)
                  - person_2 = person, bigint, id
                  - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour

-- case: in an aggregate's condition and in a key
-- schema: snap
SELECT at > now() AS later, COUNT(*) FILTER (WHERE at <= now()), SUM(CASE WHEN at > now() THEN seconds END) FROM calls GROUP BY 1
---- rewritten
Gather by k1 boolean
  - listed k1, 2 groups: false, true
  Sum by k1
    - c1: rows where x1 is not null
    - c2: x2 in steps of 1, 0 to 600
    Weigh each unit as at most 4 rows, l2 norm by k1
      Project k1 = 2024-03-01 12:00:00 < at, x1 = case when at <= 2024-03-01 12:00:00 then 1 else null end, x2 = case when 2024-03-01 12:00:00 < at then seconds else null end
        Filter not ((2024-03-01 12:00:00 < at) is null)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
            - seconds, integer [0, 600]
---- notices
rows for which a computed key is NULL are in no group; COALESCE(…) within the key keeps them
times compared with calls.at were rounded to 1 hour

-- case: of two columns in one place, the coarser grid
-- schema: snap
SELECT COUNT(*) FROM (SELECT person, at FROM calls UNION ALL SELECT person, CAST(paid AS timestamp) FROM calls) u WHERE at >= now()
---- rewritten
Gather
  Sum
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm
      Project
        Filter 2024-03-01 00:00:00 <= at_4
          Union all
            Project person_5 = person, at_4 = at
              Scan calls (unit person)
                - person, bigint, id
                - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
            Project person_6 = person_4, paid_4 = paid_3
              Project person_4 = person_2, paid_3 = cast(paid_2 as timestamp)
                Scan calls (unit person)
                  - person_2 = person, bigint, id
                  - paid_2 = paid, timestamptz
---- notices
times compared with calls.at were rounded to 1 day
times compared with calls.paid were rounded to 1 day

-- case: groups of a sliding window are those of the rounded one
-- schema: snap
SELECT date_trunc('hour', at), COUNT(*) FROM calls WHERE at >= now() - INTERVAL '3 hours' AND at < now() GROUP BY 1
---- rewritten
Gather by k1 timestamp
  - listed k1, 3 groups: 2024-03-01 09:00:00, 2024-03-01 10:00:00, 2024-03-01 11:00:00
  Sum by k1
    - rows: rows
    Weigh each unit as at most 4 rows, l2 norm by k1
      Project k1 = date_trunc('hour', at)
        Filter (at < 2024-03-01 12:00:00) and (2024-03-01 09:00:00 <= at)
          Scan calls (unit person)
            - at, timestamp [2024-01-01 00:00:00, 2024-12-31 00:00:00]
---- notices
times compared with calls.at were rounded to 1 hour
