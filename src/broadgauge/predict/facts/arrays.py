"""What are many cases computed as? Arrays with one entry a case, and nothing of a single one."""

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]
"""`float64[cases]`: seconds, and what is computed with them."""
Flags = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
ROUNDING_RATIO = 1e-9
"""Of figures that are the same, added up in another order or in other units."""
