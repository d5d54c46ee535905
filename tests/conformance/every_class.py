"""The registry of public classes: how to make a small instance of each, and what it promises.

A statement about every class is written once, over these entries. A class that is not listed here fails
``test_the_registry_is_whole``.
"""

import inspect
import math
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

import taciturn
from taciturn import published
from taciturn.methods.base import NOISE
from taciturn.methods.registry import KINDS, classes_of

FITTED = frozenset(
    {"coef_", "intercept_", "n_iter_", "n_features_in_", "feature_names_in_", "support_", "certificate_"}
)
"""What any fit may leave behind, by the blueprint; the labels of a classifier come on top."""

PUBLIC_FACTS = frozenset({"y_bounds_"})
"""What a fit may keep of its parameters for later predictions."""

DERIVED = frozenset({NOISE})
"""What follows from released values and public facts; replays compare it as they do every attribute."""


@dataclass(frozen=True)
class Entry:
    """A public class in a small and fast setting.

    Parameters
    ----------
    kind : type
        The class.
    settings : dict
        Parameters with which a fit to some hundred records takes milliseconds.
    variant : str
        What distinguishes the setting from others of the same class; empty for the first one.
    layouts : {"bits", "close", "law", "dense"}
        What the same seed gives for a dense and a sparse table: the same bits, the same numbers up to rounding, other
        draws from the same law, or a refusal.
    extras : frozenset of str
        Public attributes that a fit leaves behind beside ``FITTED``.
    needs_records : bool
        Whether too few records are refused, as a public fact.
    needs_n_public : bool
        Whether values are released, so that add-remove needs a public number of records.
    needs_delta : bool
        Whether there is no pure form of the mechanism.
    """

    kind: type
    settings: dict[str, Any] = field(default_factory=dict)
    variant: str = ""
    layouts: str = "bits"
    extras: frozenset[str] = frozenset()
    needs_records: bool = False
    needs_n_public: bool = False
    needs_delta: bool = False

    def __call__(self, **changes):
        """A new instance, with changes for whatever parameters the class has."""
        taken = self.parameters
        wanted = {"random_state": 7, **self.settings, **changes}
        return self.kind(**{name: value for name, value in wanted.items() if name in taken})

    def usual(self):
        """A seeded instance with the defaults of the class, where these suit a few records and are quick.

        A model that refuses few records takes them without privacy.
        """
        if self.needs_records and self.predicts:
            return self(epsilon=math.inf)
        plain = self.proved and not self.variant and not self.needs_records
        return replace(self, settings={})() if plain else self()

    @property
    def name(self) -> str:
        """Of the class, and of the variant if there is one."""
        return f"{self.kind.__name__}-{self.variant}" if self.variant else self.kind.__name__

    @property
    def parameters(self):
        """Names and defaults of the constructor's parameters."""
        return {name: given.default for name, given in inspect.signature(self.kind).parameters.items()}

    @property
    def proved(self) -> bool:
        """Whether the class is no reproduction."""
        return self.kind.__name__ not in published.__all__

    @property
    def first(self) -> bool:
        """Whether it stands for its class where settings make no difference."""
        return not self.variant or not self.proved

    @property
    def predicts(self) -> bool:
        """Whether it is a model, and neither selector nor scaler."""
        return hasattr(self.kind, "predict")

    @property
    def classifies(self) -> bool:
        """Whether targets are labels."""
        return is_classifier(self())

    @property
    def regresses(self) -> bool:
        """Whether targets are numbers that are predicted."""
        return is_regressor(self())

    @property
    def scales(self) -> bool:
        """Whether all columns are kept and there is no target."""
        return hasattr(self.kind, "transform") and not hasattr(self.kind, "get_support")


def _entry(kind, variant="", **given):
    stated = {name: given.pop(name) for name in given.keys() & {one.name for one in fields(Entry)}}
    return Entry(kind, given, variant, **stated)


def _both(regressor, classifier, variant="", **given):
    return _entry(regressor, variant, **given), _entry(classifier, variant, **given)


def _losses(kind, **given):
    """Reproductions that are regressors or classifiers by their loss."""
    return tuple(_entry(kind, loss, loss=loss, **given) for loss in ("squared", "logistic"))


_FRANK_WOLFE = {"n_steps": 3, "layouts": "law"}
_SCREENED = {"n_steps": 4, "screen_at": 2, "layouts": "law"}
_SCREENINGS = (taciturn.ScreenedRegressor, taciturn.ScreenedClassifier)
_GAUSSIAN = {"needs_n_public": True, "needs_delta": True}
_HARD = {"n_steps": 3, "n_nonzero": 2, **_GAUSSIAN}
_SPARSE = {"n_nonzero": 2, "weight_bound": 10.0, **_GAUSSIAN}
_OBJECTIVE = {"layouts": "close", **_GAUSSIAN}
_BOUNDS = frozenset({"lower_", "upper_"})
_HAZARDS = frozenset({"baseline_hazard_", "cuts_", "survival_curve_"})
_ERRORS = frozenset(
    {
        *("coef_std_error_", "coef_interval_", "coef_p_value_"),
        *("intercept_std_error_", "intercept_interval_", "inference_"),
    }
)

