"""The databases that a server serves: each is an opened schema, with its logins.

Law: a schema that is read again takes nothing from who is connected: old connections keep the dataset that they were
opened on, and it is closed behind the last of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from dpsql.base.scram import Verifier
from dpsql.errors import Error, InterfaceError, OperationalError
from dpsql.session.dataset.dataset import Dataset, open_dataset
from dpsql.session.logins import Logins, find_conspicuous, load_logins, stranger_logins
from dpsql.session.session import Session, SessionCache, check_settings


@dataclass(eq=False)
class ServedDatabase:
    """`clients` are connected to it. Once `retired`, nobody new is."""

    path: str
    dataset: Dataset
    logins: Logins
    clients: int = 0
    retired: bool = False
    _session_caches: dict[tuple[str, str], SessionCache] = field(default_factory=dict)

    def get_session_cache(self, user: str, role: str = "") -> SessionCache:
        """The cache that the connections of one analyst share. It is not shared by all analysts: an answer that comes
        sooner, since it is cached, would show that someone else has asked. A role has a cache of its own."""
        acting_role = role if self.dataset.schema.analyst(role) is not None else ""
        return self._session_caches.setdefault((user, acting_role), SessionCache())

    @property
    def name(self) -> str:
        return self.dataset.schema.database


@dataclass(frozen=True)
class LoginTarget:
    """Whose password must be proven. `served` is None where the login opens nothing, which is said after the proof."""

    verifier: Verifier
    is_analyst: bool
    served: ServedDatabase | None


def open_served_database(path: str, environment: Mapping[str, str]) -> ServedDatabase:
    """Open a schema to serve it. Takes a while: data may be registered."""
    dataset = open_dataset(path)
    try:
        check_settings(dataset.schema)
        _check_ledger(dataset)
        return ServedDatabase(path, dataset, load_logins(dataset.schema, dataset.ledger.id, environment))
    except BaseException:
        dataset.close()
        raise


def _check_ledger(dataset: Dataset) -> None:
    """Whether charges can be written: nobody is let in to a server that can answer nothing new."""
    try:
        dataset.ledger.check_writable()
    except Error as error:
        reason = f"{error.message[:1].upper()}{error.message[1:]}. {error.detail or ''}".strip()
        raise OperationalError(
            f'the ledger of "{dataset.schema.database}" cannot be written, so nothing could be charged',
            detail=reason, hint="Check the space on its disk, and who may write its file and its folder.",
        ) from error  # fmt: skip


def warm_up_database(served: ServedDatabase) -> None:
    """Ask something that is free, so that the first client does not wait for what is opened once."""
    with suppress(Error):
        Session(served.dataset, next(iter(served.logins.verifiers))).execute("SELECT 1")


class ServedDatabases:
    """The served databases, by name; used on the event loop only."""

    def __init__(self, served: Sequence[ServedDatabase]) -> None:
        self._now = list(served)
        self._closing: list[threading.Thread] = []
        names = [database.name for database in served]
        for name in names:
            if names.count(name) > 1:
                raise InterfaceError(
                    f'two schemas would be the database "{name}"',
                    hint="A database has the name of its schema's file: rename one.",
                )

    def __iter__(self) -> Iterator[ServedDatabase]:
        return iter(self._now)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(database.name for database in self._now)

    def find_login(self, database: str, user: str) -> LoginTarget:
        """The verifier of a user; for an unknown user, a dummy one, by the same steps and so in the same time.

        A user of one database who names another learns that it is not open to them after the proof. A user with
        different passwords in two databases can be seen to exist in both, since there are two salts.
        """
        dummy_verifier, _ = stranger_logins([served.logins for served in self._now]).find_verifier(user)
        requested_database = next((served for served in self._now if served.name == database), None)
        others = [served for served in self._now if served is not requested_database]
        candidates = [served for served in (requested_database, *others) if served is not None]
        verifiers = [(served, *served.logins.find_verifier(user)) for served in candidates]
        served, verifier, is_registered = next(
            (candidate for candidate in verifiers if candidate[2]), (None, dummy_verifier, False)
        )
        return LoginTarget(verifier, is_registered, served if is_registered and served is requested_database else None)

    def find_conspicuous_users(self) -> tuple[str, ...]:
        """Users whose login can be told from that of an unknown user."""
        strangers = stranger_logins([database.logins for database in self._now])
        return tuple(name for database in self._now for name in find_conspicuous(database.logins, strangers))

    def replace_database(self, old: ServedDatabase, new: ServedDatabase) -> None:
        self._now[self._now.index(old)] = new
        old.retired = True
        self._close_unused(old)

    def add_client(self, served: ServedDatabase) -> None:
        served.clients += 1

    def remove_client(self, served: ServedDatabase) -> None:
        served.clients -= 1
        self._close_unused(served)

    def close(self, forced: bool = False) -> None:
        """All of them, when the server has ended. Waits for the runs that were begun; `forced`, or Ctrl-C, stops them,
        and their charges are redeemed later."""
        for database in self._now:
            if forced:
                database.dataset.engine.close()
            database.dataset.close()
        for thread in self._closing:
            thread.join()

    def _close_unused(self, served: ServedDatabase) -> None:
        if served.retired and not served.clients:
            thread = threading.Thread(target=served.dataset.close, name=f"dpsql-close-{served.name}")
            thread.start()
            self._closing = [closing for closing in self._closing if closing.is_alive()] + [thread]
