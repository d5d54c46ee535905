"""The R package as a user has it: ``R CMD check``, a fit from R, and its size."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "r"
BESIDE = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
COMMAND = shutil.which("taciturn", path=BESIDE) or "taciturn"
needs_r = pytest.mark.skipif(
    shutil.which("R") is None,
    reason="R is not installed (Debian: r-base-core, r-cran-jsonlite, r-cran-testthat, r-cran-generics)",
)

FIT = """
library(generics, warn.conflicts = FALSE)
for (file in list.files("{package}/R", full.names = TRUE)) source(file)
options(taciturn.command = "{command}")
patients <- read.csv("patients.csv")
bounds <- list(
  target = list(classes = c("no", "yes")),
  columns = list(
    age = list(type = "number", lower = 0, upper = 100), dose = list(type = "number", lower = -1, upper = 1),
    smoker = list(type = "boolean"), region = list(type = "category", categories = c("hill", "dale"))
  )
)
before <- list.files(tempdir())
formula <- ill ~ age + dose + smoker
fit <- tac_fit(formula, patients, bounds, epsilon = 2, family = binomial(), seed = 1, output = "from-r")
print(fit)
print(summary(fit))
stopifnot(identical(list.files(tempdir()), before))
# A refusal of the command, with a cell that must not be quoted; the folder goes.
patients$age[7] <- NA
patients$region[7] <- "SECRET-7f3a"
said <- tryCatch(tac_fit(ill ~ ., patients, bounds, epsilon = 2, family = "binomial"), error = conditionMessage)
stopifnot(grepl("age", said), !grepl("SECRET", said), identical(list.files(tempdir()), before))
"""


def code_lines(text):
    return [line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def test_the_package_is_small_and_has_no_compiled_code():
    files = sorted((PACKAGE / "R").iterdir())
    assert {file.suffix for file in files} == {".R"}
    assert sum(len(code_lines(file.read_text(encoding="utf-8"))) for file in files) <= 500
    assert not (PACKAGE / "src").exists()


@needs_r
@pytest.mark.slow
def test_a_fit_from_r_is_that_of_the_command(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests" / "command")
    from commands import BOUNDS, write_patients

    write_patients(tmp_path)
    script = tmp_path / "fit.R"
    script.write_text(FIT.replace("{package}", str(PACKAGE)).replace("{command}", COMMAND), encoding="utf-8")
    done = subprocess.run(
        ["Rscript", "--vanilla", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "guarantee: epsilon = 2, delta = 1e-06 for one record (zero-out), proved; seeded" in done.stdout
    # Beside the command on the table as it is, in which numbers are written with fewer digits.
    table = pd.read_csv(tmp_path / "patients.csv")
    table.to_csv(tmp_path / "same.csv", index=False)
    (tmp_path / "bounds.toml").write_text(BOUNDS, encoding="utf-8")
    command = [COMMAND, "fit", "same.csv", "--bounds", "bounds.toml", "--columns", "age,dose,smoker", "--inference",
               "--epsilon", "2", "--delta", "1e-6", "--seed", "1", "-o", "same"]  # fmt: skip
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    models = [json.loads((tmp_path / name / "model.json").read_text()) for name in ("from-r", "same")]
    assert models[0]["coefficients"] == models[1]["coefficients"]
    assert models[0]["inference"] == models[1]["inference"]
    assert models[0]["certificate"] == models[1]["certificate"]


@needs_r
@pytest.mark.slow
def test_the_example_of_the_page_prints_what_stands_there(tmp_path):
    page = (ROOT / "docs" / "coming-from.md").read_text(encoding="utf-8")
    ((code, printed),) = re.findall(r"```r\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    sources = f'for (file in list.files("{PACKAGE}/R", full.names = TRUE)) source(file)\n'
    sources += f'library(generics, warn.conflicts = FALSE)\noptions(taciturn.command = "{COMMAND}")\n'
    (tmp_path / "page.R").write_text(code.replace("library(taciturn)\n", sources), encoding="utf-8")
    command = ["Rscript", "--vanilla", "page.R"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


@needs_r
@pytest.mark.slow
def test_r_cmd_check_passes(tmp_path):
    subprocess.run(["R", "CMD", "build", PACKAGE], cwd=tmp_path, check=True, capture_output=True)
    (built,) = tmp_path.glob("taciturn_*.tar.gz")
    done = subprocess.run(
        ["R", "CMD", "check", "--no-manual", built.name], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"TACITURN_COMMAND": COMMAND},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert re.search(r"^Status: (OK|\d+ NOTEs?)$", done.stdout, re.MULTILINE), done.stdout
    log = (tmp_path / "taciturn.Rcheck" / "tests" / "testthat.Rout").read_text(encoding="utf-8")
    assert "FAIL 0" in log
    assert "SKIP 0" in log
