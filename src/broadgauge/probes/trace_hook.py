"""What runs the profiler in the Python processes of a user's command, for a few of its steps.

It is copied beside the hook that writes stacks (rank_hook.py) and runs with the user's Python,
whichever that is: nothing but the standard library is imported until the script itself imports
torch. A step ends where the script's optimizers have stepped: torch tells of each of their steps
(`register_optimizer_step_post_hook`), so micro-batches that are accumulated count for nothing. Of
several optimizers, or of one that steps several times after one backward pass (shards, groups of
parameters), the order repeats, and an iteration is what repeats; where nothing does, the step is
unknown and no trace is written.

Each process that steps an optimizer tells of itself in a file of the folder, `<pid>.state`.
"""

from __future__ import annotations

import functools
import gzip
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable
from typing import Any

FOLDER_VARIABLE = "BROADGAUGE_TRACE_FOLDER"
STEPS_VARIABLE = "BROADGAUGE_TRACE_STEPS"
AFTER_VARIABLE = "BROADGAUGE_TRACE_AFTER"
MODULE_NAME = "broadgauge_trace_hook"
WARM_UP_STEPS = 1
"""Under the profiler and left out: the first step with it on pays for its start."""
FEWEST_REPEATS = 3
"""Of the optimizers' order, before it is taken for one that repeats."""
MOST_STEPS = 100_000
"""Of optimizers, whose order is looked at."""
MOST_ATTEMPTS = 3
"""Traces that are begun; each ends where the order changes while it runs."""
COMPRESSION = 3
"""Of gzip: a fifth of the time of its default, for files a tenth larger."""
OWN_PROFILER = "the script's own PyTorch profiler is used, and two can't run at once"
NO_ORDER = "which optimizer steps make an iteration is unknown: their order does not repeat"


class StepOrder:
    """After which optimizer's step does an iteration end? Told of each, in their order: which
    optimizer it is, and whether a backward pass has begun since the last step of any."""

    def __init__(self) -> None:
        self._order: list[tuple[int, bool]] = []
        self._borders: list[
            int
        ] = []  # of each prefix, the longest that is its end too (Knuth, Morris, Pratt)

    def __len__(self) -> int:
        return len(self._order)

    def add(self, step: tuple[int, bool]) -> None:
        order, borders = self._order, self._borders
        border = borders[-1] if borders else 0
        while border and order[border] != step:
            border = borders[border - 1]
        if order and order[border] == step:
            border += 1
        order.append(step)
        borders.append(border)

    def cycle(self) -> list[tuple[int, bool]]:
        """The steps of one iteration; empty where they have not repeated often enough."""
        if not self._order:
            return []
        period = len(self._order) - self._borders[-1]
        return self._order[:period] if len(self._order) >= FEWEST_REPEATS * period else []


