"""What plans are made of: the public facts of a problem, and releases by name at one common noise scale."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from taciturn.losses import Loss
from taciturn.privacy.budget import Budget
from taciturn.privacy.calibration import calibrate
from taciturn.privacy.claim import Release, event_of_releases
from taciturn.privacy.events import ComposedEvent, Event, ExponentialEvent, GaussianEvent, NotPrivateEvent


@dataclass(frozen=True, slots=True)
class Problem:
    """The public facts of a linear model that all methods share, for scaled features and a mapped target.

    ``n_rows`` is the public number of records, None if there is none; ``n_features`` leaves out the column of the
    intercept; ``n_outputs`` are the rows of the coefficient matrix: 1, or the number of classes.
    """

    loss: Loss
    relation: str
    n_rows: int | None
    n_features: int
    n_outputs: int = 1
    intercept: bool = False

    @property
    def n_columns(self) -> int:
        """Columns of the coefficient matrix, that of the intercept included."""
        return self.n_features + self.intercept

    @property
    def n_records(self) -> int:
        """The public number of records, for methods that need one."""
        if self.n_rows is None:
            raise TypeError("this method needs a public number of records")
        return self.n_rows


@dataclass(frozen=True, slots=True)
class _Planned:
    """A release whose noise is not known yet."""

    what: str
    event_at: Callable[[float], Event]
    count: int
    noise: str
    scale_at: Callable[[float], float] | None


@dataclass(slots=True)
class Schedule:
    """Releases by name, in the order of the certificate. A run takes the noise of its mechanisms from here.

    ``add`` lists them and ``calibrate`` fixes their noise: the smallest common ``scale`` that stays within the
    budget for all of them together, 0 without privacy (an infinite epsilon). ``ordered``: they happen in the order
    in which they are listed; if not, the cost holds for every order. ``arithmetic`` is "float64" if a release
    cannot be put on a lattice.
    """

    budget: Budget
    ordered: bool = True
    arithmetic: str = "exact"
    scale: float = field(default=0.0, init=False)
    _planned: dict[str, _Planned] = field(default_factory=dict, init=False, repr=False, compare=False)
    _released: dict[str, Release] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        if not self.private:
            self.budget = Budget(math.inf, 0.0)

    @classmethod
    def of(cls, budget: Budget, arithmetic: str = "exact", **releases: Release) -> Schedule:
        """Releases, in this order, whose noise is known already."""
        schedule = cls(budget, arithmetic=arithmetic)
        schedule._released.update(releases)
        return schedule

    @property
    def private(self) -> bool:
        """Whether there is noise."""
        return not math.isinf(self.budget.epsilon)

    def add(
        self,
        name: str,
        what: str,
        event_at: Callable[[float], Event],
        count: int = 1,
        *,
        noise: str = "Gumbel",
        scale_at: Callable[[float], float] | None = None,
    ) -> None:
        """List ``count`` releases of one kind.

        ``event_at`` is the cost of one at a common scale b, such as ``lambda b: GaussianEvent(3.0 * b)``. It falls as b
        grows, or does not depend on b. ``scale_at`` is the scale of the ``noise`` in units of the sensitivity, likewise
        at b. None is for Gaussian noise, and for selections among scores that move in both directions.
        """
        if name in self._planned or self._released:
            raise TypeError(f"{name}: every release has a name of its own, and is listed before the noise is fixed")
        self._planned[name] = _Planned(what, event_at, count, noise, scale_at)

    def calibrate(self) -> Schedule:
        """Fix the noise of all releases, of which there is one at least."""
        planned, self._planned = self._planned, {}
        if not self.private:
            for name, each in planned.items():
                self._released[name] = Release(each.what, "none", 0.0, NotPrivateEvent(), each.count)
            return self
        self.scale = calibrate(
            self.budget,
            lambda b: ComposedEvent(tuple(each.event_at(b) * each.count for each in planned.values())),
            ordered=self.ordered,
        )
        for name, each in planned.items():
            event = each.event_at(self.scale)
            noise, scale = _usual_noise(event) if each.scale_at is None else (each.noise, each.scale_at(self.scale))
            self._released[name] = Release(each.what, noise, scale, event, each.count)
        return self

    def __contains__(self, name: str) -> bool:
        return name in self._released

    def __getitem__(self, name: str) -> Release:
        return self._released[name]

    def selection_range(self, name: str) -> float:
        """The range of a selection."""
        event = self[name].event
        if not isinstance(event, ExponentialEvent):
            raise TypeError(f"{name}: expected a selection")
        return event.epsilon

    def multiplier(self, name: str) -> float:
        """The noise multiplier of a Gaussian release."""
        event = self[name].event
        if not isinstance(event, GaussianEvent):
            raise TypeError(f"{name}: expected a Gaussian release")
        return event.noise_multiplier

    @property
    def releases(self) -> tuple[Release, ...]:
        """For the certificate."""
        return tuple(self._released.values())


def _usual_noise(event: Event) -> tuple[str, float]:
    if isinstance(event, GaussianEvent):
        return "Gaussian", event.noise_multiplier
    if isinstance(event, ExponentialEvent):
        return "Gumbel", 2.0 / event.epsilon
    raise TypeError(f"{type(event).__name__}: say what its noise scale is")


class ScheduledPlan:
    """Base of the plans whose releases are fixed before the first one is made."""

    __slots__ = ()

    schedule: Schedule

    @property
    def budget(self) -> Budget:
        """What everything together may cost."""
        return self.schedule.budget

    @property
    def ordered(self) -> bool:
        """Whether releases are made in the order in which they are listed."""
        return self.schedule.ordered

    @property
    def arithmetic(self) -> str:
        """Whether the proof covers what the computer does: "exact" or "float64"."""
        return self.schedule.arithmetic

    @property
    def releases(self) -> tuple[Release, ...]:
        """For the certificate."""
        return self.schedule.releases

    @property
    def cost(self) -> Event:
        """What everything that is released costs together."""
        return event_of_releases(self.releases)
