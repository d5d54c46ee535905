"""``taciturn compare``."""

from __future__ import annotations

import re
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from taciturn.cli.fitting import parse_nonzero
from taciturn.cli.methods import Task, methods_for, new_estimator
from taciturn.cli.options import Bounds, Delta, Epsilon, Invalid, Target, TaskOption
from taciturn.cli.screen import console, print_line
from taciturn.core.errors import ParameterError, TaciturnError

__all__ = ["compare"]

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
    from taciturn.cli.records import read_encoded_table
    from taciturn.cli.table_facts import gather_table_facts

    facts = gather_table_facts(table, target, task, bounds, find=False)
    records = read_encoded_table(table, facts, invalid=invalid)
    return _Problem(records.X, records.y, records.task, records.target_parameters() | {"invalid": invalid})


def _make_problem(size: str, task: Task, seed: int) -> _Problem:
    import numpy as np

    from taciturn.datasets import make_ight_linear, make_sparsifier_logistic
    from taciturn.tables.streams import machine_memory

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
    from taciturn.data.admission import finite_rows

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
