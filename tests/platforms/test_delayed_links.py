"""Does a launch live with links of seconds of delay, and with links that lose half of all packets?

The kernels here have no netem: packets pass through a process (emulated/tap_forwarder.py).
"""

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.platforms.launches import (
    WORKER,
    assert_known_or_noted,
    make_case,
    make_folders,
    make_request,
    quiet,
)

from broadgauge.agent.supervisor.link_facts import ROUND_TRIP_LIMIT_S
from broadgauge.messages.agent import Alive, Event, Order, Ready, RunTrial, TrialStarts
from broadgauge.messages.waiting_limits import FACTOR_VARIABLE
from broadgauge.platforms import starting, supervised
from broadgauge.platforms.connection import SupervisorConnection
from broadgauge.platforms.emulated_cluster import EmulatedPlatform
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.supervised import SupervisedLaunch
from broadgauge.specs.launching import TrialOutcome, TrialRequest
from broadgauge.specs.networks.network import Network
from broadgauge.specs.records.record import Status

pytestmark = [
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


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[Event]:
    """All that supervisors say in a test."""
    events: list[Event] = []
    receive = SupervisorConnection.receive

    def listen(self: SupervisorConnection, timeout_s: float) -> Event | None:
        event = receive(self, timeout_s)
        if event is not None:
            events.append(event)
        return event

    monkeypatch.setattr(SupervisorConnection, "receive", listen)
    return events


def signs_of_life(heard: Sequence[Event]) -> int:
    """While the link was measured, which is before the ranks are started."""
    ready = next(i for i, event in enumerate(heard) if isinstance(event, Ready))
    return sum(isinstance(event, Alive) for event in heard[:ready])


def test_a_round_trip_of_seconds_is_measured_while_the_supervisor_goes_on(
    tmp_path: Path, heard: list[Event]
) -> None:
    """Handshake and one exchange take four seconds at the least, on any machine."""
    platform = delayed(tmp_path, delay_s=1.0)
    outcome = run_once(platform, tmp_path)
    assert (outcome.status, outcome.error) == (Status.OK, None)
    assert_known_or_noted([outcome.link], platform.notes)
    assert outcome.link is None or not (outcome.link.round_trip_s or 2.0) < 2.0
    assert signs_of_life(heard)


@pytest.mark.measured
def test_a_round_trip_of_seconds_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes twice the silence after which the tool gives a launch up."""
    for module in (starting, supervised):
        monkeypatch.setattr(module, "SILENCE_LIMIT_S", 2.0)
    outcome = run_once(delayed(tmp_path, delay_s=1.0), tmp_path)
    assert outcome.link is not None
    assert outcome.link.round_trip_s == pytest.approx(2.0, rel=0.1)


def test_a_link_that_loses_half_of_all_packets(tmp_path: Path) -> None:
    platform = delayed(tmp_path, delay_s=0.05, loss_ratio=0.5)
    outcome = run_once(platform, tmp_path)
    assert outcome.status is Status.OK
    assert_known_or_noted([outcome.link], platform.notes)
    assert outcome.link is None or not (outcome.link.round_trip_s or 0.1) < 0.1


@pytest.mark.measured
@pytest.mark.parametrize("seed", range(3))
def test_the_round_trip_of_a_link_that_loses_half_of_all_packets(seed: int, tmp_path: Path) -> None:
    """Of three in four exchanges no answer comes: those that come tell how long the way is."""
    outcome = run_once(delayed(tmp_path, delay_s=0.05, loss_ratio=0.5, seed=seed), tmp_path)
    assert outcome.link is not None
    assert outcome.link.round_trip_s == pytest.approx(0.1, rel=0.3)


def test_a_link_that_nothing_passes_is_unknown_and_said_to_be(
    tmp_path: Path, heard: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FACTOR_VARIABLE, "1")  # ten seconds are enough for nothing
    platform = delayed(tmp_path, loss_ratio=1.0)
    outcome = run_once(platform, tmp_path)
    assert outcome.status is Status.OK  # the scripted ranks send nothing
    assert_known_or_noted([outcome.link], platform.notes)
    if outcome.link is not None:
        assert outcome.link.round_trip_s is None
        assert any("round trip is unknown: no answer in 10 s" in note for note in platform.notes)
    assert signs_of_life(heard)


def test_a_launch_is_ended_while_its_link_is_measured(
    tmp_path: Path, heard: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waited for the measurement would hear that the trial starts."""
    given = threading.Event()
    send = SupervisorConnection.send

    def give(self: SupervisorConnection, order: Order) -> None:
        send(self, order)
        if isinstance(order, RunTrial):
            given.set()

    monkeypatch.setattr(SupervisorConnection, "send", give)
    launch, request = lossy_launch(tmp_path)

    def close() -> None:
        given.wait()
        launch.close()

    closing = threading.Thread(target=close)
    closing.start()
    outcome = launch.run_trial(request, quiet)
    closing.join()
    assert outcome.status is Status.FAILED
    assert not [event for event in heard if isinstance(event, TrialStarts)]


def lossy_launch(folder: Path) -> tuple[SupervisedLaunch, TrialRequest]:
    """Nothing passes the link of the trial that is asked for."""
    case = make_case("emulated")
    lossy = make_case("emulated", network=Network(name="lossy", rate_gbps=0.5))
    platform = delayed(folder, loss_ratio=1.0, slow_from_gbps=0.6)
    launch = platform.start(make_request(case, cases=(case, lossy)), quiet)
    assert isinstance(launch, SupervisedLaunch)
    return launch, TrialRequest(trial_id="t0", case=lossy, seed=1)


@pytest.mark.measured
def test_a_launch_is_ended_at_once_while_its_link_is_measured(tmp_path: Path) -> None:
    """Ten seconds are left to the measurement, and nobody waits for it."""
    launch, request = lossy_launch(tmp_path)

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
