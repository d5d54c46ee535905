"""A study with an account, made once."""

import shutil
from pathlib import Path

import pytest
from accounts_paid import ACCOUNT, copy_database, create, fit
from commands import run, write_patients


@pytest.fixture(scope="session")
def studied(tmp_path_factory):
    """A folder with an account and what it paid for; ``early.db`` is a copy from before the last charge."""
    folder = tmp_path_factory.mktemp("study")
    write_patients(folder, 2000)
    bounds = (folder / "bounds.toml").read_text(encoding="utf-8")
    without_age = bounds.replace('[columns.age]\ntype = "number"\nlower = 0\nupper = 100\n\n', "")
    (folder / "fewer.toml").write_text(without_age, encoding="utf-8")
    pay = ("--account", ACCOUNT)
    runs = [
        create(folder),
        fit(folder, "--epsilon", "0.5", *pay, output="model"),
        run(
            "fit",
            "patients.csv",
            "--bounds",
            "fewer.toml",
            "--private-bounds",
            "0.5",
            *pay,
            "-o",
            "bounded",
            cwd=folder,
        ),
        run("select", "patients.csv", "--bounds", "bounds.toml", "--keep", "2", "--epsilon", "0.3", *pay, cwd=folder),
    ]
    copy_database(folder / "study.db", folder / "early.db")
    runs.append(run("score", "model", "patients.csv", "--epsilon", "0.3", "--delta", "1e-6", *pay, cwd=folder))
    assert [each.code for each in runs] == [0] * len(runs), runs
    return folder


@pytest.fixture
def study(studied, tmp_path):
    """A copy of it to spoil."""
    return Path(shutil.copytree(studied, tmp_path / "study"))
