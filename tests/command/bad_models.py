"""Bad model files: cut short, of another kind, or with one thing changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from bad_inputs import Case
from commands import SECRET


@dataclass(frozen=True)
class Change:
    """What makes a good model file bad."""

    of: Callable[[str], str]


def _set(path, value):
    """Another value at a place."""

    def change(text):
        content = json.loads(text)
        place = content
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        return json.dumps(content)

    return Change(change)


def _without(*path):
    """Without what stands at a place."""

    def change(text):
        content = json.loads(text)
        place = content
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]
        return json.dumps(content)

    return Change(change)


TEXTS = {
    "empty": "",
    "an open brace": "{",
    "a list": "[]",
    "null": "null",
    "a number": "42",
    "text": '"model"',
    "another object": '{"format": "taciturn selection", "version": 1}',
    "a word": SECRET,
    "null characters": "\x00" * 50,
    "deep": "[" * 100_000,
    "a score": '{"format": "taciturn score", "version": 1, "value": 7919.4242}',
    "a version that is true": '{"format": "taciturn model", "version": true}',
    "a later version": '{"format": "taciturn model", "version": 99, "taciturn": "9.9"}',
    "a version that is text": '{"format": "taciturn model", "version": "1"}',
    "a digit of thousands": '{"format": "taciturn model", "version": ' + "9" * 5000 + "}",
}
KEYS = ("taciturn", "task", "target", "bounds", "features", "estimator", "parameters", "coefficients", "intercept",
        "classes", "n_steps", "sparse", "named", "certificate", "command")  # fmt: skip
VALUES = (-1, [], {}, [[["deep"]]])
CHANGES = {
    "many coefficients": _set(("coefficients",), [[0.0] * 100_000]),
    "a class less": _set(("classes",), ["no"]),
    "classes that are numbers": _set(("classes",), [0, 1]),
    "a class twice": _set(("classes",), ["no", "no"]),
    "a class more": _set(("classes",), ["no", "yes", "perhaps"]),
    "classes of two types": _set(("classes",), ["no", 1]),
    "a coefficient less": _set(("coefficients",), [[0.5] * 4]),
    "a coefficient more": _set(("coefficients",), [[0.5] * 6]),
    "coefficients in a row": _set(("coefficients",), [0.5] * 5),
    "coefficients as text": _set(("coefficients",), [["0.5"] * 5]),
    "coefficients of truth": _set(("coefficients",), [[True] * 5]),
    "coefficients of nothing": _set(("coefficients",), [[None] * 5]),
    "coefficients above all": _set(("coefficients",), [[10**400] * 5]),
    "coefficients that are nan": Change(lambda text: text.replace('"coefficients": [[', '"coefficients": [[NaN, ')),
    "an infinite intercept": Change(lambda text: text.replace('"intercept": [', '"intercept": [Infinity, ')),
    "another estimator": _set(("estimator",), "os.system"),
    "the other estimator": _set(("estimator",), "SparseRegressor"),
    "the other task": _set(("task",), "regress"),
    "another task": _set(("task",), "magic"),
    "another target": _set(("target",), "dose"),
    "a seed": _set(("parameters", "random_state"), 7),
    "an unknown parameter": _set(("parameters", "magic"), 7),
    "a parameter less": _without("parameters", "epsilon"),
    "a budget below zero": _set(("parameters", "epsilon"), -1),
    "a budget that is text": _set(("parameters", "epsilon"), "much"),
    "a relation that nobody knows": _set(("parameters", "relation"), "friend"),
    "a feature of another name": _set(("features",), ["a", "b", "c", "d", "e"]),
    "features in another order": _set(("features",), ["dose", "age", "smoker", "region=hill", "region=dale"]),
    "bounds the wrong way round": _set(("bounds", "columns", "age"), {"type": "number", "lower": 1, "upper": 0}),
    "bounds of another target": _set(("bounds", "target"), {"name": "x", "classes": ["no", "yes"]}),
    "bounds without an order": _without("bounds", "order"),
    "bounds with a column less": _without("bounds", "columns", "age"),
    "bounds with an order of strangers": _set(("bounds", "order"), ["nobody"]),
    "bounds found for nobody": _set(("bounds", "found_privately"), ["nobody"]),
    "a certificate below zero": _set(("certificate", "epsilon"), -1),
    "a certificate that is text": _set(("certificate", "epsilon"), "little"),
    "a certificate of another relation": _set(("certificate", "relation"), "friend"),
    "a certificate of another status": _set(("certificate", "status"), "believed"),
    "a certificate without events": _without("certificate", "events"),
    "a certificate without delta": _without("certificate", "delta"),
    "a certificate of events that are text": _set(("certificate", "events"), "none"),
    "a certificate seeded by text": _set(("certificate", "seeded"), "yes"),
    "a certificate with assumptions in lists": _set(("certificate", "assumptions"), [[]]),
}


def cases():
    """Every one of them, read by one command or another."""
    for name, text in TEXTS.items():
        yield Case(f"model: {name}", ("show", "model.json"), {"model.json": text})
        yield Case(
            f"model, to predict: {name}", ("predict", "model.json", "patients.csv", "-o", "out"), {"model.json": text}
        )
    for key in ("format", "version", *KEYS):
        yield Case(f"model without {key}", ("show", "model.json"), {"model.json": _without(key)})
    for key in KEYS:
        for value in VALUES:
            arguments = ("predict", "model.json", "patients.csv", "-o", "out")
            yield Case(f"model with {key} = {json.dumps(value)}", arguments, {"model.json": _set((key,), value)})
    for name, change in CHANGES.items():
        arguments = ("score", "model.json", "patients.csv", "-o", "out")
        yield Case(f"model with {name}", arguments, {"model.json": change})
    for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99):
        cut = Change(lambda text, share=share: text[: int(share * len(text))])
        yield Case(f"model, {share:.0%} of it", ("show", "model.json"), {"model.json": cut})
