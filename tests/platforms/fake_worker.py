"""A rank without torch: speaks frames, and goes wrong as its scenario says.

Run as `fake_worker.py <scenario> [rank]`; the scenario happens on that rank (default 1), and the
other ranks behave, waiting at marks that never come.
"""

# ruff: noqa: T201

import faulthandler
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.rank_channel import RESULTS, next_command, say, say_hello, wait_at

RANK = int(os.environ["RANK"])
SCENARIO = sys.argv[1]
IS_MINE = (int(sys.argv[2]) if len(sys.argv) > 2 else 1) == RANK


def misbehave(trial_id: str) -> None:
    match SCENARIO:
        case "exit":
            print("the last thing it said", flush=True)
            sys.exit(7)
        case "sigkill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "hang" | "waited":
            hang_here()
        case "failed":
            print("Traceback: the root of it", file=sys.stderr, flush=True)
            say(type="failed", trial_id=trial_id, kind="refused", message="no such file: train.py")
            time.sleep(30)
        case "flood":
            for number in range(20_000):
                print(f"line {number} " + "x" * 600)
        case "garbage":
            os.write(RESULTS, b"@bg2 a 0 0 1 5 00000000 nope!\nnoise\n\xff\xfe\n")
            os.write(RESULTS, b"@bg2 3 bad")
            os.write(RESULTS, b"\n")
            say(type="phase", trial_id=trial_id, phase="dancing")
            say(type="mark")
            next_command()
        case "daemon":
            daemon = "import time; time.sleep(1000)  # left behind"
            subprocess.Popen([sys.executable, "-c", daemon], start_new_session=True)
            hang_here()
        case "works":
            seconds = [time.process_time()]
            work_s = time.monotonic() + 1.0
            while time.monotonic() < work_s:
                pass
            seconds.append(time.process_time())
            say(type="block", kind="own", trial_id=trial_id, seconds=seconds)


def hang_here() -> None:
    while True:
        time.sleep(1)


def write_nccl_log() -> None:
    """What a test has planted for this rank, where NCCL would write it."""
    planted = os.environ.get("PLANTED_NCCL")
    if planted is not None:
        text = Path(planted.replace("{rank}", str(RANK))).read_text()
        Path(os.environ["NCCL_DEBUG_FILE"]).write_text(text)


def run_trial(trial_id: str) -> None:
    write_nccl_log()
    say(type="phase", trial_id=trial_id, phase="warm_up", detail="fake")
    wait_at(trial_id, "a:begin")
    say(type="phase", trial_id=trial_id, phase="measure", detail="fake work")
    say(type="block", kind="steps", trial_id=trial_id, label="a", seconds=[0.1])
    if IS_MINE:
        misbehave(trial_id)
    elif SCENARIO == "garbage":
        say(type="mark")
        next_command()
    elif SCENARIO == "waited":
        say(type="failed", trial_id=trial_id, kind="hung", message="Timed out waiting for recv")
        sys.exit(1)
    elif SCENARIO == "failed":
        say(type="failed", trial_id=trial_id, kind="crashed", message="Connection closed by peer")
    wait_at(trial_id, "a:end")
    say(type="done", trial_id=trial_id)


def main() -> None:
    if SCENARIO == "mute" and IS_MINE:
        hang_here()
    if SCENARIO == "stillborn" and IS_MINE:
        print("ImportError: no such library", file=sys.stderr, flush=True)
        sys.exit(3)
    faulthandler.register(signal.SIGUSR1)
    say_hello(RANK, "fake")
    while True:
        command = next_command()
        if command["type"] == "end":
            if SCENARIO == "clings":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                hang_here()
            sys.exit(0)
        run_trial(command["trial_id"])


main()
