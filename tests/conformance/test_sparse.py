"""What the default model promises beyond the contract of every class."""

import tracemalloc
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.sparse as sp
from dp_accounting import gaussian_mechanism
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression

from taciturn import SparseClassifier, SparseRegressor
from taciturn.core.errors import ParameterError, SuspiciousReleaseWarning, WeakBudgetWarning
from taciturn.data.records import ADMISSIBLE
from taciturn.events import NotPrivateEvent
from taciturn.methods.sparse.run import candidate_sizes

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.core.errors.WeakBudgetWarning")

ALL = [SparseRegressor, SparseClassifier]
INF = float("inf")
MU = 1.0 / gaussian_mechanism.get_sigma_gaussian(1.0, 1e-6)


def data(kind=None, n=4000, d=12):
    X = np.random.default_rng(0).uniform(-1, 1, (n, d))
    signal = 0.5 * X[:, 2] - 0.4 * X[:, 7]
    return X, (signal > 0).astype(int) if kind is SparseClassifier else np.clip(signal, -1, 1)


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("d", [12, 600])
@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
def test_signals_are_found_and_certified(kind, d, relation):
    X, y = data(kind, n=3000, d=d)
    model = kind(n_nonzero=2, relation=relation, n_public=3000, epsilon=1.0, random_state=1).fit(X, y)
    assert np.flatnonzero(model.support_).tolist() == [2, 7]
    assert model.score(X, y) > 0.85
    certificate = model.certificate_
    assert (certificate.status, certificate.epsilon, certificate.delta) == ("proved", 1.0, 1e-6)
    assert (certificate.relation, certificate.arithmetic, certificate.seeded) == (relation, "exact", True)
    assert certificate.public["records"] == 3000
    # Everything is exact: nothing is assumed but what every class assumes.
    assumed = {"the bounds were chosen without looking at these data", ADMISSIBLE, "the set of labels is public"}
    assert set(certificate.assumptions) <= assumed | {"there are at most 67,108,864 records"}
    # There is too little for a descent on six hundred columns.
    assert any(release.what[0].isdigit() for release in certificate.events) == (d == 600)
    gradients = [release for release in certificate.events if release.what.startswith("a gradient")]
    assert sum(release.count for release in gradients) == model.n_iter_


# ------------------------------------------------------------------ the road, and what it costs


@pytest.mark.parametrize("kind", ALL)
def test_public_facts_choose_the_strategy_and_the_certificate_says_why(kind):
    enough = 3.0 * 4 / MU**2
    for n, method in ((int(0.97 * enough), "one-shot"), (int(1.03 * enough), "two-phase")):
        public = kind(n_nonzero=4).fit(*data(kind, n=n, d=200)).certificate_.public
        assert public["method"] == method
        assert public["reason"].startswith(f"n mu^2 / k = {n * MU**2 / 4:.3g} with {n:,} records")
        for name in ("one-shot", "two-phase"):
            public = kind(n_nonzero=4, method=name).fit(*data(kind, n=n, d=200)).certificate_.public
            assert (public["method"], public["reason"]) == (name, "chosen by name")
    for facts in ({"n_nonzero": 12}, {"n_nonzero": "all"}, {"n_nonzero": 500, "method": "one-shot"}):
        assert kind(**facts).fit(*data(kind, n=100)).certificate_.public["method"] == "dense"
    # Only a first descent can tell the size; small tables with enough for every column have no comparison of sizes.
    sharp = int(150.0 / MU)
    for n, d, method in (
        (sharp, 12, "dense"),
        (sharp + 1, 12, "two-phase"),
        (100, 12, "dense"),
        (100, 16, "two-phase"),
    ):
        assert kind(n_nonzero="auto").fit(*data(kind, n=n, d=d)).certificate_.public["method"] == method
    # Of very few records a constant is all that can be told.
    few = int(5.0 / MU)
    for n, method in ((few, "constant"), (few + 1, "two-phase")):
        model = kind(n_nonzero="auto", random_state=0).fit(*data(kind, n=n))
        assert model.certificate_.public["method"] == method
        assert method != "constant" or (not model.support_.any() and len(model.certificate_.events) == 1)
    # A private number of records decides nothing; that there are far fewer is only told by what is released.
    with pytest.warns(SuspiciousReleaseWarning, match="and n_public") if is_classifier(kind()) else nullcontext():
        private = kind(n_nonzero=4, relation="add-remove", n_public=10**6).fit(*data(kind, n=100))
    assert private.certificate_.public["method"] == "two-phase"


