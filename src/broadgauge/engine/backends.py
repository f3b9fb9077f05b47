"""What can a backend not run on these devices? Said at the plan, not by a rank that crashes."""

from broadgauge.engine.kinds.registry import in_engine
from broadgauge.specs.case import Case


def why_not_run(case: Case) -> str | None:
    """In words, of any workload on this path and of this workload; None: it can be run."""
    if case.backend == "gloo" and case.path is not None and case.path.path != "sockets":
        return "Gloo has no path but sockets inside a node"
    if case.backend == "gloo" and case.link is not None and case.link.is_meant_as_rdma:
        return f"Gloo sends over TCP, and network {case.link.name} is meant as RDMA"
    return in_engine(case.workload).why_not_run(case)
