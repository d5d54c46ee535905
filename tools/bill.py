"""The bill of materials of a wheel: what it needs, in which versions, under which licences, as CycloneDX.

cyclonedx-py reads an environment in which the wheel is installed. What depends on that machine or on the moment goes:
the installer, addresses, paths, times. What stays follows from the wheel and the lock.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.distributions import output_of

COMPATIBLE = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "Zlib",
}
"""Licences that a package may have which one under Apache-2.0 imports."""
CLASSIFIERS = {
    "License :: OSI Approved :: Apache Software License": "Apache-2.0",
    "License :: OSI Approved :: MIT License": "MIT",
    # The classifier does not say which of the two; both are compatible.
    "License :: OSI Approved :: BSD License": "BSD-2-Clause OR BSD-3-Clause",
}
STATED = {"dp-accounting": "Apache-2.0"}
"""Licences that the generator does not find: the metadata say "Apache 2.0", which is not an SPDX identifier."""
SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
REQUIRES = """
import importlib.metadata, json
print(json.dumps({each.name: each.requires or [] for each in importlib.metadata.distributions()}))
"""
"""What prints the requirements of all packages of an environment."""
PLACE = re.compile(r"[a-z]+://|(?<![\w.])(?:/[\w.-]+){2,}|[A-Za-z]:\\\\")


def make_bill(python: Path, wheel: Path, root: Path) -> dict[str, Any]:
    """The bill of a wheel that is installed, without extras, in the environment of this Python."""
    command = ["cyclonedx_py", "environment", "--output-reproducible", "--short-PURLs", "--spec-version", "1.6"]
    printed = output_of(sys.executable, "-W", "ignore", "-m", *command, str(python), cwd=root)
    requires = json.loads(output_of(str(python), "-c", REQUIRES, cwd=python.parent))
    return clean_bill(json.loads(printed), needs_of(requires), hashlib.sha256(wheel.read_bytes()).hexdigest())


def needs_of(requires: dict[str, list[str]]) -> dict[str, list[str]]:
    """What the package needs, and what that needs, by name; extras count where something asks for them.

    The generator's own graph has an edge wherever an extra names something that happens to be installed, the installer
    among them.
    """
    stated = {canonicalize_name(name): [Requirement(text) for text in texts] for name, texts in requires.items()}
    asked: dict[str, set[str]] = {"taciturn": set()}
    needs: dict[str, set[str]] = {}
    left = ["taciturn"]
    while left:
        name = left.pop()
        for requirement in stated[canonicalize_name(name)]:
            extras = ["", *sorted(asked[name])]
            if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
                continue
            needed = canonicalize_name(requirement.name)
            needs.setdefault(name, set()).add(needed)
            if needed not in asked or not requirement.extras <= asked[needed]:
                asked.setdefault(needed, set()).update(requirement.extras)
                left.append(needed)
    return {name: sorted(needs.get(name, ())) for name in sorted(asked)}


def clean_bill(raw: dict[str, Any], needs: dict[str, list[str]], digest: str) -> dict[str, Any]:
    """Keep what the package needs, in a fixed order, and of each the facts that do not depend on the machine."""
    components = {str(canonicalize_name(component["name"])): component for component in raw["components"]}
    refs = {name: components[name]["bom-ref"] for name in needs}
    (tool,) = [each for each in raw["metadata"]["tools"]["components"] if each["name"] == "cyclonedx-py"]
    package = _facts(components["taciturn"]) | {"hashes": [{"alg": "SHA-256", "content": digest}]}
    return {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [{key: tool[key] for key in ("type", "group", "name", "version")}]},
            "component": package,
        },
        "components": [_facts(components[name]) for name in needs if name != "taciturn"],
        "dependencies": [{"ref": refs[name], "dependsOn": [refs[each] for each in needs[name]]} for name in needs],
    }


def _facts(component: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {
        key: component[key] for key in ("type", "bom-ref", "name", "version", "purl") if key in component
    }
    if expression := licence_of(component):
        kept["licenses"] = [{"expression": expression, "acknowledgement": "declared"}]
    return kept


def licence_of(component: dict[str, Any]) -> str | None:
    """The declared licence as one SPDX expression; None if there is none, or in words of its own."""
    entries = component.get("licenses", [])
    if not entries:
        return STATED.get(component["name"])
    identifiers = [entry.get("expression") or entry["license"].get("id") for entry in entries]
    named = [expression for expression in identifiers if expression]
    # A classifier beside an identifier says the same less exactly.
    named = named or [CLASSIFIERS.get(entry["license"]["name"], "") for entry in entries]
    if not all(named):
        return None
    return named[0] if len(named) == 1 else " AND ".join(f"({expression})" for expression in named)


def is_compatible(expression: str) -> bool:
    """Whether something under this licence, an SPDX expression, may be a dependency."""
    try:
        text = canonicalize_license_expression(expression)
    except InvalidLicenseExpression:
        return False
    joined = re.sub(r"(\S+) WITH (\S+)", r"\1_WITH_\2", text)
    tokens = re.findall(r"[()]|[^\s()]+", joined)
    return _any_of(tokens)


def _any_of(tokens: list[str]) -> bool:
    # Every part is read, whatever the parts before it say. OR binds least.
    holds = _all_of(tokens)
    while tokens and tokens[0] == "OR":
        tokens.pop(0)
        holds |= _all_of(tokens)
    return holds


def _all_of(tokens: list[str]) -> bool:
    holds = _one(tokens)
    while tokens and tokens[0] == "AND":
        tokens.pop(0)
        holds &= _one(tokens)
    return holds


def _one(tokens: list[str]) -> bool:
    token = tokens.pop(0)
    if token != "(":
        return token.replace("_WITH_", " WITH ") in COMPATIBLE
    holds = _any_of(tokens)
    tokens.pop(0)
    return holds


def licence_problems(bill: dict[str, Any]) -> list[str]:
    """Dependencies whose licence is missing or not compatible with Apache-2.0."""
    problems = []
    for component in bill["components"]:
        expression = licence_of(component)
        if expression is None:
            problems.append(f"{component['name']} declares no licence that is known")
        elif not is_compatible(expression):
            problems.append(f"{component['name']} is under {expression}")
    return problems


def bill_problems(bill: dict[str, Any], needed: set[str]) -> list[str]:
    """What is wrong with a bill: places of a machine or an index in it, and needs that it lacks."""
    text = json.dumps(bill).replace(SCHEMA, "")
    problems = [f"it names the place {match[0]}" for match in PLACE.finditer(text)]
    listed = {component["name"].lower() for component in bill["components"]}
    return problems + [f"{name} is not in it" for name in sorted(needed - listed)]


def schema_problems(bill: dict[str, Any]) -> list[str]:
    """What the schema of CycloneDX 1.6 says against a bill."""
    # Imported here, since the tests of the rest do without the tools of a release.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    invalid = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill))
    return [f"the schema of CycloneDX 1.6 refuses it: {invalid}"] if invalid else []


def write_bill(bill: dict[str, Any], path: Path) -> None:
    """Write a bill as JSON; equal bills give equal bytes."""
    path.write_text(json.dumps(bill, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
