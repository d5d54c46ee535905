"""Several sites, one model: the bits and, but for the trust model, the certificate of the pooled table."""

import importlib
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from test_engines import CASES, N_ROWS, _few_steps, case, state, table  # noqa: F401

from array_readers import ArrayReader
from sites_of_arrays import BOUNDS, NAMES, key_folder, keys_of, open_locally, plan_of, plan_text, sites_of, tables_of
from taciturn import (
    BoundedScaler,
    FrankWolfeRegressor,
    KendallSelector,
    SparseClassifier,
    SparseRegressor,
    SparseSurvival,
    private_cross_val_score,
    private_score,
)
from taciturn.core.errors import DataError, ParameterError
from taciturn.data.records import Measures, Outcomes
from taciturn.data.target import LabelMap, NumberMap, numeric_target
from taciturn.engines import BlockBuilder, PartitionedTable
from taciturn.engines.sites import messages
from taciturn.engines.sites.plan import COORDINATED, ONE_SITE, PartyKeys, SitePlan, bounds_digest
from taciturn.engines.sites.session import Site, drawn_at_random
from taciturn.methods.scaling.run import ColumnCounts
from taciturn.methods.sums import TargetSum

pytestmark = pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")

EDGES = (0, 50, 130, N_ROWS)
# Rows of a person are at one site; keys of a site come before those of the next, as slots do.
PERSONS = np.array([f"{np.searchsorted(EDGES, row, 'right')}-{(37 * (row // 3)) % 79}" for row in range(N_ROWS)])
COUNTS = [np.unique(PERSONS[start:stop]).size for start, stop in pairwise(EDGES)]
# Private numbers of rows are refused, and so is a method that no plan may list; see below.
REFUSED = {"inference, add-remove", "quadrants", "hazards", "hazards, inference, null records"}
LABELS = {"labels": ("ill", "well"), "three": ("a", "b", "c")}
WITH_PERSONS = (
    "inference", "sums of rows", "inference, sums of rows", "two-phase, three classes, null records",
    "inference, counts",
)  # fmt: skip
AT_ONCE = {"two-phase", "size chosen", "inference, null records", "correlations with labels, null records", "quantiles"}


def slowly(names, at_once):
    return [pytest.param(name, marks=() if name in at_once else pytest.mark.slow) for name in names]


def opened(X, y, keys=None, *, kinds=None, facts=None, **study):
    plan = plan_of(np.diff(EDGES).tolist(), None if keys is None else COUNTS, **study)
    return open_locally(plan, sites_of(plan, tables_of(X, y, keys, edges=EDGES, **facts or {}), kinds=kinds))


def stated(name):
    """An unfitted model, its table, and what tables at sites state of the target: its labels, or its range."""
    model, X, y = case(name)
    classes = LABELS.get(CASES[name][1])
    if classes is not None:
        return model.set_params(classes=classes), X, y, {"classes": classes}
    return model, X, y, {"y_bounds": model.y_bounds or (-1.0, 1.0)} if hasattr(model, "y_bounds") else {}


def at_sites(name, keys=None, *, kinds=None):
    model, X, y, facts = stated(name)
    y = None if "quantiles" in name else y
    with opened(X, y, keys, kinds=kinds, invalid=model.invalid, facts=facts) as table:
        return model.fit(table)


def check_same_model(name, keys=None, *, kinds=None):
    """A model fitted to sites equals the one of the pooled table, but for what is assumed."""
    whole, X, y, _ = stated(name)
    whole.fit(X, y, persons=keys)
    model = at_sites(name, keys, kinds=kinds)
    (certificate, bits), (pooled, expected) = state(model), state(whole)
    trusted = [COORDINATED, *([] if keys is None else [ONE_SITE])]
    assert [words for words in certificate["assumptions"] if words not in pooled["assumptions"]] == trusted
    certificate["assumptions"] = [words for words in certificate["assumptions"] if words not in trusted]
    assert certificate == pooled
    assert bits == expected
    return model


