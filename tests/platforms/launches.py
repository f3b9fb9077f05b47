"""What do the tests of this folder launch? Fake workers, on both platforms."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.local import LocalPlatform
from broadgauge.specs.case import Case
from broadgauge.specs.launching import LaunchRequest, Platform, TrialOutcome, TrialRequest
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.record import LinkFacts, Phase
from broadgauge.specs.time_limits import TimeLimits
from broadgauge.specs.workloads.workload import CollectivesWorkload

MAY_BE_UNKNOWN = ("one stream", "8 streams", "round trip")
"""Of a link: what a note calls unknown."""
WORKER = Path(__file__).with_name("fake_worker.py")
LIMITS = TimeLimits(rendezvous_s=200, warm_up_s=200, measure_s=200, teardown_s=5)
"""Against hangs, where a test does not mean one of them."""


def make_case(kind: str, **changes: Any) -> Case:
    """Two ranks: on one node when `local`, on two when `emulated` or joined by `tunnels`."""
    fields: dict[str, Any] = {
        "workload": CollectivesWorkload(kind="collectives"),
        "network": None,
        "nodes": 1,
        "ranks_per_node": 2,
        "device": "cpu",
        "backend": "gloo",
        "environment": {"MINE": "yes"},
    }
    if kind != "local":
        network = Network(name="slow", rate_gbps=1.0, mtu_bytes=1500)
        if kind == "tunnels":
            network = network.model_copy(update={"overlay": "vxlan", "nics_per_node": 2})
        fields |= {"network": network, "nodes": 2, "ranks_per_node": 1}
    return Case(**fields | changes)


def make_request(case: Case, **changes: Any) -> LaunchRequest:
    fields: dict[str, Any] = {
        "launch_id": "b0.0",
        "cases": (case,),
        "cores_per_node": 1,
        "limits": LIMITS,
    }
    return LaunchRequest(**fields | changes)


def make_folders(folder: Path) -> LaunchFolders:
    return LaunchFolders(logs=folder / "logs", working=folder)


def make_platform(folder: Path, kind: str, scenario: str, *more: str) -> Platform:
    programs = Programs(worker=(sys.executable, str(WORKER), scenario, *more))
    if kind != "local":
        return EmulatedPlatform(make_folders(folder), programs=programs)
    return LocalPlatform(make_folders(folder), programs=programs)


def quiet(phase: Phase, detail: str) -> None:
    """Progress that nobody looks at."""


def run_once(kind: str, folder: Path, scenario: str, **limits: float) -> TrialOutcome:
    """One launch with one trial of a scenario."""
    case = make_case(kind)
    request = make_request(case, limits=LIMITS.model_copy(update=limits))
    launch = make_platform(folder, kind, scenario).start(request, quiet)
    try:
        outcome = launch.run_trial(TrialRequest(trial_id="t0", case=case, seed=1), quiet)
        assert launch.is_alive == (outcome.error is None)
        return outcome
    finally:
        launch.close()
        launch.close()


def assert_known_or_noted(links: Sequence[LinkFacts | None], notes: Sequence[str]) -> None:
    """Streams get nothing through in a short time where others have the cores."""
    noted = {word for note in notes if "unknown" in note for word in MAY_BE_UNKNOWN if word in note}
    for link in links:
        if link is None:
            assert "one stream" in noted
            continue
        assert link.ceiling_gbps > 0
        assert link.round_trip_s is not None or "round trip" in noted
        if link.eight_streams_gbps is None:
            assert link.is_one_stream_enough or "8 streams" in noted
        else:
            assert not link.is_one_stream_enough
