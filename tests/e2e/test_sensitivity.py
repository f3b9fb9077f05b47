"""Holds `broadgauge sensitivity`: what a script computes and sends is found by its times alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, run_command

from broadgauge.cli.experiments import examples_folder

pytestmark = [
    pytest.mark.measuring,
    pytest.mark.namespaces,
    pytest.mark.slow,
    pytest.mark.timeout(900),
]

COMPUTE_S = 0.1
STEP_BYTES = 1_500_000
EXPERIMENT = """\
name: known
platform: emulated
cluster: {shapes: [1x1, 2x1], device: cpu}
networks: [{name: slow, rate_gbps: 0.1}]
workloads:
  - kind: command
    command: [known_step.py, --steps, "9", --compute-ms, "100", --bytes, "1500000", --overlap, both]
    metrics:
      - {name: step_time_s, json_key: step_time_s, skip_first: 2}
      - {name: overlapped_step_time_s, json_key: overlapped_step_time_s, skip_first: 2}
launches: 3
"""


def test_known_compute_and_bytes_are_recovered_within_5_percent(tmp_path: Path) -> None:
    """At 50 and 100 Mbit/s the bytes take 251 and 125 ms, at 200 and 400 less than the compute."""
    script = (examples_folder() / "known_step.py").read_text()
    (tmp_path / "known_step.py").write_text(script)
    (tmp_path / "known.yaml").write_text(EXPERIMENT)
    ran = run_command(
        *("sensitivity", "known.yaml", "--rates", "0.05,0.1,0.2,0.4", "--json"),
        folder=tmp_path,
        timeout_s=850,
    )
    assert ran.returncode == 0, ran.stderr
    in_turns = only_ladder(ran.stdout)
    run = only_run(tmp_path)
    again = run_command(
        *("sensitivity", str(run), "--metric", "overlapped_step_time_s", "--json"), folder=tmp_path
    )
    assert again.returncode == 0, again.stderr
    overlapped = only_ladder(again.stdout)
    assert in_turns["form"] == "line"
    assert overlapped["form"] == "hinge"
    for ladder in (in_turns, overlapped):
        assert value(ladder, "base_s") == pytest.approx(COMPUTE_S, rel=0.05), ladder["rungs"]
        assert value(ladder, "critical_bytes") == pytest.approx(STEP_BYTES, rel=0.05)
        for key in ("base_s", "critical_bytes", "enough_gbps"):
            estimate = ladder[key]["estimate"]
            assert estimate["low"] <= estimate["value"] <= estimate["high"]
    # The bytes take as long as the compute at 8 x 1.5 MB / 100 ms of payload.
    assert value(overlapped, "knee_gbps") == pytest.approx(0.12 * 1514 / 1448, rel=0.08)
    assert value(in_turns, "enough_gbps") > 10 * value(overlapped, "enough_gbps")
    assert in_turns["is_extrapolated"]
    assert not overlapped["is_extrapolated"]
    # A line of output is a step of each kind here, so the counters see the bytes of both.
    counted = in_turns["counted_bytes"]["value"]
    assert 2 * STEP_BYTES * 0.99 < counted < 2 * STEP_BYTES * 1.06
    assert (run / "report.html").is_file()


def only_ladder(text: str) -> dict[str, Any]:
    (ladder,) = json.loads(text)["ladders"]
    return dict(ladder)


def value(ladder: dict[str, Any], key: str) -> float:
    return float(ladder[key]["estimate"]["value"])
