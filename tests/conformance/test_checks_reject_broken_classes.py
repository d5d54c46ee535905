"""Every check of the suite rejects a class that was broken for it, and accepts the same class unbroken."""

import sys

import broken_refusals_and_copies
import checks_of_copies_and_predictions
import checks_of_fits
import checks_of_refusals
import checks_of_tables
import pytest
from broken_classes import BROKEN
from checks import CHECKS
from every_class import ENTRIES, registered
from joblib import parallel_config

import taciturn
from taciturn import DataError, published

pytestmark = pytest.mark.filterwarnings("ignore:n_features_to_select=.* is more than:UserWarning")

# Importing modules registers checks, and classes that are broken for them.
REGISTERED = broken_refusals_and_copies
MODULES = (checks_of_fits, checks_of_tables, checks_of_refusals, checks_of_copies_and_predictions)
# A check fails by its own words, or by those with which the class refuses what it should not.
REJECTIONS = (AssertionError, pytest.fail.Exception, DataError, UserWarning)


@pytest.mark.parametrize("check", CHECKS)
def test_check_rejects_what_is_broken_for_it(check):
    function, applies = CHECKS[check]
    assert check in BROKEN, "no class is broken for this check"
    for sound, broken in BROKEN[check]:
        assert applies(sound)
        assert applies(broken)
        # Threads are quicker to start than the processes of the suite itself.
        with parallel_config(backend="threading"):
            function(sound)
            with pytest.raises(REJECTIONS):
                function(broken)


def test_every_broken_class_is_broken_for_a_check():
    assert BROKEN.keys() == CHECKS.keys()
    assert {sys.modules[function.__module__] for function, _ in CHECKS.values()} == set(MODULES)


def test_a_class_without_an_entry_is_noticed():
    for module, name in ((taciturn, "ADMMClassifier"), (published, "RNMScreen")):
        entries = [entry for entry in ENTRIES if entry.proved == (module is taciturn) and entry.kind.__name__ != name]
        assert registered(entries, module) == {name}
