"""Proves catalog/models.py: parameters follow from shapes, to the digit where a count is known."""

import pytest
from pydantic import ValidationError

from broadgauge.catalog.models import ModelEntry, find_model, known_models
from broadgauge.specs.errors import InputError


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("gpt2", 124_439_808),
        ("gpt2-xl", 1_557_611_200),
        ("llama2-7b", 6_738_415_616),
        ("llama2-70b", 68_976_648_192),
        ("llama3-8b", 8_030_261_248),
        ("llama3.2-1b", 1_235_814_400),
        ("llama3-405b", 405_853_388_800),
        ("mistral-7b", 7_241_732_096),
        ("pythia-2.8b", 2_775_208_960),
        ("bert-base", 109_482_240),
    ],
)
def test_parameters_to_the_digit_of_the_checkpoint(name: str, params: int) -> None:
    assert find_model(name).params == params


def test_every_models_parameters_follow_from_its_shape() -> None:
    for model in known_models():
        assert model.published_params is not None, model.name
        assert model.params == pytest.approx(model.published_params, rel=0.02), model.name
        if model.published_active_params is not None:
            without = model.active_params - 2 * model.embedding_params
            assert without * 0.98 < model.published_active_params, model.name
            assert model.published_active_params < model.active_params * 1.02, model.name


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("meta-llama/Llama-3.1-8B", "llama3-8b"),
        ("Granite-3.1-8B", "granite-3.1-8b"),
        ("google/gemma-3-12b-it", "gemma3-12b"),
        ("Mixtral-8x7B", "mixtral-8x7b"),
        ("gpt2-large-708m", "gpt2-708m"),
        ("GPT-3 175B", "gpt3-175b"),
        ("meta-llama/Meta-Llama-3-8B", "llama3-8b"),
        ("meta-llama/Llama-2-7b-hf", "llama2-7b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("google-bert/bert-large-uncased", "bert-large"),
    ],
)
def test_names_as_people_write_them(name: str, found: str) -> None:
    assert find_model(name).name == found


def test_an_unknown_model_is_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean `llama3-8b`"):
        find_model("lama3-8b")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kv_heads": 5}, "does not divide"),
        ({"architecture": "moe"}, "more than one expert"),
        ({"architecture": "moe", "experts": 4, "experts_per_token": 5}, "5 experts a token"),
        ({"architecture": "moe", "experts": 4, "dense_layers": 99}, "99 dense layers"),
    ],
)
def test_a_shape_that_can_not_be_is_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ModelEntry.model_validate(find_model("llama3-8b").model_dump() | changes)
