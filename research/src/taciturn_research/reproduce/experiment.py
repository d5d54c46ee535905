"""What an experiment of a paper is, the numbers of its trials, and verdicts on what the paper prints."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from statistics import fmean, stdev
from typing import Any, Concatenate, Literal, ParamSpec

# ---------------------------------------------------------------------
# The numbers of all finished trials, their means and standard deviations, and a test of differences.


LEVEL = 0.05
"""At which a test calls a difference significant."""

Row = dict[str, Any]
"""One number of one trial: its ``value``, and under the other keys what it is the value of."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean and standard deviation of one number over the trials; None where there is one trial or no spread."""

    of: Row
    mean: float
    sd: float | None
    trials: int


class Numbers:
    """Values by what they are the values of, each in the order of the trials.

    Parameters
    ----------
    rows : iterable of dict
        Those of all trials, trial after trial.

    Examples
    --------
    >>> from taciturn_research.reproduce.experiment import Numbers
    >>> numbers = Numbers([{"method": "a", "value": 1.0}, {"method": "b", "value": 5}, {"method": "a", "value": 2.0}])
    >>> numbers.values({"method": "a"}), numbers.mean({"method": "b"})
    ([1.0, 2.0], 5.0)
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._values: dict[tuple[tuple[str, Any], ...], list[float]] = {}
        for row in rows:
            of = tuple((key, value) for key, value in row.items() if key != "value")
            self._values.setdefault(of, []).append(float(row["value"]))
        self._summaries = [_summary(dict(of), values) for of, values in self._values.items()]

    def __bool__(self) -> bool:
        return bool(self._values)

    def summaries(self, where: Mapping[str, Any] | None = None) -> list[Summary]:
        """Of all numbers with these keys and values, in the order in which they first appear.

        A tuple or list in ``where`` stands for any of its values.
        """
        return [summary for summary in self._summaries if _matches(summary.of, where or {})]

    def summary(self, of: Mapping[str, Any]) -> Summary:
        """Mean and standard deviation of the only number with these keys and values.

        Raises
        ------
        LookupError
            If there is none, or more than one.
        """
        found = self.summaries(of)
        if len(found) != 1:
            raise LookupError(f"{len(found)} numbers with {dict(of)}, not one")
        return found[0]

    def mean(self, of: Mapping[str, Any]) -> float:
        """The mean over the trials of the only number with these keys and values."""
        return self.summary(of).mean

    def values(self, of: Mapping[str, Any]) -> list[float]:
        """The values, one per trial, of the only number with these keys and values."""
        return list(self._values[tuple(self.summary(of).of.items())])


def _summary(of: Row, values: list[float]) -> Summary:
    return Summary(of, fmean(values), (stdev(values) or None) if len(values) > 1 else None, len(values))


def _matches(of: Row, where: Mapping[str, Any]) -> bool:
    def agrees(key: str, wanted: Any) -> bool:
        return key in of and (of[key] in wanted if isinstance(wanted, tuple | list) else of[key] == wanted)

    return all(agrees(key, wanted) for key, wanted in where.items())


# ---------------------------------------------------------------------
# What an experiment of a paper is: its data, what one trial computes, what the paper prints, and how to show it.


P = ParamSpec("P")

NOT_PRIVATE_SCALING = "scaled by the data's own values: not private"
"""The stamp on results of data whose bounds were read off the data, as the papers do."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is run and recorded by itself: a data set, or one setting of a synthetic one.

    ``dataset`` is a name for ``taciturn.datasets.load_dataset``, None where the trials make their own data; ``options``
    are keyword arguments for the experiment's ``prepare``. It is run in the quick setting, the full one or both. It may
    stand in for a data set of the paper that is not to be had.
    """

    name: str
    dataset: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    setting: Literal["both", "quick", "full"] = "both"
    stands_in_for: str = ""


SYNTHETIC = Case("synthetic")
"""The only case of an experiment whose trials draw one kind of data."""


@dataclass(frozen=True, slots=True)
class Published:
    """A number as a paper prints it, in an item such as "Table 1".

    ``of`` are the keys of a row without its ``value``. ``tolerance`` is how far ours may be off in any case, such as
    half of the last printed digit; where something is random, two standard deviations of a trial count too. ``reason``
    is why ours differs, for the verdict.
    """

    item: str
    of: Row
    value: float
    tolerance: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a statement is true of our numbers, and the numbers that say so."""

    holds: bool
    evidence: str


