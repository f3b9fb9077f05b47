"""Do the ranks of a launch have their storage, and is nothing left of it, whoever is killed?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.platforms.launches import make_case, make_platform, make_request, quiet
from tests.storage.launching import start

from broadgauge.specs.errors import LaunchError, PlatformError
from broadgauge.specs.launching import TrialRequest
from broadgauge.specs.record import Status
from broadgauge.specs.storage import EmulatedStorage, Storage

GONE_WITHIN_S = 15.0
DISK = Storage(name="one", emulated=EmulatedStorage(kind="disk"))


def programs_that_use(scratch: Path) -> set[str]:
    """Names of living processes that were told of a path in this folder."""
    found = set()
    for entry in Path("/proc").iterdir():
        try:
            if str(scratch).encode() in (entry / "cmdline").read_bytes():
                found.add((entry / "comm").read_text().strip())
        except OSError:
            continue
    return found


@pytest.mark.storage
@pytest.mark.namespaces
@pytest.mark.parametrize("kind", ["disk", "s3-mount", "shared"])
def test_ranks_have_their_storage(
    kind: str, tmp_path: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(scratch))
    launch, case = start(tmp_path, "good", kind=kind)  # type: ignore[arg-type]
    try:
        outcome = launch.run_trial(TrialRequest(trial_id="t0", case=case, seed=1), quiet)
        assert outcome.status is Status.OK, outcome.error
        assert list(scratch.iterdir())
    finally:
        launch.close()
    assert not list(scratch.iterdir())
    kept = b"".join(path.read_bytes() for path in (tmp_path / "logs").iterdir())
    assert b"AWS_SECRET" not in kept


@pytest.mark.storage
@pytest.mark.namespaces
def test_nothing_is_left_when_the_tool_is_killed(
    tmp_path: Path, scratch: Path, repository: Path
) -> None:
    paths = [str(repository), str(repository / "src")]
    tool = subprocess.Popen(
        [sys.executable, str(repository / "tests/storage/owning_tool.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TMPDIR": str(scratch)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert tool.stdout is not None
    assert tool.stdout.readline() == "up\n"
    assert programs_that_use(scratch) == {"versitygw", "rclone"}
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    deadline_s = time.monotonic() + GONE_WITHIN_S
    while (programs_that_use(scratch) or list(scratch.iterdir())) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert programs_that_use(scratch) == set()
    assert not list(scratch.iterdir())
    assert str(scratch) not in Path("/proc/mounts").read_text()


@pytest.mark.namespaces
def test_what_lacks_is_said_before_any_rank_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make_case("emulated", storage=Storage(name="b", emulated=EmulatedStorage(kind="s3")))
    platform = make_platform(tmp_path, "emulated", "good")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BROADGAUGE_CACHE", str(tmp_path))
    with pytest.raises(PlatformError, match="storage `b`: there is no versitygw") as caught:
        platform.start(make_request(case), quiet)
    assert "make storage-tools" in str(caught.value.hint)


def test_no_platform_without_namespaces_makes_one(tmp_path: Path) -> None:
    case = make_case("local", storage=DISK)
    with pytest.raises(LaunchError, match="`one` is emulated") as caught:
        make_platform(tmp_path, "local", "good").start(make_request(case), quiet)
    assert "platform: emulated" in str(caught.value.hint)
