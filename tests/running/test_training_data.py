"""Is a training's missing data found before any rank starts?"""

import importlib.util
import os

import pytest
from tests.merging.outcomes import make_case

from broadgauge.running.kinds.training import TrainingInRunning
from broadgauge.running.what_is_started import check_files
from broadgauge.specs.errors import InputError
from broadgauge.specs.workloads.workload import GptModel, HubDataset, JsonLines, TrainWorkload


def check(folder, **changes):
    case = make_case(TrainWorkload(kind="train", **changes))
    check_files([case], folder, ("emulated",), is_prepared=False)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"text": "data.jsnl"}, "`text` of train"),
        ({"data": JsonLines(jsonl="data.jsnl")}, "`data.jsonl` of train"),
    ],
)
def test_a_file_that_is_not_there_is_named_with_the_nearest(tmp_path, changes, what):
    (tmp_path / "data.jsonl").write_text("")
    with pytest.raises(InputError) as refused:
        check(tmp_path, **changes)
    assert str(refused.value).startswith(f"{what}: no file `data.jsnl` in {tmp_path}")
    assert refused.value.hint == "did you mean `data.jsonl`?"


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        check(tmp_path, text=".")


def test_a_fifo_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(InputError, match="fifo is a FIFO, no file"):
        check(tmp_path, text="fifo")


def test_files_that_are_there_pass(tmp_path):
    (tmp_path / "data.jsonl").write_text("")
    check(tmp_path, text="data.jsonl")
    check(tmp_path, data=JsonLines(jsonl=str(tmp_path / "data.jsonl")))
    check(tmp_path)


def test_the_library_that_is_missing_is_named_with_its_installation(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError) as refused:
        check(tmp_path, data=HubDataset(dataset="wikitext"))
    assert refused.value.hint == "pip install 'broadgauge[data]'"


def held_bytes(nodes, ranks_per_node, **changes):
    """Of a node: by what is held."""
    model = GptModel(layers=8, hidden=1024, heads=8)
    train = TrainWorkload(kind="train", model=model, **changes)
    case = make_case(train, nodes=nodes, ranks_per_node=ranks_per_node, device="cuda")
    return {part.what: part.size_bytes for part in TrainingInRunning(train).held_on_host(case)}


def test_a_node_holds_a_replica_of_hsdp_and_a_share_of_fsdp():
    fsdp = held_bytes(4, 2, strategy="fsdp")
    hsdp = held_bytes(4, 2, strategy="hsdp")
    (copy,) = (name for name in fsdp if name.startswith("a copy of weights"))
    assert hsdp[copy] == pytest.approx(4 * fsdp[copy], rel=0.01)
    assert held_bytes(4, 2, strategy="hsdp", shard_ranks=4)[copy] == pytest.approx(
        2 * fsdp[copy], rel=0.01
    )


def test_what_is_offloaded_is_held_by_the_host():
    """16 bytes a parameter: weights, gradients and two moments. What is frozen has no copy."""
    parameters = GptModel(layers=8, hidden=1024, heads=8).parameters
    whole = held_bytes(2, 4, strategy="hsdp", cpu_offload=True)
    assert whole["model and optimizer, offloaded"] == pytest.approx(16 * parameters, rel=0.01)
    kept = held_bytes(2, 4, strategy="hsdp")
    assert "model and optimizer, offloaded" not in kept
    (copy,) = (name for name in kept if name.startswith("a copy of weights"))
    assert kept[copy] == pytest.approx(12 * parameters, rel=0.01)
    assert held_bytes(2, 4, strategy="hsdp", lora={"rank": 2})[copy] < kept[copy] / 20


def test_made_up_samples_are_held_while_they_are_drawn():
    samples = {"samples": 1_000_000, "mean_length": 20}
    found = held_bytes(2, 4, data=samples)
    assert found["made-up samples"] == pytest.approx(4 * (4 + 2) * 20_000_000, rel=0.01)
    assert "text" not in found


def test_a_prepared_set_that_is_not_there_is_said_before_the_run(tmp_path):
    with pytest.raises(InputError, match=r"`data.prepared` of train: `.*nowhere` is no folder"):
        check(tmp_path, data={"prepared": "nowhere"})