Check = Callable[[Numbers], Finding]
"""Whether a claim is true of our numbers. Asking them for what was not run ends in "not run"."""


def checker(check: Callable[Concatenate[Numbers, P], Finding]) -> Callable[P, Check]:
    """Turn ``check(numbers, ...)`` into a function of the other arguments that returns the check."""

    @wraps(check)
    def bind(*args: P.args, **kwargs: P.kwargs) -> Check:
        return lambda numbers: check(numbers, *args, **kwargs)

    return bind


@dataclass(frozen=True, slots=True)
class Claim:
    """What a paper says without printing a number: an order of methods, a significant difference, "nothing".

    ``statement`` is the claim in our words, one sentence; ``reason`` is why it fails, for the verdict.
    """

    item: str
    statement: str
    check: Check
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """How numbers that the paper does not print are arranged.

    Parameters
    ----------
    item : str
        The table or figure of the paper whose content it is.
    lines : tuple of str
        Keys that name the lines.
    across : str
        Key whose values are the columns.
    where : mapping, default={}
        Only rows with these keys and values; a tuple or list stands for any of its values.
    split : str, default=None
        Key of whose values each has a table of its own.
    mean_over : str, default=None
        Key of ``lines`` over whose values a first table takes the mean.
    """

    item: str
    lines: tuple[str, ...]
    across: str
    where: Mapping[str, Any] = field(default_factory=dict)
    split: str | None = None
    mean_over: str | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure that follows the axes of the paper's.

    Parameters
    ----------
    item : str
        The figure of the paper.
    title : str
        In a few words.
    kind : {"curves", "bars", "heat map"}
        Curves over ``across`` with a band of one standard deviation of a trial; groups of bars, one group per value
        of ``across``, with such a whisker; or means as colours, ``series`` down and ``across`` to the right.
    across : str
        Key of the horizontal axis.
    series : str
        Key whose values are curves, bars of a group, or rows of a heat map.
    x_label, y_label : str
        As the paper has them. For a heat map ``y_label`` names the colour.
    panels : str, default=None
        Key of whose values each has axes of its own.
    where : mapping, default={}
        As in ``Table``.
    subtract : tuple of (str, value, value), default=None
        (key, a, b): draw the mean at key = a less that at key = b.
    x_scale, y_scale : {"linear", "log"}, default="linear"
        Of the axes.
    marks : tuple of float, default=()
        Heights of thin horizontal lines, such as the number of true features.
    """

    item: str
    title: str
    kind: Literal["curves", "bars", "heat map"]
    across: str
    series: str
    x_label: str
    y_label: str
    panels: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    subtract: tuple[str, Any, Any] | None = None
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    marks: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """Tables and figures of a paper that come from the same trials, with sound methods beside the published ones.

    Parameters
    ----------
    name : str
        What the command line calls it.
    paper : str
        Short name of the paper.
    summary : str
        What it measures, in one line.
    relation : str
        The neighbouring relation of the privacy claims.
    scaling : str
        How features and target were scaled.
    notes : tuple of str
        How what the paper leaves open was read, and what is known to be wrong in it.
    trials, quick_trials : int
        The paper's number of trials, and that of the quick setting.
    prepare : callable
        ``prepare(dataset, **options)``: whatever has no randomness in it, computed once per case. Gets None where
        there is no data set.
    run : callable
        ``run(prepared, seed)``: the rows of one trial, a function of its arguments alone.
    cases : tuple of Case, default=(SYNTHETIC,)
        Each is run by itself.
    published : tuple of Published
        The numbers that the paper prints.
    claims : tuple of Claim
        What it says without a number.
    tables : tuple of Table
        For our numbers beside those.
    pictures : tuple of Picture
        What is drawn.
    """

    name: str
    paper: str
    summary: str
    relation: str
    scaling: str
    notes: tuple[str, ...]
    trials: int
    quick_trials: int
    prepare: Callable[..., Any]
    run: Callable[[Any, int], list[Row]]
    cases: tuple[Case, ...] = (SYNTHETIC,)
    published: tuple[Published, ...] = ()
    claims: tuple[Claim, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def items(self) -> tuple[str, ...]:
        """The tables and figures of the paper that it speaks about, in the order of their first mention."""
        named: tuple[Published | Claim | Table | Picture, ...]
        named = (*self.published, *self.claims, *self.tables, *self.pictures)
        return tuple(dict.fromkeys(each.item for each in named))

    def cases_of(self, *, quick: bool) -> tuple[Case, ...]:
        """The cases of the quick setting, or of the full one."""
        left_out = "full" if quick else "quick"
        return tuple(case for case in self.cases if case.setting != left_out)


def seed_of(*words: object) -> int:
    """A seed that depends on the words alone, so that no trial depends on the order or the place in which it runs.

    Examples
    --------
    >>> from taciturn_research.reproduce.experiment import seed_of
    >>> seed_of("table", "alon", 3) == seed_of("table", "alon", 3), seed_of("table", "alon", 3) == seed_of("table", 3)
    (True, False)
    """
    text = "\n".join(str(word) for word in words)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "little")


# ---------------------------------------------------------------------
# Whether what a paper prints or claims is true of our numbers.


Outcome = Literal["holds", "does not hold", "not run"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A printed number beside ours, which is None where the trials were not run."""

    published: Published
    ours: Summary | None
    difference_in_sd: float | None
    outcome: Outcome

    def __str__(self) -> str:
        return _in_words(self.outcome, self.published.reason)


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """A claim and the numbers for or against it."""

    claim: Claim
    evidence: str
    outcome: Outcome

    def __str__(self) -> str:
        return _in_words(self.outcome, self.claim.reason)


