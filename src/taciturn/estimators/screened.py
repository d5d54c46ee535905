r"""Frank-Wolfe with screening: coefficients that do not seem to belong are set to zero along the way.

Two papers screen private Frank-Wolfe by the safe rule of Raj et al., with a sensitivity that is short by the root of
the number of records and a comparison with zero that is not paid for. Here the rules keep what they are meant to do
and lose what breaks them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.accounting import Budget
from taciturn.core.rng import Stream
from taciturn.core.validation import check_truth
from taciturn.estimators.frank_wolfe import FrankWolfeClassifier, FrankWolfeRegressor
from taciturn.fitting.screening import run_screened
from taciturn.losses import Loss
from taciturn.mechanisms import rounded_gaussian
from taciturn.planning import ScreenedPlan, check_screening, none_threshold, plan_screened
from taciturn.sources import ArraySource

__all__ = ["ScreenedClassifier", "ScreenedRegressor"]


class _Screened:
    """Plan and solve with screening."""

    def _check_public(self) -> None:
        super()._check_public()
        check_screening(self.rule, self.screen_at, self.screen_share, self.threshold)
        check_truth(permanent=self.permanent)

    def _warm_up(self, *, sparse: bool) -> None:
        super()._warm_up(sparse=sparse)
        rounded_gaussian.warm_up()

    def _plan(self, loss: Loss, n_rows: int | None, n_features: int, n_outputs: int) -> ScreenedPlan:
        return plan_screened(
            Budget(self.epsilon, self.delta),
            loss,
            radius=self.radius * self.x_bound,
            relation=self.relation,
            n_rows=n_rows,
            n_features=n_features,
            n_outputs=n_outputs,
            intercept=bool(self.fit_intercept),
            n_steps=self.n_steps,
            rule=self.rule,
            screen_at=self.screen_at,
            screen_share=self.screen_share,
            threshold=self.threshold,
            permanent=bool(self.permanent),
        )

    def _solve(self, plan: ScreenedPlan, source: ArraySource, stream: Stream) -> np.ndarray:
        # What an earlier fit without privacy left must not outlive it.
        vars(self).pop("loss_curve_", None)
        if not math.isinf(self.epsilon):
            return run_screened(plan, source, stream)
        losses: list[float] = []
        coefficients = run_screened(plan, source, stream, losses.append)
        self.loss_curve_ = np.array(losses)
        return coefficients

    def _public_facts(self, n_rows: int, n_columns: int) -> dict[str, Any]:
        facts = super()._public_facts(n_rows, n_columns)
        facts |= {"rule": self.rule, "screen_at": self.screen_at, "screen_share": float(self.screen_share)}
        if self.rule == "none-option":
            facts["threshold"] = none_threshold(self.threshold, facts.get("records"))
        return facts | {"permanent": bool(self.permanent)}


class ScreenedRegressor(_Screened, FrankWolfeRegressor):
    r"""Least squares over an L1 ball by private Frank-Wolfe with private screening.

    The objective and the steps are those of :class:`FrankWolfeRegressor`. After every ``screen_at``-th step

    .. math:: j = \arg\min_{i : w_i \ne 0} \Bigl| \sum_k \psi_k \tilde x_{ki} \Bigr| + \text{noise}, \qquad
              w_j \leftarrow 0,

    where :math:`\psi_k` is the clipped residual of record k: at an optimum the coefficients that are not zero have the
    largest gradient, and one with a small gradient does not belong. The intercept is never screened.

    **Privacy.** (epsilon, delta)-DP under ``relation``. Released: one coordinate and sign per step, and which
    coefficients are screened; one accountant covers both. Sensitivity: ``data.sensitivity.gradient_scores`` for steps
    and selections, ``screening_test`` for "tested", ``safe_rule`` for "adp". The support among which "select"
    chooses, and which coefficients are out for good, follow from earlier releases. Public: the numbers of features and,
    except under add-remove, of records, the bounds, the radius, the number of steps, the rule and its schedule.

    Parameters
    ----------
    epsilon, delta, relation, n_public, x_bound, y_bounds, radius
        As in :class:`FrankWolfeRegressor`. Every rule but "select" needs ``n_public`` under add-remove. With
        ``epsilon=float("inf")``, ``rule="adp"``, ``permanent=True`` and ``loss="squared"`` this is Frank-Wolfe with
        the safe rule itself: it drops columns that are proved to be zero in the solution, and is faster for that.
    loss, residual_clip, n_steps, fit_intercept, invalid, random_state
        As in :class:`FrankWolfeRegressor`. The rules "tested" and "adp" are derived for the squared loss; with "huber"
        they are private all the same, but not safe even without noise.
    rule : {"select", "tested", "none-option", "adp"}, default="select"
        What a screening does. "select" chooses the coefficient with the smallest gradient by the exponential mechanism
        and sets it to zero. "tested" does so only if the safe rule, on three noisy numbers, says that the coefficient
        is zero at the optimum. "none-option" has one more candidate, "none". "adp" releases the safe rule's scores of
        all features at once with Gaussian noise, which drowns them: a baseline to compare with.
    screen_at : int, "every" or "last", default=10
        After every how many steps coefficients are screened, or only after the last one; not at all where there are
        fewer steps. With "select" each screening removes a coefficient, so that at most ``n_iter_`` less the number of
        screenings are left; "every" leaves none.
    screen_share : float, default=0.1
        Share of the budget for screening, in (0, 1): of the sum of squared costs, or, with delta = 0, of epsilon.
    threshold : float, default=None
        For "none-option": the gradient below which a coefficient is rather screened than not, as a share of the
        largest possible gradient, in [0, 1]. None: one over the root of the public number of records, what chance
        alone may reach.
    permanent : bool, default=False
        Whether a screened coefficient can never be chosen again. Which ones these are is public by then, and the
        columns are left out of what follows, which saves time.

    Attributes
    ----------
    coef_, intercept_, n_iter_, support_, certificate_, n_features_in_, feature_names_in_
        As in :class:`FrankWolfeRegressor`.
    loss_curve_ : ndarray
        Mean loss after each screening. Only with ``epsilon=float("inf")``: it is computed from the data.

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
    >>> model = ScreenedRegressor(radius=1.0, n_steps=25, screen_at=6, random_state=0).fit(X, y)
    >>> np.flatnonzero(model.support_).tolist()
    [2, 11]
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float = 1.0,
        y_bounds: tuple[float, float] = (-1.0, 1.0),
        radius: float = 10.0,
        loss: str = "huber",
        residual_clip: float | None = None,
        n_steps: int | str = "auto",
        rule: str = "select",
        screen_at: int | str = 10,
        screen_share: float = 0.1,
        threshold: float | None = None,
        permanent: bool = False,
        fit_intercept: bool = True,
        invalid: str = "raise",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.y_bounds = y_bounds
        self.radius = radius
        self.loss = loss
        self.residual_clip = residual_clip
        self.n_steps = n_steps
        self.rule = rule
        self.screen_at = screen_at
        self.screen_share = screen_share
        self.threshold = threshold
        self.permanent = permanent
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state


