"""A torturer of ledgers: eight processes that reserve and draw, ``kill -9`` at random moments, and a witness.

The witness is a file that knows nothing of ledgers. When a fit would draw its noise, after ``reserve``
has returned, a line with the exact price is appended to it. When all processes have ended, the ledger is judged: what
was drawn is at most what is recorded, which is at most the total, in each of the four integers; nothing that was drawn
is given back; the chain is intact.

This is a program, since processes are forked by the hundred and a test's own process has threads:
:func:`torture` starts it and returns its verdict.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from taciturn import Account
from taciturn.accounting import Budget
from taciturn.core.errors import AccountError, BudgetExceededError
from taciturn.events import ApproximateEvent, Event, GaussianEvent, PureEvent
from taciturn.privacy.account import charges_of
from taciturn.privacy.ledger import Price, prices_of

__all__ = [
    "PROCESSES",
    "WORKLOADS",
    "Verdict",
    "Witness",
    "Workload",
    "fork",
    "judge",
    "kill_at_random",
    "main",
    "order_of",
    "run_program",
    "torture",
    "torture_each",
]

PROCESSES = 8
# Nothing here takes a minute, and a program that hangs should say so.
_LONGEST_ROUND = 240.0
# Of one process: all together want more than any account can pay for, and a ledger without an end comes to one.
_MOST_FITS = 25


@dataclass(frozen=True)
class Workload:
    """What is fitted, of an account with these terms; of each kind of fit the account can pay one price alone."""

    terms: dict[str, Any]
    kinds: tuple[tuple[Event, Budget], ...]
    first: tuple[Event, Budget] | None = None

    def open(self, ledger: type[Account], url: str, name: str) -> Account:
        """A new account."""
        account = ledger.create(url, name, n=100, **self.terms)
        if self.first is not None:
            Account(url, name).reserve(*self.first, what="0", relation="zero-out", n=10)
        return account

    def price(self, kind: tuple[Event, Budget], total: Price) -> Price:
        """The only one that fits."""
        (price,) = (each for each in prices_of(*kind) if each.fits(total))
        return price


_THREE_PRICES = (
    (GaussianEvent(37.7), Budget(0.5, 1e-6)),
    (GaussianEvent(29.3), Budget(0.6, 1e-6)),
    (ApproximateEvent(0.01, 1e-8), Budget(0.013, 1e-7)),
)

WORKLOADS = {
    # About sixty fits from both budgets, and about a dozen.
    "both budgets": Workload({"epsilon": 1.0, "delta": 1e-5, "approximate": (0.2, 2e-6)}, _THREE_PRICES),
    "few fits": Workload({"epsilon": 0.4, "delta": 1e-5, "approximate": (0.04, 4e-7)}, _THREE_PRICES),
    # A total of 29 and twenty units of 1e-15; a fit takes one of them, less than half the gap between doubles there.
    "last units": Workload(
        {"epsilon": 30.0, "delta": 0.0, "approximate": (29.00000000000002, 0.0)},
        ((PureEvent(5e-16), Budget(1e-15, 0.0)),),
        first=(PureEvent(28.0), Budget(29.0, 0.0)),
    ),
}


class Witness:
    """A file with a line for everything that was drawn."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._path = path

    def see(self, head: str | None, price: Price) -> None:
        """Noise is drawn here."""
        os.write(self._file, f"{head or '-'} {' '.join(map(str, price.values))}\n".encode())
        os.fsync(self._file)

    def lines(self) -> list[tuple[str, Price]]:
        """All that was drawn."""
        split = (line.split() for line in self._path.read_text().splitlines())
        return [(head, Price(*map(int, numbers))) for head, *numbers in split]


class _FailedError(Exception):
    pass


def work(account: Account, kinds: dict[tuple[Event, Budget], Price], witness: Witness, *, patient: bool) -> None:
    """Fit until nothing can be paid for. The patient try again where the ledger cannot be used."""
    rng, left = random.Random(os.getpid()), list(kinds)
    for _ in range(_MOST_FITS):
        if not left:
            return
        kind = rng.choice(left)
        try:
            # The process, for ledgers that believe in the dead.
            reservation = account.reserve(*kind, what=str(os.getpid()), relation="zero-out", n=10)
        except BudgetExceededError:
            left.remove(kind)
            continue
        except AccountError:
            if not patient:
                raise
            time.sleep(0.05)
            continue
        try:
            with reservation:
                if rng.random() < 0.15:
                    raise _FailedError
                reservation.begin()
                time.sleep(rng.uniform(0.0, 0.002))
                witness.see(reservation.head, kinds[kind])
                time.sleep(rng.uniform(0.0, 0.004))
                if rng.random() < 0.1:
                    raise _FailedError
        except _FailedError:
            pass


