"""Bad tables of text: CSV, TSV, both packed, and libsvm."""

from __future__ import annotations

import gzip

import numpy as np
from bad_inputs import CANARY, Case, on_table
from commands import HEADER, SECRET, csv_text

ROWS = [[CANARY, 0.5, "true", "hill", "yes"], [20.5, -0.25, "false", "dale", "no"]] * 6
GOOD = csv_text(ROWS)
WORD_ROW = [SECRET, *ROWS[0][1:]]


def cell(column, value, row=5):
    rows = [list(each) for each in ROWS]
    rows[row][HEADER.index(column)] = value
    return csv_text(rows)


def header(*names):
    return csv_text(ROWS, header=list(names))


# Whatever reads rows refuses these, a fit and a prediction alike.
BAD_FOR_ALL = {
    "header only": csv_text([]),
    "header without an end of line": csv_text([]).rstrip(),
    "header with a carriage return": csv_text([]).replace("\n", "\r\n"),
    "line ends only": "\n\n\n",
    "carriage returns only": "\r\r\r",
    "one space": " ",
    "one comma": ",",
    "a byte order mark alone": "\ufeff",
    "semicolons": csv_text(ROWS, separator=";"),
    "tabs": csv_text(ROWS, separator="\t|"),
    "bars": csv_text(ROWS, separator="|"),
    "spaces": csv_text(ROWS, separator=" "),
    "a short row": GOOD + f"{CANARY},1\n",
    "a long row": GOOD + f"{CANARY},1,true,hill,no,{SECRET}\n",
    "a short first row": csv_text([[SECRET], *ROWS]),
    "a row of one more comma": GOOD + f"{CANARY},1,true,hill,no,\n",
    "a word among numbers": cell("age", SECRET),
    "a word in the first row": cell("age", SECRET, row=0),
    "a word in the last row": cell("age", SECRET, row=len(ROWS) - 1),
    "a number with a unit": cell("age", f"{CANARY} mg"),
    "a number with a point too many": cell("age", f"{CANARY}.1"),
    "a number with a comma": cell("age", f'"{CANARY.replace(".", ",")}"'),
    "a number with an apostrophe": cell("age", "7'919.4242"),
    "a number in hexadecimal": cell("age", "0x7919"),
    "a formula": cell("age", f"={CANARY}+1"),
    "a division by zero": cell("age", "#DIV/0!"),
    "a date among numbers": cell("age", "1970-01-31"),
    "a time among numbers": cell("age", "12:34:56"),
    "a truth among numbers": cell("age", "true"),
    "a missing number": cell("age", ""),
    "a number that is NA": cell("age", "NA"),
    "a number that is nan": cell("dose", "nan"),
    "a number that is null": cell("dose", "null"),
    "a missing truth": cell("smoker", ""),
    "a word among truths": cell("smoker", SECRET),
    "a number among truths": cell("smoker", CANARY),
    "a third truth": cell("smoker", "maybe"),
    "a missing category": cell("region", ""),
    "a category that is NA": cell("region", "N/A"),
    "a null character in a number": cell("age", "1\x002"),
    "a null character in a category and a word": cell("region", "hi\x00ll").replace(CANARY, SECRET, 1),
    "names twice": header("age", "age", "smoker", "region", "ill"),
    "names that are empty": header("", "", "smoker", "region", "ill"),
    "a name that is missing": header("age", "dose2", "smoker", "region", "ill"),
    "a name in capitals": header("AGE", "dose", "smoker", "region", "ill"),
    "a name with a space": header("age ", "dose", "smoker", "region", "ill"),
    "a name with a mark inside": header("a\u202ege", "dose", "smoker", "region", "ill"),
    "a name in other letters": header("аge", "dose", "smoker", "region", "ill"),  # noqa: RUF001
    "no header": csv_text(ROWS[1:], header=ROWS[0]),
    "an open quote in the last cell": GOOD + f'{CANARY},1,true,hill,"no\n' + GOOD.partition("\n")[2],
    "an open quote at the end": GOOD + f'{CANARY},1,true,hill,"no',
    "an open quote in the first cell": GOOD + f'"{CANARY},1,true,hill,no\n',
    "an open quote in the header": '"' + GOOD,
    "quotes that pair up over rows": GOOD + f'{CANARY},1,true,hill,"no\n' * 2,
    "a word after a quote": GOOD + f'{CANARY},1,true,"hill"{SECRET},no\n',
    "a space after a quote": GOOD + f'"{CANARY}" ,1,true,hill,no\n',
    "json": f'{{"age": [{CANARY}], "word": "{SECRET}"}}\n',
    "html": f"<html><body><td>{SECRET}</td></body></html>\n",
    "xml": f'<?xml version="1.0"?><row age="{CANARY}"/>\n',
    "a log": f"2020-01-01 12:00:00 ERROR {SECRET}\n" * 5,
    "latin-1": (GOOD + f"{CANARY},1,true,t\xe4ler,no\n").encode("latin-1"),
    "latin-1 in the header": GOOD.replace("dose", "d\xf6se").encode("latin-1"),
    "a torn character": GOOD.encode() + b"1,1,true,hi\xe2\x82,no\n",
    "half of a pair": (GOOD + "1,1,true,hi\ud800,no\n").encode("utf-8", "surrogatepass"),
    "utf-16": GOOD.encode("utf-16"),
    "utf-16 without a mark": GOOD.encode("utf-16-be"),
    "utf-32": GOOD.encode("utf-32"),
    "utf-7": GOOD.replace("age", "+AGEAZwBl-").encode("ascii"),
    "zeros": bytes(500),
    "zeros at the end": GOOD.encode() + bytes(500),
    "random bytes": np.random.default_rng(0).bytes(3000),
    "a picture": b"\x89PNG\r\n\x1a\n" + SECRET.encode() * 9,
    "a spreadsheet": b"PK\x03\x04" + SECRET.encode() * 9,
    "a PDF": b"%PDF-1.7\n" + SECRET.encode() * 9,
    "a program": b"\x7fELF\x02\x01\x01" + SECRET.encode() * 9,
    "empty": b"",
}
# These are bad for whoever looks at the target or at columns that enter no model.
BAD_FOR_FITS = {
    "no target": header("age", "dose", "smoker", "region", "outcome"),
    "a column more": csv_text([[*row, SECRET] for row in ROWS], header=[*HEADER, "name"]),
    "only the target": csv_text([[row[-1]] for row in ROWS], header=["ill"]),
}
# Others have a sane header in front of rows that nobody reads for a template, in an encoding that it states.
BAD_FOR_TEMPLATES = (
    "line ends only", "one space", "a byte order mark alone", "names twice", "names that are empty", "no header",
    "an open quote in the header", "html", "utf-32", "zeros", "random bytes", "a picture", "empty",
)  # fmt: skip


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode("utf-8")