class ScreenedClassifier(_Screened, FrankWolfeClassifier):
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
    epsilon, delta, relation, n_public, x_bound, classes, radius
        As in :class:`FrankWolfeClassifier`. Every rule but "select" needs ``n_public`` under add-remove. With
        ``epsilon=float("inf")``, ``rule="adp"`` and ``permanent=True`` this is Frank-Wolfe with the safe rule itself.
    n_steps, fit_intercept, invalid, random_state
        As in :class:`FrankWolfeClassifier`.
    rule : {"select", "tested", "none-option", "adp"}, default="select"
        What a screening does. "select" chooses the coefficient with the smallest gradient by the exponential mechanism
        and sets it to zero. "tested" does so only if the safe rule, on three noisy numbers, says that the coefficient
        is zero at the optimum. "none-option" has one more candidate, "none". "adp" releases the safe rule's scores of
        all features at once with Gaussian noise, which drowns them: a baseline to compare with.
    screen_at : int, "every" or "last", default=10
        After every how many steps coefficients are screened, or only after the last one; not at all where there are
        fewer steps. With "select" each screening removes a coefficient, so that at most ``n_iter_`` less the number of
        screenings are left; "every" leaves none.
    screen_share : float, default=0.1
        Share of the budget for screening, in (0, 1): of the sum of squared costs, or, with delta = 0, of epsilon.
    threshold : float, default=None
        For "none-option": the gradient below which a coefficient is rather screened than not, as a share of the
        largest possible gradient, in [0, 1]. None: one over the root of the public number of records, what chance
        alone may reach.
    permanent : bool, default=False
        Whether a screened coefficient can never be chosen again. Which ones these are is public by then, and the
        columns are left out of what follows, which saves time.

    Attributes
    ----------
    classes_, coef_, intercept_, n_iter_, support_, certificate_, n_features_in_, feature_names_in_
        As in :class:`FrankWolfeClassifier`.
    loss_curve_ : ndarray
        Mean loss after each screening. Only with ``epsilon=float("inf")``: it is computed from the data.

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
    >>> model = ScreenedClassifier(rule="tested", classes=(False, True), random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        relation: str = "zero-out",
        n_public: int | None = None,
        x_bound: float = 1.0,
        classes: Any = None,
        radius: float = 10.0,
        n_steps: int | str = "auto",
        rule: str = "select",
        screen_at: int | str = 10,
        screen_share: float = 0.1,
        threshold: float | None = None,
        permanent: bool = False,
        fit_intercept: bool = True,
        invalid: str = "raise",
        random_state: int | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.n_public = n_public
        self.x_bound = x_bound
        self.classes = classes
        self.radius = radius
        self.n_steps = n_steps
        self.rule = rule
        self.screen_at = screen_at
        self.screen_share = screen_share
        self.threshold = threshold
        self.permanent = permanent
        self.fit_intercept = fit_intercept
        self.invalid = invalid
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The loss of more than two classes is not strongly convex in their margins.
        tags.classifier_tags.multi_class = self.rule not in ("tested", "adp")
        return tags