def fork(task: Callable[[], None]) -> int:
    """The number of a new process that does the task and ends."""
    process = os.fork()
    if process:
        return process
    try:
        task()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def kill_at_random(
    task: Callable[[], None], kills: int, pause: float, crash: dict[str, Any] | None = None
) -> tuple[int, int]:
    """Let eight processes do a task until each has ended by itself; meanwhile kill some, which others replace.

    With an order to do so, a server crashes instead. Returns how many were killed, and how many failed.
    """
    rng, end = random.Random(time.time_ns()), time.monotonic() + _LONGEST_ROUND
    running = {fork(task) for _ in range(PROCESSES)}
    killed = failed = 0
    while running and time.monotonic() < end:
        time.sleep(rng.uniform(0.0, 2.0 * pause))
        if killed < kills and crash is not None:
            subprocess.run(**crash, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            killed += 1
        elif killed < kills:
            os.kill(rng.choice(sorted(running)), signal.SIGKILL)
        for process in sorted(running):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                running.remove(process)
                code = os.waitstatus_to_exitcode(status)
                if code == -signal.SIGKILL:
                    killed += 1
                    running.add(fork(task))
                elif code:
                    failed += 1
    for process in running:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return killed, failed + len(running)


@dataclass
class Verdict:
    """What became of a ledger: nothing is wrong with a good one."""

    kills: int = 0
    rounds: int = 0
    drawn: int = 0
    given_back: int = 0
    orphans: int = 0
    faults: list[str] = field(default_factory=list)
    complaints: str = ""


def judge(account: Account, witness: Witness, verdict: Verdict) -> None:
    """Compare what a ledger says with what the witness saw, and add what is wrong to the verdict."""
    # As they stand, since a history is only told of a ledger that is in order.
    lines, entries = witness.lines(), Account(account.url, account.name).entries()
    charges, total = charges_of(entries), entries[0].price.values
    recorded = [sum(each) for each in zip(*(c.price.values for c in charges if c.state != "released"), strict=True)]
    drawn = [sum(each) for each in zip(*(price.values for _, price in lines), strict=True)]
    if any(mine > its for mine, its in zip(drawn, recorded or [0] * 4, strict=False)):
        verdict.faults.append("more was drawn than is recorded")
    if any(mine > its for mine, its in zip(recorded, total, strict=False)):
        verdict.faults.append("more is recorded than there was")
    by_head = {charge.head: charge for charge in charges}
    for head, price in lines:
        if head != "-" and (head not in by_head or by_head[head].price != price):
            verdict.faults.append("a draw is not recorded at its price")
        elif head != "-" and by_head[head].state == "released":
            verdict.faults.append("a draw was given back")
    try:
        Account(account.url, account.name).verify()
    except AccountError as error:
        verdict.faults.append(str(error))
    verdict.drawn += len(lines)
    verdict.given_back += sum(charge.state == "released" for charge in charges)
    verdict.orphans += sum(charge.state == "reserved" for charge in charges)


def play(order: dict[str, Any]) -> Verdict:
    """Rounds with a new account each, until there were enough rounds and kills, or something is wrong."""
    from broken_ledgers import LEDGERS

    workload, verdict = WORKLOADS[order["workload"]], Verdict()
    while (verdict.kills < order["kills"] or verdict.rounds < order["rounds"]) and not verdict.faults:
        verdict.rounds += 1
        account = workload.open(LEDGERS[order["ledger"]], order["url"], f"{order['name']}-{verdict.rounds}")
        witness = Witness(Path(order["folder"]) / f"{account.name}.drawn")
        total = account.state().total
        kinds = {kind: workload.price(kind, total) for kind in workload.kinds}
        killed, failed = kill_at_random(
            lambda account=account, kinds=kinds, witness=witness: work(
                account, kinds, witness, patient=order["crash"] is not None
            ),
            order["kills_each"],
            order["pause"],
            order["crash"],
        )
        verdict.kills += killed
        if failed:
            verdict.faults.append(f"{failed} processes failed, or did not end")
        judge(account, witness, verdict)
    return verdict


def order_of(
    url: str,
    folder: Path,
    *,
    ledger: str = "account",
    workload: str = "both budgets",
    kills: int = 0,
    rounds: int = 1,
    kills_each: int = 20,
    pause: float = 0.01,
    crash: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """An order for so many rounds and kills, ``kills_each`` a round, ``pause`` seconds apart on average.

    With ``crash``, an order for ``subprocess.run``, a server is killed instead of processes.
    """
    return locals() | {"folder": str(folder), "name": f"{ledger} {workload} {os.urandom(4).hex()}"}


def torture(url: str, folder: Path, **order: Any) -> Verdict:
    """The verdict on a ledger, see :func:`order_of`."""
    return torture_each([order_of(url, folder, **order)])[0]


def torture_each(orders: list[dict[str, Any]]) -> list[Verdict]:
    """The verdicts on several ledgers, one after the other."""
    return [Verdict(**each) for each in run_program(Path(__file__), orders)]


def run_program(program: Path, orders: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a program of this folder prints, given orders; it has one thread."""
    done = subprocess.run(
        [sys.executable, str(program), json.dumps(orders)],
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    said: list[dict[str, Any]] = json.loads(done.stdout)
    return [each | {"complaints": done.stderr[-2000:]} for each in said]


def main(play: Callable[[dict[str, Any]], Verdict]) -> None:
    """Print the verdicts on the orders of the command line."""
    sys.stdout.write(json.dumps([asdict(play(order)) for order in json.loads(sys.argv[1])]))


if __name__ == "__main__":
    main(play)
