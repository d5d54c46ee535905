"""The report of a model."""

from __future__ import annotations

import itertools
import math
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn._version import __version__
from taciturn.app.model_file import model_digest
from taciturn.app.report.page import Page
from taciturn.charts import (
    MOST_BARS,
    Bar,
    Drawing,
    Estimate,
    Markup,
    coefficient_chart,
    draw_square,
    element,
    find_scale,
    flatten_facts,
    forest_chart,
    format_estimate,
    format_fact,
    format_number,
    format_odds,
    format_percent,
    format_ratio,
    odds_chart,
    odds_step,
    posterior_range,
    round_safely,
    select_largest,
    square_axes,
    square_point,
)
from taciturn.core.errors import CertificateError, visible
from taciturn.core.validation import FloatArray
from taciturn.methods.scores.function import ModelScore
from taciturn.privacy.certificate import Certificate, relation_in_words
from taciturn.privacy.claim import Release
from taciturn.privacy.events import NotPrivateEvent

if TYPE_CHECKING:
    from taciturn.app.model_file import Model, ScoreFile
    from taciturn.methods.inference.summary import CoefficientSummary
    from taciturn.methods.scores.run import CalibrationBin, Measure
    from taciturn.tables.bounds import TableBounds
    from taciturn.tables.columns import Column, Fill


# -----------------------------------------------------------------------------
# How good a model of two classes is as inline SVG: calibration by tenths, and the ROC curve.

_RADIUS, _CAP = 4.0, 4.0
_MOST_POINTS = 200


def calibration_chart(bins: Sequence[CalibrationBin], title: str) -> Drawing:
    """Draw how often the class occurs against its predicted probability; bins that noise leaves open are left out."""
    shapes = [*square_axes("predicted", "occurred"), _diagonal()]
    shapes += [_point(each) for each in bins if each.share is not None]
    return draw_square(title, shapes)


