"""How long does training wait for its storage, phase by phase, and what did it do meanwhile?

Each variant is prepared, all ranks meet, it runs between two marks, and all meet again: a straggler
never leaks into the next one. What goes wrong is a problem of that variant; the others go on, as
long as the storage still answers.
"""

import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from broadgauge.messages.storage import ELSEWHERE, StoragePhaseWord, StorageProblem, StorageTask
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.devices import Device
from broadgauge.probes.storage import batches, checkpoints, models, raw
from broadgauge.probes.storage.limits import HangsError, hold_device_guard, within
from broadgauge.probes.storage.place import check_space, claim, label_of, release
from broadgauge.probes.storage.problems import describe, is_of_storage, possible_errors
from broadgauge.probes.storage.ranks import BothRanks, Peers, open_ranks
from broadgauge.probes.storage.variants import Figures, Here, Variant, block_of
from broadgauge.probes.trial import Trial
from broadgauge.wording.amounts import show_size

Result = TypeVar("Result")
SHARE_OF_LIMIT = 0.8
"""Of what is left of a phase's time, for one variant: one that hangs leaves time to say so."""
DEFAULT_LIMIT_S = 600.0
"""Where the trial says no limit."""


def measure_storage(trial: Trial, task: StorageTask, device: Device) -> None:
    """Says a block or a problem for each variant, on each rank; raises only what ends the trial."""
    trial.begin_phase(Phase.WARM_UP, f"storage {task.place.name}")
    hold_device_guard()
    probe = _Probe(
        trial=trial,
        task=task,
        device=device,
        both=open_ranks(
            trial.identity.rank,
            trial.identity.world_size,
            trial.command.process_group_timeouts_s.get(Phase.MEASURE, DEFAULT_LIMIT_S),
        ),
    )
    probe.measure()


