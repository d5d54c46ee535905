"""Probes of libraries that fit models: taciturn, diffprivlib, interpret (DP-EBM), Opacus."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from taciturn_research.benchmarks.compare.probing.common import (
    Answer,
    Probe,
    attempt,
    console_scripts,
    has_names,
    module,
    no_name_with,
    parameters,
    partly,
)

__all__ = ["DIFFPRIVLIB", "INTERPRET", "OPACUS", "TACITURN"]

N_ROWS, N_COLUMNS = 300, 6


def _table(n_classes: int = 2) -> tuple[Any, Any]:
    np = module("numpy")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (N_ROWS, N_COLUMNS))
    return X, rng.integers(0, n_classes, N_ROWS)


def _holed() -> Any:
    X, _ = _table()
    X[0, 0] = float("nan")
    return X


def _beyond() -> Any:
    X, _ = _table()
    X[0, 0] = 1e6
    return X


def _in_pipeline(model: Any) -> Any:
    X, y = _table()
    scaler = module("sklearn.preprocessing").FunctionTransformer()
    return module("sklearn.base").clone(module("sklearn.pipeline").make_pipeline(scaler, model)).fit(X, y)


def _silent(fit: Any) -> Answer:
    """Whether a fit says anything about a value beyond the stated bounds."""
    warnings = module("warnings")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fit(_table()[0])
        before = len(said)
        try:
            fit(_beyond())
        except Exception as error:
            return "no", f"refuses a value beyond the bounds: {type(error).__name__}"
        return ("yes", "no message") if len(said) - before <= before else ("no", f"warns: {said[-1].message}")


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
    "silent": lambda: _silent(lambda X: _ours().fit(X, _table()[1])),
    "audit": lambda: has_names("taciturn.audit", "replay"),
    "sparse_coefficients": lambda: attempt(
        "n_nonzero=3", lambda: int((_ours(3).fit(*_table()).coef_ != 0).sum()), holds=lambda count: count == 3
    ),
    "intervals": lambda: attempt("inference=True", lambda: _ours(inference=True).fit(*_table()).summary()),
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
    "silent": lambda: _silent(lambda X: _theirs().fit(X, _table()[1])),
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
    "silent": lambda: _silent(lambda X: _ebm().fit(X, _table()[1])),
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
