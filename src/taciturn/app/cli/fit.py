"""The commands fit, select, init and compare."""

from __future__ import annotations

import json
import os
import re
import time
import warnings
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.app.cli.output import (
    SIGNED,
    AccountOption,
    OutputFolder,
    charge_refusals,
    open_payer,
    print_payer,
    read_signing_key,
    replace_file,
)
from taciturn.app.cli.screen import (
    complete,
    console,
    format_command,
    print_certificate,
    print_line,
    print_note,
    shown_text,
    stage,
)
from taciturn.app.cli.show import print_model
from taciturn.app.cli.tables import (
    Bounds,
    Dask,
    Delta,
    Epsilon,
    Invalid,
    Memory,
    Method,
    NPublic,
    PrivateBounds,
    Public,
    Relation,
    Seed,
    SelectedUnit,
    SelectionMethod,
    Sign,
    TableFile,
    Target,
    Task,
    TaskOption,
    add_inference,
    add_variables,
    check_kind,
    check_opening,
    check_persons,
    check_plain_target,
    check_share,
    gather_table_facts,
    methods_for,
    new_estimator,
    new_selector,
    open_records,
    warm_up,
)
from taciturn.core.errors import ParameterError, TaciturnError


def fit(
    context: typer.Context,
    table: TableFile,
    target: Target = None,
    task: TaskOption = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    method: Annotated[Method, typer.Option(help="The model; start with auto.")] = "auto",
    nonzero: Annotated[
        str | None,
        typer.Option(help="Number of features to keep, all, or auto to choose it privately. [default: auto]"),
    ] = None,
    selected: Annotated[
        SelectedUnit,
        typer.Option("--select", help="What is kept or dropped: columns one by one, or variables with all categories."),
    ] = "columns",
    columns: Annotated[
        str | None, typer.Option(help="Columns of the model, with commas between them. [default: it chooses them]")
    ] = None,
    inference: Annotated[
        bool, typer.Option("--inference", help="Standard errors, intervals and p-values for the coefficients.")
    ] = False,
    confidence: Annotated[
        float | None, typer.Option(help="Confidence level of the intervals, in [0.5, 1). [default: 0.95]")
    ] = None,
    bounds: Bounds = None,
    private_bounds: PrivateBounds = None,
    relation: Relation = "zero-out",
    n_public: NPublic = None,
    invalid: Invalid = "raise",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for model.json, certificate.json and report.html.")
    ] = Path("model"),
    memory: Memory = None,
    dask: Dask = None,
    account: AccountOption = None,
    seed: Seed = None,
    public: Public = False,
    sign: Sign = None,
    full: Annotated[bool, typer.Option("--full", help="Print all coefficients and the whole certificate.")] = False,
) -> None:
    """Fit a sparse model to a table privately; write the model, its certificate and a report.

    Example: taciturn fit patients.csv --bounds bounds.toml --epsilon 1 --nonzero 5 -o model
    """
    key = read_signing_key(sign)
    payer = open_payer(account, seed)
    facts = gather_table_facts(table, target, task, bounds, find=private_bounds is not None)
    # After the bounds were read, as a mistake in them should not wait for scikit-learn.
    from taciturn.app.model_file import Model
    from taciturn.app.report.model import model_report
    from taciturn.privacy.certificate import in_short

    share = check_share(private_bounds, facts)
    kept, asked = parse_nonzero(nonzero), dict[str, Any]()
    add_inference(
        asked, method, inference=inference, confidence=confidence, columns=columns, nonzero=kept, bounds=facts.bounds
    )
    add_variables(asked, method, selected, columns=columns, bounds=facts.bounds)
    budget: dict[str, Any] = {"relation": relation, "n_public": n_public, "account": payer, "random_state": seed}
    model = new_estimator(
        method,
        facts.task,
        kept,
        epsilon=(1.0 - share) * epsilon,
        delta=(1.0 - share) * delta,
        invalid=invalid,
        **asked,
        **budget,
    )
    model.check_parameters()
    check_kind(method, facts.bounds)
    check_persons(model, facts.bounds)
    check_opening(model, facts, table, memory, dask)
    # Before anything is spent: the names of files need not be UTF-8.
    command = format_command(context)
    done = f"the model in {output} is complete and its budget is spent: do not fit it again"
    with OutputFolder(output, public=public, done=done) as folder, ExitStack() as opened:
        paid: dict[str, Any] = {"what": type(model).__name__, "relation": relation, "bounds": facts.bounds}
        with charge_refusals(payer, epsilon, delta, **paid):
            records = open_records(table, facts, model, invalid=invalid, memory=memory, dask=dask)
            opened.callback(records.close)
        warm_up(model, records.X)
        if inference:
            # Public facts may refuse the fit, which is not to be learned after bounds were paid for.
            model.set_params(**records.target_parameters())
            model.check_table(records.X, records.y, records.persons)
        spent = records.pay_for_bounds(folder, share, epsilon, delta, **budget)
        model.set_params(**records.target_parameters())
        records.fit(model)
        folder.add_release(model.certificate_)
        model.certificate_ = records.compose_certificates(spent, model.certificate_)
        folder.finish(model.certificate_)
        fitted = Model(records.bounds, model, command, date=today())
        folder.write_result("model.json", fitted.to_json() + "\n")
        with complete(f"{done}; taciturn report writes its page"), stage("writing"):
            try:
                folder.write("report.html", model_report(fitted))
            finally:
                folder.sign(key)
    with complete(done):
        print_model(fitted, full=full)
        if full:
            print_certificate(fitted.certificate)
        else:
            print_line(f"guarantee: {in_short(fitted.certificate)}")
        print_payer(payer)
        files = f"model.json, certificate.json, report.html{SIGNED if key else ''}"
        print_line(f"written: {output}: {files}{'' if full else f' (taciturn show {output})'}")


