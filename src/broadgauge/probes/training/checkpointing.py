"""When does a training save, how long does this rank stand still for it, and when is it durable?

One save is in flight at a time: the next one waits until the last is durable, and this wait is part
of its stall. What is in flight is followed by a thread, which says what came of it; a rank that
dies leaves what was said before. Each checkpoint has a folder (a prefix of objects) of its own, and
is named by a marker as the last one once all ranks' parts are durable: a job goes on from there.

Saves have a Gloo group of their own: on training's one the collectives of a save in the
background would meet those of the next step, and both would wait for ever.
"""

import concurrent.futures
import contextlib
import math
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

from broadgauge.messages.checkpoints import (
    SAVED_BYTES,
    CheckpointBegun,
    CheckpointSaved,
    TrainCheckpoints,
)
from broadgauge.messages.storage import CheckpointFormat
from broadgauge.messages.vocabulary import Phase
from broadgauge.probes.storage.checkpoint_formats import FOLDER, Durable, Saving, save
from broadgauge.probes.storage.last_durable import SavedCheckpoint, publish
from broadgauge.probes.storage.place import check_space, claim, release, remove_part
from broadgauge.probes.training.strategy import state_shards
from broadgauge.probes.training.trainer import Trainer
from broadgauge.probes.trial import RefusedError, Trial

IN_THIS_PROCESS = frozenset({"torch", "safetensors", "dcp", "dcp-async"})
"""Formats whose writes are timed."""
SAVE_ERRORS = (
    OSError,
    RuntimeError,  # torch's, of lost peers
    ValueError,
    CheckpointException,  # a BaseException
    concurrent.futures.TimeoutError,  # Python 3.10's is no OSError
)
"""Of a save in a thread, to be raised where training waits for it."""


@dataclass(slots=True, kw_only=True)
class _Flight:
    """A save until it is durable."""

    after_step: int
    saving: Saving
    stall_s: float
    in_flight_s: float
    durable: Durable | None = None
    """Of all ranks' parts; None: not yet."""
    problem: BaseException | None = None

    @property
    def name(self) -> str:
        """Below our own folder on the storage."""
        return f"{FOLDER}/{step_name(self.after_step)}"

    @property
    def end_s(self) -> float:
        """On the monotonic clock, when nothing of it was written any more; infinite while it is."""
        if self.durable is None:
            return math.inf
        is_behind = self.saving.own.behind is not None
        uploaded_s = self.durable.parts_s.get("upload", 0.0) if is_behind else 0.0
        return self.saving.began_s + self.durable.ended_s + uploaded_s

    def own_end_s(self, format: CheckpointFormat) -> float:
        """When this rank's own part was there. A save ends on all ranks together: what it wrote
        itself is told by its parts, but for those that another process writes."""
        if self.durable is None or format not in IN_THIS_PROCESS:
            return self.end_s
        own_s = sum(seconds for part, seconds in self.durable.parts_s.items() if part != "gather")
        return min(self.end_s, self.saving.began_s + own_s)


def step_name(after_step: int) -> str:
    return f"step-{after_step:08d}"


