"""Broken variants of the library, each with the attack that gives it away.

A mutant patches the real code for as long as its attack lasts. The claim is read off the patched object's own
certificate, event or sensitivity, so that every mutant is convicted by its own promise. Mistakes that are printed
somewhere live in ``taciturn.published`` and are attacked there. The control is the same attack without the mistake: on
the code as it is, or on what mends a published one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import attacks_on_fits as fits
import attacks_on_published as published
import attacks_on_releases as releases
from broken_persons import rows_counted_one_by_one
from whole_fits import PERSON_FITS, a_twentieth_of_the_noise, all_whole_fits

from taciturn.audit import AuditResult, SearchResult

__all__ = ["KINDS", "MUTANTS", "Mutant", "Result", "claim_and_finding", "is_flagged", "mutants_with_less_noise"]

Result = AuditResult | SearchResult


@dataclass(frozen=True, slots=True)
class Mutant:
    """A mistake, and how it is found out.

    Parameters
    ----------
    name : str
        What it is called.
    breaks : str
        What is broken, in words.
    attack : callable
        ``attack()``: an audit or a search, to be executed inside the patch.
    apply : callable, default=nullcontext
        ``apply()``: a context in which the code is broken; none for published classes, which are broken as they stand.
    control : callable, default=None
        The attack on what mends a published class; otherwise the attack itself, on the code as it is.
    """

    name: str
    breaks: str
    attack: Callable[[], Result]
    apply: Callable[[], AbstractContextManager] = nullcontext
    control: Callable[[], Result] | None = None

    def caught(self) -> Result:
        """What the attack finds in the broken code."""
        with self.apply():
            return self.attack()

    def spared(self) -> Result:
        """What it finds where nothing is broken."""
        return (self.control or self.attack)()


def is_flagged(result: Result) -> bool:
    """Whether a claim was refuted."""
    return result.verdict in ("violated", "exceeded")


def claim_and_finding(result: Result) -> tuple[float, float]:
    """Epsilon claimed and found by an audit, or the sensitivity declared and found by a search."""
    if isinstance(result, SearchResult):
        return result.declared, result.change
    return result.claimed, result.lower_bound


def mutants_with_less_noise():
    """For every attack on a whole fit: the fit with a twentieth of its noise."""
    return tuple(
        Mutant(
            f"a twentieth of the noise: {attack.entry}",
            f"every sampler inside the fit of `{attack.subject}` draws a twentieth",
            attack,
            partial(a_twentieth_of_the_noise, attack.subject),
        )
        for attack in all_whole_fits()
    )


MUTANTS = (
    Mutant(
        "half the Gaussian noise",
        "`RoundedGaussian` draws noise of half its scale",
        releases.noisy_sum,
        releases.half_the_gaussian_noise,
    ),
    Mutant(
        "half the Gumbel noise",
        "`ExponentialMechanism` draws noise of half its scale",
        releases.chosen_column,
        releases.half_the_gumbel_noise,
    ),
    Mutant(
        "count dropped",
        "an event that happens fifty times is accounted once",
        releases.fifty_selections,
        releases.dropped_count,
    ),
    Mutant(
        "residual clip skipped",
        "`HardThresholdRegressor` multiplies rows by residuals as they are",
        fits.large_residual,
        fits.residuals_unclipped,
    ),
    Mutant(
        "sum clipped",
        "the summed gradient is clipped instead of each row",
        fits.gradient_sums,
        fits.sum_clipped,
    ),
    Mutant(
        "slope of one",
        "`published.PrivateLasso`: Laplace noise for L = 1 with the squared loss at radius 50",
        published.lasso_with_slope_one,
        control=published.lasso_with_its_slope,
    ),
    Mutant(
        "printed class sizes",
        "`published.DPSIS`: classes of subsets overlap",
        published.printed_class_sizes,
        control=published.true_class_sizes,
    ),
    Mutant(
        "overwritten count",
        "`published.Sparsifier(literal_appendix=True)`: the exact count overwrites the noisy one",
        published.overwritten_count,
        control=published.noisy_count,
    ),
    Mutant(
        "sign test",
        "`published.RNMScreen`: the sign of the smallest noisy score is used, and not paid for",
        published.sign_and_index,
        control=published.index_alone,
    ),
    Mutant(
        "screening sensitivity",
        "`published.ADPScreen`: a product changes by more than the product of its factors' changes",
        published.printed_screening,
        control=published.true_screening,
    ),
    Mutant(
        "selection per feature",
        "`published.MultinomialPrivateLasso`: one selection per feature, accounted as one per class",
        published.selection_per_feature,
        control=published.selection_per_step,
    ),
    Mutant(
        "noise reused in ADMM",
        "`ADMMClassifier` draws its noise once, for all iterations",
        fits.two_minimisers,
        fits.noise_reused,
    ),
    Mutant(
        "seeds reused across folds",
        "two fits whose certificates are composed draw the same noise",
        fits.two_folds,
        fits.seeds_shared,
    ),
    Mutant(
        "blocks by position",
        "`BlockVoteSelector` cuts the list into slices under add-remove",
        releases.shifted_blocks,
        releases.blocks_by_position,
    ),
    Mutant(
        "replace-one as zero-out",
        "a replaced record counts as a missing one in the sensitivity of a sum",
        releases.replaced_record,
        releases.noise_of_zero_out,
    ),
    Mutant(
        "NaN in the argmax",
        "scores are not checked, and one that is not a number wins",
        releases.missing_value,
        releases.scores_unchecked,
    ),
    Mutant(
        "observed maximum",
        "`BoundedScaler` takes its bounds from the data",
        releases.scaled_neighbour,
        releases.bounds_from_the_data,
    ),
    Mutant(
        "one price for all steps",
        "the privacy filter of `SparseRegressor` gives each gradient of a descent the noise of a single one",
        fits.many_gradients,
        fits.one_price_for_all_steps,
    ),
    Mutant(
        "median for nothing",
        "`SparseRegressor` clips at the exact median, and nobody pays",
        fits.decided_median,
        fits.medians_unpaid,
    ),
    Mutant(
        "norms before centring",
        "centred rows are clipped by the norms that they had before",
        fits.centred_sums,
        fits.norms_uncentred,
    ),
    Mutant(
        "steps by the exact gradient",
        "the descent of `HardThresholdRegressor` makes no step, and draws no noise, where the exact gradient is zero",
        fits.steps_taken,
        fits.stops_at_an_exact_zero,
    ),
    Mutant(
        "rows counted for nothing",
        "the number of rows is taken for public under add-remove",
        fits.stated_number,
        fits.rows_counted_for_nothing,
    ),
    *mutants_with_less_noise(),
    *(
        Mutant(
            f"rows of a person one by one: {attack.entry}",
            f"every row of a person counts in `{attack.subject}` as a record does",
            attack,
            rows_counted_one_by_one,
        )
        for attack in PERSON_FITS
    ),
)
"""Every mutant, in the order of the report."""

KINDS = {
    "declared sensitivity too small": ("sum clipped", "replace-one as zero-out", "residual clip skipped"),
    "control flow that reads data": ("steps by the exact gradient", "sign test"),
    "wrong composition": ("count dropped", "one price for all steps", "selection per feature"),
    "noise shared between releases": ("noise reused in ADMM", "seeds reused across folds"),
    "bounds or sizes read from data": ("observed maximum", "rows counted for nothing"),
    "cells that are not a number": ("NaN in the argmax",),
}
"""Kinds of bugs that libraries have (Cebere et al. 2026 looked at twelve), and mutants of each; the first is quick."""
