"""What a sensitivity is: relation, norm, and the bound on a sum over records from which the others follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_choice, check_positive

__all__ = [
    "MOST_PRIVATE_ROWS",
    "RELATIONS",
    "UNITS",
    "Norm",
    "Relation",
    "Sensitivity",
    "check_public_count",
    "check_relation",
    "public_rows",
    "record_sum",
]

Relation = Literal["zero-out", "add-remove", "replace-one"]
Norm = Literal["linf", "l1", "l2"]

UNITS = ("record", "person")
"""Whose data neighbours differ in: those of one row, or all rows of one person."""

RELATIONS: tuple[Relation, ...] = ("zero-out", "add-remove", "replace-one")

MOST_PRIVATE_ROWS = 1 << 26
"""A private number of records is assumed to be at most this, so that sums fit 64 bits without a look at it."""


def check_relation(relation: str) -> Relation:
    """The relation, if it is one of the three."""
    return check_choice(RELATIONS, relation=relation)  # type: ignore[return-value]


def public_rows(relation: str, n_rows: int, n_public: int | None) -> int | None:
    """The number of records as far as it may be used or shown: under add-remove only what the caller made public."""
    return n_public if relation == "add-remove" else n_rows


def check_public_count(relation: str, n_public: int | None) -> None:
    """Refuse add-remove without a public number of records, where a method needs one."""
    if relation == "add-remove" and n_public is None:
        raise ParameterError(
            "n_public", None, "a public number of records under add-remove", "pass one, or use relation='zero-out'"
        )


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """The largest change of a statistic between neighbouring data sets.

    Parameters
    ----------
    value : float
        The bound, > 0, in the units of the statistic.
    norm : {"linf", "l1", "l2"}
        The norm in which the change is measured; "linf" for scores that compete in a selection.
    relation : {"zero-out", "add-remove", "replace-one"}
        What "neighbouring" means.
    monotone : bool, default=False
        Whether all coordinates move in the same direction. A selection among monotone scores
        costs half, because two scores can then drift apart by ``value`` only, not by twice that.
    rise, fall : float, default=None
        Of two neighbours, in one of the two directions, no coordinate rises by more than ``rise`` or falls by more than
        ``fall``; the larger one is ``value``. None: both are ``value``, or none falls if monotone.
    """

    value: float
    norm: Norm
    relation: Relation
    monotone: bool = False
    rise: float | None = None
    fall: float | None = None

    def __post_init__(self) -> None:
        check_positive(value=self.value)
        if self.rise is None and self.fall is None:
            object.__setattr__(self, "rise", self.value)
            object.__setattr__(self, "fall", 0.0 if self.monotone else self.value)
        if self.rise is None or self.fall is None or max(self.rise, self.fall) != self.value:
            raise ParameterError(
                "rise", (self.rise, self.fall), f"a rise and a fall, the larger one {self.value:g}", "give both or none"
            )
        check_choice(("linf", "l1", "l2"), norm=self.norm)
        check_relation(self.relation)

    def require(self, norm: Norm) -> None:
        """Refuse to be used where another norm is needed."""
        if self.norm != norm:
            raise ParameterError(
                "norm", self.norm, f"a sensitivity in {norm}", "use the function made for this release"
            )

    @property
    def spread(self) -> float:
        """How far two coordinates can drift apart: the sum of rise and fall."""
        return (self.rise or 0.0) + (self.fall or 0.0)


def record_sum(bound: float, norm: Norm, relation: str) -> Sensitivity:
    r"""``sum_i f(record_i)`` with ``||f|| <= bound`` for every admissible record.

    *Proof.* Zero-out, add-remove: the sums differ by one term, of norm at most ``bound``. Replace-one:
    they differ by ``f(a) - f(b)``, of norm at most ``2 bound`` by the triangle inequality, attained
    where f is odd.

    *Persons.* Let record i be a person with m rows, and ``f(record_i)`` the sum of integer terms ``t_1, .., t_m``. If
    ``||t_k|| <= bound / m`` for each of them, then ``||f|| <= bound`` by the triangle inequality. The same holds if
    ``||t_k|| <= bound`` and f is their sum divided by m and cut towards zero, coordinate by coordinate: the mean of
    vectors of a ball lies in it, and to cut makes no coordinate larger. So the bound is that of one record, whatever m.
    """
    relation = check_relation(relation)
    factor = 2.0 if relation == "replace-one" else 1.0
    return Sensitivity(factor * check_positive(bound=bound), norm, relation)
