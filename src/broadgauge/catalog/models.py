"""What is the shape of a known model, and how many parameters follow from it?"""

import functools
from typing import Literal, Self

from pydantic import Field, model_validator

from broadgauge.catalog.entries import Entry, Part, find_entry
from broadgauge.catalog.loading import shipped_entries

Activation = Literal["silu", "gelu", "relu", "other"]


class LatentAttention(Part):
    """Multi-head latent attention: queries, keys and values through narrow projections.

    Source: DeepSeek-AI 2024 (DeepSeek-V2, arXiv 2405.04434), section 2.1.
    """

    query_rank: int | None = Field(default=None, ge=1)
    """None: queries are projected at once."""
    key_value_rank: int = Field(ge=1)
    rotary_dim: int = Field(ge=1)
    plain_dim: int = Field(ge=1)
    value_dim: int = Field(ge=1)

    def params(self, hidden: int, heads: int) -> int:
        """Of one layer, norms of the narrow parts included."""
        query = heads * (self.plain_dim + self.rotary_dim)
        rank = self.query_rank
        queries = hidden * query if rank is None else rank * (hidden + query + 1)
        key_values = self.key_value_rank * heads * (self.plain_dim + self.value_dim)
        narrow = hidden * (self.key_value_rank + self.rotary_dim) + self.key_value_rank
        return queries + narrow + key_values + heads * self.value_dim * hidden


