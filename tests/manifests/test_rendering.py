"""Proves manifests/rendering.py: what a pod may do and finds, and that nothing of a user's breaks
out of it."""

import base64
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from tests.manifests.requests import KINDS, ROCE, VNIC, experiment_of, request_of

from broadgauge.catalog.fabrics import known_fabrics
from broadgauge.manifests.config_maps import MAX_BYTES
from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.labels import JOB, MANAGED_BY, RUN, JobKind, job_word
from broadgauge.manifests.prepare import prepare_file
from broadgauge.manifests.rbac import rules
from broadgauge.manifests.rendering import render_job
from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.results_reader import reader_objects
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.specs.base import NAME_PATTERN
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.kubernetes_names import SUBDOMAIN

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
BY_MAP = VNIC | {"devices": "ens13", "ipam": {"kind": "address-map", "map": "m"}}
KEPT = {"volumes": [{"name": "kept", "mount": "/kept/", "claim": "c"}], "results": "kept"}
MAP = "w0:ens13:net1:10.0.1.9\nw1:ens13:net1:10.0.1.10\n"


def pods_of(request: JobRequest) -> list[Manifest]:
    """Templates of the job's pods, wherever its kind has them."""
    found: list[Manifest] = []

    def look(value: Any) -> None:
        if isinstance(value, dict):
            if "containers" in value.get("spec", {}) and "metadata" in value:
                found.append(value)
            for each in value.values():
                look(each)
        elif isinstance(value, (list, tuple)):
            for each in value:
                look(each)

    look(render_job(request).objects)
    return found


