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

Where rows are those of persons (``fit(X, y, persons=...)``), the record of all this is the person: its rows are present
or absent together, under replace-one they are another set of rows under the same key, and n is the number of persons.
m is the number of a person's rows that are not null, and private; a person without any is a null record. Every sum
below is arranged so that the rows of a person keep the bound on one record, in integers, whatever m is. By the triangle
inequality it suffices that each of the m terms is at most the m-th part of the bound (weights of rows are divided by m
and rounded down; so are sums of bounded integers, towards zero); where terms are squares, that each squared norm is
(rows are divided by the root of m before they are multiplied). The proofs below then hold with "record" read as
"person"; where more has to be said, it is said there.

The first two give the same bounds for statistics that do not use n: passing from D to D' removes (or
adds) one record's contribution. Under the third a contribution is removed *and* another one added.
"""

from taciturn.data.sensitivity.base import (
    MOST_PRIVATE_ROWS,
    RELATIONS,
    UNITS,
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
    target_parts,
)
from taciturn.data.sensitivity.votes import block_votes

__all__ = [
    "GRAM_WEIGHTS",
    "MOST_PRIVATE_ROWS",
    "RELATIONS",
    "UNITS",
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
    "target_parts",
    "unscaled_rule",
]
