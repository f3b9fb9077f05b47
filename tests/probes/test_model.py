"""Is the model what its spec says it is?"""

import pytest

torch = pytest.importorskip("torch")

from broadgauge.probes.training.model import Gpt  # noqa: E402
from broadgauge.probes.training.weights import draw_weights  # noqa: E402
from broadgauge.specs.workloads.workload import GptModel  # noqa: E402

pytestmark = pytest.mark.measuring
SHAPES = [
    GptModel(),
    GptModel(layers=1, hidden=8, heads=1, seq_len=1),
    GptModel(layers=3, hidden=48, heads=6, seq_len=40, vocabulary=1000),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_parameters_are_those_of_the_formula(shape):
    assert sum(p.numel() for p in Gpt(shape).parameters()) == shape.parameters


def test_flops_are_those_that_torch_counts():
    """Backward twice the forward. The formula counts attention without the causal half, as the
    matrix product does; torch's counter counts no softmax, norm or GELU, nor does the formula."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    shape = GptModel(layers=2, hidden=64, heads=2, seq_len=32)
    tokens = torch.zeros(1, shape.seq_len, dtype=torch.long)
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        Gpt(shape)(tokens, tokens).backward()
    biases_and_norms = shape.layers * 13 * shape.hidden + 2 * shape.hidden
    formula = (shape.flops_per_token - 6 * biases_and_norms) * shape.seq_len
    assert counter.get_total_flops() == pytest.approx(formula, rel=0.01)


def test_first_loss_is_that_of_guessing():
    model = Gpt(GptModel())
    draw_weights(model, GptModel(), 0, torch.device("cpu"))
    tokens = torch.randint(256, (4, 128), generator=torch.Generator().manual_seed(0))
    loss = model(tokens[:, :-1], tokens[:, 1:])
    assert loss.item() == pytest.approx(5.545, abs=0.2)


def test_a_token_knows_nothing_of_what_follows():
    torch.manual_seed(0)
    model = Gpt(GptModel(layers=1, hidden=8, heads=2, seq_len=8))
    seen = []
    model.norm.register_forward_hook(lambda *arguments: seen.append(arguments[-1]))
    tokens = torch.randint(256, (1, 8))
    changed = tokens.clone()
    changed[0, 7] += 1
    model(tokens, tokens)
    model(changed, tokens)
    assert torch.equal(seen[0][0, :7], seen[1][0, :7])
    assert not torch.equal(seen[0][0, 7], seen[1][0, 7])
