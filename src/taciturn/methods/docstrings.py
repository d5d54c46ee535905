"""Parts of docstrings that estimators share."""

from __future__ import annotations

import re

_PARAMETERS = {
    "epsilon": """
epsilon : float, default=1.0
    Privacy budget of this fit, from 1e-9 to 30. ``float("inf")`` switches noise off: the non-private counterpart.
""",
    "delta": """
delta : float, default=1e-6
    Probability with which the guarantee of epsilon may fail; a mechanism that needs none leaves it unused.
""",
    "delta_positive": """
delta : float, default=1e-6
    Probability with which the guarantee of epsilon may fail, > 0: the noise is Gaussian.
""",
    "relation": """
relation : {"zero-out", "add-remove", "replace-one"}, default="zero-out"
    The neighbouring relation. A record is a row or, where ``fit`` accepts and gets ``persons``, a person with
    all rows.
""",
    "n_public": """
n_public : int, default=None
    Public number of records, used under add-remove, where the true number is private.
""",
    "n_public_required": """
n_public : int, default=None
    Public number of records, required under add-remove, where the true number is private.
""",
    "x_bound": """
x_bound : float, default=None
    Public bound on every feature value; values beyond it are clipped. None: 1.0, with a ``DefaultBoundsWarning``.
""",
    "y_bounds": """
y_bounds : tuple of float, default=None
    Public range of the target. Targets and predictions are clipped to it. None: (-1.0, 1.0), with a
    ``DefaultBoundsWarning``.
""",
    "classes": """
classes : sequence, default=None
    Public labels; a record with another label is a null record. None: the labels are taken from y, and the
    certificate assumes that the set of labels is public.
""",
    "class_weight": """
class_weight : dict, default=None
    Public numbers by label, by which losses of records are multiplied: ``coef_`` estimates what scikit-learn's
    ``class_weight`` does. Labels that are not listed have weight one; only ratios matter. "balanced" is refused, as
    it would count the data's labels. Under the model, weights move the constants alone, by their logarithms.
""",
    "radius_regressor": """
radius : float or "auto", default="auto"
    Bound on the L1 norm of ``coef_``, in the units of X and y. The intercept shares the ball: its distance from
    the middle of the target, over ``x_bound``, counts too. "auto": a multiple of the private median distance that
    ``residual_clip="auto"`` finds, which grows with the public number of records and the budget up to 40; ten times
    the half-width of ``y_bounds`` where that clip is given, and without privacy.
""",
    "radius_classifier": """
radius : float or "auto", default="auto"
    Bound on the L1 norm of all coefficients together, in the units of X. Intercepts share the ball: their
    absolute values, over ``x_bound``, count too. "auto": 10.
""",
    "huber_loss": """
loss : {"huber", "squared"}, default="huber"
    "huber" needs noise for ``residual_clip`` only.
residual_clip : float or "auto", default="auto"
    Threshold of the Huber loss, in the units of y. "auto": 0.35 times the private median distance of the target
    from its middle, which is its private median where there are records enough and an intercept, and that of
    ``y_bounds`` otherwise. What is estimated is then nearer to a conditional median than to a mean: of a skewed
    target predictions are below the mean. Without privacy: the half-width of ``y_bounds``.
""",
    "screening": """
rule : {"select", "tested", "none-option", "adp"}, default="select"
    What a screening does. "select" chooses the coefficient with the smallest gradient by the exponential
    mechanism and sets it to zero. "tested" does so only if the safe rule, on three noisy numbers, says that the
    coefficient is zero at the optimum. "none-option" has one more candidate, "none". "adp" releases the safe
    rule's scores of all features at once with Gaussian noise, which drowns them: a baseline to compare with.
screen_at : int, "every" or "last", default=40
    After every how many steps coefficients are screened, or only after the last one; not at all where there are
    fewer steps. With "select" each screening removes a coefficient, so that at most ``n_iter_`` less the number
    of screenings are left; "every" leaves none.
screen_share : float, default=0.03
    Share of the budget for screening, in (0, 1): of the sum of squared costs, or, with delta = 0, of epsilon.
threshold : float or "auto", default="auto"
    For "none-option": the gradient below which a coefficient is rather screened than not, as a share of the
    largest possible gradient, in [0, 1]. "auto": one over the root of the public number of records, which
    chance alone may reach.
permanent : bool, default=False
    Whether a screened coefficient can never be chosen again. The screened coefficients are public, so their
    columns are left out of later steps, which saves time.
""",
    "private_count": """
n_nonzero : int or "private-count", default=10
    Number of features to keep. "private-count": as many as the noiseless solution uses, clipped to
    ``count_range`` and noised; at common budgets this is a coin flip between the ends of the range.
count_range : tuple of int, default=None
    Public integer range of the count. None: from the square root of the number of features to twice that.
count_share : float, default=0.05
    Share of epsilon for the count.
""",
    "row_bound_median": """
row_bound : float or "auto", default="auto"
    Public bound on the L2 norm of a row, in the units of X; longer rows are clipped. "auto": their private
    median.
""",
    "row_bound_implied": """
row_bound : float or "auto", default="auto"
    Public bound on the L2 norm of a row, in the units of X, where the intercept's entry counts as ``x_bound``;
    longer rows are scaled down. "auto": what ``x_bound`` implies, its product with the root of the number of
    columns. A bound near the typical norm needs the least noise.
""",
    "hard_threshold": """
mechanism : {"auto", "pursuit", "gaussian", "peeling"}, default="auto"
    "pursuit": half as many columns again as are kept join in up to seven rounds, chosen by Gumbel noise on sums of
    clipped entries at the residuals of those chosen before; gradient steps on the chosen columns follow, one
    between rounds and ``n_steps`` after the last, and the largest coefficients are kept. Coefficients are shrunk by
    what is known of their noise. "gaussian": noise on every coordinate of the gradient of each step, then the
    largest coefficients are kept. "peeling": the columns of each step are chosen first, by Gumbel noise for a bound
    of ``x_bound`` per entry, with half of what the steps may spend; noise on the chosen coordinates gets the other
    half. "auto": pursuit where at most half of the columns are kept and clips and step are "auto"; else "gaussian".
n_steps : int or "auto", default="auto"
    Number of steps. "auto": a function of public facts between 3 and 20.
step_size : float or "auto", default="auto"
    Step for the mean gradient, in the units of X. "auto": one over the curvature along the first step, a
    private number, adapted to what later gradients show of it.
coef_bound : float, default=None
    Bound on the L2 norm of the coefficients, in the units of X and y; None for none. It costs nothing.
average : bool, default=False
    Whether to average the second half of the iterates and threshold the mean. It costs nothing.
""",
    "block_votes": """
n_nonzero : int, default=10
    Number of features to select, and for how many a block votes. Selecting all of them costs nothing.
n_blocks : int or "auto", default="auto"
    Number of blocks. "auto": the square root of the public number of records, rounded down.
selection_share : float, default=0.8
    Share of the selection in the plan's squared parameter, in (0, 1).
""",
    "selected_target": """
y_bounds : tuple of float, default=None
    Public range of a numeric target. None: (-1.0, 1.0), with a ``DefaultBoundsWarning``.
classes : sequence, default=None
    Public labels of a categorical target; a record with another label is a null record. None: the target holds
    numbers, or false and true. Whole numbers that are codes of categories need their ``classes``.
""",
    "n_features_to_select": """
n_features_to_select : int, default=10
    Number of features to select. Selecting all of them costs nothing.
""",
    "top_k": """
mechanism : {"auto", "canonical-lipschitz", "gumbel", "peeling", "laplace"}, default="auto"
    The private top-k mechanism. "auto": the one that distinguishes the smallest differences of scores; with
    delta = 0 one of the pure mechanisms.
gamma : float, default=0.5
    Parameter of the canonical Lipschitz mechanism, in [0, 1).
""",
    "n_jobs": """
n_jobs : int, default=None
    Number of joblib workers for the blocks. The result is the same for any number.
""",
    "sparse": """
n_nonzero : int, "auto" or "all", default="auto"
    Number of nonzero coefficients, the intercept not counted. "auto": as few as hold the accuracy of all of them,
    by a private comparison of losses; none where a constant does as well. "all": every feature, for prediction and
    for texts. It counts variables where ``select`` is "variables".
select : {"columns", "variables"}, default="columns"
    What is kept or dropped. "columns": each feature by itself; features of hardly any record are chosen last, by
    their released second moment. "variables": all features of a variable together, such as the indicators of a
    category.
groups : list of lists of int or str, default=None
    With ``select="variables"``: the features of each variable, by place or by name; those in no group are variables
    of their own. None: those of the table that ``open_table`` opens, or by names: features with the same name
    before "=", or before an underscore where it can be at one place only.
method : {"auto", "two-phase", "one-shot"}, default="auto"
    The strategy. "two-phase": a selection phase of gradient descent on all (screened) columns, then an
    estimation phase on those selected. "one-shot": noisy correlations select the columns, then the estimation
    phase. "auto" chooses by public facts; the choice and its reason are on the certificate.
""",
    "weight_bound": """
weight_bound : float, default=None
    Public upper bound on the weights of ``fit(..., sample_weight=...)``, which are trimmed to it. Only ratios of
    weights matter, and the noise is that of records at the bound: a bound of 20 for weights around 1 costs much.
    None: 1, with a ``DefaultBoundsWarning`` if there are weights.
""",
    "person_weight": """
person_weight : {"mean", "sum"}, default="mean"
    How a person with several rows counts. "mean": once, by the mean over its rows. "sum": by its rows, as many as a
    large quantile of the numbers of rows of a person, which is released: all rows of persons with no more than that
    count the same, and those of others are weighted down together. The two estimate different coefficients where
    the number of rows goes along with the outcome. Without ``persons`` they are the same.
""",
    "inference": """
columns : list of int or str, default=None
    The columns of the model, by place or by name; ``n_nonzero`` does not count then. They have to be chosen without
    looking at these data. None: all columns may be chosen.
inference : bool, default=False
    Whether to estimate standard errors, intervals and p-values. Where the data choose the columns, one half of the
    records, drawn at random, chooses them and the other half estimates their coefficients, so that ``coef_`` comes
    from that half. Each half spends the whole budget, since every record is in one of them. Where ``columns`` or
    ``n_nonzero="all"`` fixes the columns, all records estimate them. At most 500 columns. Released besides,
    each with its price: large quantiles of row norms and residuals (``quantile_scores``), information matrices
    and a matrix of scores (``gram_matrix``), and gradients (``jointly_clipped_sum``).
confidence_level : float, default=0.95
    Of the intervals.
""",
    "inference_attributes": """
coef_std_error_ : ndarray of shape (n_features,) or (n_classes, n_features)
    With ``inference=True``: standard errors of the coefficients, which include sampling error and noise. NaN for
    columns that are not in the model and for coefficients that are not estimable; ``summary()`` says why. Three and
    more classes have one row each, for log-odds against the first one, the reference, whose row is NaN.
coef_interval_ : ndarray of shape (n_features, 2) or (n_classes, n_features, 2)
    Likewise, confidence intervals.
coef_p_value_ : ndarray of shape (n_features,) or (n_classes, n_features)
    Likewise, p-values of the hypotheses that coefficients are zero.
intercept_std_error_ : float or ndarray of shape (n_classes,)
    Likewise, the standard error of the intercept.
intercept_interval_ : ndarray of shape (2,) or (n_classes, 2)
    Likewise, its confidence interval.
inference_ : Inference
    Likewise, all of that in one object, the intercept included.
""",
    "n_steps": """
n_steps : int or "auto", default="auto"
    Number of steps. "auto": a function of public facts.
""",
    "fit_intercept": """
fit_intercept : bool, default=True
    Whether to add a constant column to the design.
""",
    "invalid": """
invalid : {"raise", "null"}, default="raise"
    Treatment of records with a cell that is missing, infinite or no number, or without a usable target. "raise"
    refuses the fit, which reveals that there is such a record; "null" makes them null records, absent from
    every statistic.
""",
    "random_state": """
account : Account or str, default=None
    The account that pays for the fit, or where it is: ``"sqlite:///study.db#name"``. The whole price is reserved
    before anything is drawn, and ``BudgetExceededError`` raised where it is not there. None: nothing keeps count
    of several fits.
random_state : int, default=None
    None draws the noise from a cryptographic stream. An integer is for reproduction only; the certificate then
    says that the noise was seeded.
""",
}

