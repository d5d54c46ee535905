"""Plans: a budget and public facts become mechanisms, noise scales and the releases of a certificate.

A plan is a frozen value. It is made before any data are read, depends on public numbers alone and has no method that
takes data or randomness: :mod:`taciturn.fitting` runs it.
"""

from taciturn.planning.frank_wolfe import ClippedCount, FrankWolfePlan, plan_frank_wolfe
from taciturn.planning.kendall import KendallPlan, plan_kendall
from taciturn.planning.screened import SCREENING_RULES, ScreenedPlan, check_screening, none_threshold, plan_screened
from taciturn.planning.top_k import TOP_K_MECHANISMS, CorrelationPlan, TopKPlan, plan_correlation, plan_top_k

__all__ = [
    "SCREENING_RULES",
    "TOP_K_MECHANISMS",
    "ClippedCount",
    "CorrelationPlan",
    "FrankWolfePlan",
    "KendallPlan",
    "ScreenedPlan",
    "TopKPlan",
    "check_screening",
    "none_threshold",
    "plan_correlation",
    "plan_frank_wolfe",
    "plan_kendall",
    "plan_screened",
    "plan_top_k",
]
