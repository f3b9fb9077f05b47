"""Which shape does the reference trainer give a model that it shall be like?

Its blocks are GPT-2's and Llama's. Of what is not in a shape (scaled embeddings, norms of queries
and keys) nothing is trained; what would change the matrices is refused.
"""

from collections.abc import Iterator
from typing import Any

from broadgauge.catalog.models import ModelEntry, find_model
from broadgauge.specs.errors import InputError


def trained_shape(name: str) -> dict[str, Any]:
    """The keys of `model:` in an experiment, the entry's own name among them.

    Raises InputError: no such model, or one with other blocks.
    """
    entry = find_model(name)
    sizes = {
        "shape_of": entry.name,
        "layers": entry.layers,
        "hidden": entry.hidden,
        "heads": entry.heads,
        "vocabulary": entry.vocabulary,
        # Of a model with learned positions no sequence is longer than their table.
        "seq_len": min(entry.seq_len, entry.position_embeddings or entry.seq_len),
    }
    not_llama, not_gpt = list(_unlike_llama(entry)), list(_unlike_gpt(entry))
    if not not_llama:
        is_usual = entry.head_dim * entry.heads == entry.hidden
        return sizes | {
            "kind": "llama",
            "kv_heads": entry.kv_heads,
            "head_dim": None if is_usual else entry.head_dim,
            "ffn": entry.ffn_hidden,
            "tied_head": entry.tied_embeddings,
        }
    if not not_gpt:
        return sizes | {"kind": "gpt", "tied_head": entry.tied_embeddings}
    nearer = not_llama if entry.gated_mlp else not_gpt
    raise InputError(
        f"the reference trainer has no blocks like those of {entry.name}: {', '.join(nearer)}",
        hint="it has Llama's (`like: llama3-8b`) and GPT-2's (`like: gpt2-large`); its sizes can "
        "be given one by one: `model: {kind: llama, layers: 4, …}`",
    )


def _unlike_any(entry: ModelEntry) -> Iterator[str]:
    if entry.architecture != "decoder":
        yield {"moe": "a mixture of experts", "encoder": "an encoder"}[entry.architecture]
    if entry.latent_attention is not None:
        yield "latent attention"
    if entry.norms_per_layer != 2:
        yield f"{entry.norms_per_layer} norms a block"


def _unlike_llama(entry: ModelEntry) -> Iterator[str]:
    yield from _unlike_any(entry)
    if not entry.gated_mlp:
        yield "an MLP without a gate"
    if entry.norm != "rms":
        yield "layer norms"
    if entry.bias != "none":
        yield "biases"
    if entry.position_embeddings:
        yield "learned positions"


def _unlike_gpt(entry: ModelEntry) -> Iterator[str]:
    yield from _unlike_any(entry)
    if entry.gated_mlp:
        yield "a gated MLP"
    if entry.norm != "layer":
        yield "RMS norms"
    if entry.bias != "all":
        yield "linear layers without biases"
    if not entry.position_embeddings:
        yield "no learned positions"
    if entry.kv_heads != entry.heads or entry.head_dim * entry.heads != entry.hidden:
        yield "heads of other sizes"
    if entry.ffn_hidden != 4 * entry.hidden:
        yield f"an MLP of {entry.ffn_hidden}"
