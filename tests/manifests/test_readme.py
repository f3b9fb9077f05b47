"""Is the Secret that people make by hand the one that pods ask for, whatever its values are, and is
all that they apply removed again?"""

import base64
import os
import subprocess
from pathlib import Path

import pytest
from ruamel.yaml import YAML
from tests.manifests.requests import VNIC, experiment_of, request_of

from broadgauge.manifests.labels import MANAGED_BY, RUN, TOKEN_VARIABLE, secrets_name
from broadgauge.manifests.readme import JobFolder, readme_file, secret_lines

VALUES = {
    "PLAIN": "value",
    "EMPTY": "",
    "IN_BASE64_A_NUMBER": "\u05cd4",
    "LINES": "-----BEGIN KEY-----\nline 2\n\n-----END KEY-----\n",
    "LONG": "x" * 5000,
    "SHELL": "$(date) `id` 'a' \"b\" \\n %s ; exit # ü",
}


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_any_value_becomes_a_secret(tmp_path: Path, shell: str) -> None:
    """kubectl's place is taken by a script that keeps what it is given."""
    kubectl = tmp_path / "kubectl"
    kubectl.write_text('#!/bin/sh\necho "$@" >arguments\ncat >given\n')
    kubectl.chmod(0o755)
    request = request_of(experiment_of(), secret_names=tuple(VALUES))
    subprocess.run(
        [shell, "-euc", "\n".join(secret_lines(request, "./kubectl --namespace here"))],
        cwd=tmp_path,
        env={**VALUES, "PATH": os.environ["PATH"]},
        check=True,
    )
    assert (tmp_path / "arguments").read_text() == "--namespace here create --filename -\n"
    secret = YAML(typ="safe").load(tmp_path / "given")
    assert secret["metadata"]["name"] == secrets_name(request.name)
    assert {MANAGED_BY, RUN} <= secret["metadata"]["labels"].keys()
    found = {name: base64.b64decode(value or "").decode() for name, value in secret["data"].items()}
    assert len(bytes.fromhex(found.pop(TOKEN_VARIABLE))) == 32
    assert found == VALUES


def test_all_that_is_applied_is_removed_again() -> None:
    """Networks of any job, and the Job that prepares."""
    plain = request_of(experiment_of())
    vnic = request_of(experiment_of(networks=[{"name": "vnic", "kubernetes": VNIC}]))
    jobs = [JobFolder(path=f"40-job/{n}", request=each) for n, each in enumerate((plain, vnic))]
    text = readme_file(jobs, ()).text or ""
    assert "delete --recursive --filename 20-networks" in text
    assert "jobs.batch" not in text
    prepared = experiment_of(
        volumes=[{"name": "data", "mount": "/data", "size_bytes": "1 GiB"}],
        prepare={"volume": "data", "command": ["true"]},
    )
    text = readme_file([JobFolder(path="40-job/a", request=request_of(prepared))], ()).text or ""
    assert "delete pytorchjobs.kubeflow.org,configmaps,secrets,jobs.batch --selector" in text
