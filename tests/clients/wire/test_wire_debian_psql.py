"""The psql of Debian, of another version and with TLS, where dpsql says that it is PostgreSQL 16.2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.optional_dependencies import program
from tests.support.server import make_certificate
from tests.support.wire import psql
from tests.support.wire.hospital import Place

pytestmark = pytest.mark.clients


@pytest.fixture(scope="module")
def debian() -> Path:
    return Path(program("psql"))


@pytest.mark.parametrize("mode", ("require", "verify-ca", "verify-full"))
def test_tls(mode: str, debian: Path, secured: Place) -> None:
    told = psql.run(secured, "SELECT count(*) FROM wards;\n\\conninfo\n", debian, PGSSLMODE=mode,
                    PGSSLROOTCERT=str(secured.certificate), PGCHANNELBINDING="require")  # fmt: skip
    assert "     3\n" in told and "SSL connection (protocol: TLSv1.3" in told


def test_a_server_with_an_untrusted_certificate(debian: Path, secured: Place, tmp_path: Path) -> None:
    stranger = make_certificate(tmp_path)
    told = psql.run(secured, "SELECT 1;", debian, PGSSLMODE="verify-full", PGSSLROOTCERT=str(stranger))
    assert "certificate verify failed" in told


@pytest.mark.parametrize("command", (r"\d", r"\d visits", r"\dt+", r"\dv", r"\dn", r"\l", r"\du", r"\df", r"\d+ wards"))
def test_commands(command: str, debian: Path, served: Place) -> None:
    told = psql.run(served, command, debian)
    assert "ERROR" not in told and told.strip()


def test_statements(debian: Path, served: Place) -> None:
    told = psql.run(served, "SELECT ward, count(*) FROM visits GROUP BY ward ORDER BY ward;\nSELECT nothing;", debian)
    assert "cardiology |   300" in told and 'ERROR:  column "nothing" does not exist\nLINE 1:' in told
