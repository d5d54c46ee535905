"""Bars to scale, and what an attacker can come to believe."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from reported import Tree, drawings

from taciturn.app.report.page import Page
from taciturn.charts import (
    Bar,
    Estimate,
    coefficient_chart,
    find_scale,
    forest_chart,
    format_number,
    format_percent,
    odds_chart,
    posterior_range,
    round_safely,
    shorten,
    text_width,
)
from taciturn.privacy.calibration import highest_power

# ------------------------------------------------------------------ bars


def drawn(drawing, kind="wide"):
    """Bars of a chart: name, left end, right end, kind; and the place of zero."""
    page = Page("x")
    page.section("x")
    page.figure(drawing, "Bars", "Bars")
    (svg,) = drawings(Tree(page.render()).root, kind)
    (zero,) = [float(line.attributes["x1"]) for line in svg.find("line") if line.attributes["class"] == "axis"]
    rows = []
    for group in svg.find("g"):
        (bar,) = group.find("rect")
        left = float(bar.attributes["x"])
        rows.append(
            SimpleNamespace(
                title=group.find("title")[0].words(),
                texts=[text.words() for text in group.find("text")],
                left=left,
                right=left + float(bar.attributes["width"]),
                kind=bar.attributes["class"],
            )
        )
    return zero, rows


def is_to_scale(zero, rows, bars):
    """Whether bars begin at zero, go the right way and have one scale."""
    scale = (rows[0].right - rows[0].left) / abs(bars[0].value)
    for row, bar in zip(rows, bars, strict=True):
        inner, outer = (row.left, row.right) if bar.value > 0 else (row.right, row.left)
        if abs(inner - zero) > 0.02 or abs(outer - (zero + scale * bar.value)) > 0.03:
            return False
        if row.kind != ("plus" if bar.value > 0 else "minus"):
            return False
    return True


BARS = [Bar("a", 5.0), Bar("b", -3.0), Bar("c", 0.75), Bar("d", -0.5), Bar("e", 0.25)]


@pytest.mark.parametrize(("kind", "reach"), [("wide", (205.0, 565.0)), ("narrow", (12.0, 308.0))])
def test_bars_are_to_scale(kind, reach):
    zero, rows = drawn(coefficient_chart(BARS[::-1], "x", find_scale(BARS)), kind)
    assert [row.texts[0] for row in rows] == ["a", "b", "c", "d", "e"]
    assert is_to_scale(zero, rows, BARS)
    assert all(reach[0] <= row.left <= row.right <= reach[1] for row in rows)


@pytest.mark.parametrize("fault", ["bar", "side", "colour"])
def test_bars_that_lie_are_caught(fault):
    zero, rows = drawn(coefficient_chart(BARS, "x", find_scale(BARS)))
    row = rows[1]
    if fault == "bar":
        row.left += 1.0
    elif fault == "side":
        row.left, row.right = zero, zero + (row.right - row.left)
    else:
        row.kind = "plus"
    assert not is_to_scale(zero, rows, BARS)


@pytest.mark.parametrize("reach", [(-1.0, 9.0), (-8.0, 0.0), (0.0, 1e-7), (-3e5, 2e6)])
def test_scales_have_a_few_round_numbers_with_zero(reach):
    ends = [Bar("x", end) for end in reach if end]
    body = str(coefficient_chart(ends, "x", reach).body)
    ticks = [float(tick) for tick in re.findall(r'class="small middle">([^<]+)<', body)]
    assert 0.0 in ticks
    assert 3 <= len(ticks) <= 7
    assert all(reach[0] <= tick <= reach[1] for tick in ticks)
    mantissas = {f"{tick:.6e}".split("e")[0].strip("-").rstrip("0").rstrip(".") for tick in np.diff(ticks)}
    assert len(mantissas) == 1
    assert mantissas <= {"1", "2", "5"}


def test_of_many_bars_the_largest_are_drawn():
    bars = [Bar(f"n{i}", (-1) ** i * (i + 1.0)) for i in range(100)]
    _, rows = drawn(coefficient_chart(bars, "x", find_scale(bars)))
    assert [row.texts[0] for row in rows] == [f"n{i}" for i in range(99, 59, -1)]


@pytest.mark.parametrize("name", ["x" * 100_000, "M" * 60, "血压" * 40, "a=" + "b" * 90, "\u0301" * 300])
def test_long_names_are_shortened_and_told_in_full(name):
    short = shorten(name, 195.0)
    assert len(short) < 40
    start, _, end = short.partition("…")
    assert start
    assert end
    assert name.startswith(start)
    assert name.endswith(end)
    _, (row,) = drawn(coefficient_chart([Bar(name, 1.0)], "x", (0.0, 1.0)))
    assert row.texts[0] == short
    assert row.title.startswith(f"{name}: ")
    assert shorten("age", 195.0) == "age"


def labels_beyond(drawing):
    """Labels that may reach beyond their drawing, in a font of an upper width."""
    found = []
    for text in Tree(f"<svg>{drawing.body}</svg>").root.find("text"):
        if "transform" in text.attributes:
            continue
        x, kinds = float(text.attributes["x"]), text.attributes.get("class", "").split()
        width = text_width(text.words(), 12.0 if "small" in kinds else 13.0)
        left = x - (width if "number" in kinds else width / 2 if "middle" in kinds else 0.0)
        below = float(text.attributes["y"]) > drawing.height
        if left < -0.01 or left + width > drawing.width + 0.01 or below:
            found.append(text.words())
    return found


NAMES = ["age", "W" * 80, "血压" * 40, "region=north-west", "a" * 400, "%" * 90]
SCALES = [1.0, -1e-7, 1234567.0, -0.000123, 5e300, 3.0]


@pytest.mark.parametrize("low", [-2.0, 0.0])
def test_names_numbers_and_ticks_lie_inside_every_drawing(low):
    bars = [Bar(name, low * value if value > 0 else value) for name, value in zip(NAMES, SCALES, strict=True)]
    estimates = [Estimate(name, 1.0, 0.123456, 2.0 + k, 0.2) for k, name in enumerate(NAMES)]
    chart = coefficient_chart(bars, "x", find_scale(bars))
    charts = [chart, odds_chart(1.0, "x"), odds_chart(1.0, "x", 150.0)]
    charts += [forest_chart(estimates, "x", ratio=ratio) for ratio in ("", "odds ratio")]
    for drawing in charts:
        assert labels_beyond(drawing) == []
        assert drawing.narrow is None or labels_beyond(drawing.narrow) == []
    # Without the room that layouts leave for numbers and ends of axes there would be some.
    assert labels_beyond(replace(chart, width=chart.width - 30.0))


# ------------------------------------------------------------------ odds

LEVELS = np.linspace(0.0, 1.0, 21)


def best_power(with_person, without, level):
    """The power of the best test of a level (Neyman and Pearson): the most telling outcomes first, the last in part."""
    order = sorted(range(len(without)), key=lambda o: -with_person[o] / without[o] if without[o] else -math.inf)
    power, left = 0.0, level
    for o in order:
        share = 1.0 if without[o] <= left else left / without[o]
        power, left = power + share * with_person[o], left - share * without[o]
    return power


def signal(epsilon, delta):
    """Randomised response that tells all with probability delta: laws with the person and without."""
    true = (1 - delta) / (1 + math.exp(-epsilon))
    law = np.array([1 - delta - true, true, delta, 0.0])
    return law, law[[1, 0, 3, 2]]


def delta_of(one, other, epsilon):
    return max(np.maximum(a - math.exp(epsilon) * b, 0.0).sum() for a, b in ((one, other), (other, one)))


def beyond(one, other, prior, claimed):
    """How far posteriors leave the range, and how probably each outcome is."""
    weights = prior * one + (1 - prior) * other
    posterior = prior * one / weights
    low, high = posterior_range(prior, claimed)
    return np.maximum(np.maximum(posterior - high, low - posterior), 0.0), weights


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("prior", [0.01, 0.3, 0.9])
def test_randomised_response_attains_the_curves(epsilon, prior):
    one, other = (law[:2] for law in signal(epsilon, 0.0))
    posterior = prior * one / (prior * one + (1 - prior) * other)
    assert posterior == pytest.approx(posterior_range(prior, epsilon))
    # Curves for half of epsilon would not hold it.
    assert beyond(one, other, prior, epsilon / 2)[0].min() > 1e-5


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1.0, 30.0, 800.0])
def test_curves_are_accurate_at_every_size(epsilon):
    with mpmath.workdps(50):
        for prior in (1e-9, 0.01, 0.5, 0.99):
            p, e = mpmath.mpf(prior), mpmath.exp(epsilon)
            low, high = posterior_range(prior, epsilon)
            assert high == pytest.approx(float(p * e / (1 + p * (e - 1))), rel=1e-13)
            assert low == pytest.approx(float(p / (p + (1 - p) * e)), rel=1e-13)
        level, delta = mpmath.mpf("0.05"), mpmath.mpf(1e-6)
        exact = min(mpmath.mpf(1), e * level + delta, 1 - (1 - delta - level) / e)
        assert highest_power(0.05, epsilon, 1e-6) == pytest.approx(float(exact), rel=1e-12)
    assert posterior_range(0.0, epsilon) == (0.0, 0.0)
    assert posterior_range(1.0, epsilon) == (1.0, 1.0)


def random_pairs(n_pairs):
    rng = np.random.default_rng(5)
    for _ in range(n_pairs):
        size = rng.integers(2, 7)
        yield tuple(rng.dirichlet(np.full(size, rng.choice([0.3, 1.0, 5.0])), size=2) + 1e-9)


def test_no_pair_of_laws_goes_beyond_the_curves_by_more_than_delta():
    n_outside_too_often = 0
    for one, other in random_pairs(400):
        for epsilon in (0.1, 0.5, 2.0):
            delta = delta_of(one, other, epsilon)
            for prior in (0.05, 0.5, 0.8):
                excess, weights = beyond(one, other, prior, epsilon)
                assert (excess * weights).sum() <= delta + 1e-9
                assert weights[excess > 0.01].sum() <= delta / 0.01 + 1e-9
                n_outside_too_often += weights[excess > 0].sum() > delta + 1e-9
    # Delta does not bound how often a posterior lies outside, only how far on average: the sentence must not say more.
    assert n_outside_too_often > 100


def test_no_test_has_more_power_and_the_signal_has_as_much():
    for one, other in random_pairs(200):
        for epsilon in (0.1, 1.0):
            delta = delta_of(one, other, epsilon)
            for level in LEVELS:
                assert best_power(one, other, level) <= highest_power(level, epsilon, delta) + 1e-7
    for epsilon, delta in ((0.1, 0.0), (1.0, 1e-3), (3.0, 0.2)):
        one, other = signal(epsilon, delta)
        assert delta_of(one, other, epsilon) == pytest.approx(delta, abs=1e-12)
        powers = [best_power(one, other, level) for level in LEVELS]
        assert powers == pytest.approx([highest_power(level, epsilon, delta) for level in LEVELS])
    # Forgetting delta understates it.
    assert best_power(*signal(1.0, 1e-3), 0.05) > highest_power(0.05, 1.0, 0.0) + 5e-4


def test_the_region_is_drawn_where_it_is():
    body = str(odds_chart(2.0, "x").body)
    (outline,) = re.findall(r'd="M([^"]+)Z" class="region"', body)
    points = np.array([[float(c) for c in point.split()] for point in outline.split("L")])
    x, y = (points[:, 0] - points[:, 0].min()) / 300.0, 1.0 - (points[:, 1] - points[:, 1].min()) / 300.0
    half = len(x) // 2
    for prior, posterior, end in zip(x, y, [1] * half + [0] * half, strict=True):
        # Steep at the ends: the drawing is rounded to a hundredth of a pixel.
        near = [posterior_range(min(1.0, max(0.0, prior + s * 1e-4)), 2.0)[end] for s in (-1, 1)]
        assert near[0] - 1e-4 <= posterior <= near[1] + 1e-4


# ------------------------------------------------------------------ numbers


def test_bounds_are_rounded_to_the_safe_side():
    rng = np.random.default_rng(3)
    for value in np.exp(rng.uniform(-12, 12, 300)):
        up, down = (float(round_safely(value, up=side).replace(",", "")) for side in (True, False))
        assert down <= value <= up
        assert up - down <= 1e-3 * value
    # A budget stays what was stated, although the double of 0.1 is above 0.1.
    for text in ("0.1", "1.1", "0.3", "0.00001", "2.5"):
        assert {round_safely(float(text), up=side, digits=6) for side in (True, False)} == {text}
    for share in rng.random(300):
        assert float(format_percent(share, up=False)[:-1]) <= 100 * share <= float(format_percent(share, up=True)[:-1])


def test_numbers_keep_four_digits():
    for value in (1.0, -0.123456, 98765.4321, 3.1e-9, -7.7e12, 0.0):
        assert float(format_number(value).replace(",", "")) == pytest.approx(value, rel=5e-4)
