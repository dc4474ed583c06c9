-- Written after the others, to see how what was not asked before fares.

-- case: length of stay by age band and sex
SELECT CASE WHEN EXTRACT(YEAR FROM AGE(v.day, p.birth_date)) < 18 THEN 'child' WHEN EXTRACT(YEAR FROM AGE(v.day, p.birth_date)) < 65 THEN 'adult' ELSE 'senior' END AS age, p.sex, AVG(v.nights) AS stay
FROM visits v JOIN patients p ON p.patient_id = v.patient_id WHERE p.sex IN ('f', 'm') GROUP BY 1, 2 ORDER BY 1, 2

-- case: age by date_part of a difference
SELECT DATE_PART('year', AGE(DATE '2024-01-01', birth_date)) >= 60 AS senior, COUNT(*) AS n FROM patients GROUP BY 1 ORDER BY 1

-- case: age by days over a year
SELECT FLOOR((DATE '2024-01-01' - birth_date) / 365.25 / 20) * 20 AS band, COUNT(*) AS n FROM patients WHERE birth_date BETWEEN '1935-01-01' AND '2003-01-01' GROUP BY 1 ORDER BY 1

-- case: readmissions by LEAD
WITH ordered AS (
  SELECT patient_id, ward, day, LEAD(day) OVER (PARTITION BY patient_id ORDER BY day, visit_id) AS next_day FROM visits)
SELECT ward, COUNT(*) AS discharges, SUM(CASE WHEN next_day - day <= 30 THEN 1 ELSE 0 END) AS readmitted,
       ROUND(100.0 * SUM(CASE WHEN next_day - day <= 30 THEN 1 ELSE 0 END) / COUNT(*), 2) AS rate
FROM ordered GROUP BY ward ORDER BY ward

-- case: patients with at least two different diagnoses
SELECT COUNT(*) AS multimorbid FROM (SELECT patient_id FROM visits v JOIN diagnoses d ON d.code = v.diagnosis WHERE d.chronic GROUP BY patient_id HAVING COUNT(DISTINCT v.diagnosis) >= 4) t

-- case: co-occurrence of two diagnoses
SELECT a.diagnosis AS first, b.diagnosis AS second, COUNT(DISTINCT a.patient_id) AS patients
FROM visits a JOIN visits b ON a.patient_id = b.patient_id AND a.diagnosis < b.diagnosis
GROUP BY a.diagnosis, b.diagnosis ORDER BY 1, 2

-- case: occupancy as nights over beds and days
SELECT w.building, SUM(v.nights) * 100.0 / (SUM(DISTINCT w.beds) * 366) AS percent
FROM visits v JOIN wards w ON w.ward = v.ward WHERE v.admitted >= '2024-01-01' GROUP BY w.building ORDER BY w.building

-- case: occupancy by a lookup of beds
SELECT s.building, s.nights * 100.0 / (b.beds * 366) AS percent
FROM (SELECT w.building, SUM(v.nights) AS nights FROM visits v JOIN wards w USING (ward) WHERE v.admitted >= '2024-01-01' GROUP BY w.building) s
JOIN (SELECT building, SUM(beds) AS beds FROM wards GROUP BY building) b ON b.building = s.building ORDER BY 1

-- case: each doctor's visits, by name
SELECT d.name, d.specialty, COUNT(*) AS visits, AVG(v.rating) AS rating FROM doctors d JOIN visits v ON v.doctor_id = d.doctor_id GROUP BY d.name, d.specialty ORDER BY visits DESC, d.name

-- case: doctors above the mean rating
WITH r AS (SELECT doctor_id, AVG(rating) AS rating FROM visits GROUP BY doctor_id)
SELECT d.name FROM doctors d JOIN r ON r.doctor_id = d.doctor_id WHERE r.rating > (SELECT AVG(rating) FROM r) ORDER BY d.name

-- case: doctors who work outside of their ward
SELECT d.name, COUNT(*) FILTER (WHERE v.ward <> d.ward) AS elsewhere FROM visits v JOIN doctors d ON d.doctor_id = v.doctor_id GROUP BY d.name ORDER BY d.name

-- case: months without a gap, and a rank within the year
SELECT EXTRACT(YEAR FROM admitted) AS y, EXTRACT(MONTH FROM admitted) AS m, COUNT(*) AS n,
       RANK() OVER (PARTITION BY EXTRACT(YEAR FROM admitted) ORDER BY COUNT(*) DESC) AS place
FROM visits GROUP BY 1, 2 ORDER BY 1, 2

