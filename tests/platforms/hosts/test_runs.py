"""`platform: hosts`: what becomes of a run when the tool, the leader, an agent or a rank goes?"""

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.driving import only_run, wait_until
from tests.platforms.hosts.machines import (
    HANG_S,
    Hold,
    Started,
    Tool,
    experiment,
    host,
    wrapped_python,
)

from broadgauge.messages.waiting_limits import FACTOR_VARIABLE

pytestmark = [pytest.mark.root, pytest.mark.namespaces, pytest.mark.sshd, pytest.mark.slow]

LIBFAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
LINGERING = (
    ", environment: {LINGER_IN: {from_environment: true}, LINGER_HOLD: {from_environment: true}}"
)
NOT_LINGERING = {"LINGER_IN": "none", "LINGER_HOLD": "/"}
SOON_GIVEN_UP = {FACTOR_VARIABLE: "2"}
"""An agent that does not come is waited for three times, 5 s by that factor."""
HELD_AT_START = (
    'while [ "$1" = -c -a -e /run/shared/hold-start ]; do sleep 0.2; done; exec $PYTHON "$@"'
)
"""Whatever is started there over ssh waits."""
ALL = ["b0.l0.t0", "b0.l0.t1", "b1.l0.t0", "b1.l0.t1"]


def statuses(tool: Tool) -> dict[str, str]:
    """Of each trial, none of which may have two records."""
    found = [(each["record_id"], each["status"]) for each in tool.records]
    assert len(dict(found)) == len(found), found
    return dict(sorted(found))


def linger(
    tool: Tool, hold: Hold | None = None, *hosts: str, more: str = LINGERING, **options: Any
) -> Started:
    """A run whose second trial has begun, and stays: for ever, or while this is held."""
    tool.write(experiment(*hosts, more=more))
    there = "/" if hold is None else hold.there
    started = tool.start("run", "e.yaml", LINGER_IN="measure", LINGER_HOLD=there, **options)
    tool.wait_for_ranks()
    wait_until(lambda: statuses(tool) == {ALL[0]: "ok"}, HANG_S)
    return started


def resume(tool: Tool, code: int = 0, **variables: str) -> str:
    return tool.run("run", "--resume", "last", code=code, **NOT_LINGERING, **variables)


def kill(tool: Tool, word: str, machine: str = "") -> None:
    for process in tool.machines.processes(word, machine):
        if not process.line.startswith("/bin/sh"):
            os.kill(process.pid, signal.SIGKILL)


def test_a_run_is_whole_whatever_a_login_says_and_clocks_show(tool: Tool) -> None:
    """The leader's host greets whoever logs in, and the other one's clock is 3 s ahead."""
    ahead = wrapped_python(
        tool.machines.folder,
        "ahead",
        f"export LD_PRELOAD={LIBFAKETIME} FAKETIME=+3s FAKETIME_DONT_FAKE_MONOTONIC=1\n"
        'exec $PYTHON "$@"',
    )
    assert Path(ahead).exists()
    tool.write(experiment(host("noisy"), host("node0", "/run/shared/ahead")))
    tool.run("run", "e.yaml")
    assert statuses(tool) == dict.fromkeys(ALL, "ok")
    for record in tool.records:
        here, there = record["clocks"]
        assert abs(here["offset_s"]) <= here["uncertainty_s"]
        assert abs(there["offset_s"] - 3) <= there["uncertainty_s"]
    kept = json.loads((only_run(tool.folder) / "logs" / "preflight.json").read_text())
    (clocks,) = [each["text"] for each in kept["findings"]]
    assert "and node0 are " in clocks
    assert " apart (± " in clocks
    assert "differs: the clocks of " in tool.run("preflight", "e.yaml")
    assert tool.machines.left_over() == []
    assert not (only_run(tool.folder) / "logs" / "leader.json").exists()


def test_ctrl_c_ends_it_on_the_hosts_and_resume_goes_on(tool: Tool) -> None:
    """And a secret stands in no file and on no command line meanwhile."""
    secret = {"MY_TOKEN": "a-planted-secret-4711"}
    asks = LINGERING.replace("}}", "}, MY_TOKEN: {from_environment: true}}")
    started = linger(tool, more=asks, **secret)
    assert_is_hidden(secret["MY_TOKEN"], tool)
    started.interrupt()
    started.end(130)
    assert tool.machines.left_over() == []
    assert statuses(tool) == {"b0.l0.t0": "ok"}
    resume(tool, **secret)
    assert statuses(tool) == dict.fromkeys(ALL, "ok")


