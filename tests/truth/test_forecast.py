"""Forecasts come true: standard errors before and after fits, and advice that is followed.

Beside each claim stands a broken forecast that the same check rejects.
"""

import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from taciturn import (
    BoundedScaler,
    DataError,
    DefaultBoundsWarning,
    ParameterError,
    SparseClassifier,
    SparseRegressor,
    forecast,
)
from taciturn.app.plan_file import PlanFile
from taciturn.data.records import Outcomes
from taciturn.methods.forecast.advice import Wish, smallest_epsilon, smallest_n
from taciturn.methods.forecast.population import ColumnFacts, PublicRows, StatedPopulation, TargetFacts
from taciturn.methods.forecast.run import Band, StandIn

COLUMNS = {
    "age": {"lower": -1.0, "upper": 1.0, "mean": 0.1, "spread": 0.35},
    "crp": {"lower": -1.0, "upper": 1.0, "mean": -0.9, "spread": 0.1},
    "smoker": {"lower": 0.0, "upper": 1.0, "share": 0.2},
    "dose": (-1.0, 1.0),
}
SLOPES = np.array([0.3, 0.5, -0.2, 0.0])
EFFECTS = dict(zip(COLUMNS, SLOPES.tolist(), strict=True))
N = 12_000


def features(n, rng):
    """The columns, drawn by code of its own."""

    def beta(mean, spread):
        middle, variance = (mean + 1.0) / 2.0, (spread / 2.0) ** 2
        total = middle * (1.0 - middle) / variance - 1.0
        return 2.0 * rng.beta(middle * total, (1.0 - middle) * total, n) - 1.0

    return np.column_stack(
        (beta(0.1, 0.35), beta(-0.9, 0.1), (rng.random(n) < 0.2).astype(float), rng.uniform(-1.0, 1.0, n))
    )


def numbers(n, rng):
    X = features(n, rng)
    return X, X @ SLOPES + 0.2 * rng.standard_normal(n)


def labels(n, rng):
    X = features(n, rng)
    margins = 3.0 * (X @ SLOPES) - 1.0
    return X, np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-margins)), "yes", "no")


def counts(n, rng):
    X = features(n, rng)
    return X, rng.poisson(np.exp(X @ SLOPES + 0.7)).astype(float).clip(0.0, 20.0)


CASES = {
    "squared": (SparseRegressor, {"y_bounds": (-2.0, 2.0)}, numbers, 1.0),
    "poisson": (SparseRegressor, {"y_bounds": (0.0, 20.0), "loss": "poisson"}, counts, 1.0),
    "labels": (SparseClassifier, {"classes": ("no", "yes")}, labels, 3.0),
}


def model_of(case, **changes):
    kind, facts, _, _ = CASES[case]
    return kind(**{"x_bound": 1.0, "n_nonzero": "all", "inference": True, **facts, **changes})


def stated(case):
    """Facts of the target that a user would state, from a large sample of their own."""
    _, y = CASES[case][2](200_000, np.random.default_rng(99))
    if case == "labels":
        return {"share": float((y == "yes").mean())}
    return {"mean": float(y.mean()), "spread": float(y.std())}


def forecast_of(case, epsilon, n=N, **changes):
    effects = {name: slope * CASES[case][3] for name, slope in EFFECTS.items()}
    return forecast(model_of(case, epsilon=epsilon, **changes), n=n, bounds=COLUMNS, effects=effects,
                    target=stated(case), correlation={})  # fmt: skip


def obtained(case, epsilon, n=N, fits=4, **changes):
    """Median standard errors of fits to tables of their own."""
    found = []
    for seed in range(fits):
        X, y = CASES[case][2](n, np.random.default_rng(seed))
        model = model_of(case, epsilon=epsilon, random_state=seed, **changes).fit(X, y)
        found.append(np.ravel(model.coef_std_error_))
    return np.median(found, axis=0)


def agrees(expected, found):
    """Whether standard errors are within a quarter of those that were obtained, and a tenth on average."""
    ratios = np.asarray(expected) / found
    return bool((np.abs(np.log(ratios)) < np.log(1.25)).all() and abs(np.log(ratios).mean()) < np.log(1.15))


