"""Checks of public arguments, arrays, lattice numbers and JSON, with errors that never quote data."""

from __future__ import annotations

import json
import math
import numbers
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from taciturn.core.errors import DataError, DataTypeError, ParameterError, TaciturnError

# ---- Types of arrays, named once for the whole package.

Invalid = Literal["raise", "null"]
"""What becomes of a record that is not admissible: the table is refused, or the record is null."""

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
IndexArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
WordArray = NDArray[np.uint64]
NumberArray = FloatArray | IntArray
AnyArray = NDArray[np.generic]


# ---- JSON that every program reads alike: no name twice in an object, no NaN, nothing nested or long beyond reason.

_MOST_VALUES = 1 << 26
"""Largest number of values, which take seconds and gigabytes: sixteen for each column of the widest libsvm file."""


def parse_strictly(text: str) -> Any:
    """The content of a text; None where it is not such JSON."""
    # Commas stand between values. The parser cannot be interrupted.
    if text.count(",") >= _MOST_VALUES:
        return None
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=without_duplicates)
    except (ValueError, TypeError, RecursionError):
        return None


def refuse_constant(constant: str) -> NoReturn:
    """NaN and infinities are no JSON."""
    raise ValueError(constant)


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Two values for one name are read differently by different programs."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError(len(pairs))
    return content


# ---- Checks of public parameters, and the filter that keeps data values out of error messages.
# The checks take exactly one keyword argument, so that a message always names the caller's parameter:
# ``check_positive(epsilon=epsilon)``.

T = TypeVar("T")

# With less, sums over a thousand million records are noise, and doubles no longer tell what a release costs.
_SMALLEST_BUDGET = 1e-9
# Beyond this a budget protects nobody, and what sampling adds to delta is no longer small.
_LARGEST_BUDGET = 30.0
# Widths of bounds beyond these vanish or overflow where they are halved, doubled or multiplied by a coefficient, which
# would be noticed after the noise.
_LEAST_WIDTH, _LARGEST_WIDTH = 1e-301, 1e301
# Beyond this a claim says nothing that a computer could keep; infinity says so openly.
_LARGEST_CLAIM = 1e9


def _only(named: dict[str, object]) -> tuple[str, object]:
    ((name, value),) = named.items()
    return name, value