@dataclass(frozen=True, slots=True)
class Overall:
    """What is to be said about one table or figure."""

    item: str
    numbers: tuple[Verdict, ...]
    claims: tuple[ClaimVerdict, ...]

    def __str__(self) -> str:
        parts = []
        for verdicts, what in ((self.numbers, "numbers"), (self.claims, "claims")):
            run = [verdict for verdict in verdicts if verdict.outcome != "not run"]
            if run:
                held = sum(verdict.outcome == "holds" for verdict in run)
                parts.append(f"{held} of {len(run)} {what} hold")
            if len(run) < len(verdicts):
                parts.append(f"{len(verdicts) - len(run)} of {len(verdicts)} {what} not run, data not available")
        return "; ".join(parts) or "drawn; the paper prints no number"


def judge_number(published: Published, numbers: Numbers) -> Verdict:
    """Whether a printed number holds: within two standard deviations of a trial, or within its tolerance."""
    found = [summary for summary in numbers.summaries() if summary.of == published.of]
    if not found:
        return Verdict(published, None, None, "not run")
    (ours,) = found
    difference = ours.mean - published.value
    spread = ours.sd or 0.0
    holds = abs(difference) <= max(2.0 * spread, published.tolerance)
    return Verdict(published, ours, difference / spread if spread else None, _outcome(holds))


def judge_claim(claim: Claim, numbers: Numbers) -> ClaimVerdict:
    """Whether a claim holds of our numbers."""
    try:
        finding = claim.check(numbers)
    except LookupError:
        return ClaimVerdict(claim, "", "not run")
    return ClaimVerdict(claim, finding.evidence, _outcome(finding.holds))


def judge_items(experiment: Experiment, numbers: Numbers) -> tuple[Overall, ...]:
    """All verdicts of an experiment, by table and figure."""
    by_number = [judge_number(published, numbers) for published in experiment.published]
    by_claim = [judge_claim(claim, numbers) for claim in experiment.claims]
    return tuple(
        Overall(
            item,
            tuple(verdict for verdict in by_number if verdict.published.item == item),
            tuple(verdict for verdict in by_claim if verdict.claim.item == item),
        )
        for item in experiment.items
    )


def _outcome(holds: Any) -> Outcome:
    return "holds" if holds else "does not hold"


def _in_words(outcome: Outcome, reason: str) -> str:
    if outcome == "not run":
        return "not run: data not available"
    return f"does not hold: {reason or 'no reason found'}" if outcome == "does not hold" else outcome
