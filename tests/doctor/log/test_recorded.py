"""What of a log's facts is kept in a record, and does it fit?"""

from collections import Counter

import pytest

from broadgauge.doctor.log.facts import (
    Adapter,
    CommunicatorFacts,
    LogReading,
    Place,
    ProcessFacts,
    Speaker,
    Way,
)
from broadgauge.doctor.log.recorded import nccl_use, worth_recording
from broadgauge.specs.records.nccl import MOST_PAIRS, NcclUse
from broadgauge.specs.records.record import Finding, Severity

AT = Place("/runs/x/logs/b0.l0.rank0.nccl.log", 41)


def a_reading(*processes: ProcessFacts, communicators: tuple[CommunicatorFacts, ...] = ()):  # type: ignore[no-untyped-def]
    return LogReading(
        processes={process.speaker: process for process in processes},
        communicators={each.identity: each for each in communicators},
        num_nccl_lines=9,
    )


def a_process(number: int, **facts: object) -> ProcessFacts:
    return ProcessFacts(Speaker(f"node{number}", 42), AT, **facts)  # type: ignore[arg-type]


def a_communicator(identity: str = "0x1", **facts: object) -> CommunicatorFacts:
    return CommunicatorFacts(identity, AT, **facts)  # type: ignore[arg-type]


def recorded(reading: LogReading) -> NcclUse:
    found = nccl_use(reading)
    assert found is not None
    return found


def test_a_job_without_nccl_has_nothing_to_record() -> None:
    assert nccl_use(LogReading(num_lines=100)) is None


def test_all_ranks_are_put_together() -> None:
    reading = a_reading(
        a_process(
            0,
            version="2.28.9",
            network="IB",
            interfaces=("eth0",),
            adapters={"mlx5_0": Adapter("mlx5_0:1", "RoCE", 400_000)},
            init_s=1.5,
            bootstrap_s=0.2,
        ),
        a_process(
            1,
            version="2.28.9",
            network="IB",
            interfaces=("eth0",),
            adapters={"mlx5_1": Adapter("mlx5_1:1", "RoCE", 400_000)},
            init_s=2.5,
        ),
        communicators=(
            a_communicator("0xsmall", num_ranks=1, num_nodes=1, num_channels=2),
            a_communicator(
                num_ranks=2,
                num_nodes=2,
                num_channels=16,
                paths={(0, 1): {Way.GDRDMA: {0, 1}}, (1, 0): {Way.GDRDMA: {0}}},
                lines={(Way.GDRDMA, True): (AT, "Channel 00/0 : 0[0] -> 1[0] via NET/IB/0/GDRDMA")},
            ),
        ),
    )
    found = recorded(reading)
    assert (found.version, found.network, found.interfaces) == ("2.28.9", "IB", ("eth0",))
    assert found.adapters == ("mlx5_0:1/RoCE", "mlx5_1:1/RoCE")
    assert (found.num_channels, found.num_ranks, found.num_nodes) == (16, 2, 2)
    assert (found.init_s, found.bootstrap_s, found.gpudirect) == (2.5, 0.2, True)
    (way,) = found.ways
    assert (way.way, way.num_pairs, way.pairs, way.num_channels) == (
        "GDRDMA",
        2,
        ((0, 1), (1, 0)),
        2,
    )
    assert way.line == (
        "logs/b0.l0.rank0.nccl.log:41: Channel 00/0 : 0[0] -> 1[0] via NET/IB/0/GDRDMA"
    )


def test_one_process_that_fell_back_decides_and_versions_differ() -> None:
    found = recorded(
        a_reading(
            a_process(0, network="IB", version="2.28.9"),
            a_process(1, network="Socket", version="2.30.4"),
        )
    )
    assert (found.network, found.version) == ("Socket", "2.28.9, 2.30.4")


@pytest.mark.parametrize(
    ("paths", "able", "gpudirect"),
    [
        ({(0, 1): {Way.GDRDMA: {0}}}, None, True),
        ({(0, 1): {Way.NETWORK: {0}}}, True, False),
        ({(0, 1): {Way.GDRDMA: {0}, Way.NETWORK: {0}}}, None, True),
        ({(0, 1): {Way.GDRDMA: {0}}, (1, 0): {Way.NETWORK: {0}}}, None, None),
        ({(0, 1): {Way.P2P: {0}}}, None, None),
        ({}, False, False),
        ({}, True, None),
        ({}, None, None),
    ],
)
def test_gpudirect_is_on_off_or_unknown(
    paths: dict[tuple[int, int], dict[Way, set[int]]], able: bool | None, gpudirect: bool | None
) -> None:
    by_adapter = {} if able is None else {"mlx5_0": able}
    process = a_process(0, gdr_by_adapter=by_adapter)
    reading = a_reading(process, communicators=(a_communicator(paths=paths, num_ranks=2),))
    assert recorded(reading).gpudirect is gpudirect


def test_of_many_pairs_the_slow_ones_are_kept_and_all_are_counted() -> None:
    paths = {(a, b): {Way.P2P: {0}} for a in range(20) for b in range(20)}
    paths |= {(a, 0): {Way.SOCKETS: {0, 1}} for a in range(20, 30)}
    found = recorded(a_reading(communicators=(a_communicator(paths=paths, num_ranks=30),)))
    assert {way.way: way.num_pairs for way in found.ways} == {"sockets": 10, "P2P": 400}
    counted = Counter({way.way: len(way.pairs) for way in found.ways})
    assert counted["sockets"] == 10
    assert counted.total() == MOST_PAIRS


@pytest.mark.parametrize("damaged_s", [float("inf"), float("nan"), -1.0])
def test_a_time_that_can_not_be_is_none(damaged_s: float) -> None:
    assert recorded(a_reading(a_process(0, init_s=damaged_s))).init_s is None


def test_facts_are_no_findings_and_evidence_is_named_as_in_the_run() -> None:
    said, warned = (
        Finding(
            rule="r", severity=severity, symptom="s", evidence=("/runs/x/logs/b0.nccl.log:4: text",)
        )
        for severity in (Severity.INFO, Severity.WARNING)
    )
    (kept,) = worth_recording((said, warned), "/runs/x/logs")
    assert kept.severity is Severity.WARNING
    assert kept.evidence == ("logs/b0.nccl.log:4: text",)
