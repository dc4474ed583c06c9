"""Who may ask: analysts, groups of them, their budgets and policies."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

from dpsql.schema.document import At, quoted, suggestion
from dpsql.schema.literals import read_number, read_whole, show_number
from dpsql.schema.model import Analyst, Budget, Group, Policy


def there(at: At, name: str) -> At:
    child = at.child(name)
    assert child is not None  # `check` saw it
    return child


def number(at: At) -> Fraction:
    found = read_number(at.text)
    assert found is not None  # `check` saw it
    return found


def whole(at: At | None) -> int | None:
    return None if at is None else read_whole(at.text)


def read_budget(at: At) -> Budget:
    return Budget(number(there(at, "epsilon")), number(there(at, "delta")))


def read_analysts(root: At) -> tuple[Analyst, ...]:
    groups, at = _names(root, "groups"), root.child("analysts")
    names = _names(root, "analysts")
    if at is None:
        return ()
    return tuple(_analyst(leaf.text, child, names, groups, _composition(root)) for leaf, child in at.entries())


def _analyst(name: str, at: At, names: list[str], groups: list[str], composition: str) -> Analyst:
    if name.lower() == "dataset":  # the ledger's name for the account of all analysts together
        raise at.error("must have another name", "dataset is the account of all analysts together.", line=at.key_line)
    if name in groups:
        raise at.error("must have another name", "A group has it.", line=at.key_line)
    password, variable = at.child("password"), at.child("password_env")
    if password and variable:
        raise variable.error("must not stand beside password", "Keep one of the two.", line=variable.key_line)
    budget = read_budget(there(at, "budget"))
    return Analyst(
        name,
        budget,
        password.text if password else None,
        variable.text if variable else None,
        _parent(at, groups),
        read_policy(at, budget, composition),
        _settings(at.child("settings")),
        _may_act_for(name, at.child("may_act_for"), names),
    )


def _settings(at: At | None) -> tuple[tuple[str, str], ...]:
    return tuple((leaf.text, child.text) for leaf, child in at.entries()) if at else ()


def _may_act_for(name: str, at: At | None, names: list[str]) -> tuple[str, ...]:
    if at is None:
        return ()
    for other in at.items():
        if other.text not in names:
            raise other.error(f"names {quoted(other.text)}, which is not among the analysts",
                              suggestion(other.text, names, "analysts"))  # fmt: skip
        if other.text == name:
            raise other.error("names the analyst itself", "Leave it out.")
    return tuple(other.text for other in at.items())


def read_groups(root: At) -> tuple[Group, ...]:
    names, at = _names(root, "groups"), root.child("groups")
    found = tuple(_group(leaf.text, child, names, _composition(root)) for leaf, child in at.entries()) if at else ()
    parents = {group.name: group.parent for group in found}
    for leaf, child in at.entries() if at else ():
        above, seen = parents[leaf.text], {leaf.text}
        while above is not None:
            if above in seen:
                raise child.error("must not be its own parent", "Name another parent, or none.", line=child.key_line)
            seen.add(above)
            above = parents[above]
    return found


def _group(name: str, at: At, groups: list[str], composition: str) -> Group:
    if name.lower() == "dataset":
        raise at.error("must have another name", "dataset is the account of all analysts together.", line=at.key_line)
    budget = read_budget(there(at, "budget"))
    return Group(name, budget, _parent(at, groups), read_policy(at, budget, composition))


def _names(root: At, key: str) -> list[str]:
    at = root.child(key)
    return [leaf.text for leaf, _ in at.entries()] if at else []


def _composition(root: At) -> str:
    named = there(root, "privacy").child("composition")
    return named.text if named else Policy.composition


def _parent(at: At, groups: list[str]) -> str | None:
    parent = at.child("parent")
    if parent is None:
        return None
    if parent.text not in groups:
        raise parent.error(f"names {quoted(parent.text)}, which is not among the groups",
                           suggestion(parent.text, groups, "groups"))  # fmt: skip
    return parent.text


def read_policy(at: At, budget: Budget, composition: str = Policy.composition) -> Policy:
    named, largest, expires = at.child("composition"), at.child("largest_query"), at.child("expires")
    epsilon, delta = (largest.child("epsilon"), largest.child("delta")) if largest else (None, None)
    return Policy(
        named.text if named else composition,
        _at_most(epsilon, budget.epsilon) if epsilon else None,
        _at_most(delta, budget.delta) if delta else None,
        _date(expires) if expires else None,
    )


def _at_most(at: At, most: Fraction) -> Fraction:
    found = number(at)
    if found > most:
        raise at.wrong(f"at most the budget's {show_number(most)}", "Lower it, or raise the budget.")
    return found


def _date(at: At) -> date:
    try:
        return date.fromisoformat(at.text)
    except ValueError:
        raise at.wrong("a date such as 2027-01-01", "Write for example expires: 2027-01-01.") from None
