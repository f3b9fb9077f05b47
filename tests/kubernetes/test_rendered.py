"""Proves that a real API server, with the operators' webhooks, takes what `render` writes."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.cluster.api import Manifest, RefusedError
from tests.kubernetes.cluster.control_plane import GUEST
from tests.kubernetes.cluster.scratch import Scratch
from tests.kubernetes.cluster.waiting import wait_until
from tests.running.rendering.experiments import examples_with_a_face, rendered
from tests.running.rendering.networks import FABRICS, NETWORKS, with_files

from broadgauge.manifests.names import leader_address
from broadgauge.manifests.rights import GROUP, plural, rights_file
from broadgauge.running.experiments import load
from broadgauge.running.rendering.experiment import (
    ON_KUBERNETES,
    RenderedExperiment,
    render_experiment,
)

pytestmark = [pytest.mark.kubernetes, pytest.mark.usefixtures("operators")]

KINDS = ("job", "pytorchjob", "trainjob")
ALL_THAT_CAN_BE_SAID = (
    "kubernetes.image_pull_policy=IfNotPresent",
    "kubernetes.image_pull_secrets=[pull]",
    "kubernetes.gpus_per_pod=8",
    "kubernetes.cpus=7.5",
    "kubernetes.memory_bytes=512 GiB",
    "kubernetes.shm_bytes=64 GiB",
    "kubernetes.node_selector={gpu: h100}",
    "kubernetes.tolerations=[gpu, {key: a, operator: Equal, value: b, effect: NoExecute}]",
    "kubernetes.service_account=default",
    "kubernetes.run_as_user=1001",
    "kubernetes.fs_group=2000",
    "kubernetes.labels={team: net}",
    "kubernetes.annotations={a/b: 'yes'}",
    "kubernetes.ttl_s=2 h",
    "kubernetes.deadline_s=90 min",
    "kubernetes.queue={kueue: gpus}",
    "kubernetes.secrets={HF_TOKEN: {secret: hf, key: token}}",
    "kubernetes.volumes=[{name: data, mount: /data, size_bytes: 1 TiB, storage_class: cephfs},"
    " {name: home, mount: /home/me, is_read_only: true}]",
    "kubernetes.prepare={volume: data, model: {source: a/b, to: m/$(X)}, dataset: 'https://host/d.tar',"
    " command: [python3, -c, print(1)], environment: {HF_ENDPOINT: 'https://hub'}, cpus: 0.5,"
    " memory_bytes: 1 GiB}",
    "environment={ODD: '$(HOME) $$ 12:30'}",
    "workloads.as-published.platforms=[]",  # the reference's jobs are enough
)


def render(name: str, kind: str, *overrides: str) -> RenderedExperiment:
    return render_experiment(load(name, [*overrides, f"kubernetes.job={kind}", ON_KUBERNETES]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", examples_with_a_face())
def test_every_example_passes(scratch: Scratch, name: str, kind: str) -> None:
    found = render(name, kind)
    scratch.dry_run(*found.rendered.objects)


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_an_experiment_can_say_passes(scratch: Scratch, kind: str) -> None:
    found = render("granite-h100", kind, *ALL_THAT_CAN_BE_SAID)
    scratch.dry_run(*found.rendered.objects)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_network_passes(scratch: Scratch, kind: str, tmp_path: Path) -> None:
    """With the address map's init container, static addresses where pods differ, as root with
    IPC_LOCK, and a topology file."""
    static = "{attachment: macvlan, devices: e, ipam: {kind: static, ranges: 10.9.0.0/24}}"
    found = rendered(
        with_files(tmp_path),
        f"kubernetes={{job: {kind}, run_as_user: 0, topology_file: topo.xml, image: 'a:1'}}",
        *([f"networks.br.kubernetes={static}"] if kind == "pytorchjob" else []),
        text=NETWORKS,
    )
    assert found.rendered.counts["NetworkAttachmentDefinition"] == 7
    scratch.dry_run(*found.rendered.objects)


@pytest.mark.parametrize("kind", KINDS)
def test_what_clouds_fabrics_need_passes(scratch: Scratch, kind: str, tmp_path: Path) -> None:
    """Huge pages, a sidecar with the node's folders, GKE's annotations."""
    found = rendered(tmp_path, f"kubernetes.job={kind}", text=FABRICS)
    scratch.dry_run(*found.rendered.objects)


def test_a_train_job_is_of_older_trainers_too(older_trainer: Scratch) -> None:
    """Nothing stands in it that changed between Trainer 2.1 and 2.3."""
    found = render("granite-h100", "trainjob", *ALL_THAT_CAN_BE_SAID)
    for manifest in found.rendered.objects:
        older_trainer.create(manifest, dry_run=True)


def places(manifest: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object within, with its path as the API server writes it."""
    if isinstance(manifest, dict):
        yield path, manifest
        for key, value in manifest.items():
            yield from places(value, f"{path}.{key}" if path else key)
    elif isinstance(manifest, list):
        for number, item in enumerate(manifest):
            yield from places(item, f"{path}[{number}]")


def misspelt(manifest: Manifest, last: str) -> tuple[Manifest, str]:
    """With another key in the object whose path ends so, and what is then unknown."""
    changed = copy.deepcopy(manifest)
    path, place = next(each for each in places(changed) if each[0].endswith(last))
    place["misspelt"] = 1
    return changed, f"{path}.misspelt"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("last", ["spec", "containers[0]", "volumes[0]"])
