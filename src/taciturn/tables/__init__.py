"""Tables on disk and in memory, public facts about their columns, and their encoding as features of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taciturn.core.lazy import lazy_names

if TYPE_CHECKING:
    from taciturn.tables.bounds import TableBounds
    from taciturn.tables.bounds_toml import bounds_template
    from taciturn.tables.columns import Column, Target
    from taciturn.tables.encoder import TableEncoder
    from taciturn.tables.number_partitions import NumberPartitions
    from taciturn.tables.partitions import TablePartitions, open_partitions
    from taciturn.tables.reading import (
        read_batches,
        read_person_keys,
        read_schema,
        read_table,
        read_unbounded_table,
    )
    from taciturn.tables.schema import TableSchema

# Loaded on first use: a template needs neither scikit-learn nor scipy.
_HOMES = {
    "Column": "columns",
    "NumberPartitions": "number_partitions",
    "TableBounds": "bounds",
    "TableEncoder": "encoder",
    "TablePartitions": "partitions",
    "TableSchema": "schema",
    "Target": "columns",
    "bounds_template": "bounds_toml",
    "open_partitions": "partitions",
    "read_batches": "reading",
    "read_person_keys": "reading",
    "read_schema": "reading",
    "read_table": "reading",
    "read_unbounded_table": "reading",
}

__all__ = [
    "Column",
    "NumberPartitions",
    "TableBounds",
    "TableEncoder",
    "TablePartitions",
    "TableSchema",
    "Target",
    "bounds_template",
    "open_partitions",
    "read_batches",
    "read_person_keys",
    "read_schema",
    "read_table",
    "read_unbounded_table",
]

__getattr__ = lazy_names(__name__, _HOMES)
