"""A certificate in plain sentences, and the posterior beliefs that it admits."""

from __future__ import annotations

import math
from collections.abc import Iterator

from taciturn.certificate import Certificate
from taciturn.core.errors import CertificateError
from taciturn.drawing.charts import odds_chart
from taciturn.drawing.formats import format_percent, round_safely
from taciturn.drawing.odds import posterior_range
from taciturn.report.page import Page

__all__ = ["explain_guarantee", "list_warnings", "show_odds", "summarise"]

_PRIORS = (0.01, 0.1, 0.5, 0.9)
# Distance between a belief and the region in the sentence about delta.
_BEYOND = 0.01
# For a larger epsilon the digits of the factor have no meaning.
_LARGEST_EXPONENT = 20.0

_LIMITS = (
    "The guarantee hides whether a person took part, not facts about the population: what the coefficients say about "
    "people in general applies to everybody, in the data or not; and the facts that are listed below as public, the "
    "bounds file and the names of the columns are not protected."
)
_NO_LIMITS = "Whoever may not see the records should not see this model either."


def summarise(certificate: Certificate, method: str) -> str:
    """Describe the guarantee in one line."""
    if certificate.status == "not private":
        return f"Fitted by {method}, without any protection."
    claimed = ", as the authors claim" if certificate.status == "as published" else ""
    assumed = f", {certificate.status}" if certificate.status == "proved under a numerical assumption" else ""
    return (
        f"Fitted by {method} under differential privacy (epsilon = {certificate.epsilon:.6g}, delta = "
        f"{certificate.delta:.6g}, relation: {certificate.relation}{claimed}{assumed})."
    )


def list_warnings(certificate: Certificate) -> Iterator[str]:
    """Iterate over the warnings for the top of the page."""
    if certificate.status == "not private":
        yield "Not private: this model was computed without noise and may reveal any record."
    if certificate.status == "as published":
        proved = certificate.proved_epsilon
        behind = (
            "nothing is proved for this run"
            if proved is None or math.isinf(proved)
            else f"epsilon = {round_safely(proved, up=True)} is proved for this run at the same delta"
        )
        yield f"As published, not verified: the guarantee is the authors' claim, and {behind}."
    if certificate.seeded:
        yield (
            "Seeded: whoever knows the seed can undo the noise. The noise came from a fixed seed, so this run is for "
            "reproduction only."
        )


def explain_guarantee(certificate: Certificate) -> tuple[str, str, str]:
    """Three sentences: the effect of one person's presence, of several records, and what is not protected."""
    if certificate.status == "not private":
        first = "There is no guarantee: a single record may have changed the model in any way."
    elif certificate.epsilon == 0.0:
        first = "The model does not depend on the data at all, so nobody's presence changes anything."
    else:
        first = _presence(certificate)
    return first, _several_records(certificate), _LIMITS if certificate.status != "not private" else _NO_LIMITS


def _presence(certificate: Certificate) -> str:
    size = certificate.group_size
    if certificate.unit == "person":
        whose = "all rows of any one person" if size == 1 else f"all rows of any {size} persons"
    else:
        whose = "the record of any one person" if size == 1 else f"the records (up to {size}) of any one person"
    changed = "replaced" if certificate.relation == "replace-one" else "left out of the data"
    beyond = f", up to an additional probability of {certificate.delta:.6g} (delta)" if certificate.delta else ""
    claim = (
        f"{whose} been {changed}, no outcome of this fit, the model included, would have been more or less probable by "
        f"more than a factor of {_factor(certificate.epsilon)} (epsilon = {certificate.epsilon:.6g}){beyond}."
    )
    return f"The authors claim: had {claim}" if certificate.status == "as published" else f"Had {claim}"


def _several_records(certificate: Certificate) -> str:
    if certificate.status == "not private":
        return "The same holds for a person with several records."
    if certificate.status == "as published":
        return "For a person with more records the authors claim nothing."
    size = 2 * certificate.group_size
    whom = f"{size} persons together" if certificate.unit == "person" else f"a person with {size} records"
    try:
        twice = certificate.for_group(2)
    except CertificateError:
        return f"For {whom} no such factor can be given at the same delta."
    return (
        f"For {whom} the factor is {_factor(twice.epsilon)} (epsilon = "
        f"{round_safely(twice.epsilon, up=True)}), at the same delta."
    )


def _factor(epsilon: float) -> str:
    return round_safely(math.exp(epsilon), up=True) if epsilon <= _LARGEST_EXPONENT else "hundreds of millions or more"


def show_odds(page: Page, certificate: Certificate) -> None:
    """Add posterior against prior beliefs of an attacker: a drawing, a table and sentences."""
    epsilon, delta = certificate.epsilon, certificate.delta
    if certificate.status == "as published":
        epsilon = math.inf if certificate.proved_epsilon is None else certificate.proved_epsilon
    if math.isinf(epsilon):
        page.paragraph("There is no proved limit: an attacker may come to believe anything.")
        return
    suspicion = "that a certain record is in the data, and not a certain other one in its place"
    if certificate.relation != "replace-one":
        suspicion = "that a certain person is in the data"
    page.paragraph(
        f"Somebody suspects {suspicion}, knows every other {certificate.unit}, and sees the model. "
        + ("Up to delta, the" if delta else "The")
        + " region holds all posterior beliefs, whatever they compute."
    )
    ranges = [(prior, *posterior_range(prior, epsilon)) for prior in _PRIORS]
    rows = [
        (f"{prior:.0%}", format_percent(low, up=False), format_percent(high, up=True)) for prior, low, high in ranges
    ]
    described = "; ".join(f"from {before} to between {least} and {most}" for before, least, most in rows)
    page.figure(
        odds_chart(epsilon, "What an attacker can come to believe"),
        f"A region around the diagonal between two curves that meet at 0% and at 100%: {described}.",
        f"Belief after seeing the model against belief before, at epsilon = {epsilon:.6g}: at most on the upper curve, "
        "at least on the lower one. On the dashed line nothing is learned.",
    )
    header = ("believed before", "afterwards at least", "afterwards at most")
    page.table(header, rows, "What a suspicion can become", numeric={0, 1, 2})
    if delta:
        beyond = round_safely(min(1.0, delta / _BEYOND), up=True)
        page.paragraph(
            f"Because of delta, the belief leaves the region by more than one percentage point with a probability of "
            f"at most {beyond}."
        )
    _show_attacks(page, certificate)


def _show_attacks(page: Page, certificate: Certificate) -> None:
    """Add what tests of membership can achieve at most: a sentence and a table."""
    rates, mu = certificate.attack_rates(), certificate.mu
    if rates is None:
        return
    gaussian = "" if mu is None else f" The Gaussian parameter of all releases together is mu = {_rounded(mu)}."
    page.paragraph(
        "A test of membership looks at the model and calls records members of the data. Its false positive rate is the "
        "share of records outside the data that it calls so, its true positive rate the share of those in the data. "
        "Whatever it computes, these are the best rates that it can have; they follow from the releases, not from "
        f"epsilon alone.{gaussian}"
    )
    rows = [
        (f"{100.0 * level:g}%", format_percent(power, up=True))
        for level, power in zip(rates.fpr, rates.tpr, strict=True)
    ]
    rows.append(("largest difference", format_percent(rates.advantage, up=True)))
    header = ("false positive rate", "true positive rate, at most")
    page.table(header, rows, "Tests of membership", numeric={0, 1})


def _rounded(mu: float) -> str:
    return round_safely(mu, up=True)
