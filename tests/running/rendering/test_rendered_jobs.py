"""Proves what an experiment becomes on Kubernetes: jobs, pods, what they may do and are told."""

import base64
import json
from pathlib import Path

import pytest
from tests.running.rendering.experiments import (
    EXPERIMENT,
    asked_by,
    container_of,
    examples_with_a_face,
    objects_of,
    pods_of,
    rendered,
    variables_of,
)

from broadgauge.agent import bundle
from broadgauge.manifests.files import to_yaml
from broadgauge.manifests.rendering import MOST_ANNOTATION_BYTES
from broadgauge.messages.asked_network import AskedNetwork
from broadgauge.messages.pod_case import POD_CASE
from broadgauge.running.experiments import load
from broadgauge.running.rendering.experiment import ON_KUBERNETES, render_experiment
from broadgauge.specs.errors import InputError

GPUS = "cluster.device=cuda"
CPUS = "cluster.device=cpu"
TRAIN = EXPERIMENT.replace(
    EXPERIMENT[EXPERIMENT.index("  - kind: command") : EXPERIMENT.index("launches")],
    "  - {kind: train, name: mine, strategy: ddp, model: {layers: 2, hidden: 64, heads: 2}}\n",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print('t=1')\n")
    return tmp_path


def test_a_case_is_a_job_and_a_node_is_a_pod(folder: Path) -> None:
    found = rendered(folder, GPUS)
    one, two = objects_of(found, "Job")
    assert one["metadata"]["name"] == "small-mine-1x2"
    assert two["metadata"]["name"] == "small-mine-pod-2x2"
    for job, pods in ((one, 1), (two, 2)):
        spec = job["spec"]
        assert (spec["completions"], spec["parallelism"]) == (pods, pods)
        assert (spec["completionMode"], spec["backoffLimit"]) == ("Indexed", 0)
        assert spec["template"]["spec"]["restartPolicy"] == "Never"
    (service,) = objects_of(found, "Service")
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    assert service["metadata"]["name"] == two["spec"]["template"]["spec"]["subdomain"]
    labels = two["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert "subdomain" not in one["spec"]["template"]["spec"]


def test_no_two_pods_of_a_job_share_a_node(folder: Path) -> None:
    one, two = pods_of(rendered(folder, GPUS))
    assert "affinity" not in one
    (term,) = two["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["labelSelector"]["matchLabels"]["broadgauge.dev/case"] == "mine-pod-2x2"


def test_pods_may_do_as_little_as_possible(folder: Path) -> None:
    for spec in pods_of(rendered(folder, GPUS)):
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
        assert not {"hostNetwork", "hostPID", "hostIPC", "initContainers"} & spec.keys()
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "runAsNonRoot": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not any("hostPath" in volume for volume in spec["volumes"])


def test_the_words_of_the_command_are_torchruns(folder: Path) -> None:
    container = container_of(rendered(folder, GPUS))
    assert container["command"] == ["python3", "/broadgauge/program/broadgauge.zip", "pod"]
    before, after = " ".join(container["args"]).split(" -- ")
    assert after == "train.py --steps 3"
    assert before.startswith("--nodes 2 --ranks-per-node 2 --leader small-mine-pod-2x2-0.small-")
    assert "--launches 2" in before


def test_the_entrypoint_is_told_the_pod_network_and_one_node_the_loopback(folder: Path) -> None:
    for device, libraries in ((CPUS, ("gloo",)), (GPUS, ("nccl",))):
        network = asked_by(container_of(rendered(folder, device, text=TRAIN)))
        assert network == AskedNetwork(name="pod", transport="tcp", libraries=libraries)
    on_cpus = variables_of(container_of(rendered(folder, CPUS, text=TRAIN)))
    assert "NCCL_DEBUG" not in on_cpus
    found = variables_of(container_of(rendered(folder, GPUS, text=TRAIN)))
    assert found["NCCL_DEBUG"] == "INFO"
    assert not {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "NCCL_NET"} & found.keys()
    one_node = container_of(rendered(folder, GPUS, text=TRAIN), 0)
    assert asked_by(one_node) is None
    assert variables_of(one_node)["NCCL_SOCKET_IFNAME"] == "=lo"
    assert "NCCL_NET" not in variables_of(one_node)


def test_a_command_may_take_either_library(folder: Path) -> None:
    """Whatever `backend` says of it: its script chooses, where there are GPUs."""
    for device, libraries in ((CPUS, ("gloo",)), (GPUS, ("gloo", "nccl"))):
        network = asked_by(container_of(rendered(folder, device)))
        assert network is not None
        assert network.libraries == libraries


@pytest.mark.parametrize(
    ("overrides", "cpus", "threads"),
    [([], "2", "1"), (["cluster.cores_per_node=8"], "8", "4"), (["kubernetes.cpus=6"], "6", "3")],
)
def test_where_cpus_compute_threads_are_as_many(
    folder: Path, overrides: list[str], cpus: str, threads: str
) -> None:
    """Else each rank has a thread for each core of the node, under a limit of a few."""
    container = container_of(rendered(folder, CPUS, *overrides))
    assert container["resources"]["limits"] == {"cpu": cpus}
    assert variables_of(container)["OMP_NUM_THREADS"] == threads


def test_what_is_asked_for_is_what_is_said(folder: Path) -> None:
    found = rendered(
        folder,
        GPUS,
        "kubernetes.cpus=12",
        "kubernetes.memory_bytes=64 GiB",
        "kubernetes.gpus_per_pod=8",
    )
    said = {"cpu": "12", "memory": str(64 << 30), "nvidia.com/gpu": "8"}
    assert container_of(found)["resources"] == {"requests": said, "limits": said}
    assert variables_of(container_of(found))["OMP_NUM_THREADS"] == "6"
    assert (found.num_pods, found.most_gpus) == (3, 16)


def test_what_is_only_predicted_is_no_limit(folder: Path) -> None:
    resources = container_of(rendered(folder, GPUS, text=TRAIN))["resources"]
    assert resources["limits"] == {"nvidia.com/gpu": "2"}
    assert int(resources["requests"]["memory"]) > 1 << 30
    assert container_of(rendered(folder, GPUS))["resources"]["requests"].keys() == {
        "cpu",
        "nvidia.com/gpu",
    }


def test_shared_memory_is_as_large_as_ranks_need(folder: Path) -> None:
    for spec, size in (
        (pods_of(rendered(folder, GPUS))[1], 2 << 30),
        (pods_of(rendered(folder, GPUS, "kubernetes.shm_bytes=8 GiB"))[1], 8 << 30),
    ):
        volumes = {volume["name"]: volume for volume in spec["volumes"]}
        in_memory = volumes["broadgauge-shm"]["emptyDir"]
        assert in_memory == {"medium": "Memory", "sizeLimit": str(size)}


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["kubernetes.memory_bytes=1 GiB"], "/dev/shm may take 2 GiB, and counts against"),
        (["kubernetes.memory_bytes=4 GiB"], "less than the"),
        ([], "memory that a pod asks for, by the memory model"),
    ],
)
def test_memory_is_warned_of(folder: Path, overrides: list[str], words: str) -> None:
    found = rendered(folder, GPUS, *overrides, text=TRAIN)
    assert any(words in note for note in found.rendered.notes), found.rendered.notes