_FAMILIES = {
    "gaussian_budget": """
%(delta_positive)s
%(relation)s
%(n_public_required)s
%(x_bound)s
""",
    "ball_budget": """
%(epsilon)s
    ``n_steps="auto"`` means 5000 then.
%(delta)s
%(relation)s
%(n_public)s
    ``n_steps="auto"`` depends on it.
%(x_bound)s
""",
    "ball_steps": """
%(n_steps)s
%(fit_intercept)s
%(invalid)s
%(random_state)s
""",
    "hard_threshold_budget": """
%(epsilon)s
    Then it is iterative hard thresholding itself: ``n_steps="auto"`` means 500, clips that are "auto" do not bind.
%(gaussian_budget)s
""",
    "hard_threshold_rows": """
n_nonzero : int, default=10
    Number of features kept after every step, the intercept not counted.
%(row_bound_median)s
    At least ``x_bound / 256``.
""",
    "two_stage_budget": """
%(epsilon)s
    Both stages share it; ``regularisation="auto"`` means 1 without privacy.
%(delta_positive)s
%(relation)s
    Blocks are slices of the list of records, except under add-remove, where each record is assigned at random.
%(n_public_required)s
%(x_bound)s
""",
    "regularisation_regressor": """
residual_clip : float or "auto", default="auto"
    Threshold of the Huber loss, in the units of y. "auto": the half-width of ``y_bounds``.
regularisation : float or "auto", default="auto"
    :math:`\\Lambda`, for features divided by ``x_bound`` and a target mapped to [-1, 1]. "auto" balances noise and
    shrinkage by public facts.
%(fit_intercept)s
    Its entry counts towards the norm of a row.
""",
    "regularisation_classifier": """
regularisation : float or "auto", default="auto"
    :math:`\\Lambda`, for features divided by ``x_bound``. "auto" balances noise and shrinkage by public facts.
%(fit_intercept)s
    Its entry counts towards the norm of a row.
""",
}
"""Descriptions that a family of classes shares, made of the others."""

