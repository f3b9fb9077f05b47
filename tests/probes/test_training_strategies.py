"""Does every way of spreading a training over ranks train as one process does, and send what its
strategy says?"""

import math
import re
import statistics
import sys
from collections import Counter
from functools import cache

import pytest

from broadgauge.engine.kinds.training import step_collectives
from broadgauge.messages.rank import RankGroup, StepsBlock, TrainSummary
from broadgauge.messages.vocabulary import StepMode
from broadgauge.specs.workloads.lora import Lora
from broadgauge.specs.workloads.workload import GptModel

from .harness import Ranks
from .training_launch import LLAMA, MIXTURE, PLANTED, TINY, WORKLOAD, Launch

pytestmark = [pytest.mark.measuring, pytest.mark.slow]
STEPS = {"steps": 48, "warm_up_steps": 2, "block_steps": 24}
"""50 with the warm-up."""
FEWER_STEPS = {"steps": 20, "warm_up_steps": 2, "block_steps": 10}
HSDP = {"strategy": "hsdp", "shard_ranks": 2}
WAYS = [
    {"strategy": "ddp"},
    {"strategy": "fsdp"},
    {"strategy": "ddp", "batch_per_rank": 1, "accumulation": 2},
    {"strategy": "fsdp", "batch_per_rank": 1, "accumulation": 2},
    {
        "strategy": "fsdp",
        "batch_per_rank": 1,
        "accumulation": 2,
        "reshard_after_forward": False,
    },
]


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    with Ranks(4, tmp_path_factory.mktemp("four")) as ranks:
        yield Launch(ranks)


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    with Ranks(2, tmp_path_factory.mktemp("pair")) as ranks:
        yield Launch(ranks)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    with Ranks(1, tmp_path_factory.mktemp("one")) as ranks:
        yield Launch(ranks)


@pytest.fixture(scope="module")
def alone(one):
    """One process on the global batch of eight sequences, and its checksum."""
    return one.train(batch_per_rank=8, **STEPS), one.said[0].last(TrainSummary).parameter_checksum


@pytest.fixture(scope="module")
def llama_alone(one):
    plain = one.train(model=LLAMA, batch_per_rank=8, **STEPS)
    return plain, one.said[0].last(TrainSummary).parameter_checksum


@pytest.mark.parametrize(
    "way",
    [
        WAYS[0],
        *(pytest.param(way, marks=pytest.mark.thorough) for way in WAYS[1:4]),
        WAYS[4],
        pytest.param(HSDP, marks=pytest.mark.thorough),
        HSDP | {"batch_per_rank": 1, "accumulation": 2},
    ],
)
def test_four_ranks_train_as_one_process(way, four, alone):
    """Also after blocks without communication: what they do to the weights is undone."""
    plain, checksum = alone
    trial = four.train(**(STEPS | {"batch_per_rank": 2} | way))
    assert trial.error is None
    assert len(trial.series["loss"]) == 48
    assert trial.series["loss"] == pytest.approx(plain.series["loss"], abs=1e-4)
    assert statistics.fmean(plain.series["loss"][-5:]) < plain.series["loss"][0] - 0.1
    checksums = [rank.last(TrainSummary).parameter_checksum for rank in four.said]
    assert checksums == [checksums[0]] * 4
    assert checksums[0] == pytest.approx(checksum, abs=0.05)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param({"strategy": "ddp"}, marks=pytest.mark.thorough),
        pytest.param({"strategy": "fsdp"}, marks=pytest.mark.thorough),
        HSDP,
    ],
)
def test_a_llama_trains_on_four_ranks_as_in_one_process(way, four, llama_alone):
    plain, checksum = llama_alone
    trial = four.train(**(STEPS | {"model": LLAMA, "batch_per_rank": 2} | way))
    assert trial.error is None
    assert trial.series["loss"] == pytest.approx(plain.series["loss"], abs=1e-4)
    assert statistics.fmean(plain.series["loss"][-5:]) < plain.series["loss"][0] - 0.1
    checksums = [rank.last(TrainSummary).parameter_checksum for rank in four.said]
    assert checksums == [checksums[0]] * 4
    assert checksums[0] == pytest.approx(checksum, abs=0.05)


ADAPTED = {"lora": Lora(rank=3), "learning_rate": 3e-3}
"""Three rows are shared out over two ranks and over four as four."""
KEEPING_LESS = {
    "activation_checkpointing": "full",
    "cpu_offload": True,
    "batch_per_rank": 1,
    "accumulation": 2,
    "reduce_each_micro_batch": True,
}


