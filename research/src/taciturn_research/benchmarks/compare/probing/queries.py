"""Probes of libraries that answer queries: OpenDP, SmartNoise, Tumult Analytics."""

from __future__ import annotations

from collections.abc import Callable
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

__all__ = ["OPENDP", "SMARTNOISE", "TUMULT"]


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


def _clamped() -> Any:
    dp = _dp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    return (space >> dp.t.then_clamp((-1.0, 1.0)))([1e6])


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


OPENDP: dict[str, Probe] = {
    "bounds": lambda: _refused("a sum without bounds", _unbounded_sum),
    **_absent("opendp"),
    "linear": _one_column,
    "tight": lambda: attempt(
        "measures of zCDP and approximate DP",
        lambda: (_dp().zero_concentrated_divergence(), _dp().fixed_smoothed_max_divergence()),
    ),
    "persons": lambda: attempt("unit_of(contributions=3)", lambda: _dp().unit_of(contributions=3)),
    "account": lambda: attempt(
        "a second query beyond the budget", _composed, holds=lambda said: said == "refused", seen="refused"
    ),
    "silent": lambda: attempt("then_clamp on a value beyond the bounds", _clamped, holds=lambda found: found == [1.0]),
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
    **_absent("snsql"),
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
    "silent": lambda: attempt("COUNT beside a value beyond the bounds", lambda: _select([20, 30, 10**6] * 20)),
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
    "silent": lambda: attempt(
        "sum(low=, high=)",
        lambda: module("tmlt.analytics").QueryBuilder.sum,
        holds=lambda f: {"low", "high"} <= parameters(f),
        seen="clamps to stated bounds",
    ),
    "unsupervised": lambda: no_name_with("tmlt.analytics", "kmeans", "pca", "gaussiannb"),
    "queries": _builder("count"),
    "sql": lambda: no_name_with("tmlt.analytics", "sql"),
    "synthetic": lambda: no_name_with("tmlt.analytics", "synth"),
    "missing": _builder("replace_null_and_nan"),
    "command": lambda: console_scripts("tmlt.analytics"),
}
