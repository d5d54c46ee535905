"""The experiments of DP-SIS.

Swope, Khanna, Doldo, Roy and Raff, *Feature Selection from Differentially Private Correlations*.
"""

from taciturn_research.reproduce.dpsis.accuracy import MICROARRAYS, SYNTHETIC
from taciturn_research.reproduce.dpsis.figures import FIGURE_1, FIGURE_8, TABLE_1

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (FIGURE_1, TABLE_1, MICROARRAYS, SYNTHETIC, FIGURE_8)
