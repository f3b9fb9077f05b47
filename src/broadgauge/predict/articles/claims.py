"""Do the articles' own sentences follow from their figures, and from predictions?"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.catalog.articles import Articles, articles
from broadgauge.predict.articles.scores import ArticleScores


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClaim:
    """One figure of a claim."""

    claim: str
    figure: str
    """Which figure it is: `by step`."""
    printed_ratio: float
    """As articles.yaml has it recomputed, to its digits."""
    from_rows_ratio: float
    """Recomputed here from the published rows."""
    predicted_ratio: float | None
    """From predictions; None: `why` says why there is none."""
    why: str = ""


def checked_claims(scores: ArticleScores) -> tuple[CheckedClaim, ...]:
    """Every claim of articles.yaml, figure by figure, in its order."""
    tables = articles()
    figures = list(_figures(tables, scores))
    return tuple(
        CheckedClaim(
            claim=tables.claims[index].claim,
            figure=figure,
            printed_ratio=_printed(tables, index, figure),
            from_rows_ratio=from_rows,
            predicted_ratio=None if isinstance(predicted, str) else predicted,
            why=predicted if isinstance(predicted, str) else "",
        )
        for index, figure, from_rows, predicted in figures
    )


def _figures(
    tables: Articles, scores: ArticleScores
) -> Iterator[tuple[int, str, float, float | str]]:
    """Position of the claim, name of the figure, from the rows, from predictions or why not."""
    rate = {
        (r.system, r.network, r.nodes): r.samples_per_s for r in tables.throughput_samples_per_s
    }
    l40s, h100 = "l40s-cluster", "h100-cluster"

    def slower(first: str, second: str) -> float:
        return scores.step_s(first) / scores.step_s(second)

    pod = f"{l40s}-pod-8"
    vnic_gain = rate[l40s, "vnic", 8] / rate[l40s, "pod", 8] - 1
    yield 0, "gain", vnic_gain, slower(pod, f"{l40s}-vnic-8") - 1
    sriov = rate[h100, "sriov", 2] / rate[h100, "vnic", 2]
    yield 1, "ratio", sriov, slower(f"{h100}-vnic-2", f"{h100}-sriov-2")
    two_nodes = rate[h100, "pod", 2] / rate[h100, "none", 1]
    yield 2, "ratio", two_nodes, slower(f"{h100}-none-1", f"{h100}-pod-2")
    hours = {each.network: each.hours for each in tables.completion_hours}
    unknown = "tokens a step are not published"
    yield 3, "TCP over pod", hours["pod"] / hours["tcp"], unknown
    yield 3, "RoCE over pod", hours["pod"] / hours["roce"], unknown
    slow, fast = tables.step_seconds
    by_step = slower("nebius-h100-eth10", "nebius-h100-infiniband")
    yield 4, "by_step", slow.seconds / fast.seconds, by_step
    start_up = "start-up, loading and checkpoints are inside"
    yield 4, "by_total_time", slow.total_minutes / fast.total_minutes, start_up
    slow_scatter, fast_scatter = tables.reduce_scatter_ms
    yield (
        5,
        "reduce_scatter",
        slow_scatter.milliseconds / fast_scatter.milliseconds,
        "the predictions' input",
    )
    yield from _of_storage(tables)


def _of_storage(tables: Articles) -> Iterator[tuple[int, str, float, str]]:
    storage = {each.storage: each for each in tables.storage_phases_seconds}
    nvme, mount, cached = storage["local-nvme"], storage["s3-mount"], storage["s3-cached"]
    why = "storage is measured, not predicted"
    loading = mount.batch_loading_per_100_samples / nvme.batch_loading_per_100_samples
    yield 6, "batch_loading", loading, why
    saving = mount.checkpoint_saving
    yield 6, "checkpoint_mount_over_cached", saving / cached.checkpoint_saving, why
    yield 6, "checkpoint_mount_over_nvme", saving / nvme.checkpoint_saving, why
    yield 7, "share", saving / 3600, why


def _printed(tables: Articles, index: int, figure: str) -> float:
    """The figure of this name; of an unnamed list, by its place."""
    recomputed = tables.claims[index].recomputed
    if isinstance(recomputed, dict):
        return recomputed[figure]
    if isinstance(recomputed, tuple):
        return recomputed[("TCP over pod", "RoCE over pod").index(figure)]
    return recomputed
