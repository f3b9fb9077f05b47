"""Which shape has the model of a Hugging Face `config.json`? Read from a path, never fetched."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from broadgauge.catalog.models import Activation, ModelEntry
from broadgauge.specs.base import NAME_PATTERN
from broadgauge.specs.errors import InputError

SUFFIX = ".json"
USUAL_SEQ_LEN = 8192
"""Tokens a sequence where the file allows more: pre-training's own, not the longest context.
Source: Grattafiori et al. 2024 (arXiv 2407.21783), section 3.4.1."""
MOST_BYTES = 1 << 20
_MOST = 10**9
_LLAMA = {
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "head_dim": "head_dim",
    "ffn_hidden": "intermediate_size",
    "vocabulary": "vocab_size",
    "longest_seq_len": "max_position_embeddings",
}
_GPT2 = {
    "layers": "n_layer",
    "hidden": "n_embd",
    "heads": "n_head",
    "ffn_hidden": "n_inner",
    "vocabulary": "vocab_size",
    "longest_seq_len": "n_positions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Architecture:
    """How the files of one `model_type` say their shape."""

    keys: Mapping[str, str]
    """Field of `ModelEntry` → key of the file."""
    optional: frozenset[str] = frozenset(("head_dim",))
    """Fields that follow from the others where the file has none."""
    is_tied: bool = False
    """Where `tie_word_embeddings` is not said."""
    takes_biases: bool = False
    """It has `attention_bias` and `mlp_bias`."""
    activation: str = "hidden_act"
    """The key of the MLP's activation, where a file says it."""
    always: Mapping[str, Any] = field(default_factory=dict)
    """Of every model of it."""


_GATED = {"gated_mlp": True, "norm": "rms"}
_ARCHITECTURES: Mapping[str, _Architecture] = {
    "llama": _Architecture(
        keys=_LLAMA,
        optional=frozenset(("head_dim", "kv_heads")),
        takes_biases=True,
        always=_GATED,
    ),
    "granite": _Architecture(keys=_LLAMA, takes_biases=True, always=_GATED),
    "mistral": _Architecture(keys=_LLAMA, always=_GATED),
    "phi3": _Architecture(keys=_LLAMA, always=_GATED),
    "qwen2": _Architecture(keys=_LLAMA, always={**_GATED, "bias": "qkv"}),
    "qwen3": _Architecture(
        keys=_LLAMA,
        optional=frozenset(),
        takes_biases=True,
        always={**_GATED, "norms_queries_and_keys": True},
    ),
    "gemma3_text": _Architecture(
        keys=_LLAMA,
        optional=frozenset(),
        is_tied=True,
        activation="hidden_activation",
        always={
            **_GATED,
            "activation": "gelu",
            "norms_per_layer": 4,
            "norms_queries_and_keys": True,
        },
    ),
    "gpt2": _Architecture(
        keys=_GPT2,
        optional=frozenset(("ffn_hidden",)),
        is_tied=True,
        activation="activation_function",
        always={"bias": "all", "norm": "layer"},
    ),
}
"""By `model_type`. Source: configuration_*.py and modeling_*.py of Hugging Face's transformers."""
_ACTIVATIONS: Mapping[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "relu": "relu",
    **dict.fromkeys(("gelu", "gelu_new", "gelu_fast", "gelu_python", "gelu_pytorch_tanh"), "gelu"),
}
"""By the file's word. Source: ACT2CLS in activations.py of Hugging Face's transformers."""


def is_config_path(name: str) -> bool:
    """Is a file meant, and no entry of the catalog?"""
    return name.endswith(SUFFIX)


