"""Does the matrix show each way that a channel took, and does it stay small?"""

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.doctor.log.readings import a_reading, the_communicator

from broadgauge.doctor.log.facts import CommunicatorFacts, LogReading, Place, Way
from broadgauge.doctor.log.path_matrix import MOST_ROWS, path_matrix


def test_few_ranks_are_shown_one_by_one() -> None:
    matrix = path_matrix(a_reading(nodes=2, gpus=2))
    assert matrix is not None
    assert (matrix.by, matrix.labels, matrix.num_left_out) == ("rank", ("0", "1", "2", "3"), 0)
    words = [[cell.words for cell in row] for row in matrix.cells]
    assert words == [
        ["", "P2P", "", ""],
        ["", "", "GDRDMA", ""],
        ["", "", "", "P2P"],
        ["GDRDMA", "", "", ""],
    ]
    (use,) = matrix.between
    assert (use.way, use.num_pairs, use.channels) == ("GDRDMA", 2, tuple(range(16)))


def test_many_ranks_are_shown_by_node() -> None:
    matrix = path_matrix(a_reading(nodes=4, gpus=8))
    assert matrix is not None
    assert (matrix.by, matrix.labels) == ("node", ("node0", "node1", "node2", "node3"))
    assert matrix.members[1] == "ranks 8 to 15"
    assert [cell.words for cell in matrix.cells[1]] == ["", "P2P", "GDRDMA", ""]
    assert matrix.cells[1][1].uses[0].num_pairs == 7


def test_the_odd_node_is_among_those_shown() -> None:
    reading = a_reading(nodes=40, gpus=2)
    the_communicator(reading).paths[70, 71] = {Way.SHM: {0}}
    matrix = path_matrix(reading)
    assert matrix is not None
    assert len(matrix.labels) == MOST_ROWS
    assert "node35" in matrix.labels
    assert matrix.num_left_out == 24
    assert [(use.way, use.num_pairs) for use in matrix.inside] == [("P2P", 39), ("SHM", 1)]


def test_a_pair_of_two_ways_shows_both_with_their_devices() -> None:
    reading = a_reading()
    communicator = the_communicator(reading)
    communicator.paths[1, 2] = {Way.NETWORK: {1}, Way.GDRDMA: {0}}
    communicator.path_devices[1, 2] = {"NET/IB/0"}
    communicator.proxies[1, 2] = 0
    matrix = path_matrix(reading)
    assert matrix is not None
    cell = matrix.cells[1][2]
    assert cell.words == "network+GDRDMA"
    assert [(use.devices, use.num_proxied) for use in cell.uses] == [(("NET/IB/0",), 1)] * 2


def test_the_largest_communicator_is_shown_and_the_others_named() -> None:
    reading = a_reading()
    small = CommunicatorFacts(identity="0x1", place=Place("b.log", 1), num_ranks=2)
    small.paths[0, 1] = {Way.SHM: {0}}
    reading.communicators["0x1"] = small
    matrix = path_matrix(reading)
    assert matrix is not None
    assert matrix.communicator.num_ranks == 4
    assert [other.identity for other in matrix.others] == ["0x1"]
    other = path_matrix(reading, "0x1")
    assert other is not None
    assert other.labels == ("0", "1")


def test_no_channels_are_no_matrix() -> None:
    assert path_matrix(LogReading()) is None
    assert path_matrix(a_reading(), "0xnone") is None


@given(nodes=st.integers(1, 30), gpus=st.integers(1, 9))
def test_every_pair_is_counted_once_at_any_size(nodes: int, gpus: int) -> None:
    reading = a_reading(nodes, gpus)
    matrix = path_matrix(reading)
    assert matrix is not None
    assert len(matrix.cells) == len(matrix.labels) <= MOST_ROWS
    counted = sum(use.num_pairs for use in (*matrix.inside, *matrix.between))
    assert counted == len(the_communicator(reading).paths)
    json.dumps(matrix.to_json())
