"""The commands show, predict, report, score and verify."""

from __future__ import annotations

import csv
import io
import math
import operator
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from taciturn.app.cli.output import (
    AccountOption,
    AtomicFile,
    OutputFile,
    charge_refusals,
    open_payer,
    print_payer,
    read_signing_key,
    replace_file,
    sign_beside,
)
from taciturn.app.cli.screen import (
    complete,
    console,
    counter,
    print_certificate,
    print_line,
    print_sentence,
    shown_text,
    stage,
    write_text,
)
from taciturn.app.cli.tables import (
    Invalid,
    NPublic,
    Public,
    Relation,
    Seed,
    Sign,
    TableFile,
    checked_budget,
    read_text,
    warnings_as_notes,
    with_person,
)
from taciturn.charts import format_estimate
from taciturn.core.errors import CertificateError, ParameterError, visible
from taciturn.methods.inference.tidy import MEANING, exponential, marked

if TYPE_CHECKING:
    from rich.table import Table

    from taciturn.app.model_file import Model
    from taciturn.app.policy import Point
    from taciturn.app.verify import Verification
    from taciturn.methods.inference.summary import CoefficientSummary
    from taciturn.methods.scores.function import ModelScore, PrivateScore
    from taciturn.privacy.certificate import Certificate
    from taciturn.privacy.ledger import LedgerEntry


# --- A model on a screen: its coefficients by name with standard errors, or the weights of its prediction rule.

ROWS_OF_A_SCREEN = 10
"""Coefficients that fit on a screen of 24 lines beside what else is said of a model."""

_FEWEST_ROWS, _MOST_GAPS = 4, 2
# Screens as wide as this show the parts of standard errors too.
_WIDE = 120
# Headings take two lines on narrower screens.
_NARROW = 60
_LONGEST_NAME, _SOME_NAME, _SHORTEST_NAME, _LONGEST_LABEL = 30, 18, 8, 16
_INTERCEPT = "(intercept)"


def print_model(model: Model, *, full: bool = True) -> None:
    """Print coefficients with their intervals, or the weights of the prediction rule of a model that has none.

    Without ``full`` it is a part of one screen: the largest of them, with names and sentences cut short.
    """
    inference = getattr(model.estimator, "inference_", None)
    if inference is not None and inference.reason is None:
        _print_intervals(model, full=full)
        return
    notes = "" if inference is None else " ".join(model.inference_notes)
    found = _Weights.of(model)
    # Reasons of several lines leave less room; one line has been counted.
    n_lines = max(1, math.ceil(len(notes) / console().width)) + bool(found.references)
    most = None if full else max(_FEWEST_ROWS, ROWS_OF_A_SCREEN + 1 - n_lines)
    if notes:
        print_sentence(notes)
    first, *others = _groups(found)
    has_marks = bool((found.noisy if full else found.noisy[list(first), :most]).any())
    if most is not None and has_marks:
        # What marks mean takes a line.
        most = max(_FEWEST_ROWS, most - 1)
    for group in (first, *others) if full else (first,):
        console().print(_table(found, group, most))
    if has_marks:
        print_sentence(MEANING)
    if others and not full:
        print_line(f"classes that are not shown: {len(found.outputs) - len(first):,} (--full prints them)")
    if found.references:
        print_sentence(_references(found.references, full=full))
    if not notes:
        from taciturn.methods.families import family_of, plural

        options = "--inference" if hasattr(model.estimator, "inference") else "--method auto --inference"
        effects = "odds ratios" if model.task == "classify" else plural(family_of(model.estimator).ratio) or "effects"
        print_sentence(
            "These are the weights of a prediction rule, without standard errors. Fit with "
            f"{options} for intervals and {effects}."
        )


