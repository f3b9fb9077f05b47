"""Proves examples/: each is read and planned, and quotes what was published to the digit."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_machine, devices_of

from broadgauge.engine.plan import make_plan
from broadgauge.messages.epochs import steps_per_epoch
from broadgauge.running.experiments import example_names, examples_folder, load
from broadgauge.running.rendering.experiment import ON_KUBERNETES, render_experiment
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.hypothesis import PublishedFigure
from broadgauge.specs.networks.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.text.reading import read_experiment
from broadgauge.specs.text.writing import dump_experiment
from broadgauge.specs.workloads.workload import SyntheticData, TrainWorkload

GPUS = {
    "predicted-steps": 2,
    "gpt2-networks": 2,
    "nccl-settings": 2,
    "paths": 2,
    "two-gpus": 2,
    "granite-h100": 16,
    "granite-l40s": 16,
    "gemma-12b-fsdp": 16,
    "gpt-oss-fsdp": 32,
    "llama-lora-a40": 4,
    "llama-lora-a40-baseline": 4,
}
"""Of the machine that an example is for; the others run on two cores."""
GRANITE_GPUS, CPU = ("h100", "l40s"), ("", "-cpu")
SHORTER = (
    "workloads.reference.data.samples=2112",
    "workloads.reference.packing.effective_batch_size=704",
)

THROUGHPUT_SAMPLES_PER_S = {
    ("granite-l40s", "one node", 1): 2.04,
    ("granite-l40s", "pod", 2): 2.91,
    ("granite-l40s", "pod", 4): 3.73,
    ("granite-l40s", "pod", 8): 5.46,
    ("granite-l40s", "vnic", 2): 3.98,
    ("granite-l40s", "vnic", 4): 7.16,
    ("granite-l40s", "vnic", 8): 12.68,
    ("granite-h100", "one node", 1): 21.34,
    ("granite-h100", "pod", 2): 3.46,
    ("granite-h100", "vnic-nics-1", 2): 12.28,
    ("granite-h100", "sriov-nics-1", 2): 40.36,
    ("granite-h100", "sriov-rdma-nics-1", 2): 40.58,
}
"""Source: Network performance in distributed training (2025-10-16), Performance results."""
ALL_REDUCE_S = {
    ("nvlink", "nccl"): 0.02,
    ("pcie", "nccl"): 0.10,
    ("hdr-like", "nccl"): 0.12,
    ("ethernet-25g", "nccl"): 0.88,
    ("hdr-like", "gloo"): 1.70,
    ("ethernet-25g", "gloo"): 1.65,
}
"""Source: The Impact of GPU Networking (Part 1), 2025-03-14, Communication Benchmark."""
EPOCH_S = {"1": 157.60, "2": 62.96, "3": 62.55, "4-1": 498.37, "5-3": 266.83, "6-2": 406.12}
"""The second epoch of e-15-*. Source: the same article, Experiments."""
RATIOS = {
    "e-15-3 over e-15-2": EPOCH_S["3"] / EPOCH_S["2"],
    "e-15-2 over e-15-1": EPOCH_S["1"] / EPOCH_S["2"],  # of throughputs
    "e-15-6-2 over e-15-5-3": EPOCH_S["6-2"] / EPOCH_S["5-3"],
    "L40S, 8 nodes, vNIC over pod": 12.68 / 5.46,
    "H100, 2 nodes, SR-IOV over vNIC": 40.36 / 12.28,
    "H100, 2 nodes, SR-IOV with RDMA over SR-IOV": 40.58 / 40.36,
    "H100, 2 nodes on the pod network over 1 node": 3.46 / 21.34,
    "Gemma 3 12B, Ethernet over InfiniBand": 39.8 / 4.4,
    "GPT-OSS-120B, Ethernet over InfiniBand": 10,  # in words
    "pod network over macvlan TCP": 5.0 / 2.5,
    "pod network over GPUDirect RoCE": 5.0 / 1.6667,
}
STEPS_S = {
    "4-1": EPOCH_S["4-1"] / 2216,
    "5-3": EPOCH_S["5-3"] / 1108,
    "6-2": EPOCH_S["6-2"] / 1108,
}
GEMMA_S = {
    ("step_time_s", "ethernet"): 39.8,
    ("step_time_s", "infiniband"): 4.4,
    ("training_time_s", "ethernet"): 53 * 60,
    ("training_time_s", "infiniband"): 7 * 60,
}
"""Source: Network and Storage Benchmarks for LLM Training on the Cloud (2025-09-11), the table of
Network benchmarks."""
PEAK_MIB = {
    "1": 3687.91,
    "2": 3693.55,
    "3": 3696.01,
    "4-1": 24258.05,
    "5-3": 24258.38,
    "6-2": 24297.53,
}
ESTIMATES_S = {
    (True, "NVLink"): 254.42,
    (True, "HDR"): 374.79,
    (False, "NVLink"): 271.35,
    (False, "HDR"): 382.15,
}
"""By the nominal rate or not, and the path."""


@cache
def experiment(name: str) -> Experiment:
    return load(name, []).experiment


@cache
def planned(name: str) -> Plan:
    gpus = GPUS.get(name, 0)
    return make_plan(experiment(name), devices_of(a_machine(gpus=gpus, cores=64 if gpus else 2)))


@cache
def everything(name: str) -> Plan:
    """With what `skip_if` leaves out."""
    gpus = GPUS.get(name, 0)
    whole = experiment(name).model_copy(update={"skip_if": ()})
    return make_plan(whole, devices_of(a_machine(gpus=gpus, cores=64 if gpus else 2)))


def number_of(figure: PublishedFigure) -> str:
    """Of `e-15-4-1, GPT-2 Large`: `4-1`."""
    return figure.label.split(",")[0].removeprefix("e-15-")


def figures() -> list[tuple[str, PublishedFigure]]:
    return [(name, figure) for name in example_names() for figure in experiment(name).published]


@pytest.mark.parametrize("name", example_names())
def test_an_example_is_read_planned_and_stored(name: str) -> None:
    read = experiment(name)
    assert read.name == name
    assert read.description
    assert read_experiment(dump_experiment(read), name) == read
    plan = planned(name)
    assert plan.cases
    idle = [note for note in plan.notes if " matches " in note or "run once" in note]
    assert [note for note in idle if "PCIe 4.0" not in note] == []  # needs NVLink off: left out


@pytest.mark.parametrize("name", example_names())
def test_an_example_uses_the_device_it_says(name: str) -> None:
    devices = {case.device for case in planned(name).cases}
    assert devices == ({"cuda"} if name in GPUS else {"cpu"})


@pytest.mark.parametrize("name", sorted(set(example_names()) - set(GPUS)))
def test_what_needs_no_gpu_takes_minutes(name: str) -> None:
    limit_s = 1800 if name == "own-script" else 720  # a command's time is a guess
    assert planned(name).expected_s < limit_s


def test_every_figure_quotes_what_was_published() -> None:
    checked = 0
    for name, figure in figures():
        case = next(case for case in everything(name).cases if figure.cases.matches(case))
        if figure.over is not None:
            (value,) = [v for label, v in RATIOS.items() if figure.label.startswith(label)]
            assert figure.value == float(f"{value:.5g}") or figure.value == round(value, 3)
        elif figure.metric == "samples_per_s":
            key = (name.removesuffix("-cpu"), case.network_name, case.nodes)
            assert figure.value == THROUGHPUT_SAMPLES_PER_S[key]
        elif name.startswith("gemma"):
            assert figure.value == GEMMA_S[figure.metric, case.plain_network_name]
        elif figure.metric == "latency_s":
            assert figure.value == ALL_REDUCE_S[case.plain_network_name, case.backend]
        elif figure.metric == "peak_memory_bytes":
            assert figure.value == round(PEAK_MIB[number_of(figure)] * 2**20)
        elif figure.label.startswith("estimate by "):
            assert figure.metric == "epoch_time_s"
            path = "NVLink" if "NVLink" in figure.label else "HDR"
            assert figure.value == ESTIMATES_S["nominal" in figure.label, path]
        elif figure.metric == "epoch_time_s":
            assert figure.value == EPOCH_S[number_of(figure)]
        else:
            assert figure.metric == "step_time_s"
            assert figure.value == round(STEPS_S[number_of(figure)], 5)
        checked += 1
    assert checked >= len(THROUGHPUT_SAMPLES_PER_S) + len(ALL_REDUCE_S) + len(STEPS_S)


def test_every_published_row_has_its_case() -> None:
    """RDMA's, too, though what is run is none."""
    throughputs = {
        (name, next(c.network_name for c in planned(name).cases if figure.cases.matches(c)))
        for name, figure in figures()
        if figure.metric == "samples_per_s" and figure.over is None
    }
    assert {(name, network) for name, network, _ in THROUGHPUT_SAMPLES_PER_S} <= throughputs
    labels = " ".join(figure.label for _, figure in figures())
    assert all(f"e-15-{number}, " in labels for number in EPOCH_S)
    mine = [figure for name, figure in figures() if name == "gpt2-networks"]
    of_epochs = [each for each in mine if each.metric == "epoch_time_s"]
    assert len(of_epochs) == len(EPOCH_S) + len(ESTIMATES_S)
    assert sum(each.metric == "peak_memory_bytes" for each in mine) == len(PEAK_MIB)


