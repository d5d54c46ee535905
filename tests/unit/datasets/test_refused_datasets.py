"""Files that are not the data set that they are called: each is refused with one sentence."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
from data_files import COMPRESSED, FEATURES, LABELS, TINY, arff_text, delimited_text, libsvm_text, sparse_arrays

from taciturn.core.errors import DataError
from taciturn.datasets import DATASETS, load_dataset
from taciturn.datasets.real import Arff, Delimited, Libsvm

pytestmark = pytest.mark.usefixtures("no_data_anywhere")


# In every file below this is a value; no message may have it.
SECRET = 98765.5
WITH_SECRET = np.where(FEATURES == 7.0, SECRET, FEATURES)


def refusal(folder):
    """The one sentence with which the set is refused, without a value of the data or the parser's error behind it."""
    with pytest.raises(DataError) as raised:
        load_dataset("tiny", folder)
    assert raised.value.__cause__ is raised.value.__context__ is None
    message = str(raised.value)
    assert re.fullmatch(
        r"data set 'tiny': expected .* holds something else; get it again from its makers, .*\.", message
    )
    assert "98765" not in message
    return message


SHAPE = "expected X of 6 x 3 numbers and as many labels or targets y"
COUNTS = r"expected labels 0 \(4 times\), 1 \(2 times\)"
ARCHIVE = "expected an npz archive with arrays X and y"
CSR = sparse_arrays(WITH_SECRET, LABELS)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"X": WITH_SECRET[:, :2], "y": LABELS}, SHAPE),
        ({"X": WITH_SECRET[:5], "y": LABELS[:5]}, SHAPE),
        ({"X": WITH_SECRET.T, "y": LABELS}, SHAPE),
        ({"X": WITH_SECRET.ravel(), "y": LABELS}, SHAPE),
        ({"X": WITH_SECRET, "y": LABELS[:5]}, SHAPE),
        ({"X": WITH_SECRET, "y": LABELS[:, None]}, SHAPE),
        ({"X": WITH_SECRET, "y": 1 - LABELS}, COUNTS),
        ({"X": WITH_SECRET, "y": LABELS - 1}, COUNTS),
        ({"X": WITH_SECRET, "y": LABELS + 0.5}, "expected labels in whole numbers"),
        ({"X": WITH_SECRET, "y": np.array([0, 0, 1, 0, 2, 0])}, COUNTS),
        ({"X": np.where(FEATURES == 4, np.nan, WITH_SECRET), "y": LABELS}, "expected finite features"),
        ({"X": np.where(FEATURES == 4, np.inf, WITH_SECRET), "y": LABELS}, "expected finite features"),
        ({"X": WITH_SECRET, "y": np.where(LABELS, np.nan, 0.0)}, "expected finite features and targets"),
        ({"X": WITH_SECRET.astype(str), "y": LABELS}, ARCHIVE),
        ({"X": WITH_SECRET.astype(complex), "y": LABELS}, ARCHIVE),
        ({"X": WITH_SECRET, "y": LABELS.astype(str)}, ARCHIVE),
        ({"X": WITH_SECRET, "y": LABELS.astype(bool)}, ARCHIVE),
        ({"X": WITH_SECRET.astype(object), "y": LABELS}, ARCHIVE),
        ({"X": WITH_SECRET}, ARCHIVE),
        ({"y": LABELS}, ARCHIVE),
        ({"X": WITH_SECRET, "y": LABELS, "y_test": LABELS}, ARCHIVE),
        (CSR | {"indices": CSR["indices"] + 1}, ARCHIVE),
        (CSR | {"indices": CSR["indices"] - 1}, ARCHIVE),
        (CSR | {"indices": CSR["indices"] * 1.0}, ARCHIVE),
        (CSR | {"indptr": CSR["indptr"][::-1]}, ARCHIVE),
        (CSR | {"indptr": CSR["indptr"] * 2}, ARCHIVE),
        (CSR | {"data": CSR["data"][:-1]}, ARCHIVE),
        (CSR | {"shape": (6, 4)}, SHAPE),
        (CSR | {"shape": (7, 3)}, ARCHIVE),
    ],
)
def test_another_archive_is_refused(tiny, arrays, sentence):
    np.savez(tiny / "tiny.npz", **arrays)
    assert re.search(sentence, refusal(tiny))


def test_the_archive_that_the_refused_ones_vary_is_not_refused(tiny):
    for arrays in ({"X": WITH_SECRET, "y": LABELS}, CSR, {"X": WITH_SECRET, "y": LABELS * 1.0}):
        np.savez(tiny / "tiny.npz", **arrays)
        loaded = load_dataset("tiny", tiny)
        np.testing.assert_array_equal(loaded.X, WITH_SECRET)
        assert loaded.y.tolist() == [0, 0, 1, 0, 1, 0]