# The first entry of a class stands for it where one setting is enough.
_PROVED = (
    _entry(taciturn.ADMMClassifier, n_steps=3, **_OBJECTIVE),
    _entry(taciturn.ADMMClassifier, "blocks", penalty="l1/2", n_blocks=2, n_steps=3, **_OBJECTIVE),
    _entry(taciturn.BlockVoteSelector, n_features_to_select=2, n_blocks=4),
    _entry(taciturn.BlockVoteSelector, "assigned", n_features_to_select=1, relation="add-remove", n_blocks=4),
    _entry(taciturn.BoundedScaler, extras=_BOUNDS),
    _entry(taciturn.BoundedScaler, "shifted", lower=-0.5, upper=7.0, layouts="dense", extras=_BOUNDS),
    _entry(taciturn.CorrelationSelector, n_features_to_select=2),
    _entry(taciturn.CorrelationSelector, "quadrant", n_features_to_select=2, score_func="quadrant", delta=0.0),
    *_both(taciturn.FrankWolfeRegressor, taciturn.FrankWolfeClassifier, **_FRANK_WOLFE),
    _entry(taciturn.FrankWolfeRegressor, "squared", loss="squared", **_FRANK_WOLFE),
    *_both(taciturn.HardThresholdRegressor, taciturn.HardThresholdClassifier, **_HARD),
    *_both(taciturn.HardThresholdRegressor, taciturn.HardThresholdClassifier, "peeling", mechanism="peeling", **_HARD),
    _entry(taciturn.KendallSelector, n_features_to_select=2),
    *_both(taciturn.ObjectivePerturbationRegressor, taciturn.ObjectivePerturbationClassifier, **_OBJECTIVE),
    # So few records suffice only for short grids and wide tails.
    _entry(
        taciturn.PrivateScaler,
        **{"epsilon": 30.0, "delta": 0.0, "smallest": 0.1, "largest": 10.0, "tail": 0.45},
        **{"layouts": "dense", "extras": _BOUNDS, "needs_records": True, "needs_n_public": True},
    ),
    *_both(*_SCREENINGS, **_SCREENED),
    *_both(*_SCREENINGS, "tested", rule="tested", permanent=True, **_SCREENED, **_GAUSSIAN),
    _entry(_SCREENINGS[1], "none-option", rule="none-option", permanent=True, needs_n_public=True, **_SCREENED),
    _entry(_SCREENINGS[0], "adp", rule="adp", **_SCREENED, **_GAUSSIAN),
    *_both(taciturn.SparseRegressor, taciturn.SparseClassifier, **_SPARSE),
    _entry(taciturn.SparseClassifier, "two-phase", method="two-phase", **_SPARSE),
    _entry(taciturn.SparseRegressor, "auto", **{**_SPARSE, "n_nonzero": "auto"}),
    _entry(
        taciturn.SparseRegressor,
        "inference",
        inference=True,
        epsilon=20.0,
        extras=_ERRORS,
        needs_records=True,
        **_SPARSE,
    ),
    _entry(taciturn.SparseSurvival, cuts=(0.2, 0.5, 1.0), extras=_HAZARDS, **_GAUSSIAN),
    _entry(
        taciturn.SparseSurvival,
        "inference",
        inference=True,
        epsilon=20.0,
        cuts=(0.5, 1.0),
        columns=(0,),
        extras=_HAZARDS | _ERRORS,
        needs_records=True,
        **_GAUSSIAN,
    ),
    *_both(taciturn.SparsifiedRegressor, taciturn.SparsifiedClassifier, n_nonzero=2, **_FRANK_WOLFE),
    _entry(taciturn.SparsifiedRegressor, "counted", n_nonzero="private-count", count_range=(1, 4), **_FRANK_WOLFE),
    *_both(taciturn.TwoStageRegressor, taciturn.TwoStageClassifier, n_nonzero=2, n_blocks=4, **_OBJECTIVE),
)
_PUBLISHED = (
    *_losses(published.ADPScreen, n_steps=20, layouts="close"),
    *_losses(published.DPIGHT, n_steps=3, n_nonzero=2, step_size=1e-3, layouts="close"),
    _entry(published.DPSIS, n_features_to_select=2),
    _entry(published.MultinomialPrivateLasso, n_steps=20, layouts="close"),
    _entry(published.PrivateADMM, epsilon=1e4, n_steps=3, layouts="close"),
    *_losses(published.PrivateLasso, n_steps=20, layouts="close"),
    _entry(published.PrivateLasso, "appendix", n_steps=20, literal_appendix=True, layouts="close"),
    _entry(published.RNMScreen, n_steps=20, layouts="close"),
    *_losses(published.Sparsifier, n_steps=20, n_count_steps=20, layouts="close", extras=frozenset({"count_"})),
    *_losses(published.TwoStage, n_nonzero=2, layouts="close"),
    _entry(published.TwoStageSelector, n_features_to_select=2),
)


