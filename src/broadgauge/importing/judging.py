"""Is an imported bus bandwidth what it should be? What the user and the file's log lines say."""

from dataclasses import dataclass, replace

from broadgauge.catalog.networks import NetworkClass
from broadgauge.doctor.expectation import expect
from broadgauge.doctor.log.facts import LogReading
from broadgauge.doctor.log.files import text_source
from broadgauge.doctor.log.findings import log_findings
from broadgauge.doctor.log.reading import read_logs
from broadgauge.doctor.measured import BusbwWords, judge_measured
from broadgauge.doctor.situation import Situation, situation_of, with_usual_path
from broadgauge.importing.measured import ImportedMeasurement
from broadgauge.importing.source import SourceFile, without_secrets
from broadgauge.specs.networks.network import PathKind
from broadgauge.specs.records.record import Finding

_OF_RINGS = ("all_reduce", "all_gather", "reduce_scatter")
"""Whose busbw is what crosses the NICs."""
_NCCL = "NCCL "
_WORDS = BusbwWords(
    unknown="unknown whether {got} busbw is normal: {why_unknown}",
    normal="normal{over}: {got} busbw, {bounds} expected: {setup}{beside}",
    above="more than this path is expected to carry: {got} busbw, {bounds} expected: {setup}",
    small="too small a message to tell: {got} busbw at {size}, {bounds} expected from {from_size} "
    "on: {setup}",
    below="too low: {got} of {bounds} busbw expected: {setup}{why}{if_so}",
)
"""A verdict: the answer comes first."""
_FLAGS_INSIDE = "say what it ran on: `--gpu h100-sxm --path nvlink`"
_FLAGS_BETWEEN = "say what it ran on: `--network roce-400g*8`, or `--network tcp --nic-rate 100G`"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineGiven:
    """What the user says of the machines; None: not said."""

    gpu: str | None = None
    """As the driver or the catalog names it."""
    path: PathKind | None = None
    """Between the GPUs of one node."""
    network: NetworkClass | None = None
    """Between nodes."""
    nic_gbps: float | None = None
    """Of one NIC, where the network does not tell."""


def findings_of_log(file: SourceFile) -> tuple[tuple[Finding, ...], LogReading | None]:
    """What NCCL's own lines in the file say; None: there are none."""
    if _NCCL not in file.text:
        return (), None
    reading = read_logs([text_source(without_secrets(file.text), file.name)])
    return (log_findings(reading), reading) if reading.num_nccl_lines else ((), None)


def judged(
    measured: ImportedMeasurement, given: MachineGiven, reading: LogReading | None
) -> Finding | None:
    """Of the largest message; None: no collective whose busbw says what the network carries."""
    rows = measured.measurement.collectives
    if not rows or rows[0].op not in _OF_RINGS or measured.case.world_size < 2:
        return None
    largest = max(rows, key=lambda row: row.size_bytes)
    flags = _FLAGS_INSIDE if measured.case.nodes == 1 else _FLAGS_BETWEEN
    return judge_measured(
        expect(_situation(measured, given, reading), told_by="the file"),
        largest.busbw_gbyte_per_s,
        size_bytes=largest.size_bytes,
        line=measured.place,
        words=replace(_WORDS, unknown_fix=flags),
    )


def _situation(
    measured: ImportedMeasurement, given: MachineGiven, reading: LogReading | None
) -> Situation:
    """What the user says comes before what the log tells."""
    case = measured.case
    known = Situation() if reading is None else situation_of(reading)
    gpu = given.gpu or next(iter(measured.facts.gpus), None)
    network = given.network
    if network is not None:
        known = replace(known, transport=network.transport, num_nics=network.nics)
    named_gbps = None if network is None else network.nominal_gbps
    situation = replace(
        known,
        num_ranks=case.world_size,
        num_nodes=case.nodes,
        gpu=gpu or known.gpu,
        inside=given.path or known.inside,
        is_inside_guessed=known.is_inside_guessed and given.path is None,
        nic_gbps=given.nic_gbps or named_gbps or known.nic_gbps,
    )
    return situation if reading is not None or given.path else with_usual_path(situation)
