"""Do the time and the bytes that a training is expected to take follow from what it sends?"""

from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import make_case

from broadgauge.engine.backends import why_not_run
from broadgauge.engine.expected_time import trial_s
from broadgauge.engine.kinds.training import (
    TrainingInEngine,
    most_micro_batches,
    step_bytes,
    step_collectives,
    tokens_per_rank,
)
from broadgauge.messages.rank import RankGroup
from broadgauge.specs.prepared_data import Packing
from broadgauge.specs.workload import GptModel, Lora, TrainWorkload

TRAININGS = st.builds(
    TrainWorkload,
    kind=st.just("train"),
    strategy=st.sampled_from(["ddp", "fsdp"]),
    model=st.builds(
        GptModel,
        layers=st.integers(1, 8),
        hidden=st.integers(1, 40).map(lambda n: 8 * n),
        heads=st.just(2),
    ),
    accumulation=st.integers(1, 8),
    dtype=st.sampled_from(["float32", "bfloat16"]),
    gradient_dtype=st.sampled_from(["float32", "bfloat16"]),
    reshard_after_forward=st.booleans(),
)


def changed(train, **changes):
    return train.model_copy(update=changes)


@given(TRAININGS)
def test_more_micro_batches_take_longer_and_rounded_gradients_never(train):
    def seconds(**changes):
        return trial_s(make_case(changed(train, **changes)))

    assert seconds(accumulation=train.accumulation + 1) > seconds()
    assert seconds(gradient_dtype="bfloat16") <= seconds(gradient_dtype="float32")
    assert seconds(reshard_after_forward=False) <= seconds(reshard_after_forward=True)


@given(TRAININGS)
def test_fsdp_sends_what_ddp_sends_and_what_it_gathers_again(train):
    """A ring's all_reduce is a reduce_scatter and an all_gather: kept parameters in float32 cost
    FSDP as many bytes as DDP, freed ones half as many again but for what is in no block."""
    plain = changed(train, dtype="float32", gradient_dtype="float32", accumulation=1)
    ddp = step_bytes(changed(plain, strategy="ddp"))["all_reduce"]
    kept = step_bytes(changed(plain, strategy="fsdp", reshard_after_forward=False))
    freed = step_bytes(changed(plain, strategy="fsdp", reshard_after_forward=True))
    assert kept == {"all_gather": ddp, "reduce_scatter": ddp}
    model = train.model
    rest = (model.vocabulary + model.seq_len + 2) * model.hidden
    assert freed["all_gather"] == 2 * ddp - 4 * rest


@given(TRAININGS, st.sampled_from([(2, 2), (3, 4), (4, 1)]))
def test_hsdp_scatters_in_nodes_and_sums_over_them(train, shape):
    """Over all ranks as many bytes are reduced as by DDP, and each rank reduces its shard of it."""
    nodes, ranks_per_node = shape
    hsdp = changed(train, strategy="hsdp")
    found = {each.op: each for each in step_collectives(hsdp, nodes, ranks_per_node)}
    sent = step_bytes(hsdp)
    reduced = found.pop("all_reduce")
    assert reduced.size_bytes == sent["reduce_scatter"] // ranks_per_node
    if ranks_per_node == 1:
        assert (reduced.group, found) == (None, {})
    else:
        assert reduced.group == RankGroup(size=nodes, stride=ranks_per_node)
        assert {op: each.size_bytes for op, each in found.items()} == sent
        assert {each.group for each in found.values()} == {RankGroup(size=ranks_per_node)}


def test_replicas_must_be_whole():
    asked = TrainWorkload(kind="train", strategy="hsdp", shard_ranks=4)
    assert why_not_run(make_case(asked, nodes=3, ranks_per_node=2)) is not None
    assert why_not_run(make_case(asked, nodes=2, ranks_per_node=2)) is None


def test_compiling_and_adapters_are_counted():
    plain = TrainWorkload(kind="train")
    case = make_case(plain)
    assert trial_s(make_case(changed(plain, compile=True))) > trial_s(case) + 10
    assert trial_s(make_case(changed(plain, lora=Lora(rank=1)))) < trial_s(case)


@given(st.integers(2, 4096), st.integers(2, 4096), st.integers(1, 512), st.integers(1, 8))
def test_a_budget_near_the_longest_sample_makes_no_more_micro_batches_than_samples(
    seq_len, budget, samples, ranks
):
    train = changed(
        TrainWorkload(kind="train", model=GptModel(seq_len=seq_len)),
        packing=Packing(max_batch_len=budget, effective_batch_size=samples),
    )
    most = most_micro_batches(train, ranks)
    tokens = -(-samples * min(seq_len, budget) // ranks)
    assert tokens_per_rank(train, ranks) == tokens
    assert most * budget >= tokens, "all of them have room"
    assert 1 <= most <= samples


def test_made_up_samples_are_expected_with_the_length_that_they_have():
    """Not with the longest that the model takes: 9,872 of 1,483 tokens."""
    train = TrainWorkload.model_validate(
        {
            "kind": "train",
            "model": {"seq_len": 8192},
            "data": {"synthesized": {"samples": 9872, "mean_tokens": 1483}},
            "packing": {"max_batch_len": 35_000, "effective_batch_size": 3840},
        }
    )
    assert tokens_per_rank(train, 16) == 3840 * 1483 // 16
    assert 3840 * 1483 / 16 / 35_000 < most_micro_batches(train, 16) < 15
    assert not TrainingInEngine(train).uses_folder
