-- What analysts ask first: how many, how much, by what.

-- case: all visits
SELECT COUNT(*) FROM visits

-- case: patients, their mean weight and height
SELECT COUNT(*) AS patients, AVG(weight) AS mean_weight, AVG(height) AS mean_height FROM patients

-- case: visits and patients who came
SELECT COUNT(*) AS visits, COUNT(DISTINCT patient_id) AS patients FROM visits

-- case: counts of what is there and what is missing
SELECT COUNT(*) AS n, COUNT(cost) AS priced, COUNT(rating) AS rated, COUNT(*) - COUNT(note) AS without_note FROM visits

-- case: by ward
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward ORDER BY ward

-- case: by ward and kind, several aggregates
SELECT ward, kind, COUNT(*) AS n, SUM(cost) AS total, AVG(cost) AS mean, AVG(nights) AS stay
FROM visits
GROUP BY ward, kind
ORDER BY ward, kind

-- case: the same expression as key and in the ordering
SELECT UPPER(ward), COUNT(*) FROM visits GROUP BY UPPER(ward) ORDER BY UPPER(ward)

-- case: ordinals
SELECT kind, urgent, COUNT(*) FROM visits GROUP BY 1, 2 ORDER BY 1, 2 DESC

-- case: group by all
SELECT language, insured, COUNT(*), AVG(weight) FROM patients GROUP BY ALL ORDER BY ALL

-- case: an alias as key
SELECT CASE WHEN nights = 0 THEN 'day case' WHEN nights < 4 THEN 'short' ELSE 'long' END AS stay, COUNT(*) AS n
FROM visits
GROUP BY stay
ORDER BY stay

-- case: buckets of a number by CASE
SELECT
  CASE
    WHEN cost IS NULL THEN 'unknown'
    WHEN cost < 500 THEN 'low'
    WHEN cost < 2000 THEN 'middle'
    ELSE 'high'
  END AS bucket,
  COUNT(*) AS visits,
  SUM(paid) AS paid
FROM visits
GROUP BY 1
ORDER BY 1

-- case: simple CASE over a code
SELECT CASE sex WHEN 'f' THEN 'female' WHEN 'm' THEN 'male' ELSE 'other' END AS who, COUNT(*) FROM patients GROUP BY 1 ORDER BY 1

-- case: bins of equal width
SELECT FLOOR(cost / 500) * 500 AS bin, COUNT(*) FROM visits WHERE cost IS NOT NULL GROUP BY 1 ORDER BY 1

-- case: width_bucket
SELECT width_bucket(cost, 0, 5000, 10) AS bucket, COUNT(*) AS n FROM visits WHERE cost IS NOT NULL GROUP BY bucket ORDER BY bucket
---- duckdb
SELECT CASE WHEN cost < 0 THEN 0 WHEN cost >= 5000 THEN 11 ELSE FLOOR(cost / 500)::INTEGER + 1 END AS bucket, COUNT(*) AS n
FROM visits WHERE cost IS NOT NULL GROUP BY bucket ORDER BY bucket

-- case: an integer divided as PostgreSQL divides it
SELECT nights / 4 AS quarter, COUNT(*) FROM visits WHERE nights < 12 GROUP BY 1 ORDER BY 1

-- case: a remainder as key
SELECT doctor_id % 3 AS rota, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: a boolean expression as key
SELECT cost > 1000 AS dear, COUNT(*) FROM visits WHERE cost IS NOT NULL GROUP BY dear ORDER BY dear

-- case: a key that may be missing
SELECT sex, COUNT(*) AS n FROM patients GROUP BY sex ORDER BY sex NULLS FIRST

-- case: missing values named by COALESCE
SELECT COALESCE(sex, 'unknown') AS sex, COUNT(*) AS n FROM patients GROUP BY 1 ORDER BY n DESC

-- case: a nullable boolean
SELECT smoker, COUNT(*), AVG(risk) FROM patients GROUP BY smoker ORDER BY smoker NULLS LAST

-- case: a rating with its missing ones
SELECT rating, COUNT(*) FROM visits GROUP BY rating ORDER BY rating NULLS FIRST

-- case: keys that the schema lists but no row has
SELECT nights, COUNT(*) AS n FROM visits GROUP BY nights ORDER BY nights

-- case: free text as key
SELECT note, COUNT(*) FROM visits GROUP BY note ORDER BY note NULLS LAST

-- case: first letters
SELECT LEFT(city, 1) AS letter, COUNT(*) FROM patients GROUP BY LEFT(city, 1) ORDER BY letter

-- case: text put together as key
SELECT ward || '/' || kind AS place, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: filters of every kind
SELECT COUNT(*) FROM visits
WHERE ward IN ('surgery', 'urology') AND kind <> 'follow-up' AND cost BETWEEN 100 AND 3000 AND nights >= 2 AND NOT urgent

-- case: filter by LIKE and ILIKE
SELECT COUNT(*) FILTER (WHERE note LIKE '%fell%') AS small, COUNT(*) FILTER (WHERE note ILIKE '%fell%') AS any_case,
       COUNT(*) FILTER (WHERE note LIKE 'a\_b%') AS underscored, COUNT(*) FILTER (WHERE note NOT LIKE '%\%%') AS no_percent