class ModelEntry(Entry):
    """One model of models.yaml. What is counted follows from the shape; `published_*` check it."""

    architecture: Literal["decoder", "encoder", "moe"] = "decoder"
    layers: int = Field(ge=1)
    hidden: int = Field(ge=1)
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    """As many as `heads` where a file does not say it."""
    head_dim: int = Field(ge=1)
    """hidden / heads where a file does not say it; of a query in latent attention."""
    ffn_hidden: int = Field(ge=1)
    """Width of the MLP, of each matrix where it is gated; of a dense layer where there are both."""
    gated_mlp: bool = False
    """SwiGLU or GEGLU: three matrices instead of two."""
    activation: Activation
    """Of the MLP: SiLU where it is gated and a file does not say it, else GELU in either form."""
    vocabulary: int = Field(ge=2)
    tied_embeddings: bool = False
    position_embeddings: int = Field(default=0, ge=0)
    """Learned ones; 0 with rotary or ALiBi."""
    bias: Literal["none", "qkv", "attention", "all"] = "none"
    """`attention`: of its output too; `all`: of the MLP too."""
    norm: Literal["rms", "layer"] = "rms"
    """`layer` has a bias, `rms` none."""
    norms_per_layer: int = Field(default=2, ge=1)
    norms_queries_and_keys: bool = False
    """One norm over each head's queries, and one over its keys, which all heads share."""
    latent_attention: LatentAttention | None = None
    has_pooler: bool = False
    """BERT's: two token types and one dense layer over the first token. Its norm over the
    embeddings stands where others have one after the last layer."""
    experts: int = Field(default=1, ge=1)
    experts_per_token: int = Field(default=1, ge=1)
    shared_experts: int = Field(default=0, ge=0)
    expert_ffn_hidden: int = Field(ge=1)
    """`ffn_hidden` where a file does not say it."""
    dense_layers: int = Field(default=0, ge=0)
    """Of a mixture of experts: layers with a dense MLP."""
    seq_len: int = Field(ge=1)
    """Usual in training."""
    longest_seq_len: int | None = Field(default=None, ge=1)
    """What its positions allow. None: not said."""
    published_params: int | None = Field(default=None, gt=0)
    """None: a model that was never published."""
    published_active_params: int | None = Field(default=None, gt=0)
    like: str | None = None
    """The model that said what this one does not. None: it said all."""

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, data: object) -> object:
        """What follows from the rest where a file does not say it."""
        if not isinstance(data, dict):
            return data
        hidden, heads = data.get("hidden"), data.get("heads")
        filled = dict(data)
        filled.setdefault("kv_heads", heads)
        filled.setdefault("expert_ffn_hidden", data.get("ffn_hidden"))
        filled.setdefault("activation", "silu" if data.get("gated_mlp") else "gelu")
        latent = data.get("latent_attention")
        parts = latent if isinstance(latent, dict) else {}
        plain, rotary = parts.get("plain_dim"), parts.get("rotary_dim")
        if isinstance(plain, int) and isinstance(rotary, int):
            filled.setdefault("head_dim", plain + rotary)
        elif isinstance(hidden, int) and isinstance(heads, int) and heads > 0:
            filled.setdefault("head_dim", hidden // heads)
        return filled

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} does not divide by kv_heads {self.kv_heads}")
        if self.experts_per_token > self.experts:
            raise ValueError(f"{self.experts_per_token} experts a token, of {self.experts}")
        if (self.architecture == "moe") != (self.experts > 1):
            raise ValueError("`architecture: moe` and more than one expert go together")
        if self.dense_layers > self.layers:
            raise ValueError(f"{self.dense_layers} dense layers, of {self.layers}")
        return self

    @property
    def following(self) -> frozenset[str]:
        """Fields that are what they are where a file does not say them."""
        latent = self.latent_attention
        width = (
            self.hidden // self.heads if latent is None else latent.plain_dim + latent.rotary_dim
        )
        usual = {
            "kv_heads": self.heads,
            "head_dim": width,
            "expert_ffn_hidden": self.ffn_hidden,
            "activation": "silu" if self.gated_mlp else "gelu",
        }
        return frozenset(key for key, value in usual.items() if getattr(self, key) == value)

    @property
    def params(self) -> int:
        """All parameters: embeddings, experts, norms and biases too."""
        return self._counted(self.experts)

    @property
    def active_params(self) -> int:
        """Those that a token passes, both embeddings included."""
        return self._counted(self.experts_per_token)

    @property
    def embedding_params(self) -> int:
        """Of the token embedding alone, which multiplies nothing."""
        return self.vocabulary * self.hidden

    def _counted(self, experts: int) -> int:
        norm = self.hidden * (2 if self.norm == "layer" else 1)
        layer = self._attention_params() + self.norms_per_layer * norm
        if self.experts == 1:
            mlps = self.layers * self._mlp_params(self.ffn_hidden)
        else:
            expert = self._mlp_params(self.expert_ffn_hidden)
            router = (self.hidden + (self.bias == "all")) * self.experts
            sparse = (experts + self.shared_experts) * expert + router
            dense = self._mlp_params(self.ffn_hidden)
            mlps = (self.layers - self.dense_layers) * sparse + self.dense_layers * dense
        return self.layers * layer + mlps + norm + self._embedding_params()

    def _attention_params(self) -> int:
        if self.latent_attention is not None:
            return self.latent_attention.params(self.hidden, self.heads)
        query, key = self.heads * self.head_dim, self.kv_heads * self.head_dim
        weights = self.hidden * (2 * query + 2 * key)
        both = query + 2 * key + self.hidden
        biases = {"none": 0, "qkv": query + 2 * key, "attention": both, "all": both}
        norms = 2 * self.head_dim if self.norms_queries_and_keys else 0
        return weights + biases[self.bias] + norms

    def _mlp_params(self, width: int) -> int:
        matrices = 3 if self.gated_mlp else 2
        biases = (matrices - 1) * width + self.hidden if self.bias == "all" else 0
        return matrices * self.hidden * width + biases

    def _embedding_params(self) -> int:
        tables = self.embedding_params * (1 if self.tied_embeddings else 2)
        pooler = (2 + self.hidden + 1) * self.hidden if self.has_pooler else 0
        return tables + self.position_embeddings * self.hidden + pooler


@functools.cache
def known_models() -> tuple[ModelEntry, ...]:
    """Every model that is shipped."""
    return shipped_entries("models", ModelEntry)


@functools.lru_cache(maxsize=256)
def find_model(name: str) -> ModelEntry:
    """The model of a name or alias, such as `llama3-8b` or `meta-llama/Llama-3.1-8B`.

    Raises InputError with a hint.
    """
    return find_entry(name.rsplit("/", 1)[-1], known_models(), "model")
