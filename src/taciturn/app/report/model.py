"""The report of a model."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.app.model_file import model_digest, noisy_weights, shown_weights
from taciturn.app.report.page import render
from taciturn.charts import (
    MOST_BARS,
    Bar,
    Drawing,
    Estimate,
    Markup,
    coefficient_chart,
    draw_square,
    element,
    estimate_form,
    find_reach,
    find_scale,
    flatten_facts,
    forest_chart,
    format_change,
    format_estimate,
    format_fact,
    format_number,
    format_percent,
    odds_chart,
    posterior_range,
    round_safely,
    square_axes,
    square_point,
    survival_chart,
)
from taciturn.core.errors import CertificateError
from taciturn.core.validation import FloatArray
from taciturn.methods.families import family_of, plural
from taciturn.methods.inference.tidy import MARK, MEANING, exponential
from taciturn.methods.scores.function import ModelScore
from taciturn.privacy.certificate import Certificate, compose, relation_in_words
from taciturn.privacy.claim import Release
from taciturn.privacy.events import NotPrivateEvent

if TYPE_CHECKING:
    from taciturn.app.model_file import Model, ScoreFile
    from taciturn.app.plan_file import PlanFile
    from taciturn.methods.scores.run import CalibrationBin, Measure
    from taciturn.tables.bounds import TableBounds

# Of a table of features or columns; the model file has all of them.
_MOST_ROWS = 1000
_TASKS = {"regress": "regression", "classify": "classification", "survive": "survival"}
# On the page to sign; the model file has all of them.
_MOST_SIGNED = 60
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "dp-accounting")


def model_report(model: Model, score: ScoreFile | None = None, plan: PlanFile | None = None) -> str:
    """Write the report on a model as the text of one HTML file, with a section for its ``score``, a release of its own.

    A ``plan`` adds what was planned beside what was obtained.

    The report holds the releases that the certificate covers (coefficients, intercept, bounds found privately), the
    certificate, and the public facts that the owner stated. Nothing else in it depends on data, so whoever may see the
    model may see the report.
    """
    certificate, bounds = model.certificate, model.bounds
    found = getattr(model.estimator, "inference_", None)
    scored = score.score if score is not None and isinstance(score.score, ModelScore) else None
    intervals = list(_intervals(model)) if found is not None and found.reason is None else []
    outputs, references = list(_outputs(model)), shown_weights(model.estimator, model.bounds)[2]
    names_used = {name.removesuffix(f" {MARK}") for output in outputs for name in output["names"]}
    family = family_of(model.estimator)
    names = {"records": "persons"} if certificate.unit == "person" else {}
    signed = _together(certificate, None if scored is None else scored.certificate) or certificate
    return render(
        "model.html.j2",
        f"Model of \u201c{bounds.target.name}\u201d ({_TASKS[model.task]})",
        model=model,
        date=getattr(model, "date", None) or "not stated",
        family=family,
        effects="odds ratios" if model.task == "classify" else plural(family.ratio) or "effects",
        certificate=certificate,
        method=type(model.estimator).__name__,
        factor=_factor,
        epsilon_for_two=_epsilon_for_two(certificate),
        classes=[str(label) for label in model.estimator.classes_] if model.task == "classify" else [],
        outputs=outputs,
        references=references,
        n_used=intervals[0]["n_names"] if intervals else len(names_used) + len(references),
        most_bars=MOST_BARS,
        meaning=MEANING,
        most_rows=_MOST_ROWS,
        notes=None if found is None else (*model.inference_notes, *model.summary().adjustment),
        intervals=intervals,
        score=scored,
        measures=None if scored is None else _measures(scored),
        survival=_survival(model) if model.task == "survive" else None,
        planned=None if plan is None else _planned(plan, model),
        odds=_odds(certificate),
        attacks=_attacks(certificate),
        releases=[(release.subject, *_noise(release)) for release in certificate.events],
        facts=flatten_facts({names.get(name, name): fact for name, fact in certificate.public.items()}),
        target=_target(bounds),
        used_columns=list(bounds.used),
        has_steps=any(step is not None for step in bounds.feature_steps),
        ignored=[name for name, column in bounds.columns.items() if column.type == "ignore"],
        python=platform.python_version(),
        libraries=[f"{name} {version(name)}" for name in _LIBRARIES],
        digest=model_digest(model),
        relation=relation_in_words(certificate),
        sheet_tables=list(_signed_tables(model, intervals, outputs)),
        sheet_releases=[*certificate.events, *(() if scored is None else scored.certificate.events)],
        assumed=dict.fromkeys((*certificate.assumptions, *(() if scored is None else scored.certificate.assumptions))),
        budget=_budget(certificate, None if scored is None else scored.certificate),
        signed=signed,
        signed_attacks=_attacks(signed),
    )


def _signed_tables(
    model: Model, intervals: list[dict[str, Any]], outputs: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """The coefficients of the page to sign, with the intervals and the numbers of the page's own tables."""
    for each in intervals:
        header = ["", "coefficient", f"{each['level']} interval", "p"]
        rows = [[row[0], row[1], row[5], row[6]] for row in each["errors"]]
        if each["ratio"]:
            ratios = [cells[1:] for cells in each["effects"]]
            header += [each["ratio"], f"{each['level']} interval"]
            ratios += [["", ""]] * (len(rows) - len(ratios))
            rows = [[*row, *ratio] for row, ratio in zip(rows, ratios, strict=True)]
        caption = f"Coefficients of {each['subject']}, from {each['n_records']:,} {each['whom']}, per unit"
        yield _signed(caption, header, rows, noisy=each["noisy"])
    for output in () if intervals else outputs:
        rows = list(output["rows"])
        if output["intercept"] is not None:
            rows.append(["(intercept)", format_number(output["intercept"]), ""])
        caption = f"Weights of {output['subject']}: a prediction rule, without standard errors"
        yield _signed(caption, ["", "weight", "for a change of"], rows, noisy=output["noisy"])


