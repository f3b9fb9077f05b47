"""Proves agent/pod/preflight.py over addresses of the loopback, and what its results say."""

import asyncio
import errno
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.agent.pod import pods
from tests.agent.pod.test_preflight_plan import addresses as planned

from broadgauge.agent import bundle
from broadgauge.agent.pod import preflight
from broadgauge.agent.pod.facts import read_pod_facts
from broadgauge.agent.pod.preflight import (
    Listeners,
    answering,
    open_listeners,
    rdma_readiness,
    run_probes,
)
from broadgauge.agent.pod.preflight_plan import plan_probes
from broadgauge.agent.pod.resolve import ResolvedNetwork, resolve
from broadgauge.leader.preflight_summary import summarize
from broadgauge.messages.codec import decode, encode
from broadgauge.messages.pod_network import PodNetwork
from broadgauge.messages.preflight import PodAddress, Probe, ProbeResult, RdmaReadiness

KEY = "this run's"


def listeners(node: int, tmp_path: Path, nics: int = 2) -> Listeners:
    """Of a pod whose NICs have addresses of 127.0.0.0/8, which every Linux answers on."""
    own = tuple(f"127.1.{nic}.{node + 1}" for nic in range(nics))
    interfaces = tuple(f"net{nic + 1}" for nic in range(nics))
    network = ResolvedNetwork(name="fabric", interfaces=interfaces, addresses=own)
    return open_listeners(node, [network], read_pod_facts(tmp_path, "", environ={}))


class Troubled(socket.socket):
    """A listener whose `accept` fails so often first."""

    errors: list[int]

    def accept(self) -> tuple[socket.socket, object]:
        if self.errors:
            number = self.errors.pop(0)
            raise OSError(number, os.strerror(number))
        return super().accept()


def troubled(pod: Listeners, *errors: int) -> Listeners:
    """The same listeners; the first fails so."""
    first, *others = pod.sockets
    server = Troubled(first.family, first.type, first.proto, first.detach())
    server.settimeout(0.0)
    server.errors = list(errors)
    return replace(pod, sockets=(server, *others))


async def preflight_of(
    pods_here: Sequence[Listeners], keys: Sequence[str]
) -> tuple[ProbeResult, ...]:
    there = [address for each in pods_here for address in each.addresses]

    async def one(node: int, pod: Listeners) -> tuple[ProbeResult, ...]:
        async with answering(pod, keys[node]):
            found = await run_probes(plan_probes(there, node), keys[node])
            ended[node].set()
            await asyncio.gather(*(each.wait() for each in ended))
            return found

    ended = [asyncio.Event() for _ in pods_here]
    rows = await asyncio.gather(*(one(node, pod) for node, pod in enumerate(pods_here)))
    return tuple(result for found in rows for result in found)


def run(tmp_path: Path, keys: Sequence[str]) -> tuple[list[PodAddress], tuple[ProbeResult, ...]]:
    here = [listeners(node, tmp_path) for node in range(len(keys))]
    try:
        results = asyncio.run(preflight_of(here, keys))
    finally:
        for each in here:
            each.close()
    return [a for each in here for a in each.addresses], results


def test_what_passes_ends_no_listener(tmp_path: Path) -> None:
    first, second = listeners(0, tmp_path), listeners(1, tmp_path)
    passing = [errno.EMFILE, errno.ECONNABORTED, errno.ENOBUFS]
    pods_here = (troubled(first, *passing), troubled(second, *passing))
    results = asyncio.run(preflight_of(pods_here, [KEY, KEY]))
    assert results
    assert all(result.ok for result in results), results
    assert [
        each.errors for pod in pods_here for each in pod.sockets[:1] if isinstance(each, Troubled)
    ] == [[], []]
    for each in pods_here:
        each.close()


def test_a_listener_that_is_broken_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "PROBE_LIMIT_S", 0.05)
    pods_here = [troubled(listeners(node, tmp_path, nics=1), errno.EINVAL) for node in (0, 1)]
    results = asyncio.run(preflight_of(pods_here, [KEY, KEY]))
    assert [result.ok for result in results] == [False]
    said = capsys.readouterr().err.splitlines()
    assert (
        "broadgauge: preflight: net1 (127.1.0.1) answers the other pods no more: Invalid argument"
        in said
    )
    for each in pods_here:
        each.close()


