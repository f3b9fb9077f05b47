"""Holds `broadgauge sensitivity` where no rate can be set: on networks whose rates it is not told.

The machines have four networks, each shaped to another rate by the rig. The tool knows their
interfaces. What a step waits and sends is known, and has to be found.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.disturbance import judging
from tests.e2e.driving import only_run, records_of
from tests.platforms.hosts.machines import TOOL, Machines, Tool, host, machines_in

pytestmark = [
    pytest.mark.measured,
    pytest.mark.measuring,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.sshd,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

RATES_GBPS = (0.05, 0.1, 0.2, 0.4)
STEP_BYTES = 1_500_000
WAIT_S = 0.1
SCRIPT = f"""\
import json, time
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
sent = torch.ones({STEP_BYTES} // 4)
for _ in range(11):
    begun_s = time.perf_counter()
    time.sleep({WAIT_S})
    dist.all_reduce(sent)
    print(json.dumps({{"step_time_s": time.perf_counter() - begun_s}}), flush=True)
dist.destroy_process_group()
"""
MESSAGE_BYTES = 16 * 2**20
EXPERIMENT = """\
name: known
platform: hosts
hosts: [{hosts}]
cluster: {{shapes: [2x1], device: cpu}}
networks:
  - {{name: first, found: {{interface: eth0}}}}
  - {{name: second, found: {{interface: eth1}}}}
  - {{name: third, found: {{interface: eth2}}}}
  - {{name: fourth, found: {{interface: eth3}}}}
workloads:
  - kind: command
    command: [{script}]
    metrics: [{{name: step_time_s, json_key: step_time_s, skip_first: 2}}]
  - {{kind: collectives, ops: [all_reduce], sizes: [{size}], budget_s: 1 s}}
launches: 3
"""


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    first, *more = RATES_GBPS
    folder = tmp_path_factory.mktemp("networks")
    with machines_in(folder, rate_gbps=first, more_rates_gbps=tuple(more)) as found:
        yield found


def test_known_bytes_are_recovered_on_networks_that_were_found(
    networks: Machines, tmp_path: Path
) -> None:
    hosts = ", ".join(host(name) for name in ("node0", "node1"))
    tool = Tool(networks, tmp_path)
    script = tmp_path / "known_all_reduce.py"
    script.write_text(SCRIPT)
    tool.write(EXPERIMENT.format(hosts=hosts, script=script, size=MESSAGE_BYTES))
    tool.run("sensitivity", "e.yaml", command=TOOL, timeout_s=800)
    run = only_run(tmp_path)
    told = tool.run("sensitivity", str(run), "--json", command=TOOL)
    (ladder,) = json.loads(told[told.index("{") :])["ladders"]
    with judging(records_of(run)):
        assert_found(ladder)


def assert_found(ladder: dict[str, Any]) -> None:
    assert ladder["rates_are_what"] == "all_reduce of 16 MiB carried"
    assert [rung["name"] for rung in ladder["rungs"]] == ["first", "second", "third", "fourth"]
    for rung, rate_gbps in zip(ladder["rungs"], RATES_GBPS, strict=True):
        assert rung["rate_gbps"] == pytest.approx(rate_gbps * 1448 / 1514, rel=0.05)
    waited_for = ladder["critical_bytes"]["estimate"]  # of two nodes' ring each sends them once
    assert waited_for["value"] == pytest.approx(STEP_BYTES, rel=0.05), ladder
    assert waited_for["low"] < STEP_BYTES < waited_for["high"]
    assert ladder["curve_base_s"]["value"] == pytest.approx(WAIT_S, rel=0.05), ladder
    assert not [words for words in ladder["disagreements"] if "differ in more" in words], ladder