def _signed(caption: str, header: list[str], rows: list[list[str]], *, noisy: bool) -> dict[str, Any]:
    left_out = len(rows) - _MOST_SIGNED
    notes = [MEANING] if noisy else []
    notes += [f"and {left_out:,} more, see model.json"] if left_out > 0 else []
    return {"caption": caption, "header": header, "rows": rows[:_MOST_SIGNED], "notes": notes}


def _budget(certificate: Certificate, score: Certificate | None) -> str:
    """What everything in the folder cost together: the model, and its score if there is one."""
    own = _cost(certificate)
    if score is None:
        return own
    if score.status == "not private":
        return f"{own}; the score was computed without noise, from data that have to be public"
    together = _together(certificate, score)
    if together is None:
        return f"{own} for the model, and {_cost(score)} for its score, under another relation or unit"
    parts = f"{own} for the model, {_cost(score)} for its score"
    return f"{_cost(together)} together, if on the same {certificate.unit}s: {parts}"


def _together(certificate: Certificate, score: Certificate | None) -> Certificate | None:
    """The model and its private score as one release; None if there is no score, or if they do not add up."""
    if score is None or score.status == "not private":
        return None
    try:
        return compose(certificate, score)
    except CertificateError:
        return None


def _cost(certificate: Certificate) -> str:
    if certificate.status == "not private":
        return "none"
    # Rounded as verify and a policy print it.
    stated = f"epsilon = {round_safely(certificate.epsilon, up=True, digits=6)}, delta = {certificate.delta:.6g}"
    if certificate.mu is None:
        return stated
    rho = certificate.mu * certificate.mu / 2.0
    return f"{stated} (mu = {round_safely(certificate.mu, up=True)}, rho = {round_safely(rho, up=True)})"


def _planned(plan: PlanFile, model: Model) -> dict[str, Any]:
    """What a plan expected at the nearest epsilon, beside the model; and where its facts are others than the fit's."""
    fit = plan.fit_at(float(model.certificate.epsilon))
    records = model.certificate.public.get("records")
    differs = []
    if not math.isclose(fit.epsilon, model.certificate.epsilon, rel_tol=1e-3):
        differs.append(f"epsilon {fit.epsilon:g} was planned, {model.certificate.epsilon:g} was spent")
    if isinstance(records, int) and records != plan.n:
        differs.append(f"{plan.n:,} records were planned, the model was fitted to {records:,}")
    return {"rows": list(plan.compare(model)), "differs": differs, "chance": f"{fit.interval_probability:.0%}"}


