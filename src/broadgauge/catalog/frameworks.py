"""How does a training framework launch, fuse and reduce? Known frameworks, with their sources."""

import functools
from typing import Literal, get_args

from pydantic import Field

from broadgauge.catalog.entries import Entry, plain
from broadgauge.catalog.loading import shipped_entries

Style = Literal["fused", "eager", "modular", "compiled"]
"""By what a layer's kernels are: hand-fused ones (Megatron, apex), PyTorch's own, those of models
put together from many small modules (Transformers), or a compiler's."""
STYLES: tuple[Style, ...] = get_args(Style)


class Framework(Entry):
    """One framework of frameworks.yaml."""

    style: Style
    overlaps_gradients: bool
    """Gradients are reduced while the backward pass still runs."""
    gradient_bytes: int | None = Field(default=None, ge=1, le=8)
    """Of one reduced element at half precision; None: as the parameters."""
    keeps_masters: bool = False
    """16-bit weights beside fp32 master copies of its own, and not fp32 weights that are cast. With
    FSDP, PyTorch's own way holds."""
    uses_deepspeed: bool = False
    """For ZeRO: its buckets of a fixed number of elements, and its ways of moving states away."""
    overwrites_logits: bool = False
    """The loss writes its gradient over the logits."""


UNKNOWN = Framework(
    name="unknown", style="eager", overlaps_gradients=True, gradient_bytes=None, source="none"
)
"""What one that is not in the catalog is taken for."""


@functools.cache
def known_frameworks() -> tuple[Framework, ...]:
    """Every entry that is shipped."""
    return shipped_entries("frameworks", Framework)


@functools.lru_cache(maxsize=256)
def framework_named(name: str) -> Framework:
    """The entry of a name or alias; `UNKNOWN` where there is none, which widens the interval."""
    wanted = plain(name)
    for entry in known_frameworks():
        if wanted in (plain(each) for each in entry.names()):
            return entry
    return UNKNOWN