@pytest.mark.parametrize("case", CASES)
def test_standard_errors_are_those_that_fits_have(case):
    # Counts of fewer records are clipped or not by chance.
    n = 40_000 if case == "poisson" else N
    found = forecast_of(case, 1.0, n)
    assert agrees(found.std_errors, obtained(case, 1.0, n))
    assert found.interval_probability == 1.0
    np.testing.assert_allclose(
        found.parts("sampling") ** 2 + found.parts("privacy") ** 2, found.std_errors**2, rtol=0.1
    )


def test_a_forecast_without_one_of_the_two_errors_is_rejected():
    tight, loose = forecast_of("squared", 0.4), forecast_of("squared", 8.0)
    with_noise, with_little = obtained("squared", 0.4), obtained("squared", 8.0)
    assert agrees(tight.std_errors, with_noise)
    assert agrees(loose.std_errors, with_little)
    assert not agrees(tight.parts("sampling"), with_noise)
    assert not agrees(loose.parts("privacy"), with_little)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_other_relations_have_their_own_errors(relation):
    public = {"n_public": N} if relation == "add-remove" else {}
    found = forecast_of("squared", 1.0, relation=relation)
    real = obtained("squared", 1.0, relation=relation, **public)
    assert agrees(found.std_errors, real)
    if relation == "replace-one":
        # One of zero-out is too small for it.
        ratios = forecast_of("squared", 1.0).parts("privacy") / found.parts("privacy")
        assert np.exp(np.log(ratios).mean()) < 0.85


def test_models_that_choose_estimate_from_half_of_the_records():
    whole, half = forecast_of("squared", 1.0), forecast_of("squared", 1.0, n_nonzero=2)
    assert (half.std_errors > 1.2 * whole.std_errors).all()
    X, y = numbers(N, np.random.default_rng(5))
    model = model_of("squared", epsilon=1.0, n_nonzero=2, random_state=0).fit(X, y)
    known = np.isfinite(model.coef_std_error_)
    assert known.any()
    assert (np.abs(np.log(half.std_errors[known] / model.coef_std_error_[known])) < np.log(1.35)).all()


def test_a_pipeline_is_forecast_as_the_columns_that_its_scaler_bounds():
    bounds = {"age": (18, 100), "bmi": (15, 60)}
    model = SparseRegressor(epsilon=1.0, x_bound=1.0, y_bounds=(-1, 1), n_nonzero="all")
    plain = forecast(model, n=20_000, bounds=bounds)
    scaled = forecast(make_pipeline(BoundedScaler(bounds=bounds), model), n=20_000)
    np.testing.assert_array_equal(plain.std_errors, scaled.std_errors)
    np.testing.assert_array_equal(plain.units, [41.0, 22.5])
    assert [*plain.to_frame().index] == ["age", "bmi"]
    np.testing.assert_allclose(plain.to_frame()["interval_width"], 2.0 * 1.96 * plain.std_errors, rtol=0.05)


def test_no_private_table_is_asked_for():
    parameters = inspect.signature(forecast).parameters
    assert {"X", "y", "table", "data"}.isdisjoint(parameters)
    assert {"estimator", "n", "n_features", "bounds", "effects", "like"} <= set(parameters)


def test_progress_is_told_up_to_the_end():
    told = []
    forecast(model_of("squared", epsilon=1.0), n=1000, bounds=COLUMNS, simulate=2, progress=told.append)
    assert told == sorted(told)
    assert told[0] > 0.0
    assert told[-1] == 1.0


def test_an_account_is_neither_opened_nor_charged(tmp_path):
    missing = f"sqlite:///{tmp_path / 'none.db'}#a"
    model = SparseRegressor(epsilon=1.0, x_bound=1.0, y_bounds=(-1, 1), account=missing, random_state=1)
    assert forecast(model, n=5000, n_features=3).n == 5000
    assert not (tmp_path / "none.db").exists()
    assert model.account == missing


def related(n, rng):
    """Columns with a common cause, which nobody stated."""
    common = rng.standard_normal((n, 1))
    X = np.clip(0.25 * common + 0.15 * rng.standard_normal((n, 4)), -1.0, 1.0)
    return X, X @ SLOPES + 0.2 * rng.standard_normal(n)


