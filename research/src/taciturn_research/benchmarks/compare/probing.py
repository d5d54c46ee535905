"""Probes of features: each is run in the environment of its library and answers what the page on features asks.

``python -P -m taciturn_research.benchmarks.compare.probing LIBRARY`` prints the answers of one library.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

# ---------------------------------------------------------------------
# What probes share. Nothing here needs more than the standard library.


Answer = tuple[str, str]
"""``yes``, ``partly``, ``no`` or ``not found``, and what was seen; ``unclear`` if somebody has to look."""
Probe = Callable[[], Answer]

module = importlib.import_module


def attempt(
    what: str, run: Callable[[], Any], *, holds: Callable[[Any], bool] = lambda _: True, seen: str = "runs"
) -> Answer:
    """Yes if it runs and holds; no with the library's own error, or with what came out instead."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = run()
    except Exception as error:
        said = " ".join(str(error).split())
        return "no", f"{what}: {type(error).__name__}: {said[:140]}{'…' if len(said) > 140 else ''}"
    return ("yes", f"{what}: {seen}") if holds(result) else ("no", f"{what}: gives {str(result)[:80]}")


def public_names(package: str) -> Iterator[str]:
    """Modules of a package with their public members; modules that cannot be imported count by name alone."""
    root = module(package)
    yield package
    found = pkgutil.walk_packages(root.__path__, f"{package}.", onerror=lambda name: None)
    for name in sorted(entry.name for entry in found if ".tests" not in entry.name and "._" not in entry.name):
        yield name
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                inside = module(name)
        except Exception:
            # An optional dependency is missing.
            continue
        yield from (f"{name}.{member}" for member in dir(inside) if not member.startswith("_"))


def no_name_with(package: str, *words: str) -> Answer:
    """Not found if no public name of the package contains one of the words; unclear, with the names, if there are some.

    That is no evidence of absence: a feature may have another name, or live in another package. No page is written
    while an answer is unclear: somebody has to look at the names.
    """
    found = [name for name in public_names(package) if any(word in name.lower().rpartition(".")[2] for word in words)]
    shown = ", ".join(f'"{word}"' for word in words)
    if found:
        return "unclear", f"names with {shown}: {', '.join(sorted(set(found))[:3])}"
    return "not found", f"no public name of {package} contains {shown}"


def has_names(place: str, *names: str) -> Answer:
    """Yes if a module, or a class in it, has all the names."""
    home, _, kind = place.partition(":")
    found = getattr(module(home), kind) if kind else module(home)
    missing = [name for name in names if not hasattr(found, name)]
    shown = f"{home}.{kind}" if kind else home
    return ("no", f"{shown} has no {', '.join(missing)}") if missing else ("yes", f"{shown} has {', '.join(names)}")


def parameters(function: Callable[..., Any]) -> set[str]:
    """Names of the parameters of a function."""
    return set(inspect.signature(function).parameters)


def console_scripts(package: str) -> Answer:
    """Yes if the package installs a command."""
    found = sorted(entry.name for entry in distribution(package).entry_points if entry.group == "console_scripts")
    return ("yes", f"installs {', '.join(found)}") if found else ("no", f"{package} installs no command")


def partly(answer: Answer, but: str) -> Answer:
    """A yes with a reservation."""
    found, seen = answer
    return ("partly", f"{seen}; {but}") if found == "yes" else answer


# ---------------------------------------------------------------------
# Probes of libraries that fit models: taciturn, diffprivlib, interpret (DP-EBM), Opacus.


N_ROWS, N_COLUMNS = 300, 6


def _table(n_classes: int = 2, n_rows: int = N_ROWS) -> tuple[Any, Any]:
    np = module("numpy")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (n_rows, N_COLUMNS))
    return X, rng.integers(0, n_classes, n_rows)


def _holed() -> Any:
    X, _ = _table()
    X[0, 0] = float("nan")
    return X


def _in_pipeline(model: Any) -> Any:
    X, y = _table()
    scaler = module("sklearn.preprocessing").FunctionTransformer()
    return module("sklearn.base").clone(module("sklearn.pipeline").make_pipeline(scaler, model)).fit(X, y)