@pytest.mark.parametrize("name", slowly((name for name in CASES if name not in REFUSED), AT_ONCE))
def test_sites_give_the_bits_of_the_pooled_table(name):
    check_same_model(name)


@pytest.mark.parametrize("name", slowly(WITH_PERSONS, {"inference", "sums of rows"}))
def test_persons_at_sites_give_the_bits_of_the_pooled_table(name):
    assert check_same_model(name, PERSONS).certificate_.unit == "person"


def test_scores_are_those_of_the_pooled_table():
    _, X, y = case("two-phase, labels from y")
    model = SparseClassifier(epsilon=8.0, classes=("ill", "well"), n_nonzero=2, random_state=1).fit(X, y)
    settings = {"metric": "all", "epsilon": 5.0, "random_state": 2}
    with opened(X, y) as table:
        scored, pooled = private_score(model, table, **settings), private_score(model, X, y, **settings)
    assert [each.counts for each in (scored, pooled)] == [pooled.counts] * 2
    assert (scored.cells, scored.labels, scored.measures) == (pooled.cells, pooled.labels, pooled.measures)
    assumed, expected = scored.certificate.assumptions, pooled.certificate.assumptions
    assert [words for words in assumed if words not in expected] == [COORDINATED]
    assert replace(scored.certificate, assumptions=expected) == pooled.certificate


class CountsTwice(Site):
    def _perform(self, request):
        return 2 * super()._perform(request)


class LosesRows(Site):
    def _perform(self, request):
        return 0 * super()._perform(request)


class AddsFloats(Site):
    """Adds in single precision, which keeps 24 bits of a sum."""

    def _perform(self, request):
        return np.rint(super()._perform(request).astype(np.float32)).astype(np.int64)


@pytest.mark.parametrize("kind", [CountsTwice, LosesRows, AddsFloats])
def test_the_same_check_rejects_broken_sites(kind):
    with pytest.raises(AssertionError):
        check_same_model("two-phase", kinds={"south": kind})


class MeasuredReader(ArrayReader):
    """Targets with weights from 0 to 2 and exposures from 0 to 3, in the columns after the first."""

    def read(self, index, columns):
        X, y, keys = super().read(index, columns)
        return X, Outcomes(*y.T), keys


def test_weights_and_exposures_at_sites_give_the_bits_of_the_pooled_table():
    X, y = table("counts")
    rng = np.random.default_rng(11)
    weight, exposure = rng.uniform(0, 2, N_ROWS), rng.uniform(0, 3, N_ROWS)
    settings = {"loss": "poisson", "epsilon": 8.0, "n_nonzero": 3, "random_state": 3}
    stated = {"x_bound": 1.0, "y_bounds": (0.0, 12.0), "weight_bound": 2.0, "exposure_bound": 3.0}
    whole = SparseRegressor(**settings, **stated).fit(X, y, sample_weight=weight, exposure=exposure)
    tables = []
    for start, stop in pairwise(EDGES):
        measured = np.column_stack([y, weight, exposure])[start:stop]
        reader = MeasuredReader(X[start:stop], measured, edges=(0, stop - start))
        here = PartitionedTable(reader, has_weight=True, has_exposure=True, x_bound=1.0, y_bounds=(0.0, 12.0))
        # As those of a bounds file.
        here.weight_bound, here.exposure_bound = 2.0, 3.0
        tables.append(here)
    plan = plan_of(np.diff(EDGES).tolist())
    with open_locally(plan, sites_of(plan, tables)) as opened_:
        # The sites tell the bounds.
        model = SparseRegressor(**settings).fit(opened_)
        target = NumberMap(partial(numeric_target, y_bounds=(0.0, 12.0)))
        for measures in (Measures(2.5, 3.0), Measures(2.0, 0.1)):
            with pytest.raises(DataError, match="within the plan"):
                opened_.session.open(BlockBuilder(1.0, "raise", target, numeric=True, measures=measures))
    assert state(model)[1] == state(whole)[1]
    assert model.certificate_.public["weight_bound"] == whole.certificate_.public["weight_bound"] == 2.0


