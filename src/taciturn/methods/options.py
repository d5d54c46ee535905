"""The words that parameters of estimators accept, as types: a type checker refuses any other."""

from __future__ import annotations

from typing import Literal

Auto = Literal["auto"]
"""For a number that follows from public facts, or from the data at a price."""

RegressionLoss = Literal["squared", "huber"]
FamilyLoss = Literal["squared", "huber", "poisson", "gamma"]
Strategy = Literal["auto", "two-phase", "one-shot"]
NonzeroCount = Literal["auto", "all"]
SelectedUnit = Literal["columns", "variables"]
PersonWeight = Literal["mean", "sum"]
PrivateCount = Literal["private-count"]
ThresholdMechanism = Literal["auto", "pursuit", "gaussian", "peeling"]
TopKMechanism = Literal["auto", "canonical-lipschitz", "gumbel", "peeling", "laplace"]
SelectionScore = Literal["correlation", "sign", "quadrant"]
RuleOfScreening = Literal["select", "tested", "none-option", "adp"]
ScreeningTimes = Literal["every", "last"]
Penalty = Literal["l1", "l1/2"]
MissingCells = Literal["record", "cell"]
PrintedLoss = Literal["logistic", "squared"]
PrintedVariant = Literal["theorem-5.2", "corollary-5.6", "corollary-5.8"]
SingleMetric = Literal["auto", "accuracy", "balanced accuracy", "mean squared error", "mean absolute error"]
