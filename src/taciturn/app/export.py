"""The coefficients of a model as a tidy table, with what its bounds file says about them, and as a Word document."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from taciturn.app.model_file import Model, noisy_weights, shown_weights
from taciturn.charts import shown_change
from taciturn.core.errors import ParameterError, visible
from taciturn.methods.families import family_of, plural
from taciturn.methods.inference.tidy import INTERCEPT, NOISY, REFERENCE_LEVEL, TidyRow, TidyTable

WEIGHT = "weight of a prediction rule, without a standard error"
"""The note of a coefficient of a model without inference."""


def coefficient_table(model: Model) -> TidyTable:
    """The coefficients of a model, each for the change of its column that its effect is shown for.

    A model with inference has intervals, and ratios with their intervals; of one without, weights alone are listed. The
    level with which all others of a category are compared has a row of its own, without a number.

    **Privacy.** Post-processing of what the fit released: it costs nothing.
    """
    found = getattr(model.estimator, "inference_", None)
    if found is not None and found.reason is None:
        summary = model.summary()
        table = summary.tidy_table()
        notes = (*model.inference_notes, *summary.adjustment)
        in_model = [set(summary.names)] * len(summary.subjects)
    else:
        table, in_model = _weights(model)
        notes = model.inference_notes if found is not None else (_no_errors(model),)
    rows, grouped = _with_references(model, table, in_model)
    notes = (*notes, *grouped, *_of_intercept(model, table))
    return replace(table, title=_title(model), rows=rows, facts=_facts(model), notes=notes)


def _title(model: Model) -> str:
    target, labels = model.bounds.target.name, [str(label) for label in getattr(model.estimator, "classes_", ())]
    return f"{target} ({labels[1]} against {labels[0]})" if len(labels) == 2 else target


def _weights(model: Model) -> tuple[TidyTable, list[set[str]]]:
    """Weights without errors, one level for each class, and the features of each that have one."""
    values, intercepts, _ = shown_weights(model.estimator, model.bounds)
    names, labels = model.feature_names, [str(label) for label in getattr(model.estimator, "classes_", ())]
    units, steps = model.bounds.feature_units, model.bounds.feature_steps
    used, rows, noisy = np.flatnonzero(values.any(axis=0)).tolist(), [], noisy_weights(model.estimator, model.bounds)
    for k, (weights, intercept) in enumerate(zip(values.tolist(), intercepts.tolist(), strict=True)):
        level = labels[k] if len(values) > 1 else ""
        for j in used:
            change = shown_change(units[j], steps[j])
            note = f"{WEIGHT}; {NOISY}" if noisy[k, j] else WEIGHT
            rows.append(TidyRow(names[j], weights[j] * change / units[j], per=change, note=note, level=level))
        rows.append(TidyRow(INTERCEPT, intercept, note=WEIGHT, level=level))
    return TidyTable("", rows), [{names[j] for j in used}] * len(values)


def _no_errors(model: Model) -> str:
    ratios = "odds ratios" if model.task == "classify" else plural(family_of(model.estimator).ratio) or "effects"
    return (
        "These are the weights of a prediction rule, without standard errors. A fit with inference=True (taciturn fit "
        f"--inference) gives intervals and {ratios}."
    )


def _with_references(model: Model, table: TidyTable, in_model: list[set[str]]) -> tuple[list[TidyRow], tuple[str, ...]]:
    """The rows with one for each level that all others of its category are compared with, and sentences on the rest."""
    names, before, sentences = model.feature_names, dict[str, str](), []
    for block in model.bounds.indicator_blocks if getattr(model.estimator, "fit_intercept", True) else ():
        levels = sorted(place for place in block if "=" in names[place])
        left_out = [place for place in levels if names[place] not in in_model[0]]
        kept = [place for place in levels if names[place] in in_model[0]]
        if len(left_out) == 1 and kept:
            before[names[min(kept)]] = names[left_out[0]]
        elif left_out and kept:
            column = names[levels[0]].rpartition("=")[0]
            sentences.append(
                f"The levels of {column} that are not listed ({len(left_out):,}) are together what the others are "
                "compared with."
            )
    rows = []
    for row in table.rows:
        if row.term in before:
            rows.append(TidyRow(before[row.term], note=REFERENCE_LEVEL, level=row.level))
        rows.append(row)
    return rows, tuple(sentences)


def _of_intercept(model: Model, table: TidyTable) -> Iterator[str]:
    if any(row.term == INTERCEPT for row in table.rows):
        yield (
            "The intercept is that of a record with every column of numbers in the middle of its bounds, and zeros "
            "elsewhere."
        )


def _facts(model: Model) -> dict[str, Any]:
    """Public facts for the JSON text."""
    certificate, found = model.certificate, getattr(model.estimator, "inference_", None)
    classes = model.estimator.classes_.tolist() if model.task == "classify" else None
    log_link = model.task == "regress" and family_of(model.estimator).log_link
    return {
        "estimator": type(model.estimator).__name__,
        "target": model.bounds.target.name,
        "task": model.task,
        "classes": classes,
        "link": "logit" if classes else "log" if log_link else "identity",
        "nobs": None if found is None else found.n_records,
        "unit": certificate.unit,
        "epsilon": certificate.epsilon if math.isfinite(certificate.epsilon) else None,
        "delta": certificate.delta,
        "relation": certificate.relation,
        "status": certificate.status,
        "seeded": certificate.seeded,
    }


def to_docx(table: TidyTable) -> bytes:
    """The table as a Word document, by python-docx of the extra ``docx``."""
    try:
        from docx import Document
    except ImportError:
        raise ParameterError(
            "format", "docx", "the package python-docx, which is not installed", "run pip install 'taciturn[docx]'"
        ) from None
    document = Document()
    document.add_heading(visible(table.title), level=1)
    for level, lines in table.groups():
        if level:
            document.add_heading(visible(level), level=2)
        made = document.add_table(rows=1, cols=len(table.header), style="Light List Accent 1")
        for cell, text in zip(made.rows[0].cells, table.header, strict=True):
            cell.text = visible(text)
        for line in lines:
            for cell, text in zip(made.add_row().cells, line, strict=True):
                cell.text = visible(text)
    for note in table.footnotes:
        document.add_paragraph(visible(note))
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()
