"""Proves specs/case.py and the formulas of networks and workloads."""

import pytest

from broadgauge.specs.case import Case
from broadgauge.specs.networks.network import Network, payload_rate_gbps
from broadgauge.specs.workloads.workload import GptModel, LlamaModel, TrainWorkload


def make_case(**changes: object) -> Case:
    values: dict[str, object] = {
        "workload": TrainWorkload(kind="train"),
        "network": Network(name="pod-like", rate_gbps=0.2),
        "nodes": 2,
        "ranks_per_node": 1,
        "device": "cpu",
        "backend": "gloo",
        "environment": {},
    }
    return Case.model_validate(values | changes)


def test_labels_do_not_change_the_key_and_everything_else_does() -> None:
    key = make_case().key
    assert make_case(network=Network(name="other", rate_gbps=0.2, description="x")).key == key
    assert make_case(workload=TrainWorkload(kind="train", name="t2")).key == key
    different = {
        make_case(network=Network(name="pod-like", rate_gbps=0.3)).key,
        make_case(network=None).key,
        make_case(nodes=3).key,
        make_case(workload=TrainWorkload(kind="train", steps=13)).key,
        make_case(environment={"NCCL_ALGO": "Ring"}).key,
    }
    assert len(different) == 5
    assert key not in different


def test_a_key_survives_being_stored() -> None:
    case = make_case()
    assert Case.model_validate_json(case.model_dump_json()).key == case.key


def test_one_of_one_expert_is_the_same_case() -> None:
    """Records of a time when it was the default say it."""
    keys = {
        make_case(workload=TrainWorkload(kind="train", model=LlamaModel(kind="llama", **given))).key
        for given in ({}, {"experts": 1, "experts_per_token": 1}, {"experts_per_token": None})
    }
    assert len(keys) == 1


@pytest.mark.parametrize(("mtu", "share"), [(1500, 0.9564), (9000, 0.9927)])
def test_payload_share_of_the_line_rate(mtu: int, share: float) -> None:
    assert payload_rate_gbps(1.0, mtu) == pytest.approx(share, abs=5e-5)


def test_gpt2_small_has_its_published_size() -> None:
    # 124,439,808 parameters. Source: the GPT-2 124M checkpoint's configuration, counted.
    model = GptModel(layers=12, hidden=768, heads=12, vocabulary=50_257, seq_len=1024)
    assert model.parameters == 124_439_808
