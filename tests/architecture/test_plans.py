"""A plan is a frozen value of public facts: nothing of it takes data or randomness."""

import dataclasses
import importlib
import inspect
import pkgutil
import re

import pytest

from taciturn import methods

FORBIDDEN_NAMES = {"X", "y", "rows", "records", "source", "stream", "design", "target", "targets", "data"}
FORBIDDEN_TYPES = {"Stream", "Source", "ArraySource", "Records", "Design", "Block"}


def members():
    for module in pkgutil.walk_packages(methods.__path__, "taciturn.methods."):
        if not module.name.endswith((".plan", ".schedule")):
            continue
        loaded = importlib.import_module(module.name)
        for name, member in vars(loaded).items():
            if getattr(member, "__module__", None) == module.name:
                yield f"{module.name}.{name}", member


def takes_data(function):
    """Names of parameters that are data or randomness, by their names or their annotations."""
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name in FORBIDDEN_NAMES or FORBIDDEN_TYPES & set(re.findall(r"\w+", str(parameter.annotation))):
            found.append(name)
    return found


def functions_of(member):
    if inspect.isfunction(member):
        return [member]
    return [method for method in vars(member).values() if inspect.isfunction(method)] if inspect.isclass(member) else []


PLANS = {
    name: member
    for name, member in members()
    if inspect.isclass(member) and name.endswith("Plan") and name != "taciturn.methods.schedule.ScheduledPlan"
}


def test_there_are_plans():
    assert {"taciturn.methods.selection.plan.TopKPlan", "taciturn.methods.objective.plan.TwoStagePlan"} <= set(PLANS)


@pytest.mark.parametrize("name", PLANS)
def test_plans_are_frozen_and_say_what_they_cost(name):
    plan = PLANS[name]
    assert dataclasses.is_dataclass(plan)
    assert plan.__dataclass_params__.frozen
    stated = {field.name for field in dataclasses.fields(plan)} | set(dir(plan))
    # What the default model releases depends on what it released before: a privacy filter lists it as it is made.
    along_the_way = name.endswith(("SparsePlan", "InferencePlan", "SurvivalPlan"))
    assert {"budget", "releases"} - stated <= ({"releases"} if along_the_way else set())


def test_nothing_in_plans_takes_data_or_randomness():
    taken = {
        function.__qualname__: takes_data(function) for _, member in members() for function in functions_of(member)
    }
    assert len(taken) > 40
    assert {name: found for name, found in taken.items() if found} == {}


def test_what_takes_data_is_found():
    def solve(self, rows, stream: "Stream | None" = None): ...  # noqa: F821

    def hidden(table: "tuple[ArraySource, int]"): ...  # noqa: F821

    def plain(budget, n_rows: int): ...

    assert takes_data(solve) == ["rows", "stream"]
    assert takes_data(hidden) == ["table"]
    assert takes_data(plain) == []
