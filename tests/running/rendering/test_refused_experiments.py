"""Proves what `render` refuses: each with one message that says place, value and what helps."""

from pathlib import Path

import pytest
from tests.running.rendering.experiments import EXPERIMENT, rendered

from broadgauge.manifests.user_files import MOST_BYTES
from broadgauge.specs.errors import BroadgaugeError

CPUS = "cluster.device=cpu"
GPUS = "cluster.device=cuda"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["cluster.shapes=[2xauto]", GPUS], ["cluster.shapes: 2xauto", "gpus_per_pod: 8"]),
        (
            ["kubernetes.gpus_per_pod=8", "cluster.shapes=[2x3]", GPUS],
            ["kubernetes.gpus_per_pod: 8 GPUs", "3 ranks", "a multiple"],
        ),
        (
            ["name=" + "a-very-long-name-of-an-experiment-indeed", CPUS],
            ["mine 2x2 pod", "-mine-pod-2x2`", "room for 52", "`kubernetes.name`"],
        ),
        (["name=7days", CPUS], ["`7days-mine-1x2`", "begin with a letter", "{name: run-7days}"]),
        (["kubernetes.name=A_b", CPUS], ["kubernetes.name", "A_b"]),
        (["kubernetes.namespace=Training", CPUS], ["`Training` is none", "lower-case letters"]),
        (["kubernetes.image=a b", CPUS], ["`a b` is none", "like `registry.example/"]),
        (["kubernetes.image=a:b:c", CPUS], ["`a:b:c` is none"]),
        (["kubernetes.gpu_resource=gpu", CPUS], ["`gpu` is none", "like `nvidia.com/gpu`"]),
        (
            ["kubernetes.labels={app.kubernetes.io/managed-by: me}", CPUS],
            ["`app.kubernetes.io/managed-by` is Broadgauge's own"],
        ),
        (
            [
                "kubernetes.volumes=[{name: a, mount: /d, claim: c, size_bytes: 1 GiB},"
                " {name: b, mount: /e, claim: c, size_bytes: 1 GiB}]",
                CPUS,
            ],
            ["the claim `c` is made twice"],
        ),
        (
            ["workloads.mine.command=[trian.py]", CPUS],
            ["workloads.mine: no file `trian.py`", "did you mean `train.py`?"],
        ),
        (
            ["workloads.mine.command=[sub/x.py]", CPUS],
            ["no file `sub/x.py`", "`kubernetes.working_folder`"],
        ),
        (["kubernetes.files=[folder]", CPUS], ["folder can't be read", "hint: list its files"]),
        (["kubernetes.cpus=0", CPUS], ["kubernetes.cpus"]),
        (["kubernetes.node_selector={-a: b}", CPUS], ["kubernetes.node_selector"]),
        (["kubernetes.tolerations=[{key: a, operator: Equal}]", CPUS], ["`Equal` takes a `value`"]),
        (["kubernetes.job=mpijob", CPUS], ["`job` can't be `mpijob`"]),
        (["kubernetes.nmespace=a", CPUS], ["nmespace", "namespace"]),
        (["networks.pod.kubernetes=sriov", CPUS], ["`sriov` needs `resources`", "openshift.io/"]),
        (["networks.pod.kubernetes=pods", CPUS], ["`pods`", "did you mean `pod`"]),
        (
            ["networks.pod.kubernetes={attachment: pod, transport: roce}", CPUS],
            ["the pod network has no RDMA", "`roce`"],
        ),
        (["kubernetes.volumes=[{name: a, mount: /etc}]", CPUS], ["hides what every program needs"]),
        (["kubernetes.volumes=[{name: a, mount: /broadgauge/x}]", CPUS], ["own folder"]),
        (["kubernetes.volumes=[{name: a, mount: /dev/shm/x}]", CPUS], ["`kubernetes.shm_bytes`"]),
        (
            ["kubernetes.volumes=[{name: a, mount: /d}, {name: a, mount: /e}]", CPUS],
            ["two volumes are named `a`"],
        ),
        (
            ["kubernetes.volumes=[{name: a, mount: /d}, {name: b, mount: /x/../d}]", CPUS],
            ["two volumes at `/d`"],
        ),
        (["kubernetes.files=[../x]", CPUS], ["'../x'", "without `..`"]),
        (["kubernetes.files=[nowhere.py]", CPUS], ["nowhere.py can't be read"]),
        (
            ["kubernetes.working_folder=/opt", "kubernetes.files=[train.py]", CPUS],
            ["`files`", "`working_folder`"],
        ),
        (
            ["workloads.mine.working_directory=../x", CPUS],
            ["workloads.mine.working_directory: ../x", "a path below it"],
        ),
        (
            ["workloads.mine.working_directory=/opt", "kubernetes.files=[a]", CPUS],
            ["/opt is the image's", "`kubernetes.files`"],
        ),
        (
            ["environment={WANDB_API_KEY: {from_environment: true}}", CPUS],
            ["environment.WANDB_API_KEY", "{secrets: {WANDB_API_KEY: {secret: NAME, key: KEY}}}"],
        ),
    ],
)  # fmt: skip
def test_each_is_told_with_its_place_and_what_helps(
    tmp_path: Path, overrides: list[str], words: list[str]
) -> None:
    (tmp_path / "train.py").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(BroadgaugeError) as caught:
        rendered(tmp_path, *overrides)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("sizes", [[MOST_BYTES + 1], [MOST_BYTES // 2, MOST_BYTES // 2 + 99]])
def test_a_script_that_no_configmap_holds(tmp_path: Path, sizes: list[int]) -> None:
    for number, size in enumerate(sizes):
        (tmp_path / f"{number}.py").write_text("#" * size)
    words = ", ".join(f'"{number}.py"' for number in range(len(sizes)))
    with pytest.raises(BroadgaugeError, match="ConfigMap") as caught:
        rendered(tmp_path, f"workloads.mine.command=[{words}]", CPUS)
    for word in ("kubernetes.files", ".py", "1 MiB", "`kubernetes.working_folder`"):
        assert word in str(caught.value)


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "e"
    folder.mkdir()
    (tmp_path / "outside").write_text("x")
    (folder / "train.py").symlink_to(tmp_path / "outside")
    with pytest.raises(BroadgaugeError, match="a link out of the experiment's folder"):
        rendered(folder, CPUS, text=EXPERIMENT)
