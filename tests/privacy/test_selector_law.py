"""The selector end to end: its selections follow the law of the true scores at the stated budget."""

import numpy as np
import pytest
from laws import canonical_law, chi_square_p, ordered_law, permute_and_flip_law, softmax_law, subsets

from taciturn import CorrelationSelector

N_FEATURES, K, EPSILON = 4, 2, 1.2
RUNS = 4_000


def table(relation):
    """A small table whose scores are close enough for noise to matter under each relation."""
    rng = np.random.default_rng(3)
    X = rng.choice([-1.0, 1.0], (14, N_FEATURES))
    X[:, 0] = 1.0
    y = np.where(np.arange(14) % 5 == 0, -1.0, 1.0)
    return X, y


def scores_by_hand(X, y):
    return np.abs(X.T @ y)


def law_of_sets(mechanism, scores, epsilon):
    """Probabilities of the selected sets, from sums computed here and the mechanism's definition."""
    if mechanism == "canonical-lipschitz":
        return canonical_law(scores, K, epsilon, 0.5)
    law_of_one = softmax_law if mechanism == "gumbel" else permute_and_flip_law
    out = dict.fromkeys(subsets(N_FEATURES, K), 0.0)
    for winners, probability in ordered_law(law_of_one, scores * epsilon / K / 2, K).items():
        out[tuple(sorted(winners))] += probability
    return np.array(list(out.values()))


@pytest.mark.parametrize("relation", ["zero-out", "add-remove", "replace-one"])
@pytest.mark.parametrize("mechanism", ["canonical-lipschitz", "gumbel", "peeling"])
def test_selections_follow_the_law_of_the_true_scores(mechanism, relation):
    X, y = table(relation)
    sensitivity = 2.0 if relation == "replace-one" else 1.0
    index = {chosen: i for i, chosen in enumerate(subsets(N_FEATURES, K))}
    counts = np.zeros(len(index))
    selector = CorrelationSelector(
        epsilon=EPSILON, delta=0.0, relation=relation, mechanism=mechanism, n_features_to_select=K
    )
    for seed in range(RUNS):
        support = selector.set_params(random_state=seed).fit(X, y).support_
        counts[index[tuple(np.flatnonzero(support).tolist())]] += 1
    scores = scores_by_hand(X, y) / sensitivity
    assert chi_square_p(counts, law_of_sets(mechanism, scores, EPSILON)) > 1e-4
    # Half the sensitivity, or twice: the noise of a selector that got it wrong.
    for factor in (2.0, 0.5):
        assert chi_square_p(counts, law_of_sets(mechanism, scores, factor * EPSILON)) < 1e-6


@pytest.mark.parametrize("relation", ["zero-out", "replace-one"])
@pytest.mark.parametrize("mechanism", ["canonical-lipschitz", "peeling"])
def test_neighbouring_tables_stay_within_epsilon(mechanism, relation):
    X, y = table(relation)
    sensitivity = 2.0 if relation == "replace-one" else 1.0
    whole = law_of_sets(mechanism, scores_by_hand(X, y) / sensitivity, EPSILON)
    worst = {1.0: 0.0, 3.0: 0.0}
    for i in range(len(X)):
        X2, y2 = X.copy(), y.copy()
        if relation == "replace-one":
            X2[i] *= -1.0
        else:
            X2[i] = 0.0
        for factor in worst:
            one = law_of_sets(mechanism, scores_by_hand(X, y) * factor / sensitivity, EPSILON)
            other = law_of_sets(mechanism, scores_by_hand(X2, y2) * factor / sensitivity, EPSILON)
            worst[factor] = max(worst[factor], np.max(np.abs(np.log(one / other))))
    assert whole.sum() == pytest.approx(1.0)
    assert 0.3 * EPSILON < worst[1.0] <= EPSILON
    assert worst[3.0] > EPSILON
