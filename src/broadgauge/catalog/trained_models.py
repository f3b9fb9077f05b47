"""As what does the reference trainer train a known model? Its blocks are GPT-2's and Llama's.

What has no parameters (scaled embeddings, windows of attention, capped logits, a clamp in an
activation) is not looked at, and neither are gpt-oss' sinks of attention, one number a head; what
would change the matrices or their activation is refused.
"""

import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broadgauge.catalog.entries import find_entry
from broadgauge.catalog.model_configs import is_config_path, read_model
from broadgauge.catalog.models import ModelEntry, known_models
from broadgauge.specs.errors import InputError

_ACTIVATIONS = {"relu": "a ReLU", "silu": "a SiLU", "gelu": "a GELU", "other": "another activation"}
SMALLEST_LLAMA_VOCABULARY = 256
"""Bytes are the tokens (specs/workloads/llama.py)."""


def trained_model(name: str, folder: str = "") -> dict[str, Any]:
    """The keys of `model:` in an experiment; `name` may be the path of a `config.json`, from the
    folder. Raises InputError: no such model, or one that can't be trained here."""
    if is_config_path(name):
        return sizes_of(read_model(Path(posixpath.join(folder, name))))
    plain = name.rsplit("/", 1)[-1]
    return sizes_of(find_entry(plain, known_models(), "model", takes_own=False))


def sizes_of(entry: ModelEntry) -> dict[str, Any]:
    """The same of an entry. Raises InputError: a model that can't be trained here."""
    both = list(_unlike_both(entry))
    not_gpt, not_llama = [*both, *_unlike_gpt(entry)], [*both, *_unlike_llama(entry)]
    if not not_gpt:
        return _gpt(entry)
    if not not_llama:
        return _llama(entry)
    reasons = both or min(not_llama, not_gpt, key=len)
    raise InputError(
        f"the reference trainer can't train {entry.name}: it has {', '.join(reasons)}",
        hint="known blocks: GPT-2's (`like: gpt2-large`) and Llama's (`like: llama-3.1-8b`)",
    )


def _gpt(entry: ModelEntry) -> dict[str, Any]:
    return {
        "kind": "gpt",
        "shape_of": entry.name,
        "layers": entry.layers,
        "hidden": entry.hidden,
        "heads": entry.heads,
        "vocabulary": entry.vocabulary,
        # no sequence is longer than the table of positions
        "seq_len": min(entry.seq_len, entry.position_embeddings),
        "tied_head": entry.tied_embeddings,
    }


def _llama(entry: ModelEntry) -> dict[str, Any]:
    is_usual = "head_dim" in entry.following
    return {
        "kind": "llama",
        "shape_of": entry.name,
        "layers": entry.layers,
        "hidden": entry.hidden,
        "heads": entry.heads,
        "kv_heads": None if entry.kv_heads == entry.heads else entry.kv_heads,
        "head_dim": None if is_usual else entry.head_dim,
        "ffn_hidden": entry.expert_ffn_hidden if entry.experts > 1 else entry.ffn_hidden,
        "vocabulary": entry.vocabulary,
        "seq_len": entry.seq_len,
        "tied_head": entry.tied_embeddings,
        "bias": entry.bias,
        "activation": entry.activation,
        "norms_per_layer": entry.norms_per_layer,
        "norms_queries_and_keys": entry.norms_queries_and_keys,
        "experts": entry.experts,
        "experts_per_token": entry.experts_per_token if entry.experts > 1 else None,
    }


def _unlike_both(entry: ModelEntry) -> Iterator[str]:
    if entry.architecture == "encoder":
        yield "an encoder"
    if entry.has_pooler:
        yield "a pooler"
    if entry.latent_attention is not None:
        yield "latent attention"


def _unlike_gpt(entry: ModelEntry) -> Iterator[str]:
    if entry.gated_mlp:
        yield "a gated MLP"
    if entry.activation != "gelu":
        yield f"{_ACTIVATIONS[entry.activation]} in its MLP"
    if entry.norm != "layer":
        yield "RMS norms"
    if entry.bias != "all":
        yield "linear layers without biases"
    if not entry.position_embeddings:
        yield "no learned positions"
    if entry.experts > 1:
        yield "a mixture of experts"
    if entry.kv_heads != entry.heads:
        yield "fewer heads of keys and values than of queries"
    if entry.head_dim * entry.heads != entry.hidden:
        yield f"heads of {entry.head_dim}"
    if entry.ffn_hidden != 4 * entry.hidden:
        yield f"an MLP {entry.ffn_hidden} wide, and not four times {entry.hidden}"
    if entry.norms_per_layer != 2:
        yield f"norms a layer: {entry.norms_per_layer}"
    if entry.norms_queries_and_keys:
        yield "norms of queries and keys"


def _unlike_llama(entry: ModelEntry) -> Iterator[str]:
    if not entry.gated_mlp:
        yield "an MLP without a gate"
    if entry.activation not in ("silu", "gelu"):
        yield f"{_ACTIVATIONS[entry.activation]} in its MLP"
    if entry.norm != "rms":
        yield "layer norms"
    if entry.position_embeddings:
        yield "learned positions"
    if entry.head_dim % 2:
        yield f"heads of {entry.head_dim}, which rotary positions can't halve"
    if entry.norms_per_layer not in (2, 4):
        yield f"norms a layer: {entry.norms_per_layer}"
    if entry.shared_experts:
        yield "experts that every token passes"
    if entry.experts > 1 and entry.dense_layers:
        yield f"layers without experts: {entry.dense_layers}"
    if entry.vocabulary < SMALLEST_LLAMA_VOCABULARY:
        yield f"a vocabulary of {entry.vocabulary}, and text is read as bytes"