@pytest.mark.parametrize("kind", ALL)
def test_what_is_given_costs_nothing(kind):
    X, y = data(kind, n=1000)

    def paid(**given):
        events = kind(n_nonzero=2, method="two-phase", random_state=0, **given).fit(X, y).certificate_.events
        gradients = [release for release in events if release.what.startswith("a gradient")]
        others = {release.what for release in events if release not in gradients}
        return others, sum(release.count / release.scale**2 for release in gradients)

    everything, price = paid()
    norms = {"the median row norm before rows are centred", "a quantile of row norms in the selection phase"}
    gone = {"row_bound": (1.5, norms)}
    if kind is SparseRegressor:
        medians = {"the median magnitude of the target", "the median magnitude of residuals"}
        gone["residual_clip"] = (0.2, medians)
    for name, (value, what) in gone.items():
        left, higher = paid(**{name: value})
        assert everything - left == what
        assert left < everything
        assert price < higher < 1.3 * price
    left, _ = paid(fit_intercept=False)
    assert not any("mean" in what or "centred" in what or "share of each class" in what for what in left)
    # There is no constant to recalibrate either.
    assert any(what.startswith(("moments", "numbers of records")) for what in everything - left)


@pytest.mark.parametrize("kind", ALL)
def test_weak_budgets_are_named_by_public_facts_alone(kind):
    stated = {"x_bound": 1.0} | ({} if is_classifier(kind()) else {"y_bounds": (-1, 1)})

    def warned(X, y, **parameters):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            kind(**stated, **parameters).fit(X, y)
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
    *({"n_nonzero": "some"}, {"n_nonzero": 0}, {"n_nonzero": 2.5}, {"row_bound": 1e-3}, {"method": "dense"}),
    {"method": "one-shot", "n_nonzero": "auto"},
]
OF_REGRESSIONS = [{"residual_clip": 1e9}, {"residual_clip": 0.0}, {"loss": "absolute"}, {"loss": None}, {"loss": 2}]


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [*((SparseRegressor, bad) for bad in OF_REGRESSIONS), *((kind, bad) for kind in ALL for bad in BAD)],
    ids=str,
)
def test_settings_that_cannot_be_planned_are_refused_before_data_are_read(kind, parameters):
    with pytest.raises(ParameterError, match=f"^{next(iter(parameters))}="):
        kind(**parameters).fit("no table", None)


@pytest.mark.parametrize("kind", ALL)
def test_a_misspelt_size_is_told_that_whole_numbers_are_sizes_too(kind):
    with pytest.raises(ParameterError, match="^n_nonzero='al': expected 'auto', 'all' or a whole number >= 1; set"):
        kind(n_nonzero="al").fit("no table", None)
    with pytest.raises(ParameterError, match="^row_bound='al': expected 'auto' or a finite number > 0; set"):
        kind(row_bound="al").fit("no table", None)


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
    with pytest.warns(SuspiciousReleaseWarning, match="most lie at or beyond them"):
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


def test_sizes_are_chosen_near_the_truth():
    for d in (1, 2, 3, 7, 20, 21, 500, 501, 5000):
        sizes = candidate_sizes(d)
        assert (sizes[0], sizes[-1]) == (0, min(d, 500))
        assert min(3, d) in sizes
        assert (np.diff(sizes) > 0).all()
    X, _ = data(n=8000, d=40)
    y = np.clip(X[:, :6] @ [0.3, -0.3, 0.2, 0.2, -0.2, 0.3], -1, 1)
    for kind in ALL:
        target = (y > 0).astype(int) if kind is SparseClassifier else y
        model = kind(n_nonzero="auto", epsilon=4.0, random_state=0).fit(X, target)
        assert model.support_[:6].all()
        assert model.support_.sum() <= 20


@pytest.mark.parametrize("kind", ALL)
def test_nothing_is_chosen_of_noise_and_everything_where_all_matters(kind):
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (6000, 15))
    noise, dense = rng.uniform(-1, 1, 6000), np.clip(X @ rng.choice([-0.15, 0.15], 15), -1, 1)
    if kind is SparseClassifier:
        noise, dense = noise > 0, 8.0 * dense + rng.logistic(size=6000) > 0
    for seed in range(3):
        model = kind(n_nonzero="auto", epsilon=20.0, random_state=seed)
        assert clone(model).fit(X, noise).support_.sum() == 0
        assert clone(model).fit(X, dense).support_.sum() == 15


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize("method", ["one-shot", "two-phase"])
def test_wide_sparse_tables_stay_sparse(kind, method):
    rng, n, d = np.random.default_rng(0), 3000, 200_000
    places = np.arange(n).repeat(30), rng.integers(0, d, 30 * n)
    X = sp.csr_array((rng.uniform(0.1, 1.0, 30 * n), places), shape=(n, d))
    y = (np.arange(n) % 2).astype(int)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    kind(method=method, n_nonzero=10, random_state=0).fit(X, y)
    tracemalloc.start()
    model = kind(method=method, n_nonzero=10, random_state=0).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert model.support_.sum() <= 10
    # A dense copy would take five gigabytes.
    assert peak < 4 * size + 60 * d


