"""``plan.json``: what was expected of fits at several budgets, to set beside what was obtained."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from taciturn.core.errors import DataError

if TYPE_CHECKING:
    from taciturn.app.model_file import Model
    from taciturn.methods.forecast.function import Forecast

FORMAT, VERSION = "taciturn plan", 1
MOST_FILE = 1 << 26
"""Largest size of a plan in bytes."""

MEASURES = {"score": "score", "error": "error", "calibration": "calibration slope", "found": "true columns"}
"""Measures of simulated fits, and what they are called."""

_NUMBERS = ("std_error", "sampling", "privacy", "smallest_effect", "interval_probability")
_BANDS = ("width",)


@dataclass(frozen=True, slots=True)
class PlannedFeature:
    """What is expected of one coefficient, for a ``change`` of its column; NaN where there is no interval."""

    name: str
    change: float
    std_error: float
    sampling: float
    privacy: float
    smallest_effect: float
    interval_probability: float
    width: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class PlannedFit:
    """What is expected at one epsilon: its coefficients, and bands (value, low, high) of measures of predictions."""

    epsilon: float
    interval_probability: float
    features: tuple[PlannedFeature, ...]
    measures: Mapping[str, tuple[float, float, float]]

    def feature(self, name: str) -> PlannedFeature | None:
        """The coefficient of a feature, if there is one."""
        return next((each for each in self.features if each.name == name), None)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """The content of ``plan.json``. It has no number that was computed from private records.

    ``score`` says what the score is. ``wishes``, ``advice`` and ``assumptions`` are sentences. ``shares`` are those of
    the budget by release, of an estimation at the first epsilon.
    """

    target: str
    model: str
    n: int
    delta: float
    relation: str
    confidence_level: float
    score: str
    fits: tuple[PlannedFit, ...]
    shares: Mapping[str, float]
    wishes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        target: str,
        forecasts: Sequence[Forecast],
        changes: Sequence[float],
        *,
        score: str,
        wishes: Sequence[str] = (),
        advice: Sequence[str] = (),
    ) -> PlanFile:
        """A plan from forecasts by epsilon; coefficients are stated for ``changes`` of the columns of features."""
        first = forecasts[0]
        model = first.trials.model
        return cls(
            target, type(model).__name__, first.n, float(model.delta), str(model.relation),
            float(model.confidence_level), score, tuple(_planned(each, changes) for each in forecasts),
            first.budget_shares, tuple(wishes), tuple(advice), first.assumptions,
        )  # fmt: skip

    def to_json(self) -> str:
        """The text of the file; numbers that there are not become null."""
        fits = [
            {
                "epsilon": fit.epsilon,
                "interval_probability": fit.interval_probability,
                "features": [
                    {name: getattr(each, name) for name in ("name", "change", *_NUMBERS, *_BANDS)}
                    for each in fit.features
                ],
                "measures": dict(fit.measures),
            }
            for fit in self.fits
        ]
        facts = {name: getattr(self, name) for name in self.__slots__ if name != "fits"}
        return json.dumps(
            _without_nan({"format": FORMAT, "version": VERSION, **facts, "fits": fits}), indent=2, ensure_ascii=False,
            allow_nan=False,
        )  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> PlanFile:
        """Read what :meth:`to_json` wrote; DataError for anything else."""
        try:
            content = json.loads(text)
            if content["format"] != FORMAT or content["version"] != VERSION:
                raise ValueError
            fits = tuple(
                PlannedFit(
                    _number(fit["epsilon"]), _number(fit["interval_probability"]),
                    tuple(_feature(each) for each in fit["features"]),
                    {str(name): _band(band) for name, band in fit["measures"].items() if name in MEASURES},
                )
                for fit in content["fits"]
            )  # fmt: skip
            if not fits:
                raise ValueError
            return cls(
                str(content["target"]), str(content["model"]), int(content["n"]), _number(content["delta"]),
                str(content["relation"]), _number(content["confidence_level"]), str(content["score"]), fits,
                {str(name): _number(share) for name, share in content["shares"].items()},
                *(tuple(map(str, content[name])) for name in ("wishes", "advice", "assumptions")),
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise DataError("plan: expected a plan.json of this version; write it again with taciturn plan.") from None

    def fit_at(self, epsilon: float) -> PlannedFit:
        """The fit whose epsilon is nearest, on a logarithmic scale."""
        return min(self.fits, key=lambda fit: abs(math.log(fit.epsilon / epsilon)))

    def compare(self, model: Model) -> Iterator[tuple[str, str, str, str]]:
        """Name, planned standard error with its change, and obtained one, for a model with standard errors."""
        found = getattr(model.estimator, "inference_", None)
        if found is None:
            return
        fit = self.fit_at(float(model.certificate.epsilon))
        names, units = model.feature_names, model.bounds.feature_units
        worst = np.max(found.std_error[:, : found.columns.size], axis=0) if found.columns.size else np.zeros(0)
        for j, error in zip(found.columns.tolist(), worst.tolist(), strict=True):
            planned = fit.feature(names[j])
            if planned is not None:
                # Errors are per unit of the feature; plans are for a change of its column.
                obtained = error * planned.change / units[j]
                yield names[j], f"{planned.change:g}", _shown(planned.std_error), _shown(obtained)


def _planned(forecast: Forecast, changes: Sequence[float]) -> PlannedFit:
    frame = {
        "std_error": forecast.worst_std_errors,
        "sampling": forecast.parts("sampling"),
        "privacy": forecast.parts("privacy"),
        "smallest_effect": forecast.smallest_effects,
    }
    features = []
    for j, (name, change) in enumerate(zip(forecast.feature_names, changes, strict=True)):
        scale = change / forecast.units[j]
        band = forecast.width_bands[j]
        numbers = {key: float(values[j]) * scale for key, values in frame.items()}
        width = (float(forecast.widths[j]) * scale, band.low * scale, band.high * scale)
        chance = float(forecast.column_probability[j])
        features.append(PlannedFeature(name, change, **numbers, interval_probability=chance, width=width))
    bands = {name: forecast.prediction(name) for name in MEASURES} if forecast.predictions else {}
    measures = {name: (band.value, band.low, band.high) for name, band in bands.items() if math.isfinite(band.value)}
    return PlannedFit(forecast.epsilon, forecast.interval_probability, tuple(features), measures)


def _feature(content: Mapping[str, Any]) -> PlannedFeature:
    numbers = {name: _number(content[name]) for name in ("change", *_NUMBERS)}
    return PlannedFeature(str(content["name"]), **numbers, width=_band(content["width"]))


def _band(content: Sequence[Any]) -> tuple[float, float, float]:
    value, low, high = map(_number, content)
    return value, low, high


def _number(content: Any) -> float:
    if content is None:
        return math.nan
    if isinstance(content, bool) or not isinstance(content, int | float):
        raise ValueError(content)
    return float(content)


def _without_nan(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _without_nan(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _shown(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "none"
