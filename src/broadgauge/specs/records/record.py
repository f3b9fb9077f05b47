"""What is kept of one trial? One line of records.jsonl, never rewritten.

Formats only grow: readers ignore keys they do not know, and a golden run folder of each
`schema_version` is kept in tests/results/golden.
"""

from enum import StrEnum

from pydantic import Field

from broadgauge.messages.vocabulary import CounterKind, ErrorKind, Phase, Status
from broadgauge.specs.base import StoredModel
from broadgauge.specs.records.file_access_row import FileAccessRow
from broadgauge.specs.records.nccl import NcclUse
from broadgauge.specs.records.op_rows import AnyOpRow

SCHEMA_VERSION = 1
MAX_RECORD_BYTES = 64 * 1024


class TrialError(StoredModel):
    kind: ErrorKind
    message: str
    phase: Phase | None = None
    rank: int | None = None
    """The rank that crashed, or that others wait for; None where no single one is to blame."""
    frame: str | None = None
    """Its own line: `train.py:42 in step`; None: not known, or an older run."""
    last_lines: tuple[str, ...] = ()
    """Its traceback or stack, else the end of what it wrote: at most 40 lines of 500 characters."""

    @property
    def headline(self) -> str:
        """The message in one line: its first, and where that announces others, the last of them."""
        first, *others = self.message.splitlines() or [""]
        if not first.endswith("its last lines:"):
            return first
        announced = first.removesuffix("its last lines:")
        last = next((line.strip() for line in reversed(others) if line.strip()), None)
        return (
            f"{announced}it printed no line"
            if last is None
            else f"{announced}its last line: {last}"
        )


class NicUse(StoredModel):
    """What crossed one NIC, or one port of an InfiniBand adapter, in the measured part."""

    name: str
    """`eth0`, `mlx5_0:1`."""
    tx_bytes: int
    rx_bytes: int
    drops_count: int | None = None
    counted_by: CounterKind | None = None
    """None: an older run."""


class NodeUse(StoredModel):
    """What one node used in the measured part of a trial; differences of monotonic counters."""

    node: int
    elapsed_s: float
    tx_bytes: int | None = None
    """On the wire, Ethernet headers counted, no preamble; None on one node."""
    rx_bytes: int | None = None
    drops_count: int | None = None
    nics: tuple[NicUse, ...] = ()
    """Each by itself; the figures above are their sums. On one node the ports of the machine's
    InfiniBand adapters, whoever used them, and no sums."""
    counted_by: CounterKind | None = None
    """The sums: of several kinds the one that misses most. None: no sums, or an older run."""
    retransmits_count: int | None = None
    cores_count: int
    cpu_user_s: float | None
    cpu_system_s: float | None
    """Without softirq."""
    cpu_softirq_s: float | None
    """These three and the next are None where /proc/stat does not show the node's cores: lxcfs
    renumbers a container's cores there."""
    cpu_busy_ratio: float | None
    """(user + system + softirq) / (elapsed x cores). Of the node's cores, whoever used them.

    At most 1: the kernel counts in ticks of 10 ms, which over a short time sum up to 1.05 of it.
    """
    ranks_cpu_s: float | None = None
    """User + system of the ranks on these cores, those of other nodes that share them too, and of
    their children that have ended; None: not known."""
    foreign_busy_ratio: float | None = None
    """(user + system - ranks) / (elapsed x cores), from 0 to 1: what other programs used.

    Softirq is left out: a packet's work is done on whichever core takes it, for whichever program,
    so it can't be attributed. None where the ranks' part is not known.
    """
    stolen_ratio: float | None = None
    """Of elapsed x cores, what the hypervisor gave to other machines while the cores had work.

    Source: steal in proc_stat(5). 0 on a machine of its own; None in older runs.
    """


