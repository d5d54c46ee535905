"""Feature selectors in scikit-learn's shape."""

from taciturn.selectors.correlation import CorrelationSelector

__all__ = ["CorrelationSelector"]