def today() -> str:
    """The day in universal time; that of SOURCE_DATE_EPOCH where it is set, so that files can be made again."""
    stated = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = int(stated) if re.fullmatch("[0-9]{1,11}", stated) else time.time()
    return time.strftime("%Y-%m-%d", time.gmtime(moment))


def parse_nonzero(nonzero: str | None) -> int | str | None:
    """Parse a number of features; return "auto", "all" and None, the method's default, unchanged."""
    from taciturn.tables.columns import refusal

    if nonzero is None or nonzero in ("auto", "all"):
        return nonzero
    if re.fullmatch("0*[1-9][0-9]{0,8}", nonzero):
        return int(nonzero)
    raise refusal("nonzero", nonzero, "a whole number > 0, auto or all", "change it or leave it out")


def select(
    context: typer.Context,
    table: TableFile,
    target: Target = None,
    task: TaskOption = None,
    keep: Annotated[int, typer.Option(min=1, help="Number of features to select.")] = 10,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    method: Annotated[SelectionMethod, typer.Option(help="The scores that rank the features.")] = "correlation",
    bounds: Bounds = None,
    private_bounds: PrivateBounds = None,
    relation: Relation = "zero-out",
    n_public: NPublic = None,
    invalid: Invalid = "raise",
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for selection.json and certificate.json.")
    ] = Path("selection"),
    memory: Memory = None,
    dask: Dask = None,
    account: AccountOption = None,
    seed: Seed = None,
    public: Public = False,
    sign: Sign = None,
) -> None:
    """Select features of a table privately, without fitting a model.

    Example: taciturn select genes.parquet --bounds bounds.toml --keep 20 --epsilon 2
    """
    key = read_signing_key(sign)
    payer = open_payer(account, seed)
    facts = gather_table_facts(table, target, task, bounds, find=private_bounds is not None)
    check_plain_target("select", facts.bounds)
    share = check_share(private_bounds, facts)
    budget: dict[str, Any] = {"relation": relation, "n_public": n_public, "account": payer, "random_state": seed}
    selector = new_selector(
        method,
        epsilon=(1.0 - share) * epsilon,
        delta=(1.0 - share) * delta,
        n_features_to_select=keep,
        invalid=invalid,
        **budget,
    )
    check_persons(selector, facts.bounds)
    check_opening(selector, facts, table, memory, dask)
    # Before anything is spent: the names of files need not be UTF-8.
    command = format_command(context)
    done = f"the selection in {output} is complete and its budget is spent: do not select again"
    with OutputFolder(output, public=public, done=done) as folder, ExitStack() as opened:
        paid: dict[str, Any] = {"what": type(selector).__name__, "relation": relation, "bounds": facts.bounds}
        with charge_refusals(payer, epsilon, delta, **paid):
            records = open_records(table, facts, selector, invalid=invalid, memory=memory, dask=dask)
            opened.callback(records.close)
        n_features = len(records.bounds.feature_names)
        if keep >= n_features:
            print_note(f"keep={keep} keeps all {n_features} features.")
        warm_up(selector, records.X)
        spent = records.pay_for_bounds(folder, share, epsilon, delta, **budget)
        records.fit(selector.set_params(**records.target_parameters(selector)))
        folder.add_release(selector.certificate_)
        certificate = records.compose_certificates(spent, selector.certificate_)
        folder.finish(certificate)
        names = [records.bounds.feature_names[place] for place in selector.get_support(indices=True)]
        content = {
            "format": "taciturn selection",
            "version": 1,
            "target": records.bounds.target.name,
            "features": names,
            "command": command,
            "certificate": json.loads(certificate.to_json()),
        }
        folder.write_result("selection.json", json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        folder.sign(key)
    with complete(done):
        _print_names(names, n_features)
        print_certificate(certificate)
        print_payer(payer)
        print_line(f"written: {output}: selection.json, certificate.json{SIGNED if key else ''}")


def _print_names(names: list[str], n_features: int) -> None:
    from rich.table import Table

    table = Table(title=f"{len(names)} of {n_features:,} features, in the order of the table")
    table.add_column("feature", style="bold")
    for name in names:
        table.add_row(shown_text(name))
    console().print(table)


def init(
    table: TableFile,
    target: Annotated[str, typer.Option(help="Column to predict.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File for the template.")] = Path("bounds.toml"),
    header: Annotated[
        bool, typer.Option("--header", help="The first line holds names, even where they look like values.")
    ] = False,
) -> None:
    """Write a template for the bounds file: names and types of the columns, no value of the table.

    Types are told from the names and from the shapes of the cells in the first rows: numbers, also with <5 or decimal
    commas, dates, yes and no, categories, many codes, free text, keys. One type from this list is written for each
    column, and no value, count or range. Certificates assume that such types are public.

    A table whose names look like values is refused: without a header, its first record would be published as names.
    With --header the template states that they are names, and certificates assume it.

    Fill in what the comments ask for from public knowledge: the range of each column from its nature, the lists of
    categories, the classes or the range of the target. Do not take them from the table.

    Example: taciturn init patients.csv --target diagnosis
    """
    from taciturn.tables.propose import bounds_template, detect_table

    if output.exists():
        raise ParameterError("output", str(output), "a file that is not there yet", "choose another name")
    with stage(f"reading the columns of {table.name}"):
        found = detect_table(table, header=header)
    replace_file(output, bounds_template(found.schema, target, found.columns, found.layout), public=True)
    with complete(f"the template {output} is complete"):
        print_line(
            f"written: {output}, with {len(found.schema.names)} columns; fill in what its comments ask for, then: "
            "taciturn fit"
        )


_TEST_SHARE = 0.25

_Results = dict[str, list[dict[str, float]]]
"""Results of every method, one per split."""


@dataclass(frozen=True, slots=True)
class _Problem:
    """Records on which methods are compared, and parameters that describe their target."""

    X: Any
    y: Any
    task: Task
    parameters: dict[str, Any]


def compare(
    table: Annotated[
        Path | None, typer.Argument(help="A PUBLIC table. [default: none, with --synthetic]", show_default=False)
    ] = None,
    target: Target = None,
    task: TaskOption = None,
    synthetic: Annotated[
        str | None, typer.Option(help="Size of a synthetic table in place of a file: ROWSxCOLUMNS, such as 2000x100.")
    ] = None,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    nonzero: Annotated[str, typer.Option(help="Number of features to keep, for methods that take it.")] = "10",
    bounds: Bounds = None,
    invalid: Invalid = "raise",
    trials: Annotated[int, typer.Option(min=1, help="Random splits into training and test records.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits and of the noise.")] = 0,
) -> None:
    """Compare all methods at one budget on a PUBLIC or synthetic table.

    Errors on test records are printed without noise: there is no guarantee for anybody in the table, and no budget is
    spent. Never run it on the records that you want to protect: use a similar public table.

    Example: taciturn compare --synthetic 2000x100 --task regress --epsilon 0.5
    """
    if (table is None) == (synthetic is None):
        raise ParameterError("synthetic", synthetic, "a table or --synthetic, and not both", "give one of them")
    if table is None:
        problem = _make_problem(str(synthetic), task or "regress", seed)
    else:
        problem = _read_problem(table, target, task, bounds, invalid)
    if problem.X.shape[0] < 8:
        raise ParameterError("table", str(table or synthetic), "at least 8 rows", "take a larger table")
    results = _run_methods(problem, epsilon, delta, parse_nonzero(nonzero), trials, seed)
    _print_results(results, problem, epsilon, delta, trials)
    print_line("These numbers are not private: there is no guarantee, and no budget was spent.")


def _read_problem(table: Path, target: str | None, task: Task | None, bounds: Path | None, invalid: str) -> _Problem:
    from taciturn.app.cli.tables import gather_table_facts, read_whole_table

    facts = gather_table_facts(table, target, task, bounds, find=False)
    check_plain_target("compare", facts.bounds)
    records = read_whole_table(table, facts, invalid=invalid)
    parameters = records.target_parameters() | {"invalid": invalid}
    # Methods are compared as predictors of numbers, since only one of them has other families.
    parameters.pop("loss", None)
    return _Problem(records.X, records.y, records.task, parameters)


def _make_problem(size: str, task: Task, seed: int) -> _Problem:
    import numpy as np

    from taciturn.datasets.synthetic import make_ight_linear, make_sparsifier_logistic
    from taciturn.tables.formats import machine_memory

    found = re.fullmatch(r"(\d{1,7})x(\d{1,7})", size)
    if found is None or int(found[1]) < 8 or int(found[2]) < 10:
        raise ParameterError("synthetic", size, "ROWSxCOLUMNS, at least 8x10", "write it as 2000x100")
    n_rows, n_columns = int(found[1]), int(found[2])
    if 8 * n_rows * n_columns > machine_memory():
        raise ParameterError("synthetic", size, "a table that fits into memory", "choose a smaller size")
    if task == "classify":
        X, y, _ = make_sparsifier_logistic(n_rows, n_columns, random_state=seed)
        return _Problem(X, y, task, {"classes": (0, 1)})
    X, targets, _ = make_ight_linear(n_rows, n_columns, random_state=seed)
    return _Problem(X / np.abs(X).max(), targets / np.abs(targets).max(), task, {"y_bounds": (-1.0, 1.0)})


def _run_methods(
    problem: _Problem, epsilon: float, delta: float, nonzero: int | str | None, trials: int, seed: int
) -> _Results:
    import inspect
    from math import inf

    import numpy as np
    from rich.progress import track
    from sklearn.model_selection import train_test_split

    import taciturn
    from taciturn.data.records import finite_rows

    budgets = dict.fromkeys(methods_for(problem.task), epsilon) | {"auto, without privacy": inf}
    results: _Results = {name: [] for name in budgets}
    jobs = [(name, trial) for trial in range(trials) for name in budgets]
    errors = console(stderr=True)
    for name, trial in track(jobs, "comparing", console=errors, transient=True):
        method = name.partition(",")[0]
        split = train_test_split(problem.X, problem.y, test_size=_TEST_SHARE, random_state=seed + trial)
        X, X_test, y, y_test = split
        family = new_estimator(method, problem.task, None)
        wanted = nonzero if "n_nonzero" in inspect.signature(type(family)).parameters else None
        if isinstance(wanted, str) and method != "auto":
            wanted = None
        model = new_estimator(
            method, problem.task, wanted, epsilon=budgets[name], delta=delta, random_state=seed + trial,
            **problem.parameters,
        )  # fmt: skip
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                for kind in (
                    taciturn.WeakBudgetWarning, taciturn.WeakGuaranteeWarning, taciturn.SuspiciousReleaseWarning
                ):  # fmt: skip
                    warnings.simplefilter("ignore", kind)
                model.fit(X, y)
        except TaciturnError:
            # The method does not take more than two classes, or needs a delta.
            continue
        taken = time.perf_counter() - start
        usable = finite_rows(X_test)
        if problem.task == "regress":
            usable &= np.isfinite(y_test)
        X_test, y_test = X_test[usable], y_test[usable]
        predicted = model.predict(X_test)
        if problem.task == "classify":
            error = float(np.mean(predicted != y_test))
        else:
            error = float(np.mean(np.square(predicted - y_test)) / max(float(np.var(y_test)), np.finfo(float).tiny))
        kept = int(np.count_nonzero(np.atleast_2d(model.coef_).any(axis=0)))
        results[name].append({"error": error, "kept": kept, "seconds": taken})
    return results


def _print_results(
    results: dict[str, list[dict[str, float]]], problem: _Problem, epsilon: float, delta: float, trials: int
) -> None:
    import numpy as np
    from rich.table import Table

    what = "misclassified" if problem.task == "classify" else "error / variance"
    n_rows, n_columns = problem.X.shape
    title = f"{n_rows:,} rows, {n_columns:,} features, epsilon {epsilon:g}, delta {delta:g}, {trials} splits"
    table = Table(title=title)
    for heading in ("method", f"{what} (sd)", "features", "seconds"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for name in (name for name, found in results.items() if not found):
        table.add_row(name, "cannot do this", "", "")
    done = {name: found for name, found in results.items() if found}
    for name, found in sorted(done.items(), key=lambda item: np.mean([each["error"] for each in item[1]])):
        errors = [each["error"] for each in found]
        spread = f" ({np.std(errors, ddof=1):.3f})" if len(errors) > 1 else ""
        kept, taken = (float(np.mean([each[key] for each in found])) for key in ("kept", "seconds"))
        table.add_row(name, f"{np.mean(errors):.3f}{spread}", f"{kept:.4g}", f"{taken:.2f}")
    console().print(table)
