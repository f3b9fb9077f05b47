"""How long is a training step of one rank alone? The reference trainer's own, nothing sent."""

import gc

from broadgauge.messages.tasks import StandardLibraryText, TrainTask
from broadgauge.probes.calibration.results import StepTime
from broadgauge.probes.calibration.shapes import Training
from broadgauge.probes.calibration.timing import timing_of
from broadgauge.probes.devices import Device
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.training.sources import read_data
from broadgauge.probes.training.trainer import Trainer

WARM_UP_STEPS = 3
FEWEST_STEPS, MOST_STEPS = 6, 40
BUDGET_S = 1.5
ALONE = RankIdentity(
    rank=0,
    world_size=1,
    local_rank=0,
    local_world_size=1,
    node=0,
    master_addr="127.0.0.1",
    master_port=0,
)


def time_step(training: Training, device: Device) -> StepTime:
    """Raises RefusedError where there is not enough memory."""
    task = alone_task(training)
    trainer = Trainer(task, 0, ALONE, device, read_data(task.text, task.model.vocabulary))
    trainer.timed_steps(range(WARM_UP_STEPS))
    once_s, _ = trainer.timed_steps(range(1))
    steps = min(max(round(BUDGET_S / once_s[0]), FEWEST_STEPS), MOST_STEPS)
    seconds, _ = trainer.timed_steps(range(steps))
    del trainer
    gc.collect()
    return StepTime(
        model=training.model,
        dtype=training.dtype,
        batch=training.batch,
        time=timing_of(seconds),
    )


def alone_task(training: Training) -> TrainTask:
    """The reference training with nothing that a single rank could leave to others."""
    return TrainTask(
        strategy="ddp",
        model=training.model,
        batch_per_rank=training.batch,
        accumulation=1,
        dtype=training.dtype,
        gradient_dtype="float32",
        reshard_after_forward=True,
        bucket_cap_bytes=None,
        learning_rate=3e-4,
        steps=MOST_STEPS,
        warm_up_steps=WARM_UP_STEPS,
        block_steps=MOST_STEPS,
        communication_off=False,
        text=StandardLibraryText(),
    )
