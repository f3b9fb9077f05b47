"""Is a stored run set beside what the system file of its machine predicts?"""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.predict.making_systems import system
from tests.report.sample_run import Options, sample_run

from broadgauge.predict.runs.check import check_run, unknown_here_words
from broadgauge.report.predict.system_check import scores
from broadgauge.results.model import RunSummary
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


def compiled(run: RunSummary, trainings: range) -> RunSummary:
    """With these of its trainings compiled."""
    cases = [each for each in run.cases if each.case.workload.kind == "train"]
    for number in trainings:
        workload = cases[number].case.workload.model_copy(update={"compile": True})
        case = cases[number].case.model_copy(update={"workload": workload})
        cases[number] = replace(cases[number], case=case)
    return replace(run, cases=tuple(cases))


def test_what_a_system_file_has_not_measured_is_left_out_and_named(tmp_path: Path) -> None:
    run = sample_run(tmp_path, Options(has_failure=False))
    here = system()
    device = here.device.model_copy(update={"name": "AMD EPYC 9654"})
    here = here.model_copy(update={"device": device})
    one = compiled(run, range(1))
    assert len(check_run(here, one)) == 3
    (words,) = unknown_here_words(one)
    assert "a system file has measured no step with `compile: true`" in words
    with pytest.raises(InputError, match=r"can't be checked: .*`compile: true`"):
        check_run(here, compiled(run, range(4)))
