"""What benchmarks compute from what they measure: exponents, targets, the file of results, the use of a process."""

import numpy as np
import pytest

from taciturn_research.benchmarks.measuring import (
    FASTER,
    HEADINGS,
    SLOWER,
    cells_of,
    excused,
    growth_exponent,
    medians_in_turn,
    met,
    run_python,
    section_of,
    with_sections,
)

SIZES = (1_000, 3_000, 9_000, 100_000)


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_exponents_of_power_laws_are_found(exponent):
    assert growth_exponent(SIZES, [7.3 * size**exponent for size in SIZES]) == pytest.approx(exponent, abs=1e-12)


def test_exponents_are_least_squares_over_all_sizes():
    costs = np.array([1.0, 9.0, 2.0, 30.0])
    slope = np.polyfit(np.log(SIZES), np.log(costs), 1)[0]
    assert growth_exponent(SIZES, costs) == pytest.approx(slope, rel=1e-12)
    # The ends alone say something else, and so do sizes that are not on a logarithmic scale.
    assert abs(np.log(costs[-1] / costs[0]) / np.log(SIZES[-1] / SIZES[0]) - slope) > 0.02
    assert abs(np.polyfit(SIZES, np.log(costs), 1)[0] - slope) > 0.1


def test_a_constant_beside_the_growth_flattens_it():
    # Why sizes have to be large: 0.1 s of set-up hide what a linear cost does.
    linear = [1e-6 * size for size in SIZES]
    assert growth_exponent(SIZES, linear) == pytest.approx(1.0)
    assert growth_exponent(SIZES, [0.1 + cost for cost in linear]) < 0.2


@pytest.mark.parametrize(
    ("sizes", "costs"),
    [
        ((1, 2, 3), (1.0, 2.0, 3.0)),
        ((1, 2, 2, 3), (1.0, 2.0, 2.0, 3.0)),
        (SIZES, (1.0, 2.0, 0.0, 3.0)),
        (SIZES, (1.0,)),
    ],
)
def test_too_few_sizes_and_costs_of_nothing_are_refused(sizes, costs):
    with pytest.raises(ValueError, match="size"):
        growth_exponent(sizes, costs)


def test_calls_take_turns_and_the_first_round_does_not_count():
    ticks, asked = iter(range(1000)), []
    times = {"slow": 5, "fast": 1}

    def call(name):
        asked.append(name)
        # The first round compiles.
        for _ in range(times[name] - 1 + (100 if len(asked) <= 2 else 0)):
            next(ticks)

    calls = {name: lambda name=name: call(name) for name in times}
    found = medians_in_turn(calls, 3, clock=lambda: float(next(ticks)))
    assert asked == ["slow", "fast"] * 4
    assert found == {"slow": 5.0, "fast": 1.0}


def test_targets_are_met_from_their_side():
    fast, slow = {"case": "a", "ratio": 3.0, "target": 2.0}, {"case": "a", "ratio": 1.0, "target": 2.0}
    assert [met(fast, FASTER), met(slow, FASTER)] == [True, False]
    assert [met(fast, SLOWER), met(slow, SLOWER)] == [False, True]
    # A number of its own kind, such as seconds, is a cost wherever it stands.
    assert met(slow | {"what": "seconds"}, FASTER) is True
    assert met(fast | {"target": None}, FASTER) is None
    assert not excused(slow, FASTER)
    assert excused(slow | {"why": "it is hard"}, FASTER)


def test_rows_say_why_only_where_they_have_to():
    row = {"case": "a", "ratio": 1.2345, "target": 2.0, "why": "it is hard", "setup": 0.126}
    assert cells_of(row, FASTER) == ("a", "1.23", ">= 2", "NO", FASTER, "0.13", "it is hard")
    assert cells_of(row, SLOWER) == ("a", "1.23", "<= 2", "yes", SLOWER, "0.13", "")
    assert cells_of({"case": "a", "ratio": 1.0, "target": None, "what": "GB"}, SLOWER) == (
        "a",
        "1",
        "",
        "",
        "GB",
        "",
        "",
    )
    assert len(cells_of(row, FASTER)) == len(HEADINGS)


def test_sections_are_renewed_one_by_one_and_stay_in_order():
    rows = [{"case": "x", "ratio": 1.0, "target": 2.0}]
    order = ["one", "two", "three"]
    first = with_sections("", {"three": section_of(rows, SLOWER), "one": "first"}, order)
    assert first.index("## one") < first.index("## three")
    again = with_sections(first, {"two": "between", "one": "new"}, order)
    assert [line[3:] for line in again.splitlines() if line.startswith("## ")] == order
    assert "first" not in again
    assert again.count("| x | 1 | <= 2 | yes |") == 1
    # Running nothing changes nothing, and a suite that is gone takes its section with it.
    assert with_sections(again, {}, order) == again
    assert "between" not in with_sections(again, {}, ["one", "three"])


def test_a_process_reports_what_it_reads_of_itself():
    """With clocks and counters of its own, which are read when it ends."""
    read = "peak = lambda: 123\ntime.process_time = lambda: 4.5\nsay(argument=sys.argv[1], flag=os.environ['FLAG'])"
    usage = run_python(read, "text", FLAG="on")
    assert (usage.cpu, usage.peak, usage.said) == (4.5, 123, {"argument": "text", "flag": "on"})


@pytest.mark.slow
def test_a_process_reports_its_own_memory_and_time():
    ours = np.ones(40_000_000)
    idle = run_python("say(a=1)")
    busy = run_python(
        "b = bytearray(200_000_000)\nbefore = held()\ndel b\n"
        "while time.process_time() < 0.3:\n    pass\nsay(before=before, argument=sys.argv[1])",
        "text",
        PYTHONHASHSEED="0",
    )
    assert idle.said == {"a": 1}
    # What the parent holds, 320 MB, is not counted.
    assert idle.peak < 100e6 < ours.nbytes
    # Counters of the kernel lag behind each other.
    assert busy.peak >= 0.95 * busy.said["before"] >= 190e6
    assert busy.said["argument"] == "text"
    assert busy.cpu >= 0.3
    assert busy.wall >= 0.3
