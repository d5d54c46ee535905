"""A certificate in plain sentences, and what it leaves to an attacker."""

from __future__ import annotations

import math
from collections.abc import Iterator

from taciturn.certificate import Certificate
from taciturn.core.errors import CertificateError
from taciturn.report.charts import odds_chart
from taciturn.report.formats import percent, rounded
from taciturn.report.odds import highest_power, posterior_range
from taciturn.report.page import Page

__all__ = ["banners", "in_three_sentences", "show_odds", "summary"]

_PRIORS = (0.01, 0.1, 0.5, 0.9)
_LEVEL = 0.05
# How far out of the region a belief may come, for the sentence about delta.
_BEYOND = 0.01
# Beyond this the factor has more digits than meaning.
_LARGEST_EXPONENT = 20.0

_LIMITS = (
    "It protects whether a person took part, not what is true of everybody: what the coefficients say about people in "
    "general they say about each of us, in the data or not; and what is listed below as public, with the bounds file "
    "and the names of the columns, is not protected at all."
)
_NO_LIMITS = "Whoever may not see the records should not see this model either."


def summary(certificate: Certificate, method: str) -> str:
    """What it is, in a line."""
    if certificate.status == "not private":
        return f"Fitted by {method}, without any protection."
    claimed = ", as the authors claim" if certificate.status == "as published" else ""
    assumed = f", {certificate.status}" if certificate.status == "proved under a numerical assumption" else ""
    return (
        f"Fitted by {method} under differential privacy (epsilon = {certificate.epsilon:.6g}, delta = "
        f"{certificate.delta:.6g}, relation: {certificate.relation}{claimed}{assumed})."
    )


def banners(certificate: Certificate) -> Iterator[str]:
    """Warnings for the top of the page."""
    if certificate.status == "not private":
        yield "Not private: this model was computed without noise and may reveal any record."
    if certificate.status == "as published":
        proved = certificate.proved_epsilon
        behind = (
            "nothing is proved for this run"
            if proved is None or math.isinf(proved)
            else f"epsilon = {rounded(proved, up=True)} is proved for this run at the same delta"
        )
        yield f"As published, not verified: the guarantee is the authors' claim, and {behind}."
    if certificate.seeded:
        yield (
            "Seeded: whoever knows the seed can undo the noise. The noise came from a fixed seed, so this run is for "
            "reproduction only."
        )


def in_three_sentences(certificate: Certificate) -> tuple[str, str, str]:
    """What one person's presence changes, for how many records, and what is not promised."""
    if certificate.status == "not private":
        first = "Nothing is promised: any one record may have changed the model in any way."
    elif certificate.epsilon == 0.0:
        first = "The model does not depend on the data at all, so nobody's presence changes anything."
    else:
        first = _presence(certificate)
    return first, _several_records(certificate), _LIMITS if certificate.status != "not private" else _NO_LIMITS


def _presence(certificate: Certificate) -> str:
    size = certificate.group_size
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
        return "Persons with several records are promised nothing either."
    if certificate.status == "as published":
        return "For a person with more records the authors claim nothing."
    size = 2 * certificate.group_size
    try:
        twice = certificate.for_group(2)
    except CertificateError:
        return f"For a person with {size} records no such factor can be given at the same delta."
    return (
        f"For a person with {size} records the factor is {_factor(twice.epsilon)} (epsilon = "
        f"{rounded(twice.epsilon, up=True)}), at the same delta."
    )


def _factor(epsilon: float) -> str:
    return rounded(math.exp(epsilon), up=True) if epsilon <= _LARGEST_EXPONENT else "hundreds of millions or more"


def show_odds(page: Page, certificate: Certificate) -> None:
    """Belief afterwards against belief before: in a drawing, a table and words."""
    epsilon, delta = certificate.epsilon, certificate.delta
    if certificate.status == "as published":
        epsilon = math.inf if certificate.proved_epsilon is None else certificate.proved_epsilon
    if math.isinf(epsilon):
        page.paragraph("Anything: nothing is proved that would limit it.")
        return
    suspicion = "that a certain record is in the data, and not a certain other one in its place"
    if certificate.relation != "replace-one":
        suspicion = "that a certain person is in the data"
    page.paragraph(
        f"Somebody suspects {suspicion}, knows every other record, and sees the model. "
        + ("Up to delta, the" if delta else "The")
        + " region holds all that they can come to believe, whatever they compute."
    )
    ranges = [(prior, *posterior_range(prior, epsilon)) for prior in _PRIORS]
    rows = [(f"{prior:.0%}", percent(low, up=False), percent(high, up=True)) for prior, low, high in ranges]
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
        beyond = rounded(min(1.0, delta / _BEYOND), up=True)
        page.paragraph(
            f"Delta is for what lies beyond: with a probability of at most {beyond} the model takes the belief out of "
            "the region by more than one percentage point."
        )
    power = percent(highest_power(_LEVEL, epsilon, delta), up=True)
    page.paragraph(
        f"Seen as a test: one that points at {_LEVEL:.0%} of the people who are not in the data points at no more than "
        f"{power} of those who are."
    )
