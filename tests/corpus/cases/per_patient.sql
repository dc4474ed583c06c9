-- First by patient, then over patients: cohorts, funnels, first and last events.

-- case: visits per patient, averaged
SELECT AVG(n) AS mean_visits FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t

-- case: distribution of visits per patient
SELECT n, COUNT(*) AS patients FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t WHERE n BETWEEN 8 AND 16 GROUP BY n ORDER BY n

-- case: frequent and rare patients
SELECT CASE WHEN n >= 15 THEN 'frequent' WHEN n >= 8 THEN 'regular' ELSE 'rare' END AS class, COUNT(*) AS patients, SUM(n) AS visits
FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) t GROUP BY 1 ORDER BY 1

-- case: how much each patient paid, averaged by sex
-- tolerance: 0.01%
SELECT p.sex, AVG(t.total) AS mean_total
FROM (SELECT patient_id, SUM(paid) AS total FROM visits GROUP BY patient_id) t JOIN patients p ON p.patient_id = t.patient_id
GROUP BY p.sex ORDER BY p.sex NULLS LAST

-- case: patients above a sum
SELECT COUNT(*) FROM (SELECT patient_id FROM visits GROUP BY patient_id HAVING SUM(paid) > 30000) t

-- case: patients with several wards
SELECT wards, COUNT(*) AS patients FROM (SELECT patient_id, COUNT(DISTINCT ward) AS wards FROM visits GROUP BY patient_id) t
WHERE wards BETWEEN 5 AND 8 GROUP BY wards ORDER BY wards

-- case: patients by year and activity
SELECT y, active, COUNT(*) AS patients
FROM (SELECT patient_id, EXTRACT(YEAR FROM admitted) AS y, COUNT(*) > 6 AS active FROM visits GROUP BY patient_id, EXTRACT(YEAR FROM admitted)) t
GROUP BY y, active ORDER BY y, active

-- case: one visit per patient and month counts once
SELECT month, COUNT(*) AS patients FROM (SELECT DISTINCT patient_id, DATE_TRUNC('month', admitted) AS month FROM visits) t GROUP BY month ORDER BY month

-- case: the first visit of each patient
SELECT DATE_TRUNC('quarter', first_at) AS quarter, COUNT(*) AS patients
FROM (SELECT patient_id, MIN(admitted) AS first_at FROM visits GROUP BY patient_id) t
WHERE first_at < '2023-07-01' GROUP BY 1 ORDER BY 1

-- case: the days between first and last visit
SELECT AVG(DATE_DIFF('day', a, b)) AS mean_span FROM (SELECT patient_id, MIN(day) AS a, MAX(day) AS b FROM visits GROUP BY patient_id) t

-- case: cohorts by quarter of registration, and whether they came
SELECT DATE_TRUNC('quarter', p.registered) AS cohort, COUNT(*) AS patients, SUM(CASE WHEN v.n > 0 THEN 1 ELSE 0 END) AS came
FROM patients p LEFT JOIN (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id) v ON v.patient_id = p.patient_id
GROUP BY 1 ORDER BY 1

-- case: retention by month since the first visit
WITH firsts AS (SELECT patient_id, MIN(DATE_TRUNC('month', admitted)) AS first_month FROM visits GROUP BY patient_id),
activity AS (SELECT DISTINCT v.patient_id, DATE_DIFF('month', f.first_month, v.admitted) AS months FROM visits v JOIN firsts f ON f.patient_id = v.patient_id)
SELECT months, COUNT(*) AS patients FROM activity WHERE months BETWEEN 0 AND 12 GROUP BY months ORDER BY months

-- case: cohort by quarter and quarter of activity
WITH cohort AS (SELECT patient_id, DATE_TRUNC('quarter', registered) AS joined FROM patients)
SELECT c.joined, DATE_TRUNC('quarter', v.admitted) AS active, COUNT(DISTINCT v.patient_id) AS patients
FROM cohort c JOIN visits v ON v.patient_id = c.patient_id
GROUP BY c.joined, DATE_TRUNC('quarter', v.admitted) ORDER BY 1, 2

