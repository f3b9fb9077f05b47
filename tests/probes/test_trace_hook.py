"""Are the steps traced that a script of a user's makes, without a change of it, or is it said why
they can't be told?"""

import gzip
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from broadgauge.probes.command_ranks import copy_hook
from broadgauge.probes.trace_hook import MODULE_NAME, NO_ORDER, OWN_PROFILER, StepOrder
from broadgauge.traces.attribution.explaining import explain
from broadgauge.traces.reading.reader import read_trace


@pytest.mark.parametrize(
    ("steps", "cycle"),
    [
        ("AAA", "A"),
        ("ABABAB", "AB"),
        ("AAAAABAAAAABAAAAAB", "AAAAAB"),
        ("AB", ""),
        ("AABABBAB", ""),
        ("", ""),
    ],
)
def test_an_iteration_is_what_repeats(steps: str, cycle: str) -> None:
    order = StepOrder()
    for step in steps:
        order.add((ord(step), True))
    assert "".join(chr(optimizer) for optimizer, _ in order.cycle()) == cycle


def test_the_order_is_told_as_by_looking_at_all_of_it() -> None:
    # Every order of up to 9 steps of two optimizers, against the definition.
    for length in range(1, 10):
        for bits in range(2**length):
            steps = [(bits >> place & 1, True) for place in range(length)]
            order = StepOrder()
            for step in steps:
                order.add(step)
            period = next(
                p
                for p in range(1, length + 1)
                if all(steps[i] == steps[i - p] for i in range(p, length))
            )
            assert order.cycle() == (steps[:period] if length >= 3 * period else [])


SCENARIOS = """
import atexit
import os
import sys
import torch

torch.set_num_threads(1)


def back():
    model(torch.ones(4, 8)).sum().backward()


def one_optimizer(num_steps=8):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    optimizer.step()  # as what restores a checkpoint does, to have the optimizer's states
    for _ in range(num_steps):
        back()
        optimizer.step()


def accumulation():
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for index in range(32):
        with torch.profiler.record_function("micro_batch"):
            back()
        if index % 4 == 3:
            optimizer.step()


def two_optimizers():
    first = torch.optim.SGD([model.weight], lr=1e-3)
    second = torch.optim.Adam([model.bias], lr=1e-3)
    for _ in range(8):
        for _ in range(2):
            back()
            first.step()
        second.step()


def several_steps_a_backward():
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(8):
        back()
        for _ in range(3):
            optimizer.step()


def no_order():  # Thue and Morse: nothing in it stands three times in a row
    first = torch.optim.SGD([model.weight], lr=1e-3)
    second = torch.optim.Adam([model.bias], lr=1e-3)
    for index in range(64):
        back()
        (second if bin(index).count("1") % 2 else first).step()


def order_that_changes():
    first = torch.optim.SGD([model.weight], lr=1e-3)
    second = torch.optim.Adam([model.bias], lr=1e-3)
    for index in range(6):
        back()
        first.step()
    for index in range(40):
        back()
        (first if index % 2 else second).step()


def own_is_on():
    with torch.profiler.profile() as own:
        one_optimizer()
    assert len(own.key_averages()) > 3


def own_comes_later():  # ours is on, since it begins after 4 steps
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for index in range(12):
        if index == 5:
            own = torch.profiler.profile()
            own.start()
        back()
        optimizer.step()
    own.stop()
    assert len(own.key_averages()) > 3


def too_short():
    one_optimizer(5)


def spawned(local, store):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=local, world_size=2
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(8):
        back()
        torch.distributed.all_reduce(model.weight.grad)
        optimizer.step()


model = torch.nn.Linear(8, 8)
if __name__ == "__main__" and sys.argv[1:] == ["spawn"]:
    torch.multiprocessing.spawn(spawned, args=(os.environ["STORE"],), nprocs=2)
elif __name__ == "__main__":
    import torch._dynamo
    import torch._inductor.config  # which each child would import for itself

    for number, name in enumerate(sys.argv[1:]):
        child = os.fork()
        if child == 0:
            os.environ["RANK"] = str(number)
            globals()[name]()
            atexit._run_exitfuncs()  # as scripts end, not as forked children do
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, name
"""
NAMES = (
    *("one_optimizer", "accumulation", "two_optimizers", "no_order", "order_that_changes"),
    *("several_steps_a_backward", "own_is_on", "own_comes_later", "too_short"),
)


@dataclass(frozen=True)
class Told:
    """What the processes of one script told of themselves."""

    folder: Path
    states: dict[int, dict[str, object]]
    """By rank."""
    output: str

    def names(self, rank: int) -> list[str]:
        """Of the spans in a rank's trace."""
        with gzip.open(self.folder / f"rank{rank}.trace.json.gz") as file:
            events = json.load(file)["traceEvents"]
        return [event["name"] for event in events if event.get("ph") == "X"]


