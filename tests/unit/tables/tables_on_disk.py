"""A table of patients in every format, and its bounds."""

import gzip

import numpy as np
import pyarrow as pa
from pyarrow import csv, feather, parquet

from taciturn import BoundedScaler
from taciturn.tables import TableBounds, TableSchema

BOUNDS = """
[target]
name = "ill"
classes = ["no", "yes"]
[columns.age]
type = "number"
lower = 0
upper = 110
[columns."body mass"]
type = "number"
lower = 0.1
upper = 0.7
[columns.smoker]
type = "boolean"
[columns."region.é"]
type = "category"
categories = ["north", "south", "NA", "a\\nb"]
[columns.born]
type = "ignore"
"""
N = 240
RNG = np.random.default_rng(0)
AGE = RNG.integers(-10, 130, N)
MASS = RNG.normal(0.4, 0.3, N)
SMOKER = RNG.random(N) < 0.4
REGION = RNG.choice(["north", "south", "moon", "NA", "a\nb"], N)
ILL = RNG.choice(["yes", "no", "perhaps"], N)
TABLE = pa.table(
    {
        "born": pa.array(np.arange(N).astype("datetime64[D]")),
        "age": AGE,
        "ill": ILL,
        "body mass": MASS,
        "smoker": SMOKER,
        "region.é": REGION,
    }
)


def bounds(text=BOUNDS):
    return TableBounds.from_toml(text)


def expected_features():
    """By other means: the scaler for numbers, comparisons for the rest."""
    numbers = np.column_stack((AGE, MASS)).astype(float)
    scaled = BoundedScaler(lower=[0, 0.1], upper=[110, 0.7]).fit_transform(numbers)
    listed = [(category == REGION).astype(float) for category in ("north", "south", "NA", "a\nb")]
    return np.column_stack((scaled, SMOKER, *listed))


def write(folder, name, table=TABLE, *, rows=70):
    path = folder / name
    if ".parquet" in name or ".pq" in name:
        parquet.write_table(table, path, row_group_size=rows)
    elif name.endswith(".ipc"):
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
    elif name.endswith((".feather", ".arrow")):
        compression = "lz4" if name.endswith("r") else "uncompressed"
        feather.write_feather(table, str(path), compression=compression, chunksize=rows)
    else:
        options = csv.WriteOptions(delimiter="\t" if ".tsv" in name else ",")
        text = pa.BufferOutputStream()
        csv.write_csv(table, text, options)
        content = text.getvalue().to_pybytes()
        if "strange" in name:
            # A byte order mark, other line ends outside of cells, and blank lines.
            lines = content.replace(b'"a\nb"', b'"a\0b"').replace(b"\n", b"\r\n\r\n")
            content = b"\xef\xbb\xbf" + lines.replace(b"\0", b"\n")
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


FILES = [
    "a.csv", "a.tsv", "a.csv.gz", "A.TSV.GZ", "strange.csv", "a.parquet", "a.b.pq", "a.feather", "a.arrow", "a.ipc",
]  # fmt: skip


def read_schema_of(table):
    kinds = ("date", "number", "category", "number", "boolean", "category")
    return TableSchema(tuple(table.column_names), kinds)
