"""The pages of a reproduction: what they say, and how they are written."""

import json
import math
import re
import shutil
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest
from reproduced import (
    EXPERIMENT,
    NEW,
    ODD,
    OLD,
    TRIALS,
    UNRUN,
    Reader,
    faults,
    markdown_tables,
    plain,
    published,
    record_trial,
    record_trials,
    text_of,
)

from taciturn_research.reproduce import pages
from taciturn_research.reproduce.experiment import (
    NOT_PRIVATE_SCALING,
    SYNTHETIC,
    Case,
    Numbers,
    Picture,
    Table,
    judge_items,
)
from taciturn_research.reproduce.pages import write_report
from taciturn_research.reproduce.pages.blocks import Grid, Heading, escaped, web_page
from taciturn_research.reproduce.pages.content import number, own_grids, read_results, side_by_side
from taciturn_research.reproduce.pages.figures import points_of

# ------------------------------------------------------------------ both pages


def test_printed_numbers_stand_beside_ours(folder):
    table = next(table for table in Reader(text_of(folder, "reproduction.html")).tables if "prints" in table.caption)
    assert table.caption == f"Table 1: what the paper prints beside ours; method = {OLD}"
    assert table.rows == [
        ["set", "measure", "published", "ours (sd)", "difference in sd", "verdict"],
        [ODD, "F1", "0.45", "0.30 (0.10)", "-1.5", "holds"],
        [ODD, "F1", "0.75", "0.30 (0.10)", "-4.5", "does not hold: it never ran"],
        [ODD, "count", "7", "7", "equal", "holds"],
        [ODD, "count", "8", "7", "no spread (-1)", "does not hold: no reason found"],
        ["gone", "F1", "0.5", "", "", "not run: data not available"],
    ]


def test_a_long_reason_of_several_numbers_stands_once():
    def blocks(reason, *values):
        (item,) = judge_items(
            replace(
                EXPERIMENT, claims=(), tables=(), pictures=(), published=[published("F1", v, reason) for v in values]
            ),
            TRIALS,
        )
        grid, *below = side_by_side(item)
        return [str(line[-1]) for line in grid.lines], [block.text for block in below]

    long = "nobody knows why " * 4
    assert blocks(long, 0.8, 0.3, 0.9) == (
        ["does not hold: reason 1 below", "holds", "does not hold: reason 1 below"],
        [f"Reason 1: {long}"],
    )
    assert blocks(long, 0.8, 0.3) == ([f"does not hold: {long}", "holds"], [])
    assert blocks("short", 0.8, 0.9) == (["does not hold: short", "does not hold: short"], [])


def test_claims_are_judged_both_ways(folder):
    table = next(table for table in Reader(text_of(folder, "reproduction.html")).tables if "says" in table.caption)
    assert table.rows == [
        ["claim", "evidence", "verdict"],
        ["New finds more than old.", "0.9 > 0.3", "holds"],
        ["Old finds more than new.", "0.9 > 0.3", "does not hold: it was tuned"],
        ["It was run.", "", "not run: data not available"],
    ]


def test_our_own_tables_have_means_and_means_over_sets(folder):
    tables = {table.caption: table.rows for table in Reader(text_of(folder, "reproduction.html")).tables}
    stand_in = "; near_one is a stand-in for Far One"
    # Old: 0.1, 2.1 and the stand-in's 1/3 at 1; 1 and 3 at 10.
    assert tables[f"Figure 1: our means over 3 values of 'data'{stand_in}"] == [
        ["by", "epsilon 1", "epsilon 10"],
        [OLD, "0.844", "2"],
        [NEW, "0.050", "0.500"],
    ]
    assert tables[f"Figure 1: our means (sd of a trial){stand_in}"] == [
        ["data", "by", "epsilon 1", "epsilon 10"],
        ["first", OLD, "0.10 (0.10)", "1.00 (0.10)"],
        ["first", NEW, "0.05 (0.10)", "0.50 (0.10)"],
        ["second", OLD, "2.10 (0.10)", "3.00 (0.10)"],
        ["second", NEW, "0.05 (0.10)", "0.50 (0.10)"],
        ["near_one", OLD, "0.333", ""],
    ]


