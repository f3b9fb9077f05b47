"""Sizes inferred from a number of parameters, against models whose sizes are published."""

import pytest

from broadgauge.predict.case import ModelShape
from broadgauge.predict.shapes import infer_shapes


def shape(**values: object) -> ModelShape:
    params = values["params"]
    return ModelShape(name="", active_params=params, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "layer_params"),
    [
        # GPT-2 XL (Radford et al. 2019): tied, 12 h² + 13 h a layer
        (shape(layers=48, hidden=1600, vocabulary=50257, params=1.5576e9), 12 * 1600**2),
        # Llama 3 8B (arXiv 2407.21783, table 3): untied, 4096² × 2.5 + 3 × 4096 × 14336
        (
            shape(layers=32, hidden=4096, vocabulary=128256, params=8.03e9),
            2.5 * 4096**2 + 3 * 4096 * 14336,
        ),
        # Llama 2 7B (arXiv 2307.09288): untied, 4 × 4096² + 3 × 4096 × 11008
        (
            shape(layers=32, hidden=4096, vocabulary=32000, params=6.738e9),
            4 * 4096**2 + 3 * 4096 * 11008,
        ),
    ],
)
def test_a_layer_has_its_published_size(model: ModelShape, layer_params: float) -> None:
    assert infer_shapes([model]).layer_params[0] == pytest.approx(layer_params, rel=0.03)


def test_what_is_published_is_not_inferred() -> None:
    model = shape(
        layers=32,
        hidden=4096,
        vocabulary=128256,
        params=8.03e9,
        heads=32,
        kv_heads=8,
        ffn_hidden=14336,
        gated_mlp=True,
    )
    found = infer_shapes([model])
    assert found.head_size[0] == 128
    assert found.qkv_width[0] == 4096 * 1.5
    assert found.ffn_hidden[0] == 14336
    assert found.mlp_matrices[0] == 3


def test_experts_of_mixtral() -> None:
    """8 experts of 3 × 4096 × 14336, two of them a token. Source: arXiv 2401.04088, table 1."""
    model = ModelShape(
        name="mixtral",
        architecture="moe",
        layers=32,
        hidden=4096,
        vocabulary=32000,
        params=46.7e9,
        active_params=12.9e9,
        num_experts=8,
        kv_heads=8,
        heads=32,
    )
    found = infer_shapes([model])
    assert found.active_experts[0] == pytest.approx(2, rel=0.05)
    assert found.ffn_hidden[0] == pytest.approx(14336, rel=0.05)
