"""In which ways is a storage asked to be used, and what of them was silent?"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from broadgauge.predict.storage.of_training import (
    DEFAULT_WORKERS,
    SAVED_BYTES,
    TOKEN_BYTES,
    WEIGHT_BYTES,
    StorageUse,
)
from broadgauge.specs.errors import InputError

STORAGE = "storage"
USE_FIELDS = (
    *("checkpoint_every", "checkpoint_async", "sample_bytes", "data_workers"),
    "mean_time_between_failures_s",
)
"""Each with one value or several; what is absent is silent."""
Said = Mapping[str, Sequence[Any]]


def storage_uses(said: Said) -> tuple[StorageUse, ...]:
    """Every combination. Raises InputError."""
    return tuple(_uses(said))


def check_named(properties: Said) -> None:
    """Is what is said of a storage said of one? Raises InputError."""
    said = [name for name in USE_FIELDS if name in properties]
    if said and not properties.get(STORAGE):
        flag = said[0].removesuffix("_s").replace("_", "-")
        raise InputError(
            f"--{flag} is of a storage, and none is named",
            hint="--storage nvme-pcie4; `broadgauge catalog list storage` prints those known",
        )


def assumed_words(said: Said) -> tuple[str, ...]:
    """What was silent, and what is taken."""
    return tuple(_assumed(said))


def _uses(said: Mapping[str, Sequence[Any]]) -> Iterator[StorageUse]:
    if len(said.get("mean_time_between_failures_s", ())) > 1:
        raise InputError("one mean time between failures: a cluster has no other")
    values = [said.get(name, (None,)) for name in USE_FIELDS]
    for every, is_async, sample_bytes, workers, failures_s in product(*values):
        if every is None and is_async:
            raise InputError(
                "saves in the background, and how often is not said",
                hint="--checkpoint-every 100",
            )
        yield StorageUse(
            steps_between_saves=_every(every),
            is_async=bool(is_async),
            sample_bytes=sample_bytes,
            workers=DEFAULT_WORKERS if workers is None else workers,
            mean_time_between_failures_s=failures_s,
        )


def _every(steps: int | None) -> int | None:
    if steps is not None and steps < 1:
        raise InputError(f"--checkpoint-every {steps}: one step at least")
    return steps


def _assumed(said: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    yield f"each node loads {WEIGHT_BYTES} bytes a parameter once"
    if "checkpoint_every" in said:
        yield f"a save has {SAVED_BYTES} bytes a trained parameter"
    else:
        yield "no saves (--checkpoint-every)"
    if "sample_bytes" not in said:
        yield f"samples of {TOKEN_BYTES} bytes a token"
    if "data_workers" not in said:
        yield f"{DEFAULT_WORKERS} loaders a rank"
