"""An account on the command line, and how the tests spend from it and tamper with it."""

import sqlite3

from commands import Run, one_sentence, run

from taciturn import Account

URL, NAME = "sqlite:///study.db", "patients-2026"
ACCOUNT = f"{URL}#{NAME}"
TERMS = ("--epsilon", "3", "--delta", "1e-5", "--records", "2000")
PAID = ("model", "bounded", "selection", "score.json")
"""What the study left behind; the fit with private bounds is of two reservations."""


def budget(*arguments, cwd) -> Run:
    return run("budget", *arguments, cwd=cwd)


def create(folder, name=NAME, *more) -> Run:
    return budget("create", f"{URL}#{name}", *TERMS, *more, cwd=folder)


def fit(folder, *more, output="another") -> Run:
    return run("fit", "patients.csv", "--bounds", "bounds.toml", *more, "-o", output, cwd=folder)


def charges(folder, name=NAME):
    return Account(f"sqlite:///{folder / 'study.db'}", name).history()


def one_sentence_of(done) -> str:
    one_sentence(done)
    return done.err


def copy_database(before, after):
    with sqlite3.connect(before) as source, sqlite3.connect(after) as target:
        source.backup(target)


def change_rows(folder, *statements):
    """What somebody with the file could do."""
    with sqlite3.connect(folder / "study.db") as connection:
        connection.execute("DROP TRIGGER taciturn_entries_UPDATE")
        connection.execute("DROP TRIGGER taciturn_entries_DELETE")
        for statement in statements:
            connection.execute(statement)
