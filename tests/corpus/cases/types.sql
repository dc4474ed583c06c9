-- Every type, as key, as argument and in conditions.

-- case: bigint
SELECT COUNT(visit_id) AS n, COUNT(DISTINCT visit_id) AS distinct_n FROM visits

-- case: smallint in arithmetic
SELECT SUM(nights) AS total, SUM(nights * nights) AS squares, AVG(nights + 0.5) AS shifted FROM visits

-- case: integer
SELECT AVG(refills) AS refills, SUM(refills - 4) AS above FROM prescriptions

-- case: decimal
SELECT SUM(paid) AS paid, AVG(paid) AS mean, SUM(paid * 0.07) AS tax FROM visits

-- case: decimal in conditions
SELECT COUNT(*) FROM visits WHERE paid > 99.99 AND paid < 1000.005

-- case: real
SELECT AVG(height) AS height, SUM(height / 100) AS metres FROM patients

-- case: double
SELECT SUM(dose) AS dose, AVG(dose / 2) AS half FROM prescriptions

-- case: boolean
SELECT insured AND smoker AS both, COUNT(*) FROM patients WHERE smoker IS NOT NULL GROUP BY 1 ORDER BY 1

-- case: boolean arithmetic
SELECT SUM(CAST(generic AS INTEGER)) AS generic, COUNT(generic) AS known FROM prescriptions

-- case: text functions in conditions
SELECT COUNT(*) FROM patients WHERE LENGTH(city) > 5 AND city NOT LIKE '% %' AND TRIM(LOWER(language)) <> 'tr'

-- case: text functions as keys
SELECT SUBSTRING(diagnosis FROM 1 FOR 1) AS chapter, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: text replaced and padded
SELECT REPLACE(ward, 'ology', '.') AS short, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: text split
SELECT SPLIT_PART(kind, '-', 1) AS part, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: letters beyond ASCII
SELECT city, LENGTH(city) AS letters, COUNT(*) FROM patients WHERE city IN ('Gdańsk', 'Köln', 'O''Fallon') GROUP BY city, LENGTH(city) ORDER BY city

-- case: position and starts_with
SELECT COUNT(*) FILTER (WHERE POSITION('log' IN ward) > 0) AS with_log, COUNT(*) FILTER (WHERE starts_with(ward, 'on')) AS on_first FROM visits

-- case: date as key
SELECT day, COUNT(*) AS n FROM visits WHERE day BETWEEN DATE '2023-02-01' AND DATE '2023-02-10' GROUP BY day ORDER BY day

-- case: timestamp conditions
SELECT COUNT(*) FROM visits WHERE admitted > '2023-12-24 18:00:00' AND admitted < TIMESTAMP '2024-01-01 00:00:00'

-- case: time as key
SELECT DATE_TRUNC('hour', admitted)::time AS hour, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1

-- case: uuid as key
SELECT insurer, COUNT(*) AS n FROM visits GROUP BY insurer ORDER BY insurer

-- case: uuid in a condition
SELECT COUNT(*) FROM visits WHERE insurer = '00000000-0000-4000-8000-000000000003'

-- case: uuid counted
SELECT COUNT(DISTINCT household) AS households FROM patients

-- case: casts between numbers
SELECT SUM(CAST(cost AS INTEGER)) AS whole, SUM(paid::double precision) AS d, SUM(nights::bigint) AS b FROM visits WHERE cost < 100.2 OR cost > 100.7

-- case: a number as text
SELECT CAST(rating AS TEXT) AS stars, COUNT(*) FROM visits WHERE rating IS NOT NULL GROUP BY 1 ORDER BY 1

-- case: text as a number
SELECT SUM(DISTINCT CAST(SUBSTRING(diagnosis, 2, 2) AS INTEGER)) AS code FROM visits WHERE diagnosis <> 'E11'
---- error
UnboundedValues 0A000: the values of SUM(DISTINCT …) have no bounds
LINE 1: SELECT SUM(DISTINCT CAST(SUBSTRING(diagnosis, 2, 2) AS INTEGER)) AS code FROM visits WHERE diagnosis <> 'E11'
               ^
HINT:  Write SUM(DISTINCT CLIP(CAST(SUBSTRING(diagnosis FROM 2 FOR 2) AS INT), 0, 100)) with bounds of your own.

-- case: text as a number, with bounds
SELECT AVG(CLIP(CAST(SUBSTRING(diagnosis, 2, 2) AS INTEGER), 0, 99)) AS code FROM visits

-- case: mathematics
SELECT SUM(SQRT(paid)) AS roots, SUM(POWER(nights, 2)) AS squares, SUM(LN(paid + 1)) AS logs, SUM(ABS(nights - 5)) AS off FROM visits

-- case: rounding as key
SELECT ROUND(weight, -1) AS tens, COUNT(*) AS n FROM patients WHERE weight >= 25 AND weight < 115 GROUP BY 1 ORDER BY 1

-- case: ceiling and floor
SELECT CEIL(nights / 5.0) AS weeks, COUNT(*) FROM visits WHERE nights <= 10 GROUP BY 1 ORDER BY 1

-- case: sign and modulo
SELECT SIGN(nights - 6) AS side, MOD(nights, 2) AS odd, COUNT(*) FROM visits WHERE nights < 12 GROUP BY 1, 2 ORDER BY 1, 2

-- case: body mass index
SELECT sex, AVG(weight / ((height / 100) * (height / 100))) AS bmi FROM patients WHERE height >= 100 GROUP BY sex ORDER BY sex NULLS LAST

-- case: NULLIF and COALESCE across types
SELECT SUM(COALESCE(cost, nights * 300)) AS estimate, COUNT(NULLIF(rating, 3)) AS decided FROM visits

-- case: GREATEST and LEAST of columns
SELECT AVG(GREATEST(paid, 1000)) AS at_least, AVG(LEAST(nights, 3)) AS at_most FROM visits

-- case: row values
SELECT COUNT(*) FROM visits WHERE (ward, kind) IN (('surgery', 'emergency'), ('urology', 'scheduled'))

-- case: BETWEEN SYMMETRIC
SELECT COUNT(*) FROM visits WHERE nights BETWEEN SYMMETRIC 8 AND 3
---- duckdb
SELECT COUNT(*) FROM visits WHERE nights BETWEEN 3 AND 8

-- case: IF
SELECT IF(urgent, 'now', 'later') AS when_, COUNT(*) FROM visits GROUP BY 1 ORDER BY 1
