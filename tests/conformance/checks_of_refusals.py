"""What is refused is described and never quoted, and parameters are refused before anybody looks at the data."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from checks import check, once
from every_class import data_for, takes_sparse

from taciturn import ParameterError, TaciturnError

WORD, NUMBER = "zx-alice-zx", 43210.9875
MARKS = ("alice", "43210", "4.321")


def told(error):
    """Everything that an error and those that travel along with it say."""
    texts, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        texts += [str(error), repr(error.args), *getattr(error, "__notes__", ())]
        error = error.__cause__ or error.__context__
    return " ".join(texts)


def refused(call, *data):
    """Whether a call refuses the data, which it may do in words that hold none of them."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            call(*data)
            raised = None
        except Exception as error:
            raised = error
    assert isinstance(raised, TaciturnError | TypeError | None), type(raised)
    text = told(raised) + " ".join(str(warning.message) for warning in heard)
    assert not any(mark in text for mark in MARKS), text
    return raised is not None


# ------------------------------------------------------------------ data


def bad_tables(X):
    """Tables that no method accepts; some cells would be easy to quote."""
    cells = X.astype(object)
    cells[3, 1] = WORD
    nested = X.astype(object)
    nested[3, 1] = {"name": WORD}
    beside = X.copy()
    beside[3, :2] = np.nan, NUMBER
    infinite = X.copy()
    infinite[3, :2] = -np.inf, NUMBER
    ragged = X.tolist()
    ragged[3] = [NUMBER]
    return {
        "text among objects": cells,
        "text among lists": cells.tolist(),
        "a dictionary": nested,
        "text": X.astype(str).astype(object) + WORD,
        "a frame with text": pd.DataFrame(cells),
        "NaN": beside,
        "infinity": infinite,
        "complex": X + NUMBER * 1j,
        "one dimension": np.full(len(X), NUMBER),
        "three dimensions": np.full((len(X), 2, 2), NUMBER),
        "a number": NUMBER,
        "a word": WORD,
        "no columns": X[:, :0],
        "rows of different lengths": ragged,
        "a number beyond doubles": np.where(np.arange(X.size).reshape(X.shape) == 7, 43210 * 10**400, X.astype(object)),
    }


def bad_targets(y):
    """Targets that no model accepts."""
    nested = y.astype(object)
    nested[3] = {"name": WORD}
    missing = y.astype(float)
    missing[3:5] = np.nan, NUMBER
    infinite = y.astype(float)
    infinite[3:5] = np.inf, NUMBER
    return {
        "a dictionary": nested,
        "NaN": missing,
        "infinity": infinite,
        "None among objects": np.where(np.arange(len(y)) == 3, None, y.astype(object)),
        "too long": np.append(y, NUMBER),
        "two columns": np.column_stack((y, np.full(len(y), NUMBER))),
        "a number": NUMBER,
        "nothing": None,
    }


@check(once)
def refusals_never_quote_the_table(entry):
    X, y = data_for(entry, n=60)
    model = entry().fit(X, y)
    calls = {name: getattr(model, name) for name in ("predict", "predict_proba", "transform") if hasattr(model, name)}
    calls |= {"score": lambda table: model.score(table, y)} if entry.predicts else {}
    calls |= {"inverse_transform": model.inverse_transform} if entry.scales else {}
    for name, table in bad_tables(X).items():
        fresh = entry()
        assert refused(fresh.fit, table, y), name
        assert not hasattr(fresh, "certificate_"), name
        for method, call in calls.items():
            # A selection of columns hands text on, which no model after it will take.
            assert refused(call, table) or (method == "transform" and not entry.scales), (name, method)
    for method, call in calls.items():
        assert refused(call, np.full((60, 5), NUMBER)), method
    if takes_sparse(entry()):
        sparse = sp.csr_array(X)
        sparse.data[3:5] = np.nan, NUMBER
        assert refused(entry().fit, sparse, y) or entry.layouts == "dense"
        assert all(refused(call, sparse) for call in calls.values())
    # Fine words about a table of another length than its target.
    assert entry.scales or refused(entry().fit, np.full((61, 6), NUMBER), y)


@check(lambda entry: once(entry) and not entry.scales)
def refusals_never_quote_the_target(entry):
    X, y = data_for(entry, n=60)
    for name, target in bad_targets(y).items():
        model = entry()
        assert refused(model.fit, X, target), name
        assert not hasattr(model, "certificate_"), name
    labels = np.where(np.arange(60) % 2, WORD, "zx-bob-zx")
    mixed = np.array([WORD if row % 7 else 43210 for row in range(60)], dtype=object)
    for target in (labels, labels.astype(object), labels.tolist()):
        # Labels are what a classifier predicts; elsewhere they are refused.
        assert refused(entry().fit, X, target) != entry.classifies
    assert refused(entry().fit, X, mixed) or entry.classifies
    if entry.classifies:
        # One class, whose label is as private as any.
        assert refused(entry().fit, X, np.full(60, WORD))
        assert refused(entry().fit, X, np.linspace(NUMBER, 2 * NUMBER, 60))