_COMMON_ATTRIBUTES = """
certificate_ : Certificate
    The privacy statement of this fit.
n_features_in_ : int
    Number of features seen during fit.
feature_names_in_ : ndarray of str
    Names of the features, where X has string names.
"""

_ATTRIBUTES = {
    "regressor_attributes": """
coef_ : ndarray of shape (n_features,)
    Coefficients in the units of X and y.
intercept_ : float
    Intercept in the units of y.
y_bounds_ : tuple of float
    The public range to which predictions are clipped.
support_ : ndarray of bool, shape (n_features,)
    Mask of the features with a nonzero coefficient.
"""
    + _COMMON_ATTRIBUTES.lstrip("\n"),
    "classifier_attributes": """
classes_ : ndarray
    The labels, sorted.
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    Coefficients in the units of X.
intercept_ : ndarray of shape (1,) or (n_classes,)
    Intercepts.
support_ : ndarray of bool, shape (n_features,)
    Mask of the features with a nonzero coefficient.
"""
    + _COMMON_ATTRIBUTES.lstrip("\n"),
    "n_iter": """
n_iter_ : int
    Number of steps made.
""",
    "loss_curve": """
loss_curve_ : ndarray
    Mean loss after each screening. Only with ``epsilon=float("inf")``: it is computed from the data.
""",
    "iterative_regressor_attributes": """
%(n_iter)s
%(regressor_attributes)s
""",
    "iterative_classifier_attributes": """
%(n_iter)s
%(classifier_attributes)s
""",
    "selector_attributes": """
support_ : ndarray of bool, shape (n_features,)
    Mask of the selected features.
"""
    + _COMMON_ATTRIBUTES.lstrip("\n"),
    "common_attributes": _COMMON_ATTRIBUTES,
}

