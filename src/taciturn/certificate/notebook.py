"""A certificate in a notebook: the guarantee, a small picture of what it means, and all its facts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from taciturn.certificate.words import in_short, list_facts
from taciturn.drawing.charts import odds_chart
from taciturn.drawing.formats import format_percent
from taciturn.drawing.markup import Markup, element
from taciturn.drawing.notebook import card, folded, inline_drawing
from taciturn.drawing.odds import posterior_range

if TYPE_CHECKING:
    from taciturn.certificate.certificate import Certificate

__all__ = ["certificate_card", "guarantee_lines"]

_SIDE = 150.0


def certificate_card(certificate: Certificate) -> str:
    """The certificate as HTML."""
    (_, guarantee), *facts = list_facts(certificate)
    said = [element("p", element("strong", in_short(certificate))), element("p", guarantee)]
    picture = _picture(certificate)
    head = [element("div", *said, *picture[:1]), *picture[1:]]
    return card(element("div", *head, class_="taciturn-side"), folded("What was released, assumed and public", facts))


def guarantee_lines(certificate: Certificate) -> Markup:
    """The guarantee in one line, and the rest of the certificate folded."""
    return Markup(
        element("p", element("strong", "Guarantee: "), in_short(certificate))
        + folded("The certificate", list_facts(certificate))
    )


def _picture(certificate: Certificate) -> tuple[Markup, ...]:
    """What an attacker can come to believe, in words and as a drawing; nothing where nothing is proved."""
    epsilon: float | None = certificate.epsilon
    if certificate.status == "as published":
        epsilon = certificate.proved_epsilon
    if epsilon is None or math.isinf(epsilon):
        return ()
    low, high = posterior_range(0.5, epsilon)
    beyond = ", up to delta" if certificate.delta else ""
    words = (
        f"Whoever believed with 50% that a {certificate.unit} is in the data believes it afterwards with at least "
        f"{format_percent(low, up=False)} and at most {format_percent(high, up=True)}{beyond}."
    )
    drawing = odds_chart(epsilon, "What an attacker can come to believe", _SIDE)
    return element("p", words), inline_drawing(
        drawing, f"Belief after seeing the result against belief before. {words}"
    )
