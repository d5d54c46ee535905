"""The section of a report on how good the model is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from taciturn.certificate import Certificate
from taciturn.drawing.formats import format_estimate, format_number
from taciturn.report.page import Page
from taciturn.report.score_charts import calibration_chart, roc_chart

if TYPE_CHECKING:
    from taciturn.estimators.model_score import ModelScore
    from taciturn.fitting.class_measures import CalibrationBin
    from taciturn.fitting.score_ratios import Measure

__all__ = ["show_score"]

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