def as_real(value: object) -> float:
    """The number, or NaN for anything that is not one (booleans included)."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        try:
            return float(value)
        except OverflowError:
            # An integer beyond all doubles. Infinity would have a meaning of its own.
            return math.nan
    return math.nan


def check_epsilon(*, part: bool = False, **named: object) -> float:
    """A privacy budget: a number from 1e-9 to 30, or infinity (no privacy); a ``part`` of one may be any number > 0."""
    name, value = _only(named)
    number = as_real(value)
    large_enough = number > 0.0 if part else number >= _SMALLEST_BUDGET
    if not ((large_enough and number <= _LARGEST_BUDGET) or number == math.inf):
        least = "> 0" if part else f">= {_SMALLEST_BUDGET:g}"
        expected = f"a number {least} and at most {_LARGEST_BUDGET:g} (infinity switches privacy off)"
        remedy = f"give the privacy budget as, say, {name}=1.0, or {name}=float('inf') for no privacy"
        raise ParameterError(name, value, expected, remedy)
    return number


def check_claimed_epsilon(**named: object) -> float:
    """What a publication claims: a number from 1e-9 on, infinity included."""
    name, value = _only(named)
    number = as_real(value)
    if not (_SMALLEST_BUDGET <= number <= _LARGEST_CLAIM or number == math.inf):
        expected = f"a number >= {_SMALLEST_BUDGET:g} (infinity switches privacy off)"
        raise ParameterError(name, value, expected, f"give the privacy budget as, say, {name}=1.0")
    return number


def check_delta(**named: object) -> float:
    """A failure probability in [0, 1)."""
    name, value = _only(named)
    number = as_real(value)
    if not 0.0 <= number < 1.0:
        remedy = f"choose it well below one over the number of records, say {name}=1e-6"
        raise ParameterError(name, value, "a number in [0, 1)", remedy)
    return number


def check_positive(**named: object) -> float:
    """A finite number > 0."""
    name, value = _only(named)
    number = as_real(value)
    if not 0.0 < number < math.inf:
        raise ParameterError(name, value, "a finite number > 0", f"give a positive {name}")
    return number


def is_width(width: Any) -> Any:
    """Whether bounds of this width can be used: from 1e-301 to 1e301. For an array the answers are one."""
    return (width >= _LEAST_WIDTH) & (width <= _LARGEST_WIDTH)


def check_x_bound(x_bound: object) -> float:
    """A bound on the size of features: a number > 0 that is not too large, or too small, for a width."""
    number = check_positive(x_bound=x_bound)
    if not is_width(2.0 * number):
        raise ParameterError("x_bound", x_bound, "a number from 1e-301 to 5e300", "scale the features first")
    return number


def check_real(low: float, high: float, /, *, closed: str = "both", **named: object) -> float:
    """A number between ``low`` and ``high``; ``closed`` is "both" or "left"."""
    name, value = _only(named)
    number = as_real(value)
    inside = low <= number < high if closed == "left" else low <= number <= high
    if not inside:
        interval = f"[{low:g}, {high:g}" + (")" if closed == "left" else "]")
        raise ParameterError(name, value, f"a number in {interval}", f"choose {name} in that range")
    return number


def check_integer(low: int, high: int | None = None, /, **named: object) -> int:
    """An integer of at least ``low`` and, unless None, at most ``high``."""
    name, value = _only(named)
    # Asking the abstract class takes long beside a step of a small fit.
    integral = type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_))
    number = int(value) if integral else low - 1  # type: ignore[call-overload]
    if number < low or (high is not None and number > high):
        expected = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
        raise ParameterError(name, value, expected, f"choose {name} in that range")
    return number


def check_truth(**named: object) -> bool:
    """True or False."""
    name, value = _only(named)
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(name, value, "True or False", "set it to one of them")
    return bool(value)


def check_choice(choices: Sequence[str], otherwise: str | None = None, /, **named: object) -> str:
    """One of a few words; ``otherwise`` names what is no word and would have been accepted too."""
    name, value = _only(named)
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        expected = f"one of {listed}" if otherwise is None else f"{listed} or {otherwise}"
        raise ParameterError(name, value, expected, f"set {name} to one of them")
    return value


def check_finite(**named: object) -> FloatArray | IntArray:
    """A vector of finite numbers, integers as int64, others as float64; it is data, so that no value is quoted."""
    name, value = _only(named)
    array = np.asarray(value)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iuf":
        raise DataError(
            f"{name}: expected a non-empty one-dimensional array of numbers, got shape "
            f"{array.shape} and type {array.dtype}; pass one number per candidate."
        )
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise DataError(
                f"{name}: expected finite numbers, got NaN or infinity; clean the input before it meets a mechanism."
            )
        return array.astype(np.float64, copy=False)
    if array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
        raise DataError(f"{name}: expected integers below 2**63, got larger ones; rescale them.")
    return array.astype(np.int64, copy=False)


# What may be wrong with a table, as far as a message may say it: no cell of it, and no number of records, which may be
# private.
NOT_FINITE = "expected finite numbers, got NaN or infinity; fill in or drop missing values by a public rule first"
NOT_REAL = (
    "expected real numbers, got complex ones (Complex data not supported); pass real and imaginary parts as columns"
)
NOT_TWO_DIMENSIONS = (
    "expected a table with two dimensions, got another shape; Reshape your data with reshape(-1, 1) for one feature or "
    "reshape(1, -1) for one record"
)
NOT_ONE_COLUMN = "expected a 1d array, got an array of another shape; pass one target per record"
NO_COLUMNS = "Found array with 0 feature(s) (shape=(, 0)) while a minimum of 1 is required; pass a table with columns"
NO_RECORDS = "expected records, got none; pass a table with at least one"
DIFFERENT_LENGTHS = "expected one target per record, got X and y of different lengths; pass as many targets as records"

# What scikit-learn says of tables it cannot use, as far as it quotes neither cells nor numbers of records. Anything
# else is reworded.
_SAFE = re.compile(
    r"^(Found array with dim|X has \d+ features|The feature names should match"
    r"|Feature names|estimator: |.* requires y to be passed|Unknown label type"
    r"|Sparse data was passed|The number of classes has to be)"
)
_REWORDED = (
    (re.compile(r"contains? (NaN|infinity)|(value|int) too large", re.IGNORECASE), NOT_FINITE),
    (re.compile(r"Expected 2D array|Expected .* dim"), NOT_TWO_DIMENSIONS),
    (re.compile(r"Found array with 0 feature"), NO_COLUMNS),
    (re.compile(r"Found array with \d+ sample"), NO_RECORDS),
    (re.compile(r"Found input variables with inconsistent"), DIFFERENT_LENGTHS),
    (re.compile(r"y should be a 1d array"), NOT_ONE_COLUMN),
    (re.compile(r"Complex data not supported"), NOT_REAL),
)
NOT_NUMBERS = (
    "expected numbers, got text or objects; encode such columns as numbers with public categories first (the "
    "argument must be a string or a number)"
)


def without_data_values(name: str, call: Callable[[], T]) -> T:
    """The result of ``call``, with errors of numpy and scikit-learn reworded so that no value of the data is quoted.

    Only messages known to describe a table by its shape and names pass as they are. The new error is raised outside
    the handler, so that the original does not travel along as its context into logs.
    """
    try:
        return call()
    except (ValueError, TypeError, OverflowError) as error:
        if isinstance(error, TaciturnError):
            raise
        kind = DataTypeError if isinstance(error, TypeError) else DataError
        message = _described(name, str(error))
    raise kind(message)


def _described(name: str, original: str) -> str:
    if _SAFE.search(original):
        return original
    for pattern, sentence in _REWORDED:
        if pattern.search(original):
            return f"{name}: {sentence}."
    return f"{name}: {NOT_NUMBERS}."


# ---- The lattice of integer sums: its unit, and the sizes that 64 bits hold. ``data.design`` puts data on the lattice.

FRACTION_BITS = 16
"""A value within a bound b is stored as the integer nearest to ``2**16 * value / b``."""

ONE = 1 << FRACTION_BITS
"""The lattice image of the bound itself."""

_INT64 = 1 << 63


def sum_magnitude(n_rows: int, weight_bound: int) -> int:
    """The public bound on ``|sum_i r_i x_ij|``, refused where it could leave 64-bit integers."""
    magnitude = check_integer(0, n_rows=n_rows) * ONE * check_integer(1, weight_bound=weight_bound)
    if magnitude >= _INT64:
        # The number of rows may be private.
        expected = "a bound at which sums over all rows fit 64-bit integers"
        raise ParameterError("weight_bound", weight_bound, expected, "use a coarser weight scale")
    return magnitude
