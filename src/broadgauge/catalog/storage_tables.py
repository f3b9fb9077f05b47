"""Which published figures of storages can `advise` choose by?"""

from collections.abc import Callable

from broadgauge.catalog.articles import articles
from broadgauge.specs.storage_table import StorageFigures, StorageOfPhase, StorageTable

_STORES = {"s3-mount": "bucket", "s3-cached": "bucket"}
"""Source: the article mounts one bucket in two ways."""


def of_skypilot_2025() -> StorageTable:
    """Gemma 3 12B on two nodes of eight H100s.

    Its table says nothing of caches, nor when a save to the cached mount is durable.
    """
    rows = articles().storage_phases_seconds
    return StorageTable(
        storages=tuple(
            StorageFigures(
                name=row.storage,
                store=_STORES.get(row.storage),
                is_durable=row.durable,
                batch_loading_s=row.batch_loading_per_100_samples,
                model_loading_s=row.model_loading,
                checkpoint_stall_s=row.checkpoint_saving,
            )
            for row in rows
        ),
        now=StorageOfPhase(
            batch_loading="s3-mount", model_loading="s3-mount", checkpoint_saving="s3-mount"
        ),
        note="read again, its batch loading on s3-mount is mostly waits of half a minute after a "
        "save, its local model loading may be of a warm cache, and no number of bytes explains "
        "its saves: docs/storage.md",
    )


PUBLISHED: dict[str, Callable[[], StorageTable]] = {"skypilot-2025": of_skypilot_2025}
"""By the article's name in articles.yaml."""
