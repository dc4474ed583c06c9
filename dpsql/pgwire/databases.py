"""The databases that a server serves: each is an opened schema, with who may log in.

Law: a schema that is read again takes nothing from who is connected: old connections keep the dataset that they were
opened on, and it is closed behind the last of them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from dpsql.dataset import Dataset, open_dataset
from dpsql.errors import Error, InterfaceError
from dpsql.logins import Logins, conspicuous, logins_of, strangers_of
from dpsql.passwords import Verifier
from dpsql.session import Memory, Session, check_settings


@dataclass(eq=False)
class Served:
    """`clients` are connected to it. Once `retired`, nobody new is."""

    path: str
    dataset: Dataset
    logins: Logins
    clients: int = 0
    retired: bool = False
    _memories: dict[tuple[str, str], Memory] = field(default_factory=dict)

    def memory(self, user: str, role: str = "") -> Memory:
        """What the connections of one analyst share. Of one, not of all: that something was worked out before, and so
        is answered sooner, tells that someone has asked it. Who is acted for from the start has her own."""
        known = role if self.dataset.schema.analyst(role) is not None else ""
        return self._memories.setdefault((user, known), Memory())

    @property
    def name(self) -> str:
        return self.dataset.schema.database


@dataclass(frozen=True)
class Login:
    """Whom a proof must come from; `served` is None where it opens nothing, which is told after it."""

    verifier: Verifier
    known: bool
    served: Served | None


def open_served(path: str, environment: Mapping[str, str]) -> Served:
    """Takes a while: data may be registered."""
    dataset = open_dataset(path)
    try:
        check_settings(dataset.schema)
        return Served(path, dataset, logins_of(dataset.schema, dataset.ledger.id, environment))
    except BaseException:
        dataset.close()
        raise


def warm(served: Served) -> None:
    """Ask something that is free, so that the first client does not wait for what is opened once."""
    with suppress(Error):
        Session(served.dataset, next(iter(served.logins.known))).execute("SELECT 1")


class Databases:
    """By name. All but `open_served` is for the event loop alone."""

    def __init__(self, served: Sequence[Served]) -> None:
        self._now = list(served)
        self._closing: list[threading.Thread] = []
        names = [one.name for one in served]
        for name in names:
            if names.count(name) > 1:
                raise InterfaceError(
                    f'two schemas would be the database "{name}"',
                    hint="A database has the name of its schema's file: rename one.",
                )

    def __iter__(self) -> Iterator[Served]:
        return iter(self._now)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self._now)

    def login(self, database: str, user: str) -> Login:
        """Whoever is asked for: known or not, the same is done. A user of one database who names another that is not
        hers proves first who she is, and is told then.

        Who has another password in each of two databases is seen to be known in both: her salts are two.
        """
        made_up, _ = strangers_of([one.logins for one in self._now]).verifier(user)
        named = next((one for one in self._now if one.name == database), None)
        others = [one for one in self._now if one is not named]
        candidates = [one for one in (named, *others) if one is not None]
        found = [(one, *one.logins.verifier(user)) for one in candidates]
        one, verifier, known = next((each for each in found if each[2]), (None, made_up, False))
        return Login(verifier, known, one if known and one is named else None)

    def conspicuous(self) -> tuple[str, ...]:
        """Who is told from a stranger by a login alone."""
        strangers = strangers_of([one.logins for one in self._now])
        return tuple(name for one in self._now for name in conspicuous(one.logins, strangers))

    def replace(self, old: Served, new: Served) -> None:
        self._now[self._now.index(old)] = new
        old.retired = True
        self._close_unused(old)

    def enter(self, served: Served) -> None:
        served.clients += 1

    def leave(self, served: Served) -> None:
        served.clients -= 1
        self._close_unused(served)

    def close(self, forced: bool = False) -> None:
        """All of them, when the server has ended. Waits for the runs that were begun; `forced`, or Ctrl-C, stops them,
        and their charges are redeemed later."""
        for one in self._now:
            if forced:
                one.dataset.engine.close()
            one.dataset.close()
        for thread in self._closing:
            thread.join()

    def _close_unused(self, served: Served) -> None:
        if served.retired and not served.clients:
            thread = threading.Thread(target=served.dataset.close, name=f"dpsql-close-{served.name}")
            thread.start()
            self._closing = [one for one in self._closing if one.is_alive()] + [thread]