def test_everything_of_a_pod_that_a_cluster_may_ask_for(folder: Path) -> None:
    keys = {
        "namespace": "training",
        "image_pull_policy": "IfNotPresent",
        "image_pull_secrets": "[pull]",
        "node_selector": "{gpu: h100}",
        "tolerations": "[nvidia.com/gpu, {key: a, operator: Equal, value: b, effect: NoExecute}]",
        "priority_class": "high",
        "service_account": "trainer",
        "runtime_class": "nvidia",
        "run_as_user": "1001",
        "fs_group": "2000",
        "labels": "{team: net}",
        "annotations": "{a/b: c}",
        "ttl_s": "2 h",
        "deadline_s": "90 min",
        "queue": "{kueue: gpus}",
        "secrets": "{HF_TOKEN: {secret: hf, key: token}}",
    }
    found = rendered(folder, GPUS, *(f"kubernetes.{key}={value}" for key, value in keys.items()))
    job = objects_of(found, "Job")[-1]
    about, spec, pod = job["metadata"], job["spec"], pods_of(found)[-1]
    assert {each["metadata"]["namespace"] for each in found.rendered.objects} == {"training"}
    assert about["labels"]["kueue.x-k8s.io/queue-name"] == "gpus"
    assert (spec["suspend"], spec["ttlSecondsAfterFinished"], spec["activeDeadlineSeconds"]) == (
        *(True, 7200, 5400),
    )
    assert all(each["metadata"]["labels"]["team"] == "net" for each in found.rendered.objects)
    template = spec["template"]["metadata"]
    assert template["annotations"] == {"a/b": "c", "sidecar.istio.io/inject": "false"}
    assert pod["nodeSelector"] == {"gpu": "h100"}
    assert pod["tolerations"] == [
        {"operator": "Exists", "key": "nvidia.com/gpu"},
        {"operator": "Equal", "key": "a", "value": "b", "effect": "NoExecute"},
    ]
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    names = ("priorityClassName", "serviceAccountName", "runtimeClassName")
    assert [pod[name] for name in names] == ["high", "trainer", "nvidia"]
    assert pod["securityContext"]["fsGroup"] == 2000
    assert pod["containers"][0]["securityContext"]["runAsUser"] == 1001
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert variables_of(pod["containers"][0])["HF_TOKEN"] == {
        "secretKeyRef": {"name": "hf", "key": "token"}
    }
    for needed in ("namespace training", "Secret pull", "Secret hf with the key token", "gpu=h100",
                   "PriorityClass high", "ServiceAccount trainer", "RuntimeClass nvidia",
                   "LocalQueue gpus"):  # fmt: skip
        assert any(needed in each for each in found.rendered.prerequisites), needed


