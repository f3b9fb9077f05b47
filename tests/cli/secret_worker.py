"""A node's process without torch: notes what it was given, and tells or writes a secret if asked.

Run as `secret_worker.py <file> <scenario>`; variables go to `<file>`, outside of the run's folder,
with the command lines of all living processes of this user.
"""

# ruff: noqa: T201

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.rank_channel import next_command, say, say_hello, wait_at


def command_lines() -> list[str]:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return lines


def main() -> None:
    seen, scenario = Path(sys.argv[1]), sys.argv[2]
    say_hello(0, "fake")
    command = next_command()
    given = {"variables": dict(os.environ), "command": command, "lines": command_lines()}
    seen.write_text(json.dumps(given))
    trial_id = command["trial_id"]
    say(type="phase", trial_id=trial_id, phase="measure", detail="of a worker")
    token = os.environ.get("HF_TOKEN", "")
    if scenario == "tells":
        say(type="failed", trial_id=trial_id, kind="crashed", message=f"401 for {token}, go away")
        return
    if scenario == "writes":
        print(f"not allowed: {token}", flush=True)
        sys.exit(1)
    wait_at(trial_id, "command:begin")
    wait_at(trial_id, "command:end")
    samples = {"step_time_s": [0.5, 0.25]}
    say(type="block", kind="command", trial_id=trial_id, samples=samples, exit_code=0)
    say(type="done", trial_id=trial_id)
    next_command()


if __name__ == "__main__":
    main()
