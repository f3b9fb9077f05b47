"""Does a preflight of real agents name each planted fault, and nothing where all is well?"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.leader.allocations import HANG_S, ROOT
from tests.leader.preflight.fabric import LIBFAKETIME, TORCH

pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(not (shutil.which("unshare") and shutil.which("ip")), reason="no unshare"),
]


def found(fault: str, folder: Path, limit_factor: str) -> dict[str, Any]:
    fabric = [sys.executable, "-m", "tests.leader.preflight.fabric", fault, str(folder)]
    ended = subprocess.run(
        ["unshare", "-rn", *fabric],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": f"{ROOT}/src:{ROOT}",
            "BROADGAUGE_LIMIT_FACTOR": limit_factor,
        },
    )
    assert ended.returncode == 0, ended.stderr
    done: dict[str, Any] = json.loads(ended.stdout)
    assert done["type"] == "preflight_done"
    return done


def texts(done: dict[str, Any], kind: str) -> list[str]:
    return [each["text"] for each in done["findings"] if each["kind"] == kind]


def test_where_all_is_well_nothing_is_found(tmp_path: Path) -> None:
    done = found("none", tmp_path, "10")
    assert (done["findings"], done["failing"], done["num_calls"]) == ([], [], 12)


@pytest.mark.parametrize(
    ("fault", "words", "failing"),
    [
        (
            "mtu",
            (
                "(node 0) at 10.9.0.1 and all others don't reach each other: ",
                "full ones (MTU 9000) don't in",
            ),
            0,
        ),
        ("pair", ("(node 1) at 10.9.0.2 and ", "(node 2) at 10.9.0.3 don't reach each other: "), 2),
    ],
)
def test_what_is_wrong_with_a_network_is_named_and_nothing_else(
    tmp_path: Path, fault: str, words: tuple[str, ...], failing: int
) -> None:
    """Two tries of each call wait for their limit, so it is short here: 7 s for one."""
    done = found(fault, tmp_path, "2")
    (text,) = texts(done, "fails")
    assert all(each in text for each in words), text
    assert done["failing"] == [failing]


@pytest.mark.skipif(not Path(LIBFAKETIME).exists(), reason="no libfaketime")
def test_another_torch_and_a_clock_that_is_off_are_named(tmp_path: Path) -> None:
    done = found("machine", tmp_path, "10")
    (torch,) = texts(done, "fails")
    assert torch.startswith("torch differs: ")
    assert f"; {TORCH} on " in torch
    assert "(node 3)" in torch.partition(";")[2]
    (clock,) = texts(done, "differs")
    assert "(node 3) is 60 min ahead of the others'" in clock
    assert done["failing"] == [3]
