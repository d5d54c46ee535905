"""What models of a perturbed objective share: bound, plan, solve, certify."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from taciturn.accounting import Budget
from taciturn.certificate import certify
from taciturn.core.rng import Stream
from taciturn.core.validation import check_real
from taciturn.data.admission import PresentRecords
from taciturn.data.sensitivity import public_rows
from taciturn.estimators._linear import PrivateLinearModel
from taciturn.fitting.objective_perturbation import run_objective
from taciturn.losses import ScalarLoss
from taciturn.planning.objective_perturbation import (
    MOST_PER_PUBLIC_ROW,
    check_regularisation,
    plan_objective_perturbation,
)
from taciturn.sources import ArraySource

__all__ = ["PrivateObjective"]

LEAST_ROW_BOUND = 2.0**-20
"""In units of ``x_bound``: below that the curvature of a record would be lost beside the regularisation."""

ROUNDED = (
    "the solver's arithmetic rounds as IEEE 754 says, and computes the derivative of the loss to 8 units in its last "
    "place"
)
"""The numerical assumption of :mod:`taciturn.planning.precision`."""


class PrivateObjective(PrivateLinearModel):
    """A model that minimises a perturbed objective."""

    def _check_public(self) -> None:
        super()._check_public()
        self._check_gaussian()
        if self.row_bound is not None:
            check_real(self.x_bound * LEAST_ROW_BOUND, math.inf, closed="left", row_bound=self.row_bound)
        self._check_own()

    def _check_own(self) -> None:
        """What only some of these models are told."""
        check_regularisation(self.regularisation)

    def _fit(
        self,
        records: PresentRecords,
        loss: ScalarLoss,
        n_outputs: int,
        facts: dict[str, Any],
        assumptions: tuple[str, ...],
    ) -> np.ndarray:
        """Coefficients in mapped units, one row per output, the intercept last."""
        n_rows, n_columns = records.n_slots, records.n_features
        n_public = public_rows(self.relation, n_rows, self.n_public)
        plan = self._plan(loss, n_public, n_columns, n_outputs)
        stream = Stream.of(self.random_state)
        weights = self._run(plan, ArraySource(records, self.x_bound, n_public), stream)
        self.certificate_ = certify(
            plan.releases,
            plan.budget,
            relation=self.relation,
            public=self._public_facts(n_rows, n_columns) | self._plan_facts(plan) | facts,
            assumptions=(*self._assumptions(), *assumptions, *self._arithmetic()),
            seeded=stream.seeded,
            arithmetic=plan.arithmetic,
        )
        return weights

    def _run(self, plan: Any, source: ArraySource, stream: Stream) -> np.ndarray:
        return run_objective(plan, source, stream)

    def _plan_facts(self, plan: Any) -> dict[str, Any]:
        """What the certificate says about the plan."""
        return {"row_bound": plan.row_bound * self.x_bound, "regularisation": plan.regularisation, **plan.facts}

    def _arithmetic(self) -> tuple[str, ...]:
        """What has to be assumed of the computation."""
        if self.relation != "add-remove":
            return (ROUNDED,)
        return ROUNDED, f"there are at most {MOST_PER_PUBLIC_ROW * self.n_public:,} records"

    def _plan(self, loss: ScalarLoss, n_rows: int | None, n_columns: int, n_outputs: int) -> Any:
        return plan_objective_perturbation(
            Budget(self.epsilon, self.delta),
            loss,
            row_bound=self._row_bound(n_columns),
            relation=self.relation,
            n_rows=n_rows,
            n_features=n_columns,
            intercept=bool(self.fit_intercept),
            n_outputs=n_outputs,
            regularisation=self.regularisation,
        )

    def _row_bound(self, n_columns: int) -> float:
        """In units of ``x_bound``; unless it is given, what the bounds on the entries imply."""
        implied = math.sqrt(n_columns + bool(self.fit_intercept))
        return implied if self.row_bound is None else min(float(self.row_bound) / self.x_bound, implied)
