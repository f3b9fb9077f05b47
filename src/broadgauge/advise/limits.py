"""From where on is something said? Every threshold of a verdict or a finding, with its reason.

Which rule asks for them: advise/verdicts/ for verdicts; advise/trial_findings.py, advise/findings/
and advise/pairs/ for findings; advise/engines.py.
"""

from broadgauge.specs.case import Case
from broadgauge.specs.records.record import NodeUse, Record

NETWORK_SHARE = 0.3
"""Of a step: the 30 % rule. A network of infinite speed makes a step 1 / (1 - share) times as fast,
so that below 30 % no network at all gives 1.43 times."""
FEWEST_LAUNCHES = 3
"""For an interval to decide: with two, it is 18 times as wide as their distance from the mean. With
fewer than these the point estimate decides, and the sentence says so."""
CEILING_OVER_RATE = 2.0
"""Below twice the shaped rate the host's own limit shows through: at line rate, moving the
packets takes more than half of what the cores can do, and the job needs them too. From there on
eight streams are not measured either (agent/supervisor/link_facts.py)."""
BUSY_RATIO = 0.9
"""Above it a node has no core left for its network stack: this is a mean over the trial, also of
the moments in which its ranks wait for each other."""
KERNEL_RATIO = 0.5
"""Share of a CPU node's cores in the kernel. There the training keeps the cores busy anyway, so
busy says nothing; more than half of them in system and softirq says the stack is what runs."""
THROTTLED_MOST = 1.05
"""Of a throttled disk's limit: what an O_DIRECT stream of 1 GiB keeps within. Source:
tests/probes/storage/test_throttle.py."""
THROTTLED_S = 2.0
"""How long a repetition should take at that limit: what passes at once is a tenth of a second's."""
HELD_LEAST = 0.95
"""Of its files' bytes that a file system holds: below that a device that moved all of them would
take more than a twentieth longer."""
STORAGE_SHARE = 0.5
"""Of the rate that raw files reach, or of a wait that is gone when files are in memory: from there
on a faster storage does more for it than faster cores."""
STALL_SHARE = 0.05
"""Of a step: below a twentieth, batches that are there at once make a training less than 1.06 times
as fast."""
LINE_SHARE = 0.8
"""Of the line rate: the 80 % rule. A link below four fifths of it in its largest message waits for
something else; headers (4.5 % at MTU 1500), acknowledgements and the pauses between messages leave
a link that is the limit above it."""
FOREIGN_RATIO = 0.1
"""A tenth of the cores gone makes a job that needs them all about a tenth slower. This and the next
three are of trials, and of the look before the first (advise/findings/shared_cores.py)."""
FOREIGN_ELAPSED_S = 0.2
"""A shorter trial has less than twenty of the kernel's ticks a core."""
FOREIGN_CPU_S = 0.1
"""The cores' time is sampled, mostly every 10 ms, the ranks' is exact: over n samples their
difference strays by half the root of n, so in short trials a few samples are chance."""
STOLEN_RATIO = 0.05
"""A stolen core stops a rank, and all that wait for it, for milliseconds: half of what is tolerated
of other programs, which the scheduler shares a core with fairly."""
RETRANSMITTED_RATIO = 0.01
"""A stream carries at most 1.22 MSS / (round trip x root of the loss): at 1 % and 0.1 ms that is
1.4 Gbit/s at MTU 1500. Source: Mathis et al., CCR 27 (1997), equation 3."""
PLANTED_LOSS_FACTOR = 2.0
"""Planted loss takes acknowledgements too, at most one a segment (RFC 9293, section 3.8.6.3), and
segments are counted by the bytes that got through: lost ones are p / (1 - p) of those."""
THROTTLED_RATIO = 0.25
"""Short bursts of a step touch the power limit on a GPU that otherwise keeps its full clock."""
FULL_CLOCK_RATIO = 0.95
"""Of a GPU's highest clock. NVML names the power limit as a reason also where it takes next to
nothing: measured on H200s at 1,970 of 1,980 MHz, in a quarter of the samples and more."""
AMPLIFICATION = 1.25
"""Headers take 4.5 % at MTU 1500, acknowledgements 1 to 3 %; a quarter more is the algorithm."""
LARGE_MESSAGE_BYTES = 2**20
"""Smaller ones are bound by latency on any network."""
SLOW_PAIR_RATIO = 0.75
"""Of the median fast pair. Speeds of Ethernet and PCIe come in steps, and the smallest leaves
62.5 % (25 of 40 Gbit/s; others 40 to 50 %), while healthy pairs on one network differ by some
percent."""
OUTLYING_DEVIATIONS = 4.0
"""Below the faster half of the fast pairs: on a network whose pairs all differ none is named."""
OUTLYING_TIMES = 4.0
"""Of a node's best pair, as many times as the typical pair falls short of its ends' best ones."""
FEWEST_ENDS = 3
"""Of two ends one can't say which pair is the slow one."""
SAME_ENGINE_RATIO = 0.1
"""Two of our own trials of one large message lie within a few percent; a tenth is a difference."""
DIFFERENT_WIRES = 2.0
"""Times: from here on two rates are another network. Ethernet and InfiniBand double or more."""
BACKEND_WIRE_RATIO = 0.5
"""Of the slower wire: below half of it nothing that differs by the wire is the limit."""
NEGATIVE_SCALING_RATIO = 0.8
"""Of one launch, whose spread is not known: a fifth less is more than two launches of one case
usually differ by."""
LONG_MESSAGE_BYTES = 16 * 2**20
"""At 100 GB/s it takes 0.17 ms, many times the tens of microseconds of a call and a barrier."""


