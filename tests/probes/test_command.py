"""Does a user's script under real torchrun give its metrics, and say what went wrong?"""

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.merging.outcomes import make_case

from broadgauge.merging.merge import merge
from broadgauge.messages.rank import STACKS
from broadgauge.specs.records.record import ErrorKind, Status
from broadgauge.specs.workloads.workload import CommandMetric, CommandWorkload

from .harness import COMMAND_WORKER, Ranks

pytestmark = pytest.mark.measuring
SCRIPT = """
    import json, os, sys
    import torch, torch.distributed as dist
    dist.init_process_group("gloo")
    token = torch.ones(1)
    for step in range(4):
        dist.all_reduce(token)
        if dist.get_rank() == 0:
            print(f"step took {step + 1}.5 s", flush=True)
            print(json.dumps({"train": {"loss": 4.0 - step}}), flush=True)
    assert "BROADGAUGE_RESULT_FD" not in os.environ
    dist.destroy_process_group()
    print("args", *sys.argv[1:])
"""
STEP = CommandMetric(name="step_s", regex=r"step took ([\d.]+) s", skip_first=1)
LOSS = CommandMetric(name="loss", json_key="train.loss")


def run(folder, script, *metrics, nodes=1, ranks_per_node=2):
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    workload = CommandWorkload(
        kind="command", command=(str(path), "--epochs", "1"), metrics=metrics
    )
    case = make_case(workload, nodes=nodes, ranks_per_node=ranks_per_node)
    with Ranks(nodes, folder, command=COMMAND_WORKER, is_forked=False) as ranks:
        outcome = ranks.run_trial(case)
        return case, outcome, ranks.logs()


@pytest.mark.parametrize(
    ("nodes", "ranks_per_node"), [pytest.param(1, 2, marks=pytest.mark.thorough), (2, 1)]
)
def test_metrics_by_regex_and_json_under_torchrun(nodes, ranks_per_node, tmp_path):
    case, outcome, logs = run(
        tmp_path, SCRIPT, STEP, LOSS, nodes=nodes, ranks_per_node=ranks_per_node
    )
    assert outcome.status is Status.OK, logs
    assert "args --epochs 1" in logs
    trial = merge(case, outcome, None)
    assert trial.series == {"step_s": (2.5, 3.5, 4.5), "loss": (4.0, 3.0, 2.0, 1.0)}
    assert trial.measurement.metrics["step_s"] == 3.5
    assert trial.measurement.metrics["loss"] == 2.5
    assert [mark.label for mark in outcome.marks] == ["command:begin", "command:end"]


def test_a_crash_has_the_exit_code_and_the_scripts_last_lines(tmp_path):
    script = "import sys; print('step took 1 s'); print('about to fail', flush=True); sys.exit(3)"
    _, outcome, logs = run(tmp_path, script, STEP, ranks_per_node=1)
    assert outcome.error is not None, logs
    assert "CommandFailedError" not in logs
    assert outcome.error.kind is ErrorKind.CRASHED
    assert "exit code 3" in outcome.error.message
    assert "about to fail" in outcome.error.message


FALSE_ROOT = """
    import os, signal, sys, time
    from pathlib import Path
    def say_why_and_end_last(*error):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        sys.__excepthook__(*error)
        sys.stderr.flush()
        why.touch()
        while not pid.exists() or Path("/proc", pid.read_text(), "exe").is_symlink():
            time.sleep(0.01)
    print("step took 1 s")
    why, pid = (Path(__file__).with_name(name) for name in ("why", "pid"))
    if os.environ["RANK"] == "1":
        sys.excepthook = say_why_and_end_last
        raise KeyError("labels")
    pid.with_name("writing").write_text(str(os.getpid()))
    pid.with_name("writing").rename(pid)
    while not why.exists():
        time.sleep(0.01)
    raise RuntimeError("[../gloo/transport/tcp/pair.cc] Connection closed by peer [10.0.0.2]:4")
"""
"""Rank 1 says why, and then rank 0 is the first whose end torchrun can see."""


def test_the_rank_that_knows_why_is_named_and_not_torchruns_first(tmp_path):
    _, outcome, logs = run(tmp_path, FALSE_ROOT, STEP)
    assert re.search(r"Root Cause.*?rank\s*: 0", logs, re.DOTALL), logs
    (said,) = [m for m in outcome.messages[0] if m["type"] == "failed"]
    assert said["rank"] == 1, logs
    assert said["message"].startswith("crashed at …/")
    assert said["message"].endswith("/script.py:15 in <module>: KeyError: 'labels'")
    assert said["last_lines"][0].endswith("Traceback (most recent call last):")
    assert "Root Cause" not in "".join(said["last_lines"])


