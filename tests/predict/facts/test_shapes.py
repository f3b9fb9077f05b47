"""Sizes inferred from a number of parameters, against models whose sizes are published."""

from dataclasses import replace

import pytest
from tests.predict.making_cases import BASE

from broadgauge.catalog.models import find_model, known_models
from broadgauge.predict.asking.from_catalog import shape_of
from broadgauge.predict.case import ModelShape
from broadgauge.predict.costs.compute import compute_costs
from broadgauge.predict.costs.kernels import NARROW_HEADS, flash_attention_s, rates_of
from broadgauge.predict.facts.columns import columns_of
from broadgauge.predict.facts.knowledge import prior_knowledge
from broadgauge.predict.facts.shapes import infer_shapes
from broadgauge.predict.memory.fullest_gpu import memory_table
from broadgauge.predict.timeline.strategies.exchanges import exchanges


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


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "qwen3-4b", "gemma3-27b", "llama3-8b"])
def test_heads_wider_than_the_model_are_counted(name: str) -> None:
    """Heads of a size of their own: queries and output of heads × head_dim, not of hidden."""
    entry = find_model(name)
    found = infer_shapes([shape_of(entry)])
    width = entry.heads * entry.head_dim
    keys = entry.kv_heads * entry.head_dim

    assert found.head_size[0] == entry.head_dim
    assert found.attention_width[0] == width
    assert found.attention_params[0] == pytest.approx(2 * entry.hidden * (width + keys))
    assert found.qkv_width[0] == pytest.approx(width + 2 * keys)


def test_wider_heads_cost_what_they_are_wider() -> None:
    """Flash attention, its memory, and the keys that context ranks hand on."""
    narrow = replace(shape_of(find_model("qwen3-4b")), head_dim=None)
    each = replace(BASE, model=narrow, strategy="fsdp", data_parallel=8, context_parallel=2)
    both = [each, replace(each, model=replace(narrow, head_dim=160))]
    columns = columns_of(both)
    knowledge = prior_knowledge()
    flash_s, _ = flash_attention_s(columns, rates_of(columns, knowledge), 0.0)
    long = columns_of([replace(one, seq_len=2**16) for one in both])
    handed_on_s = exchanges(long)["context forward"].intra_s
    kept_bytes = memory_table(long).activations_bytes

    assert flash_s[1] / flash_s[0] == pytest.approx(2 * NARROW_HEADS, rel=0.1)
    assert handed_on_s[1] == pytest.approx(2 * handed_on_s[0], rel=0.05)
    assert kept_bytes[1] > kept_bytes[0]
    forward_s = compute_costs(columns, knowledge).layer_forward_s
    assert forward_s[1] - forward_s[0] > flash_s[1] - flash_s[0]


def test_a_known_models_tables_are_counted_and_not_guessed() -> None:
    """Of parameters alone a tied embedding of a gated model looks untied: 25 of 114 were wrong."""
    models = known_models()
    shapes = infer_shapes([shape_of(model) for model in models])
    tables = shapes.embedding_params / (shapes.vocabulary * shapes.hidden)
    wrong = [
        model.name
        for model, number in zip(models, tables.tolist(), strict=True)
        if number != (1 if model.tied_embeddings else 2)
    ]
    assert wrong == []
