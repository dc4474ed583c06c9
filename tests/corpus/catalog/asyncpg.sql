SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname = 'public';

SELECT '{a,NULL,"b c"}'::text[];

SELECT 'int4'::regtype;

SELECT pg_advisory_unlock_all();