def container(request: JobRequest) -> Manifest:
    (found,) = pods_of(request)[0]["spec"]["containers"]
    return dict(found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_pod_may_do_as_little_as_possible(kind: JobKind) -> None:
    for pod in pods_of(request_of(experiment_of(), kind)):
        spec = pod["spec"]
        assert spec["restartPolicy"] == "Never"
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
        assert "initContainers" not in spec
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        (ranks,) = spec["containers"]
        assert ranks["securityContext"] == {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert "runAsUser" not in json.dumps(spec)
        terms = spec["affinity"]["podAntiAffinity"]
        (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["labelSelector"]["matchLabels"] == {JOB: "demo"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_job_is_deleted_later_but_for_one_that_would_run_again(kind: JobKind) -> None:
    """trainer 2.1 makes a TrainJob's JobSet anew once it was deleted."""
    text = json.dumps(render_job(request_of(experiment_of(), kind)).objects)
    assert ("ttlSecondsAfterFinished" in text) == (kind != "trainjob")


@pytest.mark.parametrize(
    ("settings", "asks"),
    [
        ({}, False),  # as another user it would have no effect
        ({"run_as_user": 1001}, False),
        ({"run_as_user": 0}, True),
        ({"run_as_user": 0, "memlock_is_raised": True}, False),
    ],
)
def test_ipc_lock_is_asked_for_where_it_helps_rdma(settings: dict[str, Any], asks: bool) -> None:
    experiment = experiment_of(networks=[{"name": "roce", "kubernetes": ROCE}], **settings)
    found = container(request_of(experiment))["securityContext"]["capabilities"]
    assert found == {"drop": ["ALL"]} | ({"add": ["IPC_LOCK"]} if asks else {})
    without = container(request_of(experiment_of(**settings)))["securityContext"]
    assert without["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("kind", KINDS)
def test_who_applies_an_rdma_job_reads_how_it_comes_to_its_memory(kind: JobKind) -> None:
    """Among the notes, and at the top of the job's file."""
    networks = [{"name": "roce", "kubernetes": ROCE}]

    def said(**settings: Any) -> list[str]:
        rendered = render_job(request_of(experiment_of(networks=networks, **settings), kind))
        (job,) = (file for file in rendered.files if file.path == "40-job.yaml")
        notes = " ".join(each for each in rendered.notes if "lock" in each.lower())
        return [" ".join(text.split()) for text in (notes, job.comment)]

    for text in said():
        assert "`kubernetes.run_as_user: 0`" in text
        assert "`default_ulimits`" in text
    for text in said(run_as_user=0):
        assert "run as root with the capability IPC_LOCK" in text
    for text in said(memlock_is_raised=True):
        assert "lock" not in text.lower()


@pytest.mark.parametrize(
    ("user", "context"),
    [
        (None, {"runAsNonRoot": True}),
        (1001, {"runAsNonRoot": True, "runAsUser": 1001}),
        (0, {"runAsNonRoot": False, "runAsUser": 0}),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_all_containers_that_write_are_the_same_user(
    kind: JobKind, user: int | None, context: Manifest
) -> None:
    """And the pod says nothing of it: what operators add to it may be root's."""
    request = request_of(preparing(run_as_user=user), kind)
    expected = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}} | context
    for spec in [*(pod["spec"] for pod in pods_of(request)), *helper_specs(request)]:
        (found,) = spec["containers"]
        assert found["securityContext"] == expected
        assert not {"runAsUser", "runAsNonRoot"} & spec["securityContext"].keys()


def test_only_the_address_container_may_change_addresses() -> None:
    networks = [{"name": "vnic", "kubernetes": BY_MAP}]
    request = request_of(experiment_of(networks=networks, init_image="init:1"), address_map=MAP)
    (pod, _) = pods_of(request)
    (first,) = pod["spec"]["initContainers"]
    assert first["image"] == "init:1"
    assert first["command"][-1] == "addresses"
    assert first["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert {"name": "BROADGAUGE_ADDRESS_INTERFACES", "value": "net1"} in first["env"]
    assert "NET_ADMIN" not in json.dumps(pod["spec"]["containers"])
    assert any("NET_ADMIN" in note for note in render_job(request).notes)


@pytest.mark.parametrize("kind", KINDS)
def test_every_object_bears_our_labels_whatever_the_user_says(kind: JobKind) -> None:
    labels = {MANAGED_BY: "me", RUN: "mine", "team": "a"}
    request = request_of(experiment_of(labels=labels), kind, files={"a.py": b""})
    ours = {MANAGED_BY: "broadgauge", RUN: "demo-1", JOB: "demo", "team": "a"}
    found = [each["metadata"]["labels"] for each in render_job(request).objects]
    found += [pod["metadata"]["labels"] for pod in pods_of(request)]
    assert all(ours.items() <= labels.items() for labels in found)


def test_values_of_secrets_are_in_no_file() -> None:
    secrets = {"HF_TOKEN": {"secret": "hf", "key": "token"}}
    request = request_of(experiment_of(secrets=secrets), secret_names=("WANDB_API_KEY",))
    found = {each["name"]: each for each in container(request)["env"]}
    refs = {
        name: found[name]["valueFrom"]["secretKeyRef"]
        for name in ("BROADGAUGE_TOKEN", "HF_TOKEN", "WANDB_API_KEY")
    }
    assert refs == {
        "BROADGAUGE_TOKEN": {"name": "demo-secrets", "key": "BROADGAUGE_TOKEN"},
        "HF_TOKEN": {"name": "hf", "key": "token"},
        "WANDB_API_KEY": {"name": "demo-secrets", "key": "WANDB_API_KEY"},
    }
    assert all(each["kind"] != "Secret" for each in render_job(request).objects)


def test_file_that_no_config_map_holds_is_named() -> None:
    files = {"small.py": b"x", "data/large.bin": b"\xff" * 950_000}
    with pytest.raises(InputError, match=r"the largest is `data/large\.bin`"):
        render_job(request_of(experiment_of(), files=files))
    with pytest.raises(InputError, match="the orders of this plan"):
        render_job(request_of(experiment_of(), orders=b"\xff" * (MAX_BYTES + 1)))


def test_name_that_is_none_is_refused() -> None:
    for name in ("Demo", "1-demo", "d" * 41, "a_b"):
        with pytest.raises(InputError, match="is no name of a job"):
            render_job(request_of(experiment_of(), name=name))


def test_equal_requests_are_equal_bytes() -> None:
    networks = [{"name": "vnic", "nics_per_node": 2, "kubernetes": VNIC}]
    texts = [
        [to_yaml(file) for file in render_job(request_of(experiment_of(networks=networks))).files]
        for _ in range(2)
    ]
    assert texts[0] == texts[1]


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    annotation=TEXTS,
    python=TEXTS.filter(bool),
    folder=TEXTS.filter(lambda text: ":" not in text),
    content=st.binary(max_size=40) | TEXTS.map(str.encode),
    path=TEXTS.filter(lambda text: text not in ("", ".", "..") and "/" not in text),
)
def test_what_users_write_stays_what_it_is(
    kind: JobKind, *, annotation: str, python: str, folder: str, content: bytes, path: str
) -> None:
    """Read back from the text, each value is in its place, and there is no object more."""
    experiment = experiment_of(
        annotations={"note": annotation}, python=python, working_folder=f"/{folder}"
    )
    request = request_of(experiment, kind, files={path: content})
    rendered = render_job(request)
    yaml = YAML(typ="safe", pure=True)
    read = [each for file in rendered.files for each in yaml.load_all(to_yaml(file))]
    assert read == list(rendered.objects)
    for pod in pods_of(request):
        assert pod["metadata"]["annotations"]["note"] == annotation
        (ranks,) = pod["spec"]["containers"]
        assert ranks["command"][0].replace("$$", "$") == python
        variables = {each["name"]: each.get("value", "") for each in ranks["env"]}
        assert variables["BROADGAUGE_WORKING_FOLDER"].replace("$$", "$") == f"/{folder}"
        (files,) = (each for each in pod["spec"]["volumes"] if each["name"] == "broadgauge-files")
        (entry,) = files["configMap"]["items"]
        assert entry["path"] == path
    (config_map,) = (each for each in read if each["metadata"]["name"] == "demo-files")
    in_text = config_map.get("data", {}).get(entry["key"])
    in_bytes = config_map.get("binaryData", {}).get(entry["key"])
    assert content == (base64.b64decode(in_bytes) if in_text is None else in_text.encode())


def test_variables_of_the_pod_are_not_replaced_by_kubernetes() -> None:
    request = request_of(experiment_of(working_folder="/a/$(HOME)/$x"))
    variables = {each["name"]: each.get("value") for each in container(request)["env"]}
    assert variables["BROADGAUGE_WORKING_FOLDER"] == "/a/$$(HOME)/$$x"


@pytest.mark.parametrize("profile", [each.name for each in known_fabrics()])
def test_each_profile_of_the_catalog_renders(profile: str) -> None:
    face: dict[str, Any] = {"profile": profile}
    if profile.startswith("gpudirect"):
        face |= {"attachment": "existing", "definitions": ["vpc1", "vpc2"]}
    elif "sriov" in profile:
        face |= {"attachment": "sriov", "resources": "a.io/vf"}
    experiment = experiment_of(networks=[{"name": "net", "kubernetes": face}])
    request = request_of(experiment)
    (pod, _) = pods_of(request)
    annotations = pod["metadata"]["annotations"]
    assert ("k8s.v1.cni.cncf.io/networks" in annotations) == ("sriov" in profile)
    if profile.startswith("gpudirect"):
        entries = json.loads(annotations["networking.gke.io/interfaces"])
        assert [each["network"] for each in entries] == ["default", "vpc1", "vpc2"]
        (daemon,) = pod["spec"]["initContainers"]
        assert daemon["restartPolicy"] == "Always"
        mounts = {each["name"] for each in daemon["volumeMounts"]}
        assert mounts <= {each["name"] for each in pod["spec"]["volumes"]}
    (case,) = (each for each in request.cases if each.network_name == "net")
    assert set(request.fabrics[0].environment.items()) <= set(case.environment.items())
    twins = [each for each in request.cases if each.network_name == "net-tcp"]
    assert len(twins) == (0 if profile.startswith("gpudirect") else 1)
    for twin in twins:
        assert not request.fabrics[0].environment.keys() & twin.environment.keys()


def test_huge_pages_need_memory_beside_them() -> None:
    experiment = experiment_of(networks=[{"name": "efa", "kubernetes": {"profile": "efa"}}])
    assert container(request_of(experiment))["resources"]["limits"]["hugepages-2Mi"] == "5120Mi"
    asked = container(request_of(experiment, memory_bytes=None))["resources"]["requests"]
    assert asked["hugepages-2Mi"] == "5120Mi"
    assert {"cpu", "memory"} & set(asked)


NAMES = st.from_regex(NAME_PATTERN, fullmatch=True)
DEVICES = st.from_regex(r"[^\s/,=:]{1,15}", fullmatch=True).filter(str.isprintable)


@settings(max_examples=60, deadline=None)
@given(experiment=NAMES, network=NAMES, device=DEVICES, kind=st.sampled_from(KINDS))
def test_names_that_an_experiment_may_have_are_names_that_a_cluster_takes(
    experiment: str, network: str, device: str, kind: JobKind
) -> None:
    face = {"attachment": "macvlan", "devices": device}
    volumes = [{"name": "v", "mount": "/v", "size_bytes": "1 GiB"}]
    named = experiment_of(networks=[{"name": network, "kubernetes": face}], volumes=volumes)
    named = named.model_copy(update={"name": experiment})
    request = request_of(named, kind, name=job_word(experiment, 40), run=job_word(experiment, 40))
    for each in render_job(request).objects:
        assert re.fullmatch(SUBDOMAIN, each["metadata"]["name"])
        for value in each["metadata"]["labels"].values():
            assert re.fullmatch(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", value)
        if each["kind"] == "NetworkAttachmentDefinition":
            config = json.loads(each["spec"]["config"])
            assert (config["name"], config["master"]) == (each["metadata"]["name"], device)
        if each["kind"] == "Service":
            assert re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", each["metadata"]["name"])


def test_networks_are_said_in_one_place() -> None:
    annotations = {"k8s.v1.cni.cncf.io/networks": "mine"}
    experiment = experiment_of(annotations=annotations)
    assert pods_of(request_of(experiment))[0]["metadata"]["annotations"].items() >= (
        annotations.items()
    )
    networks = [{"name": "vnic", "kubernetes": VNIC}]
    experiment = experiment_of(annotations=annotations, networks=networks)
    with pytest.raises(InputError, match="is written from `networks`"):
        render_job(request_of(experiment))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_has_a_folder_for_each_job(kind: JobKind) -> None:
    request = request_of(experiment_of(image="i", **KEPT), kind)
    variables = {each["name"]: each.get("value") for each in container(request)["env"]}
    assert variables["BROADGAUGE_RESULTS"] == "/kept/broadgauge/demo"


def test_who_reads_what_is_kept_is_none_of_the_jobs_pods() -> None:
    """It has the volume and the program, as few rights as they, and no secret."""
    request = request_of(experiment_of(image="i", python="py$3", **KEPT), name="demo-r1")
    program, job = reader_objects(request, 41)
    assert (program["kind"], program["metadata"]["name"]) == (
        "ConfigMap",
        "demo-r1-results-42-program",
    )
    assert job["metadata"]["name"] == "demo-r1-results-42"
    assert job["metadata"]["labels"][RUN] == "demo-1"
    template = job["spec"]["template"]
    assert JOB not in template["metadata"]["labels"]
    (found,) = template["spec"]["containers"]
    program_path = "/broadgauge/program/broadgauge.zip"
    folder = "/kept/broadgauge/demo-r1"
    assert found["command"] == ["py$$3", program_path, "kept-events", folder, "41"]
    assert found["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert template["spec"]["automountServiceAccountToken"] is False
    assert {each["name"]: each["mountPath"] for each in found["volumeMounts"]} == {
        "broadgauge-program": "/broadgauge/program",
        "broadgauge-scratch": "/broadgauge/scratch",
        "volume-1": "/kept/",
    }
    assert not any("valueFrom" in each for each in found["env"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("group", "given"),
    [(None, {}), (2000, {"fsGroup": 2000, "fsGroupChangePolicy": "OnRootMismatch"})],
)
def test_all_pods_give_their_volumes_to_one_group(
    kind: JobKind, group: int | None, given: Manifest
) -> None:
    request = request_of(preparing(fs_group=group), kind)
    expected = {"seccompProfile": {"type": "RuntimeDefault"}} | given
    for spec in [*(pod["spec"] for pod in pods_of(request)), *helper_specs(request)]:
        assert spec["securityContext"] == expected


def preparing(**settings: Any) -> Experiment:
    prepare = {"volume": "kept", "model": "me/tiny"}
    return experiment_of(image="i", prepare=prepare, **KEPT, **settings)


def helper_jobs(request: JobRequest) -> list[Manifest]:
    """What fills the volume, and what reads it."""
    file = prepare_file(request)
    assert file is not None
    return [file.objects[-1], reader_objects(request, 0)[-1]]


def helper_specs(request: JobRequest) -> list[Manifest]:
    return [job["spec"]["template"]["spec"] for job in helper_jobs(request)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_fills_and_reads_volumes_is_placed_and_queued_as_the_ranks_are(kind: JobKind) -> None:
    settings: dict[str, Any] = {
        "node_selector": {"pool": "gpu"},
        "tolerations": ["nvidia.com/gpu"],
        "priority_class": "high",
        "image_pull_policy": "Never",
    }
    keys = ("nodeSelector", "tolerations", "priorityClassName")
    request = request_of(preparing(queue={"kueue": "team"}, **settings), kind)
    (pod, *_) = pods_of(request)
    expected = {key: pod["spec"][key] for key in keys}
    for spec in helper_specs(request):
        assert {key: spec[key] for key in keys} == expected
        assert spec["containers"][0]["imagePullPolicy"] == "Never"
    for job in helper_jobs(request):
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
        assert job["spec"]["suspend"] is True
    for job in helper_jobs(request_of(preparing(), kind)):
        assert "kueue.x-k8s.io/queue-name" not in job["metadata"]["labels"]
        assert "suspend" not in job["spec"]


@pytest.mark.parametrize(("attached", "writes"), [(VNIC, True), ({"definitions": "net"}, False)])
def test_definitions_that_are_there_are_only_read(attached: Manifest, writes: bool) -> None:
    face = {"attachment": "existing"} | attached
    request = request_of(experiment_of(networks=[{"name": "n", "kubernetes": face}], image="i"))
    (rule,) = (each for each in rules(request) if each["apiGroups"] == ["k8s.cni.cncf.io"])
    assert ("create" in rule["verbs"]) is writes
    assert {"get", "list"} <= set(rule["verbs"])


def test_a_run_may_look_for_its_workload_where_a_queue_is_named_and_make_no_claim_unasked() -> None:
    def verbs(group: str, kind: str, request: JobRequest) -> list[str]:
        found = [
            each["verbs"]
            for each in rules(request)
            if (each["apiGroups"], each["resources"]) == ([group], [kind])
        ]
        return found[0] if found else []

    volume = {"name": "kept", "mount": "/kept"}
    plain = request_of(experiment_of(image="i", volumes=[volume]))
    assert verbs("kueue.x-k8s.io", "workloads", plain) == []
    assert verbs("", "persistentvolumeclaims", plain) == ["get"]
    sized = volume | {"size_bytes": "1 GiB"}
    queued = request_of(experiment_of(image="i", volumes=[sized], queue={"kueue": "team"}))
    assert verbs("kueue.x-k8s.io", "workloads", queued) == ["list"]
    assert verbs("", "persistentvolumeclaims", queued) == ["create", "get"]


def test_what_fills_and_reads_volumes_asks_for_a_little_and_for_more_where_told() -> None:
    little = {"requests": {"cpu": "100m", "memory": str(256 << 20)}}
    for spec in helper_specs(request_of(preparing(runtime_class="nvidia"))):
        assert spec["containers"][0]["resources"] == little
        assert spec["runtimeClassName"] == "nvidia"
    prepare = {"volume": "kept", "model": "me/tiny", "cpus": 1.5, "memory_bytes": "8 GiB"}
    request = request_of(experiment_of(image="i", prepare=prepare, **KEPT))
    filling, reading = helper_specs(request)
    asked = {"cpu": "1500m", "memory": str(8 << 30)}
    assert filling["containers"][0]["resources"] == {"requests": asked, "limits": asked}
    assert reading["containers"][0]["resources"] == little
    assert "runtimeClassName" not in filling


def test_orders_that_are_too_large_have_a_hint_that_makes_them_smaller() -> None:
    with pytest.raises(InputError, match="the orders of this plan") as refused:
        render_job(request_of(experiment_of(), orders=b"x" * (1 << 21)))
    assert refused.value.hint is not None
    assert "launches" in refused.value.hint
    assert "working_folder" not in refused.value.hint
