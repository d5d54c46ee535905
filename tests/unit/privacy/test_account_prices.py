"""Prices are integers that are rounded up, totals are rounded down, and a password is never shown."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from taciturn import Account, AccountError, ParameterError
from taciturn.accounting import Budget
from taciturn.events import ApproximateEvent, GaussianEvent
from taciturn.privacy.account import open_account
from taciturn.privacy.gdp import gaussian_cost
from taciturn.privacy.ledger import Price, check_name, check_url, location_of, prices_of, sqlite_path, totals_of


@pytest.mark.parametrize("noise", [0.31, 1.0, 7.7, 37.7, 1234.5])
def test_gaussian_prices_are_above_what_they_cost(noise):
    event = GaussianEvent(noise)
    first, second = prices_of(event, Budget(30.0, 1e-2))
    squared, _ = gaussian_cost(event)
    exact = Fraction(1) / Fraction(noise) ** 2
    assert Fraction(first.gaussian, 10**15) > max(exact, Fraction(squared))
    assert Fraction(first.gaussian, 10**15) < exact * (1 + Fraction(1, 10**10)) + Fraction(1, 10**15)
    assert second.values == (0, 30 * 10**15, 10**16, 0)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (0.3, 1e-5), (1e-15, 0.1), (0.7, 3e-18), (0.1, 1.5e-18)])
def test_the_approximate_budget_is_charged_the_decimal_numbers_that_were_written(epsilon, delta):
    (price,) = prices_of(ApproximateEvent(epsilon / 2, delta / 2), Budget(epsilon, delta))
    assert price.epsilon == Decimal(repr(epsilon)) * 10**15
    assert price.delta == math.ceil(Decimal(repr(delta)) * 10**18)


def test_each_of_the_four_integers_is_compared():
    total = totals_of(3.0, 1e-5, (1.0, 1e-6))
    assert all(total.values)
    assert total.fits(total)
    for k in range(4):
        more = Price(*(value + (j == k) for j, value in enumerate(total.values)))
        assert not more.fits(total)


def test_urls_that_cannot_be_read_do_not_show_their_password():
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    for url in ("postgresql://me:secret%zz@127.0.0.1/db", "postgresql://127.0.0.1/db?password=secret%zz"):
        with pytest.raises(AccountError, match="a URL that cannot be read") as refused:
            Account.open(url, "people")
        assert "secret" not in str(refused.value)


def test_locations():
    assert location_of("sqlite:///study.db#patients-2026") == ("sqlite:///study.db", "patients-2026")
    assert str(sqlite_path("sqlite:////data/study.db")).endswith("study.db")
    assert sqlite_path("sqlite:///study.db").is_absolute()
    assert sqlite_path("postgresql://host/db") is None
    assert check_url("postgres+psycopg://host/db")
    assert open_account(None) is None
    assert open_account("sqlite:///study.db#a").name == "a"
    for wrong in ("sqlite:///", "sqlite:///:memory:", "sqlite://", "sqlite:///a?mode=ro", "mysql://h/d", 7, None):
        with pytest.raises(ParameterError, match="url="):
            check_url(wrong)
    for wrong in ("", " a", "a ", "a\n", "a\x00", "\ud800", "a" * 201, 7):
        with pytest.raises(ParameterError, match="name="):
            check_name(wrong)
    for wrong in ("sqlite:///study.db", "sqlite:///study.db#", "mysql://h/d#a", 7, b"sqlite:///study.db#a"):
        with pytest.raises(ParameterError, match="account="):
            open_account(wrong)
