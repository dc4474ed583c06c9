"""Whether the ledger's checker comes to what is charged: neither to more, nor to less but for rounding."""

from __future__ import annotations

from fractions import Fraction

from dpsql.ledger.loss_checker.checker import ChargedLoss, LossFigures, covers_loss, exceeds_loss

ROUNDING = Fraction(1, 1 << 70)
CLOSE = 1 - Fraction(1, 10**6)


def agree(charged: ChargedLoss, lost: LossFigures, close: Fraction = CLOSE) -> None:
    """The charge covers what the checker finds, and the checker finds what is charged.

    Epsilon and rho are exact on both sides. A delta may be bounded by an integral on one of them: some percent.
    """
    assert covers_loss(charged, lost) and not exceeds_loss(charged, lost), (charged, lost)
    assert lost.rho >= charged.rho * close - ROUNDING, (charged, lost)
    if charged.epsilon is not None and lost.epsilon is not None:
        assert lost.epsilon >= charged.epsilon * close - ROUNDING, (charged, lost)
