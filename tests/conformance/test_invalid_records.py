"""``invalid="null"``: every fit is total, and a record that is not admissible is absent from all of it."""

import inspect
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from every_class import PROVED, PUBLISHED, records, released, takes_sparse, target_for
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline

import taciturn
from taciturn.audit import replay
from taciturn.core.errors import DataError, ParameterError
from taciturn.core.rng import Stream
from taciturn.data import reading
from taciturn.data.admission import PresentRecords
from taciturn.data.reading import ADMISSIBLE
from taciturn.data.sensitivity import RELATIONS
from taciturn.fitting import admm, block_votes
from taciturn.fitting.blocks import assign_blocks, blocks_by_slot
from taciturn.scalers import private

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

WITH_RELATION = [name for name, factory in PROVED.items() if "relation" in vars(factory())]
WITH_TARGET = [name for name in WITH_RELATION if name != "PrivateScaler"]
CLASSIFIERS = [name for name in PROVED if is_classifier(PROVED[name]())]
NULL_ROWS = (0, 7, 8, 150, 299)


def null_model(name, relation="zero-out", **given):
    """A class in its small setting, with public labels where it takes labels."""
    model = PROVED[name]().set_params(invalid="null", **given)
    if "relation" in vars(model):
        model.set_params(relation=relation, n_public=280)
    if is_classifier(model):
        model.set_params(classes=(0, 1))
    return model


def outcome(model, X, y):
    """Everything that a fit released, without the certificate's count of records."""
    return released(model.fit(X, y))


def invalid_tables(X):
    """The same rows made invalid in ways that have nothing in common."""
    rng = np.random.default_rng(5)
    for filling in (np.nan, np.inf, -np.inf):
        table = X.copy()
        table[NULL_ROWS, rng.integers(0, X.shape[1], len(NULL_ROWS))] = filling
        yield table
    other = X.copy()
    other[list(NULL_ROWS)] = rng.uniform(-5, 5, (len(NULL_ROWS), X.shape[1]))
    other[NULL_ROWS, 2] = np.nan
    yield other
    cells = X.astype(object)
    cells[NULL_ROWS, 1] = ["text", None, 10**400, {"a": 1}, pd.NaT]
    yield cells
    yield cells.tolist()
    yield pd.DataFrame(cells)


@pytest.mark.parametrize(
    ("name", "relation"),
    [(name, relation) for name in PROVED for relation in RELATIONS if name in WITH_RELATION or relation == "zero-out"],
)
def test_all_invalid_records_are_the_same_null_record(name, relation):
    X, y = records()
    y = target_for(PROVED[name](), y)
    tables = list(invalid_tables(X))
    # How a table is read does not depend on the relation.
    tables = tables if relation == "zero-out" else tables[:5:2]
    outcomes = [outcome(null_model(name, relation), table, y) for table in tables]
    names = outcomes[-1].pop("feature_names_in_", None)
    assert names is None
    assert all(other == outcomes[0] for other in outcomes)