def run(folder: Path, script: str, *arguments: str, launcher: tuple[str, ...] = ()) -> Told:
    hook, traces = folder / "hook", folder / "traces"
    hook.mkdir()
    traces.mkdir()
    copy_hook("rank_hook.py", hook / "sitecustomize.py")
    copy_hook("trace_hook.py", hook / f"{MODULE_NAME}.py")
    path = folder / "script.py"
    path.write_text(script)
    variables = {
        "PYTHONPATH": str(hook),
        "RANK": "0",
        "LOCAL_RANK": "0",
        "STORE": str(folder / "store"),
        "BROADGAUGE_TRACE_FOLDER": str(traces),
        "BROADGAUGE_TRACE_STEPS": "2",
        "BROADGAUGE_TRACE_AFTER": "4",
    }
    done = subprocess.run(
        [sys.executable, *launcher, str(path), *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(path.read_text()) for path in traces.glob("*.state")]
    return Told(folder=traces, states={each["rank"]: each for each in told}, output=done.stdout)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """All scenarios in processes that one forks, since torch takes long to import."""
    return run(tmp_path_factory.mktemp("scenarios"), SCENARIOS, *NAMES)


@pytest.mark.measuring
@pytest.mark.shares_cores
@pytest.mark.parametrize(
    ("scenario", "name", "a_step"),
    [
        ("one_optimizer", "Optimizer.step#SGD.step", 1),
        ("accumulation", "micro_batch", 4),
        ("two_optimizers", "Optimizer.step#SGD.step", 2),
        ("several_steps_a_backward", "Optimizer.step#SGD.step", 3),
    ],
)
def test_a_step_is_an_iteration(scenario: str, name: str, a_step: int, told: Told) -> None:
    rank = NAMES.index(scenario)
    trace = f"rank{rank}.trace.json.gz"
    assert told.states[rank] == {"rank": rank, "problem": None, "trace": trace}
    seen = told.names(rank)
    steps = [each for each in seen if each.startswith("ProfilerStep#")]
    assert sorted(steps) == ["ProfilerStep#1", "ProfilerStep#2"]
    assert seen.count(name) == 2 * a_step


@pytest.mark.measuring
@pytest.mark.shares_cores
@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        ("no_order", NO_ORDER),
        ("order_that_changes", NO_ORDER),
        ("own_is_on", OWN_PROFILER),
        ("own_comes_later", OWN_PROFILER),
        ("too_short", "it ended after 5 steps, and 7 are needed"),
    ],
)
def test_what_cannot_be_told_is_said(scenario: str, problem: str, told: Told) -> None:
    state = told.states[NAMES.index(scenario)]
    assert state["trace"] is None
    assert str(state["problem"]).startswith(problem)


@pytest.mark.measuring
@pytest.mark.shares_cores
@pytest.mark.thorough
def test_spawned_ranks_have_a_trace_each(tmp_path: Path) -> None:
    told = run(tmp_path, SCENARIOS, "spawn")
    assert {rank: state["problem"] for rank, state in told.states.items()} == {0: None, 1: None}
    for rank in (0, 1):
        assert "gloo:all_reduce" in told.names(rank)


ACCELERATED = """
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
samples = DataLoader(TensorDataset(torch.ones(64, 8)), batch_size=2)
model, optimizer, samples = accelerator.prepare(model, optimizer, samples)
for (batch,) in samples:
    with accelerator.accumulate(model):
        with torch.profiler.record_function("micro_batch"):
            accelerator.backward(model(batch).sum())
        optimizer.step()
        optimizer.zero_grad()
accelerator.end_training()
"""
# On CPUs alone its launcher starts one process; the one for GPUs starts as many as one asks for.
LAUNCHED = ("-m", "accelerate.commands.launch", "--multi_gpu", "--num_processes", "2")


@pytest.mark.measuring
@pytest.mark.shares_cores
@pytest.mark.slow
def test_ranks_of_accelerate_launch_have_the_steps_of_their_optimizer(tmp_path: Path) -> None:
    """Its launcher imports torch and steps nothing; micro-batches that it gathers are no steps."""
    more = ("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no")
    told = run(tmp_path, ACCELERATED, launcher=(*LAUNCHED, *more))
    assert {rank: state["problem"] for rank, state in told.states.items()} == {0: None, 1: None}
    for rank in (0, 1):
        seen = told.names(rank)
        steps = sorted(each for each in seen if each.startswith("ProfilerStep#"))
        assert steps == ["ProfilerStep#1", "ProfilerStep#2"]
        assert seen.count("micro_batch") == 2 * 2
        assert "gloo:all_reduce" in seen
    explained = explain(read_trace(told.folder / f"rank{rank}.trace.json.gz") for rank in (0, 1))
    assert (len(explained.ranks), explained.num_steps) == (2, 2)
    assert explained.has_steps


def test_a_script_without_torch_loads_none_and_is_told_of_nowhere(tmp_path: Path) -> None:
    script = "import sys; print(sorted({'torch', 'numpy', 'torch.optim'} & set(sys.modules)))"
    told = run(tmp_path, script)
    assert told.states == {}
    assert told.output == "[]\n"
