"""Replays of every public class: settings, and random neighbours on which they are tried."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import make_pipeline

from taciturn.audit.replay import Replay, replay
from taciturn.data.sensitivity import RELATIONS, Relation
from taciturn.engines import PartitionedTable
from taciturn.methods.frank_wolfe.estimator import (
    FrankWolfeClassifier,
    FrankWolfeRegressor,
    SparsifiedClassifier,
    SparsifiedRegressor,
)
from taciturn.methods.hard_threshold.estimator import HardThresholdClassifier, HardThresholdRegressor
from taciturn.methods.objective.estimator import (
    ADMMClassifier,
    ObjectivePerturbationClassifier,
    ObjectivePerturbationRegressor,
    TwoStageClassifier,
    TwoStageRegressor,
)
from taciturn.methods.scaling.estimator import BoundedScaler, PrivateScaler
from taciturn.methods.scores.cross_validation import private_cross_val_score
from taciturn.methods.scores.function import private_score
from taciturn.methods.screening.estimator import ScreenedClassifier, ScreenedRegressor
from taciturn.methods.screening.plan import SCREENING_RULES
from taciturn.methods.search.estimator import PrivateRandomizedSearch
from taciturn.methods.selection.estimator import BlockVoteSelector, CorrelationSelector, KendallSelector
from taciturn.methods.selection.plan import TOP_K_MECHANISMS
from taciturn.methods.sparse.estimator import SparseClassifier, SparseRegressor
from taciturn.methods.survival.estimator import SparseSurvival
from taciturn.methods.survival.function import private_survival_curve
from taciturn.tables import TableEncoder
from taciturn_research.attacks.random_tables import neighbouring_persons, neighbouring_tables, with_odd_cells
from taciturn_research.attacks.registered import unlisted_classes

Table = dict[str, Any]
Around = Callable[[np.random.Generator, Any, Table, Table], tuple[Any, Table, Table]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of records and of columns of the random tables, of which one each is drawn for every pair."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]


SMALL = Sizes((1, 2, 5, 40), (1, 2, 9))
"""For ``make test``."""

LARGE = Sizes((1, 2, 5, 60, 200), (1, 2, 12, 80))
"""For ``make audit``."""


@dataclass(frozen=True, slots=True)
class ReplayCase:
    """A class or function in one setting.

    ``targets`` are numbers of classes to draw from; 0 stands for a numeric target. ``own`` are its parameters, apart
    from those that follow from the relation and the table. Below ``fewest`` records it refuses, by their public number;
    no table has more than ``widest`` columns.
    ``dealt``: rows are dealt to blocks one by one. ``persons``: a record is a person with 1 to 9 rows. ``around`` puts
    something around the model, and gives both tables the form that it takes.
    """

    subject: Any
    targets: tuple[int, ...]
    own: dict[str, Any] = field(default_factory=dict)
    fewest: int = 1
    widest: int = 80
    dealt: bool = False
    persons: bool = False
    around: Around | None = None

    @property
    def name(self) -> str:
        """The public name of the class or function, and of what stands around it."""
        own = str(self.subject.__name__)
        return own if self.around is None else f"{own} {self.around.__name__.strip('_').replace('_', ' ')}"

    def draw(self, relation: Relation, sizes: Sizes, rng: np.random.Generator) -> tuple[Any, Table, Table]:
        """A model or function, and the arguments of two fits or calls, for one random pair of neighbours."""
        rows = [n for n in sizes.rows if n >= self.fewest + (relation == "add-remove")] or [2 * self.fewest]
        n_rows, n_columns = int(rng.choice(rows)), int(rng.choice([d for d in sizes.columns if d <= self.widest]))
        n_classes = int(rng.choice(self.targets))
        neighbours = neighbouring_persons if self.persons else neighbouring_tables
        first, second = neighbours(rng, n_rows, n_columns, relation, n_classes, last=self.dealt)
        given: dict[str, Any] = {"relation": relation, "x_bound": 1.0, "y_bounds": (-1.0, 1.0)}
        if relation == "add-remove":
            given["n_public"] = int(rng.choice([n_rows, n_rows + 7]))
        if relation == "zero-out" and n_classes == 0:
            given["invalid"] = "null"
        if self.subject is private_survival_curve:
            first, second = ({**self.own, **_common(given), **_followed(each["y"])} for each in (first, second))
            return self.subject, first, second
        if self.subject in (PrivateRandomizedSearch, private_cross_val_score):
            return self._of_trials(given, n_classes, first, second)
        if not inspect.isclass(self.subject):
            del given["x_bound"], given["y_bounds"]
            own = {name: value for name, value in self.own.items() if name not in ("loss", "y_bounds")}
            first, second = ({**own, **given, **each} for each in (first, second))
            if "loss" in self.own or (self.own.get("metric") == "all" and rng.random() < 0.7):
                family = {"loss": self.own.get("loss", "squared"), "y_bounds": self.own.get("y_bounds", (-1.0, 1.0))}
                model = _linear_model(n_classes, n_columns, family)
            else:
                model = _constant_model(n_classes, n_columns)
            return self.subject, {"estimator": model, **first}, {"estimator": model, **second}
        if n_classes:
            given["classes"] = tuple(range(n_classes))
        known = inspect.signature(self.subject).parameters
        model = self.subject(**({name: value for name, value in given.items() if name in known} | self.own))
        if hasattr(self.subject, "transform") and not hasattr(self.subject, "get_support"):
            first, second = ({**each, "X": _dense(each["X"])} for each in (first, second))
            del first["y"], second["y"]
        return (model, first, second) if self.around is None else self.around(rng, model, first, second)

    def _of_trials(self, given: Table, n_classes: int, first: Table, second: Table) -> tuple[Any, Table, Table]:
        """A search or a cross-validation of the default model."""
        given["invalid"] = "null"
        labels = {"classes": tuple(range(n_classes))} if n_classes else {"y_bounds": (-1.0, 1.0)}
        del given["y_bounds"]
        model = (SparseClassifier if n_classes else SparseRegressor)(**given, **labels)
        if self.subject is private_cross_val_score:
            own = {**self.own, "estimator": model}
            return self.subject, {**own, **first}, {**own, **second}
        return PrivateRandomizedSearch(model, {"n_nonzero": [1, "all"]}, **self.own), first, second

    def try_once(self, relation: Relation, sizes: Sizes, rng: np.random.Generator) -> Replay:
        """Replay one random pair of neighbours."""
        return replay(*self.draw(relation, sizes, rng), relation=relation)


def replays_of(case: ReplayCase, sizes: Sizes, *, repeats: int, seed: int) -> Iterator[Replay]:
    """Replays of a case under every relation: so many pairs of neighbours under each, which follow from the seed."""
    # Seeds do not depend on the cases of other classes.
    place = [each for each in (*all_replays(), *PERSON_REPLAYS, *TABLE_REPLAYS) if each.name == case.name].index(case)
    rng = np.random.default_rng(np.random.SeedSequence((seed, crc32(case.name.encode()), place)))
    for _ in range(repeats):
        for relation in RELATIONS:
            yield case.try_once(relation, sizes, rng)


def _common(given: dict[str, Any]) -> dict[str, Any]:
    """What a function without a table takes."""
    return {name: value for name, value in given.items() if name in ("relation", "invalid")}


def _followed(y: Any) -> Table:
    """Numbers as times under observation, with events where they are positive."""
    return {"time": np.abs(y), "event": y > 0.0}


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def _constant_model(n_classes: int, n_columns: int) -> Any:
    """A model with constant predictions, so that the order of the rows does not change bits."""
    if n_classes:
        labels = np.arange(n_classes)
        return DummyClassifier(strategy="constant", constant=0).fit(np.zeros((n_classes, n_columns)), labels)
    model = DummyRegressor(strategy="constant", constant=1.0).fit(np.zeros((1, n_columns)), [1.0])
    model.y_bounds = (-1.0, 1.0)
    return model


def _linear_model(n_classes: int, n_columns: int, family: dict[str, Any]) -> Any:
    """A model of our own with fixed coefficients, whose predictions are computed record by record."""
    rows = n_classes if n_classes > 2 else 1
    weights = np.cos(np.arange(rows * n_columns)).reshape(rows, n_columns)
    model: Any = SparseClassifier() if n_classes else SparseRegressor(**family)
    model.coef_ = weights if n_classes else weights[0]
    model.intercept_ = np.zeros(rows) if n_classes else 0.0
    model.n_features_in_ = n_columns
    if n_classes:
        model.classes_ = np.arange(n_classes)
    return model


def _behind_an_encoder(rng: np.random.Generator, model: Any, first: Table, second: Table) -> tuple[Any, Table, Table]:
    """A table of objects, of which one record has cells of other kinds, encoded for the model."""
    first, second, bounds = with_odd_cells(rng, first, second)
    return make_pipeline(TableEncoder(bounds=bounds, invalid="null"), model.set_params(invalid="null")), first, second


def _behind_columns(rng: np.random.Generator, model: Any, first: Table, second: Table) -> tuple[Any, Table, Table]:
    """The same table, its numbers scaled and its other columns encoded by the parts of a ColumnTransformer."""
    first, second, bounds = with_odd_cells(rng, first, second)
    numbers = [name for name, column in bounds.columns.items() if column.type == "number"]
    others = [name for name in bounds.columns if name not in numbers]
    parts: list[Any] = [("scaled", BoundedScaler(invalid="null"), numbers)]
    if others:
        stated = replace(bounds, columns={name: bounds.columns[name] for name in others})
        parts.append(("encoded", TableEncoder(bounds=stated, invalid="null"), others))
    return make_pipeline(ColumnTransformer(parts), model.set_params(invalid="null")), first, second


def _in_partitions(rng: np.random.Generator, model: Any, first: Table, second: Table) -> tuple[Any, Table, Table]:
    """A table that is read in three partitions; the last one has a record more or less."""
    edges = np.sort(rng.integers(0, min(len(first["y"]), len(second["y"])) + 1, 2)).tolist()
    return model, *({"X": PartitionedTable(_Parts(_dense(each["X"]), each["y"], edges))} for each in (first, second))


def _with_a_copy_and_a_rare_category(
    rng: np.random.Generator, model: Any, first: Table, second: Table
) -> tuple[Any, Table, Table]:
    """Two more columns: a copy of the first one, which nothing tells apart from it, and one that few rows have."""
    tables = []
    for each in (first, second):
        X = _dense(each["X"])
        # A function of the row's own cells, so that neighbours differ in one record still.
        rare = np.where(np.abs(np.frexp(np.where(np.isfinite(X[:, 0]), X[:, 0], 0.0))[0]) > 0.99, 1.0, 0.0)
        rare[np.isnan(X[:, 0])] = np.nan
        tables.append({**each, "X": np.column_stack((X, X[:, 0], rare))})
    return model, tables[0], tables[1]


def _with_weights_and_exposures(
    rng: np.random.Generator, model: Any, first: Table, second: Table
) -> tuple[Any, Table, Table]:
    """Weights and exposures that are functions of the row's own cells; some are far beyond their bounds, or zero."""
    tables = []
    for each in (first, second):
        cells = np.where(np.isfinite(each["y"]), each["y"], 0.0).astype(np.float64)
        beside = _dense(each["X"])[:, 0]
        shares = np.abs(np.frexp(cells + np.where(np.isfinite(beside), np.clip(beside, -9.0, 9.0), 0.0))[0])
        shares *= np.where(shares > 0.7, 10.0, 1.0)
        given = {"sample_weight": 6.0 * shares}
        if getattr(model, "loss", "squared") in ("poisson", "gamma"):
            given["exposure"] = 2.5 * shares
        tables.append({**each, **given})
    bounds = {"weight_bound": 5.0} | ({"exposure_bound": 2.0} if "exposure" in tables[0] else {})
    return model.set_params(**bounds), tables[0], tables[1]


