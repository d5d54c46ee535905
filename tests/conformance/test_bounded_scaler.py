"""What the scaler with public bounds promises beyond the contract of every class."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from taciturn.core.errors import DataError, ParameterError
from taciturn.data.records import ADMISSIBLE
from taciturn.methods.scaling.estimator import BoundedScaler
from taciturn.privacy.certificate import Certificate
from taciturn.privacy.pipeline import certificate_of

LARGEST = float(np.finfo(np.float64).max)
SPARSE = [sp.csr_matrix, sp.csc_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


def numbers(n=200, d=5, seed=0, scale=3.0):
    return np.random.default_rng(seed).normal(0, scale, (n, d))


# ------------------------------------------------------------------ the map


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (0.1, 0.3),
        (-0.7, 0.1),
        (-9.9, 6.5),
        (-10.0, -0.9),
        (-10.0, -9.9),
        (-10.0, -9.6),
        (1e-3, 1e9),
        (-1 / 3, 1 / 7),
        (0.0, 1e-301),
        (1.0, np.nextafter(1.0, 2.0)),
        (-5e300, 5e300),
        (-1e301, 1.0),
        (LARGEST - 1e301, LARGEST),
    ],
)
def test_ends_are_exact_and_values_beyond_are_clipped(lower, upper):
    scaler = BoundedScaler(lower=lower, upper=upper)
    X = np.array([[lower], [upper], [-LARGEST], [LARGEST]])
    # Not -1 and 1 within a tolerance: a mechanism downstream clips at 1 and nothing may stick out.
    assert scaler.fit_transform(X).ravel().tolist() == [-1.0, 1.0, -1.0, 1.0]
    back = scaler.inverse_transform([[-1.0], [1.0], [-5.0], [5.0]])
    assert back.ravel().tolist() == [lower, upper, lower, upper]
    almost = np.nextafter(1.0, 0.0)
    assert lower <= scaler.inverse_transform([[-almost]]) < scaler.inverse_transform([[almost]]) <= upper


FINITE = st.floats(allow_nan=False, allow_infinity=False)
BOUND = st.floats(-5e300, 5e300)


@settings(derandomize=True, deadline=None)
@given(
    bounds=st.lists(BOUND, min_size=2, max_size=2).map(sorted).filter(lambda ends: ends[1] - ends[0] >= 1e-301),
    values=st.lists(FINITE, min_size=1, max_size=20),
)
def test_the_map_stays_inside_keeps_order_and_comes_back(bounds, values):
    lower, upper = bounds
    X = np.sort(np.array(values))[:, None]
    scaler = BoundedScaler(lower=lower, upper=upper).fit(X)
    Z = scaler.transform(X)
    assert (np.abs(Z) <= 1.0).all()
    assert (np.diff(Z, axis=0) >= 0.0).all()
    back = scaler.inverse_transform(Z)
    clipped = np.clip(X, lower, upper)
    assert (back >= lower).all()
    assert (back <= upper).all()
    size = max(abs(lower), abs(upper))
    assert (np.abs(back / size - clipped / size) <= 1e-14).all()


def test_the_map_is_the_printed_one():
    X = numbers()
    lower, upper = np.array([-3.0, 0.0, -10.0, 2.0, -1.0]), np.array([3.0, 4.0, 1.0, 2.5, 8.0])
    expected = 2.0 * (np.clip(X, lower, upper) - lower) / (upper - lower) - 1.0
    assert np.allclose(BoundedScaler(lower=lower, upper=upper).fit_transform(X), expected, rtol=0, atol=1e-14)


def test_values_beyond_the_bounds_are_clipped_without_a_word(recwarn):
    X = np.array([[1e300, 1e-300, 0.0], [-1e300, 5.0, -5.0]])
    scaler = BoundedScaler(lower=-1e-300, upper=1e-300).fit(X)
    expected = [[1.0, 1.0, 0.0], [-1.0, 1.0, -1.0]]
    assert scaler.transform(X).tolist() == expected
    assert scaler.transform(sp.csr_array(X)).toarray().tolist() == expected
    assert not recwarn


def test_one_record_is_mapped_by_itself():
    X = numbers()
    scaler = BoundedScaler(lower=-1, upper=4).fit(X)
    whole = scaler.transform(X)
    changed = X.copy()
    changed[7] = 1e6
    assert np.array_equal(np.delete(scaler.transform(changed), 7, axis=0), np.delete(whole, 7, axis=0))
    assert np.array_equal(scaler.transform(X[3:4]), whole[3:4])


def test_input_is_left_alone():
    X = numbers()
    X.setflags(write=False)
    BoundedScaler().fit_transform(X)
    matrix = sp.csr_array(([5.0, 1.0, -9.0], [0, 0, 2], [0, 3]), shape=(1, 5))
    before = matrix.data.tolist(), matrix.indices.tolist()
    scaler = BoundedScaler().fit(matrix)
    scaler.inverse_transform(scaler.transform(matrix))
    assert (matrix.data.tolist(), matrix.indices.tolist()) == before


# ------------------------------------------------------------------ sparse


@pytest.mark.parametrize("container", SPARSE)
@pytest.mark.parametrize("upper", [2.0, np.array([0.1, 0.3, 1.0, 7.0, 1 / 3])], ids=["one", "per column"])
def test_sparse_stays_sparse_and_equals_dense_to_the_bit(container, upper):
    X = np.where(np.abs(numbers()) < 2.0, 0.0, numbers())
    scaler = BoundedScaler(lower=-upper, upper=upper).fit(container(X))
    Z = scaler.transform(container(X))
    assert sp.issparse(Z)
    assert Z.nnz == np.count_nonzero(X)
    dense = BoundedScaler(lower=-upper, upper=upper).fit(X)
    assert np.array_equal(Z.toarray(), dense.transform(X))
    back = scaler.inverse_transform(Z)
    assert sp.issparse(back)
    assert np.array_equal(back.toarray(), dense.inverse_transform(dense.transform(X)))


@pytest.mark.parametrize("container", [sp.csr_array, sp.csc_array])
def test_entries_of_one_cell_are_clipped_together(container):
    # 3 - 2.5 lies within the bounds, though neither part does.
    X = container(([3.0, -2.5], [0, 0], [0, 2]), shape=(1, 1))
    assert BoundedScaler().fit_transform(X).toarray().tolist() == [[0.5]]


@pytest.mark.parametrize(("lower", "upper"), [(0.0, 1.0), ([-1.0, -1.0], [1.0, 2.0])])
def test_sparse_with_other_bounds_is_refused_everywhere(lower, upper):
    X = np.eye(2)
    scaler = BoundedScaler(lower=lower, upper=upper)
    with pytest.raises(ParameterError, match=r"^lower=.*: expected .* sparse X.*; .* pass a dense X\.$"):
        scaler.fit(sp.csr_array(X))
    scaler.fit(X)
    for call in (scaler.transform, scaler.inverse_transform):
        with pytest.raises(ParameterError, match=f"^lower={np.ravel(lower)[0]}: expected -{np.ravel(upper)[-1]},"):
            call(sp.csr_array(X))


@pytest.mark.slow
def test_a_million_sparse_columns_are_never_filled_in():
    n, d = 2000, 1_000_000  # 16 GB if dense
    rng = np.random.default_rng(0)
    X = sp.csr_array((rng.normal(size=20 * n), rng.integers(0, d, 20 * n), np.arange(0, 20 * n + 1, 20)), shape=(n, d))
    tracemalloc.start()
    scaler = BoundedScaler(lower=-2.0, upper=2.0)
    Z = scaler.fit_transform(X)
    back = scaler.inverse_transform(Z)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6
    assert np.array_equal(back.data, np.clip(back.data, -2.0, 2.0))
    assert scaler.certificate_.public["lower"] == -2.0


# ------------------------------------------------------------------ privacy


def test_nothing_fitted_depends_on_values():
    names = list("abcde")
    first, second = (
        BoundedScaler(lower=-1, upper=2).fit(pd.DataFrame(numbers(n, seed=n, scale=n), columns=names)) for n in (3, 50)
    )
    assert (
        set(vars(first))
        == set(vars(second))
        == {*("lower", "upper", "invalid", "lower_", "upper_", "certificate_", "n_features_in_", "feature_names_in_")}
    )
    for name, value in vars(first).items():
        assert np.array_equal(value, vars(second)[name]), name


def test_the_certificate_costs_nothing_and_states_the_bounds():
    certificate = BoundedScaler(lower=[0, -1], upper=4).fit(np.zeros((3, 2))).certificate_
    assert (certificate.epsilon, certificate.delta, certificate.events) == (0.0, 0.0, ())
    assert certificate.status == "proved"
    assert dict(certificate.public) == {"features": 2, "lower": [0.0, -1.0], "upper": 4.0, "invalid": "raise"}
    assert certificate.assumptions == ("the bounds were chosen without looking at these data", ADMISSIBLE)
    assert "does not depend on the data at all" in str(certificate)
    assert Certificate.from_json(certificate.to_json()) == certificate


def test_changed_parameters_take_effect_at_the_next_fit():
    X = np.array([[4.0]])
    scaler = BoundedScaler(lower=0, upper=4).fit(X)
    scaler.set_params(upper=8)
    # Else the certificate would state other bounds than those in force.
    assert scaler.transform(X) == 1.0
    assert scaler.fit(X).transform(X) == 0.0


# ------------------------------------------------------------------ in company


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, np.uint16, bool])
def test_other_types_of_numbers_are_cast(dtype):
    X = np.abs(numbers()).astype(dtype)
    Z = BoundedScaler(lower=0, upper=2).fit_transform(X)
    assert Z.dtype == np.float64
    assert np.array_equal(Z, np.clip(X.astype(float), 0, 2) - 1.0)


def test_frames_come_back_without_a_warning():
    frame = pd.DataFrame(numbers(), columns=[f"gene {j}" for j in range(5)])
    scaler = BoundedScaler(lower=-2, upper=2).set_output(transform="pandas").fit(frame)
    out = scaler.transform(frame)
    assert np.array_equal(scaler.inverse_transform(out), scaler.inverse_transform(out.to_numpy()))


def test_pipelines_and_columns_with_bounds_of_their_own():
    X = numbers(scale=1.0)
    y = X[:, 0]
    assert cross_val_score(make_pipeline(BoundedScaler(lower=-4, upper=4), LinearRegression()), X, y).min() > 0.999
    parts = make_column_transformer(
        (BoundedScaler(lower=-4, upper=4), [0, 1]), (BoundedScaler(lower=0, upper=1), [2]), remainder="passthrough"
    )
    Z = parts.fit_transform(X)
    assert np.array_equal(Z[:, :2], np.clip(X[:, :2] / 4, -1, 1))
    assert np.allclose(Z[:, 2], 2 * np.clip(X[:, 2], 0, 1) - 1)
    assert np.array_equal(Z[:, 3:], X[:, 3:])


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("bounds", "start"),
    [
        ({"lower": 1.0}, "lower=1.0: expected a number below upper=1.0"),
        ({"lower": 3, "upper": -3}, "lower=3.0: expected a number below upper=-3.0"),
        ({"lower": [0, 2], "upper": [1, 2]}, "lower[1]=2.0: expected a number below upper[1]=2.0"),
        ({"lower": [0, 2], "upper": 1}, "lower[1]=2.0: expected a number below upper=1.0"),
        ({"lower": float("nan")}, "lower=nan: expected a finite number"),
        ({"upper": float("inf")}, "upper=inf: expected a finite number"),
        ({"upper": [1.0, np.inf]}, "upper[1]=inf: expected a finite number"),
        ({"lower": [0.0]}, "len(lower)=1: expected 2, the number of columns of X"),
        ({"upper": np.ones(3)}, "len(upper)=3: expected 2, the number of columns of X"),
        ({"lower": "low"}, "lower='low': expected a number or one number per column"),
        ({"lower": None}, "lower=None: expected a number or one number per column"),
        ({"upper": True}, "upper=True: expected a number or one number per column"),
        ({"upper": [[1.0, 1.0]]}, "upper=[[1.0, 1.0]]: expected a number or one number per column"),
        ({"upper": [[1.0], 1.0]}, "upper=[[1.0], 1.0]: expected a number or one number per column"),
        ({"lower": {"a": (0, 1)}}, "lower={'a': (0, 1)}: expected a number or one number per column"),
    ],
    ids=str,
)
def test_bad_bounds_are_refused_at_fit_in_one_sentence(bounds, start):
    scaler = BoundedScaler(**bounds)
    scaler.__sklearn_tags__()  # no refusal yet: tags are read before fit
    with pytest.raises(ParameterError) as caught:
        scaler.fit(np.zeros((3, 2)))
    message = str(caught.value)
    assert message.startswith(start)
    assert message.endswith(".")
    assert message.count(". ") == 0
    assert "; " in message
    assert not hasattr(scaler, "certificate_")


def test_other_shapes_and_unfitted_scalers_are_refused():
    scaler = BoundedScaler()
    for call in (scaler.transform, scaler.inverse_transform):
        with pytest.raises(NotFittedError):
            call(np.zeros((2, 3)))
    scaler.fit(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="2 features, but BoundedScaler is expecting 3"):
        scaler.transform(np.zeros((2, 2)))
    with pytest.raises(DataError, match=r"^X: expected 3 columns, as in fit, got 2; pass what transform returned\.$"):
        scaler.inverse_transform(np.zeros((2, 2)))


@pytest.mark.parametrize(("lower", "upper"), [(-1e308, 1e308), (0.0, 1e-323), ([0.0, -1e308], [1.0, 1e308])])
def test_bounds_whose_width_is_no_number_are_refused(lower, upper):
    with pytest.raises(ParameterError, match=r"^lower.*by 1e-301 to 1e301; state the range"):
        BoundedScaler(lower=lower, upper=upper).fit(np.zeros((3, 2)))


# ------------------------------------------------------------------ bounds by name


PATIENTS = {"age": [18, 59, 100, 7], "pressure": [40, 120, 200, 300]}
BY_NAME = {"pressure": (40, 200), "age": (18, 100)}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_bounds_by_name_are_those_of_the_columns(make):
    table = make(PATIENTS)
    named, listed = BoundedScaler(bounds=BY_NAME), BoundedScaler(lower=[18, 40], upper=[100, 200])
    mapped = named.fit(table).transform(table)
    assert np.array_equal(mapped, listed.fit(table).transform(table))
    assert mapped.tolist() == [[-1, -1], [0, 0], [1, 1], [-1, 1]]
    assert named.get_feature_names_out().tolist() == ["age", "pressure"]
    assert named.certificate_ == listed.certificate_
    assert certificate_of(make_pipeline(named)).public == certificate_of(make_pipeline(listed)).public
    # Another order of the columns is another order of the bounds.
    swapped = make({name: PATIENTS[name] for name in ("pressure", "age")})
    assert clone(named).fit(swapped).lower_.tolist() == [40, 18]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bounds": {"age": (18, 100)}}, "expected bounds of every column, and 'pressure' has none"),
        ({"bounds": BY_NAME | {"weight": (0, 1)}}, "bounds='weight': expected names that X has"),
        ({"bounds": BY_NAME, "lower": 0.0}, "lower=0.0: expected nothing beside bounds"),
        ({"bounds": BY_NAME, "upper": [1, 2]}, "expected nothing beside bounds"),
        ({"bounds": BY_NAME | {"age": 18}}, "expected a pair of numbers"),
        ({"bounds": BY_NAME | {"age": "ab"}}, "expected a pair of numbers"),
        ({"bounds": BY_NAME | {"age": (100, 18)}}, "expected a number below"),
        ({"bounds": [(18, 100), (40, 200)]}, "expected a mapping from names of columns"),
    ],
)
def test_other_bounds_by_name_are_refused(given, message):
    with pytest.raises(ParameterError) as refused:
        BoundedScaler(**given).fit(pd.DataFrame(PATIENTS))
    assert message in str(refused.value)


def test_tables_without_names_have_no_bounds_by_name():
    with pytest.raises(ParameterError, match="expected X with names of columns; pass a data frame"):
        BoundedScaler(bounds=BY_NAME).fit(pd.DataFrame(PATIENTS).to_numpy())
