"""Does a mixture's block keep as many rows for its backward as memory is predicted for?"""

import pytest

torch = pytest.importorskip("torch")

from broadgauge.probes.training.mlp import Experts  # noqa: E402
from broadgauge.specs.workloads.workload import LlamaModel  # noqa: E402

pytestmark = pytest.mark.measuring


@pytest.mark.parametrize(("hidden", "width"), [(64, 256), (256, 64)])
def test_a_mixture_keeps_rows_of_both_ends_and_four_of_its_width(hidden: int, width: int) -> None:
    """For each expert that a token passes: what comes and what goes, and of a gated MLP the gate,
    how far it is open, the other branch and their product. Of bfloat16, by their storages; the
    router's and the order of rows are small beside these."""
    model = LlamaModel(
        kind="llama",
        layers=1,
        hidden=hidden,
        heads=2,
        ffn_hidden=width,
        experts=8,
        experts_per_token=2,
    )
    mlp = Experts(model.shape).bfloat16()
    with torch.no_grad():
        for parameter in mlp.parameters():
            parameter.normal_()
    weights = {parameter.untyped_storage().data_ptr() for parameter in mlp.parameters()}
    tokens, kept = 512, {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights and tensor.dtype == torch.bfloat16:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    x = torch.randn(1, tokens, hidden, dtype=torch.bfloat16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        mlp(x)
    rows = 2 * tokens
    expected = 2 * rows * (2 * hidden + 4 * width)
    assert sum(kept.values()) == pytest.approx(expected + 2 * tokens * hidden, rel=0.02)
