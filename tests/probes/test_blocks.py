"""Are compiled and checkpointed blocks those that were written, and what is kept of them?"""

import functools

import pytest

torch = pytest.importorskip("torch")

from tests.probes.training_tasks import train_task  # noqa: E402

from broadgauge.probes.calibration.steps import ALONE  # noqa: E402
from broadgauge.probes.devices import CpuDevice  # noqa: E402
from broadgauge.probes.training.building import build_model  # noqa: E402
from broadgauge.probes.training.compiling import compiled_s  # noqa: E402
from broadgauge.probes.training.sources import read_text  # noqa: E402
from broadgauge.probes.training.trainer import Trainer  # noqa: E402
from broadgauge.probes.training.weights import draw_weights  # noqa: E402
from broadgauge.probes.trial import RefusedError  # noqa: E402
from broadgauge.specs.workload import LlamaModel, Lora  # noqa: E402

pytestmark = [pytest.mark.measuring, pytest.mark.shares_cores]
LLAMA = LlamaModel(kind="llama", layers=2, hidden=32, heads=4, kv_heads=2, ffn=48, seq_len=16)
MODELS = [{}, {"model": LLAMA}, {"model": LLAMA, "lora": Lora(rank=2)}]
TOKENS = torch.randint(256, (2, 17), generator=torch.Generator().manual_seed(0))


def saved_bytes(**keys):
    """What autograd keeps of a forward pass, weights left out; and the gradients, which must not
    depend on it."""
    task = train_task(**keys)
    model = build_model(task).to_empty(device="cpu")
    draw_weights(model, task.model, 0, torch.device("cpu"))
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
    _, whole = saved_bytes(**model)
    for kept in ("selective", "full"):
        _, again = saved_bytes(**model, activation_checkpointing=kept)
        assert torch.equal(whole, again), kept


@pytest.mark.parametrize("model", MODELS)
def test_a_checkpointed_block_keeps_its_inputs(model):
    """Twice the layers keep twice as much without; with it little but an input each."""
    per_layer = {}
    shape = train_task(**model).model
    for kept in ("none", "full"):
        few, many = (
            saved_bytes(
                **model | {"model": shape_of(model, layers), "activation_checkpointing": kept}
            )[0]
            for layers in (2, 6)
        )
        per_layer[kept] = (many - few) / 4
    input_bytes = 4 * 2 * 16 * shape.hidden
    assert per_layer["none"] > 8 * input_bytes
    assert per_layer["full"] <= 2 * input_bytes


def shape_of(model, layers):
    given = model.get("model")
    size = {"layers": layers, "hidden": 32, "heads": 2, "seq_len": 16}
    return given.model_copy(update={"layers": layers}) if given else size


def recomputed(kept):
    """Which operations does a backward pass run that a plain one does not, by name?"""
    from collections import Counter

    from torch.utils._python_dispatch import TorchDispatchMode

    class Counting(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = Counter()

        def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
            self.seen[operation.overloadpacket.__name__] += 1
            return operation(*arguments, **(keywords or {}))

    task = train_task(model=LLAMA, activation_checkpointing=kept)
    model = build_model(task).to_empty(device="cpu")
    draw_weights(model, task.model, 0, torch.device("cpu"))
    loss = model(TOKENS[:, :-1], TOKENS[:, 1:])
    with Counting() as counting:
        loss.backward()
    return counting.seen


def test_selective_multiplies_nothing_again():
    none, selective, full = map(recomputed, ("none", "selective", "full"))
    blocks, products = LLAMA.layers, 7
    assert full["mm"] == none["mm"] + blocks * (products - 1)  # the last one's result is not needed
    assert selective["mm"] == none["mm"]
    attention = "_scaled_dot_product_flash_attention_for_cpu"
    assert full[attention] - none[attention] == blocks
    assert selective[attention] == none[attention]
    assert selective["silu"] - none["silu"] == blocks


def losses(monkeypatch=None, **keys):
    task = train_task(**keys)
    trainer = Trainer(task, 0, ALONE, CpuDevice(), read_text(task.text))
    return trainer.timed_steps(range(4)).losses


@pytest.mark.parametrize(
    ("model", "kept", "graphs"),
    [({}, "full", 2), ({"model": LLAMA}, "none", 2), (MODELS[2], "selective", 3)],
)
def test_blocks_are_graphs_without_breaks(model, kept, graphs, monkeypatch):
    """Captured whole and run as they are captured: what a compiler is given. One graph for both
    blocks and one for the head; with frozen embeddings the first block's input needs no gradient,
    so that it has a graph of its own."""
    plain = losses(**model)
    captured = []

    def count(graph, inputs):
        captured.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=count))
    compiled = losses(**model, activation_checkpointing=kept, compile=True)
    assert compiled == pytest.approx(plain, abs=1e-6)
    assert len(captured) == graphs


@pytest.mark.thorough
@pytest.mark.parametrize("kept", ["none", "selective"])
def test_compiled_blocks_train_as_plain_ones(kept):
    before_s = compiled_s()
    plain = losses(model=LLAMA)
    assert compiled_s() == before_s
    compiled = losses(model=LLAMA, activation_checkpointing=kept, compile=True)
    assert compiled == pytest.approx(plain, abs=1e-5)
    assert compiled_s() > before_s + 0.1


def test_compiling_is_refused_where_no_compiler_is(monkeypatch):
    monkeypatch.setenv("CXX", "/nowhere/c++")
    monkeypatch.setattr(torch._inductor.config.cpp, "cxx", ("/nowhere/c++",))
    with pytest.raises(RefusedError, match="needs a C\\+\\+ compiler"):
        losses(compile=True)


def test_the_learning_rate_rises_to_what_was_asked_for():
    task = train_task(learning_rate=1e-3, learning_rate_warm_up_steps=4)
    trainer = Trainer(task, 0, ALONE, CpuDevice(), read_text(task.text))
    rates = []
    for index in (0, 1, 2, 3, 4, 9):
        trainer.step(index)
        rates.append(trainer.optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([2.5e-4, 5e-4, 7.5e-4, 1e-3, 1e-3, 1e-3])


def test_dropout_of_a_repeated_step_is_the_same():
    keys = {"model": LLAMA, "lora": Lora(rank=2, dropout_ratio=0.5)}
    assert losses(**keys) == losses(**keys)
    assert losses(**keys) != losses(**keys | {"lora": Lora(rank=2)})


def test_frozen_weights_stay_and_a_changed_one_is_seen():
    task = train_task(lora=Lora(rank=2), dtype="bfloat16")
    trainer = Trainer(task, 0, ALONE, CpuDevice(), read_text(task.text))
    assert {p.dtype for p in trainer.trained_parameters()} == {torch.float32}
    assert trainer.model.tokens.weight.dtype == torch.bfloat16
    trainer.timed_steps(range(3))
    assert trainer.is_frozen_unchanged()
    with torch.no_grad():
        trainer.model.layers[1].down.weight[0, 0] += 0.01
    assert not trainer.is_frozen_unchanged()
