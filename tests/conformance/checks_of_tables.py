"""What tables may look like: degenerate, dense or sparse, with names or without, of any type of number."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from checks import check, has, once, refusal
from every_class import FITTED, data_for, records, released, same, takes_sparse

from taciturn import DataError, ParameterError
from taciturn.methods.survival.curve import SurvivalCurve

NAMES = ["age", "dose", "gene 1", "gene 2", "weight", "x"]
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")


def dense(result):
    """Numbers of an array, a matrix or a frame."""
    return result.toarray() if sp.issparse(result) else np.asarray(result)


def numbers(value):
    """An attribute as an array: of a curve, the counts that it rests on and everything that it says."""
    if isinstance(value, SurvivalCurve):
        return np.column_stack((value.times, value.counts, value.survival, value.lower, value.upper))
    return value


def results(model, X):
    """What every method makes of a table."""
    return {method: dense(getattr(model, method)(X)) for method in METHODS if hasattr(model, method)}


def public_labels(entry):
    """Labels where they can be given, so that one class among the records is enough."""
    return {"classes": (0, 1)} if entry.classifies else {}


# ------------------------------------------------------------------ degenerate tables


def degenerate_tables():
    rng = np.random.default_rng(1)
    column = rng.uniform(-1, 1, (30, 1))
    return {
        "one row": rng.uniform(-1, 1, (1, 4)),
        "one cell": np.array([[0.5]]),
        "one column": column,
        "zeros": np.zeros((30, 4)),
        "constant columns": np.ones((30, 4)) * [1.0, -1.0, 0.5, 7.0],
        "the same column four times": np.tile(column, 4),
        "more columns than rows": rng.uniform(-1, 1, (4, 50)),
        "no entries": sp.csr_array((30, 4)),
        "no entries in one row": sp.csc_array((1, 9)),
    }


def assert_finite(model):
    """Assert that all that was learned is finite and as wide as the table."""
    for name in ("coef_", "intercept_", "lower_", "upper_"):
        assert np.isfinite(getattr(model, name, 0.0)).all(), name
    support = getattr(model, "support_", np.ones(model.n_features_in_, dtype=bool))
    assert support.shape == (model.n_features_in_,)
    assert support.dtype == bool


def unusual_settings(entry):
    """Relations and budgets under which some of them have to be fitted too."""
    return {
        "one row": [{"relation": relation, "n_public": 30} for relation in ("add-remove", "replace-one")],
        "zeros": [{"epsilon": epsilon} for epsilon in (1e-3, 30.0, np.inf) if entry.proved],
    }


@check()
def degenerate_tables_are_fitted(entry):
    sparse, labelled = takes_sparse(entry()), entry.classifies and not entry.proved
    for name, X in degenerate_tables().items():
        # Not where one record has the only label, and labels cannot be given.
        if (sp.issparse(X) and not sparse) or (X.shape[0] == 1 and labelled):
            continue
        y = np.arange(X.shape[0]) % 2 if entry.classifies else np.linspace(-1, 1, X.shape[0])
        for given in ({}, *unusual_settings(entry).get(name, ())):
            # No more blocks than records.
            model = entry(**{**public_labels(entry), "n_blocks": 1, **given})
            refused = refusal(model.fit, X, y)
            if refused is not None:
                assert entry.needs_records, (name, given)
                # For what is public about the table, so for any other of its shape too.
                assert refusal(model.fit, np.random.default_rng(2).normal(size=X.shape), y) == refused
                continue
            assert_finite(model)
            for method, result in results(model, X).items():
                assert np.isfinite(result).all(), (name, given, method)
                assert result.shape[0] == X.shape[0]


@check(has("n_nonzero"))
def more_coefficients_than_features_are_all_features(entry):
    X, y = data_for(entry, n=60, d=5)
    model = entry(n_nonzero=50, count_range=None).fit(X, y)
    assert_finite(model)
    assert model.support_.sum() <= 5


@check(has("n_features_to_select"))
def a_selection_of_all_features_costs_nothing(entry):
    X, y = data_for(entry, n=60, d=5)
    with pytest.warns(UserWarning, match="n_features_to_select=50 is more than the 5 features"):
        more = entry(n_features_to_select=50).fit(X, y)
    for model in (more, entry(n_features_to_select=5).fit(X, y)):
        assert model.support_.all()
        assert model.certificate_.events == ()
        assert (model.certificate_.epsilon, model.certificate_.delta) == (0.0, 0.0) or not entry.proved


@check(lambda entry: entry.classifies and has("classes")(entry))
def one_class_is_enough_where_labels_are_public(entry):
    X, _ = records(60)
    for label in (0, 1, 2):
        model = entry(classes=(0, 1)).fit(X, np.full(60, label))
        assert_finite(model)
        assert model.classes_.tolist() == [0, 1]
        assert model.certificate_.public["classes"] == [0, 1]
        assert "the set of labels is public" not in model.certificate_.assumptions
    with pytest.raises(DataError, match="at least two classes, got one class"):
        entry().fit(X, np.ones(60, dtype=int))
    assert "the set of labels is public" in entry().fit(X, np.arange(60) % 2).certificate_.assumptions


@check(lambda entry: entry.proved and not entry.predicts and has("classes")(entry))
def selectors_fit_to_one_class_or_none(entry):
    X, _ = records(60)
    for label in "abz":
        model = entry(classes=("a", "b")).fit(X, np.full(60, label))
        assert model.support_.sum() == model.n_features_to_select


@check()
def no_records_are_refused_unless_their_number_is_private(entry):
    X, y = data_for(entry, n=0)
    with pytest.raises(DataError):
        entry(relation="zero-out").fit(X, y)
    if entry.proved and "relation" in entry.parameters and not entry.needs_records:
        given = {"relation": "add-remove", "n_public": 120, "invalid": "null", **public_labels(entry)}
        assert_finite(entry(**given).fit(X, y))


# ------------------------------------------------------------------ dense and sparse


def unsorted(X):
    """A CSR table with the entries of each row in falling order, and every entry in two parts, 3 and -2 times it."""
    table = sp.csr_array(X)
    order = np.concatenate([np.arange(*ends)[::-1] for ends in zip(table.indptr[:-1], table.indptr[1:], strict=True)])
    order = np.repeat(order.astype(int), 2)
    parts = np.tile([3.0, -2.0], table.nnz)
    return sp.csr_array((table.data[order] * parts, table.indices[order], 2 * table.indptr), shape=X.shape)


# ``test_sparse_tables`` has the others: all sparse layouts are read alike.
SPARSE = {"csr": sp.csr_array, "csc": sp.csc_matrix, "unsorted": unsorted}


def quarters(entry):
    """Records whose entries can be divided by four without rounding, some of them beyond the bounds."""
    X, y = data_for(entry)
    X = np.round(4.0 * X) / 4.0
    X[:5] *= 2.0
    return X, y


@check(lambda entry: takes_sparse(entry()) and entry.layouts != "dense")
def sparse_tables_are_read_as_dense_ones(entry):
    X, y = quarters(entry)
    # Other draws say nothing; without noise they have to agree.
    given = {"epsilon": np.inf, "epsilon_screen": np.inf} if entry.layouts == "law" else {}
    # One selection of two columns says little about the scores behind it.
    for seed in (7,) if entry.predicts else range(5):
        expected = entry(**given, random_state=seed).fit(X, y)
        for layout, convert in SPARSE.items():
            model = entry(**given, random_state=seed).fit(convert(X), y)
            assert entry.layouts != "bits" or released(model) == released(expected), layout
            assert model.certificate_.events == expected.certificate_.events
            for name in (FITTED | entry.extras) & vars(expected).keys() - {"certificate_", "inference_"}:
                found, wanted = (numbers(getattr(each, name)) for each in (model, expected))
                assert np.allclose(found, wanted, rtol=1e-6, atol=1e-6, equal_nan=True), (layout, name)
    for layout, convert in SPARSE.items():
        for method, result in results(expected, convert(X)).items():
            assert np.allclose(result, results(expected, X)[method], rtol=1e-12, atol=1e-12), (layout, method)


@check(lambda entry: entry.layouts == "dense")
def sparse_tables_are_refused_where_zero_is_not_mapped_to_zero(entry):
    X, y = data_for(entry)
    model = entry()
    for call in (model.fit, model.fit(X, y).transform, model.inverse_transform):
        with pytest.raises((DataError, ParameterError), match="(?i)sparse .*dense"):
            call(sp.csr_array(X))


@check(once)
def types_of_numbers_do_not_matter(entry):
    X, y = data_for(entry)
    X = np.round(X)
    expected = entry().fit(X, y)
    tables = [X.astype(dtype) for dtype in (np.float32, np.int8, object)]
    for table in (*tables, np.asfortranarray(X), X.tolist(), np.repeat(X, 2, axis=0)[::2]):
        assert same(entry, entry().fit(table, y), expected)
    for target in (y.tolist(), y.astype(object)):
        model = entry().fit(X, target)
        if entry.classifies:
            assert model.classes_.tolist() == [0, 1]
            # Labels stay of the type that they have.
            model.classes_ = expected.classes_
        assert same(entry, model, expected)


# ------------------------------------------------------------------ frames


def frames(X, names=NAMES):
    columns = {name: X[:, j] for j, name in enumerate(names)}
    return {"pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns), "pyarrow": pa.table(columns)}


@check(once)
def frames_are_tables_with_names(entry):
    X, y = data_for(entry)
    plain = entry().fit(X, y)
    found = results(plain, X)
    targets = {"pandas": pd.Series(y), "polars": pl.Series(y), "pyarrow": pa.chunked_array([y])}
    wrong = frames(X[:, ::-1], NAMES[::-1])
    for library, frame in frames(X).items():
        model = entry().fit(frame, targets[library])
        assert getattr(model, "feature_names_in_", np.array(())).tolist() == NAMES
        for method, result in results(model, frame).items():
            assert np.allclose(result, found[method], rtol=1e-12, atol=1e-12), (library, method)
        for method in METHODS:
            if hasattr(model, method):
                # The right columns in another order would be read as if they were the others.
                with pytest.raises(ValueError, match="feature names"):
                    getattr(model, method)(wrong[library])
        del model.feature_names_in_
        assert same(entry, model, plain), library


@check(lambda entry: not entry.predicts)
def columns_keep_their_names_on_the_way_out(entry):
    X, y = data_for(entry)
    model = entry().fit(pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(len(X))]), y)
    support = getattr(model, "support_", np.ones(6, dtype=bool))
    expected = np.array(NAMES)[support].tolist()
    assert model.get_feature_names_out().tolist() == expected
    plain = results(model, pd.DataFrame(X, columns=NAMES))["transform"]
    for library, frame in frames(X).items():
        if library == "pyarrow":
            continue
        out = model.set_output(transform=library).transform(frame)
        assert type(out) is type(frame)
        assert list(out.columns) == expected
        assert np.array_equal(out.to_numpy(), plain)
    indexed = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(len(X))])
    assert model.set_output(transform="pandas").transform(indexed).index.equals(indexed.index)
    assert entry().fit(X, y).get_feature_names_out().tolist() == [f"x{j}" for j in np.flatnonzero(support)]


@check(lambda entry: hasattr(entry.kind, "get_support"))
def selections_are_columns_and_come_back(entry):
    X, y = data_for(entry)
    model = entry().fit(X, y)
    chosen = model.get_support(indices=True)
    assert np.array_equal(chosen, np.flatnonzero(model.support_))
    assert np.array_equal(model.transform(X), X[:, chosen])
    assert sp.issparse(model.transform(sp.csr_array(X)))
    back = model.inverse_transform(model.transform(X))
    assert np.array_equal(back, np.where(model.support_, X, 0.0))
