"""The experiments of DP-SIS.

Swope, Khanna, Doldo, Roy and Raff, *Feature Selection from Differentially Private Correlations*.
"""

from taciturn_research.reproduce.dpsis.accuracy import MICROARRAYS, SYNTHETIC
from taciturn_research.reproduce.dpsis.instability import FIGURE_1
from taciturn_research.reproduce.dpsis.order_statistics import FIGURE_8
from taciturn_research.reproduce.dpsis.table_1 import TABLE_1

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (FIGURE_1, TABLE_1, MICROARRAYS, SYNTHETIC, FIGURE_8)
