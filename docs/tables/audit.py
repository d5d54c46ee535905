"""The page docs/audit.md: every class of the catalogue and every mutant, audited, and every class replayed.

Writes the page, and every result to ``research/src/taciturn_research/attacks/results.md``. Writes neither, and exits
with 1, if a mutant escapes, a control is flagged, a sound class is, or a replay finds a difference. Seeds are fixed, so
that the same code gives the same page. ``--trials-factor`` multiplies the runs of the catalogue, for a quick look that
writes nothing; mutants are caught at their stated numbers.

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
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from sklearn.utils.parallel import Parallel, delayed

from taciturn import __version__
from taciturn.audit import AuditResult, Replay, SearchResult
from taciturn_research.attacks import ENTRIES, Entry, ExactCase, SampledCase
from taciturn_research.attacks.random_tables import HUGE, TINY
from taciturn_research.attacks.replays import LARGE, PERSON_REPLAYS, REPLAYS, replays_of
from taciturn_research.attacks.run import audit_entry

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "audit.md"
RESULTS = ROOT / "research" / "src" / "taciturn_research" / "attacks" / "results.md"
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
# Audit: privacy tested by attacks and replays

{conclusion}

`taciturn.audit` has two tools:

* `audit` tests the noise. It runs a release many times on two neighbouring data sets, looks for an event that
  distinguishes them, and bounds epsilon from below by the frequencies of the event (Jagielski, Ullman and Oprea 2020).
* `replay` tests everything that is not noise. It forces the outcomes of one fit on the neighbour and compares the rest.

`make audit` runs both on every public class, from reading the table to the certificate, attacks variants that are
broken on purpose, and writes this page; `make test` does the same with fewer runs and smaller tables. The numbers here
are those of taciturn {version}. `taciturn_research/attacks/results.md` has every result. `taciturn audit NAME
--epsilon 1` of `taciturn-research` audits one class, `taciturn.audit.audit` a release of yours.

**What an audit can and cannot show.** An audit can show that a claim is false. It cannot show that a claim is true: "no
violation found" is about one pair of data sets and one event. A certificate rests on a proof. The audit finds errors of
the implementation that a proof does not cover: noise of the wrong scale, a wrong count, a value that no budget covers.

## Lower bounds on epsilon, class by class

The event is chosen on one half of the runs and counted on the other half, so the bound holds for any choice of the
event. All bounds hold together with a confidence of 95 %; an audit that enumerates all outcomes is exact. *Largest
found* is the largest share of its claim that an audit of the class found: near 1 the attack is tight, and 0 shows
nothing. If a budget is spread over many releases and few of them affect the result, an audit from outside finds little.

| class | audits | runs | audits that enumerate | largest found | of claimed |
|---|---:|---:|---:|---:|---:|
"""

MUTANTS = """\
## Broken variants that the audit has to catch { #what-is-broken-on-purpose }

The audits are audited: typical errors, of this code or of publications, are put into the real code for the duration of
an audit. The last column is the same attack without the error: on the code as it is, or for printed algorithms
(`taciturn.published`) on the corrected algorithm. Each bound holds by itself with a confidence of 95 %, that of a whole
fit with 99.9999 %. *Clopper-Pearson* bounds the probabilities of an event, *Gaussian* the parameter of a release that
claims GDP (Nasr et al. 2023), *exact* compares all outcomes. A *search* looks for the neighbours on which a sum changes
most, and compares the change with the declared sensitivity, here 1.

| what is broken | claimed | found: at least | runs | how | without the error |
|---|---|---|---|---|---|
"""

KINDS = """\
Cebere et al. (2026) found 13 violations of privacy in 12 libraries by replays. The variants above, by kinds of bugs
that libraries have:

| kind of bug | mutants |
|---|---|
"""

REPLAYS_SECTION = """\
## Replays: what leaves a fit besides its noisy releases {{ #what-else-leaves-a-fit }}

A fit that is private by composition is a chain of releases, and everything else in it is post-processing of their
outcomes. A replay fits a data set D and records every release: the mechanism with its parameters, the value
before noise, the outcome. Then it fits a neighbour and forces the same outcomes. Then:

* The releases and their parameters must be the same.
* Values before noise may differ by at most the declared sensitivity, integers without any tolerance.
* The certificate must cover the cost of all releases together.
* Only a release may draw from a random stream.
* Attributes, certificates, warnings, errors and their causes, printed text and log records must be the same to the bit.
  What cannot be compared counts as a difference.
* A fit that fails is a difference, even if both fail alike: nothing behind the failure was compared. The same refusal
  of taciturn (type and text) on both sides is none. `not_compared` then lists what the replay left out.

[dp-recorder](https://github.com/ObliviousAI/dp-recorder) (Cebere et al. 2026) has the same idea for any library: it
records a run on one table, replays it on a neighbour with the outcomes frozen, and compares sensitivities and control
flow at primitives that its user marks. It also samples primitives that are not trusted, which `replay` leaves to
`audit`.

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

The code that draws a random secret, such as the block of a record, declares that the secret does not depend on the
data. The minimiser of a perturbed objective is forced like any other outcome. The solver then runs on the neighbour,
for the linear term that belongs to this minimiser, and its result may differ by as much as the output noise covers. If
the solver is inaccurate on the first of the two data sets only, the replay does not show it; swap the two.

The table summarises random neighbours under all three relations, dense and sparse, with {rows} records and
{columns} columns, cells of {tiny!r} and of {huge!r} among them. Where a class takes [persons](persons.md), it is
replayed with persons of 1 to 9 rows too. A share of 1 means that a neighbour attains the declared sensitivity. A
refusal depends on public settings only and is the same for both data sets.

<details markdown="1">
<summary>Replays, class by class</summary>

| class | pairs of neighbours | refused | releases compared | largest share of a sensitivity | differences |
|---|---:|---:|---:|---:|---:|
"""

