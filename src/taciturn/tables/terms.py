"""Terms of a design: powers, logarithms, splines and products of columns, as public functions of one record.

A term is computed from the clipped values of its columns, in their own units. Its range follows from their bounds by
interval arithmetic. Exponents, knots and bounds are stated, so that nothing is learned from a table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product

import numpy as np

from taciturn.core.validation import FloatArray, is_width
from taciturn.tables.columns import Column, KnownNames, Problems, did_you_mean, find_repeated, quoted, refusal

PLACE = "terms.list"
"""The place in a bounds file that messages about terms name."""

# The shortest name that leaves nothing but numbers behind it.
_SPLINE = re.compile(r"spline\((.+?)((?:\s*,\s*[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)+)\s*\)", re.DOTALL)
_LOG = re.compile(r"log\((.+)\)", re.DOTALL)
_POWER = re.compile(r"(.+?)\s*\^\s*(\d{1,3})", re.DOTALL)
_LEAST_POWER, _MOST_POWER = 2, 9
_LEAST_KNOTS, _MOST_KNOTS = 3, 20
_MOST_TERMS, _MOST_FEATURES = 1000, 10_000
# Some of the colons of a term may be those of names.
_MOST_COLONS = 8
_FORMS = 'write terms as "age^2", "age:sex", "spline(age, 30, 50, 70)" or "log(crp)"'

Range = tuple[float, float]
Describe = Callable[[str], Column | None]
"""Facts about a column that enters the model, by its name; None for every other name."""


@dataclass(frozen=True, slots=True)
class Factor:
    """One column of a term, as it is or transformed.

    Parameters
    ----------
    name : str
        Name of the column.
    column : Column
        Facts about it.
    kind : {"column", "power", "log", "spline"}, default="column"
        What is computed.
    numbers : tuple of float, default=()
        The exponent of a power, or the knots of a spline.
    text : str, default=""
        How it is written.
    """

    name: str
    column: Column
    kind: str = "column"
    numbers: tuple[float, ...] = ()
    text: str = ""

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.numbers) - 2 if self.kind == "spline" else len(self.column.ranges)

    @property
    def labels(self) -> list[str]:
        """Names of the features."""
        if self.column.type == "category":
            return self.column.features(self.text)
        return [self.text] if self.width == 1 else [f"{self.text} {place + 1}" for place in range(self.width)]

    @property
    def at_reference(self) -> list[bool]:
        """Whether a feature is about the reference level of the column."""
        reference = self.column.reference_feature(self.text)
        return [label == reference for label in self.labels]

    @property
    def ranges(self) -> list[Range]:
        """The range of every feature, for values of the column within its bounds."""
        if not self.column.is_numeric:
            return [(0.0, 1.0)] * self.width
        low, high = self.column.ends
        ends = self.values(np.array([[low, high]]))
        # All are monotone but even powers of columns on both sides of zero.
        floor = 0.0 if self.kind == "power" and self.numbers[0] % 2.0 == 0.0 and low < 0.0 < high else math.inf
        return [(min(floor, *pair), max(pair)) for pair in ends.tolist()]

    def values(self, column: FloatArray) -> FloatArray:
        """The features of the rows of a column, an array (n_features, n_rows), in its own units; NaN stays NaN."""
        if not self.column.is_numeric:
            return column
        clipped = np.clip(column, *self.column.ends)
        if self.kind == "power":
            power = clipped
            for _ in range(int(self.numbers[0]) - 1):
                # One by one: the last bits of numpy's power depend on the machine and on the place in an array.
                power = power * clipped
            return power
        if self.kind == "log":
            # So do those of numpy's logarithm. The terms of a record must be functions of the record alone.
            return np.array([[math.log(number) for number in clipped[0].tolist()]])
        return clipped if self.kind == "column" else _restricted_splines(clipped[0], self.numbers)

    def check(self, term: str) -> None:
        """Raise if it cannot be computed from every value within the bounds of the column."""
        column = self.column
        if column.type == "date" and column.parts:
            raise refusal(PLACE, term, f"no date in parts, got {quoted(self.name)}", "state since in place of parts")
        if not column.is_numeric and self.kind != "column":
            expected = f"a column of numbers in a {self.kind}, got {quoted(self.name)}"
            raise refusal(PLACE, term, expected, "take the term out, or state another column")
        if not column.is_bounded:
            expected = f"a column whose lower and upper are stated, got {quoted(self.name)}"
            raise refusal(PLACE, term, expected, "state them: bounds of a term follow from those of its columns")
        if self.kind == "power" and not _LEAST_POWER <= self.numbers[0] <= _MOST_POWER:
            expected = f"a whole exponent from {_LEAST_POWER} to {_MOST_POWER}"
            raise refusal(PLACE, term, expected, "change the exponent")
        if self.kind == "log" and column.ends[0] <= 0.0:
            expected = f"a column above zero in a logarithm, got one with lower={column.ends[0]!r}"
            raise refusal(PLACE, term, expected, "state a lower bound above zero, or take the term out")
        if self.kind == "spline":
            self._check_knots(term)

    def _check_knots(self, term: str) -> None:
        (low, high), knots = self.column.ends, self.numbers
        ordered = all(first < second for first, second in pairwise(knots))
        if not _LEAST_KNOTS <= len(knots) <= _MOST_KNOTS or not ordered or not low <= knots[0] <= knots[-1] <= high:
            expected = (
                f"{_LEAST_KNOTS} to {_MOST_KNOTS} knots in increasing order within the bounds of "
                f"{quoted(self.name)}, from {low!r} to {high!r}"
            )
            raise refusal(PLACE, term, expected, "choose knots from knowledge of the column, not from the table")


def _restricted_splines(values: FloatArray, knots: Sequence[float]) -> FloatArray:
    r"""The nonlinear functions of a restricted cubic spline: cubic between the outer knots, linear beyond them.

    With knots :math:`t_1 < \dots < t_k` and :math:`r_j = (t_k - t_j) / (t_k - t_{k-1})`, for j = 1, ..., k - 2

    .. math:: f_j(x) = \frac{(x - t_j)_+^3 - r_j (x - t_{k-1})_+^3 + (r_j - 1) (x - t_k)_+^3}{(t_k - t_1)^2}

    Their second derivatives are nowhere negative, and they are zero below :math:`t_j`, so that they do not decrease.
    With the column itself and a constant they span the natural cubic splines with these knots, as ``rcs`` of Harrell's
    package rms.
    """
    *inner, before_last, last = knots
    scale = (last - knots[0]) ** 2
    # Beyond the last knot the cubes cancel; the line is computed from its slope.
    inside, beyond = np.minimum(values, last), np.maximum(values, last) - last
    rows = []
    for knot in inner:
        first, second = np.maximum(inside - knot, 0.0), np.maximum(inside - before_last, 0.0)
        ratio = (last - knot) / (last - before_last)
        slope = 3.0 * (last - knot) * (before_last - knot) / scale
        rows.append((first * first * first - ratio * (second * second * second)) / scale + slope * beyond)
    return np.array(rows)


@dataclass(frozen=True, slots=True)
class Term:
    """A transformation of a column, or a product of columns of which some may be transformed."""

    factors: tuple[Factor, ...]

    @property
    def columns(self) -> list[str]:
        """Names of the columns that it is computed from."""
        return [factor.name for factor in self.factors]

    @property
    def width(self) -> int:
        """Number of features: that of the combinations of those of its factors."""
        return math.prod(factor.width for factor in self.factors)

    @property
    def text(self) -> str:
        """How it is written, without spaces around the colons."""
        return ":".join(factor.text for factor in self.factors)

    @property
    def labels(self) -> list[str]:
        """Names of the features, those of the last factor changing fastest."""
        return [":".join(labels) for labels in product(*(factor.labels for factor in self.factors))]

    @property
    def ranges(self) -> list[Range]:
        """The range of every feature, which is mapped to [-1, 1]; zeros and ones have the range -1 to 1 and stay."""
        if not any(factor.column.is_numeric for factor in self.factors):
            return [(-1.0, 1.0)] * self.width
        ranges: list[Range] = self.factors[0].ranges
        for factor in self.factors[1:]:
            ranges = [_multiplied(first, second) for first in ranges for second in factor.ranges]
        return ranges

    def fill(self, columns: Mapping[str, FloatArray], out: FloatArray) -> None:
        """Write the features into an array (n_features, n_rows), from columns in their units and their indicators."""
        values = [factor.values(columns[factor.name]) for factor in self.factors]
        for row, chosen in zip(out, product(*values), strict=True):
            row[...] = chosen[0]
            for other in chosen[1:]:
                row *= other

    @property
    def key(self) -> frozenset[tuple[str, str, tuple[float, ...]]]:
        """What it computes, whatever the order of the factors."""
        return frozenset((factor.name, factor.kind, factor.numbers) for factor in self.factors)

    @property
    def at_reference(self) -> list[bool]:
        """Whether a feature is about the reference level of one of its columns."""
        return [any(chosen) for chosen in product(*(factor.at_reference for factor in self.factors))]


def _multiplied(first: Range, second: Range) -> Range:
    corners = [one * other for one in first for other in second]
    return min(corners), max(corners)


# ---- From the text of a term to its factors.


def parse_terms(texts: Sequence[str], describe: Describe, known: KnownNames) -> tuple[Term, ...]:
    """The terms of a list; what is wrong with them is raised together. ``known`` are names to propose."""
    problems, terms, seen = Problems(), list[Term](), set[frozenset[tuple[str, str, tuple[float, ...]]]]()
    for text in texts:
        with problems.gathering():
            term = _parse(text, describe, known)
            if term.key in seen:
                raise refusal(PLACE, text, "every term once", "take the second one out")
            seen.add(term.key)
            terms.append(term)
    n_features = sum(term.width for term in terms)
    if n_features > _MOST_FEATURES:
        with problems.gathering():
            expected = f"terms with at most {_MOST_FEATURES:,} features together"
            raise refusal(
                PLACE, f"{n_features:,} features", expected, "take products of columns with many categories out"
            )
    else:
        for term in terms:
            with problems.gathering():
                _check_ranges(term)
    problems.raise_all()
    return tuple(terms)


def check_list(texts: object) -> tuple[str, ...]:
    """Return a list of terms; raise if it is none, or too long."""
    if not isinstance(texts, tuple) or not all(isinstance(text, str) for text in texts):
        raise refusal(PLACE, texts, "a list of terms in quotes", _FORMS)
    if len(texts) > _MOST_TERMS:
        raise refusal(PLACE, f"{len(texts):,} terms", f"at most {_MOST_TERMS:,} of them", "take some out")
    return texts


def _check_ranges(term: Term) -> None:
    with np.errstate(over="ignore"):
        usable = all(is_width(high - low) for low, high in term.ranges)
    if not usable:
        remedy = "state closer bounds of its columns, or change their unit"
        raise refusal(PLACE, term.text, "a term whose range is 1e-301 to 1e301 wide", remedy)


def _parse(text: str, describe: Describe, known: KnownNames) -> Term:
    pieces = text.split(":")
    found = []
    if len(pieces) <= _MOST_COLONS:
        for parts in _splits(pieces):
            parsed = [_factor(part.strip(), describe) for part in parts]
            if all(factor is not None for factor in parsed):
                found.append(tuple(factor for factor in parsed if factor is not None))
    if len(found) > 1:
        remedy = "rename a column with a colon in its name"
        raise refusal(PLACE, text, "a term that can be read in one way only", remedy)
    if not found:
        missing = next((name for name in map(_name_in, pieces) if describe(name) is None), text)
        meant = did_you_mean(known.closest(missing))
        expected = f"columns that enter the model, got {quoted(missing)}"
        raise refusal(PLACE, text, expected, f"{meant}{_FORMS}")
    (factors,) = found
    for factor in factors:
        factor.check(text)
    if len(factors) == 1 and factors[0].kind == "column":
        raise refusal(PLACE, text, "more than a column by itself", "take it out: columns enter the model by themselves")
    if find_repeated([factor.name for factor in factors]) is not None:
        raise refusal(PLACE, text, "different columns in a product", "write a square as age^2")
    return Term(factors)


def _splits(pieces: list[str]) -> Iterator[list[str]]:
    """All ways to divide the text at some of its colons."""
    places = range(1, len(pieces))
    for n_cuts in range(len(pieces)):
        for cuts in combinations(places, n_cuts):
            ends = [0, *cuts, len(pieces)]
            yield [":".join(pieces[first:last]) for first, last in pairwise(ends)]


def _factor(text: str, describe: Describe) -> Factor | None:
    """The factor that a text states; None where it names no known column."""
    if (column := describe(text)) is not None:
        return Factor(text, column, text=text)
    for kind, pattern in (("spline", _SPLINE), ("log", _LOG), ("power", _POWER)):
        found = pattern.fullmatch(text)
        if found is None or (column := describe(found[1].strip())) is None:
            continue
        stated = [] if kind == "log" else found[2].strip(" \t,").split(",")
        return Factor(found[1].strip(), column, kind, tuple(map(float, stated)), text)
    return None


def _name_in(text: str) -> str:
    """The name of a column in a factor."""
    for pattern in (_SPLINE, _LOG, _POWER):
        if found := pattern.fullmatch(text.strip()):
            return found[1].strip()
    return text.strip()
