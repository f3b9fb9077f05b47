"""Small experiments, machines and runs for the tests of the engine and of the run folder."""

from pathlib import Path
from typing import Any

from tests.engine.fake_platform import FakeClock, FakePlatform, Script, services

from broadgauge.engine.plan import DevicesByPlatform, make_plan
from broadgauge.engine.ports import Observer, unobserved
from broadgauge.engine.run import run
from broadgauge.engine.run_result import RunResult
from broadgauge.platforms.devices import emulated_devices, local_devices
from broadgauge.results.folder.run_folder import RunFolder
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.machines.machine import MachineFacts, MachineGpu
from broadgauge.specs.plan import Plan
from broadgauge.specs.platforms import Devices

YAML = "name: tiny\n"
TRAIN: dict[str, Any] = {
    "kind": "train",
    "model": {"layers": 1, "hidden": 32, "heads": 2, "seq_len": 16},
    "steps": 4,
    "block_steps": 2,
}
COLLECTIVES: dict[str, Any] = {"kind": "collectives", "ops": ["all_reduce"], "sizes": [4096, 65536]}
COMMAND: dict[str, Any] = {
    "kind": "command",
    "command": ["train.py"],
    "metrics": [{"name": "epoch_time_s", "regex": r"epoch (\d+)"}],
}
NETWORKS: list[dict[str, Any]] = [{"name": "slow", "rate_gbps": 0.1}, {"name": "reference"}]


def an_experiment(**changes: Any) -> Experiment:
    """Two shapes, two networks, two workloads: 6 cases less collectives on one rank."""
    known = {"name": "tiny", "networks": NETWORKS, "workloads": [TRAIN, COLLECTIVES]}
    return Experiment.model_validate({**known, "launches": 2, **changes})


def a_machine(gpus: int = 0, cores: int = 2) -> MachineFacts:
    return MachineFacts(
        hostname="here",
        cores=tuple(range(cores)),
        memory_bytes=8 * 2**30,
        gpus=(MachineGpu(name="NVIDIA H200", memory_bytes=141 * 10**9),) * gpus,
        nics=(),
        kernel="6.1.0",
        python="3.11.2",
        torch="2.11.0",
        can_emulate=True,
        can_delay=False,
        refusal=None,
        fix=None,
    )


def devices_of(machine: MachineFacts) -> DevicesByPlatform:
    """What the platforms of this machine have, and hosts of which each is like it."""
    hosts = Devices(
        place="a host",
        num_gpus=len(machine.gpus),
        num_cores=len(machine.cores),
        are_shared=False,
        finds_networks=True,
    )
    return {
        "emulated": emulated_devices(machine),
        "local": local_devices(machine),
        "hosts": hosts,
    }


def a_plan(gpus: int = 0, cores: int = 2, **changes: Any) -> Plan:
    return make_plan(an_experiment(**changes), devices_of(a_machine(gpus, cores)))


def trial_ids(plan: Plan) -> list[str]:
    """In the planned order."""
    return [trial.trial_id for launch in plan.launches for trial in launch.trials]


def make_folder(parent: Path, plan: Plan) -> RunFolder:
    return RunFolder.create(parent, plan=plan, experiment_yaml=YAML, started_unix_s=1_800_000_000.0)


def run_in(
    folder: RunFolder,
    script: Script | None = None,
    *,
    clock: FakeClock | None = None,
    observer: Observer = unobserved,
) -> tuple[RunResult, FakePlatform]:
    """One session of a run, on a platform of its own."""
    clock = clock or FakeClock()
    platform = FakePlatform(clock, script)
    result = run(folder.plan, platform, folder, services(clock, observer))
    return result, platform