def roc_chart(points: Sequence[tuple[float, float]], title: str) -> Drawing:
    """Draw true against false positive rates."""
    step = max(1, len(points) // _MOST_POINTS)
    chosen = [*points[:-1:step], points[-1]]
    kept = [chosen[0], *(second for first, second in pairwise(chosen) if first != second)]
    curve = "M" + "L".join("{:.2f} {:.2f}".format(*square_point(*each)) for each in kept)
    shapes = [*square_axes("false positives", "true positives"), _diagonal(), element("path", d=curve, class_="curve")]
    return draw_square(title, shapes)


def _diagonal() -> Markup:
    start, end = ("{:.2f} {:.2f}".format(*square_point(share, share)) for share in (0.0, 1.0))
    return element("path", d=f"M{start}L{end}", class_="none")


def _point(each: CalibrationBin) -> Markup:
    x, y = square_point(each.predicted, each.share or 0.0)
    _, bottom = square_point(each.predicted, each.lower)
    _, top = square_point(each.predicted, each.upper)
    ends = "".join(f"M{x - _CAP:.2f} {end:.2f}L{x + _CAP:.2f} {end:.2f}" for end in (top, bottom))
    words = f"predicted {each.predicted:.1%}, occurred {each.share:.1%} ({each.lower:.1%} to {each.upper:.1%})"
    return element(
        "g",
        element("title", words),
        element("path", d=f"M{x:.2f} {top:.2f}L{x:.2f} {bottom:.2f}{ends}", class_="interval"),
        element("circle", cx=x, cy=y, r=_RADIUS, class_="estimate clear"),
    )


# -----------------------------------------------------------------------------
# The section of a report on how good the model is.

_MEANINGS = {
    "AUC": "AUC: how likely it is that a record of class {label} gets a larger probability of it than another record.",
    "log loss": "Log loss: minus the mean logarithm of the probability that was given to what occurred.",
    "accuracy": "Accuracy: the share of records whose most probable class is their class.",
    "balanced accuracy": "Balanced accuracy: the mean of these shares by class.",
    "calibration in the large": (
        "Calibration in the large: the mean predicted probability of {label} less its share; 0 is best."
    ),
    "R2": "R2: the share of the variance of the target that predictions account for.",
    "mean absolute error": "Mean absolute error: the mean distance of predictions from targets, in their units.",
    "mean squared error": "Mean squared error: the mean squared distance.",
}


def show_score(page: Page, score: ModelScore) -> None:
    """Add measures beside their baselines, and for two classes calibration and the ROC curve."""
    certificate = score.certificate
    records = certificate.public.get("records")
    page.paragraph(f"From {records:,} {certificate.unit}s. {_guarantee(certificate)}")
    if certificate.seeded:
        page.banner("The noise of the score came from a fixed seed: it is for reproduction only.")
    level = f"{100.0 * score.confidence_level:g}% interval"
    page.table(
        ("measure", "value", level, "baseline"),
        [(found.name, *_value_and_interval(found), format_number(found.baseline)) for found in score.measures],
        "Measures of the model, beside the best constant prediction",
        numeric={1, 2, 3},
    )
    baseline = "the shares of the classes" if score.labels else "the mean of the target"
    label = str(score.labels[-1]) if score.labels else ""
    page.points(
        (
            *(_MEANINGS[found.name].format(label=label) for found in score.measures),
            f"The baseline predicts {baseline} for everybody.",
            f"Each interval covers what the measure is on the population of these {certificate.unit}s at its level: it "
            "includes the sampling error, the noise and the width of bins. All are computed from one release, so that "
            "they are not independent of one another.",
        )
    )
    if score.calibration:
        _show_calibration(page, score, label, level)
    if score.recalls:
        page.table(
            ("class", "share", "predicted rightly", level),
            [
                (
                    str(score.labels[each.code]),
                    format_number(each.share),
                    "open" if each.recall is None else format_number(each.recall),
                    f"{_end(each.lower)} to {_end(each.upper)}",
                )
                for each in score.recalls
            ],
            "By class",
            numeric={1, 2, 3},
        )
    page.code_block(certificate.to_json(), "The certificate of the score as JSON", folded=True)


def _guarantee(certificate: Certificate) -> str:
    if certificate.status == "not private":
        return "The score was computed without noise and may be shown only if these data are public."
    return (
        f"The score is a release of its own, (epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta:.6g}) "
        f"under the relation {certificate.relation}, {certificate.status}. If the model was fitted to the same "
        f"{certificate.unit}s, both releases add up."
    )


def _show_calibration(page: Page, score: ModelScore, label: str, level: str) -> None:
    told = [each for each in score.calibration if each.share is not None]
    farthest = max(told, key=_distance, default=None)
    most = "" if farthest is None else f" Farthest from the diagonal: {_range(farthest)}."
    page.figure(
        calibration_chart(score.calibration, f"Calibration: {label}"),
        f"Points with vertical intervals for {len(told)} tenths of the predicted probability of {label}, and the "
        f"diagonal of perfect calibration.{most} The table below has the numbers.",
        f"How often {label} occurred, against its predicted probability, by tenths, with {level}s. On the dashed line "
        "probabilities are right.",
    )
    auc = score["AUC"]
    page.figure(
        roc_chart(score.roc, f"ROC curve: {label}"),
        f"The curve of true against false positive rates for {label}, above a diagonal. The area under it is "
        f"{format_number(auc.value)}.",
        f"True against false positive rates for all thresholds on the probability of {label}. On the dashed line "
        "predictions are worth nothing.",
    )
    page.table(
        ("predicted", "mean", "occurred", level, "records (noisy)"),
        [
            (
                _range(each),
                format_number(each.predicted),
                "open" if each.share is None else format_number(each.share),
                f"{_end(each.lower)} to {_end(each.upper)}",
                f"{each.records:,.0f}",
            )
            for each in score.calibration
        ],
        "Calibration by tenths",
        numeric={1, 2, 3, 4},
        folded=True,
    )


def _value_and_interval(found: Measure) -> tuple[str, str]:
    """Both with as many decimals as their error leaves."""
    if found.is_open:
        return "open", f"{_end(found.lower)} to {_end(found.upper)}"
    value, _, interval = format_estimate(found.value, found.lower, found.upper).partition(" (")
    return value, interval.removesuffix(")")


def _distance(each: CalibrationBin) -> float:
    return abs((each.share or 0.0) - each.predicted)


def _range(each: CalibrationBin) -> str:
    return f"{each.low:.0%} to {each.high:.0%}"


def _end(value: float) -> str:
    return "no end" if math.isinf(value) else format_number(value)


# -----------------------------------------------------------------------------
# Coefficients with their standard errors and intervals as a chart and tables.

_MOST_ROWS = 1000


def show_intervals(page: Page, subject: str, summary: CoefficientSummary) -> None:
    """Add a forest plot, a table of errors and one of effects per unit, for a model that has standard errors."""
    columns, found = summary.columns, summary.inference
    names = list(summary.names)
    order = sorted(range(len(names)), key=lambda j: -abs(columns["coefficient"][j]))
    level = f"{100.0 * found.confidence_level:g}%"
    if names:
        _show_chart(page, subject, summary, order, level)
    shown = order[:_MOST_ROWS]
    rest = "" if shown == order else f": the largest {_MOST_ROWS:,} of {len(order):,}, the model file has all"
    whom = "persons" if "Persons" in summary.facts else "records"
    errors = ("coefficient", "std error", "sampling", "privacy")
    header = ["feature", "coefficient", "standard error", "of which sampling", "of which privacy", f"{level} interval"]
    page.table(
        [*header, "p", "p (BH)"],
        [
            [
                "(intercept)" if j == len(names) else names[j],
                *(_number(columns[name][j]) for name in errors),
                _interval(columns["lower"][j], columns["upper"][j]),
                *(_format_p(columns[name][j]) for name in ("p", "p (BH)")),
            ]
            for j in [*shown, len(names)]
        ],
        f"Coefficients of {subject} and their errors, from {found.n_records:,} {whom}{rest}",
        numeric={1, 2, 3, 4, 5, 6, 7},
    )
    if not names:
        return
    header = ["feature", "effect per unit", f"{level} interval"]
    if summary.odds:
        header += ["odds ratio per unit", f"{level} interval of the odds ratio"]
    page.table(
        header,
        [[names[j], *_effects(summary, columns, j)] for j in shown],
        f"Effects on {subject} per unit of the column in the table{rest}",
        numeric=set(range(1, len(header))),
    )


def _effects(summary: CoefficientSummary, columns: dict[str, FloatArray], j: int) -> Iterator[str]:
    """The effect of one unit of a column and its interval, and the same for the odds ratio if there is one."""
    unit = 1.0 if summary.units is None else float(summary.units[j])
    value, lower, upper = (float(columns[name][j]) for name in ("coefficient", "lower", "upper"))
    yield _number(value / unit)
    yield _interval(lower / unit, upper / unit)
    if summary.odds:
        yield format_odds(value, unit)
        step = odds_step(unit) / unit
        yield "none" if math.isnan(lower) else f"{format_ratio(lower * step)} to {format_ratio(upper * step)}"


def _show_chart(page: Page, subject: str, summary: CoefficientSummary, order: list[int], level: str) -> None:
    columns, found = summary.columns, summary.inference
    estimates = [
        Estimate(
            summary.names[j],
            float(columns["coefficient"][j]),
            float(columns["lower"][j]),
            float(columns["upper"][j]),
            found.quantile * float(found.sampling[j]),
        )
        for j in order
        if math.isfinite(found.std_error[j])
    ]
    shown = estimates[:MOST_BARS]
    clear = [estimate.name for estimate in shown if estimate.is_clear]
    what = "Odds ratios" if summary.odds else "Coefficients"
    reference = "1, no difference in odds" if summary.odds else "zero"
    first = f": {', '.join(clear[:3])}" if clear else ""
    told = f"{len(clear)} of {len(shown)} intervals leave out {reference}{first}"
    cut = f"The {len(shown)} largest of {len(order):,}" if len(shown) < len(order) else what
    change = "from the middle of its bounds to the upper bound, or from no to yes"
    page.figure(
        forest_chart(estimates, f"{what} with intervals: {subject}", odds=summary.odds),
        f"A point and a horizontal interval for each of {len(shown)} features, the largest coefficient first, and a "
        f"line at {reference}. {told}. The tables below have the numbers.",
        f"{cut} of {subject}, with {level} intervals, for a change of each column {change}. The thin line is the "
        "interval; its thick part is what the sampling error alone would give. Filled points have an interval that "
        f"leaves out {reference}.",
    )


def _number(value: float) -> str:
    return "none" if np.isnan(value) else format_number(float(value))


def _interval(lower: float, upper: float) -> str:
    return "none" if np.isnan(lower) else f"{format_number(float(lower))} to {format_number(float(upper))}"


def _format_p(value: float) -> str:
    if np.isnan(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


# -----------------------------------------------------------------------------
# A certificate in plain sentences, and the posterior beliefs that it admits.

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


# -----------------------------------------------------------------------------
# The page to sign: the fields of a registry of releases, on one sheet of paper.

# So that everything fits on one sheet, whatever a certificate holds; the files have all of it.
_LONGEST = 360
_MOST_RELEASES, _LONGEST_RELEASE = 12, 92
_MOST_COLUMNS = 100

_BY_THE_OWNER = (
    "Purpose of the release",
    "Done with the data before the fit (preprocessing, tuning), and its cost",
    "Done with the result afterwards, and where it is published",
)
_SIGNATURES = ("Name and function", "Place and date", "Signature")
_UNITS = {"record": "one record", "person": "one person, with all rows"}


def add_sheet(page: Page, model: Model, digest: str) -> None:
    """Add the page to sign, which print shows alone.

    Its fields are those of the OpenDP deployments registry and of NIST SP 800-226 that follow from a certificate, in
    their order, and lines for those that its owner has to fill in.
    """
    certificate = model.certificate
    page.sheet(
        f"Release of a model of \u201c{_cut(model.bounds.target.name, 40)}\u201d",
        [_cut(explain_guarantee(certificate)[0])],
        [(name, _cut(text)) for name, text in _fields(model, digest)],
        [*map(_release, certificate.events[:_MOST_RELEASES]), *_rest(certificate)],
        _BY_THE_OWNER,
        _SIGNATURES,
    )


def _fields(model: Model, digest: str) -> Iterator[tuple[str, str]]:
    certificate = model.certificate
    yield "Variant", _variant(certificate)
    group = f", groups of up to {certificate.group_size}" if certificate.group_size > 1 else ""
    yield "Privacy unit", f"{_UNITS[certificate.unit]}{group}"
    yield "Relation", f"{certificate.relation}: {relation_in_words(certificate)}"
    yield "Budget", _budget(certificate)
    yield "How far proved", _trust(certificate)
    yield "Data", _data(model)
    yield "Not protected", "; ".join(certificate.unprotected)
    yield "Assumed", "; ".join(certificate.assumptions) or "nothing"
    yield "Outside the proof", "; ".join(certificate.side_channels) or "nothing"
    yield "Account entry", certificate.account_head or "none: no account keeps count of several releases"
    yield "Files", f"SHA-256 of model.json: {digest}; written by taciturn {__version__}, checked by taciturn verify"


def _variant(certificate: Certificate) -> str:
    if certificate.status == "not private":
        return "none: the result was computed without noise"
    kind = "approximate" if certificate.delta else "pure"
    return f"{kind} differential privacy" + ("" if certificate.mu is None else ", Gaussian")


def _budget(certificate: Certificate) -> str:
    if certificate.status == "not private":
        return "none"
    stated = f"epsilon = {certificate.epsilon:.6g}, delta = {certificate.delta:.6g}"
    mu = certificate.mu
    if mu is None:
        return stated
    return f"{stated}; mu = {round_safely(mu, up=True)}, rho = {round_safely(mu * mu / 2.0, up=True)}"


def _trust(certificate: Certificate) -> str:
    order = "in their order" if certificate.ordered else "in any order"
    parts = [
        f"{certificate.status}, with {certificate.arithmetic} arithmetic",
        f"releases are composed {order} (bound: {certificate.bound})",
    ]
    rates = certificate.attack_rates()
    if rates is not None:
        pairs = zip(rates.fpr, rates.tpr, strict=True)
        powers = ", ".join(f"{format_percent(power, up=True)} at {100.0 * level:g}%" for level, power in pairs)
        parts.append(f"a test of membership has true positive rates of at most {powers} false positives")
    parts.append("the noise was seeded: for reproduction only" if certificate.seeded else "the noise was not seeded")
    return "; ".join(parts)


def _data(model: Model) -> str:
    certificate, target = model.certificate, model.bounds.target
    number = certificate.public.get("records")
    if target.lower is not None:
        stated = f"from {format_fact(target.lower)} to {format_fact(target.upper)}"
    else:
        stated = "labels found in the table" if target.classes is None else f"classes {format_fact(target.classes)}"
    columns = [name for name, _ in model.bounds.used]
    how_many = "a private number of" if number is None else format_fact(number)
    return (
        f"{how_many} {certificate.unit}s; target {target.name} ({stated}); {len(model.feature_names):,} features of "
        f"{len(columns):,} columns with public bounds: {', '.join(columns[:_MOST_COLUMNS])}"
    )


def _release(release: Release) -> str:
    noise = "no noise" if release.noise == "none" else f"{release.noise} noise of {release.scale:.4g}"
    return _cut(f"{release.count:,} x {noise}: {release.subject}", _LONGEST_RELEASE)


def _rest(certificate: Certificate) -> list[str]:
    more = len(certificate.events) - _MOST_RELEASES
    if not certificate.events:
        return ["nothing that depends on the data"]
    return [f"and {more:,} more kinds of release, see certificate.json"] if more > 0 else []


def _cut(text: str, most: int = _LONGEST) -> str:
    shown = visible(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


# -----------------------------------------------------------------------------
# The coefficients of a model as charts and tables, with an explanation.


def show_coefficients(page: Page, model: Model) -> None:
    """Add a chart and a table for each output, and their explanation."""
    outputs = list(_outputs(model))
    used = {bar.name for _, _, bars in outputs for bar in bars}
    page.paragraph(
        f"{len(used):,} of {len(model.feature_names):,} features have a coefficient other than zero. {_meaning(model)}"
    )
    page.paragraph(
        "Columns of numbers are mapped from their bounds to [-1, 1], so a coefficient tells what changes from the "
        "middle of the bounds to the upper bound; the effect per unit is the change for one unit of the column in the "
        "table. Yes-or-no columns and categories are 1 or 0, and both numbers are the change from no to yes."
    )
    found = getattr(model.estimator, "inference_", None)
    if not used:
        page.paragraph("The model is its intercept alone.")
    if found is not None:
        for note in model.inference_notes:
            page.paragraph(note)
        if found.reason is None:
            ((subject, intercept, _),) = outputs
            show_intervals(page, subject, model.summary())
            page.paragraph(_about_intercept(model, intercept))
            return
    elif used:
        page.paragraph(_about_noise(model))
    units = dict(zip(model.feature_names, model.bounds.feature_units, strict=True))
    # All charts share one scale.
    reach = find_scale([bar for _, _, bars in outputs for bar in bars])
    for subject, intercept, bars in outputs:
        if len(outputs) > 1:
            page.section(subject[0].upper() + subject[1:], level=3)
        if bars:
            _show_bars(page, subject, bars, reach, units, odds=_has_odds(model))
        page.paragraph(_about_intercept(model, intercept))


def _outputs(model: Model) -> Iterator[tuple[str, float, list[Bar]]]:
    """Name, intercept and nonzero coefficients, by size, of each output."""
    estimator, names = model.estimator, model.feature_names
    coefficients = _rows(estimator.coef_)
    subjects = _subjects(model)
    for i, (subject, intercept) in enumerate(zip(subjects, np.atleast_1d(estimator.intercept_), strict=True)):
        bars = [Bar(str(names[j]), float(coefficients[i, j])) for j in np.flatnonzero(coefficients[i])]
        yield subject, float(intercept), sorted(bars, key=lambda bar: -abs(bar.value))


def _rows(array: Any) -> np.ndarray:
    """One row per output, from any layout of the coefficients."""
    return np.atleast_2d(array.toarray() if hasattr(array, "toarray") else array)


def _subjects(model: Model) -> list[str]:
    target = model.bounds.target.name
    if model.task == "regress":
        return [target]
    classes = [str(label) for label in model.estimator.classes_]
    return (
        [f"{target} ({classes[1]} against {classes[0]})"]
        if len(classes) == 2
        else [f"class {label}" for label in classes]
    )


def _show_bars(
    page: Page, subject: str, bars: list[Bar], reach: tuple[float, float], units: dict[str, float], *, odds: bool
) -> None:
    shown = f"{len(bars):,}" if len(bars) <= MOST_BARS else f"{MOST_BARS} largest of {len(bars):,}"
    first = ", ".join(f"{bar.name} ({format_number(bar.value)})" for bar in bars[:3])
    page.figure(
        coefficient_chart(bars, f"Coefficients: {subject}", reach),
        f"Horizontal bars of {len(select_largest(bars))} coefficients by size, positive ones to the right of zero and "
        f"negative ones to the left. The largest: {first}. The table below has the numbers.",
        f"The {shown} coefficients of {subject} other than zero.",
    )
    header = ["feature", "coefficient", "effect per unit", *(["odds ratio per unit"] if odds else [])]
    rows = [
        [
            bar.name,
            format_number(bar.value),
            format_number(bar.value / units[bar.name]),
            *([format_odds(bar.value, units[bar.name])] if odds else []),
        ]
        for bar in bars[:_MOST_ROWS]
    ]
    rest = "" if len(bars) <= _MOST_ROWS else f": the largest {_MOST_ROWS:,} of {len(bars):,}, the model file has all"
    page.table(header, rows, f"Coefficients of {subject}{rest}", numeric=set(range(1, len(header))))


def _has_odds(model: Model) -> bool:
    return model.task == "classify" and len(model.estimator.classes_) == 2


def _meaning(model: Model) -> str:
    if model.task == "regress":
        return "A coefficient is a change of the prediction, in the units of the target."
    if _has_odds(model):
        classes = model.estimator.classes_
        return (
            f"A coefficient is a change of the log-odds of {classes[1]} against {classes[0]}: 0.7 more about doubles "
            "the odds, 0.7 less about halves them. The odds ratio is the factor by which the odds change; it is stated "
            "for a smaller change than one unit where the bounds of a column are closer together."
        )
    return (
        "Every class has a score of its own, and a coefficient is a change of that score: the score of one class minus "
        "that of another is the log-odds of the one against the other."
    )


def _about_intercept(model: Model, intercept: float) -> str:
    return (
        f"Intercept: {format_number(intercept)}. This is the {_unit(model)} of a record with every column of numbers "
        "in the middle of its bounds, and zeros elsewhere."
    )


def _unit(model: Model) -> str:
    if model.task == "regress":
        return "prediction"
    return "log-odds" if _has_odds(model) else "score"


def _about_noise(model: Model) -> str:
    if model.certificate.status == "not private":
        return "There is no noise in these numbers. How they would differ in another sample is not stated here."
    return (
        "These numbers contain the noise that protects the records. How large it is in each coefficient is not stated "
        "here, nor how coefficients would differ in another sample."
    )


# -----------------------------------------------------------------------------
# The report on a fitted model: coefficients, guarantee, releases and assumptions.

_MODEL_REPORT_MOST_COLUMNS = 1000
_TASKS = {"regress": "regression", "classify": "classification"}
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "dp-accounting")


def model_report(model: Model, score: ScoreFile | None = None) -> str:
    """Write the report on a model as one HTML file.

    The report holds the releases that the certificate covers (coefficients, intercept, bounds found privately), the
    certificate, and the public facts that the owner stated. Nothing else in it depends on data, so whoever may see the
    model may see the report.

    Parameters
    ----------
    model : taciturn.app.model_file.Model
        A fitted model with its bounds and the command that made it.
    score : taciturn.app.model_file.ScoreFile, default=None
        All measures of this model, a release of its own; they get a section.

    Returns
    -------
    str
        The text of ``report.html``.
    """
    certificate = model.certificate
    page = Page(f"Model of \u201c{model.bounds.target.name}\u201d ({_TASKS[model.task]})")
    page.paragraph(summarise(certificate, type(model.estimator).__name__))
    for warning in list_warnings(certificate):
        page.banner(warning)
    page.section("The guarantee")
    page.points(explain_guarantee(certificate), ordered=True)
    page.section("The model")
    show_coefficients(page, model)
    if score is not None and isinstance(score.score, ModelScore):
        page.section("How good is it")
        show_score(page, score.score)
    page.section("What an attacker can come to believe")
    show_odds(page, certificate)
    page.section("What was released")
    _list_releases(page, certificate)
    page.section("What was assumed public")
    _list_public(page, certificate, model)
    page.section("How it was made")
    page.code_block(model.command, "The command that made it")
    libraries = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    page.paragraph(
        f"This page was written by taciturn {__version__} with Python {platform.python_version()}, {libraries}."
    )
    digest = model_digest(model)
    page.paragraph(
        f"SHA-256 of model.json: {digest}. The command taciturn verify checks that the files belong together."
    )
    page.section("The certificate")
    page.paragraph(str(certificate))
    page.code_block(certificate.to_json(), "The certificate as JSON", folded=True)
    add_sheet(page, model, digest)
    return page.render()


def _list_releases(page: Page, certificate: Certificate) -> None:
    if not certificate.events:
        page.paragraph("No release depends on the data.")
        return
    page.paragraph(
        "Everything that was computed from the records and released. A scale of 10 sensitivities means noise ten times "
        f"as large as the change that one {certificate.unit} can cause."
    )
    page.table(
        ("what", "noise", "how often", "scale in sensitivities"),
        [(release.subject, *_noise(release)) for release in certificate.events],
        "Every release, in order" if certificate.ordered else "Every release",
        numeric={2, 3},
    )


def _noise(release: Release) -> tuple[str, str, str]:
    if isinstance(release.event, NotPrivateEvent):
        return "none", f"{release.count:,}", "none"
    return release.noise, f"{release.count:,}", format_number(release.scale)


def _list_public(page: Page, certificate: Certificate, model: Model) -> None:
    page.paragraph("The guarantee treats the following facts as public and does not protect them.")
    names = {"records": "persons"} if certificate.unit == "person" else {}
    page.facts(flatten_facts({names.get(name, name): fact for name, fact in certificate.public.items()}))
    if certificate.assumptions:
        page.paragraph("It assumes that")
        page.points(certificate.assumptions)
    page.paragraph("It does not protect")
    page.points(certificate.unprotected)
    if certificate.side_channels:
        page.paragraph("Outside the proof lie")
        page.points(certificate.side_channels)
    page.section("Target and columns", level=3)
    bounds, target = model.bounds, model.bounds.target
    if target.lower is not None:
        stated = f"numbers from {format_fact(target.lower)} to {format_fact(target.upper)}"
        if target.name in bounds.found_privately:
            stated += " (found privately)"
    else:
        stated = "labels found in the table" if target.classes is None else f"classes {format_fact(target.classes)}"
    page.paragraph(
        f"Target: {target.name}, {stated}. Numbers beyond the bounds of a column count as the nearest bound."
    )
    n_columns = len(bounds.order or ()) + sum(column.type == "ignore" for column in bounds.columns.values())
    page.table(
        ("column", "values", "where missing", "source"),
        itertools.islice(_columns(bounds, model.estimator.invalid), _MODEL_REPORT_MOST_COLUMNS),
        f"All {n_columns:,} columns"
        if n_columns <= _MODEL_REPORT_MOST_COLUMNS
        else f"{_MODEL_REPORT_MOST_COLUMNS:,} of {n_columns:,} columns",
    )


def _columns(bounds: TableBounds, invalid: str) -> Iterator[tuple[str, str, str, str]]:
    found = set(bounds.found_privately)
    unfilled = "refused" if invalid == "raise" else "the record is left out"
    for name, column in bounds.used:
        filled = _filled(bounds.fill_of(name)) or unfilled
        yield name, _values(column), filled, "found privately" if name in found else "bounds file"
    for name, column in bounds.columns.items():
        if column.type == "ignore":
            yield name, "not used", "", "bounds file"


def _filled(fill: Fill | None) -> str:
    """What stands for missing cells, in words; no words if nothing does."""
    if fill is None:
        return ""
    value = "0 for every feature" if fill.value is None else format_fact(fill.value)
    return f"{value} is filled in{', and a feature says so' if fill.indicator else ''}"


def _values(column: Column) -> str:
    if column.type == "number":
        limits = "; <5 counts as 5, and >5 too" if column.censored else ""
        return f"numbers from {format_fact(column.lower)} to {format_fact(column.upper)}{limits}"
    if column.type == "date":
        if column.parts:
            return f"dates: {' and '.join(column.parts)}"
        return f"days since {column.since}, from {format_fact(column.lower)} to {format_fact(column.upper)}"
    if column.type == "boolean":
        return "yes or no"
    group = "" if column.group is None else f" (first {column.group} characters)"
    return f"one of: {format_fact(column.categories)}{group}"
