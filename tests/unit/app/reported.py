"""Models to report on, and what reads a page back."""

import base64
import hashlib
import itertools
import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
from ledgers_made import STUDY, made_ledger

from taciturn import Budget, Certificate, SparseClassifier, SparseRegressor
from taciturn.app.model_file import Model, ScoreFile
from taciturn.app.report.account import account_page
from taciturn.app.report.model import model_report
from taciturn.app.report.page import Page
from taciturn.charts import odds_chart
from taciturn.data.target import ClassCells, ErrorCells, MarginCells, margin_edges
from taciturn.events import NotPrivateEvent, PureEvent
from taciturn.methods.inference.summary import Inference
from taciturn.methods.scores.function import ModelScore
from taciturn.privacy.certificate import certify
from taciturn.privacy.claim import Release
from taciturn.tables import TableBounds, TableSchema

EVIL = '<script>alert(1)</script>&"'
QUOTED = "blood \"pressure\" 'systolic'"
PNG = b"\x89PNG\r\n\x1a\n" + b"not read any further"


# ------------------------------------------------------------------ models to report on


class Fitted:
    """Holds what a report may read, and nothing else: another attribute is an error."""

    __slots__ = ("classes_", "coef_", "intercept_", "invalid")

    def __init__(self, **attributes):
        for name, value in ({"invalid": "raise"} | attributes).items():
            setattr(self, name, value)


def certificate_of_fit(epsilon=1.0, *, seeded=False, **changes):
    releases = (
        Release("the mean of the target", "Laplace", 10.0, PureEvent(epsilon / 4)),
        Release("a selected feature", "Gumbel", 4.0, PureEvent(epsilon / 4), count=3),
    )
    public = {"features": 4, "records": 12345, "nested": {"a list": list(range(30))}}
    details = {"relation": "zero-out", "public": public, "assumptions": ("bounds came first",), "arithmetic": "exact"}
    return certify(releases, Budget(epsilon, 1e-6), seeded=seeded, **(details | changes))


BOUNDS = f"""
[columns.age]
type = "number"
lower = 10
upper = 110
[columns.{json.dumps(EVIL)}]
type = "number"
lower = -0.5
upper = 0.5
[columns.smoker]
type = "boolean"
[columns.region]
type = "category"
categories = ["north", "south"]
[columns.id]
type = "ignore"
[missing]
age = 50
"""


def bounds_of(name, stated):
    kinds = ("number", "number", "boolean", "category", "category", "number")
    schema = TableSchema(("age", EVIL, "smoker", "region", "id", name), kinds)
    return TableBounds.from_toml(f"[target]\nname = {json.dumps(name)}\n{stated}\n{BOUNDS}").for_table(schema)


def regression(certificate=None, **fitted):
    bounds = bounds_of(QUOTED, "lower = 0\nupper = 250")
    values = {"coef_": np.array([20.0, -8.0, 0.0, 5.0, 1e-5]), "intercept_": 120.0}
    return SimpleNamespace(
        task="regress",
        bounds=bounds,
        estimator=Fitted(**(values | fitted)),
        certificate=certificate or certificate_of_fit(),
        feature_names=bounds.feature_names,
        command=f"taciturn fit table.csv --target {QUOTED!r} -o out",
        to_json=lambda: "the text of model.json",
        digest=None,
    )


def classification(classes, certificate=None):
    bounds = bounds_of("y", f"classes = {json.dumps(classes)}")
    n_outputs = 1 if len(classes) == 2 else len(classes)
    coefficients = np.arange(1.0, 5 * n_outputs + 1).reshape(n_outputs, 5) * np.array([1.0, -1.0, 0.0, 0.5, -0.25])
    return SimpleNamespace(
        task="classify",
        bounds=bounds,
        estimator=Fitted(coef_=coefficients, intercept_=np.zeros(n_outputs), classes_=np.array(classes)),
        certificate=certificate or certificate_of_fit(),
        feature_names=bounds.feature_names,
        command="taciturn fit table.csv",
        to_json=lambda: "the text of model.json",
        digest=None,
    )


