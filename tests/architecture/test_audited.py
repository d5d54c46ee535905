"""Everything public that reads private data is audited: by whole fits, by mutants of these, and by replay."""

import inspect

from whole_fits import WHOLE_FITS

import taciturn
from taciturn import mechanisms
from taciturn.methods.registry import KINDS, classes_of
from taciturn_research.attacks import ENTRIES, SampledCase
from taciturn_research.attacks.entry import Fit
from taciturn_research.attacks.replays import REPLAYS
from taciturn_research.attacks.scores import CrossRun, CurveRun, ScoreRun, SearchRun

FITTED = classes_of(*KINDS).keys()
SCORED = {"private_score", "private_cross_val_score", "private_survival_curve"}
# It fits models of the registry.
SEARCHES = {"PrivateRandomizedSearch"}
RUNS = (Fit, ScoreRun, SearchRun, CrossRun, CurveRun)
# It has public bounds and adds no noise that could be too small.
NOISELESS = {"BoundedScaler"}


def test_every_public_class_that_fits_is_in_the_registry():
    public = (getattr(taciturn, name) for name in taciturn.__all__)
    assert {kind.__name__ for kind in public if inspect.isclass(kind) and hasattr(kind, "fit")} == FITTED | SEARCHES


def test_every_class_and_every_mechanism_has_an_audit():
    released = {
        name
        for name in mechanisms.__all__
        if inspect.isclass(kind := getattr(mechanisms, name))
        and hasattr(kind, "release")
        and not getattr(kind, "_is_protocol", False)
    }
    assert len(FITTED) > 15
    assert len(released) > 8
    assert FITTED | released | SCORED | SEARCHES == {entry.subject for entry in ENTRIES}


def test_every_class_has_an_audit_by_whole_fits():
    cases = [(entry.subject, entry.case(1.0)) for entry in ENTRIES if entry.kind != "mechanism"]
    fitted = {name for name, case in cases if isinstance(case, SampledCase) and isinstance(case.run, RUNS)}
    assert fitted == (FITTED | SCORED | SEARCHES) - NOISELESS
    # Runs are nothing else: a copy of a fit shows nothing about the fit.
    assert all(isinstance(case.run, RUNS) for _, case in cases if isinstance(case, SampledCase))


def test_every_class_has_a_mutant_of_its_whole_fit():
    names = {entry.name for entry in ENTRIES}
    assert all(each.entry in names for each in WHOLE_FITS)
    assert {each.subject for each in WHOLE_FITS} == (FITTED | SCORED | SEARCHES) - NOISELESS


def test_every_class_is_replayed():
    assert {case.name for case in REPLAYS} == FITTED | SCORED | SEARCHES
    # What functions release; another one would have to be listed here.
    functions = {name for name in taciturn.__all__ if inspect.isfunction(getattr(taciturn, name))}
    assert {name for name in functions if name.startswith("private_")} == SCORED
