"""The tables of skypilot-2025: steps, a reduce-scatter, storages, whole jobs."""

from collections.abc import Iterator

from broadgauge.catalog.articles import Articles
from broadgauge.predict.articles.recomputed import skypilot
from broadgauge.predict.articles.scores import ArticleScores
from broadgauge.predict.articles.table import ArticleFigure, ArticleTable

NETWORKS = {"eth10": "10 Gbit/s Ethernet", "infiniband": "InfiniBand, 8 × 400 Gbit/s"}
STORAGES = {
    "local-nvme": "local NVMe",
    "shared-fs": "shared file system",
    "s3-mount": "object store, MOUNT",
    "s3-cached": "object store, MOUNT_CACHED",
}
PHASES = {"batch": "100 samples loaded", "load": "model loaded", "save": "checkpoint saved"}
LABELS = {"eth10": "Gemma 3 12B, Ethernet", "infiniband": "Gemma 3 12B, InfiniBand"}
"""Of its steps in our example."""
EXAMPLE = "gemma-12b-fsdp-cpu"
NO_STORAGE = "storage is measured, not predicted"
START_UP = "start-up, loading and checkpoints are inside"


def nebius_tables(tables: Articles, scores: ArticleScores) -> Iterator[ArticleTable]:
    """In the article's order."""
    rows = tuple(_steps(tables, scores))
    title = "Gemma 3 12B, a step"
    yield ArticleTable(title=title, metric="step_time_s", rows=rows, example=EXAMPLE)
    yield ArticleTable(title="Gemma 3 12B, the job", metric="duration_s", rows=tuple(_jobs(tables)))
    scatters = tuple(
        ArticleFigure(
            id=f"reduce-scatter-{each.network}",
            words=NETWORKS[each.network],
            published=f"{each.milliseconds:g} ms",
            number=each.milliseconds / 1e3,
            why="what the predictions of the steps are made from",
        )
        for each in tables.reduce_scatter_ms
    )
    yield ArticleTable(title="Its first reduce-scatter", metric="latency_s", rows=scatters)
    yield ArticleTable(
        title="GPT-OSS-120B, InfiniBand over Ethernet",
        metric="speedup_ratio",
        is_relative=False,
        rows=(
            ArticleFigure(
                id="gpt-oss-120b",
                words="four nodes of eight H200",
                published=f"{tables.gpt_oss_120b_speedup_infiniband_over_eth10:g}×",
                number=tables.gpt_oss_120b_speedup_infiniband_over_eth10,
                why="neither batch nor step times are published",
            ),
        ),
    )
    yield from _of_storages(tables)
    low, high = tables.end_to_end.speedup
    job = ArticleFigure(
        id="end-to-end",
        words="80 steps, loading and saving: both changes",
        published=f"{low:g}–{high:g}×",
        number=low,
        why="how often it saves is not published",
    )
    title = "End to end, slow over fast configuration"
    yield ArticleTable(title=title, metric="speedup_ratio", rows=(job,), is_relative=False)


def _steps(tables: Articles, scores: ArticleScores) -> Iterator[ArticleFigure]:
    for each in tables.step_seconds:
        row_id = f"{each.system}-{each.network}"
        (found,) = (row for row in scores.rows if row.row.id == row_id)
        assert found.prediction is not None
        yield ArticleFigure(
            id=row_id,
            words=NETWORKS[each.network],
            published=f"{each.seconds:g} s",
            number=each.seconds,
            predicted=found.prediction.step_time_s,
            why=found.row.reason,
            label=LABELS[each.network],
        )


def _jobs(tables: Articles) -> Iterator[ArticleFigure]:
    for each in tables.step_seconds:
        minutes = skypilot.total_minutes(tables, each.network).number
        yield ArticleFigure(
            id=f"{each.system}-{each.network}-job",
            words=NETWORKS[each.network],
            published=f"{each.total_minutes:g} min",
            number=each.total_minutes * 60,
            why=f"{START_UP}; 80 published steps are {minutes:.1f} min",
        )


def _of_storages(tables: Articles) -> Iterator[ArticleTable]:
    for verb in ("read", "write"):
        rows = tuple(
            ArticleFigure(
                id=f"{verb}-{each.storage}",
                words=STORAGES[each.storage],
                published=f"{_rate(each.read_gbyte_per_s, each.write_gbyte_per_s, verb):g} GB/s"
                + ("+" if each.storage == "local-nvme" else ""),
                number=_rate(each.read_gbyte_per_s, each.write_gbyte_per_s, verb),
                why=NO_STORAGE,
            )
            for each in tables.storage_bandwidth
        )
        yield ArticleTable(title=f"Storages: {verb}", metric=f"{verb}_gbyte_per_s", rows=rows)
    for phase, words in PHASES.items():
        rows = tuple(
            ArticleFigure(
                id=f"{phase}-{each.storage}",
                words=STORAGES[each.storage],
                published=f"{skypilot.phase_s(tables, phase, each.storage):g} s",
                number=skypilot.phase_s(tables, phase, each.storage),
                why=NO_STORAGE,
            )
            for each in tables.storage_phases_seconds
        )
        yield ArticleTable(title=f"Storages: {words}", metric=f"{phase}_time_s", rows=rows)


def _rate(read: float, write: float, verb: str) -> float:
    return read if verb == "read" else write
