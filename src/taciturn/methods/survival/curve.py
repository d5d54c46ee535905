r"""Survival curves from released numbers of records by interval of exit: post-processing, at no cost.

Let :math:`d_j` be the events in interval j, :math:`c_j` the records that are censored within it, and :math:`e_j` those
that are censored at its end. At risk at its beginning are :math:`Y_j = \sum_{k \ge j} (d_k + c_k + e_k)` records. Those
who are censored within an interval count for half of it, as in a life table:

.. math:: \tilde S(t_j) = \prod_{k \le j} (1 - d_k / m_k), \qquad m_k = Y_k - c_k / 2 .

Where nobody is censored within an interval this is the estimate of Kaplan and Meier at the cuts. Elsewhere it differs
from what it estimates by a second-order term in the widths of intervals.

*The band.* With counts N, noise of deviation s on each and derivatives :math:`\partial_i \log \tilde S`, the variance
of :math:`\log \tilde S` is about :math:`\sum_i (\partial_i \log \tilde S)^2 (N_i + s^2)`. A count is a part of several
:math:`Y_k` and of one :math:`d_k`, so that derivatives by counts have the covariance of all of them in it. Without
noise and without censoring within intervals this is Greenwood's formula.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np

from taciturn.charts import card, format_number, inline_drawing, standalone_drawing, survival_chart, table
from taciturn.core.errors import ParameterError
from taciturn.core.validation import FloatArray, IndexArray, IntArray
from taciturn.data.survival import EXITS, exit_cells
from taciturn.engines.interface import Block
from taciturn.privacy.certificate import Certificate

PUBLIC_CUTS = "the cuts were chosen without looking at these data"
"""An assumption wherever cuts are parameters."""

# Where the number at risk is not so many deviations of its noise, the curve ends.
_CLEAR = 6.0
_MOST_ROWS = 12


def _no_columns() -> IndexArray:
    return np.zeros(0, dtype=np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class ExitCounts:
    """Task: the numbers of records by interval and way of exit, times ``unit``; each record is in one cell.

    A record with a weight counts for that part of ``unit``, rounded down.
    """

    cuts: tuple[float, ...]
    unit: int = 1
    columns: IndexArray = field(default_factory=_no_columns)

    def __call__(self, block: Block) -> IntArray:
        """One number per cell."""
        cells, n_cells = exit_cells(np.asarray(block.target, dtype=np.float64), self.cuts), EXITS * len(self.cuts)
        if block.weight is not None:
            return block.cell_shares(cells, n_cells, self.unit)
        return self.unit * np.bincount(cells, minlength=n_cells).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """The share of a population that has no event until each of some times, with a pointwise confidence band.

    Everything is computed from ``counts``, which were released once, and from public facts. Where noise hides how many
    records are at risk the curve is NaN, and the band reaches from zero to its last upper end.

    **Privacy.** Post-processing of what was released: it costs nothing.

    Parameters
    ----------
    times : ndarray of shape (n_times,)
        The public cuts.
    counts : ndarray of shape (n_times, 3)
        The released numbers of records that leave observation in the interval that ends at each time: with an event,
        censored within the interval, and censored at its end.
    std : float
        Standard deviation of the noise on each: a public fact.
    confidence_level : float
        Probability with which the band covers the truth at each single time.
    certificate_ : Certificate
        The privacy statement of the release.
    """

    times: FloatArray
    counts: FloatArray
    std: float
    confidence_level: float
    certificate_: Certificate

    @cached_property
    def _estimates(self) -> FloatArray:
        """Estimate, lower and upper end, one row each."""
        from sklearn.isotonic import isotonic_regression

        log_survival, deviations, n_known = estimate_log_survival(self.counts, self.std)
        reach = NormalDist().inv_cdf(0.5 + 0.5 * self.confidence_level) * deviations
        found = np.full((3, self.times.size), np.nan)
        if n_known:
            rows = np.exp(np.stack((log_survival, log_survival - reach, log_survival + reach)))
            for row, values in zip(found, rows, strict=True):
                # Survival does not rise. Averages of neighbours are nearer to whatever falls.
                row[:n_known] = isotonic_regression(values, y_min=0.0, y_max=1.0, increasing=False)
        found[1, n_known:] = 0.0
        found[2, n_known:] = found[2, n_known - 1] if n_known else 1.0
        return found

    @property
    def survival(self) -> FloatArray:
        """The share without an event until each time."""
        return self._row(0)

    @property
    def lower(self) -> FloatArray:
        """The lower end of the band."""
        return self._row(1)

    @property
    def upper(self) -> FloatArray:
        """The upper end of the band."""
        return self._row(2)

    def _row(self, place: int) -> FloatArray:
        row: FloatArray = self._estimates[place]
        return row

    def to_frame(self) -> Any:
        """Time, survival and band as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise ParameterError("to_frame", "pandas", "pandas, which is not installed", "install pandas") from None
        names = ("survival", "lower", "upper")
        return pd.DataFrame({"time": self.times} | dict(zip(names, self._estimates, strict=True)))

    def to_svg(self) -> str:
        """The curve with its band as an SVG image."""
        return str(standalone_drawing(self._drawing))

    @property
    def _drawing(self) -> Any:
        survival, lower, upper = self._estimates.tolist()
        return survival_chart(self.times.tolist(), survival, lower, upper, "Survival")

    def __str__(self) -> str:
        head = f"{'time':>12}{'survival':>10}{'lower':>10}{'upper':>10}"
        rows = (
            f"{time:>12.6g}{value:>10.4f}{low:>10.4f}{high:>10.4f}"
            for time, (value, low, high) in zip(self.times, self._estimates.T, strict=True)
        )
        return "\n".join((head, *rows, f"pointwise band at {100 * self.confidence_level:g}%; {self._noise}"))

    def _repr_html_(self) -> str:
        """For notebooks."""
        step = math.ceil(self.times.size / _MOST_ROWS)
        rows = [[format_number(float(value)) for value in each] for each in self._rows[step - 1 :: step]]
        words = f"Survival with a pointwise band at {100 * self.confidence_level:g}%; {self._noise}"
        picture = inline_drawing(self._drawing, "The share without an event by time, with its band.")
        return str(card(picture, table(("time", "survival", "lower", "upper"), rows, words)))

    @property
    def _rows(self) -> Sequence[FloatArray]:
        return list(np.column_stack((self.times, self._estimates.T)))

    @property
    def _noise(self) -> str:
        if self.std == 0.0:
            return "without noise, and not private"
        return f"epsilon {self.certificate_.epsilon:g}, delta {self.certificate_.delta:g}, {self.certificate_.relation}"


