"""Proves catalog/trained_models.py: what is trained has a known model's parameters, all of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from broadgauge.catalog.models import ModelEntry, find_model, known_models
from broadgauge.catalog.trained_models import sizes_of, trained_model
from broadgauge.specs.errors import InputError
from broadgauge.specs.workloads.trained_model import TrainedModel

ADAPTER: TypeAdapter[TrainedModel] = TypeAdapter(TrainedModel)
NOT_TRAINED = {
    "encoder": ("bert-base", "an encoder"),
    "latent": ("deepseek-v3", "latent attention"),
    "biases": ("mpt-7b", "linear layers without biases"),
    "activation": ("opt-125m", "a ReLU in its MLP"),
    "positions": ("gpt-j-6b", "no learned positions"),
    "heads": ("starcoder-15b", "fewer heads of keys and values than of queries"),
    "norms": ("falcon-7b", "norms a layer: 1"),
}


def refusal(entry: ModelEntry) -> str | None:
    try:
        sizes_of(entry)
    except InputError as error:
        return f"{error.message}; {error.hint}"
    return None


TRAINED = [entry for entry in known_models() if refusal(entry) is None]


@pytest.mark.parametrize("entry", TRAINED, ids=lambda entry: entry.name)
def test_what_is_trained_has_the_models_parameters_to_the_digit(entry: ModelEntry) -> None:
    sizes = sizes_of(entry)
    longest = {"seq_len": entry.position_embeddings} if entry.position_embeddings else {}
    shape = ADAPTER.validate_python(sizes | longest).shape
    assert shape.parameters == entry.params
    assert shape.active_parameters == entry.active_params
    table = 0 if entry.tied_embeddings else entry.embedding_params
    positions = entry.position_embeddings * entry.hidden
    assert shape.multiplying_parameters == entry.active_params - table - positions
    assert sizes["seq_len"] == min(entry.seq_len, entry.position_embeddings or entry.seq_len)


def test_all_others_are_refused_with_their_reason() -> None:
    refused = [entry for entry in known_models() if entry not in TRAINED]
    assert len(TRAINED) > 60
    assert {entry.name for entry in refused if entry.gated_mlp} == {
        entry.name for entry in known_models() if entry.latent_attention is not None
    }
    for entry in refused:
        assert f"can't train {entry.name}: it has " in str(refusal(entry))


@pytest.mark.parametrize(("name", "reason"), NOT_TRAINED.values(), ids=NOT_TRAINED)
def test_a_reason_is_the_models(name: str, reason: str) -> None:
    assert reason in str(refusal(find_model(name)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"norm": "layer"}, "layer norms"),
        ({"gated_mlp": False}, "an MLP without a gate"),
        ({"position_embeddings": 64}, "learned positions"),
        ({"head_dim": 65}, "heads of 65"),
        ({"norms_per_layer": 3}, "norms a layer: 3"),
        ({"vocabulary": 65}, "a vocabulary of 65"),
        ({"activation": "other"}, "another activation in its MLP"),
    ],
)
def test_a_llama_with_another_block_is_refused(changes: dict[str, Any], reason: str) -> None:
    told = find_model("llama3-8b").model_dump() | changes
    assert reason in str(refusal(ModelEntry.model_validate(told)))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"norm": "rms"}, "RMS norms"),
        ({"bias": "attention"}, "linear layers without biases"),
        ({"head_dim": 65}, "heads of 65"),
        ({"ffn_hidden": 3000}, "an MLP 3000 wide, and not four times 768"),
        ({"norms_queries_and_keys": True}, "norms of queries and keys"),
        ({"norms_per_layer": 4}, "norms a layer: 4"),
        ({"has_pooler": True}, "a pooler"),
    ],
)
def test_a_gpt_with_another_block_is_refused(changes: dict[str, Any], reason: str) -> None:
    told = find_model("gpt2").model_dump() | changes
    assert reason in str(refusal(ModelEntry.model_validate(told)))


def test_mixtures_have_their_experts() -> None:
    told = trained_model("gpt-oss-120b")
    assert (told["experts"], told["experts_per_token"], told["ffn_hidden"]) == (128, 4, 2880)
    assert told["bias"] == "all"  # the router's, too
    assert trained_model("qwen3-30b-a3b")["ffn_hidden"] == 768
    model = ADAPTER.validate_python(told | {"layers": 3, "shape_of_layers": 36})
    assert (
        model.named_in_words == "gpt-oss-120b, 3 of its 36 layers, 10.8B parameters, 1.54B active, "
        "embedding included"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"shared_experts": 1}, "experts that every token passes"),
        ({"dense_layers": 2}, "layers without experts: 2"),
    ],
)
def test_a_mixture_with_another_block_is_refused(changes: dict[str, Any], reason: str) -> None:
    told = find_model("mixtral-8x7b").model_dump() | changes
    assert reason in str(refusal(ModelEntry.model_validate(told)))


def test_gemma_has_its_own_activation_and_norms() -> None:
    told = trained_model("gemma-3-12b")
    assert (told["activation"], told["norms_per_layer"]) == ("gelu", 4)
    assert (told["norms_queries_and_keys"], told["head_dim"]) == (True, 256)
    assert trained_model("gemma-7b")["activation"] == "gelu"
    assert trained_model("qwen3-8b")["norms_queries_and_keys"]
    assert trained_model("llama-3.1-8b")["activation"] == "silu"


@pytest.mark.parametrize(
    ("name", "params"), [("gemma3-1b", 999_885_952), ("qwen3-8b", 8_190_735_360)]
)
def test_norms_of_queries_and_keys_are_counted(name: str, params: int) -> None:
    """As in the checkpoints: tests/catalog/test_model_configs.py."""
    assert find_model(name).params == params


def test_no_sequence_is_longer_than_the_table_of_positions() -> None:
    assert find_model("gpt2-85m").seq_len == 1024
    assert trained_model("gpt2-85m")["seq_len"] == 128


def test_a_config_is_found_from_the_folder(tmp_path: Path) -> None:
    told = {
        "model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32,
        "vocab_size": 300,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(told))
    assert trained_model("config.json", str(tmp_path)) == {
        "kind": "gpt", "shape_of": tmp_path.name, "layers": 2, "hidden": 64, "heads": 4,
        "vocabulary": 300, "seq_len": 32, "tied_head": True,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(told | {"activation_function": "relu"}))
    with pytest.raises(InputError, match="a ReLU in its MLP"):
        trained_model(str(tmp_path / "config.json"))


def test_an_unknown_model_is_told_with_the_nearest() -> None:
    """No catalog file counts here, so none is spoken of."""
    with pytest.raises(InputError) as caught:
        trained_model("lama3-8b")
    assert caught.value.hint == "did you mean `llama3-8b`?"
