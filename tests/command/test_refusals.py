"""What the command does with bad tables, bad options and bad luck: one sentence, and no partial output."""

import errno
import gzip
import json

import pytest
from commands import BOUNDS, HEADER, SECRET, Run, csv_text, one_sentence, patients, run, sentences, write_patients

from taciturn import SparseClassifier
from taciturn.app.cli.output import AtomicFile, OutputFolder
from taciturn.core.errors import DataError
from taciturn.privacy.certificate import Certificate

ROWS = patients(60)


def fit(folder, *more, table="patients.csv", bounds="bounds.toml") -> Run:
    return run("fit", table, "--bounds", bounds, *more, "-o", "model", cwd=folder)


def nothing_left(folder) -> bool:
    return not (folder / "model").exists() and not list(folder.glob("*.unfinished")) + list(folder.glob("*.part"))


# ------------------------------------------------------------------ bad tables


def with_cell(row, column, value):
    rows = [list(each) for each in ROWS]
    rows[row][HEADER.index(column)] = value
    return csv_text(rows).encode()


BAD_TABLES = {
    "empty": b"",
    "header only": csv_text([]).encode(),
    "blank lines": b"\n\n\n",
    "semicolons": csv_text(ROWS, separator=";").encode(),
    "tabs": csv_text(ROWS, separator="\t").encode(),
    "ragged, short": csv_text([*ROWS, [1, 2]]).encode(),
    "ragged, long": csv_text([*ROWS, [*ROWS[0], SECRET]]).encode(),
    "duplicate names": csv_text(ROWS, header=["age", "age", "smoker", "region", "ill"]).encode(),
    "unknown column": csv_text(ROWS, header=["age", "dose", "smoker", "region2", "ill"]).encode(),
    "no target": csv_text(ROWS, header=["age", "dose", "smoker", "region", "outcome"]).encode(),
    "text for a number": with_cell(7, "age", SECRET),
    "a date for a number": with_cell(0, "age", "2020-01-31"),
    "neither true nor false": with_cell(3, "smoker", SECRET),
    "missing number": with_cell(5, "age", ""),
    "missing category": with_cell(5, "region", ""),
    "not a number": with_cell(5, "dose", "nan"),
    "latin-1": csv_text([*ROWS, [1, 1, "true", "t\xe4ler", "no"]]).encode("latin-1"),
    "utf-16": csv_text(ROWS).encode("utf-16"),
    "zeros": bytes(1000),
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
    "unclosed quote": csv_text(ROWS).encode() + b'1,2,"true,hill,no\n',
    "no header": csv_text(ROWS[1:], header=[SECRET, 1, "true", "hill", "no"]).encode(),
    "html": b"<html><body>not found</body></html>\n",
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables(name, tmp_path):
    write_patients(tmp_path)
    (tmp_path / "patients.csv").write_bytes(BAD_TABLES[name])
    one_sentence(fit(tmp_path))
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("name", ["t.parquet", "t.feather", "t.arrow", "t.csv.gz", "t.libsvm", "t.xlsx", "t", "t.txt"])
@pytest.mark.parametrize("content", [b"", SECRET.encode() * 40, bytes(300), b"PAR1" + bytes(40) + b"PAR1"])
def test_files_that_are_not_what_their_names_say(name, content, tmp_path):
    write_patients(tmp_path)
    (tmp_path / name).write_bytes(content)
    one_sentence(fit(tmp_path, table=name))
    assert nothing_left(tmp_path)


def test_a_table_in_the_place_of_the_bounds_is_not_quoted(tmp_path):
    write_patients(tmp_path)
    (tmp_path / "other.csv").write_text(csv_text([[SECRET, 1, 2, 3, 4]], header=[SECRET] * 5), encoding="utf-8")
    one_sentence(fit(tmp_path, bounds="other.csv"))
    (tmp_path / "bare.csv").write_text(csv_text(ROWS, header=[SECRET, 1, "true", "hill", "no"]), encoding="utf-8")
    one_sentence(run("fit", "bare.csv", "--target", "ill", "--task", "classify", "--private-bounds", 0.5, cwd=tmp_path))


def test_a_torn_archive(tmp_path):
    write_patients(tmp_path)
    packed = gzip.compress(csv_text(ROWS).encode())
    (tmp_path / "t.csv.gz").write_bytes(packed[: len(packed) // 2])
    one_sentence(fit(tmp_path, table="t.csv.gz"))
    assert nothing_left(tmp_path)


def test_places_that_are_no_tables(tmp_path):
    write_patients(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    for table in ("folder.csv", "missing.csv", "no/such/place.csv"):
        one_sentence(fit(tmp_path, table=table))
    assert nothing_left(tmp_path)


def test_a_single_class_where_none_is_stated(tmp_path):
    write_patients(tmp_path)
    (tmp_path / "bounds.toml").write_text(BOUNDS.replace('classes = ["no", "yes"]\n', ""), encoding="utf-8")
    healthy = [[*row[:-1], "no"] for row in ROWS]
    (tmp_path / "patients.csv").write_text(csv_text(healthy), encoding="utf-8")
    assert "two classes" in one_sentence(fit(tmp_path, "--task", "classify"))
    assert nothing_left(tmp_path)


# ------------------------------------------------------------------ what is no error


def test_values_out_of_bounds_and_strange_labels_pass_without_a_word(tmp_path):
    quiet = []
    for name, rows in {
        "plain": ROWS,
        "out of bounds": [[1e9, -1e9, *row[2:]] if at % 2 else row for at, row in enumerate(ROWS)],
        "strange labels": [[*row[:-1], SECRET] if at % 2 else row for at, row in enumerate(ROWS)],
        "no label": [[*row[:-1], ""] if at % 2 else row for at, row in enumerate(ROWS)],
        "strange categories": [[*row[:3], SECRET, row[4]] for row in ROWS],
        "infinite": [["inf", "-inf", *row[2:]] if at % 2 else row for at, row in enumerate(ROWS)],
    }.items():
        folder = tmp_path / name
        folder.mkdir()
        write_patients(folder)
        (folder / "patients.csv").write_text(csv_text(rows), encoding="utf-8")
        done = fit(folder, "--seed", 1)
        assert done.code == 0, (name, done)
        assert SECRET not in done.out + done.err + (folder / "model" / "model.json").read_text(encoding="utf-8")
        quiet.append((done.err, len(done.out.splitlines())))
    # The same words on standard error, and a page of the same length but for the features that noise picks.
    assert len({err for err, _ in quiet}) == 1


def test_missing_values_are_filled_in_where_the_owner_says_how(tmp_path):
    write_patients(tmp_path)
    (tmp_path / "patients.csv").write_bytes(with_cell(5, "age", ""))
    with (tmp_path / "bounds.toml").open("a", encoding="utf-8") as file:
        file.write("\n[missing]\nage = 50\n")
    assert fit(tmp_path).code == 0


# ------------------------------------------------------------------ bad options


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--epsilon", "0"], ["epsilon=0.0"]),
        (["--epsilon", "-1"], ["epsilon=-1.0"]),
        (["--epsilon", "nan"], ["epsilon=nan"]),
        (["--epsilon", "74"], ["epsilon=74.0", "at most 30"]),
        # Parts of which each would be allowed.
        (["--epsilon", "40", "--private-bounds", "0.5"], ["epsilon=40.0", "at most 30"]),
        (["--delta", "1"], ["delta=1.0"]),
        (["--delta", "-0.5"], ["delta=-0.5"]),
        (["--nonzero", "0"], ["nonzero='0'"]),
        (["--nonzero", "many"], ["nonzero='many'", "auto", "all"]),
        (["--nonzero", "3", "--method", "frank-wolfe"], ["nonzero=3", "frank-wolfe"]),
        (["--relation", "add-remove"], ["n_public"]),
        (["--task", "regress"], ["task='regress'", "classify"]),
        (["--target", "dose"], ["target='dose'", "'ill'"]),
        (["--private-bounds", "1.5"], ["private_bounds=1.5", "(0, 1)"]),
        (["--seed", "-1"], ["random_state=-1"]),
    ],
)
def test_bad_options(options, parts, tmp_path):
    write_patients(tmp_path)
    sentence = one_sentence(fit(tmp_path, *options))
    for part in parts:
        assert part in sentence
    assert nothing_left(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit"],
        ["fit", "t.csv", "--epsilon", "much"],
        ["fit", "t.csv", "--method", "magic"],
        ["fit", "t.csv", "--relation", "friend"],
        ["predict", "model.json"],
        ["init", "t.csv"],
        ["magic"],
        ["select", "t.csv", "--keep", "0"],
        ["compare", "--trials", "0"],
    ],
)
def test_wrong_usage_ends_with_2(arguments, tmp_path):
    done = run(*arguments, cwd=tmp_path)
    assert done.code == 2
    assert "Usage: taciturn" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not toml at all [",
        '[target]\nname = "ill"\n[columns.age]\ntype = "number"\nlower = 5\nupper = 5\n',
        '[target]\nname = "ill"\nclasses = ["no"]\n',
        BOUNDS + "\n[missing]\nage = 1000\n",
        BOUNDS + '\n[columns.nothing]\ntype = "boolean"\n',
        BOUNDS.replace("upper = 100", "upper = inf"),
        BOUNDS.replace('["hill", "dale"]', "[]"),
        BOUNDS.replace("[columns.dose]", "[columns.age]"),
    ],
)
def test_bad_bounds_files(text, tmp_path):
    write_patients(tmp_path)
    (tmp_path / "bounds.toml").write_text(text, encoding="utf-8")
    one_sentence(fit(tmp_path))
    one_sentence(fit(tmp_path, bounds="elsewhere.toml"))
    assert nothing_left(tmp_path)


