"""Is a run traced without a change of what it runs, and do its records say where a step's time
goes: on a slow network into communication?"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, records_of, run_command

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.thorough("traced runs"),
    pytest.mark.timeout(600),
]
EXPERIMENT = """\
name: traced
platform: emulated
cluster: {shapes: [2x1], device: cpu}
networks:
  - {name: slow, rate_gbps: 100 Mbit/s}
  - {name: fast, rate_gbps: 2 Gbit/s}
workloads:
  - kind: train
    model: {layers: 2, hidden: 128, heads: 4, seq_len: 64}
    steps: 4
    warm_up_steps: 1
    block_steps: 4
    trace: {steps: 2}
  - kind: command
    networks: [slow]
    command: [script.py]
    metrics: [{name: step_time_s, regex: 'took ([\\d.]+) s'}]
    trace: {steps: 2, after_steps: 4}
launches: 1
"""
SCRIPT = """\
import os, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
torch.set_num_threads(1)
layers = [torch.nn.Linear(256, 256) for _ in range(4)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
tokens = torch.ones(8, 256)
for step in range(12):
    begin = time.perf_counter()
    with model.no_sync():
        model(tokens).sum().backward()
    model(tokens).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if dist.get_rank() == 0:
        print(f"step took {time.perf_counter() - begin:.6f} s", flush=True)
open(f"whole.{os.getpid()}", "w").close()
dist.destroy_process_group()
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traced")
    (folder / "traced.yaml").write_text(EXPERIMENT)
    (folder / "script.py").write_text(SCRIPT)
    ran = run_command("run", "traced.yaml", folder=folder, timeout_s=550)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Where a step's time goes" in ran.stdout
    return only_run(folder)


def record_of(run: Path, workload: str, network: str) -> dict[str, Any]:
    (found,) = [r for r in records_of(run) if (r["workload"], r["network"]) == (workload, network)]
    return found


@pytest.mark.parametrize(("workload", "network"), [("train", "slow"), ("command", "slow")])
def test_the_parts_add_up_to_the_traced_step(workload: str, network: str, run: Path) -> None:
    record = record_of(run, workload, network)
    traced = record["traced"]
    assert traced["problem"] is None
    assert (traced["traces_count"], traced["steps_count"]) == (2, 2)
    assert sum(traced["parts_s"].values()) == pytest.approx(traced["step_time_s"])
    overhead = traced["step_time_s"] / record["metrics"]["step_time_s"]
    assert traced["tracing_overhead_ratio"] == pytest.approx(overhead)
    kept = [run / artifact["path"] for artifact in record["artifacts"]]
    assert sorted(path.name.split(".")[-4] for path in kept) == ["rank0", "rank1"]
    assert all(path.is_file() for path in kept)
    assert not list((run / "logs").rglob("*.trace.json.gz")), "a trace is there once"


def test_the_slower_network_is_what_a_step_waits_for(run: Path) -> None:
    slow, fast = (record_of(run, "train", network)["traced"] for network in ("slow", "fast"))
    exposed = "exposed_communication"
    assert slow["parts_s"][exposed] > 2 * fast["parts_s"][exposed]
    assert slow["parts_s"][exposed] > slow["step_time_s"] / 2


def test_the_traced_launch_is_in_no_figure_and_ends_when_it_is_traced(run: Path) -> None:
    record = record_of(run, "command", "slow")
    whole = list(run.parent.parent.glob("whole.*"))
    assert len(whole) == 2, "the ranks of the timed launch reach their end, the traced ones do not"
    log = (run / "logs" / f"{record['launch_id']}.rank0.log").read_text()
    assert log.count("step took") == 12


def test_explain_reads_the_traces_of_a_run(run: Path) -> None:
    folder = run.parent.parent
    ran = run_command("explain", "last", "--json", folder=folder)
    assert ran.returncode == 0, ran.stderr
    cases = {each["case"]: each for each in json.loads(ran.stdout)["cases"]}
    traced = record_of(run, "train", "slow")["traced"]
    assert cases["train 2x1 slow"]["parts_s"] == pytest.approx(traced["parts_s"])
    assert len(cases) == 3


def test_the_report_shows_when_each_rank_did_what(run: Path) -> None:
    page = (run / "report.html").read_text()
    assert page.count('<figure class="timeline"') == 3
    series = record_of(run, "train", "slow")["series"]["traced_timeline"]
    assert (run / series).stat().st_size < 500_000