def test_no_match_is_refused_by_the_metrics_name(tmp_path):
    case, outcome, logs = run(tmp_path, "print('nothing of interest')", LOSS, ranks_per_node=1)
    error = merge(case, outcome, None).error
    assert error is not None
    assert "Traceback" not in logs
    assert error.kind is ErrorKind.REFUSED
    assert "metric `loss`" in error.message
    assert "nothing of interest" in error.message


HANGS = """
    import time
    def wait_for_what_never_comes():
        print("step took 1 s", flush=True)
        time.sleep(300)
    wait_for_what_never_comes()
"""


PATIENT_WORKER = """
import runpy
from broadgauge.probes import command_ranks
command_ranks.ANSWER_LIMIT_S = 100.0
runpy.run_module("broadgauge.probes.command", run_name="__main__", alter_sys=True)
"""
"""It waits for a rank's stacks until they are there."""


@pytest.mark.parametrize("has_hook", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_script_that_hangs_says_where_when_its_time_is_over(has_hook, tmp_path):
    path = tmp_path / "hangs.py"
    path.write_text(textwrap.dedent(HANGS))
    workload = CommandWorkload(
        kind="command", command=(str(path),), metrics=(STEP,), stack_hook=has_hook
    )
    variables = {"PYTHONFAULTHANDLER": "1"}
    worker = (sys.executable, "-c", PATIENT_WORKER)
    with Ranks(1, tmp_path, command=worker, environment=variables, is_forked=False) as ranks:
        threading.Thread(target=end_once_it_hangs, args=(ranks,), daemon=True).start()
        outcome = ranks.run_trial(make_case(workload, nodes=1, ranks_per_node=1))
        logs = ranks.logs()
    assert outcome.status is Status.FAILED
    assert "in wait_for_what_never_comes" in logs
    (stacks,) = [STACKS(m) for m in outcome.messages[0] if m["type"] == "stacks"]
    places = [stack.place for stack in stacks.ranks]
    if has_hook:
        (place,) = places
        assert re.search(r"/hangs\.py:[45] in wait_for_what_never_comes$", place)
    else:
        assert places == [None], "it is in the log only"


def end_once_it_hangs(ranks):
    """As the supervisor does when a phase's time is over: it asks for stacks, then ends all."""
    process = ranks.ranks[0].process
    while "step took 1 s" not in ranks.logs():
        time.sleep(0.1)
    process.send_signal(signal.SIGUSR1)
    while "in wait_for_what_never_comes" not in ranks.logs():
        time.sleep(0.1)
    for children in Path(f"/proc/{process.pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended by itself
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGTERM)


HIDES = """
    import os, sitecustomize
    print("hidden" if sitecustomize.IS_THE_USERS else "", sitecustomize.__file__)
    print("step took 1 s, rank", os.environ["RANK"])
    print("step took 3 s, rank", os.environ["RANK"])
"""


def test_each_ranks_output_is_apart_and_a_hidden_sitecustomize_is_loaded(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("IS_THE_USERS = True\n")
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(HIDES))
    workload = CommandWorkload(kind="command", command=(str(path),), metrics=(STEP,))
    case = make_case(workload, nodes=1, ranks_per_node=2)
    variables = {"PYTHONPATH": str(own)}
    with Ranks(
        1, tmp_path, command=COMMAND_WORKER, environment=variables, is_forked=False
    ) as ranks:
        outcome = ranks.run_trial(case)
        logs = ranks.logs()
    assert outcome.status is Status.OK, logs
    trial = merge(case, outcome, None)
    assert trial.series == {"step_s": (3.0,)}, "of rank 0 alone, and the first left out once"
    assert trial.measurement.metric_ranks == {"step_s": 0}
    for rank in (0, 1):
        assert f"[rank {rank}] step took 1 s, rank {rank}\n" in logs
        assert f"[rank {rank}] hidden {own}" in logs
    left = [path.name for path in tmp_path.rglob("*") if path.name.startswith("std")]
    assert left == [], "the log has it all"


def test_the_command_worker_imports_no_torch():
    modules = "broadgauge.probes.command, broadgauge.merging.merge"
    check = f"import sys, {modules}; print('torch' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
