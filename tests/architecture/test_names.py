"""Names: what is private stays in its subpackage, and a class name has one meaning."""

import ast
import functools
from collections import defaultdict
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src"
PACKAGE = "taciturn"

PANDAS = "pandas has no public way to tell the types and labels of Stata columns without their rows"
PRIVATE_ATTRIBUTES = {
    ("audit", "sys._getframe"): "the standard library has no public way to look at the caller's frame",
    ("core", "sys._getframe"): "the standard library has no public way to look at the caller's frame",
    ("engines", "self._frame._jdf"): "only Spark's own plan tells whether a frame that is computed again has its order",
    ("kernels", "dispatcher._cache"): "numba caches kernels by the file that defines them, and has no public setting",
    ("kernels", "self.dispatcher._numba_type_"): "numba asks a dispatcher for its type by this name",
    ("tables", "reader._dtyplist"): PANDAS,
    ("tables", "reader._fmtlist"): PANDAS,
    ("tables", "reader._lbllist"): PANDAS,
    ("tables", "reader._varlist"): PANDAS,
}
PRIVATE_MODULES: dict[tuple[str, str], str] = {}
STAND_IN = "types of scikit-learn's base classes, and what stands in for these, have the names of scikit-learn"
SHARED_CLASS_NAMES = dict.fromkeys(
    (
        *("BaseEstimator", "ClassifierMixin", "OneToOneFeatureMixin", "RegressorMixin"),
        *("SelectorMixin", "TransformerMixin"),
    ),
    STAND_IN,
)


@functools.cache
def modules():
    """Names and syntax trees of all modules of the package."""
    found = []
    for path in sorted((SRC / PACKAGE).rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append((name, ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(found)


def subpackage_of(module):
    """The second part of a module's name; the package itself stands for itself."""
    return module.split(".")[1] if "." in module else module


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def defined_names(tree):
    """Private names that a module defines: functions, classes, variables, attributes of its own objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            yield node.attr


def _is_own(value):
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def private_uses(module, tree, defined):
    """Uses of private names of other subpackages, as (subpackage, use)."""
    own = subpackage_of(module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            if not _is_own(node.value) and node.attr not in defined[own]:
                yield own, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            private = [part for part in node.module.split(".") if is_private(part)]
            other = subpackage_of(node.module) != own
            if private and other and node.module != f"{PACKAGE}._version":
                yield own, node.module
            for alias in node.names:
                if is_private(alias.name) and other:
                    yield own, f"{node.module}.{alias.name}"


def all_private_uses(trees):
    """All uses of private names of other subpackages in modules, given as (name, tree)."""
    defined = defaultdict(set)
    for module, tree in trees:
        defined[subpackage_of(module)].update(defined_names(tree))
    return {use for module, tree in trees for use in private_uses(module, tree, defined)}


def test_private_names_stay_in_their_subpackages():
    assert all_private_uses(modules()) <= set(PRIVATE_ATTRIBUTES) | set(PRIVATE_MODULES)


@pytest.mark.parametrize(
    ("module", "source", "use"),
    [
        (
            "taciturn.app.cli.planted",
            "def run(model): return model._privately_planned()",
            "model._privately_planned",
        ),
        ("taciturn.app.cli.planted", "def run(model): model.plan()._noise_of_it = 1", "model.plan()._noise_of_it"),
        (
            "taciturn.app.cli.planted",
            "from taciturn.tables.formats import _CAUSES",
            "taciturn.tables.formats._CAUSES",
        ),
        ("taciturn.app.cli.planted", "from taciturn.methods import _linear", "taciturn.methods._linear"),
        (
            "taciturn.app.cli.planted",
            "from taciturn.methods._linear import given",
            "taciturn.methods._linear",
        ),
    ],
)
def test_a_use_of_a_private_name_is_found(module, source, use):
    assert ("app", use) in all_private_uses([*modules(), (module, ast.parse(source))])


def repeated_classes(trees):
    """Names of public classes that several modules define, with these modules."""
    found = defaultdict(list)
    for module, tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(module)
    return {name: places for name, places in found.items() if len(places) > 1}


def test_a_class_name_has_one_meaning():
    assert repeated_classes(modules()).keys() == SHARED_CLASS_NAMES.keys()


def test_a_class_name_with_two_meanings_is_found():
    planted = ("taciturn.app.cli.planted", ast.parse("class Certificate:\n    pass\n"))
    places = repeated_classes([*modules(), planted])["Certificate"]
    assert sorted(places) == ["taciturn.app.cli.planted", "taciturn.privacy.certificate"]


# Nouns of our own that the field does not know: a test name says what breaks.
_RIDDLES = {
    *("askew", "company", "door", "doors", "doubt", "doubts", "fire"),
    *("pot", "pots", "purse", "road", "roads", "twin", "twins"),
}


def riddles(sources):
    """Names of tests with a word that only the project knows."""
    trees = map(ast.parse, sources)
    names = [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [name for name in names if name.startswith("test_") and _RIDDLES & set(name.split("_"))]


def test_names_of_tests_are_in_the_words_of_the_field():
    tests = sorted(Path(__file__).parents[1].rglob("test_*.py"))
    assert riddles(path.read_text(encoding="utf-8") for path in tests) == []
    assert riddles(["def test_fits_under_fire():\n    pass\n"]) == ["test_fits_under_fire"]
