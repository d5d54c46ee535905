"""What private bounds are worth, and what they cost."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from taciturn import CorrelationSelector, HardThresholdRegressor, PrivateScaler, certificate_of, compose
from taciturn.accounting import best_bound
from taciturn.core.errors import CertificateError, DataError, ParameterError
from taciturn.data.records import ADMISSIBLE
from taciturn.data.sensitivity import RELATIONS
from taciturn.events import ExponentialEvent
from taciturn.methods.scaling import plan as scaling_plan
from taciturn.methods.scaling.estimator import BoundedScaler
from taciturn.methods.scaling.plan import decimal_grid
from taciturn.privacy.certificate import Certificate

INF = float("inf")


def numbers(n=2000, d=2, seed=0, scale=3.0):
    return np.random.default_rng(seed).normal(0, scale, (n, d))


# ------------------------------------------------------------------ the bounds


def coverage(scaler, X):
    return np.mean((scaler.lower_ <= X) & (scaler.upper_ >= X), axis=0)


def everyday_columns(seed):
    """Normal and lognormal, in units from thousandths to ten thousands."""
    rng = np.random.default_rng(seed)
    normal = rng.normal((0.0, 0.5, -2.0, 30.0, 0.0), (0.01, 1.0, 3.0, 70.0, 2e4), (5000, 5))
    return np.hstack((normal, rng.lognormal((0.0, 0.0, 0.0, 5.0, -4.0), (0.5, 1.0, 2.0, 1.0, 1.0), (5000, 5))))


def test_bounds_cover_most_of_every_column(monkeypatch):
    for seed in range(10):
        X = everyday_columns(seed)
        covered = coverage(PrivateScaler(random_state=seed).fit(X), X)
        assert covered.min() > 0.8
        assert covered.max() < 0.97
    # With a tenth of the budget, which is refused for that reason, they do not.
    poor = PrivateScaler(epsilon=0.1, random_state=0)
    with pytest.raises(ParameterError, match="n_features=10 "):
        poor.fit(X)
    monkeypatch.setattr(scaling_plan, "_CHANCE", 1e300)
    covered = coverage(poor.fit(X), X)
    assert covered.min() < 0.8 or covered.max() > 0.97


@pytest.mark.parametrize("relation", RELATIONS)
def test_every_relation_and_pure_privacy_find_good_bounds(relation):
    X = numbers(6000)
    for delta in (0.0, 1e-6):
        scaler = PrivateScaler(relation=relation, n_public=6000, delta=delta, random_state=0).fit(X)
        assert ((coverage(scaler, X) > 0.8) & (coverage(scaler, X) < 0.97)).all()
        assert (scaler.certificate_.relation, scaler.certificate_.delta) == (relation, delta)


def rounded_outwards(X, tail, grid):
    """Exact quantiles, the lower ones rounded down and the upper ones up."""
    n = len(X)
    ordered = np.sort(X, axis=0)
    upper = ordered[int(np.ceil((1 - tail) * n)) - 1]
    lower = ordered[n - int(np.ceil((1 - tail) * n))]
    return (
        [max(point for point in grid if point <= value) for value in lower],
        [min(point for point in grid if point >= value) for value in upper],
    )


@pytest.mark.parametrize("tail", [0.05, 0.2])
def test_infinite_epsilon_is_the_exact_quantile_rounded_outwards(tail):
    X = everyday_columns(3)[:999]
    lower, upper = rounded_outwards(X, tail, decimal_grid(1e-3, 1e6))
    exact = PrivateScaler(epsilon=INF, tail=tail).fit(X)
    assert (exact.lower_.tolist(), exact.upper_.tolist()) == (lower, upper)
    assert exact.certificate_.status == "not private"
    assert exact.certificate_.epsilon == INF
    # And the limit of more and more records: ranks grow with them, and the noise does not.
    nearly = PrivateScaler(epsilon=30.0, tail=tail, random_state=0).fit(np.tile(X, (300, 1)))
    assert (nearly.lower_.tolist(), nearly.upper_.tolist()) == (lower, upper)
    wrong, _ = rounded_outwards(X, tail / 2, decimal_grid(1e-3, 1e6))
    assert exact.lower_.tolist() != wrong


def test_units_do_not_matter():
    X = np.round(numbers(), 3)
    metres = PrivateScaler(random_state=3, smallest=1e-3, largest=1e6).fit(X)
    millimetres = PrivateScaler(random_state=3, smallest=1.0, largest=1e9).fit(np.round(1000.0 * X))
    assert np.allclose(millimetres.lower_, 1000.0 * metres.lower_, rtol=1e-12)
    assert np.allclose(millimetres.upper_, 1000.0 * metres.upper_, rtol=1e-12)


def flags(share, n=3000):
    return (np.arange(n) % 1000 < 1000 * share).astype(float)


@pytest.mark.parametrize(
    ("column", "bounds", "mapped"),
    [
        (np.zeros(3000), (-0.001, 0.001), {0.0}),
        (np.full(3000, 7.0), (6.93, 7.07), {0.0}),
        (np.full(3000, -1.0), (-1.01, -0.99), {0.0}),
        (np.full(3000, 13.37), (13.0, 14.0), {-0.26}),
        (np.full(3000, 1e9), (0.99e6, 1.01e6), {1.0}),
        (flags(0.3), (0.0, 1.0), {-1.0, 1.0}),
        (flags(0.005), (-0.001, 0.001), {0.0, 1.0}),
        (flags(0.995), (0.99, 1.01), {-1.0, 0.0}),
        (3.0 * flags(0.3) + 5.0, (5.0, 8.0), {-1.0, 1.0}),
        (np.where(np.arange(3000) % 100 == 0, np.arange(3000.0), 0.0), (-0.001, 0.001), {0.0, 1.0}),
    ],
    ids=["zeros", "constant", "minus one", "off the grid", "beyond", "flag", "rare", "common", "two codes", "sparse"],
)
def test_columns_of_few_values_come_out_sensibly(column, bounds, mapped):
    scaler = PrivateScaler(epsilon=2.0, random_state=0)
    out = scaler.fit_transform(column[:, None])
    assert (scaler.lower_[0], scaler.upper_[0]) == pytest.approx(bounds)
    assert "-0.0" not in (str(scaler.lower_[0]), str(scaler.upper_[0]))
    assert set(np.round(out.ravel(), 9)) == mapped


def test_bounds_stay_in_order_under_heavy_noise(monkeypatch):
    monkeypatch.setattr(scaling_plan, "_CHANCE", 1e300)
    rng = np.random.default_rng(0)
    X = np.where(rng.random((30, 40)) < 0.7, 0.0, rng.integers(-2, 3, (30, 40)))
    scaler = PrivateScaler(epsilon=0.5, smallest=1.0, largest=2.0)
    for _ in range(20):
        scaler.fit(X)
        assert (scaler.lower_ < scaler.upper_).all()
        assert np.isfinite(scaler.transform(X)).all()


def test_each_column_may_have_a_range_of_its_own():
    X = np.column_stack((numbers(d=1, scale=1e-5), numbers(d=1, scale=1e9)))
    common = PrivateScaler(random_state=0).fit(X)
    assert common.upper_.tolist() == [1e-3, 1e6]
    own = PrivateScaler(random_state=0, smallest=[1e-8, 1e3], largest=[1.0, 1e12]).fit(X)
    assert ((coverage(own, X) > 0.8) & (coverage(own, X) < 0.97)).all()
    assert own.certificate_.public["smallest"] == [1e-8, 1e3]
    assert own.certificate_.public["largest"] == [1.0, 1e12]


def test_the_map_is_that_of_the_bounded_scaler():
    X = numbers()
    scaler = PrivateScaler(random_state=0).fit(X)
    bounded = BoundedScaler(lower=scaler.lower_, upper=scaler.upper_).fit(X)
    Z = scaler.transform(X)
    assert np.array_equal(Z, bounded.transform(X))
    assert (Z.min(), Z.max()) == (-1.0, 1.0)
    assert np.array_equal(scaler.inverse_transform(Z), bounded.inverse_transform(Z))
    inside = (scaler.lower_ < X) & (scaler.upper_ > X)
    assert np.allclose(scaler.inverse_transform(Z)[inside], X[inside], rtol=0, atol=1e-14)


# ------------------------------------------------------------------ the certificate


def test_the_certificate_covers_all_bounds_at_once():
    certificate = PrivateScaler(random_state=0).fit(numbers(5000, 8)).certificate_
    assert (certificate.epsilon, certificate.delta, certificate.status) == (1.0, 1e-6, "proved")
    assert (certificate.arithmetic, certificate.seeded) == ("exact", True)
    (both,) = certificate.events
    assert (both.what, both.count, both.noise) == ("a column's lower and upper quantile", 8, "Gumbel")
    # More noise than one bound needs, less than a sum of sixteen epsilons would ask for.
    assert 1.0 / 16 < both.event.far < 0.5
    # The same noise, beside which one of a column's quantiles moves by 1.9 ranks and the other one by 1.
    assert both.event.near / both.event.far == pytest.approx(1.0 / 1.9, rel=1e-6)
    expected = {"features": 8, "records": 5000, "tail": 0.05, "smallest": 1e-3, "largest": 1e6, "invalid": "raise"}
    assert dict(certificate.public) == expected
    assert certificate.assumptions == ("the range of sizes was chosen without looking at these data", ADMISSIBLE)
    assert str(certificate).count("(8 times, Gumbel noise of") == 1
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_groups_do_not_rely_on_one_quantile_being_the_far_one():
    certificate = PrivateScaler(random_state=0).fit(numbers(5000, 8)).certificate_
    (both,) = certificate.events
    pair = certificate.for_group(2)
    assert pair.for_group(2) == certificate.for_group(4)
    assert Certificate.from_json(pair.to_json()) == pair
    full = best_bound(ExponentialEvent(2 * both.event.far) * 16, 1e-6)
    assert (pair.epsilon, pair.bound) == (full.epsilon, full.name)
    # Far ranges that stay with one quantile of each column would cost less, which no chain of records promises.
    less = ExponentialEvent(2 * both.event.far) * 8 + ExponentialEvent(2 * both.event.near) * 8
    claimed = replace(pair, epsilon=best_bound(less, 1e-6, ordered=False).epsilon)
    with pytest.raises(CertificateError, match="^epsilon=.*: expected at least"):
        compose(claimed, pair)
    assert compose(pair, pair).epsilon <= 2 * pair.epsilon
    # Without a delta only the sum of ranges counts, which is that of k records whoever moves what.
    exact = PrivateScaler(delta=0.0, random_state=0).fit(numbers(5000, 2)).certificate_
    assert exact.for_group(3).epsilon == pytest.approx(3 * exact.epsilon, rel=1e-9)


def linear_data(n=3000):
    X = np.random.default_rng(1).lognormal(size=(n, 3)) * (1.0, 100.0, 0.1)
    return X, np.clip(np.log(X[:, 0]), -1, 1)


def test_a_pipeline_costs_more_than_each_step_and_at_most_the_sum():
    X, y = linear_data()
    pipeline = make_pipeline(PrivateScaler(epsilon=0.8), HardThresholdRegressor(epsilon=0.6, n_nonzero=2)).fit(X, y)
    scaler, model = (step.certificate_ for step in pipeline)
    total = certificate_of(pipeline)
    assert total == compose(scaler, model)
    assert total.events == scaler.events + model.events
    assert total.delta == scaler.delta + model.delta == 2e-6
    assert max(scaler.epsilon, model.epsilon) == 0.8 < total.epsilon <= 1.4
    # Accounted together, they cost clearly less than the sum.
    assert total.epsilon < 1.2
    assert (total.status, total.relation, total.arithmetic) == ("proved", "zero-out", "exact")
    assert total.public["part 1"]["tail"] == 0.05
    assert len(total.assumptions) == 3


def test_parts_of_a_table_are_added_up():
    X, y = linear_data()
    parts = make_column_transformer(
        (PrivateScaler(epsilon=0.5, delta=0.0), [0]), (BoundedScaler(lower=0, upper=500), [1, 2])
    )
    pipeline = make_pipeline(parts, CorrelationSelector(epsilon=0.25, delta=0.0, n_features_to_select=1)).fit(X, y)
    total = certificate_of(pipeline)
    assert (total.epsilon, total.delta) == (pytest.approx(0.75), 0.0)
    assert [part["features"] for part in total.public.values()] == [1, 2, 3]


def test_steps_must_agree_on_what_a_neighbour_is():
    X, y = linear_data()
    selector = CorrelationSelector(relation="replace-one", n_features_to_select=1)
    with pytest.raises(CertificateError, match="relation: expected one and the same, got 'replace-one', 'zero-out'"):
        certificate_of(make_pipeline(PrivateScaler(), selector).fit(X, y))
    assert certificate_of(make_pipeline(PrivateScaler(relation="replace-one"), selector).fit(X, y)).epsilon > 1.0
    exact = make_pipeline(PrivateScaler(epsilon=INF), CorrelationSelector(n_features_to_select=1)).fit(X, y)
    assert certificate_of(exact).status == "not private"


# ------------------------------------------------------------------ in company


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_other_types_of_numbers_are_cast(dtype):
    X = numbers().astype(dtype)
    expected = PrivateScaler(random_state=2).fit_transform(X.astype(np.float64))
    ours = PrivateScaler(random_state=2).fit_transform(X)
    assert ours.dtype == np.float64
    assert np.array_equal(ours, expected)


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("ends", "start"),
    [
        ({"smallest": 2.0, "largest": 3.0}, "largest=3.0: expected at least twice smallest=2.0"),
        ({"smallest": 1.0, "largest": [2.0, 1.5]}, "largest[1]=1.5: expected at least twice smallest=1.0"),
        ({"smallest": [1.0]}, "len(smallest)=1: expected 2, the number of columns of X"),
        ({"smallest": [1.0, -2.0]}, "smallest[1]=-2.0: expected a number in [1e-300, 1e+300]"),
    ],
    ids=str,
)
def test_ranges_that_do_not_fit_the_columns_are_refused(ends, start):
    scaler = PrivateScaler(**ends)
    with pytest.raises(ParameterError) as caught:
        scaler.fit(numbers())
    assert str(caught.value).startswith(start)
    assert not hasattr(scaler, "certificate_")


def test_sparse_tables_and_unfitted_scalers_are_refused():
    X = numbers()
    scaler = PrivateScaler()
    for call in (scaler.transform, scaler.inverse_transform):
        with pytest.raises(NotFittedError):
            call(X)
    scaler.fit(X)
    for call in (scaler.fit, scaler.transform, scaler.inverse_transform):
        with pytest.raises(DataError, match="Sparse data was passed"):
            call(sp.csr_array(X))
    with pytest.raises(DataError, match=r"^X: expected 2 columns, as in fit, got 3; pass what transform returned\.$"):
        scaler.inverse_transform(numbers(d=3))
