"""The comparison pages: what they count is right, losses are shown, and a page that says anything else is rejected."""

import math

import pytest

from taciturn_research.arena.catalogue import METHODS
from taciturn_research.arena.reasons import REASONS, UNEXPLAINED, reason_for_size
from taciturn_research.benchmarks.compare import utility
from taciturn_research.benchmarks.compare.__main__ import main
from taciturn_research.benchmarks.compare.utility import DEFAULT, PEERS, PRACTICE, PUBLISHED, contests, read, score
from taciturn_research.pages import MissingMarksError, differing, renewed, table_marks, write

HEAD = "set,epsilon,method,setting,seeds,error,error_sd,log_loss,calibration,slope,f1,features,seconds,skipped"


def stored(tmp_path, *rows):
    """A summary with rows of set, epsilon, method, error and its standard deviation, over five seeds."""
    path = tmp_path / "summary.csv"
    lines = [f'{data_set},{epsilon},"{method}",,5,{error},{sd},,,,,,,' for data_set, epsilon, method, error, sd in rows]
    path.write_text("\n".join([HEAD, *lines]) + "\n", encoding="utf-8")
    return read(path)


def won_and_lost(tmp_path, lost=0.3):
    return stored(
        tmp_path,
        ("won", 1, DEFAULT, 0.1, 0.01),
        ("won", 1, "default, all", 0.1, 0.01),
        ("lost", 1, "default, all", 0.25, 0.01),
        ("won", 1, "DP-GD", 0.2, 0.01),
        ("won", 1, "diffprivlib", 0.15, 0.01),
        ("lost", 1, DEFAULT, lost, 0.01),
        ("lost", 1, "DP-GD", 0.2, 0.01),
        ("lost", 5, "DP-GD", 0.2, 0.01),
        ("skipped", 1, DEFAULT, 0.3, 0.01),
        ("skipped", 1, "DP-GD", "", ""),
    )


def test_scores_by_hand(tmp_path):
    total = score(contests(won_and_lost(tmp_path), PRACTICE))
    assert (total.cells, total.lower, total.clearly_lower, total.higher, total.clearly_higher) == (2, 1, 1, 1, 1)
    assert total.median_ratio == pytest.approx((0.1 / 0.15 + 1.5) / 2)
    assert total.worst.place == "lost at 1"
    # The best of the peers is compared with, and of one peer the one.
    assert score(contests(won_and_lost(tmp_path), ["diffprivlib"])).cells == 1


def test_a_difference_is_clear_from_two_standard_errors_on(tmp_path):
    # Five seeds with a standard deviation of .01 (divisor 5): the mean has .005, the difference .005 times root 2.
    error = 2.0 * 0.005 * math.sqrt(2.0)
    beyond = score(contests(won_and_lost(tmp_path, lost=0.2 + 1.01 * error), ["DP-GD"]))
    within = score(contests(won_and_lost(tmp_path, lost=0.2 + 0.99 * error), ["DP-GD"]))
    assert (beyond.higher, beyond.clearly_higher) == (1, 1)
    assert (within.higher, within.clearly_higher) == (1, 0)


def test_equal_errors_are_neither_lower_nor_higher(tmp_path):
    total = score(contests(won_and_lost(tmp_path, lost=0.2), ["DP-GD"]))
    assert (total.lower, total.higher) == (1, 0)


def test_a_loss_appears_in_every_table(tmp_path):
    cells = won_and_lost(tmp_path)
    (row,) = [line for line in utility.by_peer(cells, PEERS[:1]).splitlines() if line.startswith("| best peer")]
    assert "| 2 | 1 (50%) | 1 | 1 | 1 | 1.08 | lost at 1: 1.50 (0.3 against 0.2) |" in row
    assert "| lost | 0.3 (**clearly higher**) | 0.2 (DP-GD) |" in utility.by_set(cells)
    assert "| won | 0.1 | 0.15 (diffprivlib) |" in utility.by_set(cells)
    assert '| lost at 1 | 0.3 | 0.2 (DP-GD) | 1.50 | yes | `"auto"` | not explained yet |' in utility.reasons(cells)
    assert "won" not in utility.reasons(cells)
    opening = " ".join(utility.opening(cells).split())
    assert "the best of 2 other methods in 1 of 2 cells (clearly in 1) and higher in 1 (clearly in 1)" in opening
    assert "The median of the ratios is 1.08, the largest 1.50 (lost at 1)." in opening


def test_the_fragment_has_the_hardest_comparisons_and_their_worst_losses_in_the_stored_results():
    cells = read()
    text = utility.by_peer(cells, utility.SHORT)
    assert [set(peer.methods) for peer in utility.SHORT] == [set(PRACTICE), set(PUBLISHED)]
    assert len(text.splitlines()) == 2 + 2
    for peer in utility.SHORT:
        worst = max(contests(cells, peer.methods), key=lambda contest: contest.ratio)
        assert worst.higher
        assert f"{worst.place}: {worst.ratio:.2f}" in text


