"""Is it said what a storage's path is in a pod, and are phases measured by what their pods have?"""

import json
from pathlib import Path

import pytest
from tests.probes.test_without_agent import start
from tests.running.rendering.experiments import container_of, objects_of, pods_of, rendered
from tests.running.rendering.runs import small_run

from broadgauge.agent import bundle
from broadgauge.messages.storage_memory import WORKER_BYTES
from broadgauge.probes.without_agent import BLOCK_WORD
from broadgauge.specs.errors import InputError
from broadgauge.specs.workloads.workload import GptModel

MODEL = "{layers: 1, hidden: 64, heads: 2, vocabulary: 128, seq_len: 16}"
TEXT = f"""
name: small
kubernetes:
  image: "registry.example/train:1"
  volumes: [{{name: data, mount: /data}}, {{name: shown, mount: /data/shown, config_map: c}}]
cluster: {{shapes: [1x1], device: cpu}}
storages: [{{name: claim, path: /data/deep}}]
workloads:
  - {{kind: storage, phase: raw, name: raw, size: 64 KiB, repetitions: 1}}
  - {{kind: storage, phase: checkpoint, name: saved, model: {MODEL}, repetitions: 1}}
  - {{kind: storage, phase: load, name: loaded, model: {MODEL}, repetitions: 1}}
  - {{kind: storage, phase: batches, name: batches, samples: 8, sample_size: 1 KiB, workers: 1,
     repetitions: 1}}
launches: 1
"""


def notes_on(folder: Path, path: str, *more: str) -> list[str]:
    found = rendered(folder, f"storages.claim.path={path}", *more, text=TEXT)
    return [each for each in found.notes if each.startswith("storage claim")]


def test_a_volume_of_the_users_needs_no_word(tmp_path: Path) -> None:
    assert notes_on(tmp_path, "/data") == notes_on(tmp_path, "/data/deep") == []
    (first, *_) = pods_of(rendered(tmp_path, text=TEXT))
    mounts = {each["mountPath"] for each in first["containers"][0]["volumeMounts"]}
    assert {"/data", "/data/shown"} <= mounts


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/mnt/nvme", "no volume is mounted at /mnt/nvme, so that pods measure their container's"),
        ("/database", "no volume is mounted at /database"),
        ("/dev/shm", "/dev/shm is each pod's memory"),
        (".", "/broadgauge/scratch/work is each pod's own emptyDir"),
        ("/broadgauge/scratch", "/broadgauge/scratch is each pod's own emptyDir"),
    ],
)
def test_anything_else_is_told(tmp_path: Path, path: str, words: str) -> None:
    (note,) = notes_on(tmp_path, path)
    assert note.startswith(f"storage claim in pods: {words}")


def test_what_is_named_in_the_note_takes_it_away(tmp_path: Path) -> None:
    (note,) = notes_on(tmp_path, "/mnt/nvme")
    told = note.rpartition("`kubernetes.volumes: ")[2].rstrip("`")
    volume = f"kubernetes.volumes={told}"
    assert notes_on(tmp_path, "/mnt/nvme", volume) == []
    other = volume.replace("}]", ", workloads: [raw]}]")
    assert len(notes_on(tmp_path, "/mnt/nvme", other)) == 1


def test_a_relative_path_starts_where_ranks_run(tmp_path: Path) -> None:
    assert notes_on(tmp_path, "deep", "kubernetes.working_folder=/data") == []


@pytest.mark.parametrize(
    "override",
    [
        "storages.claim.path=/data/shown",
        "kubernetes.volumes=[{name: data, mount: /data, is_read_only: true}]",
        "kubernetes.volumes=[{name: data, mount: /data, access: ReadOnlyMany}]",
    ],
)
def test_a_volume_that_pods_only_read_is_refused(tmp_path: Path, override: str) -> None:
    for make in (rendered, small_run):
        with pytest.raises(InputError, match=r"storages\.claim\.path: .* pods can't write to"):
            make(tmp_path, override, text=TEXT)


def memory_of(folder: Path, *overrides: str) -> list[dict[str, int]]:
    """Of each workload's pods: the parts beside processes, by name."""
    found = rendered(folder, *overrides, text=TEXT)
    return [
        {part.what: part.size_bytes for part in job.memory_need.parts[3:]} for job in found.jobs
    ]


def test_pods_ask_for_what_their_phase_holds(tmp_path: Path) -> None:
    """A state twice: 12 bytes a parameter; a model's file and tensors, and the model."""
    large = "{layers: 24, hidden: 1024, heads: 16}"
    parameters = GptModel(layers=24, hidden=1024, heads=16).parameters
    sets = [f"workloads.{name}.model={large}" for name in ("saved", "loaded")]
    raw, saved, loaded, batches = memory_of(tmp_path, *sets, "workloads.batches.workers=10")
    assert raw == {}
    (state_bytes,) = saved.values()
    assert 24 * parameters <= state_bytes < 25 * parameters
    (model_bytes,) = loaded.values()
    assert 6 * parameters <= model_bytes < 7 * parameters
    (workers_bytes,) = batches.values()
    assert workers_bytes >= 10 * WORKER_BYTES


@pytest.mark.slow
@pytest.mark.measuring
def test_each_phase_is_measured_by_the_parts_that_its_pods_have(tmp_path: Path) -> None:
    """By one start of the ranks: the trials of all four jobs, whose programs are the same."""
    storage = tmp_path / "storage"
    storage.mkdir()
    found = rendered(tmp_path, f"storages.claim.path={storage}", text=TEXT)
    assert {job.program for job in found.jobs} == {bundle.build(bundle.STORAGE_POD_PARTS)}
    told = [each["data"]["case.json"] for each in objects_of(found, "ConfigMap") if "data" in each]
    first, *others = map(json.loads, told)
    first["trials"] += [trial for each in others for trial in each["trials"]]
    for number, trial in enumerate(first["trials"]):
        trial["trial_id"] = f"t{number}"
    for path, data in (
        ("case/case.json", json.dumps(first).encode()),
        ("program/broadgauge.zip", found.jobs[0].program),
    ):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_bytes(data)
    pod = start(container_of(found, 0), tmp_path, 0)
    log, _ = pod.communicate()
    assert pod.returncode == 0, log
    lines = [line for line in log.splitlines() if line.startswith(BLOCK_WORD)]
    blocks = [json.loads(line.removeprefix(BLOCK_WORD)) for line in lines]
    assert [(each["trial_id"], each["kind"], each["label"]) for each in blocks] == [
        *(("t0", "file_access", "write/0"), ("t0", "file_access", "read/0")),
        ("t1", "file_access", "write/0"),
        *(("t2", "file_access", "read/0"), ("t3", "file_access", "read/0")),
    ]
    assert all(each["seconds"] and each["size_bytes"] for each in blocks)
    assert list(storage.iterdir()) == []
