"""Published methods exactly as their papers print them, mistakes included, for reproduction and comparison.

Nothing here protects anybody: each certificate says ``status="as published"``, what the authors claim, what can be
proved for the same run (``proved_epsilon``) and what is wrong (``errata``). The sound form of every method bears the
everyday name in ``taciturn`` itself.
"""

from taciturn.published.dpight import DPIGHT
from taciturn.published.dpsis import DPSIS
from taciturn.published.frank_wolfe import MultinomialPrivateLasso, PrivateLasso, Sparsifier
from taciturn.published.private_admm import PrivateADMM
from taciturn.published.screening import ADPScreen, RNMScreen
from taciturn.published.two_stage import TwoStage, TwoStageSelector

__all__ = [
    "DPIGHT",
    "DPSIS",
    "ADPScreen",
    "MultinomialPrivateLasso",
    "PrivateADMM",
    "PrivateLasso",
    "RNMScreen",
    "Sparsifier",
    "TwoStage",
    "TwoStageSelector",
]
