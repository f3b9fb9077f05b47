"""How long does a training step take, and how long the same step with communication off?

Blocks of steps alternate: on, off, on, off. After a block without communication the weights and
the optimizer are put back, so the steps with communication are those of an undisturbed training.
"""

from broadgauge.probes.devices import Device
from broadgauge.probes.training.sources import read_text
from broadgauge.probes.training.trainer import Trainer
from broadgauge.probes.trial import Trial
from broadgauge.specs.rank_messages import StepsBlock, TrainSummary
from broadgauge.specs.record import Phase
from broadgauge.specs.workload import TrainWorkload

OFF_WARM_UP_STEPS = 2


def measure_training(trial: Trial, workload: TrainWorkload, device: Device) -> None:
    trial.begin_phase(Phase.WARM_UP, "text and model")
    device.reset_peak_memory()
    text = read_text(workload)
    trainer = Trainer(workload, trial.command.seed, trial.identity, device, text)
    measures_off = workload.communication_off and trial.identity.world_size > 1
    trial.begin_phase(Phase.WARM_UP, f"{workload.warm_up_steps} steps")
    trainer.timed_steps(range(workload.warm_up_steps))
    # Read before any snapshot exists: what the training itself needs.
    peak_memory_bytes = device.peak_memory_bytes()
    if measures_off:
        with trainer.without_communication():
            trainer.timed_steps(range(OFF_WARM_UP_STEPS))
    _measure_blocks(trial, trainer, measures_off=measures_off)
    model = workload.model
    sequences = workload.batch_per_rank * workload.accumulation
    tokens = sequences * model.seq_len
    trial.say(
        TrainSummary(
            trial_id=trial.trial_id,
            parameters=trainer.num_parameters,
            tokens_per_step=tokens,
            sequences_per_step=sequences,
            gradient_bytes=trainer.gradient_bytes,
            messages=trainer.communication.messages(),
            flops_per_step=model.flops_per_token * tokens,
            peak_memory_bytes=peak_memory_bytes,
            data=text.description,
            parameter_checksum=trainer.parameter_checksum(),
        )
    )


def _measure_blocks(trial: Trial, trainer: Trainer, *, measures_off: bool) -> None:
    workload = trainer.workload
    for number, done in enumerate(range(0, workload.steps, workload.block_steps)):
        first = workload.warm_up_steps + done
        indexes = range(first, first + min(workload.block_steps, workload.steps - done))
        _measure_block(trial, trainer, f"on/{number}", indexes)
        if measures_off:
            with trainer.without_communication():
                _measure_block(trial, trainer, f"off/{number}", indexes)


def _measure_block(trial: Trial, trainer: Trainer, label: str, indexes: range) -> None:
    is_on = trainer.communication.is_on
    done = f"{indexes.stop - trainer.workload.warm_up_steps} of {trainer.workload.steps}"
    detail = f"step {done}, communication {'on' if is_on else 'off'}"
    trial.begin_phase(Phase.MEASURE, detail)
    trainer.device.synchronize()
    with trial.between_marks(label):
        seconds, losses = trainer.timed_steps(indexes)
    trial.say(
        StepsBlock(
            trial_id=trial.trial_id,
            label=label,
            is_communication_on=is_on,
            seconds=seconds,
            losses=losses,
        )
    )