def test_a_misspelt_field_is_refused_by_its_path(scratch: Scratch, kind: str, last: str) -> None:
    """So that the tests above can fail."""
    objects = list(render("pods", kind).rendered.objects)
    place = next(
        number
        for number, each in enumerate(objects)
        if any(path.endswith(last) for path, _ in places(each)) and each["kind"] != "Service"
    )
    objects[place], path = misspelt(objects[place], last)
    with pytest.raises(RefusedError) as refused:
        scratch.dry_run(*objects)
    assert f'unknown field "{path}"' in refused.value.message


def created(scratch: Scratch, kind: str) -> tuple[RenderedExperiment, list[Manifest]]:
    """The job of two pods, applied, and its pods by their numbers."""
    found = render("pods", kind)
    word = "collectives-pod-2x1"
    for file in found.rendered.files:
        if file.path.startswith(f"40-job/{word}/"):
            for manifest in file.objects:
                scratch.dry_run(manifest)
                if manifest["kind"] != "TrainingRuntime":  # stored by its dry run
                    scratch.create(manifest)
    labels = f"broadgauge.dev/case={word}"
    wait_until(lambda: len(scratch.find("v1", "Pod", labels)) == 2, f"two pods of a {kind}")
    return found, sorted(scratch.find("v1", "Pod", labels), key=number_of)


def variables(pod: Manifest) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def number_of(pod: Manifest) -> str:
    """As the entrypoint reads it."""
    known = variables(pod)
    number = known.get("JOB_COMPLETION_INDEX", known.get("PET_NODE_RANK"))
    if isinstance(number, dict):
        path = number["fieldRef"]["fieldPath"]
        (kind, key) = path.removesuffix("']").removeprefix("metadata.").split("['")
        number = pod["metadata"][kind][key]
    assert isinstance(number, str), known
    return number


@pytest.mark.parametrize("kind", KINDS)
def test_pods_know_their_number_and_the_first_has_the_leaders_name(
    scratch: Scratch, kind: str
) -> None:
    """What each pod is told by its operator is what its entrypoint asks for."""
    found, pods = created(scratch, kind)
    assert [number_of(pod) for pod in pods] == ["0", "1"]
    (job,) = (each for each in found.jobs if each.word == "collectives-pod-2x1")
    leader, _, domain = leader_address(job).partition(".")
    services = {each["metadata"]["name"]: each for each in scratch.find("v1", "Service")}
    if kind == "pytorchjob":
        selector, labels = services[leader]["spec"]["selector"], pods[0]["metadata"]["labels"]
        assert selector.items() <= labels.items()
    else:
        assert (pods[0]["spec"]["hostname"], pods[0]["spec"]["subdomain"]) == (leader, domain)
        selector, labels = services[domain]["spec"]["selector"], pods[0]["metadata"]["labels"]
        assert selector.items() <= labels.items()
    for pod in pods:
        arguments = pod["spec"]["containers"][0]["args"]
        assert arguments[arguments.index("--leader") + 1] == leader_address(job)


def rights(kind: str) -> tuple[RenderedExperiment, Manifest]:
    """What is rendered of every kind of object, and the Role for it."""
    claim = "kubernetes.volumes=[{name: data, mount: /data, size_bytes: 1 GiB}]"
    attached = "networks.pod.kubernetes={attachment: macvlan, devices: ens1, ipam: dhcp}"
    found = render("pods", kind, claim, attached, "kubernetes.namespace=any")
    _, role, _ = rights_file(found.jobs, found.rendered.objects).objects
    return found, role


@pytest.mark.parametrize("kind", KINDS)
def test_the_rendered_role_is_enough_and_none_of_its_kinds_too_much(
    scratch: Scratch, guest: Scratch, kind: str
) -> None:
    """Enough to read, create and delete each object; without a kind's rule that kind is refused."""
    found, role = rights(kind)
    scratch.create(role)
    scratch.create(binding(role))
    manifests = {each["kind"]: each for each in found.rendered.objects}
    wait_until(lambda: may(guest, manifests["ConfigMap"]), "the role to be known")
    for manifest in manifests.values():
        guest.read(manifest)
        guest.dry_run(manifest)
    guest.find("v1", "Pod")
    with pytest.raises(RefusedError, match="forbidden"):
        guest.find("v1", "Secret")
    for number, rule in enumerate(role["rules"][: len(manifests)]):
        (resource,) = rule["resources"]
        (refused,) = (each for each in manifests.values() if plural(each["kind"]) == resource)
        fewer = [each for place, each in enumerate(role["rules"]) if place != number]
        scratch.apply({**role, "rules": fewer})
        wait_until(lambda refused=refused: not may(guest, refused), f"no right to {resource}")
        scratch.apply(role)
        wait_until(lambda refused=refused: may(guest, refused), f"the right to {resource}")


def binding(role: Manifest) -> Manifest:
    """To the user without any right."""
    name = role["metadata"]["name"]
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": GUEST}],
    }


def may(user: Scratch, manifest: Manifest) -> bool:
    """Read this one?"""
    try:
        user.read(manifest)
    except RefusedError as refusal:
        if refusal.status != 403:
            raise
        return False
    return True
