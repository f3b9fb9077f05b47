"""Which flags ask what a storage would do? Of `predict` and of `whatif`."""

from broadgauge.cli.flags import (
    Flag,
    read_count,
    read_long_time_s,
    read_name,
    read_size_bytes,
    read_yes,
)

STORAGE_FLAGS: tuple[Flag, ...] = (
    Flag(
        name="--storage",
        field="storage",
        read=read_name,
        metavar="NAME|FILE|RUN",
        help="of the catalog, a file of entries, or a run that measured some: loading, saving and "
        "data stalls by their model",
    ),
    Flag(
        name="--checkpoint-every",
        field="checkpoint_every",
        read=read_count,
        metavar="STEPS",
        help="how often it saves to that storage (default: never)",
    ),
    Flag(
        name="--checkpoint-async",
        field="checkpoint_async",
        read=read_yes,
        metavar="yes|no",
        help="saves are written in the background",
        is_switch=True,
    ),
    Flag(
        name="--sample-bytes",
        field="sample_bytes",
        read=read_size_bytes,
        metavar="SIZE",
        help="of a sample that is loaded: `150 kB` (default: four bytes a token)",
    ),
    Flag(
        name="--data-workers",
        field="data_workers",
        read=read_count,
        metavar="N",
        help="loaders of each rank (default: 2)",
    ),
    Flag(
        name="--mean-time-between-failures",
        field="mean_time_between_failures_s",
        read=read_long_time_s,
        metavar="TIME",
        help="of the whole cluster, for how often to save: `24h`",
    ),
)
