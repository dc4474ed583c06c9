"""A synthetic table through a server: a table for its payer's clients, and for nobody else's."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
from support.wire.ground import Place

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
