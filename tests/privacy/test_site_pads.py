"""Masks of several sites: they cancel, each is used once, and whoever misuses one is noticed."""

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import stats

from sites_of_arrays import NAMES, keys_of, open_locally, plan_of, sites_of, tables_of
from taciturn.core.errors import DataError
from taciturn.core.validation import ONE
from taciturn.data.target import LabelMap, NumberMap
from taciturn.engines import BlockBuilder
from taciturn.engines.sites import messages
from taciturn.engines.sites.pads import SessionKey, SitePads
from taciturn.engines.sites.session import Site, TaskList
from taciturn.losses import SquaredLoss
from taciturn.methods.clipped_records import Clipping
from taciturn.methods.scores.run import OutcomeCounts
from taciturn.methods.sums import ClippedRowSum

N_ROWS, EDGES = 90, (0, 20, 50, 90)
rng = np.random.default_rng(3)
X, Y = rng.uniform(-1, 1, (N_ROWS, 4)), rng.uniform(-1, 1, N_ROWS)
BUILDER = BlockBuilder(1.0, "raise", NumberMap(np.asarray), numeric=True)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnSum:
    """The sum of some columns in lattice units."""

    columns: np.ndarray

    def __call__(self, block):
        return block.design(self.columns).rmatvec(np.ones(block.n_rows), 1)


TASKS = TaskList((ColumnSum,), ())
ASKED = ColumnSum(np.array([0, 2]))


def opened(kinds=None, plan=None):
    plan = plan_of(np.diff(EDGES).tolist()) if plan is None else plan
    sites = sites_of(plan, tables_of(X, Y, edges=EDGES), tasks=TASKS, kinds=kinds)
    table = open_locally(plan, sites)
    return table, table.read(type("Named", (), {})(), BUILDER, N_ROWS, None)


def own_sums():
    lattice = np.rint(X * ONE).astype(np.int64)
    return [lattice[start:stop, [0, 2]].sum(axis=0) for start, stop in pairwise(EDGES)]


def wires(table):
    return table.session._channels


def sent_words(table):
    """The words of every masked sum that each site sent."""
    read = messages.Vocabulary(()).read
    answers = {name: [read(each) for each in wire.answers] for name, wire in wires(table).items()}
    return {name: [each["sum"] for each in found if each.get("sum") is not None] for name, found in answers.items()}


def pads_of(n_sites=3, plan_digest=b"plan"):
    """The pads of all sites in one session."""
    names = NAMES[:n_sites]
    session = {name: SessionKey() for name in names}
    shown = {name: key.public for name, key in session.items()}
    pinned = plan_of([1] * n_sites).pinned
    return {name: session[name].pads(name, keys_of(name).pads, pinned, shown, plan_digest) for name in names}


# ------------------------------------------------------------------ pads


@pytest.mark.parametrize("n_sites", [2, 3])
def test_masks_cancel_in_the_total_alone(n_sites):
    pads, sums = pads_of(n_sites), [np.array([7, 2**64 - 3, place], dtype=np.uint64) for place in range(n_sites)]
    masked = [pad.mask(each, 1, b"request") for pad, each in zip(pads.values(), sums, strict=True)]
    assert (sum(masked) == sum(sums)).all()
    for size in range(1, n_sites):
        for some in combinations(range(n_sites), size):
            # Whoever lacks one site's answer has the sum of the others under its pads.
            assert (sum(masked[place] for place in some) != sum(sums[place] for place in some)).all()


def test_both_sites_of_a_pair_derive_one_pad_and_the_third_another():
    north, south, west = pads_of().values()
    asked = 5, b"request", 4
    assert (north.pad("south", *asked) == south.pad("north", *asked)).all()
    assert (north.pad("south", *asked) != north.pad("west", *asked)).all()
    assert (north.pad("south", *asked) != west.pad("south", *asked)).all()


@pytest.mark.parametrize("changed", ["number", "request", "session", "plan", "keys"])
def test_a_pad_belongs_to_one_request_of_one_session(changed):
    north = pads_of()["north"]
    number, request, other = 1, b"request", north
    if changed == "number":
        number = 2
    elif changed == "request":
        request = b"request "
    elif changed == "session":
        other = SitePads(north.name, north.order, north.secrets, north.session[::-1])
    elif changed == "plan":
        other = pads_of(plan_digest=b"another")["north"]
    else:
        other = SitePads(
            north.name, north.order, {peer: each[::-1] for peer, each in north.secrets.items()}, north.session
        )
    assert (other.pad("south", number, request, 64) != north.pad("south", 1, b"request", 64)).all()


