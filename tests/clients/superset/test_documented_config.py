"""The lines of docs/superset.md are those that Superset runs with here, and a name stays one name in them."""

from __future__ import annotations

import importlib.util
import inspect
from pathlib import Path
from types import ModuleType

import pytest

from dpsql.interfaces.pgwire.server.startup_parameters import parse_startup_options
from tests.support.optional_dependencies import package

HERE = Path(__file__).resolve().parent
DOCUMENT = (HERE.parents[2] / "docs" / "superset.md").read_text()


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setenv("SUPERSET_HOME", "home")
    monkeypatch.setenv("SUPERSET_TEST_SECRET", "secret")
    spec = importlib.util.spec_from_file_location("superset_config", HERE / "superset_config.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_document_has_the_lines_that_are_tried(config: ModuleType) -> None:
    assert inspect.getsource(config.DB_CONNECTION_MUTATOR) in DOCUMENT
    assert '"CACHE_IMPERSONATION": True' in DOCUMENT and config.FEATURE_FLAGS["CACHE_IMPERSONATION"] is True


@pytest.mark.parametrize("name", ["ana", "ana maria", "x -c role=bob", "x\\ -c role=bob", "x\t-crole=bob"])
def test_a_name_is_one_role_whatever_it_is(config: ModuleType, name: str) -> None:
    """Who may choose her name in Superset must not choose her role by it."""
    uri = package("sqlalchemy").engine.make_url("postgresql://anyone:word@localhost:5433/hospital")
    opened, arguments = config.DB_CONNECTION_MUTATOR(uri, {}, name, None, None)
    assert opened.username == "superset" and opened.password == "word"
    assert parse_startup_options(arguments["connect_args"]["options"]) == [("role", name)]


@pytest.mark.parametrize("name", [None, ""])
def test_an_empty_user_is_not_the_service_account(config: ModuleType, name: str | None) -> None:
    uri = package("sqlalchemy").engine.make_url("postgresql://superset:word@localhost:5433/hospital")
    with pytest.raises(PermissionError):
        config.DB_CONNECTION_MUTATOR(uri, {}, name, None, None)


def test_other_databases_are_left_as_they_are(config: ModuleType) -> None:
    uri = package("sqlalchemy").engine.make_url("postgresql://someone:word@elsewhere/sales")
    assert config.DB_CONNECTION_MUTATOR(uri, {}, "ana", None, None) == (uri, {})