def test_bands_hold_correlations_that_nobody_stated_and_those_of_independent_columns_do_not():
    X, y = related(N, np.random.default_rng(0))
    bounds = {f"x{j}": {"lower": -1.0, "upper": 1.0, "mean": 0.0, "spread": 0.29} for j in range(4)}
    model = model_of("squared", epsilon=1.0)
    target = {"mean": 0.0, "spread": float(y.std())}
    errors = model_of("squared", epsilon=1.0, random_state=0).fit(X, y).coef_std_error_

    def holds(found):
        return sum(band.low <= error <= band.high for band, error in zip(found.bands, errors, strict=True))

    unknown = forecast(model, n=N, bounds=bounds, target=target)
    assert holds(unknown) == 4
    assert any("correlations" in each for each in unknown.assumptions)
    effects = dict(zip(bounds, SLOPES.tolist(), strict=True))
    none = forecast(model, n=N, bounds=bounds, target=target, correlation={}, effects=effects)
    assert holds(none) == 0
    pairs = {(f"x{i}", f"x{j}"): 0.72 for i in range(4) for j in range(i)}
    stated = forecast(model, n=N, bounds=bounds, target=target, correlation=pairs, effects=effects)
    assert agrees(stated.std_errors, errors)
    assert not stated.assumptions


def test_spreads_that_were_rounded_are_those_of_two_values():
    bounds = {"female": {"lower": 0, "upper": 1, "mean": 0.4787, "spread": 0.5}}
    model = SparseRegressor(epsilon=1.0, x_bound=1.0, y_bounds=(-1, 1), n_nonzero="all")
    X, _ = forecast(model, n=4000, bounds=bounds).trials.population.draw(2000, np.random.default_rng(0))
    assert ((X < 0.01) | (X > 0.99)).mean() > 0.99


def test_scores_have_no_bands_beyond_what_they_can_be():
    found = forecast(model_of("labels", epsilon=0.5), n=2000, bounds=COLUMNS, simulate=3)
    for name in ("score", "error", "found"):
        band = found.prediction(name)
        assert 0.0 <= band.low <= band.value <= band.high <= 1.0


# ------------------------------------------------------------------ whether there are intervals, and advice


def test_all_levels_of_a_category_are_determined_by_no_budget_whichever_columns_a_model_chooses(tmp_path):
    levels = ["north", "south", "east", "west"]
    numbers = "".join(f'[columns.{name}]\ntype = "number"\nlower = 0\nupper = 1\n' for name in "abcde")
    region = f'[columns.region]\ntype = "category"\ncategories = {levels}\n'
    target = '[target]\nname = "y"\nlower = -1\nupper = 1\n'
    (tmp_path / "bounds.toml").write_text(target + numbers + region)
    model = SparseRegressor(epsilon=1.0, x_bound=1.0, y_bounds=(-1, 1), n_nonzero=5)
    found = forecast(model, n=20_000, bounds=tmp_path / "bounds.toml")
    unknown = [name for name, known in zip(found.feature_names, found.determined, strict=True) if not known]
    assert unknown == [f"region={level}" for level in levels]
    assert found.interval_probability > 0.9
    assert "region" not in found.feature_names[found.weakest]


@pytest.mark.parametrize("n", [700, 1500])
def test_advice_never_proposes_less_than_there_is(n):
    found = forecast(SparseClassifier(epsilon=1.0, x_bound=1.0, n_nonzero=3), n=n, n_features=8)
    assert found.interval_probability < 0.9
    larger = [re.search(r"epsilon ([\d.]+) in place of 1", each) for each in found.advice]
    more = [re.search(r"([\d,]+) records in place of", each) for each in found.advice]
    assert any(larger)
    assert all(float(each[1]) > 1.0 for each in larger if each)
    assert all(int(each[1].replace(",", "")) > n for each in more if each)


def test_the_probability_of_intervals_is_that_of_fits():
    shares = {}
    for n, epsilon in ((1500, 0.3), (6000, 1.0)):
        found = forecast(
            SparseClassifier(epsilon=epsilon, x_bound=1.0, n_nonzero="all"), n=n, n_features=6, effects=0.0
        )
        real = []
        for seed in range(5):
            rng = np.random.default_rng(seed)
            X, y = rng.uniform(-1.0, 1.0, (n, 6)), rng.integers(0, 2, n)
            model = SparseClassifier(
                epsilon=epsilon, x_bound=1.0, n_nonzero="all", classes=(0, 1), inference=True, random_state=seed
            )
            try:
                real.append(np.isfinite(model.fit(X, y).coef_std_error_).mean())
            except ParameterError:
                real.append(0.0)
        shares[n] = found.interval_probability, float(np.mean(real))
    assert shares[1500][0] < 0.1
    assert shares[1500][1] < 0.1
    assert shares[6000][0] > 0.9
    assert shares[6000][1] > 0.9


