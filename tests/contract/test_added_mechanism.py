"""A mechanism that somebody adds, complete: the class with its proof, its law by enumeration, and the law's teeth."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from taciturn.accounting import epsilon_of
from taciturn.core.errors import ParameterError
from taciturn.core.rng import Stream
from taciturn.core.validation import check_finite
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import PureEvent
from taciturn.mechanisms import ExponentialMechanism, Mechanism


@dataclass(frozen=True, slots=True)
class LeastScore:
    """The index of a small score.

    *Proof.* Negated scores have the same spread; then the exponential mechanism.
    """

    arithmetic: ClassVar[str] = "exact"

    sensitivity: Sensitivity
    epsilon: float

    @property
    def event(self):
        """One bounded-range selection."""
        return ExponentialMechanism(self.sensitivity, self.epsilon).event

    def release(self, scores, stream):
        """The index of the winner."""
        values = check_finite(scores=scores)
        return ExponentialMechanism(self.sensitivity, self.epsilon).release(-values, stream)


# Counts of records: one record more raises one of them and lowers none.
RAREST = LeastScore(Sensitivity(1.0, "linf", "zero-out", monotone=True), epsilon=1.0)


def law(scores, scale):
    """Probabilities of the indices, from the definition."""
    weights = np.exp(-(scores - scores.min()) / scale)
    return weights / weights.sum()


def worst_log_ratio(scale):
    """Three counts of up to 5 records each, and every neighbour with one record less."""
    worst = 0.0
    for counts in np.ndindex(6, 6, 6):
        counts = np.array(counts, dtype=float)
        for j in np.flatnonzero(counts):
            fewer = counts.copy()
            fewer[j] -= 1
            worst = max(worst, np.abs(np.log(law(counts, scale) / law(fewer, scale))).max())
    return worst


def test_it_is_a_mechanism_whose_cost_is_known():
    assert isinstance(RAREST, Mechanism)
    assert epsilon_of(RAREST.event, 1e-6) <= 1.0
    assert RAREST.release(np.array([900, 40, 700]), Stream.of(0)) == 1


def test_its_law_keeps_to_epsilon_and_half_the_noise_does_not():
    epsilon = 1.0
    assert 0.7 * epsilon < worst_log_ratio(1 / epsilon) <= epsilon
    assert worst_log_ratio(0.5 / epsilon) > epsilon


def test_the_sampler_follows_the_law():
    scores, stream = np.array([2, 1, 4]), Stream.of(0)
    drawn = np.bincount([RAREST.release(scores, stream) for _ in range(3000)], minlength=3)

    def distance(scale):
        expected = 3000 * law(scores, scale)
        return ((drawn - expected) ** 2 / expected).sum()

    # Quantile 0.999 of chi-square with two degrees of freedom.
    assert distance(1.0) < 13.8
    assert min(distance(2 / 3), distance(3 / 2)) > 13.8


def test_an_event_of_an_unknown_class_is_refused():
    class HalfPrice(PureEvent):
        """A subclass that claims something new."""

    with pytest.raises(ParameterError, match=r"expected events of taciturn\.events"):
        epsilon_of(HalfPrice(1.0), 1e-6)