def test_both_pages_have_the_same_tables_sections_and_facts(folder):
    text, reader = text_of(folder, "reproduction.md"), Reader(text_of(folder, "reproduction.html"))
    assert [table.rows for table in reader.tables] == markdown_tables(text)
    sections = [[f"h{len(marks)}", plain(name)] for marks, name in re.findall("^(#+) (.*)$", text, re.MULTILINE)]
    assert sections == reader.headings
    assert sections[:4] == [["h1", "Reproduction"], ["h2", "Summary"], ["h2", "made-up"], ["h3", "Table 1"]]
    shown = " ".join(reader.texts)
    for fact in (
        "On Numbers Made by Hand (A & B)",
        "1 to 3 (the paper's number: 100)",
        "replace-one",
        "Ties are broken by index, if |w*| < 1.",
        "which is not to be had here",
        "Left out, since no trial of them is finished: unrun.",
        "within two standard deviations of one trial around our mean",
        "Of 5 printed numbers 2 hold, 2 do not, 1 not run for lack of data.",
        "Of 3 claims 1 hold, 1 do not, 1 not run for lack of data.",
        "never run: not drawn, data not available.",
    ):
        assert fact in shown
        assert fact in plain(text)
    for term, said in (("Data not available", "gone"), ("Left for the full setting", "huge")):
        assert reader.texts[reader.texts.index(term) + 1] == said
        assert f"- {term}: {said}\n" in text


def test_the_summary_comes_first_with_a_verdict_on_every_item(folder):
    table, figure, _ = judge_items(EXPERIMENT, TRIALS)
    first = Reader(text_of(folder, "reproduction.html")).tables[0]
    assert first.rows == [
        ["paper", "item", "experiment", "verdict"],
        ["A & B", "Table 1", "made-up", f"holds in part: {table}"],
        ["A & B", "Figure 1", "made-up", f"holds in part: {figure}"],
        ["A & B", "Figure 2", "made-up", "drawn; the paper prints no number"],
    ]


def test_verdicts_and_the_stamp_are_words_that_stand_out(folder):
    strong = Reader(text_of(folder, "reproduction.html")).strong
    assert {"holds", "does not hold", "not run", "holds in part", "not private", "stand-in"} == set(strong)
    text = text_of(folder, "reproduction.md")
    assert f"- Scaling: {NOT_PRIVATE_SCALING.replace('not private', '**not private**')}\n" in text
    assert "- Stand-in: near_one is a **stand-in** for Far One" in text


def test_names_with_marks_of_their_own_are_escaped(folder):
    source = text_of(folder, "reproduction.html")
    assert "a&lt;b&gt; &amp; c|d" in source
    assert "<b>" not in source
    row = next(line for line in text_of(folder, "reproduction.md").splitlines() if "0.45" in line)
    assert row.startswith(r"| a&lt;b&gt; &amp; c\|d \*e\* | F1 |")
    assert escaped("two\nlines, _so_ and n_rows") == r"two lines, \_so\_ and n_rows"


def test_every_table_has_a_caption_and_every_image_a_text(folder):
    text = text_of(folder, "reproduction.html")
    assert faults(text) == []
    if pages.content.can_draw():
        assert len(Reader(text).images) == 2
    # The check itself sees what is missing.
    for broken in (
        re.sub("<caption>.*?</caption>", "<caption></caption>", text, count=1),
        re.sub(' alt="[^"]*"', "", text) + '<img src="data:image/png;base64,">',
        text + '<img alt="from elsewhere" src="https://example.org/a.png">',
        text + "<details>",
    ):
        assert faults(broken) != []