def estimate_log_survival(counts: FloatArray, deviation: float) -> tuple[FloatArray, FloatArray, int]:
    """Logarithms of survival with their standard errors, and at how many of the times they are known."""
    n_times = len(counts)
    at_risk = np.cumsum(counts.sum(axis=1)[::-1])[::-1]
    exposed = at_risk - 0.5 * counts[:, 1]
    noise = deviation * np.sqrt(EXITS * np.arange(n_times, 0, -1))
    known = (exposed > _CLEAR * noise) & (exposed - counts[:, 0] > 0.0)
    n_known = n_times if known.all() else int(np.argmin(known))
    exposed, events = exposed[:n_known], counts[:n_known, 0]
    surviving = exposed - events
    log_survival = np.cumsum(np.log(surviving) - np.log(exposed))
    # Derivatives of log(m - d) - log(m) by all counts: those of later exits, and of the own interval's three.
    by_exposed = 1.0 / surviving - 1.0 / exposed
    slopes = np.repeat(by_exposed[:, None], EXITS * n_times, axis=1)
    own = EXITS * np.arange(n_known)
    slopes[np.arange(EXITS * n_times)[None, :] < own[:, None]] = 0.0
    rows = np.arange(n_known)
    slopes[rows, own] -= 1.0 / surviving
    slopes[rows, own + 1] *= 0.5
    totals = np.cumsum(slopes, axis=0)
    variances = np.maximum(counts, 0.0).ravel() + deviation**2
    return log_survival, np.sqrt(np.square(totals) @ variances), n_known