def _unstated(fit: Any, word: str) -> Answer:
    """What happens if bounds are not stated: a warning with the word tells that they were read from the data."""
    warnings = module("warnings")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            fit()
        except Exception as error:
            return "yes", f"refuses to fit without bounds: {type(error).__name__}"
    found = [entry.category.__name__ for entry in said if word in str(entry.message).lower()]
    return ("no", f"fits without bounds, with {found[0]}") if found else ("unclear", "fits without bounds in silence")


# ---------------------------------------------------------------------------------------------------------------------
# taciturn


def _ours(size: int | str = "all", n_classes: int = 2, **setting: Any) -> Any:
    classes = tuple(range(n_classes))
    return module("taciturn").SparseClassifier(
        epsilon=1.0, delta=1e-6, x_bound=1.0, n_nonzero=size, classes=classes, **setting
    )


def _our_account() -> Any:
    account = module("taciturn").Account
    with tempfile.TemporaryDirectory() as folder:
        place = f"sqlite:///{Path(folder) / 'study.db'}"
        made = account.create(place, "patients", epsilon=1, delta=1e-5, n=N_ROWS)
        X, y = _table()
        _ours(account=made).fit(X, y)
        try:
            _ours(account=made).fit(X, y)
        except module("taciturn").BudgetExceededError:
            return "refused"
    return "paid twice"


def _our_bounds() -> Answer:
    """Without bounds a constant takes their place: data beyond it give the fit of data that were clipped to it."""
    X, y = _table()
    far = 1e3 * X

    def coefficients(data: Any) -> Any:
        model = module("taciturn").SparseClassifier(classes=(0, 1), n_nonzero="all", random_state=0)
        return model.fit(data, y).coef_

    same = bool((coefficients(far) == coefficients(far.clip(-1.0, 1.0))).all())
    return (
        ("yes", "without x_bound values are clipped to 1, with a warning")
        if same
        else ("no", "the fit scales the data")
    )


def _our_sparse_matrix() -> Any:
    X, y = _table()
    return _ours().fit(module("scipy.sparse").csr_matrix(X), y)


