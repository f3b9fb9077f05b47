"""Proves agent/pod/rdma_check.py: what an adapter's counters prove, and what they can't."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agent.hardware.machines import Machine
from tests.agent.pod import pods

from broadgauge.agent.on_host import AgentStart
from broadgauge.agent.pod.facts import read_pod_facts
from broadgauge.agent.pod.place import PodPlace, place_of
from broadgauge.agent.pod.pod_agent import PodAgent
from broadgauge.agent.pod.rdma_check import TrialCounts, check_rdma, read_counts
from broadgauge.messages.agent import RankSaid
from broadgauge.messages.codec import decode, encode
from broadgauge.messages.pod_network import PodNetwork
from broadgauge.messages.rdma_use import AdaptersUsed, CountedFor, PortTotals, RdmaUse

GIB = 2**30
ROCE = PodNetwork(name="fabric", attachments=("d/a",), transport="roce")
TCP = PodNetwork(name="fabric", attachments=("d/a",), transport="sriov-tcp")


def count(machine: Machine, hca: str, sent: int, received: int, **hw: int) -> None:
    """`sent` and `received`: bytes."""
    port = f"/sys/class/infiniband/{hca}/ports/1"
    machine.files(f"{port}/counters", {"port_xmit_data": sent // 4, "port_rcv_data": received // 4})
    machine.files(f"{port}/hw_counters", dict(hw))


def counts(root: Path, *adapters: str) -> tuple[PortTotals, ...]:
    return read_counts(adapters, read_pod_facts(root, "", environ={}), root)


def made(
    adapter: str = "mlx5_0:1",
    *,
    whose: CountedFor = CountedFor.POD,
    sent: int | None = 0,
    writes: int | None = 0,
    **errors: int,
) -> PortTotals:
    return PortTotals(
        adapter=adapter,
        counted_for=whose,
        tx_bytes=sent,
        rx_bytes=sent,
        write_requests_count=writes,
        errors=errors,
    )


def test_a_virtual_function_counts_for_its_pod(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    count(machine, "mlx5_10", 4000, 8000, rx_write_requests=5, out_of_sequence=1)
    before = counts(tmp_path, "mlx5_10:1")
    assert before[0].counted_for is CountedFor.POD
    assert (before[0].tx_bytes, before[0].rx_bytes) == (4000, 8000)
    count(machine, "mlx5_10", 4000 + GIB, 8000 + GIB, rx_write_requests=905, out_of_sequence=3)
    use = check_rdma(ROCE, before, counts(tmp_path, "mlx5_10:1"), expected_bytes=GIB)
    assert use.problems == ()
    (adapter,) = use.adapters
    assert (adapter.tx_bytes, adapter.write_requests_count) == (GIB, 900)
    assert adapter.errors == {"out_of_sequence": 2}
    assert use.notes == ("mlx5_10:1 lost packets or got them in another order: out_of_sequence 2",)
    assert decode(RdmaUse, encode(use)) == use


def test_a_shared_adapter_counts_for_the_node(tmp_path: Path) -> None:
    machine = pods.macvlan_pod(tmp_path)
    count(machine, "mlx5_1", 0, 0, rx_write_requests=0)
    before = counts(tmp_path, "mlx5_1:1")
    assert before[0].counted_for is CountedFor.NODE
    count(machine, "mlx5_1", 9 * GIB, 9 * GIB, rx_write_requests=10**6)
    use = check_rdma(ROCE, before, counts(tmp_path, "mlx5_1:1"), expected_bytes=GIB)
    assert use.problems == ()
    assert use.notes == ("the counters of mlx5_1:1 are the node's: other pods' bytes are in them",)


def test_counters_that_are_not_there(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    folder = tmp_path / "sys/class/infiniband/mlx5_10/ports/1"
    for file in [*(folder / "counters").iterdir(), *(folder / "hw_counters").iterdir()]:
        file.unlink()
    here = counts(tmp_path, "mlx5_10:1", "mlx5_77:1")
    assert [each.counted_for for each in here] == [CountedFor.NOBODY] * 2
    use = check_rdma(ROCE, here, here, expected_bytes=GIB)
    assert use.problems == ()
    assert use.notes == ("mlx5_10:1, mlx5_77:1: no counters here, what crossed them is not known",)


@pytest.mark.parametrize("whose", [CountedFor.POD, CountedFor.NODE])
def test_too_few_bytes_prove_that_it_was_not_rdma(whose: CountedFor) -> None:
    use = check_rdma(
        ROCE,
        [made(whose=whose)],
        [made(whose=whose, sent=GIB // 64, writes=3)],
        expected_bytes=GIB,
    )
    assert use.problems == (
        "`roce` is asked for: at least 1 GiB left this node, and 16 MiB left by mlx5_0:1",
    )


def test_no_write_proves_it_too() -> None:
    use = check_rdma(ROCE, [made()], [made(sent=GIB)])
    assert use.problems == ("`roce` is asked for, and no RDMA write came in by mlx5_0:1",)


def test_rdma_where_tcp_is_asked_for_is_proven_by_the_pods_own_counters_only() -> None:
    after = made(sent=GIB, writes=70_000)
    (problem,) = check_rdma(TCP, [made()], [after]).problems
    assert problem == "`sriov-tcp` is asked for, and 70 k RDMA writes came in by mlx5_0:1"
    shared = made(whose=CountedFor.NODE, sent=GIB, writes=70_000)
    assert check_rdma(TCP, [made(whose=CountedFor.NODE)], [shared]).problems == ()
    assert check_rdma(TCP, [made()], [made(sent=GIB)]).problems == ()


def test_nothing_is_asked_of_a_network_without_transport() -> None:
    free = PodNetwork(name="any", attachments=("d/a",))
    assert check_rdma(free, [made()], [made()], expected_bytes=GIB).problems == ()


def test_an_adapter_that_carried_nothing() -> None:
    before = [made("mlx5_0:1"), made("mlx5_1:1")]
    after = [made("mlx5_0:1", sent=GIB, writes=9), made("mlx5_1:1")]
    use = check_rdma(ROCE, before, after, expected_bytes=GIB)
    assert use.problems == ()
    assert use.notes == ("nothing left by mlx5_1:1: NCCL used the network's other adapters alone",)


def test_a_driver_that_was_started_again_is_unknown() -> None:
    use = check_rdma(ROCE, [made(sent=GIB, writes=9)], [made(sent=0, writes=0)], expected_bytes=1)
    assert use.problems == ()
    assert use.adapters[0].tx_bytes is None


TOTALS = st.none() | st.integers(0, 2**64)
COUNTS = st.builds(
    PortTotals,
    adapter=st.sampled_from(["mlx5_0:1", "mlx5_1:1"]),
    counted_for=st.sampled_from(list(CountedFor)),
    tx_bytes=TOTALS,
    rx_bytes=TOTALS,
    write_requests_count=TOTALS,
    errors=st.dictionaries(st.sampled_from(["out_of_sequence", "symbol_error"]), st.integers(0)),
)


@given(st.lists(COUNTS, max_size=3), st.lists(COUNTS, max_size=3), TOTALS)
def test_nothing_negative_is_said(
    before: list[PortTotals], after: list[PortTotals], expected: int | None
) -> None:
    use = check_rdma(ROCE, before, after, expected)
    for each in use.adapters:
        assert all(count > 0 for count in each.errors.values())
        assert (each.tx_bytes or 0) >= 0
    uncounted = [each for each in use.adapters if each.tx_bytes is None]
    assert not uncounted or not any("left this node" in problem for problem in use.problems)


def test_a_trial_is_counted_from_its_begin_to_its_end(tmp_path: Path) -> None:
    machine = pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    count(machine, "mlx5_10", GIB, GIB, rx_write_requests=1)
    facts = read_pod_facts(tmp_path, "", environ={})
    counted = TrialCounts.of(ROCE, ("mlx5_10:1",), facts, tmp_path)
    assert counted is not None
    assert counted.end() is None  # no trial has begun
    counted.begin()
    count(machine, "mlx5_10", 3 * GIB, 2 * GIB, rx_write_requests=8)
    use = counted.end()
    assert use is not None
    assert (use.adapters[0].tx_bytes, use.adapters[0].write_requests_count) == (2 * GIB, 7)
    assert use.problems == ()
    counted.begin()
    idle = counted.end()
    assert idle is not None
    assert idle.problems == (
        "`roce` is asked for, and nothing left by mlx5_10:1",
        "`roce` is asked for, and no RDMA write came in by mlx5_10:1",
    )


def test_a_network_without_adapters_has_nothing_to_count(tmp_path: Path) -> None:
    facts = read_pod_facts(tmp_path, "", environ={})
    assert TrialCounts.of(ROCE, (), facts, tmp_path) is None
    assert TrialCounts.of(PodNetwork(name="pod"), (), facts, tmp_path) is None


def test_the_leader_hears_of_the_counters_before_the_trial_is_over(tmp_path: Path) -> None:
    """What comes after the last `done` is of no trial any more."""
    said: list[Any] = []
    count(pods.vf_pod(tmp_path, ["10.1.0.5/24"]), "mlx5_10", GIB, GIB, rx_write_requests=1)
    agent = PodAgent(a_start(tmp_path), a_place(tmp_path))
    agent._send = said.append  # type: ignore[method-assign]
    facts = read_pod_facts(tmp_path, "", environ={})
    agent._counts = TrialCounts.of(ROCE, ("mlx5_10:1",), facts, tmp_path)
    agent._num_ranks = 1
    assert agent._counts is not None
    agent._counts.begin()
    agent._pass_on(RankSaid(rank=0, message={"type": "done"}))
    used, done = said
    assert isinstance(used, AdaptersUsed)
    assert used.use.problems
    assert isinstance(done, RankSaid)


def a_start(folder: Path) -> AgentStart:
    return AgentStart(
        number=0,
        leader_address="127.0.0.1",
        leader_port=1,
        token="t",
        version="v",
        folder=str(folder / "agent"),
        supervisor=(),
        logs=str(folder / "logs"),
        working_folder="",
        secrets={},
    )


def a_place(folder: Path) -> PodPlace:
    variables = {
        "BROADGAUGE_FOLDER": str(folder),
        "BROADGAUGE_NODE": "0",
        "BROADGAUGE_LEADER": "127.0.0.1",
        "BROADGAUGE_POD_IP": "127.0.0.1",
        "BROADGAUGE_TOKEN": "t",
    }
    return place_of(variables)
