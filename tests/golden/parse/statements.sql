-- What the reader takes a statement for.

-- case: DuckDB's integer division beside PostgreSQL's
SELECT COUNT(*) // 2, COUNT(*) / 2 FROM visits
---- parsed
SELECT
  DIV(COUNT(*), 2),
  COUNT(*) / 2
FROM visits

-- case: precedence of NOT, AND and OR
SELECT COUNT(*) FROM visits WHERE NOT kind = 'urgent' AND cost > 1 OR score = 2
---- parsed
SELECT
  COUNT(*)
FROM visits
WHERE
  NOT kind = 'urgent' AND cost > 1 OR score = 2

-- case: parameters become literals, never SQL
-- parameters: ["x' OR 1 = 1 --", 2.5, null]
SELECT COUNT(*) FROM visits WHERE ward = ? AND cost > ? AND score = ?
---- parsed
SELECT
  COUNT(*)
FROM visits
WHERE
  ward = 'x'' OR 1 = 1 --' AND cost > 2.5 AND score = NULL

-- case: a statement in parentheses and a trailing semicolon
(SELECT COUNT(*) FROM visits);
---- parsed
(
  SELECT
    COUNT(*)
  FROM visits
)

-- case: FROM may come first
FROM visits SELECT COUNT(*)
---- parsed
SELECT
  COUNT(*)
FROM visits

-- case: casts have two spellings
SELECT COUNT(*) FROM visits WHERE at::date > CAST('2024-01-01' AS date)
---- parsed
SELECT
  COUNT(*)
FROM visits
WHERE
  CAST(at AS DATE) > CAST('2024-01-01' AS DATE)
