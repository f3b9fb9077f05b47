"""Do the first line's answers follow from what processes told, at a cost that grows as the job?"""

import pytest
from tests.doctor.log.readings import a_reading, on_sockets, processes, the_communicator

from broadgauge.doctor.answer import State, Subject
from broadgauge.doctor.log.answers import answers_of
from broadgauge.doctor.log.facts import ProcessFacts, Way
from broadgauge.doctor.log.job import nodes_of_ranks


def test_processes_are_told_apart_without_comparing_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing each with each would take a minute with 16,000 ranks."""

    def compared(_: ProcessFacts, __: object) -> bool:
        raise AssertionError("two processes were compared")

    monkeypatch.setattr(ProcessFacts, "__eq__", compared)
    for reading, state in ((on_sockets(4, 8), State.ON), (a_reading(4, 8), State.OFF)):
        assert answers_of(reading)[Subject.TCP].state is state


def test_sockets_of_some_are_in_part() -> None:
    reading = a_reading(2, 2)
    processes(reading)[0].network = "Socket"
    answers = answers_of(reading)
    assert answers[Subject.RDMA].state is answers[Subject.TCP].state is State.PART
    assert answers[Subject.RDMA].why == "rank 0: TCP sockets carry the job"


def test_the_node_of_a_rank_that_nobody_heard_of_is_that_of_its_neighbours_by_p2p() -> None:
    """However long the chain of them is, and in whatever order it was told."""
    communicator = the_communicator(reading := a_reading(1, 2))
    first = communicator.members[0]
    communicator.num_ranks, communicator.members = 500, {0: first}
    communicator.paths = {(rank + 1, rank): {Way.P2P: {0}} for rank in reversed(range(498))}
    assert nodes_of_ranks(reading, communicator) == dict.fromkeys(range(499), first.host)
    communicator.has_mnnvl = True
    assert nodes_of_ranks(reading, communicator) == {0: first.host}