-- case: cumulative patients by first quarter
SELECT quarter, patients, SUM(patients) OVER (ORDER BY quarter ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
FROM (SELECT DATE_TRUNC('quarter', first_day) AS quarter, COUNT(*) AS patients FROM (SELECT patient_id, MIN(day) AS first_day FROM visits GROUP BY patient_id) f WHERE first_day < '2023-10-01' GROUP BY 1) q
ORDER BY quarter

-- case: new and returning patients by month
WITH firsts AS (SELECT patient_id, MIN(DATE_TRUNC('month', admitted)) AS first_month FROM visits GROUP BY patient_id)
SELECT DATE_TRUNC('month', v.admitted) AS month,
       COUNT(DISTINCT CASE WHEN DATE_TRUNC('month', v.admitted) = f.first_month THEN v.patient_id END) AS fresh,
       COUNT(DISTINCT CASE WHEN DATE_TRUNC('month', v.admitted) > f.first_month THEN v.patient_id END) AS returning
FROM visits v JOIN firsts f ON f.patient_id = v.patient_id GROUP BY 1 ORDER BY 1

-- case: recency, frequency and money
SELECT recency, frequency, COUNT(*) AS patients, AVG(money) AS money FROM (
  SELECT patient_id,
         CASE WHEN MAX(day) >= DATE '2024-10-01' THEN 'recent' ELSE 'old' END AS recency,
         CASE WHEN COUNT(*) >= 12 THEN 'often' ELSE 'seldom' END AS frequency,
         SUM(paid) AS money
  FROM visits GROUP BY patient_id) rfm
GROUP BY recency, frequency ORDER BY recency, frequency

-- case: share of patients with any urgent visit, by city
SELECT p.city, AVG(CASE WHEN u.patient_id IS NOT NULL THEN 1.0 ELSE 0.0 END) AS share
FROM patients p LEFT JOIN (SELECT DISTINCT patient_id FROM visits WHERE urgent) u ON u.patient_id = p.patient_id
GROUP BY p.city ORDER BY p.city

-- case: conditional distinct counts
SELECT DATE_TRUNC('year', admitted) AS year, COUNT(DISTINCT CASE WHEN kind = 'emergency' THEN patient_id END) AS emergency_patients, COUNT(DISTINCT ward) FILTER (WHERE urgent) AS urgent_wards
FROM visits GROUP BY 1 ORDER BY 1

-- case: mean of daily counts
SELECT AVG(n) AS per_day, MAX(n) AS busiest FROM (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) d
---- duckdb
SELECT COUNT(*) / 731.0, (SELECT MAX(n) FROM (SELECT day, COUNT(*) AS n FROM visits GROUP BY day)) FROM visits

-- case: weekday profile in percent
SELECT weekday, ROUND(100.0 * n / SUM(n) OVER (), 3) AS percent FROM (SELECT TO_CHAR(day, 'ID') AS weekday, COUNT(*) AS n FROM visits GROUP BY 1) w ORDER BY weekday
---- duckdb
SELECT weekday, ROUND(100.0 * n / SUM(n) OVER (), 3) AS percent FROM (SELECT isodow(day)::VARCHAR AS weekday, COUNT(*) AS n FROM visits GROUP BY 1) w ORDER BY weekday

-- case: nested CASE with several columns
SELECT CASE WHEN urgent THEN CASE WHEN nights > 5 THEN 'A' ELSE 'B' END WHEN rating IS NULL THEN 'C' ELSE 'D' END AS class, COUNT(*) AS n, SUM(cost) AS cost FROM visits GROUP BY 1 ORDER BY 1

-- case: a condition on two columns
SELECT COUNT(*) FROM visits WHERE cost > paid AND nights * 300 > cost

-- case: text conditions with OR and escapes
SELECT COUNT(*) FROM visits WHERE note LIKE '%50!%%' ESCAPE '!' OR note = '' OR UPPER(note) LIKE 'FELL%WORK'

-- case: COALESCE over several columns as key
SELECT COALESCE(NULLIF(note, ''), kind) AS label, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1

-- case: counting NULLs by ward
SELECT ward, SUM(CASE WHEN cost IS NULL THEN 1 ELSE 0 END) AS missing, AVG(CASE WHEN cost IS NULL THEN 1.0 ELSE 0.0 END) AS share FROM visits GROUP BY ward ORDER BY ward

-- case: top diagnosis of each ward, as text
SELECT ward, diagnosis FROM (SELECT ward, diagnosis, ROW_NUMBER() OVER (PARTITION BY ward ORDER BY COUNT(*) DESC, diagnosis) AS place FROM visits GROUP BY ward, diagnosis) t WHERE place = 1 ORDER BY ward

-- case: difference of two groups
SELECT (SELECT AVG(nights) FROM visits WHERE urgent) - (SELECT AVG(nights) FROM visits WHERE NOT urgent) AS longer

-- case: a t-statistic
-- tolerance: 0.01
SELECT (AVG(paid) FILTER (WHERE urgent) - AVG(paid) FILTER (WHERE NOT urgent)) / SQRT(VAR_SAMP(paid) FILTER (WHERE urgent) / COUNT(*) FILTER (WHERE urgent) + VAR_SAMP(paid) FILTER (WHERE NOT urgent) / COUNT(*) FILTER (WHERE NOT urgent)) AS t FROM visits

-- case: confidence limits by hand
-- tolerance: 0.1%
SELECT ward, AVG(paid) AS mean, AVG(paid) - 1.96 * STDDEV(paid) / SQRT(COUNT(*)) AS low, AVG(paid) + 1.96 * STDDEV(paid) / SQRT(COUNT(*)) AS high FROM visits GROUP BY ward ORDER BY ward

-- case: weighted mean
SELECT ward, SUM(nights * rating) * 1.0 / NULLIF(SUM(CASE WHEN rating IS NOT NULL THEN nights END), 0) AS weighted FROM visits GROUP BY ward ORDER BY ward

-- case: geometric mean
SELECT EXP(AVG(LN(paid + 1))) - 1 AS geometric FROM visits

-- case: odds ratio from four counts
WITH c AS (SELECT COUNT(*) FILTER (WHERE smoker AND risk > 5) AS a, COUNT(*) FILTER (WHERE smoker AND risk <= 5) AS b, COUNT(*) FILTER (WHERE NOT smoker AND risk > 5) AS c, COUNT(*) FILTER (WHERE NOT smoker AND risk <= 5) AS d FROM patients)
SELECT a, b, c, d, ROUND((a * 1.0 / b) / (c * 1.0 / d), 4) AS odds FROM c

-- case: prescriptions per patient by drug and insurance
SELECT r.drug, p.insured, COUNT(*) * 1.0 / COUNT(DISTINCT p.patient_id) AS per_patient
FROM prescriptions r JOIN visits v ON v.visit_id = r.visit_id JOIN patients p ON p.patient_id = v.patient_id GROUP BY r.drug, p.insured ORDER BY 1, 2

-- case: patients on two drugs
SELECT COUNT(*) AS both FROM (
  SELECT v.patient_id FROM prescriptions r JOIN visits v USING (visit_id) WHERE r.drug IN ('insulin', 'metformin') GROUP BY v.patient_id HAVING COUNT(DISTINCT r.drug) = 2) t

-- case: cost of drugs per visit kind, with visits that have none
SELECT v.kind, SUM(COALESCE(r.price, 0)) / COUNT(DISTINCT v.visit_id) AS per_visit FROM visits v LEFT JOIN prescriptions r ON r.visit_id = v.visit_id GROUP BY v.kind ORDER BY v.kind

-- case: prescriptions that outlast the year
SELECT drug, COUNT(*) AS n FROM prescriptions WHERE started + days * INTERVAL '1 day' > DATE '2024-12-31' GROUP BY drug ORDER BY drug

-- case: dates shifted by a column
SELECT COUNT(*) FROM prescriptions WHERE started + days > DATE '2024-12-31'

-- case: the day of admission against the prescription's
SELECT AVG(r.started - v.day) AS lag FROM prescriptions r JOIN visits v ON v.visit_id = r.visit_id WHERE r.started >= v.day

-- case: hours between
SELECT kind, AVG(DATE_DIFF('hour', admitted, CAST(logged AS TIMESTAMP))) AS hours FROM visits WHERE logged IS NOT NULL GROUP BY kind ORDER BY kind

-- case: visits at night
SELECT CASE WHEN arrived >= TIME '22:00' OR arrived < TIME '06:00' THEN 'night' ELSE 'day' END AS shift, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1

-- case: hours of arrival
SELECT EXTRACT(HOUR FROM arrived) AS hour, COUNT(*) AS n FROM visits GROUP BY hour ORDER BY hour

-- case: an upper quartile filter by a scalar release
-- tolerance: 30 in n
SELECT COUNT(*) AS n FROM visits WHERE paid > (SELECT PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY paid) FROM visits)

