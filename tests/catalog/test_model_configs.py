"""Has a Hugging Face `config.json` the shape of its checkpoint? Counted to the digit."""

import json
from pathlib import Path
from typing import Any

import pytest

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.catalog.model_configs import read_model
from broadgauge.cli.main import main
from broadgauge.specs.errors import InputError

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "attention_bias": False,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "tie_word_embeddings": False,
    "vocab_size": 128256,
}
LLAMA2 = {
    **{key: value for key, value in LLAMA.items() if key != "num_key_value_heads"},
    "intermediate_size": 11008,
    "max_position_embeddings": 4096,
    "vocab_size": 32000,
}
MISTRAL = {**LLAMA, "model_type": "mistral", "vocab_size": 32000, "sliding_window": 4096}
QWEN2 = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 131072,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}
QWEN3 = {
    **LLAMA,
    "model_type": "qwen3",
    "head_dim": 128,
    "intermediate_size": 12288,
    "max_position_embeddings": 40960,
    "num_hidden_layers": 36,
    "vocab_size": 151936,
}
PHI3 = {
    "model_type": "phi3",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "max_position_embeddings": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "tie_word_embeddings": False,
    "vocab_size": 32064,
}
GEMMA3 = {
    "model_type": "gemma3_text",
    "head_dim": 256,
    "hidden_size": 1152,
    "intermediate_size": 6912,
    "max_position_embeddings": 32768,
    "num_attention_heads": 4,
    "num_hidden_layers": 26,
    "num_key_value_heads": 1,
    "vocab_size": 262144,
}
GPT2 = {
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_inner": None,
    "n_layer": 12,
    "n_positions": 1024,
    "vocab_size": 50257,
}


def write(folder: Path, told: object, name: str = "config.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    return path


@pytest.mark.parametrize(
    ("told", "params"),
    [
        pytest.param(LLAMA, 8_030_261_248, id="Llama-3.1-8B"),
        pytest.param(LLAMA2, 6_738_415_616, id="Llama-2-7b"),
        pytest.param(MISTRAL, 7_241_732_096, id="Mistral-7B-v0.1"),
        pytest.param(QWEN2, 7_615_616_512, id="Qwen2.5-7B"),
        pytest.param(QWEN3, 8_190_735_360, id="Qwen3-8B"),
        pytest.param(PHI3, 3_821_079_552, id="Phi-3-mini-4k"),
        pytest.param(GEMMA3, 999_885_952, id="gemma-3-1b"),
        pytest.param(GPT2, 124_439_808, id="gpt2"),
    ],
)
def test_parameters_are_those_of_the_checkpoint(
    told: dict[str, Any], params: int, tmp_path: Path
) -> None:
    assert read_model(write(tmp_path, told)).params == params


def test_biases_are_counted_where_the_file_has_them(tmp_path: Path) -> None:
    none = read_model(write(tmp_path, LLAMA)).params
    of_attention = 32 * (4096 + 2 * 1024 + 4096)
    attention = read_model(write(tmp_path, {**LLAMA, "attention_bias": True})).params
    assert attention == none + of_attention
    both = read_model(write(tmp_path, {**LLAMA, "attention_bias": True, "mlp_bias": True})).params
    assert both == none + of_attention + 32 * (2 * 14336 + 4096)


@pytest.mark.parametrize(
    ("told", "activation"),
    [
        (LLAMA, "silu"),
        (LLAMA | {"hidden_act": "gelu_new"}, "gelu"),
        (LLAMA | {"hidden_act": "xielu"}, "other"),
        (LLAMA | {"hidden_act": ["silu"]}, "other"),
        (GEMMA3, "gelu"),
        (GEMMA3 | {"hidden_activation": "gelu_pytorch_tanh"}, "gelu"),
        (GPT2, "gelu"),
        (GPT2 | {"activation_function": "relu"}, "relu"),
    ],
)
def test_the_activation_is_the_files(told: dict[str, Any], activation: str, tmp_path: Path) -> None:
    assert read_model(write(tmp_path, told)).activation == activation


def test_a_shape_is_the_known_models(tmp_path: Path) -> None:
    read, known = read_model(write(tmp_path, LLAMA)), shipped_catalog().model("llama3-8b")
    for field in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn_hidden", "gated_mlp"):
        assert getattr(read, field) == getattr(known, field), field
    assert (read.seq_len, read.longest_seq_len) == (8192, 131072)
    assert read_model(write(tmp_path, GPT2)).seq_len == 1024
    assert read_model(write(tmp_path, GPT2)).tied_embeddings


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Llama-3.1-8B/config.json", "llama-3.1-8b"),
        ("models--meta-llama--Llama-3.1-8B/snapshots/d04e592b/config.json", "llama-3.1-8b"),
        ("Our Model.json", "our-model"),
        ("__/config.json", "config"),
    ],
)
def test_a_model_is_named_after_its_folder(path: str, name: str, tmp_path: Path) -> None:
    assert read_model(write(tmp_path, LLAMA, path)).name == name


