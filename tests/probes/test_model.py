"""Is the model what its spec says it is?"""

import pytest

torch = pytest.importorskip("torch")

from tests.probes.training_tasks import train_task  # noqa: E402

from broadgauge.messages.model_shape import adapted_flops_per_token  # noqa: E402
from broadgauge.probes.training.building import build_model  # noqa: E402
from broadgauge.probes.training.llama import Llama, rotated, rotations  # noqa: E402
from broadgauge.probes.training.model import Gpt  # noqa: E402
from broadgauge.probes.training.weights import draw_weights  # noqa: E402
from broadgauge.specs.workload import GptModel, LlamaModel, Lora  # noqa: E402

pytestmark = [pytest.mark.measuring, pytest.mark.shares_cores]
SHAPES = [
    GptModel(),
    GptModel(layers=1, hidden=8, heads=1, seq_len=1),
    GptModel(layers=3, hidden=48, heads=6, seq_len=40, vocabulary=1000),
    GptModel(layers=2, hidden=48, heads=6, seq_len=40, vocabulary=65, tied_head=False),
]


LLAMAS = [
    LlamaModel(kind="llama"),
    LlamaModel(kind="llama", layers=1, hidden=8, heads=2, kv_heads=1, ffn=8, seq_len=3),
    LlamaModel(kind="llama", layers=3, hidden=48, heads=4, head_dim=16, kv_heads=2, ffn=100),
    LlamaModel(kind="llama", layers=2, hidden=48, heads=6, tied_head=True, vocabulary=1000),
]


def built(model, lora=None):
    """With its weights drawn."""
    task = train_task(model=model, lora=lora)
    made = build_model(task).to_empty(device="cpu")
    draw_weights(made, task.model, 0, torch.device("cpu"))
    return made


@pytest.mark.parametrize("model", [*SHAPES, *LLAMAS])
def test_parameters_are_those_of_the_formula(model):
    assert sum(p.numel() for p in built(model).parameters()) == model.parameters


def counted_flops(model, lora=None):
    """Of a token, forward and backward, as torch counts matrix products."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    made = built(model, lora)
    tokens = torch.zeros(1, model.seq_len, dtype=torch.long)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        made(tokens, tokens).backward()
    return counter.get_total_flops() / model.seq_len


GPT = GptModel(layers=2, hidden=64, heads=2, seq_len=32)
LLAMA = LlamaModel(
    kind="llama", layers=2, hidden=64, heads=4, kv_heads=2, ffn=96, seq_len=32, vocabulary=512
)


def vectors(model):
    """Parameters that are in no matrix: biases and norms."""
    if isinstance(model, LlamaModel):
        return (2 * model.layers + 1) * model.hidden
    return (13 * model.layers + 2) * model.hidden


@pytest.mark.parametrize("model", [GPT, LLAMA, LLAMA.model_copy(update={"tied_head": True})])
def test_flops_are_those_that_torch_counts(model):
    """Backward twice the forward. The formula counts attention without the causal half, as the
    matrix product does; torch's counter counts no softmax, norm or GELU, nor does the formula."""
    formula = model.flops_per_token - 6 * vectors(model)
    assert counted_flops(model) == pytest.approx(formula, rel=0.01)


@pytest.mark.parametrize("model", [GPT, LLAMA])
@pytest.mark.parametrize("rank", [2, 16])
def test_flops_of_lora_are_those_that_torch_counts(model, rank):
    """The first block's frozen queries, keys and values need no gradient of their input, and its
    adapters there none either: what the formula has too much."""
    lora = Lora(rank=rank)
    shape = model.shape
    first = ("query_key_value",) if model is GPT else ("query", "key", "value")
    sizes = [shape.linears[name] for name in first]
    too_much = sum(2 * inputs * outputs + 2 * rank * inputs for inputs, outputs in sizes)
    formula = adapted_flops_per_token(shape, lora.adapters(shape)) - 4 * vectors(model)
    assert counted_flops(model, lora) == pytest.approx(formula - too_much, rel=0.01)


