"""Are the amounts of what is rendered written as people write them?"""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.running.rendering.experiments import EXPERIMENT, rendered

from broadgauge.report.lines.rendered import rendered_lines
from broadgauge.running.experiments import load_text

ON_GPUS = ("cluster.device=cuda", "cost={usd_per_gpu_hour: 2}")


@pytest.mark.parametrize(
    ("gpu_hours", "words"),
    [
        (0.034, "about 0.034 GPU-hours in all, $0.07 "),
        (3.2, "about 3.2 GPU-hours in all, $6.40 "),
        (120.0, "about 120 GPU-hours in all, $240.00 "),
        (4321.0, "about 4,321 GPU-hours in all, $8,642.00 "),
    ],
)
def test_gpu_hours_are_plain_numbers(tmp_path: Path, gpu_hours: float, words: str) -> None:
    (tmp_path / "train.py").touch()
    loaded = load_text(EXPERIMENT, tmp_path / "experiment.yaml", ON_GPUS)
    found = replace(rendered(tmp_path, *ON_GPUS), gpu_hours=gpu_hours)
    (line,) = [each for each in rendered_lines(loaded.experiment, found, None) if "GPUs " in each]
    assert words in line
