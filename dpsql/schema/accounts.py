"""Analysts and groups of them: their budgets and policies."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

from dpsql.schema.document import NodeRef, quote_text, suggest_name
from dpsql.schema.literals import read_integer, read_number, show_number
from dpsql.schema.model import Analyst, Budget, Group, Policy


def child_at(at: NodeRef, name: str) -> NodeRef:
    child = at.child(name)
    assert child is not None  # `check` saw it
    return child


def number_at(at: NodeRef) -> Fraction:
    parsed = read_number(at.text)
    assert parsed is not None  # `check` saw it
    return parsed


def integer_at(at: NodeRef | None) -> int | None:
    return None if at is None else read_integer(at.text)


def read_budget(at: NodeRef) -> Budget:
    return Budget(number_at(child_at(at, "epsilon")), number_at(child_at(at, "delta")))


def read_analysts(root: NodeRef) -> tuple[Analyst, ...]:
    groups, at = _entry_names(root, "groups"), root.child("analysts")
    names = _entry_names(root, "analysts")
    if at is None:
        return ()
    return tuple(
        _read_analyst(leaf.text, child, names, groups, _read_composition(root)) for leaf, child in at.entries()
    )


def _read_analyst(name: str, at: NodeRef, names: list[str], groups: list[str], composition: str) -> Analyst:
    if name.lower() == "dataset":  # the ledger's name for the account of all analysts together
        raise at.error("must have another name", "dataset is the account of all analysts together.", line=at.key_line)
    if name in groups:
        raise at.error("must have another name", "A group has it.", line=at.key_line)
    password, variable = at.child("password"), at.child("password_env")
    if password and variable:
        raise variable.error("must not stand beside password", "Keep one of the two.", line=variable.key_line)
    budget = read_budget(child_at(at, "budget"))
    return Analyst(
        name,
        budget,
        password.text if password else None,
        variable.text if variable else None,
        _read_parent(at, groups),
        read_policy(at, budget, composition),
        _read_settings(at.child("settings")),
        _read_may_act_for(name, at.child("may_act_for"), names),
    )


def _read_settings(at: NodeRef | None) -> tuple[tuple[str, str], ...]:
    return tuple((leaf.text, child.text) for leaf, child in at.entries()) if at else ()


def _read_may_act_for(name: str, at: NodeRef | None, names: list[str]) -> tuple[str, ...]:
    if at is None:
        return ()
    for other in at.items():
        if other.text not in names:
            raise other.error(f"names {quote_text(other.text)}, which is not among the analysts",
                              suggest_name(other.text, names, "analysts"))  # fmt: skip
        if other.text == name:
            raise other.error("names the analyst itself", "Leave it out.")
    return tuple(other.text for other in at.items())


def read_groups(root: NodeRef) -> tuple[Group, ...]:
    names, at = _entry_names(root, "groups"), root.child("groups")
    groups = (
        tuple(_read_group(leaf.text, child, names, _read_composition(root)) for leaf, child in at.entries())
        if at
        else ()
    )
    parents = {group.name: group.parent for group in groups}
    for leaf, child in at.entries() if at else ():
        above, seen = parents[leaf.text], {leaf.text}
        while above is not None:
            if above in seen:
                raise child.error("must not be its own parent", "Name another parent, or none.", line=child.key_line)
            seen.add(above)
            above = parents[above]
    return groups


def _read_group(name: str, at: NodeRef, groups: list[str], composition: str) -> Group:
    if name.lower() == "dataset":
        raise at.error("must have another name", "dataset is the account of all analysts together.", line=at.key_line)
    budget = read_budget(child_at(at, "budget"))
    return Group(name, budget, _read_parent(at, groups), read_policy(at, budget, composition))


def _entry_names(root: NodeRef, key: str) -> list[str]:
    at = root.child(key)
    return [leaf.text for leaf, _ in at.entries()] if at else []


def _read_composition(root: NodeRef) -> str:
    named = child_at(root, "privacy").child("composition")
    return named.text if named else Policy.composition


def _read_parent(at: NodeRef, groups: list[str]) -> str | None:
    parent = at.child("parent")
    if parent is None:
        return None
    if parent.text not in groups:
        raise parent.error(f"names {quote_text(parent.text)}, which is not among the groups",
                           suggest_name(parent.text, groups, "groups"))  # fmt: skip
    return parent.text


def read_policy(at: NodeRef, budget: Budget, composition: str = Policy.composition) -> Policy:
    named, largest, expires = at.child("composition"), at.child("largest_query"), at.child("expires")
    epsilon, delta = (largest.child("epsilon"), largest.child("delta")) if largest else (None, None)
    return Policy(
        named.text if named else composition,
        _read_within_budget(epsilon, budget.epsilon) if epsilon else None,
        _read_within_budget(delta, budget.delta) if delta else None,
        _read_date(expires) if expires else None,
    )


def _read_within_budget(at: NodeRef, maximum: Fraction) -> Fraction:
    parsed = number_at(at)
    if parsed > maximum:
        raise at.mismatch_error(f"at most the budget's {show_number(maximum)}", "Lower it, or raise the budget.")
    return parsed


def _read_date(at: NodeRef) -> date:
    try:
        return date.fromisoformat(at.text)
    except ValueError:
        raise at.mismatch_error("a date such as 2027-01-01", "Write for example expires: 2027-01-01.") from None
