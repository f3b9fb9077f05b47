"""How many nodes and ranks are there, on which devices? Resolves `auto` and `all`."""

from dataclasses import dataclass, replace

from broadgauge.specs.case import Backend, Device
from broadgauge.specs.errors import InputError, TooFewGpusError
from broadgauge.specs.machines.cluster import MAX_RANKS_PER_NODE, Cluster, split_shape
from broadgauge.specs.platforms import Devices, PlatformKind


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
    platform: PlatformKind
    devices: Devices
    """That the shapes were resolved for."""
    asked_cores_per_node: int | None
    """What the experiment says; None: `auto`."""
    notes: tuple[str, ...]

    @property
    def has_one_node_only(self) -> bool:
        """Is there nothing between nodes?"""
        return all(shape.nodes == 1 for shape in self.shapes)

    def cores_per_node(self, shape: Shape) -> int:
        """How many cores does each node of this shape get?

        `auto` gives every rank of every shape the same share, the largest shape's: then shapes
        differ in their network only. One core at least, which nodes share if need be.
        """
        if self.asked_cores_per_node is not None:
            return self.asked_cores_per_node
        largest = max(
            each.world_size if self.devices.are_shared else each.ranks_per_node
            for each in self.shapes
        )
        num_cores = max(1, self.devices.num_cores)
        return min(num_cores, shape.ranks_per_node * max(1, num_cores // largest))


def resolve_cluster(
    cluster: Cluster, platform: PlatformKind, devices: Devices, *, is_only: bool = True
) -> ResolvedCluster:
    """Which shapes, device and backend does this cluster mean on this platform?

    `is_only`: no other platform runs what this one can't. Raises InputError.
    """
    device, device_note = _device(cluster, devices)
    with_device = devices if device == "cuda" else replace(devices, num_gpus=0)
    shapes, notes = _distinct(cluster, with_device)
    shapes, size_notes = _fitting(shapes, platform, devices, is_only=is_only)
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
        platform=platform,
        devices=devices,
        asked_cores_per_node=None if cluster.cores_per_node == "auto" else cluster.cores_per_node,
        notes=(*([device_note] if device_note else ()), *notes, *size_notes),
    )


def _device(cluster: Cluster, devices: Devices) -> tuple[Device, str | None]:
    """Which device, and what should the user know of the choice?"""
    if cluster.device == "cpu":
        return "cpu", None
    shapes = _resolve(cluster, devices)
    if all(devices.has_gpus_for(shape.nodes, shape.ranks_per_node) for shape in shapes):
        return "cuda", None
    num_gpus = devices.num_gpus
    largest = max(shapes, key=lambda shape: shape.world_size)
    found = f"{num_gpus} GPU{'' if num_gpus == 1 else 's'}" if num_gpus else "no GPU"
    wanted = f"{largest.world_size} rank{'' if largest.world_size == 1 else 's'}"
    if cluster.device == "cuda":
        raise TooFewGpusError(
            f"cluster.shapes: {largest} needs a GPU for each of its {wanted}, "
            f"and {devices.place} has {found}",
            num_wanted=largest.world_size,
            hint="fewer ranks (`2xauto` shares the GPUs out), or `device: cpu`",
        )
    return "cpu", f"{found} for {wanted}: CPUs are used"


def _distinct(cluster: Cluster, devices: Devices) -> tuple[tuple[Shape, ...], tuple[str, ...]]:
    """The shapes, each once, with a note for each that another one's text meant already."""
    shapes: dict[Shape, str] = {}
    notes: list[str] = []
    for text, shape in zip(cluster.shapes, _resolve(cluster, devices), strict=True):
        if shape in shapes:
            notes.append(f"shape {text} is {shape} here, as {shapes[shape]} is: it is run once")
        else:
            shapes[shape] = text
    return tuple(shapes), tuple(notes)


def _fitting(
    shapes: tuple[Shape, ...], platform: PlatformKind, devices: Devices, *, is_only: bool
) -> tuple[tuple[Shape, ...], tuple[str, ...]]:
    """The shapes that the platform has nodes for, and a note for each other one.

    Raises InputError where the platform is the only one, or has nodes for none of them.
    """
    most = devices.most_nodes
    fitting = tuple(shape for shape in shapes if most is None or shape.nodes <= most)
    if len(fitting) == len(shapes):
        return shapes, ()
    has = f"the platform {platform} has {most} node{'' if most == 1 else 's'}"
    others = [shape for shape in shapes if shape not in fitting]
    if is_only or not fitting:
        raise InputError(
            f"cluster.shapes: {', '.join(map(str, others))}: {has}",
            hint="shapes of fewer nodes, or another `platform`",
        )
    return fitting, tuple(f"shape {shape} is not run on {platform}: {has}" for shape in others)


def _resolve(cluster: Cluster, devices: Devices) -> tuple[Shape, ...]:
    """Each shape in numbers. `auto`: the GPUs shared out over the most nodes here, 1 on CPUs."""
    split = [split_shape(text) for text in cluster.shapes]
    most_nodes = max(nodes for nodes, _ in split)
    auto = max(1, devices.gpus_per_node(most_nodes))
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