def _of_variables(rng: np.random.Generator, model: Any, first: Table, second: Table) -> tuple[Any, Table, Table]:
    """A model that chooses whole variables, each of up to three columns next to one another."""
    n_columns = _dense(first["X"]).shape[1]
    edges = [0, *np.flatnonzero(rng.random(n_columns) < 0.5).tolist(), n_columns]
    groups = [list(range(low, min(high, low + 3))) for low, high in pairwise(edges) if high > low]
    return model.set_params(select="variables", groups=groups), first, second


class _Parts:
    """The partitions of arrays between the edges."""

    names = None

    def __init__(self, X: Any, y: Any, edges: list[int]) -> None:
        self._X, self._y, self._edges = X, y, [0, *edges, len(y)]
        self.n_rows, self.n_features = X.shape
        self.offsets = np.array(self._edges[:-1], dtype=np.int64)

    def read(self, index: int, columns: Any) -> tuple[Any, Any, None]:
        rows = slice(self._edges[index], self._edges[index + 1])
        return self._X[rows] if columns is None else self._X[rows][:, columns], self._y[rows], None


_NUMBERS, _LABELS, _BINARY, _ANY = (0,), (2, 4), (2,), (0, 2, 4)
_STEPS = {"n_steps": 12, "radius": 2.0}
_PURSUIT = {"mechanism": "pursuit", "n_nonzero": 2}
# With so many records a target is centred by its private median, and columns join in several rounds.
_MANY = 60
# So many records and so much budget that information is clear of its noise: other fits are refused.
_CLEAR = 220
_ERRORS = {"inference": True, "epsilon": 30.0}
_TALL = 1_500

