"""What a statement would cost its caller, with each kind of noise, before anything is spent.

Privacy: it looks at the caller's own payments and balance only, so it tells nothing of what others have asked, nor of
the dataset's figures (SOUNDNESS 9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from dpsql.calibrate import Noise
from dpsql.compiled import Compiled
from dpsql.errors import Error
from dpsql.explain import Explanation, Offer, expected_errors
from dpsql.ledger.base import Account, Balance, Quote
from dpsql.ledger.how_many import how_many
from dpsql.privacy.filters import cost_of
from dpsql.privacy.loss import total


def kinds_of(asked: Compiled, compile_with: Callable[[Noise], Compiled]) -> list[Compiled]:
    """The statement with the noise that it has, then with the other kind, if it may have that."""
    if not asked.steps:
        return []
    kinds = {asked.settings.chosen_noise: asked}
    for noise in set(Noise) - kinds.keys():
        with suppress(Error):  # Gaussian noise needs a delta
            other = compile_with(noise)
            kinds.setdefault(other.settings.chosen_noise, other)
    return list(kinds.values())


def with_prices(
    explained: Explanation,
    kinds: Sequence[Compiled],
    quotes: Sequence[tuple[Quote, ...]],
    account: Account,
    balance: Balance,
) -> Explanation:
    """`kinds` are the statement with each noise that it may have, its own first; `quotes` what each would cost."""
    if not kinds:
        return explained
    offers = tuple(
        _offer(one, quoted, account, balance, one is kinds[0]) for one, quoted in zip(kinds, quotes, strict=True)
    )
    return replace(explained, offers=offers, paid=tuple(quote.paid for quote in quotes[0]))


def _offer(
    compiled: Compiled, quotes: tuple[Quote, ...], account: Account, balance: Balance, chosen: bool
) -> Offer:
    settings, due = compiled.settings, [quote.loss for quote in quotes if not quote.paid]
    return Offer(
        noise=settings.chosen_noise.value,
        chosen=chosen,
        epsilon=settings.epsilon,
        rho=compiled.loss.rho,
        price=total(due),
        expected=expected_errors(compiled),
        covered=_covered(compiled, account, balance),
        paid=not due,
    )


def _covered(compiled: Compiled, account: Account, balance: Balance) -> int:
    """How many questions of this price the account's own budget and policy allow, this one counted in."""
    settings = compiled.settings
    limits = ((settings.epsilon, account.largest_epsilon), (settings.delta, account.largest_delta))
    if any(most is not None and asked > most for asked, most in limits):
        return 0
    cost = cost_of(compiled.loss, settings.epsilon, compiled.conversion)
    return how_many(lambda number: balance.admits(cost.times(number)))
