"""How many bytes has one weight, and one gradient, on its way between ranks?"""

import numpy as np

from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.facts.columns import Columns

INT4_BYTES = 0.5 + 4.0 / 64 / 4
"""With a scale of 8 bits for 64 weights. Source: Dettmers et al. 2023 (arXiv 2305.14314), 3."""


def weight_bytes(columns: Columns) -> Times:
    """Of one gathered weight."""
    half = np.where(columns.is_fp32 | (columns.element_bytes > 2), 4.0, 2.0)
    return np.where(columns.is_quantized, INT4_BYTES, half)


def gradient_bytes(columns: Columns) -> Times:
    """Of one reduced gradient: what the case says, else the framework's habit."""
    of_frameworks = [
        np.nan if framework.gradient_bytes is None else float(framework.gradient_bytes)
        for framework in columns.frameworks
    ]
    habit = np.array(of_frameworks)[columns.framework_index]
    habit = np.where(np.isnan(habit) | (columns.element_bytes > 2), columns.element_bytes, habit)
    said = np.array([case.gradient_bytes for case in columns.cases], dtype=np.float64)
    return np.where(np.isnan(said), habit, said)
