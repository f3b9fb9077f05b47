"""Is attention the same by every name, and refused where there is none of that name?"""

import pytest

torch = pytest.importorskip("torch")

from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from broadgauge.probes.training import attention  # noqa: E402
from broadgauge.probes.training.attention import attend, refuse_missing_flash  # noqa: E402
from broadgauge.probes.trial import RefusedError  # noqa: E402

from .test_recomputing import Counting  # noqa: E402
from .training_launch import LLAMA, TINY  # noqa: E402
from .training_tasks import losses, trainer_of  # noqa: E402

pytestmark = pytest.mark.measuring


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("way", ["flash", "eager"])
def test_every_way_gives_the_same(way, kv_heads):
    """Values and gradients; no token sees one that follows."""
    draw = torch.Generator().manual_seed(0)
    found = []
    query = torch.randn(2, 4, 8, 16, generator=draw, requires_grad=True)
    key, value = (torch.randn(2, kv_heads, 8, 16, generator=draw) for _ in range(2))
    for each in ("sdpa", way):
        query.grad = None
        mixed = attend(query, key, value, each)
        mixed.square().sum().backward()
        found.append((mixed.detach(), query.grad))
    for expected, got in zip(*found, strict=True):
        assert torch.allclose(expected, got, atol=1e-5)
    changed = value.clone()
    changed[:, :, 5] += 1
    unseen = attend(query, key, changed, way)[:, :, :5]
    assert torch.equal(unseen, attend(query, key, value, way)[:, :, :5])


@pytest.mark.parametrize("model", [TINY, LLAMA])
def test_trainings_by_every_name_are_one(model):
    plain = losses(model=model)
    assert losses(model=model, attention="eager") == pytest.approx(plain, abs=1e-5)
    assert losses(model=model, attention="flash") == pytest.approx(plain, abs=1e-5)


def operations(way):
    trainer = trainer_of(model=LLAMA, attention=way)
    with Counting() as counting:
        trainer.step(0)
    return counting.seen


def test_a_name_is_what_runs():
    fused = "_scaled_dot_product_flash_attention_for_cpu"
    eager, flash = operations("eager"), operations("flash")
    assert flash[fused] == LLAMA.layers
    assert eager[fused] == 0
    assert eager["_softmax"] == LLAMA.layers


def test_the_eager_way_multiplies_what_the_formula_counts():
    query = torch.zeros(1, 2, 8, 4)
    with FlopCounterMode(display=False) as counter:
        attend(query, query, query, "eager")
    assert counter.get_total_flops() == 2 * 2 * (2 * 8 * 8 * 4)


def test_flash_attention_that_is_missing_is_said_before_the_training_starts(monkeypatch):
    refuse_missing_flash(64, torch.float32, torch.device("cpu"))

    def missing(*_, **__):
        raise RuntimeError("No available kernel. Aborting execution.")

    monkeypatch.setattr(attention.functional, "scaled_dot_product_attention", missing)
    with pytest.raises(RefusedError, match="no flash attention of float32 heads 16 wide") as told:
        trainer_of(attention="flash")
    assert "`attention: sdpa`" in str(told.value)
