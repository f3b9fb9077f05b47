"""What do an adapter's counters say of a trial, and whose are they? On trees as pods have them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.agent.hardware.machines import Machine
from tests.agent.pod import pods
from tests.agent.pod.pods import asked, facts_of, vfs

from broadgauge.agent.counters.rdma import TrialCounts, read_totals
from broadgauge.agent.facts import read_facts
from broadgauge.agent.in_pod import PodAgent
from broadgauge.agent.on_host import AgentStart
from broadgauge.agent.pod.facts import read_pod_facts
from broadgauge.messages.adapters_used import AdaptersUsed, CountedFor, PortUse
from broadgauge.messages.agent import EVENT, RankSaid
from broadgauge.messages.codec import encode
from broadgauge.messages.pod_start import PodPlace

GIB = 2**30
VF = "mlx5_10"


def count(machine: Machine, hca: str, sent: int, received: int, **hw: int) -> None:
    """`sent` and `received`: bytes."""
    port = f"/sys/class/infiniband/{hca}/ports/1"
    machine.files(f"{port}/counters", {"port_xmit_data": sent // 4, "port_rcv_data": received // 4})
    machine.files(f"{port}/hw_counters", dict(hw))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A pod with one virtual function, and its status."""
    found = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    facts_of(tmp_path, vfs(1))
    return found


def counts(root: Path, *adapters: str) -> TrialCounts:
    return TrialCounts(adapters or (f"{VF}:1",), read_pod_facts(root, {}), root)


def test_a_trial_is_counted_from_its_beginning_to_its_end(machine: Machine, tmp_path: Path) -> None:
    count(machine, VF, 4000, 8000, rx_write_requests=5, out_of_sequence=1, packet_seq_err=2)
    trial = counts(tmp_path)
    assert trial.end() == ()  # none has begun
    trial.begin()
    count(machine, VF, 4000 + GIB, 8000 + 2 * GIB, rx_write_requests=905, out_of_sequence=4)
    assert trial.end() == (
        PortUse(
            adapter=f"{VF}:1",
            counted_for=CountedFor.POD,
            tx_bytes=GIB,
            rx_bytes=2 * GIB,
            writes_count=900,
            lost_packets_count=3,
        ),
    )
    trial.begin()
    (idle,) = trial.end()
    assert (idle.tx_bytes, idle.writes_count, idle.lost_packets_count) == (0, 0, 0)


def test_a_driver_that_was_started_again_is_unknown(machine: Machine, tmp_path: Path) -> None:
    count(machine, VF, GIB, GIB, rx_write_requests=5)
    trial = counts(tmp_path)
    trial.begin()
    count(machine, VF, 4, 4, rx_write_requests=1)
    (port,) = trial.end()
    assert (port.tx_bytes, port.rx_bytes, port.writes_count) == (None, None, None)


def test_an_adapter_whose_interface_is_the_nodes_counts_for_the_node(tmp_path: Path) -> None:
    count(pods.macvlan_pod(tmp_path), "mlx5_1", 4, 4)
    (port,) = read_totals(("mlx5_1:1",), read_pod_facts(tmp_path, {}), tmp_path)
    assert port.counted_for is CountedFor.NODE


def test_counters_that_are_not_there_are_nobodys(machine: Machine, tmp_path: Path) -> None:
    del machine
    folder = tmp_path / f"sys/class/infiniband/{VF}/ports/1"
    for file in [*(folder / "counters").iterdir(), *(folder / "hw_counters").iterdir()]:
        file.unlink()
    here = read_totals((f"{VF}:1", "mlx5_77:1"), read_pod_facts(tmp_path, {}), tmp_path)
    assert [(each.counted_for, each.tx_bytes) for each in here] == [(CountedFor.NOBODY, None)] * 2


def test_the_leader_hears_of_them_before_the_last_rank_is_done(
    machine: Machine, tmp_path: Path
) -> None:
    """What comes after that is of no trial any more."""
    count(machine, VF, GIB, GIB, rx_write_requests=1)
    said: list[Any] = []

    async def run() -> None:
        start = AgentStart(
            number=1,
            leader_address="127.0.0.1",
            leader_port=1,
            token="t",
            version="v",
            folder=str(tmp_path / "agent"),
            supervisor=(),
            logs=str(tmp_path / "logs"),
            working_folder="",
            secrets={},
        )
        place = PodPlace(node=1, pod_name="p-1", node_name="n-1", address="10.1.0.5", token="t")
        agent = PodAgent(start, place, read_facts(), meet_s=1.0, root=tmp_path, annotations="")
        agent._send = said.append  # type: ignore[method-assign]
        agent._counts = counts(tmp_path)
        agent._num_ranks = 1
        agent._counts.begin()
        agent._pass_on(RankSaid(rank=1, message={"type": "done"}))

    asyncio.run(run())
    used, done = said
    assert isinstance(used, AdaptersUsed)
    assert (used.node, used.ports[0].tx_bytes) == (1, 0)
    assert isinstance(done, RankSaid)
    assert EVENT(encode(used)) == used


def test_a_network_that_goes_by_sockets_has_none_to_count(machine: Machine, tmp_path: Path) -> None:
    del machine
    assert pods.found(tmp_path, asked("tcp", pods.VF), vfs(1)).adapters == ()
    assert pods.found(tmp_path, asked("roce", pods.VF), vfs(1)).adapters == (f"{VF}:1",)
