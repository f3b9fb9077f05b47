"""How large is the cluster, and which devices compute? Shapes are `nodes x ranks a node`."""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, field_validator

from broadgauge.messages.limits import MAX_NODES
from broadgauge.specs.base import Spec

MAX_RANKS_PER_NODE = 64

_SHAPE = re.compile(r"(?P<nodes>[0-9]{1,12})x(?P<ranks>[0-9]{1,12}|auto|all)")


def _check_shape(text: str) -> str:
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise ValueError("a shape is nodes x ranks a node: `2x1`, `2xauto` or `1xall`")
    nodes = int(match["nodes"])
    if not 1 <= nodes <= MAX_NODES:
        raise ValueError(f"a cluster has 1 to {MAX_NODES} nodes")
    if match["ranks"].isdigit() and not 1 <= int(match["ranks"]) <= MAX_RANKS_PER_NODE:
        raise ValueError(f"a node has 1 to {MAX_RANKS_PER_NODE} ranks")
    return text


ShapeText = Annotated[str, AfterValidator(_check_shape)]
BackendChoice = Literal["auto", "gloo", "nccl"]


class Cluster(Spec):
    """The sizes to run. Scaling efficiency is measured against the smallest world."""

    shapes: tuple[ShapeText, ...] = Field(default=("1x1", "2x1"), min_length=1, max_length=32)
    """`NxR`: N nodes of R ranks. `auto`: the GPUs shared out over the largest number of nodes
    here, 1 on CPUs. `all`: the ranks of the largest shape, on N nodes (`1xall`: the same world
    on one node, over NVLink or shared memory)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """`auto`: CUDA when there is a GPU for each rank of the largest shape, else CPU."""
    backend: BackendChoice | tuple[BackendChoice, ...] = "auto"
    """`auto`: NCCL on GPUs, Gloo on CPUs. A list is an axis: every case over each of them."""
    cores_per_node: Annotated[int, Field(ge=1, le=4096)] | Literal["auto"] = "auto"
    """Cores each node is pinned to; `auto`: this machine's, shared out over the largest shape."""

    planned: ClassVar[dict[str, str]] = {"storage": "storages as an axis"}

    @field_validator("backend")
    @classmethod
    def _some_backend(
        cls, backend: BackendChoice | tuple[BackendChoice, ...]
    ) -> BackendChoice | tuple[BackendChoice, ...]:
        if isinstance(backend, tuple) and len(set(backend)) != max(1, len(backend)):
            raise ValueError("at least one backend, and each once")
        return backend

    @property
    def backends(self) -> tuple[BackendChoice, ...]:
        """The axis, of one where one is named."""
        return self.backend if isinstance(self.backend, tuple) else (self.backend,)


def split_shape(text: str) -> tuple[int, str]:
    """`2xauto` → (2, "auto"). The text has been validated."""
    nodes, ranks = text.split("x")
    return int(nodes), ranks
