"""Do the time and the bytes that a training is expected to take follow from what it sends?"""

from hypothesis import given
from hypothesis import strategies as st
from tests.merging.outcomes import make_case

from broadgauge.engine.expected_time import trial_s
from broadgauge.engine.kinds.training import step_bytes
from broadgauge.specs.workloads.workload import GptModel, TrainWorkload

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
