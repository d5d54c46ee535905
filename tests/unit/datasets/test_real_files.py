"""The files of the real data sets, where they are there."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn.core.errors import DataError
from taciturn.datasets import DATASETS, find_dataset, load_dataset

pytestmark = pytest.mark.usefixtures("no_data_anywhere")


SHARED = Path(__file__).parents[4] / "shared" / "data"


def listed():
    """Name, rows, columns, non-zeros and digest of every file, from the list that comes with them."""
    page = SHARED / "README.md"
    if not page.is_file():
        return {}
    rows = (line.split("|")[1:-1] for line in page.read_text(encoding="utf-8").splitlines() if ".npz` |" in line)
    cells = ([cell.strip().strip("`") for cell in row] for row in rows)
    return {cell[0].removesuffix(".npz"): (int(cell[1]), int(cell[2]), cell[3], cell[-1]) for cell in cells}


def same_chiaretti(loaded):
    counts = {name: (loaded.y == code).sum() for code, name in enumerate(loaded.label_names)}
    assert (counts["NEG"], counts["BCR/ABL"], len(counts)) == (74, 37, 6)


def same_residential(loaded):
    assert list(loaded.extras) == ["y_cost"]
    profit = loaded.y - loaded.extras["y_cost"]
    assert profit.shape == (372,)
    assert (profit > 0).mean() > 0.9


def same_communities(loaded):
    missing = np.isnan(loaded.X).sum(axis=0)
    police = [*range(96, 113), *range(116, 120), 121]
    assert np.flatnonzero(missing == 1675).tolist() == police
    assert np.flatnonzero(missing == 1).tolist() == [25]
    assert missing.sum() == 22 * 1675 + 1


def same_covtype(loaded):
    cover = loaded.extras["y_multiclass"]
    # UCI's own counts.
    assert np.bincount(cover).tolist() == [0, 211840, 283301, 35754, 2747, 9493, 17367, 20510]
    np.testing.assert_array_equal(loaded.y == 1, cover == 2)
    # The first record of UCI's file.
    assert loaded.X[0, :10].tolist() == [2596, 51, 3, 258, 0, 510, 221, 232, 148, 6279]
    assert (loaded.X[:, 10:14].sum(axis=1) == 1).all()


def same_kddcup(loaded):
    assert {column: len(names) for column, names in loaded.categories.items()} == {1: 3, 2: 66, 3: 11}
    for column, names in loaded.categories.items():
        assert np.unique(loaded.X[:, column]).tolist() == list(range(len(names)))
    one_hot = loaded.X.shape[1] + sum(len(names) - 1 for names in loaded.categories.values())
    assert one_hot == 118
    kinds = loaded.extras["label_names"][loaded.extras["y_label"]]
    np.testing.assert_array_equal(loaded.y == -1, kinds == "normal")
    # The first record of the publisher's file: a normal request by http over tcp.
    assert [loaded.categories[column][int(loaded.X[0, column])] for column in (1, 2, 3)] == ["tcp", "http", "SF"]
    assert loaded.X[0, [0, 4, 5]].tolist() == [0, 181, 5450]


def same_phishing(loaded):
    np.testing.assert_allclose(sp.linalg.norm(loaded.X, axis=1), 1.0, atol=1e-4)


def same_housing(loaded):
    assert loaded.X[0].tolist() == [0.00632, 18, 2.31, 0, 0.538, 6.575, 65.2, 4.09, 1, 296, 15.3, 396.9, 4.98]
    assert loaded.y[0] == 24.0


def same_abalone(loaded):
    assert loaded.X[0].tolist() == [1, 0.455, 0.365, 0.095, 0.514, 0.2245, 0.101, 0.15]
    assert loaded.y[0] == 15.0


def same_bodyfat(loaded):
    # Siri's equation, but for the handful of records that StatLib has wrong.
    error = np.abs(495.0 / loaded.y - 450.0 - loaded.X[:, 0])
    assert np.sort(error)[-10] < 0.5


def same_golub(loaded):
    assert loaded.label_names == ("ALL", "AML")
    assert (loaded.y[loaded.y == 0].size, loaded.y.size) == (47, 72)


SAME = {name.removeprefix("same_"): check for name, check in globals().items() if name.startswith("same_")}
SAME["kddcup99_10pct"] = SAME.pop("kddcup")


@pytest.mark.skipif(not listed(), reason="the folder of data sets, ../shared/data, is not here")
@pytest.mark.parametrize("name", DATASETS)
def test_the_files_we_have(name):
    if name not in listed():
        with pytest.raises(DataError, match=f"'{name}': expected a file {name}.npz"):
            find_dataset(name, SHARED)
        return
    rows, columns, n_nonzero, digest = listed()[name]
    loaded = load_dataset(name, SHARED)
    assert loaded.X.shape == (rows, columns)
    assert loaded.digest == digest == find_dataset(name, SHARED)[1]
    assert not n_nonzero or loaded.X.nnz == int(n_nonzero)
    assert sp.issparse(loaded.X) == bool(n_nonzero)
    with np.load(SHARED / f"{name}.npz", allow_pickle=False) as archive:
        np.testing.assert_array_equal(loaded.y, archive["y"])
        if not n_nonzero and rows * columns < 1_500_000:
            np.testing.assert_array_equal(loaded.X, archive["X"])
        elif n_nonzero:
            raw = sp.csr_array((archive["data"], archive["indices"], archive["indptr"]), shape=(rows, columns))
            assert abs(loaded.X - raw).max() == 0
        if "y_test" in archive:
            np.testing.assert_array_equal(loaded.y_test, archive["y_test"])
            values = archive["test_data"] if n_nonzero else archive["X_test"]
            np.testing.assert_array_equal(loaded.X_test.data if n_nonzero else loaded.X_test, values)
        else:
            assert loaded.X_test is None
    SAME.get(name, lambda _: None)(loaded)


@pytest.mark.skipif(not listed(), reason="the folder of data sets, ../shared/data, is not here")
def test_every_file_we_have_has_a_name():
    assert set(listed()) <= set(DATASETS)
    assert len(listed()) == 36
    assert set(SAME) <= set(listed())
