"""An opened schema: its registered data, engine and ledger, shared by the sessions of a process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from dpsql import versions
from dpsql.engines.base import Engine
from dpsql.errors import AccessDenied, IntegrityError, InterfaceError
from dpsql.ledger.accountants import Verdict as Verdict
from dpsql.ledger.audit import Audit as Audit
from dpsql.ledger.audit import audit, read_receipt
from dpsql.ledger.base import Account, Binding, Receipt
from dpsql.ledger.base import Ledger as Ledger
from dpsql.ledger.base import Stored as Stored
from dpsql.ledger.books import ACCOUNTS_WORTH
from dpsql.ledger.checker import Unreadable
from dpsql.ledger.open import open_ledger
from dpsql.ledger.standing import HISTORY, history_rows, standing, verdicts
from dpsql.ledger.standing import Standing as Standing
from dpsql.privacy.filters import Composition
from dpsql.runs import Runs, is_runs_thread
from dpsql.schema.fingerprint import schema_hash
from dpsql.schema.load import load_schema
from dpsql.schema.model import Analyst, Budget, Group, Policy, Privacy, Resolved, Schema

DATASET = "dataset"


def _now() -> datetime:
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

    def account(self, user: str | None) -> Account:
        return account_of(self.schema, user)

    def privacy_of(self, account: Account) -> Privacy:
        """The owner's settings, with a default statement that the account's policy allows."""
        return replace(self.schema.privacy, query=usual_query(self.schema, account))

    def check_current(self) -> None:
        """The version is still the one that is served; whether its files are as they were does not matter to what is
        stored."""
        versions.check_current(self.schema, self.ledger, self.resolved.version, _now())

    def check_unchanged(self) -> None:
        """Before a charge. Files are pinned: it buys an answer about the registered version or nothing."""
        versions.check_unchanged(self.schema, self.ledger, self.resolved.version, _now())

    def check_read(self) -> None:
        """After a run: the files are still those of the version."""
        versions.check_read(self.resolved)

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
    return account_named(schema, analyst.name)


def dataset_account(schema: Schema) -> Account:
    return _account(DATASET, schema.privacy.budget, schema.privacy.policy, schema.privacy.query)


def accounts_below(schema: Schema) -> tuple[Account, ...]:
    """The accounts of groups and analysts, as the schema declares them."""
    declared: tuple[Group | Analyst, ...] = (*schema.groups, *schema.analysts)
    query = schema.privacy.query
    return tuple(_account(one.name, one.budget, one.policy, query, one.parent) for one in declared)


def payers_of(schema: Schema, account: Account) -> tuple[Account, ...]:
    """The account, and all above it that pay with it; the dataset's is the last."""
    below = {one.name: one for one in accounts_below(schema)}
    payers = [account]
    while (parent := payers[-1].parent) is not None:
        payers.append(below[parent])
    whole = dataset_account(schema)
    return tuple(payers) if account == whole else (*payers, whole)


def account_named(schema: Schema, name: str) -> Account:
    """For the owner: the dataset's account, a group's or an analyst's."""
    everyone = {account.name: account for account in (dataset_account(schema), *accounts_below(schema))}
    if name not in everyone:
        raise AccessDenied(f'there is no account "{name}" in the schema', hint=f"Accounts: {', '.join(everyone)}.")
    return everyone[name]


def usual_query(schema: Schema, account: Account) -> Budget:
    """The default of a statement, as far as the policies of all who pay for it allow."""
    query, payers = schema.privacy.query, payers_of(schema, account)
    epsilons = [one.epsilon if one.largest_epsilon is None else one.largest_epsilon for one in payers]
    deltas = [one.delta if one.largest_delta is None else one.largest_delta for one in payers]
    return Budget(min(query.epsilon, *epsilons), min(query.delta, *deltas))


def _account(name: str, budget: Budget, policy: Policy, query: Budget, parent: str | None = None) -> Account:
    """A policy that names the largest epsilon of a query and no delta means the delta that is usual: with a larger one,
    the same epsilon is a multiple of the loss."""
    largest_delta = policy.largest_delta
    if largest_delta is None and policy.largest_epsilon is not None:
        largest_delta = min(query.delta, budget.delta)
    return Account(
        name,
        budget.epsilon,
        budget.delta,
        Composition(policy.composition),
        parent,
        policy.largest_epsilon,
        largest_delta,
        policy.expires,
    )