def test_masked_sums_are_uniform_whatever_the_sum():
    """By bytes of 40 masked vectors: chi-square beyond its 1e-7 quantile is as rare; a mask in 63 bits is beyond it."""
    pads = pads_of()["north"]
    words = np.concatenate([pads.mask(np.zeros(512, dtype=np.uint64), number, b"r") for number in range(40)])

    def statistic(words):
        counts = np.bincount(words.view(np.uint8), minlength=256)
        return float(stats.chisquare(counts).pvalue)

    assert statistic(words) > 1e-7
    assert statistic(words & np.uint64(2**63 - 1)) < 1e-7


def test_a_key_of_small_order_is_refused():
    """With it both secrets of a pair would be zero, and everybody's."""
    plan, key = plan_of([1, 1]), SessionKey()
    shown = {"north": key.public, "south": bytes(32)}
    with pytest.raises(DataError, match="usable key of site 'south'"):
        key.pads("north", keys_of("north").pads, plan.pinned, shown, b"plan")


# ------------------------------------------------------------------ sessions


def test_the_total_is_exact_and_no_site_sends_its_own_sum():
    table, source = opened()
    assert source.total(ASKED).tolist() == sum(own_sums()).tolist()
    for sums, words in zip(own_sums(), sent_words(table).values(), strict=True):
        assert (words[-1][:2].view(np.int64) != sums).all()


def test_no_mask_is_used_twice_in_a_session_or_after_it():
    """The same sums over the same table, again and again: masked words never repeat, nor do their differences."""
    first, source = opened()
    for _ in range(4):
        source.total(ASKED)
    second, source = opened()
    source.total(ASKED)
    for name in NAMES:
        words = [each[:2].tobytes() for table in (first, second) for each in sent_words(table)[name][1:]]
        assert len(set(words)) == len(words) == 5


class Unmasked(Site):
    def _masked(self, sums, number, message):
        return np.append(sums.ravel(), 1).astype(np.int64).view(np.uint64)


class MasksTwice(Site):
    """Derives the pads of the first request for every request."""

    def _masked(self, sums, number, message):
        self.first = getattr(self, "first", (number, message))
        return super()._masked(sums, *self.first)


class MasksAnother(Site):
    """Leaves out the pad that it shares with the last site."""

    def _masked(self, sums, number, message):
        words = super()._masked(sums, number, message)
        return words + self._pads.pad(self._pads.order[-1], number, message, words.size)


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        ({"south": Unmasked}, "masked sums, got one without a mask"),
        (dict.fromkeys(NAMES, Unmasked), "masked sums, got one without a mask"),
        ({"west": MasksTwice}, "sums whose masks cancel, got others"),
        ({"south": MasksAnother}, "sums whose masks cancel, got others"),
    ],
    ids=["left out by one", "left out by all", "reused by one", "not cancelled"],
)
def test_a_mask_that_is_left_out_or_reused_or_not_cancelled_is_noticed(kinds, words):
    with pytest.raises(DataError, match=words):
        opened(kinds)[1].total(ASKED)


def test_masks_that_all_sites_reuse_are_told_from_their_words():
    """They cancel, so that totals are right; the test above on repeated words is what rejects them."""
    table, source = opened(dict.fromkeys(NAMES, MasksTwice))
    assert source.total(ASKED).tolist() == sum(own_sums()).tolist()
    source.total(ASKED)
    words = sent_words(table)["north"]
    assert words[-1].tobytes() == words[-2].tobytes()


def test_after_a_wrong_mask_nothing_more_is_asked():
    table, source = opened()
    wires(table)["south"]._site.__class__ = MasksAnother
    for _ in range(2):
        with pytest.raises(DataError, match="masks cancel"):
            source.total(ASKED)
    assert len({len(wire.requests) for wire in wires(table).values()}) == 1
    assert len(wires(table)["south"].requests) == 3


# ------------------------------------------------------------------ a coordinator that does not keep to it


def answer(site, message):
    return messages.Vocabulary(()).read(site.answer(message))


def test_a_repeated_number_is_refused_whatever_the_request_is():
    table, source = opened()
    source.total(ASKED)
    wire = wires(table)["north"]
    for replayed in wire.requests[1:]:
        assert "repeated number" in answer(wire._site, replayed)["refusal"]
    used = messages.write({"kind": "sum", "number": 2, "source": 1, "task": ColumnSum(np.array([1]))})
    assert "repeated number" in answer(wire._site, used)["refusal"]


def test_a_number_is_used_even_if_its_request_is_refused():
    table, _ = opened()
    site = wires(table)["north"]._site
    refused = messages.write({"kind": "sum", "number": 9, "source": 99, "task": ASKED})
    assert "within the plan" in answer(site, refused)["refusal"]
    asked = messages.write({"kind": "sum", "number": 9, "source": 1, "task": ASKED})
    assert "repeated number" in answer(site, asked)["refusal"]