FROM visits
---- duckdb
SELECT COUNT(*) FILTER (WHERE note LIKE '%fell%') AS small, COUNT(*) FILTER (WHERE note ILIKE '%fell%') AS any_case,
       COUNT(*) FILTER (WHERE note LIKE 'a\_b%' ESCAPE '\') AS underscored, COUNT(*) FILTER (WHERE note NOT LIKE '%\%%' ESCAPE '\') AS no_percent
FROM visits

-- case: filter by regular expression
SELECT COUNT(*) FROM visits WHERE note ~ '^[Ff]ell'
---- duckdb
SELECT COUNT(*) FROM visits WHERE regexp_matches(note, '^[Ff]ell')

-- case: IS DISTINCT FROM
SELECT COUNT(*) FROM visits WHERE rating IS DISTINCT FROM 3

-- case: three-valued logic
SELECT COUNT(*) FROM patients WHERE NOT (smoker OR sex = 'x')

-- case: IS NOT TRUE
SELECT COUNT(*) FROM patients WHERE smoker IS NOT TRUE

-- case: conditional counts side by side
SELECT ward, COUNT(*) FILTER (WHERE urgent) AS urgent, COUNT(*) FILTER (WHERE NOT urgent) AS calm,
       SUM(CASE WHEN kind = 'emergency' THEN 1 ELSE 0 END) AS emergencies
FROM visits GROUP BY ward ORDER BY ward

-- case: sum of a boolean
SELECT kind, SUM(urgent::int) AS urgent, AVG(urgent::int) AS share FROM visits GROUP BY kind ORDER BY kind

-- case: COUNT of a CASE
SELECT COUNT(CASE WHEN cost > 2500 THEN 1 END) AS dear, COUNT(CASE WHEN urgent THEN patient_id END) AS urgent FROM visits

-- case: count_if
SELECT ward, COUNT_IF(nights > 5) AS long_stays FROM visits GROUP BY ward ORDER BY ward

-- case: arithmetic inside a sum
SELECT SUM(cost * 1.19) AS gross, SUM(cost - paid) AS open, SUM(nights * 250) AS hotel FROM visits WHERE cost IS NOT NULL

-- case: sum of a product of columns
SELECT drug, SUM(days * dose) AS amount, SUM(price * (refills + 1)) AS worth FROM prescriptions GROUP BY drug ORDER BY drug

-- case: sum of a guarded value
SELECT SUM(COALESCE(cost, 0)) AS total, AVG(COALESCE(rating, 3)) AS rating FROM visits

-- case: bounds given by LEAST and GREATEST
SELECT AVG(GREATEST(LEAST(cost, 1000), 10)) FROM visits WHERE cost IS NOT NULL

-- case: bounds given by CLIP
SELECT ward, SUM(CLIP(cost, 0, 800)) FROM visits GROUP BY ward ORDER BY ward

-- case: AVG with a filter of its own
SELECT kind, AVG(cost) FILTER (WHERE urgent) AS urgent, AVG(cost) FILTER (WHERE NOT urgent) AS calm FROM visits GROUP BY kind ORDER BY kind

-- case: DISTINCT keys
SELECT DISTINCT ward FROM visits ORDER BY ward

-- case: DISTINCT of several columns
SELECT DISTINCT kind, urgent FROM visits ORDER BY kind, urgent

-- case: keys by GROUP BY alone
SELECT city FROM patients GROUP BY city ORDER BY city

-- case: COUNT DISTINCT of what is not the unit
SELECT COUNT(DISTINCT ward) AS wards, COUNT(DISTINCT diagnosis) AS codes FROM visits

-- case: COUNT DISTINCT per group
SELECT ward, COUNT(DISTINCT diagnosis) AS codes, COUNT(DISTINCT patient_id) AS patients FROM visits GROUP BY ward ORDER BY ward

-- case: COUNT DISTINCT with a condition
SELECT COUNT(DISTINCT CASE WHEN urgent THEN patient_id END) AS urgent_patients, COUNT(DISTINCT patient_id) FILTER (WHERE nights > 9) AS long_stays FROM visits

-- case: COUNT DISTINCT of an expression
SELECT COUNT(DISTINCT DATE_TRUNC('month', admitted)) AS months, COUNT(DISTINCT LOWER(ward)) AS wards FROM visits

-- case: SUM DISTINCT
SELECT SUM(DISTINCT nights) AS lengths, AVG(DISTINCT rating) AS mean_of_ratings FROM visits

-- case: all or any
SELECT ward, BOOL_OR(urgent) AS any_urgent, BOOL_AND(nights < 12) AS all_short FROM visits GROUP BY ward ORDER BY ward

-- case: a condition that no row meets
SELECT COUNT(*) AS n, SUM(cost) AS total FROM visits WHERE ward = 'no such ward'

-- case: a nation of small words
select   count ( * )   as   "How many?"   from   visits   where   urgent   /* urgent ones */   -- and no others

-- case: HAVING
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING COUNT(*) > 870 ORDER BY ward

-- case: HAVING by another aggregate than those shown
SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis HAVING AVG(nights) > 5.5 AND SUM(paid) > 100000 ORDER BY diagnosis

-- case: the three largest
SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis ORDER BY n DESC, diagnosis LIMIT 3

-- case: the next three
SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis ORDER BY n DESC, diagnosis LIMIT 3 OFFSET 3

-- case: ordering by what is not shown
SELECT ward FROM visits GROUP BY ward ORDER BY SUM(paid) DESC

-- case: a ratio of sums
SELECT ward, SUM(paid) / SUM(cost) AS covered, ROUND(100.0 * COUNT(*) FILTER (WHERE urgent) / COUNT(*), 1) AS percent_urgent
FROM visits WHERE cost IS NOT NULL GROUP BY ward ORDER BY ward

-- case: a guarded ratio
SELECT drug, SUM(price) / NULLIF(COUNT(DISTINCT visit_id), 0) AS per_visit FROM prescriptions GROUP BY drug ORDER BY drug

-- case: rounding and casting of aggregates
SELECT ROUND(AVG(cost), 2) AS mean, CAST(AVG(cost) AS INTEGER) AS whole, CAST(COUNT(*) AS VARCHAR) || ' visits' AS words FROM visits