@dataclass(slots=True, kw_only=True)
class _Probe:
    trial: Trial
    task: StorageTask
    device: Device
    both: BothRanks
    taken_s: dict[Phase, float] = field(default_factory=dict)
    """By phase, so far."""
    written_bytes: int = 0
    hangs: str | None = None
    """Why nothing else is tried on this storage."""
    saved: checkpoints.SavedList = field(default_factory=checkpoints.SavedList)

    @property
    def ranks(self) -> Peers:
        return self.both.agreeing

    def measure(self) -> None:
        token = self.ranks.from_first(secrets.token_hex(8))
        here, problem = self._try(Phase.WARM_UP, "making our folder", lambda: self._claim(token))
        problems = self.ranks.tell_all(problem)
        try:
            if here is None or any(problems):
                self._refuse_all(problem or next(one for one in problems if one))
            else:
                self._measure_all(here[0], has_direct=here[1])
        except BaseException:
            if here is not None:  # the other ranks are about to be ended
                self._try(Phase.WARM_UP, "removing our folder", partial(release, here[0].own))
            raise
        self.ranks.tell_all(None)  # all are done with it
        if here is not None:
            self._release(here[0])
        self.ranks.tell_all(None)

    def _measure_all(self, here: Here, *, has_direct: bool) -> None:
        is_direct = all(self.ranks.tell_all(has_direct))
        for variant in self._variants(here, is_direct=is_direct):
            self._measure_one(here, variant)
        self._leave_list()

    def _claim(self, token: str) -> tuple[Here, bool]:
        own = claim(self.task.place, token)
        here = Here(
            own=own,
            ranks=self.both.working,
            local_rank=self.trial.identity.local_rank,
            caches=self.task.caches,
            time_left_s=lambda: self._limit_s(Phase.MEASURE),
        )
        return here, self.task.raw is not None and raw.takes_direct(here, self.task.raw)

    def _variants(self, here: Here, *, is_direct: bool) -> Iterator[Variant]:
        task = self.task
        nodes = self.trial.layout.nodes
        if task.raw is not None:
            yield from raw.variants(here, task.raw, is_direct=is_direct)
        if task.batch_loading is not None:
            yield from batches.variants(here, task.batch_loading, self.device)
        if task.model_loading is not None:
            yield from models.variants(here, task.model_loading, self.device, nodes)
        if task.checkpoint_saving is not None:
            plan = task.checkpoint_saving
            yield from checkpoints.variants(here, plan, self.device, self.saved)

    def _measure_one(self, here: Here, variant: Variant) -> None:
        """The same marks on every rank, whatever happens on one of them."""
        self.trial.begin_phase(Phase.WARM_UP, variant.label)
        problem = self._prepare(here, variant)
        can_run = self._all_can(problem)
        if can_run:
            _, problem = self._try(Phase.WARM_UP, variant.label, variant.meet)
            can_run = self._all_can(problem)
        self.trial.begin_phase(Phase.MEASURE, variant.label)
        figures: Figures | None = None
        began_s = 0.0
        with self.trial.between_marks(variant.label):
            if can_run:
                began_s = time.monotonic()
                figures, problem = self._try(Phase.MEASURE, variant.label, variant.run)
        self._say(variant, (figures, began_s, problem))
        self.trial.begin_phase(Phase.WARM_UP, f"{variant.label}: removing")
        _, problem = self._try(Phase.WARM_UP, "removing our files", variant.clean)
        if problem is not None and self.hangs is None:
            self._say_problem(variant.phase, f"{variant.name}: removing", problem)
        self._agree_on_hanging()

    def _say(self, variant: Variant, found: tuple[Figures | None, float, str | None]) -> None:
        """A rank whose part went well says so, also when another's did not."""
        figures, began_s, problem = found
        all_ran = all(self.ranks.tell_all(figures is not None))
        if figures is None:
            reason = problem or ELSEWHERE
            self._say_problem(variant.phase, variant.name, reason)
            return
        proof = None
        if all_ran or self.ranks.world_size == 1:
            measured = figures
            proof, problem = self._try(
                Phase.MEASURE, f"{variant.label}: proof", lambda: variant.prove(measured)
            )
        self.trial.say(block_of(self.trial.trial_id, variant, figures, began_s, proof))

    def _prepare(self, here: Here, variant: Variant) -> str | None:
        if self.hangs is not None:
            return self.hangs
        self.written_bytes += variant.written_bytes
        if self.written_bytes > self.task.most_bytes:
            self.written_bytes -= variant.written_bytes
            return (
                f"it would write {show_size(variant.written_bytes)}, "
                f"{show_size(self.written_bytes)} have been written and most_bytes is "
                f"{show_size(self.task.most_bytes)}\nhint: raise most_bytes"
            )

        def prepare() -> None:
            check_space(here.own, variant.written_bytes)
            variant.prepare()

        return self._try(Phase.WARM_UP, variant.label, prepare)[1]

    def _all_can(self, problem: str | None) -> bool:
        return not any(self.ranks.tell_all(problem is not None))

    def _agree_on_hanging(self) -> None:
        """Where it hangs on one rank nothing else is tried on any."""
        heard = self.ranks.tell_all(self.hangs)
        self.hangs = self.hangs or next((one for one in heard if one), None)

    def _try(
        self, phase: Phase, what: str, call: Callable[[], Result]
    ) -> tuple[Result | None, str | None]:
        """What it gives, or why it failed."""
        if self.hangs is not None:
            return None, self.hangs

        def on_device() -> Result:
            if self.device.torch_device.type == "cuda":
                torch.cuda.set_device(self.device.torch_device)  # is of each thread
            return call()

        begin_s = time.monotonic()
        label = label_of(self.task.place)
        try:
            return within(self._limit_s(phase), f"{label}, {what}", on_device), None
        except possible_errors() as error:
            if not is_of_storage(error):
                raise
            problem = describe(error, label, what)
            if isinstance(error, HangsError):
                self.hangs = problem
            return None, problem
        finally:
            taken_s = time.monotonic() - begin_s
            self.taken_s[phase] = self.taken_s.get(phase, 0.0) + taken_s

    def _limit_s(self, phase: Phase) -> float:
        """A variant's share of what this phase has left."""
        limits = self.trial.command.process_group_timeouts_s
        left_s = limits.get(phase, DEFAULT_LIMIT_S) - self.taken_s.get(phase, 0.0)
        return max(0.1, SHARE_OF_LIMIT * left_s)

    def _refuse_all(self, problem: str) -> None:
        phases: dict[StoragePhaseWord, object] = {
            "raw": self.task.raw,
            "batch_loading": self.task.batch_loading,
            "model_loading": self.task.model_loading,
            "checkpoint_saving": self.task.checkpoint_saving,
        }
        for phase, plan in phases.items():
            if plan is not None:
                self._say_problem(phase, "all", problem)

    def _say_problem(self, phase: StoragePhaseWord, variant: str, message: str) -> None:
        self.trial.say(
            StorageProblem(
                trial_id=self.trial.trial_id, phase=phase, variant=variant, message=message
            )
        )

    def _leave_list(self) -> None:
        """The first rank's list of checkpoints, kept with the trial."""
        if self.ranks.rank != 0 or not self.saved.saves:
            return
        folder = Path(tempfile.mkdtemp(prefix="broadgauge-checkpoints-"))
        file = folder / "checkpoints.jsonl"
        self.saved.write(file)
        self.trial.leave(file, "checkpoint_list")

    def _release(self, here: Here) -> None:
        stays, problem = self._try(Phase.WARM_UP, "removing our folder", lambda: release(here.own))
        if message := stays or problem:
            self._say_problem("raw", "removing our folder", message)
