"""Do an experiment's trainings become the cases that its file means?"""

import pytest

from broadgauge.catalog.catalog import shipped_catalog
from broadgauge.predict.asking.combinations import AskedTrainings
from broadgauge.predict.asking.experiment_cases import Replacements, experiment_cases
from broadgauge.specs.errors import InputError
from broadgauge.specs.text.reading import read_experiment

TEXT = """
name: example
cluster: {shapes: [1xauto, 2x4, 2xall]}
networks:
  - {name: slow, rate_gbps: 1, mtu_bytes: 9000}
  - {name: fast, rate_gbps: 10, nics_per_node: 2, mtu_bytes: 9000}
workloads:
  - {kind: collectives}
  - kind: train
    networks: [fast]
    accumulation: 2
    gradient_dtype: bfloat16
    model: {layers: 12, hidden: 768, heads: 12, vocabulary: 50304, seq_len: 1024}
    dtype: bfloat16
  - kind: train
    name: other
    strategy: fsdp
    model: {layers: 2, hidden: 128, heads: 4}
skip_if:
  - {workload: other, nodes: 1, reason: too small}
"""


def cases(text: str = TEXT, instead: Replacements | None = None) -> AskedTrainings:
    experiment = read_experiment(text, "example.yaml", ())
    return experiment_cases(experiment, ["h100-sxm"], instead or Replacements(), shipped_catalog())


def test_shapes_networks_and_rules_are_those_of_the_file() -> None:
    found = cases()
    seen = [(c.name, c.nodes, c.gpus_per_node, c.fabric.name) for c in found.cases]
    # `auto` is a whole node of 8 GPUs; `2xall` the same 8 ranks on two nodes, which 2x4 is too.
    assert seen == [
        ("train", 1, 8, ""),
        ("train", 2, 4, "fast"),
        ("other", 2, 4, "slow"),
        ("other", 2, 4, "fast"),
    ]
    assert ("too small", 1) in found.left_out
    assert any("`collectives` is no training" in reason for reason, _ in found.left_out)


def test_a_workloads_settings_arrive() -> None:
    first = cases().cases[0]
    assert (first.strategy, first.precision, first.gradient_bytes) == ("ddp", "bf16", 2)
    assert (first.micro_batches, first.seq_len) == (2, 1024)
    assert first.model.layers == 12
    fast = cases().cases[1].fabric
    assert fast.node_gbps == 20
    assert fast.measured_node_gbyte_per_s == pytest.approx(2.5 * (9000 - 52) / (9000 + 14))


def test_flags_take_the_place_of_the_cluster() -> None:
    instead = Replacements(nodes=(4,), gpus_per_node=(2,), networks=("roce-400g", "pod=0.5GB/s"))
    seen = [
        (c.name, c.nodes, c.gpus_per_node, c.fabric.transport) for c in cases(TEXT, instead).cases
    ]
    assert seen == [
        ("train", 4, 2, "roce"),
        ("train", 4, 2, "overlay"),
        ("other", 4, 2, "roce"),
        ("other", 4, 2, "overlay"),
    ]


def test_an_experiment_without_training_is_refused() -> None:
    text = "name: x\nnetworks: [{name: n, rate_gbps: 1}]\nworkloads: [{kind: collectives}]\n"
    with pytest.raises(InputError, match="there is no training to predict"):
        cases(text)


def test_packed_samples_are_left_out_by_name() -> None:
    text = (
        "name: x\nnetworks: [{name: n, rate_gbps: 1}]\nworkloads:\n  - kind: train\n"
        "    data: {samples: 9, mean_length: 8}\n"
        "    packing: {max_batch_len: 64, effective_batch_size: 4}\n"
    )
    with pytest.raises(InputError, match="`train` has batches by a budget of tokens"):
        cases(text)


def test_nics_and_tokens_are_those_of_the_file() -> None:
    found = cases()
    assert "NICs a node: 2 (fast)" in found.assumed
    assert "NICs a node: 1 (slow)" in found.assumed
    assert found.tokens is None
    assert cases(TEXT + "cost: {usd_per_gpu_hour: 2, tokens: 300B}").tokens == 300_000_000_000
    named = cases(instead=Replacements(networks=("roce-400g*8",), nodes=(2,)))
    assert "NICs a node: 8 (roce-400g*8)" in named.assumed
    assert named.network is not None
    assert named.network.name == "roce-400g*8"
