"""The forms in which a data set is kept: numpy archives, and the text of its publishers.

A form knows the names of its files and how to read them. Whatever in a file is not as the form has it ends in an
exception of Python, numpy, scipy or scikit-learn; the loader turns all of them into one sentence without data.
"""

from __future__ import annotations

import bz2
import gzip
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.io import arff
from sklearn.datasets import load_svmlight_file

from taciturn.core.arrays import FloatArray

__all__ = ["Arff", "Delimited", "Form", "Libsvm", "Npz", "Split"]


_OPENERS: dict[str, Any] = {".bz2": bz2.open, ".gz": gzip.open}


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """The training or the test records of a data set, numbers as float64."""

    X: FloatArray | sp.csr_array
    y: FloatArray
    label_names: tuple[str, ...] = ()
    categories: dict[int, tuple[str, ...]] = field(default_factory=dict)
    extras: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Form(ABC):
    """One way to keep a data set: the name of the file with the training records, and of those for the test.

    The latter is a name, or a pattern of names; it is empty if there are none, or if they are in the first file.
    """

    endings: ClassVar[tuple[str, ...]] = ("", ".bz2", ".gz")
    """What may follow a name: nothing, or the mark of a compressed file."""

    train: str
    test: str = ""

    def __str__(self) -> str:
        return f"{self.train} + {self.test}" if self.test else self.train

    @abstractmethod
    def expected(self, n_features: int) -> str:
        """What the files hold, in words."""

    @abstractmethod
    def read(self, train: Path, tests: Sequence[Path], n_features: int) -> tuple[Split, Split | None]:
        """The training part and the test part."""


@dataclass(frozen=True, slots=True)
class Npz(Form):
    """A numpy archive without pickled objects.

    Dense: ``X`` and ``y``; sparse: ``data``, ``indices``, ``indptr``, ``shape`` and ``y``. A test part has ``X_test``
    or the four sparse arrays with ``test_`` before their names, and ``y_test``. ``class_names`` are the names of the
    labels 0, 1, and so on. ``extras`` are further arrays to keep; ``categories`` are, for columns of codes 0, 1, and so
    on, the arrays with the names of the codes.
    """

    endings: ClassVar[tuple[str, ...]] = ("",)

    extras: tuple[str, ...] = ()
    categories: Mapping[int, str] = field(default_factory=dict)

    def expected(self, n_features: int) -> str:
        """What the file holds, in words."""
        further = "".join(f", {key}" for key in (*self.extras, *self.categories.values()))
        return f"an npz archive with arrays X and y (sparse: data, indices, indptr, shape and y){further}"

    def read(self, train: Path, tests: Sequence[Path], n_features: int) -> tuple[Split, Split | None]:
        """Both parts of the archive."""
        # Opened here, since numpy leaves a broken archive open.
        with train.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = archive.get("class_names", ())
            part = Split(
                _matrix(archive, "X", ""),
                _numbers(archive["y"]),
                tuple(map(str, names)),
                {column: tuple(map(str, archive[key])) for column, key in self.categories.items()},
                {key: _widened(archive[key]) for key in self.extras},
            )
            if "y_test" not in archive:
                return part, None
            return part, Split(_matrix(archive, "X_test", "test_"), _numbers(archive["y_test"]))


@dataclass(frozen=True, slots=True)
class _Text(Form):
    """Text: one file, or several one after another, for each part."""

    @abstractmethod
    def records(self, path: Path, n_features: int) -> Split:
        """The records of one file."""

    def read(self, train: Path, tests: Sequence[Path], n_features: int) -> tuple[Split, Split | None]:
        """Both parts, the test part from all its files."""
        part = self.records(train, n_features)
        if not tests:
            return part, None
        first, *more = (self.records(path, n_features) for path in tests)
        if not more:
            return part, first
        # Only dense text comes in several files.
        pieces = (first, *more)
        return part, Split(np.vstack([piece.X for piece in pieces]), np.concatenate([piece.y for piece in pieces]))


