"""Is my number normal? What to say of a measured bus bandwidth, beside what it should be."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from broadgauge.doctor.expectation import BandwidthExpectation
from broadgauge.doctor.log.conclusions.conclusion import quoted
from broadgauge.doctor.log.facts import LogReading, Measured
from broadgauge.specs.records.record import Confidence, Finding, Severity
from broadgauge.specs.units import show_bandwidth, show_size

EXPLAINED_FROM_BYTES = 16 * 2**20
"""Where the log says why a job must be slower, messages from here on count: sockets carry a third
of RDMA at 16 MB as at 2 GB. Source: NVIDIA/deepops docs/k8s-cluster/roce-perf-k8s.md."""
_WRONG = "nccl-tests-wrong"
_MOST_WRONG = 3
_OF_RINGS = ("all_reduce", "all_gather", "reduce_scatter", None)
"""Whose busbw is what crosses the NICs; None: not said, and nearly always all_reduce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BusbwWords:
    """How each answer is put; in braces what `_said` fills in. As the doctor says it."""

    unknown: str = "{got} busbw: {expected}"
    normal: str = "{got} busbw is normal{over}: {expected}{beside}"
    above: str = "{got} busbw is more than {expected}"
    average: str = "{got} is the mean over all sizes, which says little: {expected}"
    small: str = "{got} busbw at {size}: {expected} holds from {from_size} on"
    below: str = "{expected}; measured: {got}{why}{if_so}"
    unknown_fix: str | None = None
    """None: it names what is missing."""


def measured_findings(
    reading: LogReading,
    expected: BandwidthExpectation,
    *,
    measured_gbyte_per_s: float | None = None,
) -> tuple[Finding, ...]:
    """Of what nccl-tests printed into these logs, and of a busbw that the user gives, beside what
    such a job should reach.

    Of each op the largest message counts; the average only where there is no row.
    """
    given = (
        () if measured_gbyte_per_s is None else (judge_measured(expected, measured_gbyte_per_s),)
    )
    rows = [_of_row(expected, row) for row in _largest_rows(_right(reading.measured))]
    return (*given, *_wrong_rows(reading), *rows)


def _right(measured: Sequence[Measured]) -> list[Measured]:
    """Rows without wrong values; an average holds those of all rows."""
    has_wrong = any(row.num_wrong for row in measured)
    return [
        row for row in measured if not row.num_wrong and not (has_wrong and row.size_bytes is None)
    ]


def _wrong_rows(reading: LogReading) -> tuple[Finding, ...]:
    """Where the line below the table is missing that a rule knows: the job did not get there."""
    wrong = [row for row in reading.measured if row.num_wrong]
    if not wrong or any(seen.rule.id == _WRONG for seen in reading.seen):
        return ()
    worst = max(wrong, key=lambda row: row.num_wrong)
    size = "" if worst.size_bytes is None else f" at {show_size(worst.size_bytes)}"
    return (
        Finding(
            rule=_WRONG,
            severity=Severity.ERROR,
            symptom=f"wrong data arrived: nccl-tests counts {worst.num_wrong} wrong values{size}",
            evidence=tuple(quoted([(row.place, row.text) for row in wrong[:_MOST_WRONG]])),
            cause="data is corrupted on its way; the bandwidths of these rows do not count",
            fix="NCCL_IB_HCA with one adapter at a time, and fewer GPUs, shows which is bad; "
            "NCCL_IB_ECE_ENABLE=0; `dmesg | grep Xid`, `nvidia-smi -q -d ECC`",
            confidence=Confidence.POSSIBLE,
        ),
    )


def _largest_rows(measured: Sequence[Measured]) -> list[Measured]:
    rows: dict[str | None, Measured] = {}
    for row in measured:
        known = rows.get(row.op)
        if row.op in _OF_RINGS and (known is None or _size(row) >= _size(known)):
            rows[row.op] = row
    has_rows = any(row.size_bytes is not None for row in rows.values())
    return [row for row in rows.values() if row.size_bytes is not None or not has_rows]


def _size(row: Measured) -> int:
    return -1 if row.size_bytes is None else row.size_bytes


