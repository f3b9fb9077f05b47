"""Do platforms tell what others had of their machines' cores, as a run begins?"""

from dataclasses import replace
from pathlib import Path

from tests.platforms.hosts.test_environment import FIRST
from tests.platforms.launches import make_folders

from broadgauge.agent.taken_cores import SHORTEST_LOOK_S, TakenCores, look
from broadgauge.engine.several_platforms import SeveralPlatforms
from broadgauge.platforms.hosts.platform import HostsPlatform
from broadgauge.platforms.local import LocalPlatform
from broadgauge.specs.launching import SeesMachines
from broadgauge.specs.machines.hosts import Host
from broadgauge.specs.secrets.values import Secrets

BUSY = TakenCores(foreign_busy_ratio=0.4, stolen_ratio=0.1, elapsed_s=0.5, cores_count=8)


def test_hosts_tell_by_the_names_that_the_experiment_has(tmp_path: Path) -> None:
    """One whose kernel does not say is left out."""
    hosts = [Host(ssh=name) for name in ("node-a", "node-b")]
    facts = [replace(FIRST, taken=BUSY), replace(FIRST, machine_id="2", taken=None)]
    platform = HostsPlatform(
        make_folders(tmp_path), hosts, secrets=Secrets(), cases=(), facts=facts
    )
    assert isinstance(platform, SeesMachines)
    assert platform.taken_cores == {"node-a": BUSY}
    beside = SeveralPlatforms({"hosts": platform, "local": LocalPlatform(make_folders(tmp_path))})
    assert beside.taken_cores == {"node-a": BUSY}


def test_this_machine_is_looked_at_where_a_run_wants_to_know(tmp_path: Path) -> None:
    folders, looked = make_folders(tmp_path), look()
    assert looked is not None
    assert LocalPlatform(folders).taken_cores == {}
    (taken,) = LocalPlatform(folders, looked=looked).taken_cores.values()
    assert taken.elapsed_s >= SHORTEST_LOOK_S