def test_a_claim_with_a_size_is_made_once_and_one_without_is_there(folder: Path) -> None:
    made = "{name: data, mount: /data, size_bytes: 100 GiB, storage_class: cephfs}"
    there = "{name: home, mount: /home/me, claim: mine, is_read_only: true}"
    found = rendered(folder, f"kubernetes.volumes=[{made}, {there}]", GPUS)
    (claim,) = objects_of(found, "PersistentVolumeClaim")
    assert claim["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": str(100 << 30)}},
        "storageClassName": "cephfs",
    }
    (file,) = (each for each in found.rendered.files if claim in each.objects)
    assert file.path == "30-storage/claims.yaml"
    for spec in pods_of(found):
        claims = [
            each["persistentVolumeClaim"]["claimName"]
            for each in spec["volumes"]
            if "persistentVolumeClaim" in each
        ]
        assert claims == ["data", "mine"]
        mounts = {each["mountPath"]: each for each in spec["containers"][0]["volumeMounts"]}
        assert mounts["/home/me"]["readOnly"] is True
        assert "readOnly" not in mounts["/data"]
    needs = " ".join(found.rendered.prerequisites)
    assert "StorageClass cephfs, which gives ReadWriteMany" in needs
    assert "PersistentVolumeClaim mine" in needs


def test_a_claim_of_one_node_is_warned_of_where_there_are_several(folder: Path) -> None:
    volume = "{name: data, mount: /data, size_bytes: 1 GiB, access: ReadWriteOnce}"
    found = rendered(folder, f"kubernetes.volumes=[{volume}]", GPUS)
    assert any("one node only" in note for note in found.rendered.notes)


def test_the_users_files_are_sent(folder: Path) -> None:
    (folder / "conf").mkdir()
    (folder / "conf" / "a.json").write_text("{}")
    (folder / "blob.bin").write_bytes(b"\xff\x00")
    found = rendered(folder, GPUS, "kubernetes.files=[conf/a.json, blob.bin]")
    files = [
        each
        for each in objects_of(found, "ConfigMap")
        if each["metadata"]["name"].endswith("-files")
    ]
    assert len(files) == 2
    assert files[0]["data"] == {"conf__a.json": "{}", "train.py": "print('t=1')\n"}
    assert base64.b64decode(files[0]["binaryData"]["blob.bin"]) == b"\xff\x00"
    volumes = {volume["name"]: volume for volume in pods_of(found)[0]["volumes"]}
    assert {
        (each["key"], each["path"]) for each in volumes["broadgauge-files"]["configMap"]["items"]
    } == {
        ("conf__a.json", "conf/a.json"),
        ("blob.bin", "blob.bin"),
        ("train.py", "train.py"),
    }


def test_a_command_runs_in_its_folder_below_the_experiments(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "main.py").write_text("1")
    words = "workloads.mine.command=[main.py]"
    found = rendered(folder, GPUS, words, "workloads.mine.working_directory=./src")
    assert found.jobs[0].files == {"src/main.py": b"1"}
    arguments = container_of(found)["args"]
    assert arguments[arguments.index("--subfolder") + 1] == "src"
    found = rendered(folder, GPUS, words, "workloads.mine.working_directory=/opt/train")
    assert found.jobs[0].files == {}
    assert " --folder /opt/train --network " in " ".join(container_of(found)["args"])