@dataclass(frozen=True)
class _Weights:
    """Weights by size: names, changes of the columns that they are for, and values, the intercept apart.

    The change is half the width of the bounds of a column, or what the bounds file states (``per``).
    """

    target: str
    outputs: list[str]
    n_features: int
    n_used: int
    names: list[str]
    units: list[float]
    values: Any
    intercept: Any
    """None where baseline hazards are in the place of one."""
    references: list[str]
    noisy: Any

    @classmethod
    def of(cls, model: Model) -> _Weights:
        import numpy as np

        from taciturn.app.model_file import noisy_weights, shown_weights

        estimator, target = model.estimator, model.bounds.target.name
        values, intercepts, references = shown_weights(estimator, model.bounds)
        used = np.flatnonzero(values.any(axis=0))
        order = used[np.argsort(-np.abs(values[:, used]).sum(axis=0), kind="stable")]
        outputs = [str(label) for label in getattr(estimator, "classes_", ())]
        units, steps = model.bounds.feature_units, model.bounds.feature_steps
        changes = [unit if step is None else step for unit, step in zip(units, steps, strict=True)]
        shares = np.array([change / unit for change, unit in zip(changes, units, strict=True)])
        return cls(
            f"{target} ({outputs[1]} against {outputs[0]})" if len(outputs) == 2 else target,
            outputs if len(values) > 1 else [],
            len(model.feature_names),
            order.size + len(references),
            [model.feature_names[j] for j in order],
            [changes[j] for j in order],
            values[:, order] * shares[order],
            None if model.task == "survive" else intercepts,
            references,
            noisy_weights(estimator, model.bounds)[:, order],
        )

    @property
    def unit_heading(self) -> str:
        return "for a change of" if console().width >= _NARROW else "for a\nchange of"


def _references(names: list[str], *, full: bool) -> str:
    """Which levels the weights of categories are compared with."""
    listed = ", ".join(names) if full or len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"
    return f"Categories are compared with a reference level: {listed if full else _cut(listed, 30)}."


