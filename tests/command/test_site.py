"""The command site: keys, and what it refuses before it calls anybody."""

import re

import pytest
from commands import BOUNDS, SECRET, run

from sites_of_arrays import key_folder, plan_text
from taciturn.engines.sites.plan import bounds_digest

ROWS = 6


@pytest.fixture
def folder(tmp_path):
    lines = [f"{30 + row},0.5,yes,hill,{'yes' if row % 2 else 'no'}" for row in range(ROWS)]
    (tmp_path / "north.csv").write_text("\n".join(["age,dose,smoker,region,ill", *lines]) + "\n")
    (tmp_path / "bounds.toml").write_text(BOUNDS)
    digest = bounds_digest(tmp_path / "bounds.toml")
    # Nobody listens there: whatever is refused is refused before.
    (tmp_path / "plan.toml").write_text(plan_text((ROWS, 7, 8), address="127.0.0.1:9", bounds=digest))
    return tmp_path


def add_line(folder, age):
    with (folder / "north.csv").open("a") as table:
        table.write(f"{age},0.5,yes,hill,no\n")


def serve(folder, *more, name="north"):
    keys = key_folder() / f"{name}.keys"
    return run("site", "--plan", "plan.toml", "--keys", keys, *more, "north.csv", cwd=folder)


def test_keys_are_created_once_and_told_by_their_files(tmp_path):
    done = run("site", "--create-keys", "east", cwd=tmp_path)
    assert (done.code, done.out) == (0, "written: east.keys, which stays here; east.toml, which goes into the plan\n")
    entry = r'\[\[sites\]\]\nname = "east"\nrows = 0 .*\nkey = "[0-9a-f]{64}"\ncertificate = """\n(.|\n)*"""\n'
    assert re.fullmatch(entry, (tmp_path / "east.toml").read_text())
    again = run("site", "--create-keys", "east", cwd=tmp_path)
    assert again.code == 1
    assert "a file that is not there yet" in again.err
    assert "small letters" in run("site", "--create-keys", "../east", cwd=tmp_path).err


def test_what_is_missing_is_named(folder):
    for given, missing in (((), "table"), (("north.csv",), "plan"), (("north.csv", "--plan", "plan.toml"), "keys")):
        done = run("site", *given, cwd=folder)
        assert done.code == 1
        assert done.err.startswith(f"taciturn: {missing}=None: expected a file")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda folder: (folder / "bounds.toml").write_text(BOUNDS + "\n# more\n"), "the file that the plan names"),
        (lambda folder: add_line(folder, "31"), "expected the 6 rows"),
        (lambda folder: (folder / "plan.toml").write_text("[study]\n"), "expected"),
        (lambda folder: (folder / "plan.toml").unlink(), "a text file that can be read"),
        (lambda folder: add_line(folder, SECRET), "expected"),
    ],
    ids=["bounds", "rows", "broken plan", "no plan", "cell"],
)
def test_a_site_refuses_what_was_not_agreed(folder, change, words):
    change(folder)
    done = serve(folder)
    assert done.code == 1
    assert words in done.err
    assert SECRET not in done.err + done.out
    assert len(done.err.splitlines()) == 1


def test_a_site_refuses_keys_that_are_not_its_own(folder):
    assert "one of north, south, west" in serve(folder, name="stranger").err
    # Those of another site of the plan are those of that site, whose rows are others.
    assert "expected the 7 rows" in serve(folder, name="south").err
    (folder / "broken.keys").write_text("-----BEGIN NOTHING-----\nabc\n-----END NOTHING-----\n")
    done = run("site", "--plan", "plan.toml", "--keys", "broken.keys", "north.csv", cwd=folder)
    assert "a file of keys" in done.err
