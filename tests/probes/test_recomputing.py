"""Are blocks that keep less those that were written, and what do they keep?"""

import functools
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from broadgauge.probes.training.building import build_model  # noqa: E402
from broadgauge.probes.training.weights import draw_weights  # noqa: E402
from broadgauge.specs.workloads.lora import Lora  # noqa: E402

from .training_launch import LLAMA, TINY  # noqa: E402
from .training_tasks import losses, train_task  # noqa: E402

pytestmark = pytest.mark.measuring
ADAPTED = {"model": LLAMA, "lora": Lora(rank=2)}
MODELS = [{"model": TINY}, {"model": LLAMA}, ADAPTED]
TOKENS = torch.randint(256, (2, 17), generator=torch.Generator().manual_seed(0))


def built(**keys):
    task = train_task(**keys)
    model = build_model(task).to_empty(device="cpu")
    draw_weights(model, task.model, 0, torch.device("cpu"))
    return model


def kept_bytes(**keys):
    """What autograd keeps of a forward pass, weights left out; and the gradients, which must not
    depend on it."""
    model = built(**keys)
    weights = {parameter.data_ptr() for parameter in model.parameters()}
    sizes: dict[int, int] = {}

    def note(tensor):
        if tensor.data_ptr() not in weights:
            sizes[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda kept: kept):
        loss = model(TOKENS[:, :-1], TOKENS[:, 1:])
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.requires_grad]
    return sum(sizes.values()), torch.cat([each.flatten() for each in gradients])


@pytest.mark.parametrize("model", MODELS)
def test_what_is_computed_again_has_the_same_gradients(model):
    _, whole = kept_bytes(**model)
    for kept in ("selective", "full"):
        _, again = kept_bytes(**model, activation_checkpointing=kept)
        assert torch.equal(whole, again), kept


@pytest.mark.parametrize("model", MODELS)
def test_a_block_that_is_computed_again_keeps_its_inputs(model):
    """Each further layer keeps much without; with it little but its input."""
    per_layer = {}
    for kept in ("none", "full"):
        few, many = (
            kept_bytes(
                **model | {"model": model["model"].model_copy(update={"layers": layers})},
                activation_checkpointing=kept,
            )[0]
            for layers in (2, 6)
        )
        per_layer[kept] = (many - few) / 4
    input_bytes = 4 * 2 * 16 * model["model"].hidden
    assert per_layer["none"] > 8 * input_bytes
    assert per_layer["full"] <= 2 * input_bytes


class Counting(TorchDispatchMode):
    """Operations by name."""

    def __init__(self):
        super().__init__()
        self.seen = Counter()

    def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
        self.seen[operation.overloadpacket.__name__] += 1
        return operation(*arguments, **(keywords or {}))


def backward_operations(kept):
    loss = built(model=LLAMA, activation_checkpointing=kept)(TOKENS[:, :-1], TOKENS[:, 1:])
    with Counting() as counting:
        loss.backward()
    return counting.seen


def test_selective_multiplies_nothing_again():
    none, selective, full = map(backward_operations, ("none", "selective", "full"))
    blocks, products = LLAMA.layers, 7
    assert full["mm"] == none["mm"] + blocks * (products - 1)  # the last one's result is not needed
    assert selective["mm"] == none["mm"]
    attention = "_scaled_dot_product_flash_attention_for_cpu"
    assert full[attention] - none[attention] == blocks
    assert selective[attention] == none[attention]
    assert selective["silu"] - none["silu"] == blocks


@pytest.mark.parametrize(
    ("model", "kept", "attention", "graphs"),
    [
        ({}, "full", "eager", 2),
        ({"model": LLAMA}, "selective", "flash", 2),
        (ADAPTED, "none", "sdpa", 3),
    ],
)
def test_blocks_are_graphs_without_breaks(model, kept, attention, graphs, monkeypatch):
    """Captured whole and run as they are captured: what a compiler is given. One graph for both
    blocks and one for the head; with frozen embeddings the first block's input needs no gradient,
    so that it has a graph of its own."""
    plain = losses(**model)
    captured = []

    def count(graph, inputs):
        captured.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=count))
    compiled = losses(**model, activation_checkpointing=kept, attention=attention, compile=True)
    assert compiled == pytest.approx(plain, abs=1e-5)
    assert len(captured) == graphs
