"""Does a run on Kubernetes lose nothing, and leave nothing, whatever fails: the tool, ranks, pods,
the server, a disk, or somebody's patience? Over a real API server and scheduler, with the rights
that `render --rbac` prints; pods are processes."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kubernetes.cluster.control_plane import ControlPlane
from tests.kubernetes.cluster.waiting import wait_until
from tests.kubernetes.kubelet.client import Kubelet
from tests.kubernetes.kubelet.config import NodeSpec, Storage, host_image
from tests.kubernetes.runs import User

from broadgauge.engine.run import GOES_ON
from broadgauge.leader.kept_events import read_kept
from broadgauge.specs.errors import ExitCode

pytestmark = [pytest.mark.kubernetes, pytest.mark.root, pytest.mark.namespaces]

NODES = {
    "nodes": NodeSpec.several(2, resources={"cpu": "8", "memory": "16Gi"}),
    "default_image": replace(host_image(), user=1_000_680_000),
    "storage": Storage(),
}


def test_a_tool_that_is_killed_is_followed_by_one_that_collects(scripted: User) -> None:
    """Its pods live on meanwhile, and nothing is measured twice."""
    scripted.write(launches=6)
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for_a_record()
        run.kill()
    assert scripted.num_running() == 2
    away = (scripted.folder / "kubeconfig").rename(scripted.folder / "away")
    output = scripted.run("--resume", "last", exit_code=ExitCode.BAD_INPUT)
    assert GOES_ON in output  # whatever is wrong here, it is left there
    away.rename(scripted.folder / "kubeconfig")
    assert scripted.num_running() == 2
    output = scripted.run("--resume", "last")
    assert scripted.statuses() == ["ok"] * 6, output
    records = [each["record_id"] for each in scripted.records()]
    assert len(set(records)) == len(records)
    assert scripted.left() == []


def test_ctrl_c_takes_everything_back(scripted: User) -> None:
    """Also while its pods can't be placed, which is said in the scheduler's words."""
    scripted.write(kubernetes={"node_selector": {"gpu": "h100"}})
    scripted.give_rights()
    with scripted.running() as run:
        words = "2 pods waiting for a node (0/"
        run.wait_for(lambda: words in run.said(), "the scheduler's words")
        assert scripted.left() != []
        run.interrupt()
        output = run.ended(exit_code=ExitCode.INTERRUPTED)
    assert "Traceback" not in output
    assert scripted.left() == []


STEPS = """
import os, time
for step in range(1200):
    print("step", step, flush=True)
    if step == 2:
        open("/proc/self/comm", "w").write("{name}")
    time.sleep(0.05)
"""
"""Of ranks that tell by their process' name that they have printed some lines."""


def test_a_rank_that_is_killed_is_named_with_its_last_lines(user: User) -> None:
    user.write(workloads=[user.command(STEPS.replace("{name}", user.namespace))])
    user.give_rights()
    with user.running() as run:
        run.wait_for(lambda: len(user.ranks()) == 2, "two ranks")
        os.kill(user.ranks()[1], signal.SIGKILL)
        output = run.ended(exit_code=ExitCode.TRIALS_FAILED)
    (record,) = user.records()
    assert record["error"]["rank"] == 1, record
    assert "signal 9 (SIGKILL); its last line: step " in output, output
    assert user.left() == []


def test_a_pod_that_is_killed_is_named_with_the_reason(user: User, kubelet: Kubelet) -> None:
    """The trial that ran in it fails; what is left is run by a successor of its job."""
    user.write(workloads=[user.command(STEPS.replace("{name}", user.namespace))], launches=2)
    user.give_rights()
    with user.running() as run:
        run.wait_for(lambda: len(user.ranks()) == 2, "two ranks")
        name = str(user.pods()[1]["metadata"]["name"])
        kubelet.oom(user.namespace, name)
        run.wait_for_a_record()
        run.wait_for(lambda: "-r1 in namespace" in run.said(), "a successor")
        run.interrupt()
        run.ended(exit_code=ExitCode.INTERRUPTED)
    record = user.records()[0]
    assert name in record["error"]["message"]
    assert "OOMKilled" in record["error"]["message"]
    assert user.left() == []


@pytest.mark.parametrize("who", ["somebody", "a limit"])
def test_a_job_that_is_ended_for_good_has_no_successor(user: User, who: str) -> None:
    """Deleted by hand, or by the time that it may take; `--resume` would make another."""
    limit = {"deadline_s": "1h"} if who == "a limit" else {}
    script = STEPS.replace("{name}", user.namespace)
    user.write(workloads=[user.command(script)], launches=2, kubernetes=limit)
    user.give_rights()
    with user.running() as run:
        run.wait_for(lambda: len(user.ranks()) == 2, "two ranks")
        user.delete_job() if who == "somebody" else user.end_jobs_time()
        output = run.ended(exit_code=ExitCode.PLATFORM_REFUSED)
    assert ("was deleted by somebody" if who == "somebody" else "DeadlineExceeded") in output
    assert "`broadgauge run --resume` runs what is left in another" in output
    assert "-r1 in namespace" not in output
    assert user.left() == []


