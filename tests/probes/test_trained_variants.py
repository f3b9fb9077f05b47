"""Do HSDP, LoRA, Llama's blocks, checkpointing and offload train on four ranks as on one?"""

import sys
from collections import Counter

import pytest

from broadgauge.engine.kinds.training import step_collectives
from broadgauge.messages.rank import TrainSummary
from broadgauge.specs.workload import LlamaModel, Lora

from .harness import Ranks
from .training_launch import PLANTED, WORKLOAD, Launch

pytestmark = [pytest.mark.measuring, pytest.mark.shares_cores, pytest.mark.slow]
STEPS = {"steps": 48, "warm_up_steps": 2, "block_steps": 24}
"""50 with the warm-up."""
LLAMA = LlamaModel(kind="llama", layers=2, hidden=32, heads=4, kv_heads=2, ffn=48, seq_len=16)
LORA = Lora(rank=4, alpha=8)
MODELS = {
    "gpt": {},
    "llama": {"model": LLAMA},
    "lora": {"lora": LORA},
    "llama lora": {"model": LLAMA, "lora": LORA},
}
SHARDED = {"strategy": "fsdp"}
REPLICATED = {"strategy": "hsdp"}
FULL, SELECTIVE = ({"activation_checkpointing": kept} for kept in ("full", "selective"))
REDUCED_EACH = {"reduce_each_micro_batch": True}
WITH_OFF = {"communication_off": True}
"""Blocks without communication between, which must leave no trace."""
WAYS = [
    ("gpt", {"strategy": "ddp"} | FULL),
    ("llama", REPLICATED | REDUCED_EACH | {"batch_per_rank": 1, "accumulation": 2}),
    ("llama lora", SHARDED | FULL),
    ("lora", REPLICATED | SELECTIVE | WITH_OFF),
    *(
        pytest.param(*way, marks=pytest.mark.thorough)
        for way in [
            ("gpt", REPLICATED | FULL | WITH_OFF | {"batch_per_rank": 1, "accumulation": 2}),
            ("gpt", SHARDED | SELECTIVE),
            ("gpt", SHARDED | REDUCED_EACH | {"batch_per_rank": 1, "accumulation": 2}),
            (
                "gpt",
                REPLICATED
                | REDUCED_EACH
                | {"batch_per_rank": 1, "accumulation": 2, "cpu_offload": True},
            ),
            ("gpt", REPLICATED),
            ("gpt", REPLICATED | {"shard_ranks": 1}),
            ("gpt", REPLICATED | {"cpu_offload": True, "learning_rate_warm_up_steps": 10}),
            ("llama", SHARDED | {"learning_rate_warm_up_steps": 10}),
            ("lora", {"strategy": "ddp"} | SELECTIVE | WITH_OFF),
        ]
    ),
]


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """Two nodes of two."""
    with Ranks(4, tmp_path_factory.mktemp("four"), ranks_per_node=2) as ranks:
        yield Launch(ranks)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The losses of one process on the global batch, by what it trains; each is trained once."""
    known: dict[str, tuple[float, ...]] = {}
    with Ranks(1, tmp_path_factory.mktemp("one")) as ranks:
        launch = Launch(ranks)

        def losses(model, warm_up):
            key = f"{model} {warm_up}"
            if key not in known:
                changes = MODELS[model] | {"learning_rate_warm_up_steps": warm_up}
                known[key] = launch.train(batch_per_rank=8, **STEPS, **changes).series["loss"]
            return known[key]

        yield losses


@pytest.mark.parametrize(("model", "way"), WAYS)
def test_four_ranks_train_as_one_process(model, way, four, alone):
    plain = alone(model, way.get("learning_rate_warm_up_steps", 0))
    keys = STEPS | {"batch_per_rank": 2, "communication_off": False} | MODELS[model] | way
    trial = four.train(**keys)
    assert trial.error is None
    assert len(trial.series["loss"]) == 48
    assert trial.series["loss"] == pytest.approx(plain, abs=1e-4)
    assert plain[-1] < plain[0] - 0.05
    said = [rank.last(TrainSummary) for rank in four.said]
    assert [each.parameter_checksum for each in said] == [said[0].parameter_checksum] * 4
    assert [each.is_frozen_unchanged for each in said] == [True] * 4


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"lora": LORA, "accumulation": 2},
        {"gradient_dtype": "bfloat16"},
        {"accumulation": 2} | REDUCED_EACH,
    ],
)
def test_hsdp_says_what_each_group_sends(four, changes):
    """All dimensions divide by two: no padding."""
    four.train(strategy="hsdp", steps=4, block_steps=2, **changes)
    said = {rank.last(TrainSummary).collectives for rank in four.said}
    assert len(said) == 1
    sent = Counter()
    for each in said.pop():
        sent[each.op, each.group] += each.count * each.size_bytes
    workload = WORKLOAD.model_copy(update={"strategy": "hsdp", **changes})
    expected = step_collectives(workload, nodes=2, ranks_per_node=2)
    assert sent == {(each.op, each.group): each.size_bytes for each in expected}


@pytest.mark.parametrize(
    "changes",
    [
        {"strategy": "fsdp", "accumulation": 2} | SELECTIVE,
        pytest.param({"strategy": "ddp"} | FULL, marks=pytest.mark.thorough),
        pytest.param({"strategy": "hsdp", "lora": LORA}, marks=pytest.mark.thorough),
    ],
)
def test_graphs_of_blocks_leave_room_for_what_a_strategy_does(changes, tmp_path):
    """Compiled or not, with communication on and off between: the same losses, the same sent."""
    scripts = dict.fromkeys(range(2), (sys.executable, PLANTED, "capture_without_compiling"))
    with Ranks(2, tmp_path, scripts=scripts) as ranks:
        launch = Launch(ranks)
        few = {"model": LLAMA, "steps": 8, "block_steps": 4, **changes}
        plain = launch.train(**few)
        sent = launch.said[0].last(TrainSummary).collectives
        captured = launch.train(**few, compile=True)
        said = launch.said[0].last(TrainSummary)
    assert captured.series["loss"] == pytest.approx(plain.series["loss"], abs=1e-5)
    assert said.collectives == sent
    assert captured.measurement.metrics["compile_s"] > 0
    assert "compile_s" not in plain.measurement.metrics
