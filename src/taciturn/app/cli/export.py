"""The command export: what files state, for registries and for bodies that give access to data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from taciturn.app.cli.output import replace_file
from taciturn.app.cli.screen import print_line, print_note, stage
from taciturn.app.cli.show import Folder, PaidBy, read_ledger
from taciturn.app.cli.tables import Public
from taciturn.core.errors import ParameterError


def export(
    folder: Folder,
    registry: Annotated[
        bool, typer.Option("--registry", help="A record for the OpenDP deployments registry, as YAML.")
    ] = False,
    nist: Annotated[
        bool, typer.Option("--nist", help="Answers to the questions of NIST SP 800-226, as Markdown.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for it. [default: it is printed]", show_default=False)
    ] = None,
    public_key: Annotated[
        Path | None, typer.Option(help="The owner's public Ed25519 key (PEM file), to state who signed the files.")
    ] = None,
    account: PaidBy = None,
    public: Public = False,
) -> None:
    """Verify files, and state what they guarantee for a registry or for a data access body; no data are read.

    What only the owner can say is marked with OWNER.

    Example: taciturn export model --registry -o readmissions.yaml
    """
    from taciturn.app.answers import OWNER, Answers
    from taciturn.app.report.model import model_report
    from taciturn.app.verify import read_public_key, verify_folder

    if registry == nist:
        raise ParameterError(
            "export", "both" if nist else "neither", "one of --registry and --nist", "name the form that is asked for"
        )
    trusted = None if public_key is None else read_public_key(public_key)
    ledger = None if account is None else read_ledger(account)
    with stage(f"verifying {folder.name}"):
        found = verify_folder(folder, trusted, write_report=model_report, ledger=ledger)
        answers = Answers.of(found, ledger)
        text = answers.registry_record() if registry else answers.nist_answers()
    said = f"{text.count(OWNER)} places marked {OWNER.rstrip(':')} are the owner's to fill in"
    if output is None:
        for line in text.splitlines():
            print_line(line)
        print_note(f"{said}.")
        return
    replace_file(output, text, public=public)
    print_line(f"written: {output}; {said}")
