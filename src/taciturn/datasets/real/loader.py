"""Finding the files of a data set, reading them, and refusing those of another."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from taciturn.core.arrays import FloatArray
from taciturn.core.errors import DataError
from taciturn.core.validation import check_choice
from taciturn.datasets.real.facts import DATASETS, DatasetFacts
from taciturn.datasets.real.formats import Form, Split

__all__ = ["DATA_VARIABLE", "Dataset", "find_dataset", "load_dataset"]

DATA_VARIABLE = "TACITURN_DATA"
"""Environment variable that names a folder of data sets."""

# What the parsers raise when a file is not of their format.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """A data set as its files have it: not scaled, in the order of the files.

    Parameters
    ----------
    name : str
        Its name in ``DATASETS``, where the meaning of labels and columns is stated.
    X : ndarray or csr_array of float64, shape (n_records, n_features)
        The features. Missing values, where the facts speak of them, are NaN.
    y : ndarray of shape (n_records,)
        Labels of the file as int64, or a target as float64.
    task : str
        "classification" or "regression".
    X_test, y_test : arrays as above or None
        The test part; None if there is none.
    digest : str
        SHA-256 of the bytes of the files, one after another, to tell results of different files apart.
    label_names : tuple of str
        Names of the labels 0, 1, and so on; empty if the file has none.
    categories : mapping of int to tuple of str
        For columns of codes 0, 1, and so on: the names of the codes, so that they can be coded one-hot.
    extras : mapping of str to ndarray
        Further arrays of the file, by their names there.
    """

    name: str
    X: FloatArray | sp.csr_array
    y: NDArray[Any]
    task: str
    X_test: FloatArray | sp.csr_array | None = None
    y_test: NDArray[Any] | None = None
    digest: str = ""
    label_names: tuple[str, ...] = ()
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)


class _Files(NamedTuple):
    form: Form
    train: Path
    tests: tuple[Path, ...]

    @property
    def paths(self) -> tuple[Path, ...]:
        return (self.train, *self.tests)


def find_dataset(name: str, directory: str | os.PathLike[str] | None = None) -> tuple[tuple[Path, ...], str]:
    """The files of a data set, and their digest, without reading what they hold.

    Parameters
    ----------
    name, directory
        As for :func:`load_dataset`.

    Returns
    -------
    paths : tuple of Path
        The file with the training records, then those with test records.
    digest : str
        SHA-256 of their bytes, one after another.
    """
    paths = _find(name, directory).paths
    return paths, _digest(paths)


def load_dataset(name: str, directory: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by its name and check that it is the one the papers use.

    Its files are looked for in ``directory``, then in the folder that the environment variable ``TACITURN_DATA``
    names, then in ``taciturn`` below ``XDG_CACHE_HOME`` (``~/.cache`` if that is not set); all files of a set in one
    place. Nothing is ever downloaded. ``DATASETS[name].files`` lists the accepted files, those that are preferred
    first; text may also be compressed, with ``.bz2`` or ``.gz`` after its name.

    An archive ``NAME.npz`` has the arrays ``X`` and ``y`` (sparse: ``data``, ``indices``, ``indptr``, ``shape`` and
    ``y``), for a test part ``X_test`` (sparse: ``test_data`` and so on) and ``y_test``, and for the names of the
    labels ``class_names``.

    Parameters
    ----------
    name : str
        One of ``DATASETS``.
    directory : path, default=None
        Where to look first.

    Returns
    -------
    Dataset
        The records as the files have them.

    Examples
    --------
    >>> from taciturn.datasets import DATASETS
    >>> DATASETS["a9a"].shape, DATASETS["a9a"].files
    ((32561, 123), ('a9a.npz', 'a9a + a9a.t'))
    """
    files = _find(name, directory)
    facts = DATASETS[name]
    refused = partial(_refusal, name, facts, files)
    part, test = _read(files, facts.shape[1], refused)
    X, y = _checked(part, facts, facts.shape, facts.labels, "", refused)
    if facts.target is not None and (y.min(), y.max()) != facts.target:
        least, largest = facts.target
        raise refused(f"a target from {least:g} to {largest:g}")
    X_test = y_test = None
    if facts.n_test:
        shape = (facts.n_test, facts.shape[1])
        X_test, y_test = _checked(test, facts, shape, facts.test_labels, "test ", refused)
    return Dataset(
        name,
        X,
        y,
        facts.task,
        X_test,
        y_test,
        _digest(files.paths),
        part.label_names,
        part.categories,
        part.extras,
    )


