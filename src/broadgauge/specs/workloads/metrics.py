"""Which metrics are there, in which unit, which direction is better, and what do they mean?"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

Direction = Literal["lower", "higher", "neither"]

UNIT_SUFFIXES: dict[str, str] = {
    "_s_per_gbyte": "s/GB",
    "_gbyte_per_s": "GB/s",
    "_gbps": "Gbit/s",
    "_per_s": "1/s",
    "_bytes": "bytes",
    "_ratio": "ratio",
    "_count": "count",
    "_tflops": "10^12 FLOP/s",
    "_usd_per_hour": "USD/h",
    "usd_per_gpu_hour": "USD/h",
    "usd_per_node_hour": "USD/h",
    "usd_per_gigatoken": "USD/10⁹ tokens",
    "usd_per_run": "USD",
    "_usd": "USD",
    "_watts": "W",
    "_mhz": "MHz",
    "_celsius": "°C",
    "_s": "s",
}
"""The end of a name is its unit (longest suffix first)."""

UNITLESS = ("loss",)


@cache
def unit_of(name: str) -> str | None:
    """`step_time_s` → `s`; None when the name does not end with a known unit."""
    if name in UNITLESS or name.endswith("_loss"):
        return ""
    return next((unit for suffix, unit in UNIT_SUFFIXES.items() if name.endswith(suffix)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    name: str
    direction: Direction
    meaning: str
    is_difference: bool = False
    """A trial may give it on either side of zero."""
    is_part: bool = False
    """Of a whole: no truth is above 1."""

    @property
    def unit(self) -> str:
        unit = unit_of(self.name)
        assert unit is not None, self.name
        return unit


METRICS = (
    Metric(
        name="step_time_s",
        direction="lower",
        meaning="mean time of a training step, slowest rank per step, warm-up left out",
    ),
    Metric(
        name="step_without_communication_s",
        direction="neither",
        meaning="mean time of the same step with communication off (the loss is wrong there)",
    ),
    Metric(
        name="network_cost_s",
        direction="lower",
        meaning="step_time_s - step_without_communication_s of the same trial",
        is_difference=True,
    ),
    Metric(
        name="network_share_ratio",
        direction="lower",
        meaning="network_cost_s / step_time_s",
        is_difference=True,
        is_part=True,
    ),
    Metric(name="tokens_per_s", direction="higher", meaning="tokens of all ranks / step_time_s"),
    Metric(
        name="samples_per_s", direction="higher", meaning="sequences of all ranks / step_time_s"
    ),
    Metric(
        name="mfu_ratio",
        direction="higher",
        meaning="model FLOPs / (step time x peak of the GPUs); null on CPUs",
        is_part=True,
    ),
    Metric(
        name="loss",
        direction="lower",
        meaning="mean training loss of the last measured steps with communication on",
    ),
    Metric(
        name="busbw_gbyte_per_s",
        direction="higher",
        meaning="busbw of the largest all_reduce (else of the first op), as nccl-tests defines",
    ),
    Metric(
        name="algbw_gbyte_per_s",
        direction="higher",
        meaning="algbw of the same collective: bytes / time",
    ),
    Metric(
        name="latency_s",
        direction="lower",
        meaning="median time of the smallest message of the same collective",
    ),
    Metric(
        name="link_rate_gbps",
        direction="higher",
        meaning="rate on the wire by the link's counters during the largest collective or the "
        "steps, busiest node and direction",
    ),
    Metric(
        name="line_share_ratio",
        direction="higher",
        meaning="link_rate_gbps / the network's line rate; null where it is unshaped or was found",
        is_part=True,
    ),
    Metric(
        name="wire_bytes",
        direction="lower",
        meaning="bytes on the wire by counters, busiest node and direction, per step, per "
        "largest collective, or per line of a command's first metric",
    ),
    Metric(
        name="amplification_ratio",
        direction="lower",
        meaning="wire bytes / the ring algorithm's bytes of a node",
    ),
    Metric(
        name="slowest_pair_ratio",
        direction="higher",
        meaning="rate of the slowest pair of nodes / median over all pairs, largest message, "
        "each direction by itself; about 1 where more than half are slow alike",
    ),
    Metric(
        name="read_gbyte_per_s",
        direction="higher",
        meaning="bytes that all ranks read of a storage / time of the slowest rank",
    ),
    Metric(
        name="write_gbyte_per_s",
        direction="higher",
        meaning="bytes that all ranks wrote to a storage / time of the slowest rank until they "
        "are durable: fsync of file and folder",
    ),
    Metric(
        name="read_time_s",
        direction="lower",
        meaning="mean time of a repetition's read, slowest rank",
    ),
    Metric(
        name="write_time_s",
        direction="lower",
        meaning="mean time of a repetition's write until it is durable, slowest rank",
    ),
    Metric(
        name="save_stall_s",
        direction="lower",
        meaning="mean time that training waits for a checkpoint, rank that waits longest",
    ),
    Metric(
        name="save_durable_s",
        direction="lower",
        meaning="mean time from the begin of a checkpoint until it is durable, slowest rank: "
        "fsync of files and folder",
    ),
    Metric(
        name="model_load_s",
        direction="lower",
        meaning="mean time until a model's weights are in the memory in which ranks train it, "
        "slowest rank",
    ),
    Metric(
        name="wait_per_100_samples_s",
        direction="lower",
        meaning="mean time that a rank waits for 100 of its samples, its workers' start "
        "included, rank that waits longest",
    ),
    Metric(
        name="batch_wait_s",
        direction="lower",
        meaning="mean time that a step waits for its batch, the first step of an epoch left "
        "out, rank that waits longest",
    ),
    Metric(
        name="batch_wait_p99_s",
        direction="lower",
        meaning="what 99 % of the same waits do not exceed, rank where it is longest, mean of "
        "epochs",
    ),
    Metric(
        name="device_read_ratio",
        direction="neither",
        meaning="bytes that ranks had read from block devices / bytes that they read; 1 cold, "
        "0 out of memory; 0 also of file systems that are memory or a network",
    ),
    Metric(
        name="cpu_busy_ratio",
        direction="neither",
        meaning="busy share of the busiest node's cores during the measured part",
        is_part=True,
    ),
    Metric(
        name="cpu_s_per_gbyte",
        direction="lower",
        meaning="CPU seconds (user, system, softirq) per 10^9 bytes moved, all nodes; of a "
        "command while its steps run, its start left out",
    ),
    Metric(
        name="start_time_s",
        direction="lower",
        meaning="of a command, from its start to the first counted line of its first metric",
    ),
    Metric(
        name="start_cpu_s",
        direction="lower",
        meaning="CPU seconds (user, system, softirq) of all nodes in start_time_s",
    ),
    Metric(
        name="retransmits_count",
        direction="lower",
        meaning="TCP segments retransmitted, all nodes",
    ),
    Metric(
        name="drops_count",
        direction="lower",
        meaning="packets that the shapers dropped, or the NICs of a network that was found",
    ),
    Metric(
        name="peak_memory_bytes",
        direction="lower",
        meaning="most memory of any rank: CUDA allocator's peak on GPUs, resident set on CPUs",
    ),
    Metric(
        name="compile_s",
        direction="lower",
        meaning="time that torch.compile took on the slowest rank, in no measured step",
    ),
    Metric(
        name="micro_batches_count",
        direction="neither",
        meaning="micro-batches a step of packed samples, mean",
    ),
    Metric(
        name="padding_ratio",
        direction="lower",
        meaning="share of the computed positions of packed samples that is padding, mean of ranks",
        is_part=True,
    ),
    Metric(
        name="start_up_time_s",
        direction="lower",
        meaning="from the start of a rank's process to its process group, slowest rank",
    ),
    Metric(
        name="load_time_s",
        direction="lower",
        meaning="to open the data, build the model and draw its weights, slowest rank",
    ),
    Metric(
        name="epoch_time_s",
        direction="lower",
        meaning="time of the second epoch of `epoch_samples`, of packed samples of the set",
    ),
    Metric(
        name="epoch_measured_ratio",
        direction="neither",
        meaning="share of the second epoch's steps that was measured; below 1 epoch_time_s is "
        "the mean measured step x its steps, of packed samples the measured time a sample x "
        "those that are taken",
        is_part=True,
    ),
    Metric(
        name="training_time_s",
        direction="lower",
        meaning="of all steps of all epochs: those that were run as they were, the others at "
        "the mean measured step, of packed samples at the mean time of their samples",
    ),
    Metric(
        name="completion_time_s",
        direction="lower",
        meaning="start_up_time_s + load_time_s + training_time_s",
    ),
    Metric(
        name="completion_measured_ratio",
        direction="neither",
        meaning="share of all epochs' steps that was run; below 1 the rest is extrapolated",
        is_part=True,
    ),
)

REGISTRY = {metric.name: metric for metric in METRICS}


def may_be_negative(name: str) -> bool:
    """Is this metric a difference? Of a command's own metrics nobody knows: they may be."""
    known = REGISTRY.get(name)
    return known is None or known.is_difference


def is_part(name: str) -> bool:
    """Is this metric a part of a whole, so that no truth is above 1?"""
    known = REGISTRY.get(name)
    return known is not None and known.is_part