-- case: a limit from a CTE joined crosswise
WITH m AS (SELECT AVG(paid) AS mean FROM visits)
SELECT ward, COUNT(*) AS above FROM visits CROSS JOIN m WHERE visits.paid > m.mean GROUP BY ward ORDER BY ward

-- case: a limit from a CTE in the select list
WITH m AS (SELECT AVG(paid) AS mean FROM visits)
SELECT ward, SUM(CASE WHEN paid > (SELECT mean FROM m) THEN 1 ELSE 0 END) AS above FROM visits GROUP BY ward ORDER BY ward

-- case: each visit against the mean of its ward
WITH m AS (SELECT ward, AVG(paid) AS mean FROM visits GROUP BY ward)
SELECT v.ward, COUNT(*) AS above FROM visits v JOIN m ON m.ward = v.ward WHERE v.paid > m.mean GROUP BY v.ward ORDER BY v.ward

-- case: top wards, then their diagnoses
WITH top AS (SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(*) DESC LIMIT 2)
SELECT v.ward, v.diagnosis, COUNT(*) AS n FROM visits v JOIN top ON top.ward = v.ward GROUP BY v.ward, v.diagnosis ORDER BY v.ward, v.diagnosis

-- case: everything else in one group
WITH top AS (SELECT diagnosis FROM visits GROUP BY diagnosis ORDER BY COUNT(*) DESC, diagnosis LIMIT 3)
SELECT CASE WHEN diagnosis IN (SELECT diagnosis FROM top) THEN diagnosis ELSE 'other' END AS label, COUNT(*) AS n FROM visits GROUP BY 1 ORDER BY 1

