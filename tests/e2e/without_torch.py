"""The command with scripted ranks: `without_torch.py run e.yaml`. All else is as installed."""

import functools
import sys
from pathlib import Path

from broadgauge.cli.main import entry_point
from broadgauge.platforms import emulated_cluster, local
from broadgauge.platforms.launch_plan import Programs
from broadgauge.platforms.led import platform as led

WORKER = (sys.executable, str(Path(__file__).with_name("scripted_worker.py")))
scripted = functools.partial(Programs, worker=WORKER, command=WORKER)
for platform in (emulated_cluster, local, led):
    setattr(platform, "Programs", scripted)  # noqa: B010

entry_point()
