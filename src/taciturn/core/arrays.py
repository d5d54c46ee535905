"""Types of arrays, named once for the whole package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["AnyArray", "BoolArray", "FloatArray", "IndexArray", "Int32Array", "IntArray", "NumberArray", "WordArray"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]
IndexArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
WordArray = NDArray[np.uint64]
NumberArray = FloatArray | IntArray
AnyArray = NDArray[np.generic]
