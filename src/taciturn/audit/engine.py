"""Runs on two neighbouring data sets, and the lower bound on epsilon that they give."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from taciturn.accounting.gdp import epsilon_of_mu
from taciturn.audit.events import (
    Bound,
    Outcomes,
    Statistic,
    best_event,
    gaussian_bound,
    linear_score,
    ratio_bound,
    statistics_of,
)
from taciturn.audit.pair import Pair, check_pair, check_text
from taciturn.audit.result import AuditResult
from taciturn.core.arrays import WordArray
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.validation import check_choice, check_delta, check_integer, check_real, check_truth

__all__ = ["audit"]

Run = Callable[[Any, int], Any]

_SIDES = ("first", "second")
# Large enough for a message between processes, small enough to share the work and to show progress.
_CHUNK_RUNS, _CHUNKS = 500, 50


def audit(
    run: Run,
    neighbours: Pair,
    delta: float,
    trials: int,
    confidence: float = 0.95,
    event: str | Callable[[Any], bool] = "auto",
    *,
    claimed: float | None = None,
    name: str = "",
    random_state: int = 0,
    n_jobs: int = 1,
    progress: bool = False,
) -> AuditResult:
    r"""A lower bound on epsilon, from many runs on two neighbouring data sets.

    With p and q the probabilities of an event on the two data sets, epsilon is at least

    .. math:: \ln \frac{p - \delta}{q} .

    The event, and the data set on which it is likelier, are chosen on the first half of the runs. The other half gives
    a lower bound on p and an upper bound on q (Clopper and Pearson), each wrong with probability at most
    (1 - confidence) / 2. So the stated bound exceeds epsilon with probability at most 1 - confidence, however the
    event was chosen.

    **Privacy.** The result quotes outcomes of the runs and their frequencies: audit public or synthetic data only.

    Parameters
    ----------
    run : callable
        ``run(data, random_state)``: one release. It returns something discrete (an integer, a truth value, a string,
        a tuple, a frozenset), or a one-dimensional array of finite numbers: coefficients, a mask, a transcript. With
        workers it must be picklable.
    neighbours : Pair
        The two data sets.
    delta : float
        Probability beyond epsilon.
    trials : int
        Number of runs on each data set, at least 8.
    confidence : float, default=0.95
        Probability with which the bound is a true one.
    event : {"auto", "gaussian"} or callable, default="auto"
        "auto" looks for the event. Discrete outcomes are put in the order of their likelihood ratios; for arrays,
        linear scores, coordinates and zero/non-zero patterns compete.

        "gaussian" is for arrays with a Gaussian trade-off, such as transcripts of noisy gradients, and delta > 0: both
        errors of a linear test bound :math:`\mu \ge \Phi^{-1}(1 - \alpha) - \Phi^{-1}(\beta)`, and
        :math:`\mu`-GDP gives epsilon at this delta. It sees far more than "auto" where delta is small. Of another kind
        of release it shows only that it is not :math:`\mu`-GDP, which a claimed epsilon need not promise.

        A callable ``event(outcome)`` says whether the event happened. It is fixed in advance, so all runs bound it.
        The side on which it is likelier, and whether the event or its opposite tells more, are not: four bounds share
        1 - confidence.
    claimed : float, default=None
        The epsilon that was promised at this delta, for the verdict.
    name : str, default=""
        What is audited.
    random_state : int, default=0
        From which a seed for every run follows; none is used twice.
    n_jobs : int, default=1
        Number of worker processes. The result is the same for any number.
    progress : bool, default=False
        Whether to draw a progress bar on the standard error stream.

    Returns
    -------
    AuditResult
        The bound, the event in words and the verdict.

    References
    ----------
    Jagielski, Ullman and Oprea, arXiv:2006.07709 (Clopper-Pearson bounds); Nasr et al., arXiv:2302.07956 (the
    Gaussian route).

    Examples
    --------
    Randomised response that keeps its bit with probability 3/4 is ln(3)-DP, and ln(3) is about 1.1.

    >>> import numpy as np
    >>> from taciturn.audit import Pair, audit
    >>> def respond(bit, random_state):
    ...     return bit if np.random.default_rng(random_state).random() < 0.75 else 1 - bit
    >>> pair = Pair(1, 0, "replace-one", "the only record is the bit itself")
    >>> result = audit(respond, pair, delta=0.0, trials=10_000, claimed=0.5, name="randomised response")
    >>> result.verdict
    'violated'
    >>> 1.0 < result.lower_bound < 1.0986
    True
    """
    pair = check_pair(neighbours)
    delta = check_delta(delta=delta)
    trials = check_integer(8, trials=trials)
    confidence = check_real(0.0, 1.0, closed="left", confidence=confidence)
    _check_callables(run, event, delta)
    claimed = None if claimed is None else check_real(0.0, math.inf, claimed=claimed)
    name = check_text(name=name)
    random_state = check_integer(0, random_state=random_state)
    n_jobs = check_integer(1, n_jobs=n_jobs)
    first, second = _outcomes(run, pair, _seeds(random_state, trials), n_jobs, check_truth(progress=progress), name)
    route = "Gaussian" if event == "gaussian" else "Clopper-Pearson"
    if callable(event):
        found, words = _given(event, first, second, delta, (1.0 - confidence) / 4.0)
    else:
        found, words = _chosen(event, first, second, delta, (1.0 - confidence) / 2.0)
    return AuditResult(
        lower_bound=found,
        claimed=claimed,
        delta=delta,
        confidence=confidence,
        trials=trials,
        event=words,
        route=route,
        pair=pair.words,
        relation=pair.relation,
        seed=random_state,
        name=name,
    )


def _check_callables(run: object, event: object, delta: float) -> None:
    if not callable(run):
        raise ParameterError(
            "run", type(run).__name__, "a callable run(data, random_state)", "wrap the release in a function"
        )
    if callable(event):
        return
    if check_choice(("auto", "gaussian"), event=event) == "gaussian" and delta == 0.0:
        raise ParameterError(
            "delta", delta, "a number > 0 for event='gaussian'", "Gaussian noise has no epsilon at delta=0; set delta"
        )


# ------------------------------------------------------------------ the bound


def _chosen(event: str, first: Outcomes, second: Outcomes, delta: float, tail: float) -> tuple[float, str]:
    """Bound epsilon by the best event of the first half of the runs, on the second half."""
    gaussian = event == "gaussian"
    if gaussian and isinstance(first, list):
        raise DataError("event='gaussian': expected outcomes that are arrays, got discrete ones; set event='auto'.")
    (choosing_first, first), (choosing_second, second) = _halves(first), _halves(second)

    def bound_of(runs: int) -> Bound:
        return gaussian_bound(runs, tail) if gaussian else ratio_bound(runs, delta, tail)

    def statistics(one: Outcomes, other: Outcomes) -> Iterable[Statistic]:
        return [linear_score(one, other)] if gaussian else statistics_of(one, other, tail)

    chosen = best_event(choosing_first, choosing_second, statistics, bound_of)
    counts = chosen.count(first), chosen.count(second)
    found = max(0.0, float(bound_of(len(first))(counts[chosen.likelier], counts[1 - chosen.likelier])))
    words = f"{chosen.words}, likelier on the {_SIDES[chosen.likelier]} data set"
    return (epsilon_of_mu(found, delta) if gaussian else found), words


def _halves(outcomes: Outcomes) -> tuple[Outcomes, Outcomes]:
    """Split runs into those that choose the event and those that bound it."""
    middle = len(outcomes) // 2
    return outcomes[:middle], outcomes[middle:]


def _given(
    event: Callable[[Any], bool], first: Outcomes, second: Outcomes, delta: float, tail: float
) -> tuple[float, str]:
    """Bound epsilon by an event fixed in advance, or its complement, in both directions, on all runs."""
    trials = len(first)
    bound = ratio_bound(trials, delta, tail)
    happened = [sum(bool(event(outcome)) for outcome in outcomes) for outcomes in (first, second)]
    name = getattr(event, "__name__", type(event).__name__)
    options = []
    for words, counts in ((name, happened), (f"not {name}", [trials - count for count in happened])):
        for likelier in (0, 1):
            found = float(bound(counts[likelier], counts[1 - likelier]))
            options.append((found, f"{words}, given in advance, likelier on the {_SIDES[likelier]} data set"))
    found, words = max(options)
    return max(0.0, found), words


# ------------------------------------------------------------------ the runs


def _seeds(random_state: int, trials: int) -> WordArray:
    """One seed for every run, the rows for the two data sets; all differ.

    They have 32 bits, the most that every generator takes, and are drawn in excess, because some are drawn twice.
    """
    wanted = 2 * trials
    words = np.random.PCG64(np.random.SeedSequence(random_state)).random_raw(wanted + wanted // 2 + 64)
    seeds = np.asarray(words >> np.uint64(32))
    _, places = np.unique(seeds, return_index=True)
    return seeds[np.sort(places)[:wanted]].reshape(2, trials)


def _outcomes(
    run: Run, pair: Pair, seeds: WordArray, n_jobs: int, progress: bool, name: str
) -> tuple[Outcomes, Outcomes]:
    """Outcomes of all runs, in the order of the seeds."""
    n_chunks = min(_CHUNKS, math.ceil(seeds.shape[1] / _CHUNK_RUNS))
    tasks = [
        (side, data, chunk.tolist())
        for side, data in enumerate((pair.first, pair.second))
        for chunk in np.array_split(seeds[side], n_chunks)
    ]
    collected: tuple[list[Any], list[Any]] = ([], [])
    jobs = (delayed(_run_chunk)(run, data, chunk) for _, data, chunk in tasks)
    with _progress(name or "audit", seeds.size, progress) as advance:
        results = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
        for (side, _, chunk), outcomes in zip(tasks, results, strict=True):
            collected[side].extend(outcomes)
            advance(len(chunk))
    return _of_one_kind(*collected)


def _run_chunk(run: Run, data: Any, seeds: list[int]) -> list[Any]:
    # One thread, as in a worker process: the order of floating-point sums must not depend on the number of jobs.
    with threadpool_limits(limits=1):
        return [_checked(run(data, seed)) for seed in seeds]


def _checked(outcome: Any) -> Any:
    """Convert an array outcome to doubles; return a discrete outcome unchanged."""
    if isinstance(outcome, np.ndarray):
        usable = outcome.ndim == 1 and outcome.size > 0 and outcome.dtype.kind in "biuf"
        if usable and np.isfinite(outcome).all():
            return outcome.astype(np.float64)
    elif not isinstance(outcome, float | np.floating) and _has_hash(outcome):
        return outcome
    raise DataError(
        "run: expected a discrete, hashable outcome or a one-dimensional array of finite numbers, got something else "
        f"({type(outcome).__name__}); return a tuple, or numbers as np.array([...])."
    )


def _has_hash(outcome: Any) -> bool:
    try:
        hash(outcome)
    except TypeError:
        return False
    return True


def _of_one_kind(first: list[Any], second: list[Any]) -> tuple[Outcomes, Outcomes]:
    kinds = {outcome.shape if isinstance(outcome, np.ndarray) else None for outcome in (*first, *second)}
    if len(kinds) > 1:
        raise DataError(
            "run: expected outcomes of one kind, got arrays of several lengths or beside discrete outcomes; return "
            "the same shape from every run."
        )
    return (first, second) if kinds == {None} else (np.array(first), np.array(second))


@contextmanager
def _progress(name: str, total: int, shown: bool) -> Iterator[Callable[[int], object]]:
    """Yield a function that advances the progress bar, if one is shown."""
    if not shown:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs, time left"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=total)
        yield lambda done: bar.advance(task, done)