class GpuUse(StoredModel):
    """NVML's samples of one GPU during a trial, read from outside the ranks."""

    index: int
    name: str
    samples_count: int
    sm_clock_mhz: float | None = None
    """Mean over the samples in which it was not idle; of all, where it always was."""
    sm_clock_min_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    """The highest that this GPU has, not the highest seen."""
    power_watts: float | None = None
    temperature_celsius: float | None = None
    is_throttled: bool | None = None
    """A clock-reducing reason other than idle or an application's setting was seen."""
    throttled_ratio: float | None = None
    """Share of the samples with such a reason; an H200 at its full clock shows one now and then."""
    throttle_reasons: tuple[str, ...] = ()


class LinkFacts(StoredModel):
    """What this host can carry between two nodes, whatever the shaped rate."""

    ceiling_gbps: float
    """What one plain TCP stream carried at least over the same link unshaped, with its MTU and
    offload, on the wire."""
    eight_streams_gbps: float | None = None
    """Eight at once, over all NICs of a node together; None: unknown, not needed, or an older run.
    """
    is_one_stream_enough: bool = False
    """It carries twice the line rate or more: eight were not asked, as nothing rests on them."""
    round_trip_s: float | None = None
    """Median of 1-byte ping-pongs over the link as shaped."""
    burst_bytes: int | None = None
    """What passes at once after a pause: shorter messages see no shaping. None: unshaped."""
    congestion_control: str | None = None
    """TCP's, in the nodes: `cubic`."""


class ClockFacts(StoredModel):
    """How far was a node's clock from the leader's, before and after a trial?

    A delay of one rank below three times the uncertainty is unknown.
    """

    node: int
    offset_s: float
    """Positive: it is ahead."""
    drift_s: float
    """How much that grew during the trial."""
    uncertainty_s: float
    """Half of the shortest round trip."""


class PathFacts(StoredModel):
    """Which way did the bytes inside a node really take? Read from the library's own log."""

    used: str
    """`nvlink`, `pcie`, `shm`, `sockets`, `network` (a NIC that is not TCP's), or `unknown`."""
    channels_count: int | None = None
    evidence: tuple[str, ...] = ()
    """Lines of the log."""


class Severity(StrEnum):
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """For sorting: 0 is the worst."""
        return _WORST_FIRST.index(self)


_WORST_FIRST = (Severity.ERROR, Severity.WARNING, Severity.INFO)


class Confidence(StrEnum):
    """How sure is it that the cause is the cause?"""

    CERTAIN = "certain"
    """The evidence says it itself: a library's own words, a counter, a file of the kernel."""
    LIKELY = "likely"
    """What it is in most cases of this evidence."""
    POSSIBLE = "possible"
    """One of several causes that this evidence fits."""


class Finding(StoredModel):
    """Something a reader should know: symptom, evidence, cause, fix."""

    rule: str
    severity: Severity
    symptom: str
    evidence: tuple[str, ...] = ()
    cause: str | None = None
    fix: str | None = None
    confidence: Confidence | None = None
    """Of the cause; None: an older run, or a finding that is a measurement and no diagnosis."""


class Measurement(StoredModel):
    """What the probes measured in one trial, all ranks merged."""

    metrics: dict[str, float | None] = Field(default_factory=dict)
    missing: dict[str, str] = Field(default_factory=dict)
    """Why a metric is null, by its name."""
    collectives: tuple[AnyOpRow, ...] = ()
    """Operations at their sizes, in the order measured; a pairwise trial's messages among them."""
    file_accesses: tuple[FileAccessRow, ...] = ()
    """Of a storage, each repetition, in the order measured."""
    nodes: tuple[NodeUse, ...] = ()
    data: str | None = None
    """Which text a training read, and how much of it; None: another workload, or it did not end."""
    metric_ranks: dict[str, int] = Field(default_factory=dict)
    """By metric of a command: the rank whose lines it was read from. Empty: an older run."""


