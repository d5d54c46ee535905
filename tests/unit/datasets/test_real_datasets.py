"""Real data sets: every accepted form of every set, where files are found, and the facts about them."""

import hashlib
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from data_files import FEATURES, LABELS, TINY, arff_text, libsvm_text, made_up, put, small, write

from taciturn.core.errors import DataError, ParameterError
from taciturn.datasets import DATASETS, MICROARRAYS, find_dataset, load_dataset
from taciturn.datasets.real import Npz

pytestmark = pytest.mark.usefixtures("no_data_anywhere")


EVERY_FORM = [
    pytest.param(name, number, id=f"{name}-{type(form).__name__}")
    for name, facts in DATASETS.items()
    for number, form in enumerate(facts.forms)
]


@pytest.mark.parametrize(("name", "number"), EVERY_FORM)
def test_every_set_is_read_from_every_form(name, number, tmp_path, monkeypatch):
    facts = small(DATASETS[name])
    monkeypatch.setitem(DATASETS, name, facts)
    form = facts.forms[number]
    parts = [made_up(facts, 6, 0), *([made_up(facts, 4, 1)] if facts.n_test else [])]
    ending = ("", ".bz2", ".gz")[len(name) % 3] if not isinstance(form, Npz) else ""
    put(tmp_path, facts, form, parts, ending)
    loaded = load_dataset(name, tmp_path)
    assert (loaded.name, loaded.task) == (name, facts.task)
    found = [(loaded.X, loaded.y), (loaded.X_test, loaded.y_test)]
    for (X, y), (features, targets) in zip(found, parts, strict=False):
        assert sp.issparse(X) == facts.sparse
        assert X.dtype == np.float64
        np.testing.assert_array_equal(X.toarray() if facts.sparse else X, features)
        np.testing.assert_array_equal(y, targets)
        assert y.dtype == (np.int64 if facts.task == "classification" else np.float64)
        if facts.sparse:
            assert isinstance(X, sp.csr_array)
            assert X.has_canonical_format
            assert X.indices.dtype == X.indptr.dtype == np.int32
        else:
            assert X.flags.c_contiguous
    if not facts.n_test:
        assert loaded.X_test is loaded.y_test is None
    if isinstance(form, Npz):
        assert tuple(loaded.extras) == form.extras
        assert all(array.tolist() == [0, 1, 2, 3, 4, 5] for array in loaded.extras.values())
        assert loaded.categories == dict.fromkeys(form.categories, ("one", "two"))
    paths, digest = find_dataset(name, tmp_path)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    assert digest == loaded.digest == hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
    assert paths[0].name == form.train + ending
    assert list(paths[1:]) == sorted(paths[1:])


def test_both_orders_of_the_columns_of_bodyfat(tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "bodyfat", replace(DATASETS["bodyfat"], shape=(3, 3), target=None))
    density, percent, age, wrist = [1.07, 1.09, 1.04], [12.3, 6.1, 25.3], [23.0, 22.0, 24.0], [17.1, 18.2, 16.6]
    statlib = arff_text(
        ["Density_determined_(1)", "Percent_body_fat", "Age_(years)", "Wrist"], [density, percent, age, wrist]
    )
    weka = arff_text(["Density", "Age", "Wrist", "class"], [density, age, wrist, percent])
    for text in (statlib, weka):
        (tmp_path / "bodyfat.arff").write_text(text)
        loaded = load_dataset("bodyfat", tmp_path)
        np.testing.assert_array_equal(loaded.X, np.column_stack([percent, age, wrist]))
        assert loaded.y.tolist() == density


def test_names_of_labels(tiny):
    np.savez(tiny / "tiny.npz", X=FEATURES, y=LABELS, class_names=np.array(["n", "t"]))
    assert load_dataset("tiny", tiny).label_names == ("n", "t")
    np.savez(tiny / "tiny.npz", X=FEATURES, y=LABELS)
    assert load_dataset("tiny", tiny).label_names == ()


def test_a_loaded_set_can_be_sent_to_another_process(tiny):
    loaded = load_dataset("tiny", tiny)
    copy = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(copy.X, loaded.X)
    assert (copy.digest, copy.extras, copy.categories) == (loaded.digest, {}, {})


# ------------------------------------------------------------------ places


def test_the_three_places_and_their_order(tiny, tmp_path, monkeypatch):
    named, variable, cache = tmp_path / "named", tmp_path / "variable", tmp_path / "cache" / "taciturn"
    for number, place in enumerate((named, variable, cache), start=1):
        place.mkdir(parents=True)
        np.savez(place / "tiny.npz", X=FEATURES * number, y=LABELS)
    monkeypatch.setenv("TACITURN_DATA", str(variable))

    def found(directory=None):
        loaded = load_dataset("tiny", directory)
        ((path,), digest) = find_dataset("tiny", directory)
        assert digest == loaded.digest
        return path.parent, loaded.X[5, 2] / 17.0

    assert found(named) == found(str(named)) == (named, 1.0)
    assert found() == found(tmp_path / "nowhere") == (variable, 2.0)
    (variable / "tiny.npz").unlink()
    assert found() == (cache, 3.0)
    monkeypatch.delenv("TACITURN_DATA")
    assert found() == (cache, 3.0)
    assert found(named) == (named, 1.0)
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".cache").mkdir(parents=True)
    cache.rename(tmp_path / "home" / ".cache" / "taciturn")
    assert found() == (tmp_path / "home" / ".cache" / "taciturn", 3.0)


