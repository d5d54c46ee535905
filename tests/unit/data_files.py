"""Small files of every form that a data set may have, for the tests of the loaders."""

import bz2
import gzip
from dataclasses import replace

import numpy as np

from taciturn.datasets import DatasetFacts
from taciturn.datasets.real import Delimited, Libsvm, Npz

COMPRESSED = {"": bytes, ".bz2": bz2.compress, ".gz": gzip.compress}


def write(path, text, ending=""):
    (path.parent / (path.name + ending)).write_bytes(COMPRESSED[ending](text.encode("latin-1")))


def dense_arrays(X, y, suffix=""):
    return {f"X{suffix}": X, f"y{suffix}": y}


def sparse_arrays(X, y, prefix=""):
    rows, columns = np.nonzero(X)
    starts = np.searchsorted(rows, np.arange(len(X) + 1)).astype(np.int32)
    arrays = {"data": X[rows, columns], "indices": columns.astype(np.int32), "indptr": starts, "shape": X.shape}
    return {f"{prefix}{key}": array for key, array in arrays.items()} | {f"y{'_test' if prefix else ''}": y}


def libsvm_text(X, y):
    lines = (
        " ".join([f"{target:g}", *(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value)])
        for row, target in zip(X.tolist(), y.tolist(), strict=True)
    )
    return "\n".join(lines) + "\n"


def delimited_text(form, X, y):
    words = {value: word for word, value in form.symbols.items()}

    def field(value):
        return words.get(value, f"{value!r}") if value == value else "?"

    separator = "   " if form.delimiter is None else form.delimiter
    leading = ("8", "?", "12", "Lak\xe9woodcity", "1")[: form.skipped]
    rows = (
        separator.join([*leading, *map(field, [*row, target])])
        for row, target in zip(X.tolist(), y.tolist(), strict=True)
    )
    return "\n".join(rows) + "\n"


def arff_text(names, columns):
    header = [
        "% a comment, 100 % of it",
        "@relation a set",
        "",
        *(f"@attribute {name} REAL" for name in names),
        "",
        "@data",
    ]
    return (
        "\n".join([*header, *(", ".join(f"{value!r}" for value in row) for row in zip(*columns, strict=True))]) + "\n"
    )


def small(facts):
    """The same set with six records (four to test) of seven features."""
    return replace(
        facts,
        shape=(6, 7),
        labels=facts.labels and dict(zip(facts.labels, (4, 2), strict=False)),
        target=None if facts.task == "classification" else (1.0, 29.0),
        n_test=4 if facts.n_test else 0,
        test_labels=None,
    )


def made_up(facts, n_rows, seed):
    """Random records that fit small facts: some zeros, some missing values where there may be some."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, 7)) < 0.4, 0.0, rng.integers(-9, 9, (n_rows, 7)) / 8)
    X[:, 0] = [1.0, 2.0, 3.0, 3.0, 2.0, 1.0][:n_rows]
    if facts.missing:
        X[1, 3] = X[2, 6] = np.nan
    if facts.task == "regression":
        return X, np.array([5.0, 1.0, 7.5, 29.0, 4.0, 2.25])[:n_rows]
    labels = np.repeat(list(facts.labels or (-1, 1)), (4, 2))
    return X, labels[rng.permutation(6)][:n_rows]


def put(folder, facts, form, parts, ending=""):
    """Write the parts in a form."""
    (X, y), *tests = parts
    if isinstance(form, Npz):
        if facts.sparse:
            arrays = sparse_arrays(X, y) | (sparse_arrays(*tests[0], "test_") if tests else {})
        else:
            arrays = dense_arrays(X, y) | (dense_arrays(*tests[0], "_test") if tests else {})
        arrays |= {key: np.arange(6, dtype=np.int8) for key in form.extras}
        arrays |= {key: np.array(["one", "two"]) for key in form.categories.values()}
        np.savez_compressed(folder / form.train, **arrays)
    elif isinstance(form, Libsvm):
        theirs = {ours: label for label, ours in form.relabel.items()}
        for name, (features, targets) in zip((form.train, form.test), parts, strict=False):
            write(folder / name, libsvm_text(features, np.array([theirs.get(y, y) for y in targets.tolist()])), ending)
    elif isinstance(form, Delimited):
        write(folder / form.train, delimited_text(form, X, y), ending)
        for features, targets in tests:
            # In two files, the second written first.
            for day, rows in (("02", slice(1, None)), ("01", slice(1))):
                text = delimited_text(form, features[rows], targets[rows])
                write(folder / form.test.replace("*", f"2012.02.{day}"), text, ending)
    else:
        names = [f"p{j}" for j in range(7)] + ["activity"]
        columns = [*X.T.tolist(), y.tolist()]
        if form.target:
            names = ["Density_determined_from_underwater_weighing", "Percent_body_fat_(1956)", *names[1:7]]
            columns = [columns[7], *columns[:7]]
        write(folder / form.train, arff_text(names, columns), ending)


FEATURES = np.arange(18.0).reshape(6, 3)
LABELS = np.array([0, 0, 1, 0, 1, 0], dtype=np.int8)
TINY = DatasetFacts(
    task="classification",
    shape=(6, 3),
    forms=(Npz("tiny.npz"), Libsvm("tiny_train", "tiny_test")),
    publisher="its makers",
    address="https://example.org/tiny",
    about="Nothing.",
    labels={0: 4, 1: 2},
)
