"""Exact laws of the selection mechanisms on small domains, written from their definitions."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations
from math import comb

import numpy as np
from scipy.stats import chi2

NODES, WEIGHTS = np.polynomial.legendre.leggauss(64)


def softmax_law(utilities):
    """The exponential mechanism."""
    weights = np.exp(utilities - np.max(utilities))
    return weights / weights.sum()


def permute_and_flip_law(utilities):
    """argmax of utility + Exp(1).

    In a random order, given by uniform arrival times, candidate i stops the search with probability
    p_i = exp(u_i - max u): P(j) = p_j int_0^1 prod_{i != j} (1 - p_i t) dt, a polynomial of degree below 128.
    """
    p = np.exp(utilities - np.max(utilities))
    t = (NODES + 1.0) / 2.0
    survive = 1.0 - np.outer(t, p)
    law = np.empty(p.size)
    for j in range(p.size):
        law[j] = p[j] * np.sum(WEIGHTS / 2.0 * np.prod(np.delete(survive, j, axis=1), axis=1))
    return law


def laplace_max_law(utilities):
    """argmax of utility + Laplace(1), by quadrature between the kinks."""
    kinks = np.unique(np.concatenate((utilities, [np.min(utilities) - 60.0, np.max(utilities) + 60.0])))
    law = np.zeros(utilities.size)
    for a, b in pairwise(kinks):
        for c, d in zip(np.linspace(a, b, 41)[:-1], np.linspace(a, b, 41)[1:], strict=True):
            x = (c + d) / 2.0 + (d - c) / 2.0 * NODES
            w = (d - c) / 2.0 * WEIGHTS
            z = x[:, None] - utilities[None, :]
            cdf = np.where(z < 0, 0.5 * np.exp(np.minimum(z, 0)), 1 - 0.5 * np.exp(-np.maximum(z, 0)))
            pdf = 0.5 * np.exp(-np.abs(z))
            for j in range(utilities.size):
                law[j] += np.sum(w * pdf[:, j] * np.prod(np.delete(cdf, j, axis=1), axis=1))
    return law


def ordered_law(law_of_one, utilities, k):
    """k rounds of a selection, each among those left: {(j_1, .., j_k): probability}."""
    out = {}
    for winners in permutations(range(utilities.size), k):
        left, probability = list(range(utilities.size)), 1.0
        for winner in winners:
            probability *= law_of_one(utilities[left])[left.index(winner)]
            left.remove(winner)
        out[winners] = probability
    return out


def subsets(d, k):
    return list(combinations(range(d), k))


def subset_utilities(scores, k, epsilon, gamma):
    """u(S) from its definition: best score outside, worst inside."""
    values = []
    for chosen in subsets(scores.size, k):
        inside = scores[list(chosen)].min()
        outside = np.delete(scores, list(chosen)).max()
        values.append(-epsilon / 2 * ((1 - gamma) * max(inside, outside) - gamma * inside))
    return np.array(values)


def canonical_law(scores, k, epsilon, gamma, noise="exponential"):
    """The canonical Lipschitz mechanism over all subsets, in the order of :func:`subsets`."""
    law = permute_and_flip_law if noise == "exponential" else softmax_law
    return law(subset_utilities(np.asarray(scores, dtype=float), k, epsilon, gamma))


def published_canonical_law(scores, k, epsilon, gamma, noise="exponential"):
    """The same with the printed class sizes C(t - h - 1, k - h - 1): bodies may start at rank h + 1.

    Classes overlap, and every ticket of every class has noise of its own.
    """
    scores = np.asarray(scores, dtype=float)
    d = scores.size
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    tickets, utilities = [tuple(range(k))], [-epsilon / 2 * (1 - 2 * gamma) * ranked[k - 1]]
    for h in range(k):
        for t in range(k + 1, d + 1):
            for body in combinations(range(h + 1, t), k - h - 1):
                tickets.append((*range(h), *(rank - 1 for rank in body), t - 1))
                utilities.append(-epsilon / 2 * ((1 - gamma) * ranked[h] - gamma * ranked[t - 1]))
    law = (permute_and_flip_law if noise == "exponential" else softmax_law)(np.array(utilities))
    index = {chosen: i for i, chosen in enumerate(subsets(d, k))}
    out = np.zeros(comb(d, k))
    for ticket, probability in zip(tickets, law, strict=True):
        out[index[tuple(sorted(int(order[rank]) for rank in ticket))]] += probability
    return out


def count_published_tickets(d, k):
    return 1 + sum(comb(t - h - 1, k - h - 1) for h in range(k) for t in range(k + 1, d + 1))


def chi_square_p(counts, law):
    """p-value of counts under a law; cells with small expectations are pooled."""
    counts, expected = np.asarray(counts, dtype=float), np.asarray(law) * np.sum(counts)
    order = np.argsort(expected)
    counts, expected = counts[order], expected[order]
    pooled_counts, pooled_expected, c, e = [], [], 0.0, 0.0
    for one_count, one_expected in zip(counts, expected, strict=True):
        c, e = c + one_count, e + one_expected
        if e >= 10.0:
            pooled_counts.append(c)
            pooled_expected.append(e)
            c, e = 0.0, 0.0
    pooled_counts[-1] += c
    pooled_expected[-1] += e
    statistic = np.sum((np.array(pooled_counts) - pooled_expected) ** 2 / pooled_expected)
    return float(chi2.sf(statistic, len(pooled_counts) - 1))
