"""Bad bounds files and bad options."""

from __future__ import annotations

from bad_inputs import CANARY, FIT, Case, on_table
from commands import BOUNDS, SECRET, csv_text

TARGET = BOUNDS.split("[columns.age]")[0]
SECTIONS = BOUNDS[len(TARGET) :]


def target(text):
    return text + "\n" + SECTIONS


def without(section):
    start = BOUNDS.index(f"[columns.{section}]")
    end = BOUNDS.find("[columns.", start + 1)
    return BOUNDS[:start] + (BOUNDS[end:] if end > 0 else "")


def instead(old, new):
    assert old in BOUNDS
    return BOUNDS.replace(old, new)


BAD_BOUNDS = {
    "empty": "",
    "one space": " ",
    "a comment": f"# {SECRET}\n",
    "no TOML": "not toml at all [",
    "an open bracket": BOUNDS + "[",
    "an open quote": BOUNDS + 'x = "',
    "json": '{"target": {"name": "ill"}}',
    "a key of many parts": ".".join(["a"] * 20_000) + " = 1\n",
    "a section of many parts": "[" + ".".join(["a"] * 20_000) + "]\n",
    "many columns that are not there": BOUNDS + "".join(f'[columns.x{n}]\ntype = "boolean"\n' for n in range(500)),
    "yaml": "target:\n  name: ill\n",
    "a table": f"age,dose\n{CANARY},1\n",
    "a blank": instead("upper = 100", "upper ="),
    "a blank target": target('[target]\nname = "ill"\nclasses =\n'),
    "a key twice": instead("upper = 100", "upper = 100\nupper = 90"),
    "a section twice": BOUNDS + "[columns.age]\ntype = 'boolean'\n",
    "no target": SECTIONS,
    "a target without a name": target('[target]\nclasses = ["no", "yes"]'),
    "a target that is a number": target("[target]\nname = 3\nclasses = [0, 1]"),
    "a target that is text": 'target = "ill"\n' + SECTIONS,
    "a target that is a list": 'target = ["ill"]\n' + SECTIONS,
    "a target that is not there": target('[target]\nname = "nobody"\nclasses = [0, 1]'),
    "a target with a section": BOUNDS + '[columns.ill]\ntype = "boolean"\n',
    "a target without anything": target('[target]\nname = "ill"'),
    "one class": target('[target]\nname = "ill"\nclasses = ["no"]'),
    "no class": target('[target]\nname = "ill"\nclasses = []'),
    "a class twice": target('[target]\nname = "ill"\nclasses = ["no", "no"]'),
    "classes 1 and 1.0": target('[target]\nname = "ill"\nclasses = ["1", "1.0"]'),
    "classes of two types": target('[target]\nname = "ill"\nclasses = ["no", 1]'),
    "classes with fractions": target('[target]\nname = "ill"\nclasses = [0.5, 1.5]'),
    "classes that are lists": target('[target]\nname = "ill"\nclasses = [["no"], ["yes"]]'),
    "classes that are dates": target('[target]\nname = "ill"\nclasses = [1970-01-01, 1970-01-02]'),
    "classes that are text": target('[target]\nname = "ill"\nclasses = "no"'),
    "classes above 2**53": target(f'[target]\nname = "ill"\nclasses = [0, {2**60}]'),
    "classes beside bounds": target('[target]\nname = "ill"\nclasses = ["no", "yes"]\nlower = 0\nupper = 1'),
    "a lower bound alone": target('[target]\nname = "ill"\nlower = 0'),
    "an unknown key of the target": target('[target]\nname = "ill"\nclasses = ["no", "yes"]\nkind = 1'),
    "text as the target of a regression": target('[target]\nname = "ill"\nlower = 0\nupper = 1'),
    "an unknown section": BOUNDS + "[other]\nx = 1\n",
    "an unknown key of a number": instead("upper = 100", "upper = 100\nmiddle = 3"),
    "an unknown key of a truth": instead('type = "boolean"', 'type = "boolean"\nlower = 0'),
    "an unknown type": instead('type = "boolean"', 'type = "magic"'),
    "a type that is a number": instead('type = "boolean"', "type = 3"),
    "a type that is a list": instead('type = "boolean"', "type = []"),
    "no type": instead('type = "boolean"', ""),
    "columns that are a list": TARGET + "columns = [1, 2]\n",
    "a column that is a number": TARGET + "[columns]\nage = 3\n",
    "a column that is text": TARGET + '[columns]\nage = "number"\n',
    "bounds the wrong way round": instead("lower = 0\nupper = 100", "lower = 100\nupper = 0"),
    "equal bounds": instead("lower = 0\nupper = 100", "lower = 5\nupper = 5"),
    "an infinite bound": instead("upper = 100", "upper = inf"),
    "a bound below all": instead("lower = 0", "lower = -inf"),
    "a bound that is nan": instead("upper = 100", "upper = nan"),
    "a bound that is text": instead("upper = 100", 'upper = "100"'),
    "a bound that is true": instead("upper = 100", "upper = true"),
    "a bound that is a date": instead("upper = 100", "upper = 1970-01-01"),
    "a bound that is a list": instead("upper = 100", "upper = [100]"),
    "a bound of 400 digits": instead("upper = 100", f"upper = {'9' * 400}"),
    "a bound of 5000 digits": instead("upper = 100", f"upper = {'9' * 5000}"),
    "no upper bound": instead("upper = 100", ""),
    "neither bound": instead("lower = 0\nupper = 100", ""),
    "bounds that differ by nothing": instead("lower = 0\nupper = 100", "lower = 0\nupper = 5e-324"),
    "bounds wider than any number": instead("lower = 0\nupper = 100", "lower = -1e308\nupper = 1e308"),
    "no categories": instead('["hill", "dale"]', "[]"),
    "categories that are text": instead('["hill", "dale"]', '"hill"'),
    "categories that are numbers": instead('["hill", "dale"]', "[1, 2]"),
    "a category twice": instead('["hill", "dale"]', '["hill", "hill"]'),
    "categories True and true": instead('["hill", "dale"]', '["True", "true"]'),
    "categories that are lists": instead('["hill", "dale"]', '[["hill"]]'),
    "a column that is not described": without("dose"),
    "a column that is not there": BOUNDS + '[columns.nothing]\ntype = "boolean"\n',
    "a name with a dot, bare": instead("[columns.age]", "[columns.age.years]"),
    "features of one name": BOUNDS.replace("[columns.age]", '[columns."region=hill"]'),
    "everything ignored": TARGET
    + "".join(f"[columns.{n}]\ntype = 'ignore'\n" for n in ("age", "dose", "smoker", "region")),
    "a gap outside the bounds": BOUNDS + "[missing]\nage = 1000\n",
    "a gap that is text": BOUNDS + '[missing]\nage = "50"\n',
    "a gap that is no truth": BOUNDS + "[missing]\nsmoker = 1\n",
    "a gap that is no category": BOUNDS + '[missing]\nregion = "elsewhere"\n',
    "a gap that is no class": BOUNDS + '[missing]\nill = "perhaps"\n',
    "a gap of a column that is not there": BOUNDS + "[missing]\nnothing = 1\n",
    "gaps that are a list": BOUNDS.replace("[target]", "missing = [1]\n[target]"),
    "defaults that are text": 'defaults = "all"\n' + BOUNDS,
    "defaults without bounds": BOUNDS + "[defaults]\n",
    "defaults with a type": BOUNDS + '[defaults]\ntype = "boolean"\n',
    "defaults the wrong way round": BOUNDS + "[defaults]\nlower = 1\nupper = 0\n",
    "an order": 'order = ["age"]\n' + BOUNDS,
    "latin-1": BOUNDS.replace("hill", "h\xfcgel").encode("latin-1"),
    "utf-16": BOUNDS.encode("utf-16"),
    "null characters": BOUNDS.encode() + bytes(20),
    "a control character": instead("hill", "hi\x07ll"),
    "deep lists": instead('["hill", "dale"]', "[" * 3000 + "]" * 3000),
    "deep tables": BOUNDS + "x" + ".x" * 5000 + " = 1\n",
    "too large": b"#" * ((1 << 24) + 1),
}