def test_all_pairs_of_four_pods_over_two_nics(tmp_path: Path) -> None:
    there, results = run(tmp_path, [KEY] * 4)
    assert len(results) == 4 * 3 // 2 * 2
    assert [each.error for each in results] == [None] * len(results)
    assert all(each.rate_gbyte_per_s and each.rate_gbyte_per_s > 0 for each in results)
    summary = summarize(there, results, [])
    assert summary.problems == ()


def test_another_runs_key_gets_no_answer(tmp_path: Path) -> None:
    there, results = run(tmp_path, [KEY, KEY, KEY, "another's"])
    bad = [each for each in results if not each.ok]
    assert {each.error for each in bad} == {preflight.STRANGER}
    assert all(3 in (each.caller, each.listener) for each in bad)
    assert len(bad) == 6
    (first, second) = summarize(there, results, []).problems
    assert first.text.startswith("network fabric, NIC 0: node 3 and all others fail: ")
    assert second.text.startswith("network fabric, NIC 1: node 3 and all others fail: ")


def test_nobody_listens_there(tmp_path: Path) -> None:
    (free,) = listeners(0, tmp_path, nics=1).sockets
    port = free.getsockname()[1]
    free.close()
    probe = Probe(
        round=0,
        caller=1,
        listener=0,
        network="fabric",
        nic=0,
        source="127.1.0.2",
        address="127.1.0.1",
        port=port,
    )
    (result,) = asyncio.run(run_probes([probe], KEY))
    assert (result.ok, result.error) == (False, "Connection refused")
    other_source = replace(probe, source="192.0.2.1")
    (result,) = asyncio.run(run_probes([other_source], KEY))
    assert result.error == "Cannot assign requested address"


def test_a_listener_that_says_nothing_costs_its_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "PROBE_LIMIT_S", 0.2)
    with socket.create_server(("127.1.0.1", 0)) as silent:
        probe = Probe(
            round=0,
            caller=1,
            listener=0,
            network="fabric",
            nic=0,
            source="127.1.0.2",
            address="127.1.0.1",
            port=silent.getsockname()[1],
        )
        (result,) = asyncio.run(run_probes([probe], KEY))
    assert result.error is not None
    assert "no bytes in 0.2 s: a smaller MTU on the way, or a filter" in result.error


def test_what_is_late_is_not_tried(tmp_path: Path) -> None:
    probes = plan_probes(planned(3))
    results = asyncio.run(run_probes(probes, KEY, limit_s=-1.0))
    assert [each.error for each in results] == [preflight.NOT_TRIED] * 3


def test_a_stranger_is_not_answered(tmp_path: Path) -> None:
    async def ask(pod: Listeners, data: bytes) -> bytes:
        async with answering(pod, KEY):
            there = pod.addresses[0]
            reader, writer = await asyncio.open_connection(there.address, there.port)
            writer.write(data)
            writer.write_eof()
            try:
                return await reader.read()
            except ConnectionResetError:  # it did not read all that was sent
                return b""
            finally:
                writer.close()

    pod = listeners(0, tmp_path, nics=1)
    try:
        assert asyncio.run(ask(pod, b"")) == b""
        assert asyncio.run(ask(pod, b"GET / HTTP/1.1\r\n" * 9)) == b""
    finally:
        pod.close()


def test_readiness_of_rdma(tmp_path: Path) -> None:
    pods.vf_pod(tmp_path, ["10.1.0.5/24"])
    annotations = pods.status(pods.entry(1, "d/a"))
    network = PodNetwork(name="roce", attachments=("d/a",), transport="roce")
    facts = read_pod_facts(tmp_path, annotations, environ={})
    ready = rdma_readiness(3, resolve(network, facts), facts)
    assert ready == RdmaReadiness(
        node=3, network="roce", adapters=("mlx5_10:1",), rates_gbps=(400.0,), problems=()
    )
    assert decode(RdmaReadiness, encode(ready)) == ready


def rows(num_nodes: int, fails: Sequence[tuple[int, int]], **more: object) -> list[ProbeResult]:
    bad = {frozenset(pair) for pair in fails}
    return [
        ProbeResult(
            caller=probe.caller,
            listener=probe.listener,
            network="fabric",
            nic=0,
            ok=frozenset((probe.caller, probe.listener)) not in bad,
            error="timed out" if frozenset((probe.caller, probe.listener)) in bad else None,
            **more,  # type: ignore[arg-type]
        )
        for probe in plan_probes(planned(num_nodes))
    ]


