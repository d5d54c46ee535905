"""Tables that are large in memory and small on disk, made on the fly in bounded memory."""

import numpy as np
import pyarrow as pa
from pyarrow import parquet

LEVELS = np.array([0.0, -1.0, -0.5, 0.5, 1.0])
"""The cells. Parquet stores a list of distinct ones and their places, which take little room."""


def write_large_parquet(path, n_rows, n_columns, *, group_rows=250_000, density=0.05, n_relevant=5, seed=0):
    """Write a table of doubles "x0", "x1" and so on, and a target "y" of zeros and ones.

    A share ``density`` of the cells is not zero; all are within [-1, 1]. The log-odds of the target are 3 times the
    alternating sum of the first ``n_relevant`` columns. Row groups are cyclic shifts of one another: each has the law
    of the first, takes little time to make and is no copy.
    """
    rng = np.random.default_rng(seed)
    shape = min(group_rows, n_rows)
    weights = [1.0 - density, *[density / 4] * 4]
    places = [rng.choice(5, shape, p=weights).astype(np.int8) for _ in range(n_columns)]
    odds = sum(3.0 * (-1) ** j * LEVELS[places[j]] for j in range(n_relevant))
    target = (rng.random(shape) < 1.0 / (1.0 + np.exp(-odds))).astype(np.float64)
    levels = pa.array(LEVELS)
    names = [*(f"x{j}" for j in range(n_columns)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    columns = [pa.DictionaryArray.from_arrays(pa.array(column), levels) for column in places]
    columns.append(pa.DictionaryArray.from_arrays(pa.array(target.astype(np.int8)), pa.array([0.0, 1.0])))
    group = pa.Table.from_arrays(columns, names=names)
    with parquet.ParquetWriter(path, group.schema, compression="zstd", store_schema=False) as writer:
        for start in range(0, n_rows, shape):
            turn = start // shape * 9973 % shape
            turned = pa.concat_tables([group.slice(turn), group.slice(0, turn)]).combine_chunks()
            writer.write_table(turned.slice(0, n_rows - start), row_group_size=shape)
    assert parquet.read_schema(path).equals(schema)