# ------------------------------------------------------------------ times to an event, counts, weights and exposures

DOSE = '[columns.dose]\ntype = "number"\nlower = -1\nupper = 1\n'
TIMES = '[target]\nkind = "survival"\ntime = "months"\nevent = "died"\ncuts = [6, 12, 24]\n' + DOSE
COUNTS = '[target]\nname = "visits"\nkind = "count"\nlower = 0\nupper = 20\n' + DOSE
MEASURES = '[weight]\ncolumn = "w"\nupper = 4\n[exposure]\ncolumn = "years"\nupper = 3\n'
OUTCOMES = ["dose", "months", "died", "visits", "w", "years"]
FOLLOWED = [["0.5", CANARY, "yes", "3", "2.5", "1"], ["-0.25", "5.5", "no", "0", "1", "0.5"]] * 20


def ignoring(text, *names):
    return text + "".join(f'[columns.{name}]\ntype = "ignore"\n' for name in names)


OF_TIMES = ignoring(TIMES, "visits", "w", "years")
OF_WEIGHTED_TIMES = ignoring(TIMES + MEASURES.partition("[exposure]")[0], "visits", "years")
OF_COUNTS = ignoring(COUNTS + MEASURES, "months", "died")

BAD_OUTCOMES = {
    "cuts out of order": (OF_TIMES.replace("[6, 12, 24]", "[12, 6, 24]"), "target.cuts"),
    "a cut twice": (OF_TIMES.replace("[6, 12, 24]", "[6, 6, 24]"), "target.cuts"),
    "a cut before the beginning": (OF_TIMES.replace("[6, 12, 24]", "[-6, 12, 24]"), "target.cuts"),
    "no cut": (OF_TIMES.replace("[6, 12, 24]", "[]"), "target.cuts"),
    "cuts that are words": (OF_TIMES.replace("[6, 12, 24]", '["soon", "late"]'), "target.cuts"),
    "more cuts than hazards": (OF_TIMES.replace("[6, 12, 24]", str(list(range(1, 102)))), "cuts"),
    "a time that is not there": (OF_TIMES.replace('"months"', '"days"'), "days"),
    "an event that is not there": (OF_TIMES.replace('"died"', '"left"'), "left"),
    "an event that is the time": (OF_TIMES.replace('"died"', '"months"'), "target.event"),
    "an event of numbers": (ignoring(TIMES.replace('"died"', '"visits"'), "died", "w", "years"), '"visits"'),
    "a time of truths": (OF_TIMES.replace('"months"', '"died"').replace('event = "died"', 'event = "visits"'), ""),
    "a time of entry": (OF_TIMES.replace("cuts", 'entry = "years"\ncuts'), "target"),
    "an exposure of times": (
        ignoring(TIMES, "visits", "w") + '[exposure]\ncolumn = "years"\nupper = 3\n', "exposure.column"
    ),
    "a range of times": (OF_TIMES.replace("cuts", "upper = 30\ncuts"), "target.upper"),
    "a count below zero": (OF_COUNTS.replace("lower = 0", "lower = -2", 1), "target"),
    "an amount from zero on": (ignoring(COUNTS, "months", "died", "w", "years").replace("count", "amount"), "target"),
    "a kind that is none": (OF_COUNTS.replace('"count"', '"counts"'), "target.kind"),
    "a count of classes": (OF_COUNTS.replace("lower = 0\nupper = 20", "classes = [0, 1]", 1), "target"),
    "a weight bound of zero": (OF_COUNTS.replace("upper = 4", "upper = 0"), "weight.upper"),
    "a weight bound below zero": (OF_COUNTS.replace("upper = 4", "upper = -4"), "weight.upper"),
    "a weight without a bound": (OF_COUNTS.replace("upper = 4\n", ""), "weight.upper"),
    "a weight that is not there": (OF_COUNTS.replace('"w"', '"v"'), ""),
    "a weight that is the target": (ignoring(OF_COUNTS.replace('"w"', '"visits"'), "w"), "weight.column"),
    "an exposure that is the weight": (ignoring(OF_COUNTS.replace('"years"', '"w"'), "years"), "exposure.column"),
    "an infinite exposure bound": (OF_COUNTS.replace("upper = 3", "upper = inf"), "exposure.upper"),
    "an exposure of numbers": (OF_COUNTS.replace('kind = "count"\n', ""), "exposure.column"),
}  # fmt: skip
"""Bounds files, with what has to stand in the sentence."""

