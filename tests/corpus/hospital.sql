-- The rows of the hospital. Some visits have no patient, some prescriptions no visit or the visit of no patient.
CREATE TABLE wards (ward VARCHAR, floor INTEGER, beds INTEGER, building VARCHAR);
INSERT INTO wards VALUES
  ('cardiology', 1, 24, 'main'), ('emergency', 0, 40, 'main'), ('neurology', 2, 18, 'main'), ('oncology', 3, 30, 'east'),
  ('orthopedics', 2, 22, 'main'), ('pediatrics', 1, 28, 'east'), ('surgery', 3, 36, 'main'), ('urology', 2, 12, 'east');
CREATE TABLE doctors AS SELECT
  (i + 1)::INTEGER AS doctor_id,
  ['Adeyemi', 'Bauer', 'Costa', 'Dunn', 'Eriksen', 'Fournier', 'Garcia', 'Hassan', 'Ito', 'Jansen', 'Kim', 'Lind'][i + 1] AS name,
  ['internal', 'surgeon', 'neurologist', 'pediatrician'][i % 4 + 1] AS specialty,
  ['cardiology', 'emergency', 'neurology', 'oncology', 'orthopedics', 'pediatrics', 'surgery', 'urology'][i % 8 + 1] AS ward,
  DATE '2005-03-01' + (i * 391)::INTEGER AS hired
FROM range(12) t(i);
CREATE TABLE diagnoses (code VARCHAR, title VARCHAR, chapter VARCHAR, chronic BOOLEAN);
INSERT INTO diagnoses VALUES
  ('I10', 'hypertension', 'circulatory', TRUE), ('I21', 'heart attack', 'circulatory', FALSE), ('E11', 'diabetes', 'endocrine', TRUE),
  ('J18', 'pneumonia', 'respiratory', FALSE), ('J45', 'asthma', 'respiratory', TRUE), ('S72', 'broken femur', 'injury', FALSE),
  ('G43', 'migraine', 'nervous', TRUE), ('C50', 'breast cancer', 'neoplasm', TRUE), ('N20', 'kidney stone', 'urinary', FALSE);

CREATE TABLE patients AS SELECT
  i::BIGINT AS patient_id,
  'patient ' || i AS name,
  CASE WHEN mix(i, 1, 40) = 0 THEN NULL ELSE ['f', 'm', 'x'][CASE WHEN mix(i, 1, 40) < 20 THEN 1 WHEN mix(i, 1, 40) < 37 THEN 2 ELSE 3 END] END AS sex,
  DATE '1930-01-01' + mix(i, 2, 30000)::INTEGER AS birth_date,
  ['Bremen', 'Gdańsk', 'Izmir', 'Köln', 'Leeds', 'New York', 'O''Fallon', 'oslo'][mix(i, 3, 8)::INTEGER + 1] AS city,
  ['en', 'de', 'pl', 'tr'][mix(i, 4, 4)::INTEGER + 1] AS language,
  mix(i, 5, 5) > 0 AS insured,
  CASE mix(i, 6, 6) WHEN 0 THEN NULL WHEN 1 THEN TRUE ELSE FALSE END AS smoker,
  CASE WHEN mix(i, 7, 15) = 0 THEN NULL ELSE 100 + mix(i, 7, 190) * 0.5 END::REAL AS height,
  (20 + mix(i, 8, 1000) / 10)::DECIMAL(5, 1) AS weight,
  mix(i, 9, 11)::SMALLINT AS risk,
  DATE '2022-01-01' + mix(i, 10, 365)::INTEGER AS registered,
  ('00000000-0000-4000-8000-0000000000' || (10 + mix(i, 11, 40)))::UUID AS household
FROM range(1, 601) t(i);

CREATE TABLE visits AS SELECT
  i::BIGINT AS visit_id,
  CASE WHEN i % 501 = 0 THEN NULL ELSE 1 + mix(i, 20, 580) END::BIGINT AS patient_id,
  ['cardiology', 'emergency', 'neurology', 'oncology', 'orthopedics', 'pediatrics', 'surgery', 'urology'][mix(i, 21, 8)::INTEGER + 1] AS ward,
  (1 + mix(i, 22, 12))::INTEGER AS doctor_id,
  ['I10', 'I21', 'E11', 'J18', 'J45', 'S72', 'G43', 'C50', 'N20'][mix(i, 23, 9)::INTEGER + 1] AS diagnosis,
  ['emergency', 'scheduled', 'follow-up'][mix(i, 24, 3)::INTEGER + 1] AS kind,
  TIMESTAMP '2023-01-01' + to_minutes(mix(i, 25, 1052640)) AS admitted,
  CASE WHEN mix(i, 26, 12) = 0 THEN NULL ELSE TIMESTAMPTZ '2023-01-01 00:00:00+00' + to_minutes(mix(i, 25, 1052640)) + to_seconds(mix(i, 27, 3000)) END AS logged,
  make_time(mix(i, 28, 24), mix(i, 29, 60), 0) AS arrived,
  DATE '2023-01-01' + (mix(i, 25, 1052640) // 1440)::INTEGER AS day,
  CASE WHEN mix(i, 30, 18) = 0 THEN NULL ELSE mix(i, 30, 20000) * 0.25 END::DOUBLE AS cost,
  (mix(i, 31, 480000) / 100)::DECIMAL(9, 2) AS paid,
  mix(i, 32, 12)::SMALLINT AS nights,
  CASE WHEN mix(i, 33, 7) = 0 THEN NULL ELSE 1 + mix(i, 33, 5) END::INTEGER AS rating,
  mix(i, 34, 4) = 0 AS urgent,
  [NULL, '', 'fell at home', 'Fell at work', 'needs 50% more', 'a_b test', 'ok'][mix(i, 35, 7)::INTEGER + 1] AS note,
  ('00000000-0000-4000-8000-00000000000' || mix(i, 36, 6))::UUID AS insurer
FROM range(1, 7001) t(i);

CREATE TABLE prescriptions AS SELECT
  i::BIGINT AS prescription_id,
  CASE WHEN i % 701 = 0 THEN NULL ELSE 1 + mix(i, 50, 7000) END::BIGINT AS visit_id,
  ['aspirin', 'ibuprofen', 'insulin', 'metformin', 'statin'][mix(i, 51, 5)::INTEGER + 1] AS drug,
  CASE WHEN mix(i, 52, 14) = 0 THEN NULL ELSE mix(i, 52, 2000) * 0.5 END::DOUBLE AS dose,
  (1 + mix(i, 53, 90))::SMALLINT AS days,
  mix(i, 54, 9)::INTEGER AS refills,
  (mix(i, 55, 50000) / 100)::DECIMAL(8, 2) AS price,
  CASE mix(i, 56, 5) WHEN 0 THEN NULL WHEN 1 THEN FALSE ELSE TRUE END AS generic,
  DATE '2023-01-01' + mix(i, 57, 760)::INTEGER AS started
FROM range(1, 8001) t(i);
