-- What tools say around their queries: free, and without a table of ours.

-- case: a ping
SELECT 1 AS ping

-- case: who am I
SELECT current_schema() AS schema
---- duckdb
SELECT 'public' AS schema

-- case: today, in a condition of its own
SELECT current_date > DATE '2020-01-01' AS later

-- case: a transaction begins
BEGIN
---- duckdb
SELECT 1 WHERE FALSE

-- case: a transaction ends
COMMIT
---- duckdb
SELECT 1 WHERE FALSE

-- case: a transaction is undone
ROLLBACK
---- duckdb
SELECT 1 WHERE FALSE

-- case: JDBC's settings
SET extra_float_digits = 3
---- duckdb
SELECT 1 WHERE FALSE

-- case: psycopg's settings
SET application_name = 'report'
---- duckdb
SELECT 1 WHERE FALSE

-- case: SQLAlchemy's question
SHOW transaction_isolation
---- duckdb
SELECT 'read committed'

-- case: a loss of one's own
SET epsilon = 2000
---- duckdb
SELECT 1 WHERE FALSE

-- case: back to the owner's
RESET ALL
---- duckdb
SELECT 1 WHERE FALSE

-- case: tables by information_schema
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY table_name
---- duckdb
VALUES ('diagnoses'), ('doctors'), ('patients'), ('prescriptions'), ('visits'), ('wards')

-- case: columns by information_schema
SELECT column_name, is_nullable FROM information_schema.columns WHERE table_name = 'wards' ORDER BY ordinal_position
---- duckdb
VALUES ('ward', 'YES'), ('floor', 'YES'), ('beds', 'YES'), ('building', 'YES')

-- case: how many columns each table has
SELECT table_name, COUNT(*) AS columns FROM information_schema.columns WHERE table_schema = 'public' GROUP BY table_name ORDER BY table_name
---- duckdb
VALUES ('diagnoses', 4), ('doctors', 5), ('patients', 13), ('prescriptions', 9), ('visits', 17), ('wards', 4)

-- case: a series of numbers
SELECT g AS n, g * g AS square FROM generate_series(1, 4) AS t(g) ORDER BY n

-- case: a list of texts
SELECT UNNEST(['a', 'b']) AS letter