# ------------------------------------------------------------------ what is refused


def test_classes_that_need_more_than_sums_name_those_that_do_not():
    _, X, y = case("two-phase")
    with opened(X, y) as table:
        for kind in (FrankWolfeRegressor, KendallSelector):
            with pytest.raises(DataError, match="use .*SparseRegressor.*, or compute"):
                kind().fit(table)
        with pytest.raises((DataError, ParameterError)):
            private_cross_val_score(SparseRegressor(), table, None, epsilon=1.0)
        # Bounds alone are looked at.
        assert BoundedScaler(lower=-1, upper=1).fit(table).n_features_in_ == X.shape[1]


def test_what_the_plan_does_not_list_is_refused_before_anything_is_asked_or_paid():
    model, X, y = case("two-phase")
    with opened(X, y, methods=["CorrelationSelector", "PrivateScaler"]) as table:
        for use in (model.fit, SparseSurvival(cuts=(1.0, 2.0)).fit, partial(private_score, model, metric="all")):
            model.fit(X, y)
            with pytest.raises(DataError, match="plan of the sites lists, .* use CorrelationSelector, Priv"):
                use(table)
        assert table.session.n_requests == 0


@pytest.mark.parametrize("name", ["two-phase, labels from y", "correlations"])
def test_labels_are_stated_and_never_asked_for(name):
    model, X, y = case(name)
    with pytest.raises(DataError, match="classes of the target in the bounds of the sites"), opened(X, y) as table:
        model.fit(table)


@pytest.mark.parametrize("name", ["inference, add-remove", "quadrants"])
def test_a_private_number_of_rows_is_refused(name):
    with pytest.raises(ParameterError, match="'zero-out' or 'replace-one' for several sites"):
        at_sites(name)


def test_a_record_that_a_site_refuses_is_told_without_its_cells():
    model, X, y = case("two-phase")
    X = X.copy()
    X[60, 2], X[61, 3] = np.inf, 0.123456
    with pytest.raises(DataError, match="^site 'south': X: ") as caught, opened(X, y) as table:
        model.fit(table)
    assert not any(word in str(caught.value) for word in ("0.123456", "60", "61"))
    assert caught.value.__cause__ is caught.value.__context__ is None


@pytest.mark.parametrize(
    ("methods", "task", "words"),
    [
        (["CorrelationSelector"], TargetSum(), "methods that the plan lists, got 'TargetSum'"),
        (["SparseRegressor"], ColumnCounts(((-1.0, 1.0),) * 8), "methods that the plan lists, got 'ColumnCounts'"),
        (["SparseRegressor"], TargetSum(None, np.array([8])), "within the plan"),
        (["SparseRegressor"], TargetSum(None, np.array([-1])), "within the plan"),
        (["SparseRegressor"], TargetSum(None, np.array([3, 3])), "within the plan"),
        (["SparseRegressor"], BlockBuilder(1.0, "raise", None, True), "within the plan"),
        (["SparseRegressor"], None, "within the plan"),
        (["SparseRegressor"], TargetSum("abc"), "a message of this version"),
        (["SparseRegressor"], TargetSum(None, "abc"), "a message of this version"),
    ],
)
def test_a_task_outside_the_plan_is_refused(methods, task, words):
    _, X, y = case("two-phase")
    builder = BlockBuilder(1.0, "raise", NumberMap(np.asarray), numeric=True)
    with opened(X, y, methods=methods) as table:
        source = table.session.open(builder)
        with pytest.raises(DataError, match=words):
            table.session.total(source, task)