def changed(**changes: object) -> dict[str, Any]:
    return {key: value for key, value in (LLAMA | changes).items() if value is not ...}


@pytest.mark.parametrize(
    ("told", "said", "hint"),
    [
        (changed(model_type="bloom"), "`model_type` `bloom` is not known", "known: llama, "),
        (changed(model_type=["llama"]), '`model_type` `["llama"]` is not known', "known: llama, "),
        (changed(model_type=...), "the key `model_type` is missing", "known: llama, "),
        (
            {"model_type": "gemma3", "text_config": GEMMA3},
            "`model_type` `gemma3` is not known",
            "save its `text_config` as a file of its own; known: ",
        ),
        (changed(hidden_size=...), "the key is missing: `hidden_size`", "of `model_type` `llama`"),
        (
            changed(hidden_size=None, vocab_size=...),
            "these keys are missing: `hidden_size`, `vocab_size`",
            "of `model_type` `llama`",
        ),
        (changed(hidden_size="4096"), "`hidden_size` takes a whole number", "without quotes"),
        (changed(hidden_size=0), "`hidden_size` takes a whole number from 1", "without quotes"),
        (changed(hidden_size=True), "`hidden_size` takes a whole number", "without quotes"),
        (changed(hidden_size=10**30), "takes a whole number from 1 to 10^9", "without quotes"),
        (changed(num_key_value_heads=7), "heads 32 does not divide by kv_heads 7", None),
        (changed(tie_word_embeddings="no"), "`tie_word_embeddings` takes `true` or", None),
        (changed(mlp_bias=True), "`mlp_bias` without `attention_bias`", "leave `mlp_bias` out"),
        ('{"model_type": "llama",\n', "config.json:2:1: no JSON: ", None),
        ("[1]", "a model's config.json is an object", "known: llama, "),
        ("[" * 100_000, "no JSON", None),
        (" " * (1 << 20) + "{}", "more than 1 MiB", None),
    ],
)
def test_mistakes_are_told_with_path_key_and_hint(
    told: object, said: str, hint: str | None, tmp_path: Path
) -> None:
    path = write(tmp_path, told)
    with pytest.raises(InputError) as refused:
        read_model(path)
    assert refused.value.message.startswith(str(path))
    assert said in refused.value.message
    assert hint is None or hint in (refused.value.hint or "")


def test_a_file_that_is_not_there_is_an_error_and_nothing_is_fetched(tmp_path: Path) -> None:
    path = tmp_path / "meta-llama" / "config.json"
    with pytest.raises(InputError, match="No such file or directory") as refused:
        shipped_catalog().model(str(path))
    assert "`broadgauge catalog list models`" in (refused.value.hint or "")


def test_the_commands_take_the_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, LLAMA, "Ours/config.json"))
    assert main(["predict", "--model", f"{path},llama3-8b", "--gpu", "h100-sxm", "--json"]) == 0
    ours, known = json.loads(capsys.readouterr().out)["cases"]
    assert ours["question"]["model"]["name"] == "ours"
    assert ours["step_time_s"] == known["step_time_s"]
    assert main(["predict", "--model", path, "--gpu", "h100-sxm"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "sequences of 8,192 tokens (the model allows 131,072)" in told
    assert main(["catalog", "show", path, "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)["entries"]
    assert (entry["name"], entry["source"]) == ("ours", path)
    assert main(["catalog", "show", path]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "→ parameters 8,030,261,248" in told
    assert "from " in told
    assert "models.yaml" not in told
