"""The accounts that a schema declares, and the ledger that holds them."""

from __future__ import annotations

from dpsql.errors import AccessDenied
from dpsql.ledger.base import DATASET as DATASET
from dpsql.ledger.base import Account, Binding, Ledger
from dpsql.ledger.ledger import DATASET_FAILURE_FACTOR
from dpsql.ledger.open import open_ledger
from dpsql.privacy.filters import Composition
from dpsql.schema.model import Analyst, Budget, Group, Policy, Schema


def account_of(schema: Schema, user: str | None) -> Account:
    """The account that pays: an analyst's, or the dataset's where the schema declares none."""
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
    return find_account_by_name(schema, analyst.name)


def dataset_account(schema: Schema) -> Account:
    return _build_account(DATASET, schema.privacy.budget, schema.privacy.policy, schema.privacy.query)


def declared_accounts(schema: Schema) -> tuple[Account, ...]:
    """The accounts of groups and analysts, as the schema declares them."""
    declared: tuple[Group | Analyst, ...] = (*schema.groups, *schema.analysts)
    query = schema.privacy.query
    return tuple(_build_account(member.name, member.budget, member.policy, query, member.parent) for member in declared)


def paying_accounts(schema: Schema, account: Account) -> tuple[Account, ...]:
    """The account, and all above it that pay with it; the dataset's is the last."""
    below = {member.name: member for member in declared_accounts(schema)}
    payers = [account]
    while (parent := payers[-1].parent) is not None:
        payers.append(below[parent])
    dataset = dataset_account(schema)
    return tuple(payers) if account == dataset else (*payers, dataset)


def find_account_by_name(schema: Schema, name: str) -> Account:
    """For the owner: the dataset's account, a group's or an analyst's."""
    everyone = {account.name: account for account in (dataset_account(schema), *declared_accounts(schema))}
    if name not in everyone:
        raise AccessDenied(f'there is no account "{name}" in the schema', hint=f"Accounts: {', '.join(everyone)}.")
    return everyone[name]


def default_query_budget(schema: Schema, account: Account) -> Budget:
    """The default of a statement, as far as the policies of all who pay for it allow."""
    query, payers = schema.privacy.query, paying_accounts(schema, account)
    epsilons = [payer.epsilon if payer.largest_epsilon is None else payer.largest_epsilon for payer in payers]
    deltas = [payer.delta if payer.largest_delta is None else payer.largest_delta for payer in payers]
    return Budget(min(query.epsilon, *epsilons), min(query.delta, *deltas))


def _build_account(name: str, budget: Budget, policy: Policy, query: Budget, parent: str | None = None) -> Account:
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


def open_declared_ledger(schema: Schema, make: bool = True) -> Ledger:
    privacy = schema.privacy
    binding = Binding(privacy.unit, privacy.neighbors.value, privacy.group_size)
    failures = schema.limits.failures
    return open_ledger(
        schema.ledger,
        binding,
        dataset_account(schema),
        others=declared_accounts(schema),
        failures=failures,
        dataset_failures=failures * DATASET_FAILURE_FACTOR,
        min_latency=schema.limits.min_latency,
        make=make,
    )
