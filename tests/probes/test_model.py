"""Is the model what its spec says it is?"""

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from broadgauge.probes.training.building import model_of  # noqa: E402
from broadgauge.probes.training.llama import rotated, rotations  # noqa: E402
from broadgauge.probes.training.weights import draw_weights  # noqa: E402
from broadgauge.probes.trial import RefusedError  # noqa: E402
from broadgauge.specs.workloads.workload import GptModel, LlamaModel  # noqa: E402

pytestmark = pytest.mark.measuring
LLAMA = {"kind": "llama", "layers": 3, "hidden": 48, "heads": 6, "ffn_hidden": 80, "seq_len": 40}
SHAPES = [
    GptModel(),
    GptModel(layers=1, hidden=8, heads=1, seq_len=1),
    GptModel(layers=3, hidden=48, heads=6, seq_len=40, vocabulary=1000),
    GptModel(layers=2, hidden=16, heads=2, vocabulary=65, tied_head=False),
    LlamaModel(kind="llama"),
    LlamaModel(**LLAMA, kv_heads=2),
    LlamaModel(**LLAMA, kv_heads=1, head_dim=24, tied_head=True),
    LlamaModel(**LLAMA, bias="qkv"),
    LlamaModel(**LLAMA, bias="attention", norms_per_layer=4),
    LlamaModel(**LLAMA, bias="all", norms_queries_and_keys=True, activation="gelu"),
    LlamaModel(**LLAMA, experts=5, experts_per_token=5),
    LlamaModel(**LLAMA, experts=6, experts_per_token=2, bias="all", norms_per_layer=4),
]
GPT = GptModel(layers=1, hidden=8, heads=2, seq_len=8)
SMALL_LLAMA = LlamaModel(kind="llama", layers=1, hidden=8, heads=2, kv_heads=1, seq_len=8)
MIXTURE = LlamaModel(
    **LLAMA | {"layers": 1, "hidden": 24}, experts=5, experts_per_token=3, bias="all"
)


def built(spec):
    """With its weights."""
    model = model_of(spec.shape)
    draw_weights(model, spec.shape, 0, torch.device("cpu"))
    return model


@pytest.mark.parametrize("spec", SHAPES)
def test_parameters_are_those_of_the_formula(spec):
    model = model_of(spec.shape)
    assert sum(p.numel() for p in model.parameters()) == spec.parameters
    of_blocks = sum(p.numel() for p in model.layers.parameters())
    assert of_blocks == spec.layers * spec.shape.block_parameters


def products_of(shape):
    """Parameters in linear layers, head among them: a product counts these alone."""
    blocks = sum(inputs * outputs for inputs, outputs in shape.linears.values())
    if getattr(shape, "experts", 1) > 1:
        expert = sum(inputs * outputs for inputs, outputs in shape.mlp.values())
        blocks += shape.experts_per_token * expert + shape.experts * shape.hidden
    return shape.layers * blocks + shape.vocabulary * shape.hidden


def flops_of_grouped_products(rows, matrices, *others, **options):
    """Of shapes: each row passes one matrix. torch's counter knows them not."""
    return 2 * rows[0] * rows[1] * matrices[-1]


