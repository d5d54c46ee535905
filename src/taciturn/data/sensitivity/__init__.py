r"""Every sensitivity of the package, each with relation, norm and proof.

Two data sets are neighbours when they differ in one record, in one of three senses:

``"zero-out"``
    One record of D is replaced by a *null* record in D': present in the public count n, absent from
    every statistic. The library's default. A record is null if its label is none of the public classes or,
    with ``invalid="null"``, if it is not admissible; such records are left out where a table is read and keep
    nothing but their slot (:class:`~taciturn.data.admission.PresentRecords`), so that each statement below
    compares a sum with and without one term. With ``invalid="raise"`` D' may be no table that a regression
    accepts; it then is a step between tables of admissible records that differ in one of them.
``"add-remove"``
    D' has one record more or less; the number of records is private.
``"replace-one"``
    One record of D is another, arbitrary admissible record in D'; n is public.

The first two give the same bounds for statistics that do not use n: passing from D to D' removes (or
adds) one record's contribution. Under the third a contribution is removed *and* another one added.
"""

from taciturn.data.sensitivity.base import (
    MOST_PRIVATE_ROWS,
    RELATIONS,
    Norm,
    Relation,
    Sensitivity,
    check_public_count,
    check_relation,
    public_rows,
    record_sum,
)
from taciturn.data.sensitivity.counts import clipped_count, opposite_quantile_scores, quantile_scores
from taciturn.data.sensitivity.descent import (
    GRAM_WEIGHTS,
    curvature_sum,
    derivative_sum,
    gram_matrix,
    jointly_clipped_sum,
    loss_differences,
    proposal_scores,
)
from taciturn.data.sensitivity.objective import approximate_minimiser, objective_tilt
from taciturn.data.sensitivity.ranks import kendall_scores
from taciturn.data.sensitivity.scores import cell_counts, error_sum, outcome_counts
from taciturn.data.sensitivity.screening import safe_rule, screening_test, unscaled_rule
from taciturn.data.sensitivity.sums import (
    correlation_scores,
    fixed_point_sum,
    gradient_scores,
    lattice_gradient_scores,
)
from taciturn.data.sensitivity.votes import block_votes

__all__ = [
    "GRAM_WEIGHTS",
    "MOST_PRIVATE_ROWS",
    "RELATIONS",
    "Norm",
    "Relation",
    "Sensitivity",
    "approximate_minimiser",
    "block_votes",
    "cell_counts",
    "check_public_count",
    "check_relation",
    "clipped_count",
    "correlation_scores",
    "curvature_sum",
    "derivative_sum",
    "error_sum",
    "fixed_point_sum",
    "gradient_scores",
    "gram_matrix",
    "jointly_clipped_sum",
    "kendall_scores",
    "lattice_gradient_scores",
    "loss_differences",
    "objective_tilt",
    "opposite_quantile_scores",
    "outcome_counts",
    "proposal_scores",
    "public_rows",
    "quantile_scores",
    "record_sum",
    "safe_rule",
    "screening_test",
    "unscaled_rule",
]
