"""What programs send first, and what they send wrong: psql prints the same of PostgreSQL and of dpsql."""

from __future__ import annotations

import re

import pytest

from tests.support.wire import psql
from tests.support.wire.hospital import Place

pytestmark = pytest.mark.slow

SAME = r"""
SELECT '\xDEAD'::bytea, E'\\xDEAD'::bytea, 'a\\b\001'::bytea, 'é'::bytea, '\xDE'::bytea || '\xAD'::bytea;
SELECT encode('\xDEAD'::bytea, 'hex'), encode('\xDEAD', 'base64'), decode('DEAD', 'hex'), decode('3q0=', 'base64');
SELECT '\xZZ'::bytea;
SELECT '\xD'::bytea;
SELECT 'a\1'::bytea;
SELECT B'101', X'1F', '101'::bit(3);
SELECT INTERVAL 'P1Y2M3DT4H5M6.5S', 'P1D'::interval, CAST('PT30M' AS interval), 'P2W'::interval;
COPY wards TO STDOUT;
COPY wards (ward, floor) TO STDOUT;
COPY public.wards TO STDOUT WITH (FORMAT csv, HEADER);
COPY (SELECT ward FROM wards ORDER BY 1) TO STDOUT;
SELECT relkind, relpersistence FROM pg_class WHERE relname = 'wards' \gdesc
SELECT typtype, typcategory FROM pg_type \gdesc
SELECT contype, confupdtype FROM pg_constraint \gdesc
SELECT provolatile, proargmodes FROM pg_proc \gdesc
SELECT attidentity, attgenerated, attstorage FROM pg_attribute \gdesc
SELECT relkind, relname FROM pg_class WHERE relname IN ('wards', 'planned_visits') ORDER BY 2;
SELECT pid = pg_backend_pid() AS own, usename, datname, application_name, state, backend_type FROM pg_stat_activity
 WHERE pid = pg_backend_pid();
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database();
SELECT 'x'::uuid;
SELECT 'x'::int;
SELECT 'x'::numeric;
SELECT 'x'::float8;
SELECT 'x'::real;
SELECT 'x'::boolean;
SELECT 'x'::date;
SELECT 'x'::time;
SELECT 'x'::timestamp;
SELECT 'x'::interval;
SELECT '25:00'::time;
SELECT ward::int FROM wards;
SELECT ward::date FROM wards;
SELECT ward::uuid FROM wards;
SELECT ward::boolean FROM wards;
SELECT ward::numeric FROM wards;
SELECT ward::interval FROM wards;
SELECT ward::time FROM wards;
SELECT beds::smallint FROM wards;
SELECT number::int FROM wards;
SELECT 300000::smallint;
SELECT 3e10::int;
SELECT 12345::numeric(3,1);
SELECT 'NaN'::float8::int;
SELECT set_config('foo.bar', '7', false);
SELECT current_setting('foo.bar');
SET work_mem = '64MB';
SHOW work_mem;
"""
CODES = r"""
SELECT 'x'::json;
SELECT 'x'::jsonb;
SELECT ward::json FROM wards;
SELECT opened::int FROM wards;
SELECT open::date FROM wards;
SELECT now()::int;
SELECT 1::date;
SELECT 1::uuid;
SELECT to_date('x', 'YYYY-MM-DD');
SELECT 'a' ~ '(';
SELECT nothing.x FROM wards;
COPY nothing TO STDOUT;
COPY wards (nothing) TO STDOUT;
SELECT * FROM nothing;
"""
ENGINE_WORDS = re.compile(r"DuckDB|INT32|INT64|VARCHAR|DECIMAL|BLOB|casting from|post-processing|Could not|INSTALL|%Y")


def answers(place: Place, script: str) -> list[str]:
    statements = [line for line in script.replace("\n ", " ").splitlines() if line]
    marked = "\n".join(f"\\echo @@\n{statement}" for statement in statements)
    return psql.run(place, f"\\set VERBOSITY verbose\n{marked}\n").split("@@\n")[1:]


def test_the_same_is_printed(served: Place, reference: Place) -> None:
    due, got = ([psql.without_places(text) for text in answers(place, SAME)] for place in (reference, served))
    assert got == due
    assert sum("ERROR:" in text for text in got) > 20


def test_wrong_statements_have_postgresqls_codes_and_no_words_of_the_engine(served: Place, reference: Place) -> None:
    due, got = answers(reference, CODES), answers(served, CODES)
    codes = [[re.findall(r"ERROR:  (\w{5}):", text) for text in told] for told in (due, got)]
    assert codes[1] == codes[0] and all(len(found) == 1 for found in codes[0])
    assert not [text for text in got if ENGINE_WORDS.search(text)]


def test_types_that_there_are_not_are_named_in_our_words(served: Place) -> None:
    told = answers(served, "SELECT '10.0.0.1'::inet;\nSELECT ward::inet FROM wards;\nSELECT 'x'::macaddr;\n")
    assert [re.findall(r"ERROR:  (.+)", text) for text in told] == [
        ['42704: type "inet" does not exist'], ['42704: type "inet" does not exist'],
        ['42704: type "macaddr" does not exist'],
    ]  # fmt: skip
    assert not [text for text in told if ENGINE_WORDS.search(text)]


def test_rows_of_a_private_table_are_not_copied(served: Place) -> None:
    (told,) = answers(served, "COPY visits TO STDOUT;\n")
    assert told.startswith("ERROR:  0A000:") and "1.25" not in told


def test_what_the_catalog_lists_is_what_may_be_read(served: Place) -> None:
    sql = """SELECT relname, has_table_privilege(oid, 'SELECT'), relacl FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') ORDER BY 1;"""
    (told,) = answers(served, sql.replace("\n", " ") + "\n")
    assert told.count("=r/owner") == 4 == told.count("| t ")
