"""What should a reader know of one trial? Each rule yields a finding or nothing.

The rules guard the verdict: a figure taken while the host, the GPUs or the link misbehaved says
little of the network; it is kept and marked. Thresholds, with their reasons: advise/limits.py.
Rules of one kind of workload: advise/kinds/.
"""

from collections.abc import Iterator, Mapping, Sequence

from broadgauge.advise.findings.node_paths import path_unknown
from broadgauge.advise.kinds.kind import TrialRule
from broadgauge.advise.kinds.registry import in_advise
from broadgauge.advise.limits import (
    CEILING_OVER_RATE,
    FOREIGN_CPU_S,
    FOREIGN_ELAPSED_S,
    FOREIGN_RATIO,
    FULL_CLOCK_RATIO,
    PLANTED_LOSS_FACTOR,
    RETRANSMITTED_RATIO,
    STOLEN_RATIO,
    THROTTLED_RATIO,
    is_ceiling_low,
    is_host_saturated,
    is_link_full,
    kernel_ratio,
)
from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.record import Finding, NodeUse, Record, Severity, Status
from broadgauge.specs.units import show_rate, show_ratio


def findings(
    case: Case, record: Record, series: Mapping[str, Sequence[float]] | None = None
) -> tuple[Finding, ...]:
    """What should a reader know of this trial? `series` (per step) adds the search for drift."""
    if record.status is not Status.OK:
        return ()
    rules = (*in_advise(case.workload).rules, *RULES)
    found = [finding for rule in rules for finding in rule(case, record)]
    return (*found, *_drift(series or {}))


def _ceiling(case: Case, record: Record) -> Iterator[Finding]:
    rate = None if case.link is None else case.link.slower_rate_gbps
    if rate is None or record.link is None:
        return
    ceiling = record.link.ceiling_gbps
    if is_ceiling_low(ceiling, rate):
        yield Finding(
            rule="host-ceiling",
            severity=Severity.WARNING,
            symptom="this host's links were seen to carry less than twice their shaped rate",
            evidence=(f"unshaped at least {show_rate(ceiling)}, shaped {show_rate(rate)}",),
            cause="the cores that move the packets, not the network emulated, may be the limit",
            fix=f"a rate of at most {show_rate(ceiling / CEILING_OVER_RATE, 2)}, or more cores",
        )


def _busy(case: Case, record: Record) -> Iterator[Finding]:
    if case.link is None or (case.device == "cpu" and is_link_full(case, record)):
        return
    for node in record.nodes:
        busy, in_kernel = node.cpu_busy_ratio, kernel_ratio(node)
        if busy is not None and in_kernel is not None and is_host_saturated(case, node):
            yield Finding(
                rule="host-cpu",
                severity=Severity.WARNING,
                symptom=f"node {node.node} had no core left for its network stack",
                evidence=(
                    f"{show_ratio(busy)} of its cores busy",
                    f"{show_ratio(in_kernel)} in system and softirq",
                ),
                cause=_cause_of_busy(node),
                fix="more cores a node, a larger MTU, or a slower network",
            )


def _cause_of_busy(node: NodeUse) -> str:
    foreign = node.foreign_busy_ratio
    if foreign is not None and foreign <= FOREIGN_RATIO:
        return "moving the packets takes the cores that the job needs"
    return "the network stack, or another program, takes the cores that the job needs"


def _foreign(_case: Case, record: Record) -> Iterator[Finding]:
    for node in record.nodes:
        ratio = node.foreign_busy_ratio
        if ratio is None or ratio <= FOREIGN_RATIO or node.elapsed_s < FOREIGN_ELAPSED_S:
            continue
        foreign_s = ratio * node.elapsed_s * node.cores_count
        if foreign_s < FOREIGN_CPU_S:
            continue
        yield Finding(
            rule="foreign-load",
            severity=Severity.WARNING,
            symptom=f"other programs used {show_ratio(ratio)} of node {node.node}'s cores",
            evidence=(
                f"{foreign_s:.2f} CPU seconds in {node.elapsed_s:.2f} s that no rank used",
                f"the ranks used {node.ranks_cpu_s or 0.0:.2f}",
            ),
            cause="programs outside of the job ran on the cores that its ranks are held to",
            fix="stop them or run again: every figure of this trial is slower for it",
        )


