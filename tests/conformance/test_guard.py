"""No cell of a table makes a fit warn, and no warning of ours is lost: the guard around everything that reads data."""

import inspect
import threading
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from every_class import BY_NAME, EVERY_CLASS, PROVED, records, takes_sparse, target_for
from joblib import parallel_config
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.utils.validation import has_fit_parameter

import taciturn
from taciturn.core.errors import (
    DataError,
    DefaultBoundsWarning,
    ParameterError,
    SuspiciousReleaseWarning,
    TaciturnError,
    WeakBudgetWarning,
    WeakGuaranteeWarning,
)
from taciturn.core.guard import GUARDED_METHODS, Guarded, guarded, warn_caller

EXTREMES = (1.7e308, -1.7e308, 5e-324, -5e-324, 2.2e-308, 1e154, -0.0, 1e-160)
BOUNDS = (0.5, 1e-300, 1e300, 1.0)
# The widest and the narrowest bounds that are allowed, and two that are refused.
Y_BOUNDS = ((-1.0, 1.0), (0.0, 1e-300), (-4e300, 4e300), (1e300, 9e300), (-1.7e308, 1.7e308), (-5e-324, 5e-324))


def extreme_records(seed, n=300, d=5):
    """Mostly ordinary, with a few cells at the ends of what doubles can hold, and a column of nothing else."""
    rng = np.random.default_rng(seed)
    X, y = records(n, d, seed)
    some = rng.random(X.shape) < 0.02
    X[some] = rng.choice(EXTREMES, some.sum())
    X[:, 0] = rng.choice(EXTREMES, n)
    X[:, 1] = 1.7e308
    y[rng.random(n) < 0.1] = rng.choice(EXTREMES)
    return X, y


def fit_and_use(model, X, y):
    try:
        model.fit(X, y)
    except TaciturnError as error:
        return error
    if hasattr(model, "transform"):
        model.transform(X)
    if hasattr(model, "predict") and (hasattr(model, "classes_") or hasattr(model, "y_bounds")):
        # Squares of a range at the ends of the doubles are refused, as public facts.
        with suppress(ParameterError):
            taciturn.private_score(model, X, y, random_state=1)
    return None


@pytest.mark.parametrize("name", BY_NAME)
def test_extreme_values_raise_and_warn_of_nothing(name):
    refusals = []
    for case, (x_bound, y_bounds) in enumerate((x, y) for x in BOUNDS for y in Y_BOUNDS):
        X, y = extreme_records(case)
        model = EVERY_CLASS[name]()
        given = {key: value for key, value in (("x_bound", x_bound), ("y_bounds", y_bounds)) if key in vars(model)}
        if not given and case >= 3:
            break
        model.set_params(**given)
        y = target_for(model, y)
        tables = [X, sp.csr_array(np.where(X == 0.0, 0.0, X))] if takes_sparse(model) else [X]
        for table in tables:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                # Of public facts and releases.
                for kind in (WeakBudgetWarning, WeakGuaranteeWarning, DefaultBoundsWarning, SuspiciousReleaseWarning):
                    warnings.simplefilter("ignore", kind)
                refusals.append(fit_and_use(EVERY_CLASS[name]().set_params(**given), table, y))
    # What is refused is refused for public facts, since all of these records are admissible; most settings must work.
    # Reproductions assume features within [-1, 1] and may fail for others, in our words.
    if name in PROVED:
        assert [error for error in refusals if isinstance(error, DataError)] == []
        assert refusals.count(None) >= len(refusals) // 2


@pytest.mark.parametrize("name", BY_NAME)
def test_every_public_method_that_reads_private_data_is_guarded(name):
    kind = EVERY_CLASS[name].kind
    for method in GUARDED_METHODS:
        function = getattr(kind, method, None)
        if function is not None and function.__module__.startswith("taciturn"):
            assert _is_guarded(function), f"{kind.__name__}.{method}"
    assert _is_guarded(kind.fit)


def test_the_score_is_guarded():
    assert _is_guarded(taciturn.private_score)


def _is_guarded(function):
    return inspect.unwrap(function, stop=lambda f: f.__code__ is _inside_code()).__code__ is _inside_code()


def _inside_code():
    return guarded(len).__code__


def test_an_unguarded_method_is_noticed():
    class Forgetful(BaseEstimator):
        def fit(self, X, y):
            return self

    assert not _is_guarded(Forgetful.fit)


class Noisy(Guarded, BaseEstimator):
    """A new class whose author thought of nothing."""

    def fit(self, X, y=None):
        np.array([1.7e308]) * X.max()
        np.log(np.array([-1.0]))
        warnings.warn("a value of 17 in row 3", RuntimeWarning, stacklevel=1)
        warnings.warn("did not converge in row 3", ConvergenceWarning, stacklevel=1)
        warn_caller("few records", WeakBudgetWarning)
        return self


