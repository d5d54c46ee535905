"""What probes share. Nothing here needs more than the standard library."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from typing import Any

__all__ = [
    "Answer",
    "Probe",
    "attempt",
    "console_scripts",
    "has_names",
    "module",
    "no_name_with",
    "parameters",
    "partly",
]

Answer = tuple[str, str]
"""``yes``, ``partly`` or ``no``, and what was seen; ``unclear`` if somebody has to look."""
Probe = Callable[[], Answer]

module = importlib.import_module


def attempt(
    what: str, run: Callable[[], Any], *, holds: Callable[[Any], bool] = lambda _: True, seen: str = "runs"
) -> Answer:
    """Yes if it runs and holds; no with the library's own error, or with what came out instead."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run()
    except Exception as error:
        said = " ".join(str(error).split())
        return "no", f"{what}: {type(error).__name__}: {said[:140]}{'…' if len(said) > 140 else ''}"
    return ("yes", f"{what}: {seen}") if holds(result) else ("no", f"{what}: gives {str(result)[:80]}")


def public_names(package: str) -> Iterator[str]:
    """Modules of a package with their public members; modules that cannot be imported count by name alone."""
    root = module(package)
    yield package
    found = pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None)
    for name in sorted(entry.name for entry in found if ".tests" not in entry.name and "._" not in entry.name):
        yield name
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                inside = module(name)
        except Exception:
            # An optional dependency is missing.
            continue
        yield from (f"{name}.{member}" for member in dir(inside) if not member.startswith("_"))


def no_name_with(package: str, *words: str) -> Answer:
    """No if no public name of the package contains one of the words; unclear, with the names, if there are some.

    No page is written while an answer is unclear: somebody has to look at the names.
    """
    found = [name for name in public_names(package) if any(word in name.lower().rpartition(".")[2] for word in words)]
    shown = ", ".join(f'"{word}"' for word in words)
    if found:
        return "unclear", f"names with {shown}: {', '.join(sorted(set(found))[:3])}"
    return "no", f"no public name of {package} contains {shown}"


def has_names(place: str, *names: str) -> Answer:
    """Yes if a module, or a class in it, has all the names."""
    home, _, kind = place.partition(":")
    found = getattr(module(home), kind) if kind else module(home)
    missing = [name for name in names if not hasattr(found, name)]
    shown = f"{home}.{kind}" if kind else home
    return ("no", f"{shown} has no {', '.join(missing)}") if missing else ("yes", f"{shown} has {', '.join(names)}")


def parameters(function: Callable[..., Any]) -> set[str]:
    """Names of the parameters of a function."""
    return set(inspect.signature(function).parameters)


def console_scripts(package: str) -> Answer:
    """Yes if the package installs a command."""
    found = sorted(entry.name for entry in distribution(package).entry_points if entry.group == "console_scripts")
    return ("yes", f"installs {', '.join(found)}") if found else ("no", f"{package} installs no command")


def partly(answer: Answer, but: str) -> Answer:
    """A yes with a reservation."""
    found, seen = answer
    return ("partly", f"{seen}; {but}") if found == "yes" else answer
