"""The experiments of DP-IGHT.

Wang and Gu, *Differentially Private Iterative Gradient Hard Thresholding for Sparse Learning*.
"""

from taciturn_research.reproduce.dpight.figure_1 import FIGURE_1, FIGURE_1_LARGE
from taciturn_research.reproduce.dpight.tables import TABLE_1, TABLE_2, TABLE_3

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (TABLE_1, FIGURE_1, FIGURE_1_LARGE, TABLE_2, TABLE_3)
