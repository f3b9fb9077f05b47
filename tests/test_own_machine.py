"""Proves tests/own_machine.py: what a worker makes is not seen by the others, nor theirs by it."""

import json
import subprocess
import sys

import pytest
from tests.open_python import REPOSITORY
from tests.own_machine import interfaces, mounts

MAKES_THINGS = """
import json, os, subprocess, tempfile
from pathlib import Path
from tests.own_machine import enter_own_machine, interfaces, mounts
enter_own_machine()
seen = {"nics": sorted(interfaces()), "shared memory": os.listdir("/dev/shm")}
subprocess.run(["ip", "link", "add", "mine0", "type", "bridge"], check=True)
Path("/dev/shm/mine").touch()
place = tempfile.mkdtemp()
subprocess.run(["mount", "-t", "tmpfs", "mine", place], check=True)
after = {"nics": sorted(interfaces()), "place": place, "mounts": sorted(mounts())}
has_groups = Path("/sys/fs/cgroup").is_mount()
print(json.dumps({"seen": seen, "after": after, "has_groups": has_groups}))
"""


@pytest.mark.root
def test_what_a_worker_makes_is_its_own() -> None:
    before = interfaces(), mounts()
    ran = subprocess.run(
        [sys.executable, "-c", MAKES_THINGS],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    told = json.loads(ran.stdout)
    assert told["seen"] == {"nics": ["lo"], "shared memory": []}
    assert told["after"]["nics"] == ["lo", "mine0"]
    assert told["after"]["place"] in told["after"]["mounts"]
    assert told["has_groups"] == ("/sys/fs/cgroup" in before[1])
    assert (interfaces(), mounts()) == before
