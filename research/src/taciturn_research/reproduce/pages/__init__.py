"""The report on finished trials: ``results.json``, ``reproduction.md``, ``reproduction.html`` and figures."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from taciturn_research.reproduce.experiment import Experiment
from taciturn_research.reproduce.pages.blocks import Image, markdown_page, web_page
from taciturn_research.reproduce.pages.content import as_json, read_results, report_blocks

__all__ = ["write_report"]

_TITLE = "Reproduction"


def write_report(experiments: Sequence[Experiment], output: str | os.PathLike[str]) -> Path:
    """Write the report on all finished trials of these experiments; the same trials give the same files.

    Parameters
    ----------
    experiments : sequence of Experiment
        Those without a finished trial are named and left out.
    output : path
        The folder in which ``run_experiment`` left the trials.

    Returns
    -------
    Path
        Of ``reproduction.html``.
    """
    folder = Path(output)
    results = read_results(experiments, folder)
    blocks = report_blocks(results)
    # All of it before the first file is touched, so that a failure leaves the old report.
    files = {
        f"{image.stem}.{suffix}": content
        for image in blocks
        if isinstance(image, Image)
        for suffix, content in (("png", image.png), ("svg", image.svg))
    }
    files["results.json"] = (json.dumps(as_json(results), indent=1, allow_nan=False) + "\n").encode()
    files["reproduction.md"] = markdown_page(_TITLE, blocks).encode()
    files["reproduction.html"] = web_page(_TITLE, blocks).encode()
    for name, content in files.items():
        _replace(folder / name, content)
    return folder / "reproduction.html"


def _replace(path: Path, content: bytes) -> None:
    """Write a file so that a reader finds the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    part.replace(path)
