"""Is a stored run set beside what the system file of its machine predicts?"""

from pathlib import Path

import pytest
from tests.predict.making_systems import system
from tests.report.sample_run import Options, sample_run

from broadgauge.predict.runs.check import check_run
from broadgauge.report.predict.system_check import scores
from broadgauge.specs.errors import InputError


def test_a_stored_run_is_checked_case_by_case(tmp_path: Path) -> None:
    run = sample_run(tmp_path, Options(has_failure=False))
    here = system()
    with pytest.raises(InputError, match=r"is of Toy CPU, and .* computed on AMD EPYC"):
        check_run(here, run)
    device = here.device.model_copy(update={"name": "AMD EPYC 9654"})
    steps = check_run(here.model_copy(update={"device": device}), run)
    assert len(steps) == 4
    found = scores(steps)
    assert found.num_steps == 4
    assert found.pair_order_ratio == 1
    assert found.median_ape_ratio <= found.worst_ape_ratio
