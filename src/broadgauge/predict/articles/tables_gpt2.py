"""The tables of net1-2025: second epochs, estimates by hand, all-reduces, memory."""

from collections.abc import Iterator

from broadgauge.catalog.articles import Articles, EpochTime
from broadgauge.predict.articles.recomputed import gpt2
from broadgauge.predict.articles.rows import Role
from broadgauge.predict.articles.scores import ArticleScores
from broadgauge.predict.articles.table import ArticleFigure, ArticleTable
from broadgauge.predict.prediction import Interval
from broadgauge.specs.units import show_bandwidth, show_time

EXAMPLE = "gpt2-networks"
MODELS = {"gpt2-85m-ddp": "85 million", gpt2.LARGE: "708 million"}
PATHS = {
    "none": "one GPU",
    "nvlink3": "NVLink",
    "pcie4": "PCIe 4.0",
    "hdr": "HDR",
    "eth25": "25GbE",
}
LABELS = {
    "e-15-4-1": "e-15-4-1, GPT-2 Large, one GPU",
    "e-15-5-3": "e-15-5-3, GPT-2 Large, NVLink",
    "e-15-6-2": "e-15-6-2, GPT-2 Large, HDR",
}
NOT_PREDICTED = "what the predictions are made from"
NO_MEMORY = "Lightning's memory is not modelled"


def gpt2_tables(tables: Articles, scores: ArticleScores) -> Iterator[ArticleTable]:
    """In the article's order."""
    for workload, size in MODELS.items():
        rows = tuple(
            _epoch(tables, scores, each)
            for each in tables.epoch2_seconds
            if each.workload == workload
        )
        title = f"e-15: second epoch and its step (brackets: of the step), {size} parameters"
        yield ArticleTable(title=title, metric="step_time_s", rows=rows, example=EXAMPLE)
    yield ArticleTable(
        title="Ratios of epochs",
        metric="speedup_ratio",
        rows=tuple(_ratios(tables, scores)),
        is_relative=False,
        example=EXAMPLE,
    )
    yield ArticleTable(
        title="Estimates by hand, 708 million parameters",
        metric="epoch_time_s",
        rows=tuple(_estimates(tables, scores)),
        is_relative=False,
    )
    yield ArticleTable(
        title="e-16: all-reduce of 1.416 GB: as printed (2 × GiB/s), and busbw",
        metric="busbw_gbyte_per_s",
        rows=tuple(_all_reduces(tables)),
        example=EXAMPLE,
    )
    yield ArticleTable(
        title="e-15: peak memory",
        metric="peak_memory_bytes",
        rows=tuple(_memory(tables)),
        is_relative=False,
    )


def epoch_steps(tables: Articles, epoch: EpochTime) -> int:
    """Steps of an epoch; of the small model those of the large one."""
    return tables.workloads[gpt2.LARGE].steps_per_epoch[epoch.nodes * epoch.gpus_per_node]


def _epoch(tables: Articles, scores: ArticleScores, epoch: EpochTime) -> ArticleFigure:
    (found,) = (each for each in scores.rows if each.row.id == epoch.id)
    steps = epoch_steps(tables, epoch)
    step_s = epoch.seconds / steps
    step = None if found.prediction is None else found.prediction.step_time_s
    return ArticleFigure(
        id=epoch.id,
        words=f"{epoch.id}, {PATHS[epoch.network]}",
        published=f"{epoch.seconds:.2f} s, {show_time(step_s)}",
        number=step_s,
        predicted=step,
        remark="" if step is None or found.row.role is Role.SCORED else found.row.role.value,
        why=found.row.reason,
        label=LABELS.get(epoch.id),
    )


def _ratios(tables: Articles, scores: ArticleScores) -> Iterator[ArticleFigure]:
    speedup = gpt2.speedup_of_two(tables, "e-15-1", "e-15-2").number
    yield ArticleFigure(
        id="e-15-1-over-e-15-2",
        words="e-15-1 over e-15-2, two GPUs over one",
        published=f"{speedup:.4g}×",
        number=speedup,
        why="e-15-1 contradicts the others, and is not predicted",
        label="e-15-2 over e-15-1, GPT-2, two GPUs over one",
    )
    wanted = (
        ("e-15-3", "e-15-2", "e-15-3 over e-15-2, GPT-2, HDR over NVLink"),
        ("e-15-6-2", "e-15-5-3", "e-15-6-2 over e-15-5-3, GPT-2 Large, HDR over NVLink"),
    )
    for one, other, label in wanted:
        ratio = gpt2.epochs_ratio(tables, one, other).number
        predicted = scores.step_s(one) / scores.step_s(other)
        yield ArticleFigure(
            id=f"{one}-over-{other}",
            words=f"{one} over {other}, HDR over NVLink",
            published=f"{ratio:.4g}×",
            number=ratio,
            predicted=Interval(value=predicted, low=predicted, high=predicted),
            label=label,
        )


def _estimates(tables: Articles, scores: ArticleScores) -> Iterator[ArticleFigure]:
    """The article's, and ours of the same epoch."""
    steps = tables.workloads[gpt2.LARGE].steps_per_epoch[2]
    for estimate, means in zip(
        tables.estimates_net1, ("nominal rate", "measured all-reduce"), strict=True
    ):
        for path, row, part in (
            ("NVLink", "e-15-5-3", estimate.nvlink3),
            ("HDR", "e-15-6-2", estimate.hdr),
        ):
            (found,) = (each.prediction for each in scores.rows if each.row.id == row)
            assert found is not None
            step = found.step_time_s
            yield ArticleFigure(
                id=f"{row}-by-{means.replace(' ', '-')}",
                words=f"{path} ({gpt2.epoch_s(tables, row):.2f} s measured), by {means}",
                published=f"{part.total_s:.2f} s",
                number=part.total_s,
                predicted=Interval(
                    value=steps * step.value, low=steps * step.low, high=steps * step.high
                ),
            )


def _all_reduces(tables: Articles) -> Iterator[ArticleFigure]:
    labels = {
        ("nvlink3", "nccl"): "e-16-1, all-reduce, NVLink, NCCL",
        ("pcie4", "nccl"): "e-16-1, all-reduce, PCIe 4.0, NCCL",
        ("hdr", "nccl"): "e-16-2, all-reduce, HDR, NCCL",
        ("eth25", "nccl"): "e-16-2, all-reduce, 25GbE, NCCL",
        ("hdr", "gloo"): "e-16-2, all-reduce, HDR, Gloo",
        ("eth25", "gloo"): "e-16-2, all-reduce, 25GbE, Gloo",
    }
    for row in tables.all_reduce:
        backend = {"nccl": "NCCL", "gloo": "Gloo"}[row.backend]
        busbw = gpt2.busbw(tables, row.path, row.backend).number
        yield ArticleFigure(
            id=f"e-16-{row.path}-{row.backend}",
            words=f"{PATHS[row.path]}, {backend}",
            published=f"{row.twice_gibyte_per_s:.2f}, {show_bandwidth(busbw)}",
            number=busbw,
            why=NOT_PREDICTED,
            label=labels[row.path, row.backend],
        )


def _memory(tables: Articles) -> Iterator[ArticleFigure]:
    for epoch in tables.epoch2_seconds:
        yield ArticleFigure(
            id=f"{epoch.id}-memory",
            words=epoch.id,
            published=f"{epoch.peak_memory_mib:,.2f} MiB",
            number=epoch.peak_memory_mib * 2**20,
            why=NO_MEMORY,
        )
