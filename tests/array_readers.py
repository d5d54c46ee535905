"""Tables in partitions that tests make: readers of arrays, and engines that are broken on purpose."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np

from taciturn.engines import PartitionedSource, answer_of


class ArrayReader:
    """Partitions of arrays, and a list of the reads: the partition, and the columns that were asked for.

    A reader that people use holds no records; this one does, for tests are quicker so.
    """

    def __init__(self, X, y=None, keys=None, *, edges, names=None):
        self.X, self.y, self.keys, self.edges, self.names = X, y, keys, list(edges), names
        self.n_rows, self.n_features = X.shape
        self.offsets = np.array(self.edges[:-1], dtype=np.int64)
        self.reads = []

    def read(self, index, columns):
        self.reads.append((index, None if columns is None else tuple(columns.tolist())))
        rows = slice(self.edges[index], self.edges[index + 1])
        X = self.X[rows] if columns is None else self.X[rows][:, columns]
        return X, None if self.y is None else self.y[rows], None if self.keys is None else self.keys[rows]


class FileReader:
    """Partitions in files of numpy; the process of every read is noted in the folder."""

    def __init__(self, folder, X, y, edges):
        self.folder, self.edges, self.names = str(folder), list(edges), None
        self.n_rows, self.n_features = X.shape
        self.offsets = np.array(self.edges[:-1], dtype=np.int64)
        for index, (start, stop) in enumerate(pairwise(edges)):
            np.savez(Path(folder) / f"{index}.npz", X=X[start:stop], y=y[start:stop])

    def read(self, index, columns):
        with (Path(self.folder) / "reads.txt").open("a") as reads:
            reads.write(f"{index} {os.getpid()}\n")
        with np.load(Path(self.folder) / f"{index}.npz") as part:
            return part["X"] if columns is None else part["X"][:, columns], part["y"], None

    def reads(self):
        """The partitions and the processes of all reads."""
        lines = (Path(self.folder) / "reads.txt").read_text().splitlines()
        return [tuple(map(int, line.split())) for line in lines]


def equal_edges(n_rows, n_partitions):
    return np.linspace(0, n_rows, n_partitions + 1).astype(int).tolist()


class PlainSource(PartitionedSource):
    """An engine in a line: every block is made anew for every sum."""

    def each(self, function):
        return [answer_of(function, partition.load()) for partition in self.partitions]


class LosesPartition(PlainSource):
    def each(self, function):
        return list(super().each(function))[: max(1, len(self.partitions) - 1)]

    def _accepted(self, answers):
        # The base class would notice.
        return iter(answers)


class CountsTwice(LosesPartition):
    def each(self, function):
        answers = PlainSource.each(self, function)
        return [*answers, answers[0]]


class AddsFloats(LosesPartition):
    """Adds in single precision, which keeps 24 bits of a sum."""

    def total(self, task):
        sums = sum(answer.astype(np.float32) for answer in PlainSource.each(self, task))
        return np.rint(sums).astype(np.int64)


BROKEN = (LosesPartition, CountsTwice, AddsFloats)
