"""How many nodes and ranks are there, on which devices? Resolves `auto` and `all`."""

from dataclasses import dataclass

from broadgauge.specs.case import Backend, Device
from broadgauge.specs.cluster import MAX_RANKS_PER_NODE, Cluster, split_shape
from broadgauge.specs.errors import InputError
from broadgauge.specs.machine import MachineFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One size of cluster."""

    nodes: int
    ranks_per_node: int

    @property
    def world_size(self) -> int:
        return self.nodes * self.ranks_per_node

    def __str__(self) -> str:
        return f"{self.nodes}x{self.ranks_per_node}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedCluster:
    """A cluster with nothing left to choose."""

    shapes: tuple[Shape, ...]
    device: Device
    backends: tuple[Backend, ...]
    num_cores: int
    """Of this machine, as far as this process may use them."""
    wished_cores_per_node: int | None
    """What the experiment says; None: `auto`."""
    notes: tuple[str, ...]

    def cores_per_node(self, shape: Shape) -> int:
        """How many cores does each node of this shape get?

        `auto` gives every rank of every shape the same share, the largest shape's: then shapes
        differ in their network only. One core at least, which nodes share if need be.
        """
        if self.wished_cores_per_node is not None:
            return self.wished_cores_per_node
        largest = max(each.world_size for each in self.shapes)
        per_rank = max(1, self.num_cores // largest)
        return min(max(1, self.num_cores), shape.ranks_per_node * per_rank)


def resolve_cluster(cluster: Cluster, machine: MachineFacts) -> ResolvedCluster:
    """Which shapes, device and backend does this cluster mean on this machine?"""
    num_gpus = len(machine.gpus)
    device, device_note = _device(cluster, num_gpus)
    shapes, notes = _distinct(cluster, num_gpus if device == "cuda" else 0)
    usual: Backend = "nccl" if device == "cuda" else "gloo"
    backends = tuple(
        dict.fromkeys(usual if backend == "auto" else backend for backend in cluster.backends)
    )
    if "nccl" in backends and device == "cpu":
        raise InputError(
            "cluster.backend: NCCL needs a GPU for each rank, and CPUs are used"
            + (f" ({device_note})" if device_note else ""),
            hint="`backend: auto` takes Gloo on CPUs",
        )
    return ResolvedCluster(
        shapes=shapes,
        device=device,
        backends=backends,
        num_cores=len(machine.cores),
        wished_cores_per_node=None if cluster.cores_per_node == "auto" else cluster.cores_per_node,
        notes=((device_note,) if device_note else ()) + notes,
    )


def _device(cluster: Cluster, num_gpus: int) -> tuple[Device, str | None]:
    """Which device, and what should the user know of the choice?"""
    if cluster.device == "cpu":
        return "cpu", None
    largest = max(_resolve(cluster, num_gpus), key=lambda shape: shape.world_size)
    if num_gpus >= largest.world_size:
        return "cuda", None
    found = f"{num_gpus} GPU{'' if num_gpus == 1 else 's'}" if num_gpus else "no GPU"
    wanted = f"{largest.world_size} rank{'' if largest.world_size == 1 else 's'}"
    if cluster.device == "cuda":
        raise InputError(
            f"cluster.shapes: {largest} needs a GPU for each of its {wanted}, "
            f"and this machine has {found}",
            hint="fewer ranks (`2xauto` shares the GPUs out), or `device: cpu`",
        )
    return "cpu", f"{found} for {wanted}: CPUs are used"


def _distinct(cluster: Cluster, num_gpus: int) -> tuple[tuple[Shape, ...], tuple[str, ...]]:
    """The shapes, each once, with a note for each that another one's text meant already."""
    shapes: dict[Shape, str] = {}
    notes: list[str] = []
    for text, shape in zip(cluster.shapes, _resolve(cluster, num_gpus), strict=True):
        if shape in shapes:
            notes.append(f"shape {text} is {shape} here, as {shapes[shape]} is: it is run once")
        else:
            shapes[shape] = text
    return tuple(shapes), tuple(notes)


def _resolve(cluster: Cluster, num_gpus: int) -> tuple[Shape, ...]:
    """Each shape in numbers. `auto`: the GPUs shared out over the most nodes here, 1 on CPUs."""
    split = [split_shape(text) for text in cluster.shapes]
    most_nodes = max(nodes for nodes, _ in split)
    auto = max(1, num_gpus // most_nodes)
    numbers = [(nodes, auto if ranks == "auto" else ranks) for nodes, ranks in split]
    sized = [nodes * int(ranks) for nodes, ranks in numbers if ranks != "all"]
    world_size = max(sized, default=most_nodes * auto)
    return tuple(
        _all_ranks(nodes, world_size)
        if ranks == "all"
        else Shape(nodes=nodes, ranks_per_node=int(ranks))
        for nodes, ranks in numbers
    )


def _all_ranks(nodes: int, world_size: int) -> Shape:
    """The ranks of the largest shape, on this many nodes."""
    ranks, left = divmod(world_size, nodes)
    if left:
        raise InputError(
            f"cluster.shapes: {nodes}xall: the {world_size} ranks of the largest shape "
            f"do not divide by {nodes} nodes"
        )
    if ranks > MAX_RANKS_PER_NODE:
        raise InputError(
            f"cluster.shapes: {nodes}xall is {nodes}x{ranks} here, "
            f"and a node has 1 to {MAX_RANKS_PER_NODE} ranks"
        )
    return Shape(nodes=nodes, ranks_per_node=ranks)
