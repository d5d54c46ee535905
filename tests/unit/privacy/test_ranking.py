import numpy as np
import pytest

from taciturn.privacy.mechanisms import Ranking


@pytest.mark.parametrize("bands_per_unit", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (9, 3), (400, 5), (5000, 40)])
@pytest.mark.parametrize("kind", ["random", "ties", "sorted", "equal", "outlier"])
def test_a_lazy_ranking_agrees_with_a_full_sort(d, k, bands_per_unit, kind):
    rng = np.random.default_rng(d + k)
    values = {
        "random": -rng.exponential(5.0, d),
        "ties": -rng.integers(0, 4, d).astype(float),
        "sorted": -np.arange(d) / 10.0,
        "equal": np.zeros(d),
        "outlier": np.where(np.arange(d) == 0, 0.0, -1e300 + rng.random(d)),
    }[kind]
    order = np.argsort(-values, kind="stable")
    ranking = Ranking(values, k, bands_per_unit, 50)
    assert ranking.head.tolist() == order[:k].tolist()
    assert ranking.anchor == values[order[k]]
    assert ranking.first_ranks[0] == k + 1
    assert ranking.last_ranks[-1] == d
    assert (ranking.first_ranks[1:] == ranking.last_ranks[:-1] + 1).all()
    for rank in {k + 1, d, *rng.integers(k + 1, d + 1, 5).tolist()}:
        assert ranking.value(rank) == values[order[rank - 1]]
        end = ranking.index(rank)
        assert end == order[rank - 1]
        for low in {1, 2, k + 1}:
            if low <= rank:
                assert sorted(ranking.between(low, end)) == sorted(order[low - 1 : rank - 1])
    if bands_per_unit:
        for band, first, last in zip(ranking.bands, ranking.first_ranks, ranking.last_ranks, strict=True):
            depth = (ranking.anchor - values[order[first - 1 : last]]) * bands_per_unit
            assert depth.min() >= band - 1e-9
            assert band == 50 or depth.max() <= band + 1 + 1e-9
