"""What does the engine know of collectives? Their sizes, and where they can't run."""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.engine.kinds.kind import KindInEngine
from broadgauge.engine.shapes import ResolvedCluster, Shape
from broadgauge.engine.transfers import LATENCY_S, PROCESS_GROUP_S, transfer_s
from broadgauge.messages.pair_order import ordered_pairs
from broadgauge.specs.case import Case
from broadgauge.specs.errors import Problem
from broadgauge.specs.workloads.workload import CollectiveOp, CollectivesWorkload

MOST_COLLECTIVE_ROWS = 160
"""Of one trial: some 335 bytes each, so that its record stays below 64 KiB."""
_BETWEEN_SIZES_S = 0.03
"""Marks, counters and the check of the result, at each size."""
_PROGRAM_S = 4.0
"""A program of nccl-tests: CUDA, NCCL, memory, marks. A guess."""


@dataclass(frozen=True, slots=True)
class CollectivesInEngine(KindInEngine):
    """Collectives as they are planned."""

    collectives: CollectivesWorkload

    def trial_s(self, case: Case) -> float:
        collectives = self.collectives
        ops: tuple[CollectiveOp, ...] = collectives.ops
        if collectives.pairwise:
            ops = tuple("send_recv" for _ in ordered_pairs(case.nodes, case.ranks_per_node))
        total_s = 0.0
        for op in ops:
            for size_bytes in collectives.sizes_bytes():
                time_s = LATENCY_S[case.backend] + transfer_s(case, op, size_bytes)
                fewest_s = collectives.min_iterations * time_s
                most_s = collectives.max_iterations * time_s
                measured_s = min(max(collectives.budget_s, fewest_s), most_s)
                warm_up_s = collectives.warm_up_iterations * time_s
                total_s += measured_s + warm_up_s + _BETWEEN_SIZES_S
                if collectives.engine == "nccl-tests":  # its own warm-up, and as many in place
                    total_s += measured_s + warm_up_s + _PROGRAM_S
        return PROCESS_GROUP_S[case.backend] + total_s * len(collectives.dtypes)

    @property
    def uses_folder(self) -> bool:
        return False

    def why_not_run(self, case: Case) -> str | None:
        if case.world_size == 1:
            return "one rank has no communication"
        is_over_host = case.backend == "gloo" and case.device == "cuda"
        return _why_not_over_gloo(self.collectives) if is_over_host else None

    def problems(self, where: str, cluster: ResolvedCluster) -> Iterator[Problem]:
        """Trials too large for a record, and what CPUs have not."""
        workload = self.collectives
        sizes = len(workload.dtypes) * len(workload.sizes_bytes())
        if workload.pairwise:
            shape = max(cluster.shapes, key=_num_pairs)
            rows, what = _num_pairs(shape) * sizes, f"pairs of {shape} x dtypes x sizes"
            hint = "fewer sizes, or fewer nodes"
        else:
            rows, what = len(workload.ops) * sizes, "ops x dtypes x sizes"
            hint = "a larger `factor`, or the ops in two workloads"
        if rows > MOST_COLLECTIVE_ROWS:
            message = (
                f"{rows} measurements in one trial ({what}), "
                f"and {MOST_COLLECTIVE_ROWS} fit in its record"
            )
            yield Problem(f"{where}.sizes", message, hint)
        hint_gpus = "leave it out, or `cluster.device: cuda`"
        if workload.cuda_graphs and cluster.device == "cpu":
            message = "CUDA graphs hold work of GPUs, and CPUs are used"
            yield Problem(f"{where}.cuda_graphs", message, hint_gpus)
        if workload.engine == "nccl-tests" and cluster.device == "cpu":
            message = "nccl-tests measures NCCL on GPUs, and CPUs are used"
            yield Problem(f"{where}.engine", message, hint_gpus)


def _why_not_over_gloo(workload: CollectivesWorkload) -> str | None:
    """Gloo copies a GPU's tensors through the host, in every collective but not in messages between
    two ranks. Source: torch 2.11, docs/source/distributed.md, table of backends (gloo, GPU: send
    and recv ✘, barrier ✘, the others ✓).
    """
    if workload.pairwise or "send_recv" in workload.ops:
        return (
            "Gloo sends no messages between two ranks from a GPU's memory: "
            "`send_recv` and `pairwise` in a workload of their own run over NCCL, or on CPUs"
        )
    if workload.engine == "nccl-tests":
        return "nccl-tests measures NCCL alone: `engine: torch` measures Gloo"
    if workload.cuda_graphs:
        return "a CUDA graph holds work of the GPU alone, and Gloo works on the host"
    return None


def _num_pairs(shape: Shape) -> int:
    return len(ordered_pairs(shape.nodes, shape.ranks_per_node))
