"""Is a pipeline as slow as its longest stage?"""

from dataclasses import replace

import pytest
from tests.predict.making_cases import SMALL, case

from broadgauge.predict.case import TrainingCase
from broadgauge.predict.predictor import predict


def staged(layers: int, chunks: int = 1) -> TrainingCase:
    """So many equal layers on four stages of one node."""
    params = layers * 12.0 * 1024**2 + 32000.0 * 1024
    return case(
        model=replace(SMALL, layers=layers, params=params, active_params=params),
        strategy="megatron",
        nodes=1,
        data_parallel=2,
        pipeline_parallel=4,
        virtual_stages=chunks,
        micro_batch=32,
        global_batch=2 * 32 * 8,
    )


@pytest.mark.parametrize("layers", [13, 14, 15])
def test_stages_of_unequal_length_take_as_long_as_the_longest(layers) -> None:
    """Four layers on one of them: what the others lack, they wait."""
    shorter, uneven, even = predict([staged(12), staged(layers), staged(16)])
    assert uneven.parts.compute_s == pytest.approx(even.parts.compute_s)
    assert uneven.parts.compute_s > 1.2 * shorter.parts.compute_s
    assert uneven.memory.activations_bytes == pytest.approx(even.memory.activations_bytes)
    assert uneven.memory.parameters_bytes == pytest.approx(even.memory.parameters_bytes)


def test_parts_of_an_interleaved_stage_share_its_layers() -> None:
    """Eight parts, of one or two layers each: a stage has no more than four in all."""
    uneven, even = predict([staged(13, chunks=2), staged(16, chunks=2)])
    assert uneven.parts.compute_s == pytest.approx(even.parts.compute_s)
