"""What the experiments of DP-IGHT share: the paper, its budgets, the names of the methods.

Wang and Gu, *Differentially Private Iterative Gradient Hard Thresholding for Sparse Learning*.
"""

from __future__ import annotations

PAPER = "Differentially Private Iterative Gradient Hard Thresholding for Sparse Learning (DP-IGHT)"
EPSILONS = (2.0, 4.0, 6.0, 8.0, 10.0)
DELTA = 0.01
STEPS = 10
"""Of DP-IGHT, everywhere."""

IGHT, FRANK_WOLFE, TWO_STAGE = "IGHT (non-private)", "Frank-Wolfe (published)", "two-stage (published)"
DP_IGHT = "DP-IGHT (published)"
COROLLARY = "DP-IGHT, noise of Corollary 5.8 (published)"

UNTUNED = (
    "The paper chooses step sizes, numbers of steps and sparsity by five-fold cross-validation, which is not private, "
    "and prints none of them. Here they are fixed, the same for every epsilon."
)