def test_rows_are_read_by_the_bounds_that_the_sites_state():
    _, X, y = case("two-phase")
    plan = plan_of(np.diff(EDGES).tolist())
    sites = sites_of(plan, tables_of(X, y, edges=EDGES, x_bound=1.0, y_bounds=(-1.0, 1.0)))
    with open_locally(plan, sites) as table:
        assert SparseRegressor(n_nonzero=2).fit(table).certificate_.public["x_bound"] == 1.0
        wide = BlockBuilder(1e9, "raise", NumberMap(np.asarray), numeric=True)
        null = BlockBuilder(1.0, "null", NumberMap(np.asarray), numeric=True)
        clipped = BlockBuilder(1.0, "raise", NumberMap(partial(numeric_target, y_bounds=(-0.1, 0.1))), numeric=True)
        # How often a number occurs is not for those who may ask for its mean.
        labels = BlockBuilder(1.0, "raise", LabelMap(np.array([0.25, 0.5])), numeric=False)
        for builder in (wide, null, clipped, labels):
            with pytest.raises(DataError, match="within the plan"):
                table.session.open(builder)


def test_the_number_of_rounds_is_limited():
    """Over all sessions, since a coordinator ends and begins them as it likes."""
    _, X, y = case("two-phase")
    builder = BlockBuilder(1.0, "raise", NumberMap(np.asarray), numeric=True)
    plan = plan_of(np.diff(EDGES).tolist(), rounds=5)
    sites = sites_of(plan, tables_of(X, y, edges=EDGES))
    with open_locally(plan, sites) as table:
        source = table.session.open(builder)
        table.session.total(source, TargetSum())
    with open_locally(plan, sites) as table:
        source = table.session.open(builder)
        for _ in range(2):
            table.session.total(source, TargetSum())
        with pytest.raises(DataError, match="number of rounds that the plan states"):
            table.session.total(source, TargetSum())


def test_every_task_of_a_method_on_partitions_is_listed():
    """Whatever has a sum or a value for each row of a block; those of a table in memory alone are the others."""
    import pkgutil

    import taciturn.methods
    from taciturn.methods.tasks import TASKS

    listed = {kind for one in TASKS.values() for kind in (*one.tasks, *one.parts)}
    in_memory = ("taciturn.methods.survival", "taciturn.methods.objective", "taciturn.methods.selection.estimator")
    found = set()
    for module in pkgutil.walk_packages(taciturn.methods.__path__, "taciturn.methods."):
        if not module.name.startswith(in_memory):
            loaded = importlib.import_module(module.name)
            found |= {
                each for each in vars(loaded).values() if inspect.isclass(each) and each.__module__ == module.name
            }

    def asks_for_blocks(kind):
        for name in ("__call__", "values"):
            # Its own, or that of what it derives from.
            method = getattr(kind, name, None)
            if inspect.isfunction(method) and list(inspect.signature(method).parameters) == ["self", "block"]:
                return not getattr(kind, "_is_protocol", False) and not found.intersection(kind.__subclasses__())
        return False

    asking = {kind for kind in found if asks_for_blocks(kind)}
    assert len(asking) > 30
    assert {kind.__name__ for kind in asking - listed} == set()


def test_a_table_is_divided_at_random_and_once():
    _, X, y = case("two-phase")
    builder = BlockBuilder(1.0, "raise", NumberMap(np.asarray), numeric=True)
    half = np.random.default_rng(0).permutation(np.arange(N_ROWS) % 2 == 0)
    one_row, one_site = np.arange(N_ROWS) == 3, np.arange(N_ROWS) < EDGES[1]
    with opened(X, y) as table:
        for mask in (one_row, ~one_row, one_site):
            with pytest.raises(DataError, match="within the plan"):
                table.session.divide(table.session.open(builder), mask)
        source = table.session.open(builder)
        first, _ = table.session.divide(source, half)
        for again in (source, first):
            with pytest.raises(DataError, match="within the plan"):
                table.session.divide(again, half)


