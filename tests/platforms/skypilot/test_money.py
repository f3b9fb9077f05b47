"""Proves that no cluster is left paid for: whatever ends the tool, and at whatever step."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.e2e.driving import wait_until
from tests.platforms.skypilot import stand_in
from tests.platforms.skypilot.one_cluster import cloud_run

from broadgauge.platforms.skypilot.cluster import bring_down, find_again
from broadgauge.platforms.skypilot.ledger import LEDGER_FILE, Ledger

pytestmark = [pytest.mark.slow]

THOROUGH = pytest.mark.thorough
SPEED = 300.0
"""A minute of the cloud takes 0.2 s."""
ROOT = Path(__file__).parents[3]


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its folder; every `sky` of the test is the stand-in's."""
    folder = tmp_path / "cloud"
    programs = stand_in.install(folder)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv(stand_in.FOLDER, str(folder))
    monkeypatch.setenv(stand_in.SPEED, str(SPEED))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}/src:{ROOT}")
    monkeypatch.setenv("KEY", "very secret")
    return folder


def start(folder: Path, measures_s: float = 60) -> "subprocess.Popen[str]":
    folder.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.platforms.skypilot.one_cluster", folder, str(measures_s)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def state(cloud: Path) -> dict[str, object]:
    """Of the one cluster; empty: none is there."""
    return next(iter(stand_in.clusters(cloud).values()), {})


def num_asked(cloud: Path, command: str) -> int:
    return [words[0] for words in stand_in.asked(cloud)].count(command)


STEPS: dict[str, Callable[[Path], bool]] = {
    "the machines are asked for": lambda cloud: num_asked(cloud, "launch") == 1,
    "they start": lambda cloud: state(cloud).get("status") == "INIT",
    "they are up": lambda cloud: state(cloud).get("status") == "UP",
    "their autodown is set": lambda cloud: state(cloud).get("autostop") == 1,
    "files are sent": lambda cloud: num_asked(cloud, "launch") == 2,
    "setup and run began": lambda cloud: state(cloud).get("job") == "RUNNING",
    "a leader measures": lambda cloud: (cloud / "measuring").exists(),
}


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(step, marks=() if step in ("they start", "a leader measures") else THOROUGH)
        for step in STEPS
    ],
)
def test_sigkill_at_each_step_leaves_nothing_running(
    cloud: Path, tmp_path: Path, step: str
) -> None:
    tool = start(tmp_path / "run")
    wait_until(lambda: STEPS[step](cloud), 60, 0.005)
    tool.kill()
    tool.communicate()
    (cloud / "leader").unlink(missing_ok=True)  # what it had to do is done
    wait_until(lambda: not stand_in.clusters(cloud), 60, 0.05)
    assert num_asked(cloud, "down") == 0, "nobody was there to ask for it"


def test_sigkill_while_it_brings_the_cluster_down_leaves_nothing(
    cloud: Path, tmp_path: Path
) -> None:
    (cloud / "fail-down").write_text("99")
    tool = start(tmp_path / "run", measures_s=0.1)
    wait_until(lambda: num_asked(cloud, "down") == 1, 60, 0.005)
    tool.kill()
    tool.communicate()
    wait_until(lambda: not stand_in.clusters(cloud), 60, 0.05)


def test_a_leader_that_measures_for_ever_ends_when_the_money_does(
    cloud: Path, tmp_path: Path
) -> None:
    """$80 on 2 x $23.6 an hour: 1.7 h, of which the cluster keeps its share by itself."""
    tool = start(tmp_path / "run", measures_s=3600)
    wait_until((cloud / "measuring").exists, 60, 0.01)
    began_s = time.monotonic()
    tool.kill()
    tool.communicate()
    (held,) = Ledger(tmp_path / "run" / "logs").open
    wait_until(lambda: not stand_in.clusters(cloud), 240, 0.05)
    held_s = (time.monotonic() - began_s) * SPEED
    assert pytest.approx(held.most_s, abs=2) == 80 / (2 * 23.6) * 3600
    assert held_s > held.most_s / 2, "it was the limit that ended it, and not idleness"
    (log,) = cloud.glob("*.2.log")
    assert "s that this cluster may be held have passed" in log.read_text()


