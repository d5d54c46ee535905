"""What certificates show in a notebook, and what fits tell a log."""

import html
import logging

import numpy as np
import pytest
from reported import EVIL, Tree, as_published, certificate_of_fit, without_noise

from taciturn import SparseClassifier, private_score
from taciturn.charts import posterior_range
from taciturn.privacy.certificate import compose, in_short, in_words, list_facts

CERTIFICATES = {
    "proved": certificate_of_fit(),
    "evil": certificate_of_fit(public={"classes": ["no", EVIL]}, assumptions=(EVIL,)),
    "persons": certificate_of_fit(unit="person"),
    "composed": compose(certificate_of_fit(), certificate_of_fit(2.0)),
    "seeded": certificate_of_fit(seeded=True),
    "not private": without_noise(),
    "published": as_published(3.5),
    "refuted": as_published("inf"),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_the_card_of_a_certificate_is_whole_and_self_contained(name):
    certificate = CERTIFICATES[name]
    card = certificate._repr_html_()
    tree = Tree(card)
    assert tree.faults == []
    words = tree.root.words()
    assert in_short(certificate) in words
    for _, text in list_facts(certificate):
        assert text in words
    # A notebook shows many of them in one page, and none may load or run anything.
    assert not tree.root.find("script", "link", "img", "iframe")
    assert not any("id" in each.attributes for each in tree.root.walk())
    assert "url(" not in card
    assert "@import" not in card
    assert EVIL not in card
    assert (EVIL in words) == (name == "evil")


@pytest.mark.parametrize(("name", "epsilon"), [("proved", 1.0), ("published", 3.5), ("composed", 3.0)])
def test_the_picture_is_that_of_what_is_proved(name, epsilon):
    root = Tree(CERTIFICATES[name]._repr_html_()).root
    (svg,) = root.find("svg")
    epsilon = CERTIFICATES[name].epsilon if name == "composed" else epsilon
    (low, high) = posterior_range(0.5, epsilon)
    told = svg.attributes["aria-label"]
    least, most = (float(part.split("%")[0]) / 100 for part in (told.split("at least ")[1], told.split("at most ")[1]))
    assert least <= low < least + 0.001
    assert most - 0.001 < high <= most
    # The curve in the middle of the square: prior 50%.
    (region,) = [path.attributes["d"] for path in svg.find("path") if path.attributes["class"] == "region"]
    points = np.array([[float(c) for c in point.split()] for point in region.strip("MZ").split("L")])
    middle = points[np.abs(points[:, 0] - (62.0 + 75.0)) < 1e-6][:, 1]
    assert sorted((164.0 - middle) / 150.0) == pytest.approx([low, high], abs=1e-4)


@pytest.mark.parametrize("name", ["not private", "refuted"])
def test_nothing_is_drawn_where_nothing_is_proved(name):
    assert not Tree(CERTIFICATES[name]._repr_html_()).root.find("svg")


@pytest.mark.parametrize("name", CERTIFICATES)
def test_facts_are_the_statement_in_parts(name):
    """What the paragraph says stands among the facts, and nothing twice but releases that were made twice."""
    certificate = CERTIFICATES[name]
    facts, paragraph = list(list_facts(certificate)), in_words(certificate)
    assert facts[0][1] in paragraph
    assert [text for kind, text in facts if kind == "released"] == [*map(str, certificate.events)]
    others = [text for kind, text in facts if kind != "released"]
    assert len(set(others)) == len(others)
    (public,) = [text for kind, text in facts if kind == "public"] or [""]
    assert public in paragraph
    assumed = [text for kind, text in facts if kind == "assumed"]
    assert assumed == ([] if certificate.status == "not private" else [*certificate.assumptions])


def test_a_score_logs_its_phases_and_public_facts(caplog):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 3))
    y = X[:, 0] > 0
    model = SparseClassifier(classes=(False, True), epsilon=5.0, random_state=0).fit(X, y)
    with caplog.at_level(logging.INFO, logger="taciturn"):
        private_score(model, X, y, random_state=0)
        first = [(record.phase, record.getMessage()) for record in caplog.records]
        caplog.clear()
        private_score(model, -X, y, random_state=1)
    assert [phase for phase, _ in first] == ["planned", "reserved", "reading", "running", "certified"]
    assert [(record.phase, record.getMessage()) for record in caplog.records] == first
    assert "400 records" in first[0][1]


def test_libraries_do_not_configure_logs():
    """Handlers are up to the program; a handler of our own would print twice, and none at all would print warnings."""
    handlers = logging.getLogger("taciturn").handlers
    assert [type(handler) for handler in handlers] == [logging.NullHandler]
    assert logging.getLogger("taciturn").level == logging.NOTSET


def test_weights_stand_in_the_table_of_a_model_without_errors():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 20))
    y = np.where(X[:, 0] - X[:, 3] + 0.5 * rng.normal(size=2000) > 0, "case", "control")
    model = SparseClassifier(epsilon=5.0, classes=("case", "control"), n_nonzero="all", random_state=0).fit(X, y)
    root = Tree(model._repr_html_().partition('<div class="taciturn-card">')[2]).root
    (table,) = [each for each in root.find("table") if each.find("caption")]
    header, *rows = [[cell.words() for cell in row.children] for row in table.find("tr")]
    assert header == ["feature", "weight"]
    assert (
        "20 of 20 features have a weight in the prediction rule (control against case); the first 10 are shown"
        in table.words()
    )
    largest = np.argsort(-np.abs(model.coef_[0]))[:10]
    assert [row[0] for row in rows] == [*(f"x{j}" for j in largest), "(intercept)"]
    for (_, weight), j in zip(rows[:-1], largest, strict=True):
        assert float(weight) == pytest.approx(model.coef_[0, j], rel=1e-3)
    assert "No standard errors: SparseRegressor and SparseClassifier with inference=True have intervals" in root.words()
    assert html.escape(in_short(model.certificate_)) in model._repr_html_()
