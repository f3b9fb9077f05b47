"""Does the report say what checkpoints cost, name the slow rank, and draw each at its step?"""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from broadgauge.report.charts_checkpoints import checkpoint_chart, saving_steps
from broadgauge.report.checkpoint_words import checkpoint_words
from broadgauge.report.kinds.training import TrainingInReport
from broadgauge.report.progress import saving_before_s
from broadgauge.specs.checkpoint_rows import CheckpointRow

ROWS = (
    CheckpointRow(after_step=2, stall_s=0.2, durable_s=1.0, num_bytes=10**9),
    CheckpointRow(
        after_step=4,
        stall_s=3.0,
        slowest_rank=1,
        slowest_stall_s=2.9,
        others_stall_s=0.1,
        durable_s=None,
        durable_evidence="tmpfs is memory",
        num_bytes=10**9,
        parts_s={"serialise": 0.4, "write": 2.5},
        steps_beside=2,
        slowed_s=0.1,
    ),
)
METRICS = {
    "checkpoint_stall_s": 1.6,
    "checkpoint_share_ratio": 0.12,
    "time_to_durable_s": 1.0,
}


@dataclass
class Summary:
    """As much of a case's summary as is asked for."""

    good: list[SimpleNamespace]
    metrics: dict[str, float] = field(default_factory=lambda: dict(METRICS))
    case: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(
            network_name="pod",
            shape="2x1",
            workload=SimpleNamespace(has_steps=True, name="train"),
            storage=None,
        )
    )

    def value(self, name: str) -> float | None:
        return self.metrics.get(name)


def record(folder: Path, rows: tuple[CheckpointRow, ...]) -> SimpleNamespace:
    np.save(folder / "steps.npy", np.array([0.5, 0.5, 0.6, 0.6]))
    np.save(folder / "stalls.npy", np.array([0.0, 0.2, 0.0, 3.0]))
    series = {"step_time_s": "steps.npy", "checkpoint_stall_s": "stalls.npy"}
    return SimpleNamespace(checkpoints=rows, series=series)


def test_words_have_the_costs_the_straggler_and_what_is_not_known(tmp_path: Path) -> None:
    words = checkpoint_words(Summary([record(tmp_path, ROWS)]))
    assert words[0].startswith("2 checkpoints of 1 GB were saved in 1 trial")
    assert "0.044 % of an hour where one is saved every hour" in words[0]
    assert "12 % of the measured training" in words[0]
    assert "3 s after step 4, rank 1 took 2.9 s of its own, the other ranks 100 ms" in words[1]
    assert "(serialise 400 ms, write 2.5 s)" in words[1]
    assert words[2].startswith("2 steps ran while")
    assert "each 50 ms longer" in words[2]
    assert words[3].endswith("tmpfs is memory")


def test_the_page_has_them_and_a_training_that_saves_none_says_nothing(tmp_path: Path) -> None:
    page = str(TrainingInReport().details_on_page(Summary([record(tmp_path, ROWS)])))
    assert "after step 4" in page
    assert checkpoint_words(Summary([record(tmp_path, ())])) == ()


def test_each_save_is_drawn_behind_its_step(tmp_path: Path) -> None:
    summary = Summary([record(tmp_path, ROWS)])
    run = SimpleNamespace(folder=tmp_path, cases=[summary])
    (training,) = saving_steps(run, [summary])
    assert [number for number, _ in training.steps] == [1, 2, 3, 4]
    chart = checkpoint_chart(run, [training])
    saves, steps = (layer["data"]["values"] for layer in chart["layer"])
    assert [(row["step"], row["seconds"]) for row in saves] == [(2.5, 0.2), (4.5, 3.0)]
    assert saves[1]["slowest"] == "rank 1: 2.9 s, others 100 ms"
    assert len(steps) == 4
    assert checkpoint_chart(run, []) is None
    assert saving_steps(run, [Summary([record(tmp_path, ())])]) == ()


def test_a_stall_is_time_that_passes_before_later_steps(tmp_path: Path) -> None:
    run = SimpleNamespace(folder=tmp_path)
    made = record(tmp_path, ROWS)
    assert saving_before_s(run, made, 4).tolist() == pytest.approx([0, 0, 0.2, 0.2])
    made.series = {}
    assert saving_before_s(run, made, 4).tolist() == [0, 0, 0, 0]
