"""Short names for the arrays that most files deal with: floats of double or single precision, whole numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Floats32", "Integers"]

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Integers = NDArray[np.int64]
