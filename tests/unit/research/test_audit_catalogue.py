"""The catalogue of audits: pairs that are neighbours and as bad as they say, runs that are fits, claims off objects."""

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import kendalltau
from typer.testing import CliRunner

from taciturn.app.cli.main import app
from taciturn.audit import AuditResult, Pair
from taciturn.core.errors import ParameterError
from taciturn.data.sensitivity import RELATIONS
from taciturn.methods.selection.run import blocks_by_slot, count_votes
from taciturn_research import attacks
from taciturn_research.attacks import ENTRIES, KINDS, Entry, ExactCase, SampledCase, entry, find_entries, neighbours
from taciturn_research.attacks import mechanisms as mechanism_entries
from taciturn_research.attacks.neighbours import NULL_LABEL
from taciturn_research.attacks.run import audit_all, audit_entry
from taciturn_research.cli.auditing import verdict_table

RUNNER = CliRunner()
BY_NAME = pytest.mark.parametrize("each", ENTRIES, ids=lambda each: each.name)
# By name: to make all cases takes seconds.
SAMPLED = [each for each in ENTRIES if not each.name.endswith(("exact", "ranks")) and each.name != "BoundedScaler"]
OF_FITS = [each for each in SAMPLED if each.kind not in ("mechanism", "score")]


def first_of_each(entries):
    """Entries for ``parametrize``: the first one of each class is quick."""
    firsts = {each.subject: each.name for each in reversed(entries)}
    slow = {each.name for each in entries} - set(firsts.values())
    return [pytest.param(each, marks=pytest.mark.slow if each.name in slow else (), id=each.name) for each in entries]


# ------------------------------------------------------------------ pairs


def one_row_each(X, y, persons=None):
    """The first row of every person, all of whose rows are alike."""
    if persons is None:
        return X, y
    _, first, places = np.unique(persons, return_index=True, return_inverse=True)
    assert np.array_equal(X[first][places], X)
    assert np.array_equal(y[first][places], y)
    return X[first], y[first]


def are_neighbours(pair, y_bounds=(-1.0, 1.0)):
    """Whether two tables differ in one record, in the sense of their relation, within the bounds."""
    if isinstance(pair.first, np.ndarray):
        # Times without features, signed by whether there was an event.
        return pair.relation == "replace-one" and np.count_nonzero(pair.first != pair.second) == 1
    (X, y), (X2, y2) = (one_row_each(*data[:3]) for data in (pair.first, pair.second))
    for measure, measure2 in zip(pair.first[3:], pair.second[3:], strict=True):
        # Weights and exposures, of which one record more changes none of another.
        if measure is not None and not (pair.relation == "add-remove" and np.array_equal(measure[:-1], measure2)):
            return False
    if max(np.abs(X).max(), np.abs(X2).max()) > 1.0:
        return False
    if y.dtype.kind != "i" and not all(y_bounds[0] <= value <= y_bounds[1] for value in (*y, *y2)):
        return False
    if X.shape != X2.shape:
        return pair.relation == "add-remove" and np.array_equal(X[:-1], X2) and np.array_equal(y[:-1], y2)
    changed = (X != X2).any(axis=1) | (y != y2)
    if pair.relation == "zero-out":
        return changed.sum() == 1 and y2[changed] == NULL_LABEL
    return pair.relation == "replace-one" and changed.sum() == 1 and NULL_LABEL not in y2


PAIRS = {
    "near tie": partial(neighbours.near_tie, 2.5, 6, n_each=2),
    "near tie of labels": partial(neighbours.near_tie, 2.5, 6, labelled=True),
    "lone record": partial(neighbours.lone_record, (0.6, 0.8), 5),
    "lone label": partial(neighbours.lone_record, (1.0,), 5, labelled=True),
    "mislabelled": partial(neighbours.mislabelled_record, 5),
    "balanced": partial(neighbours.balanced_labels, 2, 3, 2),
    "jump": partial(neighbours.residual_jump, 0.5, 9, 2),
}


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("make", PAIRS.values(), ids=PAIRS)
def test_tables_are_neighbours_under_every_relation(make, relation):
    if relation == "zero-out" and make("add-remove").first[1].dtype.kind != "i":
        # The number of records is public: without a label that makes a null record there is no neighbour.
        with pytest.raises(ParameterError, match="^relation='zero-out'"):
            make(relation)
        return
    pair = make(relation)
    assert pair.relation == relation
    assert are_neighbours(pair)
    (X, y), other = pair.first, pair.second
    # The test sees a second record that differs, and a value beyond the bounds.
    for row, value in ((0, 0.123), (-1, 3.0)):
        X2 = X.copy()
        X2[row] = value
        assert not are_neighbours(Pair((X2, y), other, relation, ""))


