"""The file: made safely, checked on opening, locked, damaged."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
import threading
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from dpsql.errors import IntegrityError, OperationalError, SchemaError
from dpsql.ledger import sqlite
from dpsql.ledger.base import Account, Binding, ChargedStatement, ReleaseRequest
from dpsql.ledger.ledger import SqlLedger
from dpsql.ledger.open import open_ledger
from dpsql.ledger.sqlite import path_from_url
from dpsql.privacy.loss import Loss
from tests.support.optional_dependencies import no_root

BINDING = Binding("row", "add_remove", 1)
DATASET = Account("dataset", Fraction(10**6), Fraction(0))
ANA = Account("ana", Fraction(10**6), Fraction(0))
NOW = datetime(2025, 1, 2, tzinfo=UTC)


def make(path: Path, busy_seconds: float = 30.0) -> SqlLedger:
    return open_ledger(f"sqlite://{path}", BINDING, DATASET, busy_seconds=busy_seconds)


def ask(plan: str) -> ReleaseRequest:
    return ReleaseRequest(plan, 1, Loss(Fraction(1), Fraction(1, 2), Fraction(0)), (Fraction(1),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with one charge."""
    ledger = make(tmp_path / "a.ledger")
    ledger.register_version("files", "facts")
    ledger.purchase(ANA, [ask("p")], ChargedStatement("SELECT 1"), NOW)
    return tmp_path / "a.ledger"


def test_urls() -> None:
    assert path_from_url("sqlite:///a/b.ledger") == path_from_url("sqlite:////a/b.ledger") == Path("/a/b.ledger")
    assert path_from_url("sqlite:///a b/100%?#.ledger") == Path("/a b/100%?#.ledger")
    for url in ("sqlite://", "sqlite:///", "sqlite::memory:", "postgresql:///a", "/a/b.ledger"):
        with pytest.raises(SchemaError):
            path_from_url(url)


def test_a_path_with_signs_that_urls_use(tmp_path: Path) -> None:
    make(tmp_path / "100%25?mode=memory#x.ledger")
    assert [file.name for file in tmp_path.iterdir()] == ["100%25?mode=memory#x.ledger"]


def test_the_file_alone_holds_every_charge(path: Path) -> None:
    assert [file.name for file in path.parent.iterdir()] == ["a.ledger"]
    copy = path.with_name("copy.ledger")
    copy.touch(0o600)
    copy.write_bytes(path.read_bytes())
    assert make(copy).get_balance(ANA).charges == 1


class TestOpenToOthers:
    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644, 0o666])
    def test_the_ledger(self, path: Path, mode: int) -> None:
        path.chmod(mode)
        with pytest.raises(OperationalError, match="open to others") as caught:
            make(path)
        assert caught.value.hint == f"Write: chmod 600 {path}"
        path.chmod(0o600)
        assert make(path).get_balance(ANA).charges == 1

    @pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
    def test_its_journal(self, path: Path, ending: str) -> None:
        journal = path.with_name(path.name + ending)
        journal.touch()
        journal.chmod(0o644)
        with pytest.raises(OperationalError, match=f"{ending}.* is open to others"):
            make(path)

    def test_a_new_one_is_not(self, path: Path) -> None:
        assert path.stat().st_mode & 0o777 == 0o600


def test_commits_are_synced_to_the_disk_and_the_folder(path: Path) -> None:
    """A killed process cannot show this: the system keeps what it wrote. Only lost power would."""
    with make(path).database.write() as db:
        assert db.execute("PRAGMA synchronous")[0] == (3,)  # EXTRA
        assert db.execute("PRAGMA journal_mode")[0] == ("delete",)
        assert db.execute("PRAGMA foreign_keys")[0] == (1,)


def test_many_open_a_new_ledger_at_once(tmp_path: Path) -> None:
    ids: list[str] = []
    start = threading.Barrier(8)

    def run() -> None:
        start.wait()
        ids.append(make(tmp_path / "a.ledger").database.id)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ids) == 8 and len(set(ids)) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["a.ledger"]


@pytest.mark.parametrize("ending", ["-journal", ".snapshots"])
def test_what_another_process_made_just_now_is_no_remnant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """It made the ledger, and has begun to use it, between our look for the ledger and our look for remnants."""
    path, find = tmp_path / "a.ledger", sqlite._find_remnant

    def make_first(looked: Path) -> tuple[str, str] | None:
        monkeypatch.setattr(sqlite, "_find_remnant", find)
        make(looked)
        path.with_name(path.name + ending).mkdir(0o700)
        return find(looked)

    monkeypatch.setattr(sqlite, "_find_remnant", make_first)
    sqlite._create_ledger(path, Binding("row", "add_remove", 1))
    assert path.exists()
    path.unlink()
    with pytest.raises(IntegrityError, match=r"is gone, but .* there"):
        make(path)


@pytest.mark.parametrize(
    "other", [Binding("users.id", "add_remove", 1), Binding("row", "change_one", 1), Binding("row", "add_remove", 2)]
)
def test_another_binding_is_refused(path: Path, other: Binding) -> None:
    with pytest.raises(IntegrityError, match='was made for unit "row"') as refusal:
        open_ledger(f"sqlite://{path}", other, DATASET)
    assert refusal.value.hint is not None and "new ledger" in refusal.value.hint


