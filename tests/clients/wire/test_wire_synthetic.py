"""A synthetic table through a server: a table for its payer's clients, and for nobody else's."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from tests.support.wire.hospital import Place

MAKE = "CREATE SYNTHETIC TABLE people_like AS SELECT sex, insured FROM patients WITH (epsilon = 0.1)"
NAMED = "SELECT relname, relkind FROM pg_class WHERE relname = 'people_like'"


def test_a_table_of_ones_own(served: Place) -> None:
    with psycopg.connect(served.url(), autocommit=True) as ana:
        told = ana.execute(MAKE).fetchall()
        assert [row[0] for row in told] == ["sex", "insured", "sex, insured"]
        assert ana.execute("SELECT COUNT(*) >= 0 FROM people_like WHERE sex = %s", ("f",)).fetchall() == [(True,)]
        assert ana.execute("SHOW SYNTHETIC TABLE people_like").fetchall() == told
        assert ana.execute(NAMED).fetchall() == [("people_like", "v")]
    with psycopg.connect(replace(served, user="bo").url(), autocommit=True) as bo:
        assert bo.execute(NAMED).fetchall() == []
        with pytest.raises(psycopg.errors.UndefinedTable):
            bo.execute("SELECT * FROM people_like")
        with pytest.raises(psycopg.errors.UndefinedTable):
            bo.execute("DROP SYNTHETIC TABLE people_like")
    with psycopg.connect(served.url(), autocommit=True) as ana:
        ana.execute("DROP SYNTHETIC TABLE people_like")


@pytest.mark.parametrize("binary", [False, True])
def test_options_take_parameters(served: Place, binary: bool) -> None:
    sql = "CREATE SYNTHETIC TABLE asked AS SELECT sex, insured FROM patients WHERE weight > {} WITH (epsilon = {})"
    with psycopg.connect(served.url(), autocommit=True) as ana:
        ana.execute(sql.format(30, 0.1))
        told = ana.execute("SHOW SYNTHETIC TABLE asked").fetchall()
        ana.execute("DROP SYNTHETIC TABLE asked")
        explained = ana.execute("EXPLAIN " + sql.format("%s", "%s"), (30, 0.1), prepare=binary).fetchall()
        assert any("epsilon 0.1" in row[0] for row in explained)
        assert ana.execute(sql.format("%s", "%b" if binary else "%s"), (30, 0.1)).fetchall() == told
        ana.execute("DROP SYNTHETIC TABLE asked")
