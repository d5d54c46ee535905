"""Votes of disjoint blocks of records."""

from __future__ import annotations

from taciturn.data.sensitivity.base import Sensitivity, check_relation

__all__ = ["block_votes"]


def block_votes(relation: str) -> Sensitivity:
    r"""``v_j``, the number of blocks that vote for feature j. Norm linf.

    The records are cut into a public number of disjoint blocks. Each block votes for any set of features, at most
    once for each, and its vote is a function of its own records alone.

    *Proof.* If neighbours differ in the records of one block only, the other votes are equal and the two votes of
    that block differ by at most 1 in each coordinate. That one block is concerned follows

    - under zero-out and replace-one, where blocks are fixed sets of the n public slots: the record blanked out or
      replaced is one in its slot, and every other record stays in its own;
    - under add-remove, where each record is assigned by randomness of its own, or by a function of its own key that
      is drawn independently of the data: give the common records, which come in the same order, the same blocks on
      both sides. That changes neither law, and the record more or less touches its own block alone. The release is
      then a mixture over assignments of laws that are close one by one, with the same weights on both sides, hence as
      close itself. The records of one key are assigned together, so that the bound also holds for all records of a
      key added or removed at once.

    *Persons.* The slots are those of persons, and the rows of one person are in one block; under add-remove the person
    draws once. So one block is concerned, as above.

    Two ways fail: slices of a list of private length shift every block under add-remove, and keys under replace-one
    move a record between *two* blocks. Attained by a block that changes its mind. Not monotone: it votes for some
    features instead of others.
    """
    return Sensitivity(1.0, "linf", check_relation(relation))