class Planted:
    """An object that, when it is unpickled, makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_pickles_are_never_opened(tiny, tmp_path):
    planted = np.array([Planted(tmp_path / "opened")], dtype=object)
    np.savez(tiny / "tiny.npz", X=WITH_SECRET, y=LABELS, class_names=planted)
    assert ARCHIVE in refusal(tiny)
    (tiny / "tiny.npz").write_bytes(pickle.dumps(planted))
    assert ARCHIVE in refusal(tiny)
    assert not (tmp_path / "opened").exists()
    # The trap is one: whoever unpickles falls into it.
    pickle.loads(pickle.dumps(planted))[0].close()
    assert (tmp_path / "opened").exists()


def test_every_truncated_archive_is_refused(tiny):
    np.savez_compressed(tiny / "tiny.npz", X=np.random.default_rng(0).random((6, 3)), y=LABELS)
    content = (tiny / "tiny.npz").read_bytes()
    for length in range(0, len(content), 7):
        (tiny / "tiny.npz").write_bytes(content[:length])
        assert ARCHIVE in refusal(tiny)
    flipped = bytearray(content)
    flipped[len(content) // 4] ^= 0xFF
    (tiny / "tiny.npz").write_bytes(flipped)
    assert ARCHIVE in refusal(tiny)


LINES = libsvm_text(WITH_SECRET, LABELS)
TABLE = delimited_text(Delimited(""), WITH_SECRET, LABELS)
ATTRIBUTES = arff_text(["a", "b", "c", "d"], [*WITH_SECRET.T.tolist(), LABELS.tolist()])
TEXTS = {"libsvm": (Libsvm("tiny"), LINES), "table": (Delimited("tiny"), TABLE), "arff": (Arff("tiny"), ATTRIBUTES)}
LIBSVM, FIELDS, ARFF = (
    "libsvm text with indices from 1 to 3",
    "lines of 4 fields",
    "an ARFF file of 4 numeric attributes",
)


@pytest.fixture
def text_file(tiny, monkeypatch, request):
    """The tiny set as text of the kind that the test asks for; it is accepted as it is."""
    form, text = TEXTS[request.param]
    monkeypatch.setitem(DATASETS, "tiny", replace(TINY, forms=(form,)))
    path = tiny / "tiny"
    path.write_text(text)
    np.testing.assert_array_equal(load_dataset("tiny", tiny).X, WITH_SECRET)
    return path


@pytest.mark.parametrize(
    ("text_file", "old", "new", "sentence"),
    [
        ("libsvm", "3:2.0", "4:2.0", LIBSVM),
        ("libsvm", "2:1.0", "0:1.0", LIBSVM),
        ("libsvm", LINES, re.sub(r"(\d):", lambda index: f"{int(index[1]) - 1}:", LINES), LIBSVM),
        ("libsvm", "2:1.0", "99999999999:1.0", LIBSVM),
        ("libsvm", "2:1.0 3:2.0", "3:2.0 2:1.0", LIBSVM),
        ("libsvm", "2:1.0", "2:1.0x", LIBSVM),
        ("libsvm", "2:1.0", "2,1.0", LIBSVM),
        ("libsvm", "2:1.0", "2:nan", "finite features"),
        ("libsvm", LINES, LINES[: LINES.rindex("\n", 0, -1)], SHAPE),
        ("libsvm", LINES, LINES + "1 1:1\n", SHAPE),
        ("libsvm", LINES, "", SHAPE),
        ("libsvm", "1 1:6.0", "0 1:6.0", COUNTS),
        ("libsvm", "1 1:6.0", "1.5 1:6.0", "labels in whole numbers"),
        ("table", "0.0,1.0,2.0,0", "0.0,1.0,2.0", FIELDS),
        ("table", "3.0,4.0,5.0,0", "3.0,4.0,5.0,0,0", FIELDS),
        ("table", ",4.0,", ",four,", FIELDS),
        ("table", ",4.0,", ",?,", FIELDS),
        ("table", ",4.0,", ",,", FIELDS),
        ("table", ",", ";", FIELDS),
        ("table", "\n", ",9\n", SHAPE),
        ("table", TABLE, TABLE[: TABLE.rindex("\n", 0, -1)], SHAPE),
        ("table", TABLE, "", SHAPE),
        ("table", TABLE, "\n\n", SHAPE),
        ("table", ",4.0,", ",inf,", "finite features"),
        ("table", "2.0,0", "2.0,1", COUNTS),
        ("arff", "b REAL", "b {1.0, 4.0, 98765.5, 10.0, 13.0, 16.0}", ARFF),
        ("arff", "b REAL", "b string", ARFF),
        ("arff", "@data", "", ARFF),
        ("arff", "98765.5", "98765.5x", ARFF),
        ("arff", "@attribute d REAL", "@attribute d REAL\n@attribute e REAL", ARFF),
        ("arff", "98765.5", "?", "finite features"),
        ("arff", ATTRIBUTES, ATTRIBUTES[: ATTRIBUTES.rindex("\n", 0, -1)], SHAPE),
        ("arff", ATTRIBUTES, "", ARFF),
    ],
    indirect=["text_file"],
)
def test_other_text_is_refused(text_file, old, new, sentence):
    text = text_file.read_text()
    assert old in text
    text_file.write_text(text.replace(old, new))
    assert re.search(sentence, refusal(text_file.parent))


@pytest.mark.parametrize("text_file", ["arff"], indirect=True)
def test_a_target_that_has_no_attribute_is_refused(text_file, monkeypatch):
    monkeypatch.setitem(DATASETS, "tiny", replace(TINY, forms=(Arff("tiny", target="density"),)))
    assert ARFF in refusal(text_file.parent)


@pytest.mark.parametrize("ending", [".bz2", ".gz"])
@pytest.mark.parametrize("text_file", TEXTS, indirect=True)
def test_compressed_text_that_is_cut_off_is_refused(text_file, ending):
    packed = text_file.with_suffix(ending)
    content = COMPRESSED[ending](text_file.read_bytes())
    packed.write_bytes(content)
    text_file.unlink()
    np.testing.assert_array_equal(load_dataset("tiny", packed.parent).X, WITH_SECRET)
    for length in (1, 5, len(content) // 2, len(content) - 1):
        packed.write_bytes(content[:length])
        refusal(packed.parent)
    packed.write_text(LINES)
    refusal(packed.parent)


def test_labels_that_are_not_certain_are_whole_numbers_at_least(tiny, monkeypatch):
    monkeypatch.setitem(DATASETS, "tiny", replace(TINY, labels=None))
    np.savez(tiny / "tiny.npz", X=WITH_SECRET, y=7 * LABELS)
    assert load_dataset("tiny", tiny).y.tolist() == [0, 0, 7, 0, 7, 0]
    for labels in (LABELS + 0.5, LABELS * 1e30):
        np.savez(tiny / "tiny.npz", X=WITH_SECRET, y=labels)
        assert "expected labels in whole numbers" in refusal(tiny)


def test_a_target_of_another_range_is_refused(tiny, monkeypatch):
    target = np.array([5.0, SECRET, 7.5, 29.0, 4.0, 1.0])
    np.savez(tiny / "tiny.npz", X=FEATURES, y=target)
    facts = replace(TINY, task="regression", labels=None)
    for bounds, holds in (((1.0, SECRET), True), (None, True), ((0.5, SECRET), False), ((1.0, 29.0), False)):
        monkeypatch.setitem(DATASETS, "tiny", replace(facts, target=bounds))
        if holds:
            assert load_dataset("tiny", tiny).y.tolist() == target.tolist()
        else:
            with pytest.raises(DataError, match=f"expected a target from {bounds[0]:g} to {bounds[1]:g}, but tiny.npz"):
                load_dataset("tiny", tiny)


def test_another_test_part_is_refused(tiny, monkeypatch):
    monkeypatch.setitem(DATASETS, "tiny", replace(TINY, n_test=2, test_labels={0: 1, 1: 1}))
    assert "expected test X of 2 x 3 numbers" in refusal(tiny)
    for X, y, sentence in (
        (WITH_SECRET[:3], LABELS[:3], "expected test X of 2 x 3 numbers"),
        (WITH_SECRET[:2, :2], LABELS[1:3], "expected test X of 2 x 3 numbers"),
        (WITH_SECRET[:2], LABELS[:2], "expected test labels 0 (1 times), 1 (1 times)"),
        (WITH_SECRET[:2] + np.inf, LABELS[1:3], "expected finite test features"),
    ):
        np.savez(tiny / "tiny.npz", X=FEATURES, y=LABELS, X_test=X, y_test=y)
        assert sentence in refusal(tiny)
    np.savez(tiny / "tiny.npz", X=FEATURES, y=LABELS, X_test=WITH_SECRET[1:3], y_test=LABELS[1:3])
    np.testing.assert_array_equal(load_dataset("tiny", tiny).X_test, WITH_SECRET[1:3])


def test_missing_values_may_be_missing_but_not_infinite(tiny, monkeypatch):
    monkeypatch.setitem(DATASETS, "tiny", replace(TINY, missing=True))
    X = np.where(FEATURES == 4, np.nan, WITH_SECRET)
    np.savez(tiny / "tiny.npz", X=X, y=LABELS)
    np.testing.assert_array_equal(load_dataset("tiny", tiny).X, X)
    np.savez(tiny / "tiny.npz", X=np.where(FEATURES == 4, -np.inf, X), y=LABELS)
    assert "finite features" in refusal(tiny)
