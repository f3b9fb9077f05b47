"""Do the time and the bytes that a training is expected to take follow from what it sends?"""

from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import make_case

from broadgauge.engine.expected_time import trial_s
from broadgauge.engine.kinds.registry import in_engine
from broadgauge.engine.kinds.training import step_collectives
from broadgauge.messages.rank import RankGroup, StepCollective
from broadgauge.specs.workloads.workload import GptModel, TrainWorkload

TRAININGS = st.builds(
    TrainWorkload,
    kind=st.just("train"),
    strategy=st.sampled_from(["ddp", "fsdp", "hsdp"]),
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


def sent(train, nodes=2, ranks_per_node=2, **changes):
    """Bytes of a step, by operation."""
    found = step_collectives(changed(train, **changes), nodes, ranks_per_node)
    return {each.op: each.size_bytes for each in found}


@given(TRAININGS)
def test_more_micro_batches_take_longer_and_rounded_gradients_never(train):
    def seconds(**changes):
        return trial_s(make_case(changed(train, **changes), nodes=2, ranks_per_node=2))

    assert seconds(accumulation=train.accumulation + 1) > seconds()
    assert seconds(gradient_dtype="bfloat16") <= seconds(gradient_dtype="float32")
    assert seconds(reshard_after_forward=False) <= seconds(reshard_after_forward=True)


@given(TRAININGS)
def test_fsdp_sends_what_ddp_sends_and_what_it_gathers_again(train):
    """A ring's all_reduce is a reduce_scatter and an all_gather: kept parameters in float32 cost
    FSDP as many bytes as DDP, freed ones half as many again but for what is in no block."""
    plain = changed(train, dtype="float32", gradient_dtype="float32", accumulation=1)
    ddp = sent(plain, strategy="ddp")["all_reduce"]
    kept = sent(plain, strategy="fsdp", reshard_after_forward=False)
    freed = sent(plain, strategy="fsdp", reshard_after_forward=True)
    assert kept == {"all_gather": ddp, "reduce_scatter": ddp}
    model = train.model
    rest = (model.vocabulary + model.seq_len + 2) * model.hidden
    assert freed["all_gather"] == 2 * ddp - 4 * rest


@given(TRAININGS, st.integers(2, 4), st.integers(2, 4))
def test_hsdp_sends_between_nodes_a_share_of_the_gradients_alone(train, nodes, ranks_per_node):
    """What FSDP gathers and scatters over all it does inside of nodes."""
    hsdp = step_collectives(changed(train, strategy="hsdp"), nodes, ranks_per_node)
    fsdp = step_collectives(changed(train, strategy="fsdp"), nodes, ranks_per_node)
    *inside, across = hsdp
    shape = RankGroup(size=ranks_per_node)
    assert [each.group for each in inside] == [shape, shape]
    assert [(each.op, each.size_bytes) for each in inside] == [
        (each.op, each.size_bytes) for each in fsdp
    ]
    reduced = next(each.size_bytes for each in fsdp if each.op == "reduce_scatter")
    assert across == StepCollective(
        op="all_reduce",
        size_bytes=reduced // ranks_per_node,
        group=RankGroup(size=nodes, stride=ranks_per_node),
    )


def test_hsdp_with_one_rank_a_node_is_not_run():
    def why_not(shard_ranks=None, **shape):
        train = TrainWorkload(kind="train", strategy="hsdp", shard_ranks=shard_ranks)
        return in_engine(train).why_not_run(make_case(train, **shape))

    assert why_not(nodes=2) == "HSDP in groups of one rank is DDP: `strategy: ddp`"
    assert why_not(nodes=2, ranks_per_node=2) is None
    assert why_not(nodes=1, ranks_per_node=2) is None
    assert why_not(nodes=2, shard_ranks=2) is None
    assert why_not(nodes=2, shard_ranks=3) == "2 ranks are no whole number of groups of 3"


def test_compiling_takes_time_before_the_steps():
    train = TrainWorkload(kind="train")
    waited_s = trial_s(make_case(changed(train, compile=True))) - trial_s(make_case(train))
    assert waited_s > 10
    packed = TrainWorkload.model_validate(
        {
            "kind": "train",
            "data": {"samples": 9, "mean_length": 9},
            "packing": {"max_batch_len": 99, "effective_batch_size": 9},
        }
    )
    longer_s = trial_s(make_case(changed(packed, compile=True))) - trial_s(make_case(packed))
    assert longer_s > 2 * waited_s  # for three shapes