@dataclass(frozen=True, slots=True)
class Libsvm(_Text):
    """Lines of a target and ``index:value`` pairs, with indices from 1.

    ``relabel`` says what labels of the file are called here, where other forms of the set have other labels.
    """

    relabel: Mapping[int, int] = field(default_factory=dict)

    def expected(self, n_features: int) -> str:
        """What the file holds, in words."""
        return f"libsvm text with indices from 1 to {n_features}"

    def records(self, path: Path, n_features: int) -> Split:
        """The records of one file."""
        with _opened(path, "rb") as file:
            X, found = load_svmlight_file(file, n_features=n_features, zero_based=False)
        y = found.copy()
        for theirs, ours in self.relabel.items():
            y[found == theirs] = ours
        # The parser counts with 64 bits; 32-bit indices are what most kernels read without a copy.
        width = np.int32 if X.nnz <= np.iinfo(np.int32).max else np.int64
        return Split(sp.csr_array((X.data, X.indices.astype(width), X.indptr.astype(width)), shape=X.shape), y)


@dataclass(frozen=True, slots=True)
class Delimited(_Text):
    """Lines of fields, the target last; a delimiter of None is white space.

    The first ``skipped`` columns are no features; ``symbols`` are words that stand for numbers.
    """

    delimiter: str | None = ","
    skipped: int = 0
    symbols: Mapping[str, float] = field(default_factory=dict)

    def expected(self, n_features: int) -> str:
        """What the file holds, in words."""
        return f"lines of {self.skipped + n_features + 1} fields"

    def records(self, path: Path, n_features: int) -> Split:
        """The records of one file."""
        converters: dict[int | str, Any] = dict.fromkeys(range(self.skipped), lambda word: np.nan)
        if self.symbols:
            converters |= dict.fromkeys(range(self.skipped, self.skipped + n_features + 1), self._number)
        with _opened(path, "rt", encoding="latin-1") as file, warnings.catch_warnings():
            # An empty file; its shape says enough.
            warnings.simplefilter("ignore", UserWarning)
            table = np.loadtxt(file, delimiter=self.delimiter, comments=None, converters=converters, ndmin=2)
        return Split(np.ascontiguousarray(table[:, self.skipped : -1]), table[:, -1].copy())

    def _number(self, word: str) -> float:
        return self.symbols[word] if word in self.symbols else float(word)


@dataclass(frozen=True, slots=True)
class Arff(_Text):
    """Numeric attributes with names, in the format of Weka.

    ``target`` is how the name of the target begins, in lower case; empty for the last attribute. Attributes whose names
    begin with one of ``first`` come before all others, wherever the file has them.
    """

    target: str = ""
    first: tuple[str, ...] = ()

    def expected(self, n_features: int) -> str:
        """What the file holds, in words."""
        return f"an ARFF file of {n_features + 1} numeric attributes"

    def records(self, path: Path, n_features: int) -> Split:
        """The records of one file."""
        with _opened(path, "rt", encoding="latin-1") as file:
            rows, attributes = arff.loadarff(file)
        names = [name.lower() for name in attributes.names()]
        target = next(name for name in reversed(names) if name.startswith(self.target))
        features = sorted((name for name in names if name != target), key=lambda name: not name.startswith(self.first))
        columns = {name.lower(): _numbers(rows[name]) for name in attributes.names()}
        return Split(np.column_stack([columns[name] for name in features]), columns[target])


def _opened(path: Path, mode: str, **options: Any) -> IO[Any]:
    file: IO[Any] = _OPENERS.get(path.suffix, open)(path, mode, **options)
    return file


def _numbers(array: NDArray[Any]) -> FloatArray:
    if array.dtype.kind not in "iuf":
        raise ValueError("not numbers")
    return array.astype(np.float64)


def _widened(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers as int64 or float64, words as they are."""
    wide = {"i": np.int64, "u": np.int64, "f": np.float64}.get(array.dtype.kind)
    return array if wide is None else array.astype(wide)


def _matrix(archive: Any, dense: str, prefix: str) -> FloatArray | sp.csr_array:
    if dense in archive:
        return _numbers(archive[dense])
    indices, starts = archive[f"{prefix}indices"], archive[f"{prefix}indptr"]
    if indices.dtype.kind != "i" or starts.dtype.kind != "i":
        raise ValueError("not indices")
    shape = tuple(archive[f"{prefix}shape"].tolist())
    X = sp.csr_array((_numbers(archive[f"{prefix}data"]), indices, starts), shape=shape)
    X.check_format(full_check=True)
    return X