-- case: UNPIVOT of released columns
SELECT what, n FROM (SELECT COUNT(*) AS visits, COUNT(DISTINCT patient_id) AS patients FROM visits) UNPIVOT (n FOR what IN (visits, patients)) ORDER BY what

-- case: a matrix by two CASEs and a total
SELECT kind, COUNT(CASE WHEN urgent THEN 1 END) AS urgent, COUNT(CASE WHEN NOT urgent THEN 1 END) AS calm, COUNT(*) AS total FROM visits GROUP BY kind
UNION ALL SELECT 'total', COUNT(CASE WHEN urgent THEN 1 END), COUNT(CASE WHEN NOT urgent THEN 1 END), COUNT(*) FROM visits ORDER BY kind

-- case: percent of the parent by two releases
SELECT a.ward, a.kind, ROUND(100.0 * a.n / b.n, 2) AS percent
FROM (SELECT ward, kind, COUNT(*) AS n FROM visits GROUP BY ward, kind) a JOIN (SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) b USING (ward) ORDER BY ward, kind

-- case: EXTRACT of an epoch difference between rows of one patient
SELECT AVG(EXTRACT(EPOCH FROM (next_at - admitted)) / 86400) AS days
FROM (SELECT patient_id, admitted, LEAD(admitted) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS next_at FROM visits) t WHERE next_at IS NOT NULL

-- case: patients who changed ward
SELECT COUNT(*) AS changes FROM (SELECT patient_id, ward, LAG(ward) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS before FROM visits) t WHERE ward <> before

-- case: last known rating
SELECT last_rating, COUNT(*) AS patients FROM (
  SELECT patient_id, rating AS last_rating, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted DESC, visit_id DESC) AS n FROM visits WHERE rating IS NOT NULL) t
WHERE n = 1 GROUP BY last_rating ORDER BY last_rating

-- case: FIRST_VALUE per patient
SELECT first_ward, COUNT(DISTINCT patient_id) AS patients FROM (
  SELECT patient_id, FIRST_VALUE(ward) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS first_ward FROM visits) t GROUP BY first_ward ORDER BY first_ward

-- case: a moving sum within the patient
SELECT COUNT(*) AS heavy FROM (
  SELECT patient_id, SUM(nights) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS three FROM visits) t WHERE three >= 24

-- case: deciles of patients' payments, per patient only
SELECT half, COUNT(*) AS visits FROM (SELECT patient_id, NTILE(2) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS half FROM visits) t GROUP BY half ORDER BY half

-- case: EXISTS and aggregates of the same table
SELECT v.kind, COUNT(*) AS n, AVG(v.paid) AS paid FROM visits v
WHERE EXISTS (SELECT 1 FROM visits e WHERE e.patient_id = v.patient_id AND e.admitted < v.admitted AND e.kind = 'emergency') GROUP BY v.kind ORDER BY v.kind

-- case: NOT EXISTS with a time condition
SELECT COUNT(*) AS firsts FROM visits v WHERE NOT EXISTS (SELECT 1 FROM visits e WHERE e.patient_id = v.patient_id AND e.admitted < v.admitted)

