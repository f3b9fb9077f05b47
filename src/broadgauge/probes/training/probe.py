"""How long does a training step take, and how long the same step with communication off?

Blocks of steps alternate: on, off, on, off. After a block without communication the weights and
the optimizer are put back, so the steps with communication are those of an undisturbed training.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from broadgauge.messages.rank import Stalled, StepsBlock, TrainSummary
from broadgauge.messages.tasks import TrainTask
from broadgauge.messages.vocabulary import Phase, StepMode
from broadgauge.probes.devices import Device
from broadgauge.probes.step_watch import StepWatch
from broadgauge.probes.training.compiling import compiled_s
from broadgauge.probes.training.sources import read_data
from broadgauge.probes.training.step_shares import mean_share, share_sizes
from broadgauge.probes.training.traced_steps import trace_steps
from broadgauge.probes.training.trainer import Trainer
from broadgauge.probes.trial import Trial

if TYPE_CHECKING:
    from broadgauge.probes.training.checkpointing import Checkpointing

OFF_WARM_UP_STEPS = 2


def measure_training(trial: Trial, task: TrainTask, device: Device) -> None:
    trial.begin_phase(Phase.WARM_UP, "text and model")
    device.reset_peak_memory()
    begin_load_s = time.monotonic()
    data = read_data(task.text, task.model.vocabulary)
    compiled_before_s = compiled_s() if task.compile else 0.0
    trainer = Trainer(task, trial.command.seed, trial.identity, device, data)
    device.synchronize()
    model_load_s = time.monotonic() - begin_load_s
    saves = checkpointing(trial, trainer)
    with watched(trial, trainer):
        warm_up_s, peak_memory_bytes = _warm_up_and_measure(trial, trainer, saves)
        if saves is not None:
            saves.close()
        if task.traced_steps:
            trace_steps(trial, trainer, task.warm_up_steps + task.steps)
    measured = range(task.warm_up_steps, task.warm_up_steps + task.steps)
    share, packed = mean_share(trainer, measured), trainer.packed
    trial.say(
        TrainSummary(
            trial_id=trial.trial_id,
            parameters=trainer.num_parameters,
            trained_parameters=trainer.num_trained,
            tokens_per_step=round(share.num_tokens),
            sequences_per_step=round(share.num_samples),
            gradient_bytes=trainer.gradient_bytes,
            collectives=trainer.communication.collectives(),
            flops_per_step=share.flops,
            peak_memory_bytes=peak_memory_bytes,
            data=data.description if packed is None else packed.description,
            epoch_samples=None if packed is None else packed.epoch_samples,
            micro_batches_count=None if packed is None else share.micro_batches_count,
            padding_ratio=share.padding_ratio,
            parameter_checksum=trainer.parameter_checksum(),
            is_frozen_unchanged=trainer.is_frozen_unchanged(),
            compile_s=compiled_s() - compiled_before_s if task.compile else None,
            start_up_s=trial.process_start_s,
            model_load_s=model_load_s,
            warm_up_s=warm_up_s,
        )
    )


def checkpointing(trial: Trial, trainer: Trainer) -> Checkpointing | None:
    """All ranks make it together; None: nothing is saved."""
    if trainer.task.checkpoints is None:
        return None
    # torch's checkpoints take as long to import as FSDP: a training that saves none does without.
    from broadgauge.probes.training.checkpointing import Checkpointing

    return Checkpointing(trial, trainer, trainer.task.checkpoints)


def _warm_up_and_measure(
    trial: Trial, trainer: Trainer, saves: Checkpointing | None
) -> tuple[float, int]:
    """Gives the seconds of the warm-up's steps, and the bytes of memory at the peak."""
    task = trainer.task
    measures_off = task.communication_off and trial.identity.world_size > 1
    trial.begin_phase(Phase.WARM_UP, f"{task.warm_up_steps} steps")
    seconds = trainer.timed_steps(range(task.warm_up_steps)).seconds
    # Read before any snapshot exists: what the training itself needs.
    peak_memory_bytes = trainer.device.peak_memory_bytes()
    if measures_off:
        with trainer.without_communication():
            trainer.timed_steps(range(OFF_WARM_UP_STEPS))
    _measure_blocks(trial, trainer, saves, measures_off=measures_off)
    return sum(seconds), peak_memory_bytes


@contextmanager
def watched(trial: Trial, trainer: Trainer) -> Iterator[None]:
    """Tell when steps no longer come, where their pace can be seen."""
    stall_s = trial.command.stall_s
    if stall_s is None or trainer.device.torch_device.type != "cpu":
        yield
        return

    def tell(message: str) -> None:
        trial.channel.send(Stalled(trial_id=trial.trial_id, message=message))

    trainer.watch = StepWatch(stall_s, tell)
    with trainer.watch.watching():
        yield
    trainer.watch = None


def _measure_blocks(
    trial: Trial, trainer: Trainer, saves: Checkpointing | None, *, measures_off: bool
) -> None:
    """A save that is in flight when communication goes off is waited for: those steps are no part
    of the training, and would be slower for it."""
    task = trainer.task
    for number, done in enumerate(range(0, task.steps, task.block_steps)):
        first = task.warm_up_steps + done
        indexes = range(first, first + min(task.block_steps, task.steps - done))
        _measure_block(trial, trainer, f"on/{number}", indexes, saves)
        if measures_off:
            if saves is not None:
                saves.settle()
            with trainer.without_communication():
                _measure_block(trial, trainer, f"off/{number}", indexes)


def _measure_block(
    trial: Trial,
    trainer: Trainer,
    label: str,
    indexes: range,
    saves: Checkpointing | None = None,
) -> None:
    is_on = trainer.communication.is_on
    done = f"{indexes.stop - trainer.task.warm_up_steps} of {trainer.task.steps}"
    detail = f"step {done}, communication {'on' if is_on else 'off'}"
    trial.begin_phase(Phase.MEASURE, detail)
    trainer.device.synchronize()
    with trial.between_marks(label):
        timed = trainer.timed_steps(indexes, saver=saves)
    shares = share_sizes(trainer, indexes)
    trial.say(
        StepsBlock(
            trial_id=trial.trial_id,
            label=label,
            mode=StepMode.TIMED if is_on else StepMode.COMMUNICATION_OFF,
            seconds=timed.seconds,
            losses=timed.losses,
            num_samples=tuple(each.num_samples for each in shares),
            num_tokens=tuple(each.num_tokens for each in shares),
            save_gaps_s=() if saves is None else timed.gaps_s,
            are_beside_saves=() if saves is None else saves.are_beside(timed.began_s),
        )
    )