def inferred(task="regress", **changes):
    """A model with standard errors that were made up: of all features but one, and of the intercept."""
    stated = "lower = 0\nupper = 250" if task == "regress" else 'classes = ["no", "yes"]'
    coefficients = changes.pop("coef", np.array([1.5, -0.75, 0.0, 0.4, -0.01]))
    estimator = SparseRegressor() if task == "regress" else SparseClassifier()
    estimator.coef_ = coefficients if task == "regress" else coefficients[None, :]
    estimator.intercept_ = 0.25 if task == "regress" else np.array([0.25])
    estimator.n_features_in_ = 5
    estimator.certificate_ = certificate_of_fit()
    if task == "classify":
        estimator.classes_ = np.array(["no", "yes"])
    else:
        estimator.y_bounds_ = (0.0, 250.0)
    sampling, privacy = np.array([0.3, 0.12, 0.4, 0.02, 0.05]), np.array([0.4, 0.05, 0.3, 0.0, 0.12])
    estimator.inference_ = replace(errors_of([0, 1, 3, 4], [sampling], [privacy]), **changes)
    return Model(bounds_of(QUOTED if task == "regress" else "y", stated), estimator, "taciturn fit t.csv --inference")


def errors_of(columns, sampling, privacy, **changes):
    """Standard errors of columns by their parts, one list per table, with normal quantiles."""
    sampling, privacy = np.array(sampling, dtype=float), np.array(privacy, dtype=float)
    details = {
        "columns": np.array(columns),
        "std_error": np.hypot(sampling, privacy),
        "sampling": sampling,
        "privacy": privacy,
        "degrees": np.full(sampling.shape, np.inf),
        "allowance": np.zeros(sampling.shape),
        "confounded": ((),) * sampling.shape[1],
        "confidence_level": 0.95,
        "n_records": 12_345,
        "split": True,
    }
    return Inference(**(details | changes))


NAN = math.nan


def partly(task="regress", **changes):
    """A model of which two coefficients are confounded with each other, and so is the intercept of classes."""
    gone = NAN if task == "regress" else 0.2
    confounded = ((), (), (3,), (2,), ())
    errors = errors_of(
        [0, 1, 3, 4], [[0.3, 0.12, NAN, NAN, gone]], [[0.4, 0.05, NAN, NAN, gone]], confounded=confounded,
        degrees=np.array([[12.5, math.inf, math.inf, math.inf, math.inf]]),
        allowance=np.array([[0.0, 0.25, 0.0, 0.0, 0.0]]),
    )  # fmt: skip
    made = inferred(task)
    made.estimator.inference_ = replace(errors, **changes)
    return made


def three_classes(**changes):
    """A model of three classes, with a table for each but the first; one coefficient is estimable in one of them."""
    estimator = SparseClassifier()
    estimator.classes_ = np.array(["low", EVIL, "high"])
    estimator.coef_ = np.array([[0.0] * 5, [1.5, -0.75, 0.0, 0.4, -0.01], [-0.5, 2.0, 0.0, 0.1, 0.3]])
    estimator.intercept_ = np.array([0.0, 0.25, -1.0])
    estimator.n_features_in_ = 5
    estimator.certificate_ = certificate_of_fit()
    sampling = [[0.3, 0.12, 0.4, 0.02, 0.05], [0.1, 0.2, 0.3, NAN, 0.1]]
    privacy = [[0.4, 0.05, 0.3, 0.0, 0.12], [0.05, 0.1, 0.1, NAN, 0.2]]
    errors = errors_of([0, 1, 3, 4], sampling, privacy, confounded=((), (), (), (0, 4), ()))
    estimator.inference_ = replace(errors, **changes)
    stated = f"classes = {json.dumps(['low', EVIL, 'high'])}"
    return Model(bounds_of("y", stated), estimator, "taciturn fit t.csv --inference")


def no_errors(**changes):
    nothing = np.full((1, 5), np.nan)
    reason = f"the matrix is not clear of its noise {EVIL}."
    return inferred(**({"std_error": nothing, "sampling": nothing, "privacy": nothing, "reason": reason} | changes))


def at_length():
    """A model of which everything is long: names, columns, classes, releases, assumptions."""
    name = "systolic blood pressure after ten minutes of rest, mean of three readings "
    columns = tuple(f"{name}{i:03}" for i in range(300))
    classes = [f"{name}class {i}" for i in range(40)]
    stated = f"[target]\nname = {json.dumps(name)}\nclasses = {json.dumps(classes)}\n[defaults]\nlower = 0\nupper = 1"
    bounds = TableBounds.from_toml(stated).for_table(TableSchema((*columns, name), ("number",) * 301))
    releases = [Release(f"{name}{i}", "two-sided geometric", 1e4, PureEvent(1e-4), count=100) for i in range(60)]
    certificate = certify(
        releases,
        Budget(1.0, 1e-6),
        relation="replace-one",
        public={"records": 10**9, "classes": classes, "x_bound": 1.0, "invalid": "raise"},
        assumptions=tuple(f"{name}is public, number {i}" for i in range(50)),
        seeded=True,
        arithmetic="float64",
        unit="person",
        account_head="0" * 64,
    )
    coefficients = np.zeros((40, 300))
    coefficients[:, :2] = 1.0
    return SimpleNamespace(
        task="classify",
        bounds=bounds,
        estimator=Fitted(coef_=coefficients, intercept_=np.ones(40), classes_=np.array(classes)),
        certificate=certificate,
        feature_names=bounds.feature_names,
        command="taciturn fit table.csv " * 20,
        to_json=lambda: "the text of model.json",
        digest=None,
    )


