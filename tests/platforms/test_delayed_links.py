"""Does a launch live with links of seconds of delay, and with links that lose half of all packets?

The kernels here have no netem: packets pass through a process (emulated/tap_forwarder.py).
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.platforms.launches import WORKER, make_case, make_folders, make_request, quiet

from broadgauge.agent.supervisor.link_facts import ROUND_TRIP_LIMIT_S
from broadgauge.platforms import starting, supervised
from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.supervised import SupervisedLaunch
from broadgauge.specs.launching import TrialOutcome, TrialRequest
from broadgauge.specs.network import Network
from broadgauge.specs.record import Status

pytestmark = [
    pytest.mark.measured,
    pytest.mark.namespaces,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may open /dev/net/tun"),
]
SUPERVISOR = Path(__file__).parent / "emulated" / "delaying_supervisor.py"


def delayed(folder: Path, **wishes: float) -> EmulatedPlatform:
    said = json.dumps({"delay_s": 0.0, "loss_ratio": 0.0, "seed": 0} | wishes)
    return EmulatedPlatform(
        make_folders(folder),
        programs=Programs(
            worker=(sys.executable, str(WORKER), "ok"),
            supervisor=(sys.executable, str(SUPERVISOR), said),
        ),
    )


def run_once(platform: EmulatedPlatform, folder: Path) -> TrialOutcome:
    case = make_case("emulated")
    launch = platform.start(make_request(case), quiet)
    try:
        return launch.run_trial(TrialRequest(trial_id="t0", case=case, seed=1), quiet)
    finally:
        launch.close()


def test_a_round_trip_of_seconds_is_measured_while_the_supervisor_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Handshake and one exchange take twice the silence after which the tool gives a launch up."""
    for module in (starting, supervised):
        monkeypatch.setattr(module, "SILENCE_LIMIT_S", 2.0)
    outcome = run_once(delayed(tmp_path, delay_s=1.0), tmp_path)
    assert (outcome.status, outcome.error) == (Status.OK, None)
    assert outcome.link is not None
    assert outcome.link.round_trip_s == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_a_link_that_loses_half_of_all_packets(seed: int, tmp_path: Path) -> None:
    """Of three in four exchanges no answer comes: those that come tell how long the way is."""
    outcome = run_once(delayed(tmp_path, delay_s=0.05, loss_ratio=0.5, seed=seed), tmp_path)
    assert outcome.status is Status.OK
    assert outcome.link is not None
    assert outcome.link.round_trip_s == pytest.approx(0.1, rel=0.3)


def test_a_link_that_nothing_passes_is_unknown_and_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (starting, supervised):
        monkeypatch.setattr(module, "SILENCE_LIMIT_S", 0.5 * ROUND_TRIP_LIMIT_S)
    platform = delayed(tmp_path, loss_ratio=1.0)
    outcome = run_once(platform, tmp_path)
    assert outcome.status is Status.OK  # the scripted ranks send nothing
    assert outcome.link is not None
    assert outcome.link.round_trip_s is None
    assert any("round trip is unknown: no answer in" in note for note in platform.notes)


def test_a_launch_is_ended_while_its_link_is_measured(tmp_path: Path) -> None:
    """Ten seconds are left to the measurement, and nobody waits for it."""
    case = make_case("emulated")
    lossy = make_case("emulated", network=Network(name="lossy", rate_gbps=0.5))
    platform = delayed(tmp_path, loss_ratio=1.0, slow_from_gbps=0.6)
    launch = platform.start(make_request(case, cases=(case, lossy)), quiet)
    assert isinstance(launch, SupervisedLaunch)
    request = TrialRequest(trial_id="t0", case=lossy, seed=1)

    def close_soon() -> None:
        time.sleep(2.0)  # the ceilings take one
        launch.close()

    begin_s = time.monotonic()
    closing = threading.Thread(target=close_soon)
    closing.start()
    outcome = launch.run_trial(request, quiet)
    closing.join()
    assert time.monotonic() - begin_s < 0.8 * ROUND_TRIP_LIMIT_S
    assert outcome.status is Status.FAILED
