"""Up to ten seeded fits for every class that reads tables in parts: containers, files, relations and persons.

Rows are few, so a case checks bits and prices, not accuracy.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import scipy.sparse as sp
from seeded_cases import LABELS, Case, table

# Persons with one to four rows, in no order.
PERSONS = np.random.default_rng(5).integers(0, 140, 300)
_N_PERSONS = np.unique(PERSONS).size

# Container, arguments, whether rows belong to persons.
_SITUATIONS = (
    ("array", {}, True),
    ("array", {"relation": "add-remove", "n_public": _N_PERSONS}, True),
    ("csc", {"relation": "replace-one"}, True),
    ("frame", {"epsilon": 5.0}, False),
    ("dask", {"epsilon": 5.0}, False),
    ("dask", {"relation": "add-remove", "n_public": 300}, True),
    ("csv", {"epsilon": 5.0}, False),
    ("csv", {"relation": "replace-one"}, True),
    ("parquet", {"relation": "add-remove", "n_public": 290}, False),
    ("parquet", {"epsilon": 3.0}, True),
)


def _ten(target, sparse="csc", **options):
    cases = []
    for place, (container, situation, persons) in enumerate(_SITUATIONS):
        arguments = {"random_state": 31 + place, **situation, **options}
        container = sparse if container == "csc" else container
        cases.append(Case("dense", target, arguments, {"container": container, "persons": persons}))
    return tuple(cases)


_NUMBERS = {"target": "numbers", "x_bound": 1.0, "y_bounds": (-1.0, 1.0)}
_LABELS = {"target": "two", "x_bound": 1.0, "classes": LABELS}
# Few columns and much budget: other fits with so few rows are refused.
_ERRORS = {"inference": True, "columns": (0, 1, 3), "epsilon": 20.0}

ENGINES = {
    "SparseRegressor": _ten(**_NUMBERS, n_nonzero=4),
    "SparseClassifier": _ten(**_LABELS, n_nonzero=4),
    "SparseRegressor with inference": _ten(**_NUMBERS, **_ERRORS),
    "SparseClassifier with inference": _ten(**_LABELS, **_ERRORS),
    "SparseClassifier with inference, three classes": _ten("three", x_bound=1.0, classes=(0, 1, 2), **_ERRORS)[:6],
    "HardThresholdRegressor": _ten(**_NUMBERS, n_nonzero=4),
    "HardThresholdClassifier": _ten(**_LABELS, n_nonzero=4),
    "CorrelationSelector": _ten(**_NUMBERS, n_features_to_select=3),
    # It refuses sparse tables, and files, whose bounds are stated.
    "PrivateScaler": _ten("numbers", sparse="frame", smallest=0.1, largest=10.0, tail=0.4, epsilon=30.0)[:6],
}


def fit_elsewhere(model, case):
    """Fit a model to the table of a case in its container."""
    import dask.array as da
    import pandas as pd

    X, targets = table(case.table)
    y, container = targets[case.target], case.fit_arguments["container"]
    persons = PERSONS if case.fit_arguments["persons"] else None
    if container in ("csv", "parquet"):
        import taciturn

        name = f"{container} {case.target} {'persons' if persons is not None else ''}"
        path, bounds = _files()[name]
        with taciturn.open_table(path, bounds=bounds) as opened:
            return model.fit(opened)
    if container == "dask":
        given, chunks = {}, (70, 70, 70, 70, 20)
        if persons is not None:
            # All rows of a person are in one chunk.
            ordered = np.sort(persons)
            edges = [0, *(int(np.searchsorted(ordered, who)) for who in (40, 90)), ordered.size]
            chunks = tuple(np.diff(edges).tolist())
            given = {"persons": da.from_array(ordered, chunks=(chunks,))}
        return model.fit(da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=(chunks,)), **given)
    layouts = {"array": X, "csc": sp.csc_array(X), "frame": pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])}
    return model.fit(layouts[container], y, **({} if persons is None else {"persons": persons}))


_FOLDER = TemporaryDirectory()


@cache
def _files():
    """Paths of files and of bounds by "container target persons"."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    X, targets = table("dense")
    found = {}
    for target in ("numbers", "two"):
        for persons in (False, True):
            columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": targets[target]}
            stated = "lower = -1\nupper = 1" if target == "numbers" else 'classes = ["case", "control"]'
            lines = ["[target]", 'name = "y"', stated]
            for j in range(X.shape[1]):
                lines += [f"[columns.x{j}]", 'type = "number"', "lower = -1", "upper = 1"]
            if persons:
                columns["who"] = np.char.add("p", PERSONS.astype(str))
                lines += ["[person]", 'column = "who"']
            stem = Path(_FOLDER.name) / f"{target}{persons}"
            written = pa.table(columns)
            csv.write_csv(written, f"{stem}.csv")
            parquet.write_table(written, f"{stem}.parquet", row_group_size=70)
            Path(f"{stem}.toml").write_text("\n".join(lines), encoding="utf-8")
            for kind in ("csv", "parquet"):
                found[f"{kind} {target} {'persons' if persons else ''}"] = f"{stem}.{kind}", f"{stem}.toml"
    return found