def _of_row(expected: BandwidthExpectation, row: Measured) -> Finding:
    line = quoted([(row.place, row.text)])[0]
    if len(row.ops) > 1:
        return _fact(
            "busbw-unknown",
            f"{show_bandwidth(row.busbw_gbyte_per_s)} busbw: unknown: of {' or '.join(row.ops)}, "
            "the log does not say which",
            (line,),
            fix="nccl-tests prints the collective's name from 2.17 on",
        )
    return judge_measured(
        expected,
        row.busbw_gbyte_per_s,
        size_bytes=row.size_bytes,
        is_average=row.size_bytes is None,
        line=line,
    )


def judge_measured(
    expected: BandwidthExpectation,
    measured_gbyte_per_s: float,
    *,
    size_bytes: int | None = None,
    is_average: bool = False,
    line: str | None = None,
    words: BusbwWords = BusbwWords(),
) -> Finding:
    """Is this busbw of an all-reduce what it should be?

    `size_bytes`: of the message; None: a large one. `is_average`: nccl-tests' `Avg bus bandwidth`,
    the mean over all sizes. `line`: where it was read. Small messages and averages below the
    expectation are no finding, unless the log itself says why the job must be slower.
    """
    evidence = _evidence(expected, line)
    said = partial(_said, expected, measured_gbyte_per_s, size_bytes)
    low, high = expected.low_gbyte_per_s, expected.high_gbyte_per_s
    if low is None or high is None:
        fix = f"needed: {'; '.join(expected.missing)}" if expected.missing else None
        return _fact("busbw-unknown", said(words.unknown), evidence, fix=words.unknown_fix or fix)
    if low <= measured_gbyte_per_s <= high:
        return _fact("busbw-as-expected", said(words.normal), evidence)
    if measured_gbyte_per_s > high:
        return _fact(
            "busbw-above-expected",
            said(words.above),
            evidence,
            cause=(
                "ranks of a node add up before they send (NVLS, trees, SHARP), more or faster "
                "NICs than were found, or another definition: bits, or algbw"
            ),
        )
    if is_average and expected.why_less is None:
        return _fact(
            "busbw-average",
            said(words.average),
            evidence,
            cause="small messages pull it down: 7.77 was printed where large ones reached 22.9 "
            "(NVIDIA/deepops, roce-perf-k8s.md)",
            fix="give the busbw of the largest message, of 1 GiB or more",
        )
    if size_bytes is not None and size_bytes < _least_bytes(expected):
        return _fact(
            "busbw-small-message",
            said(words.small),
            evidence,
            fix=f"measure {show_size(max(expected.from_bytes, 2**30))}",
        )
    return _below(expected, said(words.below), evidence)


def _said(
    expected: BandwidthExpectation, gbyte_per_s: float, size_bytes: int | None, pattern: str
) -> str:
    """Of `BusbwWords`, with the figures."""
    less = expected.why_less
    return pattern.format(
        got=show_bandwidth(gbyte_per_s),
        expected=expected.words,
        setup=expected.setup,
        bounds=expected.bounds if expected.is_known else "",
        why_unknown=expected.why_unknown,
        size="" if size_bytes is None else show_size(size_bytes),
        from_size=show_size(expected.from_bytes),
        over="" if expected.by_rdma is None else " for TCP sockets",
        beside="" if expected.by_rdma is None else f"; {expected.by_rdma}",
        why="" if less is None else f": {less}",
        if_so="" if expected.if_so is None else f", if {expected.if_so}",
    )


def _least_bytes(expected: BandwidthExpectation) -> int:
    """From which message on too little is too little."""
    return expected.from_bytes if expected.why_less is None else EXPLAINED_FROM_BYTES


def _below(expected: BandwidthExpectation, symptom: str, evidence: tuple[str, ...]) -> Finding:
    why = expected.why_less
    if expected.if_so is not None:
        return _fact(
            "busbw-below-expected",
            symptom,
            evidence,
            fix="NCCL_DEBUG=INFO shows the way that the bytes take; `nvidia-smi topo -m`",
        )
    if why is not None:
        return Finding(
            rule="busbw-below-expected",
            severity=Severity.WARNING,
            symptom=symptom,
            evidence=evidence,
            cause=why,
            fix="see the findings of the network and of GPUDirect RDMA",
            confidence=Confidence.LIKELY,
        )
    return Finding(
        rule="busbw-below-expected",
        severity=Severity.WARNING,
        symptom=symptom,
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
