"""Tables on disk and in memory, public facts about their columns, and their encoding as features of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taciturn.core.lazy import lazy_names

if TYPE_CHECKING:
    from taciturn.tables.bounds import TableBounds
    from taciturn.tables.columns import Column, Target
    from taciturn.tables.detection import TableProposal, detect_table
    from taciturn.tables.encoder import TableEncoder
    from taciturn.tables.layouts import TableLayout
    from taciturn.tables.missing import Fill
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
    from taciturn.tables.template import bounds_template

# Loaded on first use: a template needs neither scikit-learn nor scipy.
_HOMES = {
    "Column": "columns",
    "Fill": "missing",
    "NumberPartitions": "number_partitions",
    "TableBounds": "bounds",
    "TableEncoder": "encoder",
    "TableLayout": "layouts",
    "TablePartitions": "partitions",
    "TableProposal": "detection",
    "TableSchema": "schema",
    "Target": "columns",
    "bounds_template": "template",
    "detect_table": "detection",
    "open_partitions": "partitions",
    "read_batches": "reading",
    "read_person_keys": "reading",
    "read_schema": "reading",
    "read_table": "reading",
    "read_unbounded_table": "reading",
}

__all__ = [
    "Column",
    "Fill",
    "NumberPartitions",
    "TableBounds",
    "TableEncoder",
    "TableLayout",
    "TablePartitions",
    "TableProposal",
    "TableSchema",
    "Target",
    "bounds_template",
    "detect_table",
    "open_partitions",
    "read_batches",
    "read_person_keys",
    "read_schema",
    "read_table",
    "read_unbounded_table",
]

__getattr__ = lazy_names(__name__, _HOMES)