def cases():
    """Every bad text in every dress."""
    for name, text in (BAD_FOR_ALL | BAD_FOR_FITS).items():
        content = as_bytes(text)
        yield Case(f"fit csv: {name}", on_table("fit", "t.csv"), {"t.csv": content})
        if name != "empty":
            yield Case(f"fit csv.gz: {name}", on_table("fit", "t.csv.gz"), {"t.csv.gz": gzip.compress(content)})
        if name not in ("tabs", "one comma"):
            tabs = content.replace(b",", b"\t")
            yield Case(f"fit tsv: {name}", on_table("fit", "t.tsv"), {"t.tsv": tabs})
    for name, text in BAD_FOR_ALL.items():
        command = ("predict", "score", "private score", "select", "compare", "find")[len(name) % 6]
        yield Case(f"{command}: {name}", on_table(command, "t.csv"), {"t.csv": as_bytes(text)})
    for name in BAD_FOR_TEMPLATES:
        yield Case(f"init: {name}", on_table("init", "t.csv"), {"t.csv": as_bytes(BAD_FOR_ALL[name])})
    yield from _without_names()
    yield from _packed()
    yield from _sparse()


FIRST_RECORDS = {
    "numbers": [CANARY, "0.5", "0", "12", "1"],
    "one number among words": [SECRET, "hill", CANARY, "dale", "ill"],
    "a day among words": [SECRET, "1970-01-31", "hill", "dale", "ill"],
    "an empty cell among words": [SECRET, "hill", "", "dale", "ill"],
    "a cell twice, renamed": [SECRET, f"{SECRET}.1", "hill", "dale", "ill"],
}
"""First lines of tables without names, the target last."""


