"""``taciturn show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.model_screen import print_model
from taciturn.cli.screen import print_certificate, print_line, stage
from taciturn.cli.table_facts import read_text
from taciturn.core.errors import CertificateError

if TYPE_CHECKING:
    from taciturn.certificate import Certificate
    from taciturn.modelfile import Model

__all__ = ["ModelFile", "read_model", "show"]

_MOST_MODEL = 1 << 30
"""Largest size of a model file in bytes: more than a hundred for each feature of the widest libsvm file."""

ModelFile = Annotated[Path, typer.Argument(help="model.json, or the folder that fit wrote.", show_default=False)]
ShownFile = Annotated[
    Path, typer.Argument(help="model.json, certificate.json, or the folder that holds them.", show_default=False)
]


def show(model: ShownFile) -> None:
    """Show a model, its coefficients by name, and its certificate; or a certificate alone.

    Example: taciturn show model
    """
    from taciturn.core.strict_json import parse_strictly
    from taciturn.modelfile import Model

    file = _file_in(model, "model.json", "certificate.json")
    with stage(f"reading {file.name}"):
        text = read_text(file, "model", _MOST_MODEL)
        content = parse_strictly(text)
        kind = content.get("format") if isinstance(content, dict) else None
        shown = _read_certificate(file, text) if kind in _STATEMENTS else Model.from_content(content)
    if isinstance(shown, Model):
        print_model(shown)
        print_certificate(shown.certificate)
        print_line(f"made by: {shown.command}")
    else:
        print_certificate(shown)


def read_model(path: Path) -> Model:
    """Read a model file, or the one in a folder."""
    from taciturn.modelfile import Model

    file = _file_in(path, "model.json")
    with stage(f"reading {file.name}"):
        return Model.from_json(read_text(file, "model", _MOST_MODEL))


def _file_in(path: Path, *names: str) -> Path:
    """The path itself, or the first of these files in a folder."""
    if not path.is_dir():
        return path
    return next((path / name for name in names if (path / name).exists()), path / names[0])


_STATEMENTS = ("taciturn-certificate", "taciturn spending")


def _read_certificate(file: Path, text: str) -> Certificate:
    from taciturn.certificate import Certificate
    from taciturn.core.strict_json import parse_strictly

    if parse_strictly(text)["format"] != _STATEMENTS[0]:
        raise CertificateError(
            f"{file.name!r}: expected a certificate, got the statement of a run that did not finish; count its whole "
            "budget as spent."
        )
    return Certificate.from_json(text)