def test_long_tables_are_folded():
    def table(n_lines):
        grid = Grid("Many", ("place", "value"), tuple((str(line), "1") for line in range(n_lines)), frozenset({1}))
        (read,) = Reader(web_page("Page", [Heading("Part", 2), grid])).tables
        assert len(read.rows) == n_lines + 1
        return read

    assert not table(60).folded
    assert table(61).folded


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (7.0, "7"),
        (-0.0123, "-0.012"),
        (123.456, "123.5"),
        (5e4 + 0.4, "50000"),
        (2e-5, "2.0e-05"),
        (math.nan, "undefined"),
    ],
)
def test_numbers_are_as_long_as_they_need_be(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.0196, 0.0197), "0.019650 (0.000071)"),
        ((380.0, 420.0), "400 (28)"),
        ((1.0, 2.0), "1.50 (0.71)"),
        ((2e-7, 4e-7), "3.0e-07 (1.4e-07)"),
        ((5.0, 5.0), "5"),
    ],
)
def test_means_are_as_exact_as_their_spread_allows(values, text):
    numbers = Numbers({"a": 1, "b": 2, "value": value} for value in values)
    (grid,) = own_grids(Table("Table 1", ("a",), "b"), numbers, {})
    assert grid.lines == (("1", text),)


def test_two_numbers_for_one_cell_or_point_are_an_error():
    numbers = Numbers([{"a": 1, "b": b, "c": 1, "value": 0.0} for b in (1, 2)])
    with pytest.raises(ValueError, match="Table 1: two numbers in one cell"):
        own_grids(Table("Table 1", ("a",), "c"), numbers, {})
    with pytest.raises(ValueError, match="Figure 1: two numbers at one point"):
        points_of(Picture("Figure 1", "", "curves", "a", "c", "", ""), numbers)
    (first, second) = own_grids(Table("Table 1", ("a",), "c", split="b"), numbers, {})
    assert (first.caption, second.lines) == ("Table 1: our means (sd of a trial); b = 1", (("1", "0"),))


# ------------------------------------------------------------------ results.json


def test_results_hold_everything(folder):
    results = json.loads(text_of(folder, "results.json"))
    assert {"taciturn", "python", "numpy"} <= set(results["versions"])
    assert results["numbers"] == {"holds": 2, "does not hold": 2, "not run": 1}
    assert results["claims"] == {"holds": 1, "does not hold": 1, "not run": 1}
    assert (list(results["experiments"]), results["without trials"]) == (["made-up"], ["unrun"])
    found = results["experiments"]["made-up"]
    assert {key: found[key] for key in ("paper", "relation", "scaling", "trials of the paper", "stand-ins")} == {
        "paper": "On Numbers Made by Hand (A & B)",
        "relation": "replace-one",
        "scaling": NOT_PRIVATE_SCALING,
        "trials of the paper": 100,
        "stand-ins": {"near_one": "Far One"},
    }
    assert (found["not available"], found["left for the full setting"]) == (["gone"], ["huge"])
    assert [case["seeds"] for case in found["cases"]] == [[40, 41, 42], [77]]
    assert [case["data"] for case in found["cases"]] == ["", "d1gest"]
    # Three numbers of one set, eight of the grid, one of the stand-in.
    assert len(found["summaries"]) == 12
    assert found["summaries"][0] == {
        "of": {"set": ODD, "method": OLD, "measure": "F1"},
        "mean": pytest.approx(0.3),
        "sd": pytest.approx(0.1),
        "trials": 3,
    }
    table, figure, _ = found["items"]
    assert (table["item"], table["outcome"]) == ("Table 1", "holds in part")
    assert table["numbers"][1]["difference in sd"] == pytest.approx(-4.5)
    assert [verdict["reason"] for verdict in table["numbers"]] == ["", "it never ran", "", "", ""]
    assert table["numbers"][4]["ours"] is None
    assert figure["claims"][0]["reason"] == ""
    assert figure["claims"][1] == {
        "statement": "Old finds more than new.",
        "evidence": "0.9 > 0.3",
        "outcome": "does not hold",
        "reason": "it was tuned",
    }


def test_full_cases_replace_quick_ones_where_both_say_something(tmp_path):
    def rows(value, *others):
        return [{"of": "both", "value": value}, *({"of": other, "value": value} for other in others)]

    cases = (
        Case("few", dataset="big", setting="quick"),
        Case("all", dataset="big", setting="full"),
        Case("lost, few", dataset="lost", setting="quick"),
        Case("lost, all", dataset="lost", setting="full"),
    )
    experiment = replace(EXPERIMENT, cases=cases)
    record_trial(tmp_path, experiment, "few", 0, 0, "", rows(1.0, "only few"))
    (quick,) = read_results((experiment,), tmp_path)
    assert [(each.of["of"], each.mean) for each in quick.numbers.summaries()] == [("both", 1.0), ("only few", 1.0)]
    assert quick.left_for_full == ["all"]
    record_trial(tmp_path, experiment, "all", 0, 0, "", rows(5.0))
    (full,) = read_results((experiment,), tmp_path)
    assert {each.of["of"]: each.mean for each in full.numbers.summaries()} == {"only few": 1.0, "both": 5.0}
    # One of the two settings would have run on it.
    assert quick.not_available == full.not_available == ["lost"]
    assert full.left_for_full == []


