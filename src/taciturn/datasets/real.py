"""Loaders of real data sets from files that users have."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import os
import tomllib
import warnings
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.io import arff
from sklearn.datasets import load_svmlight_file

from taciturn.core.errors import DataError
from taciturn.core.validation import FloatArray, check_choice

# ---- The forms in which a data set is kept: numpy archives, and the text of its publishers.
# A form knows the names of its files and how to read them. Whatever in a file is not as the form has it ends in an
# exception of Python, numpy, scipy or scikit-learn; the loader turns all of them into one sentence without data.

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
    """Lines of fields, the target last, after ``skipped`` columns; ``symbols`` are words that stand for numbers."""

    delimiter: str | None = ","  # None: white space
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


# ---- What is known of each data set: its shape, its labels or target, its files, and who publishes it.


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What a data set is; files that hold something else are refused.

    Parameters
    ----------
    task : str
        "classification" or "regression".
    shape : tuple of int
        Number of training records and of features.
    forms : tuple of Form
        The forms in which it is accepted, the preferred one first.
    publisher, address, about : str
        Who publishes it and where, and what labels, target and columns mean.
    labels, test_labels : mapping of int to int, default=None
        Labels and how many training or test records have them; None where they are not known for certain, or for
        regression.
    target : tuple of float, default=None
        Least and largest training target; None where they are not known for certain, or for classification.
    n_test : int, default=0
        Number of test records.
    sparse, missing : bool, default=False
        Whether the features are a CSR array, and whether some of them are missing, and thus NaN.
    """

    task: str
    shape: tuple[int, int]
    forms: tuple[Form, ...]
    publisher: str
    address: str
    about: str
    labels: Mapping[int, int] | None = None
    target: tuple[float, float] | None = None
    n_test: int = 0
    test_labels: Mapping[int, int] | None = None
    sparse: bool = False
    missing: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The accepted files, the preferred ones first; with a plus sign between those that belong together."""
        return tuple(str(form) for form in self.forms)


_FORMS: dict[str, type[Form]] = {"npz": Npz, "libsvm": Libsvm, "delimited": Delimited, "arff": Arff}


def _form(kind: str, **stated: Any) -> Form:
    """A form of files as the list of facts states it; an empty delimiter is white space."""
    if "delimiter" in stated:
        stated["delimiter"] = stated["delimiter"] or None
    return _FORMS[kind](**{key: _frozen(key, value) for key, value in stated.items()})


def _frozen(key: str, value: Any) -> Any:
    if isinstance(value, dict):
        return value if key == "symbols" else {int(number): each for number, each in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _facts(*, forms: list[dict[str, Any]], publisher: str, collection: str = "", **stated: Any) -> DatasetFacts:
    return DatasetFacts(
        forms=tuple(_form(**form) for form in forms),
        publisher=", ".join(filter(None, (publisher, collection))),
        **{key: _frozen(key, value) for key, value in stated.items()},
    )


def _groups() -> dict[str, dict[str, DatasetFacts]]:
    """The facts of ``real.toml``, by group and by name."""
    stated = tomllib.loads(Path(__file__).with_name("real.toml").read_text(encoding="utf-8"))
    groups = {}
    for group, entries in stated.items():
        common = {key: value for key, value in entries.items() if not isinstance(value, dict)}
        sets = {name: facts for name, facts in entries.items() if isinstance(facts, dict)}
        groups[group] = {name: _facts(**common | facts) for name, facts in sets.items()}
    return groups


_GROUPS = _groups()

DATASETS: dict[str, DatasetFacts] = {name: facts for sets in _GROUPS.values() for name, facts in sets.items()}
"""The data sets by name."""

MICROARRAYS = tuple(_GROUPS["microarrays"])
"""Names of the microarray sets whose classes are known for certain."""


# ---- Finding the files of a data set, reading them, and refusing those of another.

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
        name, X, y, facts.task, X_test, y_test, _digest(files.paths), part.label_names, part.categories, part.extras
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
