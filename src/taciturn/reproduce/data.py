"""The real data sets of the papers, by name, from files that the user has: nothing is downloaded."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import DataError, ParameterError

__all__ = ["MICROARRAYS", "Dataset", "load_dataset"]

DATA_VARIABLE = "TACITURN_DATA"
"""Environment variable that names a folder of data sets."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set as its file has it: unscaled, in the order of the file.

    Parameters
    ----------
    name : str
        Its name.
    X : ndarray of shape (n_records, n_features)
        The features.
    y : ndarray of int, shape (n_records,)
        Codes 0, 1, .. of the classes.
    digest : str
        Of the file's bytes, to tell results of different files apart.
    """

    name: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    digest: str


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the file must hold, and who publishes it."""

    shape: tuple[int, int]
    counts: tuple[int, ...]
    publisher: str


_COLLECTION = "collected in ramhiser/datamicroarray on GitHub"

_FACTS = {
    "alon": _Facts((62, 2000), (22, 40), f"Alon et al. 1999, {_COLLECTION}"),
    "borovecki": _Facts((31, 22283), (14, 17), f"Borovecki et al. 2005, {_COLLECTION}"),
    "chiaretti": _Facts((128, 12625), (10, 37, 5, 74, 1, 1), "Chiaretti et al. 2004, package ALL of Bioconductor"),
    "chowdary": _Facts((104, 22283), (62, 42), f"Chowdary et al. 2006, {_COLLECTION}"),
    "christensen": _Facts((217, 1413), (85, 113, 19), f"Christensen et al. 2009, {_COLLECTION}"),
    "golub": _Facts((72, 7129), (47, 25), f"Golub et al. 1999, {_COLLECTION}"),
    "gordon": _Facts((181, 12533), (150, 31), f"Gordon et al. 2002, {_COLLECTION}"),
    "gravier": _Facts((168, 2905), (111, 57), f"Gravier et al. 2010, {_COLLECTION}"),
    "khan": _Facts((63, 2308), (8, 23, 12, 20), f"Khan et al. 2001, {_COLLECTION}"),
    "shipp": _Facts((77, 7129), (58, 19), f"Shipp et al. 2002, {_COLLECTION}"),
    "singh": _Facts((102, 12600), (50, 52), f"Singh et al. 2002, {_COLLECTION}"),
    "sorlie": _Facts((85, 456), (14, 11, 13, 15, 32), f"Sorlie et al. 2001, {_COLLECTION}"),
    "su": _Facts((102, 5565), (25, 26, 28, 23), f"Su et al. 2002, {_COLLECTION}"),
    "subramanian": _Facts((50, 10100), (33, 17), f"Subramanian et al. 2005, {_COLLECTION}"),
    "west": _Facts((49, 7129), (25, 24), f"West et al. 2001, {_COLLECTION}"),
}

MICROARRAYS = tuple(_FACTS)
"""Names of the microarray sets."""


def load_dataset(name: str, directory: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by its name and check that it is the one the papers use.

    The file ``NAME.npz``, with the arrays ``X`` and ``y``, is looked for in ``directory``, then in the folder that the
    environment variable ``TACITURN_DATA`` names, then in ``taciturn`` below ``XDG_CACHE_HOME`` (``~/.cache`` if that
    is not set).

    Parameters
    ----------
    name : str
        One of ``MICROARRAYS``.
    directory : path, default=None
        Where to look first.

    Returns
    -------
    Dataset
        The records as the file has them.
    """
    if name not in _FACTS:
        raise ParameterError("name", name, f"one of {', '.join(_FACTS)}", "choose a data set by its name")
    facts = _FACTS[name]
    places = _places(directory)
    path = next((place / f"{name}.npz" for place in places if (place / f"{name}.npz").is_file()), None)
    if path is None:
        rows, columns = facts.shape
        raise DataError(
            f"data set {name!r}: expected a file {name}.npz with X ({rows} x {columns}) and y (class codes from 0) in "
            f"{' or '.join(str(place) for place in places)}; it is published by {facts.publisher}: put it there, or "
            f"name its folder with --data or {DATA_VARIABLE}."
        )
    content = path.read_bytes()
    X, y = _arrays(name, content)
    shapes_agree = X.shape == facts.shape and y.shape == facts.shape[:1]
    if not shapes_agree or X.dtype.kind not in "iuf" or y.dtype.kind not in "iu":
        raise DataError(
            f"data set {name!r}: expected X of {facts.shape[0]} x {facts.shape[1]} numbers and as many class codes y, "
            f"but {path.name} holds other arrays; convert it again from {facts.publisher}."
        )
    if y.min() < 0 or tuple(np.bincount(y).tolist()) != facts.counts or not np.isfinite(X).all():
        raise DataError(
            f"data set {name!r}: expected classes of {', '.join(str(count) for count in facts.counts)} records and "
            f"finite features, but {path.name} holds others; convert it again from {facts.publisher}."
        )
    digest = hashlib.sha256(content).hexdigest()
    return Dataset(name, X.astype(np.float64), y.astype(np.int64), digest)


def _places(directory: str | os.PathLike[str] | None) -> list[Path]:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    named = (directory, os.environ.get(DATA_VARIABLE))
    return [Path(place) for place in named if place] + [Path(cache) / "taciturn"]


def _arrays(name: str, content: bytes) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """X and y of an archive without pickled objects."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return archive["X"], archive["y"]
    except (OSError, ValueError, KeyError, EOFError, AttributeError, TypeError, zipfile.BadZipFile):
        pass
    raise DataError(f"data set {name!r}: expected an npz archive with arrays X and y, got something else; replace it.")
