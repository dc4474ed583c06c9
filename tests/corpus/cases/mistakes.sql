-- Slips that the message must help with.

-- case: a mistyped column
SELECT wrad, count(*) FROM visits GROUP BY wrad
---- error

-- case: a mistyped table
SELECT count(*) FROM visit
---- error

-- case: a mistyped function
SELECT summ(cost) FROM visits
---- error

-- case: double quotes for a text
SELECT count(*) FROM visits WHERE ward = "surgery"
---- error

-- case: a forgotten comma
SELECT ward count(*) FROM visits GROUP BY ward
---- error

-- case: a forgotten GROUP BY
SELECT ward, count(*) FROM visits
---- error

-- case: a key that is not grouped
SELECT ward, kind, count(*) FROM visits GROUP BY ward
---- error

-- case: an aggregate in WHERE
SELECT ward FROM visits WHERE count(*) > 5 GROUP BY ward
---- error

-- case: a sum of text
SELECT SUM(ward) FROM visits
---- error

-- case: a comparison of unlike types
SELECT count(*) FROM visits WHERE day > 5
---- error

-- case: a column of two tables
SELECT count(*) FROM visits v JOIN doctors d ON d.doctor_id = v.doctor_id WHERE ward = 'surgery'
---- error

-- case: an empty statement
;
---- error

-- case: an alias in WHERE
SELECT cost * 2 AS twice, COUNT(*) AS n FROM visits WHERE twice > 9990 AND cost IS NOT NULL GROUP BY twice HAVING COUNT(*) > 100
---- error
