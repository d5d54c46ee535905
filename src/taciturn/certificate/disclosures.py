"""What a guarantee does not protect, and what lies outside its proof.

Both follow from the other fields of a certificate, and its file states them for readers without this library. A file
that states anything else contradicts itself. The sentences are part of the file's form: a version that words one of
them differently has to know the earlier wording when it reads a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from taciturn.core.errors import CertificateError
from taciturn.events import ObjectivePerturbationEvent, fold

if TYPE_CHECKING:
    from taciturn.certificate.certificate import Certificate

__all__ = ["DERIVED", "check_disclosures", "list_side_channels", "list_unprotected"]

DERIVED = ("unprotected", "side_channels")
"""Fields of a file that follow from its other fields."""

# What certificates say where labels were not stated but found.
_LABELS_FOUND = "the set of labels is public"
_REFUSAL = "the refusal tells of it"
_BOUNDS = frozenset({"x_bound", "row_bound", "y_bounds", "lower", "upper", "smallest", "largest", "gradient_bound"})


def list_unprotected(certificate: Certificate) -> tuple[str, ...]:
    """Quantities that the guarantee does not protect, in words."""
    if certificate.status == "not private":
        return ("everything: the result was computed without noise",)
    facts = dict(_facts(certificate.public))
    listed = []
    if certificate.seeded:
        listed.append("everything, from whoever knows the seed of the noise")
    units = f"{certificate.unit}s"
    if certificate.relation != "add-remove":
        listed.append(f"the number of {units}")
    elif "records" in facts:
        listed.append(f"the number of {units} that was stated as public (n_public)")
    listed.append("the number, names, types and order of the columns")
    if _BOUNDS & facts.keys():
        listed.append("the bounds of features and target, except those that were found privately")
    if _LABELS_FOUND in certificate.assumptions:
        listed.append("the set of labels, which was taken from the data, so that one record could change it")
    elif "classes" in facts:
        listed.append("the set of labels")
    listed.append("the method, its parameters and its budget")
    listed.append(f"what holds of the population and would be learned without any one of the {units}")
    return tuple(listed)


def list_side_channels(certificate: Certificate) -> tuple[str, ...]:
    """What an observer of the computation may learn besides the releases, in words."""
    if certificate.status == "not private":
        return ()
    listed = ["running time, memory and temporary files of the computation"]
    if any(isinstance(part, ObjectivePerturbationEvent) for part in fold(certificate.event)):
        listed.append("the number of steps of the solver, which depends on the data and shows in the running time")
    # Version 0.1 did not state it, and refused.
    invalid = [fact for name, fact in _facts(certificate.public) if name == "invalid"] or ["raise"]
    if any(fact != "null" for fact in invalid) or any(_REFUSAL in text for text in certificate.assumptions):
        listed.append("a refusal, which tells that a record, or the file, is not admissible")
    if certificate.arithmetic == "float64":
        listed.append("rounding in double precision, as far as the assumptions do not cover it")
    listed.append("the random numbers of the operating system, which nobody else may know")
    return tuple(listed)


def check_disclosures(certificate: Certificate, stated: Mapping[str, tuple[str, ...] | None]) -> None:
    """Raise if a file states something else than follows from its other fields; earlier files state nothing."""
    for name in DERIVED:
        if stated[name] is not None and stated[name] != getattr(certificate, name):
            raise CertificateError(
                f"{name}: expected what follows from the relation, the public facts and the assumptions, got something "
                "else; the certificate contradicts itself, ask for the one of the fit."
            )


def _facts(public: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Public facts by name, in a composed certificate those of all its parts."""
    for name, fact in public.items():
        if isinstance(fact, Mapping):
            yield from _facts(fact)
        else:
            yield name, fact
