"""Holds on two GPUs: DDP, FSDP and HSDP over NCCL train as one GPU does, with GPT-2's and Llama's
blocks, compiled and not, and say what the network costs them."""

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
    *(Way(s, gradients=g) for s in ("ddp", "fsdp") for g in ("float32", "bfloat16")),
    Way("hsdp"),
    *(Way(s, model="llama") for s in ("ddp", "fsdp", "hsdp")),
    *(Way(s, model="llama", is_compiled=True) for s in ("ddp", "fsdp")),
]
"""HSDP on one node of two GPUs has one replica; several need four GPUs."""
AGAIN = Way("ddp", is_again=True)
WAYS = [*with_alone(TOGETHER), Way("fsdp", micro=4), AGAIN]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train(tmp_path_factory.mktemp("training"), (way.workload for way in WAYS))


@pytest.mark.parametrize("way", TOGETHER, ids=lambda way: way.name)
def test_two_gpus_train_as_one_on_the_same_global_batch(trained: Trained, way: Way) -> None:
    check_trains_as_one(trained, way)


def test_a_compiled_model_trains_as_it_does_uncompiled(trained: Trained) -> None:
    plain, compiled = (
        trained[Way(model="llama", micro=4, is_compiled=is_compiled).name, "1x1"]
        for is_compiled in (False, True)
    )
    assert compiled["losses"] == pytest.approx(plain["losses"], abs=1e-3)
    assert compiled["metrics"]["compile_s"] > 0
    assert "compile_s" not in plain["metrics"]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.name)
def test_the_network_cost_is_measured(trained: Trained, way: Way) -> None:
    check_cost_is_measured(trained, way)


@pytest.mark.parametrize("micro", [2, 4])
def test_fsdp_keeps_half_of_the_state(trained: Trained, micro: int) -> None:
    """Of 101 million parameters 1.6 GB of state; activations are the same. The trials follow each
    other in one launch: nothing of the one before may be left."""
    state_bytes = 16 * 8 * 12 * 1024**2
    ddp, fsdp = (
        trained[Way(strategy, micro=micro).name, "1x2"]["metrics"]["peak_memory_bytes"]
        for strategy in ("ddp", "fsdp")
    )
    assert ddp - fsdp > 0.2 * state_bytes


def test_a_trial_holds_nothing_of_those_before(trained: Trained) -> None:
    """NCCL's group kept DDP's gradients, 0.4 GB here, until the trainer waited for them."""
    first, later = (
        trained[way.name, "1x2"]["metrics"]["peak_memory_bytes"] for way in (Way("ddp"), AGAIN)
    )
    assert later == pytest.approx(first, rel=0.01)