TACITURN: dict[str, Probe] = {
    "bounds": _our_bounds,
    "linear": lambda: attempt("SparseClassifier.fit", lambda: _ours().fit(*_table())),
    "certificate": lambda: attempt(
        "certificate_ as JSON", lambda: json.loads(_ours().fit(*_table()).certificate_.to_json())
    ),
    "tight": lambda: attempt(
        "certificate_.mu",
        lambda: _ours().fit(*_table()).certificate_.mu,
        holds=lambda mu: mu is not None,
        seen="stated",
    ),
    "persons": lambda: attempt(
        "fit(persons=...)", lambda: _ours().fit(*_table(), persons=[i // 2 for i in range(N_ROWS)])
    ),
    "account": lambda: attempt(
        "a second fit beyond the budget", _our_account, holds=lambda said: said == "refused", seen="refused"
    ),
    "ledger": lambda: attempt(
        "an account in SQLite", _our_account, holds=lambda said: said == "refused", seen="refused"
    ),
    "audit": lambda: has_names("taciturn.audit", "replay"),
    "weights": lambda: attempt(
        "fit(sample_weight=...)",
        lambda: _ours(weight_bound=2.0).fit(*_table(), sample_weight=[1.0 + i % 2 for i in range(N_ROWS)]),
    ),
    "families": lambda: attempt(
        "loss='poisson'",
        lambda: (
            module("taciturn")
            .SparseRegressor(epsilon=1.0, delta=1e-6, x_bound=1.0, y_bounds=(0.0, 2.0), loss="poisson", n_nonzero="all")
            .fit(*_table(3))
        ),
    ),
    "sparse_coefficients": lambda: attempt(
        "n_nonzero=3", lambda: int((_ours(3).fit(*_table()).coef_ != 0).sum()), holds=lambda count: count == 3
    ),
    # With fewer records at this budget the noise would hide what an interval is computed from, and a fit is refused.
    "intervals": lambda: attempt("inference=True", lambda: _ours(inference=True).fit(*_table(n_rows=5_000)).summary()),
    "selection": lambda: attempt(
        "CorrelationSelector",
        lambda: (
            module("taciturn")
            .CorrelationSelector(epsilon=1.0, n_features_to_select=2, classes=(0, 1), x_bound=1.0)
            .fit(*_table())
        ),
    ),
    "multiclass": lambda: attempt("three classes", lambda: _ours(n_classes=3).fit(*_table(3))),
    "sparse_matrices": lambda: attempt("a csr_matrix", _our_sparse_matrix),
    "pipelines": lambda: attempt("clone and make_pipeline", lambda: _in_pipeline(_ours())),
    "command": lambda: console_scripts("taciturn"),
    "model_file": lambda: has_names("taciturn", "load"),
}

# ---------------------------------------------------------------------------------------------------------------------
# diffprivlib


def _theirs(**setting: Any) -> Any:
    return module("diffprivlib.models").LogisticRegression(epsilon=1.0, data_norm=N_COLUMNS**0.5, **setting)


def _their_account() -> Any:
    accountant = module("diffprivlib").BudgetAccountant(epsilon=1.0)
    _theirs(accountant=accountant).fit(*_table())
    try:
        _theirs(accountant=accountant).fit(*_table())
    except Exception as error:
        return type(error).__name__
    return "paid twice"


def _their_ledger() -> Answer:
    names = [name for name in dir(module("diffprivlib").BudgetAccountant) if not name.startswith("_")]
    stored = [name for name in names if any(word in name for word in ("save", "store", "dump", "file", "database"))]
    return ("partly", ", ".join(stored)) if stored else ("no", f"BudgetAccountant has {', '.join(names)}")


def _their_source() -> Answer:
    rng = module("diffprivlib.utils").check_random_state(None, secure=True)
    kind = type(rng).__name__
    return ("yes" if kind == "SystemRandom" else "no"), f"check_random_state(None, secure=True) is a {kind}"


def _their_coefficients() -> Answer:
    count = int((_theirs().fit(*_table()).coef_ != 0).sum())
    return "no", f"{count} of {N_COLUMNS} coefficients are not 0, and no parameter limits them"


DIFFPRIVLIB: dict[str, Probe] = {
    "bounds": lambda: _unstated(
        lambda: module("diffprivlib.models").LogisticRegression(epsilon=1.0).fit(*_table()), "privacy leak"
    ),
    "linear": lambda: attempt("LogisticRegression.fit", lambda: _theirs().fit(*_table())),
    "certificate": lambda: no_name_with("diffprivlib", "certificate", "statement"),
    "persons": lambda: _without_parameter(module("diffprivlib.models").LogisticRegression.fit),
    "account": lambda: attempt(
        "a second fit beyond the budget", _their_account, holds=lambda said: said == "BudgetError", seen="refused"
    ),
    "ledger": _their_ledger,
    "cryptographic": _their_source,
    "audit": lambda: no_name_with("diffprivlib", "audit", "attack"),
    "sparse_coefficients": _their_coefficients,
    "intervals": lambda: no_name_with("diffprivlib", "interval", "standard_error", "p_value"),
    "selection": lambda: no_name_with("diffprivlib", "selector", "selectk", "feature_selection"),
    "multiclass": lambda: attempt("three classes", lambda: _theirs().fit(*_table(3))),
    "nonlinear": lambda: has_names("diffprivlib.models", "RandomForestClassifier"),
    "unsupervised": lambda: has_names("diffprivlib.models", "KMeans", "PCA", "GaussianNB"),
    "deep": lambda: no_name_with("diffprivlib", "torch", "neural", "sgd"),
    "queries": lambda: attempt(
        "tools.mean", lambda: module("diffprivlib").tools.mean(_table()[0], epsilon=1.0, bounds=(-1, 1))
    ),
    "sql": lambda: no_name_with("diffprivlib", "sql", "query"),
    "synthetic": lambda: no_name_with("diffprivlib", "synth"),
    "sparse_matrices": lambda: attempt(
        "a csr_matrix", lambda: _theirs().fit(module("scipy.sparse").csr_matrix(_table()[0]), _table()[1])
    ),
    "missing": lambda: attempt("a NaN", lambda: _theirs().fit(_holed(), _table()[1])),
    "pipelines": lambda: attempt("clone and make_pipeline", lambda: _in_pipeline(_theirs())),
    "command": lambda: console_scripts("diffprivlib"),
    "report": lambda: no_name_with("diffprivlib", "report", "html"),
    "signatures": lambda: no_name_with("diffprivlib", "verify", "sign_", "ed25519"),
    "model_file": lambda: no_name_with("diffprivlib", "to_json", "save", "export"),
    "plots": lambda: no_name_with("diffprivlib", "explain", "plot"),
}

# ---------------------------------------------------------------------------------------------------------------------
# interpret


def _ebm(**setting: Any) -> Any:
    bounds = dict.fromkeys(range(N_COLUMNS), (-1.0, 1.0))
    return module("interpret.privacy").DPExplainableBoostingClassifier(
        epsilon=1.0,
        delta=1e-6,
        feature_types=["continuous"] * N_COLUMNS,
        privacy_bounds=bounds,
        n_jobs=1,
        max_rounds=5,
        **setting,
    )


def _ebm_deviations() -> Answer:
    deviations = [float(abs(found).max()) for found in _ebm().fit(*_table()).standard_deviations_]
    return "no", f"standard_deviations_ are {max(deviations):g} at most; they are those of bags, of which there is one"


INTERPRET: dict[str, Probe] = {
    "bounds": lambda: _unstated(
        lambda: module("interpret.privacy").DPExplainableBoostingClassifier(n_jobs=1, max_rounds=5).fit(*_table()),
        "privacy",
    ),
    "certificate": lambda: no_name_with("interpret.privacy", "certificate", "statement"),
    "tight": lambda: attempt(
        "composition='gdp' by default", lambda: _ebm().composition, holds=lambda name: name == "gdp"
    ),
    "persons": lambda: _without_parameter(module("interpret.privacy").DPExplainableBoostingClassifier.fit),
    "account": lambda: no_name_with("interpret.privacy", "account", "budget"),
    "ledger": lambda: no_name_with("interpret.privacy", "account", "ledger", "database"),
    "audit": lambda: no_name_with("interpret.privacy", "audit", "attack"),
    "intervals": _ebm_deviations,
    "selection": lambda: no_name_with("interpret.privacy", "selector"),
    "multiclass": lambda: attempt("three classes", lambda: _ebm().fit(*_table(3))),
    "nonlinear": lambda: attempt("DPExplainableBoostingClassifier.fit", lambda: _ebm().fit(*_table())),
    "sparse_matrices": lambda: attempt(
        "a csr_matrix", lambda: _ebm().fit(module("scipy.sparse").csr_matrix(_table()[0]), _table()[1])
    ),
    "missing": lambda: attempt("a NaN", lambda: _ebm().fit(_holed(), _table()[1])),
    "pipelines": lambda: attempt("clone and make_pipeline", lambda: _in_pipeline(_ebm())),
    "command": lambda: console_scripts("interpret-core"),
    "signatures": lambda: no_name_with("interpret.privacy", "verify", "sign_", "ed25519"),
    "model_file": lambda: has_names("interpret.privacy:DPExplainableBoostingClassifier", "to_json"),
    "gui": lambda: has_names("interpret", "show"),
    "plots": lambda: attempt("explain_global", lambda: _ebm().fit(*_table()).explain_global()),
}

# ---------------------------------------------------------------------------------------------------------------------
# Opacus


def _private_layer(**setting: Any) -> Any:
    torch, opacus = module("torch"), module("opacus")
    model = torch.nn.Linear(N_COLUMNS, 1)
    rows = torch.utils.data.TensorDataset(torch.zeros(32, N_COLUMNS), torch.zeros(32, 1))
    engine = opacus.PrivacyEngine(**setting)
    return engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        data_loader=torch.utils.data.DataLoader(rows, batch_size=8),
    )


def _secure_mode() -> Answer:
    """The mode is documented; whether it can be installed beside this version is another matter."""
    if "secure_mode" not in parameters(module("opacus").PrivacyEngine.__init__):
        return "no", "PrivacyEngine has no secure_mode"
    answer, seen = attempt("PrivacyEngine(secure_mode=True)", lambda: _private_layer(secure_mode=True))
    return ("yes" if answer == "yes" else "partly"), seen


OPACUS: dict[str, Probe] = {
    "bounds": lambda: (
        ("yes", "make_private has to be told max_grad_norm")
        if module("inspect").signature(module("opacus").PrivacyEngine.make_private).parameters["max_grad_norm"].default
        is module("inspect").Parameter.empty
        else ("unclear", "max_grad_norm has a default")
    ),
    "linear": lambda: partly(
        attempt("make_private with nn.Linear", _private_layer), "the user writes the training loop"
    ),
    "certificate": lambda: no_name_with("opacus", "certificate", "statement"),
    "tight": lambda: has_names("opacus.accountants", "PRVAccountant", "RDPAccountant", "GaussianAccountant"),
    "persons": lambda: _without_parameter(module("opacus").PrivacyEngine.make_private),
    "account": lambda: partly(has_names("opacus:PrivacyEngine", "get_epsilon"), "it counts, and nothing refuses"),
    "ledger": lambda: no_name_with("opacus", "ledger", "database"),
    "audit": lambda: no_name_with("opacus", "audit", "attack"),
    "intervals": lambda: no_name_with("opacus", "interval", "standard_error"),
    "selection": lambda: no_name_with("opacus", "selector"),
    "nonlinear": lambda: has_names("opacus", "GradSampleModule"),
    "deep": lambda: attempt("make_private", _private_layer),
    "sql": lambda: no_name_with("opacus", "sql", "query"),
    "synthetic": lambda: no_name_with("opacus", "synth"),
    "command": lambda: console_scripts("opacus"),
    "report": lambda: no_name_with("opacus", "report", "html"),
    "signatures": lambda: no_name_with("opacus", "verify", "sign_", "ed25519"),
    "cryptographic": _secure_mode,
}


def _without_parameter(fit: Any) -> Answer:
    """Whether a function has a parameter that says whose rows are whose."""
    words = ("person", "user", "group", "contribution", "_id")
    named = sorted(name for name in parameters(fit) if any(word in name for word in words))
    return (
        ("partly", f"{fit.__qualname__} takes {', '.join(named)}")
        if named
        else ("no", f"{fit.__qualname__} takes {', '.join(sorted(parameters(fit) - {'self'}))}")
    )


# ---------------------------------------------------------------------
# Probes of libraries that answer queries: OpenDP, SmartNoise, Tumult Analytics.


def _absent(package: str) -> dict[str, Probe]:
    """What these libraries are asked in the same way."""
    words = {
        "certificate": ("certificate",),
        "ledger": ("ledger",),
        "audit": ("audit", "attack"),
        "selection": ("feature_selection", "selectk"),
        "multiclass": ("multinomial", "multiclass"),
        "nonlinear": ("forest", "boosting", "decisiontree"),
        "deep": ("neural", "sgd", "torch"),
        "report": ("html",),
        "signatures": ("verify", "sign_", "ed25519"),
        "plots": ("plot", "explain_global"),
    }

    def probe(name: str) -> Probe:
        return lambda: no_name_with(package, *words[name])

    return {name: probe(name) for name in words}


# ---------------------------------------------------------------------------------------------------------------------
# OpenDP


def _dp() -> Any:
    found = module("opendp.prelude")
    found.enable_features("contrib")
    return found


def _one_column() -> Answer:
    doc = " ".join((module("opendp.extras.sklearn.linear_model").LinearRegression.__doc__ or "").split())
    only = "only lists containing a single tuple are supported" in doc
    return "partly", "LinearRegression by Theil and Sen" + ("; its docstring allows one column" if only else "")


def _proofs() -> Answer:
    names = [name for name in dir(module("opendp.measurements")) if name.startswith("make_")]
    linked = [n for n in names if "Proof Document" in (getattr(module("opendp.measurements"), n).__doc__ or "")]
    seen = f"{len(linked)} of {len(names)} measurements link their proof"
    return ("yes" if 2 * len(linked) > len(names) else "partly"), seen


def _imputed() -> Any:
    dp = _dp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=True)), dp.symmetric_distance()
    return (space >> dp.t.then_impute_constant(0.0))([float("nan")])


