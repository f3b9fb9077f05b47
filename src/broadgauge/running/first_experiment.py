"""Which experiment suits this machine to begin with? Its text, with a comment for each choice."""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.platforms.paths import paths_between_gpus
from broadgauge.running.experiment_text import comment, slug
from broadgauge.running.own_entry import OwnEntry, scalar
from broadgauge.specs.machines.cluster import MAX_RANKS_PER_NODE
from broadgauge.specs.machines.machine import MachineFacts, MachineNic
from broadgauge.specs.units import show_rate, show_size

LARGE_MODEL_MEMORY_BYTES = 40 * 10**9
"""GPT-2 large in bf16 autocast with Adam at batch 8 x 1024: some 30 GB, by parameters x 16 bytes
and activations; examples/two-gpus.yaml runs it."""
GPU_MODELS = {
    True: ("{layers: 36, hidden: 1280, heads: 20, vocabulary: 50257, seq_len: 1024}", 8, "large"),
    False: ("{layers: 12, hidden: 768, heads: 12, vocabulary: 50257, seq_len: 1024}", 2, "small"),
}
"""Is there memory for the large one? The shape, the batch a rank, and GPT-2's name for it."""
MANY_CORES = 8
MTU_BYTES = (576, 65_000)
"""What a network of an experiment may have."""
RATES_GBPS = (0.001, 10_000)

OWN_SCRIPT = """\
  # Your own script, started by torchrun on every node; a number that it prints is the metric:
  # - kind: command
  #   name: mine
  #   command: [train.py, --epochs, "1"]
  #   metrics:
  #     - {name: step_time_s, regex: 'step \\d+ took ([\\d.]+) s', skip_first: 10}
"""
LAUNCHES = (
    "",
    "# How often each case's ranks are started: the repeat unit of every interval.",
    "launches: 3",
)


def first_experiment(machine: MachineFacts, own: OwnEntry | None = None) -> str:
    """YAML that runs here as it is. `own`: a command, in the place of our own workloads."""
    choice = _Choice(machine=machine, own=own)
    return "".join(f"{line}\n" for line in (*choice.lines(), *LAUNCHES))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    machine: MachineFacts
    own: OwnEntry | None

    @property
    def num_gpus(self) -> int:
        """That compute: an even number, as they are shared out over two nodes; 0: cores do."""
        return len(self.machine.gpus) // 2 * 2

    def lines(self) -> Iterator[str]:
        yield from self._head()
        yield ""
        yield from self._cluster()
        yield ""
        yield "networks:"
        if not self.machine.can_emulate or (self.num_gpus and self.own is None):
            yield from self._paths()
        if self.machine.can_emulate:
            yield from self._links()
        yield ""
        yield "workloads:"
        if self.own is not None:
            yield from self.own.lines()
            return
        yield from collectives_entry(on_gpus=self.num_gpus > 0)
        memory_bytes = min((gpu.memory_bytes for gpu in self.machine.gpus), default=0)
        yield from train_entry("ddp", memory_bytes if self.num_gpus else None)
        yield from OWN_SCRIPT.splitlines()

    def _head(self) -> Iterator[str]:
        machine = self.machine
        gpus = sorted({gpu.name for gpu in machine.gpus})
        found = f"{len(machine.gpus)} x {', '.join(gpus)}" if gpus else "no GPU"
        memory = show_size(machine.memory_bytes)
        yield comment(f"For {machine.hostname}: {len(machine.cores)} cores, {memory}, {found}.")
        yield "# `broadgauge run FILE --dry-run` shows what it means, `broadgauge schema` all keys."
        here = f"on-{slug(machine.hostname) or 'this-machine'}"
        yield f"name: {here if self.own is None else scalar(self.own.name)}"
        if machine.can_emulate:
            yield "platform: emulated"
            return
        yield comment(f"Nodes can't be emulated here: {machine.refusal or 'unknown why'}.")
        yield comment(f"The fix: {machine.fix or 'unknown; run as root, or on another machine'}")
        yield "platform: local"

    def _cluster(self) -> Iterator[str]:
        yield "cluster:"
        yield "  # nodes x ranks a node; the smallest is what scaling is measured against."
        gpus = self.num_gpus
        asked = None if self.own is None else self.own.command.ranks_per_node
        most = gpus or MAX_RANKS_PER_NODE
        if asked is not None and asked > most:
            here = f"here {gpus} GPUs are used" if gpus else f"{most} is the most"
            yield f"  # Not the command's {asked} ranks a node: {here}."
        if asked is not None and asked <= most:
            shapes = [f"1x{asked}", *self._on_two_nodes(asked)]
        elif gpus:
            several = [f"2x{gpus // 2}"] if self.machine.can_emulate else []
            shapes = ["1x1", f"1x{gpus}", *several]
        elif self.machine.can_emulate:
            shapes = ["1x1", "2x1", *(["4x1"] if len(self.machine.cores) >= MANY_CORES else [])]
        else:
            shapes = ["1x1", "1x2"]
        yield f"  shapes: [{', '.join(shapes)}]"
        if self.machine.gpus and not gpus:
            yield "  # Two ranks need two GPUs, and here is one: cores compute."
            yield "  device: cpu"

    def _on_two_nodes(self, ranks: int) -> list[str]:
        """As many ranks on each node, or in all where there are no more GPUs."""
        if not self.machine.can_emulate:
            return []
        if self.num_gpus == 0 or 2 * ranks <= self.num_gpus:
            return [f"2x{ranks}"]
        return [f"2x{ranks // 2}"] if ranks % 2 == 0 else []

    def _paths(self) -> Iterator[str]:
        """Ways inside one node."""
        paths = paths_between_gpus(self.machine) if self.num_gpus else ("sockets",)
        if len(paths) > 1:
            yield "  # Inside a node: a case for each path. Which one was used is checked."
        yield f"  - {{name: inside, path: [{', '.join(paths)}]}}"

    def _links(self) -> Iterator[str]:
        """Networks between emulated nodes."""
        own = _own_networks(self.machine.nics)
        if own:
            yield "  # As fast as this machine's own NICs say they are."
        for nic, count in own:
            note = f"  # {count} like it: `nics_per_node: {count}`" if count > 1 else ""
            rate = show_rate(nic.speed_gbps or 0)
            yield (
                f"  - {{name: as-{slug(nic.name)}, rate_gbps: {rate}, "
                f"mtu_bytes: {_mtu_bytes(nic)}}}{note}"
            )
        yield "  # A list is an axis: a network for each rate."
        if self.num_gpus:
            yield "  - {name: ethernet, rate_gbps: [10 Gbit/s, 25 Gbit/s], mtu_bytes: 9000}"
            yield "  # Unshaped: what this host itself can carry."
            yield "  - {name: reference, mtu_bytes: 9000}"
        else:
            yield "  - {name: ethernet, rate_gbps: [200 Mbit/s, 1 Gbit/s]}"
            yield "  # Unshaped: what this host itself can carry."
            yield "  - {name: reference}"