def test_with_a_folder_of_the_image_nothing_is_sent(folder: Path) -> None:
    found = rendered(folder, GPUS, "kubernetes.working_folder=/opt/train")
    assert not any("files" in each["metadata"]["name"] for each in objects_of(found, "ConfigMap"))
    assert " --folder /opt/train --network " in " ".join(container_of(found)["args"])


def test_our_own_ranks_are_told_their_task(folder: Path) -> None:
    found = rendered(folder, GPUS, "trials_per_launch=2", text=TRAIN)
    told = objects_of(found, "ConfigMap")[-1]["data"]["case.json"]
    case = POD_CASE(json.loads(told))
    assert [trial.trial_id for trial in case.trials] == ["t0", "t1"]
    assert case.trials[0].layout.world_size == 4
    assert case.about["case"]["network"]["kubernetes"] == {
        "attachment": "pod",
        "transport": "tcp",
    } or (case.about["case"]["network"]["kubernetes"] == {"attachment": "pod"})
    assert container_of(found)["args"][-3:] == [
        "/broadgauge/program/broadgauge.zip",
        "measure",
        "/broadgauge/case/case.json",
    ]


def test_a_network_without_this_face_is_left_out_with_the_reason(folder: Path) -> None:
    found = rendered(folder, GPUS)
    assert found.notes[0] == (
        "network lan is left out on kubernetes: it does not say what is attached to the pods "
        "(`kubernetes`)"
    )
    assert "lan" not in json.dumps([each.case.model_dump() for each in found.jobs], default=str)


def test_nothing_left_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"networks\.lan.*not told which") as caught:
        rendered(
            folder,
            GPUS,
            text=EXPERIMENT.replace("  - {name: pod, rate_gbps: 1, kubernetes: pod}\n", ""),
        )
    assert "`kubernetes: pod`" in str(caught.value)


def test_the_same_file_gives_the_same_bytes(folder: Path) -> None:
    def texts() -> list[str]:
        found = rendered(folder, GPUS).rendered
        return [to_yaml(file) for file in (*found.files, *found.kustomizations)]

    first = texts()
    bundle.build.cache_clear()
    assert texts() == first
    assert all(text.startswith("# ") for text in first)


def test_each_folder_is_applied_by_itself_and_with_all(folder: Path) -> None:
    found = rendered(folder, GPUS, "kubernetes.volumes=[{name: d, mount: /d, size_bytes: 1 GiB}]")
    paths = [file.path for file in found.rendered.files]
    listed = {file.path: file.objects[0]["resources"] for file in found.rendered.kustomizations}
    folders = ["30-storage", "40-job/mine-1x2", "40-job/mine-pod-2x2"]
    assert listed.pop("kustomization.yaml") == folders
    assert list(listed) == [f"{each}/kustomization.yaml" for each in folders]
    assert [
        f"{each}/{name}" for each in folders for name in listed[f"{each}/kustomization.yaml"]
    ] == paths


def test_a_jobs_folder_has_all_that_its_pods_mount_but_claims(folder: Path) -> None:
    """So that deleting it takes nothing from another job, and no data."""
    found = rendered(folder, GPUS, "kubernetes.volumes=[{name: d, mount: /d, size_bytes: 1 GiB}]")
    for job, pod in zip(found.jobs, pods_of(found), strict=True):
        own = [
            each["metadata"]["name"]
            for file in found.rendered.files
            if file.path.startswith(f"40-job/{job.word}/")
            for each in file.objects
            if each["kind"] == "ConfigMap"
        ]
        mounted = [each["configMap"]["name"] for each in pod["volumes"] if "configMap" in each]
        assert own == mounted
        assert all(name.startswith(f"{job.name}-") for name in own)


@pytest.mark.parametrize("name", examples_with_a_face())
def test_every_example_with_this_face_renders(name: str) -> None:
    found = render_experiment(load(name, [ON_KUBERNETES]))
    assert found.jobs
    for each in found.rendered.objects:
        assert len(json.dumps(each)) < MOST_ANNOTATION_BYTES, "`kubectl apply` would refuse it"
