"""Trainings to ask about: one to start from, and random ones of every strategy."""

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from broadgauge.predict.case import Fabric, ModelShape, StorageWaits, TrainingCase, Wait

SMALL = ModelShape(
    name="gpt",
    layers=8,
    hidden=1024,
    heads=16,
    vocabulary=32000,
    params=1.66e8,
    active_params=1.66e8,
)
BASE = TrainingCase(
    name="base",
    model=SMALL,
    gpu="a100-sxm-80gb",
    nodes=2,
    gpus_per_node=8,
    fabric=Fabric(transport="infiniband", node_gbps=200),
    strategy="ddp",
    data_parallel=16,
    seq_len=1024,
    global_batch=64,
    micro_batch=4,
)


def case(**changes: Any) -> TrainingCase:
    """The base with changes."""
    return replace(BASE, **changes)


def storage_waits(scale_s: float, *, steps_between_saves: int | None = 10) -> StorageWaits:
    """A save takes ten times as long as a batch."""

    def wait(value_s: float) -> Wait:
        return Wait(value_s=value_s, low_s=value_s / 2, high_s=value_s * 2)

    return StorageWaits(
        start=wait(100 * scale_s),
        batch=wait(scale_s),
        unhidden=wait(scale_s / 10),
        save=wait(10 * scale_s),
        durable_s=20 * scale_s,
        least_stall_s=10 * scale_s,
        written_s=10 * scale_s,
        steps_between_saves=steps_between_saves,
    )


@st.composite
def cases(draw: st.DrawFn) -> TrainingCase:
    """Any strategy on up to 64 GPUs, any network."""
    strategy = draw(st.sampled_from(("ddp", "fsdp", "hsdp", "megatron")))
    nodes, on_node = draw(st.sampled_from((1, 2, 3, 8))), draw(st.sampled_from((1, 2, 8)))
    gpus = nodes * on_node
    tensor = draw(st.sampled_from([n for n in (1, 2, 8) if gpus % n == 0]))
    left = gpus // tensor
    stages = draw(st.sampled_from([n for n in (1, 2, 4) if left % n == 0]))
    data = left // stages
    layers = draw(st.sampled_from((4, 8)))
    hidden = draw(st.sampled_from((512, 2048)))
    params = 12.0 * layers * hidden**2 + 32000 * hidden
    micro_batches = draw(st.sampled_from((1, 2, 3, 8, 16)))
    micro_batch = draw(st.sampled_from((1, 4)))
    chunks = 2 if stages > 1 and micro_batches % stages == 0 and draw(st.booleans()) else 1
    return case(
        model=ModelShape(
            name="any",
            layers=layers,
            hidden=hidden,
            vocabulary=32000,
            params=params,
            active_params=params,
        ),
        gpu=draw(st.sampled_from(("a100-sxm-80gb", "l40s", "v100-sxm-32gb", "h100-sxm"))),
        precision="fp16",
        nodes=nodes,
        gpus_per_node=on_node,
        fabric=Fabric(
            transport=draw(st.sampled_from(("infiniband", "tcp", "overlay", "unknown"))),
            node_gbps=draw(st.sampled_from((None, 10.0, 100.0, 800.0))),
        ),
        strategy=strategy,
        data_parallel=data,
        tensor_parallel=tensor,
        pipeline_parallel=stages,
        virtual_stages=chunks,
        zero_stage=draw(st.sampled_from((None, 1, 2))) if strategy != "hsdp" else None,
        recompute=draw(st.sampled_from(("none", "full"))),
        reshard_after_forward=draw(st.booleans()),
        sync_every_micro_batch=draw(st.sampled_from((None, True, False))),
        micro_batch=micro_batch,
        global_batch=micro_batch * micro_batches * data,
        framework=draw(st.sampled_from(("torch", "megatron-lm", "hf-trainer"))),
        data_s=draw(st.sampled_from((0.0, 0.01))),
        storage_waits=draw(st.sampled_from((None, storage_waits(0.001), storage_waits(1.0)))),
    )