def assert_is_hidden(secret: str, tool: Tool) -> None:
    """What the ranks have in their environment nobody else may find."""
    processes = tool.machines.processes()
    assert not [each for each in processes if secret in each.line]
    ranks = [each for each in processes if "scripted_worker" in each.line]
    assert len(ranks) == 2
    for rank in ranks:
        assert secret.encode() in Path(f"/proc/{rank.pid}/environ").read_bytes()
    folders = [Path(f"/proc/{rank.pid}/root/run/temporary") for rank in ranks]
    for folder in (*folders, tool.folder):
        found = subprocess.run(
            ["grep", "-rl", secret, str(folder)], check=False, capture_output=True, text=True
        )
        assert found.stdout == ""
    leader = json.loads((only_run(tool.folder) / "logs" / "leader.json").read_text())
    assert leader.keys() == {"host", "python", "folder", "zip_hash"}  # and no token
    assert (only_run(tool.folder) / "logs" / "leader.json").stat().st_mode & 0o077 == 0


def test_a_killed_tool_is_not_missed_and_resume_collects(tool: Tool) -> None:
    with tool.machines.held() as hold:
        linger(tool, hold).kill()
    tool.machines.wait_for_end("supervise")  # its launch is run, with nobody there
    assert statuses(tool) == {ALL[0]: "ok"}
    resumed_s = time.time()
    resume(tool)
    assert statuses(tool) == dict.fromkeys(ALL, "ok")
    (missed,) = (each for each in tool.records if each["record_id"] == ALL[1])
    assert missed["ended_unix_s"] < resumed_s
    assert missed["launch_id"] == missed["record_id"].rpartition(".")[0], "the life it ran in"


@pytest.mark.thorough
def test_a_tool_that_is_killed_twice_collects_what_both_missed(tool: Tool) -> None:
    with tool.machines.held() as hold:
        linger(tool, hold).kill()
        again = tool.start("run", "--resume", "last", **NOT_LINGERING)
        tool.machines.wait_for("relay")
        again.kill()
    resume(tool)
    assert statuses(tool) == dict.fromkeys(ALL, "ok")
    logs = [path.read_text() for path in (only_run(tool.folder) / "logs").glob("*rank*")]
    assert [text.count("lingers") for text in logs if "lingers" in text] == [1, 1]


@pytest.mark.thorough
def test_a_run_whose_terminal_closes_goes_on(tool: Tool) -> None:
    with tool.machines.held() as hold:
        started = linger(tool, hold)
        started.interrupt(signal.SIGHUP)
        started.end(129)
        assert tool.machines.processes("leader")
    resume(tool)
    assert statuses(tool) == dict.fromkeys(ALL, "ok")


@pytest.mark.thorough
def test_ctrl_c_right_after_resume_ends_what_an_earlier_life_began(tool: Tool) -> None:
    wrapped_python(tool.machines.folder, "held", HELD_AT_START)
    linger(tool, None, host("node0"), host("node1", "/run/shared/held")).kill()
    with tool.machines.held("hold-start"):
        again = tool.start("run", "--resume", "last", **NOT_LINGERING)
        tool.machines.wait_for("/bin/sh /run/shared/held", "node1")  # it is asked what it is
        again.interrupt()
    again.end(130)
    # Before the run began nothing was ended: the next one finds it.
    started = tool.start("run", "--resume", "last", **NOT_LINGERING)
    tool.machines.wait_for("relay")
    started.interrupt()
    started.end(130)


def test_a_killed_leader_is_replaced(tool: Tool) -> None:
    with tool.machines.held() as hold:
        started = linger(tool, hold)
        kill(tool, "zip leader")
    started.end(None)
    found = statuses(tool)
    assert list(found) == ALL
    assert [name for name, status in found.items() if status != "ok"] in ([], ["b0.l0.t1"])


def test_a_killed_agent_is_named_and_replaced(tool: Tool) -> None:
    started = linger(tool, **SOON_GIVEN_UP)
    kill(tool, "zip agent", "node1")
    started.end(3)
    found = statuses(tool)
    assert found == dict.fromkeys(ALL, "ok") | {"b0.l0.t1": "failed"}
    (lost,) = (each for each in tool.records if each["status"] == "failed")
    assert lost["error"]["kind"] == "launcher_lost"
    assert "the agent on node1" in lost["error"]["message"]


@pytest.mark.thorough
def test_a_killed_agent_whose_tool_is_gone_too_costs_one_trial(tool: Tool) -> None:
    linger(tool, **SOON_GIVEN_UP).kill()
    kill(tool, "zip agent", "node1")
    tool.machines.wait_for_end("supervise")
    resume(tool, code=3)
    assert statuses(tool) == dict.fromkeys(ALL, "ok") | {"b0.l0.t1": "failed"}


def test_a_killed_rank_fails_its_trial_alone(tool: Tool) -> None:
    started = linger(tool)
    kill(tool, "scripted_worker", "node1")
    started.end(3)
    found = statuses(tool)
    assert found == dict.fromkeys(ALL, "ok") | {"b0.l0.t1": "failed"}
    (lost,) = (each for each in tool.records if each["status"] == "failed")
    assert lost["error"]["kind"] == "killed"
    assert lost["error"]["rank"] == 1