BAD_MEASURES = {
    "months": ("", "0", "-7919", "inf", "nan", SECRET, "7919 days"),
    "died": ("", "2", "maybe", SECRET),
    "visits": ("", "nan", SECRET),
    "w": ("", "-7919", "-1e-300", "inf", "nan", SECRET),
    "years": ("", "-7919", "inf", SECRET),
}
"""Cells that are no time, event, count, weight or exposure."""


def _outcomes():
    good = csv_text(FOLLOWED, header=OUTCOMES)
    fit = on_table("fit", "t.csv")
    for name, (text, says) in BAD_OUTCOMES.items():
        yield Case(f"outcomes: {name}", fit, {"bounds.toml": text, "t.csv": good}, says=says)
    for column, values in BAD_MEASURES.items():
        for value in values:
            rows = [list(each) for each in FOLLOWED]
            rows[3][OUTCOMES.index(column)] = value
            text = OF_TIMES if column in ("months", "died") else OF_COUNTS
            files = {"bounds.toml": text, "t.csv": csv_text(rows, header=OUTCOMES)}
            yield Case(f"{column}: {value or 'nothing'}", fit, files, says=column)
    # Weights beside times are judged as they are beside counts.
    rows = [*FOLLOWED, ["0", "3", "no", "1", "-7919", "1"]]
    files = {"bounds.toml": OF_WEIGHTED_TIMES, "t.csv": csv_text(rows, header=OUTCOMES)}
    yield Case("a negative weight of a time", fit, files, says='"w"')


