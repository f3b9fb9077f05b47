"""Which model is trained? One of the articles', made from its configuration with random weights.

A network is measured as well by random weights as by real ones: a step's arithmetic and what it
sends are the same. `toy` divides the widths of a layer and keeps their ratios, so that two cores
train it; `layers` keeps the layer as it is and leaves out others.
"""

import os
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Gemma3TextConfig,
    GptOssConfig,
    GraniteConfig,
    LlamaConfig,
    PretrainedConfig,
    PreTrainedTokenizerFast,
)

SHAPES: dict[str, tuple[type[PretrainedConfig], dict[str, Any]]] = {
    # Source: Grattafiori et al. 2024 (The Llama 3 herd of models), table 3, and 3.1's context.
    "llama-3.1-8b": (
        LlamaConfig,
        {
            "num_hidden_layers": 32,
            "hidden_size": 4096,
            "intermediate_size": 14_336,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 128_256,
            "max_position_embeddings": 131_072,
            "rms_norm_eps": 1e-5,
            "rope_parameters": {"rope_type": "default", "rope_theta": 500_000.0},
        },
    ),
    # Source: config.json of ibm-granite/granite-3.1-8b-base.
    "granite-3.1-8b": (
        GraniteConfig,
        {
            "num_hidden_layers": 40,
            "hidden_size": 4096,
            "intermediate_size": 12_800,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "vocab_size": 49_155,
            "max_position_embeddings": 131_072,
            "rms_norm_eps": 1e-5,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000_000.0},
            "embedding_multiplier": 12.0,
            "residual_multiplier": 0.22,
            "attention_multiplier": 0.0078125,
            "logits_scaling": 16.0,
            "tie_word_embeddings": True,
        },
    ),
    # Source: Gemma Team 2025 (Gemma 3), table 1, and config.json of the text part.
    "gemma-3-12b": (
        Gemma3TextConfig,
        {
            "num_hidden_layers": 48,
            "hidden_size": 3840,
            "intermediate_size": 15_360,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 256,
            "vocab_size": 262_208,
            "sliding_window": 1024,
        },
    ),
    # Source: OpenAI 2025 (gpt-oss-120b and gpt-oss-20b model card), section 2, and its config.json.
    "gpt-oss-120b": (
        GptOssConfig,
        {
            "num_hidden_layers": 36,
            "hidden_size": 2880,
            "intermediate_size": 2880,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "num_local_experts": 128,
            "num_experts_per_tok": 4,
            "vocab_size": 201_088,
        },
    ),
}
TOY: dict[str, dict[str, int]] = {
    # Widths by 64, with 4 query heads to one of keys as there, and 3.5 times the width in the MLP.
    "llama-3.1-8b": {
        "hidden_size": 64,
        "intermediate_size": 224,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "vocab_size": 512,
    },
    # By 64, 4 query heads to one, 3.125 times the width.
    "granite-3.1-8b": {
        "hidden_size": 64,
        "intermediate_size": 200,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "vocab_size": 512,
    },
    # By 60, 2 query heads to one, 4 times the width.
    "gemma-3-12b": {
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 512,
        "sliding_window": 32,
    },
    # By 45, 8 query heads to one; 8 experts of 128, and 2 of them at work instead of 4.
    "gpt-oss-120b": {
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_attention_heads": 8,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "vocab_size": 512,
        "sliding_window": 32,
    },
}
TOY_LAYERS = 2
LAYER_CLASSES = {
    "llama-3.1-8b": "LlamaDecoderLayer",
    "granite-3.1-8b": "GraniteDecoderLayer",
    "gemma-3-12b": "Gemma3DecoderLayer",
    "gpt-oss-120b": "GptOssDecoderLayer",
}
"""What FSDP wraps, by the name of its class in transformers."""
FEWER = {"num_local_experts": "experts", "vocab_size": "tokens"}
"""What else can be made smaller without changing the width of a layer."""

NUM_BYTES = 256
MARKS = ("<|pad|>", "<|begin|>", "<|end|>", "<|role|>", "<|/role|>")
CHAT_TEMPLATE = (
    "{{ '<|begin|>' }}{% for message in messages %}"
    "{{ '<|role|>' + message['role'] + '<|/role|>' + message['content'] + '<|end|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|role|>assistant<|/role|>' }}{% endif %}"
)


def config_of(
    name: str,
    *,
    toy: bool = False,
    layers: int | None = None,
    experts: int | None = None,
    vocabulary: int | None = None,
) -> PretrainedConfig:
    """With fewer layers, experts or rows of the embedding if asked. Raises KeyError for a name that
    is not in SHAPES."""
    kind, values = SHAPES[name]
    values = values | (TOY[name] | {"num_hidden_layers": TOY_LAYERS} if toy else {})
    fewer = {"num_hidden_layers": layers, "num_local_experts": experts, "vocab_size": vocabulary}
    values |= {key: value for key, value in fewer.items() if value is not None}
    marks = {f"{word}_token_id": NUM_BYTES + i for i, word in enumerate(("pad", "bos", "eos"))}
    return kind(**values, **marks, use_cache=False)


def random_model(
    config: PretrainedConfig, *, dtype: torch.dtype, attention: str | None, seed: int
) -> Any:
    """With the same random weights on each rank."""
    torch.manual_seed(seed)
    more = {} if attention is None else {"attn_implementation": attention}
    return AutoModelForCausalLM.from_config(config, dtype=dtype, **more)


def place_of(config: PretrainedConfig) -> torch.device:
    """Where are random weights drawn? On this rank's GPU, in no time, if it has room for them in
    float32 twice; else in the host's memory, which takes some 40 s for 10^9 in bfloat16."""
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        with torch.device("meta"):
            parameters = AutoModelForCausalLM.from_config(config).num_parameters()
        if 8 * parameters < torch.cuda.mem_get_info(device)[0]:
            return device
    return torch.device("cpu")


def tokenizer_of(path: str | None) -> Any:
    """Of a model on disk or on the hub, with a pad token; None: bytes, five marks and a chat
    template of our own, which need no download."""
    if path is not None:
        tokenizer = AutoTokenizer.from_pretrained(path)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer
    words = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *MARKS]
    vocabulary = {text: i for i, text in enumerate(words)}
    plain = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = decoders.ByteLevel()
    pad, begin, end, *others = MARKS
    return PreTrainedTokenizerFast(
        tokenizer_object=plain,
        pad_token=pad,
        bos_token=begin,
        eos_token=end,
        extra_special_tokens=list(others),
        chat_template=CHAT_TEMPLATE,
    )


def describe(config: PretrainedConfig, name: str, *, toy: bool) -> str:
    """`llama-3.1-8b, 4 of 32 layers, 16032 of 128256 tokens, random weights`."""
    whole = SHAPES[name][1]["num_hidden_layers"]
    parts = [name, *(["toy widths"] if toy else [])]
    parts.append(f"{config.num_hidden_layers} of {whole} layers")
    for key, word in FEWER.items():
        most = (SHAPES[name][1] | (TOY[name] if toy else {})).get(key)
        if most is not None and (number := getattr(config, key)) != most:
            parts.append(f"{number} of {most} {word}")
    return ", ".join([*parts, "random weights"])
