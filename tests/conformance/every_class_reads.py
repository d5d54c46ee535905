"""Feeds broken sparse tables to every class and prints what happened; runs apart, since it may not survive."""

import json
import sys
import warnings

import numpy as np
import scipy.sparse as sp
from every_class import EVERY_CLASS, records, takes_sparse, target_for

import taciturn

warnings.simplefilter("ignore")


def broken_tables(X):
    """Tables that scipy has built and would not build again."""

    def changed(layout, **arrays):
        table = layout(X)
        for name, change in arrays.items():
            setattr(table, name, change(getattr(table, name).copy()))
        return table

    def put(place, value):
        def change(array):
            array[place] = value
            return array

        return change

    return {
        "index beyond the columns": changed(sp.csr_matrix, indices=put(5, 99_999)),
        "index far beyond the columns": changed(sp.csr_array, indices=put(5, 2**31 - 1)),
        "negative index": changed(sp.csr_matrix, indices=put(5, -7)),
        "index beyond the rows": changed(sp.csc_matrix, indices=put(5, 99_999)),
        "falling indptr": changed(sp.csr_matrix, indptr=put(7, 900)),
        "negative indptr": changed(sp.csr_matrix, indptr=put(3, -3)),
        "indptr not from zero": changed(sp.csr_matrix, indptr=put(0, 2)),
        "indptr beyond the entries": changed(sp.csr_matrix, indptr=put(-1, 99_999)),
        "short indptr": changed(sp.csr_matrix, indptr=lambda starts: starts[:-9]),
        "long indptr": changed(sp.csr_matrix, indptr=lambda starts: np.append(starts, starts[-1])),
        "too few entries": changed(sp.csr_matrix, data=lambda data: data[:-5]),
        "COO column beyond the shape": changed(sp.coo_matrix, col=put(5, 99_999)),
        "COO row beyond the shape": changed(sp.coo_matrix, row=put(5, -1)),
        "BSR block beyond the shape": changed(
            lambda table: sp.bsr_matrix(table, blocksize=(2, 2)), indices=put(5, 99_999)
        ),
        "LIL column beyond the shape": changed(sp.lil_matrix, rows=put(5, [0, 99_999]), data=put(5, [0.5, 0.5])),
        "LIL row without entries": changed(sp.lil_matrix, data=put(5, [])),
    }


def outcome(call, X):
    try:
        call(X)
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["accepted", ""]


def main():
    X, y = records()
    outcomes = {}
    for name, factory in EVERY_CLASS.items():
        model = factory()
        if not takes_sparse(model):
            continue
        labels = target_for(model, y)
        model.fit(X, labels)
        calls = {"fit": lambda table, f=factory, t=labels: f().fit(table, t)}
        for method in ("predict", "predict_proba", "decision_function", "transform", "score"):
            if hasattr(model, method):
                bound = getattr(model, method)
                calls[method] = (lambda table, b=bound, t=labels: b(table, t)) if method == "score" else bound
        if hasattr(model, "predict") and (hasattr(model, "classes_") or hasattr(model, "y_bounds")):
            calls["private_score"] = lambda table, m=model, t=labels: taciturn.private_score(m, table, t)
        for case, table in broken_tables(X).items():
            for method, call in calls.items():
                outcomes[f"{name}.{method}: {case}"] = outcome(call, table)
    json.dump(outcomes, sys.stdout)


if __name__ == "__main__":
    main()