def read_model(path: Path) -> ModelEntry:
    """The model of such a file, named after its folder.

    Raises InputError: no such file, no JSON, an architecture that nobody knows, a missing key.
    """
    told = _object(_text(path), path)
    architecture = _architecture(told, path)
    numbers = dict(_numbers(told, architecture, path))
    longest = numbers["longest_seq_len"]
    shape: dict[str, Any] = dict(numbers)
    if architecture.keys is _GPT2:
        shape |= {"position_embeddings": longest}
        shape.setdefault("ffn_hidden", 4 * numbers["hidden"])
    shape |= {
        "name": _name(path),
        "seq_len": min(longest, USUAL_SEQ_LEN),
        "tied_embeddings": _flag(told, "tie_word_embeddings", path, default=architecture.is_tied),
        "source": str(path),
        **architecture.always,
    }
    if architecture.takes_biases:
        shape["bias"] = _bias(told, path)
    if (activation := told.get(architecture.activation)) is not None:
        shape["activation"] = _ACTIVATIONS.get(str(activation), "other")
    try:
        return ModelEntry.model_validate(shape)
    except ValidationError as error:
        reasons = (each["msg"].removeprefix("Value error, ") for each in error.errors())
        raise InputError(f"{path}: {'; '.join(reasons)}") from error


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InputError(f"{path}: more than 1 MiB is no model's config.json")
        return data.decode("utf-8")
    except OSError as error:
        hint = "the path of a model's config.json, or a name of `broadgauge catalog list models`"
        raise InputError(f"the model {path} can't be read: {error.strerror}", hint=hint) from error
    except UnicodeDecodeError as error:
        raise InputError(f"the model {path} can't be read: it is not UTF-8 text") from error


def _object(text: str, path: Path) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise InputError(f"{where}: no JSON: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no JSON: {error}") from error
    if not isinstance(told, dict):
        raise InputError(f"{path}: a model's config.json is an object", hint=_known_words())
    return told


def _architecture(told: Mapping[str, Any], path: Path) -> _Architecture:
    if "model_type" not in told:
        raise InputError(f"{path}: the key `model_type` is missing", hint=_known_words())
    kind = told["model_type"]
    found = _ARCHITECTURES.get(kind) if isinstance(kind, str) else None
    if found is not None:
        return found
    hint = _known_words()
    if isinstance(told.get("text_config"), dict):
        hint = f"save its `text_config` as a file of its own; {hint}"
    raise InputError(f"{path}: `model_type` `{_short(kind)}` is not known", hint=hint)


def _known_words() -> str:
    known = f"known: {', '.join(_ARCHITECTURES)}"
    return f"{known}; any other shape goes into a catalog file of yours (docs/catalog.md)"


def _numbers(
    told: Mapping[str, Any], architecture: _Architecture, path: Path
) -> Iterator[tuple[str, int]]:
    missing = [
        f"`{key}`"
        for name, key in architecture.keys.items()
        if told.get(key) is None and name not in architecture.optional
    ]
    if missing:
        words = "the key is missing" if len(missing) == 1 else "these keys are missing"
        raise InputError(
            f"{path}: {words}: {', '.join(missing)}",
            hint=f"files of `model_type` `{told['model_type']}` say them",
        )
    for name, key in architecture.keys.items():
        value = told.get(key)
        if value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST:
            raise InputError(
                f"{path}: `{key}` takes a whole number from 1 to 10^9, not `{_short(value)}`",
                hint="a number without quotes",
            )
        yield name, value


def _flag(told: Mapping[str, Any], key: str, path: Path, *, default: bool) -> bool:
    value = told.get(key)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise InputError(f"{path}: `{key}` takes `true` or `false`, not `{_short(value)}`")
    return value


def _bias(told: Mapping[str, Any], path: Path) -> Literal["none", "attention", "all"]:
    attention = _flag(told, "attention_bias", path, default=False)
    mlp = _flag(told, "mlp_bias", path, default=False)
    if mlp and not attention:
        raise InputError(
            f"{path}: `mlp_bias` without `attention_bias` is not known",
            hint="leave `mlp_bias` out: it is far below a percent of the parameters",
        )
    return "all" if mlp else "attention" if attention else "none"


def _name(path: Path) -> str:
    """Of the folder where the file is called config.json; of a download its repository's."""
    own = path.stem
    if own == "config":
        parent = path.absolute().parent
        snapshot = parent.parent.name == "snapshots"
        own = parent.parent.parent.name.rpartition("--")[2] if snapshot else parent.name
    plain = re.sub(r"[^a-z0-9._-]+", "-", own.lower()).lstrip("._-")[:63]
    return plain if re.match(NAME_PATTERN, plain) else "config"


def _short(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
