"""Holds on two GPUs: LoRA, mixtures of experts and every way to keep less train as one GPU does."""

import pytest

from .training_ways import (
    Trained,
    Way,
    check_cost_is_measured,
    check_trains_as_one,
    train,
    with_alone,
)

pytestmark = [pytest.mark.gpu, pytest.mark.measuring, pytest.mark.timeout(900)]

TOGETHER = [
    *(Way(s, model="llama", trains="lora") for s in ("ddp", "fsdp")),
    Way("fsdp", model="llama", trains="lora", keeps="offload"),
    *(Way("fsdp", model="llama", keeps=keeps) for keeps in ("", "selective", "full", "offload")),
    *(Way(model="llama", trains="bfloat16", keeps=keeps) for keeps in ("flash", "eager")),
    *(Way(s, model="moe") for s in ("ddp", "fsdp")),
    *(Way("fsdp", model="moe", trains="bfloat16", is_compiled=c) for c in (False, True)),
    Way("fsdp", model="moe", trains="lora", keeps="selective"),
]
WAYS = with_alone(TOGETHER)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(tmp_path_factory.mktemp("training"), (way.workload for way in WAYS))


@pytest.mark.parametrize("way", TOGETHER, ids=lambda way: way.name)
def test_two_gpus_train_as_one_on_the_same_global_batch(trained: Trained, way: Way) -> None:
    check_trains_as_one(trained, way)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_network_cost_is_measured(trained: Trained, way: Way) -> None:
    check_cost_is_measured(trained, way)


def test_what_is_computed_again_or_offloaded_is_not_on_the_gpu(trained: Trained) -> None:
    """Of 101 million parameters 1.6 GB of state, half of it on each GPU with FSDP."""
    state_bytes = 16 * 8 * 12 * 1024**2
    whole, selective, full, offload = (
        trained[Way("fsdp", model="llama", keeps=keeps).name, "1x2"]["metrics"]["peak_memory_bytes"]
        for keeps in ("", "selective", "full", "offload")
    )
    assert full < selective < whole
    assert whole - offload > 0.3 * state_bytes
