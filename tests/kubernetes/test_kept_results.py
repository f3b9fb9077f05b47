"""Is what was measured collected from a volume when a job's pods and their logs are gone?"""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import PersistentVolumeClaim
from lightkube.types import CascadeType
from tests.kubernetes.test_runs import User, kubelet, until, user  # noqa: F401  fixtures

from broadgauge.leader.kept_events import read_kept

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.root,
    pytest.mark.namespaces,
    pytest.mark.measuring,
    pytest.mark.thorough,
]
KEPT: dict[str, Any] = {
    "volumes": [
        {"name": "kept", "mount": "/kept", "size_bytes": "1 GiB", "storage_class": "folder"}
    ],
    "results": "kept",
    "fs_group": 2000,
}


def kept_files(user: User) -> list[Path]:  # noqa: F811
    """The volume is a folder of this machine."""
    return sorted(user.folder.parent.glob(f"k[0-9]*/volumes/{user.namespace}-*/**/events-*"))


def num_trials_kept(user: User) -> int:  # noqa: F811
    return sum(
        event.event["type"] == "trial_ends"
        for path in kept_files(user)
        for event in read_kept(path)
    )


def test_results_outlive_a_job_that_somebody_deletes(user: User) -> None:  # noqa: F811
    """The tool is killed, its pods go on, and then they are deleted with their logs."""
    user.write(kubernetes=KEPT, launches=3)
    tool = user.start("experiment.yaml")
    until(lambda: num_trials_kept(user) > 0 or tool.poll() is not None, "a first trial")
    os.kill(tool.pid, signal.SIGKILL)
    tool.communicate()
    until(lambda: num_trials_kept(user) == 3, "the last trial")
    (job,) = user.cluster.list(Job, namespace=user.namespace)
    name = str(job.metadata and job.metadata.name)
    user.cluster.delete(Job, name, namespace=user.namespace, cascade=CascadeType.FOREGROUND)
    until(lambda: user.pods() == [], "the end of the pods")
    output = user.run("--resume", "last")
    assert [record["status"] for record in user.records()] == ["ok"] * 3, output
    assert "has no pod that can be heard: reading kept" in output, output
    logs = {path.name for path in (user.run_folder / "logs").iterdir()}
    assert not any("-r1" in name for name in logs), logs  # no second job measured anything
    assert user.left() == []
    assert len(kept_files(user)) == 1  # what was kept stays, with its claim
    (claim,) = user.cluster.list(PersistentVolumeClaim, namespace=user.namespace)
    user.cluster.delete(
        PersistentVolumeClaim, str(claim.metadata and claim.metadata.name), namespace=user.namespace
    )
