"""What can a backend not run on these devices? Said at the plan, not by a rank that crashes."""

from broadgauge.specs.case import Case
from broadgauge.specs.workload import CollectivesWorkload


def why_backend_cannot(case: Case) -> str | None:
    """In words; None: it can.

    Gloo copies a GPU's tensors through the host, in every collective but not in messages between
    two ranks. Source: torch 2.11, docs/source/distributed.md, table of backends (gloo, GPU: send
    and recv ✘, barrier ✘, the others ✓).
    """
    if case.backend != "gloo":
        return None
    if case.path is not None and case.path.path != "sockets":
        return "Gloo has no path but sockets inside a node"
    if case.device != "cuda" or not isinstance(case.workload, CollectivesWorkload):
        return None
    return _why_not_over_gloo(case.workload)


def _why_not_over_gloo(workload: CollectivesWorkload) -> str | None:
    """Of a GPU's memory."""
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
