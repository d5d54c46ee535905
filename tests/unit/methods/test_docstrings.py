"""Shared descriptions in docstrings."""

import pytest

from taciturn.methods.docstrings import FRAGMENTS, fill

TEXT = """A class.

    Parameters
    ----------
    %(delta)s
        A line of its own.
    %(relation)s

    A share of 5 %, and %(delta)s inside a sentence.
    """


def test_descriptions_are_put_in_with_the_indentation_of_their_place():
    first, *others = FRAGMENTS["delta"].splitlines()
    filled = fill(TEXT)
    expected = "\n".join(["    " + first, *("    " + line for line in others), "        A line of its own."])
    assert expected in filled
    assert '    relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"\n' in filled


def test_only_lines_of_their_own_are_places():
    assert "A share of 5 %, and %(delta)s inside a sentence." in fill(TEXT)


def test_descriptions_may_hold_further_ones_with_lines_of_their_own():
    filled = fill("    %(hard_threshold_budget)s\n")
    assert "%(" not in filled
    places = [filled.index(start) for start in ("    epsilon : ", "        Then it is iterative", "    delta : ")]
    assert places == sorted(places)


def test_a_name_without_a_description_is_an_error():
    with pytest.raises(KeyError, match="no_such_parameter"):
        fill("    %(no_such_parameter)s\n")


def test_stripped_docstrings_stay_stripped():
    assert fill(None) is None


@pytest.mark.parametrize("name", FRAGMENTS)
def test_descriptions_are_numpydoc_and_fit_a_line(name):
    # A parameter line at the margin, then indented sentences; 120 columns with the indentation of a class docstring.
    lines = fill(f"%({name})s").splitlines()
    assert not lines[0].startswith(" ")
    assert all(len(line) <= 116 for line in lines)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if not line.startswith(" "):
            assert " : " in line
            assert following.startswith("    ")
