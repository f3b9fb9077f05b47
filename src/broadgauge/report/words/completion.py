"""How long is a whole training, of what is that made, and how much of it was run?"""

from collections.abc import Iterator

from broadgauge.report.words.quantities import show
from broadgauge.results.model import CaseSummary
from broadgauge.specs.units import show_ratio
from broadgauge.specs.workloads.workload import TrainWorkload

_PARTS = {"start_up_time_s": "start-up", "load_time_s": "loading", "training_time_s": "training"}


def completion_words(train: TrainWorkload, summary: CaseSummary) -> Iterator[str]:
    """Sentences for below a case's metrics; none where nobody said how long an epoch is."""
    epoch_s, measured = summary.value("epoch_time_s"), summary.value("epoch_measured_ratio")
    if epoch_s is None or measured is None:
        return
    size = "" if train.epoch_samples is None else f" of {train.epoch_samples:,} samples"
    words = f"an epoch{size}: {show('epoch_time_s', epoch_s)}"
    yield f"{words}, {_how_known(measured, 'the second epoch was measured')}"
    whole_s, run = summary.value("completion_time_s"), summary.value("completion_measured_ratio")
    if whole_s is None or run is None:
        return
    parts = [
        f"{name} {show(metric, value)}"
        for metric, name in _PARTS.items()
        if (value := summary.value(metric)) is not None
    ]
    epochs = "1 epoch" if train.epochs == 1 else f"{train.epochs:,} epochs"
    whole = f"to completion of {epochs}: {show('completion_time_s', whole_s)}"
    yield f"{whole} ({', '.join(parts)}), {_how_known(run, 'its steps were run')}"


def _how_known(ratio: float, what: str) -> str:
    if ratio >= 1:
        return f"all of {what}"
    share = "none" if ratio == 0 else show_ratio(ratio, 2)
    return f"extrapolated: {share} of {what}"