-- case: a condition on the number of prescriptions of a visit
SELECT v.ward, COUNT(*) AS n FROM visits v WHERE (SELECT COUNT(*) FROM prescriptions r WHERE r.visit_id = v.visit_id) >= 2 GROUP BY v.ward ORDER BY v.ward

-- case: IN with two columns
SELECT COUNT(*) FROM visits WHERE (patient_id, ward) IN (SELECT patient_id, ward FROM visits WHERE kind = 'emergency' AND urgent)

-- case: patients whose every visit was planned
SELECT COUNT(*) FROM patients p WHERE NOT EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id AND v.kind <> 'scheduled') AND EXISTS (SELECT 1 FROM visits v WHERE v.patient_id = p.patient_id)

-- case: ALL
SELECT COUNT(*) FROM patients p WHERE 5 >= ALL (SELECT v.nights FROM visits v WHERE v.patient_id = p.patient_id)

-- case: several CTEs that share one
WITH base AS (SELECT v.*, p.language FROM visits v JOIN patients p USING (patient_id)),
a AS (SELECT language, COUNT(*) AS n FROM base GROUP BY language),
b AS (SELECT language, SUM(paid) AS paid FROM base WHERE urgent GROUP BY language)
SELECT a.language, a.n, b.paid FROM a LEFT JOIN b ON b.language = a.language ORDER BY a.language

-- case: a CTE over a CTE of releases
WITH m AS (SELECT DATE_TRUNC('month', admitted) AS month, kind, COUNT(*) AS n FROM visits GROUP BY 1, 2),
t AS (SELECT month, SUM(n) AS total FROM m GROUP BY month)
SELECT m.month, m.kind, ROUND(m.n * 1.0 / t.total, 4) AS share FROM m JOIN t ON t.month = m.month WHERE m.month >= '2024-10-01' ORDER BY 1, 2

-- case: a date spine joined to a release
WITH days AS (SELECT CAST(d AS DATE) AS day FROM generate_series(TIMESTAMP '2024-03-01', TIMESTAMP '2024-03-05', INTERVAL '1 day') AS s(d))
SELECT days.day, COALESCE(v.n, 0) AS n FROM days LEFT JOIN (SELECT day, COUNT(*) AS n FROM visits GROUP BY day) v ON v.day = days.day ORDER BY days.day

-- case: ordering by CASE
SELECT kind, COUNT(*) AS n FROM visits GROUP BY kind ORDER BY CASE kind WHEN 'scheduled' THEN 1 WHEN 'emergency' THEN 2 ELSE 3 END

-- case: DISTINCT ON over released rows
SELECT DISTINCT ON (kind) kind, ward, COUNT(*) AS n FROM visits GROUP BY kind, ward ORDER BY kind, n DESC, ward

-- case: arrays of released rows
SELECT kind, ARRAY_AGG(ward ORDER BY n DESC, ward) AS wards FROM (SELECT kind, ward, COUNT(*) AS n FROM visits GROUP BY kind, ward) t GROUP BY kind ORDER BY kind

-- case: JSON of released rows
SELECT CAST(COUNT(*) AS VARCHAR) || ' in ' || ward AS line FROM visits GROUP BY ward ORDER BY line

-- case: GROUP BY a boolean of text
SELECT ward LIKE '%ology' AS ology, COUNT(*) AS n FROM visits GROUP BY ward LIKE '%ology' ORDER BY ology

-- case: HAVING without GROUP BY
SELECT COUNT(*) AS n FROM visits HAVING COUNT(*) > 10

-- case: an alias in HAVING
SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 880 ORDER BY ward

-- case: quantiles in one list per group
-- tolerance: 25 in q
SELECT kind, QUANTILE_CONT(paid, [0.1, 0.9]) AS q FROM visits GROUP BY kind ORDER BY kind

-- case: the spread of payments
-- tolerance: 100
SELECT MAX(paid) - MIN(paid) AS spread FROM visits

-- case: the earliest and latest day per kind
-- tolerance: 30 in first, last
SELECT kind, MIN(day) AS first, MAX(day) AS last, COUNT(*) AS n FROM visits GROUP BY kind ORDER BY kind

-- case: the most frequent ward per kind by MODE
SELECT kind, MODE(ward) AS ward FROM visits WHERE ward IN ('surgery', 'urology', 'oncology') GROUP BY kind ORDER BY kind

-- case: top values
SELECT APPROX_TOP_K(drug, 2) AS top FROM prescriptions
---- duckdb
SELECT list(drug ORDER BY n DESC) FROM (SELECT drug, COUNT(*) AS n FROM prescriptions GROUP BY drug ORDER BY n DESC LIMIT 2)
