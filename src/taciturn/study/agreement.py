"""Whether a result and its certificate speak of the same fit: public facts that both state are equal.

These are contradictions that need no signature to be seen. Two files that were changed alike do not contradict each
other; of coefficients, say, a certificate states nothing.
"""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from taciturn.accounting import best_bound
from taciturn.certificate import Certificate
from taciturn.certificate.claim import facts_of_parts
from taciturn.certificate.release import in_pairs
from taciturn.core.errors import CertificateError
from taciturn.events import ObjectivePerturbationEvent, fold, for_group
from taciturn.modelfile import Model
from taciturn.modelfile.inference import SPLIT_RECORDS
from taciturn.modelfile.values import public_facts

__all__ = [
    "LEAST_SHARE",
    "check_model_facts",
    "check_no_release_missing",
    "check_releases_listed",
    "check_same_certificate",
    "check_selection_facts",
    "check_unit_facts",
]

# Parameters that a certificate states as they are; where a fit chose a value, it states that.
_STATED = ("x_bound", "n_nonzero", "invalid")
# A budget is stated where what was accounted for is at least this share of it, and a millionth for other machines. No
# model leaves more of its budget unspent: fits of every class over many budgets, relations and shapes spend all of it.
LEAST_SHARE = 0.999 * (1.0 - 1e-6)
# Facts that every fit and every score about records or persons states.
_OF_RECORDS = frozenset({"invalid", "metric", "estimand"})
# Version 0.1 accounted for a replaced record of a perturbed objective with clearly more than it costs.
_LOOSE_VERSION = "0.1."
# Budgets are split with one multiplication.
_ROUNDING = 1e-9


def check_same_certificate(name: str, inside: Any, beside: Any) -> None:
    """Raise unless the certificate inside a file is the one in ``certificate.json``."""
    if inside != beside:
        raise CertificateError(
            f"{name}: expected the certificate that certificate.json holds, got another; one of the two files is not "
            "of this fit, ask for a fresh copy of the folder."
        )


def check_no_release_missing(certificate: Certificate, writer: Any) -> None:
    """Raise if a certificate states clearly more than its events prove: then it lists too few releases.

    A fit states what was accounted for, or its budget where that is larger by less than a thousandth. So does a sum of
    parts, which is stated where the parts together do not cost clearly less.
    """
    if not certificate.is_proved or _was_loose(certificate, writer):
        return
    if certificate.epsilon * LEAST_SHARE > _cost(certificate, certificate.delta, certificate.group_size):
        raise CertificateError(
            f"epsilon={certificate.epsilon!r}: expected what its events prove, got more, so that releases are missing "
            "or stated with too much noise; do not rely on this certificate, and ask for the one of the fit."
        )


def check_unit_facts(certificate: Certificate) -> None:
    """Raise unless persons and halves are stated by a fit that has them.

    A fit about persons states what it estimates, and the mean over rows of single records has no such fact. Records are
    split in halves for standard errors alone, once for each fit with ``inference=True``: halves that no fit made would
    divide the cost of its releases between them.
    """
    persons = certificate.unit == "person"
    parts = list(facts_of_parts(certificate.public))
    # Parts that release nothing are about persons and records alike.
    stated = ["estimand" in facts for facts in parts if not _OF_RECORDS.isdisjoint(facts)]
    if (persons and not stated) or any(found != persons for found in stated):
        raise CertificateError(
            f"unit={certificate.unit!r}: expected an estimand in the public facts of fits about persons, and of those "
            "alone; do not rely on this certificate, and ask for the one of the fit."
        )
    if not persons and any(True for _ in public_facts("person column", certificate.public)):
        raise CertificateError(
            f"unit={certificate.unit!r}: expected 'person', since the certificate names a column of persons; do not "
            "rely on this certificate, and ask for the one of the fit."
        )
    pairs = sum(
        any(release.half is not None for run in runs for release in run) for runs in in_pairs(certificate.events)
    )
    if pairs > sum(fact == SPLIT_RECORDS for fact in public_facts("inference", certificate.public)):
        raise CertificateError(
            "events: expected releases about halves of the records only from fits with standard errors, which state "
            "inference as a public fact; do not rely on this certificate, and ask for the one of the fit."
        )


def check_releases_listed(file: str, certificate: Certificate) -> None:
    """Raise if the certificate of a model or a score lists no release: each is made of some."""
    if not certificate.events:
        raise CertificateError(
            f"{file}: expected a certificate that lists what was released, got one without a release; do not rely on "
            "this file, and ask for that of the fit."
        )


