"""Names that deceive: what people read has escapes where there is something that they would not see."""

import json
import sys
import tomllib
import unicodedata
from types import SimpleNamespace

import numpy as np
import pytest
from reported import Fitted, certificate_of_fit

from taciturn.app.cli.screen import print_error, print_line
from taciturn.app.cli.show import print_model
from taciturn.app.report.model import model_report
from taciturn.core.errors import visible
from taciturn.tables import TableBounds, TableSchema
from taciturn.tables.columns import quoted

# The controls of the bidirectional algorithm (UAX 9, table 2), and the mark of Arabic.
BIDI = [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u200e", "\u200f", "\u061c"]
INVISIBLE = [
    "\u200b",
    "\u200c",
    "\u200d",
    "\u2060",
    "\ufeff",
    "\u00ad",
    "\u3164",
    "\u115f",
    "\u2800",
    "\ufe0f",
    "\u00a0",
]
CONTROLS = [
    "\x00",
    "\x07",
    "\x08",
    "\x1b",
    "\x7f",
    "\x85",
    "\x9b",
    "\r",
    "\u2028",
    "\u2029",
    "\ud800",
    "\ue000",
    "\ufffe",
]
BEYOND = ["\U000e0041", "\U000e0100", "\U00100000"]


@pytest.mark.parametrize("character", [*BIDI, *INVISIBLE, *CONTROLS, *BEYOND], ids=lambda each: f"{ord(each):04x}")
def test_what_cannot_be_seen_is_an_escape(character):
    shown = visible(f"a{character}b")
    code = ord(character)
    assert shown == (f"a\\u{code:04x}b" if code < 0x10000 else f"a\\U{code:08x}b")
    assert shown.isascii()
    assert visible(shown) == shown
    # In quotes it is a name of TOML, and the very same.
    if not 0xD800 <= code < 0xE000:
        assert tomllib.loads(f"name = {quoted(f'a{character}b')}") == {"name": f"a{character}b"}


def test_every_control_of_unicode_is_an_escape_and_every_letter_stays():
    """By the categories of the standard: controls, formats, halves, private ones and separators of lines."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        kind = unicodedata.category(character)
        if kind in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp") and character not in "\n\t":
            assert visible(character) != character, hex(code)
        elif kind in ("Lu", "Ll", "Nd", "Sm", "Po") or character in " \n\t":
            assert visible(character) == character, hex(code)


def test_ordinary_names_stay_as_they_are():
    for name in ("age", "größe", "年齢", "возраст", "العمر", "emoji \U0001f600", "a\\b", "x\ny\tz", ""):
        assert visible(name) == name


DECEIVING = "dose\u202eesaesid\u202c\u200b"


@pytest.fixture(scope="module")
def model():
    """A model whose target, columns, categories, classes and command all deceive."""
    name = json.dumps(DECEIVING)
    schema = TableSchema((DECEIVING, "region", "y\u2066"), ("number", "category", "category"))
    bounds = TableBounds.from_toml(
        f"[target]\nname = {json.dumps(schema.names[2])}\nclasses = ['no', {name}]\n"
        f"[columns.{name}]\ntype = 'number'\nlower = 0\nupper = 1\n"
        f"[columns.region]\ntype = 'category'\ncategories = [{name}, 'south']\n"
    ).for_table(schema)
    return SimpleNamespace(
        task="classify",
        bounds=bounds,
        estimator=Fitted(coef_=np.ones((1, 3)), intercept_=np.zeros(1), classes_=np.array(["no", DECEIVING])),
        certificate=certificate_of_fit(public={"classes": ["no", DECEIVING]}),
        feature_names=bounds.feature_names,
        command=f"taciturn fit {DECEIVING}.csv",
        to_json=lambda: "{}",
        digest=None,
        shown_weights=lambda: (np.ones((1, 3)), np.zeros(1), []),
    )


def test_the_report_has_escapes_in_the_place_of_controls(model):
    page = model_report(model)
    assert "dose\\u202eesaesid\\u202c\\u200b" in page
    found = {character for character in page if character not in "\n\t" and visible(character) != character}
    assert not found
    # The names themselves do have them: they were there to be shown.
    assert any("\u202e" in name for name in model.feature_names)


def test_the_terminal_has_escapes_too(model, capsys):
    print_model(model)
    print_line(f"written: {DECEIVING}\x1b[31m")
    print_error(f"table {DECEIVING}\x1b[31m.")
    out, err = capsys.readouterr()
    for text in (out, err):
        assert "\\u202e" in text
        assert not {character for character in text if character not in "\n\t" and visible(character) != character}