def _outputs(model: Model) -> Iterator[dict[str, Any]]:
    """Name, intercept and nonzero weights, by size, of each output; all charts share one scale."""
    subjects, units, steps = _subjects(model), model.bounds.feature_units, model.bounds.feature_steps
    names = [*map(format_change, model.feature_names, steps)]
    changes = {name: unit if step is None else step for name, unit, step in zip(names, units, steps, strict=True)}
    # A weight is for the middle of the bounds to the upper one, or for the change that the bounds file states.
    shares = np.array([1.0 if step is None else step / unit for unit, step in zip(units, steps, strict=True)])
    coefficients, intercepts, _ = shown_weights(model.estimator, model.bounds)
    noisy = noisy_weights(model.estimator, model.bounds)
    marked = [[f"{name} {MARK}" if mark else name for name, mark in zip(names, marks, strict=True)] for marks in noisy]
    changes |= {f"{name} {MARK}": change for name, change in changes.items()}
    every = [
        [Bar(own[j], float(row[j] * shares[j])) for j in sorted(np.flatnonzero(row), key=lambda j: -abs(row[j]))]
        for own, row in zip(marked, coefficients, strict=True)
    ]
    reach = find_scale([bar for bars in every for bar in bars])
    for subject, intercept, bars, marks in zip(subjects, intercepts, every, noisy, strict=True):
        yield {
            "subject": subject,
            "noisy": bool(marks.any()),
            "intercept": None if model.task == "survive" else float(intercept),
            "names": [bar.name for bar in bars],
            "n_bars": len(bars),
            "first": ", ".join(f"{bar.name} ({format_number(bar.value)})" for bar in bars[:3]),
            "chart": coefficient_chart(bars, f"Weights: {subject}", reach),
            "rows": [
                [bar.name, format_number(bar.value), format_number(changes[bar.name])] for bar in bars[:_MOST_ROWS]
            ],
        }


def _subjects(model: Model) -> list[str]:
    target = model.bounds.target.name
    if model.task != "classify":
        return [target]
    classes = [str(label) for label in model.estimator.classes_]
    return (
        [f"{target} ({classes[1]} against {classes[0]})"]
        if len(classes) == 2
        else [f"class {label}" for label in classes]
    )


def _intervals(model: Model) -> Iterator[dict[str, Any]]:
    """Of each table: a forest plot, a table of errors and one of ratios, all for the same change of each column."""
    summary, target = model.summary(), model.bounds.target.name
    found, subjects = summary.inference, summary.subjects
    names = [format_change(*pair) for pair in zip(summary.names, summary.stated_changes, strict=True)]
    rows, shares = [*names, *summary.rows[len(names) :]], summary.shares
    every, what = summary.columns, plural(summary.ratio).capitalize() if summary.ratio else "Coefficients"
    scaled = ("coefficient", "std error", "sampling", "privacy", "lower", "upper")
    for k, compared in enumerate(subjects):
        columns = {name: values[k] for name, values in every.items()}
        columns |= {name: columns[name] * shares[: len(rows)] for name in scaled}
        reach = found.quantiles[k, : len(rows)] * columns["sampling"]
        marks, order, noisy = summary.marks(k), summary.order(k), summary.noisy(k)
        subject = f"{target} ({compared})" if compared else target
        estimates = [
            Estimate(
                names[j],
                float(columns["coefficient"][j]),
                float(columns["lower"][j]),
                float(columns["upper"][j]),
                float(reach[j]),
                marks[j],
            )
            for j in order
        ]
        shown = estimates[:MOST_BARS]
        drawn = [estimate for estimate in shown if not estimate.mark]
        low, high = find_reach(drawn)
        yield {
            "subject": subject,
            "what": what,
            "level": f"{100.0 * found.confidence_level:g}%",
            "ratio": summary.ratio,
            "chart": (
                forest_chart(estimates, f"{what} with intervals: {subject}", ratio=summary.ratio) if names else None
            ),
            "is_cut": any(each.lower < low or each.upper > high for each in drawn),
            "n_shown": len(shown),
            "n_drawn": len(drawn),
            "n_names": len(names),
            "clear_names": [estimate.name for estimate in shown if estimate.is_clear],
            "n_records": found.n_records,
            "whom": "persons" if "Persons" in summary.facts else "records",
            "intercept": _first(columns, -1) if summary.intercept and not marks[-1] else None,
            "errors": [
                [rows[j] + (f" {MARK}" if noisy[j] else ""), *_errors(columns, marks[j], j)]
                for j in (*order[:_MOST_ROWS], *range(len(names), len(rows)))
            ],
            "noisy": any(noisy[j] for j in (*order[:_MOST_ROWS], *range(len(names), len(rows)))),
            "effects": [[names[j], *_ratios(columns, marks[j], j)] for j in order[:_MOST_ROWS] if summary.ratio],
        }


