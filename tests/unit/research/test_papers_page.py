"""The page on the papers' claims: statuses follow from numbers, and a line that says otherwise is refused."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TEST = "unit/research/test_papers_page.py::test_a_status_that_its_numbers_bear_out_is_accepted"


@pytest.fixture(scope="module")
def papers():
    """The script, imported as it imports itself."""
    before = list(sys.path)
    sys.path.insert(0, str(ROOT / "docs" / "tables"))
    try:
        import papers
    finally:
        sys.path[:] = before
    return papers


@pytest.fixture(scope="module")
def claim_module(papers):
    return sys.modules["paper_claims.claim"]


@pytest.fixture
def line(claim_module):
    """A claim that holds: at most 1 is claimed, 0.758 is proved."""
    return claim_module.Claim(
        where="Theorem 0",
        kind="privacy",
        claim="It costs at most 1.",
        status=claim_module.HOLDS,
        measure=lambda: claim_module.Finding(claimed=1.0, upper=0.758, numbers={"proved": "0.758"}),
        evidence="{proved} is proved.",
        tests=(TEST,),
        fix="nothing",
        effect="none",
    )


@pytest.mark.parametrize(
    ("numbers", "status"),
    [
        ({"upper": 0.758}, "holds"),
        ({"upper": 1.0, "lower": 1.0}, "holds"),
        ({"upper": 0.758, "argument": 1.044}, "holds with another constant or proof"),
        ({"upper": 1.63}, "unproved"),
        ({"upper": 1.63, "lower": 0.9}, "unproved"),
        ({}, "unproved"),
        ({"lower": 1.26}, "false"),
        ({"lower": 1.26, "upper": 1.63, "argument": 2.0}, "false"),
        ({"lower": math.inf}, "false"),
    ],
)
def test_numbers_decide_the_status(claim_module, numbers, status):
    assert claim_module.Finding(claimed=1.0, **numbers).status == status


def test_an_example_beyond_what_is_proved_is_a_contradiction(claim_module):
    with pytest.raises(ValueError, match="never to be passed"):
        _ = claim_module.Finding(claimed=1.0, lower=2.0, upper=1.5).status


def test_a_status_that_its_numbers_bear_out_is_accepted(papers, claim_module, line):
    assert claim_module.problems_of(line, line.measure()) == []
    other = replace(
        line,
        where="Theorem 1",
        status=claim_module.FALSE,
        measure=lambda: claim_module.Finding(1.0, lower=2.0, numbers={"proved": "2"}),
    )
    amended = replace(
        line,
        where="Theorem 2",
        status=claim_module.AMENDED,
        measure=lambda: claim_module.Finding(1.0, upper=0.758, argument=2.0, numbers={"proved": "0.758"}),
    )
    found = papers.measured([claim_module.Paper("a paper", "P", "P", (line, other, amended))])
    ((paper, lines),) = found.items()
    assert papers.section(paper, lines).splitlines()[2:] == [
        "| **P2** Theorem 1 | It costs at most 1. | **false** | 2 is proved. |",
        "",
        "As printed hold: **P1** Theorem 0.",
        "",
        "With another constant or proof hold: **P3** Theorem 2.",
    ]
    assert paper.short == "P"
    full = papers.every_claim(found)
    for label, status, proved in (("P1", "holds", "0.758"), ("P2", "false", "2")):
        words = f"| It costs at most 1. | **{status}** | {proved} is proved. | nothing | none |"
        assert f"| **{label}** Theorem {int(label[1]) - 1} {words} `tests/{TEST.replace('::', '`: `')}` |" in full


def test_links_of_pages_are_plain_words_where_pages_are_not(papers, claim_module, line):
    linked = replace(line, fix="a clip ([how](descent.md#clipping))")
    found = papers.measured([claim_module.Paper("a paper", "P", "P", (linked,))])
    assert "| a clip (how) |" in papers.every_claim(found)


@pytest.mark.parametrize(
    ("compared", "hold", "not_run", "status"),
    [
        (3, 3, 0, "reproduced"),
        (3, 3, 1, "partly"),
        (3, 2, 0, "partly"),
        (3, 0, 0, "not reproduced"),
        (3, 0, 2, "not reproduced"),
        (0, 0, 2, "no data"),
        (0, 0, 0, "no data"),
    ],
)
def test_counts_decide_what_is_reproduced(claim_module, compared, hold, not_run, status):
    found = claim_module.Finding(0.0, reproduced=claim_module.Reproduced(compared, hold, not_run))
    assert found.status == status


def test_an_experiment_that_failed_is_neither_false_nor_reproduced(papers, claim_module, line):
    failed = replace(
        line,
        kind=claim_module.EXPERIMENT,
        status=claim_module.NOT_REPRODUCED,
        evidence="{counts}.",
        effect="See Table 2.",
        measure=lambda: claim_module.Finding(
            0.0, numbers={"counts": "0 of 5 hold"}, reproduced=claim_module.Reproduced(5)
        ),
    )
    paper = claim_module.Paper("a paper", "P", "P", (failed,))
    found = papers.measured([paper])
    assert papers.section(paper, found[paper]).splitlines() == list(papers.HEADER)
    assert papers.experiments(found) == "Not reproduced: **P1** Theorem 0."
    assert "| **not reproduced** | 0 of 5 hold. |" in papers.every_claim(found)
    for broken in (replace(failed, status=claim_module.REPRODUCED), replace(failed, kind="privacy")):
        with pytest.raises(papers.WrongClaimError):
            papers.measured([claim_module.Paper("a paper", "P", "P", (broken,))])
    with pytest.raises(papers.WrongClaimError, match="is an experiment without a reproduction"):
        papers.measured([claim_module.Paper("a paper", "P", "P", (replace(line, kind=claim_module.EXPERIMENT),))])


def test_a_claim_marked_as_holding_whose_number_says_otherwise_is_refused(papers, claim_module, line):
    def wrong(status, **numbers):
        broken = replace(line, status=status, measure=lambda: claim_module.Finding(claimed=1.0, **numbers))
        with pytest.raises(papers.WrongClaimError) as caught:
            papers.measured([claim_module.Paper("a paper", "P", "P", (line, broken))])
        return str(caught.value)

    assert "is marked 'holds', the numbers say 'false' (claimed 1, lower 1.26" in wrong("holds", lower=1.26)
    assert "the numbers say 'unproved'" in wrong("holds", upper=1.63)
    assert "the numbers say 'unproved'" in wrong("false", lower=0.9, upper=1.63)
    assert "the numbers say 'holds'" in wrong("false", upper=0.9)
    assert "the numbers say 'false'" in wrong("unproved", lower=1.26)
    assert "the numbers say 'holds with another" in wrong("holds", upper=0.9, argument=1.044)


@pytest.mark.parametrize(
    "test",
    [
        "unit/research/test_papers_page.py::test_that_nobody_wrote",
        "unit/test_no_such_file.py::test_anything",
        "unit/research/test_papers_page.py::line",
        "unit/research/test_papers_page.py",
    ],
)
def test_a_test_that_does_not_exist_is_refused(claim_module, line, test):
    (problem,) = claim_module.problems_of(replace(line, tests=(test,)), line.measure())
    assert problem == f"Theorem 0: names a test that does not exist: {test}"
    assert claim_module.problems_of(replace(line, tests=()), line.measure()) == ["Theorem 0: names no test"]


def test_every_claim_has_tests_that_exist_and_stands_on_the_page(papers, claim_module):
    claims = [claim for paper in (*papers.PAPERS, papers.BASELINES) for claim in paper.claims]
    of_counts = {
        claim_module.REPRODUCED: claim_module.Reproduced(2, 2),
        claim_module.PARTLY: claim_module.Reproduced(2, 1),
        claim_module.NOT_REPRODUCED: claim_module.Reproduced(2),
        claim_module.NO_DATA: claim_module.Reproduced(not_run=2),
    }
    assert tuple(of_counts) == claim_module.OUTCOMES
    for claim in claims:
        as_marked = {
            claim_module.HOLDS: claim_module.Finding(1.0, upper=0.5),
            claim_module.AMENDED: claim_module.Finding(1.0, upper=0.5, argument=2.0),
            claim_module.UNPROVED: claim_module.Finding(1.0),
            claim_module.FALSE: claim_module.Finding(1.0, lower=2.0),
            **{status: claim_module.Finding(0.0, reproduced=counts) for status, counts in of_counts.items()},
        }[claim.status]
        assert claim_module.problems_of(claim, as_marked) == []
    page, full = (
        path.read_text(encoding="utf-8").replace("\n", " ") for path in (ROOT / "docs" / "papers.md", papers.FULL)
    )
    for paper in (*papers.PAPERS, papers.BASELINES):
        for number, claim in enumerate(paper.claims, start=1):
            assert f"**{paper.letter}{number}** {claim.where}" in page
            assert f"| **{paper.letter}{number}** {claim.where} | " in full
            for test in claim.tests:
                assert f"`{test.partition('::')[2]}`" in full
    counted = papers.opening([claim for paper in papers.PAPERS for claim in paper.claims])
    assert counted.replace("\n", " ") in page
    assert papers.reproduction(papers.totals()).replace("\n", " ") in page


def test_main_says_what_is_wrong_and_fails(papers, claim_module, line, monkeypatch, capsys):
    broken = replace(line, measure=lambda: claim_module.Finding(claimed=1.0, lower=1.26))
    monkeypatch.setattr(papers, "PAPERS", (claim_module.Paper("a paper", "P", "P", (broken,)),))
    monkeypatch.setattr(papers, "BASELINES", claim_module.Paper("others", "B", "B", ()))
    assert papers.main([]) == 1
    assert "P, Theorem 0: is marked 'holds', the numbers say 'false'" in capsys.readouterr().err
    assert papers.main(["--else"]) == 2


def test_numbers_are_rounded_to_the_safe_side(claim_module):
    assert (claim_module.down(1.2599), claim_module.up(0.7581), claim_module.near(27.886)) == ("1.25", "0.759", "27.9")
    assert (claim_module.down(28.571), claim_module.up(61.751, 2), claim_module.near(9319.7, 4)) == (
        "28.5",
        "62",
        "9,320",
    )
    assert (claim_module.down(math.inf), claim_module.near(2.0), claim_module.near(0.0)) == ("∞", "2", "0")


def test_reproduced_counts_are_those_of_the_results(papers):
    results = sys.modules["paper_claims.reproduced"]
    total = results.totals()
    text = results.RESULTS.read_text(encoding="utf-8")
    numbers, claims = total["numbers"], total["claims"]
    assert f"Of {numbers.compared + numbers.not_run} printed numbers {numbers.hold} hold" in text
    assert f"Of {claims.compared + claims.not_run} claims {claims.hold} hold" in text
    with pytest.raises(KeyError):
        results.reproduced("DP-SIS", "Table 99")


def test_several_tables_of_a_page_are_written_and_compared(papers, monkeypatch, tmp_path, capsys):
    in_page = sys.modules["in_page"]
    monkeypatch.setattr(in_page, "PAGES", tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- table:a -->\nold\n<!-- /table -->\nprose\n<!-- table:b -->\n<!-- /table -->\n")

    def run(argument, **tables):
        return in_page.run_all([argument], "script", "page.md", lambda: tables)

    assert run("--check", a="1", b="2") == 1
    assert "another table a" in capsys.readouterr().err
    assert run("--write", a="1", b="2") == 0
    assert page.read_text() == ("<!-- table:a -->\n1\n<!-- /table -->\nprose\n<!-- table:b -->\n2\n<!-- /table -->\n")
    assert run("--check", a="1", b="2") == 0
    assert run("--check", a="1", b="3") == 1
    assert run("--write", c="4") == 1
    assert "the markers <!-- table:c --> and <!-- /table --> are missing" in capsys.readouterr().err
