"""The experiments of Sparsifier.

Khanna, Lu and Raff, *Sparse Private LASSO Logistic Regression*.
"""

from taciturn_research.reproduce.sparsifier.appendix import APPENDIX_A, APPENDIX_B
from taciturn_research.reproduce.sparsifier.curves import FIGURE_5, FIGURES_1_TO_4
from taciturn_research.reproduce.sparsifier.tables import TABLES

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = (TABLES, FIGURES_1_TO_4, FIGURE_5, APPENDIX_A, APPENDIX_B)
