"""URLs of servers, and where passwords stand."""

from __future__ import annotations

from pathlib import Path

import pytest

import dpsql
from dpsql.interfaces.dbapi.url import read_address, schema_path
from dpsql.interfaces.remote.url import ServerAddress, is_server_url, match_pgpass_line, resolve_password

VARIABLES = ("PGUSER", "PGPASSWORD", "PGPASSFILE", "PGSSLMODE", "PGSSLROOTCERT", "PGCONNECT_TIMEOUT")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def read(url: str, user: str | None = None, **settings: object) -> ServerAddress:
    address = read_address(url, user, settings)
    assert isinstance(address, ServerAddress)
    return address


def test_all_parts() -> None:
    address = read(
        "dpsql://j%C3%BCrg:se%3Acret%2F@db.example:6000/my%20db?sslmode=verify-full&sslrootcert=%2Fca.pem"
        "&channel_binding=require&connect_timeout=3&epsilon=0.2&contributions_rows=4&options=-c%20delta%3D0"
    )
    assert (address.host, address.port, address.database) == ("db.example", 6000, "my db")
    assert (address.user, address.password) == ("jürg", "se:cret/")
    assert (address.sslmode, address.sslrootcert, address.channel_binding) == ("verify-full", "/ca.pem", "require")
    assert address.timeout == 3
    assert address.settings == {
        "application_name": "dpsql", "epsilon": "0.2", "contributions.rows": "4", "options": "-c delta=0",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("url", "host", "port", "database"),
    [
        ("dpsql://ana@h/c", "h", 5433, "c"),
        ("postgresql://ana@h/c", "h", 5432, "c"),
        ("postgres://ana@h", "h", 5432, None),
        ("POSTGRESQL://ana@H/c", "h", 5432, "c"),
        ("dpsql://ana@[::1]:7/c", "::1", 7, "c"),
        ("postgresql:///c?user=ana", "localhost", 5432, "c"),
        ("postgresql://ana@/c?host=/run/pg&port=6", "/run/pg", 6, "c"),
        ("postgresql://ana@%2Frun%2Fpg/c", "/run/pg", 5432, "c"),
    ],
)
def test_hosts(url: str, host: str, port: int, database: str | None) -> None:
    address = read(url)
    assert (address.host, address.port, address.database, address.user) == (host, port, database, "ana")


def test_arguments_win_over_the_url_and_that_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGUSER", "eve")
    monkeypatch.setenv("PGPASSWORD", "of the environment")
    monkeypatch.setenv("PGSSLMODE", "require")
    assert read("dpsql://h/c").user == "eve" and read("dpsql://h/c").password == "of the environment"
    assert read("dpsql://ana:x@h/c").user == "ana" and read("dpsql://ana:x@h/c").password == "x"
    address = read("dpsql://ana@h/c?epsilon=1&sslmode=disable", "bob", epsilon=0.5)
    assert (address.user, address.settings["epsilon"], address.sslmode) == ("bob", "0.5", "disable")
    assert read("dpsql://ana@h/c").sslmode == "require"


@pytest.mark.parametrize(
    "url",
    [
        "dpsql://h/c", "dpsql://ana:secret@h:0/c", "dpsql://ana:secret@h:99999/c", "dpsql://ana:secret@h:x/c",
        "dpsql://ana:secret@h/a/b", "dpsql://ana:secret@h/c#x", "dpsql://ana:secret@h/c?sslmode=allow",
        "dpsql://ana:secret@h/c?connect_timeout=soon", "dpsql://ana:secret@h/c?epsilon=1&epsilon=2",
        "dpsql://ana:secret@[::1/c", "dpsql://ana:secret@h/c?channel_binding=maybe", "dpsql://ana:secret@h/c?x",
        "postgresql://ana:secret@a,b/c?port=-1", "dpsql://ana:secret@h/c?connect_timeout=nan",
    ],
)  # fmt: skip
def test_wrong_urls_are_reported_without_the_password(url: str) -> None:
    with pytest.raises(dpsql.InterfaceError) as caught:
        read_address(url, None, {})
    assert "secret" not in str(caught.value)


def test_the_password_is_in_no_text() -> None:
    address = read("dpsql://ana:secret@h/c")
    assert "secret" not in repr(address) and "secret" not in str(address)


def test_what_is_a_server() -> None:
    assert (
        not is_server_url("clinic.yaml")
        and not is_server_url("dpsql:///clinic.yaml")
        and not is_server_url("mysql://h/c")
    )
    with pytest.raises(dpsql.NotSupportedError) as caught:
        schema_path("dpsql://ana:secret@h/c")
    assert "secret" not in str(caught.value)


# --- passwords -------------------------------------------------------------------------------------------------------

ADDRESS = ServerAddress("h", 5433, "clinic", "ana")


def test_a_password_in_the_url_is_used(tmp_path: Path) -> None:
    assert resolve_password(ADDRESS.with_password("x"), {}).password == "x"


def passfile(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = folder / "passes"
    path.write_text(text)
    path.chmod(mode)
    return {"PGPASSFILE": str(path)}


def test_the_first_line_that_fits(tmp_path: Path) -> None:
    lines = "# comment\nh:5433:other:ana:1\nh:5433:clinic:bob:2\n*:*:clinic:ana:3\\:4\\\\\nh:5433:clinic:ana:5\n"
    assert resolve_password(ADDRESS, passfile(tmp_path, lines)).password == "3:4\\"


def test_the_file_of_the_home(tmp_path: Path) -> None:
    passfile(tmp_path, "*:*:*:*:here").popitem()
    (tmp_path / "passes").rename(tmp_path / ".pgpass")
    assert resolve_password(ADDRESS, {"HOME": str(tmp_path)}).password == "here"


def test_a_file_that_others_can_read_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(dpsql.InterfaceError, match="no password"):
        resolve_password(ADDRESS, passfile(tmp_path, "*:*:*:*:x", 0o644))


def test_a_socket_of_this_machine_is_called_localhost(tmp_path: Path) -> None:
    local = ServerAddress("/run/pg", 5433, None, "ana")
    assert resolve_password(local, passfile(tmp_path, "localhost:5433:ana:ana:x")).password == "x"


def test_the_password_prompt_comes_last(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return "typed"

    assert resolve_password(ADDRESS, passfile(tmp_path, "*:*:*:ana:x"), ask).password == "x" and not asked
    assert resolve_password(ADDRESS, {"HOME": str(tmp_path / "nobody")}, ask).password == "typed"
    assert asked == ["Password for ana at h:5433: "]


@pytest.mark.parametrize("line", ["", "h:5433:clinic:ana", "#*:*:*:*:x", "h\\:5433:clinic:ana:x", ":::"])
def test_lines_that_are_none(line: str) -> None:
    assert match_pgpass_line(line, ("h", "5433", "clinic", "ana")) is None


def test_a_star_is_all_and_an_escaped_one_is_itself() -> None:
    assert match_pgpass_line(r"\*:5433:clinic:ana:x", ("*", "5433", "clinic", "ana")) == "x"
    assert match_pgpass_line(r"\*:5433:clinic:ana:x", ("h", "5433", "clinic", "ana")) is None