def test_the_template_itself_is_refused_with_its_first_blank(tmp_path):
    write_patients(tmp_path)
    assert run("init", "patients.csv", "--target", "ill", "-o", "t.toml", cwd=tmp_path).code == 0
    one_sentence(fit(tmp_path, bounds="t.toml"))
    one_sentence(run("init", "patients.csv", "--target", "ill", "-o", "t.toml", cwd=tmp_path))
    one_sentence(run("init", "patients.csv", "--target", "nobody", "-o", "u.toml", cwd=tmp_path))
    assert not (tmp_path / "u.toml").exists()


@pytest.fixture(scope="module")
def model_text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    write_patients(folder)
    assert fit(folder, "--seed", 1).code == 0
    return (folder / "model" / "model.json").read_text(encoding="utf-8")


def test_bad_model_files(model_text, tmp_path):
    write_patients(tmp_path)
    good = json.loads(model_text)
    broken = [("", text) for text in ("", "{", "[]", "null", model_text[: len(model_text) // 2], "\x00" * 50)]
    for key in good:
        broken += [(key, json.dumps({name: value for name, value in good.items() if name != key}))]
        broken += [(key, json.dumps(good | {key: value})) for value in (None, [], {}, -1, "magic")]
    broken.append(("", json.dumps(good | {"coefficients": [[float("nan")] * len(good["features"])]})))
    broken.append(("", json.dumps(good | {"version": 99})))
    broken.append(("", json.dumps(good | {"estimator": "os.system"})))
    accepted = set()
    for key, text in broken:
        (tmp_path / "model.json").write_text(text, encoding="utf-8")
        done = run("predict", "model.json", "patients.csv", "-o", "out.csv", cwd=tmp_path)
        if done.code == 0:
            accepted.add(key)
            (tmp_path / "out.csv").unlink()
        else:
            one_sentence(done)
            assert not (tmp_path / "out.csv").exists()
    assert len(broken) > 60
    # Other words for the command or the version, and what a model need not have: a number of steps, standard errors,
    # and the noise of weights and the day, which files of 0.2 do not have.
    assert accepted <= {"taciturn", "command", "n_steps", "inference", "noise", "date"}


def test_predictions_never_replace_what_is_read(model_text, tmp_path):
    write_patients(tmp_path)
    (tmp_path / "model.json").write_text(model_text, encoding="utf-8")
    before = (tmp_path / "patients.csv").read_bytes()
    for output in ("patients.csv", "model.json"):
        one_sentence(run("predict", "model.json", "patients.csv", "-o", output, cwd=tmp_path))
    assert (tmp_path / "patients.csv").read_bytes() == before
    assert (tmp_path / "model.json").read_text(encoding="utf-8") == model_text


def test_predicting_needs_the_columns_and_leaves_nothing_half_done(model_text, tmp_path):
    (tmp_path / "model.json").write_text(model_text, encoding="utf-8")
    # The last block of a long table is bad: what was predicted before it must not remain.
    rows = [row[:-1] for row in patients(300)]
    rows[-1][0] = SECRET
    (tmp_path / "new.csv").write_text(csv_text(rows, header=HEADER[:-1]), encoding="utf-8")
    one_sentence(run("predict", "model.json", "new.csv", "-o", "out.csv", cwd=tmp_path))
    (tmp_path / "narrow.csv").write_text(csv_text([row[:2] for row in rows], header=HEADER[:2]), encoding="utf-8")
    missing = sentences(run("predict", "model.json", "narrow.csv", "-o", "out.csv", cwd=tmp_path))
    assert ['"smoker"' in missing[0], '"region"' in missing[1]] == [True, True]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.json", "narrow.csv", "new.csv"]


# ------------------------------------------------------------------ bad luck


def test_an_existing_folder_is_never_written_over(tmp_path):
    write_patients(tmp_path)
    assert fit(tmp_path).code == 0
    before = (tmp_path / "model" / "certificate.json").read_text(encoding="utf-8")
    assert "a folder that is not there yet" in one_sentence(fit(tmp_path))
    assert (tmp_path / "model" / "certificate.json").read_text(encoding="utf-8") == before


BAD_LUCK = [KeyboardInterrupt, MemoryError, RuntimeError, OSError(errno.EIO, "Input/output error")]
PARTLY = BOUNDS.split("[columns.age]")[0] + BOUNDS[BOUNDS.index("[columns.smoker]") :]
"""Bounds without those of age and dose."""


def spending_of(folder):
    assert [path.name for path in (folder / "model").iterdir()] == ["certificate.json"]
    statement = json.loads((folder / "model" / "certificate.json").read_text(encoding="utf-8"))
    assert "count the whole budget as spent" in statement["statement"]
    return statement


@pytest.mark.parametrize("error", BAD_LUCK)
@pytest.mark.parametrize("share", [None, 0.3])
def test_a_fit_that_dies_leaves_the_statement_of_what_was_spent(error, share, tmp_path, monkeypatch):
    write_patients(tmp_path)
    more = []
    if share is not None:
        (tmp_path / "bounds.toml").write_text(PARTLY, encoding="utf-8")
        more = ["--private-bounds", share]
    fit_whole = SparseClassifier.fit

    def dying(self, X, y=None, persons=None):
        fit_whole(self, X, y)
        raise error

    monkeypatch.setattr(SparseClassifier, "fit", dying)
    done = fit(tmp_path, "--epsilon", 20, *more)
    assert done.code == (130 if error is KeyboardInterrupt else 1)
    assert "Traceback" not in done.err
    assert "taciturn: " in done.err
    assert "certificate.json" in done.err
    statement = spending_of(tmp_path)
    # All of it, although the bounds alone cost less.
    assert (statement["epsilon"], statement["delta"], statement["relation"]) == (20.0, 1e-6, "zero-out")
    if share is not None:
        assert statement["released so far"]["epsilon"] <= 6.0


def test_a_refusal_after_bounds_were_found_keeps_the_statement(tmp_path, monkeypatch):
    write_patients(tmp_path)
    (tmp_path / "bounds.toml").write_text(PARTLY, encoding="utf-8")

    def refusing(self, X, y=None, persons=None):
        raise DataError("X: expected something else.")

    monkeypatch.setattr(SparseClassifier, "fit", refusing)
    assert fit(tmp_path, "--epsilon", 20, "--private-bounds", 0.5).code == 1
    assert spending_of(tmp_path)["epsilon"] == 20.0


@pytest.mark.parametrize("method", ["auto", "hard-threshold", "objective-perturbation", "two-stage", "admm"])
def test_options_that_cannot_work_are_refused_before_bounds_are_paid_for(method, tmp_path):
    write_patients(tmp_path)
    (tmp_path / "bounds.toml").write_text(PARTLY, encoding="utf-8")
    options = ["--epsilon", 20, "--delta", 0, "--private-bounds", 0.5, "--method", method]
    assert "delta=0.0" in one_sentence(fit(tmp_path, *options))
    assert nothing_left(tmp_path)


def test_folders_behind_links_empty_folders_and_deep_ones(tmp_path):
    write_patients(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    for output, place in (("link", "real"), ("dangling", "new"), ("deep/er/still", "deep/er/still")):
        done = run("fit", "patients.csv", "--bounds", "bounds.toml", "-o", output, cwd=tmp_path)
        assert done.code == 0, done
        assert sorted(path.name for path in (tmp_path / place).iterdir()) == [
            "certificate.json", "model.json", "report.html",
        ]  # fmt: skip
    one_sentence(run("fit", "patients.csv", "--bounds", "bounds.toml", "-o", ".", cwd=tmp_path))
    one_sentence(run("fit", "missing.csv", "--bounds", "bounds.toml", "-o", "a/b", cwd=tmp_path))
    assert not (tmp_path / "a").exists()


def test_a_fit_that_is_refused_has_spent_nothing(tmp_path, monkeypatch):
    write_patients(tmp_path)

    def refusing(self, X, y=None, persons=None):
        raise DataError("X: expected something else.")

    monkeypatch.setattr(SparseClassifier, "fit", refusing)
    one_sentence(fit(tmp_path))
    assert nothing_left(tmp_path)


@pytest.mark.parametrize(
    ("file", "code", "left"),
    [("model.json", 1, ["certificate.json"]), ("report.html", 3, ["certificate.json", "model.json"])],
)
def test_a_full_disk_after_the_fit_leaves_what_was_written(file, code, left, tmp_path, monkeypatch):
    write_patients(tmp_path)
    write = OutputFolder.write

    def full(self, name, text):
        if name == file:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, name, text)

    monkeypatch.setattr(OutputFolder, "write", full)
    done = fit(tmp_path)
    assert done.code == code
    assert "no space left on device" in done.err
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == left
    text = (tmp_path / "model" / "certificate.json").read_text(encoding="utf-8")
    assert Certificate.from_json(text).status == "proved"


def test_a_refusal_after_the_fit_keeps_the_statement(tmp_path, monkeypatch):
    write_patients(tmp_path)

    def refusing(self, spent, certificate):
        raise DataError("certificates: expected others.")

    monkeypatch.setattr("taciturn.app.cli.tables.Table.compose_certificates", refusing)
    assert fit(tmp_path).code == 1
    assert spending_of(tmp_path)["epsilon"] == 1.0


def test_a_full_disk_before_the_fit_stops_it(tmp_path, monkeypatch):
    write_patients(tmp_path)
    fitted = []
    monkeypatch.setattr(SparseClassifier, "fit", lambda self, X, y, persons=None: fitted.append(1))

    def full(self):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(AtomicFile, "__enter__", full)
    assert fit(tmp_path).code == 1
    assert not fitted
    assert nothing_left(tmp_path)


def test_a_killed_run_is_noticed_by_the_next(tmp_path):
    write_patients(tmp_path)
    (tmp_path / "model.unfinished").mkdir()
    (tmp_path / "model.unfinished" / "certificate.json").touch()
    assert "interrupted run" in one_sentence(fit(tmp_path))
    # Without a statement nothing was spent.
    (tmp_path / "model.unfinished" / "certificate.json").unlink()
    assert fit(tmp_path).code == 0
    assert not (tmp_path / "model.unfinished").exists()


def test_a_defect_is_reported_without_its_message(tmp_path, monkeypatch):
    write_patients(tmp_path)

    def defective(path, layout):
        raise ValueError(SECRET)

    monkeypatch.setattr("taciturn.tables.reading.read_schema", defective)
    done = fit(tmp_path)
    assert done.code == 1
    assert "a defect (ValueError in defective" in done.err
    assert SECRET not in done.err


def test_predictions_do_not_grow_with_the_table(model_text, tmp_path):
    """Blocks, not the table: a block of a table of a hundred times the rows is no larger."""
    from taciturn.app.model_file import Model
    from taciturn.tables import read_batches

    model = Model.from_json(model_text)
    largest = []
    for n_rows in (100_000, 200_000):
        text = csv_text([row[:-1] for row in patients(200)] * (n_rows // 200), header=HEADER[:-1])
        (tmp_path / "long.csv").write_text(text, encoding="utf-8")
        sizes = [X.shape[0] for X in read_batches(tmp_path / "long.csv", model.encoder)]
        assert sum(sizes) == n_rows
        largest.append(max(sizes))
    assert largest[0] == largest[1] < 100_000
