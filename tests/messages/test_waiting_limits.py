"""Does one factor reach every limit against waiting in vain, in every program that we start?"""

import hashlib
import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from broadgauge.messages.waiting_limits import FACTOR_VARIABLE, WrongFactor, read_factor
from broadgauge.platforms.hosts.bootstrap import REMOTE
from broadgauge.running.limit_factor import refuse_wrong_factor
from broadgauge.specs.errors import InputError

LIMITS = {
    "broadgauge.agent.found_link": ("CONNECT_LIMIT_S", 4),
    "broadgauge.agent.supervisor.ending": ("DUMP_S", 2),
    "broadgauge.leader.launch_life": ("COME_LIMIT_S", 5),
    "broadgauge.platforms.supervised": ("SILENCE_LIMIT_S", 30),
    "broadgauge.probes.command_ranks": ("ANSWER_LIMIT_S", 0.4),
}
ASK = """
import importlib, json, sys
limits = json.loads(sys.argv[1])
print(json.dumps([getattr(importlib.import_module(name), limit) for name, (limit, _) in limits]))
"""


def test_every_limit_is_multiplied() -> None:
    told = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(list(LIMITS.items()))],
        env={**os.environ, FACTOR_VARIABLE: "2.5"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert json.loads(told) == [2.5 * quiet_s for _, quiet_s in LIMITS.values()]


@pytest.mark.parametrize(("text", "factor"), [(None, 1), ("", 1), ("10", 10), (" 0.5 ", 0.5)])
def test_what_is_a_factor(text: str | None, factor: float) -> None:
    assert read_factor({} if text is None else {FACTOR_VARIABLE: text}) == factor


@pytest.mark.parametrize("text", ["ten", "0", "-1", "nan", "inf", "1e9", "10 s"])
def test_what_is_none_is_named_with_its_place_and_what_works(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WrongFactor):
        read_factor({FACTOR_VARIABLE: text})
    monkeypatch.setenv(FACTOR_VARIABLE, text)
    with pytest.raises(InputError) as caught:
        refuse_wrong_factor()
    assert f"{FACTOR_VARIABLE} in your environment: {text!r}" in str(caught.value)
    assert "hint: a number from 0.1 to 1000" in str(caught.value)


def test_a_program_that_is_started_over_ssh_is_given_it(tmp_path: Path) -> None:
    """The environment of the tool does not come along."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        show = f"import os; print(os.environ[{FACTOR_VARIABLE!r}])"
        archive.writestr("__main__.py", show)
    data = packed.getvalue()
    head = {
        "size": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "program": "p",
        "start": {},
        "working_folder": None,
        "lives_on": False,
        "environment": {FACTOR_VARIABLE: "7"},
    }
    ended = subprocess.run(
        [sys.executable, "-c", REMOTE],
        input=json.dumps(head).encode() + b"\n" + data,
        env={"TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        check=True,
        capture_output=True,
    )
    assert ended.stdout == b"7\n"