-- case: a funnel
WITH steps AS (
  SELECT patient_id,
         MAX(CASE WHEN kind = 'emergency' THEN 1 ELSE 0 END) AS emergency,
         MAX(CASE WHEN kind = 'scheduled' THEN 1 ELSE 0 END) AS scheduled,
         MAX(CASE WHEN kind = 'follow-up' THEN 1 ELSE 0 END) AS follow_up
  FROM visits GROUP BY patient_id)
SELECT SUM(emergency) AS step_1, SUM(emergency * scheduled) AS step_2, SUM(emergency * scheduled * follow_up) AS step_3 FROM steps

-- case: a funnel in order of time
SELECT COUNT(*) AS started, COUNT(second) AS went_on
FROM (
  SELECT e.patient_id, MIN(e.admitted) AS first, MIN(s.admitted) AS second
  FROM visits e LEFT JOIN visits s ON s.patient_id = e.patient_id AND s.kind = 'follow-up' AND s.admitted > e.admitted
  WHERE e.kind = 'emergency' AND e.nights > 7 GROUP BY e.patient_id) f

-- case: any and all, per patient
SELECT ever_urgent, COUNT(*) FROM (SELECT patient_id, BOOL_OR(urgent) AS ever_urgent FROM visits GROUP BY patient_id) t GROUP BY 1 ORDER BY 1

-- case: a ratio per patient, then its mean
-- tolerance: 0.01%
SELECT AVG(share) AS mean_share
FROM (SELECT patient_id, SUM(urgent::int) * 1.0 / COUNT(*) AS share FROM visits GROUP BY patient_id) t

-- case: per patient and ward, then per ward
SELECT ward, AVG(n) AS visits_per_patient, COUNT(*) AS patients
FROM (SELECT patient_id, ward, COUNT(*) AS n FROM visits GROUP BY patient_id, ward) t GROUP BY ward ORDER BY ward

-- case: the unit in the sub-select, not in its select list
SELECT COUNT(*) AS patients, AVG(n) AS mean FROM (SELECT COUNT(*) AS n FROM visits GROUP BY patient_id) t

-- case: per visit, then over visits
SELECT AVG(n) AS per_visit, SUM(worth) AS worth FROM (SELECT visit_id, COUNT(*) AS n, SUM(price) AS worth FROM prescriptions GROUP BY visit_id) t

-- case: the largest of each patient, averaged
SELECT AVG(most) AS mean_of_largest FROM (SELECT patient_id, MAX(paid) AS most FROM visits GROUP BY patient_id) t

-- case: per-patient mean above a limit
SELECT p.insured, COUNT(*) AS n FROM patients p JOIN (SELECT patient_id, AVG(paid) AS mean FROM visits GROUP BY patient_id) m ON m.patient_id = p.patient_id
WHERE m.mean > 2400 GROUP BY p.insured ORDER BY p.insured

-- case: patients of both wards
SELECT COUNT(*) FROM (
  SELECT patient_id FROM visits WHERE ward = 'surgery' INTERSECT SELECT patient_id FROM visits WHERE ward = 'oncology') t

-- case: patients of the one and not the other
SELECT COUNT(*) FROM (
  SELECT patient_id FROM visits WHERE ward = 'surgery' EXCEPT SELECT patient_id FROM visits WHERE ward = 'oncology') t

-- case: patients of either
SELECT COUNT(*) FROM (
  SELECT patient_id FROM visits WHERE ward = 'surgery' UNION SELECT patient_id FROM visits WHERE ward = 'oncology') t

-- case: events of two tables in one list
SELECT what, COUNT(*) AS n, COUNT(DISTINCT patient_id) AS patients
FROM (SELECT patient_id, 'visit' AS what, day FROM visits
      UNION ALL
      SELECT v.patient_id, 'prescription', r.started FROM prescriptions r JOIN visits v ON v.visit_id = r.visit_id) events
GROUP BY what ORDER BY what

-- case: money of two tables in one list
SELECT DATE_TRUNC('year', day) AS year, SUM(amount) AS amount
FROM (SELECT patient_id, day, paid AS amount FROM visits
      UNION ALL
      SELECT v.patient_id, v.day, r.price FROM prescriptions r JOIN visits v ON v.visit_id = r.visit_id) flows
GROUP BY 1 ORDER BY 1

