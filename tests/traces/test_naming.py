"""Proves what names are taken for."""

import pytest

from broadgauge.traces.attribution.naming import part_of_range
from broadgauge.traces.reading.collectives import ELEMENT_BYTES, IS_NCCL, kind_named


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", "data_wait"),
        ("load_batch", "data_wait"),
        ("nextBatch", "data_wait"),
        ("train/data", "data_wait"),
        ("dataloader", "data_wait"),
        ("save_checkpoint", "checkpoint"),
        ("load_checkpoint", "checkpoint"),
        ("Trainer.saving", "checkpoint"),
        ("DistributedDataParallel.forward", None),
        ("FSDP::pre_forward (layers.0)", None),
        ("Optimizer.step#AdamW.step", None),
        ("load_balancing_loss", None),
        ("batch_norm", None),
        ("cpu_offload", None),
        ("evaluation", None),
        ("", None),
    ],
)
def test_ranges(name: str, part: str | None) -> None:
    assert part_of_range(name) == part


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096>)",
            "all_reduce",
        ),
        ("ncclKernel_AllReduce_RING_LL_Sum_half(ncclDevComm*, ulong, ncclWork*)", "all_reduce"),
        ("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclWork*)", "reduce_scatter"),
        ("ncclDevKernel_AllGather_RING_LL(ncclWork*)", "all_gather"),
        ("ncclDevKernel_Broadcast_RING_LL(ncclWork*)", "broadcast"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclWork*)", "reduce"),
        ("ncclDevKernel_SendRecv(ncclWork*)", "send_recv"),
        ("ncclDevKernel_Generic(ncclWork*)", "other"),
        ("_allgather_base", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("allreduce_coalesced", "all_reduce"),
        ("all_to_allv", "all_to_all"),
        ("c10d::_reduce_scatter_base_", "reduce_scatter"),
        ("gloo:all_reduce", "all_reduce"),
        ("barrier", "barrier"),
    ],
)
def test_collectives(name: str, kind: str) -> None:
    assert kind_named(name) == kind
    assert bool(IS_NCCL.match(name)) == name.startswith("nccl")


@pytest.mark.parametrize(
    "name", ["nccl:all_reduce", "ncclGroupEnd", "sm90_xmma_gemm_ncclike", "void at::native::reduce"]
)
def test_what_is_no_kernel_of_nccl(name: str) -> None:
    assert not IS_NCCL.match(name)


def test_types_are_as_torch_names_them() -> None:
    assert (ELEMENT_BYTES["bfloat16"], ELEMENT_BYTES["float"], ELEMENT_BYTES["byte"]) == (2, 4, 1)