@BY_NAME
def test_cases_use_neighbours(each):
    pair = each.case(1.0).pair
    assert pair.relation in RELATIONS
    assert pair.words[0].isupper() or pair.words[0].isdigit()
    if each.kind in ("selector", "estimator", "score"):
        settings = [given for given in getattr(each.case, "args", ()) if isinstance(given, dict)]
        assert are_neighbours(pair, *(given["y_bounds"] for given in settings if "y_bounds" in given))
    elif each.kind == "scaler":
        (X,), (X2,) = pair.first, pair.second
        longer, shorter = sorted((X, X2), key=len, reverse=True)
        assert pair.relation == "add-remove"
        assert np.array_equal(longer[:-1], shorter)


@pytest.mark.parametrize(
    "make", [partial(neighbours.opposing_scores, 3.0, 2, 3), partial(neighbours.reversed_ranks, 5)]
)
def test_scores_move_by_their_sensitivity_of_one_and_no_more(make):
    pair = make()
    change = pair.second - pair.first
    assert (change.min(), change.max()) == (-1.0, 1.0)
    assert np.ptp(change[pair.first == pair.first.max()]) == 0.0


def test_targets_beyond_the_bounds_of_a_fit_are_noticed():
    pair = neighbours.lone_record((1.0,), 5, "add-remove", target=4.0, other_targets=0.5)
    assert are_neighbours(pair, (0.5, 4.0))
    assert not are_neighbours(pair)
    assert not are_neighbours(pair, (1.0, 4.0))
    assert not are_neighbours(pair, (0.5, 3.0))


def test_a_near_tie_is_as_near_as_it_says():
    for relation, step in (("add-remove", 1.0), ("replace-one", 2.0)):
        pair = neighbours.near_tie(2.5, 6, relation, n_each=2)
        first, second = (X.T @ y for X, y in (pair.first, pair.second))
        assert first - second == pytest.approx(step * np.array([-1, -1, 1, 1]))
        lead = second[0] - second[2]
        assert lead == pytest.approx(2.5 + (2.0 if relation == "replace-one" else 0.0))


def test_reversed_ranks_are_all_discordant():
    n = 12
    pair = neighbours.rank_reversal(n, n_reversed=4)
    pairs = n * (n - 1) / 2
    first, second = (
        np.array([kendalltau(X[:, j], y).statistic * pairs for j in range(2)]) for X, y in (pair.first, pair.second)
    )
    # Each column's count of concordant less discordant pairs moves by 2 (n - 1), the sensitivity of replace-one.
    assert first - second == pytest.approx([2 * (n - 1), -2 * (n - 1)])
    assert first[0] - first[1] == pytest.approx(2 * (n - 1) + 4 * 3)


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize(("decisive", "expected"), [(False, [[3, 1], [2, 2]]), (True, [[3, 2], [2, 3]])])
def test_a_block_changes_its_vote(labelled, decisive, expected):
    pair = neighbours.turncoat_block(2, labelled=labelled, decisive=decisive)
    blocks = blocks_by_slot(*((15, 5) if decisive else (12, 4)))
    votes = [
        count_votes(X, 1.0, y[:, None].astype(float), blocks, 1, logistic=labelled).tolist()
        for X, y in (pair.first, pair.second)
    ]
    assert votes == expected


def test_records_are_opposite_where_they_are_replaced():
    pair = neighbours.lone_record((0.6, 0.8), 5, "replace-one")
    gradients = [-X.T @ y for X, y in (pair.first, pair.second)]
    assert np.linalg.norm(gradients[0] - gradients[1]) == pytest.approx(2.0)


def test_balanced_labels_are_ties_in_every_entry_of_the_gradient():
    pair = neighbours.balanced_labels(2, 3, 4, "add-remove")

    def gradient(X, y):
        residuals = softmax(np.zeros((y.size, 3)), axis=1) - np.eye(3)[y]
        return residuals.T @ X

    assert gradient(*pair.second) == pytest.approx(np.zeros((3, 4)))
    assert gradient(*pair.first) == pytest.approx(np.outer([-2 / 3, 1 / 3, 1 / 3], np.ones(4)))


def test_the_jump_of_the_safe_rule_is_the_sharp_one():
    radius, n = 1.0, 30

    def third_term(X, y):
        w = np.array([radius, 0.0])
        g = X.T @ (X @ w - y) / n
        gap = w @ g + radius * np.abs(g).max()
        return (np.linalg.norm(X[:, 0]) + np.linalg.norm(X @ w)) / np.sqrt(n) * np.sqrt(gap)

    pair = neighbours.residual_jump(radius, n - 1, 2, "add-remove")
    assert third_term(*pair.second) == pytest.approx(0.0, abs=1e-7)
    # (1 + radius) sqrt(2 radius (radius + B) / n), with B = radius: the sharp sensitivity.
    assert third_term(*pair.first) == pytest.approx(2.0 * radius * (1.0 + radius) / np.sqrt(n))


