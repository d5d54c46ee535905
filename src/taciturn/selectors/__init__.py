"""Feature selectors in scikit-learn's shape."""

from taciturn.selectors.correlation import CorrelationSelector
from taciturn.selectors.kendall import KendallSelector

__all__ = ["CorrelationSelector", "KendallSelector"]
