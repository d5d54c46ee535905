"""Sites that tests make in one process: plans with keys, tables of arrays, and channels that are read along."""

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

from array_readers import ArrayReader, equal_edges
from taciturn.engines import PartitionedTable, SitesTable
from taciturn.engines.sites.plan import COORDINATOR, PartyKeys, SitePlan, create_keys
from taciturn.engines.sites.session import LocalChannel, Session, Site
from taciturn.methods.tasks import TASKS, tasks_of

NAMES = ("north", "south", "west")
BOUNDS = 64 * "0"


@cache
def key_folder():
    """A folder with keys of the sites, of the coordinator, and of one who is neither."""
    folder = TemporaryDirectory()
    for name in (*NAMES, COORDINATOR, "stranger"):
        create_keys(name, folder.name)
    # The folder is removed with the process.
    key_folder.kept = folder
    return Path(folder.name)


@cache
def keys_of(name):
    return PartyKeys.read(key_folder() / f"{name}.keys")


def plan_text(rows, persons=None, *, address="127.0.0.1:8815", **study):
    """A plan for as many of the sites as there are numbers of rows."""
    stated = {"name": "study", "methods": list(TASKS), "bounds": BOUNDS} | study
    parts = ["[study]", *(f"{key} = {json.dumps(value)}" for key, value in stated.items())]
    parts.append((key_folder() / f"{COORDINATOR}.toml").read_text().replace('address = ""', f'address = "{address}"'))
    for place, (name, n_rows) in enumerate(zip(NAMES, rows, strict=False)):
        entry = (key_folder() / f"{name}.toml").read_text().replace("rows = 0", f"rows = {n_rows}")
        parts.append(entry if persons is None else entry.replace("key =", f"persons = {persons[place]}\nkey ="))
    return "\n".join(parts)


def plan_of(rows, persons=None, **study):
    return SitePlan.from_toml(plan_text(rows, persons, **study))


def tables_of(X, y, keys=None, *, edges, **stated):
    """Tables of the rows between edges, each in two partitions, or in one where rows belong to persons."""
    for start, stop in pairwise(edges):
        rows = slice(start, stop)
        parts = equal_edges(stop - start, 2 if keys is None else 1)
        reader = ArrayReader(X[rows], None if y is None else y[rows], None if keys is None else keys[rows], edges=parts)
        yield PartitionedTable(reader, has_target=y is not None, has_persons=keys is not None, **stated)


class Wire(LocalChannel):
    """A channel with a list of what went through it."""

    def __init__(self, site):
        super().__init__(site)
        self.requests, self.answers = [], []

    def send(self, message):
        self.requests.append(message)
        super().send(message)
        self.answers.append(self._answer)


def sites_of(plan, tables, *, tasks=None, kinds=None):
    """The sites of a plan with their tables; ``kinds`` are classes of some, by name, in the place of Site."""
    tasks = tasks_of(plan.methods) if tasks is None else tasks
    return {
        name: (kinds or {}).get(name, Site)(plan, keys_of(name), table, tasks)
        for name, table in zip(plan.pinned, tables, strict=True)
    }


def open_locally(plan, sites, channel=Wire):
    return SitesTable(Session(plan, {name: channel(site) for name, site in sites.items()}))
