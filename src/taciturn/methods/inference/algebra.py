r"""What is computed from released sums: coordinates, steps, what is estimable, and errors. No data are seen here.

*Whitening.* A Gram matrix G of rows u, released with noise, says how much the data know about each direction. With the
eigenvalues l and eigenvectors of G, coordinates change by :math:`(l_{\max} / l)^{1/2}` along the eigenvectors, so that
rows have about the same second moment everywhere. Eigenvalues within the noise count as large as the noise. The next
Gram matrix is released in the new coordinates, where its noise is small beside what was hidden before.

*Tails.* A column with a long tail has a second moment that few rows make. Stretched to a moment of one, these rows are
cut, and the coefficient is that of the others. Along such directions coordinates change back by a factor, so that more
of the tail keeps its weight and noise is larger.

*Information.* What rows say about labels is their second moment times the uncertainty of these. An early information
matrix shows where the two differ, and coordinates follow the information.

*Estimability.* Coefficients are :math:`\beta = A^\top \theta`, with information :math:`A^{-1} H A^{-\top}`. Directions
of :math:`\beta` whose information is within the noise of H are left out: :math:`\beta` is held in the complement of
their span, whose basis is N. A coefficient has an interval where its share in N is small beside its error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit, ndtri, softmax

from taciturn.core.validation import BoolArray, FloatArray
from taciturn.losses import PoissonLoss

# Nodes for integrals over normal margins, in one dimension and in several.
_HERMITE_NODES, _SOBOL_NODES = 24, 512
# Steps of the solver, the longest one and the largest deviation of margins.
_MOST_STEPS, _LONGEST_STEP, _LARGEST_DEVIATION = 25, 1.0, 6.0
# Ridge of the solver, in units of the largest curvature of a label, and when it ends.
_RIDGE, _LEAST_STEP = 2.5e-4, 1e-6


def noise_norm(deviation: float, width: int) -> float:
    """About the spectral norm of symmetric noise with a deviation on the diagonal."""
    return deviation * math.sqrt(2.0 * width)


@dataclass(frozen=True, slots=True, eq=False)
class Whitening:
    """Coordinates u = A z, and the projection on directions of u that a Gram matrix showed clear of its noise.

    ``expected`` is a cautious guess of the next Gram matrix, if no more rows are cut there.
    """

    matrix: FloatArray
    clear: FloatArray
    expected: FloatArray

    @classmethod
    def start(cls, width: int) -> Whitening:
        """Those of the rows themselves."""
        nothing = np.zeros((width, width))
        return cls(np.eye(width), nothing, nothing)

    def refine(self, gram: FloatArray, deviation: float, most: float, longest: float, doubt: float) -> Whitening:
        """The coordinates after a Gram matrix of these was released.

        A direction is stretched while noise hides it, and once more when it is clear; then by ``most`` at most. A small
        moment there means that long rows weigh less, not that rows are short. The same holds where a moment is less
        than half of what it was and the last stretch tell, the former less ``doubt`` deviations of its noise: rows
        there are then at most ``longest`` times as long as those that are cut.
        """
        values, vectors = np.linalg.eigh(gram)
        floor = noise_norm(deviation, len(gram))
        floored = np.maximum(values, floor)
        factors = np.sqrt(floored[-1] / floored)
        known = np.einsum("ij,ik,kj->j", vectors, self.clear, vectors)
        factors = np.where(known > 0.5, np.minimum(factors, most), factors)
        shares = floored / np.maximum(np.einsum("ij,ik,kj->j", vectors, self.expected, vectors), floored)
        limits = np.where(shares < 0.5, np.maximum(longest * np.sqrt(shares), most), np.inf)
        change = (vectors * np.minimum(factors, limits)) @ vectors.T
        least = (vectors * np.maximum(values - doubt * deviation, 0.0)) @ vectors.T
        return Whitening(change @ self.matrix, (vectors * (values > floor)) @ vectors.T, change @ least @ change)


def rare_directions(values: FloatArray, noise: float, clipped: FloatArray, least: float, most: float) -> FloatArray:
    """Factors for eigenvectors of a Gram matrix along which a few long rows are most of it, as for a rare category.

    ``values`` are its eigenvalues and ``noise`` the deviation of its noise. ``clipped`` are the same sums of squares
    with long rows cut, no less than a share ``least`` of the noise. Their quotient is the mean share that is left of a
    row, and rows come back to ``most`` times the norm at which they are cut.
    """
    floor = noise_norm(noise, len(values))
    shares = np.maximum(clipped, least * floor) / np.maximum(values, floor)
    factors: FloatArray = np.where(values > 0.0, np.minimum(1.0, most * shares), 1.0)
    return factors


def tail_reaches(shares: FloatArray, noise: float, levels: tuple[float, ...], rank: float, steep: float) -> FloatArray:
    """How far the long tail of each direction reaches: a share ``rank`` of the rows is beyond. 0 without a tail.

    ``shares`` are those of the rows between each level and the next one, a column per direction, with noise of this
    deviation. Beyond the first level a tail loses rows at every one, at least ``steep`` times as many as are left. The
    rows of a rare category have about the same length.
    """
    beyond = np.cumsum(shares[::-1], axis=0)[::-1]
    wanted = np.maximum(rank, 3.0 * noise * np.sqrt(np.arange(len(levels), 0, -1.0)))
    reaches = np.zeros(shares.shape[1])
    for j, (first, rest) in enumerate(zip(shares[0], beyond.T, strict=True)):
        told = np.flatnonzero(rest > wanted)
        if not told.size or told[-1] == 0 or first <= steep * rest[1]:
            continue
        last = int(told[-1])
        reaches[j] = levels[last]
        if last + 1 < len(levels):
            # Between levels tails fall like a power.
            left = max(rest[last + 1], 0.1 * wanted[last])
            place = math.log(rest[last] / wanted[last]) / max(math.log(rest[last] / left), 1e-9)
            reaches[j] *= (levels[last + 1] / levels[last]) ** min(place, 1.0)
    return reaches


def shorten(directions: FloatArray, factors: FloatArray) -> FloatArray:
    """The symmetric matrix that multiplies the lengths of unit vectors, given in rows, by factors at least as small."""
    precision = np.eye(directions.shape[1])
    for j in np.argsort(factors, kind="stable"):
        left = float(directions[j] @ np.linalg.solve(precision, directions[j]))
        if factors[j] ** 2 < left:
            precision += (1.0 / factors[j] ** 2 - 1.0 / left) * np.outer(directions[j], directions[j])
    values, vectors = np.linalg.eigh(precision)
    found: FloatArray = (vectors / np.sqrt(values)) @ vectors.T
    return found


def equal_information(
    information: FloatArray, deviation: float, gram: FloatArray, least: float, most: float
) -> FloatArray:
    """A change of coordinates after which rows tell as much about every direction as their second moment says.

    Directions are those along which the information, relative to the Gram matrix, is least and most, and factors of
    lengths are between ``least`` and ``most``. Information within its noise counts as large as that, and rows are no
    shorter there.
    """
    moments, axes = np.linalg.eigh(gram)
    root, inverse = (axes * np.sqrt(moments)) @ axes.T, (axes / np.sqrt(moments)) @ axes.T
    values, vectors = np.linalg.eigh(inverse @ information @ inverse)
    floor = noise_norm(deviation, len(gram)) * np.square(inverse @ vectors).sum(axis=0)
    usual = max(float(np.median(values)), 0.0)
    factors = np.clip(np.sqrt(usual / np.maximum(values, floor)), np.where(values > floor, least, 1.0), most)
    found: FloatArray = root @ (vectors * factors) @ vectors.T @ inverse
    return found


# ---- First steps of labels and of means: solved in a model of rows that are normal.


@cache
def _nodes(n_outputs: int) -> tuple[FloatArray, FloatArray]:
    """Standard normal nodes and their weights, public and the same for every fit."""
    if n_outputs == 1:
        nodes, weights = np.polynomial.hermite_e.hermegauss(_HERMITE_NODES)
        return nodes[:, None], weights / weights.sum()
    from scipy.stats import qmc

    points = qmc.Sobol(n_outputs, rng=np.random.default_rng(0)).random(_SOBOL_NODES)
    return ndtri(points), np.full(_SOBOL_NODES, 1.0 / _SOBOL_NODES)


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """Coefficients theta, one row per output, and the precision around them of each row."""

    centre: FloatArray
    precision: FloatArray


class NormalDesign:
    """Rows u that are normal with a second moment: expected scores and information at coefficients theta.

    ``gram`` is the weighted sum of u u'. ``constant`` says which combination of u is the constant 1, None without an
    intercept: then rows have mean zero, and ``total`` is their number. ``coding`` is as in a
    :class:`~taciturn.methods.inference.whitened.Model`, and theta has one row per row of it. Targets are labels, or
    counts with a ``loss`` under a log link.
    """

    def __init__(
        self,
        gram: FloatArray,
        constant: FloatArray | None,
        total: float,
        coding: FloatArray | None = None,
        loss: PoissonLoss | None = None,
    ) -> None:
        self._loss = loss
        if constant is not None:
            total = max(float(constant @ gram @ constant), 1e-9)
            self._mean: FloatArray = gram @ constant / total
        else:
            self._mean = np.zeros(len(gram))
        values, vectors = np.linalg.eigh(gram / total - np.outer(self._mean, self._mean))
        self._covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
        self._gram, self._total, self._coding = gram, total, coding

    def deviation(self, theta: FloatArray) -> float:
        """The root of the mean variance of margins."""
        return math.sqrt(max(float(np.einsum("ki,ij,kj->", theta, self._covariance, theta)) / len(theta), 0.0))

    def size(self, theta: FloatArray) -> float:
        """The root mean square of margins."""
        return math.sqrt(max(float(np.einsum("ki,ij,kj->", theta, self._gram, theta)) / self._total, 0.0))

    def _at(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Weights of nodes, margins, rows given margins, and the covariance of what is left."""
        nodes, weights = _nodes(len(theta))
        shared = self._covariance @ theta.T
        values, vectors = np.linalg.eigh(theta @ shared)
        values = np.maximum(values, 1e-12)
        margins = nodes * np.sqrt(values) @ vectors.T
        regression = shared @ (vectors / values) @ vectors.T
        rows = self._mean + margins @ regression.T
        return weights, margins + theta @ self._mean, rows, self._covariance - regression @ shared.T

    def _expected(self, margins: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What is expected of the target in each output, and its derivative: coded probabilities, or a mean."""
        if self._loss is not None:
            means = self._loss.information(margins)
            return means, means[:, :, None]
        if self._coding is None:
            probabilities, outputs = np.column_stack((expit(-margins), expit(margins))), np.array([[0.0, 1.0]])
        else:
            probabilities, outputs = softmax(margins @ self._coding, axis=1), self._coding
        curvature = probabilities[:, :, None] * (np.eye(probabilities.shape[1]) - probabilities[:, None, :])
        return probabilities @ outputs.T, np.einsum("ka,gab,lb->gkl", outputs, curvature, outputs)

    def score(self, theta: FloatArray) -> FloatArray:
        """The expected sum of expected targets times rows, one row per output."""
        weights, margins, rows, _ = self._at(theta)
        score: FloatArray = self._total * np.einsum("g,gk,gi->ki", weights, self._expected(margins)[0], rows)
        return score

    def information(self, theta: FloatArray) -> FloatArray:
        """The expected information over all outputs, a square matrix."""
        weights, margins, rows, rest = self._at(theta)
        curvature = weights[:, None, None] * self._expected(margins)[1]
        found = np.einsum("gkl,gi,gj->kilj", curvature, rows, rows)
        found += np.einsum("kl,ij->kilj", curvature.sum(axis=0), rest)
        matrix: FloatArray = self._total * found.reshape(theta.size, theta.size)
        return 0.5 * (matrix + matrix.T)

    def solve(self, theta: FloatArray, gradient: FloatArray, noise: float, prior: Prior) -> FloatArray:
        """Coefficients whose expected score is that at ``theta`` less the gradient, by damped Newton steps.

        They are the most likely ones given the ``prior`` and normal noise of this deviation on the gradient: where it
        hides a direction, they stay where the prior has them.
        """
        goal, found = self.score(theta) - gradient, theta.copy()
        ridge = _RIDGE * np.kron(np.eye(len(theta)), self._gram)
        penalty = noise**2 * np.kron(np.eye(len(theta)), prior.precision)
        for _ in range(_MOST_STEPS):
            missing = (goal - self.score(found)).ravel()
            information = self.information(found) + ridge
            pull = penalty @ (prior.centre - found).ravel()
            step = np.linalg.solve(information @ information + penalty, information @ missing + pull)
            step = step.astype(np.float64).reshape(theta.shape)
            length = self.size(step)
            found = found + step * min(1.0, _LONGEST_STEP / max(length, 1e-12))
            found = found * min(1.0, _LARGEST_DEVIATION / max(self.size(found), 1e-12))
            if length < _LEAST_STEP:
                break
        return found


# ---- What is identified.


@dataclass(frozen=True, slots=True, eq=False)
class Span:
    """Directions of theta that are identified, with their information, and those of coefficients that are not.

    ``basis`` has orthogonal columns in which the information matrix is diagonal with ``information`` on the diagonal.
    ``left_out`` is an orthonormal basis N of coefficients of z.
    """

    basis: FloatArray
    information: FloatArray
    left_out: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, information: FloatArray, threshold: float) -> Span:
        """The span in coordinates ``matrix``, in which every direction has more information than a threshold."""
        size = len(information)
        inverse = np.linalg.inv(matrix)
        # Eigenvectors of the information on coefficients, in which noise along stretched directions is small; those of
        # the matrix itself, mapped back, would leak into coefficients that are well known.
        _, of_coefficients = np.linalg.eigh(inverse @ information @ inverse.T)
        values = np.linalg.eigvalsh(information)
        for n_left in range(int(np.count_nonzero(values <= threshold)), size):
            left_out = of_coefficients[:, :n_left]
            complement = np.linalg.qr(matrix @ left_out, mode="complete")[0][:, n_left:]
            found = cls._diagonal(complement, information, left_out)
            if found.information[0] > threshold:
                return found
        return cls(np.zeros((size, 0)), np.zeros(0), np.eye(size))

    @property
    def n_left_out(self) -> int:
        """How many directions are not identified."""
        return int(self.left_out.shape[1])

    @property
    def inverse(self) -> FloatArray:
        """The inverse of the information within the span."""
        return (self.basis / self.information) @ self.basis.T

    def project(self, theta: FloatArray) -> FloatArray:
        """The part of coefficients in the span."""
        return self.basis @ (self.basis.T @ theta)

    def separate(self, matrix: FloatArray, n_records: int, stretch: float) -> FloatArray:
        """Coordinates in which the span comes first, with a second moment of one, and what is left out last."""
        kept = (self.basis * np.sqrt(n_records / self.information)).T @ matrix
        return np.vstack((kept, stretch * self.left_out.T))

    def recover(self, matrix: FloatArray, information: FloatArray, threshold: float) -> Span:
        """The span after an information matrix was released in coordinates that :meth:`separate` gave.

        Directions that were left out come back where they have more information, given the others, than a threshold.
        """
        size, n_left = len(matrix), self.n_left_out
        first, last = slice(0, size - n_left), slice(size - n_left, size)
        kept, cross, left = information[first, first], information[first, last], information[last, last]
        if np.linalg.eigvalsh(kept)[0] <= threshold:
            return Span(np.zeros((size, 0)), np.zeros(0), np.eye(size))
        values, vectors = np.linalg.eigh(left - cross.T @ np.linalg.solve(kept, cross))
        found = values > threshold
        basis = np.zeros((size, size - n_left + int(found.sum())))
        basis[first, first] = np.eye(size - n_left)
        basis[last, size - n_left :] = vectors[:, found]
        return Span._diagonal(basis, information, self.left_out @ vectors[:, ~found])

    def renew(self, information: FloatArray, threshold: float) -> Span:
        """The same span with another information matrix; nothing where that is not clear of a threshold."""
        found = Span._diagonal(self.basis, information, self.left_out)
        if self.information.size and found.information[0] > threshold:
            return found
        size = len(information)
        return Span(np.zeros((size, 0)), np.zeros(0), np.eye(size))

    @classmethod
    def _diagonal(cls, basis: FloatArray, information: FloatArray, left_out: FloatArray) -> Span:
        values, vectors = np.linalg.eigh(basis.T @ information @ basis)
        return cls(basis @ vectors, values, left_out)

    def sharpen(
        self, matrix: FloatArray, information: FloatArray, sums: FloatArray, noise: Noise
    ) -> tuple[Span, FloatArray]:
        """The span after sums of rows times what is left out of them were released, one row per direction left out.

        Directions move until these sums vanish along the span. Also returned is how far each coefficient's share in
        them may be off: by the noise of the sums and, as in a step, by that of the information times the move.
        """
        size, n_left = len(matrix), self.n_left_out
        moves = -(self.inverse @ sums.T)
        half = 0.5 * noise.information**2
        common = n_left * noise.gradient**2 + half * float(np.square(moves).sum())
        spread = common * np.eye(size) + half * moves @ moves.T
        columns = self.inverse @ matrix
        uncertainty = np.sqrt(np.einsum("ij,ik,kj->j", columns, spread, columns))
        left_out = np.linalg.qr(self.left_out + matrix.T @ moves)[0]
        complement = np.linalg.qr(matrix @ left_out, mode="complete")[0][:, n_left:]
        return Span._diagonal(complement, information, left_out), uncertainty


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Deviations of the noise in the information matrix, the gradient and the matrix of scores."""

    information: float
    gradient: float
    scores: float


@dataclass(frozen=True, slots=True, eq=False)
class Errors:
    """Variances of coefficients from the sample and from noise, degrees of freedom, and what may be left out of them.

    ``allowance`` is a bound on what the directions that are not identified add to a coefficient. ``clarity`` is the
    information along a coefficient over what the noise of the matrix alone would have.
    """

    sampling: FloatArray
    privacy: FloatArray
    degrees: FloatArray
    allowance: FloatArray
    clarity: FloatArray

    def estimable(self, most: float, least_degrees: float, least_clarity: float) -> BoolArray:
        """Where the allowance is at most a multiple of the standard error, and degrees and clarity are enough."""
        deviation = np.sqrt(self.sampling + self.privacy)
        enough = (self.degrees >= least_degrees) & (self.clarity >= least_clarity)
        return (self.allowance <= most * deviation) & enough & (deviation > 0.0)


def errors_of(
    matrix: FloatArray, shown: FloatArray, span: Span, step: FloatArray, scores: FloatArray, noise: Noise
) -> Errors:
    """Errors of the coefficients shown' beta, beta = matrix' theta, after a step; the allowance is for |beta| = 1."""
    size = len(matrix)
    values, vectors = np.linalg.eigh(scores)
    middle = (vectors * np.maximum(values, 0.0)) @ vectors.T
    spread = 0.5 * noise.information**2 * (float(step @ step) * np.eye(size) + np.outer(step, step))
    spread += noise.gradient**2 * np.eye(size)
    # A margin for few records: the step depends on the noise of the matrix that it is solved in.
    kept = max(span.information.size, 1)
    inflation = 1.0 + noise.information**2 * float((1.0 / span.information).sum()) ** 2 / (2.0 * kept)
    columns = span.inverse @ matrix @ shown
    sampling = np.einsum("ij,ik,kj->j", columns, middle, columns) * inflation
    privacy = np.einsum("ij,ik,kj->j", columns, spread, columns) * inflation
    relative = noise.scores * np.square(columns).sum(axis=0) * inflation / np.maximum(sampling + privacy, 1e-300)
    degrees = 2.0 / np.maximum(np.square(relative), 1e-300)
    allowance = np.sqrt(np.square(span.left_out.T @ shown).sum(axis=0))
    along = np.einsum("ij,ij->j", matrix @ shown, columns) / np.maximum(np.square(columns).sum(axis=0), 1e-300)
    clarity = along / max(noise_norm(noise.information, size) + noise.information, 1e-300)
    return Errors(sampling, privacy, degrees, allowance, clarity)
