"""Proves the `as-published` workloads of examples/: torchrun is given what the articles gave it.

Words and values are facts of the articles: "Network performance in distributed training" (2025-10,
its Korean copy, which is whole) and "Accelerate model training on OpenShift AI with NVIDIA
GPUDirect RDMA" (2025).
"""

import json
from functools import cache
from typing import Any

import pytest

from broadgauge.agent.pod.main import parser, torchrun
from broadgauge.catalog.article_differences import compared_pods
from broadgauge.manifests.yaml_text import Manifest
from broadgauge.probes.command import torchrun_command
from broadgauge.probes.identity import RankIdentity
from broadgauge.running.experiments import examples_folder, load
from broadgauge.running.rendering.experiment import (
    ON_KUBERNETES,
    RenderedExperiment,
    render_experiment,
)
from broadgauge.specs.workloads.tasks import command_task, layout_of
from broadgauge.specs.workloads.workload import CommandWorkload

CONFIG = {
    "nnodes": 8,
    "nproc_per_node": 2,
    "module": "instructlab.training.main_ds",
    "model_name_or_path": "/mnt/storage/model/granite-3.1-8b-starter-v2",
    "data_path": "/mnt/storage/dataset/data.jsonl",
    "output_dir": "/mnt/output/model",
    "num_epochs": 1,
    "effective_batch_size": 3840,
    "learning_rate": 0.0001,
    "num_warmup_steps": 800,
    "save_samples": 0,
    "log_level": "INFO",
    "max_batch_len": 35000,
    "seed": 42,
    "distributed_training_framework": "fsdp",
    "cpu_offload_optimizer": True,
    "cpu_offload_params": True,
    "fsdp_sharding_strategy": "HYBRID_SHARD",
}
"""The article's 18 keys, "Hyperparameter configuration (config.json)"."""
OF_THE_SCRIPT = (
    *("--model_name_or_path", "/mnt/storage/model/granite-3.1-8b-starter-v2"),
    *("--data_path", "/mnt/storage/dataset/data.jsonl", "--output_dir", "/mnt/output/model"),
    *("--num_epochs", "1", "--effective_batch_size", "3840", "--learning_rate", "0.0001"),
    *("--num_warmup_steps", "800", "--save_samples", "0", "--log_level", "INFO"),
    *("--max_batch_len", "35000", "--seed", "42", "--distributed_training_framework", "fsdp"),
    *("--cpu_offload_optimizer", "--cpu_offload_params"),
    *("--fsdp_sharding_strategy", "HYBRID_SHARD"),
)
"""What its script makes of them behind torchrun's own (`jq`, `sed`): `true` is a bare flag."""
MODULE = "instructlab.training.main_ds"


def article_words(nodes: int, ranks: int, rank: int) -> list[str]:
    """torchrun's own, of its "torchrun launch command" in the pod of this rank."""
    return [
        *("--node_rank", str(rank), "--rdzv_endpoint", "master:23456"),
        *("--nnodes", str(nodes), "--nproc_per_node", str(ranks), "--module", MODULE),
        *OF_THE_SCRIPT,
    ]


@cache
def rendered(name: str) -> RenderedExperiment:
    return render_experiment(load(name, [ON_KUBERNETES]))


def template_of(name: str, word: str) -> Manifest:
    """Of the first pod of a case."""
    (job,) = (
        each
        for each in rendered(name).rendered.objects
        if each["kind"] == "PyTorchJob" and each["metadata"]["name"] == f"{name}-{word}"
    )
    template: Manifest = job["spec"]["pytorchReplicaSpecs"]["Master"]["template"]
    return template


def arguments_of(name: str, word: str) -> tuple[list[str], list[str]]:
    """Of the pod: the entrypoint's, and torchrun's behind `--`."""
    (container,) = template_of(name, word)["spec"]["containers"]
    words = list(container["args"])
    place = words.index("--")
    return words[:place], words[place + 1 :]


def test_the_config_is_the_articles_to_the_key() -> None:
    text = (examples_folder() / "granite" / "config.json").read_text()
    assert list(json.loads(text).items()) == list(CONFIG.items())


@pytest.mark.parametrize(
    ("name", "word", "nodes", "ranks"),
    [
        ("granite-l40s", "as-published-vnic-8x2", 8, 2),
        ("granite-l40s", "as-published-1x2", 1, 2),
        ("granite-h100", "as-published-sriov-rdma-nics-8-2x8", 2, 8),
    ],
)
def test_granites_pods_start_the_articles_command(
    name: str, word: str, nodes: int, ranks: int
) -> None:
    own, words = arguments_of(name, word)
    assert words == ["-m", MODULE, *OF_THE_SCRIPT]
    options = parser().parse_args(own)
    assert (options.nodes, options.ranks_per_node) == (nodes, ranks)


