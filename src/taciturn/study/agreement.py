"""Whether a result and its certificate speak of the same fit: public facts that both state are equal.

These are contradictions that need no signature to be seen. Two files that were changed alike do not contradict each
other; of coefficients, say, a certificate states nothing.
"""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from taciturn._version import __version__
from taciturn.accounting import best_bound
from taciturn.certificate import Certificate
from taciturn.core.errors import CertificateError
from taciturn.events import for_group
from taciturn.modelfile import Model
from taciturn.modelfile.values import public_facts

__all__ = ["check_model_facts", "check_no_release_missing", "check_same_certificate", "check_selection_facts"]

# Parameters that a certificate states as they are; where a fit chose a value, it states that.
_STATED = ("x_bound", "n_nonzero", "invalid")
# A budget is stated where what was accounted for is at least this share of it, and a millionth for other machines.
_LEAST_SHARE = 0.999 * (1.0 - 1e-6)
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

    A fit states what was accounted for, or its budget where that is larger by less than a thousandth. Other versions
    may have had a looser accountant, and a sum of parts is larger than its events need.
    """
    if writer != __version__ or not certificate.is_proved or certificate.bound == "sum" or certificate.epsilon == 0.0:
        return
    event = for_group(certificate.event, certificate.group_size)
    needed = best_bound(event, certificate.delta, ordered=certificate.ordered).epsilon
    if certificate.epsilon * _LEAST_SHARE > needed:
        raise CertificateError(
            f"epsilon={certificate.epsilon!r}: expected what its events prove, got more, so that releases are missing "
            "or stated with too much noise; do not rely on this certificate, and ask for the one of the fit."
        )


def check_model_facts(model: Model) -> None:
    """Raise if a model contradicts its certificate in what both state."""
    certificate, estimator = model.certificate, model.estimator
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
    _check_budget(certificate, estimator)
    _check_seed(certificate, model.command)


def check_selection_facts(certificate: Certificate, features: Any) -> None:
    """Raise if a list of selected features contradicts its certificate."""
    if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
        raise CertificateError("selection.json: expected a list of names, got something else; ask for a fresh copy.")
    if len(set(features)) < len(features):
        raise CertificateError("selection.json: expected every name once, got one twice; ask for a fresh copy.")
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


def _check_budget(certificate: Certificate, estimator: Any) -> None:
    """A fit never states more than its budget; that of several releases is shared between them."""
    if not certificate.is_proved or "part 1" in certificate.public or certificate.group_size > 1:
        return
    for name in ("epsilon", "delta"):
        if getattr(certificate, name) > getattr(estimator, name) * (1.0 + _ROUNDING):
            raise _contradiction("model.json", name)


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
