"""Proves examples/: each is read and planned, and quotes what was published to the digit."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.engine.making import a_machine, devices_of

from broadgauge.catalog.articles import articles
from broadgauge.catalog.loading import shipped_text
from broadgauge.catalog.models import find_model
from broadgauge.engine.plan import make_plan
from broadgauge.platforms.kubernetes.devices import kubernetes_devices
from broadgauge.platforms.skypilot.devices import skypilot_devices
from broadgauge.running.experiments import example_names, load
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.hypothesis import PublishedFigure
from broadgauge.specs.network import Network
from broadgauge.specs.plan import Plan
from broadgauge.specs.reading import read_experiment
from broadgauge.specs.workload import SynthesizedData, TrainWorkload
from broadgauge.specs.writing import dump_experiment
from broadgauge.specs.yaml_source import parse_yaml

GPUS = {
    "predicted-steps": 2,
    "gpt2-networks": 2,
    "nccl-settings": 2,
    "paths": 2,
    "two-gpus": 2,
    "granite-h100": 16,
    "granite-l40s": 16,
    "granite-l40s-instructlab": 16,
    "llama-lora-a40-baseline": 4,
    "llama-lora-a40": 4,
    "llama-lora-trl": 4,
    "llama-lora-batch": 4,
    "llama-lora-kernels": 4,
    "gpt2-lightning": 2,
    "frameworks-two-gpus": 2,
    "checkpoints-two-gpus": 2,
    "gemma-networks": 16,
    "gpt-oss-networks": 32,
    "gemma-skypilot": 16,
    "gpt-oss-skypilot": 32,
    "skypilot-storages": 16,
    "skypilot-best-storages": 16,
}
"""Of the machine that an example is for; the others run on two cores."""
GUESSED = ("own-script", "gpt2-lightning-cpu")
"""Of commands, whose time is a guess."""
ON_ONE_SERVER = {
    "granite-h100": "cluster.shapes=[1x4, 2x4]",
    "granite-l40s": "cluster.shapes=[1x1, 2x1, 4x1, 8x1]",
}
"""What the file says to set on a server of 8 GPUs."""
NEEDS_MORE = ("PCIe 4.0", "rdma", "RDMA", "roce", "RoCE")
"""In a note that a selector matches nothing: it needs NVLink off, or a cluster with RDMA."""

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
    "H100, 2 nodes on the pod network over 1 node": 3.46 / 21.34,
    "pod network over macvlan TCP": 5.0 / 2.5,
    "pod network over GPUDirect RoCE": 5.0 / (1 + 40 / 60),
    "Gemma 3 12B, 10 Gbit/s Ethernet over InfiniBand": 39.8 / 4.4,
}
EPOCHS = {each.id: each for each in articles().epoch2_seconds}
ESTIMATES = articles().estimates_net1[::-1]
"""By the measured all-reduce, by the nominal rate."""
STEPS_S = {
    "e-15-4-1": EPOCH_S["4-1"] / 2216,
    "e-15-5-3": EPOCH_S["5-3"] / 1108,
    "e-15-6-2": EPOCH_S["6-2"] / 1108,
}


ROOT = Path(__file__).parents[2]


@cache
def experiment(name: str) -> Experiment:
    return load(name, []).experiment


@cache
def planned(name: str) -> Plan:
    if experiment(name).platform == "skypilot":
        return make_plan(experiment(name), {"skypilot": skypilot_devices(experiment(name))})
    gpus = GPUS.get(name, 0)
    return make_plan(experiment(name), devices_of(a_machine(gpus=gpus, cores=64 if gpus else 2)))


@cache
def everything(name: str) -> Plan:
    """With what `skip_if` leaves out; on a cluster where it has a face for one, for RDMA."""
    if experiment(name).platform == "skypilot":
        return planned(name)
    gpus = GPUS.get(name, 0)
    whole = experiment(name).model_copy(update={"skip_if": ()})
    if has_kubernetes_face(name):
        on_cluster = whole.model_copy(update={"platform": ("kubernetes",)})
        return make_plan(on_cluster, {"kubernetes": kubernetes_devices(on_cluster)})
    return make_plan(whole, devices_of(a_machine(gpus=gpus, cores=64 if gpus else 2)))


def has_kubernetes_face(name: str) -> bool:
    networks = experiment(name).networks
    return any(isinstance(each, Network) and each.kubernetes for each in networks)


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
    assert [note for note in idle if not any(word in note for word in NEEDS_MORE)] == []


@pytest.mark.parametrize("name", example_names())
def test_an_example_uses_the_device_it_says(name: str) -> None:
    devices = {case.device for case in planned(name).cases}
    assert devices == ({"cuda"} if name in GPUS else {"cpu"})


@pytest.mark.parametrize("name", sorted(set(example_names()) - set(GPUS)))
def test_what_needs_no_gpu_takes_minutes(name: str) -> None:
    limit_s = 1800 if name in GUESSED else 720
    assert planned(name).expected_s < limit_s


def test_every_figure_quotes_what_was_published() -> None:
    checked = 0
    for name, figure in figures():
        if name.endswith("-cpu") and any(word in figure.label for word in NEEDS_MORE[1:]):
            continue  # on cores there is no RDMA, and the note of the plan says so
        case = next(case for case in everything(name).cases if figure.cases.matches(case))
        if figure.over is not None:
            (value,) = [v for label, v in RATIOS.items() if figure.label.startswith(label)]
            assert figure.value == float(f"{value:.5g}") or figure.value == round(value, 3)
        elif figure.metric == "samples_per_s":
            article = name.removesuffix("-cpu").removesuffix("-instructlab")
            key = (article, case.network_name, case.nodes)
            assert figure.value == THROUGHPUT_SAMPLES_PER_S[key]
        elif figure.metric == "latency_s":
            assert figure.value == ALL_REDUCE_S[case.plain_network_name, case.backend]
        elif figure.metric == "peak_memory_bytes":
            epoch = EPOCHS[figure.label.split(",")[0]]
            assert figure.value == round(epoch.peak_memory_mib * 2**20)
        elif figure.label.startswith("estimate "):
            assert figure.metric == "epoch_time_s"
            estimate = ESTIMATES["nominal rate" in figure.label]
            path = estimate.nvlink3 if "NVLink" in figure.label else estimate.hdr
            assert figure.value == path.total_s
        elif figure.metric == "epoch_time_s":
            assert figure.value == EPOCH_S[figure.label.split(",")[0].removeprefix("e-15-")]
        else:
            assert figure.metric == "step_time_s"
            assert figure.value == round(STEPS_S[figure.label.split(",")[0]], 5)
        checked += 1
    assert checked >= len(THROUGHPUT_SAMPLES_PER_S) + len(ALL_REDUCE_S) + len(STEPS_S)


@pytest.mark.parametrize("name", ON_ONE_SERVER)
def test_one_server_of_eight_gpus_is_enough_with_fewer_a_node(name: str) -> None:
    """As the file's comment says."""
    assert f"--set '{ON_ONE_SERVER[name]}'" in (ROOT / f"examples/{name}.yaml").read_text()
    smaller = load(name, [ON_ONE_SERVER[name]]).experiment
    plan = make_plan(smaller, devices_of(a_machine(gpus=8, cores=64)))
    assert {case.nodes for case in plan.cases} == {case.nodes for case in planned(name).cases}


