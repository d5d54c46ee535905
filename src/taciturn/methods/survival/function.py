"""The function private_survival_curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from taciturn.core.errors import DataError, log_phase
from taciturn.core.guard import guarded
from taciturn.core.rng import Stream
from taciturn.core.validation import NO_RECORDS, Invalid, check_real
from taciturn.data.records import Records, admission_assumptions, read_target
from taciturn.data.sensitivity import Relation, public_rows
from taciturn.data.survival import EXITS, FollowUp, SurvivalMap, check_cuts
from taciturn.engines.interface import ArraySource
from taciturn.methods.base import PublicFacts, check_common_parameters, reserve_cost
from taciturn.methods.scores.plan import plan_score
from taciturn.methods.scores.run import release_sums
from taciturn.methods.survival.curve import PUBLIC_CUTS, ExitCounts, SurvivalCurve
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget
from taciturn.privacy.certificate import certify, in_short

_NAME = "private_survival_curve"
_WHAT = "numbers of records by interval and way of exit"


@guarded
def private_survival_curve(
    time: Any,
    event: Any,
    *,
    cuts: Any,
    epsilon: float = 1.0,
    delta: float = 0.0,
    relation: Relation = "zero-out",
    confidence_level: float = 0.95,
    invalid: Invalid = "raise",
    account: Account | str | None = None,
    random_state: int | None = None,
) -> SurvivalCurve:
    r"""Estimate a survival curve (Kaplan and Meier) with noise, and a band that includes it.

    .. math:: \tilde S(t_j) = \prod_{k \le j} \Bigl(1 - \frac{d_k}{Y_k - c_k / 2}\Bigr)

    with the numbers :math:`d_k` of events in the interval that ends at cut k, :math:`c_k` of records that are censored
    within it, and :math:`Y_k` of records at risk at its beginning. A cut belongs to the interval that it ends, and a
    record that is censored at a cut is at risk in all of that interval: if all times are cuts, this is the estimate of
    Kaplan and Meier. Elsewhere those who are censored within an interval count for half of it, as in a life table.
    Times after the last cut are censored there. A record whose time is not positive is a null record.

    The band is for each time by itself, on the logarithmic scale. It includes the sampling error and the noise, with
    the covariance of events and numbers at risk. Censoring has to be independent of the event. Where noise hides how
    many are at risk there is no estimate, and the band reaches down to zero.

    **Privacy.** (epsilon, 0)-DP under ``relation``, or (epsilon, delta)-DP where Gaussian noise deviates less. One
    histogram is released: the numbers of records by interval and way of exit, an event, censored within the interval
    or censored at its end. Each record is in one cell (``data.sensitivity.outcome_counts``). Numbers at risk are sums
    of these. Public: the cuts, the number of records (private under add-remove) and all parameters.

    Parameters
    ----------
    time : array-like of shape (n_samples,)
        How long each record was observed.
    event : array-like of shape (n_samples,)
        Whether observation ended with the event: truth values, or 0 and 1. Anything else is a missing value.
    cuts : sequence of float
        The public times at which the curve is estimated, positive and increasing; the last one ends follow-up.
    epsilon : float, default=1.0
        Privacy budget. ``float("inf")``: no noise, and no privacy.
    delta : float, default=0.0
        Probability with which the guarantee of epsilon may fail. Used only where it reduces the noise.
    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
        The neighbouring relation.
    confidence_level : float, default=0.95
        Of the band.
    invalid : {"raise", "null"}, default="raise"
        Treatment of records without a time or an event. "raise" refuses them, which reveals that there is one. "null"
        makes them null records, which are in no interval.
    account : Account or str, default=None
        The account that pays, or where it is: ``"sqlite:///study.db#name"``. Give a delta then: the noise is Gaussian,
        and costs the account a fraction of what pure noise of the same epsilon does.
    random_state : int, default=None
        None draws the noise from a cryptographic stream. An integer is for reproduction only; the certificate then says
        that the noise was seeded.

    Returns
    -------
    SurvivalCurve
        With ``times``, ``survival``, ``lower``, ``upper``, ``certificate_``, ``to_frame()`` and ``to_svg()``.

    References
    ----------
    E. L. Kaplan and P. Meier, *Nonparametric estimation from incomplete observations* (1958). M. Greenwood, *The
    natural duration of cancer* (1926).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import private_survival_curve
    >>> rng = np.random.default_rng(0)
    >>> death, end = rng.exponential(8.0, 5000), rng.uniform(2.0, 6.0, 5000)
    >>> time, event = np.minimum(death, end), death <= end
    >>> curve = private_survival_curve(time, event, cuts=(1, 2, 3, 4, 5), epsilon=1.0, random_state=0)
    >>> bool(np.all((curve.lower < np.exp(-curve.times / 8.0)) & (np.exp(-curve.times / 8.0) < curve.upper)))
    True
    """
    check_common_parameters(
        epsilon=epsilon,
        delta=delta,
        relation=relation,
        n_public=None,
        invalid=invalid,
        account=account,
        random_state=random_state,
    )
    check_real(0.5, 1.0, closed="left", confidence_level=confidence_level)
    ends = check_cuts(cuts)
    followed = FollowUp(event, time).checked()
    n_rows = len(followed)
    if n_rows == 0 and not (relation == "add-remove" and invalid == "null"):
        raise DataError(f"time: {NO_RECORDS}.")
    budget = Budget(epsilon, delta)
    n_cells = EXITS * len(ends)
    plan = plan_score(
        budget, _WHAT, finest=1, counts=True, relation=relation, n_values=n_cells, accounted=account is not None
    )
    facts = PublicFacts(n_rows, public_rows(relation, n_rows, None), 0)
    seeded = random_state is not None
    with reserve_cost(account, plan, facts, what=_NAME, relation=relation, seeded=seeded) as reservation:
        stream = Stream.of(random_state)
        reservation.begin()
        log_phase(_NAME, "reading")
        signed, present = read_target(followed.signed(), invalid=invalid, numeric=True)
        records = Records(np.zeros((n_rows, 1)), signed, np.arange(n_rows), n_rows).keep(present)
        source = ArraySource(SurvivalMap(ends[-1])(records), 1.0, facts.n_records)
        log_phase(_NAME, "running")
        counts = release_sums(plan, source.total(ExitCounts(ends, plan.term_bound)), stream)
    certificate = certify(
        plan.releases,
        plan.budget,
        relation=relation,
        public={"cuts": list(ends), "cells": n_cells, "invalid": invalid}
        | ({} if facts.n_records is None else {"records": facts.n_records}),
        assumptions=(PUBLIC_CUTS, *admission_assumptions(invalid)),
        seeded=stream.seeded,
        arithmetic="exact",
        account_head=reservation.head,
    )
    log_phase(_NAME, "certified", in_short(certificate))
    table = counts.reshape(len(ends), EXITS)
    return SurvivalCurve(np.asarray(ends), table, plan.deviation, float(confidence_level), certificate)
