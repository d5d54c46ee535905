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
        claim_and_finding=lambda result: (result.claimed, result.lower_bound),
        is_flagged=lambda result: result.name == found[1].name,
    )
    for name, value in {
        "ENTRIES": LAWS, "PAGE": tmp_path / "audit.md", "FOUND": tmp_path / "found", "REPLAY_CASES": (),
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