def _composed() -> Any:
    dp = _dp()
    context = dp.Context.compositor(
        data=[1, 2, 3],
        privacy_unit=dp.unit_of(contributions=3),
        privacy_loss=dp.loss_of(epsilon=1.0),
        split_evenly_over=1,
    )
    context.query().count().laplace().release()
    try:
        context.query().count().laplace().release()
    except Exception:
        return "refused"
    return "answered twice"


def _refused(what: str, run: Callable[[], Any]) -> Answer:
    """Yes if it fails, with the error."""
    answer, seen = attempt(what, run)
    return ("yes", seen) if answer == "no" else ("no", seen)


def _unbounded_sum() -> Any:
    dp = _dp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    return space >> dp.t.then_sum()


def _top_k() -> Any:
    dp = _dp()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    return dp.m.make_noisy_top_k(*space, dp.max_divergence(), k=2, scale=1.0)


def _stored() -> Any:
    dp = _dp()
    return dp.deserialize(dp.serialize(_top_k())).map(1) == _top_k().map(1)


OPENDP: dict[str, Probe] = {
    "bounds": lambda: _refused("a sum without bounds", _unbounded_sum),
    **_absent("opendp"),
    "certificate": lambda: partly(
        attempt("dp.serialize of a measurement, and back", _stored, holds=bool),
        "the query with its privacy map, not what was released",
    ),
    "selection": lambda: partly(
        attempt("make_noisy_top_k", lambda: _top_k()([1, 5, 3, 9])),
        "the user computes the scores and their sensitivity",
    ),
    "linear": _one_column,
    "tight": lambda: attempt(
        "measures of zCDP and approximate DP",
        lambda: (_dp().zero_concentrated_divergence(), _dp().fixed_smoothed_max_divergence()),
    ),
    "persons": lambda: attempt("unit_of(contributions=3)", lambda: _dp().unit_of(contributions=3)),
    "account": lambda: attempt(
        "a second query beyond the budget", _composed, holds=lambda said: said == "refused", seen="refused"
    ),
    "unsupervised": lambda: partly(
        has_names("opendp.extras.sklearn.decomposition", "PCA"), "no clusters, no naive Bayes"
    ),
    "queries": lambda: attempt("a count by Context", _composed),
    "sql": lambda: partly(has_names("opendp.extras.ibis", "run_on_database"), "expressions of Polars, not SQL"),
    "proofs": _proofs,
    "synthetic": lambda: has_names("opendp.extras.mbi", "AIM", "MST"),
    "missing": lambda: attempt("then_impute_constant", _imputed, holds=lambda found: found == [0.0]),
    "command": lambda: console_scripts("opendp"),
}

