"""The page docs/audit.md: every class of the catalogue and every mutant, audited, and every class replayed.

Writes the page and exits with 1 if a mutant escapes, a control is flagged, a sound class is, or a replay finds a
difference. Seeds are fixed, so that the same code gives the same page. ``--trials-factor`` multiplies the runs of the
catalogue, for a quick look that writes nothing; mutants are caught at their stated numbers.

What was found is kept in ``build/audit``, in a folder for the code that it was found with. So a killed run goes on
where it stopped, and the audit of other code begins anew.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import os
import pickle
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from sklearn.utils.parallel import Parallel, delayed

from taciturn.audit import AuditResult, Replay, SearchResult
from taciturn_research.attacks import ENTRIES, Entry, ExactCase, SampledCase
from taciturn_research.attacks.random_tables import HUGE, TINY
from taciturn_research.attacks.replays import LARGE, PERSON_REPLAYS, REPLAYS, replays_of
from taciturn_research.attacks.run import audit_entry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "audit.md"
FOUND = ROOT / "build" / "audit"
# What results depend on.
CODE = (
    "src",
    "research/src/taciturn_research/attacks",
    "tests/privacy",
    "docs/tables/audit.py",
    "requirements-test.lock",
)
EPSILON = 1.0
# All bounds of the first table hold together.
CONFIDENCE = 1.0 - 0.05 / len(ENTRIES)
LEAST_TRIALS = 100
# Pairs of neighbours for each setting of a class and each relation.
REPEATS = 5
REPLAY_CASES = (*REPLAYS, *PERSON_REPLAYS)

T = TypeVar("T")

INTRODUCTION = """\
# Audit

`taciturn.audit` has two tools that test the guarantees of this library. `audit` tests the noise: it runs a release many
times on two neighbouring data sets, looks for an event that distinguishes them, and bounds epsilon from below by the
frequencies of the event (Jagielski, Ullman and Oprea 2020). `replay` tests everything that is not noise: it forces the
outcomes of one fit on the neighbour and compares the rest. `make audit` writes this page. It runs both tools on every
public class, and attacks variants that are broken on purpose. `make test` does the same with fewer runs and smaller
tables.

Classes are audited by their public `fit`, from reading the table to the certificate. Where the page says *law*, the
probabilities of all outcomes are computed from the public numbers of the plan, and nothing is run.

**What an audit can show.** An audit can show that a claim is false. The event is chosen on one half of the runs and
counted on the other half, so the bound holds for any choice of the event. All bounds of the first table hold together
with a confidence of 95 %, and each bound of the second table by itself (whole fits: 99.9999 %). Where all outcomes are
enumerated, the bound is exact.

**What it cannot show.** An audit cannot show that a claim is true. "No violation found" is a statement about one pair
of data sets and one event. A certificate rests on a proof. The audit finds errors of the implementation that a proof
does not cover: noise of the wrong scale, a wrong count, a value that no budget covers.

The second table tests the audits themselves. It lists typical errors, of this code or of publications. Each is put into
the real code for the duration of its audit, and the audit must find it. For every class that adds noise there is one
more error: the samplers inside its fit draw a twentieth of the noise, while the certificate is unchanged. The audit of
that class must flag it.

`taciturn audit NAME --epsilon 1` of `taciturn-research` audits one class, `taciturn.audit.audit` a release of yours.
"""

CLASSES = """\
## What is sound

Claims are those of the certificate or of the event, at a budget of epsilon = {epsilon:g}. Routes:
*Clopper-Pearson* bounds the probabilities of an event. *Gaussian* bounds the parameter of a release that claims GDP
(Nasr et al. 2023), and is far more powerful if delta is small. *Exact* compares all outcomes. Entries called *order*
have a record that changes which column is first. They find noise that is far too small; the other entries find noise
that is slightly too small. If a budget is spread over many releases and few of them affect the result, an audit from
outside finds little.

| class | what is looked at | claimed ε | δ | found: at least | runs | route | verdict |
|---|---|---|---|---|---|---|---|
"""

MUTANTS = """\
## What is broken on purpose

The claim is that of the broken code itself; whole fits have a budget of 0.5 or 1. Searches look for the neighbours on
which a sum changes most, and compare the change with the declared sensitivity, here 1. The last column is the same
attack without the error: on the code as it is, or for printed algorithms (`taciturn.published`) on the corrected
algorithm.

| mutant | what is broken | claimed | found: at least | runs | how | without the mistake |
|---|---|---|---|---|---|---|
"""


REPLAYS_SECTION = """\
## What else leaves a fit

A fit that is private by composition is a chain of releases, and everything else in it is post-processing of their
outcomes. A replay fits a data set D and records every release: the mechanism with its parameters, the value
before noise, the outcome. Then it fits a neighbour and forces the same outcomes. Then:

* The releases and their parameters must be the same.
* Values before noise may differ by at most the declared sensitivity, integers without any tolerance.
* The certificate must cover the cost of all releases together.
* Only a release may draw from a random stream.
* Attributes, certificates, warnings, errors and their causes, printed text and log records must be the same to the bit.
  What cannot be compared counts as a difference.

A replay is a unit test of privacy. It works for your own code too, if that releases through `taciturn.mechanisms`:

```python
import numpy as np
from taciturn import SparseClassifier
from taciturn.audit import replay


class Careless(SparseClassifier):
    def fit(self, X, y):
        super().fit(X, y)
        self.accuracy_ = float(np.mean(self.predict(X) == y))  # no budget covers this
        return self


rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (200, 5))
y = (X[:, 0] > 0).astype(int)
without = y.copy()
without[3] = -1  # no class: the fourth record is a null record

data, neighbour = {{"X": X, "y": y}}, {{"X": X, "y": without}}
replay(SparseClassifier(x_bound=1.0, classes=(0, 1), n_nonzero=2), data, neighbour, relation="zero-out").raise_if_any()
print(replay(Careless(classes=(0, 1), n_nonzero=2), data, neighbour, relation="zero-out"))
```

```text
Replay of Careless (zero-out): 69 releases compared, 1 difference found.
- result: accuracy_ differs
```

