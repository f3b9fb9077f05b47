"""Is my number normal? What to say of a measured bus bandwidth, beside what it should be."""

from broadgauge.doctor.expectation import BandwidthExpectation, expect
from broadgauge.doctor.log.conclusions.conclusion import quoted
from broadgauge.doctor.log.facts import LogReading, Measured
from broadgauge.doctor.situation import situation_of
from broadgauge.specs.record import Confidence, Finding, Severity
from broadgauge.specs.units import show_bandwidth, show_size

EXPLAINED_FROM_BYTES = 16 * 2**20
"""Where the log says why a job must be slower, messages from here on count: sockets carry a third
of RDMA at 16 MB as at 2 GB. Source: NVIDIA/deepops docs/k8s-cluster/roce-perf-k8s.md."""
_OF_RINGS = ("all_reduce", "all_gather", "reduce_scatter", None)
"""Whose busbw is what crosses the NICs; None: not said, and nearly always all_reduce."""


def measured_findings(
    reading: LogReading,
    *,
    measured_gbyte_per_s: float | None = None,
    gpu: str | None = None,
    nic_gbps: float | None = None,
) -> tuple[Finding, ...]:
    """Of what nccl-tests printed into these logs, and of a busbw that the user gives.

    Of each op the largest message counts; the average only where there is no row.
    """
    situation = situation_of(reading, gpu=gpu, nic_gbps=nic_gbps)
    expected = expect(situation)
    given = (
        () if measured_gbyte_per_s is None else (judge_measured(expected, measured_gbyte_per_s),)
    )
    found = (*given, *(_of_row(expected, row) for row in _largest_rows(reading)))
    return tuple(map(_unproven, found)) if situation.is_inside_unseen else found


def _unproven(finding: Finding) -> Finding:
    """Less than over NVLink, where nothing says that NVLink is used: a note."""
    if finding.severity is Severity.INFO:
        return finding
    words = {
        "severity": Severity.INFO,
        "symptom": f"{finding.symptom}, if NVLink joins these GPUs",
        "fix": "NCCL_DEBUG=INFO shows the way that the bytes take; `nvidia-smi topo -m`",
    }
    return finding.model_copy(update=words)


def _largest_rows(reading: LogReading) -> list[Measured]:
    rows: dict[str | None, Measured] = {}
    for row in reading.measured:
        known = rows.get(row.op)
        if row.op in _OF_RINGS and (known is None or _size(row) >= _size(known)):
            rows[row.op] = row
    has_rows = any(row.size_bytes is not None for row in rows.values())
    return [row for row in rows.values() if row.size_bytes is not None or not has_rows]


def _size(row: Measured) -> int:
    return -1 if row.size_bytes is None else row.size_bytes


def _of_row(expected: BandwidthExpectation, row: Measured) -> Finding:
    return judge_measured(
        expected,
        row.busbw_gbyte_per_s,
        size_bytes=row.size_bytes,
        is_average=row.size_bytes is None,
        line=quoted([(row.place, row.text)])[0],
    )


def judge_measured(
    expected: BandwidthExpectation,
    measured_gbyte_per_s: float,
    *,
    size_bytes: int | None = None,
    is_average: bool = False,
    line: str | None = None,
) -> Finding:
    """Is this busbw of an all-reduce what it should be?

    `size_bytes`: of the message; None: a large one. `is_average`: nccl-tests' `Avg bus bandwidth`,
    the mean over all sizes. `line`: where it was read. Small messages and averages below the
    expectation are no finding, unless the log itself says why the job must be slower.
    """
    got = show_bandwidth(measured_gbyte_per_s)
    evidence = _evidence(expected, line)
    low, high = expected.low_gbyte_per_s, expected.high_gbyte_per_s
    if low is None or high is None:
        fix = f"needed: {'; '.join(expected.missing)}" if expected.missing else None
        return _fact("busbw-unknown", f"{got} busbw: {expected.words}", evidence, fix=fix)
    if low <= measured_gbyte_per_s <= high:
        over = "" if expected.by_rdma is None else " for TCP sockets"
        return _fact(
            "busbw-as-expected",
            f"{got} busbw is normal{over}: {expected.words}{_beside(expected)}",
            evidence,
        )
    if measured_gbyte_per_s > high:
        return _fact(
            "busbw-above-expected",
            f"{got} busbw is more than {expected.words}",
            evidence,
            cause=(
                "ranks of a node add up before they send (NVLS, trees, SHARP), more or faster "
                "NICs than were found, or another definition: bits, or algbw"
            ),
        )
    is_explained = expected.why_less is not None
    if is_average and not is_explained:
        return _fact(
            "busbw-average",
            f"{got} is the mean over all sizes, which says little: {expected.words}",
            evidence,
            cause="small messages pull it down: 7.77 was printed where large ones reached 22.9 "
            "(NVIDIA/deepops, roce-perf-k8s.md)",
            fix="give the busbw of the largest message, of 1 GiB or more",
        )
    if size_bytes is not None and size_bytes < _least_bytes(expected):
        return _fact(
            "busbw-small-message",
            f"{got} busbw at {show_size(size_bytes)}: {expected.words} holds from "
            f"{show_size(expected.from_bytes)} on",
            evidence,
            fix=f"measure {show_size(max(expected.from_bytes, 2**30))}",
        )
    return _below(expected, got, evidence)


def _beside(expected: BandwidthExpectation) -> str:
    """What the same NICs could do: normal for sockets is no answer to whose NICs have RDMA."""
    return "" if expected.by_rdma is None else f"; {expected.by_rdma}"


def _least_bytes(expected: BandwidthExpectation) -> int:
    """From which message on too little is too little."""
    return expected.from_bytes if expected.why_less is None else EXPLAINED_FROM_BYTES


def _below(expected: BandwidthExpectation, got: str, evidence: tuple[str, ...]) -> Finding:
    why = expected.why_less
    if why is not None:
        return Finding(
            rule="busbw-below-expected",
            severity=Severity.WARNING,
            symptom=f"{expected.words}; measured: {got}: {why}",
            evidence=evidence,
            cause=why,
            fix="see the findings of the network and of GPUDirect RDMA",
            confidence=Confidence.LIKELY,
        )
    return Finding(
        rule="busbw-below-expected",
        severity=Severity.WARNING,
        symptom=f"{expected.words}; measured: {got}",
        evidence=evidence,
        cause=(
            "no line says why: other jobs on the network, a slow node, congestion control, or a "
            "topology that keeps GPUs from their NICs"
        ),
        fix=(
            "messages between pairs of nodes (`broadgauge run`) show a slow one; `ib_write_bw` "
            "says what a NIC carries without NCCL"
        ),
        confidence=Confidence.POSSIBLE,
    )


def _fact(
    rule: str,
    symptom: str,
    evidence: tuple[str, ...],
    *,
    cause: str | None = None,
    fix: str | None = None,
) -> Finding:
    return Finding(
        rule=rule,
        severity=Severity.INFO,
        symptom=symptom,
        evidence=evidence,
        cause=cause,
        fix=fix,
        confidence=None if cause is None else Confidence.POSSIBLE,
    )


def _evidence(expected: BandwidthExpectation, line: str | None) -> tuple[str, ...]:
    told = (f"{each.words}: {each.source} ({each.date})" for each in expected.sources)
    return (*(() if line is None else (line,)), *told)
