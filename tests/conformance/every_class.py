"""One small instance of every public class that fits, so that a statement about all of them names none."""

import inspect
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

import taciturn
from taciturn import published

_SMALL = {
    "epsilon": 1.0,
    "n_steps": 3,
    "n_count_steps": 20,
    "n_nonzero": 2,
    "n_features_to_select": 2,
    "n_blocks": 4,
    "random_state": 7,
}
_OWN = {
    # So few records suffice only for short grids and wide tails.
    "PrivateScaler": {"epsilon": 20.0, "smallest": 0.1, "largest": 10.0, "tail": 0.2},
}


def _classes(module):
    found = (getattr(module, name) for name in module.__all__)
    return [kind for kind in found if inspect.isclass(kind) and issubclass(kind, BaseEstimator)]


def _factory(kind, **fixed):
    taken = inspect.signature(kind).parameters
    wanted = {**_SMALL, **_OWN.get(kind.__name__, {}), **fixed}
    return partial(kind, **{name: value for name, value in wanted.items() if name in taken})


def _listed(module):
    listed = {}
    for kind in _classes(module):
        losses = _losses_of(kind)
        for loss in losses:
            name = kind.__name__ if len(losses) == 1 else f"{kind.__name__}-{loss}"
            listed[name] = _factory(kind, **({} if loss is None else {"loss": loss}))
    return listed


def _losses_of(kind):
    """Both losses of the reproductions that are regressors or classifiers by their loss."""
    switched = module_of(kind) == "published" and "loss" in inspect.signature(kind).parameters
    return ("squared", "logistic") if switched else (None,)


def module_of(kind):
    return kind.__module__.split(".")[1]


PROVED = _listed(taciturn)
"""Factories of the classes of the top level by name."""

PUBLISHED = _listed(published)
"""Factories of the reproductions by name."""

EVERY_CLASS = {**PROVED, **PUBLISHED}


def records(n=300, d=6, seed=0):
    """A table with a signal, many zeros, and a target of numbers in [-1, 1]."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.uniform(-1, 1, (n, d)), 2) * (rng.random((n, d)) < 0.6)
    return X, np.clip(np.round(0.6 * X[:, 1] - 0.3 * X[:, 4] + 0.1 * rng.normal(size=n), 2), -1, 1)


def target_for(model, y):
    """Numbers as they are, or labels for a classifier."""
    return (y > 0).astype(int) if is_classifier(model) else y


def takes_sparse(model):
    return model.__sklearn_tags__().input_tags.sparse


def released(model):
    """Everything that a fit left behind, as bytes that are equal only if all is equal to the bit."""
    parts = {}
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_"):
            value = value.to_json() if hasattr(value, "to_json") else np.asarray(value)
            # Objects are compared by what they say, numbers by their bits.
            parts[name] = value if isinstance(value, str) else value.tobytes() if value.dtype != "O" else value.tolist()
    return parts