# Of fit, with what has to stand in the sentence.
BAD_OPTIONS = {
    ("--epsilon", "0"): "epsilon=0.0",
    ("--epsilon", "-1"): "epsilon=-1.0",
    ("--epsilon", "nan"): "epsilon=nan",
    ("--epsilon", "1e300"): "epsilon=",
    ("--epsilon", "1e-320"): "expected a number >= 1e-09 and at most 30",
    ("--bounds", ""): "bounds='.': expected a file, got an empty name or this folder; name a file",
    ("--delta", "1"): "delta=1.0",
    ("--delta", "2"): "delta=2.0",
    ("--delta", "-0.5"): "delta=-0.5",
    ("--delta", "nan"): "delta=nan",
    ("--delta", "0"): "delta=0.0",
    ("--delta", "inf"): "delta=inf",
    ("--nonzero", "0"): "nonzero='0'",
    ("--nonzero", "-3"): "nonzero='-3'",
    ("--nonzero", "many"): "nonzero='many'",
    ("--nonzero", "2.5"): "nonzero='2.5'",
    ("--nonzero", ""): "nonzero=''",
    ("--nonzero", "1" * 5000): "nonzero=",
    ("--nonzero", "\u0663"): "nonzero=",
    ("--nonzero", "3", "--method", "frank-wolfe"): "nonzero=3",
    ("--nonzero", "auto", "--method", "objective-perturbation"): "nonzero='auto'",
    ("--nonzero", "all", "--method", "hard-threshold"): "n_nonzero='all'",
    ("--relation", "add-remove"): "n_public",
    ("--task", "regress"): "task='regress'",
    ("--target", "dose"): "target='dose'",
    ("--target", ""): "target=''",
    ("--target", "nobody"): "target='nobody'",
    ("--private-bounds", "0"): "private_bounds=0.0",
    ("--private-bounds", "1"): "private_bounds=1.0",
    ("--private-bounds", "1.5"): "private_bounds=1.5",
    ("--private-bounds", "-0.5"): "private_bounds=-0.5",
    ("--private-bounds", "nan"): "private_bounds=nan",
    ("--seed", "-1"): "random_state=-1",
    ("--method", "hard-threshold", "--delta", "0"): "delta=0.0",
    ("--method", "objective-perturbation", "--delta", "0"): "delta=0.0",
    ("--method", "admm", "--delta", "0"): "delta=0.0",
    ("--method", "two-stage", "--delta", "0"): "delta=0.0",
    ("--output", "patients.csv"): "output=",
    ("--output", "."): "output=",
    ("--output", "bounds.toml/x"): "",
}

