"""Posteriors through a server: flat columns of doubles, described before they are paid for."""

from __future__ import annotations

import psycopg

from tests.support.wire.hospital import Place


def test_columns_are_doubles(served: Place) -> None:
    with psycopg.connect(served.url(), autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT sex, BETA_POSTERIOR(insured) AS p FROM patients GROUP BY sex")
        assert [column.name for column in cursor.description or ()] == [
            "sex", "p_alpha", "p_beta", "p_mean", "p_low", "p_high",
        ]  # fmt: skip
        assert {column.type_code for column in (cursor.description or ())[1:]} == {701}  # float8
        for row in cursor.fetchall():
            assert 0 <= row[4] <= row[3] <= row[5] <= 1
        cursor.execute("SELECT DIRICHLET_POSTERIOR(sex) AS k FROM patients")
        assert [column.name for column in cursor.description or ()] == ["k_alpha", "k_mean", "k_low", "k_high"]
        assert len(cursor.fetchall()) == 1
