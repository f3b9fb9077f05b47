"""Is what two GPUs' logs say read right, of four versions?"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Way
from broadgauge.doctor.log.files import open_sources
from broadgauge.doctor.log.reading import read_logs

LOGS = Path(__file__).parents[1] / "machine" / "logs"
VERSIONS = ("2.18.3", "2.21.5", "2.28.9", "2.30.7")


def reading_of(version: str, scenario: str) -> LogReading:
    return read_logs(open_sources([LOGS / f"{version}-{scenario}.log.gz"]))


def ways(communicator: CommunicatorFacts) -> Sequence[Way]:
    return sorted({way for ways in communicator.paths.values() for way in ways})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("scenario", "way", "num_hosts", "num_nodes"),
    [
        ("nvlink", Way.P2P, 1, 1),
        ("p2p-off", Way.SHM, 1, 1),
        ("sockets-inside", Way.SOCKETS, 1, 2),  # GPUs that reach each other by no other way
    ],
)
def test_two_ranks_and_their_way(
    version: str, scenario: str, way: Way, num_hosts: int, num_nodes: int
) -> None:
    reading = reading_of(version, scenario)
    assert {process.version for process in reading.processes.values()} == {version}
    assert {process.network for process in reading.processes.values()} == {"Socket"}
    assert {process.interfaces for process in reading.processes.values()} == {("eth0",)}
    assert len(reading.processes) == 2  # also where lines ran together
    assert len({speaker.host for speaker in reading.processes}) == num_hosts
    [communicator] = reading.communicators.values()
    assert communicator.num_ranks == 2
    assert set(communicator.members) == communicator.started == {0, 1}
    assert set(communicator.paths) == {(0, 1), (1, 0)}
    assert ways(communicator) == [way]
    assert communicator.num_channels == len(communicator.rings)
    if version != "2.18.3":  # which does not say what it takes for a node
        assert communicator.num_nodes == num_nodes
    assert reading.problems == []


def test_groups_of_one_job_are_told_apart() -> None:
    communicators = reading_of("2.28.9", "torch-groups").communicators
    assert [each.num_ranks for each in communicators.values()] == [2, 1, 1, 2]
    world, first, second, both = communicators.values()
    assert set(first.members) == set(second.members) == {0}
    assert first.members != second.members
    assert {len(channels) for ways in world.paths.values() for channels in ways.values()} == {24}
    assert {len(channels) for ways in both.paths.values() for channels in ways.values()} == {24}
    assert first.paths == second.paths == {}