@pytest.mark.measuring
def test_torchrun_reads_the_articles_words_and_ours_alike() -> None:
    from torch.distributed.run import parse_args

    own, words = arguments_of("granite-l40s", "as-published-vnic-8x2")
    options = parser().parse_args(own)
    ours = torchrun(options, 3, 0)
    assert ours[1:3] == ["-m", "torch.distributed.run"]
    read: list[dict[str, Any]] = [
        vars(parse_args(each)) for each in (article_words(8, 2, 3), [*ours[3:], *words])
    ]
    assert read[0]["training_script_args"] == list(OF_THE_SCRIPT)
    differing = {
        key: (read[0][key], read[1][key]) for key in read[0] if read[0][key] != read[1][key]
    }
    known = {row.name: (row.article, row.ours) for row in compared_pods()["torchrun"].rows}
    assert known["master_addr"][1] == "FIRST POD"
    known["master_addr"] = (known["master_addr"][0], options.leader)
    assert differing == known


def test_emulated_and_rendered_give_torchrun_the_same() -> None:
    """`--set workloads.as-published.platforms=null` starts it here, too."""
    experiment = load("granite-l40s", ["workloads.as-published.platforms=null"]).experiment
    workload = experiment.workloads[1]
    assert isinstance(workload, CommandWorkload)
    job = next(each for each in rendered("granite-l40s").jobs if each.word.endswith("vnic-8x2"))
    identity = RankIdentity.from_environment(
        {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
        | {"GROUP_RANK": "3", "GROUP_WORLD_SIZE": "8"}
        | {"MASTER_ADDR": "10.80.0.1", "MASTER_PORT": "29500"}
    )
    layout, task = layout_of(job.case), command_task(workload)
    log_folder = examples_folder()
    started = torchrun_command(layout, task, identity, log_folder, "python")
    place = started.index("--redirects=3") + 1
    assert started[place:] == arguments_of("granite-l40s", "as-published-vnic-8x2")[1]
    assert {"--nnodes=8", "--nproc-per-node=2", "--node-rank=3"} <= set(started[:place])


def test_another_max_batch_len_takes_the_files_place() -> None:
    flags = ["workloads.as-published.max_batch_len=[35000, 60000]", "kubernetes.name=g"]
    found = render_experiment(load("granite-l40s", [*flags, ON_KUBERNETES]))
    lengths = {
        job.case.workload.batch_tokens: job.arguments
        for job in found.jobs
        if job.case.shape == "8x2" and job.case.workload.batch_tokens
    }
    place = OF_THE_SCRIPT.index("--max_batch_len") + 1
    changed = (*OF_THE_SCRIPT[:place], "60000", *OF_THE_SCRIPT[place + 1 :])
    assert lengths == {
        35000: ("-m", MODULE, *OF_THE_SCRIPT),
        60000: ("-m", MODULE, *changed),
    }


def test_the_config_goes_along() -> None:
    jobs = [each for each in rendered("granite-h100").jobs if "as-published" in each.word]
    assert all(list(job.files) == ["granite/config.json"] for job in jobs)
    others = [each for each in rendered("granite-h100").jobs if each not in jobs]
    assert len(others) == len(jobs)
    assert not any(job.files for job in others)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("llama-lora-a40-baseline", "as-published-pod-2x2"),
        ("llama-lora-a40", "as-published-roce-2x2"),
    ],
)
def test_llamas_pods_start_the_articles_script(name: str, word: str) -> None:
    """`torchrun /etc/config/sft.py --config /etc/config/config.yaml`, whose number of nodes and
    ranks the training operator says in PET_ variables, and here the command line."""
    own, words = arguments_of(name, word)
    assert words == ["/etc/config/sft.py", "--config", "/etc/config/config.yaml"]
    options = parser().parse_args(own)
    assert (options.nodes, options.ranks_per_node) == (2, 2)
    (container,) = template_of(name, word)["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in container["env"]}
    told = {
        "HF_HOME": "/mnt/shared/.cache",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "NCCL_DEBUG": "INFO",
    }
    assert {key: variables[key] for key in told} == told
    assert container["image"] == "quay.io/modh/training:py311-cuda121-torch241"
    limits = container["resources"]["limits"]
    assert (limits["nvidia.com/gpu"], limits["cpu"], limits["memory"]) == ("2", "4", "103079215104")


@pytest.mark.parametrize(
    ("name", "word", "mounts"),
    [
        (
            "llama-lora-a40-baseline",
            "as-published-pod-2x2",
            {
                "/etc/config": {"configMap": {"name": "sft"}},
                "/mnt/shared": {"persistentVolumeClaim": {"claimName": "shared"}},
            },
        ),
        (
            "granite-l40s",
            "as-published-pod-8x2",
            {
                "/mnt/storage": {"persistentVolumeClaim": {"claimName": "fine-tuning-storage"}},
                "/mnt/output": {"persistentVolumeClaim": {"claimName": "fine-tuning-output"}},
            },
        ),
        ("granite-l40s", "reference-pod-8x2", {}),
    ],
)
def test_its_pods_alone_mount_the_articles_volumes(
    name: str, word: str, mounts: dict[str, Any]
) -> None:
    spec = template_of(name, word)["spec"]
    volumes = {each.pop("name"): each for each in map(dict, spec["volumes"])}
    (container,) = spec["containers"]
    found = {each["mountPath"]: volumes[each["name"]] for each in container["volumeMounts"]}
    ours = ("/broadgauge", "/dev/shm")
    assert {path: source for path, source in found.items() if not path.startswith(ours)} == mounts
