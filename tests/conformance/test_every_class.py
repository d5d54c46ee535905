"""One suite over every public class: scikit-learn's contract, and ours."""

import checks_of_copies_and_predictions
import checks_of_fits
import checks_of_refusals
import checks_of_tables
import pytest
from checks import CHECKS, pairs
from every_class import ENTRIES, as_parameters, marks_of, registered
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import has_fit_parameter

import taciturn
from taciturn import published

pytestmark = [
    # Public facts of small tables, and none of this matter.
    pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning"),
    pytest.mark.filterwarnings("ignore:n_features_to_select=.* is more than:UserWarning"),
]

# Importing a module registers its checks.
SUITE = (checks_of_fits, checks_of_tables, checks_of_refusals, checks_of_copies_and_predictions)


@pytest.mark.parametrize("module", [taciturn, published], ids=lambda module: module.__name__)
def test_the_registry_is_whole(module):
    assert registered([entry for entry in ENTRIES if entry.proved == (module is taciturn)], module) == set()


@pytest.mark.parametrize(
    ("check", "entry"),
    [pytest.param(name, entry, marks=marks_of(entry), id=f"{name}-{entry.name}") for name, entry in pairs()],
)
def test_class(check, entry):
    function, _ = CHECKS[check]
    function(entry)


# A refusal of weights that are all zero would tell of the records, and noise is that of the number of rows, whatever
# their weights are: a row of weight two is not two rows.
NOT_FOR_PRIVATE_WEIGHTS = {
    "check_all_zero_sample_weights_error",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
}


@pytest.mark.parametrize("entry", as_parameters(ENTRIES))
def test_scikit_learns_contract(entry):
    """Tags are enough, but for weights; seeds let the checks of deterministic estimators run too."""
    results = check_estimator(entry.usual(), on_skip=None, on_fail=None)
    failed = {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"}
    assert {name: failed[name] for name in failed.keys() - NOT_FOR_PRIVATE_WEIGHTS} == {}
    assert not failed or has_fit_parameter(entry.usual(), "sample_weight")
    # Without its environment variable scikit-learn does not try arrays of other packages.
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}
    assert len(results) > 40
