"""``taciturn show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.screen import print_certificate, print_line, print_model, stage
from taciturn.cli.table_facts import read_text

if TYPE_CHECKING:
    from taciturn.modelfile import Model

__all__ = ["ModelFile", "read_model", "show"]

_MOST_MODEL = 1 << 30
"""Largest size of a model file in bytes: more than a hundred for each feature of the widest libsvm file."""

ModelFile = Annotated[Path, typer.Argument(help="model.json, or the folder that fit wrote.", show_default=False)]


def show(model: ModelFile) -> None:
    """Show a model: its coefficients by name, and its certificate in words.

    Example: taciturn show model/model.json
    """
    read = read_model(model)
    print_model(read)
    print_certificate(read.certificate)
    print_line(f"made by: {read.command}")


def read_model(path: Path) -> Model:
    """Read a model file, or the one in a folder."""
    from taciturn.modelfile import Model

    file = path / "model.json" if path.is_dir() else path
    with stage(f"reading {file.name}"):
        return Model.from_json(read_text(file, "model", _MOST_MODEL))
