"""The experiments of RNM-Screen and ADP-Screen.

*Differentially Private Iterative Screening Rules for Linear Regression* (RNM-Screen); Khanna, Lu and Raff, *The
Challenge of Differentially Private Screening Rules* (ADP-Screen).
"""

from taciturn_research.reproduce.screening.adp import ADP_SYNTHETIC
from taciturn_research.reproduce.screening.real import RNM_REAL
from taciturn_research.reproduce.screening.synthetic import RNM_SYNTHETIC, THEOREM_4

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (RNM_SYNTHETIC, RNM_REAL, THEOREM_4, ADP_SYNTHETIC)
