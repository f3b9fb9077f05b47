"""Proves that a real API server, with the operators' webhooks, takes the one job of a run, and that
its pods tell agent and leader which node they are on."""

from typing import Any

import pytest
from tests.kubernetes.cluster.api import Manifest, RefusedError
from tests.kubernetes.cluster.control_plane import GUEST
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until
from tests.running.rendering.runs import RUN_LABEL, objects_of_run, run_of

from broadgauge.manifests.rights import GROUP, rights_file
from broadgauge.manifests.run_job import RunJob, run_secret
from broadgauge.running.experiments import load
from broadgauge.running.rendering.experiment import ON_KUBERNETES, render_experiment
from broadgauge.specs.kubernetes.settings import JobKind
from broadgauge.specs.secrets.values import SecretText

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("operators")]

KINDS: tuple[JobKind, ...] = ("job", "pytorchjob", "trainjob")
ARTICLES = ("granite-l40s", "granite-h100", "llama-lora-a40")


def secret_of(run: RunJob) -> Manifest:
    values = {name: SecretText("of the user") for name in run.looked_up}
    return run_secret(run, SecretText("of the run"), values)


@pytest.mark.parametrize("kind", KINDS)
def test_the_articles_are_runs(scratch: Scratch, kind: JobKind) -> None:
    """With all of their networks on the same pods."""
    for name in ARTICLES:
        run = run_of(load(name, (ON_KUBERNETES,)), kind, name=f"{name}-0a1b2c")
        scratch.dry_run(secret_of(run), *objects_of_run(run))


def variables(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


@pytest.mark.parametrize("kind", KINDS)
def test_agents_and_leader_are_told_their_node(scratch: Scratch, kind: JobKind) -> None:
    """By their operator, in each container; a PyTorchJob's workers have no leader."""
    run = run_of(load("pods", (ON_KUBERNETES,)), kind)
    for manifest in (secret_of(run), *objects_of_run(run)):
        if manifest["kind"] == "TrainingRuntime":
            scratch.dry_run(manifest)  # stores it
            continue
        if manifest["kind"] == "TrainJob":
            scratch.dry_run(manifest)  # waits until its webhook has seen the runtime
        scratch.create(manifest)
    labels = f"broadgauge.dev/run={RUN_LABEL}"
    wait_until(lambda: len(scratch.find("v1", "Pod", labels)) == 2, f"two pods of a {kind}")
    wanted = "PET_NODE_RANK" if kind == "pytorchjob" else "JOB_COMPLETION_INDEX"
    found = [pod["spec"]["containers"] for pod in scratch.find("v1", "Pod", labels)]
    assert all(wanted in variables(each) for pod in found for each in pod)
    leaders = sum(each["name"] == "leader" for pod in found for each in pod)
    assert leaders == (1 if kind == "pytorchjob" else 2)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rendered_role_is_enough_to_make_a_run(
    scratch: Scratch, guest: Scratch, kind: JobKind
) -> None:
    """Its Secret, too, of which no list is given."""
    overrides = (ON_KUBERNETES, "kubernetes.namespace=any", f"kubernetes.job={kind}")
    rendered = render_experiment(load("pods", overrides))
    _, role, _ = rights_file(rendered.jobs, rendered.rendered.objects).objects
    scratch.create(role)
    name = role["metadata"]["name"]
    scratch.create(
        {
            "apiVersion": f"{GROUP}/v1",
            "kind": "RoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": GROUP, "kind": "User", "name": GUEST}],
        }
    )
    run = run_of(load("pods", (ON_KUBERNETES,)), kind)
    secret = secret_of(run)

    def is_let_in() -> bool:
        try:
            guest.read(secret)
        except RefusedError as refusal:
            if refusal.status != 403:
                raise
            return False
        return True

    wait_until(is_let_in, "the role to be known")
    guest.dry_run(secret, *objects_of_run(run))
    with pytest.raises(RefusedError, match="forbidden"):
        guest.find("v1", "Secret")
