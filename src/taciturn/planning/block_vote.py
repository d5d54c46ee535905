"""Plans for selecting features by the votes of disjoint blocks of records."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from typing import ClassVar

from taciturn.accounting import Budget
from taciturn.certificate import Release
from taciturn.core.errors import ParameterError
from taciturn.core.validation import check_integer
from taciturn.data.sensitivity import block_votes
from taciturn.events import Event
from taciturn.planning.top_k import TopKPlan, plan_top_k

__all__ = ["BlockVotePlan", "check_n_blocks", "check_n_jobs", "number_of_blocks", "plan_block_vote"]


@dataclass(frozen=True, slots=True)
class BlockVotePlan:
    """How blocks of records will vote, and how the features with the most votes will be selected.

    Parameters
    ----------
    selection : TopKPlan
        The selection of k features; a block votes for as many.
    relation : str
        The neighbouring relation, which decides how records are assigned to blocks.
    logistic : bool
        Whether the target holds labels, so that blocks fit the logistic loss instead of the squared one.
    n_outputs : int
        Paths that a block follows: the number of classes if there are more than two, else 1.
    """

    ordered: ClassVar[bool] = True

    selection: TopKPlan
    relation: str
    n_blocks: int
    logistic: bool
    n_outputs: int

    @property
    def budget(self) -> Budget:
        """What the selection may cost."""
        return self.selection.budget

    @property
    def releases(self) -> tuple[Release, ...]:
        """For the certificate."""
        return self.selection.releases

    @property
    def cost(self) -> Event:
        """What the selection costs."""
        return self.selection.cost

    @property
    def arithmetic(self) -> str:
        """Whether the proof covers what the computer does."""
        return self.selection.arithmetic


def plan_block_vote(
    budget: Budget,
    n_candidates: int,
    k: int,
    relation: str,
    *,
    n_blocks: int | str,
    n_rows: int | None,
    logistic: bool,
    n_outputs: int = 1,
    method: str = "auto",
    gamma: float = 0.5,
    accounted: bool = False,
) -> BlockVotePlan:
    """Plan the private selection of the k features with the most votes.

    ``n_blocks`` is as for :func:`number_of_blocks`; ``method``, ``gamma`` and ``accounted`` are as for
    :func:`taciturn.planning.plan_top_k`.
    """
    blocks = number_of_blocks(n_blocks, n_rows)
    selection = plan_top_k(
        budget, n_candidates, k, block_votes(relation), method=method, gamma=gamma, accounted=accounted
    )
    return BlockVotePlan(selection, relation, blocks, logistic, n_outputs)


def number_of_blocks(n_blocks: int | str, n_rows: int | None) -> int:
    """The number of blocks, of which each has room for a record; "auto" is the root of ``n_rows``, rounded down."""
    if isinstance(n_blocks, str):
        if n_rows is None:
            raise ParameterError(
                "n_public",
                None,
                "a public number of records, of which n_blocks='auto' is the root, since the true one is private",
                "give n_public or n_blocks",
            )
        return math.isqrt(n_rows)
    if n_rows is not None and n_blocks > n_rows:
        raise ParameterError(
            "n_blocks",
            n_blocks,
            f"at most {n_rows}, the public number of records",
            "take fewer blocks, or leave it at 'auto'",
        )
    return int(n_blocks)


def check_n_blocks(n_blocks: int | str) -> None:
    """Refuse anything but "auto" or a positive integer."""
    if n_blocks != "auto":
        check_integer(1, n_blocks=n_blocks)


def check_n_jobs(n_jobs: int | None) -> None:
    """Refuse a number of workers that joblib does not take."""
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise ParameterError("n_jobs", n_jobs, "None or an integer other than 0", "set -1 for all processors")
