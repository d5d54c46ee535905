"""What the report says, block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from taciturn_research.reproduce.pages.arrange import claims_grid, overall_cell, own_grids, side_by_side
from taciturn_research.reproduce.pages.blocks import Block, Cell, Facts, Grid, Heading, Image, Paragraph, Stamped
from taciturn_research.reproduce.pages.figures import can_draw, images_of
from taciturn_research.reproduce.pages.results import Result, outcomes
from taciturn_research.reproduce.records import versions
from taciturn_research.reproduce.verdicts import Overall

__all__ = ["MEANING", "counted", "report_blocks", "short_name"]

MEANING = (
    "A number that a paper prints holds if it lies within two standard deviations of one trial around our mean, or "
    "differs by less than its last digit tells. A claim without a number holds if our numbers bear it out; the "
    "evidence stands beside it."
)
_NO_FIGURES = "No figures: matplotlib is not installed (pip install 'taciturn[reproduce]')."
_NOT_PRIVATE = "not private"


def counted(what: str, outcome: Mapping[str, int]) -> str:
    """How many of the printed numbers, or of the claims, hold.

    Examples
    --------
    >>> counted("claims", {"holds": 3, "not run": 1})
    'Of 4 claims 3 hold, 0 do not, 1 not run for lack of data.'
    """
    holds, fails, not_run = (outcome.get(word, 0) for word in ("holds", "does not hold", "not run"))
    end = f", {not_run} not run for lack of data" if not_run else ""
    return f"Of {holds + fails + not_run} {what} {holds} hold, {fails} do not{end}."


def short_name(paper: str) -> str:
    """The name in parentheses after a paper's title, where there is one.

    Examples
    --------
    >>> short_name("Feature Selection from Differentially Private Correlations (DP-SIS)")
    'DP-SIS'
    """
    _, _, name = paper.rpartition("(")
    return name.removesuffix(")")


def report_blocks(results: Sequence[Result]) -> list[Block]:
    """The whole report: what holds means, a summary, and a chapter for every experiment that was run."""
    run = [result for result in results if result.run_cases]
    return [*_introduction(results), *(block for result in run for block in _chapter(result))]


def _introduction(results: Sequence[Result]) -> Iterator[Block]:
    run = [result for result in results if result.run_cases]
    numbers, claims = outcomes(run)
    yield Paragraph(
        "Tables and figures of the papers, made again: the published algorithm as it is printed, and sound methods at "
        "the same privacy beside it."
    )
    yield Paragraph(f"{MEANING} {counted('printed numbers', numbers)} {counted('claims', claims)}")
    computed_by = ", ".join(f"{name} {number}" for name, number in versions().items())
    yield Paragraph(f"Computed by {computed_by}.")
    left_out = [result.experiment.name for result in results if not result.run_cases]
    if left_out:
        yield Paragraph(f"Left out, since no trial of them is finished: {', '.join(left_out)}.")
    if not can_draw():
        yield Paragraph(_NO_FIGURES)
    yield Heading("Summary", 2)
    lines = tuple(
        (short_name(result.experiment.paper), item.item, result.experiment.name, overall_cell(item))
        for result in run
        for item in result.items
    )
    yield Grid(
        "Every table and figure, and what is to be said of it", ("paper", "item", "experiment", "verdict"), lines
    )


def _chapter(result: Result) -> Iterator[Block]:
    experiment = result.experiment
    yield Heading(experiment.name, 2)
    yield Facts(tuple(_facts(result)))
    images = images_of(experiment, result.numbers, result.stand_ins) if can_draw() else {}
    for item in result.items:
        yield Heading(item.item, 3)
        yield Paragraph(overall_cell(item))
        yield from side_by_side(item)
        yield from claims_grid(item)
        yield from _own(result, item, images)


def _own(result: Result, item: Overall, images: Mapping[int, Image]) -> Iterator[Block]:
    """Our own tables and figures of an item."""
    for table in result.experiment.tables:
        if table.item == item.item:
            yield from own_grids(table, result.numbers, result.stand_ins)
    for place, picture in enumerate(result.experiment.pictures):
        if picture.item == item.item and can_draw():
            not_drawn = Paragraph(f"{picture.title}: not drawn, data not available.")
            yield images.get(place, not_drawn)


def _facts(result: Result) -> Iterator[tuple[str, Cell]]:
    experiment = result.experiment
    yield "Paper", experiment.paper
    yield "What", experiment.summary
    yield "Trials", f"{result.trials} (the paper's number: {experiment.trials})"
    yield "Relation", experiment.relation
    yield "Scaling", _stamped(experiment.scaling)
    for note in experiment.notes:
        yield "Note", note
    for name, replaced in result.stand_ins.items():
        yield "Stand-in", Stamped("stand-in", "bad", f"{name} is a ", f" for {replaced}, which is not to be had here")
    if result.not_available:
        yield "Data not available", ", ".join(result.not_available)
    if result.left_for_full:
        yield "Left for the full setting", ", ".join(result.left_for_full)


def _stamped(scaling: str) -> Cell:
    before, word, after = scaling.partition(_NOT_PRIVATE)
    return Stamped(word, "bad", before, after) if word else scaling
