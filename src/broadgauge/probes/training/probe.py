"""How long does a training step take, and how long the same step with communication off?

Blocks of steps alternate: on, off, on, off. After a block without communication the weights and
the optimizer are put back, so the steps with communication are those of an undisturbed training.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from broadgauge.messages.adapters import model_flops_per_token
from broadgauge.messages.rank import Stalled, StepsBlock, TrainSummary
from broadgauge.messages.tasks import TrainTask
from broadgauge.messages.vocabulary import Phase, StepMode
from broadgauge.probes.devices import Device
from broadgauge.probes.step_watch import StepWatch
from broadgauge.probes.training.same_set import refuse_different_sets
from broadgauge.probes.training.sources import read_data
from broadgauge.probes.training.step_shares import MeanShare, mean_share
from broadgauge.probes.training.trainer import Trainer
from broadgauge.probes.trial import Trial

OFF_WARM_UP_STEPS = 2


def measure_training(trial: Trial, task: TrainTask, device: Device) -> None:
    trial.begin_phase(Phase.WARM_UP, "text and model")
    device.reset_peak_memory()
    begin_s = time.monotonic()
    data = read_data(task.text, task.model.vocabulary)
    refuse_different_sets(data, trial.identity, device.torch_device)
    trainer = Trainer(task, trial.command.seed, trial.identity, device, data)
    device.synchronize()
    load_s = time.monotonic() - begin_s
    with watched(trial, trainer):
        warm_up_s, peak_memory_bytes = _warm_up_and_measure(trial, trainer)
    share, packed = step_share(trainer), trainer.packed
    trial.say(
        TrainSummary(
            trial_id=trial.trial_id,
            parameters=trainer.num_parameters,
            tokens_per_step=round(share.num_tokens),
            sequences_per_step=round(share.num_samples),
            gradient_bytes=trainer.gradient_bytes,
            collectives=trainer.communication.collectives(),
            flops_per_step=share.flops,
            peak_memory_bytes=peak_memory_bytes,
            data=data.description if packed is None else packed.description,
            parameter_checksum=trainer.parameter_checksum(),
            is_frozen_unchanged=trainer.is_frozen_unchanged(),
            compile_s=trainer.compile_s,
            start_up_s=trial.start_up_s,
            load_s=load_s,
            warm_up_s=warm_up_s,
            epoch_samples=None if packed is None else packed.epoch_samples,
            taken_samples=None if packed is None else packed.taken_samples,
            micro_batches_count=None if packed is None else share.micro_batches_count,
            padding_ratio=None if packed is None else share.padding_ratio,
        )
    )
    trainer.strategy.close()


def step_share(trainer: Trainer) -> MeanShare:
    """What this rank takes of a step: the mean of the measured ones where they differ."""
    task = trainer.task

    def flops_per_token_of(seq_len: int) -> float:
        return model_flops_per_token(replace(task.model, seq_len=seq_len), task.adapters)

    if trainer.packed is not None:
        measured = range(task.warm_up_steps, task.warm_up_steps + task.steps)
        sizes = [trainer.packed.size(trainer.seed, step) for step in measured]
        return mean_share(sizes, flops_per_token_of)
    num_samples = task.batch_per_rank * task.accumulation
    num_tokens = num_samples * task.model.seq_len
    return MeanShare(
        num_samples=num_samples,
        num_tokens=num_tokens,
        flops=flops_per_token_of(task.model.seq_len) * num_tokens,
        micro_batches_count=task.accumulation,
        padding_ratio=0.0,
    )


def _warm_up_and_measure(trial: Trial, trainer: Trainer) -> tuple[float, int]:
    """Gives the seconds of the warm-up's steps, and of compiling before them, and the bytes of
    memory at the peak."""
    task = trainer.task
    measures_off = task.communication_off and trial.identity.world_size > 1
    trial.begin_phase(Phase.WARM_UP, f"{task.warm_up_steps} steps")
    begin_s = time.monotonic()
    trainer.compile_ahead()
    compile_s = time.monotonic() - begin_s
    seconds, _ = trainer.timed_steps(range(task.warm_up_steps))
    # Read before any snapshot exists: what the training itself needs.
    peak_memory_bytes = trainer.device.peak_memory_bytes()
    if measures_off:
        with trainer.without_communication():
            trainer.timed_steps(range(OFF_WARM_UP_STEPS))
    _measure_blocks(trial, trainer, measures_off=measures_off)
    return compile_s + sum(seconds), peak_memory_bytes


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


def _measure_blocks(trial: Trial, trainer: Trainer, *, measures_off: bool) -> None:
    task = trainer.task
    trainer.communication.begin_counting()
    for number, done in enumerate(range(0, task.steps, task.block_steps)):
        first = task.warm_up_steps + done
        indexes = range(first, first + min(task.block_steps, task.steps - done))
        _measure_block(trial, trainer, f"on/{number}", indexes)
        if measures_off:
            with trainer.without_communication():
                _measure_block(trial, trainer, f"off/{number}", indexes)


def _measure_block(trial: Trial, trainer: Trainer, label: str, indexes: range) -> None:
    is_on = trainer.communication.is_on
    done = f"{indexes.stop - trainer.task.warm_up_steps} of {trainer.task.steps}"
    detail = f"step {done}, communication {'on' if is_on else 'off'}"
    trial.begin_phase(Phase.MEASURE, detail)
    trainer.device.synchronize()
    with trial.between_marks(label):
        seconds, losses = trainer.timed_steps(indexes)
    packed = trainer.packed
    sizes = () if packed is None else tuple(packed.size(trainer.seed, each) for each in indexes)
    trial.say(
        StepsBlock(
            trial_id=trial.trial_id,
            label=label,
            mode=StepMode.TIMED if is_on else StepMode.COMMUNICATION_OFF,
            seconds=seconds,
            losses=losses,
            num_samples=tuple(size.num_samples for size in sizes),
            num_tokens=tuple(size.num_tokens for size in sizes),
        )
    )
