"""An opened schema: its registered data, engine and ledger, shared by the sessions of a process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dpsql import versions
from dpsql.engines.base import Engine
from dpsql.errors import AccessDenied
from dpsql.ledger.base import Account, Binding, Ledger
from dpsql.ledger.sqlite import ACCOUNTS_WORTH, open_ledger
from dpsql.runs import Runs, is_runs_thread
from dpsql.schema.load import load_schema
from dpsql.schema.model import Resolved, Schema

DATASET = "dataset"


@dataclass(frozen=True)
class Dataset:
    resolved: Resolved
    engine: Engine
    ledger: Ledger
    runs: Runs = field(default_factory=Runs, compare=False)

    @property
    def schema(self) -> Schema:
        return self.resolved.schema

    def account(self, user: str | None) -> Account:
        return account_of(self.schema, user)

    def check_unchanged(self) -> None:
        """Files are pinned: a charge buys an answer about the registered version or nothing."""
        versions.check_unchanged(self.schema, self.ledger, self.resolved.version)

    def close(self) -> None:
        """Wait for the runs that were begun or joined here, then free the engine, which no other dataset's run uses.

        Ctrl-C stops them: their charges are redeemed later.
        """
        if is_runs_thread():  # the garbage of others was collected there
            threading.Thread(target=self.close, name="dpsql-close").start()
            return
        try:
            self.runs.finish()
        finally:
            self.engine.close()
            self.runs.finish(patience=1)  # those that were stopped; Python ends badly while the driver is at work
            self.ledger.close()


def account_of(schema: Schema, user: str | None) -> Account:
    """Who pays: an analyst of the schema, or the dataset itself where none are declared."""
    if not schema.analysts:
        if user not in (None, DATASET):
            raise AccessDenied(f'there is no analyst "{user}" in the schema', hint="It has none, so leave it out.")
        return dataset_account(schema)
    names = ", ".join(analyst.name for analyst in schema.analysts)
    if user is None:
        raise AccessDenied("a user must be named", hint=f"Connect as one of: {names}.")
    analyst = schema.analyst(user)
    if analyst is None:
        raise AccessDenied(f'there is no analyst "{user}" in the schema', hint=f"Analysts: {names}.")
    return Account(analyst.name, analyst.budget.epsilon, analyst.budget.delta)


def dataset_account(schema: Schema) -> Account:
    return Account(DATASET, schema.privacy.budget.epsilon, schema.privacy.budget.delta)


def open_dataset(path: str | Path) -> Dataset:
    """Whoever opens a schema in process has the data, and so acts as the owner: version 1 is registered here."""
    schema = load_schema(path)
    ledger = _ledger(schema)
    try:
        resolved = versions.register(schema, ledger)
        runs = Runs(schema.limits.min_latency, ledger=ledger.identity)
        return Dataset(resolved, versions.engine_for(resolved), ledger, runs)
    except BaseException:
        ledger.close()
        raise


def register_changed(path: str | Path) -> int:
    """The owner's act: the data as it is now becomes the next version. Returns its number."""
    with open_books(path) as (schema, ledger):
        return versions.register(schema, ledger, changed=True).version


@contextmanager
def open_books(path: str | Path) -> Iterator[tuple[Schema, Ledger]]:
    """The schema and its ledger, without the data: what the owner needs to look at accounts."""
    schema = load_schema(path)
    ledger = _ledger(schema)
    try:
        yield schema, ledger
    finally:
        ledger.close()


def _ledger(schema: Schema) -> Ledger:
    privacy = schema.privacy
    binding = Binding(privacy.unit, privacy.neighbors.value, privacy.group_size)
    failures = schema.limits.failures
    return open_ledger(
        schema.ledger,
        binding,
        dataset_account(schema),
        failures=failures,
        dataset_failures=failures * ACCOUNTS_WORTH,
    )
