"""What will a run write to its storages, and what do its requests cost? Before it is started."""

from collections.abc import Iterator

from broadgauge.catalog.object_requests import WHOSE, requests_usd
from broadgauge.engine.kinds.registry import in_engine
from broadgauge.messages.storage_bytes import StorageTraffic
from broadgauge.report.cost_words import usd_words
from broadgauge.specs.case import Case
from broadgauge.specs.plan import Plan
from broadgauge.specs.storage import Storage
from broadgauge.specs.units import show_size


def storage_lines(plan: Plan) -> Iterator[str]:
    """A line for each case that measures a storage."""
    trials: dict[str, int] = {}
    for launch in plan.launches:
        for trial in launch.trials:
            trials[trial.case_key] = trials.get(trial.case_key, 0) + 1
    for case in plan.cases:
        traffic = in_engine(case.workload).storage_traffic(case)
        if traffic is not None and case.storage is not None:
            yield _line(case, case.storage, traffic, trials.get(case.key, 0))


def _line(case: Case, storage: Storage, traffic: StorageTraffic, num_trials: int) -> str:
    written, read = show_size(traffic.written_bytes), show_size(traffic.read_bytes)
    words = (
        f"{case.workload.name} {case.shape} on {storage.label}: a trial writes at most {written} "
        f"and removes it, and reads {read}; {num_trials} trials write "
        f"{show_size(num_trials * traffic.written_bytes)}"
    )
    if not is_object_store(storage):
        return words
    puts, gets = num_trials * traffic.puts_count, num_trials * traffic.gets_count
    words += f"; about {puts:,} requests that write and {gets:,} that read"
    if storage.emulated is not None or storage.endpoint is not None:
        return words
    price = usd_words(requests_usd(puts_count=puts, gets_count=gets))
    return f"{words}, {price} at the list prices of {WHOSE}"


def is_object_store(storage: Storage) -> bool:
    """Is it one, or a mount of one?"""
    if storage.emulated is not None:
        return storage.emulated.kind.startswith("s3")
    return storage.url is not None or storage.object_url is not None