class KeptArtifact(StoredModel):
    """A file that a trial left, as results/folder/artifacts.py keeps it."""

    name: str
    """`rank0.trace.json.gz`; unique in its trial."""
    kind: str
    """`trace`, `log`, `checkpoint_list`."""
    path: str | None
    """In the run folder; None: it was not kept."""
    size_bytes: int
    sha256: str
    """Of its content, as hexadecimal digits; a rank took it when it had written the file."""
    problem: str | None = None
    """Why it was not kept."""


class Record(Measurement):
    """One trial of one case in one launch."""

    schema_version: int = SCHEMA_VERSION
    record_id: str
    """The planned trial's id."""
    case_key: str
    workload: str
    network: str
    shape: str
    """Labels for people; `case_key` decides what is the same case."""
    max_batch_len: int | None = None
    """Tokens that a rank has at most in a batch, by the config.json of its command. None: it has no
    such file, or an older run."""
    launch_id: str
    """`<planned id>` of the first life, `<planned id>r<n>` of a repeated one."""
    block: int
    trial: int
    position: int
    """Its place in the order of all trials of its block: 0 ran first."""
    started_unix_s: float
    ended_unix_s: float
    status: Status
    error: TrialError | None = None
    gpus: tuple[GpuUse, ...] = ()
    link: LinkFacts | None = None
    path: PathFacts | None = None
    nccl: NcclUse | None = None
    """What NCCL's logs say of the launch. None: no NCCL, nothing could be read, or an older run."""
    clocks: tuple[ClockFacts, ...] = ()
    """By node; empty on one machine, where there is one clock."""
    series: dict[str, str] = Field(default_factory=dict)
    """Name → path of a .npy file in the run folder."""
    artifacts: tuple[KeptArtifact, ...] = ()
    """Files that the trial left: profiler traces, libraries' logs, lists of checkpoints."""
    environment: str | None = None
    """Hash, the stem of environments/<hash>.json."""
    findings: tuple[Finding, ...] = ()


class GpuFacts(StoredModel):
    name: str
    memory_bytes: int | None = None
    """None: not known, of an imported run."""


class NodeFacts(StoredModel):
    """Machines of a cluster that are alike, and what they are: specs/machines/alike_nodes.py."""

    nodes: tuple[int, ...]
    """Their numbers."""
    hostnames: tuple[str, ...]
    """In the same order."""
    python: str | None = None
    torch: str | None = None
    nccl: str | None = None
    cuda: str | None = None
    driver: str | None = None
    kernel: str
    distribution: str | None = None
    cpu: str | None = None
    cores: int
    memory_bytes: int
    gpus: tuple[GpuFacts, ...] = ()
    nics: tuple[str, ...] = ()


class Environment(StoredModel):
    """What a figure depends on besides the experiment; each record names its own.

    Of several machines the fields of one are those of node 0, which old readers show. Of an
    imported run only what its file says is known.
    """

    broadgauge: str
    platform: str
    """`emulated`, `local`, `hosts`, `kubernetes`; `imported`: another program measured it,
    elsewhere."""
    python: str | None = None
    torch: str | None = None
    nccl: str | None = None
    cuda: str | None = None
    driver: str | None = None
    kernel: str | None = None
    distribution: str | None = None
    cpu: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    gpus: tuple[GpuFacts, ...] = ()
    nics: tuple[str, ...] = ()
    git_commit: str | None = None
    """Of the working directory the command ran in, `+` when it had changes; None: no checkout."""
    variables: dict[str, str] = Field(default_factory=dict)
    """The ranks' NCCL_*, GLOO_*, TORCH_*, OMP_*, CUDA_* variables, secrets masked."""
    nodes: tuple[NodeFacts, ...] = ()
    """Equal ones once. Empty: all nodes are the one machine above, or an older run."""
    cluster: dict[str, str | None] = Field(default_factory=dict)
    """Facts of a whole cluster, by name; null: not permitted, or not to be read. Empty: there is
    none, or an older run."""
