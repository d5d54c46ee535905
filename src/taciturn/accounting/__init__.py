"""What a plan costs, and how much noise a budget buys. Never sees data, never draws noise."""

from __future__ import annotations

from taciturn.accounting.accountant import Bound, best_bound, delta_of, epsilon_of, proves, satisfies
from taciturn.accounting.attacks import AttackRates, attack_rates, mu_of
from taciturn.accounting.budget import Budget
from taciturn.accounting.calibration import calibrate
from taciturn.accounting.filter import PrivacyFilter

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
