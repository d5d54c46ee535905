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
from taciturn.fitting.objective_perturbation import GeneralisedLinearLoss, bounded_rows
from taciturn.planning.objective_perturbation import (
    MOST_PER_PUBLIC_ROW,
    check_regularisation,
    plan_objective_perturbation,
)

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
        targets: np.ndarray,
        loss: GeneralisedLinearLoss,
        facts: dict[str, Any],
        assumptions: tuple[str, ...],
    ) -> np.ndarray:
        """Coefficients in mapped units, one row per output, the intercept last; one column of targets per output."""
        n_rows, n_columns = records.n_slots, records.n_features
        n_outputs = targets.shape[1]
        stream = Stream.of(self.random_state)
        plan = self._plan(loss, public_rows(self.relation, n_rows, self.n_public), n_columns, n_outputs)
        chosen = self._choose(plan, records, targets, stream)
        rows, shrunk = bounded_rows(
            records.columns(chosen), self.x_bound, plan.row_bound, intercept=bool(self.fit_intercept)
        )
        if not loss.labelled:
            # The record shrinks as a whole and stays on the plane that the model is looking for.
            targets = targets * shrunk[:, None]
        solution = plan.solve(rows, targets, stream.spawn("minimiser"))
        weights = np.zeros((n_outputs, n_columns + 1))
        weights[:, chosen] = solution[:, : chosen.size]
        if self.fit_intercept:
            weights[:, -1] = solution[:, -1]
        public = self._public_facts(n_rows, n_columns) | {
            "row_bound": plan.row_bound * self.x_bound,
            "regularisation": plan.regularisation,
            **plan.facts(rows.shape[1]),
            **facts,
        }
        self.certificate_ = certify(
            plan.releases,
            plan.budget,
            relation=self.relation,
            public=public,
            assumptions=(*self._assumptions(), *assumptions, *self._arithmetic()),
            seeded=stream.seeded,
            arithmetic="float64",
        )
        return weights

    def _arithmetic(self) -> tuple[str, ...]:
        """What has to be assumed of the computation."""
        if self.relation != "add-remove":
            return (ROUNDED,)
        return ROUNDED, f"there are at most {MOST_PER_PUBLIC_ROW * self.n_public:,} records"

    def _plan(self, loss: GeneralisedLinearLoss, n_rows: int | None, n_columns: int, n_outputs: int) -> Any:
        return plan_objective_perturbation(
            Budget(self.epsilon, self.delta),
            loss,
            row_bound=self._row_bound(n_columns),
            relation=self.relation,
            n_rows=n_rows,
            n_coefficients=n_columns + bool(self.fit_intercept),
            n_outputs=n_outputs,
            regularisation=self.regularisation,
        )

    def _row_bound(self, n_columns: int) -> float:
        """In units of ``x_bound``; unless it is given, what the bounds on the entries imply."""
        implied = math.sqrt(n_columns + bool(self.fit_intercept))
        return implied if self.row_bound is None else min(float(self.row_bound) / self.x_bound, implied)

    def _choose(self, plan: Any, records: PresentRecords, targets: np.ndarray, stream: Stream) -> np.ndarray:
        """The columns that enter the model: here all of them."""
        return np.arange(records.n_features)