# ---------------------------------------------------------------------------------------------------------------------
# SmartNoise


def _reader(rows: Any, **bounds: int) -> Any:
    snsql = module("snsql")
    facts = {"": {"t": {"t": {"row_privacy": True, "rows": len(rows), "age": {"type": "int", **bounds}}}}}
    return snsql.from_df(rows, privacy=snsql.Privacy(epsilon=1.0, delta=0.01), metadata=facts)


def _select(values: list[int]) -> Any:
    rows = module("pandas").DataFrame({"age": values})
    return _reader(rows, lower=0, upper=100).execute("SELECT COUNT(*) AS n FROM t.t")


def _sum_without_bounds() -> Any:
    return _reader(module("pandas").DataFrame({"age": [20, 30, 40] * 20})).execute("SELECT SUM(age) AS s FROM t.t")


def _synthetic_source() -> Answer:
    inspect = module("inspect")
    text = inspect.getsource(module("snsynth.mst.mst")) + inspect.getsource(module("snsynth.aim.aim"))
    return (
        "partly" if "np.random" in text else "yes"
    ), "SQL draws noise by OpenDP, the synthesisers MST and AIM by numpy.random"


def _covariance_method() -> Any:
    np = module("numpy")
    rng = np.random.default_rng(0)
    X = module("pandas").DataFrame(rng.uniform(-1.0, 1.0, (20_000, 2)), columns=["a", "b"])
    y = module("pandas").DataFrame({"y": X["a"] + X["b"]})
    ranges = module("pandas").DataFrame({name: [-2.0, 2.0] for name in ("a", "b", "y")})
    return module("snsynth.models.linear_regression").DPLinearRegression().fit(X, y, ranges, budget=1.0)