class TestDamage:
    def test_not_a_database(self, path: Path) -> None:
        path.write_bytes(b"these are not the bytes of a ledger" * 100)
        with pytest.raises(IntegrityError, match="damaged"):
            make(path)

    def test_emptied(self, path: Path) -> None:
        """An empty file is no new ledger: that would give all budgets back."""
        path.write_bytes(b"")
        with pytest.raises(IntegrityError, match="is not a ledger"):
            make(path)

    def test_cut(self, path: Path) -> None:
        path.write_bytes(path.read_bytes()[:-4096])
        with pytest.raises(IntegrityError, match="damaged"):
            make(path)

    def test_overwritten_pages(self, path: Path) -> None:
        content = path.read_bytes()
        path.write_bytes(content[:8192] + b"\xff" * (len(content) - 8192))
        with pytest.raises(IntegrityError, match="damaged"):
            make(path)

    def test_another_sqlite_file(self, path: Path) -> None:
        path.unlink()
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE t (x)")
        path.chmod(0o600)
        with pytest.raises(IntegrityError, match="is not a ledger"):
            make(path)

    def test_a_table_gone(self, path: Path) -> None:
        ledger = make(path)
        with closing(sqlite3.connect(path)) as db:
            db.execute("DROP TABLE payment")
        with pytest.raises(IntegrityError, match="damaged"):
            ledger.purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)

    def test_a_later_format(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")
        with pytest.raises(IntegrityError, match="has format 99"):
            make(path)

    def test_gone_while_open(self, path: Path) -> None:
        ledger = make(path)
        path.unlink()
        with pytest.raises(OperationalError, match="cannot be read or written"):
            ledger.purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)
        assert not path.exists()

    def test_errors_of_an_open_ledger_name_no_path(self, path: Path) -> None:
        ledger = make(path)
        path.unlink()
        with pytest.raises(OperationalError) as caught:
            ledger.purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)
        assert str(path.parent) not in f"{caught.value.message} {caught.value.detail} {caught.value.hint}"
        with pytest.raises(OperationalError) as caught:
            assert ledger.identity
        assert str(path.parent) not in f"{caught.value.message} {caught.value.detail} {caught.value.hint}"

    def test_replaced_while_open(self, path: Path) -> None:
        ledger = make(path)
        path.unlink()
        make(path)
        with pytest.raises(IntegrityError, match="was replaced"):
            ledger.purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)

    def test_gone_but_for_its_journal(self, path: Path) -> None:
        """SQLite would roll the old journal into the new file."""
        path.rename(f"{path}-journal")
        with pytest.raises(IntegrityError, match="its journal is there"):
            make(path)

    def test_no_folder(self, tmp_path: Path) -> None:
        with pytest.raises(OperationalError, match="does not exist"):
            make(tmp_path / "typo" / "a.ledger")


def test_a_ledger_in_wal_mode_goes_back_to_one_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    make(path).purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)
    assert [file.name for file in path.parent.iterdir()] == ["a.ledger"]


class TestLocked:
    def test_for_too_long(self, path: Path) -> None:
        ledger = make(path, busy_seconds=0.1)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            with pytest.raises(OperationalError, match="is locked by another process"):
                ledger.purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)
        ledger.purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)
        assert ledger.get_balance(ANA).charges == 2

    def test_by_a_reader_when_it_commits(self, path: Path) -> None:
        """The commit itself may be refused; then nothing was charged."""
        ledger = make(path, busy_seconds=0.1)
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("BEGIN")
            db.execute("SELECT * FROM entry").fetchall()
            with pytest.raises(OperationalError, match="is locked by another process"):
                ledger.purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)
        assert ledger.get_balance(ANA).charges == ledger.get_balance(DATASET).charges == 1

    def test_for_a_while(self, path: Path) -> None:
        ledger = make(path)
        with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as db:
            db.execute("BEGIN IMMEDIATE")
            release = threading.Timer(0.2, db.execute, ["ROLLBACK"])
            release.start()
            ledger.purchase(ANA, [ask("q")], ChargedStatement("SELECT 2"), NOW)
            release.join()
        assert ledger.get_balance(ANA).charges == 2


def test_it_is_the_owners_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make(tmp_path / "a.ledger").register_version("files", "facts")
    finally:
        os.umask(before)
    (file,) = tmp_path.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


class TestWhetherItCanBeWritten:
    def test_a_check_changes_nothing(self, path: Path) -> None:
        ledger, before = make(path), path.read_bytes()
        ledger.check_writable()
        assert path.read_bytes() == before and [file.name for file in path.parent.iterdir()] == [path.name]

    def test_a_file_that_is_read_only(self) -> None:
        with no_root() as folder:
            path = folder / "a.ledger"
            ledger = make(path)
            path.chmod(0o400)
            with pytest.raises(OperationalError, match=r"^the ledger cannot be read or written\n"):
                ledger.check_writable()
            path.chmod(0o600)
            ledger.check_writable()

    def test_a_folder_in_which_no_journal_can_be_made(self) -> None:
        with no_root() as folder:
            ledger = make(folder / "a.ledger")
            folder.chmod(0o500)
            with pytest.raises(OperationalError):
                ledger.check_writable()
            folder.chmod(0o700)

    def test_a_disk_without_space(self, path: Path) -> None:
        ledger = make(path)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # as good as full: no file can grow
        try:
            with pytest.raises(OperationalError):
                ledger.check_writable()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        ledger.check_writable()
