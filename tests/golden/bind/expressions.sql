-- Expressions over private rows.

-- case: comparisons, BETWEEN, IN with NULL, IS NULL
SELECT COUNT(*) FROM visits WHERE cost > 1 AND score BETWEEN 1 AND 5 AND ward IN ('a', 'b', NULL) AND note IS NOT NULL AND paid <> 2.5
---- plan
Aggregate
  - count rows
  Filter (cost > 1.0) and ((score >= 1) and (score <= 5)) and ((ward in ('a', 'b')) or null) and (not (note is null)) and (paid <> 2.50)
    Table visits (unit bigint)

-- case: literals take the type of the other side
SELECT COUNT(*) FROM visits WHERE at >= '2024-01-01' AND nights = '3' AND paid < '1.50'
---- plan
Aggregate
  - count rows
  Filter (at >= 2024-01-01 00:00:00) and (nights = 3) and (paid < 1.50)
    Table visits (unit bigint)

-- case: IS TRUE is never NULL
SELECT COUNT(*) FROM patients WHERE insured IS TRUE OR insured IS NOT FALSE
---- plan
Aggregate
  - count rows
  Filter coalesce(insured, false) or (not coalesce(not insured, false))
    Table patients (unit bigint)

-- case: integer division and remainder
SELECT COUNT(*) FROM visits WHERE score / 2 = 1 AND score % 3 = 0 AND score // 2 = 1
---- plan
Aggregate
  - count rows
  Filter ((score //:wide 2) = 1) and ((score %:wide 3) = 0) and ((score //:wide 2) = 1)
    Table visits (unit bigint)

-- case: division of others is in doubles
SELECT SUM(cost / 2), SUM(paid / 4) FROM visits
---- plan
Aggregate
  - sum cost / 2
  - sum paid / 4
  Table visits (unit bigint)

-- case: CASE with and without a subject
SELECT SUM(CASE kind WHEN 'urgent' THEN cost ELSE 0 END), SUM(CASE WHEN cost > 10 THEN 1 END) FROM visits
---- plan
Aggregate
  - sum case when cost > 10.0 then 1 else null end
  - sum case when kind = 'urgent' then cost else 0.0 end
  Table visits (unit bigint)

-- case: casts are total
SELECT COUNT(CAST(note AS integer)), COUNT(at::date), COUNT(CAST(cost AS smallint)) FROM visits
---- plan
Aggregate
  - count cast(at as date)
  - count cast(note as integer)
  - count cast(cost as smallint)
  Table visits (unit bigint)

-- case: functions
SELECT COUNT(*) FROM visits WHERE lower(ward) LIKE 'a%' AND length(trim(note)) > 3 AND coalesce(score, 0) = abs(-3) AND substring(ward, 1, 2) NOT ILIKE 'b_' AND round(cost, 1) < ceil(cost)
---- plan
Aggregate
  - count rows
  Filter like(lower(ward), 'a%') and (length(trim(note)) > 3) and (coalesce(score, 0) = 3) and (not ilike(substring(ward, 1, 2), 'b_')) and (round(cost, 1) < ceil(cost))
    Table visits (unit bigint)

-- case: clip has its own bounds
SELECT SUM(CLIP(score, -10, 2 * 10)), AVG(CLAMP(cost, 0.5, 99.5)) FROM visits
---- plan
Aggregate
  - mean clip(cost, 1/2, 199/2)
  - sum clip(score, -10, 20)
  Table visits (unit bigint)

-- case: the time is a literal
SELECT COUNT(*) FROM visits WHERE at < now() AND at >= CURRENT_DATE
---- plan
Aggregate
  - count rows
  Filter (at < 2024-03-01 12:30:00) and (at >= 2024-03-01 00:00:00)
    Table visits (unit bigint)

-- case: a parameter is a literal
-- parameters: ["o'clock", 5]
SELECT COUNT(*) FROM visits WHERE ward = ? AND score > ?
---- plan
Aggregate
  - count rows
  Filter (ward = 'o''clock') and (score > 5)
    Table visits (unit bigint)

-- case: FILTER is a condition on the argument
SELECT COUNT(*) FILTER (WHERE kind = 'urgent'), SUM(cost) FILTER (WHERE score > 5) FROM visits
---- plan
Aggregate
  - count case when kind = 'urgent' then 1 else null end
  - sum case when score > 5 then cost else null end
  Table visits (unit bigint)

-- case: BETWEEN SYMMETRIC
SELECT COUNT(*) FROM visits WHERE cost BETWEEN SYMMETRIC 5 AND 1
---- plan
Aggregate
  - count rows
  Filter ((cost >= 5.0) and (cost <= 1.0)) or ((cost >= 1.0) and (cost <= 5.0))
    Table visits (unit bigint)

-- case: IS DISTINCT FROM
SELECT COUNT(*) FROM visits WHERE cost IS DISTINCT FROM 5
---- plan
Aggregate
  - count rows
  Filter not coalesce(cost = 5.0, (cost is null) and (5.0 is null))
    Table visits (unit bigint)

-- case: a regular expression
SELECT COUNT(*) FROM visits WHERE ward ~ '^a'
---- plan
Aggregate
  - count rows
  Filter regexp_like(ward, '^a')
    Table visits (unit bigint)

-- case: a row value
SELECT COUNT(*) FROM visits WHERE (cost, score) = (1, 2)
---- plan
Aggregate
  - count rows
  Filter (cost = 1.0) and (score = 2)
    Table visits (unit bigint)

-- case: a cast with a length
SELECT CAST(note AS varchar(3)), COUNT(*) FROM visits GROUP BY 1
---- plan
Aggregate by k1 = left(note, 3)
  - count rows
  Table visits (unit bigint)

-- case: TRIM with a side
SELECT trim(LEADING 'x' FROM note), COUNT(*) FROM visits GROUP BY 1
---- plan
Aggregate by k1 = ltrim(note, 'x')
  - count rows
  Table visits (unit bigint)

-- case: ln of a number
SELECT SUM(ln(cost)) FROM visits
---- plan
Aggregate
  - sum ln(cost)
  Table visits (unit bigint)

-- case: a user over rows
SELECT COUNT(*) FROM visits WHERE ward = current_user
---- plan
Aggregate
  - count rows
  Filter ward = ''
    Table visits (unit bigint)

-- case: a pattern with a backslash
SELECT COUNT(*) FROM visits WHERE ward LIKE 'a\%'
---- plan
Aggregate
  - count rows
  Filter like(ward, 'a\%', '\')
    Table visits (unit bigint)

-- case: a pattern with ESCAPE
SELECT COUNT(*) FROM visits WHERE ward LIKE 'a!%' ESCAPE '!'
---- plan
Aggregate
  - count rows
  Filter like(ward, 'a!%', '!')
    Table visits (unit bigint)

-- case: IN with a column
SELECT COUNT(*) FROM visits WHERE ward IN (note)
---- plan
Aggregate
  - count rows
  Filter ward = note
    Table visits (unit bigint)

-- case: EXTRACT(epoch …)
SELECT EXTRACT(epoch FROM at), COUNT(*) FROM visits GROUP BY 1
---- plan
Aggregate by k1 = epoch(at)
  - count rows
  Table visits (unit bigint)

-- case: decades
SELECT date_trunc('decade', at), COUNT(*) FROM visits GROUP BY 1
---- plan
Aggregate by k1 = date_trunc('decade', at)
  - count rows
  Table visits (unit bigint)