# Means under a log link; more records, as their information is further from its noise.
_FAMILIES: tuple[dict[str, Any], ...] = (
    {"loss": "poisson", "y_bounds": (0.0, 1.0)},
    {"loss": "gamma", "y_bounds": (0.1, 1.0)},
)
_VERY_CLEAR = 400

REPLAYS = (
    *(
        ReplayCase(SparseRegressor, _NUMBERS, own)
        for own in (
            {},
            {"n_nonzero": "auto", "epsilon": 20.0},
            {"method": "one-shot", "n_nonzero": 5},
            {"method": "two-phase", "n_nonzero": 4},
            {"row_bound": 1.5, "residual_clip": 0.3, "x_bound": 0.3, "epsilon": 20.0},
            {"fit_intercept": False, "n_nonzero": 4, "epsilon": 5.0},
            {"loss": "huber", "n_nonzero": "all", "epsilon": 20.0},
        )
    ),
    # So many records per column that a regression is estimated in whitened coordinates.
    ReplayCase(SparseRegressor, _NUMBERS, {"n_nonzero": "all", "epsilon": 30.0}, fewest=_TALL, widest=2),
    # And that two classes are fitted in a few steps.
    ReplayCase(SparseClassifier, _BINARY, {"n_nonzero": "all", "epsilon": 30.0}, fewest=_TALL, widest=2),
    *(
        ReplayCase(SparseClassifier, _LABELS, own)
        for own in (
            {},
            {"n_nonzero": "auto", "epsilon": 20.0},
            {"method": "one-shot", "n_nonzero": 5},
            {"method": "two-phase", "n_nonzero": 4},
            {"n_nonzero": "all", "epsilon": 20.0},
            {"class_weight": {0: 1.0, 1: 0.3}, "epsilon": 20.0},
        )
    ),
    *(
        ReplayCase(kind, targets, _ERRORS | own, fewest=_CLEAR, widest=9, dealt=True)
        for kind, targets in ((SparseRegressor, _NUMBERS), (SparseClassifier, _BINARY))
        for own in ({"n_nonzero": 1}, {"n_nonzero": "all"}, {"columns": (0,)}, {"n_nonzero": "auto"})
    ),
    *(
        ReplayCase(SparseRegressor, _NUMBERS, family | own)
        for family in _FAMILIES
        for own in (
            {},
            {"n_nonzero": "auto", "epsilon": 20.0},
            {"method": "one-shot", "n_nonzero": 5},
            {"n_nonzero": "all", "epsilon": 20.0, "fit_intercept": False},
        )
    ),
    *(
        ReplayCase(SparseRegressor, _NUMBERS, _ERRORS | family | own, fewest=_VERY_CLEAR, widest=2, dealt=True)
        for family in _FAMILIES
        for own in ({"n_nonzero": 1}, {"n_nonzero": "all"})
    ),
    *(
        ReplayCase(SparseClassifier, (3,), _ERRORS | own, fewest=_CLEAR, widest=9, dealt=True)
        for own in ({"n_nonzero": 1}, {"n_nonzero": "all"})
    ),
    *(
        ReplayCase(kind, targets, own)
        for kind, targets in ((HardThresholdRegressor, _NUMBERS), (HardThresholdClassifier, _LABELS))
        for own in ({}, {"mechanism": "peeling"}, {"step_size": 0.5, "row_bound": 2.0}, _PURSUIT)
    ),
    *(
        ReplayCase(kind, targets, _PURSUIT | {"epsilon": 25.0}, fewest=_MANY)
        for kind, targets in ((HardThresholdRegressor, _NUMBERS), (HardThresholdClassifier, _LABELS))
    ),
    *(
        ReplayCase(kind, targets, own)
        for kind, targets in ((FrankWolfeRegressor, _NUMBERS), (FrankWolfeClassifier, _LABELS))
        for own in (_STEPS, {"n_steps": 10, "radius": 100.0}, {"n_steps": 5, "radius": 0.5, "delta": 0.0})
    ),
    ReplayCase(FrankWolfeRegressor, _NUMBERS, _STEPS | {"loss": "squared"}),
    ReplayCase(FrankWolfeRegressor, _NUMBERS, _STEPS | {"residual_clip": 0.3}),
    *(
        ReplayCase(kind, _NUMBERS, {"n_steps": 12, "epsilon": 25.0}, fewest=_MANY)
        for kind in (FrankWolfeRegressor, SparsifiedRegressor, ScreenedRegressor)
    ),
    ReplayCase(SparsifiedRegressor, _NUMBERS, _STEPS | {"n_nonzero": 3}),
    ReplayCase(SparsifiedRegressor, _NUMBERS, _STEPS | {"n_nonzero": "private-count"}),
    ReplayCase(SparsifiedClassifier, _LABELS, _STEPS | {"n_nonzero": 3}),
    *(
        ReplayCase(ScreenedRegressor, _NUMBERS, _STEPS | {"rule": rule, "permanent": permanent})
        for rule in SCREENING_RULES
        for permanent in (False, True)
    ),
    *(ReplayCase(ScreenedClassifier, _BINARY, _STEPS | {"rule": rule}) for rule in SCREENING_RULES),
    *(
        ReplayCase(ScreenedRegressor, _NUMBERS, {"n_steps": 12, "radius": 1.0, "rule": rule, "loss": "squared"})
        for rule in ("tested", "adp")
    ),
    *(
        ReplayCase(kind, targets, own)
        for kind, targets in ((ObjectivePerturbationRegressor, _NUMBERS), (ObjectivePerturbationClassifier, _LABELS))
        for own in ({}, {"row_bound": 1.5, "regularisation": 5.0, "fit_intercept": False})
    ),
    ReplayCase(TwoStageRegressor, _NUMBERS, {"n_nonzero": 2, "n_blocks": 2}, fewest=2, dealt=True),
    ReplayCase(TwoStageClassifier, _LABELS, {"n_nonzero": 2, "n_blocks": 2}, fewest=2, dealt=True),
    *(ReplayCase(ADMMClassifier, _BINARY, {"penalty": p, "n_steps": 3}, dealt=True) for p in ("l1", "l1/2")),
    *(
        ReplayCase(CorrelationSelector, _ANY, {"mechanism": name, "n_features_to_select": k})
        for name in TOP_K_MECHANISMS
        for k in (1, 4)
    ),
    *(
        ReplayCase(CorrelationSelector, _ANY, {"score_func": name, "n_features_to_select": 1})
        for name in ("sign", "quadrant")
    ),
    *(
        ReplayCase(KendallSelector, (0, 2), {"n_features_to_select": k, "delta": delta})
        for k in (1, 3)
        for delta in (1e-6, 0.0)
    ),
    *(
        ReplayCase(BlockVoteSelector, _ANY, {"n_features_to_select": k, "n_blocks": 3}, fewest=3, dealt=True)
        for k in (1, 3)
    ),
    *(
        ReplayCase(
            PrivateScaler,
            _NUMBERS,
            {"epsilon": 25.0, "delta": delta, "tail": tail, "smallest": 0.1, "largest": 10.0},
            fewest=40,
        )
        for delta in (1e-6, 0.0)
        for tail in (0.1, 0.4)
    ),
    ReplayCase(BoundedScaler, _NUMBERS, {"lower": -1.0, "upper": 1.0}),
    *(
        ReplayCase(SparseSurvival, _NUMBERS, {"epsilon": 20.0} | own, widest=12)
        for own in ({"cuts": (0.1, 0.4, 1.0)}, {"cuts": (0.5,)}, {"x_bound": 0.3, "cuts": (0.05, 0.1)})
    ),
    *(
        ReplayCase(SparseSurvival, _NUMBERS, _ERRORS | {"cuts": (0.2, 1.0)} | own, fewest=_CLEAR, widest=9)
        for own in ({}, {"columns": (0,)})
    ),
    *(ReplayCase(private_score, _LABELS, {"metric": name}) for name in ("accuracy", "balanced accuracy")),
    *(ReplayCase(private_score, _NUMBERS, {"metric": f"mean {name} error"}) for name in ("squared", "absolute")),
    *(ReplayCase(private_score, _ANY, {"metric": "all", "delta": delta}) for delta in (0.0, 0.3)),
    *(ReplayCase(private_score, _NUMBERS, {"metric": "all", "delta": 0.0} | family) for family in _FAMILIES),
    *(ReplayCase(private_survival_curve, _NUMBERS, {"cuts": (0.1, 0.3, 0.5), "delta": delta}) for delta in (0.0, 0.3)),
    *(
        ReplayCase(subject, targets, own, fewest=5, dealt=True)
        for subject, own in (
            (PrivateRandomizedSearch, {"epsilon": 20.0, "mean_trials": 2.0}),
            (private_cross_val_score, {"cv": 3, "epsilon": 2.0}),
        )
        for targets in (_NUMBERS, _LABELS)
    ),
    ReplayCase(SparseClassifier, _BINARY, _ERRORS | {"n_nonzero": "all", "class_weight": {0: 1.0, 1: 0.3}},
               fewest=_CLEAR, widest=9, dealt=True),
)  # fmt: skip
"""Every class and function that reads private data, in several settings."""

