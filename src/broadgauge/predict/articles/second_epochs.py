"""How near do the hand estimates of net1-2025 come to its second epochs, and how near do we?

Source: "The Impact of GPU Networking (Part 1)" (2025-03-14); its figures are in
catalog/articles.yaml.
"""

from dataclasses import dataclass

from broadgauge.catalog.articles import Articles, EpochTime, EstimateOfPath, HandEstimate
from broadgauge.predict.articles.scores import ArticleScores

_LARGE = "gpt2-large-708m-ddp"


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondEpoch:
    """One row of e-15, and what each way of computing says of it; None: it says nothing."""

    id: str
    measured_s: float
    """As published."""
    by_rate_s: float | None
    """The article's estimate: bytes over the nominal rate, on top of half the time of one GPU."""
    by_all_reduce_s: float | None
    """The article's estimate: steps times its measured all-reduce, on top of the same."""
    predicted_s: float | None
    """Ours. The row of one GPU calibrates it."""

    def error_ratio(self, seconds: float) -> float:
        """Over what was measured, minus one."""
        return seconds / self.measured_s - 1


def second_epochs(tables: Articles, found: ArticleScores) -> tuple[SecondEpoch, ...]:
    """All rows of e-15, in the article's order."""
    by_rate, by_all_reduce = tables.estimates_net1
    return tuple(
        SecondEpoch(
            id=epoch.id,
            measured_s=epoch.seconds,
            by_rate_s=_of_path(by_rate, epoch),
            by_all_reduce_s=_of_path(by_all_reduce, epoch),
            predicted_s=_predicted_s(tables, found, epoch),
        )
        for epoch in tables.epoch2_seconds
    )


def _of_path(estimate: HandEstimate, epoch: EpochTime) -> float | None:
    """Only the large model on two GPUs was estimated."""
    paths: dict[str, EstimateOfPath] = {"nvlink3": estimate.nvlink3, "hdr": estimate.hdr}
    if epoch.workload != _LARGE or epoch.network not in paths:
        return None
    return paths[epoch.network].total_s


def _predicted_s(tables: Articles, found: ArticleScores, epoch: EpochTime) -> float | None:
    """Steps of the small model are assumed to be those of the large one."""
    steps = tables.workloads[_LARGE].steps_per_epoch[epoch.nodes * epoch.gpus_per_node]
    [prediction] = [each.prediction for each in found.rows if each.row.id == epoch.id]
    return None if prediction is None else steps * prediction.step_time_s.value
