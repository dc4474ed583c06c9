"""A model through a server: made, shown and used by its payer's clients, and by nobody else's."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest

from tests.support.wire.hospital import Place

MAKE = "CREATE MODEL older AS LOGISTIC REGRESSION ON insured USING sex FROM patients WITH (epsilon = 0.2)"


def test_a_model_of_ones_own(served: Place) -> None:
    with psycopg.connect(served.url(), autocommit=True) as ana, ana.cursor() as cursor:
        cursor.execute(MAKE)
        assert [column.name for column in cursor.description or ()] == ["term", "coefficient", "stderr"]
        terms = cursor.fetchall()
        assert terms[0][0] == "intercept" and cursor.execute("SHOW MODEL older").fetchall() == terms
        cursor.execute("SELECT PREDICT(older, %s)", ("f",))
        assert [(column.name, column.type_code) for column in cursor.description or ()] == [("predict", 701)]  # float8
        ((share,),) = cursor.fetchall()
        assert 0 < share < 1
        cursor.execute("SELECT ACCURACY(older) FROM patients")
        assert [column.name for column in cursor.description or ()] == ["accuracy"] and len(cursor.fetchall()) == 1
    with psycopg.connect(replace(served, user="bo").url(), autocommit=True) as bo:
        with pytest.raises(psycopg.errors.UndefinedFunction, match='model "older" does not exist'):
            bo.execute("SELECT PREDICT(older, 'f')")
        assert bo.execute("SHOW MODELS").fetchall() == []
    with psycopg.connect(served.url(), autocommit=True) as ana:
        ana.execute("DROP MODEL older")
