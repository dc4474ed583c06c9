"""An opened schema: its registered data, engine and ledger, shared by the sessions of a process."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dpsql.compiler.split.declared_statistics import check_statistics
from dpsql.engines.base import Engine
from dpsql.errors import StaleData
from dpsql.ledger.base import Account, Ledger
from dpsql.schema.fingerprint import hash_schema
from dpsql.schema.load import load_schema, schema_from_dict
from dpsql.schema.model import Resolved, Schema
from dpsql.session.dataset import file_identity, versions
from dpsql.session.dataset.accounts import account_of, dataset_account, declared_accounts, open_declared_ledger
from dpsql.session.dataset.runs import Runs, is_run_thread


def now_utc() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Dataset:
    resolved: Resolved
    engine: Engine
    ledger: Ledger
    runs: Runs = field(default_factory=Runs, compare=False)

    @property
    def schema(self) -> Schema:
        return self.resolved.schema

    @property
    def seconds(self) -> float:
        """The owner's limit of what a release may take, in the engine and again after it."""
        return self.schema.limits.seconds

    def find_account(self, user: str | None) -> Account:
        return account_of(self.schema, user)

    def list_accounts(self) -> tuple[Account, ...]:
        """For the owner: the dataset's, the groups' and the analysts'."""
        return (dataset_account(self.schema), *declared_accounts(self.schema))

    def check_current(self) -> None:
        """The version is still the one that is served; whether its files are as they were does not matter to what is
        stored."""
        file_identity.check_current(self.schema, self.ledger, self.resolved.version, now_utc())

    def check_unchanged(self) -> None:
        """Files are pinned: what is asked is answered about the registered version or not at all."""
        file_identity.check_unchanged(self.schema, self.ledger, self.resolved.version, now_utc())

    def check_files(self) -> None:
        """Before a charge, which checks itself that the version is the one that is served (`check_current`)."""
        try:
            self.check_read()
        except StaleData:
            self.check_current()  # files that were registered since are no fault of theirs
            raise

    def check_read(self) -> None:
        """After a run: the files are still those of the version."""
        file_identity.check_read(self.resolved)

    def close(self) -> None:
        """Wait for the runs that were begun or joined here, then free the engine, which no other dataset's run uses.

        Ctrl-C stops them: their charges are redeemed later.
        """
        if is_run_thread():  # the garbage of others was collected there
            threading.Thread(target=self.close, name="dpsql-close").start()
            return
        try:
            self.runs.wait_until_idle()
        finally:
            self.engine.close()
            self.runs.wait_until_idle(
                patience=1
            )  # those that were stopped; Python ends badly while the driver is at work
            self.ledger.close()


def check_declarations(schema: Schema) -> None:
    """What reading a schema does not tell: whether the SQL in it can be bound."""
    check_statistics(schema)


def open_dataset(schema_or_path: str | Path | Mapping[str, object], folder: str | Path = ".") -> Dataset:
    """Whoever opens a schema in process has the data, and so acts as the owner: version 1 is registered here.

    The paths of a schema that is given as a mapping are relative to `folder`.
    """
    where = schema_or_path
    schema = schema_from_dict(where, folder) if isinstance(where, Mapping) else load_schema(where)
    check_declarations(schema)
    ledger = open_declared_ledger(schema)
    try:
        now = now_utc()
        ledger.adopt_terms(now, hash_schema(schema))
        if schema.answers.retention is not None:
            ledger.drop_old_bodies(now - schema.answers.retention)
        resolved = versions.register_data(schema, ledger, now=now)
        runs = Runs(schema.limits.min_latency, ledger=ledger.identity, max_runs_per_account=schema.limits.running)
        return Dataset(resolved, versions.open_engine(resolved), ledger, runs)
    except BaseException:
        ledger.close()
        raise