def test_any_point_of_a_wide_gap_is_a_median():
    grid = np.arange(30.0)
    pair = neighbours.wide_gap(4, grid)
    assert (np.sum(pair.first <= 10), np.sum(pair.first <= 19), np.sum(pair.first <= 20)) == (4, 4, 8)
    assert pair.second.tolist() == [*pair.first.tolist(), 29.0]
    uneven = neighbours.wide_gap(4, grid, 2)
    assert (np.sum(uneven.first <= 19), uneven.first.size) == (4, 6)


def test_one_row_is_beyond_all_others():
    pair = neighbours.beyond_all_others(5, 100.0)
    assert np.abs(pair.second).max() == 1.0
    assert pair.first[-1].tolist() == [100.0, 100.0]


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (partial(neighbours.near_tie, 7.0, 6, "add-remove"), "lead"),
        (partial(neighbours.near_tie, 1.0, 6, "neighbourly"), "relation"),
        (partial(neighbours.opposing_scores, -1.0), "lead"),
        (partial(neighbours.rank_reversal, 2), "n_records"),
        (partial(neighbours.rank_reversal, 5, 5), "n_reversed"),
        (partial(neighbours.residual_jump, 2.0, 5, 2, "add-remove"), "radius"),
        (partial(neighbours.turncoat_block, 0), "n_pairs"),
    ],
)
def test_generators_refuse_what_would_be_no_pair(make, parameter):
    with pytest.raises(ParameterError, match=f"^{parameter}="):
        make()


# ------------------------------------------------------------------ entries


def test_names_differ_and_kinds_are_known():
    names = [each.name for each in ENTRIES]
    assert len(set(names)) == len(names)
    assert {each.kind for each in ENTRIES} == set(KINDS)
    assert all(each.summary for each in ENTRIES)


def test_entries_are_found_by_class_and_by_name():
    assert find_entries("all") == ENTRIES
    assert {each.subject for each in find_entries("CorrelationSelector")} == {"CorrelationSelector"}
    assert len(find_entries("CorrelationSelector")) == 14
    assert [each.name for each in find_entries("GumbelTopK/exact")] == ["GumbelTopK/exact"]
    with pytest.raises(ParameterError, match="^name='magic': expected all, an entry, or one of ExponentialMechanism"):
        find_entries("magic")


def same(first, second):
    return np.array_equal(first, second) if isinstance(first, np.ndarray) else first == second


@pytest.mark.parametrize("each", first_of_each(SAMPLED))
def test_runs_are_functions_of_data_and_seed_in_any_process(each):
    case = each.case(1.0)
    sent = pickle.loads(pickle.dumps(case.run))
    first, again, elsewhere = (run(case.pair.first, 3) for run in (case.run, case.run, sent))
    assert same(first, again)
    assert same(first, elsewhere)
    assert not all(same(case.run(case.pair.first, seed), first) for seed in range(4, 44))


def test_exact_laws_can_be_sent_to_other_processes():
    for each in ENTRIES:
        case = each.case(1.0)
        if isinstance(case, ExactCase):
            assert pickle.loads(pickle.dumps(case.law))(case.pair.first) == case.law(case.pair.first)


@pytest.mark.parametrize("each", first_of_each(OF_FITS))
def test_a_run_is_the_public_fit(each, monkeypatch):
    """What a run returns is what the class's own ``fit`` left behind, on the data that the run was given."""
    case = each.case(1.0)
    kind = type(case.run.model)
    original, fitted = kind.fit, []

    def spy(self, *data):
        fitted.append((self, data))
        return original(self, *data)

    monkeypatch.setattr(kind, "fit", spy)
    for data in (case.pair.first, case.pair.second):
        outcome = case.run(data, 3)
        model, given = fitted.pop()
        assert not fitted
        assert given == tuple(data)
        assert model.random_state == 3
        if hasattr(model, "coef_"):
            expected = np.ravel(model.coef_)
        elif hasattr(model, "lower_"):
            expected = np.concatenate((model.lower_, model.upper_))
        else:
            expected = np.flatnonzero(model.support_)
        assert np.array_equal(np.asarray(outcome), expected)


# ------------------------------------------------------------------ claims


def test_claims_of_fits_are_read_off_their_certificates(monkeypatch):
    original = entry.fit

    def lying(model, data, random_state):
        fitted = original(model, data, random_state)
        fitted.certificate_ = replace(fitted.certificate_, epsilon=0.123, delta=0.045)
        return fitted

    monkeypatch.setattr(entry, "fit", lying)
    kinds = ("mechanism", "score")
    cases = [each.case(1.0) for each in ENTRIES if each.kind not in kinds and each.subject != "BoundedScaler"]
    assert {(case.claimed, case.delta) for case in cases} == {(0.123, 0.045)}