_PUBLISHED = {
    "published_seed": """
random_state : int, default=None
    None draws all that is random from a cryptographic stream. An integer reproduces a run.
""",
    "published_statement": """
certificate_ : Certificate
    The claim, what can be proved, the errata.
n_features_in_ : int
    Number of features seen during fit.
feature_names_in_ : ndarray of str
    Names of the features, where X has string names.
""",
    "published_attributes": """
support_ : ndarray of bool, shape (n_features,)
    Mask of the features with a nonzero coefficient.
%(published_statement)s
""",
    "published_model": """
classes_ : ndarray of shape (2,)
    The labels, sorted; of a classifier.
coef_ : ndarray of shape (n_features,), or (1, n_features) of a classifier
    Coefficients.
intercept_ : float, or ndarray of shape (1,) of a classifier
    Zero.
%(published_attributes)s
""",
}

FRAGMENTS = {name: text.strip("\n") for name, text in (_PARAMETERS | _FAMILIES | _ATTRIBUTES | _PUBLISHED).items()}
"""The descriptions by name."""

_PLACE = re.compile(r"^( *)%\((\w+)\)s$", re.MULTILINE)


def fill(docstring: str | None) -> str | None:
    """The docstring with every ``%(name)s`` replaced by its description; KeyError for a name that has none."""
    if docstring is None:
        # Under python -OO.
        return None

    def described(place: re.Match[str]) -> str:
        indent, name = place.groups()
        return "\n".join(indent + line for line in _PLACE.sub(described, FRAGMENTS[name]).splitlines())

    return _PLACE.sub(described, docstring)
