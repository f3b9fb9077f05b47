"""A tool that owns a launch and waits in mid trial, to be killed: `owning_tool.py KIND FOLDER`."""

# ruff: noqa: T201

import sys
from pathlib import Path

from tests.platforms.launches import make_case, make_platform, make_request

from broadgauge.specs.launching import TrialRequest
from broadgauge.specs.records.record import Phase


def tell(phase: Phase, detail: str) -> None:
    print(phase.value, flush=True)


case = make_case(sys.argv[1])
request = make_request(case)
launch = make_platform(Path(sys.argv[2]), sys.argv[1], "daemon").start(request, tell)
print("supervisor", getattr(launch, "pid"), flush=True)  # noqa: B009
launch.run_trial(TrialRequest(trial_id="t0", case=case, seed=0), tell)
