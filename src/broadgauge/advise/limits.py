"""From where on is the host the limit, and from where on is a link full? With the reasons."""

from broadgauge.specs.case import Case
from broadgauge.specs.record import NodeUse, Record

CEILING_OVER_RATE = 2.0
"""Below twice the shaped rate the host's own limit shows through: at line rate, moving the
packets takes more than half of what the cores can do, and the job needs them too."""
BUSY_RATIO = 0.9
"""Above it a node has no core left for its network stack: this is a mean over the trial, also of
the moments in which its ranks wait for each other."""
KERNEL_RATIO = 0.5
"""Share of a CPU node's cores in the kernel. There the training keeps the cores busy anyway, so
busy says nothing; more than half of them in system and softirq says the stack is what runs."""
LINE_SHARE = 0.8
"""A link below four fifths of its line rate in its largest message waits for something else."""


def kernel_ratio(node: NodeUse) -> float | None:
    """Which share of a node's cores ran the kernel (system and softirq)? None: not counted."""
    if node.cpu_system_s is None or node.cpu_softirq_s is None:
        return None
    return (node.cpu_system_s + node.cpu_softirq_s) / (node.elapsed_s * node.cores_count)


def is_host_saturated(case: Case, node: NodeUse) -> bool:
    """Had this node no core left for its network stack?

    On GPUs, and in collectives, the cores have little else to do: busy above 90 % is the limit.
    In a training on CPUs the cores compute; there the kernel's share decides. Neither matters on
    CPUs where the link was full all the same: `is_link_full`.
    """
    in_kernel = kernel_ratio(node) if node.elapsed_s > 0 else None
    if in_kernel is None or node.cpu_busy_ratio is None:
        return False
    if case.device == "cuda" or case.workload.only_communicates:
        return node.cpu_busy_ratio > BUSY_RATIO
    return in_kernel > KERNEL_RATIO


def is_link_full(record: Record) -> bool:
    """Did the largest collective fill its line, so that the cores did keep up?"""
    share = record.metrics.get("line_share_ratio")
    return bool(record.collectives) and share is not None and share >= LINE_SHARE


def is_ceiling_low(ceiling_gbps: float, rate_gbps: float) -> bool:
    """Does this host carry so little that its own limit shows through a link of this rate?

    The rate is one NIC's, in its slower direction: the one that data waits for.
    """
    return ceiling_gbps < CEILING_OVER_RATE * rate_gbps
