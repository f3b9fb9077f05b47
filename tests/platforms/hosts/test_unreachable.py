"""`platform: hosts`: what becomes of a run when a host can't be reached any more, or is full?"""

import pytest
from tests.platforms.hosts.machines import (
    TOOL_WITHOUT_PATIENCE,
    Tool,
    host,
    wrapped_python,
)
from tests.platforms.hosts.test_runs import ALL, linger, resume, statuses

from broadgauge.messages.waiting_limits import FACTOR_VARIABLE

pytestmark = [pytest.mark.root, pytest.mark.namespaces, pytest.mark.sshd, pytest.mark.slow]

FULL = "/run/temporary: No space left on device"
HELD = 'while [ "$2" = supervise -a -e /run/shared/hold-2 ]; do sleep 0.2; done; exec $PYTHON "$@"'
AS_USERS_HAVE_IT = {FACTOR_VARIABLE: "1"}
"""The limits that have to pass here would take ten minutes in CI."""


def test_a_host_that_is_cut_off_in_a_trial_is_named_and_resume_goes_on(tool: Tool) -> None:
    started = linger(tool, **AS_USERS_HAVE_IT)
    tool.machines.cut_off("node1")
    try:
        tool.machines.wait_for_end(machine="node1")  # nobody has told it to
        said = started.end(4)
    finally:
        tool.machines.join("node1")
    assert "node1 can't be reached" in " ".join(said.split())
    assert statuses(tool) == {ALL[0]: "ok", ALL[1]: "failed"}
    error = tool.records[1]["error"]
    assert error["kind"] == "launcher_lost"
    assert "the agent on node1" in error["message"]
    assert tool.machines.left_over() == []
    resume(tool, code=3)
    assert statuses(tool) == dict.fromkeys(ALL, "ok") | {ALL[1]: "failed"}


@pytest.mark.thorough
def test_a_host_that_is_cut_off_between_launches_costs_no_trial(tool: Tool) -> None:
    wrapped_python(tool.machines.folder, "held", HELD)
    hosts = host("node0"), host("node1", "/run/shared/held")
    with tool.machines.held() as trial, tool.machines.held("hold-2") as launch:
        launch.let_go()  # the first one
        started = linger(tool, trial, *hosts, **AS_USERS_HAVE_IT)
        launch.path.touch()
        trial.let_go()
        try:
            tool.machines.wait_for("/bin/sh /run/shared/held", "node1")
            tool.machines.cut_off("node1")
            tool.machines.wait_for_end("agent", "node1")
            said = started.end(4)
        finally:
            tool.machines.join("node1")
    assert "node1 can't be reached" in " ".join(said.split())
    assert statuses(tool) == {ALL[0]: "ok", ALL[1]: "ok"}
    assert tool.machines.left_over() == []
    resume(tool)
    assert statuses(tool) == dict.fromkeys(ALL, "ok")


def test_a_leader_that_is_cut_off_is_named_and_found_again(tool: Tool) -> None:
    """Its agents end by themselves, and what it measured before is there."""
    started = linger(tool, **AS_USERS_HAVE_IT)
    ways = {each.pid for each in tool.machines.processes(" relay ", "tool")}
    tool.machines.cut_off("node0")
    try:
        tool.machines.wait_for_end(machine="node1")
        tool.machines.wait_for_end("scripted_worker")
        tool.machines.wait_for_end_of(ways)  # the tool has given that connection up
    finally:
        tool.machines.join("node0")
    said = started.end(3)
    assert "node0: the leader said nothing for 30 s" in " ".join(said.split())
    assert statuses(tool) == dict.fromkeys(ALL, "ok") | {ALL[1]: "failed"}
    assert "the agent on node1" in tool.records[1]["error"]["message"]


@pytest.mark.thorough
def test_a_leader_that_stays_cut_off_is_named_and_resume_collects(tool: Tool) -> None:
    started = linger(tool, command=TOOL_WITHOUT_PATIENCE, **AS_USERS_HAVE_IT)
    tool.machines.cut_off("node0")
    try:
        said = started.end(4)
        tool.machines.wait_for_end(machine="node1")
    finally:
        tool.machines.join("node0")
    assert "node0, which leads the run, does not answer" in " ".join(said.split())
    assert statuses(tool) == {ALL[0]: "ok"}
    resume(tool, code=3)
    assert statuses(tool) == dict.fromkeys(ALL, "ok") | {ALL[1]: "failed"}


@pytest.mark.parametrize("machine", ["node0", pytest.param("node1", marks=pytest.mark.thorough)])
def test_a_disk_that_fills_up_costs_one_trial_and_is_named(tool: Tool, machine: str) -> None:
    """That of the leader's spool, and that of a rank's log."""
    with tool.machines.held() as hold:
        started = linger(tool, hold)
        tool.machines.fill_disk(machine)
    try:
        said = started.end(3)
    finally:
        tool.machines.free_disk(machine)
    assert statuses(tool) == dict.fromkeys(ALL, "ok") | {ALL[1]: "failed"}
    assert f"{machine}: {FULL}" in said
    assert f"{machine}: {FULL}" in tool.records[1]["error"]["message"]