def test_gpt2s_epochs_have_the_articles_steps() -> None:
    plan = planned("gpt2-networks")
    trainings = [case for case in plan.cases if isinstance(case.workload, TrainWorkload)]
    steps = {
        case.world_size: -(-case.workload.epoch_samples // (16 * case.world_size))
        for case in trainings
        if isinstance(case.workload, TrainWorkload) and case.workload.epoch_samples
    }
    assert steps == {1: 2216, 2: 1108}


def test_gpt2s_models_have_the_articles_sizes() -> None:
    workloads = {w.name: w for w in experiment("gpt2-networks").workloads}
    small, large = workloads["gpt2-85m"], workloads["gpt2-large-708m"]
    assert isinstance(small, TrainWorkload)
    assert isinstance(large, TrainWorkload)
    # the article's figures are rounded, and leave out embeddings: some 1 % here
    assert small.model.parameters == pytest.approx(85e6, rel=0.01)
    assert large.model.parameters == pytest.approx(708e6, rel=0.01)
    assert {small.batch_per_rank, large.batch_per_rank} == {16}
    assert {small.dtype, large.dtype, small.gradient_dtype} == {"bfloat16"}


@pytest.mark.parametrize("name", ["granite-h100", "granite-l40s"])
def test_granite_trains_what_the_articles_config_says(name: str) -> None:
    """But for max_batch_len on GPUs of 48 GB, which the article varied."""
    config = json.loads((examples_folder() / "granite" / "config.json").read_text())
    read = experiment(name)
    train = read.workloads[0]
    assert isinstance(train, TrainWorkload)
    assert isinstance(train.data, SyntheticData)
    assert train.packing is not None
    assert train.model.shape_of == "granite-3.1-8b"
    assert not train.model.is_twin
    assert train.model.parameters == pytest.approx(8.17e9, rel=0.01)
    assert (train.strategy, config["fsdp_sharding_strategy"]) == ("hsdp", "HYBRID_SHARD")
    assert train.cpu_offload is config["cpu_offload_params"] is config["cpu_offload_optimizer"]
    assert train.packing.effective_batch_size == config["effective_batch_size"]
    tokens = {"granite-h100": config["max_batch_len"], "granite-l40s": 24_000}
    assert train.packing.max_batch_len == tokens[name]
    assert (train.learning_rate, read.seed) == (config["learning_rate"], config["seed"])
    assert (train.data.samples, train.data.mean_length) == (9872, 1483)


@pytest.mark.parametrize("name", [f"granite-{gpu}{cpu}" for gpu in GRANITE_GPUS for cpu in CPU])
def test_granites_epochs_are_measured_whole(name: str) -> None:
    """3 steps: the article's 3,840, 3,840 and 2,192 samples, or as many at toy scale."""
    train = experiment(name).workloads[0]
    assert isinstance(train, TrainWorkload)
    assert isinstance(train.data, SyntheticData)
    assert train.packing is not None
    assert steps_per_epoch(train.data.samples, train.packing.effective_batch_size) == 3
    assert train.warm_up_steps == train.block_steps == 3
    assert train.steps == 6


def test_pods_of_granite_l40s_fit_into_the_articles_nodes() -> None:
    """240 GiB; with a copy for steps without communication they would not."""
    for flag, fits in (("false", True), ("true", False)):
        key = "workloads.reference.communication_off"
        found = render_experiment(load("granite-l40s", [ON_KUBERNETES, f"{key}={flag}"]))
        asked = [
            int(container["resources"]["requests"]["memory"])
            for each in found.rendered.objects
            if each["kind"] == "PyTorchJob" and "reference" in each["metadata"]["name"]
            for container in each["spec"]["pytorchReplicaSpecs"]["Master"]["template"]["spec"][
                "containers"
            ]
        ]
        assert asked
        assert all((size < 0.95 * 240 * 2**30) is fits for size in asked)


def test_gemma_trains_what_the_articles_script_says() -> None:
    """80 steps are the article's. Source: skypilot-org/skypilot, e2e_network.yaml, e2e_network.py
    and fsdp2.yaml of examples/training_network_storage_benchmarks."""
    (train,) = experiment("gemma-12b-fsdp").workloads
    assert isinstance(train, TrainWorkload)
    assert train.model.shape_of == "gemma3-12b"
    assert not train.model.is_twin
    assert (train.strategy, train.reshard_after_forward) == ("fsdp", True)
    assert (train.activation_checkpointing, train.attention) == ("full", "eager")
    assert (train.batch_per_rank, train.model.seq_len, train.learning_rate) == (4, 1024, 2e-4)
    assert train.epoch_samples == 80 * 16 * train.batch_per_rank


def test_l40s_has_as_many_nics_as_nodes_and_a_tunnel_under_the_pods() -> None:
    networks: dict[tuple[str, int], Any] = {
        (case.plain_network_name, case.nodes): case.link for case in planned("granite-l40s").cases
    }
    assert [networks["vnic", nodes].num_nics for nodes in (2, 4, 8)] == [2, 4, 8]
    assert all(networks["pod", nodes].overlay == "vxlan" for nodes in (2, 4, 8))
    assert all(networks["pod", nodes].num_nics == 1 for nodes in (2, 4, 8))


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("granite-h100", ["cluster.shapes=[1x4, 2x4]"]),
        ("gemma-12b-fsdp", ["cluster.shapes=[2x4]", "workloads.reference.model.layers=12"]),
        ("granite-l40s", ["cluster.shapes=[1x2, 2x2, 4x2]"]),
        ("gpt-oss-fsdp", ["cluster.shapes=[4x2]", "workloads.reference.model.layers=4"]),
        ("granite-h100", [SHORTER[0], SHORTER[1], "workloads.reference.model.layers=10"]),
        ("granite-l40s", [SHORTER[0], SHORTER[1], "workloads.reference.model.layers=10"]),
    ],
)
def test_an_article_at_full_scale_says_how_it_is_smaller(name: str, flags: list[str]) -> None:
    path = Path(__file__).parents[2] / "examples" / f"{name}.yaml"
    comment = " ".join(path.read_text().split("name: ")[0].replace("\n#", "").split())
    for flag in flags:
        key, _, value = flag.partition("=")
        assert f"--set {flag}" in comment or f"--set '{key}={value}'" in comment
    machine = a_machine(gpus=8 if "shapes" in flags[0] else 16, cores=64)
    plan = make_plan(load(name, flags).experiment, devices_of(machine))
    assert {case.device for case in plan.cases} == {"cuda"}
    # Eight servers of two GPUs are more than one has: their figures have no case.
    idle = [note for note in plan.notes if " matches " in note and "8 nodes" not in note]
    assert idle == []


def test_toy_scale_keeps_the_ratio_of_the_rates() -> None:
    """gpt2-networks-cpu: 11.6 and 1.62 GB/s, both divided by about 46."""
    rates = {
        network.name: network.rate_gbps
        for network in experiment("gpt2-networks-cpu").networks
        if isinstance(network, Network)
    }
    assert rates["hdr-like"] is not None
    assert rates["ethernet-25g"] is not None
    assert 8 * 11.6 / rates["hdr-like"] == pytest.approx(46, abs=1)
    assert 8 * 1.62 / rates["ethernet-25g"] == pytest.approx(46, abs=1)
