"""One suite for every mechanism of the package."""

import dataclasses
import math

import numpy as np
import pytest

import taciturn.mechanisms as room
from taciturn.accounting import epsilon_of
from taciturn.core.errors import DataError
from taciturn.core.rng import Stream
from taciturn.data.sensitivity import Sensitivity
from taciturn.events import Event

UNIT = Sensitivity(1.0, "linf", "zero-out")
SCORES = np.array([3, 9, 1, 4, 4])
CASES = {
    "ExponentialMechanism": (room.ExponentialMechanism(UNIT, 0.5), SCORES),
    "PermuteAndFlip": (room.PermuteAndFlip(UNIT, 0.5), SCORES),
    "LaplaceNoisyMax": (room.LaplaceNoisyMax(UNIT, 0.5), SCORES),
    "GumbelTopK": (room.GumbelTopK(UNIT, 2, 0.5), SCORES),
    "LaplaceTopK": (room.LaplaceTopK(UNIT, 2, 0.5), SCORES),
    "PeelingTopK": (room.PeelingTopK(room.PermuteAndFlip(UNIT, 0.5), 2), SCORES),
    "CanonicalLipschitz": (room.CanonicalLipschitz(UNIT, 2, 0.5), SCORES),
    "PrivateQuantile": (room.PrivateQuantile((0.0, 2.0, 5.0, 10.0), 0.5, "zero-out", 0.5), SCORES),
    "TwoSidedGeometric": (room.TwoSidedGeometric(1, 0.5), SCORES),
    "RoundedGaussian": (room.RoundedGaussian(1.0, 5, 2**20), SCORES),
    "FloatGaussian": (room.FloatGaussian(1.0, 4.0), SCORES.astype(float)),
}


def test_every_mechanism_of_the_package_is_here():
    public = {
        name
        for name in room.__all__
        if dataclasses.is_dataclass(getattr(room, name)) and hasattr(getattr(room, name), "release")
    }
    assert public == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_a_mechanism_is_a_frozen_value_with_a_cost(name):
    mechanism, _ = CASES[name]
    assert isinstance(mechanism, room.Mechanism)
    assert isinstance(mechanism.event, Event)
    assert math.isfinite(epsilon_of(mechanism.event, 1e-6))
    assert mechanism.arithmetic == ("float64" if name == "FloatGaussian" else "exact")
    assert hash(mechanism) == hash(dataclasses.replace(mechanism))
    with pytest.raises((dataclasses.FrozenInstanceError, TypeError, AttributeError)):
        setattr(mechanism, dataclasses.fields(mechanism)[0].name, None)


@pytest.mark.parametrize("name", CASES)
def test_releases_are_random_reproducible_and_leave_their_input_alone(name):
    mechanism, value = CASES[name]
    before = value.copy()
    draws = [np.asarray(mechanism.release(value, Stream.of(seed))) for seed in range(40)]
    again = [np.asarray(mechanism.release(value, Stream.of(seed))) for seed in range(40)]
    assert all(np.array_equal(a, b) for a, b in zip(draws, again, strict=True))
    assert len({draw.tobytes() for draw in draws}) > 1
    assert np.array_equal(value, before)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("bad", [np.array([1.0, np.nan]), np.array([np.inf, 0.0]), np.array(["a", "b"])])
def test_what_is_not_a_number_never_meets_the_noise(name, bad):
    mechanism, _ = CASES[name]
    with pytest.raises(DataError):
        mechanism.release(bad, Stream.of(0))
