"""PrivateRandomizedSearch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal, localcontext
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.model_selection import ParameterSampler
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import available_if

from taciturn.core.errors import DataError, ParameterError, in_secret, log_phase
from taciturn.core.guard import Guarded
from taciturn.core.rng import Stream
from taciturn.core.sklearn_base import BaseEstimator, check_is_fitted, is_classifier
from taciturn.core.validation import BoolArray, check_real
from taciturn.data.persons import PERSON_WEIGHT, read_persons, units_of_rows
from taciturn.data.records import admission_assumptions, check_lengths
from taciturn.data.sensitivity import check_public_count
from taciturn.engines.interface import is_open, is_spark
from taciturn.methods.base import (
    BOUNDS,
    PrivateLinearModel,
    PublicFacts,
    check_common_parameters,
    reserve_cost,
)
from taciturn.methods.options import SingleMetric
from taciturn.methods.scores.function import metric_of, read_source, unfitted_metric
from taciturn.methods.scores.plan import ScorePlan, plan_score
from taciturn.methods.scores.run import release_sums
from taciturn.methods.search.plan import SearchPlan, check_law, largest_epsilon, plan_search
from taciturn.privacy.account import Account
from taciturn.privacy.budget import Budget
from taciturn.privacy.certificate import Certificate, certify, in_short
from taciturn.privacy.events import Event
from taciturn.privacy.rdp import success_probability
from taciturn.privacy.transcript import block_of_records, coupling, trial_of_search

# What a search states once, for every trial.
_OF_THE_SEARCH = ("epsilon", "delta", "relation", "n_public", "account", "random_state")
_ASSUMPTIONS = (
    "settings that were tried, their law and the mean number of trials were chosen without looking at these data",
    "the number of trials is secret: nobody timed the search or counted its processes",
)


# Decimal digits of chances, 64-bit words of a uniform number, and the last trial, which has all chances beyond it.
_DIGITS, _WORDS, _MOST_TRIALS = 60, 2, 1_000_000


def number_of_trials(mean: float, shape: float, stream: Stream) -> int:
    r"""A secret draw from the truncated negative binomial law of a mean and a shape.

    Probabilities :math:`P(K = k)` are proportional to :math:`(1 - \gamma)^k \Gamma(k + \eta) / k!`, so that
    :math:`P(K = k + 1) = P(K = k) (1 - \gamma) (k + \eta) / (k + 1)`. They are added up in sixty decimal digits until
    the sum passes a uniform number of 128 bits; what is beyond the last trial belongs to it.
    """
    words = [int(word) for word in stream.words(_WORDS)]
    with localcontext() as context:
        context.prec = _DIGITS
        uniform = Decimal(words[0] * 2**64 + words[1]) / Decimal(2 ** (64 * _WORDS))
        gamma, eta = Decimal(success_probability(mean, shape)), Decimal(shape)
        rest = 1 - gamma
        # At shape 0 the quotient is its limit.
        chance = eta * rest * gamma**eta / (1 - gamma**eta) if shape else rest / -gamma.ln()
        total, k = chance, 1
        while uniform >= total and k < _MOST_TRIALS:
            chance *= rest * (k + eta) / (k + 1)
            total += chance
            k += 1
    return k


@dataclass(frozen=True, slots=True)
class _Trial:
    """One candidate: its settings, its model, None where it was refused, and its noisy score, larger if better."""

    params: dict[str, Any]
    model: Any
    score: float
    deviation: float


def _has(name: str) -> Callable[[Any], bool]:
    def delegates(search: Any) -> bool:
        return hasattr(getattr(search, "best_estimator_", search.estimator), name)

    return delegates


@dataclass(eq=False, repr=False)
class PrivateRandomizedSearch(Guarded, BaseEstimator):
    r"""Search of settings under differential privacy: candidates at random, of which the best is released.

    A number K of trials is drawn from a public law and kept secret. Each trial draws a candidate from
    ``param_distributions``, fits it to one part of the records, and scores it with noise on the other part. The trial
    with the best noisy score is released: its setting, its model and that score. Nothing about the others is.

    A search costs every trial a part of the budget, so that each fit has more noise than one fit with ``epsilon`` would
    have. **The automatic settings of ``SparseClassifier`` and ``SparseRegressor`` are the better choice**: on ten data
    sets, at epsilon 1 and 3, a search of ``n_nonzero`` had larger errors than ``n_nonzero="auto"`` in 10 of 20 cells
    beyond two standard errors, and smaller ones in none (research's ``study_search.md``). Search where a setting has no
    automatic value.

    **Privacy.** (epsilon, delta)-DP under the relation of ``estimator``. Each record is in one of the two parts, by a
    random permutation or a coin of its own, the same part in all trials. Fit and score of a trial are both
    :math:`\mu`-GDP, so a trial is, and the best of K of them costs what
    :class:`~taciturn.events.RepeatAndSelectEvent` states (Papernot and Steinke 2022). A candidate whose fit is refused
    for its parameters, or costs more than a trial may, scores worst. While trials run there are no warnings and no log
    records, whose number would reveal K. Running time reveals it.

    Parameters
    ----------
    estimator : estimator
        A regressor or classifier of taciturn. ``relation`` and ``n_public`` are taken from it; ``epsilon``, ``delta``,
        ``account`` and ``random_state`` are those of the search.
    param_distributions : dict or list of dicts
        Parameters of ``estimator`` with lists of values or distributions, as in scikit-learn's
        ``RandomizedSearchCV``. Candidates are drawn with replacement.
    epsilon : float, default=1.0
        Privacy budget of the whole search. ``float("inf")``: no noise, and no privacy.
    delta : float, default=1e-6
        Probability with which the guarantee of epsilon may fail.
    mean_trials : float, default=10.0
        The mean of the number of trials.
    law : {"logarithmic", "geometric"}, default="logarithmic"
        Law of the number of trials. "logarithmic" has less noise and a number that varies more.
    metric : {"auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error"}, default="auto"
        What trials are compared by, as in ``private_score``.
    test_size : float, default=0.25
        The share of the records on which trials are scored.
    account : Account or str, default=None
        The account that pays: from its (epsilon, delta) budget, since a search is no Gaussian release.
    random_state : int, default=None
        None draws from a cryptographic stream. An integer is for reproduction only.

    Attributes
    ----------
    best_params_ : dict
        The setting of the best trial.
    best_estimator_ : estimator
        Its model, fitted to the first part of the records. Its certificate is that of the search.
    best_score_ : float
        Its noisy score: an accuracy, or an error with the sign reversed, as scikit-learn has it. The best of several
        is too good on average.
    best_score_std_ : float
        Standard deviation of the noise on it.
    certificate_ : Certificate
        What was released.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    References
    ----------
    N. Papernot and T. Steinke, *Hyperparameter tuning with Renyi differential privacy*, ICLR 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from taciturn import PrivateRandomizedSearch, SparseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (6000, 10))
    >>> y = (X[:, 0] + 0.2 * rng.standard_normal(6000) > 0).astype(int)
    >>> model = SparseClassifier(x_bound=1.0, classes=(0, 1))
    >>> search = PrivateRandomizedSearch(model, {"n_nonzero": [1, 3, "all"]}, epsilon=2.0, random_state=0)
    >>> search.fit(X, y).certificate_.epsilon
    2.0
    >>> sorted(search.best_params_)
    ['n_nonzero']
    """

    estimator: Any
    param_distributions: Any
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    mean_trials: float = 10.0
    law: Literal["logarithmic", "geometric"] = "logarithmic"
    metric: SingleMetric = "auto"
    test_size: float = 0.25
    account: Account | str | None = None
    random_state: int | None = None

    def fit(self, X: Any, y: Any, persons: Any = None) -> Self:
        """Draw candidates, fit and score them, and keep the best.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The features; a table in memory.
        y : array-like of shape (n_samples,)
            The target.
        persons : array-like of shape (n_samples,), default=None
            The key of the person that each row is about, where a person may have several rows: all of them are in the
            same part. None: every row is a record of its own.

        Returns
        -------
        self : object
            The fitted search.
        """
        self._check_parameters(X)
        model = self.estimator
        model._check_persons(persons)
        check_public_count(model.relation, model.n_public)
        facts, _ = model._person_facts(model._public_facts(X, y), persons)
        if (facts.n_records or 0) < 2:
            raise DataError("X: expected at least two records, one to fit and one to score; pass a longer table.")
        plan = plan_search(Budget(self.epsilon, self.delta), float(self.mean_trials), self.law)
        seeded = self.random_state is not None
        name = type(self).__name__
        with reserve_cost(self.account, plan, facts, what=name, relation=model.relation, seeded=seeded) as reservation:
            stream = Stream.of(self.random_state)
            check_lengths(X, y)
            reservation.begin()
            log_phase(name, "running")
            with in_secret():
                best = self._run(plan, X, y, persons, facts, stream)
            certificate = self._certify(plan, facts, seeded=stream.seeded, account_head=reservation.head)
        if best.model is None:
            raise ParameterError(
                "param_distributions", type(self.param_distributions).__name__,
                "candidates that can be fitted at this budget", "correct them; the budget counts as spent",
            )  # fmt: skip
        self._store(best, certificate)
        log_phase(name, "certified", in_short(certificate))
        return self

    # ---- public facts

    def _check_parameters(self, X: Any) -> None:
        if not isinstance(self.estimator, PrivateLinearModel):
            raise ParameterError(
                "estimator", type(self.estimator).__name__, "a regressor or classifier of taciturn", "pass one"
            )
        if is_open(X) or is_spark(X):
            raise DataError("X: expected a table in memory for a search, got one in partitions; compute() the table.")
        model = self.estimator
        check_common_parameters(
            epsilon=self.epsilon, delta=self.delta, relation=model.relation, n_public=model.n_public,
            invalid=model.invalid, account=self.account, random_state=self.random_state,
        )  # fmt: skip
        check_law(self.law, self.mean_trials)
        check_real(0.01, 0.9, test_size=self.test_size)
        if self.delta == 0.0 and math.isfinite(self.epsilon):
            raise ParameterError("delta", self.delta, "a number > 0", "the noise of a search is Gaussian")
        given = self.param_distributions
        for grid in [given] if isinstance(given, Mapping) else list(given):
            for name in grid:
                if name in _OF_THE_SEARCH or name not in model.get_params(deep=False):
                    expected = f"a parameter of {type(model).__name__} that the search does not set"
                    raise ParameterError("param_distributions", name, expected, "leave it out")

    def _part_sizes(self, facts: PublicFacts) -> tuple[int, int]:
        """Public numbers of records that are fitted to and scored on."""
        n_records = facts.n_records or 0
        n_scored = min(max(round(self.test_size * n_records), 1), n_records - 1)
        return n_records - n_scored, n_scored

    # ---- trials

    def _run(self, plan: SearchPlan, X: Any, y: Any, persons: Any, facts: PublicFacts, stream: Stream) -> _Trial:
        """The best of a secret number of trials."""
        owners, n_units = units_of_rows(persons, facts.counted_rows)
        with coupling():
            scored = self._scored_units(facts, n_units, stream.spawn("parts"))
            n_trials = number_of_trials(plan.mean, plan.shape, stream.spawn("number of trials"))
        # Rows of nobody are null in either part.
        of_rows = np.append(scored, False)[owners]
        parts = [
            tuple(None if values is None else _safe_indexing(values, places) for values in (X, y, persons))
            for places in (np.flatnonzero(~of_rows), np.flatnonzero(of_rows))
        ]
        of_scores = self._score_plan(plan, facts)
        best: _Trial | None = None
        for number in range(n_trials):
            with coupling():
                draws = stream.spawn("candidate").words(2)
            (params,) = ParameterSampler(self.param_distributions, 1, random_state=int(draws[0] % 2**32))
            seed = None if self.random_state is None else int(draws[1] % 2**62)
            with trial_of_search(number):
                trial = self._try(plan, of_scores, params, seed, parts, facts, stream.spawn("trial"))
            # The first of equal ones stays.
            best = trial if best is None or trial.score > best.score else best
        assert best is not None
        return best

    def _scored_units(self, facts: PublicFacts, n_units: int, draws: Stream) -> BoolArray:
        """Records on which trials are scored, drawn without a look at them."""
        if self.estimator.relation == "add-remove":
            # The others must not move to the other part with a record.
            threshold = np.uint64(math.floor(self.test_size * 2.0**64))
            return np.asarray(draws.words(n_units) < threshold)
        scored = np.zeros(n_units, dtype=bool)
        scored[np.argsort(draws.words(n_units), kind="stable")[: self._part_sizes(facts)[1]]] = True
        return scored

    def _try(
        self, plan: SearchPlan, of_scores: ScorePlan, params: dict[str, Any], seed: int | None,
        parts: Sequence[tuple[Any, ...]], facts: PublicFacts, stream: Stream,
    ) -> _Trial:  # fmt: skip
        """Fit and score one candidate; one that is refused for its parameters scores worst."""
        (X, y, persons), (X_scored, y_scored, scored_persons) = parts
        n_fitted, n_scored = self._part_sizes(facts)

        def candidate(epsilon: float) -> Any:
            n_public = None if self.estimator.n_public is None else n_fitted
            stated = {"epsilon": epsilon, "delta": self.delta, "n_public": n_public, "account": None}
            labels = {} if facts.labels is None else {"classes": tuple(facts.labels.tolist())}
            own = self.estimator.get_params(deep=False) | labels | params | stated | {"random_state": seed}
            return type(self.estimator)(**own)

        def price(epsilon: float) -> tuple[Event, bool] | None:
            try:
                priced = candidate(epsilon).plan_for(X, y, persons)
            except ParameterError:
                return None
            return priced.cost, priced.ordered

        epsilon = largest_epsilon(plan, price) if plan.private else math.inf
        if epsilon is None:
            return _Trial(params, None, -math.inf, math.nan)
        with block_of_records(1, (X, y)):
            model = candidate(epsilon).fit(X, y, persons)
        asked = metric_of(model, self.metric)
        with block_of_records(2, (X_scored, y_scored)):
            whose = None if persons is None else partial(read_persons, scored_persons, len(y_scored))
            source = read_source(
                asked, X_scored, y_scored, n_scored, whose,
                invalid=self.estimator.invalid, relation=self.estimator.relation,
            )  # fmt: skip
            sums = release_sums(of_scores, asked.sums(source, of_scores.term_bound), stream)
        value, deviation = asked.score(sums, n_scored, of_scores.deviation)
        return _Trial(params, model, value if is_classifier(model) else -value, deviation)

    def _score_plan(self, plan: SearchPlan, facts: PublicFacts) -> ScorePlan:
        """How trials are scored: with Gaussian noise that costs as much as a fit may."""
        asked, relation = unfitted_metric(self.estimator, self.metric, facts.labels), self.estimator.relation

        def at(epsilon: float) -> ScorePlan:
            finest = asked.finest if facts.unit == "record" else max(asked.finest, PERSON_WEIGHT)
            return plan_score(
                Budget(epsilon, self.delta), asked.what, finest=finest, counts=asked.counts, relation=relation,
                n_values=asked.n_values, accounted=True,
            )  # fmt: skip

        if not plan.private:
            return at(math.inf)
        epsilon = largest_epsilon(plan, lambda epsilon: (at(epsilon).cost, True))
        if epsilon is None:
            raise ParameterError("epsilon", self.epsilon, "a budget that pays for scores", "raise epsilon or delta")
        return at(epsilon)

    # ---- what is left of it

    def _certify(self, plan: SearchPlan, facts: PublicFacts, *, seeded: bool, account_head: str | None) -> Certificate:
        model = self.estimator
        public: dict[str, Any] = {
            "estimator": type(model).__name__,
            "features": facts.n_features,
            "records": facts.n_records,
            "invalid": model.invalid,
            "mean_trials": plan.mean,
            "law": self.law,
            "metric": self.metric,
            "test_size": float(self.test_size),
        }
        labels = {} if facts.labels is None else {"classes": facts.labels}
        return certify(
            plan.releases,
            plan.budget,
            relation=model.relation,
            public=public | labels,
            assumptions=(*_ASSUMPTIONS, BOUNDS, *admission_assumptions(model.invalid), *facts.assumptions),
            seeded=seeded,
            arithmetic=plan.arithmetic,
            unit=facts.unit,
            account_head=account_head,
        )

    def _store(self, best: _Trial, certificate: Certificate) -> None:
        model = best.model
        # What it cost alone is nothing that anybody may count on: it was chosen among others.
        model.certificate_ = certificate
        self.best_params_, self.best_estimator_ = best.params, model
        self.best_score_, self.best_score_std_ = best.score, best.deviation
        self.certificate_ = certificate
        self.n_features_in_ = model.n_features_in_
        vars(self).pop("feature_names_in_", None)
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_

    @property
    def classes_(self) -> Any:
        """The labels of a classifier."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_.classes_

    def _delegate(self, name: str, X: Any) -> Any:
        check_is_fitted(self, "best_estimator_")
        return getattr(self.best_estimator_, name)(X)

    def predict(self, X: Any) -> Any:
        """Predictions of the best model."""
        return self._delegate("predict", X)

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Probabilities of the classes by the best model."""
        return self._delegate("predict_proba", X)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Margins of the best model."""
        return self._delegate("decision_function", X)

    def score(self, X: Any, y: Any) -> float:
        """The accuracy or R2 of the best model on a table of the caller's, without noise."""
        check_is_fitted(self, "best_estimator_")
        value: float = self.best_estimator_.score(X, y)
        return value

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = deepcopy(inner.classifier_tags), deepcopy(inner.regressor_tags)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.required = True
        tags.non_deterministic = self.random_state is None
        return tags
