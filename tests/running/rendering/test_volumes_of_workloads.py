"""Proves which pods mount a volume of the user's, and that a command's config goes along."""

from pathlib import Path
from typing import Any

import pytest
from tests.running.rendering.experiments import objects_of, rendered

from broadgauge.manifests.volumes import mounted
from broadgauge.running.rendering.experiment import RenderedExperiment
from broadgauge.specs.errors import BroadgaugeError

TEXT = """
name: small
kubernetes:
  image: "registry.example/train:1"
  volumes:
    - {name: sft, mount: /etc/config, config_map: sft, workloads: [mine]}
    - {name: data, mount: /data}
cluster: {shapes: [1x2]}
workloads:
  - kind: command
    name: mine
    config: sub/config.json
    metrics: [{name: step_time_s, regex: "t=([0-9.]+)"}]
  - {kind: collectives}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "config.json").write_text('{"module": "a.b", "max_batch_len": 35000}')
    return tmp_path


def theirs(found: RenderedExperiment) -> list[dict[str, Any]]:
    """Of each job's pods: the sources of the user's volumes, by where they are mounted."""
    return [
        {
            each.mount["mountPath"]: {k: v for k, v in each.volume.items() if k != "name"}
            for each in mounted(job)
            if not each.volume["name"].startswith("broadgauge-")
        }
        for job in found.jobs
    ]


def test_a_volume_of_some_workloads_is_mounted_by_their_pods_alone(folder: Path) -> None:
    data = {"/data": {"persistentVolumeClaim": {"claimName": "data"}}}
    found = rendered(folder, text=TEXT)
    assert theirs(found) == [{"/etc/config": {"configMap": {"name": "sft"}}, **data}, data]
    needs = found.rendered.prerequisites
    assert "ConfigMap sft (mounted at /etc/config)" in needs
    left_out = rendered(folder, "workloads.mine.platforms=[]", text=TEXT)
    assert "ConfigMap sft (mounted at /etc/config)" not in left_out.rendered.prerequisites


@pytest.mark.parametrize(
    ("of", "who"), [("null", [True, True]), ("[mine]", [True, False]), ("[]", [False, False])]
)
def test_a_secret_of_some_workloads_is_their_ranks_alone(
    folder: Path, of: str, who: list[bool]
) -> None:
    secret = f"kubernetes.secrets={{KEY: {{secret: s, key: k, workloads: {of}}}}}"
    found = rendered(folder, secret, text=TEXT)
    assert ["KEY" in job.secrets for job in found.jobs] == who
    needs = "Secret s with the key k (variable KEY)"
    assert (needs in found.rendered.prerequisites) is any(who)


def test_the_secret_of_what_is_filled_is_needed_though_no_rank_has_it(folder: Path) -> None:
    found = rendered(
        folder,
        "kubernetes.prepare={volume: data, model: a/b}",
        "kubernetes.secrets={HF_TOKEN: {secret: s, key: k, workloads: []}}",
        text=TEXT,
    )
    assert "Secret s with the key k (variable HF_TOKEN)" in found.rendered.prerequisites
    (job,) = objects_of(found, "Job")[:1]
    refs = [
        each["name"]
        for container in job["spec"]["template"]["spec"]["containers"]
        for each in container["env"]
        if "valueFrom" in each
    ]
    assert refs == ["HF_TOKEN"]


def test_only_pods_that_mount_what_is_filled_wait_for_it(folder: Path) -> None:
    prepare = "kubernetes.prepare={volume: more, model: a/b}"
    volume = "kubernetes.volumes=[{name: more, mount: /more, workloads: [mine]}]"
    found = rendered(folder, prepare, volume, text=TEXT)
    assert [job.preparation is not None for job in found.jobs] == [True, False]
    assert [file.path for file in found.rendered.files if "35-" in file.path]
    left_out = rendered(folder, prepare, volume, "workloads.mine.platforms=[]", text=TEXT)
    assert not [file.path for file in left_out.rendered.files if "35-" in file.path]


def test_a_volume_follows_its_workloads_axes(folder: Path) -> None:
    found = rendered(folder, "workloads.mine.max_batch_len=[1, 2]", text=TEXT)
    assert [sorted(each) for each in theirs(found)] == [["/data", "/etc/config"]] * 2 + [["/data"]]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "kubernetes.volumes=[{name: a, mount: /a, workloads: [mien]}]",
            ["kubernetes.volumes[0].workloads: no workload is named `mien`", "mine"],
        ),
        (
            "kubernetes.secrets={KEY: {secret: s, key: k, workloads: [mien]}}",
            ["kubernetes.secrets.KEY.workloads: no workload is named `mien`", "mine"],
        ),
        (
            "kubernetes.volumes=[{name: a, mount: /a, config_map: b, claim: c}]",
            ["a volume is a claim or a ConfigMap"],
        ),
    ],
)
def test_what_a_volume_may_not_say(folder: Path, override: str, words: list[str]) -> None:
    with pytest.raises(BroadgaugeError) as caught:
        rendered(folder, override, text=TEXT)
    said = f"{caught.value} {getattr(caught.value, 'hint', '')}"
    assert all(word in said for word in words), said


@pytest.mark.parametrize("where", [None, "sub", "other"])
def test_a_config_goes_along_wherever_its_command_runs(folder: Path, where: str | None) -> None:
    more = () if where is None else (f"workloads.mine.working_directory={where}",)
    mine, _ = rendered(folder, *more, text=TEXT).jobs
    assert list(mine.files) == ["sub/config.json"]
    assert mine.arguments == ("-m", "a.b", "--max_batch_len", "35000")


def test_a_config_elsewhere_does_not(folder: Path) -> None:
    path = folder / "sub" / "config.json"
    mine, _ = rendered(folder, f"workloads.mine.config={path}", text=TEXT).jobs
    assert mine.files == {}
    assert mine.arguments == ("-m", "a.b", "--max_batch_len", "35000")