def fits_have_intervals(n, epsilon, n_features=5):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X, y = rng.uniform(-1.0, 1.0, (n, n_features)), rng.integers(0, 2, n)
        model = SparseClassifier(
            epsilon=epsilon, x_bound=1.0, n_nonzero="all", classes=(0, 1), inference=True, random_state=seed
        )
        try:
            if not np.isfinite(model.fit(X, y).coef_std_error_).all():
                return False
        except ParameterError:
            return False
    return True


def test_following_the_advice_of_a_refusal_gives_intervals():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (800, 5)), rng.integers(0, 2, 800)
    model = SparseClassifier(epsilon=0.4, x_bound=1.0, n_nonzero="all", classes=(0, 1), inference=True)
    with pytest.raises(ParameterError, match="nothing was spent") as refused:
        model.fit(X, y)
    found = re.search(r"epsilon ([\d.]+) or ([\d,]+) records would give every column an interval", str(refused.value))
    epsilon, n = float(found[1]), int(found[2].replace(",", ""))
    assert fits_have_intervals(800, epsilon)
    assert fits_have_intervals(n, 0.4)
    # Advice that is half as large is wrong, so that nobody is told to spend much more than it takes.
    assert not fits_have_intervals(800, epsilon / 2.0)
    assert not fits_have_intervals(n // 2, 0.4)
    # In the same words for all records of this number.
    with pytest.raises(ParameterError, match=re.escape(str(refused.value))):
        model.fit(np.zeros_like(X), y[::-1].copy())


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_bounds_whose_squares_are_no_doubles_are_refused_without_advice(size):
    """In the units of the bounds the advice would not be computed: the refusal was a failure."""
    X, y = size * np.array([[0.1, -0.2, 0.3], [0.4, 0.5, -0.6]]), size * np.array([0.2, -0.1])
    model = SparseRegressor(epsilon=1.0, x_bound=size, y_bounds=(-size, size), n_nonzero="all", inference=True)
    with (
        pytest.warns(DefaultBoundsWarning),
        pytest.raises(ParameterError, match=r"^inference=True: .*nothing was spent"),
    ):
        model.fit(X, y)


def test_a_refusal_proposes_fewer_columns_only_where_they_have_intervals():
    def refusal(n, epsilon, n_features):
        model = SparseClassifier(epsilon=epsilon, x_bound=1.0, n_nonzero="all", classes=(0, 1), inference=True)
        with pytest.raises(ParameterError) as refused:
            model.fit(np.zeros((n, n_features)), np.zeros(n, dtype=int))
        return str(refused.value)

    found = re.search(r"or (\d+) columns fixed beforehand would give every column an interval", refusal(4000, 1.0, 40))
    assert fits_have_intervals(4000, 1.0, int(found[1]))
    assert not fits_have_intervals(4000, 1.0, 3 * int(found[1]))
    # Here a single column would have none, and nobody is told to drop any.
    assert "columns" not in refusal(800, 0.4, 5).partition("would give every column")[0]
    assert "fewer columns" not in refusal(800, 0.4, 5)
    assert not fits_have_intervals(800, 0.4, 1)


def test_advice_names_the_weakest_column_and_what_was_tried():
    bounds = {"age": {"lower": 18, "upper": 100, "mean": 50, "spread": 12},
              "crp": {"lower": 0, "upper": 3000, "mean": 8, "spread": 9}}  # fmt: skip
    model = SparseRegressor(epsilon=0.3, x_bound=1.0, y_bounds=(-1, 1), n_nonzero="all")
    found = forecast(model, n=3000, bounds=bounds)
    assert found.feature_names[found.weakest] == "crp"
    narrow = [sentence for sentence in found.advice if "crp in 0 to 45 instead of 0 to 3000" in sentence]
    assert narrow
    nearer = forecast(model, n=3000, bounds=bounds | {"crp": {"lower": 0, "upper": 45, "mean": 8, "spread": 9}})
    assert nearer.interval_probability > found.interval_probability or (
        nearer.std_errors[1] / 22.5 < 0.95 * found.std_errors[1] / 1500.0
    )


def test_the_smallest_epsilon_and_number_of_records_reach_a_wish_and_less_does_not():
    found = forecast_of("squared", 1.0)
    wish = Wish("width", 0, 0.8 * float(found.widths[0]))
    epsilon, n = smallest_epsilon(found.trials, wish), smallest_n(found.trials, wish)
    assert n > N
    assert wish.met(found.trials.but(n=n))
    assert not wish.met(found.trials.but(n=int(n / 1.2)))
    if epsilon is not None:
        assert wish.met(found.trials.but(epsilon=epsilon))
        assert not wish.met(found.trials.but(epsilon=epsilon / 1.5))
    assert smallest_epsilon(found.trials, Wish("width", 0, 1e-6)) is None


# ------------------------------------------------------------------ what is drawn, and what stands for more


def test_drawn_tables_have_what_was_stated():
    columns = (
        ColumnFacts("age", 18.0, 100.0, 55.0, 14.0),
        ColumnFacts("crp", 0.0, 300.0, 9.0, 11.0),
        ColumnFacts("smoker", 0.0, 1.0, shares=(0.8, 0.2), levels=(0.0, 1.0)),
    )
    target = TargetFacts("labels", classes=("no", "yes"), shares=(0.7, 0.3))
    effects = {"age": 0.03, "smoker": 0.5}
    drawn = StatedPopulation(columns, target, True, effects=effects, correlation={("age", "crp"): 0.5})
    X, y = drawn.draw(200_000, np.random.default_rng(0))
    values = X * drawn.units + np.array([59.0, 150.0, 0.5])
    np.testing.assert_allclose(values[:, :2].mean(axis=0), [55.0, 9.0], atol=0.2)
    np.testing.assert_allclose(values[:, :2].std(axis=0), [14.0, 11.0], rtol=0.02)
    assert abs((X[:, 2] > 0.0).mean() - 0.2) < 0.005
    assert abs((y == "yes").mean() - 0.3) < 0.005
    ranks = np.argsort(np.argsort(X[:, :2], axis=0), axis=0)
    assert abs(np.corrcoef(ranks.T)[0, 1] - 0.5) < 0.02
    # The effect that was stated is the one that is there.
    ill, smokes = y == "yes", X[:, 2] > 0.0
    odds = [np.log(share / (1.0 - share)) for share in (ill[smokes].mean(), ill[~smokes].mean())]
    assert abs(odds[0] - odds[1] - 0.5) < 0.06


def test_what_contradicts_itself_is_refused():
    model = SparseRegressor(epsilon=1.0, x_bound=1.0, y_bounds=(-1, 1))
    for bounds, words in (
        ({"a": (1, 0)}, "below the upper one"),
        ({"a": {"lower": 0, "upper": 1, "mean": 2}}, "between the bounds"),
        ({"a": {"lower": 0, "upper": 1, "spread": 0.9}}, "standard deviation"),
        ({"a": {"high": 1}}, "keys among"),
        ({"a": 3}, "a pair"),
    ):
        with pytest.raises(ParameterError, match=words):
            forecast(model, n=100, bounds=bounds)
    with pytest.raises(ParameterError, match="n_features"):
        forecast(model, n=100)
    with pytest.raises(ParameterError, match="the name of a feature"):
        forecast(model, n=100, n_features=2, effects={"age": 1.0})
    with pytest.raises(ParameterError, match="SparseRegressor or SparseClassifier"):
        forecast(BoundedScaler(), n=100, n_features=2)
    with pytest.raises(ParameterError, match="a pair"):
        forecast(model, n=100, like=3)


def test_rows_that_stand_for_more_answer_with_so_many_times_their_sums():
    X, y = numbers(500, np.random.default_rng(0))
    model = model_of("squared", epsilon=1.0)
    rows = model._read(X, Outcomes(y, None, None), model._public_facts(X, y))

    class Ones:
        columns = np.zeros(0, dtype=np.intp)

        def __call__(self, block):
            return np.array([block.n_rows], dtype=np.int64)

    source = StandIn(rows, 12_000, 24.0)
    assert source.total(Ones()) == 12_000
    first, second = source.divide(np.ones(500, dtype=bool))
    assert (first.n_records, second.n_records) == (6000, 6000)
    assert first.total(Ones()) + second.total(Ones()) == 12_000


def test_a_public_table_like_the_private_one_forecasts_it():
    X, y = numbers(4000, np.random.default_rng(1))
    model = model_of("squared", epsilon=1.0)
    found = forecast(model, n=N, like=(X, y), simulate=4)
    assert agrees(found.std_errors, obtained("squared", 1.0))
    X, y = numbers(N, np.random.default_rng(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model_of("squared", epsilon=1.0, random_state=3).fit(X, y)
    band, score = found.prediction("score"), fitted.score(*numbers(4000, np.random.default_rng(4)))
    assert band.low - 0.02 < score < band.high + 0.02


@pytest.mark.parametrize(("n_public", "n"), [(900, 3000), (3000, 900)])
def test_rows_of_a_public_table_vary_as_what_is_known_of_a_private_one(n_public, n):
    rng = np.random.default_rng(0)
    public = PublicRows(rng.standard_normal((n_public, 3)), np.zeros(n_public), ("a", "b", "c"), np.ones(3))
    size = public.rows_like(n, 2048)
    means = [public.draw_like(size, np.random.default_rng([1, seed]))[0].mean(axis=0) for seed in range(400)]
    # A mean of n private records differs from that of the public rows by so much.
    known = 1.0 / n + 1.0 / n_public
    assert np.var(means, axis=0).mean() == pytest.approx(known, rel=0.15)
    # Rows that are drawn at most once vary less, and not at all if all of them are drawn.
    once = [public.draw(size, np.random.default_rng([1, seed]))[0].mean(axis=0) for seed in range(400)]
    assert np.var(once, axis=0).mean() < 0.85 * known
    # No more than so many are drawn, however large both tables are.
    assert public.rows_like(10**6, 100) == 100


def skewed(n, rng):
    """Labels of a long tail and a rare level, whose errors differ from table to table."""
    tail, rare = np.clip(rng.lognormal(0.0, 0.8, n) / 4.0 - 0.8, -1.0, 1.0), (rng.random(n) < 0.03).astype(float)
    X = np.column_stack((tail, rare, rng.uniform(-1.0, 1.0, n)))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-(X @ [1.5, 1.0, -1.0])))).astype(int)


