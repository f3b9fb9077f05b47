"""What did five articles on networks and storage of training publish? articles.yaml, typed.

Values stand as they were printed; predictions are scored against them (predict/articles/).
"""

import functools
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from broadgauge.catalog.loading import shipped_text
from broadgauge.specs.text.yaml_source import parse_yaml


class _Part(BaseModel):
    """Frozen. What only people read (notes, platform versions) isn't modelled and is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


class ArticleSource(_Part):
    """One article."""

    title: str


class ArticleNetwork(_Part):
    """One network of a cluster, as far as its article has figures of it."""

    nominal_gbps: float | None = None
    """Of each NIC; None: not said."""
    nominal_gbyte_per_s: float | None = None
    """Of NVLink, both directions of all links together."""


class ArticleSystem(_Part):
    """One cluster of an article."""

    source: str
    gpu: str
    gpus_per_node: int
    networks: dict[str, ArticleNetwork] = {}


class Throughput(_Part):
    """A rate of whole steps on a cluster."""

    system: str
    nodes: int
    network: str
    samples_per_s: float = Field(alias="value")


class CompletionTime(_Part):
    """A whole job, evaluation and checkpoints included."""

    network: str
    hours: float = Field(alias="value")


class EpochTime(_Part):
    """The second epoch of a training."""

    id: str
    workload: str
    nodes: int
    gpus_per_node: int
    network: str
    seconds: float = Field(alias="value")
    peak_memory_mib: float


class AllReduceTime(_Part):
    """One all-reduce of two GPUs."""

    path: str
    nodes: int
    backend: Literal["nccl", "gloo"]
    seconds: float
    twice_gibyte_per_s: float = Field(alias="published_2x_gibyte_per_s")
    """The printed speed, headed GB/s."""


class ArticleStepTime(_Part):
    """A mean step."""

    workload: str
    system: str
    network: str
    seconds: float = Field(alias="value")
    total_minutes: float


class ReduceScatterTime(_Part):
    """The first one of a backward pass."""

    network: str
    milliseconds: float = Field(alias="value")


class StorageBandwidth(_Part):
    """What one storage is said to read and write."""

    storage: str
    read_gbyte_per_s: float
    write_gbyte_per_s: float


class StoragePhases(_Part):
    """How long parts of a job take on one storage."""

    storage: str
    batch_loading_per_100_samples: float
    model_loading: float
    checkpoint_saving: float


class StorageChoice(_Part):
    """Which storage an article chose for each phase."""

    batch_loading: str
    model_loading: str
    checkpoint_saving: str


class EndToEndSide(_Part):
    """A configuration of a whole job."""

    network: str
    storage: str


class EndToEnd(_Part):
    """A whole job on two configurations."""

    slow: EndToEndSide
    fast: EndToEndSide
    speedup: tuple[float, float]
    """From, to."""


class Claim(_Part):
    """An article's own words, and what its figures say."""

    source: str
    claim: str
    recomputed: float | tuple[float, ...] | dict[str, float]


class EstimateOfPath(_Part):
    """What an article computed by hand for one path."""

    rate_gbyte_per_s: float | None = None
    comm_s: float
    total_s: float


class HandEstimate(_Part):
    """One simple estimate of net1-2025, for both paths."""

    method: str
    nvlink3: EstimateOfPath
    hdr: EstimateOfPath


class Workload(_Part):
    """What an article says of its training; None: it doesn't say, or not as a number."""

    source: str
    model: str | None = None
    params: float | None = None
    batch_size: int | None = None
    steps_per_epoch: dict[int, int] = {}
    samples: int | None = None
    mean_tokens_per_sample: int | None = None
    max_batch_len_tokens: int | None = None
    effective_batch_size_samples: int | None = None
    num_warmup_steps: int | None = None
    per_device_train_batch_size: int | None = None
    steps: int | None = None


class Articles(_Part):
    """All tables."""

    sources: dict[str, ArticleSource]
    systems: dict[str, ArticleSystem]
    workloads: dict[str, Workload]
    throughput_samples_per_s: tuple[Throughput, ...]
    completion_hours: tuple[CompletionTime, ...]
    epoch2_seconds: tuple[EpochTime, ...]
    all_reduce: tuple[AllReduceTime, ...]
    step_seconds: tuple[ArticleStepTime, ...]
    reduce_scatter_ms: tuple[ReduceScatterTime, ...]
    gpt_oss_120b_speedup_infiniband_over_eth10: float
    storage_bandwidth: tuple[StorageBandwidth, ...]
    storage_phases_seconds: tuple[StoragePhases, ...]
    storage_choice_published: StorageChoice
    end_to_end: EndToEnd
    claims: tuple[Claim, ...]
    estimates_net1: tuple[HandEstimate, ...]


@functools.cache
def articles() -> Articles:
    """The shipped tables."""
    return Articles.model_validate(parse_yaml(shipped_text("articles"), "articles.yaml").data)