def test_masks_that_follow_sites_are_told_from_draws():
    """1,000 draws of a half, none of which is refused, and halves of whole sites, all of which are."""
    counts, rng_ = (200, 300, 5000), np.random.default_rng(5)
    edges = np.cumsum(counts)[:-1]
    base = np.arange(sum(counts)) % 2 == 0
    assert all(drawn_at_random(np.split(rng_.permutation(base), edges)) for _ in range(1_000))
    for place in range(3):
        parts = [np.full(count, index == place) for index, count in enumerate(counts)]
        assert not drawn_at_random(parts)
        rest = [base[: part.size] if index == place else part for index, part in enumerate(parts)]
        assert not drawn_at_random([~part for part in rest])


@pytest.mark.parametrize("what", ["rows", "persons", "plan", "version", "columns"])
def test_sites_that_did_not_agree_are_refused(what):
    _, X, y = case("two-phase")
    rows = np.diff(EDGES).tolist()
    plan, keys = plan_of(rows), PERSONS if what == "persons" else None
    if what == "rows":
        plan = plan_of([rows[0], rows[1] + 1, rows[2]])
    if what == "persons":
        plan = plan_of(rows, [COUNTS[0], COUNTS[1] - 1, COUNTS[2]])
    words = {
        "plan": "same plan",
        "columns": "same columns",
        "version": "expected taciturn .* got another at 'west'",
    }.get(what, f"the .* {what}")
    with pytest.raises(DataError, match=words):
        open_locally(plan, changed(sites_of(plan, tables_of(X, y, keys, edges=EDGES)), what))


def changed(sites, what):
    """Sites of which the last has another plan, or other names of columns."""
    if what == "plan":
        sites["west"].plan = replace(sites["west"].plan, study="another")
    if what == "version":
        hello, write = sites["west"].hello, messages.write
        sites["west"].hello = lambda: write(messages.Vocabulary(()).read(hello()) | {"version": "0.0"})
    if what == "columns":
        sites["west"]._table.names = tuple("abcdefgh")
    return sites


def test_rows_without_an_order_that_lasts_are_refused():
    _, X, y = case("two-phase")
    tables = list(tables_of(X, y, edges=EDGES))
    tables[1].has_row_order = False
    with pytest.raises(DataError, match="whose rows have an order that lasts, since halves of them are taken"):
        sites_of(plan_of(np.diff(EDGES).tolist()), tables)


def test_keys_of_another_site_are_refused():
    _, X, y = case("two-phase")
    plan = plan_of(np.diff(EDGES).tolist())
    others = SitePlan.from_toml(plan_text(np.diff(EDGES).tolist()).replace(plan.sites[0].key.hex(), 64 * "1"))
    with pytest.raises(ParameterError, match="the keys that the plan pins"):
        sites_of(others, tables_of(X, y, edges=EDGES))
    with pytest.raises(ParameterError, match="one of north, south, west"):
        plan.site(keys_of("stranger").name)


# ------------------------------------------------------------------ messages


@pytest.mark.parametrize("name", ["inference", "hard threshold, pursuit"])
def test_everything_that_is_sent_has_a_closed_form(name, monkeypatch):
    """What a site reads is what the coordinator wrote, in every array and every field."""
    sent, write = [], messages.write

    def kept(value):
        if "task" in value:
            sent.append(value["task"])
        return write(value)

    monkeypatch.setattr(messages, "write", kept)
    at_sites(name)
    _, X, y = case(name)
    plan = plan_of(np.diff(EDGES).tolist())
    words = next(iter(sites_of(plan, tables_of(X, y, edges=EDGES)).values()))._words
    assert len(sent) > 10
    for task in sent:
        message = write(task)
        assert write(words.read(message)) == message