def _groups(found: _Weights) -> list[range]:
    """All outputs, or for many classes as many as fit beside one another."""
    n_outputs = len(found.values)
    if not found.outputs:
        return [range(n_outputs)]
    names = min(_SOME_NAME, max(map(len, [*found.names, _INTERCEPT])))
    label = max(10, *(min(len(label), _LONGEST_LABEL) for label in found.outputs))
    each = max(1, (_room([(found.unit_heading, [])]) - names) // (label + 3))
    return [range(at, min(at + each, n_outputs)) for at in range(0, n_outputs, each)]


def _table(found: _Weights, group: range, most: int | None) -> Table:
    full = most is None
    shown = len(found.names) if most is None else min(len(found.names), most)
    table = _new_table(f"{found.target}: {found.n_used:,} of {found.n_features:,} features", full=full)
    # In pairs, as labels that are cut may be equal.
    columns = [
        (
            _cut(found.outputs[i], _LONGEST_LABEL) if found.outputs else "weight",
            marked(
                [f"{value:+.4g}" for value in (*found.values[i, :shown], *_only(found.intercept, i))],
                [*found.noisy[i, :shown], *([] if found.intercept is None else [False])],
            ),
        )
        for i in group
    ]
    columns.append((found.unit_heading, [*(f"{unit:.4g}" for unit in found.units[:shown]), ""]))
    for head, _ in columns:
        table.add_column(shown_text(head), justify="right", no_wrap=True)
    longest = min(_LONGEST_NAME, _room(columns))
    for j in range(shown):
        table.add_row(_name(found.names[j], longest, full=full), *(cells[j] for _, cells in columns))
    _add_rest(table, len(found.names) - shown)
    if found.intercept is not None:
        table.add_row(_INTERCEPT, *(cells[-1] for _, cells in columns))
    return table


def _only(values: Any, place: int) -> list[float]:
    return [] if values is None else [values[place]]


def _new_table(title: str, *, full: bool) -> Table:
    from rich.table import Table

    table = Table(title=shown_text(title if full else _cut(title, 76)))
    table.add_column("feature", style="bold", overflow="fold" if full else "ellipsis", no_wrap=not full)
    return table


def _add_rest(table: Table, n_more: int) -> None:
    if n_more:
        table.add_row(f"... {n_more:,} more (--full)", style="dim")


def _name(name: str, longest: int, *, full: bool) -> Any:
    return shown_text(name if full else _cut(name, max(longest, _SHORTEST_NAME)))


def _cut(text: str, most: int) -> str:
    """Shorten a text; the middle is left out, as names often differ at both ends."""
    shown = visible(text)
    if len(shown) <= most:
        return shown
    return f"{shown[: most - most // 2 - 1]}…{shown[-(most // 2) :]}"


def _print_intervals(model: Model, *, full: bool) -> None:
    """Print coefficients with standard errors, and effects or ratios per unit of their column."""
    summary = model.summary()
    level = f"{100.0 * summary.inference.confidence_level:g}% interval"
    if full:
        for k in range(len(summary.subjects)):
            console().print(_interval_table(model, summary, k, level, None))
        if any(any(summary.noisy(k)) for k in range(len(summary.subjects))):
            print_sentence(MEANING)
        for note in model.inference_notes:
            print_sentence(note)
        return
    gaps, hidden = _brief_gaps(summary), len(summary.subjects) - 1
    most = ROWS_OF_A_SCREEN - len(gaps) - bool(hidden)
    console().print(_interval_table(model, summary, 0, level, most))
    if hidden:
        print_line(f"classes that are not shown: {hidden:,} (--full prints them)")
    for line in gaps:
        print_line(line)
    if any(summary.noisy(0)[j] for j in (*summary.order(0)[:most], *range(len(summary.names), len(summary.rows)))):
        print_sentence(MEANING)
    print_sentence(f"The {level}s include the sampling error and the noise for privacy.")


def _brief_gaps(summary: CoefficientSummary) -> list[str]:
    """At most two lines about coefficients without a standard error."""
    lines = textwrap.wrap(visible(" ".join(summary.gaps)), console().width)
    if len(lines) <= _MOST_GAPS:
        return lines
    return [f"not estimable, or without an interval: {len(summary.incomplete):,} (--full says why)"]


def _interval_table(model: Model, summary: CoefficientSummary, table: int, level: str, most: int | None) -> Table:
    """One table of coefficients, with at most so many of them."""
    names, order, marks = summary.rows, summary.order(table), summary.marks(table)
    subject = f" ({summary.subjects[table]})" if len(summary.subjects) > 1 else ""
    about = f"{model.bounds.target.name}{subject}: {len(order)} of {len(model.feature_names)} features"
    n_records = f"{summary.inference.n_records:,} {model.certificate.unit}s"
    shown = _new_table(f"{about}, from {n_records}", full=most is None)
    shares = summary.shares
    numbers = {name: [float(value) for value in values[table]] for name, values in summary.columns.items()}
    for name in ("coefficient", "std error", "privacy", "lower", "upper"):
        numbers[name] = [value * share for value, share in zip(numbers[name], shares, strict=False)]
    cells = {
        "coefficient": marked(
            ["-" if math.isnan(number) else f"{number:+.4g}" for number in numbers["coefficient"]],
            summary.noisy(table),
        ),
        "std error": [*map(_number, numbers["std error"])],
        "of which privacy": [*map(_number, numbers["privacy"])],
        level: [*map(_ends, numbers["lower"], numbers["upper"])],
        "p": [*map(_p_value, numbers["p"])],
        f"{summary.ratio or 'effect'} per unit\n({level})": [*_per_unit(summary, numbers, marks)],
    }
    _drop_columns(cells)
    for head in cells:
        shown.add_column(head, justify="right", no_wrap=True)
    longest = min(_LONGEST_NAME, _room(cells.items()))
    for j in order[:most]:
        shown.add_row(_name(names[j], longest, full=most is None), *(column[j] for column in cells.values()))
    _add_rest(shown, len(order[most:]) if most is not None else 0)
    if summary.intercept:
        shown.add_row(_INTERCEPT, *(column[-1] for column in cells.values()))
    return shown


def _drop_columns(cells: dict[str, list[str]]) -> None:
    """Leave out columns that the report has too, the least important first, until names have room."""
    if console().width < _WIDE:
        for head in list(cells)[2:4]:
            del cells[head]
    for head in ("std error", "p", "coefficient"):
        if _room(cells.items()) < len(_INTERCEPT):
            del cells[head]


def _room(columns: Iterable[tuple[str, list[str]]]) -> int:
    """What columns leave of the screen for names; each has three characters beside its content."""
    taken = sum(3 + max(map(len, (*head.split("\n"), *cells))) for head, cells in columns)
    return console().width - 4 - taken


def _per_unit(summary: CoefficientSummary, numbers: dict[str, list[float]], marks: list[str]) -> Iterator[str]:
    """Effects or ratios per unit with their intervals, or why there is none; nothing for the intercept."""
    estimates = zip(*(numbers[name] for name in ("coefficient", "lower", "upper")), strict=True)
    for j, (mark, ends) in enumerate(zip(marks, estimates, strict=True)):
        if mark or j == len(summary.names):
            yield mark
        else:
            change = summary.stated_changes[j]
            shown = format_estimate(*(map(exponential, ends) if summary.ratio else ends))
            yield shown + ("" if change is None else f" per {change:g}")


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}"