def test_every_published_row_has_its_case() -> None:
    throughputs = {
        (name, next(c.network_name for c in everything(name).cases if figure.cases.matches(c)))
        for name, figure in figures()
        if name in GPUS and figure.metric == "samples_per_s" and figure.over is None
    }
    assert {(name, network) for name, network, _ in THROUGHPUT_SAMPLES_PER_S} <= throughputs
    labels = " ".join(figure.label for _, figure in figures())
    for number in EPOCH_S:
        assert f"e-15-{number}, " in labels
    mine = [figure for name, figure in figures() if name == "gpt2-networks"]
    of_epochs = [each for each in mine if each.metric == "epoch_time_s"]
    assert len(of_epochs) == len(EPOCH_S) + 4  # two estimates of two paths
    assert sum(each.metric == "peak_memory_bytes" for each in mine) == len(EPOCH_S)


def test_gpt2s_models_have_the_articles_sizes() -> None:
    workloads = {w.name: w for w in experiment("gpt2-networks").workloads}
    small, large = workloads["gpt2-85m"], workloads["gpt2-large-708m"]
    assert isinstance(small, TrainWorkload)
    assert isinstance(large, TrainWorkload)
    for model, name, published in (
        (small.model, "gpt2-85m", 85_000_000),
        (large.model, "gpt2-708m", 708_000_000),
    ):
        assert (model.shape_of, model.vocabulary) == (name, 65)
        # minGPT's positions are 128, and the sequences here 256 tokens
        counted = model.parameters - 128 * model.hidden
        assert counted == find_model(name).params
        assert counted // 10**6 * 10**6 == published
    assert {small.batch_per_rank, large.batch_per_rank} == {16}
    assert {small.dtype, large.dtype, small.gradient_dtype} == {"bfloat16"}


