"""`platform: hosts`: a user's own script under torchrun, with torch, on two machines?"""

from pathlib import Path

import pytest
from tests.e2e.driving import only_run
from tests.platforms.hosts.machines import TOOL, Tool, host
from tests.platforms.hosts.rig import TEMPORARY

pytestmark = [
    *(pytest.mark.root, pytest.mark.namespaces, pytest.mark.sshd),
    *(pytest.mark.measuring, pytest.mark.slow),
]

SCRIPT = Path(__file__).with_name("ddp_script.py")
GRADIENT_BYTES = 4 * 2**18
STEPS = 4


def test_ddp_under_torchrun_meets_over_two_hosts(tool: Tool) -> None:
    (tool.folder / "train.py").write_text(SCRIPT.read_text())
    hosts = [host(name, working_folder=str(tool.folder)) for name in ("node0", "node1")]
    tool.write(f"""\
name: torchrun
platform: hosts
hosts: [{", ".join(hosts)}]
cluster: {{shapes: [2x1], device: cpu}}
networks:
  - {{name: data, found: {{interface: eth0}}}}
workloads:
  - kind: command
    command: [train.py]
    metrics:
      - {{name: step_time_s, json_key: step_time_s, skip_first: 1}}
      - {{name: loss, json_key: loss}}
launches: 2
""")
    tool.run("run", "e.yaml", command=TOOL)
    records = tool.records
    assert [each["record_id"] for each in records] == ["b0.l0.t0", "b1.l0.t0"]
    for record in records:
        assert record["status"] == "ok"
        assert record["metrics"]["loss"] == 1.5
        assert record["metrics"]["step_time_s"] > 0
        sent = [node["tx_bytes"] for node in record["nodes"]]
        assert min(sent) > STEPS * GRADIENT_BYTES  # a ring of two: each sends all of it once
    logs = "".join(path.read_text() for path in (only_run(tool.folder) / "logs").glob("*.log"))
    for rank in (0, 1):
        assert logs.count(f"rank {rank} of 2 on node{rank}") == len(records)
    for name in ("node0", "node1"):  # torch's own cache: it stays where a user's TMPDIR is
        tool.machines.on(name, "rm", "-rf", f"{TEMPORARY}/torchinductor_root")
