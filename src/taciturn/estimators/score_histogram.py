"""The metric "all": one histogram of predictions and truth, from which every measure is made."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.certificate import Certificate
from taciturn.core.arrays import AnyArray, FloatArray, IntArray
from taciturn.core.errors import ParameterError
from taciturn.data.prediction_cells import ClassCells, ErrorCells, MarginCells, margin_edges
from taciturn.data.reading import read_table
from taciturn.data.target import label_codes, numeric_target
from taciturn.estimators.model_score import ModelScore
from taciturn.estimators.prediction import LinearPredictor
from taciturn.fitting.score_cells import CellCounts, LinearOutputs
from taciturn.planning.score import count_bins
from taciturn.sources import Source

__all__ = ["ClassHistogram", "HistogramMetric", "NumberHistogram"]

_MOST_ODDS = 10**15


class HistogramMetric:
    """All measures of a fitted model.

    Parameters
    ----------
    estimator : object
        The model. The features of one of ours are read, and its outputs added up record by record; of any other model
        its own outputs are.
    """

    name = "all"
    finest = 1
    counts = True
    numeric = False
    what: str
    known: dict[str, Any]
    cells: MarginCells | ClassCells | ErrorCells

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.linear = LinearOutputs.of_model(estimator) if _is_linear(estimator) else None
        # Whether the cell of a record depends on that record alone, to the last bit and in any place.
        self.by_record = self.linear is not None
        self.divide(1, math.inf)

    def divide(self, n_records: int, deviation: float) -> bool:
        """Fix the cells, of which there are more the more records there are and the less noise."""
        raise NotImplementedError

    def predict(self, X: Any) -> FloatArray:
        """One row of outputs for each record, by the estimator itself."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes; none for numbers."""
        return ()

    @property
    def n_values(self) -> int:
        """How many numbers are released."""
        return self.cells.n_cells

    @property
    def facts(self) -> dict[str, Any]:
        """Public facts for the certificate."""
        return self.known | {"cells": self.n_values}

    @property
    def n_outputs(self) -> int | None:
        """How many numbers :meth:`outputs` makes of a record; None for its features."""
        if self.linear is not None:
            return None
        return len(self.labels) if len(self.labels) > 2 else 1

    def outputs(self, X: Any) -> Any:
        """What the task reads of each record: the features of a linear model, or one row of a model's outputs."""
        return self.predict(X) if self.linear is None else read_table(self.estimator, X, reset=False)

    def sums(self, source: Source, term_bound: int) -> IntArray:
        """What is released with noise."""
        return source.total(CellCounts(self.cells, term_bound, self.linear))

    def result(self, sums: FloatArray, n_rows: int, deviation: float, certificate: Certificate) -> ModelScore:
        """All measures."""
        return ModelScore(self.cells, tuple(sums.tolist()), deviation, self.labels, certificate)


class ClassHistogram(HistogramMetric):
    """Of a classifier: the bin of predicted log-odds and the class."""

    what = "numbers of records by prediction and class"

    def __init__(self, estimator: Any, classes: AnyArray) -> None:
        if not hasattr(estimator, "predict_proba"):
            raise ParameterError(
                "estimator",
                type(estimator).__name__,
                "a classifier with predict_proba where metric='all'",
                "use metric='accuracy'",
            )
        self.classes = classes
        self.known = {"classes": classes}
        super().__init__(estimator)

    def divide(self, n_records: int, deviation: float) -> bool:
        """Fix the bins of log-odds."""
        # Noise on a probability of next to nothing would be multiplied by its logarithm.
        most = max(n_records, 1) if deviation > 0.0 else _MOST_ODDS
        edges = margin_edges(count_bins(n_records, deviation).probabilities, most)
        self.cells = MarginCells(edges) if self.classes.size == 2 else ClassCells(edges, int(self.classes.size))
        return True

    @property
    def labels(self) -> tuple[Any, ...]:
        """The classes."""
        return tuple(self.classes.tolist())

    def predict(self, X: Any) -> FloatArray:
        """Log-odds of the second class, or for more classes the logarithms of all probabilities."""
        probabilities = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        logarithms: FloatArray = np.log(probabilities.reshape(-1, self.classes.size))
        return logarithms[:, 1:] - logarithms[:, :1] if self.classes.size == 2 else logarithms

    def mapped(self, y: AnyArray) -> IntArray:
        """Class codes, -1 for labels that are none of the classes."""
        return label_codes(y, self.classes)


class NumberHistogram(HistogramMetric):
    """Of a regressor: the bin of the target and that of the absolute error."""

    what = "numbers of records by target and error"
    numeric = True

    def __init__(self, estimator: Any, y_bounds: tuple[float, float]) -> None:
        self.y_bounds = y_bounds
        self.known = {"y_bounds": y_bounds}
        super().__init__(estimator)

    def divide(self, n_records: int, deviation: float) -> bool:
        """Fix the bins of targets and errors."""
        bins = count_bins(n_records, deviation)
        self.cells = ErrorCells.of_bins(self.y_bounds, bins.numbers, bins.errors)
        return True

    def predict(self, X: Any) -> FloatArray:
        """The predicted numbers."""
        numbers: FloatArray = np.asarray(self.estimator.predict(X), dtype=np.float64).reshape(-1, 1)
        return numbers

    def mapped(self, y: AnyArray) -> FloatArray:
        """Numbers on the lattice, clipped to the bounds."""
        return numeric_target(y, self.y_bounds)


def _is_linear(estimator: Any) -> bool:
    """Whether predictions follow from coefficients, as those of our models do; a subclass may have its own."""
    if not isinstance(estimator, LinearPredictor):
        return False
    own = (
        getattr(type(estimator), name, None) for name in ("_margins", "decision_function", "predict_proba", "predict")
    )
    return all(method is None or method.__module__.startswith("taciturn.estimators.") for method in own)