def test_one_pair_that_fails_is_named() -> None:
    (problem,) = summarize(planned(4), rows(4, [(1, 2)]), []).problems
    assert problem.text == "network fabric, NIC 0: node 1 does not reach node 2: timed out"
    assert [problem.concerns(nodes) for nodes in (1, 2, 3, 4)] == [False, False, True, True]


def test_a_node_that_fails_is_named_once() -> None:
    failing = [(5, node) for node in range(8) if node != 5]
    (problem,) = summarize(planned(8), rows(8, failing), []).problems
    assert problem.text == "network fabric, NIC 0: node 5 and all others fail: timed out"


def test_a_network_that_carries_nothing_is_named_alone() -> None:
    failing = [(a, b) for a in range(6) for b in range(a)]
    (problem,) = summarize(planned(6), rows(6, failing), []).problems
    assert problem.text == "network fabric: no pod reaches another: timed out"
    assert [problem.concerns(nodes) for nodes in (1, 2)] == [False, True]


def test_many_pairs_are_counted() -> None:
    failing = [(a, b) for a in range(5) for b in range(5, 10)]
    problems = summarize(planned(10), rows(10, failing), []).problems
    assert len(problems) == 5
    assert problems[-1].text == "network fabric: 21 more pairs fail"


def test_mtus_and_numbers_of_nics_that_differ() -> None:
    there = planned(4, 2, lacks=2)
    there[0] = replace(there[0], mtu_bytes=1500)
    summary = summarize(there, [], [])
    (problem,) = summary.problems
    assert problem.text == (
        "network fabric: not every pod has as many NICs: 2 on nodes 0, 1, 3; 1 on node 2"
    )
    assert [problem.concerns(nodes) for nodes in (1, 2, 3)] == [False, False, True]
    assert summary.notes == (
        "network fabric: interfaces differ in MTU: 1500 on node 0; 9000 on nodes 0, 1, 2, 3",
    )


def test_a_slow_node_is_a_note_and_a_slow_stream_is_none() -> None:
    results = rows(6, [], rate_gbyte_per_s=1.0)
    assert summarize(planned(6), results, []).notes == ()
    results[3] = replace(results[3], rate_gbyte_per_s=0.01)
    assert summarize(planned(6), results, []).notes == ()
    slow = [
        replace(each, rate_gbyte_per_s=0.2) if 4 in (each.caller, each.listener) else each
        for each in results
    ]
    summary = summarize(planned(6), slow, [])
    assert summary.problems == ()
    assert summary.notes == (
        "network fabric, NIC 0: no stream of node 4 carried more than 0.2 GB/s in a short look, "
        "the median is 1 GB/s",
    )


@pytest.mark.namespaces
@pytest.mark.skipif(not (shutil.which("unshare") and shutil.which("ip")), reason="no unshare")
@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("none", None),
        ("mtu", "node 0 and all others fail: connected, and no bytes in 4 s: a smaller MTU"),
        ("cut", "node 2 and all others fail: No route to host"),
    ],
    ids=["none", "mtu", "cut"],
)
def test_a_fault_of_the_fabric_is_named(tmp_path: Path, fault: str, says: str | None) -> None:
    archive = tmp_path / "broadgauge.zip"
    archive.write_bytes(bundle.build())
    fabric = [sys.executable, "-m", "tests.agent.pod.preflight_fabric", archive, fault]
    ended = subprocess.run(
        ["unshare", "-rn", *fabric], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    there = [decode(PodAddress, each) for each in told["addresses"]]
    results = [decode(ProbeResult, each) for each in told["results"]]
    problems = summarize(there, results, []).problems
    if says is None:
        assert problems == ()
    else:
        (problem,) = problems
        assert says in problem.text


def test_what_rdma_lacks_is_said_once_for_all_nodes() -> None:
    ready = [
        RdmaReadiness(
            node=node,
            network="roce",
            adapters=("mlx5_0:1",),
            rates_gbps=(200.0 if node == 2 else 400.0,),
            problems=("no memory to lock",) if node in (1, 2) else (),
        )
        for node in range(4)
    ]
    summary = summarize([], [], ready)
    (problem,) = summary.problems
    assert problem.text == "network roce, nodes 1, 2: no memory to lock"
    assert [problem.concerns(nodes) for nodes in (1, 2)] == [False, True]
    assert summary.notes == (
        "network roce: RDMA ports differ in rate: "
        "200 Gbit/s on node 2; 400 Gbit/s on nodes 0, 1, 3",
    )