def held_by_bands(n_public, n, tables):
    """The share of standard errors of fits that lie in the band of a forecast from a public table."""
    inside = []
    for seed in range(tables):
        rng = np.random.default_rng(seed)
        given = {"x_bound": 1.0, "classes": (0, 1), "epsilon": 8.0, "n_nonzero": "all"}
        bands = forecast(SparseClassifier(**given), n=n, like=skewed(n_public, rng)).bands
        errors = SparseClassifier(inference=True, random_state=seed, **given).fit(*skewed(n, rng)).coef_std_error_
        known = np.isfinite(errors) & np.isfinite([band.low for band in bands])
        inside += [bands[j].low <= errors[j] <= bands[j].high for j in np.flatnonzero(known)]
    return np.mean(inside)


@pytest.mark.slow
def test_bands_from_a_small_public_table_hold_nine_of_ten_errors(monkeypatch):
    assert held_by_bands(1000, 4000, 60) > 0.86
    monkeypatch.setattr(PublicRows, "rows_like", lambda self, n, most: min(most, len(self.X)))
    monkeypatch.setattr(PublicRows, "draw_like", PublicRows.draw)
    assert held_by_bands(1000, 4000, 60) < 0.8


def test_a_band_holds_a_further_value_in_nine_of_ten_cases():
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((4000, 9))
    inside = [(band := Band.of(row[:8].tolist())).low <= row[8] <= band.high for row in draws]
    assert abs(np.mean(inside) - 0.9) < 0.03
    # A band of the mean, which is what a standard error of it would give, is much too narrow.
    narrow = [abs(row[8] - row[:8].mean()) <= 1.895 * row[:8].std(ddof=1) / np.sqrt(8) for row in draws]
    assert np.mean(narrow) < 0.6


# ------------------------------------------------------------------ the file


def test_a_plan_file_is_read_back_and_others_are_refused():
    made = forecast_of("labels", 1.0)
    plan = PlanFile.of("ill", [made], [1.0] * 4, score="AUC", wishes=("a wish",), advice=made.advice[:1])
    again = PlanFile.from_json(plan.to_json())
    assert again == plan
    assert again.fit_at(0.9).feature("age").std_error == pytest.approx(made.std_errors.ravel()[0])
    for text in ("", "[]", "{}", plan.to_json().replace("taciturn plan", "other"),
                 plan.to_json().replace('"n": 12000', '"n": "many"')):  # fmt: skip
        with pytest.raises(DataError, match="plan.json"):
            PlanFile.from_json(text)