@check(lambda entry: not entry.scales)
def huge_numbers_are_clipped_without_a_word(entry):
    X, y = data_for(entry, n=60)
    X[3, 1], X[4, 2] = 1.7e308, -1.7e308
    y = y if entry.classifies else np.where(np.arange(60) == 5, -4.3210e307, y)
    assert not refused(entry().fit, X, y) or not entry.proved


# ------------------------------------------------------------------ parameters


class Untouchable:
    """Data that nobody may look at."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("read")

    def __getattr__(self, name):
        raise AssertionError(f"looked at {name}")


BAD = {
    "average": ("yes", None),
    "classes": (["only"], (1, "a"), (1, 1)),
    "clip_share": (0.0, 1.0, "much"),
    "coef_bound": (0.0, -1.0, "wide"),
    "count_range": ((2.5, 6), (6, 3), (0, 4), 7, (True, 3)),
    "count_share": (0.0, 1.0),
    "coupling": (0.0, -1.0, "tight"),
    "cuts": ((), (0.0, 1.0), (2.0, 1.0), (1.0, 1.0), (0.5, math.inf), (0.5, math.nan), 3.0, "yearly"),
    "delta": (-0.1, 1.0, math.nan, "small", None),
    "epsilon": (0, -1.0, math.nan, "small", None, True),
    "exposure_bound": (0.0, -1.0, math.nan, math.inf, "long"),
    "fit_intercept": ("no", None),
    "gamma": (1.0, -0.1),
    "groups": ("age", 3, (0, 1), ("age", "sex")),
    "invalid": ("drop", None),
    "largest": (math.inf, None, [[1.0]]),
    "loss": ("hinge", None),
    "mechanism": ("magic", None),
    "method": ("three-phase", None),
    "missing": ("row", None),
    "n_blocks": (0, 2.5, "many"),
    "n_features_to_select": (0, 2.5, "few"),
    "n_jobs": (0, "all"),
    "n_nonzero": (0, 2.5, "few"),
    "columns": ("age", 3),
    "confidence_level": (1.0, 0.3, math.nan, "high"),
    "inference": ("yes", 2, None),
    "n_public": (0, -1, 2.5),
    "n_steps": (0, "many", 2.5),
    "penalty": ("l2", None),
    "permanent": ("yes", None),
    "radius": (0.0, -1.0, "wide"),
    "account": ("study.db", "sqlite:///study.db", 3, "mysql://host/study#patients"),
    "random_state": (-3, "x", 2.5),
    "regularisation": (0.0, -1.0, "some"),
    "class_weight": ("balanced", [1.0, 2.0], {0: -1.0}, {0: math.nan}),
    "relation": ("swap", None),
    "residual_clip": (0.0, -1.0, "none"),
    "row_bound": (0.0, -1.0, "median"),
    "rule": ("rnm", None),
    "score_func": ("kendall", None),
    "screen_at": ("never", 0, 2.5),
    "screen_share": (0.0, 1.0),
    "select": ("rows", None),
    "selection_share": (0.0, 1.0),
    "smallest": (0.0, -1.0, math.nan, "tiny"),
    "step_size": (0.0, -1.0, "large"),
    "strength": (0.0, "strong"),
    "threshold": (-0.1, 1.5, "high"),
    "tail": (0.5, 0.0005, "narrow"),
    "weight_bound": (0.0, -1.0, math.nan, math.inf, "heavy"),
    "person_weight": ("median", 1, None),
    "x_bound": (0, -1.0, math.nan, math.inf, "wide"),
    "y_bounds": ((1, 0), (0, 0), (0, math.inf), (0, 1, 2), "wide"),
}
"""Values that a parameter refuses wherever it occurs."""

ELSEWHERE = {"bounds", "lower", "upper"}
"""Of one class alone: ``test_bounded_scaler``."""

IN_FORCE = {
    "count_range": {"n_nonzero": "private-count"},
    "count_share": {"n_nonzero": "private-count", "count_range": (1, 4)},
    "exposure_bound": {"loss": "poisson", "y_bounds": (0, 4)},
    "gamma": {"mechanism": "canonical-lipschitz"},
    "groups": {"select": "variables"},
}
"""Settings without which a parameter is not looked at."""


@check(lambda entry: entry.proved and once(entry))
def bad_parameters_are_refused_before_data_are_read(entry):
    missing = entry.parameters.keys() - BAD.keys() - ELSEWHERE
    assert not missing, f"no bad value is known of {missing}"
    for name in entry.parameters.keys() & BAD.keys():
        for value in BAD[name]:
            model = entry(**{**IN_FORCE.get(name, {}), name: value})
            with pytest.raises(ParameterError) as caught:
                model.fit(Untouchable(), Untouchable())
            sentence = str(caught.value)
            assert sentence.startswith(f"{name}="), (name, value, sentence)
            assert ": expected " in sentence
            assert "; " in sentence
            assert sentence.endswith(".")
            assert ". " not in sentence
            assert vars(model).keys() == entry.parameters.keys()