def test_messages_run_no_code():
    class Evil:
        def __reduce__(self):
            return os.system, ("exit 1",)

    for value in (Evil(), np.array([Evil()]), {1: 2}, b"bytes"):
        with pytest.raises(TypeError):
            messages.write(value)
    vocabulary = messages.Vocabulary((TargetSum,), {np.asarray: {}})
    assert vocabulary.read(messages.write(np.asarray)) is np.asarray
    head = {"class": "os.system", "fields": {"command": "exit 1"}}
    foreign = ({"function": "os.system"}, head, {"class": "taciturn.methods.sums.TargetSum", "fields": {}})
    foreign += ({"function": "numpy.asarray", "arguments": {"dtype": "object"}},)
    shapes = ({"array": "|O", "shape": [1]}, {"array": "<i8", "shape": [-1]}, {"array": "<i8", "shape": [1 << 40]})
    for head in (*foreign, *shapes):
        content = json.dumps(head).encode()
        with pytest.raises(DataError, match="^sites: expected a "):
            vocabulary.read(len(content).to_bytes(8, "little") + content + bytes(8))
    for broken in (b"", b"x", bytes(8), b"\xff" * 40, messages.write({"a": 1})[:-1]):
        with pytest.raises(DataError, match="a message of this version"):
            vocabulary.read(broken)
    deep = json.dumps([]).replace("[]", 100 * "[" + 100 * "]").encode()
    with pytest.raises(DataError, match="a message of this version"):
        vocabulary.read(len(deep).to_bytes(8, "little") + deep)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -(2**62), 0.1, float("inf"), "text", (1, (2.0, "b")), {"a": None}, np.float64(0.1), np.int64(7),
        np.arange(6).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(["a", "bc"]),
        np.zeros((0, 3)), np.array(2.5), np.array([True, False]), np.array([1, 2], dtype=np.int32),
    ],
)  # fmt: skip
def test_values_arrive_as_they_were(value):
    read = messages.Vocabulary(()).read(messages.write(value))
    assert type(read) is type(value)
    if isinstance(value, np.ndarray):
        assert (read.dtype, read.shape, read.flags.f_contiguous) == (value.dtype, value.shape, value.flags.f_contiguous)
        assert read.tobytes("A") == value.tobytes("A")
    else:
        assert read == value


# ------------------------------------------------------------------ plans


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("rows = 50", "rows = 0"), "rows"),
        (("rows = 50", "rows = true"), "rows"),
        (('name = "south"', 'name = "north"'), "certificate"),
        (('name = "south"', 'name = "South"'), "small letters"),
        (('invalid = "raise"', 'invalid = "guess"'), "'raise' or 'null'"),
        (("127.0.0.1:8815", "nowhere"), "host:port"),
        (('methods = [', 'methodes = ['), "no key but"),
        ((f'"{BOUNDS}"', '"0"'), "64 hexadecimal"),
        (("-----BEGIN CERTIFICATE-----", "-----BEGIN-----"), "that of 'coordinator'"),
    ],
)  # fmt: skip
def test_a_plan_that_lacks_something_is_refused(change, words):
    text = plan_text([50, 80, 110], invalid="raise")
    assert change[0] in text
    with pytest.raises((ParameterError, DataError), match=words):
        SitePlan.from_toml(text.replace(*change, 1))


def test_a_plan_of_one_site_is_refused():
    with pytest.raises(ParameterError, match="masked by nobody"):
        plan_of([50])


def test_whoever_changes_a_plan_changes_its_digest():
    plan = plan_of([50, 80, 110])
    assert plan.digest == SitePlan.from_toml(plan_text([50, 80, 110]) + "\n# a comment\n").digest
    others = [
        plan_of([51, 80, 110]),
        plan_of([50, 80]),
        plan_of([50, 80, 110], [5, 6, 7]),
        plan_of([50, 80, 110], rounds=7),
    ]
    assert len({plan.digest, *(other.digest for other in others)}) == 5


def test_private_keys_are_readable_by_their_owner_alone(tmp_path):
    from taciturn.engines.sites.plan import create_keys

    private, public = create_keys("east", tmp_path)
    assert private.stat().st_mode & 0o077 == 0
    assert "PRIVATE" not in public.read_text()
    with pytest.raises(ParameterError, match="a file that is not there yet"):
        create_keys("east", tmp_path)


