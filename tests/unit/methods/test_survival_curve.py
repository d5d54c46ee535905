"""A private survival curve: without noise that of Kaplan and Meier, and what it does with odd input."""

import math

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from taciturn import Account, DataError, ParameterError, private_survival_curve
from taciturn.data.survival import FollowUp, event_marks, exit_cells, exposures
from taciturn.methods.survival.curve import SurvivalCurve, estimate_log_survival

CUTS = tuple(np.arange(0.5, 6.1, 0.5).tolist())
QUANTILE = 1.959963984540054


def followed(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    death, end = rng.exponential(8.0, n), rng.uniform(2.0, 6.0, n)
    return np.minimum(death, end), death <= end


def exact(time, event, **given):
    return private_survival_curve(time, event, cuts=CUTS, epsilon=math.inf, **given)


def test_it_is_that_of_kaplan_and_meier_where_all_times_are_cuts():
    time, event = followed()
    time = np.ceil(2.0 * time) / 2.0
    curve, expected = exact(time, event), sm.SurvfuncRight(time, event.astype(int))
    assert np.allclose(curve.survival, expected.surv_prob, rtol=1e-12)
    # Greenwood's standard error, on the scale of the logarithm.
    errors = np.log(curve.survival / curve.lower) / QUANTILE * curve.survival
    assert np.allclose(errors, expected.surv_prob_se, rtol=1e-7)


def test_it_is_a_life_table_where_records_are_censored_within_intervals():
    time, event = followed()
    curve = exact(time, event)
    at_risk, survival = time.size, 1.0
    for start, stop, found in zip((0.0, *CUTS), CUTS, curve.survival, strict=False):
        inside = (time > start) & (time <= stop)
        deaths, lost = np.sum(inside & event), np.sum(inside & ~event)
        survival *= 1.0 - deaths / (at_risk - lost / 2.0)
        at_risk -= deaths + lost
        assert math.isclose(found, survival, rel_tol=1e-12)


def test_derivatives_by_counts_are_those_of_the_estimate():
    rng = np.random.default_rng(3)
    counts = rng.integers(5, 40, (6, 3)).astype(float)
    _, deviations, _ = estimate_log_survival(counts, 0.0)
    slopes = np.zeros((6, 18))
    for place in range(18):
        moved = counts.copy()
        moved.ravel()[place] += 1e-4
        slopes[:, place] = (estimate_log_survival(moved, 0.0)[0] - estimate_log_survival(counts, 0.0)[0]) / 1e-4
    assert np.allclose(deviations, np.sqrt(np.square(slopes) @ counts.ravel()), rtol=1e-3)


def test_a_cut_belongs_to_the_interval_that_it_ends():
    signed = np.array([1.0, -1.0, 1.5, -1.5, 2.0, -2.0])
    assert exit_cells(signed, (1.0, 2.0)).tolist() == [0, 2, 3, 4, 3, 5]
    assert exposures(signed, (1.0, 2.0)).tolist() == [[1, 0], [1, 0], [1, 0.5], [1, 0.5], [1, 1], [1, 1]]
    assert event_marks(signed, (1.0, 2.0)).tolist() == [[1, 0], [0, 0], [0, 1], [0, 0], [0, 1], [0, 0]]


def test_what_happens_after_the_last_cut_is_not_seen():
    time, event = followed()
    later, cut = np.where(time > 4.0, 100.0, time), time <= 4.0
    first = private_survival_curve(time, event, cuts=(2.0, 4.0), epsilon=math.inf)
    assert np.array_equal(
        first.counts, private_survival_curve(later, event & cut, cuts=(2.0, 4.0), epsilon=math.inf).counts
    )


def test_records_without_a_positive_time_are_null():
    time, event = followed(100)
    more = np.append(time, [0.0, -3.0]), np.append(event, [True, False])
    assert np.array_equal(exact(*more).counts, exact(time, event).counts)
    assert exact(*more).certificate_.public["records"] == 102


@pytest.mark.parametrize(
    ("odd_time", "odd_event"), [(math.nan, 1), (math.inf, 1), (1.0, 2), (1.0, math.nan), ("soon", 1), (1.0, "yes")]
)
def test_a_missing_cell_is_refused_or_makes_its_record_null(odd_time, odd_event):
    time, event = (values.astype(object) for values in followed(50))
    time, event = np.append(time, odd_time), np.append(event, odd_event)
    with pytest.raises(DataError, match="^y: ") as refusal:
        exact(time, event)
    assert "soon" not in str(refusal.value)
    assert "yes" not in str(refusal.value)
    assert np.array_equal(exact(time, event, invalid="null").counts, exact(time[:50], event[:50]).counts)


def test_events_are_read_from_columns_of_all_kinds():
    time, event = followed(200)
    frame = pd.DataFrame({"time": time, "event": pd.array(event, dtype="boolean")})
    expected = exact(time, event).counts
    for own in (event.astype(int), event.astype(float), event.tolist(), frame["event"]):
        assert np.array_equal(exact(frame["time"], own).counts, expected)
    structured = np.array(list(zip(event, time, strict=True)), dtype=[("cens", "?"), ("days", "f8")])
    for y in (frame, structured, (event, time)):
        assert np.array_equal(FollowUp.of(y).signed(), np.where(event, time, -time))


@pytest.mark.parametrize("cuts", [(), (0.0, 1.0), (2.0, 1.0), (1.0, 1.0), (1.0, math.inf), (math.nan,), "12", 3, None])
def test_cuts_are_positive_and_increase(cuts):
    time, event = followed(20)
    with pytest.raises(ParameterError, match="^cuts="):
        private_survival_curve(time, event, cuts=cuts)


def test_lengths_and_parameters_are_refused_before_anything_is_read(tmp_path):
    time, event = followed(20)
    account = Account.create(f"sqlite:///{tmp_path / 'study.db'}", "trial", epsilon=3.0, delta=1e-5, n=20)
    for given in ({"event": event[:-1]}, {"confidence_level": 1.0}, {"epsilon": -1.0}, {"cuts": (2.0, 1.0)}):
        arguments = {"time": time, "event": event, "cuts": CUTS, "account": account} | given
        with pytest.raises((DataError, ParameterError)):
            private_survival_curve(**arguments)
    assert account.history() == []
    curve = private_survival_curve(time, event, cuts=CUTS, delta=1e-6, account=account)
    assert curve.certificate_.account_head == account.history()[-1].head


def test_the_curve_ends_where_noise_hides_who_is_at_risk():
    counts = np.array([[100.0, 50.0, 0.0], [100.0, 700.0, 20.0], [3.0, 1.0, 4.0], [-2.0, 1.0, 1.0]])
    curve = SurvivalCurve(np.arange(1.0, 5.0), counts, 4.0, 0.95, None)
    assert np.isfinite(curve.survival).tolist() == [True, True, False, False]
    assert curve.lower[2:].tolist() == [0.0, 0.0]
    assert (curve.upper[2:] == curve.upper[1]).all()
    assert "NaN" not in curve.to_svg().replace("nan", "NaN")


def test_it_never_rises_and_stays_within_its_range():
    counts = np.array([[1.0, 0.0, 0.0], [-6.0, 0.0, 0.0], [9.0, 0.0, 0.0], [-3.0, 0.0, 900.0]])
    curve = SurvivalCurve(np.arange(1.0, 5.0), counts, 4.0, 0.95, None)
    for values in (curve.survival, curve.lower, curve.upper):
        assert (np.diff(values) <= 0.0).all()
        assert ((values >= 0.0) & (values <= 1.0)).all()
    assert ((curve.lower <= curve.survival) & (curve.survival <= curve.upper)).all()


def test_it_can_be_shown():
    time, event = followed()
    curve = private_survival_curve(time, event, cuts=CUTS, random_state=0)
    frame = curve.to_frame()
    assert frame.columns.tolist() == ["time", "survival", "lower", "upper"]
    assert np.array_equal(frame["upper"], curve.upper)
    assert f"{curve.survival[3]:.4f}" in str(curve)
    assert "epsilon 1, delta 0, zero-out" in str(curve)
    assert curve.to_svg().startswith("<svg")
    assert "taciturn-card" in curve._repr_html_()
    assert "not private" in str(exact(time, event))
