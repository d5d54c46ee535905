"""The command site: a hospital's side of a fit to the tables of several."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from taciturn.app.cli.screen import print_line, print_note, stage
from taciturn.app.cli.tables import Memory, parse_memory
from taciturn.core.errors import DataError, ParameterError

_ALIVE = 0.2


def site(
    table: Annotated[
        Path | None, typer.Argument(help="The table of this site, as for fit.", show_default=False)
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="The plan that all sites and the coordinator agreed on.", show_default=False)
    ] = None,
    keys: Annotated[Path | None, typer.Option(help="The private keys of this site.", show_default=False)] = None,
    bounds: Annotated[
        Path, typer.Option(help="Public bounds of the columns (TOML), the same file at all sites.")
    ] = Path("bounds.toml"),
    create_keys: Annotated[
        str | None,
        typer.Option(
            help="Create NAME.keys, and NAME.toml for the plan, for a site or for coordinator.", metavar="NAME"
        ),
    ] = None,
    memory: Memory = None,
) -> None:
    """Answer a coordinator that fits one model to the tables of several sites; the table stays here.

    Sums over the table leave it masked, so that the coordinator learns totals over all sites alone. Requests are
    answered within the plan until the command is interrupted.

    Example: taciturn site --plan plan.toml --bounds bounds.toml --keys north.keys north.csv
    """
    if create_keys is not None:
        _create(create_keys)
        return
    for name, given in (("table", table), ("plan", plan), ("keys", keys)):
        if given is None:
            raise ParameterError(name, None, "a file", "name it, or run taciturn site --create-keys NAME first")
    assert table is not None
    assert plan is not None
    assert keys is not None
    _serve(table, plan, keys, bounds, parse_memory(memory))


def _create(name: str) -> None:
    from taciturn.engines.sites.plan import create_keys

    private, public = create_keys(name)
    print_line(f"written: {private}, which stays here; {public}, which goes into the plan")


def _serve(table: Path, plan: Path, keys: Path, bounds: Path, memory: int) -> None:
    from taciturn.engines.partitions import open_table
    from taciturn.engines.sites.flight import serve
    from taciturn.engines.sites.plan import PartyKeys, SitePlan, bounds_digest
    from taciturn.engines.sites.session import Site
    from taciturn.methods.clipped_records import warm_up
    from taciturn.methods.tasks import tasks_of

    agreed, held = SitePlan.read(plan), PartyKeys.read(keys)
    if bounds_digest(bounds) != agreed.bounds:
        raise DataError(f"bounds {bounds.name!r}: expected the file that the plan names, got another; copy that one.")
    tasks = tasks_of(agreed.methods)
    with stage(f"reading {table.name}"):
        opened = open_table(table, bounds, invalid=agreed.invalid, memory=memory)  # type: ignore[arg-type]
    with opened:
        here = Site(agreed, held, opened, tasks)
        with stage("preparing"):
            # Else the coordinator would wait for it.
            warm_up(sparse=opened.is_sparse, n_classes=None if opened.classes is None else len(opened.classes))
        print_line(
            f"site {here.name} of {agreed.study}: {int(opened.lengths.sum()):,} rows, {opened.n_features} features"
        )
        # In a thread of its own, since a stream that is waited for would keep an interrupt waiting.
        answering = Thread(target=serve, args=(here, held, print_note), daemon=True)
        answering.start()
        while answering.is_alive():
            answering.join(_ALIVE)
    raise DataError("site: expected to answer until it is interrupted, and could not; run the command again.")