def _ends(lower: float, upper: float) -> str:
    return "-" if math.isnan(lower) else f"{_number(lower)} to {_number(upper)}"


def _p_value(value: float) -> str:
    return "-" if math.isnan(value) else "<0.001" if value < 0.001 else f"{value:.3f}"


def print_score(score: PrivateScore | ModelScore, target: str) -> None:
    """Print one number with its certificate, or all measures with their intervals, baselines and one line about it."""
    from taciturn.methods.scores.function import PrivateScore

    private = score.certificate.status != "not private"
    if not isinstance(score, PrivateScore):
        _print_measures(score, target)
    elif private:
        print_certificate(score.certificate)
        print_line(f"{score.metric}: {score.value:.6g}, with noise of standard deviation {score.std:.3g}")
    else:
        print_line(f"{score.metric}: {score.value:.6g}")
    if not private:
        print_line("not private: these numbers may be shown only if the table is public; --epsilon adds noise to them")


def _print_measures(score: ModelScore, target: str) -> None:
    from rich.table import Table

    records = score.certificate.public.get("records")
    about = f"{target}: how good the model is, on {records:,} {score.certificate.unit}s"
    table = Table(title=shown_text(about))
    table.add_column("measure", style="bold")
    table.add_column(f"value ({100.0 * score.confidence_level:g}% interval)", justify="right")
    table.add_column("baseline", justify="right")
    for found in score.measures:
        if found.is_open:
            shown = f"open ({_score_screen_number(found.lower)} to {_score_screen_number(found.upper)})"
        else:
            shown = format_estimate(found.value, found.lower, found.upper)
        table.add_row(found.name, shown, _score_screen_number(found.baseline))
    console().print(table)
    for note in score_notes(score):
        print_line(note)
    if score.certificate.status != "not private":
        print_line(guarantee_line(score.certificate))


def score_notes(score: ModelScore) -> list[str]:
    """What the numbers are, in sentences."""
    notes = []
    if len(score.labels) == 2:
        notes.append(f"Probabilities are those of {score.labels[1]}.")
    baseline = "the mean of the target" if not score.labels else "the shares of the classes"
    notes.append(f"The baseline predicts {baseline} for everybody.")
    if any(found.is_open for found in score.measures):
        notes.append("The noise leaves a measure open: score more records, or with a larger epsilon.")
    return notes


def guarantee_line(certificate: Certificate) -> str:
    """The guarantee of a release in one line."""
    whom = "all rows of one person" if certificate.unit == "person" else "one record"
    seeded = "; SEEDED, for reproduction only" if certificate.seeded else ""
    return (
        f"guarantee: epsilon {certificate.epsilon:g}, delta {certificate.delta:g} for {whom} ({certificate.relation}), "
        f"{certificate.status}{seeded}"
    )


def _score_screen_number(value: float) -> str:
    if math.isinf(value):
        return "any number below" if value < 0.0 else "any number above"
    return f"{value:.4g}"


_MOST_MODEL = 1 << 30
"""Largest size of a model file in bytes: more than a hundred for each feature of the widest libsvm file."""

ModelFile = Annotated[Path, typer.Argument(help="model.json, or the folder that fit wrote.", show_default=False)]
ShownFile = Annotated[
    Path, typer.Argument(help="model.json, certificate.json, or the folder that holds them.", show_default=False)
]


ShownFormat = Literal["screen", "csv", "json", "latex", "markdown", "docx"]


