"""Does a program of ours say what is wrong with what it is started with, and no secret?"""

import json
import subprocess
import sys

import pytest

from broadgauge.agent.on_host import AGENT_START, AgentStart
from broadgauge.messages.agent import ORDER
from broadgauge.messages.codec import DecodeError
from broadgauge.messages.leader import LEADER_START, LeaderStart

PLANTED = "Planted0secret0value"
AGENT = {
    "number": 0,
    "leader_address": "127.0.0.1",
    "leader_port": 1,
    "token": PLANTED,
    "version": "x",
    "folder": "/nonexistent",
    "supervisor": ["x"],
    "logs": "/nonexistent",
    "working_folder": "",
    "secrets": {"HF_TOKEN": PLANTED},
}
LEADER = {"folder": "/nonexistent", "address": "", "token": PLANTED, "version": "x", "keep_s": 1.0}
WRONG = [
    b"",
    b"\n",
    PLANTED.encode() + b"\n",
    b"\xff" + PLANTED.encode() + b"\n",
    b"[" * 100_000 + b"\n",
    json.dumps([PLANTED]).encode(),
    json.dumps({"token": [PLANTED], "secrets": PLANTED}).encode(),
    json.dumps({**AGENT, "secrets": {"HF_TOKEN": [PLANTED]}, "keep_s": PLANTED}).encode(),
    json.dumps({**LEADER, "keep_s": PLANTED, "number": PLANTED}).encode(),
]


@pytest.mark.parametrize("module", ["broadgauge.agent.on_host", "broadgauge.leader.main"])
def test_a_wrong_start_is_one_line_without_a_secret(module: str) -> None:
    command = [sys.executable, "-m", module]
    running = [
        (subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1), given) for given in WRONG
    ]
    for process, given in running:
        out, errors = process.communicate(given, timeout=60)
        assert (process.returncode, out) == (2, b""), given
        assert len(errors.splitlines()) == 1, errors
        assert b"standard input" in errors
        assert PLANTED.encode() not in errors


def test_what_they_are_started_with_is_printed_without_secrets() -> None:
    starts: tuple[AgentStart | LeaderStart, ...] = (AGENT_START(AGENT), LEADER_START(LEADER))
    for start in starts:
        assert PLANTED not in repr(start)


def test_a_wrong_order_can_be_told_without_its_value() -> None:
    with pytest.raises(DecodeError) as caught:
        ORDER({"type": "launch", "launch_id": [PLANTED]})
    assert PLANTED in str(caught.value)
    assert caught.value.without_value == "launch_id: expected a text"
