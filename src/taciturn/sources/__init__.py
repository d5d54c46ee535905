"""Tables in partitions, which answer with exact integer sums over their records."""

from typing import TYPE_CHECKING

from taciturn.core.lazy import lazy_names
from taciturn.sources.arrays import ArraySource
from taciturn.sources.blocks import BlockBuilder, Partition, PartitionReader, answer_of
from taciturn.sources.interface import Block, DivisibleSource, Source, Task, add_partitions, check_task
from taciturn.sources.mapping import partitionwise
from taciturn.sources.open_tables import (
    OpenTable,
    PartitionedTable,
    TablePersons,
    open_arguments,
    stated_classes,
    target_has_truth_values,
    target_labels,
)
from taciturn.sources.partitions import PartitionedSource, PartitionFacts
from taciturn.sources.streamed import StreamedSource

if TYPE_CHECKING:
    from taciturn.sources.dask_source import DaskSource
    from taciturn.sources.files import FileTable, open_table

__all__ = [
    "ArraySource",
    "Block",
    "BlockBuilder",
    "DaskSource",
    "DivisibleSource",
    "FileTable",
    "OpenTable",
    "Partition",
    "PartitionFacts",
    "PartitionReader",
    "PartitionedSource",
    "PartitionedTable",
    "Source",
    "StreamedSource",
    "TablePersons",
    "Task",
    "add_partitions",
    "answer_of",
    "check_task",
    "open_arguments",
    "open_table",
    "partitionwise",
    "stated_classes",
    "target_has_truth_values",
    "target_labels",
]

__getattr__ = lazy_names(__name__, {"DaskSource": "dask_source", "FileTable": "files", "open_table": "files"})
