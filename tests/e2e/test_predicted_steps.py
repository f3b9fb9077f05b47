"""Holds that a calibrated machine predicts its own trainings: the installed command, real ranks.

Cores that are busy with something else slow what computes, and not what is on the wire. So held are
orders, bytes, which nothing disturbs, and steps whose compute is taken as it was in the same trial;
docs/measurements.md has the errors of a quiet machine.
"""

import json
import statistics
from collections import defaultdict
from typing import Any

import pytest
from tests.disturbance import judging
from tests.e2e.driving import records_of, run_command

from broadgauge.specs.networks.network import payload_rate_gbps

pytestmark = [
    pytest.mark.measured,
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

EXPERIMENT = """\
name: predicted
cluster: {shapes: [2x1], device: cpu}
networks:
  - {name: ethernet, rate_gbps: [100 Mbit/s, 200 Mbit/s, 500 Mbit/s, 2 Gbit/s]}
workloads:
WORKLOADS
launches: 1
"""
WORKLOAD = """\
  - kind: train
    name: NAME
    model: MODEL
    batch_per_rank: 2
    steps: 4
    warm_up_steps: 1
    block_steps: 2
    CHANGE
"""
MODELS = {
    "small": "{layers: 2, hidden: 128, heads: 4, seq_len: 64}",
    "large": "{layers: 4, hidden: 192, heads: 4, seq_len: 64}",
}
CHANGES = {
    "ddp": "strategy: ddp",
    "fsdp": "strategy: fsdp",
    "accumulation": "accumulation: 4",
    "bf16": "gradient_dtype: bfloat16",
}
Step = dict[str, Any]


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Calibrated, run, compared."""
    folder = tmp_path_factory.mktemp("predicted")
    entries = [
        WORKLOAD.replace("NAME", f"{way}-{size}").replace("MODEL", model).replace("CHANGE", change)
        for way, change in CHANGES.items()
        for size, model in MODELS.items()
        if size == "large" or way == "ddp"
    ]
    (folder / "e.yaml").write_text(EXPERIMENT.replace("WORKLOADS\n", "".join(entries)))
    for words in (("calibrate",), ("run", "e.yaml"), ("calibrate", "--check", "last", "--json")):
        ran = run_command(*words, folder=folder, timeout_s=600)
        assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    runs = [path for path in (folder / "runs").iterdir() if (path / "records.jsonl").is_file()]
    return {**found, "records": [record for run in runs for record in records_of(run)]}


def by_workload(steps: list[Step]) -> dict[str, list[Step]]:
    """Each with its rates, the slowest first."""
    found = defaultdict(list)
    for step in steps:
        found[step["label"].split()[0]].append(step)
    return found


def test_every_training_is_predicted(checked: dict[str, Any]) -> None:
    assert checked["overall"]["num_steps"] == (len(CHANGES) + 1) * 4


def test_steps_are_predicted_in_their_order(checked: dict[str, Any]) -> None:
    with judging(checked["records"]):
        assert checked["overall"]["pair_order_ratio"] >= 0.9


def test_the_bytes_are_those_that_were_counted(checked: dict[str, Any]) -> None:
    """Acknowledgements and what torch says beside its collectives come on top of headers."""
    headers = 1 / payload_rate_gbps(1.0, 1500)
    for step in checked["steps"]:
        ratio = step["wire_bytes"] / (step["network_bytes"] * headers)
        assert 0.99 < ratio < 1.04, step["label"]


def test_a_step_waits_as_long_as_was_predicted(checked: dict[str, Any]) -> None:
    """Where the network decides: the large model, up to 500 Mbit/s. Also the ratio of the slowest
    rate to each faster one."""
    errors, ratios = [], []
    for name, steps in by_workload(checked["steps"]).items():
        if not name.endswith("large"):
            continue
        given = {step["network"]: _with_own_compute(step) for step in steps}
        slow, middle, fast = (f"ethernet-rate-{rate}mbit" for rate in (100, 200, 500))
        measured = {step["network"]: step["measured_s"] for step in steps}
        errors += [abs(given[rate] / measured[rate] - 1) for rate in (slow, middle, fast)]
        ratios += [
            abs(given[slow] / given[rate] / (measured[slow] / measured[rate]) - 1)
            for rate in (middle, fast)
        ]
    assert len(errors) == 12
    with judging(checked["records"]):
        assert statistics.fmean(errors) <= 0.15
        assert statistics.fmean(ratios) <= 0.15


def _with_own_compute(step: Step) -> float:
    waits_s: float = step["predicted_s"] - step["predicted_without_s"]
    return waits_s + float(step["measured_without_s"])
