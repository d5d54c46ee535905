"""The pages on features and on speed: every answer has one source, losses and refusals are shown, pages are checked."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

from taciturn_research.benchmarks import peer_fits
from taciturn_research.benchmarks.bench_peers import BASELINE, OURS, ratio, rows_of
from taciturn_research.benchmarks.compare import features, speed
from taciturn_research.benchmarks.compare.probing import DIFFPRIVLIB, TACITURN, attempt, has_names, no_name_with, partly
from taciturn_research.benchmarks.peer_fits import METHODS, TABLES, TASKS, PeerMethod, Shape, table, timed
from taciturn_research.pages import REPOSITORY, differing

# ---------------------------------------------------------------------------------------------------------------------
# Features


def small():
    known = {
        "libraries": {"ours": "ours", "theirs": "theirs", "others": "others"},
        "read": {"others": {"version": "others 2", "source": "https://o.example", "date": "2026-02-02"}},
        "feature": [
            {"id": "gui", "group": "Tools", "text": "A window", "documented": {"ours": ["no", "none", "docs/a.md"]}}
        ],
    }
    probed = {
        "libraries": {
            "ours": {"date": "2026-01-01", "versions": {"ours": "1"}, "answers": {}},
            "theirs": {"date": "2026-01-01", "versions": {"theirs": "3"}, "answers": {"gui": ["yes", "has show"]}},
        },
    }
    return known, probed


def test_a_row_in_which_another_library_is_better_is_shown():
    known, _ = small()
    found = features.cells(*small())
    assert "### Tools\n\n|  | ours | theirs | others |" in features.answers(known, found)
    assert "| A window | no | **yes** | \u2013 |" in features.answers(known, found)
    sources = features.sources(known, found)
    assert "- ours: no; none (docs/a.md)" in sources
    assert "- theirs: yes; has show (probe)" in sources
    assert "- others: not found in what was read" in sources


def test_a_library_that_was_read_has_its_own_answers_its_version_and_its_day():
    known, probed = small()
    known["feature"][0]["documented"]["others"] = ["partly", "a picture", "https://o.example/b"]
    sources = features.sources(known, features.cells(known, probed))
    assert "- others: partly; a picture (<https://o.example/b>)" in sources
    assert "| others | [others 2](https://o.example) | read | 2026-02-02 |" in features.versions(known, probed)


@pytest.mark.parametrize("broken", ["no answer", "both", "unclear"])
def test_a_cell_without_exactly_one_clear_answer_is_refused(broken):
    known, probed = small()
    if broken == "no answer":
        known["feature"][0]["documented"] = {}
    elif broken == "both":
        probed["libraries"]["ours"]["answers"]["gui"] = ["yes", "seen"]
    else:
        probed["libraries"]["theirs"]["answers"]["gui"] = ["unclear", "names with window"]
    with pytest.raises(ValueError, match="gui"):
        features.cells(known, probed)


def test_the_page_holds_the_stored_answers_and_a_flattering_one_is_rejected(tmp_path):
    for path, tables in features.parts().items():
        assert not differing(path, tables)
    tables = features.parts()[features.PAGE]
    text = features.PAGE.read_text(encoding="utf-8")
    flattering = tmp_path / "page.md"
    flattering.write_text(text.replace("| Deep learning | no |", "| Deep learning | **yes** |"), encoding="utf-8")
    assert flattering.read_text(encoding="utf-8") != text
    assert differing(flattering, tables)


def test_no_other_library_is_without_a_row_in_which_it_is_better():
    known = features.facts()
    found = features.cells(known, features.probed())
    order = {"yes": 0, "partly": 1, "no": 2, "not found": 2}
    for library in known["libraries"]:
        rows = [feature["id"] for feature in known["feature"]]
        better = [name for name in rows if order[found[name, library].answer] < order[found[name, "taciturn"].answer]]
        assert bool(better) == (library != "taciturn"), library


def test_no_row_is_answered_alike_by_every_library():
    known = features.facts()
    found = features.cells(known, features.probed())
    for feature in known["feature"]:
        given = {found[feature["id"], library].answer for library in known["libraries"]}
        assert len(given - {"not found"} | ({"no"} if "not found" in given else set())) > 1, feature["text"]


def test_names_that_were_not_found_are_no_evidence_of_absence():
    for library in features.probed()["libraries"].values():
        for answer, seen in library["answers"].values():
            assert (answer == "not found") == seen.startswith("no public name of")
    for feature in features.facts()["feature"]:
        for answer, seen, _ in feature.get("documented", {}).values():
            assert answer != "no" or not seen.startswith("none is documented")


def test_documents_have_an_answer_a_fact_and_a_source_that_is_there():
    for feature in features.facts()["feature"]:
        for answer, seen, source in feature.get("documented", {}).values():
            assert answer in features.ANSWERS
            assert seen
            if source.startswith("docs/") or source.endswith(".md"):
                assert (REPOSITORY / source).exists()


def test_our_own_probes_still_get_the_stored_answers():
    stored = features.probed()["libraries"]["taciturn"]["answers"]
    assert set(stored) == set(TACITURN)
    for name in ("sparse_coefficients", "sparse_matrices", "account", "multiclass"):
        assert list(TACITURN[name]()) == stored[name]


def test_a_probe_tells_the_error_of_a_library_and_what_came_out():
    def refuse():
        raise TypeError("no such table")

    assert attempt("a table", refuse) == ("no", "a table: TypeError: no such table")
    assert attempt("a number", lambda: 3, holds=lambda found: found == 4) == ("no", "a number: gives 3")
    assert attempt("a number", lambda: 4, holds=lambda found: found == 4) == ("yes", "a number: runs")
    assert partly(("yes", "counts"), "refuses nothing") == ("partly", "counts; refuses nothing")
    assert partly(("no", "is not there"), "refuses nothing") == ("no", "is not there")


def test_names_that_are_found_are_looked_at_by_somebody():
    assert no_name_with("taciturn.audit", "no_such_word")[0] == "not found"
    assert no_name_with("taciturn.audit", "replay")[0] == "unclear"
    assert has_names("taciturn:SparseClassifier", "fit", "no_such_method")[0] == "no"
    assert has_names("taciturn:SparseClassifier", "fit")[0] == "yes"
    assert set(DIFFPRIVLIB) <= {feature["id"] for feature in features.facts()["feature"]}


# ---------------------------------------------------------------------------------------------------------------------
# Speed


def measured(method, seconds, *, task="regression", size="wide", **more):
    times = {"cpu": seconds, "wall": 2 * seconds, "first": 3 * seconds, "fits": 5}
    return {"method": method, "task": task, "table": size, **(more or times)}


RUN = [
    measured(OURS[0], 2.0),
    measured(OURS[1], 4.0),
    measured(BASELINE, 0.5),
    measured("diffprivlib", 8.0),
    measured("statsmodels", 0.0, error="LinAlgError: singular <matrix>"),
]


def test_ratios_by_hand():
    assert ratio(RUN, OURS[0], BASELINE, "regression", "wide", "cpu") == 4.0
    assert ratio(RUN, OURS[0], BASELINE, "regression", "small", "cpu") is None
    assert ratio(RUN, OURS[0], "statsmodels", "regression", "wide", "cpu") is None
    assert {row["case"]: row["ratio"] for row in rows_of(RUN)} == {
        f"wide, regression, against {BASELINE}": 4.0,
        "wide, regression, against diffprivlib": 0.25,
    }


def test_a_peer_that_takes_less_time_is_named_and_a_refusal_is_quoted():
    text = speed.against_peers(RUN)
    assert f"| {BASELINE} | 1 | 0 | 4 (wide, regression) | 4 (wide, regression) |" in text
    assert "| diffprivlib | 1 | 1 | 0.25 (wide, regression) | 0.25 (wide, regression) |" in text
    opening = " ".join(speed.opening(RUN).split())
    assert "is 0.25 to 0.25 times that of diffprivlib, and 4 to 4 times that of" in opening
    assert "| wide | regression | statsmodels | LinAlgError: singular &lt;matrix&gt; |" in speed.refusals(RUN)
    rows = speed.times(RUN, "regression").splitlines()
    assert any(row.startswith("| statsmodels | no |  |  | no fit |") for row in rows)
    assert any(row.startswith("| diffprivlib | yes |  |  | 16 / 16 |") for row in rows)


def test_the_page_on_speed_holds_the_stored_measurements_and_another_one_is_rejected(tmp_path):
    (tables,) = speed.parts().values()
    assert not differing(speed.PAGE, tables)
    (drawn,) = speed.pictures().values()
    assert speed.PICTURE.read_text(encoding="utf-8") == drawn
    changed = copy.deepcopy(tables)
    key = next(marks for marks in changed if "compare_faster" in marks[0])
    changed[key] = "\n".join(line for line in changed[key].splitlines() if BASELINE not in line)
    assert differing(speed.PAGE, changed)


def test_every_method_is_measured_on_every_table():
    found = {(m["method"], m["task"], m["table"]) for m in speed.stored()["measurements"]}
    assert found == {(name, task, size) for name in METHODS for task in TASKS for size in TABLES}
    assert all(set(method.models) == set(TASKS) for method in METHODS.values())


@pytest.mark.parametrize("task", TASKS)
def test_tables_keep_to_their_bounds(task):
    X, y = table(task, Shape(500, 30))
    assert X.shape == (500, 30)
    assert np.abs(X).max() <= 1.0
    S, _ = table(task, Shape(200, 3_000, sparse=True))
    assert sp.issparse(S)
    assert set(S.data) == {1.0}
    assert S.sum(axis=1).max() <= peer_fits.ENTRIES_PER_ROW
    assert (set(y) == {0, 1}) if task == "classification" else (np.abs(y).max() <= 1.0)


def test_the_first_fit_does_not_count_and_a_long_one_is_not_repeated(monkeypatch):
    clock = iter(np.cumsum([0, 9, 0, 3, 0, 2, 0, 4, 0, 5, 0, 6.0]))
    monkeypatch.setattr(peer_fits.time, "process_time", lambda: next(clock))
    fitted = []
    method = PeerMethod("here", "taciturn", True, {"regression": lambda shape: lambda X, y: fitted.append(len(y))})
    found = timed(method, "regression", Shape(20, 12))
    assert (found["first"], found["cpu"], found["fits"]) == (9.0, 2.0, 5)
    assert fitted == [20] * 6
    monkeypatch.undo()
    monkeypatch.setattr(peer_fits, "LONG", -1.0)
    assert timed(method, "regression", Shape(20, 12))["fits"] == 1
