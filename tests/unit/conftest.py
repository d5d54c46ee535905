"""Folders of data sets for the tests of loaders and experiments, and interrupts that workers see."""

import signal

import numpy as np
import pytest
from data_files import FEATURES, LABELS, TINY

from taciturn.datasets import DATASETS


@pytest.fixture
def no_data_anywhere(monkeypatch, tmp_path):
    monkeypatch.delenv("TACITURN_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def tiny(monkeypatch, tmp_path, no_data_anywhere):
    """A folder with a set of 6 records and 3 features."""
    monkeypatch.setitem(DATASETS, "tiny", TINY)
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "tiny.npz", X=FEATURES, y=LABELS)
    return folder


@pytest.fixture
def interrupts():
    """Interrupts raise KeyboardInterrupt, which workers of pytest-xdist ignore otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