def show(
    model: ShownFile,
    form: Annotated[
        ShownFormat,
        typer.Option("--format", help="The coefficients alone as a table: csv, json, latex, markdown, or docx (Word)."),
    ] = "screen",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the table. [default: standard output; docx needs one]"),
    ] = None,
    public: Public = False,
) -> None:
    """Show a model, its coefficients by name, and its certificate; or a certificate alone.

    With --format the coefficients alone are written as a table for other programs and for papers, with their intervals.

    Example: taciturn show model --format csv
    """
    if form != "screen":
        _write_table(read_model(model), form, output, public=public)
        return
    if output is not None:
        raise ParameterError("output", str(output), "--format beside it", "choose a format, or leave it out")
    from taciturn.app.model_file import Model
    from taciturn.core.validation import parse_strictly

    file = _file_in(model, "model.json", "certificate.json")
    with stage(f"reading {file.name}"):
        text = read_text(file, "model", _MOST_MODEL)
        content = parse_strictly(text)
        kind = content.get("format") if isinstance(content, dict) else None
        shown = _read_certificate(file, text) if kind in _STATEMENTS else Model.from_content(content)
    if isinstance(shown, Model):
        print_model(shown)
        print_certificate(shown.certificate)
        print_line(f"made by: {shown.command}")
    else:
        print_certificate(shown)


def _write_table(model: Model, form: str, output: Path | None, *, public: bool) -> None:
    """Write the coefficients in a format of files to a file or to standard output."""
    from taciturn.app.export import coefficient_table, to_docx

    if output is not None and output.exists():
        raise ParameterError("output", str(output), "a file that is not there yet", "choose another name")
    table = coefficient_table(model)
    if form == "docx":
        if output is None:
            raise ParameterError("output", None, "a file for the format docx", "name one with --output")
        replace_file(output, to_docx(table), public=public, exclusive=True)
    else:
        text: str = getattr(table, f"to_{form}")()
        if output is None:
            write_text(text)
            return
        replace_file(output, text, public=public, exclusive=True)
    print_line(f"written: {output}")


def read_model(path: Path) -> Model:
    """Read a model file, or the one in a folder."""
    from taciturn.app.model_file import Model

    file = _file_in(path, "model.json")
    with stage(f"reading {file.name}"):
        return Model.from_json(read_text(file, "model", _MOST_MODEL))


def _file_in(path: Path, *names: str) -> Path:
    """The path itself, or the first of these files in a folder."""
    if not path.is_dir():
        return path
    return next((path / name for name in names if (path / name).exists()), path / names[0])


_STATEMENTS = ("taciturn-certificate", "taciturn spending")