# ------------------------------------------------------------------ without privacy


def correlated(n=600):
    """Twelve columns, of which two are nearly the same."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (n, 12))
    X[:, 3] = 0.8 * X[:, 2] + 0.2 * X[:, 3]
    return X, rng


def assert_near(model, reference, columns, rtol=1e-4):
    """Coefficients and constant are those of a fit to some columns."""
    assert np.flatnonzero(model.support_).tolist() == list(columns)
    found = np.column_stack((np.atleast_2d(model.coef_)[:, columns], np.atleast_1d(model.intercept_)))
    if len(found) > 1:
        # Several margins may be shifted together.
        found, reference = found - found.mean(axis=0), reference - reference.mean(axis=0)
    assert np.abs(found - reference).max() < rtol
    assert model.certificate_.status == "not private"
    assert all(isinstance(release.event, NotPrivateEvent) for release in model.certificate_.events)


@pytest.mark.parametrize(("n_nonzero", "columns"), [("all", range(12)), (4, range(4)), ("auto", range(3))])
def test_noiseless_regression_is_least_squares_on_its_support(n_nonzero, columns):
    X, rng = correlated()
    y = np.clip(X[:, :4] @ [0.3, -0.3, 0.2, 0.1] + 0.1 + rng.normal(0, 0.1, 600), -1, 1)
    least = LinearRegression().fit(X[:, columns], y)
    model = SparseRegressor(epsilon=INF, n_nonzero=n_nonzero).fit(X, y)
    assert_near(model, np.append(least.coef_, least.intercept_), columns)


def test_noiseless_fits_see_rows_of_zeros_far_from_the_centre():
    rng = np.random.default_rng(0)
    X = 0.8 + 0.05 * rng.standard_normal((600, 4))
    X[:60] = 0.0
    y = np.clip(X @ [0.3, -0.2, 0.4, -0.1] + rng.normal(0, 0.1, 600) + 0.1 * (X[:, 0] == 0), -1, 1)
    least = LinearRegression().fit(X, y)
    model = SparseRegressor(epsilon=INF, n_nonzero="all").fit(X, y)
    assert_near(model, np.append(least.coef_, least.intercept_), range(4), 1e-3)


def test_noiseless_regression_with_the_loss_of_huber_is_its_minimiser():
    X, rng = correlated()
    y = X[:, :4] @ [0.3, -0.3, 0.2, 0.1] + 0.1 + rng.normal(0, 0.1, 600)
    y = np.clip(y + 0.6 * (rng.random(600) < 0.1), -1, 1)
    rows, clip = np.column_stack((X, np.ones(600))), 0.08

    def loss(w):
        residuals = rows @ w - y
        inner = np.minimum(np.abs(residuals), clip)
        return (inner * (np.abs(residuals) - 0.5 * inner)).sum(), rows.T @ np.clip(residuals, -clip, clip)

    best = minimize(loss, np.zeros(13), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    model = SparseRegressor(epsilon=INF, n_nonzero="all", loss="huber", residual_clip=clip).fit(X, y)
    assert_near(model, best, range(12))
    # Least squares are something else, and so is another threshold.
    for other in ({"loss": "squared"}, {"residual_clip": 0.3}):
        with pytest.raises(AssertionError):
            assert_near(clone(model).set_params(**other).fit(X, y), best, range(12), 1e-2)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("n_nonzero", "columns"), [("all", range(12)), (3, range(3))])
def test_noiseless_classification_is_maximum_likelihood_on_its_support(n_nonzero, columns, n_classes):
    X, rng = correlated()
    slopes = np.array([[2.0, -1.0, 0.5], [-1.0, 0.5, 1.0], [0.0, 1.0, -2.0]])[:, :n_classes]
    y = (X[:, :3] @ slopes + [0.3, 0.0, -0.3][:n_classes] + rng.gumbel(size=(600, n_classes))).argmax(axis=1)
    likely = LogisticRegression(C=INF, tol=1e-10, max_iter=5000).fit(X[:, columns], y)
    model = SparseClassifier(epsilon=INF, n_nonzero=n_nonzero, classes=range(n_classes)).fit(X, y)
    assert_near(model, np.column_stack((likely.coef_, likely.intercept_)), columns)
    assert np.allclose(model.predict_proba(X), likely.predict_proba(X[:, columns]), atol=1e-4)
