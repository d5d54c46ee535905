"""Categories as they are shown: against their first level, with the same predictions."""

import numpy as np
import pandas as pd
import pytest

from taciturn import SparseClassifier
from taciturn.app.cli.show import print_model
from taciturn.app.model_file import Model, shown_weights
from taciturn.app.report.model import model_report
from taciturn.tables import TableBounds, TableEncoder

STATED = """
[target]
name = "ill"
classes = ["no", "maybe", "yes"]
[columns.age]
type = "number"
lower = 18
upper = 100
[columns.sex]
type = "category"
categories = ["f", "m"]
[columns.ward]
type = "category"
categories = ["a", "b", "c"]
[missing]
ward = {indicator = true}
"""


def fitted(n_classes, n_nonzero="all", **own):
    rng = np.random.default_rng(0)
    n, classes = 3000, ["no", "yes", "maybe"][:n_classes]
    stated = STATED if n_classes == 3 else STATED.replace('"maybe", ', "")
    table = pd.DataFrame({"age": rng.uniform(18, 100, n), "sex": rng.choice(["f", "m"], n)})
    table["ward"] = rng.choice(["a", "b", "c", None], n)
    margins = (table.age - 60) / 30 + (table.sex == "m") + (table.ward == "c") + rng.logistic(size=n)
    y = np.where(margins > 0.3, "yes", "no").astype(object)
    if n_classes == 3:
        y[rng.random(n) < 0.3] = "maybe"
    encoder = TableEncoder(bounds=TableBounds.from_toml(stated)).fit(table)
    X = encoder.transform(table)
    model = SparseClassifier(x_bound=1.0, classes=tuple(classes), n_nonzero=n_nonzero, random_state=0, **own).fit(X, y)
    return Model(encoder.bounds_, model, "taciturn fit"), X


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_whole_category_is_shown_against_its_first_level_and_predicts_the_same(n_classes):
    model, X = fitted(n_classes)
    estimator, before = model.estimator, model.estimator.coef_.copy()
    values, intercepts, references = shown_weights(estimator, model.bounds)
    assert references == ["sex=f", "ward=a"]
    names = list(model.feature_names)
    assert not values[:, [names.index(name) for name in references]].any()
    # Both sexes would otherwise have a weight of their own, which says nothing without the other one.
    assert estimator.coef_[:, [names.index("sex=f"), names.index("sex=m")]].all()
    assert np.abs(X @ values.T + intercepts - (X @ estimator.coef_.T + estimator.intercept_)).max() < 1e-12
    assert np.array_equal(before, estimator.coef_)


def test_without_the_intercept_or_a_level_weights_are_shown_as_they_are():
    for own in ({"fit_intercept": False}, {"n_nonzero": 2}):
        model, _ = fitted(2, **own)
        values, intercepts, references = shown_weights(model.estimator, model.bounds)
        assert references == []
        assert np.array_equal(values, model.estimator.coef_)
        assert np.array_equal(intercepts, model.estimator.intercept_)


def test_screen_and_report_show_it_so(capsys):
    model, _ = fitted(2)
    print_model(model, full=True)
    shown = capsys.readouterr().out
    assert "Categories are compared with a reference level: sex=f, ward=a." in shown
    assert "7 of 7 features" in shown
    assert "sex=m" in shown
    assert "\u2502 sex=f" not in shown
    report = model_report(model)
    assert "compared with a reference level (sex=f, ward=a)" in report
    print_model(fitted(2, n_nonzero=2)[0], full=True)
    assert "compared" not in capsys.readouterr().out
