"""Do words become the trainings that were meant, and is what was silent said?"""

from collections.abc import Sequence
from typing import Any

import pytest

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.predict.asking.combinations import AskedTrainings, expand
from broadgauge.predict.memory.columns import GIB
from broadgauge.predict.memory.fullest_gpu import memory_use
from broadgauge.specs.errors import InputError


def asked(**properties: Sequence[Any]) -> AskedTrainings:
    return expand({"model": ["llama3-8b"], **properties}, shipped_catalog())


def test_every_combination_is_asked_once() -> None:
    found = asked(gpu=["h100-sxm"], network=["pod", "roce-400g"], nodes=[1, 2, 4])
    shapes = [(case.nodes, case.fabric.name) for case in found.cases]
    # One node has no network: it stands for both.
    assert shapes == [
        (1, ""), (2, "pod"), (4, "pod"), (2, "roce-400g"), (4, "roce-400g"),
    ]  # fmt: skip
    assert found.left_out == ()


def test_what_is_silent_is_filled_in_and_told() -> None:
    found = asked(gpu=["h100-sxm"], network=["roce-400g"], nodes=[2])
    (case,) = found.cases
    assert (case.gpus_per_node, case.data_parallel) == (8, 16)
    assert case.strategy == "fsdp"
    assert case.precision == "bf16"
    assert (case.seq_len, case.micro_batch, case.global_batch) == (8192, 1, 16)
    told = "; ".join(found.assumed)
    for words in ("GPUs a node: 8", "strategy fsdp", "8,192 tokens", "global batch 16", "bf16"):
        assert words in told


@pytest.mark.parametrize(
    ("properties", "strategy", "why"),
    [
        # 70B: frozen weights alone are 131 GiB of 48; in 4 bits 34, in 60 % of an 80 GiB GPU.
        ({"model": ["llama3-70b"], "gpu": ["l40s"], "lora": [True]}, "fsdp", "don't fit"),
        ({"model": ["llama3-70b"], "gpu": ["l40s"]}, "fsdp", "don't fit"),
        ({"model": ["llama3-70b"], "gpu": ["h100-sxm"], "lora": [True], "quantized_base": [True]},
         "ddp", "fit in one GPU"),
        # 8B: 128 GB where all of it is trained, 16 where adapters are.
        ({"gpu": ["l40s"], "lora": [True]}, "ddp", "fit in one GPU"),
        ({"gpu": ["l40s"]}, "fsdp", "don't fit"),
        ({"model": ["llama3-70b"], "gpu": ["l40s"], "gpus_per_node": [1]}, "ddp", "nobody"),
    ],
)  # fmt: skip
def test_states_are_those_of_what_is_trained(properties, strategy, why) -> None:
    """Whether they fit decides the strategy, and what is said of it is so."""
    found = asked(**properties)
    (case,) = found.cases
    assert case.strategy == strategy
    (told,) = [words for words in found.assumed if words.startswith("strategy")]
    assert why in told
    if "fit in one" in why:
        assert memory_use(case).states_bytes < 0.6 * case.gpu_entry.memory_gib * GIB


def test_what_is_said_is_not_assumed() -> None:
    found = asked(
        gpu=["v100-sxm-32gb"], gpus_per_node=[4], strategy=["ddp"], precision=["fp16"],
        seq_len=[1024], micro_batch=[2.0], global_batch=[32.0], recompute=["full"],
        gradient_bytes=[2.0],
    )  # fmt: skip
    assert found.assumed == ()
    assert (found.cases[0].micro_batches, found.cases[0].recompute) == (4, "full")


def test_a_silent_micro_batch_of_long_sequences_is_one_of_them() -> None:
    told = "; ".join(asked(gpu=["h100-sxm"], seq_len=[1_000_000_000]).assumed)
    assert "micro-batch 1 (one sequence a GPU and pass" in told
    assert "8,192 tokens" not in told


def test_accumulation_makes_the_batch() -> None:
    (case,) = asked(gpu=["h100-sxm"], micro_batch=[2.0], accumulation=[4]).cases
    assert (case.global_batch, case.micro_batches) == (64, 4)


def test_a_node_brings_its_gpus_and_its_network() -> None:
    found = asked(node=["p5.48xlarge"], nodes=[2])
    (case,) = found.cases
    assert (case.gpu, case.gpus_per_node) == ("h100-sxm", 8)
    assert case.fabric.name == "efa-3200g-p5"
    assert case.name == "p5.48xlarge"
    assert any("efa-3200g-p5" in line for line in found.assumed)


def test_a_measured_rate_stands_beside_the_networks_name() -> None:
    (case,) = asked(gpu=["l40s"], nodes=[2], network=["pod=0.48GB/s"]).cases
    assert case.fabric.measured_node_gbyte_per_s == pytest.approx(0.48)
    assert case.fabric.transport == "overlay"


def test_recomputation_is_taken_where_only_that_fits() -> None:
    found = asked(gpu=["l40s"], gpus_per_node=[8], network=["eth-100g"], nodes=[1, 4])
    assert [case.recompute for case in found.cases] == ["full", "full"]
    assert any("recomputation full" in line for line in found.assumed)
    kept = asked(gpu=["l40s"], gpus_per_node=[8], nodes=[1], recompute=["none"])
    assert kept.cases[0].recompute == "none"