def _linear_regression() -> Answer:
    """The class is there; its fit fails with some draws of noise and with new versions of numpy."""
    answer, seen = attempt("DPLinearRegression.fit", _covariance_method)
    return ("yes" if answer == "yes" else "partly"), seen


SMARTNOISE: dict[str, Probe] = {
    **{name: probe for name, probe in _absent("snsql").items() if name != "audit"},
    "bounds": lambda: _refused("a sum without bounds", _sum_without_bounds),
    "linear": _linear_regression,
    "persons": lambda: attempt(
        "max_ids of a table's metadata",
        lambda: module("snsql.metadata").Table,
        holds=lambda table: "max_ids" in parameters(table.__init__),
        seen="there",
    ),
    "account": lambda: partly(
        has_names("snsql.sql.odometer:OdometerHeterogeneous", "spent"), "it counts, and nothing refuses"
    ),
    "cryptographic": _synthetic_source,
    "queries": lambda: attempt("SELECT COUNT(*)", lambda: _select([20, 30, 40] * 20)),
    "sql": lambda: attempt("SELECT COUNT(*)", lambda: _select([20, 30, 40] * 20)),
    "intervals": lambda: partly(
        has_names("snsql.sql.private_reader:PrivateReader", "get_simple_accuracy"), "of queries, not of coefficients"
    ),
    "deep": lambda: partly(has_names("snsynth.pytorch.nn", "DPGAN"), "networks that make synthetic rows"),
    "missing": lambda: attempt(
        "nullable columns in the metadata",
        lambda: module("snsql.metadata").Int,
        holds=lambda kind: {"nullable", "missing_value"} <= parameters(kind.__init__),
        seen="there",
    ),
    "unsupervised": lambda: no_name_with("snsynth", "kmeans", "pca", "gaussiannb"),
    "synthetic": lambda: attempt("snsynth.Synthesizer", lambda: module("snsynth").Synthesizer.list_synthesizers()),
    "command": lambda: console_scripts("smartnoise-sql"),
}

