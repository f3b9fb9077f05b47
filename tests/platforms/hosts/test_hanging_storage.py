"""`platform: hosts`: the mount of one host hangs. Does the run go on, and wait for nothing?"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.platforms.hosts.machines import TOOL, Tool, host

pytestmark = [
    *(pytest.mark.root, pytest.mark.namespaces, pytest.mark.sshd),
    *(pytest.mark.measuring, pytest.mark.slow),
]

DEAD = "/run/dead"
"""A folder of each host's own; on node1 a mount."""
LIMIT_S = 8
EXPERIMENT = f"""\
name: hangs
platform: hosts
hosts: [{host("node0")}, {host("node1")}]
cluster: {{shapes: [2x1], device: cpu}}
networks: [{{name: data, found: {{interface: eth0}}}}]
storages: [{{name: dead, path: {DEAD}}}, {{name: memory, path: /run}}]
workloads: [{{kind: storage, phase: raw, size: 1 MiB, repetitions: 1}}]
launches: 1
limits: {{measure_s: {LIMIT_S} s}}
"""
MOUNTS_UNTIL_TOLD = """
import sys
from pathlib import Path
from tests.hanging_mount import Ask, hanging_mount
with hanging_mount(Path(sys.argv[1]), Ask.FSYNC, 2):
    print("mounted", flush=True)
    sys.stdin.read()
"""
"""The first fsync is the warm-up's."""


@contextmanager
def mounted(tool: Tool, machine: str) -> Iterator[None]:
    command = (*tool.machines.entry(machine), sys.executable, "-c", MOUNTS_UNTIL_TOLD, DEAD)
    pipe, here = subprocess.PIPE, {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=here) as mount:
        assert mount.stdout is not None
        assert mount.stdout.readline() == "mounted\n"
        yield
        mount.communicate("")


def test_a_mount_that_hangs_on_one_host_fails_its_case_alone(tool: Tool) -> None:
    for machine in ("node0", "node1"):
        tool.machines.on(machine, "mkdir", DEAD)
    with mounted(tool, "node1"):
        tool.write(EXPERIMENT)
        said = tool.run("run", "e.yaml", command=TOOL, code=3)
    records = {each["network"].split(", ")[1]: each for each in tool.records}
    assert records["memory"]["status"] == "ok", said
    failed = records["dead"]
    assert failed["status"] == "timeout"
    assert failed["error"]["message"].startswith(
        f"rank 1: storage `dead` ({DEAD}) does not answer: fsync of "
        f"{DEAD}/broadgauge-storage/rank1/raw has not come back: a mount that hangs?; "
    )
    assert "rank 1 is left behind" in failed["error"]["message"]
