"""Classes that are told to take records as null, and tables with some that have to be."""

import numpy as np
import pandas as pd
from every_class import PROVED, released
from sklearn.base import is_classifier

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


def one_null(X, y, row):
    table = X.copy()
    table[row, 0] = np.nan
    return {"X": X, "y": y}, {"X": table, "y": y}