def kernel_ratio(node: NodeUse) -> float | None:
    """Which share of a node's cores ran the kernel (system and softirq)? None: not counted, or
    over no time."""
    cores_s = node.elapsed_s * node.cores_count
    if node.cpu_system_s is None or node.cpu_softirq_s is None or cores_s <= 0:
        return None
    return (node.cpu_system_s + node.cpu_softirq_s) / cores_s


def is_host_saturated(case: Case, node: NodeUse) -> bool:
    """Had this node no core left for its network stack?

    On GPUs, and in collectives, the cores have little else to do: busy above 90 % is the limit.
    In a training on CPUs the cores compute; there the kernel's share decides. Neither matters on
    CPUs where the link was full all the same: `is_link_full`.
    """
    in_kernel = kernel_ratio(node)
    if in_kernel is None or node.cpu_busy_ratio is None:
        return False
    if case.device == "cuda" or case.workload.only_communicates:
        return node.cpu_busy_ratio > BUSY_RATIO
    return in_kernel > KERNEL_RATIO


def is_link_full(case: Case, record: Record) -> bool:
    """Did the largest collective, or the bytes of a step, fill the line, so that the cores did keep
    up? As the verdict asks over all trials (advise/verdicts/link_use.py)."""
    rate_gbps = _line_rate_gbps(case, record)
    if record.collectives or case.workload.is_under_torchrun:
        share = record.metrics.get("line_share_ratio")
        carried_gbps = record.metrics.get("link_rate_gbps")
        if share is None and rate_gbps is not None and carried_gbps is not None:
            share = carried_gbps / rate_gbps
    else:
        share = _step_share(rate_gbps, record)
    return share is not None and share >= LINE_SHARE


def _line_rate_gbps(case: Case, record: Record) -> float | None:
    """Our own rate; of a network that was found, what plain streams carried in this launch."""
    if case.link is None or case.link.face is None or record.link is None:
        return None if case.link is None else case.link.node_rate_gbps
    return max(record.link.ceiling_gbps, record.link.eight_streams_gbps or 0.0)


def _step_share(rate_gbps: float | None, record: Record) -> float | None:
    """Which part of what the network costs a step do its bytes take at line rate?"""
    wire_bytes, cost_s = (record.metrics.get(name) for name in ("wire_bytes", "network_cost_s"))
    if rate_gbps is None or wire_bytes is None or cost_s is None or cost_s <= 0:
        return None
    return wire_bytes * 8e-9 / rate_gbps / cost_s


def is_ceiling_low(ceiling_gbps: float, rate_gbps: float) -> bool:
    """Does this host carry so little that its own limit shows through a link of this rate?

    The rate is one NIC's, in its slower direction: the one that data waits for.
    """
    return ceiling_gbps < CEILING_OVER_RATE * rate_gbps
