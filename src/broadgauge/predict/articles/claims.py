"""Do the articles' own sentences follow from their figures, and from predictions?"""

from collections.abc import Iterator
from dataclasses import dataclass

from broadgauge.catalog.articles import Articles, articles
from broadgauge.predict.articles.recomputed.figures import FIGURES
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
    l40s, h100 = "l40s-cluster", "h100-cluster"

    def from_rows(figure: str) -> float:
        return FIGURES[figure](tables).number

    def slower(first: str, second: str) -> float:
        return scores.step_s(first) / scores.step_s(second)

    vnic_gain = from_rows("l40s-vnic-gain") / 100
    yield 0, "gain", vnic_gain, slower(f"{l40s}-pod-8", f"{l40s}-vnic-8") - 1
    sriov = from_rows("h100-sriov-over-vnic")
    yield 1, "ratio", sriov, slower(f"{h100}-vnic-2", f"{h100}-sriov-2")
    two_nodes = from_rows("h100-pod-speedup")
    yield 2, "ratio", two_nodes, slower(f"{h100}-none-1", f"{h100}-pod-2")
    unknown = "tokens a step are not published"
    yield 3, "TCP over pod", from_rows("a40-tcp"), unknown
    yield 3, "RoCE over pod", from_rows("a40-roce"), unknown
    by_step = slower("nebius-h100-eth10", "nebius-h100-infiniband")
    yield 4, "by_step", from_rows("gemma-by-step"), by_step
    start_up = "start-up, loading and checkpoints are inside"
    yield 4, "by_total_time", from_rows("gemma-by-total"), start_up
    yield 5, "reduce_scatter", from_rows("gemma-reduce-scatter"), "the predictions' input"
    why = "storage is measured, not predicted"
    yield 6, "batch_loading", from_rows("batch-nvme"), why
    yield 6, "checkpoint_mount_over_cached", from_rows("save-cached"), why
    yield 6, "checkpoint_mount_over_nvme", from_rows("save-nvme"), why
    yield 7, "share", from_rows("save-share") / 100, why


def _printed(tables: Articles, index: int, figure: str) -> float:
    """The figure of this name; of an unnamed list, by its place."""
    recomputed = tables.claims[index].recomputed
    if isinstance(recomputed, dict):
        return recomputed[figure]
    if isinstance(recomputed, tuple):
        return recomputed[("TCP over pod", "RoCE over pod").index(figure)]
    return recomputed
