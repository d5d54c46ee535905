"""``taciturn report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.cli.options import Public
from taciturn.cli.output import replace_file
from taciturn.cli.screen import print_line, stage
from taciturn.cli.showing import ModelFile, read_model
from taciturn.cli.table_facts import read_text
from taciturn.core.errors import ParameterError

__all__ = ["report"]

_MOST_SCORE = 1 << 26


def report(
    model: ModelFile,
    score: Annotated[
        Path | None, typer.Option(help="score.json of this model, for a section on how good it is.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="HTML file for the page.")] = Path("report.html"),
    public: Public = False,
) -> None:
    """Write the page of a model again, with how good it is if there is a score; nothing is spent.

    Example: taciturn report model --score score.json -o report.html
    """
    from taciturn.modelfile import ScoreFile, model_digest
    from taciturn.report import model_report

    read = read_model(model)
    found = None
    if score is not None:
        found = ScoreFile.from_json(read_text(score, "score", _MOST_SCORE))
        if found.model != model_digest(read):
            raise ParameterError("score", str(score), "a score of this model", "name the model that was scored")
    with stage("writing"):
        replace_file(output, model_report(read, found), public=public)
    print_line(f"written: {output}")
