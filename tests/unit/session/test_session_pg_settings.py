"""dpsql's own settings are where clients look for settings: current_setting(), pg_settings, psql's \\dconfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.compiler.catalog.session_rows import OWN_SETTINGS
from dpsql.compiler.settings import SETTING_NAMES
from dpsql.session.session import Session
from dpsql.session.sql_reference import named_settings
from tests.support.shop import open_shop

DCONFIG = (
    'SELECT s.name AS "Parameter", pg_catalog.current_setting(s.name) AS "Value" FROM pg_catalog.pg_settings s '
    "WHERE pg_catalog.lower(s.name) OPERATOR(pg_catalog.~) '^(epsilon)$' COLLATE pg_catalog.default ORDER BY 1"
)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    shop: Session = open_shop(tmp_path)[0]
    return shop


def test_each_is_described() -> None:
    assert tuple(OWN_SETTINGS) == SETTING_NAMES
    for one in named_settings():
        known = OWN_SETTINGS.get(one.name)
        assert known is None or known.switch or not known.choices or known.choices == one.choices


def test_they_are_read_as_show_prints_them(session: Session) -> None:
    session.execute("SET epsilon = 0.25")
    for name in SETTING_NAMES:
        ((shown,),) = session.execute(f"SHOW {name}").rows
        assert session.execute(f"SELECT current_setting('{name.upper()}')").rows == [(shown,)]
        assert session.execute(f"SELECT setting FROM pg_settings WHERE name = '{name}'").rows == [(shown,)]
    assert session.execute(DCONFIG).rows == [("epsilon", "0.25")]
    assert session.execute("SELECT set_config('epsilon', '0.125', false)").rows == [("0.125",)]
    assert session.execute("SELECT current_setting('epsilon')").rows == [("0.125",)]


def test_pg_settings_shows_what_reset_restores(session: Session) -> None:
    asked = "SELECT category, vartype, source, reset_val, enumvals FROM pg_settings WHERE name = '{}'"
    ((before,),) = session.execute("SHOW epsilon").rows
    assert session.execute(asked.format("epsilon")).rows == [("dpsql", "string", "default", before, None)]
    session.execute("SET epsilon = 0.25")
    assert session.execute(asked.format("epsilon")).rows == [("dpsql", "string", "session", before, None)]
    ((*_, kinds),) = session.execute(asked.format("noise")).rows
    assert kinds == ["auto", "laplace", "gaussian"]
    told = session.execute("SELECT name FROM pg_settings WHERE category = 'dpsql' AND length(short_desc) > 10").rows
    assert {name for (name,) in told} == set(SETTING_NAMES)
