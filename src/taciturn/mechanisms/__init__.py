"""Mechanisms: what may be shown data, each with its cost as an event and a proof."""

from taciturn.mechanisms.base import LARGEST_SCORE, Mechanism, first_k_of
from taciturn.mechanisms.canonical import CanonicalLipschitz, log_binomial
from taciturn.mechanisms.float_gaussian import FloatGaussian
from taciturn.mechanisms.geometric import TwoSidedGeometric
from taciturn.mechanisms.quantile import PrivateQuantile
from taciturn.mechanisms.rounded_gaussian import DISTANCE_PER_VALUE, RoundedGaussian
from taciturn.mechanisms.selection import ExponentialMechanism, LaplaceNoisyMax, PermuteAndFlip
from taciturn.mechanisms.topk import GumbelTopK, LaplaceTopK, PeelingTopK, TopK

__all__ = [
    "DISTANCE_PER_VALUE",
    "LARGEST_SCORE",
    "CanonicalLipschitz",
    "ExponentialMechanism",
    "FloatGaussian",
    "GumbelTopK",
    "LaplaceNoisyMax",
    "LaplaceTopK",
    "Mechanism",
    "PeelingTopK",
    "PermuteAndFlip",
    "PrivateQuantile",
    "RoundedGaussian",
    "TopK",
    "TwoSidedGeometric",
    "first_k_of",
    "log_binomial",
]