def check_model_facts(model: Model, writer: Any) -> None:
    """Raise if a model contradicts its certificate in what both state."""
    certificate, estimator = model.certificate, model.estimator
    check_releases_listed("model.json", certificate)
    if certificate.status == "as published":
        # Only taciturn.published issues such certificates, and its models have no files.
        raise _contradiction("model.json", "status")
    _check_fact(certificate, "features", estimator.n_features_in_)
    for name in _STATED:
        _check_fact(certificate, name, getattr(estimator, name, None))
    if is_classifier(estimator):
        _check_fact(certificate, "classes", estimator.classes_.tolist())
    else:
        target = model.bounds.target
        stated = None if target.lower is None else [target.lower, target.upper]
        for ends in (list(estimator.y_bounds_), stated):
            _check_fact(certificate, "y_bounds", ends)
    if certificate.relation == "add-remove":
        _check_fact(certificate, "records", estimator.n_public)
    _check_nonzero(certificate, estimator)
    _check_budget(certificate, estimator, writer)
    _check_person_column(certificate, model.bounds.person)
    _check_seed(certificate, model.command)


def check_selection_facts(certificate: Certificate, features: Any) -> None:
    """Raise if a list of selected features contradicts its certificate."""
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise CertificateError("selection.json: expected a list of names, got something else; ask for a fresh copy.")
    if len(set(features)) < len(features):
        raise CertificateError("selection.json: expected every name once, got one twice; ask for a fresh copy.")
    if len(features) not in public_facts("features", certificate.public):
        # A selector that keeps every feature releases nothing, and leaves its whole budget.
        check_releases_listed("selection.json", certificate)
    if certificate.unit == "person" and not any(True for _ in public_facts("person column", certificate.public)):
        raise _contradiction("selection.json", "person column")
    stated = [fact for fact in public_facts("selected", certificate.public) if type(fact) is int]
    if stated and len(features) not in stated:
        raise _contradiction("selection.json", "selected")


def _check_fact(certificate: Certificate, name: str, value: Any) -> None:
    """A composed certificate states facts of several fits, and one of them is that of the model."""
    stated = list(public_facts(name, certificate.public))
    if value is None or value == "auto" or not stated or "auto" in stated:
        return
    if not any(_equal(fact, value) for fact in stated):
        raise _contradiction("model.json", name)


def _equal(fact: Any, value: Any) -> bool:
    # True equals 1 in Python, but is another label.
    if isinstance(fact, list) and isinstance(value, list):
        return len(fact) == len(value) and all(map(_equal, fact, value))
    return bool(fact == value) and isinstance(fact, bool) == isinstance(value, bool)


def _check_nonzero(certificate: Certificate, estimator: Any) -> None:
    most = [fact for fact in public_facts("n_nonzero", certificate.public) if type(fact) is int]
    if most and int(np.sum(estimator.support_)) > max(most):
        raise _contradiction("model.json", "n_nonzero")


def _check_budget(certificate: Certificate, estimator: Any, writer: Any) -> None:
    """A fit never states more than its budget, which several releases share, and it spends all of it."""
    if not certificate.is_proved:
        return
    if "part 1" not in certificate.public and certificate.group_size == 1:
        for name in ("epsilon", "delta"):
            if getattr(certificate, name) > getattr(estimator, name) * (1.0 + _ROUNDING):
                raise _contradiction("model.json", name)
    # Releases besides those of the model can only cost more at the same delta.
    if _was_loose(certificate, writer) or _cost(certificate, estimator.delta) >= estimator.epsilon * LEAST_SHARE:
        return
    raise CertificateError(
        f"model.json: expected releases that cost its budget of epsilon={estimator.epsilon:g} at "
        f"delta={estimator.delta:g}, got fewer, or with more noise; do not rely on this file, and ask for that of the "
        "fit."
    )


def _check_person_column(certificate: Certificate, column: str | None) -> None:
    stated = list(public_facts("person column", certificate.public))
    if (certificate.unit == "person") != (column is not None) or any(fact != column for fact in stated):
        raise _contradiction("model.json", "person column")


def _cost(certificate: Certificate, delta: float, group_size: int = 1) -> float:
    """What the events of a certificate cost at a delta, for a group of records."""
    event = for_group(certificate.event, group_size)
    return best_bound(event, delta, ordered=certificate.ordered).epsilon


def _was_loose(certificate: Certificate, writer: Any) -> bool:
    """Whether a certificate is one of the first version's whose accountant was looser than this one."""
    return str(writer).startswith(_LOOSE_VERSION) and any(
        isinstance(event, ObjectivePerturbationEvent) and event.replaced for event in fold(certificate.event)
    )


def _check_seed(certificate: Certificate, command: str) -> None:
    """A command with a seed makes a seeded fit; a model that was made in Python may have any command."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    if "--seed" in words and not certificate.seeded:
        raise _contradiction("model.json", "seeded")


def _contradiction(file: str, name: str) -> CertificateError:
    return CertificateError(
        f"{file}: expected the same {name} as its certificate states, got another; one of the two is not of this fit, "
        "ask for a fresh copy of the folder."
    )