def test_a_server_that_is_away_and_a_log_that_is_cut_or_rotated_cost_nothing(
    scripted: User, kubelet: Kubelet, control_plane: ControlPlane
) -> None:
    """Each record comes once, also for one whose rights the server has yet to read again."""
    scripted.write(launches=6)
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for_a_record()
        leader = next(name for name, each in scripted.containers() if each == "leader")
        kubelet.rotate_logs(scripted.namespace, leader, "leader")
        control_plane.restart_api_server()
        kubelet.cut_log_streams()
        output = run.ended()
    assert scripted.statuses() == ["ok"] * 6, output
    assert scripted.left() == []


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """There, of some MB."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(file: Path) -> None:
    """As long as there is room."""
    with file.open("wb", buffering=0) as ballast:
        while True:
            try:
                ballast.write(bytes(4096))
            except OSError:
                return


def test_a_disk_that_is_full_here_leaves_the_run_in_its_pods(scripted: User) -> None:
    """What is measured meanwhile is collected once there is room."""
    scripted.write(launches=6)
    scripted.give_rights()
    with small_disk(scripted.folder / "runs"):
        ballast = scripted.folder / "runs/ballast"
        with scripted.running() as run:
            run.wait_for_a_record()
            fill(ballast)
            output = run.ended(exit_code=ExitCode.RUN_FOLDER)
        assert "No space left on device" in output
        assert GOES_ON in output
        assert scripted.num_running() == 2
        ballast.unlink()
        output = scripted.run("--resume", "last")
        assert scripted.statuses() == ["ok"] * 6, output
    assert scripted.left() == []


KEPT = {
    "results": "kept",
    "volumes": [
        {"name": "kept", "mount": "/kept", "size_bytes": "1 GiB", "storage_class": "folder"}
    ],
    "fs_group": 2000,
}


def num_kept(user: User, kubelet: Kubelet) -> int:
    """Trials that have ended, on the volume, which is a folder of this machine."""
    found = kubelet.config.folder.glob(f"volumes/{user.namespace}*/**/events-*")
    events = (event for path in found for event in read_kept(path))
    return sum(each.event["type"] == "trial_ends" for each in events)


@pytest.mark.parametrize("ends", ["deleted", "failed"])
def test_results_on_a_volume_outlive_the_pods(scripted: User, kubelet: Kubelet, ends: str) -> None:
    """The tool is killed, its pods go on, and then somebody deletes the job with their logs, or a
    worker takes the job along."""
    scripted.write(kubernetes=KEPT, launches=4)
    scripted.give_rights()
    with scripted.running() as run:
        run.wait_for_a_record()
        run.kill()
    wait_until(lambda: num_kept(scripted, kubelet) == 4, "the last trial")
    if ends == "failed":
        kubelet.oom(scripted.namespace, str(scripted.pods()[1]["metadata"]["name"]))
    else:
        scripted.delete_job()
    wait_until(lambda: scripted.num_running() == 0, "the end of its pods")
    output = scripted.run("--resume", "last")
    assert scripted.statuses() == ["ok"] * 4, output
    if ends == "deleted":
        assert "no pod that leads it: reading what it kept on volume kept" in output, output
    assert "-r1 in namespace" not in output  # nothing was measured again
    assert scripted.left() == []


BREAKS = """
import os, sys
if "breaks" in sys.argv and os.environ["RANK"] == "1":
    sys.exit("no such data set")
print("known 1")
"""


def test_what_was_measured_beside_a_case_that_breaks_is_collected(
    user: User, kubelet: Kubelet
) -> None:
    """Its pods go on by themselves; the tool gives the case up, and takes what else there is."""
    works = user.command(BREAKS)
    breaks = user.command(BREAKS, command=["mine.py", "breaks"]) | {"name": "breaks"}
    user.write(workloads=[works, breaks], launches=3, kubernetes=KEPT)
    user.give_rights()
    user.run("experiment.yaml", "--detach")
    wait_until(lambda: num_kept(user, kubelet) == 6, "the last trial")
    resumed_s = time.time()
    output = user.run("--resume", "last", exit_code=ExitCode.TRIALS_FAILED)
    measured = [each for each in user.records() if each["status"] == "ok"]
    assert len(measured) == 3, output
    assert "skipped" in user.statuses()
    assert all(each["ended_unix_s"] < resumed_s for each in measured)
    assert user.left() == []
