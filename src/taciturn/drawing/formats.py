"""Numbers and public facts as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any

__all__ = [
    "flatten_facts",
    "format_estimate",
    "format_fact",
    "format_number",
    "format_odds",
    "format_odds_estimate",
    "format_percent",
    "format_ratio",
    "odds_step",
    "round_safely",
]

_DIGITS = 4
_MOST_LISTED = 20
_LEAST_SHARE = 1e-6
# Numbers beyond are written with an exponent.
_LEAST_ERROR, _MOST_ERROR = 1e-4, 1e5


def format_number(value: float) -> str:
    """Format a number with four digits, without an exponent if that is short.

    Examples
    --------
    >>> [format_number(value) for value in (0.5, -1234.56, 1e-6, 0.0)]
    ['0.5000', '-1,235', '1.000e-06', '0']
    """
    if value == 0.0:
        return "0"
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{_DIGITS - 1}e}"
    return f"{value:,.{max(0, _DIGITS - 1 - math.floor(math.log10(abs(value))))}f}"


def format_estimate(value: float, lower: float, upper: float) -> str:
    """Format a number with its interval: as many decimals in all three as show two digits of the error.

    Examples
    --------
    >>> format_estimate(-0.00773, -0.4143, 0.3988), format_estimate(1.0301, 1.0283, 1.0319)
    ('-0.01 (-0.41 to 0.40)', '1.0301 (1.0283 to 1.0319)')
    """
    # The interval of an odds ratio is shorter on one side.
    half = min(value - lower, upper - value)
    if _LEAST_ERROR <= half < _MOST_ERROR and max(abs(value), abs(lower), abs(upper)) < _MOST_ERROR:
        form = f".{max(0, 1 - math.floor(math.log10(half)))}f"
    else:
        form = ".3g"
    return f"{value:{form}} ({lower:{form}} to {upper:{form}})"


# Exponentials beyond are not finite.
_MOST_LOG = 690.0
# Ratios nearer to 1 need more digits, or are written as a difference from 1.
_NEAR, _NEAREST = 1e-2, 1e-6


def format_ratio(log_ratio: float) -> str:
    """Format the exponential of a number with four digits, or with three digits of its difference from 1.

    Examples
    --------
    >>> [format_ratio(value) for value in (0.7, 0.0043, -2e-8, 0.0, 30.0)]
    ['2.014', '1.00431', '1-2.0e-08', '1', '1.069e+13']
    """
    if abs(log_ratio) > _MOST_LOG:
        return ">1e+299" if log_ratio > 0.0 else "<1e-299"
    beyond = math.expm1(log_ratio)
    if abs(beyond) >= _NEAR or beyond == 0.0:
        return format_number(math.exp(log_ratio)) if beyond else "1"
    if abs(beyond) < _NEAREST:
        return f"1{beyond:+.1e}"
    return f"{1.0 + beyond:.{2 - math.floor(math.log10(abs(beyond)))}f}"


def odds_step(unit: float) -> float:
    """The change of a column that an odds ratio is stated for: 1, or a power of ten if the bounds are closer.

    Where a column ranges over 0.2 there is no change by 1, and its odds ratio would be out of all proportion.

    Parameters
    ----------
    unit : float
        Half the width of the bounds of the column.

    Examples
    --------
    >>> [odds_step(unit) for unit in (1e308, 50.0, 0.5, 0.1, 0.0004)]
    [1.0, 1.0, 1.0, 0.1, 0.0001]
    """
    return 1.0 if unit >= 0.5 else 10.0 ** math.floor(math.log10(2.0 * unit))


def format_odds(coefficient: float, unit: float) -> str:
    """Format the odds ratio for one unit of a column, or for a smaller step, which is then stated.

    Examples
    --------
    >>> format_odds(1.5, 50.0), format_odds(3.0, 0.1)
    ('1.030', '20.09 per 0.1')
    """
    step = odds_step(unit)
    return format_ratio(coefficient * step / unit) + ("" if step == 1.0 else f" per {step:g}")


def format_odds_estimate(coefficient: float, lower: float, upper: float, unit: float) -> str:
    """Format the odds ratio for one unit of a column with its interval, or for a smaller step, which is then stated.

    Examples
    --------
    >>> format_odds_estimate(1.483, 1.394, 1.572, 50.0), format_odds_estimate(0.3, 0.2, 0.4, 0.1)
    ('1.0301 (1.0283 to 1.0319)', '1.35 (1.22 to 1.49) per 0.1')
    """
    step = odds_step(unit)
    ratios = (math.exp(min(number * step / unit, _MOST_LOG)) for number in (coefficient, lower, upper))
    return format_estimate(*ratios) + ("" if step == 1.0 else f" per {step:g}")


def round_safely(value: float, *, up: bool, digits: int = _DIGITS) -> str:
    """Round a bound to a few digits: upper bounds up, lower bounds down.

    Examples
    --------
    >>> round_safely(2.71801, up=True), round_safely(2.71899, up=False)
    ('2.719', '2.718')
    """
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return f"{context.create_decimal(Decimal(value)).normalize():,f}"


def format_percent(share: float, *, up: bool) -> str:
    """Format a bound on a probability as a percentage: upper bounds are rounded up, lower bounds down.

    Examples
    --------
    >>> format_percent(0.731058, up=True), format_percent(0.268941, up=False), format_percent(1e-9, up=False)
    ('73.2%', '26.8%', '0%')
    """
    return "0%" if share < _LEAST_SHARE and not up else f"{round_safely(100.0 * share, up=up, digits=3)}%"


def format_fact(value: Any) -> str:
    """Format a public fact; long lists are shortened."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, list | tuple):
        listed = ", ".join(map(format_fact, value[:_MOST_LISTED]))
        return listed if len(value) <= _MOST_LISTED else f"{listed} and {len(value) - _MOST_LISTED:,} more"
    return str(value)


def flatten_facts(facts: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Iterate over nested facts, as pairs of a name and a text."""
    for name, value in facts.items():
        if isinstance(value, Mapping):
            yield from flatten_facts(value, f"{prefix}{name}: ")
        else:
            yield f"{prefix}{name}", format_fact(value)
