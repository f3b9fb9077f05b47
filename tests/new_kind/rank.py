"""A rank of the toy kind, without torch: it says what a worker would say of its naps."""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.rank_channel import next_command, say, say_hello, wait_at

RANK = int(os.environ["RANK"])


def nap(command: dict[str, Any]) -> None:
    trial_id, naps = command["trial_id"], command["task"]["naps"]
    say(type="phase", trial_id=trial_id, phase="measure", detail="napping")
    wait_at(trial_id, "naps:begin")
    times = [0.01 * (1 + RANK + number) for number in range(naps)]
    say(type="block", kind="naps", trial_id=trial_id, seconds=times)
    wait_at(trial_id, "naps:end")
    say(type="done", trial_id=trial_id)


say_hello(RANK, "none")
while (command := next_command())["type"] == "trial":
    nap(command)
