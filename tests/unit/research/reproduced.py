"""Experiments made by hand, and what reads their pages back."""

import html
import re
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

import pytest

from taciturn_research.harness import Config
from taciturn_research.reproduce import pages
from taciturn_research.reproduce.experiment import (
    NOT_PRIVATE_SCALING,
    SYNTHETIC,
    Case,
    Claim,
    Experiment,
    Finding,
    Numbers,
    Picture,
    Published,
    Table,
)
from taciturn_research.reproduce.runner import Trial, source_digest, trials_in, versions

needs_matplotlib = pytest.mark.skipif(not pages.content.can_draw(), reason="matplotlib is not installed")

ODD = "a<b> & c|d *e*"
OLD, NEW = "Old (published)", "NewSelector"


def numbers_of_trial(prepared, seed):
    """Three trials: means are those of the middle one, standard deviations 0.1 for ODD and 0 for the count."""
    step = 0.1 * (seed - 1)
    rows = [
        {"set": ODD, "method": OLD, "measure": "F1", "value": 0.3 + step},
        {"set": ODD, "method": NEW, "measure": "F1", "value": 0.9 + step},
        {"set": ODD, "method": OLD, "measure": "count", "value": 7},
    ]
    for epsilon in (1.0, 10.0):
        for place, name in enumerate(("first", "second")):
            rows.append({"data": name, "epsilon": epsilon, "by": OLD, "value": 0.1 * epsilon + 2 * place + step})
            rows.append({"data": name, "epsilon": epsilon, "by": NEW, "value": 0.05 * epsilon + step})
    return rows


def published(measure, value, reason="", **others):
    return Published("Table 1", {"set": ODD, "method": OLD, "measure": measure} | others, value, reason=reason)


def new_is_better(numbers):
    new, old = (numbers.mean({"method": method, "measure": "F1"}) for method in (NEW, OLD))
    return Finding(new > old, f"{new:.1f} > {old:.1f}")


def old_is_better(numbers):
    return replace(new_is_better(numbers), holds=not new_is_better(numbers).holds)


def about_what_was_not_run(numbers):
    return Finding(numbers.mean({"method": "never run"}) > 0, "it is")


EXPERIMENT = Experiment(
    name="made-up",
    paper="On Numbers Made by Hand (A & B)",
    summary="numbers made by hand",
    relation="replace-one",
    scaling=NOT_PRIVATE_SCALING,
    notes=("Ties are broken by index, if |w*| < 1.",),
    trials=100,
    quick_trials=3,
    prepare=lambda dataset: dataset,
    run=numbers_of_trial,
    cases=(
        SYNTHETIC,
        Case("near_one", dataset="near_one", stands_in_for="Far One"),
        Case("gone", dataset="gone"),
        Case("huge", dataset="huge", setting="full"),
    ),
    published=(
        published("F1", 0.45, reason="never asked for"),
        published("F1", 0.75, reason="it never ran"),
        published("count", 7.0),
        published("count", 8.0),
        published("F1", 0.5, set="gone"),
    ),
    claims=(
        Claim("Figure 1", "New finds more than old.", new_is_better, reason="never asked for"),
        Claim("Figure 1", "Old finds more than new.", old_is_better, reason="it was tuned"),
        Claim("Figure 1", "It was run.", about_what_was_not_run),
    ),
    tables=(Table("Figure 1", ("data", "by"), "epsilon", mean_over="data"),),
    pictures=(
        Picture("Figure 1", "curves", "curves", "epsilon", "by", "privacy", "error", panels="data", x_scale="log"),
        Picture("Figure 2", "less", "heat map", "epsilon", "data", "privacy", "error", subtract=("by", OLD, NEW)),
        Picture("Figure 2", "never run", "bars", "nothing", "by", "privacy", "error"),
    ),
)
UNRUN = replace(EXPERIMENT, name="unrun")


def record_trial(folder, experiment, case, trial, seed, data, rows):
    config = Config(case, experiment.name, seed=trial)
    trials_in(folder, (experiment,)).add(Trial(config, seed, data, rows, source_digest(experiment), versions()))


def record_trials(folder, experiment=EXPERIMENT):
    for trial in range(3):
        record_trial(folder, experiment, "synthetic", trial, 40 + trial, "", numbers_of_trial(None, trial))
    row = {"data": "near_one", "epsilon": 1.0, "by": OLD, "value": 1 / 3}
    record_trial(folder, experiment, "near_one", 0, 77, "d1gest", [row])


def text_of(folder, name):
    return (folder / name).read_text(encoding="utf-8")


# ------------------------------------------------------------------ reading pages


@dataclass
class ReadTable:
    caption: str = ""
    folded: bool = False
    rows: list = field(default_factory=list)


class Reader(HTMLParser):
    """Tables, images, headings, strong words and all text of a page."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.images, self.headings, self.strong, self.texts = [], [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.tables.append(ReadTable(folded="details" in self.open))
        elif tag == "tr":
            self.tables[-1].rows.append([])
        elif tag in ("td", "th"):
            self.tables[-1].rows[-1].append("")
        elif tag in ("img", "svg"):
            self.images.append(dict(attributes))
        elif tag in ("h1", "h2", "h3"):
            self.headings.append([tag, ""])
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"script", "style"} & set(self.open):
            return
        self.texts.append(data)
        if self.open and self.open[-1] == "strong":
            self.strong.append(data)
        if self.open and self.open[-1] == "caption":
            self.tables[-1].caption += data
        elif {"td", "th"} & set(self.open):
            self.tables[-1].rows[-1][-1] += data
        elif self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings[-1][1] += data


def faults(text):
    """What is missing in a page for those who do not see it, or read it in part."""
    reader = Reader(text)
    found = [f"table {place} has no caption" for place, table in enumerate(reader.tables) if not table.caption]
    found += ["an image has no alt" for image in reader.images if not image.get("alt")]
    found += ["an image is loaded" for image in reader.images if not image["src"].startswith("data:image/")]
    return found + [f"{tag} left open" for tag in reader.open]


def plain(markdown):
    """Text without marks of Markdown."""
    return html.unescape(re.sub(r"\\(.)", r"\1", markdown.replace("**", "")))


def markdown_tables(text):
    """Rows of all tables, without their rules."""
    tables, last = [], ""
    for line in text.splitlines():
        if line.startswith("| "):
            if not last.startswith("| "):
                tables.append([])
            cells = [plain(cell) for cell in re.split(r"(?<!\\) \| ", line.removeprefix("| ").removesuffix(" |"))]
            if not all(re.fullmatch("---:?", cell) for cell in cells):
                tables[-1].append(cells)
        last = line
    return tables


TRIALS = Numbers(row for trial in range(3) for row in numbers_of_trial(None, trial))
