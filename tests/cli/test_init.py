"""Proves `broadgauge init`: what it writes runs as it is, here and on machines made up."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.e2e.driving import run_command
from tests.engine.making import a_machine, devices_of

from broadgauge.cli.init import write_new
from broadgauge.engine.plan import make_plan
from broadgauge.running.first_experiment import OWN_SCRIPT, first_experiment
from broadgauge.specs.errors import InputError
from broadgauge.specs.machines.machine import MachineFacts, MachineGpu, MachineNic
from broadgauge.specs.plan import Plan
from broadgauge.specs.text.reading import read_experiment


def machine(**changes: Any) -> MachineFacts:
    return dataclasses.replace(a_machine(), **changes)


def gpus(count: int, memory_gbyte: int = 141) -> tuple[MachineGpu, ...]:
    return (MachineGpu(name="NVIDIA H200", memory_bytes=memory_gbyte * 10**9),) * count


def nic(name: str, speed_gbps: float | None, mtu_bytes: int = 1500) -> MachineNic:
    return MachineNic(name=name, speed_gbps=speed_gbps, mtu_bytes=mtu_bytes, driver=None)


REFUSED: dict[str, Any] = {"can_emulate": False, "refusal": "no user namespaces", "fix": "sysctl x"}
MACHINES = {
    "two cores": machine(),
    "one core": machine(cores=(0,), hostname="1.5"),
    "64 cores": machine(cores=tuple(range(64))),
    "one GPU": machine(gpus=gpus(1)),
    "two GPUs": machine(gpus=gpus(2), has_nvlink=True),
    "two small GPUs without NVLink": machine(gpus=gpus(2, 24), has_nvlink=False),
    "three GPUs": machine(gpus=gpus(3)),
    "eight GPUs": machine(gpus=gpus(8), nics=(nic("ens1", 400.0, 9000),) * 8),
    "no nodes": machine(**REFUSED),
    "no nodes, two GPUs": machine(gpus=gpus(2), **REFUSED),
    "NICs": machine(nics=(nic("eth0", 2.5), nic("ib0", 200.0, 65_520), nic("tap0", None))),
}


def planned(facts: MachineFacts) -> Plan:
    experiment = read_experiment(first_experiment(facts), "experiment.yaml")
    assert experiment.platform == ("emulated" if facts.can_emulate else "local")
    return make_plan(experiment, devices_of(facts))


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_written_is_a_plan_with_something_to_measure(name: str) -> None:
    plan = planned(MACHINES[name])
    assert {case.workload.kind for case in plan.cases} == {"collectives", "train"}
    assert max(case.world_size for case in plan.cases) >= 2
    assert not [note for note in plan.notes if "matches no" in note or "run once" in note]


@given(
    num_gpus=st.integers(0, 16),
    memory_gbyte=st.integers(8, 200),
    cores=st.integers(1, 300),
    hostname=st.text(max_size=80),
    gpu=st.text(max_size=40),
    nics=st.lists(
        st.tuples(
            st.text(min_size=1, max_size=15),
            st.none() | st.floats(0.01, 1e6),
            st.integers(68, 70_000),
        ),
        max_size=4,
    ),
    refusal=st.none() | st.text(max_size=80),
    has_nvlink=st.sampled_from((None, True, False)),
)
@settings(max_examples=40, deadline=None)
def test_any_machine_gets_an_experiment_that_can_be_planned(**drawn: Any) -> None:
    model = MachineGpu(name=drawn["gpu"], memory_bytes=drawn["memory_gbyte"] * 10**9)
    facts = machine(
        gpus=(model,) * drawn["num_gpus"],
        cores=tuple(range(drawn["cores"])),
        hostname=drawn["hostname"],
        nics=tuple(nic(f"{i}{name}", *rest) for i, (name, *rest) in enumerate(drawn["nics"])),
        can_emulate=drawn["refusal"] is None,
        refusal=drawn["refusal"],
        fix=drawn["refusal"],
        has_nvlink=drawn["has_nvlink"],
    )
    assert planned(facts).cases


def test_gpus_are_used_and_every_path_between_them() -> None:
    plan = planned(MACHINES["two GPUs"])
    assert {case.device for case in plan.cases} == {"cuda"}
    assert {case.shape for case in plan.cases} == {"1x1", "1x2", "2x1"}
    paths = {case.path.path for case in plan.cases if case.path is not None}
    assert paths == {"nvlink", "shm", "sockets"}  # CUDA takes NVLink where it is, never PCIe
    without = planned(MACHINES["two small GPUs without NVLink"])
    assert {c.path.path for c in without.cases if c.path is not None} == {"pcie", "shm", "sockets"}


def test_own_nics_are_networks_each_kind_once() -> None:
    networks = read_experiment(first_experiment(MACHINES["NICs"]), "e").networks
    own = [(n.name, n.rate_gbps, n.mtu_bytes) for n in networks if n.name.startswith("as-")]
    assert own == [("as-eth0", 2.5, 1500), ("as-ib0", 200.0, 65_000)]
    text = first_experiment(MACHINES["eight GPUs"])
    assert text.count("as-ens1") == 1
    assert "nics_per_node: 8" in text


def test_where_nodes_are_refused_the_file_says_why() -> None:
    text = first_experiment(MACHINES["no nodes"])
    assert "no user namespaces" in text
    assert "sysctl x" in text


@pytest.mark.parametrize("name", MACHINES)
def test_the_script_in_the_comment_can_be_brought_in(name: str) -> None:
    text = first_experiment(MACHINES[name])
    lines = [line.replace("# ", "", 1) for line in OWN_SCRIPT.splitlines()[1:]]
    assert OWN_SCRIPT in text
    experiment = read_experiment(text.replace(OWN_SCRIPT, "\n".join(lines) + "\n"), "e.yaml")
    assert experiment.workloads[-1].kind == "command"


def test_lines_are_short_and_comments_few() -> None:
    for facts in MACHINES.values():
        lines = first_experiment(facts).splitlines()
        assert max(map(len, lines)) <= 100
        assert sum(line.lstrip().startswith("#") for line in lines) <= 18


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "experiment.yaml"
    path.write_text("mine")
    with pytest.raises(InputError, match="is there already, and is kept"):
        write_new(path, "ours")
    assert path.read_text() == "mine"
    (tmp_path / "link.yaml").symlink_to("nowhere")
    with pytest.raises(InputError, match="is there already"):
        write_new(tmp_path / "link.yaml", "ours")
    with pytest.raises(InputError, match="can't be written"):
        write_new(tmp_path / "no" / "folder.yaml", "ours")


def test_a_full_disk_leaves_no_half_file() -> None:
    with pytest.raises(InputError, match="there already"):
        write_new(Path("/dev/full"), "x")


@pytest.mark.measuring
def test_what_it_writes_here_runs_here(empty_folder: Path) -> None:
    made = run_command("init", folder=empty_folder)
    assert made.returncode == 0, made.stderr
    assert "experiment.yaml --dry-run" in made.stderr
    assert made.stdout == ""
    text = (empty_folder / "experiment.yaml").read_text()
    assert run_command("init", "-", folder=empty_folder).stdout == text
    again = run_command("init", folder=empty_folder)
    assert again.returncode == 2
    assert "is kept" in again.stderr
    ran = run_command("run", "experiment.yaml", "--dry-run", folder=empty_folder)
    assert ran.returncode == 0, ran.stderr
    assert [path.name for path in empty_folder.iterdir()] == ["experiment.yaml"]


def test_the_regex_of_a_command_is_readmes() -> None:
    readme = Path(__file__).parents[2].joinpath("README.md").read_text()
    [line] = [each for each in OWN_SCRIPT.splitlines() if "regex:" in each]
    assert line.strip("# ") in readme