def test_the_peers_are_those_of_the_arena():
    families = {method.name: method.family for method in METHODS.values()}
    practice = {name for name, family in families.items() if family == "practice"}
    stored_methods = {method for means in read().values() for method in means}
    assert practice == set(PRACTICE)
    # Whoever has no stored results is named on the page.
    rest = utility.PAGE.read_text(encoding="utf-8").partition("## What the result rests on")[2]
    assert all(name.partition(",")[0] in rest for name in practice - stored_methods)
    assert not all(name.partition(",")[0] in rest for name in (DEFAULT, *PRACTICE))
    published = {name for name, family in families.items() if family == "published"}
    assert published & stored_methods == set(PUBLISHED)
    assert {method for peer in PEERS for method in peer.methods} | {DEFAULT} <= set(families)


def test_the_page_holds_what_is_stored_and_another_one_is_rejected(tmp_path):
    tables = utility.parts()[utility.PAGE]
    assert not differing(utility.PAGE, tables)
    text = utility.PAGE.read_text(encoding="utf-8")
    flattering = tmp_path / "page.md"
    flattering.write_text(text.replace(" (**clearly higher**)", "", 1), encoding="utf-8")
    assert differing(flattering, tables)
    write(flattering, tables)
    assert flattering.read_text(encoding="utf-8") == text


def test_the_command_rejects_a_picture_or_a_page_that_says_something_else(tmp_path, monkeypatch, capsys):
    page, readme, picture = (tmp_path / name for name in ("page.md", "README.md", "picture.svg"))
    monkeypatch.setattr(utility, "PAGE", page)
    monkeypatch.setattr(utility, "README", readme)
    monkeypatch.setattr(utility, "PICTURE", picture)
    names = ("accuracy", "peers", "sets", "reasons", "paired")
    page.write_text("\n".join("\n".join(table_marks(f"compare_{name}")) for name in names), encoding="utf-8")
    readme.write_text("no place\n", encoding="utf-8")
    assert main(["utility", "--write"]) == 1
    assert "README.md: the marks" in capsys.readouterr().err
    readme.write_text("\n".join(("before", *utility.README_MARKS, "after")), encoding="utf-8")
    assert main(["utility", "--check"]) == 1
    assert main(["utility", "--write"]) == 0
    assert main(["utility", "--check"]) == 0
    assert readme.read_text(encoding="utf-8").startswith("before\n<!-- peers: begin -->\n\n| against |")
    picture.write_text(picture.read_text(encoding="utf-8").replace("circle", "rect", 1), encoding="utf-8")
    assert main(["utility", "--check"]) == 1


def test_parts_go_between_their_marks_alone():
    marks = table_marks("one"), table_marks("two")
    page = "\n".join(["a", *marks[0], "b", *marks[1], "c"])
    text = renewed(page, {marks[0]: "first", marks[1]: "second"})
    assert text.split() == ["a", *f"{marks[0][0]} first {marks[0][1]} b {marks[1][0]} second {marks[1][1]} c".split()]
    assert renewed(text, {marks[0]: "first", marks[1]: "second"}) == text
    with pytest.raises(MissingMarksError):
        renewed(page, {table_marks("three"): "third"})


def test_every_dot_of_the_picture_is_a_cell():
    (drawn,) = utility.pictures().values()
    cells = read()
    compared = sum(len(contests(cells, peer.methods)) for peer in PEERS)
    assert drawn.count("<circle") == compared + len(utility.COLOURS) + 1
    clearly = sum(score(contests(cells, peer.methods)).clearly_higher for peer in PEERS)
    assert drawn.count('stroke-width="1.6"') == clearly + 1
    assert utility.CLEARLY == 2.0


def test_a_reason_about_one_size_does_not_explain_the_other():
    assert reason_for_size("a9a", "auto") == REASONS["a9a"]
    assert reason_for_size("a9a", "all") == UNEXPLAINED
    assert reason_for_size("screening correlated", "auto") == UNEXPLAINED
    assert reason_for_size("bodyfat", "all") == reason_for_size("bodyfat", "auto") == REASONS["bodyfat"]
    assert reason_for_size("no such set", "all") == UNEXPLAINED
    # The advised size has the mean of one of the two in every stored cell.
    cells = read()
    for contest in contests(cells, PRACTICE):
        means = cells[contest.data_set, contest.epsilon]
        size = {"all": "default, all", "auto": "default, k auto"}[utility.size_used(cells, contest)]
        assert means[size].error == contest.ours.error, contest.place
