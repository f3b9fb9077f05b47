"""Is what a job should reach the published figure, and unknown where nobody has published one?"""

from pathlib import Path

import pytest
from tests.doctor.log.readings import (
    a_reading,
    on_sockets,
    one_node,
    processes,
    the_communicator,
)

from broadgauge.doctor.expectation import expect
from broadgauge.doctor.log.facts import Adapter, Way
from broadgauge.doctor.log.files import open_sources
from broadgauge.doctor.log.gdr_state import GdrState
from broadgauge.doctor.log.reading import read_logs
from broadgauge.doctor.situation import Situation, situation_of
from broadgauge.messages.vocabulary import Transport


def between(transport: Transport | None, nic_gbps: float | None, num_nics: int = 1) -> Situation:
    return Situation(
        num_nodes=2, num_ranks=16, transport=transport, nic_gbps=nic_gbps, num_nics=num_nics
    )


@pytest.mark.parametrize(
    ("transport", "nic_gbps", "low", "high"),
    [
        ("infiniband", 400, 46.0, 48.0),
        ("infiniband", 200, 23.0, 24.0),
        ("infiniband", 100, 11.5, 12.0),
        ("roce", 400, 45.5, 48.0),
        ("efa", 200, 22.5, 24.0),
        ("tcp", 100, 1.2, 10.0),
        ("tcp", 25, 0.78125, 2.9),
        ("tcp", 1, 0.03125, 0.11875),
    ],
)
def test_the_rule_of_one_nic(
    transport: Transport, nic_gbps: float, low: float, high: float
) -> None:
    found = expect(between(transport, nic_gbps))
    assert found.nic_low_gbyte_per_s == pytest.approx(low)
    assert found.nic_high_gbyte_per_s == pytest.approx(high)
    assert found.sources[0].source
    assert found.sources[0].date


def test_a_nodes_nics_add_up_and_the_words_say_so() -> None:
    found = expect(between("roce", 400, num_nics=8))
    assert found.words == (
        "400 Gbit/s RoCE with GPUDirect RDMA: 46 to 48 GB/s a NIC, 8 NICs: 364 to 384 GB/s busbw"
    )
    assert (found.low_gbyte_per_s, found.high_gbyte_per_s) == (364.0, 384.0)


@pytest.mark.parametrize(
    ("transport", "nic_gbps", "num_nics", "published"),
    [
        ("infiniband", 200, 4, 95.8),
        ("roce", 100, 2, 22.9),
        ("roce", 100, 16, 189.6),
        ("roce", 200, 4, 96.0),
        ("efa", 200, 16, 364.65),
        ("efa", 400, 8, 381.8),
        ("tcp", 100, 1, 5.0),
        ("tcp", 100, 2, 7.6),
        ("tcp", 25, 1, 1.7),
    ],
)
def test_published_figures_are_normal(
    transport: Transport, nic_gbps: float, num_nics: int, published: float
) -> None:
    found = expect(between(transport, nic_gbps, num_nics))
    assert found.low_gbyte_per_s is not None
    assert found.high_gbyte_per_s is not None
    assert found.low_gbyte_per_s <= published <= found.high_gbyte_per_s


def test_figures_of_others_on_the_same_network_are_named() -> None:
    words = [each.words for each in expect(between("roce", 100, 2)).sources[1:]]
    assert words == [
        "190 GB/s busbw: 2 x 8 a100-sxm-80gb, roce-100g*16",
        "22.9 GB/s busbw: 2 x 8 v100-sxm-32gb, roce-100g*2",
    ]


def test_one_node_is_judged_by_its_gpu_and_path() -> None:
    found = expect(
        Situation(num_nodes=1, num_ranks=8, inside="nvlink", gpu="NVIDIA H100 80GB HBM3")
    )
    assert (found.low_gbyte_per_s, found.high_gbyte_per_s) == (290, 520)
    assert found.sources


@pytest.mark.parametrize(
    ("situation", "said", "needed"),
    [
        (Situation(), "how many nodes", "the number of nodes"),
        (Situation(num_nodes=1, num_ranks=8, inside="nvlink"), "GPU", "the GPU's name"),
        (Situation(num_nodes=1, gpu="NVIDIA H200"), "no path", "NCCL_DEBUG_SUBSYS=INIT,P2P,SHM"),
        (
            Situation(num_nodes=1, num_ranks=8, inside="pcie", gpu="NVIDIA L40S"),
            "nobody has published",
            "a figure of this GPU",
        ),
        (between(None, None), "over what", "NCCL_DEBUG_SUBSYS=INIT,NET"),
        (between("roce", None), "its rate", "the NIC's rate"),
        (between("tcp", None), "its rate", "the NIC's rate"),
    ],
)
def test_unknown_says_what_is_missing(situation: Situation, said: str, needed: str) -> None:
    found = expect(situation)
    assert not found.is_known
    assert found.words.startswith("unknown: ")
    assert said in found.words
    assert needed in found.missing[0]


def test_the_situation_is_read_off_the_log() -> None:
    found = situation_of(a_reading(nodes=2, gpus=2))
    assert found == Situation(
        num_ranks=4,
        num_nodes=2,
        transport="roce",
        nic_gbps=400.0,
        num_nics=1,
        gdr=GdrState.ON,
        inside="nvlink",
    )


def test_channels_tell_how_many_nics_are_used() -> None:
    reading = a_reading(nodes=2, gpus=2)
    communicator = the_communicator(reading)
    communicator.path_devices = {
        (1, 2): {"NET/IB/0", "NET/IB/1", "NET/IB/2"},
        (3, 0): {"NET/IB/0"},
        (0, 1): {"NET/IB/7"},
    }
    assert situation_of(reading).num_nics == 3


def test_adapters_that_are_not_used_still_say_what_could_be() -> None:
    reading = on_sockets()
    for process in processes(reading):
        process.adapters = {"mlx5_0:1": Adapter("mlx5_0:1", "IB", 400_000)}
    situation = situation_of(reading)
    assert (situation.transport, situation.is_over_sockets) == ("infiniband", True)
    assert expect(situation).why_less == "TCP sockets are used instead"


def test_an_interface_taken_for_ten_gigabit_has_no_known_rate() -> None:
    reading = on_sockets()
    for process in processes(reading):
        process.seen_gbps, process.default_speed_interfaces = 10.0, {"eth0"}
    assert situation_of(reading).nic_gbps is None
    assert situation_of(reading, nic_gbps=100).nic_gbps == 100


def test_the_slowest_way_inside_a_node_counts() -> None:
    reading = one_node()
    assert situation_of(reading).inside == "nvlink"
    the_communicator(reading).paths[3, 4] = {Way.SHM: {0}}
    assert situation_of(reading).inside == "shm"


@pytest.mark.parametrize("version", ["2.18.3", "2.21.5", "2.28.9", "2.30.7"])
def test_the_table_of_the_machine_tells_nvlink_from_pcie(version: str) -> None:
    log = Path(__file__).parent / f"machine/logs/{version}-nvlink.log.gz"
    situation = situation_of(read_logs(open_sources([log])), gpu="h200-sxm")
    assert (situation.inside, situation.is_inside_guessed) == ("nvlink", False)