def test_archives_come_before_text_and_half_a_set_is_none(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(DATASETS, "tiny", replace(TINY, n_test=2))
    (tiny / "tiny.npz").unlink()
    write(tiny / "tiny_train", libsvm_text(FEATURES, LABELS))
    cache = tmp_path / "cache" / "taciturn"
    cache.mkdir(parents=True)
    write(cache / "tiny_train", libsvm_text(2 * FEATURES, LABELS), ".gz")
    write(cache / "tiny_test", libsvm_text(FEATURES[:2], LABELS[:2]), ".bz2")
    # The first place has no test part, so the second is taken, and its two files.
    paths, _ = find_dataset("tiny", tiny)
    assert paths == (cache / "tiny_train.gz", cache / "tiny_test.bz2")
    np.testing.assert_array_equal(load_dataset("tiny", tiny).X, 2 * FEATURES)
    write(tiny / "tiny_test", libsvm_text(FEATURES[2:4], LABELS[2:4]))
    loaded = load_dataset("tiny", tiny)
    np.testing.assert_array_equal(loaded.X, FEATURES)
    np.testing.assert_array_equal(loaded.X_test, FEATURES[2:4])
    assert loaded.y_test.tolist() == [1, 0]
    np.savez(tiny / "tiny.npz", X=3 * FEATURES, y=LABELS, X_test=FEATURES[:2], y_test=LABELS[:2])
    np.testing.assert_array_equal(load_dataset("tiny", tiny).X, 3 * FEATURES)
    # A folder of that name is no file.
    (tiny / "tiny.npz").unlink()
    (tiny / "tiny.npz").mkdir()
    np.testing.assert_array_equal(load_dataset("tiny", tiny).X, FEATURES)


def test_a_missing_set_is_described(tiny, tmp_path, monkeypatch):
    (tiny / "tiny.npz").unlink()
    monkeypatch.setenv("TACITURN_DATA", str(tmp_path / "variable"))
    for look in (load_dataset, find_dataset):
        with pytest.raises(DataError) as raised:
            look("tiny", tiny)
        assert str(raised.value) == (
            "data set 'tiny': expected a file tiny.npz or tiny_train + tiny_test (6 x 3 features; text also as .bz2 or "
            f".gz) in {tiny} or {tmp_path / 'variable'} or {tmp_path / 'cache' / 'taciturn'}; it is published by its "
            "makers, https://example.org/tiny: put it there, or name its folder with --data or TACITURN_DATA."
        )
    with pytest.raises(
        DataError, match=r"expected a file alon.npz \(62 x 2000 features\) in .*Alon et al. 1999.*https:"
    ):
        load_dataset("alon", tiny)


@pytest.mark.parametrize("name", ["magic", "", "../tiny", None, ["alon"]])
def test_an_unknown_name_is_refused(name):
    for look in (load_dataset, find_dataset):
        with pytest.raises(ParameterError, match=r"^name=.*: expected one of 'alon', 'borovecki'.*; set name to one"):
            look(name)


def test_finding_reads_no_records(tiny):
    (tiny / "tiny.npz").write_bytes(b"something else")
    assert find_dataset("tiny", tiny) == ((tiny / "tiny.npz",), hashlib.sha256(b"something else").hexdigest())
    with pytest.raises(DataError, match="expected an npz archive"):
        load_dataset("tiny", tiny)


# ------------------------------------------------------------------ the facts


def test_the_facts_agree_with_each_other_and_with_the_papers():
    assert " ".join(MICROARRAYS) == (
        "alon borovecki chiaretti chowdary christensen golub gordon gravier khan shipp singh sorlie su subramanian west"
    )
    for name, facts in DATASETS.items():
        assert facts.task in {"classification", "regression"}
        assert facts.files[0] == f"{name}.npz"
        assert facts.address.startswith("https://")
        assert facts.about.endswith(".")
        assert facts.labels is None or (facts.task == "classification" and sum(facts.labels.values()) == facts.shape[0])
        assert facts.test_labels is None or sum(facts.test_labels.values()) == facts.n_test
        assert facts.target is None or facts.task == "regression"
        assert all(bool(form.test) == bool(facts.n_test) for form in facts.forms[1:])
    # DP-SIS, Table 1; the paper counts a column more or less of two.
    published = {"burczynski": (127, 22283), "chin": (118, 22215), "tian": (173, 12625), "yeoh": (248, 12625)}
    assert {name: DATASETS[name].shape for name in published} == published
    # DP-IGHT, Section 6.
    sizes = {name: (DATASETS[name].shape, DATASETS[name].n_test) for name in ("rcv1_binary", "e2006_tfidf", "gisette")}
    assert sizes == {
        "rcv1_binary": ((20242, 47236), 677399),
        "e2006_tfidf": ((16087, 150360), 3308),
        "gisette": ((6000, 5000), 1000),
    }
