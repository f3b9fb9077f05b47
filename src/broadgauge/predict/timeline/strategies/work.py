"""What do strategies share? Their inputs, and a layer's pass through the streams."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from broadgauge.predict.costs.pieces import CollectiveCost, ComputeCosts
from broadgauge.predict.facts.arrays import Times
from broadgauge.predict.timeline.timeline import Steps, Stream

Costs = TypeVar("Costs", ComputeCosts, CollectiveCost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """All durations and counts that a program uses, for cases of one structure."""

    compute: ComputeCosts
    collectives: Mapping[str, CollectiveCost]
    """By what they are for. What no case of a group has is absent."""
    counts: Mapping[str, Times]
    """Whole numbers: `layers`, `stage_layers`, `micro_batches`, and what a strategy adds."""
    data_s: Times
    checkpoint_s: Times
    bucket_copy_s: Times
    """Gradients into one of DDP's buckets."""
    gradients_copy_s: Times
    """All of them back."""

    @property
    def num_cases(self) -> int:
        """In every array."""
        return len(self.data_s)

    def map(self, change: Callable[[Times], Times]) -> "Work":
        """The same with every array changed, such as to some of the cases."""
        return replace(
            self,
            compute=_map_fields(self.compute, change),
            collectives={key: _map_fields(cost, change) for key, cost in self.collectives.items()},
            counts={key: change(count) for key, count in self.counts.items()},
            data_s=change(self.data_s),
            checkpoint_s=change(self.checkpoint_s),
            bucket_copy_s=change(self.bucket_copy_s),
            gradients_copy_s=change(self.gradients_copy_s),
        )

    def stacked(self, others: Sequence["Work"]) -> "Work":
        """These cases and those of others, one after the other."""
        records = [self, *others]

        return replace(
            self,
            compute=_join_fields([record.compute for record in records]),
            collectives={
                key: _join_fields([record.collectives[key] for record in records])
                for key in self.collectives
            },
            counts={
                key: np.concatenate([record.counts[key] for record in records])
                for key in self.counts
            },
            data_s=np.concatenate([record.data_s for record in records]),
            checkpoint_s=np.concatenate([record.checkpoint_s for record in records]),
            bucket_copy_s=np.concatenate([record.bucket_copy_s for record in records]),
            gradients_copy_s=np.concatenate([record.gradients_copy_s for record in records]),
        )

    def with_communication(self, ratio: Times) -> "Work":
        """The same with collectives that take so many times as long, and send the same bytes."""
        stretched = {
            key: replace(cost, inter_s=cost.inter_s * ratio, intra_s=cost.intra_s * ratio)
            for key, cost in self.collectives.items()
        }
        return replace(self, collectives=stretched)

    def without_links(self, *, intra: bool) -> "Work":
        """The same with links between nodes, and within if `intra`, that take no time."""
        freed = {
            key: replace(
                cost,
                inter_s=np.zeros_like(cost.inter_s),
                intra_s=np.zeros_like(cost.intra_s) if intra else cost.intra_s,
            )
            for key, cost in self.collectives.items()
        }
        return replace(self, collectives=freed)

    def launched(self) -> "Work":
        """The same on a CPU that needs no time to launch."""
        zero = np.zeros(self.num_cases)
        quick = {
            field.name: zero for field in fields(self.compute) if field.name.endswith("_launch_s")
        }
        return replace(self, compute=replace(self.compute, **quick, step_fixed_s=zero))


def scaled(work: Work, names: Sequence[str], ratio: Times) -> Work:
    """The same with some collectives' durations multiplied."""
    changed = {
        key: _map_fields(cost, lambda array: array * ratio) if key in names else cost
        for key, cost in work.collectives.items()
    }
    return replace(work, collectives=changed)


def _map_fields(record: Costs, change: Callable[[Times], Times]) -> Costs:
    changed = {field.name: change(getattr(record, field.name)) for field in fields(record)}
    return replace(record, **changed)


def _join_fields(records: Sequence[Costs]) -> Costs:
    names = [field.name for field in fields(records[0])]
    joined = {name: np.concatenate([getattr(each, name) for each in records]) for name in names}
    return replace(records[0], **joined)


def begin(steps: Steps, work: Work) -> Any:
    """A handle for what waits for nothing."""
    return steps.run(Stream.HOST, np.zeros(work.num_cases), name="begin")