def made_score(labels, std=3.0, **changes):
    """A score with counts that were made up: the more of a class, the larger its probability."""
    cells = ErrorCells.of_bins((0.0, 250.0), 10, 16)
    if labels:
        edges = margin_edges(2, 1000)
        cells = MarginCells(edges) if len(labels) == 2 else ClassCells(edges, len(labels))
    rising = np.arange(cells.n_cells) % 26
    counts = np.where(np.arange(cells.n_cells) // 26 % 2, rising, 25 - rising) * 4.0
    certificate = certificate_of_fit(0.5, seeded=True, **changes)
    return ScoreFile(ModelScore(cells, tuple(counts.tolist()), std, tuple(labels), certificate), "digest")


def without_noise():
    return certify(
        [Release("everything", "none", 0.0, NotPrivateEvent())],
        Budget(math.inf, 0.0),
        relation="zero-out",
        public={},
        seeded=False,
        arithmetic="exact",
    )


def as_published(proved):
    content = json.loads(certificate_of_fit().to_json()) | {"status": "as published", "proved_epsilon": proved}
    return Certificate.from_json(json.dumps(content | {"errata": ["Lemma 2 is false"]}))


def kitchen_sink():
    """A page with everything that the kit has."""
    page = Page(f"Title {EVIL}")
    page.paragraph(f"Head {EVIL}")
    page.banner(f"Banner {EVIL}")
    for title in (EVIL, "Second", "Second", "%%%", "%%%", "Sixth"):
        page.section(title)
    page.section("Part", level=3)
    page.points([EVIL, "two"])
    page.facts([(EVIL, EVIL)])
    page.table([EVIL, "n"], [[EVIL, "1"], ["b", "2"]], f"Caption {EVIL}", numeric={1})
    page.table(["long"], [[str(i)] for i in range(40)], "Folded", folded=True)
    page.figure(PNG, f"A picture {EVIL}", EVIL)
    page.figure(b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "An image", "Caption")
    page.figure(odds_chart(1.0, EVIL), f"A drawing {EVIL}", EVIL)
    page.code_block(EVIL, EVIL)
    page.code_block(EVIL, EVIL, folded=True)
    return page.render()


REPORTS = {
    "regression": lambda: model_report(regression()),
    "binary": lambda: model_report(classification([False, True], certificate_of_fit(2.0, seeded=True))),
    "multi-class": lambda: model_report(classification(["low", EVIL, "high"])),
    "not private": lambda: model_report(regression(without_noise())),
    "as published": lambda: model_report(regression(as_published(3.5))),
    "empty": lambda: model_report(regression(coef_=np.zeros(5))),
    "intervals": lambda: model_report(inferred()),
    "odds ratios": lambda: model_report(inferred("classify")),
    "no intervals": lambda: model_report(no_errors()),
    "partly estimable": lambda: model_report(partly("classify")),
    "three classes with intervals": lambda: model_report(three_classes()),
    "scored": lambda: model_report(classification(["no", EVIL]), made_score(["no", EVIL])),
    "scored classes": lambda: model_report(classification(["low", EVIL, "high"]), made_score(["low", EVIL, "high"])),
    "scored numbers": lambda: model_report(regression(), made_score([], std=400.0)),
    "account": lambda: account_page(made_ledger(STUDY)),
    "damaged account": lambda: account_page(made_ledger(STUDY)[1:]),
    "kit": kitchen_sink,
}


VOID = {"meta", "img", "link", "input", "base", "br", "hr"}
LOADING = {"link", "iframe", "object", "embed", "base", "form", "audio", "video", "source", "image", "use"}


class Element:
    def __init__(self, name, attributes):
        self.name, self.attributes, self.children, self.text = name, attributes, [], ""

    def walk(self):
        yield self
        for child in self.children:
            yield from child.walk()

    def find(self, *names):
        return [found for found in self.walk() if found.name in names]

    def words(self):
        """All text inside, white space collapsed as a browser does."""
        return " ".join("".join(found.text for found in self.walk()).split())


class Tree(HTMLParser):
    """The elements of a page, and what is wrong with their nesting."""

    def __init__(self, text):
        super().__init__()
        self.root = Element("root", {})
        self.open, self.faults = [self.root], []
        self.feed(text)
        self.close()
        self.faults += [f"<{element.name}> is not closed" for element in self.open[1:]]

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.faults.append(f"<{tag}> has an attribute twice")
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        if self.open[-1].name != tag:
            self.faults.append(f"</{tag}> closes <{self.open[-1].name}>")
        else:
            self.open.pop()

    def handle_data(self, data):
        self.open[-1].text += data


def tables(root, start):
    """Tables whose captions start so, without those of the page to sign."""
    signed = [each for part in root.find("section") if part.attributes["class"] == "sheet" for each in part.walk()]
    found = [table for table in root.find("table") if table not in signed]
    return [table for table in found if table.children[0].words().startswith(start)]


def drawings(root, kind="wide"):
    """Charts that fill the page in a wide window, or in a narrow one."""
    return [svg for svg in root.find("svg") if svg.attributes.get("class") == kind]


def faults_of(text):
    """What a reader, a screen reader or a browser would stumble over."""
    tree = Tree(text)
    root, faults = tree.root, list(tree.faults)

    def expect(condition, fault):
        if not condition:
            faults.append(fault)

    expect(text.startswith("<!doctype html>"), "no doctype")
    expect(root.find("html")[0].attributes.get("lang"), "no language")
    expect(root.find("title")[0].words().strip(), "no title")
    for name in ("h1", "main", "header", "footer"):
        expect(len(root.find(name)) == 1, f"not one <{name}>")
    levels = [int(heading.name[1]) for heading in root.find("h1", "h2", "h3", "h4", "h5", "h6")]
    expect(all(b <= a + 1 for a, b in itertools.pairwise(levels)), "a gap between headings")
    expect(all(heading.words().strip() for heading in root.find("h1", "h2", "h3", "h4")), "an empty heading")
    ids = [element.attributes["id"] for element in root.walk() if "id" in element.attributes]
    expect(len(set(ids)) == len(ids), "an id twice")
    for element in root.walk():
        named = element.attributes
        expect(element.name not in LOADING, f"<{element.name}> can load something")
        expect(not any(name.startswith("on") for name in named), "an inline handler")
        source = named.get("src", "data:")
        expect(source.startswith("data:image/"[: len(source)]), "a source from elsewhere")
        expect(named.get("href", "#").startswith("#"), "a link to elsewhere")
        expect(named.get("href", "#content")[1:] in ids, "a link to nowhere")
        for label in named.get("aria-labelledby", "").split():
            expect(label in ids, "a label that does not exist")
    for image in root.find("img"):
        expect(image.attributes.get("alt", "").strip(), "an image without alt")
    for drawing in root.find("svg"):
        expect(drawing.attributes.get("role") == "img", "a drawing without a role")
        labels = drawing.attributes.get("aria-labelledby", "").split()
        texts = {e.attributes.get("id"): e.words() for e in drawing.children if e.name in ("title", "desc")}
        expect(len(labels) == 2 and all(texts.get(label, "").strip() for label in labels), "a drawing without words")
    for figure in root.find("figure"):
        expect(any(caption.words().strip() for caption in figure.find("figcaption")), "a figure without caption")
    for table in root.find("table"):
        expect(table.children[0].name == "caption" and table.children[0].words().strip(), "a table without caption")
        expect(all("scope" in heading.attributes for heading in table.find("th")), "a heading cell without scope")
        widths = {len(row.children) for row in table.find("tr")}
        expect(len(widths) == 1, "a ragged table")
    policies = [m.attributes["content"] for m in root.find("meta") if "http-equiv" in m.attributes]
    scripts = root.find("script")
    expect(len(scripts) == 1, "not one script")
    digests = [base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode() for script in scripts]
    expect(len(policies) == 1 and f"script-src 'sha256-{digests[0]}';" in policies[0], "a script that may not run")
    expect(policies and policies[0].startswith("default-src 'none';"), "no policy against loading")
    styles = "".join(style.text for style in root.find("style"))
    expect("url(" not in styles and "@import" not in styles, "a style that loads something")
    return faults