class Plain(Noisy.__mro__[2]):
    """The same without the base."""

    fit = inspect.unwrap(Noisy.fit)


def caught(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [(warning.category, warning.filename) for warning in found]


def test_only_our_own_warnings_pass_and_name_the_callers_line():
    X = np.array([[1e10]])
    assert caught(lambda: Noisy().fit(X)) == [(WeakBudgetWarning, __file__)]
    # Without the base, everything passes.
    assert len(caught(lambda: Plain().fit(X))) == 5


def test_warnings_outside_of_a_guard_are_none_of_its_business():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Noisy().fit(np.ones((1, 1)))
    assert [category for category, _ in caught(lambda: np.log(np.array([-1.0])))] == [RuntimeWarning]


def test_a_guard_in_one_thread_leaves_the_others_their_warnings():
    inside, leave = threading.Event(), threading.Event()

    @guarded
    def wait():
        inside.set()
        leave.wait()

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        thread = threading.Thread(target=wait)
        thread.start()
        inside.wait()
        warnings.warn("from outside", RuntimeWarning, stacklevel=1)
        leave.set()
        thread.join()
    assert [str(warning.message) for warning in found] == ["from outside"]


def test_guards_do_not_pile_up_filters():
    with warnings.catch_warnings():
        for _ in range(20):
            warnings.simplefilter("ignore", UserWarning)
            Noisy().fit(np.ones((1, 1)))
        assert sum(entry[1].__class__.__name__ == "_PrivateWarnings" for entry in warnings.filters) == 1


def test_workers_of_other_threads_are_guarded_too():
    X, y = extreme_records(0)
    with warnings.catch_warnings(), parallel_config(backend="threading"):
        warnings.simplefilter("error")
        # An x_bound that public facts warn of would hide what cells do.
        bounds = {"x_bound": 1.0, "y_bounds": (-1, 1)}
        taciturn.BlockVoteSelector(n_features_to_select=2, n_blocks=4, **bounds, n_jobs=2).fit(X, y)


@pytest.mark.parametrize(
    "error", [OverflowError, FloatingPointError, ZeroDivisionError, ValueError, np.linalg.LinAlgError]
)
def test_exceptions_of_arithmetic_are_replaced_by_one_sentence(error):
    class Failing(Guarded, BaseEstimator):
        def fit(self, X, y=None):
            raise error("singular in row 3")

    with pytest.raises(DataError, match=r"^X or y: the computation failed for these records") as caught_error:
        Failing().fit(None)
    assert caught_error.value.__context__ is None


def test_warnings_of_scikit_learn_from_public_facts_pass():
    X, y = records(400)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    selector = taciturn.CorrelationSelector(n_features_to_select=2, random_state=0).fit(frame, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        selector.transform(X)
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        taciturn.FrankWolfeRegressor(n_steps=2, random_state=0).fit(X, y[:, None])


def test_our_warnings_reach_the_caller_through_the_guard():
    X, y = records(40)
    with pytest.warns(WeakBudgetWarning, match="expected .* records or more") as weak:
        taciturn.SparseRegressor(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="n_features_to_select=10 is more than the 6 features") as many:
        taciturn.CorrelationSelector(random_state=0).fit_transform(X, y)
    assert {warning.filename for warning in (*weak, *many)} == {__file__}


# ------------------------------------------------------------------ weights of records


WEIGHTED = {"SparseRegressor", "SparseClassifier", "SparseSurvival"}
"""Classes with a proof for weights of records: ``test_weights``."""


@pytest.mark.parametrize("name", BY_NAME)
def test_weights_of_records_are_refused_by_a_sentence_of_ours(name):
    X, y = records()
    model = EVERY_CLASS[name]()
    y = target_for(model, y)
    weighs = type(model).__name__ in WEIGHTED and name in PROVED
    assert has_fit_parameter(model, "sample_weight") == weighs
    if weighs:
        with pytest.raises(DataError, match="^sample_weight: expected ") as caught:
            model.fit(X, y, sample_weight=np.full(len(X), -4711.0))
        assert "4711" not in str(caught.value)
        return
    sentence = f"^sample_weight: expected none, since {type(model).__name__} has no proof for weights of records; leave"
    with pytest.raises(TypeError, match=sentence) as caught:
        model.fit(X, y, sample_weight=np.full(len(X), 4711.0))
    assert isinstance(caught.value, DataError)
    assert "4711" not in str(caught.value)
    # Searches and ensembles of scikit-learn, which ask for the parameter, pass None on.
    assert model.fit(X, y, sample_weight=None) is model


def test_a_class_that_takes_weights_gets_them():
    class Weighted(Guarded):
        def fit(self, X, y=None, sample_weight=None):
            return sample_weight

    assert Weighted().fit(None, sample_weight=3) == 3
