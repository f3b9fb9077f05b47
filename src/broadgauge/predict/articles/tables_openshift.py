"""The tables of redhat-network-2025 and redhat-gpudirect-2025."""

from collections.abc import Iterator

from broadgauge.catalog.articles import Articles
from broadgauge.predict.articles.recomputed import gpudirect, network
from broadgauge.predict.articles.rows import Role
from broadgauge.predict.articles.scores import ArticleScores, PredictedRow
from broadgauge.predict.articles.table import ArticleFigure, ArticleTable
from broadgauge.predict.prediction import Interval

NETWORKS = {
    "none": "",
    "pod": ", pod network",
    "vnic": ", vNIC",
    "sriov": ", SR-IOV",
    "sriov-rdma": ", SR-IOV with RDMA",
}
SYSTEMS = {
    network.L40S: ("Figure 6: two L40S a node", "L40S", "granite-l40s-cpu"),
    network.H100: ("Figure 7: eight H100 a node", "H100", "granite-h100-cpu"),
}
RATIO = "speedup_ratio"
HOURS = {"pod": "default network", "tcp": "TCP on the second NIC", "roce": "GPUDirect RDMA"}


def granite_tables(tables: Articles, scores: ArticleScores) -> Iterator[ArticleTable]:
    """Throughputs of both clusters, then the ratios that the article speaks of."""
    for system, (title, gpu, example) in SYSTEMS.items():
        rows = tuple(_throughput(each, gpu) for each in scores.rows if each.row.series == system)
        yield ArticleTable(title=title, metric="samples_per_s", rows=rows, example=example)
    yield ArticleTable(
        title="Ratios of its throughputs",
        metric=RATIO,
        rows=tuple(_ratios(tables, scores)),
        is_relative=False,
        example="granite-h100-cpu",
    )


def _throughput(each: PredictedRow, gpu: str) -> ArticleFigure:
    case, seconds = each.row.case, each.row.step_time_s
    assert case is not None
    assert seconds is not None
    assert each.prediction is not None
    step = each.prediction.step_time_s
    batch = case.global_batch
    nodes = "1 node" if case.nodes == 1 else f"{case.nodes} nodes"
    return ArticleFigure(
        id=each.row.id,
        words=f"{nodes}{NETWORKS[case.fabric.name or 'none']}",
        published=each.row.published.removesuffix(" samples/s"),
        number=batch / seconds,
        predicted=Interval(value=batch / step.value, low=batch / step.high, high=batch / step.low),
        remark="" if each.row.role is Role.SCORED else each.row.role.value,
        why=each.row.reason,
        label=f"{gpu}, {nodes}{NETWORKS[case.fabric.name or 'none']}",
    )


def _ratios(tables: Articles, scores: ArticleScores) -> Iterator[ArticleFigure]:
    l40s, h100 = network.L40S, network.H100
    wanted = (
        (l40s, "vnic", 8, "pod", 8, "L40S, 8 nodes, vNIC over pod"),
        (h100, "sriov", 2, "vnic", 2, "H100, 2 nodes, SR-IOV over vNIC"),
        (h100, "sriov-rdma", 2, "sriov", 2, "H100, 2 nodes, SR-IOV with RDMA over SR-IOV"),
        (h100, "pod", 2, "none", 1, "H100, 2 nodes on the pod network over 1 node"),
    )
    for system, name, nodes, other, others, label in wanted:
        ratio = network.samples_per_s(tables, system, name, nodes) / network.samples_per_s(
            tables, system, other, others
        )
        there, here = f"{system}-{other}-{others}", f"{system}-{name}-{nodes}"
        predicted = scores.step_s(there) / scores.step_s(here)
        yield ArticleFigure(
            id=f"{here}-over-{other}-{others}",
            words=label,
            published=f"{ratio:.4g}×",
            number=ratio,
            predicted=Interval(value=predicted, low=predicted, high=predicted),
            label=label,
        )


def _hours(hours: float) -> str:
    """`1 h 40`, as an article writes 1.6667."""
    minutes = round(60 * hours)
    rest = f" {minutes % 60}" if minutes % 60 else ""
    return f"{minutes // 60} h{rest}"


def lora_tables(tables: Articles, scores: ArticleScores) -> Iterator[ArticleTable]:
    """Hours, and their ratios."""
    why = next(each.row.reason for each in scores.rows if each.row.series == "a40-pair")
    rows = tuple(
        ArticleFigure(
            id=f"a40-pair-{each.network}",
            words=HOURS[each.network],
            published=_hours(each.hours),
            number=each.hours * 3600,
            why=why,
        )
        for each in tables.completion_hours
    )
    example = "llama-lora-a40"
    yield ArticleTable(title="Whole trainings", metric="duration_s", rows=rows, example=example)
    labels = {
        "tcp": "pod network over macvlan TCP, LoRA fine-tuning of Llama 3.1 8B",
        "roce": "pod network over GPUDirect RoCE, LoRA fine-tuning of Llama 3.1 8B",
    }
    ratios = tuple(
        ArticleFigure(
            id=f"a40-pair-pod-over-{name}",
            words=f"{HOURS['pod']} over {HOURS[name]}",
            published=f"{gpudirect.times_as_fast(tables, 'pod', name).number:.3g}×",
            number=gpudirect.times_as_fast(tables, "pod", name).number,
            why=why,
            label=label,
        )
        for name, label in labels.items()
    )
    yield ArticleTable(
        title="Ratios of its durations",
        metric=RATIO,
        rows=ratios,
        is_relative=False,
        example=example,
    )