class StepTracer:
    """Counts this process's steps, and runs the profiler when enough have been made."""

    def __init__(self, folder: str, steps: int, after_steps: int) -> None:
        self._folder, self._steps, self._after_steps = folder, steps, after_steps
        self._has_backward = self._has_any_backward = False
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._order = StepOrder()
        self._optimizers: dict[int, Any] = {}
        self._profile: Any = None
        self._cycle: list[tuple[int, bool]] = []
        self._num_traced = self._num_attempts = 0
        self._is_ours = self._is_over = False

    def arm(self) -> None:
        """torch has been imported."""
        try:
            import torch
            from torch.optim.optimizer import register_optimizer_step_post_hook

            register_optimizer_step_post_hook(self._safely)
            self._hear_backward(torch.autograd)
            for profiler in (torch.profiler.profile, torch.autograd.profiler.profile):
                self._watch(profiler)
        except (ImportError, AttributeError) as error:
            self._end(f"this torch can't be traced: {error}")

    def _hear_backward(self, autograd: Any) -> None:
        """`loss.backward()` calls it."""
        made = autograd.backward

        @functools.wraps(made)
        def backward(*args: Any, **kwargs: Any) -> Any:
            self._has_backward = True
            return made(*args, **kwargs)

        autograd.backward = backward

    def _watch(self, profiler: Any) -> None:
        """Hear of profilers that the script makes."""
        made = profiler.__init__

        def __init__(own: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            if not self._is_ours:
                self._give_way()
            made(own, *args, **kwargs)

        profiler.__init__ = __init__

    def _give_way(self) -> None:
        """Also where ours runs already."""
        if not self._is_over:
            self._stop()
            self._end(OWN_PROFILER)

    def _safely(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        if os.getpid() != self._pid:  # forked: another rank, which counts for itself
            self._begin()
        if self._is_over:
            return
        try:
            self.stepped(optimizer)
        except Exception as error:  # noqa: BLE001  whatever the profiler can't do, the script goes on
            self._stop()
            self._end(f"the profiler failed: {type(error).__name__}: {error}")

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has made its step."""
        key = id(optimizer)
        self._optimizers[key] = optimizer  # held, so that none that is made later has its id
        step = (key, self._has_backward)
        if self._has_backward and not self._has_any_backward:
            self._has_any_backward = True
            self._order = StepOrder()  # what came before made states, and no iteration
        self._has_backward = False
        self._order.add(step)
        if len(self._order) == 1:
            self._tell()
        if self._profile is not None:
            self._follow(step)
        elif len(self._order) > MOST_STEPS:
            self._end(NO_ORDER)
        else:
            self._begin_when_due()

    def _begin_when_due(self) -> None:
        cycle = self._order.cycle()
        if not cycle or len(self._order) % len(cycle):
            return
        if len(self._order) // len(cycle) < self._after_steps:
            return
        import torch

        if torch.autograd._profiler_enabled():
            self._end(OWN_PROFILER)
            return
        self._num_attempts += 1
        self._cycle, self._num_traced = cycle, 0
        self._profile = self._guarded(lambda: profiler_of(self._steps))
        self._guarded(self._profile.start)

    def _follow(self, step: tuple[int, bool]) -> None:
        cycle = self._cycle
        place = self._num_traced % len(cycle)
        if cycle[place] != step:
            self._stop()
            if self._num_attempts == MOST_ATTEMPTS:
                self._end(NO_ORDER)
            return
        self._num_traced += 1
        if place < len(cycle) - 1:
            return
        self._guarded(self._profile.step)
        if self._num_traced == (WARM_UP_STEPS + self._steps) * len(cycle):
            self._keep()

    def _keep(self) -> None:
        """The last traced step is over, and with it the profiler's work."""
        profile, self._profile = self._profile, None
        self._guarded(profile.stop)
        name = trace_name(rank_here())
        write_trace(profile, os.path.join(self._folder, name))  # noqa: PTH118  as rank_hook.py
        self._end(None, name)

    def _stop(self) -> None:
        """Ends ours without a trace."""
        profile, self._profile = self._profile, None
        if profile is not None:
            self._guarded(profile.stop)

    def _guarded(self, call: Callable[[], Any]) -> Any:
        """Calls ours, whose own parts are not taken for the script's."""
        self._is_ours = True
        try:
            return call()
        finally:
            self._is_ours = False

    def _end(self, problem: str | None, trace: str | None = None) -> None:
        self._is_over = True
        self._optimizers.clear()
        self._tell(problem, trace)

    def tell_unfinished(self) -> None:
        """The script has ended before its steps were traced."""
        if self._is_over or os.getpid() != self._pid or not len(self._order):
            return
        count, cycle = len(self._order), self._order.cycle()
        needed = self._after_steps + WARM_UP_STEPS + self._steps
        self._tell(
            f"it ended after {count // len(cycle)} steps, and {needed} are needed: `after_steps` "
            f"{self._after_steps}, {WARM_UP_STEPS} to warm the profiler up, {self._steps} traced"
            if cycle
            else NO_ORDER
        )

    def _tell(self, problem: str | None = None, trace: str | None = None) -> None:
        """Whole or not at all: it is read while it is written."""
        state = {"rank": rank_here(), "problem": problem, "trace": trace}
        path = os.path.join(self._folder, f"{os.getpid()}.state")  # noqa: PTH118
        try:
            with open(f"{path}.new", "w") as file:  # noqa: PTH123
                json.dump(state, file)
            os.replace(f"{path}.new", path)  # noqa: PTH105
        except OSError:
            pass  # nothing can be told; the launch's time limit tells


def trace_name(rank: int) -> str:
    """Of one rank's file."""
    return f"rank{rank}.trace.json.gz"


def rank_here() -> int:
    """As torch.distributed knows it, else as the environment says."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        return int(dist.get_rank())
    return int(os.environ.get("RANK") or 0)


def profiler_of(steps: int) -> Any:
    """The profiler for so many steps, with nothing on that is not needed: shapes and stacks cost
    time and megabytes."""
    from torch.profiler import profile, schedule

    return profile(
        schedule=schedule(wait=0, warmup=WARM_UP_STEPS, active=steps, repeat=1),
        on_trace_ready=lambda _: None,
        record_shapes=False,
        with_stack=False,
    )


def write_trace(profile: Any, path: str) -> None:
    """As gzip; torch's own way compresses line by line."""
    plain = f"{path}.new"
    profile.export_chrome_trace(plain)
    with open(plain, "rb") as source, gzip.open(plain + ".gz", "wb", COMPRESSION) as target:  # noqa: PTH123
        shutil.copyfileobj(source, target, 1 << 20)
    os.remove(plain)  # noqa: PTH107
    os.replace(plain + ".gz", path)  # noqa: PTH105


class AfterTorch:
    """Calls once when a module named torch has been imported, by whomever."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> Any:
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def exec_module(module: Any) -> None:
            load(module)
            self._call()

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def register() -> None:
    """In ranks only, and where the launch is the traced one."""
    folder = os.environ.get(FOLDER_VARIABLE)
    if not folder or "LOCAL_RANK" not in os.environ:
        return
    import atexit

    steps, after_steps = int(os.environ[STEPS_VARIABLE]), int(os.environ[AFTER_VARIABLE])
    tracer = StepTracer(folder, steps, after_steps)
    atexit.register(tracer.tell_unfinished)
    sys.meta_path.insert(0, AfterTorch(tracer.arm))
