r"""What the minimiser of a perturbed objective costs.

The release is :math:`\theta = \arg\min \sum_i \phi(x_i \cdot \theta; y_i) + \tfrac{\Lambda}{2}\|\theta\|^2 + b \cdot
\theta` with :math:`b \sim N(0, \sigma^2 I)`, convex :math:`\phi`, :math:`|\phi'| \|x\| \le G` and
:math:`\phi'' \|x\|^2 \le \beta`.

**One record more or less.** The map :math:`\theta \mapsto b = -\sum_i \phi_i' x_i - \Lambda \theta` is one to one, so
the density of :math:`\theta` is that of b times a Jacobian, the determinant of
:math:`A = \Lambda I + \sum_i \phi_i'' x_i x_i^\top`. A further record x shifts b by :math:`\phi' x` and multiplies the
determinant by :math:`1 + \phi'' x^\top A^{-1} x`, which lies between 1 and :math:`1 + \beta/\Lambda = e^c`. In either
direction the privacy loss is at most

.. math:: c + \frac{\|\phi' x\|^2 + 2 |\phi' x \cdot b|}{2 \sigma^2} \le c + \frac{\tau^2}{2} + \tau\,|Z|, \qquad
          \tau = G/\sigma, \quad Z = x \cdot b / (\sigma \|x\|) \sim N(0, 1) .

:math:`\phi'` depends on b through :math:`\theta`, hence the absolute value; the direction of x does not, hence the
normal law. (For a loss that depends on :math:`\theta` through more than one predictor the direction would move, and
nothing of this holds. Where :math:`\phi'` has kinks, as Huber's, the map is still Lipschitz both ways and densities
exist almost everywhere.) The Rényi curve follows by taking moments.

**Several records.** If m records come or go, Jacobians multiply, the shifts :math:`s_j x_j` lie in the span of m fixed
directions and their sum is at most :math:`t\sigma` long, :math:`t` being m times the largest over :math:`\sigma`. So
the loss is at most :math:`c + t^2/2 + t\chi_m`. It is also at most :math:`c + t^2/2 + (t/m) \sum_j |Z_j|`, where
:math:`\sum_j |Z_j|` is the largest of :math:`2^{m-1}` variables :math:`|\sum_j \pm Z_j|`, each normal with a standard
deviation of at most m before its size is taken. So, for every f that does not decrease and is not negative,

.. math:: E f\Bigl(\tfrac{t}{m} \sum_j |Z_j|\Bigr) \le 2^{m-1} E f(t|Z|) \le 2^m E f(tZ) . \qquad (*)

Replacing a record is m = 2 with :math:`t = 2G/\sigma`: one goes, one comes, and only the one that comes enters the
numerator of the ratio of determinants, so that c is that of one record.

**In a plan.** Let :math:`H(\gamma)`, not increasing, bound :math:`\sup_S P(S) - \gamma Q(S)` for whatever follows. With
the objective's release before it the bound is :math:`E_P H(\gamma e^{-L})`, and by (*), with f made of H,

.. math:: E_P H(\gamma e^{-L}) \le 2^m\, E H(\gamma e^{-c}\, e^{-t^2/2 - tZ}),

which is :math:`2^m` times what Gaussian noise of multiplier :math:`1/t` in the same place would give, at
:math:`\gamma e^{-c}`. Every other release acts on H by an operation that is monotone, commutes with multiplying H by a
constant and with rescaling :math:`\gamma`: a mean of :math:`H(\gamma/r)`, or the worst of several such means. So
constants and scales move to the front, and

.. math:: \delta(\varepsilon) \le 2^{\sum m}\, \delta'\bigl(\varepsilon - \textstyle\sum c\bigr)

for the plan :math:`\delta'` in which each objective is a Gaussian release, in whatever order and chosen by whatever
was released before. For one objective alone and one record this is
:math:`2 [\bar\Phi(a) - e^{\varepsilon - c} \bar\Phi(a + \tau)]` with :math:`a = (\varepsilon - c)/\tau - \tau/2`.

References
----------
Kifer, Smith and Thakurta, *Private convex empirical risk minimization and high-dimensional regression* (2012).
Redberg, Koskela and Wang, *Improving the privacy and practicality of objective perturbation for differentially
private linear learners* (2023).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from taciturn.accounting.pieces import Pieces

__all__ = ["doublings", "head_start", "log_moment"]

FloatArray = NDArray[np.float64]


def head_start(pieces: Pieces) -> float:
    """The sum of the logarithms of the Jacobians' ratios: epsilon that is spent before any noise is looked at."""
    return math.fsum(count * objective.log_jacobian for objective, count in pieces.objectives)


def doublings(pieces: Pieces) -> int:
    """How often the plan's directions double delta."""
    return sum(count * objective.directions for objective, count in pieces.objectives)


def log_moment(u: FloatArray, directions: int) -> FloatArray:
    r"""A bound on :math:`\ln E e^{u X}` for :math:`u > 0`, X being the length that (*) is about.

    :math:`2^m e^{u^2/2} \Phi(u)` for every number of directions, exact for one. For two also that of a
    :math:`\chi_2` variable, :math:`1 + u \sqrt{2\pi}\, e^{u^2/2} \Phi(u)`, which is smaller for small u.
    """
    half_normal = 0.5 * u * u + log_ndtr(u)
    signs = directions * math.log(2.0) + half_normal
    if directions != 2:
        return np.asarray(signs)
    plane = np.logaddexp(0.0, np.log(u) + 0.5 * math.log(2.0 * math.pi) + half_normal)
    return np.asarray(np.minimum(signs, plane))