def _estimate(value: float, lower: float, upper: float) -> tuple[str, str]:
    """A number and its interval, with as many decimals as their error leaves."""
    shown, _, interval = format_estimate(value, lower, upper).partition(" (")
    return shown, interval.removesuffix(")")


def _first(columns: dict[str, FloatArray], j: int) -> str:
    """A coefficient as its table shows it."""
    return _estimate(*(float(columns[name][j]) for name in ("coefficient", "lower", "upper")))[0]


def _survival(model: Model) -> dict[str, Any]:
    """The survival curve of all records with its band, and baseline hazards by interval."""
    curve, ends = model.estimator.survival_curve_, model.estimator.cuts_.tolist()
    found = zip(curve.survival.tolist(), curve.lower.tolist(), curve.upper.tolist(), strict=True)
    starts = [0.0, *ends[:-1]]
    hazards = model.estimator.baseline_hazard_.tolist()
    return {
        "chart": survival_chart(
            ends, curve.survival.tolist(), curve.lower.tolist(), curve.upper.tolist(), "Share without an event"
        ),
        "level": f"{100.0 * curve.confidence_level:g}%",
        "known": [each for each in curve.survival.tolist() if not math.isnan(each)],
        "rows": [
            [
                f"{start:g} to {end:g}",
                format_number(hazard),
                "open" if math.isnan(value) else format_number(value),
                f"{format_number(low)} to {format_number(high)}",
            ]
            for start, end, hazard, (value, low, high) in zip(starts, ends, hazards, found, strict=True)
        ],
    }


def _errors(columns: dict[str, FloatArray], mark: str, j: int) -> Iterator[str]:
    """A coefficient, its standard error with both parts, its interval and its p-values."""
    ends = value, lower, upper = [float(columns[name][j]) for name in ("coefficient", "lower", "upper")]
    form = "" if mark else estimate_form(*ends)
    shown, interval = (mark, "") if mark else _estimate(value, lower, upper)
    yield shown
    yield from ("" if mark else f"{columns[name][j]:{form}}" for name in ("std error", "sampling", "privacy"))
    yield interval
    yield from (_format_p(columns[name][j]) for name in ("p", "p (BH)"))


def _ratios(columns: dict[str, FloatArray], mark: str, j: int) -> Iterator[str]:
    """The ratio for the change of a column, and its interval."""
    logarithms = (float(columns[name][j]) for name in ("coefficient", "lower", "upper"))
    yield from (mark, "") if mark else _estimate(*map(exponential, logarithms))


def _format_p(value: float) -> str:
    if np.isnan(value):
        return ""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


# --- How good a model is: measures, and for two classes calibration by tenths and the ROC curve.

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