def entry_of(kind):
    """An entry for a class of the registry that has none here: its defaults, and what it turns out to need."""
    entry = Entry(kind)
    X, y = data_for(entry)

    def refuses(**changes):
        try:
            entry(**changes).fit(X, y)
        except taciturn.ParameterError:
            return True
        return False

    return replace(
        entry,
        layouts="bits" if takes_sparse(entry()) else "dense",
        needs_n_public=refuses(relation="add-remove"),
        needs_delta=refuses(delta=0.0),
    )


def all_entries():
    """Every setting of every class, those of the registry that are not listed above included."""
    listed = {entry.kind.__name__ for entry in _PROVED}
    found = classes_of(*KINDS)
    more = (entry_of(kind) for name, kind in found.items() if name not in listed)
    return (*_PROVED, *more, *_PUBLISHED)


def records(n=300, d=6, seed=0):
    """A table with a signal, many zeros, and a target of numbers in [-1, 1]."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(-1, 1, (n, d)), 2) * (rng.random((n, d)) < 0.6)
    return X, np.clip(np.round(0.6 * X[:, 1] - 0.3 * X[:, 4] + 0.1 * rng.normal(size=n), 2), -1, 1)


def target_for(model, y):
    """Numbers as they are, or labels for a classifier."""
    return (y > 0).astype(int) if is_classifier(model) else y


def data_for(entry, n=120, d=6, seed=0):
    """A table and the target that the class wants."""
    X, y = records(n, d, seed)
    return X, target_for(entry(), y)


def takes_sparse(model):
    return model.__sklearn_tags__().input_tags.sparse


def same(entry, model, other):
    """Whether two fits released the same: to the bit, or up to rounding for what is printed without a lattice."""
    if entry.proved:
        return released(model) == released(other)
    numbers = fitted_attributes(other) - {"certificate_", "classes_", "feature_names_in_"}
    return model.certificate_ == other.certificate_ and all(
        np.allclose(vars(model)[name], vars(other)[name], rtol=1e-6, atol=1e-9) for name in numbers
    )


def fitted_attributes(model):
    """Names of everything that is no parameter."""
    return vars(model).keys() - model.get_params(deep=False).keys()


def released(model):
    """Everything that a fit left behind, as bytes that are equal only if all is equal to the bit."""
    parts = {}
    for name in fitted_attributes(model):
        value = vars(model)[name]
        if name.startswith("_"):
            continue
        if is_dataclass(value) and not hasattr(value, "to_json"):
            value = [np.asarray(getattr(value, one.name)).tolist() for one in fields(value)]
            value = repr(value)
        value = value.to_json() if hasattr(value, "to_json") else np.asarray(value)
        # Objects are compared by what they say, numbers by their bits.
        parts[name] = value if isinstance(value, str) else value.tobytes() if value.dtype != "O" else value.tolist()
    return parts


def registered(entries, module):
    """Names of the classes of a module that fit and have no entry, and of entries that the module does not name."""
    # A search fits other classes, and has tests of its own.
    public = {name for name in module.__all__ if hasattr(getattr(module, name), "fit")} - {"PrivateRandomizedSearch"}
    return public ^ {entry.kind.__name__ for entry in entries if entry.kind.__module__.startswith(module.__name__)}


def _firsts(entries):
    firsts: dict[str, Entry] = {}
    for entry in entries:
        switched = not entry.proved and "loss" in entry.settings
        firsts.setdefault(entry.name if switched else entry.kind.__name__, entry)
    return firsts


ENTRIES = all_entries()
"""Every setting of every class."""

PROVED = _firsts(entry for entry in ENTRIES if entry.proved)
"""One entry for every class of the top level, by name."""

PUBLISHED = _firsts(_PUBLISHED)
"""One entry for every reproduction by name, two where it is a regressor or a classifier by its loss."""

EVERY_CLASS = {**PROVED, **PUBLISHED}

_FIRST_SETTINGS = {entry.kind: entry.name for entry in reversed(ENTRIES)}


def marks_of(entry):
    """The first setting of each class is quick; further ones share its code and are slow."""
    return () if entry.name == _FIRST_SETTINGS[entry.kind] else pytest.mark.slow


def as_parameters(entries):
    """Entries for ``parametrize``."""
    return [pytest.param(entry, marks=marks_of(entry), id=entry.name) for entry in entries]


BY_NAME = [pytest.param(name, marks=() if name in PROVED else pytest.mark.slow) for name in EVERY_CLASS]
"""Names of all classes for ``parametrize``; reproductions, which promise nothing, are slow."""