def _stolen(_case: Case, record: Record) -> Iterator[Finding]:
    for node in record.nodes:
        ratio = node.stolen_ratio
        if ratio is None or ratio <= STOLEN_RATIO or node.elapsed_s < FOREIGN_ELAPSED_S:
            continue
        stolen_s = ratio * node.elapsed_s * node.cores_count
        yield Finding(
            rule="stolen-cores",
            severity=Severity.WARNING,
            symptom=f"the hypervisor took {show_ratio(ratio)} of node {node.node}'s cores",
            evidence=(f"{stolen_s:.2f} CPU seconds stolen in {node.elapsed_s:.2f} s",),
            cause="other virtual machines ran on the processors that this one shares with them",
            fix="run again, or on a machine of its own: this trial's figures are slower for it",
        )


def lost_packets(case: Case, record: Record) -> Iterator[Finding]:
    """What was retransmitted or dropped on a link; also of a trial that failed."""
    if case.link is None:
        return
    for node in record.nodes:
        segments = (node.tx_bytes or 0) / case.link.mtu_bytes
        for rule, count, what in (
            ("retransmits", node.retransmits_count, "segments were retransmitted"),
            ("drops", node.drops_count, f"packets were dropped by the {_dropping(case.link)}"),
        ):
            if count and segments and count / segments > RETRANSMITTED_RATIO:
                severity, cause = _why_lost(count / segments, case.link)
                yield Finding(
                    rule=rule,
                    severity=severity,
                    symptom=f"{show_ratio(count / segments, 2)} of node {node.node}'s {what}",
                    evidence=(f"{count} of about {segments:.0f}",),
                    cause=cause,
                )


def _dropping(network: Network) -> str:
    return "NIC" if network.face else "shaper"


def _why_lost(lost_ratio: float, network: Network) -> tuple[Severity, str]:
    """What the experiment asked to lose is no fault; what is lost beyond it is."""
    planted_ratio = network.loss_ratio
    queue = "a queue on the way" if network.face else "the queue of the shaped link"
    overflow = f"{queue} overflows, or a core was taken away"
    if not planted_ratio:
        return Severity.WARNING, overflow
    asked = f"`loss_ratio` loses {show_ratio(planted_ratio)} of the packets"
    planted_of_counted = planted_ratio / (1 - planted_ratio)
    if lost_ratio <= PLANTED_LOSS_FACTOR * planted_of_counted + RETRANSMITTED_RATIO:
        return Severity.INFO, f"the experiment asks for it: {asked}"
    return Severity.WARNING, f"{asked}, which does not explain so many: {overflow}"


def _throttled(_case: Case, record: Record) -> Iterator[Finding]:
    for gpu in record.gpus:
        mean, highest = gpu.sm_clock_mhz, gpu.sm_clock_max_mhz
        if mean is not None and highest is not None and mean >= FULL_CLOCK_RATIO * highest:
            continue
        if gpu.throttled_ratio is not None and gpu.throttled_ratio >= THROTTLED_RATIO:
            of_highest = "" if highest is None else f" of {highest:.0f}"
            clocks = () if mean is None else (f"mean SM clock {mean:.0f}{of_highest} MHz",)
            yield Finding(
                rule="gpu-throttled",
                severity=Severity.WARNING,
                symptom=f"GPU {gpu.index} ran below its clock",
                evidence=(
                    *gpu.throttle_reasons,
                    f"{show_ratio(gpu.throttled_ratio)} of {gpu.samples_count} samples",
                    *clocks,
                ),
                cause="heat or a power limit",
                fix="compare only with trials that ran at the same clock",
            )


def _drift(series: Mapping[str, Sequence[float]]) -> Iterator[Finding]:
    from broadgauge.results.statistics import drift_ratio, is_drifting

    for name, values in series.items():
        if name.endswith("_s") and is_drifting(values):
            ratio = drift_ratio(values)
            assert ratio is not None
            yield Finding(
                rule="drift",
                severity=Severity.WARNING,
                symptom=f"{name} drifted while the trial ran",
                evidence=(f"its last third is {ratio:.3f} times its first, by medians",),
                cause="heat, another job, or a warm-up that is too short",
            )


RULES: tuple[TrialRule, ...] = (
    _ceiling,
    _busy,
    _foreign,
    _stolen,
    lost_packets,
    _throttled,
    path_unknown,
)
"""Of every workload; what is looked for in one kind alone is in advise/kinds/."""