WRONG_USAGE = (
    ("magic",), ("fit",), ("fit", "patients.csv", "--epsilon", "much"), ("fit", "patients.csv", "--delta", ""),
    ("fit", "patients.csv", "--method", "magic"), ("fit", "patients.csv", "--relation", "friend"),
    ("fit", "patients.csv", "--n-public", "0"), ("fit", "patients.csv", "--n-public", "1.5"),
    ("fit", "patients.csv", "--seed", "x"), ("fit", "patients.csv", "--seed"), ("fit", "patients.csv", "more.csv"),
    ("fit", "patients.csv", "--task", "guess"), ("fit", "patients.csv", "--nothing"), ("fit", "-x"),
    ("fit", "patients.csv", "--private-bounds", "half"), ("fit", "patients.csv", "--public", "yes"),
    ("select",), ("select", "patients.csv", "--keep", "0"), ("select", "patients.csv", "--keep", "x"),
    ("select", "patients.csv", "--method", "magic"), ("predict",), ("predict", "model.json"), ("score", "model.json"),
    ("score", "model.json", "patients.csv", "--metric", "magic"), ("show",), ("show", "a", "b"),
    ("init", "patients.csv"), ("init",), ("compare", "--trials", "0"), ("compare", "--seed", "-1"),
    ("compare", "--task", "guess"), ("demo", "--features", "0"), ("demo", "--features", "31"), ("audit",),
    ("audit", "all", "--trials", "1"), ("audit", "all", "--jobs", "0"), ("reproduce",),
    ("reproduce", "all", "--data", "nowhere"), ("--nothing",),
)  # fmt: skip

