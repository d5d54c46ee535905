"""A report on a reproduction, written once."""

import pytest
from reproduced import EXPERIMENT, UNRUN, record_trials

from taciturn_research.reproduce import write_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the report on the trials of ``reproduced``."""
    folder = tmp_path_factory.mktemp("report")
    record_trials(folder)
    assert write_report((EXPERIMENT, UNRUN), folder) == folder / "reproduction.html"
    return folder