def test_a_session_is_joined_once_and_by_its_own_key():
    table, source = opened()
    source.total(ASKED)
    wire = wires(table)["north"]
    roster = wire.requests[0]
    assert "once" in answer(wire._site, roster)["refusal"]
    # A restarted site, or one whose connection was lost, has another key.
    wire._site.hello()
    for replayed in wire.requests:
        assert "session keys" in answer(wire._site, replayed)["refusal"]


def test_different_requests_to_different_sites_do_not_cancel():
    """A coordinator that asks one site for a column and the others for nothing gets no site's own sum."""
    table, _ = opened()
    for number, same in ((7, True), (8, False)):
        total = np.zeros(3, dtype=np.uint64)
        for name, wire in wires(table).items():
            request = {"kind": "sum", "number": number, "source": 1, "task": ASKED}
            # The answers are the same, and the bytes of the requests differ.
            request |= {} if same or name != "north" else {"more": "bytes"}
            total += answer(wire._site, messages.write(request))["sum"]
        cancels = total.tolist() == [*sum(own_sums()).astype(np.uint64).tolist(), 3]
        assert cancels is same


def test_session_keys_that_differ_between_sites_do_not_cancel():
    """A coordinator that shows one site a key of its own, in the place of another's, derives no pad and no total."""
    plan = plan_of(np.diff(EDGES).tolist())
    sites = sites_of(plan, tables_of(X, Y, edges=EDGES), tasks=TASKS)
    read = messages.Vocabulary(()).read
    shown = {name: read(site.hello())["key"] for name, site in sites.items()}
    for name, site in sites.items():
        own = dict(shown) if name != "north" else shown | {"south": SessionKey().public.hex()}
        assert answer(site, messages.write({"kind": "keys", "keys": own})) == {"sum": None}
    request = messages.write({"kind": "open", "number": 1, "source": 1, "builder": BUILDER})
    total = sum(answer(site, request)["sum"] for site in sites.values())
    assert int(total[-1]) != 3


# One record more or less makes a sum leave 64 bits, or one label a table longer than the request says.
MANY = 1150
COUNTED = ClippedRowSum(Clipping(None, 1, SquaredLoss(), 1, 1 << 33, 0, 1, 1.0), -(-(2**47) // MANY))
OUTCOMES = OutcomeCounts(1)


def answers_of_two(task, *, fails, kinds=None):
    """What the coordinator and the first of two sites say to a task that fails there for its rows, or does not."""
    features, labels = np.zeros((4 * MANY, 1)), np.zeros(4 * MANY, dtype=np.int64)
    if task is COUNTED:
        # The tables have two partitions each.
        features[[*([] if fails else [0]), MANY, 2 * MANY, 3 * MANY]] = np.nan
    else:
        labels[0] = int(fails)
    plan = plan_of([2 * MANY, 2 * MANY], invalid="null")
    tables = tables_of(features, labels, edges=(0, 2 * MANY, 4 * MANY))
    tasks = TaskList((ClippedRowSum, OutcomeCounts), (Clipping, SquaredLoss))
    table = open_locally(plan, sites_of(plan, tables, tasks=tasks, kinds=kinds))
    builder = BlockBuilder(1.0, "null", LabelMap(np.array([0, 1])), numeric=False, own_units=True)
    source, said = table.session.open(builder), ""
    try:
        table.session.total(source, task)
    except DataError as error:
        said = str(error)
    return said, messages.Vocabulary(()).read(wires(table)["north"].answers[-1])


@pytest.mark.parametrize("task", [COUNTED, OUTCOMES], ids=["number of records", "labels"])
def test_no_answer_tells_at_which_site_a_sum_fails_for_its_rows(task):
    (fine, first), (failed, second) = (answers_of_two(task, fails=fails) for fails in (False, True))
    assert fine == ""
    assert "masks cancel" in failed
    assert not any(name in failed for name in NAMES)
    assert first.keys() == second.keys() == {"sum", "shape"}
    assert first["shape"] == second["shape"]
    assert first["sum"].size == second["sum"].size
    # Random words, in which nothing is of the rest: those of the same failure are others.
    assert (answers_of_two(task, fails=True)[1]["sum"] != second["sum"]).all()


class TellsOfRows(Site):
    def _sum(self, source, task):
        return source.total(task)


@pytest.mark.parametrize("task", [COUNTED, OUTCOMES], ids=["number of records", "labels"])
def test_a_site_that_says_what_fails_is_rejected(task):
    said, answered = answers_of_two(task, fails=True, kinds={"north": TellsOfRows})
    assert "masks cancel" not in said or answered["shape"] != answers_of_two(task, fails=False)[1]["shape"]


def test_what_fails_without_rows_is_refused_in_words():
    """A request that no rows could answer is told as such, so that whoever asks finds the mistake."""
    _, source = opened()
    with pytest.raises(DataError, match="site 'north': .*that fails there"):
        source.total(ColumnSum(np.zeros(0)))
