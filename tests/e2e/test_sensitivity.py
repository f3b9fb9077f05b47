"""Holds `broadgauge sensitivity`: what a script computes and sends is found by its times alone."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.disturbance import judging
from tests.e2e.driving import only_run, records_of, run_command

from broadgauge.running.experiments import examples_folder

pytestmark = [
    pytest.mark.measured,
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


@dataclass(frozen=True)
class Known:
    """What was found of the known step, and the folder of its run."""

    in_turns: dict[str, Any]
    overlapped: dict[str, Any]
    run: Path


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Run at each rate, and looked at in two ways."""
    folder = tmp_path_factory.mktemp("known")
    script = (examples_folder() / "known_step.py").read_text()
    (folder / "known_step.py").write_text(script)
    (folder / "known.yaml").write_text(EXPERIMENT)
    ran = run_command(
        *("sensitivity", "known.yaml", "--rates", "0.05,0.1,0.2,0.4", "--json"),
        folder=folder,
        timeout_s=850,
    )
    assert ran.returncode == 0, ran.stderr
    run = only_run(folder)
    again = run_command(
        *("sensitivity", str(run), "--metric", "overlapped_step_time_s", "--json"), folder=folder
    )
    assert again.returncode == 0, again.stderr
    return Known(only_ladder(ran.stdout), only_ladder(again.stdout), run)


def test_known_compute_and_bytes_are_recovered_within_5_percent(known: Known) -> None:
    with judging(records_of(known.run)):
        assert_recovered(known.in_turns, known.overlapped)


def assert_recovered(in_turns: dict[str, Any], overlapped: dict[str, Any]) -> None:
    """At 50 and 100 Mbit/s the bytes take 251 and 125 ms, at 200 and 400 less than the compute."""
    assert in_turns["form"] == "line"
    assert overlapped["form"] == "hinge"
    for ladder in (in_turns, overlapped):
        assert value(ladder, "base_s") == pytest.approx(COMPUTE_S, rel=0.05), ladder["rungs"]
        assert value(ladder, "critical_bytes") == pytest.approx(STEP_BYTES, rel=0.05)
        for key in ("base_s", "critical_bytes"):
            estimate = estimate_of(ladder, key)
            assert None not in (estimate["low"], estimate["high"]), ladder[key]["why_unknown"]
            assert estimate["low"] <= estimate["value"] <= estimate["high"]
    # The bytes take as long as the compute at 8 x 1.5 MB / 100 ms of payload.
    assert value(overlapped, "knee_gbps") == pytest.approx(0.12 * 1514 / 1448, rel=0.08)
    assert in_turns["knee_gbps"]["estimate"] is None
    assert in_turns["enough_gbps"]["at_least"] or value(in_turns, "enough_gbps") > 1
    assert not overlapped["is_extrapolated"]
    for ladder in (in_turns, overlapped):
        assert [rung["is_unshaped"] for rung in ladder["rungs"]] == [False] * 4 + [True]


def test_the_bytes_of_both_kinds_of_step_are_counted(known: Known) -> None:
    """A line of output is a step of each kind here, so the counters see the bytes of both."""
    counted = known.in_turns["counted_bytes"]["value"]
    assert 2 * STEP_BYTES * 0.99 < counted < 2 * STEP_BYTES * 1.06
    assert (known.run / "report.html").is_file()


def only_ladder(text: str) -> dict[str, Any]:
    (ladder,) = json.loads(text)["ladders"]
    return dict(ladder)


def estimate_of(ladder: dict[str, Any], key: str) -> dict[str, Any]:
    estimate = ladder[key]["estimate"]
    assert estimate is not None, ladder[key]["why_unknown"]
    return dict(estimate)


def value(ladder: dict[str, Any], key: str) -> float:
    return float(estimate_of(ladder, key)["value"])