def _read_certificate(file: Path, text: str) -> Certificate:
    from taciturn.core.validation import parse_strictly
    from taciturn.privacy.certificate import Certificate

    if parse_strictly(text)["format"] != _STATEMENTS[0]:
        raise CertificateError(
            f"{file.name!r}: expected a certificate, got the statement of a run that did not finish; count its whole "
            "budget as spent."
        )
    return Certificate.from_json(text)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that spreadsheets take for a formula."""


def predict(
    model: ModelFile,
    table: TableFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="CSV file for the predictions.")] = Path(
        "predictions.csv"
    ),
    escape_formulas: Annotated[
        bool,
        typer.Option(
            "--escape-formulas", help="Put an apostrophe before labels that a spreadsheet would take for formulas."
        ),
    ] = False,
    key: Annotated[
        str | None, typer.Option(help="Column that is copied to the predictions, as their first, such as an id.")
    ] = None,
    invalid: Annotated[
        Literal["raise", "null"],
        typer.Option(help="A row with an unusable cell: raise refuses the table, null leaves its prediction empty."),
    ] = "raise",
    public: Public = False,
) -> None:
    """Predict for every row of a table; a classifier also gives the probability of each class.

    A model of times to an event gives the logarithm of the hazard relative to that of a row whose features are all
    zero, and the probability of no event until each cut.

    The table needs the columns whose coefficients are not all zero. It is streamed, so it may be larger than memory.
    Predictions are as sensitive as the table that they are made for: the certificate covers the training records alone.

    Example: taciturn predict model/model.json new-patients.csv -o predictions.csv
    """
    from taciturn.tables.formats import split_part
    from taciturn.tables.reading import read_batches

    for source in (model, split_part(table)[0]):
        if output.exists() and source.exists() and output.samefile(source):
            raise ParameterError("output", str(output), "a file that is not read", "choose another name")
    read = read_model(model)
    estimator = read.estimator
    header: list[str] = ["prediction"]
    more: Callable[[Any], Any] | None = None
    if hasattr(estimator, "predict_proba"):
        more = estimator.predict_proba
        header += [f"P({label})" for label in estimator.classes_]
    elif read.task == "survive":
        more = estimator.predict_survival_function
        header += [f"S({cut:g})" for cut in estimator.cuts_]
    keyed = [] if key is None else [key]
    n_rows = 0
    with AtomicFile(output, public=public) as file, counter(f"predicting {table.name}", "rows") as advance:
        file.write(_lines([[*keyed, *header]]))
        for block in read_batches(table, read.encoder.set_params(invalid=invalid), key=key):
            X, keys = (block, None) if key is None else block
            rows: Iterable[list[Any]] = _rows(estimator, more, X, len(header))
            if keys is not None:
                rows = map(operator.add, ([cell] for cell in keys), rows)
            file.write(_lines(map(_without_formulas, rows) if escape_formulas else rows))
            n_rows += X.shape[0]
            advance(X.shape[0])
    with complete(f"the predictions in {output} are complete"):
        print_line(f"written: {output}, {n_rows:,} predictions")


def _rows(estimator: Any, more: Callable[[Any], Any] | None, X: Any, width: int) -> list[list[Any]]:
    """The predictions of all rows, and what ``more`` gives for them; empty for rows that cannot be read."""
    import numpy as np

    rows: list[list[Any]] = [[""] * width for _ in range(X.shape[0])]
    # Rows of a sparse matrix have their sums at the same cost.
    known = np.flatnonzero(np.isfinite(np.asarray(X.sum(axis=1)).ravel()))
    if known.size:
        kept = X if known.size == len(rows) else X[known]
        predicted = estimator.predict(kept).tolist()
        shares = [[]] * len(predicted) if more is None else more(kept).tolist()
        for at, value, share in zip(known.tolist(), predicted, shares, strict=True):
            rows[at] = [value, *share]
    return rows


def _without_formulas(row: list[Any]) -> list[Any]:
    """The cells of a row, with an apostrophe before texts that a spreadsheet would compute."""
    return [f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell for cell in row]


def _lines(rows: Any) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


_MOST_SCORE = 1 << 26


def report(
    model: ModelFile,
    score: Annotated[
        Path | None, typer.Option(help="score.json of this model, for a section on how good it is.", show_default=False)
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(help="plan.json, for what was planned and obtained. [default: the one beside the model]"),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file for the page.")] = Path("report.html"),
    public: Public = False,
) -> None:
    """Write the page of a model again, with how good it is and what was planned; nothing is spent.

    Example: taciturn report model --score score.json --plan plan/plan.json -o report.html
    """
    from taciturn.app.model_file import ScoreFile, model_digest
    from taciturn.app.plan_file import MOST_FILE, PlanFile
    from taciturn.app.report.model import model_report

    read = read_model(model)
    found = None
    if score is not None:
        found = ScoreFile.from_json(read_text(score, "score", _MOST_SCORE))
        if found.model != model_digest(read):
            raise ParameterError("score", str(score), "a score of this model", "name the model that was scored")
    beside = (model if model.is_dir() else model.parent) / "plan.json"
    planned = None
    if plan is not None or beside.exists():
        planned = PlanFile.from_json(read_text(plan or beside, "plan", MOST_FILE))
        if planned.target != read.bounds.target.name:
            raise ParameterError(
                "plan", str(plan or beside), "a plan for the target of this model", "name the plan of this study"
            )
    with stage("writing"):
        replace_file(output, model_report(read, found, planned), public=public)
    print_line(f"written: {output}")


def score(
    model: ModelFile,
    table: TableFile,
    epsilon: Annotated[
        float | None,
        typer.Option(callback=checked_budget, help="Privacy budget of the score. [default: none, for a public table]"),
    ] = None,
    delta: Annotated[float, typer.Option(help="Probability beyond epsilon, in [0, 1).")] = 0.0,
    metric: Annotated[
        Literal["all", "auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error"],
        typer.Option(help="all: every measure from one release. auto: accuracy, or mean squared error of a regressor."),
    ] = "all",
    relation: Relation = "zero-out",
    n_public: NPublic = None,
    invalid: Invalid = "raise",
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="JSON file for the score and its certificate. [default: score.json with --epsilon]"
        ),
    ] = None,
    account: AccountOption = None,
    seed: Seed = None,
    public: Public = False,
    sign: Sign = None,
) -> None:
    """Say how good a model is on a table that is public, or privately with a budget of its own.

    Example: taciturn score model/model.json holdout.csv --epsilon 0.5
    """
    from taciturn.app.model_file import ScoreFile, model_digest
    from taciturn.privacy import mechanisms
    from taciturn.privacy.ledger import hide_password

    key = read_signing_key(sign)
    if key is not None and epsilon is None and output is None:
        raise ParameterError("sign", str(sign), "a file to sign", "name one with --output")
    if account is not None and epsilon is None:
        raise ParameterError("account", hide_password(account), "--epsilon beside it", "give a budget, or leave it out")
    payer = open_payer(account, seed)
    read = read_model(model)
    _check_can_be_scored(read)
    options = {
        "delta": delta,
        "relation": relation,
        "n_public": n_public,
        "invalid": invalid,
        "account": payer,
        "random_state": seed,
    }
    if epsilon is None:
        if output is not None and output.is_file():
            raise ParameterError("output", str(output), "a file that is not there yet", "choose another name")
        records = _read_records(read, table, invalid, needs_persons=False)
        result = _score(read, *records, metric, epsilon=math.inf, **options)
        if output is not None:
            text = ScoreFile(result, model_digest(read)).to_json()
            replace_file(output, text, public=public, exclusive=True)
            sign_beside(output, text, key, public=public)
        print_score(result, read.bounds.target.name)
        return
    place = Path("score.json") if output is None else output
    done = f"the score in {place} is complete and its budget is spent: do not score again"
    with OutputFile(place, public=public, done=done) as file:
        with charge_refusals(payer, epsilon, delta, what="private_score", relation=relation, bounds=read.bounds):
            records = _read_records(read, table, invalid, needs_persons=True)
        if delta > 0.0:
            # Gaussian noise is compiled before the file says that the budget is being spent.
            with stage("preparing"):
                mechanisms.warm_up()
        file.begin(epsilon=epsilon, delta=delta, relation=relation)
        result = _score(read, *records, metric, epsilon=epsilon, **options)
        text = ScoreFile(result, model_digest(read)).to_json()
        file.finish(text)
        sign_beside(place, text, key, public=public)
    with complete(done):
        print_score(result, read.bounds.target.name)
        if payer is None:
            print_line("If these records were also used to fit the model, the certificates add up (taciturn.compose).")
        else:
            print_payer(payer)
        print_line(f"written: {place}{' and its signature' if key else ''}")


def _check_can_be_scored(read: Model) -> None:
    """Raise for a model of which no private measure is there, before anything is read or spent."""
    remedy = None
    if read.task == "survive":
        what = "times to an event"
        remedy = "on a public table score() in Python gives its concordance"
    elif read.bounds.exposure is not None:
        what = "counts of an exposure"
        remedy = "on a public table compare predict() times the exposure with the counts"
    if remedy is not None:
        raise ParameterError("model", what, "one of numbers or classes, as no score of others is proved", remedy)


def _read_records(read: Model, table: Path, invalid: str, *, needs_persons: bool) -> tuple[Any, Any, Any]:
    """Features, targets, and keys of persons if the model's table had them; a public table may do without."""
    from taciturn.tables.reading import read_person_keys, read_schema, read_table

    with stage(f"reading {table.name}"):
        X, y = read_table(table, read.bounds, read.bounds.target.name, invalid=invalid)
        person = read.bounds.person
        if person is None or (not needs_persons and person not in read_schema(table, read.bounds.layout).names):
            return X, y, None
        return X, y, read_person_keys(table, read.bounds)


