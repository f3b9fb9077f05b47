"""A tool that owns a launch with a storage and waits in mid trial, to be killed:
`owning_tool.py FOLDER`."""

# ruff: noqa: T201

import sys
from pathlib import Path

from tests.platforms.launches import quiet
from tests.storage.launching import start

from broadgauge.specs.launching import TrialRequest

launch, case = start(Path(sys.argv[1]), "daemon", kind="s3-cached")
print("up", flush=True)
launch.run_trial(TrialRequest(trial_id="t0", case=case, seed=0), quiet)
