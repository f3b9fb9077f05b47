"""Are LoRA's adapters trained and nothing else, and do they count what they cost?"""

import math

import pytest

torch = pytest.importorskip("torch")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from broadgauge.messages.adapters import model_flops_per_token, trained_parameters  # noqa: E402
from broadgauge.probes.training.adapters import frozen_checksum  # noqa: E402
from broadgauge.probes.training.building import build_model  # noqa: E402
from broadgauge.probes.training.weights import draw_weights  # noqa: E402
from broadgauge.specs.workloads.lora import Lora  # noqa: E402

from .training_launch import LLAMA, TINY  # noqa: E402
from .training_tasks import losses, train_task, trainer_of  # noqa: E402

pytestmark = pytest.mark.measuring
WAYS = [
    {"model": LLAMA, "lora": Lora(rank=4)},
    {"model": LLAMA, "lora": Lora(rank=2, targets=("query", "value"))},
    {"model": TINY, "lora": Lora(rank=4, alpha=8)},
    {"model": TINY, "lora": Lora(rank=1, targets=("query_key_value", "down"))},
]


def built(**keys):
    task = train_task(**keys)
    model = build_model(task).to_empty(device="cpu")
    draw_weights(model, task.model, 0, torch.device("cpu"))
    return model, task


@pytest.mark.parametrize("way", WAYS)
def test_what_is_trained_is_what_is_counted(way):
    model, task = built(**way)
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    assert sum(p.numel() for _, p in trained) == trained_parameters(task.model, task.adapters)
    whole = sum(p.numel() for p in model.parameters() if not p.requires_grad)
    assert whole == task.model.parameters
    layers = {name.split(".")[-3] for name, _ in trained}
    assert layers == set(task.adapters.targets)


@pytest.mark.parametrize("way", WAYS)
def test_training_starts_at_the_frozen_model(way):
    """B is zero, and what a layer adds is alpha / rank times B·A·x."""
    model, task = built(**way)
    tokens = torch.randint(256, (2, 17), generator=torch.Generator().manual_seed(0))
    adapted = [m for m in model.modules() if hasattr(m, "narrowing")]
    before = model(tokens[:, :-1], tokens[:, 1:])
    for each in adapted:
        assert not each.widening.weight.any()
        assert each.narrowing.weight.std().item() == pytest.approx(
            1 / math.sqrt(3 * each.narrowing.in_features), rel=0.5
        )
        x = torch.randn(3, each.narrowing.in_features)
        plain = torch.nn.functional.linear(x, each.weight, each.bias)
        assert torch.equal(each(x), plain)
        with torch.no_grad():
            each.widening.weight.fill_(0.01)
        product = each.widening.weight @ each.narrowing.weight
        added = x @ product.T * (task.adapters.alpha / task.adapters.rank)
        assert torch.allclose(each(x), plain + added, atol=1e-5)
    assert model(tokens[:, :-1], tokens[:, 1:]) != before


@pytest.mark.parametrize("way", WAYS)
def test_flops_are_those_that_torch_counts(way):
    """But for the gradient of the first block's input, which nobody needs where what is before it
    is frozen: it is counted, as in every other block."""
    model, task = built(**way)
    shape = task.model
    tokens = torch.zeros(1, shape.seq_len, dtype=torch.long)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(tokens, tokens).backward()
    products = sum(i * o for i, o in shape.linears.values())
    others = shape.multiplying_parameters - shape.layers * products - shape.vocabulary * 32
    entries = ("query", "key", "value") if shape.kind == "llama" else ("query_key_value",)
    unneeded = 2 * sum(math.prod(shape.linears[name]) for name in entries)
    unneeded += 2 * sum(
        task.adapters.rank * shape.linears[name][0]
        for name in entries
        if name in task.adapters.targets
    )
    per_token = model_flops_per_token(shape, task.adapters) - 4 * others - unneeded
    assert counter.get_total_flops() == pytest.approx(per_token * shape.seq_len, rel=0.01)


def test_frozen_weights_stay_in_the_arithmetics_type_and_a_changed_one_is_seen():
    trainer = trainer_of(lora=Lora(rank=2), dtype="bfloat16", learning_rate=0.1)
    types = {p.requires_grad: p.dtype for p in trainer.model.parameters()}
    assert types == {True: torch.float32, False: torch.bfloat16}
    trainer.timed_steps(range(3))
    assert trainer.is_frozen_unchanged()
    with torch.no_grad():
        trainer.model.layers[1].down.weight[0, 0] += 0.01
    assert trainer.is_frozen_unchanged() is False
    assert trainer_of().is_frozen_unchanged() is None
    assert frozen_checksum(trainer_of().model) == 0


def test_adapters_learn_and_hold_no_state_of_what_is_frozen():
    trainer = trainer_of(model=LLAMA, lora=Lora(rank=8), learning_rate=0.02, batch_per_rank=8)
    _, found = trainer.timed_steps(range(40))
    assert sum(found[-5:]) / 5 < found[0] - 0.1
    with_state = {id(p) for p in trainer.optimizer.state}
    assert with_state == {id(p) for p in trainer.model.parameters() if p.requires_grad}
    assert trainer.gradient_bytes == 4 * trainer.num_trained


def test_steps_without_communication_leave_no_trace_of_adapters():
    trainer = trainer_of(model=LLAMA, lora=Lora(rank=2))
    before = trainer.parameter_checksum()
    with trainer.without_communication():
        trainer.timed_steps(range(2))
        assert trainer.parameter_checksum() != before
    assert trainer.parameter_checksum() == before
    assert losses(model=LLAMA, lora=Lora(rank=2)) != losses(model=LLAMA)


def test_dropout_of_a_step_that_is_repeated_is_the_same():
    """Also of one that is computed again for its backward pass."""
    keys = {"model": LLAMA, "lora": Lora(rank=2, dropout_ratio=0.5)}
    assert losses(**keys) == losses(**keys)
    assert losses(**keys, activation_checkpointing="full") == losses(**keys)
    assert losses(**keys) != losses(**keys | {"lora": Lora(rank=2)})
