"""Formulas on pages become MathML, and nothing else does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs"
MATHML = '<math xmlns="http://www.w3.org/1998/Math/MathML"'


def module_of(name, *needed):
    """A module of the pages, or a skip where its packages are not installed."""
    for package in needed:
        pytest.importorskip(package, reason="pages need taciturn[docs]")
    spec = importlib.util.spec_from_file_location(f"pages_{name}", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def mathematics():
    return module_of("mathematics", "latex2mathml", "pymdownx")


@pytest.fixture
def html_of(mathematics):
    """Converts Markdown as the site does."""
    from markdown import markdown

    return lambda text: markdown(
        text,
        extensions=[mathematics.Mathematics(), "pymdownx.arithmatex", "pymdownx.superfences", "tables"],
        extension_configs={"pymdownx.arithmatex": {"generic": True}},
    )


@pytest.mark.parametrize(
    ("text", "display"),
    [
        ("So $x < y$ holds.", "inline"),
        ("$$\nx < y\n$$", "block"),
        ("| a |\n|---|\n| $x < y$ |", "inline"),
    ],
)
def test_a_formula_becomes_mathml(html_of, text, display):
    shown = html_of(text)
    assert f'{MATHML} display="{display}"><mrow><mi>x</mi><mo>&#x0003C;</mo><mi>y</mi></mrow></math>' in shown
    assert "$" not in shown


@pytest.mark.parametrize("text", ["It costs $5, not $6.", "`$x$` is code.", "```\n$x$\n```"])
def test_dollars_and_code_stay(html_of, text):
    shown = html_of(text)
    assert MATHML not in shown
    assert shown.count("$") == 2


@pytest.mark.parametrize(
    ("formula", "part"),
    [
        (r"\|x\|", "<mi>‖</mi>"),
        (r"\mathcal L", "<mi>\N{SCRIPT CAPITAL L}</mi>"),
        (r"\mathcal A", "<mi>\N{MATHEMATICAL SCRIPT CAPITAL A}</mi>"),
        (r"\mathbb E", "<mi>\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL E}</mi>"),
        (r"\arg\min_w f", "<mo>arg</mo>"),
        (r"\begin{aligned}a &= b \\ c &= d\end{aligned}", "<mtr>"),
    ],
)
def test_what_browsers_do_not_read_by_themselves_is_converted(mathematics, formula, part):
    assert part in mathematics.mathml(formula, "inline")


@pytest.mark.parametrize("formula", [r"\foo", r"\foo{x}", "a & b", r"x \@ y"])
def test_an_unknown_command_is_refused(mathematics, formula):
    with pytest.raises(ValueError, match="cannot be converted to MathML"):
        mathematics.mathml(formula, "inline")


def test_formulas_of_docstrings_are_marked():
    plain = module_of("plain_docstrings", "griffe")
    docstring = (
        "Sum.\n\nWith :math:`a\n    b` in a line and\n\n"
        ".. math:: x &= y \\\\\n          z &= 1\n\nbelow, as :class:`~a.B`."
    )
    lines = r"\begin{aligned}x &= y \\ z &= 1\end{aligned}"
    assert plain.to_markdown(docstring) == f"Sum.\n\nWith $a b$ in a line and\n\n$${lines}$$\n\nbelow, as `B`."
