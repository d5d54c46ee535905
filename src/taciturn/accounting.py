"""What a plan costs, and how much noise a budget buys. Never sees data, never draws noise."""

from __future__ import annotations

from taciturn.privacy.budget import Budget
from taciturn.privacy.calibration import (
    AttackRates,
    Bound,
    attack_rates,
    best_bound,
    calibrate,
    delta_of,
    epsilon_of,
    mu_of,
    proves,
    satisfies,
)
from taciturn.privacy.filter import PrivacyFilter

__all__ = [
    "AttackRates",
    "Bound",
    "Budget",
    "PrivacyFilter",
    "attack_rates",
    "best_bound",
    "calibrate",
    "delta_of",
    "epsilon_of",
    "mu_of",
    "proves",
    "satisfies",
]
