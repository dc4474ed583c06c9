"""A missing package or program: under CI it fails, elsewhere it is told."""

from pathlib import Path

import pytest

from tests.support.optional_dependencies import package, program


@pytest.mark.parametrize("need", [package, program])
def test_what_is_missing_fails_under_ci_and_is_skipped_elsewhere(monkeypatch, need):
    monkeypatch.setattr("tests.support.optional_dependencies.os.geteuid", lambda: 0)
    monkeypatch.setattr(
        "tests.support.optional_dependencies.shutil.which", lambda name: name if name == "apt-get" else None
    )
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no_such_thing is not installed: "):
        need("no_such_thing")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception, match="no_such_thing is not installed: "):
        need("no_such_thing")


def test_what_only_root_can_install_is_skipped_where_nobody_could(monkeypatch):
    monkeypatch.setenv("CI", "true")
    monkeypatch.setattr("tests.support.optional_dependencies.os.geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="apt-get install no_such_thing"):
        program("no_such_thing")


def test_what_is_there_is_given(monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert package("os.path").sep and program("sh").endswith("sh")


def test_no_test_is_left_out_silently():
    """pytest's own way skips under CI too."""
    silent = "pytest.import" + "orskip"
    tests = Path(__file__).parents[0].rglob("*.py")
    assert [path for path in tests if silent in path.read_text(encoding="utf-8")] == []
