"""``taciturn verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from taciturn.cli.ledger_files import read_ledger
from taciturn.cli.output import replace_file
from taciturn.cli.screen import console, print_line, shown_text, stage
from taciturn.cli.signing import read_signing_key
from taciturn.core.errors import ParameterError

if TYPE_CHECKING:
    from taciturn.study import Verification

__all__ = ["verify"]


def verify(
    folder: Annotated[
        Path, typer.Argument(help="Folder that fit or select wrote, or one of its files.", show_default=False)
    ],
    public_key: Annotated[
        Path | None,
        typer.Option(help="The owner's public Ed25519 key (PEM file): files that it did not sign are refused."),
    ] = None,
    account: Annotated[
        str | None,
        typer.Option(help="The account that paid, such as sqlite:///study.db#name, or its exported ledger.jsonl."),
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(help="Private Ed25519 key (PEM file) that signs the folder if nothing is refused.")
    ] = None,
) -> None:
    """Check, without data, that the files of a fit hold together and prove what they state; or sign them.

    Example: taciturn verify model --public-key owner.pub.pem
    """
    from taciturn.report import model_report
    from taciturn.study import SIGNATURE_NAME, VerificationError, read_public_key, sign_folder, verify_folder

    if sign is not None and public_key is not None:
        raise ParameterError("sign", str(sign), "no public key beside it", "sign first, then verify with --public-key")
    trusted = None if public_key is None else read_public_key(public_key)
    ledger = None if account is None else read_ledger(account)
    key = read_signing_key(sign)
    try:
        with stage(f"verifying {folder.name}"):
            if key is not None:
                text = sign_folder(folder, key, write_report=model_report)
                replace_file(folder / SIGNATURE_NAME, text, public=_others_may_read(folder))
                trusted = key.public_key()
            found = verify_folder(folder, trusted, write_report=model_report, ledger=ledger)
    except VerificationError as error:
        if error.verification is not None:
            _print_items(error.verification, folder)
        raise
    _print_items(found, folder)
    if found.signed_by is None:
        print_line("Nothing contradicts itself. Who wrote it is not known: --public-key checks a signature.")
    else:
        print_line("Nothing contradicts itself, and the files are those that were signed.")


def _others_may_read(folder: Path) -> bool:
    """Whether the files of a folder are public, so that its signature is too."""
    return all(path.stat().st_mode & 0o004 for path in folder.iterdir())


def _print_items(found: Verification, folder: Path) -> None:
    from rich.table import Table

    colours = {"holds": "green", "refused": "red", "not checked": "yellow"}
    table = Table(title=shown_text(f"{folder.name or folder}: what was checked"))
    table.add_column("what", style="bold")
    table.add_column("result")
    table.add_column("", overflow="fold")
    for item in found.items:
        table.add_row(item.name, f"[{colours[item.outcome]}]{item.outcome}[/]", shown_text(item.words))
    console().print(table)