def test_combinations_that_cannot_be_are_counted() -> None:
    found = asked(gpu=["h100-sxm"], tensor_parallel=[1, 2, 3, 5], precision=["bf16"])
    assert [case.tensor_parallel for case in found.cases] == [1, 2]
    assert sum(number for _, number in found.left_out) == 2


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"gpu": ["h100-sxn"]}, "no gpu `h100-sxn`"),
        ({"gpu": ["h100-sxm"], "model": ["lama3-8b"]}, "no model `lama3-8b`"),
        ({"gpu": ["h100-sxm"], "nodes": [2], "network": ["rocky-400g"]}, "no network"),
        ({"gpu": ["h100-sxm"], "nodes": [2], "network": ["pod=0GB/s"]}, "zero bandwidth"),
        ({"gpu": ["h100-sxm"], "nodes": [2], "network": ["tcp-0g"]}, "zero bandwidth"),
        ({"gpu": ["h100-sxm"], "nodes": [2], "network": ["roce-400g=400GB/s"]}, "50 GB/s, and"),
        ({"gpu": ["h100-sxm"], "nodes": [2]}, "2 nodes need a network"),
        ({"gpu": ["h100-sxm"], "tensor_parallel": [3]}, "do not divide by tensor parallel 3"),
        ({"gpu": ["h100-sxm"], "micro_batch": [0.0]}, "micro batch is 0"),
        ({"gpu": ["h100-sxm"], "global_batch": [0.0]}, "global batch is 0"),
        ({"gpu": ["h100-sxm"], "seq_len": [0]}, "seq len is 0"),
        ({"gpu": ["h100-sxm"], "node": ["p5.48xlarge"]}, "a node says which GPU"),
        ({"gpu": ["h100-sxm"], "accumulation": [2], "global_batch": [8.0]}, "the same thing"),
        ({"gpu": ["h100-sxm"], "nodes": list(range(1, 500)), "seq_len": list(range(1, 500))},
         "249,001 combinations"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(properties: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        asked(**properties)
    assert says in caught.value.message


def test_how_gradients_travel_is_told() -> None:
    """fp32, and once a micro-batch: each is worth a factor of two on a slow network."""
    told = "; ".join(asked(gpu=["h100-sxm"], strategy=["fsdp"], accumulation=[4]).assumed)
    assert "gradients reduced in 4 bytes (torch's habit)" in told
    assert "gradients reduced in each micro-batch" in told
    told = "; ".join(asked(gpu=["h100-sxm"], strategy=["fsdp"]).assumed)
    assert "each micro-batch" not in told
    properties = {"gpu": ["h100-sxm"], "strategy": ["fsdp"], "gradient_bytes": [2.0]}
    assert "gradients reduced" not in "; ".join(asked(**properties).assumed)


def test_a_framework_that_nobody_knows_is_told() -> None:
    properties = {"gpu": ["h100-sxm"], "strategy": ["fsdp"]}
    told = "; ".join(asked(**properties, framework=["torchtitn"]).assumed)
    assert "framework torchtitn (not in the catalog" in told
    assert "did you mean `torchtitan`?" in told
    own = "; ".join(asked(**properties, framework=["our-own-trainer"]).assumed)
    assert "framework our-own-trainer (not in the catalog" in own
    for known in ("torch", "nanogpt", "megatron"):
        assert "not in the catalog" not in "; ".join(asked(**properties, framework=[known]).assumed)


def test_nics_a_node_are_assumed_unless_they_are_said() -> None:
    def told(**properties: Any) -> str:
        return "; ".join(asked(nodes=[2], **properties).assumed)

    one = told(gpu=["h100-sxm"], network=["roce-400g"])
    assert "NICs a node: 1 (roce-400g; with eight roce-400g*8)" in one
    assert "NICs a node: 1" in told(gpu=["h100-sxm"], network=["pod=0.48GB/s"])
    assert "NICs" not in told(gpu=["h100-sxm"], network=["roce-400g*8"])
    assert "NICs a node: 8 (as a3-ultragpu-8g has)" in told(node=["a3-ultragpu-8g"])
    alone = asked(gpu=["h100-sxm"], network=["roce-400g"], nodes=[1])
    assert "NICs" not in "; ".join(alone.assumed)
    assert alone.network is not None
    assert alone.network.name == "roce-400g"


def test_what_a_slow_network_carries_is_told_since_it_decides() -> None:
    def told(*networks: str) -> str:
        return "; ".join(asked(gpu=["h100-sxm"], nodes=[2], network=list(networks)).assumed)

    assert "vnic-200g carries 1.2 GB/s a node (4.8 % of its nominal rate" in told("vnic-200g")
    assert "pod carries 650 MB/s a node (`broadgauge catalog show pod`" in told("pod")
    assert "carries" not in told("roce-400g")
    assert "carries" not in told("vnic-200g=3GB/s")


def test_virtual_nics_carry_as_many_times_as_much_as_the_catalog_says() -> None:
    one, eight = asked(gpu=["h100-sxm"], nodes=[2], network=["vnic-200g", "vnic-200g*8"]).cases
    assert one.fabric.stated_node_gbyte_per_s is None
    assert eight.fabric.stated_node_gbyte_per_s == pytest.approx(9.6)


def test_nvlink_that_joins_more_than_a_node_is_said_not_to_count() -> None:
    words = "; ".join(asked(node=["gb200-nvl72"], nodes=[4]).assumed)
    assert "NVLink beyond a node: not counted (it joins 72 GPUs of gb200-nvl72" in words
    whole = "; ".join(asked(node=["gb200-nvl72"], nodes=[1], gpus_per_node=[72]).assumed)
    assert "NVLink beyond" not in whole
