"""Scalers in scikit-learn's shape, whose constants are public or private, never simply read off the data."""

from taciturn.scalers.bounded import BoundedScaler
from taciturn.scalers.private import PrivateScaler

__all__ = ["BoundedScaler", "PrivateScaler"]