# ------------------------------------------------------------------ over the network


def free_port():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return held.getsockname()[1]


def study(folder, n_rows=(300, 200, 400), n_features=6):
    """A table for each site, the pooled one, and the plan, as files."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (sum(n_rows), n_features))
    y = np.where(X[:, 1] - X[:, 3] + 0.3 * rng.normal(size=len(X)) > 0, "well", "ill")
    lines = ["[target]", 'name = "y"', 'classes = ["ill", "well"]']
    lines += [f'[columns.x{j}]\ntype = "number"\nlower = -1\nupper = 1' for j in range(n_features)]
    (folder / "bounds.toml").write_text("\n".join(lines))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_features)]).assign(y=y)
    frame.to_csv(folder / "pooled.csv", index=False)
    edges = np.cumsum([0, *n_rows])
    for name, start, stop in zip(NAMES, edges, edges[1:], strict=False):
        frame[start:stop].to_csv(folder / f"{name}.csv", index=False)
    address = f"127.0.0.1:{free_port()}"
    text = plan_text(n_rows, address=address, bounds=bounds_digest(folder / "bounds.toml"))
    (folder / "plan.toml").write_text(text)
    return address


def pooled_arrays(folder):
    frame = pytest.importorskip("pandas").read_csv(folder / "pooled.csv")
    return frame.drop(columns="y").to_numpy(), frame["y"].to_numpy()


def run_site(running, folder, name, *, keys=None, plan="plan.toml"):
    command = [
        sys.executable,
        "-m",
        "taciturn",
        "site",
        "--plan",
        plan,
        "--keys",
        key_folder() / f"{keys or name}.keys",
    ]
    log = running.enter_context((folder / f"{name}.log").open("w"))
    process = subprocess.Popen([*command, f"{name}.csv"], cwd=folder, stdout=log, stderr=log)
    running.callback(process.wait)
    running.callback(process.kill)
    return process


@pytest.mark.slow
@pytest.mark.engines
def test_three_processes_one_of_which_is_killed(tmp_path, monkeypatch):
    """The model of the pooled table; a killed site ends a fit, whose budget stays spent; it returns, and fits go on."""
    from taciturn import Account, open_table
    from taciturn.engines import open_sites
    from taciturn.engines.sites.session import SitesSource

    study(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = {"epsilon": 5.0, "inference": True, "n_nonzero": 2, "random_state": 1}
    for name in ("study", "pooled"):
        Account.create("sqlite:///study.db", name, epsilon=12, delta=1e-5, n=900)
    X, y = pooled_arrays(tmp_path)
    with ExitStack() as running:
        sites = {name: run_site(running, tmp_path, name) for name in NAMES}
        with open_sites("plan.toml", key_folder() / "coordinator.keys") as table:
            model = SparseClassifier(**settings).fit(table)
            with open_table("pooled.csv", "bounds.toml") as pooled:
                whole = SparseClassifier(**settings).fit(pooled)
            certificate, expected = (json.loads(each.certificate_.to_json()) for each in (model, whole))
            assert certificate["assumptions"] == [*expected.pop("assumptions"), COORDINATED]
            del certificate["assumptions"]
            assert certificate == expected
            np.testing.assert_array_equal(model.coef_, whole.coef_)
            np.testing.assert_array_equal(model.coef_std_error_, whole.coef_std_error_)
            again = SparseClassifier(**settings).fit(table)
            np.testing.assert_array_equal(again.coef_, whole.coef_)

            rounds, total = [], SitesSource.total

            def killing(self, task):
                rounds.append(task)
                if len(rounds) == 30:
                    os.kill(sites["south"].pid, signal.SIGKILL)
                    sites["south"].wait()
                return total(self, task)

            with monkeypatch.context() as patched:
                patched.setattr(SitesSource, "total", killing)
                lost = SparseClassifier(**settings | {"account": "sqlite:///study.db#study", "random_state": None})
                with pytest.raises(DataError, match="got none from 'south'.*counts as spent"):
                    lost.fit(table)
            assert len(rounds) == 30
            assert not hasattr(lost, "certificate_")
            # As much as a fit that was finished.
            paying = {
                "account": "sqlite:///study.db#pooled",
                "random_state": None,
                "x_bound": 1.0,
                "classes": ("ill", "well"),
            }
            SparseClassifier(**settings | paying).fit(X, y)
            spent, of_pooled = (Account.open("sqlite:///study.db", name) for name in ("study", "pooled"))
            assert spent.remaining_epsilon(delta=1e-6) == of_pooled.remaining_epsilon(delta=1e-6) < 12.0
            with pytest.raises(DataError, match="got none from 'south'"):
                SparseClassifier(**settings).fit(table)
        run_site(running, tmp_path, "south")
        with open_sites("plan.toml", key_folder() / "coordinator.keys") as table:
            np.testing.assert_array_equal(SparseClassifier(**settings).fit(table).coef_, whole.coef_)


def signed_by_north():
    """Keys in the name of south, with a certificate that north signed: it may vouch for itself alone."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        load_pem_private_key,
    )

    issuer, own = x509.load_pem_x509_certificate(keys_of("north").certificate), ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "south")]))
        .issuer_name(issuer.subject)
        .public_key(own.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(issuer.not_valid_before_utc)
        .not_valid_after(issuer.not_valid_before_utc + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("south")]), critical=False)
        .sign(load_pem_private_key(keys_of("north").tls, None), hashes.SHA256())
    )
    chain = certificate.public_bytes(Encoding.PEM) + keys_of("north").certificate
    return PartyKeys("south", chain, own.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), None)