OTHER_COMMANDS = {
    ("compare",): "synthetic=None",
    ("compare", "patients.csv", "--synthetic", "100x10"): "not both",
    ("compare", "patients.csv"): "bounds=None",
    ("compare", "--synthetic", "x"): "ROWSxCOLUMNS",
    ("compare", "--synthetic", "7x100"): "at least 8x10",
    ("compare", "--synthetic", "100x9"): "at least 8x10",
    ("compare", "--synthetic", "-5x10"): "ROWSxCOLUMNS",
    ("compare", "--synthetic", "99999999x10"): "ROWSxCOLUMNS",
    ("compare", "--synthetic", "9999999x9999999"): "fits into memory",
    ("compare", "--synthetic", "100x10", "--nonzero", "0"): "nonzero='0'",
    ("select", "patients.csv"): "bounds=None",
    ("select", "patients.csv", "--bounds", "bounds.toml", "--epsilon", "0"): "epsilon=0.0",
    ("select", "patients.csv", "--bounds", "bounds.toml", "--delta", "1"): "delta=1.0",
    ("select", "patients.csv", "--bounds", "nowhere.toml"): "bounds=",
    ("select", "patients.csv", "--bounds", "bounds.toml", "--task", "regress"): "task='regress'",
    ("select", "patients.csv", "--bounds", "bounds.toml", "--private-bounds", "7"): "private_bounds=7.0",
    ("select", "patients.csv", "--bounds", "bounds.toml", "--seed", "-1"): "random_state=-1",
    ("fit", "patients.csv", "-o", "out"): "bounds=None",
    ("fit", "patients.csv", "--private-bounds", "0.5", "-o", "out"): "target=None",
    ("fit", "patients.csv", "--private-bounds", "0.5", "--target", "ill", "-o", "out"): "task=None",
    ("fit", "patients.csv", "--private-bounds", "0.5", "--target", "nobody", "--task", "classify"): '"nobody"',
    ("fit", "patients.csv", "--private-bounds", "0.5", "--target", "ill", "--task", "classify"): "'region'",
    ("init", "patients.csv", "--target", "nobody", "-o", "out"): "target='nobody'",
    ("init", "patients.csv", "--target", "ill", "-o", "bounds.toml"): "output='bounds.toml'",
    ("score", "model.json", "patients.csv", "--epsilon", "0", "-o", "out"): "epsilon=0.0",
    ("score", "model.json", "patients.csv", "--epsilon", "nan", "-o", "out"): "epsilon=nan",
    ("score", "model.json", "patients.csv", "--epsilon", "1", "--delta", "1", "-o", "out"): "delta=1.0",
    ("score", "model.json", "patients.csv", "--epsilon", "1", "-o", "patients.csv"): "output='patients.csv'",
    ("score", "model.json", "patients.csv", "--metric", "mean squared error"): "metric=",
    ("score", "model.json", "patients.csv", "--epsilon", "1", "--relation", "add-remove", "-o", "out"): "n_public",
    ("score", "model.json", "patients.csv", "--epsilon", "1", "--seed", "-1", "-o", "out"): "random_state=-1",
    ("score", "nowhere.json", "patients.csv"): "model='nowhere.json'",
    ("predict", "model.json", "patients.csv", "-o", "patients.csv"): "output='patients.csv'",
    ("predict", "model.json", "patients.csv", "-o", "model.json"): "output='model.json'",
    ("predict", "model.json", "patients.csv", "-o", "no/such/folder.csv"): "no such file or directory",
    ("predict", "patients.csv", "model.json", "-o", "out"): "",
    ("show", "patients.csv"): "model: expected JSON",
    ("show", "bounds.toml"): "model: expected JSON",
    ("show", ".."): "model=",
    ("demo", "-o", "patients.csv"): "output='patients.csv'",
    ("audit", "magic"): "name='magic'",
    ("audit", "HardThresholdRegressor", "--epsilon", "0"): "epsilon",
    ("audit", "HardThresholdRegressor", "--epsilon", "100"): "epsilon",
    ("reproduce", "magic"): "name='magic'",
}


def cases():
    """Every one of them."""
    for name, text in BAD_BOUNDS.items():
        arguments = FIT
        if name == "features of one name":
            arguments = on_table("fit", "t.csv")
        files = {"bounds.toml": text, "t.csv": f"region=hill,dose,smoker,region,ill\n{CANARY},0,true,hill,no\n"}
        yield Case(f"bounds: {name}", arguments, files)
    yield from _outcomes()
    for options, says in BAD_OPTIONS.items():
        yield Case(f"fit {' '.join(options):.50}", (*FIT, *options), says=says)
    for arguments in WRONG_USAGE:
        yield Case(f"usage: {' '.join(arguments)}", arguments, code=2)
    for arguments, says in OTHER_COMMANDS.items():
        yield Case(f"command: {' '.join(arguments)}", arguments, says=says)
