"""Constructors: keyword-only parameters in the order, and with the defaults, of the class docstring."""

import dataclasses
import inspect
import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone

import taciturn.published
from taciturn import CorrelationSelector, SparseRegressor
from taciturn.methods.registry import KINDS, classes_of

CLASSES = classes_of(*KINDS) | {
    f"published.{name}": getattr(taciturn.published, name) for name in taciturn.published.__all__
}
X = np.random.default_rng(0).uniform(-1.0, 1.0, (400, 3))


# Its docstring names several parameters at once, "as in PrivateLasso".
SPARSIFIER = (
    "epsilon=1.0 delta=1e-06 count_share=0.05 epsilon_optimise=None epsilon_count=None count_range=None precision=1.0 "
    "radius=10.0 n_steps=1000 n_count_steps=1000 loss='logistic' gradient_bound=1.0 literal_appendix=False "
    "random_state=None"
)


def documented(cls):
    """Names and defaults in the section Parameters."""
    section = re.search(r"Parameters\n-+\n(.*?)\n\n[A-Z][a-z ]+\n-+\n", inspect.getdoc(cls), re.DOTALL)[1]
    for names, defaults in re.findall(r"^(\w.*) : .*default=(.*)$", section, re.MULTILINE):
        values = eval(f"({defaults},)")
        names = names.split(", ")
        yield from zip(names, values if len(values) == len(names) else values * len(names), strict=True)


@pytest.mark.parametrize("name", CLASSES)
def test_the_signature_is_what_the_docstring_says(name):
    parameters = inspect.signature(CLASSES[name]).parameters.values()
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    stated = [f"{parameter.name}={parameter.default!r}" for parameter in parameters]
    described = [f"{parameter}={default!r}" for parameter, default in documented(CLASSES[name])]
    assert stated == (SPARSIFIER.split() if name == "published.Sparsifier" else described)


@pytest.mark.parametrize("name", CLASSES)
def test_a_constructor_assigns_and_does_nothing_else(name):
    parameters = inspect.signature(CLASSES[name]).parameters
    given = {each: object() for each in parameters}
    assert vars(CLASSES[name](**given)) == given
    assert set(CLASSES[name]().get_params()) == set(parameters)
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilom'"):
        CLASSES[name](epsilom=1.0)
    with pytest.raises(TypeError, match="positional argument"):
        CLASSES[name](1.0)


@pytest.mark.parametrize("name", CLASSES)
def test_copies_are_compared_by_identity(name):
    model = CLASSES[name]()
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy != model
        assert repr(copy) == repr(model)
        assert repr(copy.get_params()) == repr(model.get_params())


def test_two_fits_with_the_same_parameters_are_two_things_to_dask():
    tokenize = pytest.importorskip("dask.base").tokenize
    model = SparseRegressor(x_bound=1.0, y_bounds=(-1.0, 1.0), random_state=0)
    assert dataclasses.is_dataclass(model)
    one, two = (clone(model).fit(X, np.clip(X[:, j], -1.0, 1.0)) for j in (0, 1))
    assert tokenize(one) != tokenize(two)
    assert tokenize(one.predict) != tokenize(two.predict)
    assert tokenize(one) == tokenize(pickle.loads(pickle.dumps(one)))


def test_parameters_that_cannot_be_pickled_have_a_token_too():
    tokenize = pytest.importorskip("dask.base").tokenize
    assert tokenize(CorrelationSelector(score_func=lambda X, y: X.T @ y))