class Checkpointing:
    """The saves of one training on this rank. Made by all ranks together, before they train."""

    def __init__(self, trial: Trial, trainer: Trainer, plan: TrainCheckpoints) -> None:
        place = trainer.task.storage
        if place is None:
            raise RefusedError("checkpoints are saved on a storage, and the task names none")
        self._trial, self._trainer, self._plan = trial, trainer, plan
        self._limit_s = trial.command.process_group_timeouts_s.get(Phase.MEASURE, 600.0)
        identity = trial.identity
        self._group = self._own_group()
        # Other runs may use the storage at the same time, and name their trials alike.
        self._own = claim(place, self._from_first(f"{trial.trial_id}-{uuid4().hex[:8]}"))
        self._removes = identity.rank == 0 if place.is_shared else identity.local_rank == 0
        if self._removes:
            check_space(self._own, self._most_bytes())
        self._flight: _Flight | None = None
        self._thread: threading.Thread | None = None
        self._spans_s: list[tuple[float, _Flight]] = []
        """Since when each save was in flight."""
        self._complete: deque[str] = deque()

    def _own_group(self) -> Any:
        if self._trial.identity.world_size == 1:
            return None
        return dist.new_group(backend="gloo", timeout=timedelta(seconds=self._limit_s))

    def _from_first(self, said: str) -> str:
        """What rank 0 says, on all of them; only while no save is in flight. A barrier, too."""
        if self._group is None:
            return said
        heard: list[Any] = [None] * self._trial.identity.world_size
        dist.all_gather_object(heard, said, group=self._group)
        return str(heard[0])

    def _most_bytes(self) -> int:
        """What lies there at once: those that are kept and the one that is written. Of sharded
        ones that only a node's own disk holds, all ranks' are counted: too many rather than too
        few."""
        return (self._plan.keep + 1) * SAVED_BYTES * self._trainer.num_trained

    def is_due(self, index: int) -> bool:
        return self._steps_before(index + 1) % self._plan.every_steps == 0

    def _steps_before(self, index: int) -> int:
        """Measured ones."""
        return index - self._trainer.task.warm_up_steps

    def save(self, index: int) -> None:
        """Comes back when this rank may train on."""
        after_step = self._steps_before(index + 1)
        self._trainer.device.synchronize()
        in_flight_s = self.settle()
        name = step_name(after_step)
        self._trial.say(
            CheckpointBegun(trial_id=self._trial.trial_id, after_step=after_step, name=name)
        )
        begin_s = time.monotonic()
        state = self._state(after_step)
        state_s = time.monotonic() - begin_s
        saving = save(
            state,
            self._own,
            name,
            self._plan.format,
            is_sharded=self._plan.is_sharded,
            group=self._group,
        )
        self._follow(
            _Flight(
                after_step=after_step,
                saving=saving,
                stall_s=in_flight_s + state_s + own_stall_s(saving),
                in_flight_s=in_flight_s,
            )
        )

    def _state(self, after_step: int) -> dict[str, Any]:
        """What a training would go on from; of adapters themselves alone."""
        model, optimizer = get_state_dict(
            self._trainer.model,
            self._trainer.optimizer,
            options=StateDictOptions(ignore_frozen_params=True),
        )
        return {"model": model, "optimizer": optimizer, "step": after_step}

    def _follow(self, flight: _Flight) -> None:
        self._flight = flight
        self._spans_s.append((flight.saving.began_s, flight))
        self._thread = threading.Thread(
            target=self._finish, args=(flight,), name="checkpoint", daemon=True
        )
        self._thread.start()

    def _finish(self, flight: _Flight) -> None:
        """In a thread: until all ranks' parts are durable, and says so."""
        try:
            flight.durable = flight.saving.wait_durable(self._limit_s)
            self._publish(flight, flight.durable)
            self._say(flight, flight.durable)
        except SAVE_ERRORS as error:
            flight.problem = error

    def _publish(self, flight: _Flight, durable: Durable) -> None:
        """Names it as the last one, and removes those that are too old by now."""
        if self._trial.identity.rank == 0:
            began_s = flight.saving.began_s
            publish(
                self._own,
                SavedCheckpoint(
                    name=step_name(flight.after_step),
                    began_unix_s=time.time() - (time.monotonic() - began_s),
                    stall_s=flight.stall_s,
                    durable_s=durable.durable_s,
                    evidence=durable.evidence,
                ),
            )
        self._complete.append(flight.name)
        while len(self._complete) > self._plan.keep:
            oldest = self._complete.popleft()
            if self._removes:
                remove_part(self._own, oldest)

    def _say(self, flight: _Flight, durable: Durable) -> None:
        self._trial.say(
            CheckpointSaved(
                trial_id=self._trial.trial_id,
                after_step=flight.after_step,
                name=step_name(flight.after_step),
                stall_s=flight.stall_s,
                in_flight_s=flight.in_flight_s,
                durable_s=durable.durable_s,
                durable_evidence=durable.evidence,
                num_bytes=self._written_bytes(flight.saving),
                parts_s=durable.parts_s,
            )
        )

    def _written_bytes(self, saving: Saving) -> int:
        """By the files that this rank wrote; where a distributed checkpoint does not tell them by
        its tensors, of which replicas are written once, by one of their ranks each."""
        known = sum(size or 0 for size in saving.sizes.values())
        if known or not self._plan.is_sharded:
            return known or saving.num_bytes
        identity = self._trial.identity
        return saving.num_bytes * state_shards(self._trainer.task, identity) // identity.world_size

    def settle(self) -> float:
        """Waits until no save is in flight on any rank, and gives how long this rank's own part of
        it was waited for. Raises what went wrong with it."""
        if self._thread is None or self._flight is None:
            return 0.0
        asked_s = time.monotonic()
        self._thread.join()
        flight, self._flight, self._thread = self._flight, None, None
        if flight.problem is not None:
            raise flight.problem
        return max(0.0, flight.own_end_s(self._plan.format) - asked_s)

    def are_beside(self, began_s: Sequence[float]) -> tuple[bool, ...]:
        """Which steps began while this rank wrote? Those of a block; older saves are forgotten."""
        found = tuple(
            any(since_s <= at_s < flight.end_s for since_s, flight in self._spans_s)
            for at_s in began_s
        )
        self._spans_s = [each for each in self._spans_s if each[1] is self._flight]
        return found

    def close(self) -> None:
        """Ends the last save and removes all that this training wrote."""
        self.settle()
        self._from_first("")  # a barrier: no rank looks for what another removes
        if self._removes:
            with contextlib.suppress(FileNotFoundError):  # a folder that nodes share unsaid
                release(self._own)


def own_stall_s(saving: Saving) -> float:
    """How long this rank's own work kept training waiting: without the collectives of the save, in
    which it waits for slower ranks."""
    own_s = sum(seconds for part, seconds in saving.parts_s.items() if part != "gather")
    return min(saving.stall_s, own_s) if saving.parts_s else saving.stall_s
