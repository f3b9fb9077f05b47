"""What does the storage model say of an article's four storages, and what can nobody say of them?

Source: "Network and Storage Benchmarks for LLM Training on the Cloud" (SkyPilot, 2025-09-11); its
figures are in catalog/articles.yaml. Loading: the anchor's row gives the fixed part, the other rows
follow from their own stated rates. Saving: no number of bytes explains the rows, so none is fitted.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from broadgauge.catalog.articles import Articles, StorageBandwidth
from broadgauge.catalog.entries import find_entry
from broadgauge.catalog.references import known_storage
from broadgauge.predict.articles.rows import Role
from broadgauge.predict.prediction import Interval
from broadgauge.predict.storage.description import KnownValue, StorageModel
from broadgauge.predict.storage.from_catalog import of_entry
from broadgauge.predict.storage.phases import LoadOrder, load_time
from broadgauge.predict.storage.priors import NOMINAL_SPREAD_RATIO

PARAMS = 11.771e9 + 0.417e9
"""Source: Gemma Team 2025 (arXiv 2503.19786), table 1: Gemma 3 12B with its vision encoder."""
MODEL_BYTES = 2 * PARAMS
"""In bf16; rank 0 alone reads it. Source: skypilot-org/skypilot,
examples/training_network_storage_benchmarks (FSDP2 with RAM-efficient loading)."""
SAVED_BYTES = (6 * PARAMS, 12 * PARAMS)
"""Weights and Adam's two moments, all in bf16 or all in fp32: one of the two is expected."""
ANCHOR = "local-nvme"
LIMIT_RATIO = 0.2
ALIKE_RATIO = 1.5
"""Bytes that pairs of rows imply, largest over smallest, up to which they say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRow:
    """Loading a model from one storage."""

    storage: str
    published_s: float
    predicted_s: Interval
    role: Role
    reason: str = ""

    @property
    def error_ratio(self) -> float:
        """Predicted over published, minus one."""
        return self.predicted_s.value / self.published_s - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ImpliedBytes:
    """What two rows say a save has written, if it took one fixed part and its stated rates."""

    storages: tuple[str, str]
    num_bytes: float
    """Below 0: the faster storage took longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageScores:
    """The article's three phases."""

    loads: tuple[LoadRow, ...]
    fixed_s: float
    """By the anchor."""
    saves: tuple[ImpliedBytes, ...]
    not_predicted: tuple[tuple[str, str], ...]
    """Phase, and why it is not."""

    @property
    def scored(self) -> tuple[LoadRow, ...]:
        return tuple(row for row in self.loads if row.role is Role.SCORED)

    @property
    def error_ratio(self) -> float:
        """The largest of the scored rows."""
        return max(abs(row.error_ratio) for row in self.scored)

    @property
    def is_reached(self) -> bool:
        """Two rows beside the anchor within the limit."""
        within = [row for row in self.scored if abs(row.error_ratio) <= LIMIT_RATIO]
        return len(within) >= 2 and len(within) == len(self.scored)


def storage_scores(tables: Articles) -> StorageScores:
    """All rows, none edited."""
    rates = {each.storage: each for each in tables.storage_bandwidth}
    loaded = {each.storage: each.model_loading for each in tables.storage_phases_seconds}
    order = LoadOrder(num_bytes=MODEL_BYTES)
    fixed_s = loaded[ANCHOR] - load_time(_with_fixed(ANCHOR, 0.0), order).time_s.value
    loads = tuple(
        _load_row(rates[name], seconds, load_time(_with_fixed(name, fixed_s), order).time_s)
        for name, seconds in loaded.items()
    )
    return StorageScores(
        loads=loads,
        fixed_s=fixed_s,
        saves=tuple(_implied(tables)),
        not_predicted=(
            ("checkpoint saving", _why_no_fit(tables)),
            (
                "batch loading",
                "its timer runs over a collective of all ranks: of the 25 waits that the "
                "example's authors published four, each right after a save, make 88 %",
            ),
        ),
    )


def implied_bytes(
    one_s: float, one_gbyte_per_s: float, other_s: float, other_gbyte_per_s: float
) -> float:
    """T = fixed + bytes / rate of both, the fixed part taken out."""
    per_byte = (1 / other_gbyte_per_s - 1 / one_gbyte_per_s) / 1e9
    return (other_s - one_s) / per_byte


def is_underdetermined(found: tuple[ImpliedBytes, ...]) -> bool:
    """Do pairs of rows imply bytes that are not the same?"""
    sizes = [each.num_bytes for each in found]
    return min(sizes) <= 0 or max(sizes) / min(sizes) > ALIKE_RATIO


def _with_fixed(name: str, fixed_s: float) -> StorageModel:
    model = of_entry(find_entry(f"nebius-{name}", known_storage(), "storage"))
    source = f"the row of {ANCHOR}, less its bytes over its rate"
    fixed = KnownValue.around(fixed_s, NOMINAL_SPREAD_RATIO, source)
    return replace(model, load_host_s=fixed)


def _load_row(rate: StorageBandwidth, seconds: float, predicted: Interval) -> LoadRow:
    reached = MODEL_BYTES / seconds / 1e9
    role, reason = Role.SCORED, ""
    if rate.storage == ANCHOR:
        role, reason = Role.CALIBRATES, "gives the fixed part; its files may have been in memory"
    elif reached > rate.read_gbyte_per_s:
        role = Role.CONTRADICTORY
        reason = (
            f"{MODEL_BYTES / 1e9:.1f} GB in {seconds:g} s are {reached:.2f} GB/s with nothing "
            f"fixed, and its source states {rate.read_gbyte_per_s:g}: files read beside each "
            "other, or a cache"
        )
    return LoadRow(
        storage=rate.storage,
        published_s=seconds,
        predicted_s=predicted,
        role=role,
        reason=reason,
    )


def _implied(tables: Articles) -> Iterator[ImpliedBytes]:
    rates = {each.storage: each.write_gbyte_per_s for each in tables.storage_bandwidth}
    for one, other in itertools.combinations(tables.storage_phases_seconds, 2):
        yield ImpliedBytes(
            storages=(one.storage, other.storage),
            num_bytes=implied_bytes(
                one.checkpoint_saving,
                rates[one.storage],
                other.checkpoint_saving,
                rates[other.storage],
            ),
        )


def _why_no_fit(tables: Articles) -> str:
    assert is_underdetermined(tuple(_implied(tables)))
    low, high = (round(size / 1e9) for size in SAVED_BYTES)
    anchor = next(each for each in tables.storage_phases_seconds if each.storage == ANCHOR)
    rate = next(each for each in tables.storage_bandwidth if each.storage == ANCHOR)
    written = SAVED_BYTES[0] / rate.write_gbyte_per_s / 1e9
    return (
        "underdetermined, so nothing is fitted: a fixed part and the stated rates give another "
        f"number of bytes for each pair of rows, and none is the expected {low} or {high} GB. "
        f"Writing takes {written:.0f} s or twice that of the {anchor.checkpoint_saving:g} s on "
        f"{ANCHOR}; the rest is gathering and serialising, whose length no row tells"
    )
