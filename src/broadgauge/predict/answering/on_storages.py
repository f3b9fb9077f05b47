"""Which trainings are asked on which storages, and what does each wait there?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from broadgauge.catalog.catalog import Catalog
from broadgauge.predict.case import TrainingCase
from broadgauge.predict.facts.knowledge import Knowledge
from broadgauge.predict.predictor import predict_table
from broadgauge.predict.storage.asked import (
    STORAGE,
    USE_FIELDS,
    assumed_words,
    check_named,
    storage_uses,
)
from broadgauge.predict.storage.description import StorageModel
from broadgauge.predict.storage.named import storages_named
from broadgauge.predict.storage.of_training import StorageUse, on_storage
from broadgauge.specs.errors import InputError

MOST_CASES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedStorages:
    """Of one command."""

    storages: tuple[StorageModel, ...]
    uses: tuple[StorageUse, ...]
    """Each storage is used in each of these ways."""
    assumed: tuple[str, ...]
    """What was silent, and what was taken."""


def split_storage(
    properties: Mapping[str, Sequence[Any]], catalog: Catalog
) -> tuple[dict[str, Sequence[Any]], AskedStorages | None]:
    """What is asked of storages, and the rest; None: nothing is. Raises InputError."""
    rest = {k: v for k, v in properties.items() if k not in (STORAGE, *USE_FIELDS)}
    said = {k: v for k, v in properties.items() if k in USE_FIELDS}
    check_named(properties)
    if STORAGE not in properties:
        return rest, None
    clashing = [name for name in ("data_s", "checkpoint_s") if name in rest]
    if clashing:
        raise InputError(
            "a stall that was measured and a storage that is modelled say the same thing",
            hint="--storage without --data-stall and --checkpoint-stall, or the other way round",
        )
    storages = [s for name in properties[STORAGE] for s in storages_named(name, catalog)]
    return rest, AskedStorages(
        storages=tuple(dict.fromkeys(storages)),
        uses=storage_uses(said),
        assumed=assumed_words(said),
    )


def on_storages(
    cases: Sequence[TrainingCase], asked: AskedStorages, knowledge: Knowledge | None
) -> tuple[TrainingCase, ...]:
    """Every case on every storage in every way. Raises InputError: too many."""
    count = len(cases) * len(asked.storages) * len(asked.uses)
    if count > MOST_CASES:
        raise InputError(
            f"{count:,} combinations are more than the {MOST_CASES:,} that are predicted at once",
            hint="shorter lists",
        )
    steps_s = predict_table(cases, knowledge).evaluation.step_s
    return tuple(
        case_on(case, storage, use, float(step_s))
        for storage, use in product(asked.storages, asked.uses)
        for case, step_s in zip(cases, steps_s, strict=True)
    )


def case_on(
    case: TrainingCase, storage: StorageModel, use: StorageUse, step_s: float
) -> TrainingCase:
    """`step_s`: of the case without any storage."""
    words = ", ".join(word for word in (storage.name, use.words()) if word)
    return replace(case, storage=words, storage_waits=on_storage(case, storage, use, step_s))