def collectives_entry(*, on_gpus: bool) -> Iterator[str]:
    """Of `workloads`."""
    sizes = "8 KiB, 1 MiB, 16 MiB, 256 MiB" if on_gpus else "1 KiB, 64 KiB, 1 MiB, 8 MiB"
    yield "  - kind: collectives"
    yield "    ops: [all_reduce, all_gather, reduce_scatter]"
    yield f"    sizes: [{sizes}]"
    yield f"    budget_s: {'300 ms' if on_gpus else '100 ms'}"
    yield "    min_iterations: 3"


def train_entry(strategy: str, gpu_memory_bytes: int | None) -> Iterator[str]:
    """Of `workloads`. `gpu_memory_bytes`: of the smallest GPU; 0: unknown; None: cores compute."""
    yield "  - kind: train"
    yield f"    strategy: {strategy}"
    if gpu_memory_bytes is not None:
        model, batch, size = GPU_MODELS[gpu_memory_bytes >= LARGE_MODEL_MEMORY_BYTES]
        yield f"    # GPT-2 {size}'s shape."
        yield f"    model: {model}"
        yield f"    batch_per_rank: {batch}"
        yield "    dtype: bfloat16"
    else:
        yield "    # Many parameters, few tokens: the gradients weigh more than the arithmetic."
        yield "    model: {layers: 4, hidden: 256, heads: 4, seq_len: 64}"
        yield "    batch_per_rank: 1"
    yield "    steps: 8"
    yield "    warm_up_steps: 2"


def _own_networks(nics: tuple[MachineNic, ...]) -> list[tuple[MachineNic, int]]:
    """One NIC of each speed and MTU that can be emulated, and how many are like it."""
    least, most = RATES_GBPS
    alike: dict[tuple[float, int], list[MachineNic]] = {}
    for nic in nics:
        if nic.speed_gbps is not None and least <= nic.speed_gbps <= most and slug(nic.name):
            alike.setdefault((nic.speed_gbps, _mtu_bytes(nic)), []).append(nic)
    return [(same[0], len(same)) for same in alike.values()]


def _mtu_bytes(nic: MachineNic) -> int:
    least, most = MTU_BYTES
    return min(max(nic.mtu_bytes, least), most)
