"""A killed run of the audits goes on where it stopped, and code that has changed is audited anew."""

import importlib.util
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from taciturn_research.attacks import find_entries
from taciturn_research.attacks.run import audit_entry

SCRIPT = Path(__file__).parents[3] / "docs" / "tables" / "audit.py"
LAWS = [find_entries(name)[0] for name in ("ExponentialMechanism", "TwoSidedGeometric")]
NAMES = [*(entry.name for entry in LAWS), "a", "b"]


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("audits", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    sys.modules["audits"] = script  # workers look functions up
    spec.loader.exec_module(script)
    yield script
    del sys.modules["audits"]


@pytest.fixture
def audits(script, monkeypatch, tmp_path):
    """The script with two entries and two mutants; ``made`` lists what was computed, and ``stops`` what ends a run."""
    found = [audit_entry(entry) for entry in LAWS]

    def note(what):
        if script.stops == what:
            raise KeyboardInterrupt
        script.made.append(what)

    def audited(place, n_jobs, factor):
        note(NAMES[place])
        return found[place]

    def tried(place):
        note(NAMES[len(LAWS) + place])
        return found[1], found[0]

    registry = SimpleNamespace(
        MUTANTS=[SimpleNamespace(name=name, breaks="nothing") for name in "ab"],
        KINDS={"of no kind": ("a", "b")},
        claim_and_finding=lambda result: (result.claimed, result.lower_bound),
        is_flagged=lambda result: result.name == found[1].name,
    )
    for name, value in {
        "ENTRIES": LAWS, "PAGE": tmp_path / "audit.md", "RESULTS": tmp_path / "results.md",
        "FOUND": tmp_path / "found", "REPLAY_CASES": (),
        "audited": audited, "tried": tried, "mutants": lambda: registry, "made": [], "stops": None,
    }.items():  # fmt: skip
        monkeypatch.setattr(script, name, value, raising=False)
    return script


@pytest.mark.parametrize("place", range(len(NAMES)))
def test_a_killed_run_goes_on_where_it_stopped(audits, place):
    assert audits.main([]) == 0
    assert audits.made == NAMES
    page = audits.PAGE.read_text(encoding="utf-8")
    shutil.rmtree(audits.FOUND)
    audits.PAGE.unlink()
    audits.made, audits.stops = [], NAMES[place]
    with pytest.raises(KeyboardInterrupt):
        audits.main([])
    assert audits.made == NAMES[:place]
    assert not audits.PAGE.exists()
    audits.stops = None
    assert audits.main([]) == 0
    assert audits.made == NAMES
    assert audits.PAGE.read_text(encoding="utf-8") == page


@pytest.mark.parametrize("path", ["src/a/b.py", "research/src/taciturn_research/attacks/c.py", "tests/privacy/d.py"])
def test_other_code_is_audited_anew(audits, path, tmp_path, monkeypatch):
    root = tmp_path / "root"
    for place in audits.CODE:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
    for place in ("docs/tables/audit.py", "requirements-test.lock", path):
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text("a = 1\n")
    before = audits.digest_of_code(root)
    assert audits.digest_of_code(root) == before
    (root / path).write_text("a = 2\n")
    assert audits.digest_of_code(root) != before
    monkeypatch.setattr(audits, "digest_of_code", lambda: before)
    audits.main([])
    monkeypatch.setattr(audits, "digest_of_code", lambda: "other")
    audits.main([])
    assert len(audits.made) == 2 * len(NAMES)


def test_quick_looks_are_not_taken_for_audits(audits):
    audits.main(["--trials-factor", "0.5"])
    assert not audits.PAGE.exists()
    audits.main([])
    assert len(audits.made) == 2 * len(NAMES)


def test_the_page_sums_up_what_the_results_list(audits):
    assert audits.main([]) == 0
    page, results = (path.read_text(encoding="utf-8") for path in (audits.PAGE, audits.RESULTS))
    assert "2 audits of 2 classes and functions refute no claim, each of 2 broken variants is caught" in page
    assert [line.split(" | ")[:2] for line in page.splitlines() if line.startswith("| `")] == [
        ["| `ExponentialMechanism`", "1"],
        ["| `TwoSidedGeometric`", "1"],
    ]
    for entry in LAWS:
        assert f"| `{entry.name}` | {entry.summary} |" in results
    for name in "ab":
        assert f"| **{name}**: nothing |" in page
        assert f"| {name} | nothing |" in results


def test_mutants_of_several_classes_share_a_line_that_holds_for_each(audits):
    rows = [
        "| less: A | in A | 0.5 | 0.75 | 80 | Gaussian | 0 |",
        "| less: B | in B | 1 | 1.2 | 1,200 | Clopper-Pearson | 0.25 |",
        "| alone | it is | 1 | 3 | 60 | exact | 0 |",
    ]
    assert audits.mutant_summary(rows) == [
        "| **alone**: it is | 1 | 3 | 60 | exact | 0 |",
        "| **less**, in 2 whole fits by turns | 0.5 or 1 | 1.2 times the claim | 80 to 1,200 | audit | 0.25 |",
    ]


def test_replays_of_a_class_are_summed_up_with_and_without_persons(audits):
    counts = [audits.Replayed("A", False, 2, 30, 1, 400, 0.5, 0), audits.Replayed("A", True, 2, 10, 2, 50, 1.0, 0)]
    assert audits.replay_summary(counts) == ["| `A` | 40 | 3 | 450 | 1.000000 | 0 |"]
    assert audits.replay_rows(counts)[1] == "| `A`, persons of 1 to 9 rows | 2 | 10 | 2 | 50 | 1.000000 | 0 |"


def test_nothing_is_written_where_a_mutant_escapes(audits, monkeypatch):
    registry = audits.mutants()
    registry.is_flagged = lambda result: False
    monkeypatch.setattr(audits, "mutants", lambda: registry)
    assert audits.main([]) == 1
    assert not audits.PAGE.exists()
    assert not audits.RESULTS.exists()