-- case: the newest visit of each patient by window
SELECT ward, COUNT(*) AS last_seen
FROM (SELECT patient_id, ward, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted DESC, visit_id DESC) AS rn FROM visits) t
WHERE rn = 1 GROUP BY ward ORDER BY ward

-- case: the first visit of each patient by QUALIFY
SELECT kind, COUNT(*) AS n FROM (SELECT * FROM visits QUALIFY ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) = 1) f GROUP BY kind ORDER BY kind

-- case: days since one's visit before
SELECT AVG(gap) AS mean_gap
FROM (SELECT patient_id, DATE_DIFF('day', LAG(day) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id), day) AS gap FROM visits) t

-- case: which ward follows which
SELECT ward, next_ward, COUNT(*) AS n
FROM (SELECT patient_id, ward, LEAD(ward) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS next_ward FROM visits) t
WHERE next_ward IS NOT NULL GROUP BY ward, next_ward ORDER BY ward, next_ward

-- case: the running number of a visit
SELECT nth, COUNT(*) AS n, AVG(paid) AS paid
FROM (SELECT patient_id, paid, ROW_NUMBER() OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS nth FROM visits) t
WHERE nth <= 5 GROUP BY nth ORDER BY nth

-- case: the running sum of a patient
SELECT COUNT(DISTINCT patient_id) AS reached
FROM (SELECT patient_id, SUM(nights) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id) AS so_far FROM visits) t WHERE so_far >= 60

-- case: a visit's share of what its patient paid
SELECT kind, AVG(CLIP(paid / NULLIF(total, 0), 0, 1)) AS share
FROM (SELECT patient_id, kind, paid, SUM(paid) OVER (PARTITION BY patient_id) AS total FROM visits) t GROUP BY kind ORDER BY kind

-- case: a visit's share of what its patient paid, without bounds
SELECT kind, SUM(DISTINCT paid / NULLIF(total, 0)) AS share
FROM (SELECT patient_id, kind, paid, SUM(paid) OVER (PARTITION BY patient_id) AS total FROM visits) t GROUP BY kind ORDER BY kind
---- error
UnboundedValues 0A000: the values of SUM(DISTINCT …) have no bounds
LINE 1: SELECT kind, SUM(DISTINCT paid / NULLIF(total, 0)) AS share
                     ^
HINT:  Write SUM(DISTINCT CLIP(paid / NULLIF(total, 0), 0, 100)) with bounds of your own.

-- case: sessions by gaps of ninety days
SELECT AVG(episodes) AS episodes
FROM (SELECT patient_id, SUM(fresh) AS episodes
      FROM (SELECT patient_id, CASE WHEN DATE_DIFF('day', LAG(day) OVER (PARTITION BY patient_id ORDER BY admitted, visit_id), day) <= 90 THEN 0 ELSE 1 END AS fresh FROM visits) g
      GROUP BY patient_id) e

-- case: a named window
SELECT AVG(step) AS mean_step
FROM (SELECT patient_id, paid - LAG(paid) OVER w AS step FROM visits WINDOW w AS (PARTITION BY patient_id ORDER BY admitted, visit_id)) t

-- case: the rank of a visit by what it cost
SELECT ward, COUNT(*) AS dearest FROM (
  SELECT patient_id, ward, RANK() OVER (PARTITION BY patient_id ORDER BY paid DESC) AS r FROM visits) t WHERE r <= 2 GROUP BY ward ORDER BY ward

-- case: three levels
SELECT class, AVG(visits) AS visits
FROM (SELECT patient_id, CASE WHEN total > 25000 THEN 'high' ELSE 'low' END AS class, visits
      FROM (SELECT patient_id, SUM(paid) AS total, COUNT(*) AS visits FROM visits GROUP BY patient_id) a) b
GROUP BY class ORDER BY class

-- case: a scalar per patient in the select list
SELECT AVG(n) AS mean, SUM(n) AS total
FROM (SELECT p.patient_id, (SELECT COUNT(*) FROM visits v WHERE v.patient_id = p.patient_id AND v.urgent) AS n FROM patients p) t

-- case: LATERAL per patient
SELECT AVG(x.n) AS mean FROM patients p CROSS JOIN LATERAL (SELECT COUNT(*) AS n FROM visits v WHERE v.patient_id = p.patient_id) x
