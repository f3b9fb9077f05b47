"""All slopes in one evaluation are those of one evaluation each."""

import math

import numpy as np
from tests.predict.making_tables import table_of

from broadgauge.predict.calibration.factors import factor_keys, step_s
from broadgauge.predict.calibration.slopes import Slopes
from broadgauge.predict.facts.knowledge import Factor, default_knowledge
from broadgauge.predict.fitting.robust import by_differences


def test_they_are_those_of_one_factor_after_the_other() -> None:
    rows = (
        {"nodes": "1", "data_parallel": "8", "transport": "none"},
        {"strategy": "fsdp", "zero_stage": "3", "transport": "tcp", "node_gbps": "25"},
        {"gpu": "a100-sxm-80gb", "framework": "megatron-lm", "strategy": "megatron"},
    )
    cases = [row.case for row in table_of(*rows).rows]
    keys = list(dict.fromkeys(key for case in cases for key in factor_keys(case)))
    known = default_knowledge().with_factors(
        {keys[0]: Factor(value_ratio=3.0, log_sd=0.1, is_identified=True)}
    )
    x = np.linspace(-0.3, 0.4, len(keys))

    def log_s(values: np.ndarray) -> np.ndarray:
        factors = {
            key: Factor(value_ratio=math.exp(value), log_sd=0.0, is_identified=False)
            for key, value in zip(keys, values, strict=True)
        }
        return np.log(step_s(cases, known.with_factors(factors)))

    expected, expected_slopes = by_differences(log_s)(x)
    found, slopes = Slopes(cases, keys, [factor_keys(case) for case in cases], known).at(x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(slopes, expected_slopes, atol=1e-9)
    assert np.abs(slopes).max() > 0.1