def test_claims_of_mechanisms_are_accounted_from_their_events(monkeypatch):
    for module in (entry, mechanism_entries):
        monkeypatch.setattr(module, "epsilon_of", lambda event, delta: ("accounted", event, delta))
    for each in ENTRIES:
        if each.kind == "mechanism":
            case = each.case(0.7)
            (mechanism,) = (case.law if isinstance(case, ExactCase) else case.run).args
            assert case.claimed == ("accounted", mechanism.event, case.delta)


@pytest.mark.parametrize("epsilon", [1.0, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.1, 4.0))])
def test_claims_are_the_budget(epsilon):
    for each in ENTRIES:
        claimed = each.case(epsilon).claimed
        assert claimed == (0.0 if each.subject == "BoundedScaler" else pytest.approx(epsilon, rel=0.01))


# ------------------------------------------------------------------ runs and the command


def flip(bit, random_state):
    return bit if random_state % 4 else 1 - bit


BIT = Pair(1, 0, "replace-one", "The only record is the bit itself")
SOUND = Entry("Response/sound", "mechanism", "ln(3)", lambda epsilon: SampledCase(flip, BIT, 0.0, 1.2, "auto", 400))
BROKEN = Entry(
    "Response/broken", "mechanism", "too much", lambda epsilon: SampledCase(flip, BIT, 0.0, 0.3, "auto", 2000)
)


def test_audits_come_one_by_one_and_share_their_error_probability():
    sound, broken = audit_all([SOUND, BROKEN])
    assert (sound.name, broken.name) == ("Response/sound", "Response/broken")
    assert (sound.verdict, broken.verdict) == ("no violation found", "violated")
    assert sound.confidence == broken.confidence == pytest.approx(0.975)
    assert (sound.trials, broken.trials) == (400, 2000)
    assert audit_entry(SOUND, trials=8).trials == 8
    assert audit_entry(SOUND).confidence == 0.95
    # Not before they are asked for.
    assert next(audit_all([SOUND, None])).name == "Response/sound"


def test_a_budget_far_from_one_is_refused_before_anything_is_made():
    never = Entry("Never", "mechanism", "not made", None)
    for epsilon in (0.0, 1e-9, 100.0, float("inf"), float("nan")):
        with pytest.raises(ParameterError, match="^epsilon="):
            audit_entry(never, epsilon)


def test_the_table_shows_claims_and_never_rounds_up():
    sampled = AuditResult(
        lower_bound=0.99999,
        claimed=1.0,
        delta=0.0,
        confidence=0.95,
        trials=2000,
        event="",
        route="Clopper-Pearson",
        pair="",
        relation="zero-out",
        seed=0,
        name="Nearly",
    )
    exact = replace(sampled, confidence=1.0, trials=0, route="exact", seed=None)
    table = verdict_table([sampled, exact, replace(exact, lower_bound=float("inf"))])
    columns = {column.header: list(column.cells) for column in table.columns}
    assert columns["at least"] == ["0.999", "1.000", "inf"]
    assert columns["verdict"] == ["no violation found", "no violation found", "violated"]
    assert columns["runs"] == ["2,000", "law", "law"]


def invoke(*arguments):
    return RUNNER.invoke(app, ["audit", *arguments], env={"COLUMNS": "120"})


def test_help_and_list():
    text = invoke("--help").output
    assert "Example: taciturn audit HardThresholdRegressor --epsilon 2 --jobs 2" in " ".join(text.split())
    for option in ("--epsilon", "--trials", "--jobs"):
        assert option in text
    listed = invoke("list")
    assert listed.exit_code == 0
    assert all(each.name in listed.output for each in ENTRIES)


def test_a_short_run_prints_a_verdict_and_the_claim_that_was_asked_for():
    result = invoke("PermuteAndFlip", "--epsilon", "0.5", "--trials", "400")
    assert result.exit_code == 0
    lines = {line.split("│")[1].strip(): line.split("│") for line in result.output.splitlines() if "│" in line}
    assert [cell.strip() for cell in lines["PermuteAndFlip/exact"][2:7]] == [
        "0.5",
        "0.500",
        "0",
        "law",
        "no violation found",
    ]
    assert [cell.strip() for cell in lines["PermuteAndFlip/sampled"][4:6]] == ["0", "400"]


def test_the_command_fails_where_a_claim_is_refuted(monkeypatch):
    monkeypatch.setattr(attacks, "find_entries", lambda name: (BROKEN,))
    result = invoke("Response")
    assert result.exit_code == 1
    assert "Audit of Response/broken: violated." in result.output


def test_too_few_trials_are_wrong_usage():
    assert invoke("all", "--trials", "1").exit_code == 2