def open_dataset(path: str | Path) -> Dataset:
    """Whoever opens a schema in process has the data, and so acts as the owner: version 1 is registered here."""
    schema = load_schema(path)
    ledger = _ledger(schema)
    try:
        now = _now()
        ledger.adopt(now, schema_hash(schema))
        if schema.answers.retention is not None:
            ledger.drop_answers(now - schema.answers.retention)
        resolved = versions.register(schema, ledger, now=now)
        runs = Runs(schema.limits.min_latency, ledger=ledger.identity)
        return Dataset(resolved, versions.engine_for(resolved), ledger, runs)
    except BaseException:
        ledger.close()
        raise


def register_changed(path: str | Path) -> int:
    """The owner's act: the data as it is now becomes the next version. Returns its number."""
    with open_books(path, make=True) as (schema, ledger):
        return versions.register(schema, ledger, changed=True, now=_now()).version


def grant(path: str | Path, name: str) -> tuple[Account, Receipt | None]:
    """The owner's act: the ledger records the budget that the schema gives to an account. None: it stood there."""
    with open_books(path) as (schema, ledger):
        account = account_named(schema, name)
        entry = ledger.grant(account, _now(), schema_hash(schema))
        return account, None if entry is None else entry.receipt


def audit_books(path: str | Path, receipts: Sequence[str] = ()) -> Audit:
    """The owner's look at all that was ever charged, and at receipts that someone holds."""
    held = [_receipt(text) for text in receipts]
    with open_books(path) as (_, ledger):
        return audit(ledger, held)


def _receipt(text: str) -> Receipt:
    receipt = read_receipt(text)
    if receipt is None:
        raise InterfaceError(f'"{text}" is no receipt', hint="A receipt reads account/number/hash, as answers show it.")
    return receipt


def standings(schema: Schema, ledger: Ledger, user: str | None) -> tuple[Standing, ...]:
    """How an analyst's account stands, or for the owner all of the schema's: the dataset's first."""
    if user is not None:
        accounts: tuple[Account, ...] = (account_of(schema, user),)
    else:
        accounts = (dataset_account(schema), *accounts_below(schema))
    found = []
    for account in accounts:
        query = usual_query(schema, account)
        above = bool(schema.analysts) and account.name == DATASET
        found.append(standing(ledger, account, query.epsilon, query.delta, parent=above))
    return tuple(found)


def left_the_schema(schema: Schema, ledger: Ledger) -> list[str]:
    """The accounts that the ledger has and the schema has no more."""
    declared = {DATASET, *(account.name for account in accounts_below(schema))}
    return [name for name in ledger.accounts() if name not in declared]


def report_on(ledger: Ledger, account: Account) -> tuple[Verdict, ...]:
    """What each accountant would say of an account's history: a report, not the rule."""
    try:
        return verdicts(ledger, account)
    except Unreadable as error:
        raise IntegrityError(
            f'an entry of "{account.name}" names mechanisms that are not known here', detail=f"{error}."
        ) from error


def history(ledger: Ledger, user: str | None) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """The columns and rows of an account's entries, or for the owner of all that the ledger has."""
    names = ledger.accounts() if user is None else (user,)
    return HISTORY, [row for name in names for row in history_rows(ledger.entries(name))]


@contextmanager
def open_books(path: str | Path, *, make: bool = False) -> Iterator[tuple[Schema, Ledger]]:
    """The schema and its ledger, without the data: what the owner needs to look at accounts.

    A ledger that is not there is not made, but where `make` says so: an audit of a new one would find all well.
    """
    schema = load_schema(path)
    ledger = _ledger(schema, make)
    try:
        yield schema, ledger
    finally:
        ledger.close()


def _ledger(schema: Schema, make: bool = True) -> Ledger:
    privacy = schema.privacy
    binding = Binding(privacy.unit, privacy.neighbors.value, privacy.group_size)
    failures = schema.limits.failures
    return open_ledger(
        schema.ledger,
        binding,
        dataset_account(schema),
        others=accounts_below(schema),
        failures=failures,
        dataset_failures=failures * ACCOUNTS_WORTH,
        min_latency=schema.limits.min_latency,
        make=make,
    )
