"""What goes wrong, said in one sentence and without a value from the data."""

from __future__ import annotations

from collections.abc import Iterable


class TaciturnError(Exception):
    """Base of every error that taciturn raises on purpose."""


class ParameterError(TaciturnError, ValueError):
    """A public parameter is out of range.

    Parameters
    ----------
    parameter : str
        Name of the offending parameter.
    value : object
        What was given. Public by definition: never pass a value from the data here.
    expected : str
        What would have been accepted.
    remedy : str
        What to do about it, as an imperative.
    """

    def __init__(self, parameter: str, value: object, expected: str, remedy: str) -> None:
        super().__init__(f"{parameter}={value!r}: expected {expected}; {remedy}.")
        self._arguments = (parameter, value, expected, remedy)

    def __reduce__(self) -> tuple[type[ParameterError], tuple[str, object, str, str]]:
        # Exceptions cross process borders (joblib); the default would replay the message alone.
        return (type(self), self._arguments)


class DataError(TaciturnError, ValueError):
    """The data cannot be used as they are; the message describes them without quoting them."""


class DataTypeError(DataError, TypeError):
    """The data are of a type that cannot be used."""


class SeveralProblemsError(TaciturnError, ValueError):
    """Several things are wrong; the message has one sentence for each, on a line of its own.

    Parameters
    ----------
    errors : iterable of TaciturnError
        At least two of them.
    """

    def __init__(self, errors: Iterable[TaciturnError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))

    def __reduce__(self) -> tuple[type[SeveralProblemsError], tuple[tuple[TaciturnError, ...]]]:
        return (type(self), (self.errors,))


class CertificateError(TaciturnError, ValueError):
    """A certificate cannot be read, or certificates cannot be combined."""


class AccountError(TaciturnError, RuntimeError):
    """An account cannot be used: it is not there, it is damaged, or it is for other fits."""


class BudgetExceededError(AccountError):
    """A fit costs more than its account has left; nothing was spent."""


class StreamError(TaciturnError, RuntimeError):
    """A random stream would have been shared between two copies."""


class AccountWarning(UserWarning):
    """A ledger could not be told how a fit ended; what was reserved counts as spent."""


class WeakBudgetWarning(UserWarning):
    """Public facts say that a fit will be mostly noise."""


class WeakGuaranteeWarning(UserWarning):
    """Public facts say that a budget protects little: epsilon from 10 to 30, or delta of at least one over n."""


class DefaultBoundsWarning(UserWarning):
    """A fit clips to bounds that nobody stated: ``x_bound`` or ``y_bounds`` was not given."""


class SuspiciousReleaseWarning(UserWarning):
    """Released numbers say that bounds or classes do not fit the records; the budget is spent."""


class UnaccountedSearchWarning(UserWarning):
    """A search compares scores that are not private, and chooses by them."""