def published_training(name: str) -> dict[str, Any]:
    """As catalog/articles.yaml has it, keys that no code reads included."""
    told: dict[str, Any] = parse_yaml(shipped_text("articles"), "articles.yaml").data
    found: dict[str, Any] = told["workloads"][name]
    return found


GRANITE = published_training("granite-8b-ilab")
LORA = published_training("llama31-8b-lora-gsm8k")


@pytest.mark.parametrize("name", ["granite-h100", "granite-l40s"])
def test_granite_is_trained_with_the_articles_values(name: str) -> None:
    (train,) = experiment(name).workloads
    assert isinstance(train, TrainWorkload)
    assert train.model.shape_of == "granite-3.1-8b"
    assert train.model.parameters == pytest.approx(8.17e9, rel=0.01)
    assert (train.strategy, train.cpu_offload, train.dtype) == ("hsdp", True, "bfloat16")
    assert isinstance(train.data, SynthesizedData)
    assert train.data.synthesized.samples == GRANITE["samples"]
    assert train.data.synthesized.mean_tokens == GRANITE["mean_tokens_per_sample"]
    assert train.packing is not None
    assert train.packing.max_batch_len == GRANITE["max_batch_len_tokens"]
    assert train.packing.effective_batch_size == GRANITE["effective_batch_size_samples"]
    assert train.learning_rate == GRANITE["learning_rate"]
    assert train.learning_rate_warm_up_steps == GRANITE["num_warmup_steps"]
    assert (train.epochs, experiment(name).seed) == (GRANITE["num_epochs"], GRANITE["seed"])


def test_llama_is_trained_with_the_articles_values() -> None:
    (train,) = experiment("llama-lora-a40").workloads
    assert isinstance(train, TrainWorkload)
    assert train.model.shape_of == "llama3-8b"
    assert (train.strategy, train.activation_checkpointing) == ("fsdp", "full")
    assert train.lora is not None
    lora = LORA["lora"]
    assert (train.lora.rank, train.lora.alpha) == (lora["r"], lora["alpha"])
    assert train.lora.dropout_ratio == lora["dropout"]
    assert len(train.lora.targets or ()) == len(lora["targets"])
    assert train.dtype == LORA["dtype"]
    assert train.batch_per_rank == LORA["per_device_train_batch_size"]
    assert (train.epochs, train.learning_rate) == (LORA["num_train_epochs"], LORA["learning_rate"])
    assert train.learning_rate_warm_up_steps == LORA["warmup_steps"]


@pytest.mark.parametrize("name", ["granite-h100", "granite-l40s", "llama-lora-a40"])
def test_a_toy_twin_says_the_same_keys(name: str) -> None:
    """Smaller, and nothing else is another training."""
    (whole,), (toy,) = experiment(name).workloads, experiment(f"{name}-cpu").workloads
    scale = {"model", "data", "packing", "batch_per_rank", "epoch_samples", "dtype", "steps"}
    assert whole.model_dump(exclude=scale) == toy.model_dump(exclude=scale)
    assert {key for key in scale if getattr(whole, key) is None} == {
        key for key in scale if getattr(toy, key) is None
    }


def test_l40s_has_as_many_nics_as_nodes_and_a_tunnel_under_the_pods() -> None:
    networks: dict[tuple[str, int], Any] = {
        (case.plain_network_name, case.nodes): case.link for case in planned("granite-l40s").cases
    }
    assert [networks["vnic", nodes].num_nics for nodes in (2, 4, 8)] == [2, 4, 8]
    assert all(networks["pod", nodes].overlay == "vxlan" for nodes in (2, 4, 8))
    assert all(networks["pod", nodes].num_nics == 1 for nodes in (2, 4, 8))


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
