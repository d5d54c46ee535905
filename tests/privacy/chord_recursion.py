"""The hockey-stick curve of T adaptive bounded-range selections, from above and from below.

For selections of range e0 the worst case obeys, with E = exp(e0) and p_t = (E - e^t) / (E - 1),

    H_0(g) = max(1 - g, 0),   H_{k+1}(g) = sup over t in [0, e0] of
                              p_t H_k(g e^-t) + (1 - p_t) H_k(g e^(e0 - t)),

and delta(epsilon) = H_T(e^epsilon). Every H_k is convex and does not increase. Both versions below
keep H_k at the points g_i = exp(epsilon + i h), h = e0 / m:

* :func:`optimistic` restricts t to multiples of h, where both arguments are grid points: a lower
  bound on H_T.
* :func:`pessimistic` joins the points by chords, which lie above a convex function. While t runs
  through one cell of width h both arguments stay on single chords a - b g, and the supremum over
  v = e^t has a closed form, v = sqrt((b_l - b_u) g E / (a_l - a_u)): an upper bound on H_T.

Points further than ``_REACH`` standard deviations from epsilon are replaced by what is known of them
anyway: 1 - g <= H <= 1 below, and 0 <= H <= the last value above.
"""

from __future__ import annotations

import math

import numpy as np

_REACH = 9.0


def optimistic(epsilon: float, e0: float, steps: int, cells: int = 32) -> float:
    """A lower bound on the delta of any sound accountant of bounded-range selections."""
    return _run(epsilon, e0, steps, cells, chords=False)


def pessimistic(epsilon: float, e0: float, steps: int, cells: int = 32) -> float:
    """An upper bound on the delta of any plan of bounded-range selections."""
    return _run(epsilon, e0, steps, cells, chords=True)


def one_step(epsilon: float, e0: float) -> float:
    """The exact delta of a single selection."""
    if epsilon >= e0:
        return 0.0
    if epsilon <= -e0:
        return -math.expm1(epsilon)
    return (math.exp(e0 / 2.0) - math.exp(epsilon / 2.0)) ** 2 / math.expm1(e0)


def _run(epsilon: float, e0: float, steps: int, cells: int, *, chords: bool) -> float:
    width = e0 / cells
    reach = math.ceil(_REACH * math.sqrt(steps) * cells / 2.0 + 2 * cells)
    # Beyond |log g| = T e0 both versions are exact, so the grid need not go further.
    low = max(-reach, math.floor((-steps * e0 - epsilon) / width) - 1)
    high = min(reach, math.ceil((steps * e0 - epsilon) / width) + 1)
    index = np.arange(low - cells, high + cells + 1)
    gamma = np.exp(epsilon + index * width)
    inside = slice(cells, len(index) - cells)
    exact_below = epsilon + low * width <= -steps * e0

    values = np.maximum(-np.expm1(epsilon + index * width), 0.0)
    below = values[:cells].copy() if exact_below or not chords else np.ones(cells)
    step = _Step(gamma, e0, cells)
    for _ in range(steps):
        values[:cells] = below
        values[-cells:] = values[-cells - 1] if chords else 0.0
        best = step.at_grid_points(values)
        if chords:
            step.between_grid_points(values, best)
        values[inside] = best
    return float(values[cells - low])


class _Step:
    def __init__(self, gamma: np.ndarray, e0: float, cells: int) -> None:
        self.cells = cells
        self.size = len(gamma) - 2 * cells
        self.gamma = gamma
        self.inner = gamma[cells : cells + self.size]
        self.ratio = math.exp(e0)
        shifts = np.arange(cells + 1) * (e0 / cells)
        self.v = np.exp(shifts)
        self.p = np.expm1(e0 - shifts) / np.expm1(e0) * self.v

    def at_grid_points(self, values: np.ndarray) -> np.ndarray:
        best = np.zeros(self.size)
        for c, p in enumerate(self.p):
            lower = values[self.cells - c :][: self.size]
            upper = values[2 * self.cells - c :][: self.size]
            np.maximum(best, p * lower + (1.0 - p) * upper, out=best)
        return best

    def between_grid_points(self, values: np.ndarray, best: np.ndarray) -> None:
        slope = (values[:-1] - values[1:]) / np.diff(self.gamma)
        height = values[:-1] + slope * self.gamma[:-1]
        stretched = self.inner * self.ratio
        for c in range(self.cells):
            low = slice(self.cells - c - 1, self.cells - c - 1 + self.size)
            high = slice(2 * self.cells - c - 1, 2 * self.cells - c - 1 + self.size)
            a_l, b_l, a_u, b_u = height[low], slope[low], height[high], slope[high]
            with np.errstate(divide="ignore", invalid="ignore"):
                v = np.sqrt((b_l - b_u) * stretched / (a_l - a_u))
            # No interior maximum leaves NaN here; any point of the cell will do, the ends are known.
            v = np.fmin(np.fmax(v, self.v[c]), self.v[c + 1])
            p = (self.ratio - v) / (self.ratio - 1.0)
            inverse = self.inner / v
            value = p * (a_l - b_l * inverse) + (1.0 - p) * (a_u - b_u * self.ratio * inverse)
            np.maximum(best, value, out=best)
