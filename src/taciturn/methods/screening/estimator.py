"""Frank-Wolfe with screening: coefficients that do not seem to belong are set to zero along the way.

Two papers screen private Frank-Wolfe by the safe rule of Raj et al., with a sensitivity that is short by the root of
the number of records and a comparison with zero that is not paid for. Here the rules keep what they are meant to do
and lose what breaks them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from taciturn.core.rng import Stream
from taciturn.core.validation import FloatArray, Invalid, check_choice, check_truth
from taciturn.engines.interface import ArraySource
from taciturn.methods.base import PrivateClassifier, PublicFacts
from taciturn.methods.frank_wolfe.estimator import FrankWolfeModel, FrankWolfeRegressionModel
from taciturn.methods.options import Auto, RegressionLoss, RuleOfScreening, ScreeningTimes
from taciturn.methods.screening.plan import ScreenedPlan, check_screening, none_threshold, plan_screened
from taciturn.methods.screening.run import run_screened
from taciturn.privacy import mechanisms
from taciturn.privacy.account import Account


class ScreenedModel(FrankWolfeModel):
    """Frank-Wolfe with screening: what regressor and classifier share."""

    rule: RuleOfScreening
    screen_at: int | ScreeningTimes
    screen_share: float
    threshold: float | Auto
    permanent: bool
    loss_curve_: FloatArray

    def check_parameters(self) -> None:
        """Raise ParameterError for a parameter that no fit could use, whatever the data."""
        super().check_parameters()
        check_screening(self.rule, self.screen_at, self.screen_share, self._given_threshold())
        check_truth(permanent=self.permanent)

    def warm_up(self, *, sparse: bool, n_classes: int | None = None) -> None:
        """Compile what a fit to a dense or sparse table calls, so that a failure to do so spends nothing."""
        super().warm_up(sparse=sparse, n_classes=n_classes)
        mechanisms.warm_up()

    def _plan(self, facts: PublicFacts) -> ScreenedPlan:
        return plan_screened(
            **self._settings(facts),
            rule=self.rule,
            screen_at=self.screen_at,
            screen_share=self.screen_share,
            threshold=self._given_threshold(),
            permanent=bool(self.permanent),
        )

    def _given_threshold(self) -> float | None:
        """The threshold, or None for "auto"."""
        if not isinstance(self.threshold, str):
            return self.threshold
        check_choice(("auto",), "a number", threshold=self.threshold)
        return None

    def _solve(self, plan: Any, source: ArraySource, stream: Stream) -> FloatArray:
        # What an earlier fit without privacy left must not outlive it.
        if hasattr(self, "loss_curve_"):
            del self.loss_curve_
        if not math.isinf(self.epsilon):
            return run_screened(plan, source, stream)
        losses: list[float] = []
        weights = run_screened(plan, source, stream, losses.append)
        self.loss_curve_ = np.array(losses)
        return weights

    def _described(self, plan: Any, facts: PublicFacts) -> dict[str, Any]:
        described = super()._described(plan, facts)
        described |= {"rule": self.rule, "screen_at": self.screen_at, "screen_share": float(self.screen_share)}
        if self.rule == "none-option":
            described["threshold"] = none_threshold(self._given_threshold(), facts.n_records)
        return described | {"permanent": bool(self.permanent)}


@dataclass(kw_only=True, eq=False, repr=False)
class ScreenedRegressor(ScreenedModel, FrankWolfeRegressionModel):
    r"""Least squares over an L1 ball by private Frank-Wolfe with private screening.

    The objective and the steps are those of :class:`FrankWolfeRegressor`. After every ``screen_at``-th step

    .. math:: j = \arg\min_{i : w_i \ne 0} \Bigl| \sum_k \psi_k \tilde x_{ki} \Bigr| + \text{noise}, \qquad
              w_j \leftarrow 0,

    where :math:`\psi_k` is the clipped residual of record k: at an optimum the coefficients that are not zero have the
    largest gradient, and one with a small gradient does not belong. The intercept is never screened.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: one coordinate and sign per step, and which
    coefficients are screened, and the medians of :class:`FrankWolfeRegressor`; one accountant covers all. Sensitivity:
    ``data.sensitivity.gradient_scores`` for steps and selections, ``screening_test`` for "tested", ``safe_rule`` for
    "adp", ``quantile_scores`` for medians. The support among which "select" chooses, and which coefficients are out for
    good, follow from earlier releases. Public: the numbers of features and, except under add-remove, of records, the
    bounds, the radius, the number of steps, the rule and its schedule.

    Parameters
    ----------
    %(epsilon)s
        ``n_steps="auto"`` means 5000 then. With ``rule="adp"``, ``permanent=True`` and ``loss="squared"`` it is
        Frank-Wolfe with the safe rule itself: it drops columns that are proved to be zero in the solution, and is
        faster for that.
    %(delta)s
    %(relation)s
    %(n_public)s
        Every rule but "select" requires it there.
    %(x_bound)s
    %(y_bounds)s
    %(radius_regressor)s
    %(huber_loss)s
        The rules "tested" and "adp" are derived for the squared loss; with "huber" they are private all the same, but
        not safe even without noise.
    %(n_steps)s
    %(screening)s
    %(fit_intercept)s
        The intercept is never screened.
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(iterative_regressor_attributes)s
    %(loss_curve)s

    References
    ----------
    *Differentially Private Iterative Screening Rules for Linear Regression* (RNM-Screen).
    Khanna, Lu and Raff, *The Challenge of Differentially Private Screening Rules* (ADP-Screen).
    Raj, Olbrich, Gärtner, Schölkopf and Jaggi, *Screening rules for convex problems* (2016).

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import ScreenedRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = 0.5 * X[:, 2] - 0.3 * X[:, 11]
    >>> bounds = {"x_bound": 1.0, "y_bounds": (-1, 1)}
    >>> model = ScreenedRegressor(**bounds, radius=1.0, n_steps=25, screen_at=6, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [2, 11]
    """

    x_bound: float | None = None
    y_bounds: tuple[float, float] | None = None
    radius: float | Auto = "auto"
    loss: RegressionLoss = "huber"
    residual_clip: float | Auto = "auto"
    n_steps: int | Auto = "auto"
    rule: RuleOfScreening = "select"
    screen_at: int | ScreeningTimes = 40
    screen_share: float = 0.03
    threshold: float | Auto = "auto"
    permanent: bool = False
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None


@dataclass(kw_only=True, eq=False, repr=False)
class ScreenedClassifier(ScreenedModel, PrivateClassifier, FrankWolfeModel):
    r"""Logistic regression over an L1 ball by private Frank-Wolfe with private screening.

    The objective and the steps are those of :class:`FrankWolfeClassifier`; screening is that of
    :class:`ScreenedRegressor`, with :math:`\psi_k` the predicted probability less the label. With more than two classes
    single entries of the coefficient matrix are screened, by "select" or "none-option".

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: one coordinate, class and sign per step, and which
    coefficients are screened; one accountant covers both. Sensitivity: ``data.sensitivity.gradient_scores`` for steps
    and selections, ``screening_test`` for "tested", ``safe_rule`` for "adp". Public: the numbers of features and,
    except under add-remove, of records, the bounds, the radius, the classes, the number of steps, the rule and its
    schedule.

    Parameters
    ----------
    %(epsilon)s
        ``n_steps="auto"`` means 5000 then. With ``rule="adp"`` and ``permanent=True`` it is Frank-Wolfe with the safe
        rule itself.
    %(delta)s
    %(relation)s
    %(n_public)s
        Every rule but "select" requires it there.
    %(x_bound)s
    %(classes)s
    %(radius_classifier)s
    %(n_steps)s
    %(screening)s
    %(fit_intercept)s
        The intercept is never screened.
    %(invalid)s
    %(random_state)s

    Attributes
    ----------
    %(iterative_classifier_attributes)s
    %(loss_curve)s

    References
    ----------
    Those of :class:`ScreenedRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import ScreenedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (20000, 20))
    >>> y = X[:, 4] + X[:, 9] > 0
    >>> model = ScreenedClassifier(x_bound=1.0, rule="tested", classes=(False, True), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    x_bound: float | None = None
    classes: Any = None
    radius: float | Auto = "auto"
    n_steps: int | Auto = "auto"
    rule: RuleOfScreening = "select"
    screen_at: int | ScreeningTimes = 40
    screen_share: float = 0.03
    threshold: float | Auto = "auto"
    permanent: bool = False
    fit_intercept: bool = True
    invalid: Invalid = "raise"
    account: Account | str | None = None
    random_state: int | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The loss of more than two classes is not strongly convex in their margins.
        tags.classifier_tags.multi_class = self.rule not in ("tested", "adp")
        return tags