_TARGETS = {"regressor": _NUMBERS, "survival": _NUMBERS, "classifier": _BINARY, "selector": _ANY, "scaler": _NUMBERS}


def all_replays() -> tuple[ReplayCase, ...]:
    """The cases, and one for each class of the registry that has none."""
    listed = {case.name for case in REPLAYS}
    more = (
        ReplayCase(each, targets)
        for kind, targets in _TARGETS.items()
        for each in unlisted_classes(kind, listed).values()
    )
    return (*REPLAYS, *more)


_BY_ROWS = {"person_weight": "sum", "epsilon": 20.0}

PERSON_REPLAYS = (
    *(
        replace(case, persons=True)
        for case in REPLAYS
        if case.subject in (private_score, private_cross_val_score, PrivateRandomizedSearch)
        or getattr(case.subject, "persons_refused", "refused") is None
    ),
    *(
        ReplayCase(kind, targets, _BY_ROWS | own, persons=True)
        for kind, targets, families in (
            (SparseRegressor, _NUMBERS, ({}, *_FAMILIES)),
            (SparseClassifier, _LABELS, ({},)),
        )
        for own in families
    ),
    *(
        ReplayCase(
            kind, targets, _ERRORS | _BY_ROWS | {"n_nonzero": "all"}, fewest=_CLEAR, widest=9, dealt=True, persons=True
        )
        for kind, targets in ((SparseRegressor, _NUMBERS), (SparseClassifier, _BINARY))
    ),
)
"""The same with persons of several rows, for what accepts them, and with persons that count by their rows."""

