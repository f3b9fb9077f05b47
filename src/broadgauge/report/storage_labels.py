"""How is a case on a storage named beside others? By what tells them apart."""

from collections.abc import Sequence

from broadgauge.results.model import CaseSummary
from broadgauge.specs.case import Case


def storage_labels(cases: Sequence[CaseSummary]) -> dict[str, str]:
    """By the case's key: `nvme`, with workload, shape and network where several are there."""
    parts = {summary.case.key: _parts(summary.case) for summary in cases}
    shown = [
        place
        for place in range(4)
        if place == 0 or len({each[place] for each in parts.values()}) > 1
    ]
    return {key: " ".join(each[place] for place in shown) for key, each in parts.items()}


def _parts(case: Case) -> tuple[str, str, str, str]:
    storage = "" if case.storage is None else case.storage.name
    workload = case.workload.name.removesuffix(f"-{storage}")
    return storage, workload, case.shape, case.network_name
