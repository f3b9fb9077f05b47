"""Which of a storage's rows speak for each phase, as metrics?

The first variant of a phase's list, cold where that is proven: a warm figure is memory's.
"""

from collections.abc import Callable, Sequence

from broadgauge.merging.metrics import MeasurementBuilder
from broadgauge.specs.case import Case
from broadgauge.specs.storage_rows import CACHE_ORDER, StorageRow
from broadgauge.specs.storage_table import SAMPLES_OF_A_FIGURE

LEFT_OUT = "the workload leaves this phase out"


def headline_row(
    rows: Sequence[StorageRow], phase: str, access: str | None = None
) -> StorageRow | None:
    """The row that speaks for a phase, or for one access of raw rates; None: it has none.

    Of the first variant that was measured: cold if proven, then unknown, then warm.
    """
    meant = [row for row in rows if row.phase == phase and access in (None, access_of(row))]
    measured = [row for row in meant if not row.problem]
    if not measured:
        return meant[0] if meant else None
    of_first = [row for row in measured if row.variant == measured[0].variant]
    return min(of_first, key=lambda row: CACHE_ORDER[row.cache])


def access_of(row: StorageRow) -> str:
    """Of raw rates: `read` of `read, direct`."""
    return row.variant.partition(",")[0]


def put_storage_metrics(found: MeasurementBuilder, case: Case) -> None:
    """Each a figure, or the reason why there is none."""
    del case
    rows = found.storage
    batches = headline_row(rows, "batch_loading")
    model = headline_row(rows, "model_loading")
    saves = headline_row(rows, "checkpoint_saving")
    read = headline_row(rows, "raw", "read")
    write = headline_row(rows, "raw", "write")
    _put(found, "batch_loading_s", batches, _per_100_samples)
    _put(found, "model_loading_s", model, lambda row: row.wait_s)
    _put(found, "model_loading_gbyte_per_s", model, lambda row: row.gbyte_per_s)
    _put(found, "checkpoint_stall_s", saves, lambda row: row.wait_s)
    _put(found, "time_to_durable_s", saves, lambda row: row.durable_s)
    _put(found, "checkpoint_gbyte_per_s", saves, lambda row: row.gbyte_per_s)
    _put(found, "raw_read_gbyte_per_s", read, lambda row: row.gbyte_per_s)
    _put(found, "raw_write_gbyte_per_s", write, lambda row: row.gbyte_per_s)
    _put_share(found, "model_loading_device_share_ratio", model, read)
    _put_share(found, "checkpoint_device_share_ratio", saves, write)


def _put(
    found: MeasurementBuilder,
    name: str,
    row: StorageRow | None,
    figure: Callable[[StorageRow], float | None],
) -> None:
    value = None if row is None or row.problem else figure(row)
    found.put(name, value, _why_none(row))


def _why_none(row: StorageRow | None) -> str:
    if row is None:
        return LEFT_OUT
    if row.problem:
        return row.problem
    if row.durable_s is None and row.phase == "checkpoint_saving":
        return row.durable_evidence or "it is not known when the save was durable"
    return "too short to be measured"


def _per_100_samples(row: StorageRow) -> float | None:
    if row.wait_s is None or not row.samples:
        return None
    return row.wait_s * SAMPLES_OF_A_FIGURE / row.samples


def _put_share(
    found: MeasurementBuilder, name: str, row: StorageRow | None, raw: StorageRow | None
) -> None:
    """Which part of what plain reads or writes reach?"""
    rate = None if row is None else row.gbyte_per_s
    most = None if raw is None else raw.gbyte_per_s
    value = rate / most if rate is not None and most else None
    found.put(name, value, _why_none(row) if rate is None else f"raw: {_why_none(raw)}")
