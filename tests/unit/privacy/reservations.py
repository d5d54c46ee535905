"""What tests of ledgers share: an account's terms, a reservation, and programs of one thread."""

import subprocess
import sys

import pytest

from taciturn.accounting import Budget
from taciturn.events import PureEvent

FIT = (PureEvent(0.2), Budget(0.2, 0.0))
SMALL_FIT = (PureEvent(0.001), Budget(0.001, 0.0))
TERMS = {"epsilon": 3, "delta": 1e-5, "n": 10}

posix = pytest.mark.skipif(sys.platform == "win32", reason="forks, links and limits of POSIX")


def reserve(account, fit=FIT):
    return account.reserve(*fit, what="test", relation="zero-out", n=10)


def fail_after(*actions):
    for action in actions:
        action()
    raise ZeroDivisionError


def states(account):
    """What became of all reservations, in a ledger that is in order."""
    account.verify()
    return [charge.state for charge in account.history()]


def run_program(code, *arguments):
    """What a program of one thread prints."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
