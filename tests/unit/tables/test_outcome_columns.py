"""Times and events, weights and exposures in a bounds file: what is stated, and how each cell of them is read."""

import json
import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from taciturn import DataError, HardThresholdClassifier, SparseClassifier, SparseRegressor, SparseSurvival, open_table
from taciturn.core.errors import TaciturnError
from taciturn.data.records import Outcomes
from taciturn.tables import TableBounds, read_table
from taciturn.tables.partitions import open_partitions

X = '[columns.x]\ntype = "number"\nlower = -1\nupper = 1\n'
TIMES = '[target]\nkind = "survival"\ntime = "months"\nevent = "died"\ncuts = [6, 12, 24]\n' + X
COUNTS = '[target]\nname = "visits"\nkind = "count"\nlower = 0\nupper = 20\n'
MEASURES = '[weight]\ncolumn = "w"\nupper = 4\n[exposure]\ncolumn = "years"\nupper = 3\n'
MEASURED = COUNTS + MEASURES + X

BAD = {
    "no time": (TIMES.replace('time = "months"\n', ""), "target.time"),
    "a name beside it": (TIMES.replace("time =", "name ="), "target"),
    "no event": (TIMES.replace('event = "died"\n', ""), "target.event"),
    "an event that is the time": (TIMES.replace('"died"', '"months"'), "target.event"),
    "an event that is a number": (TIMES.replace('"died"', "1"), "target.event"),
    "no cuts": (TIMES.replace("cuts = [6, 12, 24]\n", ""), "target.cuts"),
    "cuts out of order": (TIMES.replace("[6, 12, 24]", "[12, 6]"), "target.cuts"),
    "a cut twice": (TIMES.replace("[6, 12, 24]", "[6, 6]"), "target.cuts"),
    "a cut at zero": (TIMES.replace("[6, 12, 24]", "[0, 6]"), "target.cuts"),
    "a cut that is infinite": (TIMES.replace("[6, 12, 24]", "[6, inf]"), "target.cuts"),
    "cuts that are text": (TIMES.replace("[6, 12, 24]", '["6", "12"]'), "target.cuts"),
    "no list of cuts": (TIMES.replace("[6, 12, 24]", "6"), "target.cuts"),
    "a range of times": (TIMES.replace("cuts", "upper = 30\ncuts"), "target.upper"),
    "classes of times": (TIMES.replace("cuts", 'classes = ["a", "b"]\ncuts'), "target.classes"),
    "cuts of a count": (COUNTS + "cuts = [1, 2]\n" + X, "target.cuts"),
    "an event of classes": ('[target]\nname = "y"\nclasses = [0, 1]\nevent = "died"\n' + X, "target.event"),
    "a kind that is none": (TIMES.replace("survival", "surviving"), "target.kind"),
    "an event that is a feature": (TIMES + '[columns.died]\ntype = "boolean"\n', "target.event"),
    "a value for missing times": (TIMES + "[missing]\nmonths = 3\n", "missing"),
    "a time of entry": (TIMES.replace("cuts =", 'entry = "start"\ncuts ='), "target"),
    "the event as its weight": (TIMES + '[weight]\ncolumn = "died"\nupper = 2\n', "weight.column"),
    "an exposure of times": (TIMES + '[exposure]\ncolumn = "w"\nupper = 2\n', "exposure.column"),
    "an exposure of numbers": (MEASURED.replace('kind = "count"\n', ""), "exposure.column"),
    "a weight without a column": (MEASURED.replace('column = "w"\n', ""), "weight.column"),
    "a weight without a bound": (MEASURED.replace("upper = 4\n", ""), "weight.upper"),
    "a negative bound of weights": (MEASURED.replace("upper = 4", "upper = -4"), "weight.upper"),
    "an infinite bound of weights": (MEASURED.replace("upper = 4", "upper = inf"), "weight.upper"),
    "an exposure bound of zero": (MEASURED.replace("upper = 3", "upper = 0"), "exposure.upper"),
    "the target as its weight": (MEASURED.replace('"w"', '"visits"'), "weight.column"),
    "one column for both": (MEASURED.replace('"years"', '"w"'), "exposure.column"),
    "a weight that is a feature": (MEASURED + '[columns.w]\ntype = "number"\nlower = 0\nupper = 1\n', "weight.column"),
    "a person that is the weight": (MEASURED + '[person]\ncolumn = "w"\n', "weight.column"),
    "an unknown key": (MEASURED.replace("upper = 4", "upper = 4\nlower = 0"), "weight"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_meant_is_refused_by_its_place(name):
    text, place = BAD[name]
    with pytest.raises(TaciturnError) as refusal:
        TableBounds.from_toml(text)
    assert str(refusal.value).startswith(place), str(refusal.value)


def test_statements_survive_a_file_and_a_pickle():
    for text in (TIMES, MEASURED):
        bounds = TableBounds.from_toml(text)
        assert TableBounds.from_json(bounds.to_json()) == bounds
        assert pickle.loads(pickle.dumps(bounds)) == bounds
    assert TableBounds.from_toml(TIMES).target.task == "survive"
    assert json.loads(TableBounds.from_toml(TIMES).to_json())["target"]["time"] == "months"
    assert TableBounds.from_toml(MEASURED).beside == ("w", "years")


# ------------------------------------------------------------------ cells

ROWS = {
    "x": [0.5, -0.5, 0.0, 1.0],
    "months": ["3", "30", "12", "0.5"],
    "died": ["yes", "no", "1", "0"],
    "visits": ["0", "3", "1", "2"],
    "w": ["1", "9", "0", "2.5"],
    "years": ["1", "2", "3", "0"],
}
SIGNED = [3.0, -30.0, 12.0, -0.5]


def write(folder, bounds, form, changes=None):
    """A table with the columns that the bounds name; ``changes`` are (column, row, cell)."""
    names = ["x", "months", "died"] if bounds is TIMES else ["x", "visits", "w", "years"]
    columns = {name: [str(cell) for cell in ROWS[name]] for name in names}
    for name, row, cell in changes or ():
        columns[name][row] = cell
    (folder / "b.toml").write_text(bounds, encoding="utf-8")
    if form == "csv":
        lines = [",".join(names), *(",".join(row) for row in zip(*columns.values(), strict=True))]
        (folder / "t.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return folder / "t.csv"

    def typed(name, cells):
        if name == "died":
            return pa.array(cells)
        return pa.array([None if cell in ("", "NA") else float(cell) for cell in cells])

    parquet.write_table(pa.table({name: typed(name, cells) for name, cells in columns.items()}), folder / "t.parquet")
    return folder / "t.parquet"


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_times_and_events_become_signed_times(form, tmp_path):
    path = write(tmp_path, TIMES, form)
    X, y = read_table(path, TableBounds.from_toml(TIMES), "months")
    assert y.tolist() == SIGNED
    assert X.ravel().tolist() == ROWS["x"]
    with open_partitions(path, TableBounds.from_toml(TIMES)) as opened:
        assert opened.read(0)[1].tolist() == SIGNED


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_weights_and_exposures_are_read_beside_the_target(form, tmp_path):
    path = write(tmp_path, MEASURED, form)
    with open_partitions(path, TableBounds.from_toml(MEASURED), in_memory=True) as opened:
        _, found, _ = opened.read_all()
    assert isinstance(found, Outcomes)
    assert found.y.tolist() == [0, 3, 1, 2]
    assert found.weight.tolist() == [1.0, 9.0, 0.0, 2.5]
    assert found.exposure.tolist() == [1.0, 2.0, 3.0, 0.0]
    # Tables for other uses have targets alone.
    assert read_table(path, TableBounds.from_toml(MEASURED), "visits")[1].tolist() == [0, 3, 1, 2]


BAD_CELLS = {
    "a missing time": (TIMES, "months", ""),
    "a time of zero": (TIMES, "months", "0"),
    "a negative time": (TIMES, "months", "-2"),
    "an infinite time": (TIMES, "months", "inf"),
    "a missing weight": (MEASURED, "w", ""),
    "a negative weight": (MEASURED, "w", "-1"),
    "an infinite weight": (MEASURED, "w", "inf"),
    "a negative exposure": (MEASURED, "years", "-1"),
    "a missing exposure": (MEASURED, "years", ""),
    "a missing event": (TIMES, "died", ""),
    "an event that is a word": (TIMES, "died", "7919"),
    "a time that is a word": (TIMES, "months", "long"),
    "a weight that is a word": (MEASURED, "w", "heavy"),
}


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("name", BAD_CELLS)
def test_one_bad_cell_refuses_the_table_or_its_own_record_alone(name, form, tmp_path):
    text, column, cell = BAD_CELLS[name]
    if form == "parquet" and column != "died" and cell.isalpha() and cell != "inf":
        pytest.skip("a typed column has no words")
    path, bounds = write(tmp_path, text, form, [(column, 1, cell)]), TableBounds.from_toml(text)
    with pytest.raises(DataError) as refusal:
        open_partitions(path, bounds).check()
    assert f'"{column}"' in str(refusal.value)
    assert "7919" not in str(refusal.value)
    with open_partitions(path, bounds, invalid="null") as table:
        outcomes = Outcomes.of(table.read(0)[1])
    values = {"w": outcomes.weight, "years": outcomes.exposure}.get(column, outcomes.y)
    assert np.isnan(values).tolist() == [False, True, False, False]
    whole = Outcomes.of(open_partitions(write(tmp_path, text, form), bounds, invalid="null").read(0)[1])
    others = {"w": whole.weight, "years": whole.exposure}.get(column, whole.y)
    assert np.delete(values, 1).tolist() == np.delete(others, 1).tolist()


# ------------------------------------------------------------------ fits

N = 600


def hospital(folder, n=N):
    rng = np.random.default_rng(3)
    x, ward = rng.uniform(-1, 1, n), rng.integers(0, 2, n)
    death, leaves = rng.exponential(20.0 * np.exp(-x)), rng.uniform(3.0, 30.0, n)
    columns = {
        "x": x, "ward": ward == 1, "months": np.minimum(death, leaves), "died": death <= leaves,
        "w": np.where(x > 0, 5.0, 1.0), "years": rng.uniform(0, 3, n),
    }  # fmt: skip
    columns["visits"] = rng.poisson(columns["years"] * np.exp(0.5 * x))
    parquet.write_table(pa.table(columns), folder / "h.parquet", row_group_size=90)
    return columns


def left_out(*names):
    return '[columns.ward]\ntype = "boolean"\n' + "".join(f'[columns.{name}]\ntype = "ignore"\n' for name in names)


FITS = {
    "times": (TIMES + left_out("w", "years", "visits"), SparseSurvival, {}, "months"),
    "weighted times": (
        TIMES + '[weight]\ncolumn = "w"\nupper = 4\n' + left_out("years", "visits"), SparseSurvival, {}, "months"
    ),
    "counts": (MEASURED + left_out("months", "died"), SparseRegressor, {"loss": "poisson"}, "visits"),
    "labels": (
        '[target]\nname = "died"\nclasses = [false, true]\n[weight]\ncolumn = "w"\nupper = 4\n'
        + X + left_out("months", "years", "visits"),
        SparseClassifier, {}, "died",
    ),
}  # fmt: skip


def state(model):
    extras = getattr(model, "baseline_hazard_", np.zeros(0))
    return [np.asarray(value).tobytes() for value in (model.coef_, model.intercept_, extras)], model.certificate_.events


@pytest.mark.filterwarnings("ignore::taciturn.WeakBudgetWarning")
@pytest.mark.parametrize("inference", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FITS)
def test_streams_and_arrays_give_the_same_bits(name, inference, tmp_path):
    text, kind, settings, target = FITS[name]
    columns = hospital(tmp_path)
    (tmp_path / "b.toml").write_text(text, encoding="utf-8")
    settings = settings | {"epsilon": 20.0, "random_state": 5, "inference": inference, "columns": [0, 1]}
    found = []
    for memory in (1 << 26, 1 << 30):
        with open_table(tmp_path / "h.parquet", tmp_path / "b.toml", memory=memory) as table:
            model = kind(**settings).fit(table)
            found.append(state(model))
    stated = model.certificate_.public
    features, y = read_table(tmp_path / "h.parquet", TableBounds.from_toml(text), target)
    given = {}
    if target == "months":
        y, bounds = (columns["died"], columns["months"]), {"cuts": (6, 12, 24)}
    else:
        bounds = {"classes": (False, True)} if name == "labels" else {"y_bounds": (0, 20), "exposure_bound": 3.0}
    if name != "times":
        given["sample_weight"] = columns["w"]
        bounds["weight_bound"] = 4.0
        assert stated["weight_bound"] == 4.0
        assert any("raked" in text for text in model.certificate_.assumptions)
        given |= {"exposure": columns["years"]} if name == "counts" else {}
    whole = kind(x_bound=1.0, **bounds, **settings).fit(features, y, **given)
    found.append(state(whole))
    assert found[0] == found[1] == found[2]
    if given:
        assert (
            state(kind(x_bound=1.0, **bounds, **settings).fit(features, y, **given | {"sample_weight": np.ones(N)}))
            != (found[0])
        )


def test_a_table_is_for_the_classes_of_its_target(tmp_path):
    hospital(tmp_path)
    for name, wrong in (("times", SparseRegressor), ("labels", SparseSurvival)):
        (tmp_path / "b.toml").write_text(FITS[name][0], encoding="utf-8")
        with open_table(tmp_path / "h.parquet", tmp_path / "b.toml") as table, pytest.raises(DataError, match="^X: "):
            wrong().fit(table)
    with open_table(tmp_path / "h.parquet", tmp_path / "b.toml") as table:
        with pytest.raises(TaciturnError, match="^weight_bound"):
            SparseClassifier(weight_bound=3.0).fit(table)
        with pytest.raises(DataError, match="without weights"):
            HardThresholdClassifier().fit(table)


@pytest.mark.slow
def test_dask_takes_signed_times(tmp_path):
    da = pytest.importorskip("dask.array")
    columns = hospital(tmp_path)
    signed = np.where(columns["died"], columns["months"], -columns["months"])
    features = np.column_stack((columns["x"], columns["ward"].astype(float)))
    model = SparseSurvival(x_bound=1.0, cuts=(6, 12, 24), epsilon=20.0, random_state=5)
    whole = state(model.fit(features, signed))
    lazy = da.from_array(features, chunks=(150, 2)), da.from_array(signed, chunks=150)
    assert state(model.fit(*lazy)) == whole
    with pytest.raises(DataError, match="negative where a record is censored"):
        model.fit(lazy[0], (da.from_array(columns["died"], chunks=150), lazy[1]))
    assert math.isfinite(model.baseline_hazard_.sum())