@pytest.fixture(scope="module")
def fewer_alone(one):
    """One process on the global batch, of all weights and of adapters, and its checksum."""

    @cache
    def train(*, is_adapted, model):
        changes = ADAPTED if is_adapted else {}
        plain = one.train(**FEWER_STEPS, model=model, batch_per_rank=8, **changes)
        return plain, one.said[0].last(TrainSummary).parameter_checksum

    return train


@pytest.mark.parametrize(
    ("changes", "way"),
    [
        pytest.param(ADAPTED, {"strategy": "ddp"}, marks=pytest.mark.thorough),
        (ADAPTED, {"strategy": "fsdp", "activation_checkpointing": "selective"}),
        (ADAPTED, {"strategy": "ddp", "batch_per_rank": 1, "accumulation": 2}),
        pytest.param(ADAPTED, HSDP | {"cpu_offload": True}, marks=pytest.mark.thorough),
        ({"model": MIXTURE}, HSDP | KEEPING_LESS),
        pytest.param({}, HSDP | KEEPING_LESS, marks=pytest.mark.thorough),
        pytest.param({"model": MIXTURE}, {"strategy": "ddp"}, marks=pytest.mark.thorough),
        pytest.param(
            {"model": MIXTURE} | ADAPTED, {"strategy": "fsdp"}, marks=pytest.mark.thorough
        ),
        pytest.param({}, {"strategy": "fsdp"} | KEEPING_LESS, marks=pytest.mark.thorough),
        ({}, {"strategy": "fsdp", "cpu_offload": True, "attention": "eager"}),
        pytest.param(
            {}, {"strategy": "ddp", "activation_checkpointing": "full"}, marks=pytest.mark.thorough
        ),
    ],
)
def test_what_is_trained_and_kept_makes_no_difference_to_the_losses(
    changes, way, fewer_alone, four
):
    """Of four ranks beside one process that keeps all; blocks without communication among them."""
    plain, checksum = fewer_alone(is_adapted="lora" in changes, model=changes.get("model", LLAMA))
    trial = four.train(**(FEWER_STEPS | {"model": LLAMA, "batch_per_rank": 2} | changes | way))
    assert trial.error is None
    assert len(trial.series["loss"]) == 20
    assert trial.series["loss"] == pytest.approx(plain.series["loss"], abs=1e-4)
    summaries = [rank.last(TrainSummary) for rank in four.said]
    checksums = [summary.parameter_checksum for summary in summaries]
    assert checksums == [checksums[0]] * 4
    assert checksums[0] == pytest.approx(checksum, abs=0.05)
    frozen = {summary.is_frozen_unchanged for summary in summaries}
    assert frozen == {True if "lora" in changes else None}
    sent = counted(nodes=4, **({"model": LLAMA} | changes | way))
    assert messages(four) == {key: size for key, size in sent.items() if size}


def test_characters_are_tokens_where_the_vocabulary_is_small(one):
    model = GptModel(layers=2, hidden=32, heads=2, seq_len=16, vocabulary=20, tied_head=False)
    losses = one.train(model=model, batch_per_rank=8, **STEPS).series["loss"]
    assert losses[0] == pytest.approx(math.log(20), abs=0.2)
    assert statistics.fmean(losses[-5:]) < losses[0] - 0.1


def test_a_step_of_several_micro_batches_counts_all_of_them(one, alone):
    plain, _ = alone
    trial = one.train(batch_per_rank=2, accumulation=4, **STEPS)
    assert trial.series["loss"] == pytest.approx(plain.series["loss"], abs=1e-5)
    summary = one.said[0].last(TrainSummary)
    assert summary.sequences_per_step == 8
    assert summary.tokens_per_step == 8 * TINY.seq_len
    assert summary.flops_per_step == pytest.approx(TINY.flops_per_token * 8 * TINY.seq_len)
    assert summary.collectives == ()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_one_rank_trains_with_fsdp_on_a_mesh_of_one(one, alone, dtype):
    trial = one.train(batch_per_rank=8, strategy="fsdp", dtype=dtype, **STEPS)
    tolerance = 1e-5 if dtype == "float32" else 0.05
    assert trial.series["loss"] == pytest.approx(alone[0].series["loss"], abs=tolerance)
    assert one.said[0].last(TrainSummary).collectives == ()