LIMITS = """\
## References

* M. Jagielski, J. Ullman, A. Oprea. *Auditing differentially private machine learning.* NeurIPS 2020.
* M. Nasr et al. *Tight auditing of differentially private machine learning.* USENIX Security 2023.
* T. Cebere, D. Erb, D. Desfontaines, A. Bellet, J. Fitzsimons. *Privacy in theory, bugs in practice: grey-box auditing
  of differential privacy libraries.* PETS 2026, arXiv:2602.17454.

## Limits

* An audit cannot show that a claim is true. It tries one pair of data sets and one event for each entry, and settings
  that were not tried are not covered.
* A replay does not see whether a mechanism adds the noise that its parameters state (the audits above test that), nor
  noise that two releases share, nor random numbers that do not come from `taciturn.core.rng.Stream`.
* It does not see other threads and processes, files, globals, output that bypasses `sys.stdout` and `sys.stderr`, or
  the time and memory of a fit.
"""

ALL_CLASSES = """\
# Every audit, every broken variant, every replay

`make audit` writes this file with `docs/audit.md`, which explains and summarises it. The code is taciturn {version}.

## Audits

Claims are those of the certificate or of the event, at a budget of epsilon = {epsilon:g}. *Law*: the probabilities of
all outcomes are computed from the public numbers of the plan, and nothing is run. Entries called *order* have a record
that changes which column is first; they find noise that is far too small, the others noise that is slightly too small.
Routes: *Clopper-Pearson* bounds the probabilities of an event, *Gaussian* the parameter of a release that claims GDP
(Nasr et al. 2023), *exact* compares all outcomes.

| class | what is looked at | claimed ε | δ | found: at least | runs | route | verdict |
|---|---|---|---|---|---|---|---|
"""

ALL_MUTANTS = """\
## Broken variants

| mutant | what is broken | claimed | found: at least | runs | how | without the error |
|---|---|---|---|---|---|---|
"""

