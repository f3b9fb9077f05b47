"""How do FSDP2 and HSDP train, and how are their collectives switched off?

Each block and the rest of the model is a unit: its parameters are gathered before they are needed
and freed after, its gradients are reduced to each rank's shard. Off, both copy locally: all
shapes, buffers and passes over memory stay, every rank computes with its own shard in the place of
the others'. Source: torch 2.11, torch.distributed.fsdp.fully_shard, `set_custom_all_gather`,
`set_custom_reduce_scatter`.

`dtype: bfloat16` is FSDP's own mixed precision, not autocast: units are gathered in bfloat16,
which halves those bytes on the wire and is what trainings with FSDP do (torchtitan's default:
parameters in bfloat16, gradients reduced in float32). Each rank's shard stays float32.

HSDP shards over some ranks, those of a node as a rule, and the ranks at the same place in each such
group hold the same shard: replicas, whose gradients are summed once they are scattered. The mesh
has two axes. torch's own HSDP has no place for another all_reduce; it is made by the hook that
torch has for this, on the same stream. Source: Zhao et al. 2023 (FSDP, arXiv 2304.11277), section
3.2.2; torch 2.11, `set_all_reduce_hook`.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)

from broadgauge.messages.strategies import Split
from broadgauge.messages.tasks import TrainTask
from broadgauge.probes.training.communication import Communication
from broadgauge.probes.training.types import torch_type
from broadgauge.probes.trial import RefusedError


class Fsdp:
    """Parameters, gradients and the optimizer's state are sharded over groups of ranks."""

    def __init__(self, model: Any, task: TrainTask, device: Any, ranks: Split) -> None:
        _refuse_old_torch()
        self.communication = Communication()
        self._keeps_parameters = not task.reshard_after_forward
        mesh, replicas = _mesh(device.type, ranks)
        options = {
            "mesh": mesh,
            "mp_policy": MixedPrecisionPolicy(
                param_dtype=torch.bfloat16 if task.dtype == "bfloat16" else None,
                reduce_dtype=torch_type(task.gradient_dtype),
            ),
            "offload_policy": _offload_policy(device, is_wanted=task.cpu_offload),
        }
        reshards = task.reshard_after_forward
        self.model = shard_units(model, {"reshard_after_forward": reshards}, **options)
        for unit in self._units():
            self._switch(unit, replicas)
        self.model.to_empty(device="cpu" if task.cpu_offload else device)

    def _switch(self, unit: Any, replicas: Any) -> None:
        """Gives the unit collectives that can be left out. `replicas`: the group of those that
        hold the same shard; None: nobody else does."""
        unit.set_custom_all_gather(SwitchedAllGather(self.communication))
        unit.set_custom_reduce_scatter(SwitchedReduceScatter(self.communication))
        if replicas is not None:
            unit.set_all_reduce_hook(SwitchedReplicas(self.communication, replicas))
        # A sum, as the trainer divides the loss; and Gloo has no average.
        unit.set_gradient_divide_factor(1.0)
        unit.set_force_sum_reduction_for_comms(True)

    def arithmetic(self) -> AbstractContextManager[Any]:
        return nullcontext()

    @contextmanager
    def without_reduction(self) -> Iterator[None]:
        """The gradients of whole units stay here. `reshard_after_forward: false` keeps parameters
        until the step's last backward pass, so that they are gathered once a step."""
        self.model.set_requires_gradient_sync(False)
        self.model.set_reshard_after_backward(not self._keeps_parameters)
        yield
        self.model.set_requires_gradient_sync(True)
        self.model.set_reshard_after_backward(True)

    def close(self) -> None:
        """There is nothing: torch waits for these collectives itself."""

    def _units(self) -> Iterator[Any]:
        return (module for module in self.model.modules() if isinstance(module, FSDPModule))


class _Allocating:
    """What torch asks of a custom collective besides the call: the buffers it works on."""

    def __init__(self, communication: Communication) -> None:
        self.communication = communication

    def allocate(self, size: Any, *, dtype: Any, device: Any) -> Any:
        return torch.empty(*size, dtype=dtype, device=device)


class SwitchedAllGather(_Allocating):
    """all_gather, or this rank's shard in the place of every rank's."""

    def __call__(
        self,
        output_tensor: Any,
        input_tensor: Any,
        group: Any,
        async_op: bool = False,  # noqa: FBT001, FBT002  torch's signature
    ) -> Any:
        if self.communication.is_on:
            self.communication.count("all_gather", output_tensor, group)
            return dist.all_gather_into_tensor(
                output_tensor, input_tensor, group=group, async_op=async_op
            )
        shards = output_tensor.view(group.size(), -1)
        rank = group.rank()
        # The input is the output's own part of this rank: it must not be copied onto itself.
        shards[:rank].copy_(input_tensor)
        shards[rank + 1 :].copy_(input_tensor)
        return None


class SwitchedReduceScatter(_Allocating):
    """reduce_scatter, or this rank's own gradients of its shard."""

    def __call__(
        self,
        output_tensor: Any,
        input_tensor: Any,
        group: Any,
        op: Any,
        async_op: bool = False,  # noqa: FBT001, FBT002  torch's signature
    ) -> Any:
        if self.communication.is_on:
            self.communication.count("reduce_scatter", input_tensor, group)
            return dist.reduce_scatter_tensor(
                output=output_tensor, input=input_tensor, op=op, group=group, async_op=async_op
            )
        output_tensor.copy_(input_tensor.view(group.size(), -1)[group.rank()])
        return None


class SwitchedReplicas:
    """The all_reduce of a shard's gradients over the replicas, in their place, or nothing."""

    def __init__(self, communication: Communication, group: Any) -> None:
        self.communication, self.group = communication, group

    def __call__(self, gradients: Any) -> None:
        if gradients.is_cuda:
            # Allocated on another stream, which must not reuse the memory while this one works.
            gradients.record_stream(torch.cuda.current_stream())
        if self.communication.is_on:
            self.communication.count("all_reduce", gradients, self.group)
            dist.all_reduce(gradients, group=self.group)


def _mesh(device_type: str, ranks: Split) -> tuple[Any, Any]:
    """The ranks that share parameters with this one, and the group of its replicas, if any."""
    if ranks.replicas == 1:
        return init_device_mesh(device_type, (ranks.world_size,)), None
    shape, names = (ranks.replicas, ranks.shards), ("replicate", "shard")
    mesh = init_device_mesh(device_type, shape, mesh_dim_names=names)
    return mesh["shard"], mesh.get_group("replicate")


def _offload_policy(device: Any, *, is_wanted: bool) -> Any:
    """Pinned memory is what copies to and from a GPU run beside its work from."""
    return CPUOffloadPolicy(pin_memory=device.type == "cuda") if is_wanted else OffloadPolicy()


def _refuse_old_torch() -> None:
    """Source: pytorch pull request 155189, in torch from 2.9 on."""
    if not hasattr(FSDPModule, "set_custom_all_gather"):
        raise RefusedError(
            f"`strategy: fsdp` and `hsdp` need torch 2.9 or newer, and this is {torch.__version__}"
        )


def shard_units(model: Any, of_layers: dict[str, Any], **options: Any) -> Any:
    """The model, of which each block and the rest is a unit. `of_layers`: more options of blocks;
    the root's own parameters are needed at once for the backward pass: never freed between."""
    for layer in model.layers:
        fully_shard(layer, **of_layers, **options)
    return fully_shard(model, **options)
