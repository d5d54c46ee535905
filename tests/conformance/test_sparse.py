"""What the default model promises beyond the contract of every class."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from dp_accounting import gaussian_mechanism
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from taciturn import SparseClassifier, SparseRegressor
from taciturn.core.errors import ParameterError, WeakBudgetWarning
from taciturn.data.reading import ADMISSIBLE
from taciturn.data.sensitivity import largest_eigenvalue
from taciturn.estimators.sparse import EIGENVALUE
from taciturn.events import NotPrivateEvent
from taciturn.fitting.sparse_choices import candidate_n_nonzero

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.core.errors.WeakBudgetWarning")

ALL = [SparseRegressor, SparseClassifier]
INF = float("inf")
MU = 1.0 / gaussian_mechanism.get_sigma_gaussian(1.0, 1e-6)


def data(kind=None, n=4000, d=12):
    X = np.random.default_rng(0).uniform(-1, 1, (n, d))
    signal = 0.5 * X[:, 2] - 0.4 * X[:, 7]
    return X, (signal > 0).astype(int) if kind is SparseClassifier else np.clip(signal, -1, 1)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("d", [12, 100])
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_signals_are_found_and_certified(kind, d, relation):
    X, y = data(kind, n=8000, d=d)
    model = kind(n_nonzero=2, relation=relation, n_public=8000, random_state=1).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [2, 7]
    assert model.score(X, y) > 0.85
    certificate = model.certificate_
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("proved", 1.0, 1e-6)
    assert (certificate.relation, certificate.arithmetic, certificate.seeded) == (relation, "exact", True)
    assert certificate.public["records"] == 8000
    assert any(release.what[0].isdigit() for release in certificate.events) == (d == 100)
    gradients = [release for release in certificate.events if release.what.startswith("a gradient")]
    assert sum(release.count for release in gradients) == model.n_iter_


# ------------------------------------------------------------------ the road, and what it costs


@pytest.mark.parametrize("kind", ALL)
def test_public_facts_choose_the_road_and_the_certificate_says_why(kind):
    enough = 3.0 * 4 / MU**2
    for n, method in ((int(0.97 * enough), "one-shot"), (int(1.03 * enough), "two-phase")):
        public = kind(n_nonzero=4).fit(*data(kind, n=n)).certificate_.public
        assert public["method"] == method
        assert public["reason"].startswith(f"n mu^2 / k = {n * MU**2 / 4:.3g} with {n:,} records")
        for name in ("one-shot", "two-phase"):
            public = kind(n_nonzero=4, method=name).fit(*data(kind, n=n)).certificate_.public
            assert (public["method"], public["reason"]) == (name, "chosen by name")
    for facts in ({"n_nonzero": 12}, {"n_nonzero": 500, "method": "one-shot"}):
        assert kind(**facts).fit(*data(kind, n=100)).certificate_.public["method"] == "all columns"
    # Only a first descent can tell the size.
    assert kind(n_nonzero="auto").fit(*data(kind, n=100)).certificate_.public["method"] == "two-phase"
    # A private number of records decides nothing.
    private = kind(n_nonzero=4, relation="add-remove", n_public=10**6).fit(*data(kind, n=100))
    assert private.certificate_.public["method"] == "two-phase"


@pytest.mark.parametrize("kind", ALL)
def test_what_is_given_costs_nothing(kind):
    X, y = data(kind, n=1000)

    def paid(**given):
        events = kind(n_nonzero=2, random_state=0, **given).fit(X, y).certificate_.events
        second = events[-1]
        assert second.what.endswith("of the estimation phase")
        return {release.what for release in events}, second.count / second.scale**2

    everything, price = paid()
    rows = {"the median row norm before rows are centred", "the median row norm in the selection phase"}
    gone = {"row_bound": (1.5, rows)}
    if kind is SparseRegressor:
        gone["residual_clip"] = (0.2, {"the median magnitude of the target"})
    for name, (value, what) in gone.items():
        left, higher = paid(**{name: value})
        assert everything - left == what
        assert left < everything
        assert price < higher < 1.2 * price
    left, _ = paid(fit_intercept=False)
    assert not any("mean" in what or "centred" in what or "share of each class" in what for what in left)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("method", ["one-shot", "two-phase"])
def test_the_certificate_says_what_is_assumed_of_an_eigenvalue(kind, method):
    """The one released number whose rounding is not proved: c = 4 in ``largest_eigenvalue``."""
    X, y = data(kind, n=300)
    certificate = kind(n_nonzero=2, method=method, random_state=0).fit(X, y).certificate_
    assert any("largest eigenvalue" in release.what for release in certificate.events)
    assert "relative error of at most 4 m 2**-53" in EIGENVALUE
    assert certificate.assumptions.count(EIGENVALUE) == 1
    assert EIGENVALUE in " ".join(str(certificate).split())
    exact = kind(epsilon=INF, n_nonzero=2, method=method).fit(X, y).certificate_
    assert EIGENVALUE not in exact.assumptions
    # And that much is allowed for, on both neighbours.
    for m in (2, 200):
        rounding = 2 * 4 * m * 2.0**-53 * (1000 * 2**26)
        assert largest_eigenvalue(2**26, m, 1000, "zero-out").value >= 2**26 + rounding + 1.0


@pytest.mark.parametrize("kind", ALL)
def test_weak_budgets_are_named_by_public_facts_alone(kind):
    def warned(X, y, **parameters):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kind(**parameters).fit(X, y)
        assert all(issubclass(one.category, WeakBudgetWarning) for one in caught)
        return [str(one.message) for one in caught]

    enough = int(np.ceil(40 / MU))
    X, y = data(kind, n=enough)
    (message,) = warned(X[1:], y[1:])
    assert message.startswith(f"epsilon=1.0: expected {enough:,} records or more at this budget (got {enough - 1:,})")
    assert warned(0.0 * X[1:], np.arange(enough - 1) % 2) == [message]
    assert warned(X, y) == []
    assert warned(X[:30], y[:30], epsilon=INF) == []
    # Under add-remove the public number counts, whatever the true one.
    assert warned(X[:30], y[:30], relation="add-remove", n_public=enough) == []
    private = {"relation": "add-remove", "n_public": 20}
    assert warned(X, y, **private) == warned(X[:30], y[:30], **private) != []


BAD = [
    *({"n_nonzero": "all"}, {"row_bound": 1e-3}, {"method": "one-shot", "n_nonzero": "auto"}),
    {"residual_clip": 1e9},
]


@pytest.mark.parametrize(
    ("kind", "parameters"), [(SparseRegressor, BAD[-1]), *((kind, bad) for kind in ALL for bad in BAD[:-1])], ids=str
)
def test_settings_that_cannot_be_planned_are_refused_before_data_are_read(kind, parameters):
    with pytest.raises(ParameterError, match=f"^{next(iter(parameters))}="):
        kind(**parameters).fit("no table", None)


def test_budgets_that_need_more_than_64_bits_are_refused():
    with pytest.raises(ParameterError, match="^epsilon="):
        SparseRegressor(epsilon=1e-7).fit(*data(n=50))


@pytest.mark.parametrize("kind", ALL)
def test_row_bounds_beyond_all_rows_are_no_bounds(kind):
    X, y = data(kind, n=300)
    fits = [kind(n_nonzero=12, row_bound=bound, random_state=0).fit(X, y).coef_ for bound in (12**0.5, 1e200)]
    assert np.array_equal(*fits)


# ------------------------------------------------------------------ units, layouts, frames


def test_units_of_the_target_are_those_of_the_user():
    X, y = data()
    mapped = SparseRegressor(n_nonzero=3, random_state=3).fit(X, y)
    celsius = SparseRegressor(n_nonzero=3, random_state=3, y_bounds=(10.0, 50.0)).fit(X, 30 + 20 * y)
    assert np.allclose(celsius.coef_, 20 * mapped.coef_)
    assert celsius.intercept_ == pytest.approx(30 + 20 * mapped.intercept_)
    assert np.allclose(celsius.predict(X), 30 + 20 * mapped.predict(X))


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("row_bound", ["auto", 2.0])
def test_units_of_the_features_are_those_of_the_user(kind, row_bound):
    X, y = data(kind)
    unit = kind(n_nonzero=3, row_bound=row_bound, random_state=3).fit(X, y)
    grams_bound = row_bound if row_bound == "auto" else 1000 * row_bound
    grams = kind(n_nonzero=3, row_bound=grams_bound, x_bound=1000.0, random_state=3).fit(1000 * X, y)
    assert np.allclose(grams.coef_ * 1000, unit.coef_)
    assert np.allclose(grams.intercept_, unit.intercept_)


def test_predictions_are_clipped_to_the_range_of_the_target():
    X, y = data()
    model = SparseRegressor(n_nonzero=2, y_bounds=(-0.2, 0.3), random_state=0).fit(X, y)
    free = X @ model.coef_ + model.intercept_
    assert free.min() < -0.2 < 0.3 < free.max()
    assert np.array_equal(model.predict(X), np.clip(free, -0.2, 0.3))


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("d", [12, 90])
def test_layouts_and_the_order_of_records_change_nothing(kind, d):
    X, y = data(kind, n=1500, d=d)
    X = np.where(np.abs(X) < 0.3, 0.0, X).astype(np.float32).astype(np.float64)
    order = np.random.default_rng(0).permutation(1500)
    model = kind(n_nonzero=3, random_state=4)
    first = clone(model).fit(X, y)
    for convert in (sp.csr_matrix, sp.csc_matrix, sp.csr_array, np.asfortranarray, np.float32):
        assert np.array_equal(clone(model).fit(convert(X), y).coef_, first.coef_)
    shuffled = clone(model).fit(X[order], y[order])
    assert np.array_equal(shuffled.coef_, first.coef_)
    assert np.array_equal(shuffled.intercept_, first.intercept_)
    assert not np.array_equal(clone(model).set_params(random_state=5).fit(X, y).coef_, first.coef_)


# ------------------------------------------------------------------ small, degenerate and large tables


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("n_nonzero", [1, "auto"])
def test_two_records_are_fitted_too(n, n_nonzero):
    rng = np.random.default_rng(n)
    tables = [rng.uniform(-1, 1, (n, 1)), rng.uniform(-1, 1, (n, 70)), np.zeros((n, 3)), np.ones((n, 3))]
    for X in [*tables, sp.csr_array((n, 70))]:
        for epsilon in (0.1, 1.0):
            for n_classes in (0, 2, 3):
                common = {"epsilon": epsilon, "n_nonzero": n_nonzero, "random_state": 0}
                model = SparseClassifier(classes=range(n_classes), **common) if n_classes else SparseRegressor(**common)
                model.fit(X, np.arange(n) % 2)
                assert all(np.isfinite(value).all() for value in (model.coef_, model.intercept_))
                assert n_nonzero == "auto" or model.support_.sum() <= n_nonzero
                assert model.predict(X).shape == (n,)


def test_intercepts_are_found_where_they_are_fitted():
    X, y = data(n=12_000)
    model = SparseRegressor(n_nonzero=2, y_bounds=(-2, 2), random_state=0).fit(X, 0.7 + y)
    assert model.intercept_ == pytest.approx(0.7, abs=0.03)
    # Columns far from their middle are centred.
    shifted = SparseRegressor(n_nonzero=2, random_state=0).fit(0.5 * X + 0.5, y)
    assert np.flatnonzero(shifted.support_).tolist() == [2, 7]
    assert shifted.coef_[[2, 7]] == pytest.approx([1.0, -0.8], rel=0.1)
    labels = (X[:, 2] > -0.5).astype(int)
    with_intercept = SparseClassifier(n_nonzero=1, random_state=0).fit(X, labels)
    without = SparseClassifier(n_nonzero=1, fit_intercept=False, random_state=0).fit(X, labels)
    assert with_intercept.score(X, labels) > 0.93
    assert without.intercept_ == 0.0
    assert without.score(X, labels) < 0.8


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1, 2), ("a", "b", "c", "d")])
def test_any_number_of_classes_is_learned(labels):
    X, _ = data(n=8000)
    y = np.array(labels)[np.digitize(X[:, 5], np.linspace(-1, 1, len(labels) + 1)[1:-1])]
    model = SparseClassifier(classes=labels, n_nonzero=1, random_state=0).fit(X, y)
    n_outputs = 1 if len(labels) == 2 else len(labels)
    assert model.coef_.shape == (n_outputs, 12)
    assert np.flatnonzero(model.support_).tolist() == [5]
    assert model.score(X, y) > 1.5 / len(labels)
    bounds = "the bounds were chosen without looking at these data"
    assert model.certificate_.assumptions == (bounds, ADMISSIBLE, EIGENVALUE)


def test_sizes_are_chosen_near_the_truth_and_from_three_on():
    for d in (1, 2, 3, 7, 20, 21, 500):
        sizes = candidate_n_nonzero(d)
        assert (sizes[0], sizes[-1]) == (min(3, d), d)
        assert (np.diff(sizes) > 0).all()
    X, _ = data(n=8000, d=40)
    y = np.clip(X[:, :6] @ [0.3, -0.3, 0.2, 0.2, -0.2, 0.3], -1, 1)
    for kind in ALL:
        target = (y > 0).astype(int) if kind is SparseClassifier else y
        model = kind(n_nonzero="auto", epsilon=4.0, random_state=0).fit(X, target)
        assert model.support_[:6].all()
        assert model.support_.sum() <= 12


@pytest.mark.parametrize("kind", ALL)
def test_no_chosen_size_is_below_three(kind):
    y = np.arange(200) % 2
    for d in (2, 12):
        X = data(n=200)[0][:, :d]
        counts = [kind(n_nonzero="auto", random_state=s).fit(X, y).support_.sum() for s in range(20)]
        assert min(counts) == min(3, d)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("method", ["one-shot", "two-phase"])
def test_wide_sparse_tables_stay_sparse(kind, method):
    rng, n, d = np.random.default_rng(0), 3000, 200_000
    places = np.arange(n).repeat(30), rng.integers(0, d, 30 * n)
    X = sp.csr_array((rng.uniform(0.1, 1.0, 30 * n), places), shape=(n, d))
    y = (np.arange(n) % 2).astype(int)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    kind(method=method, random_state=0).fit(X, y)
    tracemalloc.start()
    model = kind(method=method, random_state=0).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.support_.sum() <= 10
    # A dense copy would take five gigabytes.
    assert peak < 4 * size + 60 * d


# ------------------------------------------------------------------ without privacy


def test_noiseless_regression_is_least_squares_on_its_support():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (600, 40))
    y = np.clip(X[:, :3] @ [0.3, -0.3, 0.2] + 0.1 + rng.normal(0, 0.05, 600), -1, 1)
    reference = LinearRegression().fit(X[:, :3], y)
    for n_nonzero in (3, "auto"):
        model = SparseRegressor(epsilon=INF, n_nonzero=n_nonzero).fit(X, y)
        assert np.flatnonzero(model.support_).tolist() == [0, 1, 2]
        assert np.allclose(model.coef_[:3], reference.coef_, rtol=1e-2)
        assert model.intercept_ == pytest.approx(reference.intercept_, rel=1e-2)
        assert model.certificate_.status == "not private"
        assert all(isinstance(release.event, NotPrivateEvent) for release in model.certificate_.events)


def test_clips_of_noiseless_regressions_do_not_bind():
    X, _ = data(n=600)
    y = np.clip(0.5 * X[:, 2] + 0.1 + np.random.default_rng(0).normal(0, 0.1, 600), -1, 1)
    model = SparseRegressor(epsilon=INF, n_nonzero=1).fit(X, y)
    assert model.coef_[2] == pytest.approx(LinearRegression().fit(X[:, [2]], y).coef_[0], rel=1e-3)


def test_noiseless_classification_minimises_the_loss_with_clipped_derivatives():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (600, 30))
    y = (X[:, :2] @ [3.0, -2.0] + 0.5 + rng.logistic(size=600) > 0).astype(int)
    model = SparseClassifier(epsilon=INF, n_nonzero=2).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [0, 1]

    def loss(w):
        # On the wrong side the derivative of the logistic loss passes one half; there it goes on in a straight line.
        z = (2 * y - 1) * (X[:, :2] @ w[:2] + w[2])
        return np.where(z < 0, np.log(2) - z / 2, np.logaddexp(0, -np.abs(z))).sum()

    best = minimize(loss, np.zeros(3), tol=1e-9).x
    assert np.allclose(np.append(model.coef_[0, :2], model.intercept_), best, rtol=1e-2)