@pytest.mark.parametrize("name", [name for name in PROVED if takes_sparse(PROVED[name]())])
def test_null_records_of_sparse_tables(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    X[NULL_ROWS, 3] = 0.5
    expected = None
    for layout in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        for filling in (np.nan, np.inf):
            table = sp.coo_array(X)
            table.data[(table.col == 3) & np.isin(table.row, NULL_ROWS)] = filling
            found = outcome(null_model(name), layout(table), y)
            expected = expected or found
            assert found == expected


@pytest.mark.parametrize("name", WITH_RELATION)
def test_under_add_remove_a_null_record_is_no_record(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    without = outcome(null_model(name, "add-remove"), np.delete(X, NULL_ROWS, axis=0), np.delete(y, NULL_ROWS))
    assert outcome(null_model(name, "add-remove"), next(invalid_tables(X)), y) == without


@pytest.mark.parametrize("name", WITH_TARGET)
def test_a_record_without_a_usable_target_is_null(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    expected = outcome(null_model(name), next(invalid_tables(X)), y)
    fillings = [[np.nan, None, np.inf, pd.NA, pd.NaT]]
    if not is_classifier(PROVED[name]()):
        fillings.append(["text", 10**400, {}, (1, 2), 2j])
    for filling in fillings:
        cells = y.astype(object)
        for row, cell in zip(NULL_ROWS, filling, strict=True):
            cells[row] = cell
        for target in (cells, cells.tolist(), pd.Series(cells)):
            assert outcome(null_model(name), X, target) == expected


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_label_outside_the_classes_is_the_same_null_record(name):
    X, y = records()
    y = target_for(null_model(name), y)
    other = y.astype(object)
    other[list(NULL_ROWS)] = ["no", 2, -1, 0.5, "1"]
    assert outcome(null_model(name), X, other) == outcome(null_model(name), next(invalid_tables(X)), y)


@pytest.mark.parametrize("name", PROVED)
def test_admissible_tables_give_the_same_either_way(name):
    X, y = records()
    strict, total = PROVED[name](), PROVED[name]().set_params(invalid="null")
    y = target_for(strict, y)
    first, second = released(strict.fit(X, y)), released(total.fit(X, y))
    first.pop("certificate_"), second.pop("certificate_")
    assert first == second
    assert strict.certificate_.events == total.certificate_.events
    assert (strict.certificate_.public["invalid"], total.certificate_.public["invalid"]) == ("raise", "null")
    assert ADMISSIBLE in strict.certificate_.assumptions
    assert ADMISSIBLE not in total.certificate_.assumptions


@pytest.mark.parametrize("name", PROVED)
def test_fits_are_total(name):
    X, y = records()
    y = target_for(PROVED[name](), y).astype(float)
    nothing = np.full_like(X, np.nan)
    for relation in RELATIONS if name in WITH_RELATION else ("zero-out",):
        null_model(name, relation).fit(nothing, y)
        one = nothing.copy()
        one[5] = X[5]
        null_model(name, relation).fit(one, y)
        if name in WITH_TARGET:
            null_model(name, relation).fit(X, np.full(len(y), np.nan))
    if name in WITH_RELATION:
        empty = released(null_model(name, "add-remove").fit(X[:0], y[:0]))
        assert empty == released(null_model(name, "add-remove").fit(nothing, y))
        with pytest.raises(DataError, match="expected records, got none"):
            null_model(name, "zero-out").fit(X[:0], y[:0])


@pytest.mark.parametrize("name", PROVED)
def test_frames_with_missing_values(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    X = np.round(X)
    columns = [f"c{j}" for j in range(X.shape[1])]
    missing = X.copy()
    missing[NULL_ROWS, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", taciturn.WeakBudgetWarning)
        nullable = pd.DataFrame(missing, columns=columns).astype("Int64")
        expected = released(null_model(name).fit(nullable, y))
        integers = [[None if np.isnan(cell) else int(cell) for cell in column] for column in missing.T]
        frames = [
            pd.DataFrame(missing, columns=columns),
            nullable.astype(object),
            pl.DataFrame(dict(zip(columns, integers, strict=True))),
            pa.table(dict(zip(columns, integers, strict=True))),
        ]
        for frame in frames:
            assert released(null_model(name).fit(frame, y)) == expected
    assert null_model(name).fit(nullable, y).feature_names_in_.tolist() == columns


@pytest.mark.parametrize("name", PROVED)
def test_what_is_no_table_is_refused_all_the_same(name):
    X, y = records(60)
    y = target_for(PROVED[name](), y)
    for table in (X[:, 0], X[None], X[:, :0], [[1.0, 2.0], [3.0]], "text"):
        with pytest.raises(DataError):
            null_model(name).fit(table, y)
    with pytest.raises(DataError):
        null_model(name).fit(X.astype(complex), y)
    if name in WITH_TARGET:
        for target in (y[:-1], np.column_stack((y, y)), None):
            with pytest.raises(DataError):
                null_model(name).fit(X, target)
    with pytest.raises(ParameterError, match="invalid='drop': expected one of 'raise', 'null'"):
        PROVED[name]().set_params(invalid="drop").fit(X, y)


@pytest.mark.parametrize("name", PROVED)
def test_every_class_takes_the_parameter_and_tells_of_it(name):
    model = PROVED[name]()
    assert inspect.signature(type(model)).parameters["invalid"].default == "raise"
    assert not model.__sklearn_tags__().input_tags.allow_nan
    assert model.set_params(invalid="null").__sklearn_tags__().input_tags.allow_nan


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_may_be_taken_from_those_that_are_there(name):
    X, y = records()
    y = target_for(PROVED[name](), y)
    expected = PROVED[name]().set_params(invalid="null").fit(X, y.tolist())
    assert expected.classes_.tolist() == [0, 1]
    assert "the set of labels is public" in expected.certificate_.assumptions
    missing = y.astype(object)
    missing[list(NULL_ROWS)] = None
    for target in (missing, missing.tolist(), pd.Series(missing, dtype="Int64"), pl.Series(missing.tolist())):
        model = PROVED[name]().set_params(invalid="null").fit(X, target)
        assert model.classes_.tolist() == [0, 1]
        assert np.isin(model.predict(X), [0, 1]).all()


def test_reproductions_stay_as_printed():
    assert not any("invalid" in factory().get_params() for factory in PUBLISHED.values())


# ------------------------------------------------------------------ neighbours


def unexpected(name, found):
    """Differences, but for the minimiser of a perturbed objective, which is no value with noise on it."""
    objective = name.startswith(("ObjectivePerturbation", "TwoStage", "ADMM"))
    return [each for each in found.differences if not (objective and each.kind == "result")]


def one_null(X, y, row):
    table = X.copy()
    table[row, 0] = np.nan
    return {"X": X, "y": y}, {"X": table, "y": y}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", WITH_RELATION)
def test_a_record_against_a_null_record_is_covered_by_every_declared_sensitivity(name, relation):
    X, y = records()
    # Corners move sums the most, and the largest target moves medians across.
    X[4], y[4] = np.sign(X[4] + 0.1), 1.0
    X[250], y[250] = 0.0, -1.0
    y = target_for(PROVED[name](), y)
    for row in (4, 250) if relation != "add-remove" else (299,):
        data, neighbour = one_null(X, y, row)
        if relation == "add-remove":
            # A null record is no record: as many rows as before would be refused by the replay.
            neighbour = {"X": np.delete(X, row, axis=0), "y": np.delete(y, row)}
        found = replay(null_model(name, relation), data, neighbour, relation=relation)
        assert unexpected(name, found) == []
        assert found.error is None


def keep_blank(self, present):
    """A null record as it used to be in regressions: a row of zeros with a target in the middle of its range."""
    blank = np.where(present[:, None], self.X, 0.0)
    y = np.where(present, self.y, 0.0)
    return PresentRecords(blank, y, self.slots, self.n_slots)


@pytest.mark.parametrize("name", ["HardThresholdRegressor", "SparseRegressor", "PrivateScaler"])
def test_a_null_record_that_only_looks_empty_is_found_out(name, monkeypatch):
    """It still is in every median, where it takes the place of the record on the other side."""
    X, y = records()
    X[X == 0.0] = 0.3
    X[4], y[4] = 1.0, 1.0
    data, neighbour = one_null(X, y, 4)
    replay(null_model(name), data, neighbour, relation="zero-out").raise_if_any()
    if name == "PrivateScaler":
        monkeypatch.setattr(private, "finite_rows", lambda table: np.nan_to_num(table, copy=False)[:, 0] < np.inf)
    else:
        monkeypatch.setattr(PresentRecords, "keep", keep_blank)
    assert replay(null_model(name), data, neighbour, relation="zero-out").differences


def test_null_records_keep_their_slots():
    slots = np.array([0, 1, 5, 6, 9])
    present = PresentRecords(np.zeros((5, 2)), np.zeros(5), slots, 10)
    for relation in ("zero-out", "replace-one"):
        blocks = assign_blocks(relation, present, 4, Stream.of(0))
        # Slots 0-1, 2-4, 5-6, 7-9.
        assert [slots[rows].tolist() for rows in blocks] == [[0, 1], [], [5, 6], [9]]
    drawn = assign_blocks("add-remove", present, 4, Stream.of(0))
    assert sorted(np.concatenate(drawn).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", ["BlockVoteSelector", "TwoStageRegressor", "TwoStageClassifier"])
def test_blocks_of_records_that_moved_up_are_found_out(name, monkeypatch):
    X, y = records(seed=3)
    # Without the last record all others move by one against the edges of the blocks.
    data, neighbour = one_null(X, target_for(PROVED[name](), y), 299)
    model = null_model(name, n_blocks=60)
    assert unexpected(name, replay(model, data, neighbour, relation="zero-out")) == []

    def by_position(relation, records, n_blocks, stream, keys=None):
        return blocks_by_slot(records.slots.size, n_blocks)

    for module in (block_votes, admm):
        monkeypatch.setattr(module, "assign_blocks", by_position)
    assert unexpected(name, replay(model, data, neighbour, relation="zero-out")) != []


def test_a_forgotten_mask_is_noticed(monkeypatch):
    X, y = records()
    _, neighbour = one_null(X, y, 4)
    monkeypatch.setattr(reading, "finite_rows", lambda table: np.ones(len(table), dtype=bool))
    model = null_model("FrankWolfeRegressor")
    found = released(null_model("FrankWolfeRegressor").fit(**neighbour))
    monkeypatch.undo()
    assert found != released(model.fit(**neighbour))


# ------------------------------------------------------------------ scores and scalers


def fitted(name):
    X, y = records()
    model = PROVED[name]()
    return model.fit(X, target_for(model, y)), X, target_for(model, y)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["FrankWolfeRegressor", "FrankWolfeClassifier"])
def test_scores_leave_null_records_out(name, relation):
    model, X, y = fitted(name)

    def score(table, target):
        given = {"relation": relation, "n_public": 300, "random_state": 3, "invalid": "null"}
        found = taciturn.private_score(model, table, target, **given)
        return found.value, found.std, found.certificate

    expected = score(next(invalid_tables(X)), y)
    for table in invalid_tables(X):
        assert score(table, y) == expected
    target = y.astype(object)
    target[list(NULL_ROWS)] = [None, np.nan, "x", pd.NA, 10**400]
    assert score(X, target) == expected
    if relation == "add-remove":
        assert score(np.delete(X, NULL_ROWS, axis=0), np.delete(y, NULL_ROWS)) == expected
        score(X[:0], y[:0])
    score(np.full_like(X, np.nan), y)
    strict = taciturn.private_score(model, X, y, relation=relation, n_public=300, random_state=3)
    assert (strict.value, strict.std) == score(X, y)[:2]
    assert ADMISSIBLE in strict.certificate.assumptions
    assert ADMISSIBLE not in expected[2].assumptions


@pytest.mark.parametrize("metric", ["mean squared error", "mean absolute error", "accuracy", "balanced accuracy"])
def test_scores_of_a_record_against_a_null_record_are_covered(metric):
    model, X, y = fitted("FrankWolfeClassifier" if "accuracy" in metric else "FrankWolfeRegressor")
    data, neighbour = one_null(X, y, 4)
    common = {"estimator": model, "metric": metric, "invalid": "null"}
    replay(taciturn.private_score, common | data, common | neighbour, relation="zero-out").raise_if_any()


def test_scalers_hand_null_records_on():
    X, y = records()
    broken = X.astype(object)
    broken[3, 1], broken[9, 0], broken[11, 2] = "text", np.inf, None
    scaler = taciturn.BoundedScaler(invalid="null").fit(broken)
    mapped = scaler.transform(broken)
    assert np.argwhere(np.isnan(mapped)).tolist() == [[3, 1], [9, 0], [11, 2]]
    assert np.array_equal(np.isnan(scaler.inverse_transform(mapped)), np.isnan(mapped))
    plain = X.copy()
    plain[[3, 9, 11], 0] = np.nan
    model = null_model("HardThresholdRegressor")
    through = make_pipeline(scaler, model).fit(broken, y)
    assert released(through[-1])["coef_"] == released(null_model("HardThresholdRegressor").fit(plain, y))["coef_"]


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize("invalid", ["raise", "null"])
@pytest.mark.parametrize("name", WITH_TARGET)
def test_no_refusal_tells_the_number_of_records(name, invalid):
    X, y = records(237)
    y = target_for(PROVED[name](), y)
    model = null_model(name, "add-remove").set_params(invalid=invalid)
    cases = [
        (X, y[:-1]),
        (X[:0], y[:0]) if invalid == "raise" else (X, y[:-2]),
        (X[:, :0], y),
        (X, np.column_stack((y, y))),
        (X, y[None]),
        (X[None], y),
        (sp.csr_array(X), y[:-1]),
    ]
    for table, target in cases:
        with pytest.raises(DataError) as caught:
            model.fit(table, target)
        assert not any(number in str(caught.value) for number in ("237", "236", "235", "sample(s)"))


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_refused_score_tells_the_number_of_records(relation):
    model, X, y = fitted("FrankWolfeRegressor")
    for invalid in ("raise", "null"):
        with pytest.raises(DataError, match="different lengths") as caught:
            taciturn.private_score(model, X, y[:-1], relation=relation, n_public=50, invalid=invalid)
        assert not any(number in str(caught.value) for number in ("300", "299"))