def communicate(
    steps: Steps, work: Work, name: str, *, after: Sequence[Any], stage: int = 0
) -> Any:
    """A collective on the links that it uses; both kinds at the same time.

    The bytes of the first stage's node are counted.
    """
    cost = work.collectives.get(name)
    if cost is None:
        return steps.join(after)
    inner = steps.run(Stream.INTRA, cost.intra_s, after=after, name=name, stage=stage)
    outer = steps.run(
        Stream.INTER,
        cost.inter_s,
        after=after,
        name=name,
        stage=stage,
        sent_bytes=cost.inter_bytes if stage == 0 else None,
    )
    return steps.join([inner, outer])


def calculate(
    steps: Steps, kernels_s: Times, launch_s: Times, *, after: Sequence[Any] = (), name: str
) -> Any:
    """Kernels that the CPU launches one by one: they begin with its first and end with its last."""
    nothing = np.zeros_like(launch_s)
    begun = steps.run(Stream.HOST, nothing, name=name)
    launched = steps.run(Stream.HOST, launch_s, name=name)
    steps.run(Stream.COMPUTE, kernels_s, after=[begun, *after], name=name)
    return steps.run(Stream.COMPUTE, nothing, after=[launched], name=name)


def stretched(work: Work, kernels_s: Times, beside: Sequence[str]) -> Times:
    """Kernels beside communication, which takes SMs and memory bandwidth from them."""
    busy_s = np.zeros_like(kernels_s)
    for name in beside:
        if name in work.collectives:
            cost = work.collectives[name]
            busy_s = busy_s + np.maximum(cost.intra_s, cost.inter_s)
    return kernels_s + work.compute.overlap_slowdown_ratio * np.minimum(kernels_s, busy_s)


def forward_layer(
    steps: Steps, work: Work, *, after: Sequence[Any], beside: Sequence[str] = ()
) -> Any:
    """One layer forward, with the collectives of its tensor, expert and context parallelism."""
    costs = work.compute
    return _layer(
        steps,
        work,
        kernels_s=stretched(work, costs.layer_forward_s, beside),
        launch_s=costs.layer_forward_launch_s,
        after=after,
        name="forward",
    )


def backward_layer(
    steps: Steps,
    work: Work,
    *,
    after: Sequence[Any],
    beside: Sequence[str] = (),
    ratio: Times | float = 1.0,
) -> Any:
    """One layer, or `ratio` layers, backward, recomputation before it."""
    costs = work.compute
    kernels_s = (costs.layer_recompute_s + costs.layer_backward_s) * ratio
    launch_s = (costs.layer_recompute_launch_s + costs.layer_backward_launch_s) * ratio
    return _layer(
        steps,
        work,
        kernels_s=stretched(work, kernels_s, beside),
        launch_s=launch_s,
        after=after,
        name="backward",
        ratio=ratio,
    )


def _layer(
    steps: Steps,
    work: Work,
    *,
    kernels_s: Times,
    launch_s: Times,
    after: Sequence[Any],
    name: str,
    ratio: Times | float = 1.0,
) -> Any:
    """A pass through a layer, and what its ranks exchange before the next may begin.

    Context parallelism passes keys and values on beside the layer's compute.
    """
    own = [f"{kind} {name}" for kind in ("context", "tensor", "expert")]
    if isinstance(ratio, np.ndarray):
        work = scaled(work, own, ratio)
    ring, *exchanges = own
    passed = [communicate(steps, work, ring, after=after)] if ring in work.collectives else []
    end = calculate(steps, kernels_s, launch_s, after=after, name=name)
    for exchange in exchanges:
        end = communicate(steps, work, exchange, after=[end])
    return steps.join([end, *passed])


def head(steps: Steps, work: Work, *, after: Sequence[Any]) -> Any:
    """Embedding, head and loss, forward and backward."""
    costs = work.compute
    forward_s, backward_s = costs.head_forward_s, costs.head_backward_s
    end = calculate(steps, forward_s, costs.head_forward_launch_s, after=after, name="head")
    return calculate(steps, backward_s, costs.head_backward_launch_s, after=[end], name="head")


def finish(steps: Steps, work: Work, *, after: Sequence[Any]) -> None:
    """Clipping, the update, and what a step waits for on its host and its storage."""
    costs = work.compute
    update_s, launch_s = costs.optimizer_s, costs.optimizer_launch_s
    end = calculate(steps, update_s, launch_s, after=after, name="optimizer")
    end = communicate(steps, work, "weights", after=[end])
    end = steps.run(Stream.HOST, costs.step_fixed_s, after=[end], name="loss and loader")
    for name, stall_s in (("data", work.data_s), ("checkpoint", work.checkpoint_s)):
        end = steps.run(Stream.STORAGE, stall_s, after=[end], name=name)