def test_what_is_not_a_number_is_null_in_json_and_a_word_in_the_pages(tmp_path):
    experiment = replace(EXPERIMENT, cases=(SYNTHETIC,), pictures=(), claims=(), tables=())
    row = {"set": ODD, "method": OLD, "measure": "F1", "value": math.nan}
    record_trial(tmp_path, experiment, "synthetic", 0, 0, "", [row])
    write_report((experiment,), tmp_path)
    found = json.loads(text_of(tmp_path, "results.json"))["experiments"]["made-up"]
    assert found["summaries"][0]["mean"] is None
    assert "| 0.45 | undefined |  | **does not hold**: never asked for |" in text_of(tmp_path, "reproduction.md")


# ------------------------------------------------------------------ writing


def test_the_same_trials_give_the_same_files_and_old_ones_are_replaced_whole(folder, tmp_path):
    shutil.copy(folder / "results.jsonl", tmp_path)
    old = tmp_path / "reproduction.html"
    old.write_text("an older report", encoding="utf-8")
    with old.open(encoding="utf-8") as reading:
        write_report((EXPERIMENT, UNRUN), tmp_path)
        # Who reads the old file is not disturbed: it was replaced, not written into.
        assert reading.read() == "an older report"
    files = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    assert [(tmp_path / file).read_bytes() == (folder / file).read_bytes() for file in files] == [True] * len(files)


def test_a_failure_leaves_the_old_report(tmp_path, monkeypatch):
    experiment = replace(EXPERIMENT, pictures=())
    record_trials(tmp_path, experiment)
    write_report((experiment,), tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("re*")}

    def fails(title, blocks):
        raise RuntimeError

    monkeypatch.setattr(pages, "markdown_page", fails)
    with pytest.raises(RuntimeError):
        write_report((replace(experiment, paper="Another"),), tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.glob("re*")} == before


def test_without_matplotlib_the_report_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("taciturn_research.reproduce.pages.figures.find_spec", lambda name: None)
    record_trials(tmp_path)
    write_report((EXPERIMENT,), tmp_path)
    sentence = "No figures: matplotlib is not installed"
    assert sentence in text_of(tmp_path, "reproduction.md")
    assert sentence in text_of(tmp_path, "reproduction.html")
    assert not list(tmp_path.rglob("*.png"))


# ------------------------------------------------------------------ the results beside the code


def test_the_results_say_what_holds_and_why_not(folder, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[3] / "docs" / "tables"), *sys.path])
    script = import_module("reproduction")
    monkeypatch.setattr(script, "RESULTS", tmp_path / "results.md")
    assert script.main([str(folder / "results.json")]) == 0
    text = text_of(tmp_path, "results.md")
    summary, run = markdown_tables(text)
    table, figure, _ = judge_items(EXPERIMENT, TRIALS)
    assert summary == [
        ["paper", "item", "verdict"],
        ["A & B", "Table 1", f"holds in part: {table}. Why: it never ran; no reason found"],
        ["A & B", "Figure 1", f"holds in part: {figure}. Why: it was tuned"],
        ["A & B", "Figure 2", "drawn; the paper prints no number"],
    ]
    assert run[1] == ["made-up", "1 to 3", "100", NOT_PRIVATE_SCALING]
    for sentence in (
        "Of 5 printed numbers 2 hold, 2 do not, 1 not run for lack of data.",
        'Not available to this run: gone. Their rows read "not run".',
        "near_one for Far One",
        "Left out, since no trial of them is finished: unrun.",
    ):
        assert sentence in text
    assert str(folder) not in text
    assert script.main([]) == 2
