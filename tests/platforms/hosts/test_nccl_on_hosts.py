"""Does each trial on hosts say what NCCL did there, and does one that fell back fail?"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_plan, make_folder
from tests.platforms.hosts import in_process
from tests.platforms.hosts.in_process import Damage, rig_in, two_hosts
from tests.platforms.launches import make_folders
from tests.platforms.planted_nccl import Network, nccl_log

from broadgauge.agent.facts import GpuFacts, HostFacts
from broadgauge.engine.ports import Services
from broadgauge.engine.run import run
from broadgauge.merging.merge import merge
from broadgauge.platforms.hosts.platform import HostsPlatform
from broadgauge.specs.machines.hosts import Host
from broadgauge.specs.records.record import ErrorKind, Record, Status
from broadgauge.specs.secrets.values import Secrets


def with_a_gpu(facts: HostFacts) -> HostFacts:
    return replace(facts, gpus=(GpuFacts(name="NVIDIA H200", memory_bytes=2**37),))


def ran(
    folder: Path, monkeypatch: pytest.MonkeyPatch, network: Network, **found: Any
) -> tuple[Record, ...]:
    """Two workloads in one launch over a found network, on which NCCL does this."""
    monkeypatch.setattr(in_process, "NCCL_LOGS", {n: nccl_log(network, n) for n in (0, 1)})
    plan = a_plan(
        gpus=1,
        platform="hosts",
        hosts=[{"ssh": "node0"}, {"ssh": "node1"}],
        cluster={"shapes": ["2x1"], "device": "cuda"},
        networks=[{"name": "fabric", "found": {"interface": "eth0", **found}}],
        workloads=[
            {"kind": "collectives", "name": f"w{n}", "ops": ["all_reduce"], "sizes": [f"{n} MiB"]}
            for n in (1, 2)
        ],
        launches=1,
    )
    whole = Damage(chance=in_process.random.Random(0), ratio=0.0)
    with rig_in(folder, whole, whole, monkeypatch), make_folder(folder, plan) as store:
        hosts = HostsPlatform(
            make_folders(folder),
            (Host(ssh="node0"), Host(ssh="node1")),
            secrets=Secrets(),
            cases=store.plan.cases,
            facts=tuple(map(with_a_gpu, two_hosts())),
        )
        run(store.plan, hosts, store, Services(merger=merge))
        return tuple(store.records)


def test_each_trial_has_it_though_the_launch_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = ran(tmp_path / "run", monkeypatch, "roce", transport="roce", gpudirect=True)
    assert [record.status for record in records] == [Status.OK, Status.OK]
    assert len({record.launch_id for record in records}) == 1
    for record in records:
        assert record.nccl is not None
        assert (record.nccl.network, record.nccl.num_nodes) == ("IB", 2)
        assert record.nccl.gpudirect is True
        assert [(way.way, way.num_pairs) for way in record.nccl.ways] == [("GDRDMA", 2)]
        assert record.nccl.adapters == ("mlx5_0:1/RoCE",)


def test_the_logs_are_kept_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(tmp_path / "run", monkeypatch, "roce")
    for rank in (0, 1):
        log = tmp_path / "run" / "logs" / f"b0.l0.rank{rank}.nccl.log"
        assert log.read_text() == nccl_log("roce", rank)


@pytest.mark.parametrize(
    ("network", "found", "words"),
    [
        ("sockets", {"transport": "roce"}, "is meant as RoCE, and NCCL sent over TCP sockets"),
        (
            "roce-staged",
            {"transport": "roce", "gpudirect": True},
            "is meant with GPUDirect, and NCCL copied through the host",
        ),
        ("roce", {"transport": "tcp"}, "is meant as TCP, and NCCL used the network `IB`"),
    ],
)
def test_a_case_that_went_another_way_is_a_failed_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    network: Network,
    found: dict[str, Any],
    words: str,
) -> None:
    records = ran(tmp_path / "run", monkeypatch, network, **found)
    assert {record.status for record in records} == {Status.FAILED}
    for record in records:
        assert record.error is not None
        assert record.error.kind is ErrorKind.REFUSED
        assert words in record.error.message
        assert record.error.last_lines
        assert record.nccl is not None
        assert words in record.findings[0].symptom
        assert record.findings[0].fix


def test_a_network_of_which_nothing_was_said_is_as_it_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = ran(tmp_path / "run", monkeypatch, "sockets")
    assert {record.status for record in records} == {Status.OK}