@pytest.mark.parametrize(
    "way",
    [
        {"strategy": "fsdp"},
        {"strategy": "fsdp", "accumulation": 2, "reshard_after_forward": False},
        {"gradient_dtype": "bfloat16", "accumulation": 2},
        {"strategy": "hsdp", "shard_ranks": 2},
    ],
)
def test_steps_without_communication_are_wrong_and_leave_no_trace(way, pair, four):
    pair = four if way.get("strategy") == "hsdp" else pair
    disturbed = pair.train(**way, steps=14)
    off = [
        block for block in pair.said[0].of(StepsBlock) if block.mode is StepMode.COMMUNICATION_OFF
    ]
    undisturbed = pair.train(**way, steps=14, communication_off=False, block_steps=14)
    assert disturbed.series["loss"] == undisturbed.series["loss"]
    assert len(disturbed.series["step_without_communication_s"]) == 14
    off_losses = [loss for block in off for loss in block.losses]
    own_losses = [loss for block in pair.said[0].of(StepsBlock) for loss in block.losses]
    assert None not in off_losses
    assert off_losses != own_losses


def messages(launch):
    """By operation and group: all bytes of a step; every rank says the same."""
    said = {rank.last(TrainSummary).collectives for rank in launch.said}
    assert len(said) == 1
    return totals(said.pop())


def totals(collectives):
    total = Counter()
    for each in collectives:
        total[each.op, each.group] += each.count * each.size_bytes
    return dict(total)


def counted(nodes=2, **changes):
    """What the engine says of a step, one rank a node."""
    return totals(step_collectives(WORKLOAD.model_copy(update=changes), nodes, 1))


BLOCKS_BYTES = 2 * 4 * (12 * 32**2 + 13 * 32)
REST_BYTES = 4 * ((256 + 16) * 32 + 2 * 32)
ALL_BYTES = BLOCKS_BYTES + REST_BYTES


