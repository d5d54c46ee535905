"""Sparse Private LASSO Logistic Regression: Private LASSO, Sparsifier, the multinomial form, the appendix's code."""

from __future__ import annotations

from paper_claims import sparsifier_findings as found
from paper_claims.claim import AMENDED, FALSE, HOLDS, UNPROVED, Claim, Paper
from paper_claims.reproduced import reproduced

FRANK_WOLFE = "`FrankWolfeClassifier`: Gumbel noise, one accountant ([algorithm](models.md#frank-wolfe-an-l1-ball))"
PUBLIC_COUNT = "`SparsifiedClassifier` with a public number ([sparsified models](models.md#sparsified-models))"
ONE_BALL = "`FrankWolfeClassifier` with more than two classes: one ball, one selection per step"
CLAIMS_TESTS = "privacy/test_published_claims.py"
UNIT_TESTS = "unit/published/test_published_frank_wolfe.py"

CLAIMS = (
    Claim(
        "Algorithm 1, a missing record",
        "privacy",
        "T steps with Laplace noise of scale λL√(8T ln(1/δ))/(nε) are (ε, δ)-private: 1 at 10⁻⁵, T = 1,000.",
        AMENDED,
        found.composition,
        "Advanced composition gives {literal}: its second-order term is left out. Optimal composition gives {proved}.",
        (f"{CLAIMS_TESTS}::test_what_is_proved_of_a_thousand_steps",),
        FRANK_WOLFE,
        "Noise with a standard deviation {ratio} times smaller at the same ε.",
    ),
    Claim(
        "Algorithm 1, a replaced record",
        "privacy",
        "The same. The text leaves open what neighbours are.",
        UNPROVED,
        found.replaced_record,
        "ε = {proved} is proved. No pair that breaks the claim is known. With Gumbel noise of the same scale {gumbel} "
        "is proved.",
        ("privacy/test_paper_counterexamples.py::test_a_replaced_record_and_the_printed_noise_of_frank_wolfe",),
        'The same with `relation="replace-one"`',
        "Twice the sensitivity, stated on the certificate.",
    ),
    Claim(
        "Algorithm 1, large ε",
        "privacy",
        "The same for every ε.",
        UNPROVED,
        found.large_epsilon,
        "A missing record: for ε = 8 {eight} is proved, for ε = 9 {nine}.",
        (f"{CLAIMS_TESTS}::test_the_claim_is_proved_up_to_about_eight",),
        FRANK_WOLFE,
        "The accountant states what it proves at every ε.",
    ),
    Claim(
        "Corollary 1",
        "privacy",
        "The logistic loss is 1-Lipschitz in the L1 norm.",
        HOLDS,
        found.logistic_constant,
        "The constant is σ(λ).",
        (f"{CLAIMS_TESTS}::test_the_slopes_behind_the_proved_epsilon_are_reached_and_never_exceeded",),
        "The same constant",
        "None.",
    ),
    Claim(
        "Theorem 1, curvature",
        "utility",
        "The curvature constant of the logistic loss is at most λ²/4.",
        HOLDS,
        found.curvature,
        "It is attained at w = 0. The rate itself is quoted from Talwar et al. and was not derived again.",
        ("privacy/test_paper_counterexamples.py::test_the_curvature_of_the_logistic_loss",),
        "The same steps",
        "None.",
    ),
    Claim(
        "Theorem 2",
        "utility",
        "Keeping c coefficients adds at most Lλ to the loss.",
        AMENDED,
        found.bias,
        "The proof bounds the loss by (p − c)/(c + 1)·Lλ and says that this falls as c falls. It rises: {beta} for "
        "c = 20, {alpha} for c = 10, p = 100. The p − c smallest of p numbers give (1 − c/p)·Lλ, which is sharp.",
        ("privacy/test_paper_counterexamples.py::test_what_is_lost_by_keeping_the_largest",),
        PUBLIC_COUNT,
        "{sharp}·Lλ in place of Lλ for p = 100, c = 10.",
    ),
    Claim(
        "Theorem 3, p a square",
        "privacy",
        "Sparsifier is (ε₁ + ε₂, δ)-private: 1 at 10⁻⁵.",
        AMENDED,
        found.integer_ends,
        "p = 100: ε = {proved} is proved, by optimal composition.",
        (f"{CLAIMS_TESTS}::test_integer_ends_make_the_count_private",),
        PUBLIC_COUNT,
        "A public number costs nothing.",
    ),
    Claim(
        "Theorem 3, p not a square",
        "privacy",
        "The same.",
        FALSE,
        found.fractional_ends,
        "p = 120, ε₁ = 0.05, ρ = 2: counts of 15 and of 5 leave no common number of coefficients but the ends: ε is "
        "{twice} at δ = 10⁻⁵. So it is for ρ = 1 if c is shown. If only coefficients are, the count costs {once}.",
        (
            f"{CLAIMS_TESTS}::test_fractional_ends_show_whether_the_count_was_clipped",
            f"{CLAIMS_TESTS}::test_rounding_down_hides_the_fraction_only_without_a_precision",
            "privacy/test_paper_counterexamples.py::test_rounding_down_widens_the_range_of_the_count",
        ),
        "Ends are rounded inwards to integers ([sparsified models](models.md#sparsified-models))",
        "{sets} data sets of Table 1 have fractional ends.",
    ),
    Claim(
        "Appendix B, the count",
        "privacy",
        "The code implements Sparsifier.",
        FALSE,
        found.overwritten_count,
        "It clips the exact count again after the noise. Three records, two columns: the number of coefficients is a "
        "function of the data, and ε is infinite at any δ below 1.",
        (f"{CLAIMS_TESTS}::test_the_appendix_releases_the_exact_count",),
        PUBLIC_COUNT,
        "No count of the data is released.",
    ),
    Claim(
        "Appendix B, the steps",
        "algorithm",
        "The code implements Private LASSO, which descends.",
        FALSE,
        found.ascent,
        "It takes the largest score and climbs. Without noise, 2,000 records of the synthetic set, 200 steps: a loss "
        "of {loss} and {accuracy} % right, where Algorithm 1 has {right_loss} and {right_accuracy} %.",
        (f"{UNIT_TESTS}::test_the_algorithm_descends_and_the_appendix_ascends",),
        FRANK_WOLFE,
        "The loss falls.",
    ),
    Claim(
        "Theorem 4",
        "privacy",
        "The multinomial loss has the Lipschitz constant 2.",
        HOLDS,
        found.softmax_constant,
        "It is 1 entry by entry, which is the norm that the noise needs; 2 belongs to an induced matrix norm.",
        ("contract/test_losses.py::test_a_loss_is_what_it_says",),
        ONE_BALL,
        "Half the noise for this constant.",
    ),
    Claim(
        "Theorem 5",
        "privacy",
        "The multinomial form is (ε, δ)-private: 1 at 10⁻⁵.",
        FALSE,
        found.multinomial,
        "A step makes one selection per feature, the proof counts one per class. Two classes, one step, five records: "
        "ε is {p100} for 100 features, {p1000} for 1,000, {p10000} for 10,000, {p100000} for 100,000.",
        (f"{CLAIMS_TESTS}::test_one_step_of_the_multinomial_form_breaks_its_claim",),
        ONE_BALL,
        "K = 3, T = 100, ε = 1: noise {ratio} times smaller, and a proof. Of the printed form only {proved} is proved "
        "for d = 10,000.",
    ),
    Claim(
        "Appendix A, the problem",
        "algorithm",
        "The weights stay in the ball ‖W‖₁ ≤ λ.",
        FALSE,
        found.stated_ball,
        "Every column has a ball of its own: after 30 steps on 40 features the sum is {found}λ.",
        (f"{UNIT_TESTS}::test_the_multinomial_form_leaves_its_ball",),
        ONE_BALL,
        "The sum stays within λ.",
    ),
    Claim(
        "Section 3.2, the count",
        "utility",
        "The private count reflects the non-private model. Read here: in most draws it is not an end of its range.",
        FALSE,
        found.informative_count,
        "p = 100, ε₁ = 0.05, a count in the middle of the range: the released one is an end of it in {ends} % of "
        "draws.",
        ("unit/research/test_reproduce_sparsifier.py::test_the_private_count_is_a_coin_flip",),
        PUBLIC_COUNT,
        "None of the budget is spent on it.",
    ),
    Claim(
        "Table 1",
        "experiment",
        "Numbers of non-zeros on ten sets.",
        UNPROVED,
        lambda: reproduced("Sparsifier", "Table 1"),
        "{counts}.",
        (
            f"{UNIT_TESTS}::test_non_zeros_of_the_papers_synthetic_set",
            "unit/research/test_reproduce_sparsifier.py::test_tables_have_a_row_for_every_printed_number",
        ),
        PUBLIC_COUNT,
        "See Table 2.",
    ),
    Claim(
        "Table 2",
        "experiment",
        "Sparsifier beats Private LASSO with as many coefficients, or is not significantly worse.",
        UNPROVED,
        found.table_2,
        "{counts}. The baseline's printed numbers fit noise for 1,000 steps on a run of few.",
        ("unit/research/test_reproduce_sparsifier.py::test_a_stopped_run_has_the_noise_of_a_thousand_steps",),
        "`HardThresholdClassifier` ([hard thresholding](models.md#hard-thresholding)), `SparsifiedClassifier`",
        "Synthetic set, ε = 1, one draw, accuracy / AUC: {sound} with hard thresholding, {printed} as printed.",
    ),
    Claim(
        "Figures 1 to 5",
        "experiment",
        "Sparsifier is ahead of two-stage, ADMM and IGHT at every ε.",
        UNPROVED,
        lambda: reproduced("Sparsifier", *(f"Figure {i}" for i in range(1, 6))),
        "{counts}. It keeps 10 to 20 coefficients where 8 are right, which bounds its F1.",
        ("unit/research/test_reproduce_sparsifier.py::test_best_everywhere_and_few_lost",),
        "`HardThresholdClassifier` ([hard thresholding](models.md#hard-thresholding))",
        "See Table 2.",
    ),
    Claim(
        "Section 5",
        "experiment",
        "At a small ε the count varies widely.",
        HOLDS,
        lambda: reproduced("Sparsifier", "Section 5"),
        "{counts}.",
        ("unit/research/test_reproduce_sparsifier.py::test_the_smaller_claims_both_ways",),
        PUBLIC_COUNT,
        "See Section 3.2.",
    ),
)

SPARSIFIER = Paper("Sparse Private LASSO Logistic Regression", "Sparsifier", "S", CLAIMS)