[Limits](#limits) says what a replay does not see.

The code that draws a random secret, such as the block of a record, declares that the secret does not depend on the
data. The minimiser of a perturbed objective is forced like any other outcome. The solver then runs on the neighbour,
for the linear term that belongs to this minimiser, and its result may differ by as much as the output noise covers. If
the solver is inaccurate on the first of the two data sets only, the replay does not show it; swap the two.

The table summarises random neighbours under all three relations, dense and sparse, with {rows} records and
{columns} columns, cells of {tiny!r} and of {huge!r} among them; where a record is a [person](persons.md), all of its
rows are others. A share of 1 means that a neighbour attains the
declared sensitivity. A refusal depends on public settings only and is the same for both data sets.

| class | settings | pairs of neighbours | refused | releases compared | largest share of a sensitivity | differences |
|---|---|---|---|---|---|---|
"""

LIMITS = """\
## Limits

* An audit cannot show that a claim is true. It tries one pair of data sets and one event for each entry.
* If a budget is spread over many releases and few of them affect the result, an audit from outside finds little: a
  lower bound of 0 says nothing.
* A replay does not see whether a mechanism adds the noise that its parameters state (the audits above test that), nor
  random numbers that do not come from `taciturn.core.rng.Stream`.
* It does not see other threads and processes, files, globals, output that bypasses `sys.stdout` and `sys.stderr`, or
  the time and memory of a fit.
* Settings and pairs of neighbours that were not tried are not covered.
"""


def rounded_down(number: float) -> str:
    """Three digits, never more than the number: a lower bound that is rounded up is none."""
    if number <= 0.0 or math.isinf(number):
        return "∞" if number > 0.0 else "0"
    step = 10.0 ** (math.floor(math.log10(number)) - 2)
    return f"{math.floor(number / step) * step:.3g}"


# ------------------------------------------------------------------ what a killed run has found


def digest_of_code(root: Path = ROOT) -> str:
    """A name for the code that results depend on."""
    digest = hashlib.sha256()
    for place in CODE:
        top = root / place
        for path in [top] if top.is_file() else sorted(top.rglob("*.py")):
            digest.update(f"{path.relative_to(root).as_posix()}\n{path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def kept(folder: Path, find: Callable[..., T], place: int, *settings: Any) -> T:
    """What ``find`` gives for a place of its table: as it was kept in the folder, or found now and kept."""
    path = folder / f"{find.__name__}-{place}.pickle"
    if path.exists():
        before: T = pickle.loads(path.read_bytes())
        return before
    found = find(place, *settings)
    folder.mkdir(parents=True, exist_ok=True)
    # A run that is killed while it writes leaves no file of that name.
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(found))
    part.replace(path)
    return found


# ------------------------------------------------------------------ classes


def audited(place: int, n_jobs: int, factor: float) -> AuditResult:
    """The audit of an entry, with more runs or fewer."""
    return audit_entry(scaled(ENTRIES[place], factor), EPSILON, confidence=CONFIDENCE, n_jobs=n_jobs)


def scaled(entry: Entry, factor: float) -> Entry:
    """The entry with more runs, or fewer."""

    def case(epsilon: float) -> SampledCase | ExactCase:
        made = entry.case(epsilon)
        if not isinstance(made, SampledCase):
            return made
        return replace(made, trials=max(LEAST_TRIALS, round(factor * made.trials)))

    return replace(entry, case=case)


def class_row(entry: Entry, result: AuditResult) -> str:
    """One line of the first table."""
    cells = (
        f"`{entry.name}`",
        entry.summary,
        f"{result.claimed:.4g}",
        f"{result.delta:g}",
        rounded_down(result.lower_bound),
        f"{result.trials:,}" if result.trials else "all outcomes",
        result.route,
        result.verdict,
    )
    return f"| {' | '.join(cells)} |"


# ------------------------------------------------------------------ mutants


def mutants() -> Any:
    """The registry, which lives beside the tests and is no part of the package."""
    here = str(ROOT / "tests" / "privacy")
    if here not in sys.path:
        sys.path.insert(0, here)
    return import_module("mutants")


def tried(place: int) -> tuple[Any, Any]:
    """What is found with and without a mistake; patches last for the attack, in this process alone."""
    mutant = mutants().MUTANTS[place]
    return mutant.caught(), mutant.spared()


def mutant_row(mutant: Any, result: Any, control: Any) -> str:
    """One line of the second table."""
    searched = isinstance(result, SearchResult)
    claimed, found = (1.0, result.ratio) if searched else (result.claimed, result.lower_bound)
    runs = "" if searched else f"{result.trials:,}" if result.trials else "all outcomes"
    cells = (
        mutant.name,
        mutant.breaks,
        f"{claimed:.4g}",
        rounded_down(found),
        runs,
        "search" if searched else result.route,
        rounded_down(control.ratio if searched else control.lower_bound),
    )
    return f"| {' | '.join(cells)} |"


# ------------------------------------------------------------------ replays


def replayed(place: int) -> list[Replay]:
    """All replays of one case."""
    return list(replays_of(REPLAY_CASES[place], LARGE, repeats=REPEATS, seed=0))


def replay_rows(found: list[list[Replay]]) -> list[str]:
    """One line of the third table for each class."""
    rows = []
    for name, persons in dict.fromkeys((case.name, case.persons) for case in REPLAY_CASES):
        cases = zip(REPLAY_CASES, found, strict=True)
        own = [replays for case, replays in cases if (case.name, case.persons) == (name, persons)]
        flat = [each for replays in own for each in replays]
        cells = (
            f"`{name}`, persons of 1 to 9 rows" if persons else f"`{name}`",
            str(len(own)),
            str(len(flat)),
            str(sum(each.error is not None for each in flat)),
            f"{sum(len(each.releases) for each in flat):,}",
            f"{max(each.largest_share for each in flat):.6f}",
            str(sum(len(each.differences) for each in flat)),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


# ------------------------------------------------------------------ the page


def main(arguments: list[str]) -> int:
    """Audit everything, write the page, and say what went wrong."""
    parser = argparse.ArgumentParser(description="Audit every class and every mutant, and write docs/audit.md.")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes (default: 1)")
    parser.add_argument("--trials-factor", type=float, default=1.0, help="on runs; only 1 writes the page")
    options = parser.parse_args(arguments)
    wrong, classes, broken = [], [], []
    factor, jobs = options.trials_factor, options.jobs
    folder = FOUND / f"{digest_of_code()}-{factor:g}"

    def in_workers(find: Callable[[int], Any], n_places: int) -> Any:
        return Parallel(n_jobs=jobs, return_as="generator")(delayed(kept)(folder, find, i) for i in range(n_places))

    for place, entry in enumerate(ENTRIES):
        result = kept(folder, audited, place, jobs, factor)
        classes.append(class_row(entry, result))
        say(f"{place + 1}/{len(ENTRIES)} {entry.name}", result.verdict, result.claimed, result.lower_bound)
        if result.verdict == "violated":
            wrong.append(f"{entry.name} is flagged")
    registry = mutants()
    pairs = in_workers(tried, len(registry.MUTANTS))
    for mutant, (result, control) in zip(registry.MUTANTS, pairs, strict=True):
        broken.append(mutant_row(mutant, result, control))
        say(f"mutant: {mutant.name}", result.verdict, *registry.claim_and_finding(result))
        if not registry.is_flagged(result):
            wrong.append(f"the mutant {mutant.name!r} escaped")
        if registry.is_flagged(control):
            wrong.append(f"the control of the mutant {mutant.name!r} is flagged")
    replays = list(in_workers(replayed, len(REPLAY_CASES)))
    wrong += [str(each) for case in replays for each in case if each.differences]
    print(f"{sum(len(case) for case in replays)} replays", flush=True)
    sizes = {"rows": _listed(LARGE.rows), "columns": _listed(LARGE.columns), "tiny": TINY, "huge": HUGE}
    tables = (
        CLASSES.format(epsilon=EPSILON) + "\n".join(classes),
        MUTANTS + "\n".join(broken),
        REPLAYS_SECTION.format(**sizes) + "\n".join(replay_rows(replays)),
    )
    if factor == 1.0:
        PAGE.write_text("\n".join((INTRODUCTION, *(f"{table}\n" for table in tables), LIMITS)), encoding="utf-8")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


def _listed(numbers: tuple[int, ...]) -> str:
    return f"{', '.join(str(number) for number in numbers[:-1])} or {numbers[-1]}"


def say(what: str, verdict: str, claimed: float, found: float) -> None:
    """A line of progress."""
    print(f"{what}: {verdict} (claimed {claimed:.4g}, found {rounded_down(found)})", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