ALL_REPLAYS = """\
## Replays

| class | settings | pairs of neighbours | refused | releases compared | largest share of a sensitivity | differences |
|---|---|---|---|---|---|---|
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


def summary_rows(results: Sequence[tuple[Entry, AuditResult]]) -> list[str]:
    """One line of the page for each class: its audits, and the one that found the largest share of its claim."""
    rows = []
    for subject in dict.fromkeys(entry.subject for entry, _ in results):
        own = [result for entry, result in results if entry.subject == subject]
        largest = max(own, key=lambda result: (result.lower_bound / (result.claimed or 1.0), result.claimed))
        runs = sum(result.trials or 0 for result in own)
        exact = sum(not result.trials for result in own)
        cells = (
            f"`{subject}`",
            str(len(own)),
            f"{runs:,}",
            str(exact),
            rounded_down(largest.lower_bound),
            f"{largest.claimed:.4g}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


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
    """One line of the table of mutants."""
    return f"| {mutant.name} | {mutant.breaks} | {' | '.join(findings(result, control))} |"


def findings(result: Any, control: Any) -> tuple[str, ...]:
    """Claimed, found, runs, how, and what is found without the error."""
    searched = isinstance(result, SearchResult)
    claimed, found = (1.0, result.ratio) if searched else (result.claimed, result.lower_bound)
    runs = "" if searched else f"{result.trials:,}" if result.trials else "all outcomes"
    return (
        f"{claimed:.4g}",
        rounded_down(found),
        runs,
        "search" if searched else result.route,
        rounded_down(control.ratio if searched else control.lower_bound),
    )


GROUP = ": "
"""Mutants of one kind in several classes have names such as ``a twentieth of the noise: SparseRegressor``."""


def mutant_summary(rows: Sequence[str]) -> list[str]:
    """The lines of the page: those of the full table, with one line for mutants that differ in their class alone."""
    lines, groups = [], {}
    for row in rows:
        name, breaks, claimed, found, runs, how, control = (cell.strip() for cell in row.strip("| ").split(" | "))
        if GROUP in name:
            groups.setdefault(name.partition(GROUP)[0], []).append((claimed, found, runs, control))
        else:
            lines.append(f"| **{name}**: {breaks} | {claimed} | {found} | {runs} | {how} | {control} |")
    for name, found in groups.items():
        claims = " or ".join(sorted({claimed for claimed, *_ in found}))
        least = min(float(each[1]) / float(each[0]) for each in found)
        most = max(float(control) / float(claimed) for claimed, _, _, control in found)
        runs = "{} to {}".format(*_ends(found, 2))
        lines.append(
            f"| **{name}**, in {len(found)} whole fits by turns | {claims} "
            f"| {rounded_down(least)} times the claim | {runs} | audit | {rounded_down(most)} |"
        )
    return lines


def _ends(found: Iterable[tuple[str, ...]], place: int) -> tuple[str, str]:
    numbers = sorted({int(each[place].replace(",", "")) for each in found})
    return f"{numbers[0]:,}", f"{numbers[-1]:,}"


# ------------------------------------------------------------------ replays


def replayed(place: int) -> list[Replay]:
    """All replays of one case."""
    return list(replays_of(REPLAY_CASES[place], LARGE, repeats=REPEATS, seed=0))


@dataclass(frozen=True, slots=True)
class Replayed:
    """The replays of a class, with persons or without."""

    name: str
    persons: bool
    settings: int
    pairs: int
    refused: int
    releases: int
    share: float
    differences: int


def counted(found: list[list[Replay]]) -> list[Replayed]:
    """The replays of each class."""
    counts = []
    for name, persons in dict.fromkeys((case.name, case.persons) for case in REPLAY_CASES):
        cases = zip(REPLAY_CASES, found, strict=True)
        own = [replays for case, replays in cases if (case.name, case.persons) == (name, persons)]
        flat = [each for replays in own for each in replays]
        counts.append(
            Replayed(
                name,
                persons,
                len(own),
                len(flat),
                sum(each.error is not None for each in flat),
                sum(len(each.releases) for each in flat),
                max(each.largest_share for each in flat),
                sum(len(each.differences) for each in flat),
            )
        )
    return counts


def replay_rows(counts: Iterable[Replayed]) -> list[str]:
    """The lines of the full table."""
    return [
        f"| `{each.name}`{', persons of 1 to 9 rows' if each.persons else ''} | {each.settings} | {each.pairs} "
        f"| {each.refused} | {each.releases:,} | {each.share:.6f} | {each.differences} |"
        for each in counts
    ]


def replay_summary(counts: Sequence[Replayed]) -> list[str]:
    """The lines of the page: one for each class, persons included."""
    rows = []
    for name in dict.fromkeys(each.name for each in counts):
        own = [each for each in counts if each.name == name]
        pairs, refused, releases, differences = (
            sum(getattr(each, what) for each in own) for what in ("pairs", "refused", "releases", "differences")
        )
        share = max(each.share for each in own)
        rows.append(f"| `{name}` | {pairs} | {refused} | {releases:,} | {share:.6f} | {differences} |")
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
        classes.append((entry, result))
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
    counts = counted(replays)
    print(f"{sum(each.pairs for each in counts)} replays", flush=True)
    if factor == 1.0 and not wrong:
        page, results = pages(classes, broken, counts, registry.KINDS, __version__)
        PAGE.write_text(page, encoding="utf-8")
        RESULTS.write_text(results, encoding="utf-8")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


def pages(
    classes: Sequence[tuple[Entry, AuditResult]],
    broken: Sequence[str],
    counts: Sequence[Replayed],
    kinds: dict[str, tuple[str, ...]],
    version: str,
) -> tuple[str, str]:
    """The page, and the file with every result; nothing of it is wrong, or the page would not be written."""
    subjects = len({entry.subject for entry, _ in classes})
    conclusion = (
        f"{len(classes)} audits of {subjects} classes and functions refute no claim, each of {len(broken)} broken "
        f"variants is caught, and {sum(each.pairs for each in counts):,} replays on neighbouring tables find no "
        "difference."
    )
    sizes = {"rows": _listed(LARGE.rows), "columns": _listed(LARGE.columns), "tiny": TINY, "huge": HUGE}
    named = [f"| {kind} | {', '.join(names)} |" for kind, names in kinds.items()]
    page = (
        INTRODUCTION.format(conclusion=textwrap.fill(conclusion, 120), version=version)
        + "\n".join(summary_rows(classes)),
        MUTANTS + "\n".join(mutant_summary(broken)),
        KINDS + "\n".join(named),
        REPLAYS_SECTION.format(**sizes) + "\n".join(replay_summary(counts)) + "\n\n</details>",
        LIMITS,
    )
    results = (
        ALL_CLASSES.format(version=version, epsilon=EPSILON) + "\n".join(class_row(*each) for each in classes),
        ALL_MUTANTS + "\n".join(broken),
        ALL_REPLAYS + "\n".join(replay_rows(counts)) + "\n",
    )
    return "\n\n".join(page), "\n\n".join(results)


def _listed(numbers: tuple[int, ...]) -> str:
    return f"{', '.join(str(number) for number in numbers[:-1])} or {numbers[-1]}"


def say(what: str, verdict: str, claimed: float, found: float) -> None:
    """A line of progress."""
    print(f"{what}: {verdict} (claimed {claimed:.4g}, found {rounded_down(found)})", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