def _without_names():
    """The bounds describe the cells of the first record as if they were names, which a template once did."""
    for name, cells in FIRST_RECORDS.items():
        described = "".join(f'[columns."{cell}"]\ntype = "number"\nlower = 0\nupper = 1\n' for cell in cells[:-1])
        bounds = f'[target]\nname = "{cells[-1]}"\nclasses = [0, 1]\n{described}'
        content = csv_text([[0, 1, 0, 1, 0], [1, 0, 1, 0, 1]] * 6, header=cells)
        for command in ("fit", "select", "compare", "find", "init"):
            files = {"t.csv": content} | ({} if command == "init" else {"bounds.toml": bounds})
            yield Case(
                f"{command} without names: {name}", on_table(command, "t.csv"), files, says="expected names of columns"
            )


def _packed():
    packed = gzip.compress(GOOD.encode() * 1)
    damaged = {
        "half of it": packed[: len(packed) // 2],
        "without its last byte": packed[:-1],
        "a wrong sum": packed[:-8] + bytes(8),
        "its head alone": packed[:10],
        "not packed": GOOD.encode(),
        "packed twice": gzip.compress(packed),
        "a flipped byte": packed[:40] + bytes([packed[40] ^ 255]) + packed[41:],
        "words behind it": packed + SECRET.encode(),
        "nothing in it": gzip.compress(b""),
    }
    for name, content in damaged.items():
        for command in ("fit", "predict"):
            yield Case(f"{command} gzip: {name}", on_table(command, "t.csv.gz"), {"t.csv.gz": content})


SPARSE_BOUNDS = '[target]\nname = "label"\nlower = -1\nupper = 1\n[defaults]\nlower = -1\nupper = 1\n'
LINES = f"1 1:0.5 3:{CANARY}\n-1 2:0.25\n" * 5
BAD_LINES = {
    "a word as the target": f"{SECRET} 1:1",
    "a word as a value": f"1 1:{SECRET}",
    "a word as an index": f"1 {SECRET}:1",
    "indices in the wrong order": "1 3:1 1:1",
    "an index twice": "1 1:1 1:2",
    "an index below zero": "1 -1:1",
    "an index with a fraction": "1 1.5:1",
    "an index above all": "1 99999999999:1",
    "an index above the limit": "1 4000001:1",
    "two targets": "1,2 1:1",
    "a value of two numbers": f"1 1:{CANARY}:3",
    "a missing value": "1 1:nan",
    "a missing target": "nan 1:1",
    "a colon alone": "1 :",
    "no value": "1 1: 2:1",
    "no colon": f"1 {CANARY}",
    "a comma": "1 1:1,2:1",
    "json": f'{{"label": {CANARY}}}',
    "a letter of another alphabet": "1 \u0661:1",
    "a null character": "1 1:1\x00",
    "a value with a unit": f"1 1:{CANARY}mg",
    "a csv line": csv_text(ROWS[:1]).strip(),
}


def _sparse():
    for name, line in BAD_LINES.items():
        text = (LINES + line + "\n" + LINES).encode()
        arguments = ("fit", "t.svm", "--bounds", "sparse.toml", "-o", "out")
        yield Case(f"libsvm: {name}", arguments, {"t.svm": text, "sparse.toml": SPARSE_BOUNDS})
        packed = gzip.compress(text)
        arguments = ("select", "t.libsvm.gz", "--bounds", "sparse.toml", "--keep", "1", "-o", "out")
        yield Case(f"libsvm.gz: {name}", arguments, {"t.libsvm.gz": packed, "sparse.toml": SPARSE_BOUNDS})
    for name, text in {"only comments": f"# {SECRET}\n" * 3, "no entries": "1\n-1\n" * 4, "line ends": "\n\n"}.items():
        arguments = ("fit", "t.svm", "--bounds", "sparse.toml", "-o", "out")
        yield Case(f"libsvm: {name}", arguments, {"t.svm": text, "sparse.toml": SPARSE_BOUNDS})
    for name, bounds in {
        "bounds that are not symmetric": SPARSE_BOUNDS.replace("[defaults]\nlower = -1", "[defaults]\nlower = 0"),
        "a category": SPARSE_BOUNDS + '[columns.1]\ntype = "category"\ncategories = ["a"]\n',
        "a column by a name": SPARSE_BOUNDS + '[columns.age]\ntype = "boolean"\n',
        "another target": SPARSE_BOUNDS.replace('"label"', '"1"'),
        "truths that are numbers": SPARSE_BOUNDS + '[columns.3]\ntype = "boolean"\n',
    }.items():  # fmt: skip
        arguments = ("fit", "t.svm", "--bounds", "sparse.toml", "-o", "out")
        yield Case(f"libsvm: {name}", arguments, {"t.svm": LINES, "sparse.toml": bounds})