def _places(directory: str | os.PathLike[str] | None) -> list[Path]:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    named = (directory, os.environ.get(DATA_VARIABLE))
    return [Path(place) for place in named if place] + [Path(cache) / "taciturn"]


def _find(name: str, directory: str | os.PathLike[str] | None) -> _Files:
    check_choice(tuple(DATASETS), name=name)
    facts = DATASETS[name]
    places = _places(directory)
    for place in places:
        for form in facts.forms:
            train, tests = _matching(place, form, form.train), _matching(place, form, form.test)
            if train and bool(tests) == bool(form.test):
                return _Files(form, train[0], tests)
    rows, columns = facts.shape
    raise DataError(
        f"data set {name!r}: expected a file {' or '.join(facts.files)} ({rows} x {columns} features"
        f"{'; text also as .bz2 or .gz' if len(facts.forms) > 1 else ''}) in "
        f"{' or '.join(str(place) for place in places)}; it is published by {facts.publisher}, {facts.address}: put it "
        f"there, or name its folder with --data or {DATA_VARIABLE}."
    )


def _matching(place: Path, form: Form, pattern: str) -> tuple[Path, ...]:
    """The files of a name or pattern, all compressed alike, in the order of their names."""
    if not pattern:
        return ()
    found = (tuple(sorted(path for path in place.glob(pattern + end) if path.is_file())) for end in form.endings)
    return next(filter(None, found), ())


def _digest(paths: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def _read(files: _Files, n_features: int, refused: Callable[[str], DataError]) -> tuple[Split, Split | None]:
    try:
        return files.form.read(files.train, files.tests, n_features)
    except _UNREADABLE:
        # Raised below, where the parser's message, which may quote a value, does not travel along.
        pass
    raise refused(files.form.expected(n_features))


def _checked(
    part: Split | None,
    facts: DatasetFacts,
    shape: tuple[int, int],
    labels: Mapping[int, int] | None,
    kind: str,
    refused: Callable[[str], DataError],
) -> tuple[FloatArray | sp.csr_array, NDArray[Any]]:
    """Features and target of one part, if they are what the facts say."""
    if part is None or part.X.shape != shape or part.y.shape != shape[:1]:
        raise refused(f"{kind}X of {shape[0]} x {shape[1]} numbers and as many {kind}labels or targets y")
    X: Any = part.X
    if sp.issparse(X) != facts.sparse:
        X = sp.csr_array(X) if facts.sparse else X.toarray()
    values = X.data if sp.issparse(X) else X
    known = ~np.isinf(values) if facts.missing else np.isfinite(values)
    if not known.all() or not np.isfinite(part.y).all():
        raise refused(f"finite {kind}features and {kind}targets")
    if facts.task == "regression":
        return X, part.y
    # Beyond 2**53 a float64 does not tell whole numbers apart.
    whole = (np.rint(part.y) == part.y) & (np.abs(part.y) < 2.0**53)
    if not whole.all():
        raise refused(f"{kind}labels in whole numbers")
    y = part.y.astype(np.int64)
    if labels is not None and dict(zip(*np.unique(y, return_counts=True), strict=True)) != labels:
        raise refused(f"{kind}labels {', '.join(f'{label} ({count} times)' for label, count in labels.items())}")
    return X, y


def _refusal(name: str, facts: DatasetFacts, files: _Files, expected: str) -> DataError:
    held = " + ".join(path.name for path in files.paths[:2])
    return DataError(
        f"data set {name!r}: expected {expected}, but {held} holds something else; get it again from "
        f"{facts.publisher}, {facts.address}."
    )