# ---------------------------------------------------------------------------------------------------------------------
# Tumult Analytics


def _generator() -> Answer:
    kind = type(module("tmlt.core.random.rng").prng().bit_generator).__name__
    source = "the processor's RDRAND" if kind == "RDRAND" else "os.urandom" if kind == "UserBitGenerator" else kind
    return ("yes" if kind in ("RDRAND", "UserBitGenerator") else "no"), f"bits come from {source}"


def _builder(name: str) -> Probe:
    return lambda: has_names("tmlt.analytics:QueryBuilder", name)


TUMULT: dict[str, Probe] = {
    **_absent("tmlt.analytics"),
    "bounds": lambda: _refused("a sum without bounds", lambda: module("tmlt.analytics").QueryBuilder("t").sum("age")),
    "linear": lambda: no_name_with("tmlt.analytics", "regression", "linear_model", "classifier"),
    "tight": lambda: attempt("RhoZCDPBudget", lambda: module("tmlt.analytics").RhoZCDPBudget(1)),
    "persons": lambda: attempt("AddRowsWithID", lambda: module("tmlt.analytics").AddRowsWithID(id_column="id")),
    "account": lambda: has_names("tmlt.analytics:Session", "remaining_privacy_budget"),
    "cryptographic": _generator,
    "unsupervised": lambda: no_name_with("tmlt.analytics", "kmeans", "pca", "gaussiannb"),
    "queries": _builder("count"),
    "sql": lambda: no_name_with("tmlt.analytics", "sql"),
    "synthetic": lambda: no_name_with("tmlt.analytics", "synth"),
    "missing": _builder("replace_null_and_nan"),
    "command": lambda: console_scripts("tmlt.analytics"),
}


# ---------------------------------------------------------------------
# Run the probes of one library in its own environment and print the answers; the argument is its name.


# Packages, the first of which names the version, and probes.
LIBRARIES: dict[str, tuple[tuple[str, ...], dict[str, Probe]]] = {
    "taciturn": (("taciturn",), TACITURN),
    "diffprivlib": (("diffprivlib",), DIFFPRIVLIB),
    "interpret": (("interpret-core",), INTERPRET),
    "opendp": (("opendp",), OPENDP),
    "smartnoise": (("smartnoise-sql", "smartnoise-synth"), SMARTNOISE),
    "tumult": (("tmlt.analytics",), TUMULT),
    "opacus": (("opacus",), OPACUS),
}


def main(name: str) -> int:
    """One JSON line: versions and answers."""
    packages, probes = LIBRARIES[name]
    # What packages print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    found = {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {package: version(package) for package in packages},
        "answers": {feature: list(_answer(probe)) for feature, probe in probes.items()},
    }
    answers.write(json.dumps(found) + "\n")
    answers.flush()
    return 0


def _answer(probe: Probe) -> Answer:
    """A probe that fails says nothing about the library."""
    try:
        return probe()
    except Exception as error:
        return "unclear", f"the probe failed: {type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