def _measures(score: ModelScore) -> dict[str, Any]:
    """Measures beside their baselines, and for two classes calibration and the ROC curve."""
    label = str(score.labels[-1]) if score.labels else ""
    told = [each for each in score.calibration if each.share is not None]
    farthest = max(told, key=lambda each: abs((each.share or 0.0) - each.predicted), default=None)
    told = told if score.labels else []
    return {
        "table": [(each.name, *_value_and_interval(each), format_number(each.baseline)) for each in score.measures],
        "auc": next((_value_and_interval(each)[0] for each in score.measures if each.name == "AUC"), ""),
        "n_told": len(told),
        "farthest": farthest and _range(farthest),
        "calibration_chart": calibration_chart(score.calibration, f"Calibration: {label}") if score.labels else None,
        "roc_chart": roc_chart(score.roc, f"ROC curve: {label}") if score.roc else None,
        "calibration": [
            (
                _range(each) if score.labels else f"{format_number(each.low)} to {format_number(each.high)}",
                format_number(each.predicted),
                *_share(each.share, each.lower, each.upper),
                f"{each.records:,.0f}",
            )
            for each in score.calibration
        ],
        "recalls": [
            (str(score.labels[each.code]), format_number(each.share), *_share(each.recall, each.lower, each.upper))
            for each in score.recalls
        ],
    }


def _share(value: float | None, lower: float, upper: float) -> tuple[str, str]:
    return "open" if value is None else format_number(value), f"{_end(lower)} to {_end(upper)}"


def _value_and_interval(found: Measure) -> tuple[str, str]:
    """Both with as many decimals as their error leaves."""
    if found.is_open:
        return "open", f"{_end(found.lower)} to {_end(found.upper)}"
    return _estimate(found.value, found.lower, found.upper)


def _range(each: CalibrationBin) -> str:
    return f"{each.low:.0%} to {each.high:.0%}"


def _end(value: float) -> str:
    return "no end" if math.isinf(value) else format_number(value)


# --- A certificate in plain sentences, and the posterior beliefs that it admits.

_PRIORS = (0.01, 0.1, 0.5, 0.9)
# Distance between a belief and the region in the sentence about delta.
_BEYOND = 0.01
# For a larger epsilon the digits of the factor have no meaning.
_LARGEST_EXPONENT = 20.0


def _factor(epsilon: float) -> str:
    return round_safely(math.exp(epsilon), up=True) if epsilon <= _LARGEST_EXPONENT else "hundreds of millions or more"


def _epsilon_for_two(certificate: Certificate) -> float | None:
    """The epsilon for twice as many records or persons; None where none can be given."""
    try:
        return certificate.for_group(2).epsilon
    except CertificateError:
        return None


def _odds(certificate: Certificate) -> dict[str, Any]:
    """Posterior against prior beliefs of an attacker, at the epsilon that is proved, if there is one."""
    proved = certificate.proved_epsilon if certificate.status == "as published" else certificate.epsilon
    if proved is None or math.isinf(proved):
        return {"epsilon": None}
    ranges = [(prior, *posterior_range(prior, proved)) for prior in _PRIORS]
    return {
        "epsilon": proved,
        "chart": odds_chart(proved, "What an attacker can come to believe"),
        "rows": [
            (f"{prior:.0%}", format_percent(low, up=False), format_percent(high, up=True))
            for prior, low, high in ranges
        ],
        "beyond": min(1.0, certificate.delta / _BEYOND),
    }


def _attacks(certificate: Certificate) -> list[tuple[str, str]]:
    """What tests of membership can achieve at most."""
    rates = certificate.attack_rates()
    if rates is None:
        return []
    pairs = zip(rates.fpr, rates.tpr, strict=True)
    return [
        *((f"{100.0 * level:g}%", format_percent(power, up=True)) for level, power in pairs),
        ("largest difference", format_percent(rates.advantage, up=True)),
    ]


def _noise(release: Release) -> tuple[str, str, str]:
    if isinstance(release.event, NotPrivateEvent):
        return "none", f"{release.count:,}", "none"
    return release.noise, f"{release.count:,}", format_number(release.scale)


def _target(bounds: TableBounds) -> str:
    target = bounds.target
    if target.cuts is not None:
        return f"times to an event ({target.event}), censored after {format_fact(target.cuts[-1])}"
    if target.lower is not None:
        return f"numbers from {format_fact(target.lower)} to {format_fact(target.upper)}"
    return "labels found in the table" if target.classes is None else f"classes {format_fact(target.classes)}"
