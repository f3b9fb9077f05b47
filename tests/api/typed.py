"""What a type checker knows of the public names: `make lint` checks this file, nothing runs it."""

from pathlib import Path
from typing import assert_type

import broadgauge as bg
from broadgauge.api.case import Case
from broadgauge.api.comparing import Comparison
from broadgauge.api.predicting import Predictions
from broadgauge.predict.prediction import Prediction
from broadgauge.specs.errors import ExitCode


def typed(folder: Path) -> None:
    run = bg.run("quickstart", overrides={"launches": 3}, progress=print)
    assert_type(run, bg.Run)
    assert_type(run.cases, tuple[Case, ...])
    assert_type(run.case(network="slow").figure("step_time_s").value, float)
    assert_type(run.records, bg.Table)
    assert_type(bg.compare(run, folder), Comparison)
    found = bg.predict(model="llama3-8b", gpu="h100-sxm", nodes=[2, 8], lora=True)
    assert_type(found, Predictions)
    assert_type(found[0], Prediction)
    assert_type([each.step_time_s.low for each in found], list[float])
    assert_type(bg.InputError.exit_code, ExitCode)
    bg.predict(model="llama3-8b", nodes="two")  # type: ignore[arg-type]
    bg.predict(modell="llama3-8b")  # type: ignore[call-arg]
    bg.open_rum("last")  # type: ignore[attr-defined]