TABLE_REPLAYS = (
    *(
        ReplayCase(kind, targets, {"epsilon": 20.0} | own, persons=persons, around=_with_weights_and_exposures)
        for kind, targets, families in (
            (SparseRegressor, _NUMBERS, ({}, *_FAMILIES)),
            (SparseClassifier, _LABELS, ({},)),
        )
        for own in families
        for persons in (False, True)
    ),
    *(
        ReplayCase(
            kind,
            targets,
            _ERRORS | {"n_nonzero": "all"} | own,
            fewest=_VERY_CLEAR,
            widest=2,
            dealt=True,
            persons=persons,
            around=_with_weights_and_exposures,
        )
        for kind, targets, families in (
            (SparseRegressor, _NUMBERS, ({}, *_FAMILIES)),
            (SparseClassifier, _BINARY, ({},)),
            (SparseClassifier, (3,), ({},)),
        )
        for own in families
        for persons in (False, True)
    ),
    *(
        ReplayCase(SparseSurvival, _NUMBERS, own, fewest=fewest, widest=9, around=_with_weights_and_exposures)
        for own, fewest in (
            ({"epsilon": 20.0, "cuts": (0.1, 0.4, 1.0)}, 1),
            (_ERRORS | {"cuts": (0.2, 1.0)}, _CLEAR),
        )
    ),
    *(
        ReplayCase(kind, targets, own, around=around)
        for around in (_behind_an_encoder, _behind_columns)
        for kind, targets, own in (
            (SparseRegressor, _NUMBERS, {"n_nonzero": 2, "epsilon": 20.0}),
            (HardThresholdClassifier, _BINARY, {"n_nonzero": 2, "epsilon": 20.0}),
            (CorrelationSelector, _ANY, {"n_features_to_select": 1}),
        )
    ),
    *(
        ReplayCase(kind, targets, _ERRORS | own, fewest=_CLEAR, widest=9, dealt=True, around=_in_partitions)
        for kind, targets in ((SparseRegressor, _NUMBERS), (SparseClassifier, _BINARY), (SparseClassifier, (3,)))
        for own in ({"n_nonzero": 1}, {"n_nonzero": "all"})
    ),
    *(
        ReplayCase(
            SparseRegressor,
            _NUMBERS,
            _ERRORS | family | {"n_nonzero": "all"},
            fewest=_VERY_CLEAR,
            widest=2,
            dealt=True,
            around=_in_partitions,
        )
        for family in _FAMILIES
    ),
    ReplayCase(SparseSurvival, _NUMBERS, {"epsilon": 20.0, "cuts": (0.1, 0.4, 1.0)}, widest=12, around=_in_partitions),
    *(
        ReplayCase(
            kind,
            targets,
            _ERRORS | {"n_nonzero": "all"} | own,
            fewest=_CLEAR,
            widest=9,
            dealt=True,
            persons=persons,
            around=_with_a_copy_and_a_rare_category,
        )
        for kind, targets, own in (
            (SparseRegressor, _NUMBERS, {}),
            (SparseRegressor, _NUMBERS, {"loss": "huber"}),
            (SparseClassifier, _BINARY, {}),
            (SparseClassifier, (3,), {}),
        )
        for persons in (False, True)
    ),
    ReplayCase(SparseRegressor, _NUMBERS, {"n_nonzero": 2, "epsilon": 20.0}, around=_in_partitions),
    *(
        ReplayCase(kind, targets, own, around=_of_variables)
        for kind, targets in ((SparseRegressor, _NUMBERS), (SparseClassifier, _LABELS))
        for own in ({"epsilon": 20.0}, {"n_nonzero": 2, "method": "one-shot"}, {"n_nonzero": 2, "epsilon": 5.0})
    ),
)
"""Pipelines on tables with names, and tables in partitions, whose halves are dealt from several of them."""