@pytest.mark.parametrize(
    ("changes", "sent"),
    [
        ({}, ALL_BYTES),
        ({"accumulation": 3}, ALL_BYTES),
        ({"gradient_dtype": "bfloat16"}, ALL_BYTES // 2),
        ({"gradient_dtype": "bfloat16", "accumulation": 3}, ALL_BYTES // 2),
        ({"dtype": "bfloat16"}, ALL_BYTES),
    ],
)
def test_ddp_reduces_each_gradient_once_a_step(pair, changes, sent):
    pair.train(steps=4, block_steps=2, **changes)
    assert messages(pair) == counted(**changes) == {("all_reduce", None): sent}
    assert pair.said[0].last(TrainSummary).gradient_bytes == sent


@pytest.mark.parametrize(
    ("changes", "gathered", "reduced"),
    [
        ({}, 2 * BLOCKS_BYTES + REST_BYTES, ALL_BYTES),
        ({"accumulation": 3}, 6 * BLOCKS_BYTES + 3 * REST_BYTES, ALL_BYTES),
        ({"reshard_after_forward": False}, ALL_BYTES, ALL_BYTES),
        ({"reshard_after_forward": False, "accumulation": 3}, ALL_BYTES, ALL_BYTES),
        ({"gradient_dtype": "bfloat16"}, 2 * BLOCKS_BYTES + REST_BYTES, ALL_BYTES // 2),
        ({"dtype": "bfloat16"}, BLOCKS_BYTES + REST_BYTES // 2, ALL_BYTES),
    ],
)
def test_fsdp_gathers_each_unit_and_reduces_it_once(pair, changes, gathered, reduced):
    """A unit's parameters for its forward and, where they were freed, its backward pass, in each
    micro-batch; its gradients with the last one. All dimensions divide by two: no padding."""
    pair.train(strategy="fsdp", steps=4, block_steps=2, **changes)
    sent = {("all_gather", None): gathered, ("reduce_scatter", None): reduced}
    assert messages(pair) == counted(strategy="fsdp", **changes) == sent


INSIDE, ACROSS = RankGroup(size=2), RankGroup(size=2, stride=2)


@pytest.mark.parametrize(
    ("changes", "gathered", "reduced"),
    [
        ({}, 2 * BLOCKS_BYTES + REST_BYTES, ALL_BYTES),
        (
            {"gradient_dtype": "bfloat16", "dtype": "bfloat16", "accumulation": 2},
            2 * BLOCKS_BYTES + REST_BYTES,
            ALL_BYTES // 2,
        ),
    ],
)
def test_hsdp_gathers_inside_groups_and_sums_shares_across_them(four, changes, gathered, reduced):
    four.train(steps=4, block_steps=2, **HSDP, **changes)
    assert (
        messages(four)
        == counted(nodes=4, **HSDP, **changes)
        == {
            ("all_gather", INSIDE): gathered,
            ("reduce_scatter", INSIDE): reduced,
            ("all_reduce", ACROSS): reduced // 2,
        }
    )


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_messages_of_a_llama_are_those_of_its_shape(pair, strategy):
    pair.train(strategy=strategy, model=LLAMA, steps=4, block_steps=2)
    assert messages(pair) == counted(strategy=strategy, model=LLAMA)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_gradients_in_bfloat16_are_rounded_and_train_too(pair, strategy):
    exact = pair.train(strategy=strategy).series["loss"]
    rounded = pair.train(strategy=strategy, gradient_dtype="bfloat16").series["loss"]
    assert exact[0] != rounded[0]
    assert rounded == pytest.approx(exact, abs=0.01)


def test_adapters_train_beside_weights_frozen_in_bfloat16(pair):
    """FSDP gathers both in bfloat16, and reduces what is trained in float32."""
    way = {"model": LLAMA, "dtype": "bfloat16"} | ADAPTED
    plain = pair.train(strategy="ddp", **way).series["loss"]
    assert pair.train(strategy="fsdp", **way).series["loss"] == pytest.approx(plain, abs=0.05)
    assert messages(pair) == counted(strategy="fsdp", **way)
    assert {rank.last(TrainSummary).is_frozen_unchanged for rank in pair.said} == {True}


def gradient_norms(folder, world_size, ways):
    """Of each way's first step, as its optimizer saw them, on every rank."""
    folder.mkdir()
    scripts = dict.fromkeys(range(world_size), (sys.executable, PLANTED, "tell_gradients"))
    with Ranks(world_size, folder, scripts=scripts) as ranks:
        launch = Launch(ranks)
        for way in ways:
            launch.train(communication_off=False, steps=4, block_steps=4, **way)
        logs = [rank.log.read_text() for rank in ranks.ranks]
    norms = [re.findall(r"gradients (\S+)", log)[::6] for log in logs]  # of two and four steps
    assert norms == [norms[0]] * world_size
    return [float(norm) for norm in norms[0]]


def test_gradients_are_the_mean_over_all_sequences_of_the_step(tmp_path):
    """Not their sum, nor the mean of some: the losses would hardly show it, as AdamW divides by
    the gradients' own size."""
    ways = [*WAYS, {"gradient_dtype": "bfloat16"}, {"strategy": "fsdp", "dtype": "bfloat16"}]
    (alone,) = gradient_norms(tmp_path / "alone", 1, [{"batch_per_rank": 4}])
    together = gradient_norms(tmp_path / "pair", 2, ways)
    assert len(together) == len(ways)
    assert together[: len(WAYS)] == pytest.approx([alone] * len(WAYS), rel=1e-4)
    assert together == pytest.approx([alone] * len(ways), rel=0.01)


@pytest.mark.thorough
def test_fsdp_shares_the_state_out_and_trials_leave_nothing_behind(tmp_path):
    """Of 25 million parameters DDP holds 406 MB of state a rank, FSDP on two ranks the half of
    it, and less than a third more for whole units and the library. (The process's memory is that
    of its tensors only where freed ones go back to the kernel at once.)"""
    model = GptModel(layers=8, hidden=512, heads=8, seq_len=16)
    sizes = {"model": model, "steps": 4, "warm_up_steps": 1, "batch_per_rank": 1}
    gives_back = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    with Ranks(2, tmp_path, environment=gives_back, is_forked=False) as ranks:
        launch = Launch(ranks)

        def peak_bytes(strategy):
            trial = launch.train(strategy=strategy, communication_off=False, **sizes)
            return trial.measurement.metrics["peak_memory_bytes"]

        first, sharded, second = (peak_bytes(strategy) for strategy in ("ddp", "fsdp", "ddp"))
    state_bytes = 16 * model.parameters
    assert min(first, second) - sharded > 0.2 * state_bytes
    assert second - first < 0.2 * state_bytes