def _score(read: Model, X: Any, y: Any, persons: Any, metric: Any, **options: Any) -> PrivateScore | ModelScore:
    from taciturn.methods.scores.function import private_score
    from taciturn.tables.columns import file_assumptions

    with stage("scoring"), warnings_as_notes():
        score: PrivateScore | ModelScore
        score = private_score(read.estimator, X, y, metric=metric, persons=persons, **options)
    certificate = score.certificate
    bounds, sparse = read.bounds, hasattr(X, "tocsr")
    of_file = file_assumptions(options["invalid"], bounds.layout, sparse=sparse, terms=bounds.terms)
    assumptions = (*certificate.assumptions, *of_file)
    public = dict(certificate.public) if persons is None else with_person(certificate, read.bounds)
    return replace(score, certificate=replace(certificate, assumptions=assumptions, public=public))


# --- Ledgers that commands read: of an account in a database, or exported.

# About a million entries.
_MOST_CHARACTERS = 1 << 30
_MOST_POLICY = 1 << 16


def read_ledger(where: str) -> list[LedgerEntry]:
    """The entries of an account, from its database by ``URL#NAME`` or from a file of JSON lines."""
    from taciturn.privacy.account import Account
    from taciturn.privacy.ledger import entry_from_json, location_of

    if "://" in where:
        return Account(*location_of(where)).entries()
    lines = read_text(Path(where), "ledger", _MOST_CHARACTERS).removesuffix("\n").split("\n")
    return [entry_from_json(line) for line in lines]


