"""Bounds that nobody stated, budgets that protect little: warnings from parameters and public facts alone."""

import warnings

import numpy as np
import pytest
from every_class import EVERY_CLASS, PROVED
from sklearn.base import is_classifier

import taciturn
from taciturn.core.errors import DefaultBoundsWarning, ParameterError, WeakBudgetWarning, WeakGuaranteeWarning

N = 400
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, 6))
NUMBERS = np.clip(X[:, 0] + 0.1 * RNG.normal(size=N), -1, 1)
LABELS = (NUMBERS > 0).astype(int)

BOUNDED = [name for name in PROVED if "x_bound" in vars(EVERY_CLASS[name]())]
SPENDING = [name for name in PROVED if "epsilon" in vars(EVERY_CLASS[name]())]
STATED = {"x_bound": 1.0, "y_bounds": (-1.0, 1.0)}


def new(name, **parameters):
    """A seeded model with small settings, and the target it takes."""
    model = EVERY_CLASS[name]()
    parameters = {"random_state": 0, "epsilon": 1.0} | parameters
    model.set_params(**{key: value for key, value in parameters.items() if key in vars(model)})
    if is_classifier(model):
        return model.set_params(classes=(0, 1)), LABELS
    return model, NUMBERS


def warned(model, y, category, X=X):
    """The warnings of a category in a fit, in words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", category)
        model.fit(X, y)
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught]


def released(model):
    names = ("coef_", "intercept_", "support_", "y_bounds_")
    return [np.asarray(getattr(model, name)).tobytes() for name in names if hasattr(model, name)]


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_whose_width_is_no_number_are_refused_before_anything_is_reserved(name, monkeypatch):
    reserved = []
    monkeypatch.setattr("taciturn.methods.base.PrivateEstimator._reserve", lambda *plans: reserved.append(plans))
    for bad in ({"x_bound": 1e308}, {"x_bound": 5e-324}, {"y_bounds": (-1e308, 1e308)}, {"y_bounds": (0.0, 1e-323)}):
        model, y = new(name, **STATED)
        if bad.keys() <= vars(model).keys():
            with pytest.raises(ParameterError, match=f"^{next(iter(bad))}=.*1e-301 to"):
                model.set_params(**bad).fit(X, y)
    assert not reserved


@pytest.mark.parametrize("name", BOUNDED)
def test_bounds_that_are_not_given_are_one_and_are_told_of(name):
    model, y = new(name, x_bound=None, y_bounds=None)
    said = warned(model, y, DefaultBoundsWarning)
    expected = ["x_bound=None: expected"] + ["y_bounds=None: expected"] * ("y_bounds" in vars(model))
    assert [message[: len(start)] for message, start in zip(said, expected, strict=True)] == expected
    # A parameter stays what it was, the fit is that of the default, and the certificate states the number.
    assert model.x_bound is None
    stated, _ = new(name, **STATED)
    assert warned(stated, y, DefaultBoundsWarning) == []
    assert released(model) == released(stated)
    assert model.certificate_ == stated.certificate_
    assert model.certificate_.public["x_bound"] == 1.0


@pytest.mark.parametrize("name", BOUNDED)
def test_other_bounds_give_other_fits(name):
    # The comparison above could tell a default of two from one of one.
    model, y = new(name, x_bound=None, y_bounds=None)
    wider, _ = new(name, x_bound=2.0, y_bounds=(-2.0, 2.0))
    warned(model, y, DefaultBoundsWarning)
    warned(wider, y, DefaultBoundsWarning)
    assert model.certificate_ != wider.certificate_


@pytest.mark.parametrize("name", BOUNDED)
def test_one_bound_for_several_columns_is_told_of_with_the_remedy(name):
    model, y = new(name, x_bound=2.5, y_bounds=(-1.0, 1.0))
    (message,) = warned(model, y, DefaultBoundsWarning)
    assert message.startswith("x_bound=2.5: expected columns of about this range")
    assert "BoundedScaler(bounds=" in message
    # By public facts alone: cells do not matter, and one column shares its bound with no other.
    assert warned(model, y, DefaultBoundsWarning, X=2.5 * X) == [message]
    alone, _ = new(name, x_bound=2.5, y_bounds=(-1.0, 1.0), n_features_to_select=1)
    assert warned(alone, y, DefaultBoundsWarning, X=X[:, :1]) == []


@pytest.mark.parametrize("name", [name for name in BOUNDED if "classes" in vars(EVERY_CLASS[name]())])
def test_labels_have_no_bounds(name):
    model, _ = new(name, x_bound=1.0, y_bounds=None)
    assert warned(model.set_params(classes=(0, 1)), LABELS, DefaultBoundsWarning) == []


def test_defaults_are_none_everywhere():
    for name in BOUNDED:
        kind = type(EVERY_CLASS[name]())
        defaults = kind().get_params()
        assert [defaults[key] for key in STATED if key in defaults] == [None] * len(STATED.keys() & defaults.keys())


@pytest.mark.filterwarnings("error::taciturn.DefaultBoundsWarning")
def test_nothing_is_spent_where_the_warning_is_an_error(tmp_path):
    url = f"sqlite:///{tmp_path}/study.db"
    account = taciturn.Account.create(url, "a", epsilon=2.0, delta=1e-5, n=N)
    with pytest.raises(DefaultBoundsWarning):
        taciturn.SparseRegressor(account=account).fit(X, NUMBERS)
    assert account.history() == taciturn.Account.open(url, "a").history()
    assert account.remaining_epsilon(1e-5) == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("name", SPENDING)
def test_weak_guarantees_are_told_of(name):
    def said(**parameters):
        model, y = new(name, **STATED, **parameters)
        return warned(model, y, WeakGuaranteeWarning)

    assert said(epsilon=9.99) == said(epsilon=float("inf")) == []
    for epsilon in (10.0, 30.0):
        (message,) = said(epsilon=epsilon)
        assert message.startswith(f"epsilon={epsilon!r}: expected less than 10 ")
    assert said(delta=0.99 / N) == []
    many = said(delta=1.0 / N)
    # A pure mechanism leaves delta unused, and its certificate says so.
    model, y = new(name, **STATED, delta=1.0 / N)
    warned(model, y, WeakBudgetWarning)
    if model.certificate_.delta == 0.0:
        assert many == []
    else:
        (message,) = many
        assert message.startswith(f"delta={1.0 / N!r}: expected less than one over the number of records ({N})")


@pytest.mark.parametrize("name", SPENDING)
def test_more_than_thirty_is_refused(name):
    model, y = new(name, **STATED, epsilon=30.1)
    with pytest.raises(ParameterError, match=r"epsilon=30\.1: expected a number >= 1e-09 and at most 30"):
        model.fit(X, y)


def test_persons_count_where_they_are_protected():
    keys = np.arange(N) // 4
    persons = taciturn.CorrelationSelector(**STATED, delta=1.5 / N, mechanism="gumbel", n_features_to_select=2)
    with pytest.warns(WeakGuaranteeWarning, match="record"):
        persons.fit(X, NUMBERS)
    # The same delta is below one over the number of persons.
    persons.fit(X, NUMBERS, persons=keys)