@pytest.mark.slow
@pytest.mark.engines
def test_nobody_without_a_certificate_of_the_plan_gets_to_a_stream(tmp_path):
    pytest.importorskip("pyarrow.flight")
    from pyarrow import flight

    from taciturn.engines.sites.flight import Listener

    address = study(tmp_path)
    plan = SitePlan.read(tmp_path / "plan.toml")
    listener = Listener(plan, keys_of("coordinator"), timeout=5.0)
    command = flight.FlightDescriptor.for_command(b"taciturn sites 1")

    def knocks(name, root=plan.certificate, scheme="grpc+tls", hello=b"hello"):
        keys = signed_by_north() if name == "signed by north" else keys_of(name) if name else None
        shown = {} if keys is None else {"cert_chain": keys.certificate, "private_key": keys.tls}
        tls = {"tls_root_certs": root, "override_hostname": "coordinator"} if scheme == "grpc+tls" else {}
        with flight.FlightClient(f"{scheme}://{address}", **tls, **shown) as client:
            writer, _ = client.do_exchange(command, options=flight.FlightCallOptions(timeout=20))
            writer.write_metadata(hello)
            deadline = time.monotonic() + 20
            while name not in listener._arrived and time.monotonic() < deadline:
                writer.write_metadata(hello)
                time.sleep(0.05)
            arrived = dict(listener._arrived)
            writer.close()
        return arrived

    try:
        # The same words with the keys of a site arrive, so that it is the keys that the others lack.
        assert list(knocks("north")) == ["north"]
        for name, root, scheme in (
            ("stranger", plan.certificate, "grpc+tls"),
            (None, plan.certificate, "grpc+tls"),
            ("north", keys_of("stranger").certificate, "grpc+tls"),
            (None, plan.certificate, "grpc"),
            ("signed by north", plan.certificate, "grpc+tls"),
        ):
            with pytest.raises((flight.FlightError, OSError)):
                knocks(name, root, scheme)
        with pytest.raises(DataError, match="got none from north, south, west"):
            listener.channels()
    finally:
        listener.end()