Folder = Annotated[
    Path, typer.Argument(help="Folder that fit or select wrote, or one of its files.", show_default=False)
]
PaidBy = Annotated[
    str | None,
    typer.Option(help="The account that paid, such as sqlite:///study.db#name, or its exported ledger.jsonl."),
]


def verify(
    folder: Folder,
    public_key: Annotated[
        Path | None,
        typer.Option(help="The owner's public Ed25519 key (PEM file): files that it did not sign are refused."),
    ] = None,
    account: PaidBy = None,
    sign: Annotated[
        Path | None, typer.Option(help="Private Ed25519 key (PEM file) that signs the folder if nothing is refused.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="TOML file of what you demand, such as epsilon = 1.0: other files are refused."),
    ] = None,
) -> None:
    """Check, without data, that the files of a fit hold together and prove what they state; or sign them.

    Example: taciturn verify model --public-key owner.pub.pem --policy policy.toml
    """
    from taciturn.app.policy import Policy
    from taciturn.app.report.model import model_report
    from taciturn.app.verify import SIGNATURE_NAME, VerificationError, read_public_key, sign_folder, verify_folder

    if sign is not None and public_key is not None:
        raise ParameterError("sign", str(sign), "no public key beside it", "sign first, then verify with --public-key")
    if sign is not None and policy is not None:
        raise ParameterError("sign", str(sign), "no policy beside it", "sign first, then verify with --policy")
    demands = None if policy is None else Policy.from_toml(read_text(policy, "policy", _MOST_POLICY))
    trusted = None if public_key is None else read_public_key(public_key)
    ledger = None if account is None else read_ledger(account)
    key = read_signing_key(sign)
    try:
        with stage(f"verifying {folder.name}"):
            if key is not None:
                text = sign_folder(folder, key, write_report=model_report)
                # A signature is public if the files are.
                public = all(path.stat().st_mode & 0o004 for path in folder.iterdir())
                replace_file(folder / SIGNATURE_NAME, text, public=public)
                trusted = key.public_key()
            found = verify_folder(folder, trusted, write_report=model_report, ledger=ledger)
    except VerificationError as error:
        if error.verification is not None:
            _print_items(error.verification, folder)
        raise
    _print_items(found, folder)
    if found.signed_by is None:
        print_line("The files are consistent. Their author is not verified: --public-key checks a signature.")
    else:
        print_line("The files are consistent, and they are those that were signed.")
    if policy is not None and demands is not None:
        _judge(policy.name, list(demands.judge(found, ledger)))


def _judge(name: str, points: list[Point]) -> None:
    """Print one line for each point of a policy; raise if one is not met."""
    from taciturn.app.policy import PolicyError

    for point in points:
        print_line(f"{'met    ' if point.is_met else 'NOT MET'}  {point.name:9}  {point.words}")
    missed = [point.name for point in points if not point.is_met]
    if missed:
        raise PolicyError(
            f"{name}: expected files that meet every point, got some that do not meet {', '.join(missed)}; do not "
            "accept them, and ask their owner."
        )
    print_line(f"The files meet all {len(points)} points of {name}.")


def _print_items(found: Verification, folder: Path) -> None:
    from rich.table import Table

    colours = {"holds": "green", "refused": "red", "not checked": "yellow"}
    table = Table(title=shown_text(f"{folder.name or folder}: what was checked"))
    table.add_column("what", style="bold")
    table.add_column("result")
    table.add_column("", overflow="fold")
    for item in found.items:
        table.add_row(item.name, f"[{colours[item.outcome]}]{item.outcome}[/]", shown_text(item.words))
    console().print(table)