def test_a_cluster_comes_and_goes_and_its_cost_is_told(cloud: Path, tmp_path: Path) -> None:
    tool = start(tmp_path / "run", measures_s=0.2)
    said, _ = tool.communicate(timeout=120)
    assert tool.returncode == 0, said
    assert stand_in.clusters(cloud) == {}
    commands = [words[0] for words in stand_in.asked(cloud)]
    assert commands == ["launch", "launch", "down", "status"]
    assert all("--down" in words for words in stand_in.asked(cloud) if words[0] == "launch")
    assert "is down, after" in said
    assert "the run so far $" in said
    assert " of $80.00" in said
    (held,) = json.loads((tmp_path / "run" / "logs" / LEDGER_FILE).read_text())["clusters"]
    assert held["ended_unix_s"] > held["began_unix_s"]
    texts = [path.read_text() for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert not [text for text in (*texts, said) if "very secret" in text]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_brings_it_down(cloud: Path, tmp_path: Path, number: signal.Signals) -> None:
    """SIGTERM ends a Python without a handler at once: autodown then does what `finally` can't."""
    tool = start(tmp_path / "run")
    wait_until(lambda: state(cloud).get("job") == "RUNNING", 60, 0.01)
    tool.send_signal(number)
    tool.communicate(timeout=120)
    (cloud / "leader").unlink(missing_ok=True)
    wait_until(lambda: not stand_in.clusters(cloud), 60, 0.05)
    assert (num_asked(cloud, "down") > 0) == (number is signal.SIGINT)


def test_a_launch_that_fails_is_brought_down_and_says_why(cloud: Path, tmp_path: Path) -> None:
    (cloud / "fail-launch").touch()
    tool = start(tmp_path / "run")
    said, _ = tool.communicate(timeout=120)
    assert tool.returncode != 0
    assert "did not get ready: " in said
    assert "files could not be sent" in said
    assert stand_in.clusters(cloud) == {}


def test_a_down_that_fails_is_tried_again_and_else_said_aloud(
    cloud: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broadgauge.platforms.skypilot.cluster.AGAIN_AFTER_S", 0.0)
    tool = start(tmp_path / "run")
    wait_until((cloud / "measuring").exists, 60, 0.01)
    tool.kill()
    tool.communicate()
    around = cloud_run(tmp_path / "run")
    (held,) = around.ledger.open
    (cloud / "fail-down").write_text("3")
    said: list[str] = []
    assert not bring_down(around, held, said.append)
    assert "MAY STILL RUN AND COST" in said[-1]
    assert held.name in said[-1]
    assert around.ledger.open == (held,)
    (cloud / "fail-down").write_text("1")
    assert bring_down(around, held, said.append)
    assert stand_in.clusters(cloud) == {}
    assert Ledger(tmp_path / "run" / "logs").open == ()


def test_who_goes_on_finds_the_cluster_or_that_it_is_gone(cloud: Path, tmp_path: Path) -> None:
    from tests.platforms.skypilot.one_cluster import KEY

    tool = start(tmp_path / "run")
    wait_until((cloud / "measuring").exists, 60, 0.01)
    tool.kill()
    tool.communicate()
    around = cloud_run(tmp_path / "run")
    found = find_again(around, KEY)
    assert found is not None
    assert [host.ssh for host in found.hosts] == [found.held.name, f"{found.held.name}-worker1"]
    (cloud / "leader").unlink()
    wait_until(lambda: not stand_in.clusters(cloud), 60, 0.05)
    assert find_again(around, KEY) is None
    assert around.ledger.open == ()
    spent_usd = around.ledger.spent_usd(time.time())
    assert spent_usd is not None
    assert spent_usd < 80
