"""The certificate of a whole pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from taciturn.certificate.certificate import Certificate
from taciturn.certificate.issue import compose
from taciturn.certificate.steps import of_layout, parts_within, without_data
from taciturn.core.errors import CertificateError

__all__ = ["certificate_of"]


def certificate_of(estimator: Any) -> Certificate:
    """The privacy statement of everything that a fitted estimator learned.

    An estimator with a ``certificate_`` has its own. For a ``Pipeline``, ``FeatureUnion`` or
    ``ColumnTransformer`` the certificates of all parts are composed, those of parts inside parts included; so are those
    of the models inside ``VotingClassifier``, ``VotingRegressor``, ``MultiOutputClassifier``, ``MultiOutputRegressor``,
    ``FixedThresholdClassifier``, ``TransformedTargetRegressor`` and ``SelectFromModel``. Parts that learn nothing from
    the data cost nothing: "passthrough", "drop", ``TableEncoder``, ``OneHotEncoder`` with given categories,
    ``SimpleImputer`` with a constant, ``FunctionTransformer`` with a function of single rows, ``PolynomialFeatures``,
    ``SplineTransformer`` with given knots, and ``HashingVectorizer``. What such a part takes for granted is among the
    assumptions of the certificate. Any other part without a certificate, say
    ``StandardScaler``, whose means and variances are the data's own, is refused: no statement could cover it.

    Parameters
    ----------
    estimator : object
        A fitted estimator.

    Returns
    -------
    Certificate
        For one fit of the whole. A second fit on the same records is a second certificate; add them with
        :func:`compose`.

    Notes
    -----
    The layout of the table (names, order and types of the columns, dense or sparse) counts as public.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from taciturn import CorrelationSelector
    >>> from taciturn.certificate import certificate_of
    >>> from taciturn.scalers import BoundedScaler
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(0, 50, (1000, 20)), rng.uniform(-1, 1, 1000)
    >>> selector = CorrelationSelector(epsilon=0.5, x_bound=1.0, y_bounds=(-1, 1))
    >>> pipeline = make_pipeline(BoundedScaler(lower=0, upper=50), selector)
    >>> certificate_of(pipeline.fit(X, y)).epsilon
    0.5
    """
    assumptions: list[str] = []
    parts = list(_parts(estimator, "", assumptions))
    if not parts:
        raise CertificateError(
            "estimator: expected at least one part that is fitted, got none; "
            "a pipeline that passes everything through has learned nothing to certify."
        )
    certificate = compose(*parts)
    if not assumptions:
        return certificate
    return replace(certificate, assumptions=tuple(dict.fromkeys((*certificate.assumptions, *assumptions))))


def _parts(estimator: Any, name: str, assumptions: list[str]) -> Iterable[Certificate]:
    """The certificates of an estimator and of the parts it is made of, in order.

    What parts without one assume is added to ``assumptions``.
    """
    certificate = getattr(estimator, "certificate_", None)
    if isinstance(certificate, Certificate):
        yield certificate
        return
    inner, assumed = _inner(estimator), None
    if inner is not None:
        assumed = of_layout(estimator, _named(estimator, name))
    elif (within := parts_within(estimator, _named(estimator, name))) is not None:
        inner, assumed = within
    else:
        assumed = _assumed(estimator, name)
    if assumed is None:
        raise CertificateError(_refusal(estimator, name))
    assumptions += assumed
    for inner_name, part, *_ in inner or ():
        yield from _parts(part, f"{name}.{inner_name}" if name else str(inner_name), assumptions)


def _inner(estimator: Any) -> Any:
    """``(name, part, ...)`` of the composites that only pass data on; None for everything else."""
    # By attribute, so that other libraries' pipelines count and nothing needs importing. The underscore of
    # the last one matters: a ColumnTransformer fits copies and leaves `transformers` as they were.
    for attribute in ("steps", "transformer_list", "transformers_"):
        inner = getattr(estimator, attribute, None)
        if inner is not None:
            return inner
    return None


def _assumed(part: Any, name: str) -> tuple[str, ...] | None:
    """What has to be assumed for a part to hold nothing of the data; None where it may hold some."""
    if part is None or isinstance(part, str):
        return () if part in (None, "passthrough", "drop") else None
    # Here rather than above, as it takes scikit-learn. The encoder maps each record by what was stated in public.
    from taciturn.tables import TableEncoder

    return part.assumptions if type(part) is TableEncoder else without_data(part, _named(part, name))


def _named(part: Any, name: str) -> str:
    kind = type(part).__name__
    return f"{name!r} ({kind})" if name else kind


def _refusal(estimator: Any, name: str) -> str:
    # Here rather than above: reading a certificate should not cost the import of scikit-learn.
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    which = _named(estimator, name)
    if not hasattr(estimator, "fit"):
        return f"{which}: expected a fitted estimator, got something else; pass the estimator or pipeline itself."
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return f"{which}: expected a fitted estimator, got one that is not fitted; call fit first."
    if hasattr(estimator, "cv_results_"):
        return (
            f"{which}: expected a step with a certificate_, got a search, which fitted and scored on the data "
            "many times; choose its parameters without these data, then fit the private estimator once."
        )
    return (
        f"{which}: expected a step with a certificate_, got one that does not account for what it learns from "
        "the data; put BoundedScaler with public bounds or another private step in its place."
    )
