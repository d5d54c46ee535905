"""Tables in partitions, which answer with exact integer sums over their records."""

from taciturn.sources.arrays import ArraySource
from taciturn.sources.base import Source, Task, add_partitions, check_task
from taciturn.sources.blocks import Block

__all__ = ["ArraySource", "Block", "Source", "Task", "add_partitions", "check_task"]
