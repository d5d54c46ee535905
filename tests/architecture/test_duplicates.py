"""No two estimators hold the same code: what repeats belongs to a base class. Constructors alone may look alike."""

import ast
from collections import defaultdict
from pathlib import Path

import taciturn.estimators

FOLDER = Path(taciturn.estimators.__file__).parent
LONGEST = 5
"""The longest run of equal lines that is not yet a duplicate."""


def bodies(source):
    """The lines of code of every function but constructors, without docstrings, comments and blank lines."""
    lines = source.splitlines()
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) or function.name == "__init__":
            continue
        documented = ast.get_docstring(function) is not None
        taken = [
            (number, lines[number - 1].strip())
            for statement in function.body[documented:]
            for number in range(statement.lineno, statement.end_lineno + 1)
        ]
        yield [(number, line) for number, line in taken if line and not line.startswith("#")]


def duplicates(sources):
    """Runs of more than LONGEST equal lines that occur in two places, with these places."""
    found = defaultdict(set)
    for name, source in sources.items():
        for body in bodies(source):
            for start in range(len(body) - LONGEST):
                run = body[start : start + LONGEST + 1]
                found[tuple(line for _, line in run)].add((name, run[0][0]))
    return {run: places for run, places in found.items() if len(places) > 1}


PLANTED = '''
class {name}:
    def __init__(self, a, b, c, d, e, f):
        self.a = a
        self.b = b
        self.c = c
        self.d = d
        self.e = e
        self.f = f

    def describe(self, plan):
        """Not compared: {name}."""
        described = {{
            "a": self.a,
            "b": self.b,
            # Not compared either: {name}.
            "c": plan.c,
            {extra}
        }}
        return described
'''


def planted(*, extra):
    texts = {name: PLANTED.format(name=name, extra=extra(name)) for name in ("One", "Other")}
    return duplicates(texts)


def test_estimators_hold_no_run_of_six_equal_lines_but_in_constructors():
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.py"))}
    assert len(sources) > 5
    assert duplicates(sources) == {}


def test_a_planted_duplicate_is_found_in_both_places():
    ((run, places),) = planted(extra=lambda name: "").items()
    assert run[0] == "described = {"
    assert run[-1] == "return described"
    assert places == {("One", 13), ("Other", 13)}


def test_a_line_that_differs_ends_a_run():
    assert planted(extra=lambda name: f'"{name}": 1,') == {}
