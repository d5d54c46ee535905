"""Persons everywhere: every class takes them or says why not, alone, in pipelines and in searches."""

import numpy as np
import pytest
import sklearn
from every_class import ENTRIES
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline

from taciturn import (
    BoundedScaler,
    CorrelationSelector,
    ParameterError,
    PrivateScaler,
    SparseRegressor,
    UnaccountedSearchWarning,
    certificate_of,
)

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

ACCEPTING = {
    "SparseRegressor", "SparseClassifier", "HardThresholdRegressor", "HardThresholdClassifier",
    "CorrelationSelector", "BlockVoteSelector", "PrivateScaler",
}  # fmt: skip
PRIVATE = {entry.kind.__name__: entry for entry in reversed(ENTRIES) if hasattr(entry.kind, "persons_refused")}
N_PERSONS = 500
rng = np.random.default_rng(0)
OWNERS = rng.permutation(np.repeat(np.arange(N_PERSONS), 3))
X = rng.uniform(-1.0, 1.0, (OWNERS.size, 4))
NUMBERS, LABELS = np.clip(0.7 * X[:, 0], -1.0, 1.0), (X[:, 0] > 0).astype(int)


def test_every_private_class_is_asked():
    assert set(PRIVATE) > ACCEPTING
    assert {name for name, entry in PRIVATE.items() if entry.kind.persons_refused is None} == ACCEPTING


@pytest.mark.parametrize("name", PRIVATE)
def test_a_class_takes_persons_or_says_why_not(name):
    model = PRIVATE[name](random_state=0)
    y = LABELS if hasattr(model, "classes") and "Selector" not in name else NUMBERS
    if name in ACCEPTING:
        model.fit(X, y, persons=OWNERS)
        assert (model.certificate_.unit, model.certificate_.public["records"]) == ("person", N_PERSONS)
        return
    with pytest.raises(ParameterError) as refusal:
        # Keys that nobody may read.
        model.fit(X, y, persons=Unreadable())
    words = str(refusal.value)
    assert words.startswith(f"persons='Unreadable': expected None for {name}, since ")
    assert words.count(";") == 1
    assert words.endswith("or pass one row per person.")
    model.fit(X, y, persons=None)
    assert model.certificate_.unit == "record"


class Unreadable:
    def __getattr__(self, name):
        raise AssertionError("keys were read")

    def __iter__(self):
        raise AssertionError("keys were read")


def test_a_pipeline_passes_persons_on_to_its_steps_by_name():
    pipeline = Pipeline([("scaler", PrivateScaler(epsilon=20.0)), ("model", SparseRegressor())])
    pipeline.fit(X, NUMBERS, scaler__persons=OWNERS, model__persons=OWNERS)
    assert certificate_of(pipeline).unit == "person"
    assert pipeline[-1].certificate_.public["records"] == N_PERSONS


def test_metadata_routing_takes_persons_through_pipelines_and_searches():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            BoundedScaler(),
            CorrelationSelector(n_features_to_select=2).set_fit_request(persons=True),
            SparseRegressor().set_fit_request(persons=True),
        )
        pipeline.fit(X, NUMBERS, persons=OWNERS)
        assert certificate_of(pipeline).unit == "person"
        search = GridSearchCV(pipeline, {"sparseregressor__n_nonzero": [1, 2]}, cv=GroupKFold(2))
        with pytest.warns(UnaccountedSearchWarning, match="not private"):
            search.fit(X, NUMBERS, persons=OWNERS, groups=OWNERS)
        assert search.best_estimator_[-1].certificate_.public["records"] == N_PERSONS
        # Where no step asks for persons, they are not dropped in silence.
        with pytest.raises(ValueError, match="persons"):
            make_pipeline(SparseRegressor()).fit(X, NUMBERS, persons=OWNERS)


def test_certificates_of_different_units_do_not_add_up():
    pipeline = Pipeline([("scaler", PrivateScaler(epsilon=20.0)), ("model", SparseRegressor())])
    pipeline.fit(X, NUMBERS, model__persons=OWNERS)
    with pytest.raises(ValueError, match="^unit: expected one and the same"):
        certificate_of(pipeline)