@pytest.mark.parametrize(
    "spec",
    [
        GptModel(layers=2, hidden=64, heads=2, seq_len=32),
        GptModel(layers=2, hidden=64, heads=2, seq_len=32, tied_head=False),
        LlamaModel(kind="llama", layers=2, hidden=64, heads=2, seq_len=32, tied_head=True),
        LlamaModel(kind="llama", layers=2, hidden=64, heads=4, kv_heads=2, seq_len=32, bias="all"),
        LlamaModel(kind="llama", layers=2, hidden=64, heads=2, head_dim=48, seq_len=32),
        LlamaModel(
            kind="llama", layers=2, hidden=64, heads=2, seq_len=32, experts=8, experts_per_token=2
        ),
    ],
)
def test_flops_are_those_that_torch_counts(spec):
    """Backward twice the forward. The formula counts attention without the causal half, as the
    matrix product does; torch's counter counts no softmax, norm, bias or rotation."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    shape = spec.shape
    tokens = torch.zeros(1, shape.seq_len, dtype=torch.long)
    counter = FlopCounterMode(
        display=False, custom_mapping={torch.ops.aten._grouped_mm: flops_of_grouped_products}
    )
    with counter, sdpa_kernel(SDPBackend.MATH):
        model_of(shape)(tokens, tokens).backward()
    others = shape.multiplying_parameters - products_of(shape)
    formula = (shape.flops_per_token - 6 * others) * shape.seq_len
    assert counter.get_total_flops() == pytest.approx(formula, rel=0.01)


@pytest.mark.parametrize(
    "spec",
    [
        GptModel(),
        LlamaModel(kind="llama"),
        LlamaModel(kind="llama", experts=4, experts_per_token=2),
    ],
)
def test_first_loss_is_that_of_guessing(spec):
    tokens = torch.randint(256, (4, 128), generator=torch.Generator().manual_seed(0))
    loss = built(spec)(tokens[:, :-1], tokens[:, 1:])
    assert loss.item() == pytest.approx(5.545, abs=0.2)


@pytest.mark.parametrize("spec", [GPT, SMALL_LLAMA, MIXTURE.model_copy(update={"seq_len": 8})])
def test_a_token_knows_nothing_of_what_follows(spec):
    torch.manual_seed(0)
    model = built(spec)
    seen = []
    model.norm.register_forward_hook(lambda *arguments: seen.append(arguments[-1]))
    tokens = torch.randint(256, (1, 8))
    changed = tokens.clone()
    changed[0, 7] += 1
    model(tokens, tokens)
    model(changed, tokens)
    assert torch.equal(seen[0][0, :7], seen[1][0, :7])
    assert not torch.equal(seen[0][0, 7], seen[1][0, 7])


def test_what_a_query_finds_in_a_key_depends_on_their_distance_alone():
    cos_td, sin_td = rotations(40, 16, torch.device("cpu"))
    query, key = torch.randn(2, 1, 1, 1, 16, generator=torch.Generator().manual_seed(3))
    queries = rotated(query.expand(1, 1, 40, 16), cos_td, sin_td)[0, 0]
    keys = rotated(key.expand(1, 1, 40, 16), cos_td, sin_td)[0, 0]
    scores = queries @ keys.T
    for distance in (0, 1, 7):
        along = scores.diagonal(-distance)
        assert along.tolist() == pytest.approx([float(along[0])] * len(along), abs=1e-4)
    assert float(scores[0, 0]) == pytest.approx(float((query * key).sum()), abs=1e-5)
    assert float(scores[7, 0]) != pytest.approx(float(scores[0, 0]), abs=1e-3)


def test_a_group_of_queries_shares_one_head_of_keys_and_values():
    """The same as a model of as many heads whose keys and values are copies."""
    grouped = LlamaModel(kind="llama", layers=1, hidden=32, heads=4, kv_heads=2, seq_len=8)
    few, many = built(grouped), model_of(grouped.model_copy(update={"kv_heads": 4}).shape)
    weights = few.state_dict()
    for name in ("key", "value"):
        whole = weights[f"layers.0.attention.{name}.weight"]
        copies = whole.unflatten(0, (2, 8)).repeat_interleave(2, dim=0).flatten(0, 1)
        weights[f"layers.0.attention.{name}.weight"] = copies
    many.load_state_dict(weights)
    tokens = torch.randint(256, (2, 8), generator=torch.Generator().manual_seed(0))
    assert few(tokens, tokens).item() == pytest.approx(many(tokens, tokens).item(), abs=1e-6)


@pytest.mark.parametrize(
    ("activation", "opened"),
    [
        ("silu", lambda x: x * torch.sigmoid(x)),
        ("gelu", lambda x: functional.gelu(x, approximate="tanh")),
    ],
)
def test_the_mlp_is_gated(activation, opened):
    mlp = built(SMALL_LLAMA.model_copy(update={"activation": activation})).layers[0].mlp
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
    expected = (opened(x @ mlp.gate.weight.T) * (x @ mlp.up.weight.T)) @ mlp.down.weight.T
    assert torch.allclose(mlp(x), expected, atol=1e-6)


def test_a_token_passes_the_experts_that_its_router_scores_highest():
    """Token by token, expert by expert: softmax over the scores of the chosen weighs them."""
    shape = MIXTURE.shape
    model, generator = model_of(shape), torch.Generator().manual_seed(1)
    mlp = model.layers[0].mlp
    with torch.no_grad():
        for parameter in mlp.parameters():
            parameter.normal_(generator=generator)
        x = torch.randn(2, 7, shape.hidden, generator=generator)
        given = mlp(x)
        numbers = []
        for row, token in enumerate(x.flatten(0, 1)):
            scores, experts = mlp.router(token).topk(3)
            expected = torch.zeros(shape.hidden)
            for weight, expert in zip(scores.softmax(0), experts.tolist(), strict=True):
                gate, up = (linear_of_expert(each, expert, token) for each in (mlp.gate, mlp.up))
                expected += weight * linear_of_expert(mlp.down, expert, functional.silu(gate) * up)
                numbers.append(expert)
            torch.testing.assert_close(given.flatten(0, 1)[row], expected, rtol=1e-4, atol=1e-4)
    assert set(numbers) == set(range(5))


def linear_of_expert(linear, expert, x):
    weight, bias = linear.weight.unflatten(0, (5, -1)), linear.bias.unflatten(0, (5, -1))
    return functional.linear(x, weight[expert], bias[expert])


def test_an_expert_that_no_token_passes_has_no_gradient():
    model = built(MIXTURE)
    mlp = model.layers[0].mlp
    with torch.no_grad():
        mlp.router.bias.copy_(torch.tensor([9.0, 9.0, 9.0, 0.0, 0.0]))
    tokens = torch.randint(256, (2, 9), generator=torch.Generator().manual_seed(0))
    model(tokens[:, :-1], tokens[:, 1:]).backward()
    of_experts = mlp.down.weight.grad.unflatten(0, (5, -1)).abs().amax((1, 2))
    assert [bool(largest) for largest in of_experts] == [True] * 3 + [False] * 2


def test_a_torch_without_grouped_products_is_named(monkeypatch):
    monkeypatch.delattr(functional, "grouped_mm")
    with pytest.raises(RefusedError, match=r"a mixture of experts needs torch 2\.10 or newer"):
        model_of(MIXTURE.shape)