@pytest.mark.parametrize("model", [GptModel(), LlamaModel(kind="llama")])
def test_first_loss_is_that_of_guessing(model):
    """With adapters too: they add nothing before they have learnt."""
    tokens = torch.randint(256, (4, 128), generator=torch.Generator().manual_seed(0))
    for lora in (None, Lora()):
        loss = built(model, lora)(tokens[:, :-1], tokens[:, 1:])
        assert loss.item() == pytest.approx(5.545, abs=0.2)


def test_adapters_begin_at_the_frozen_model():
    tokens = torch.randint(256, (2, 16), generator=torch.Generator().manual_seed(0))
    adapted = built(GPT, Lora(rank=3))
    widening = adapted.layers[0].up.widening.weight
    before = adapted(tokens, tokens)
    with torch.no_grad():
        adapted.layers[0].up.narrowing.weight.zero_()
    assert torch.equal(adapted(tokens, tokens), before)
    with torch.no_grad():
        adapted.layers[0].up.narrowing.weight.normal_()
        widening.fill_(0.1)
    assert not torch.equal(adapted(tokens, tokens), before)


def test_only_targets_have_adapters():
    made = built(LLAMA, Lora(rank=2, targets=("query", "value")))
    trained = {name.split(".", 2)[2] for name, p in made.named_parameters() if p.requires_grad}
    assert trained == {
        f"attention.{target}.{side}.weight"
        for target in ("query", "value")
        for side in ("narrowing", "widening")
    }


def test_rotation_turns_by_distance_alone():
    """The product of a query and a key depends on how far apart they are, and nothing is longer."""
    cos, sin = rotations(32, 8, torch.device("cpu"))
    query, key = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    queries = rotated(query.expand(1, 1, 32, 8), cos, sin)[0, 0]
    keys = rotated(key.expand(1, 1, 32, 8), cos, sin)[0, 0]
    products = queries @ keys.T
    for distance in (0, 1, 7):
        along = products.diagonal(-distance)
        assert torch.allclose(along, along[0].expand_as(along), atol=1e-4)
    assert torch.allclose(queries.norm(dim=-1), query.norm().expand(32), atol=1e-5)
    assert not torch.allclose(products[1, 0], products[8, 0], atol=1e-3)


def test_groups_of_heads_share_keys_and_values():
    """As many heads with the shared ones written out give the same."""
    grouped, shape = built(LLAMA), LLAMA.shape
    plain = built(LLAMA.model_copy(update={"kv_heads": 4}))
    plain.load_state_dict(
        {
            name: value.unflatten(0, (shape.kv_heads, -1)).repeat_interleave(2, 0).flatten(0, 1)
            if name.endswith(("key.weight", "value.weight"))
            else value
            for name, value in grouped.state_dict().items()
        }
    )
    tokens = torch.randint(256, (2, 32), generator=torch.Generator().manual_seed(0))
    assert torch.allclose(grouped(tokens, tokens), plain(tokens, tokens), atol=1e-5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Gpt(GptModel(layers=1, hidden=8, heads=2, seq_len=8).shape),
        lambda: Llama(LlamaModel(kind="llama", layers=1, hidden=8, heads=2, seq_len=8).shape),
    ],
)
def test_a_token_knows_nothing_of_what_follows(make):
    torch.manual_seed(0)
    model = make()
    seen = []
    model.norm.register_forward_hook(lambda *arguments: seen.append(arguments[-1]))
    tokens = torch.randint(256, (1, 8))
    changed = tokens.clone()
    changed[0, 7] += 1
    model(tokens, tokens)
    model(changed, tokens)
    assert torch.equal(seen[0][0, :7], seen[1][0, :7])
    assert not torch.equal(seen[0][0, 7], seen[1][0, 7])
