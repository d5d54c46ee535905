"""Feature selectors in scikit-learn's shape."""

from taciturn.selectors.block_vote import BlockVoteSelector
from taciturn.selectors.correlation import CorrelationSelector
from taciturn.selectors.kendall import KendallSelector

__all__ = ["BlockVoteSelector", "CorrelationSelector", "KendallSelector"]
