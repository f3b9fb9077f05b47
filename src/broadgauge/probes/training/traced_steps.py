"""Where does a training step's time go? Some more steps, under PyTorch's profiler.

They come after all that is timed. A rank that can't trace says why, and its figures stand.
"""

from pathlib import Path

from broadgauge.messages.rank import StepsBlock, TraceProblem
from broadgauge.messages.vocabulary import Phase, StepMode
from broadgauge.probes.trace_hook import WARM_UP_STEPS, profiler_of, trace_name, write_trace
from broadgauge.probes.trace_place import trace_folder
from broadgauge.probes.training.trainer import Trainer
from broadgauge.probes.trial import Trial

LABEL = "traced/0"


def trace_steps(trial: Trial, trainer: Trainer, first: int) -> None:
    """Traces the steps from number `first` on, and leaves the file with the trial."""
    num_steps = trainer.task.traced_steps
    trial.begin_phase(Phase.MEASURE, f"{num_steps} steps under the profiler")
    trainer.device.synchronize()
    profile = profiler_of(num_steps)
    with trial.between_marks(LABEL):
        profile.start()
        timed = trainer.timed_steps(
            range(first, first + WARM_UP_STEPS + num_steps), after_step=profile.step
        )
        profile.stop()
    trial.say(
        StepsBlock(
            trial_id=trial.trial_id,
            label=LABEL,
            mode=StepMode.TRACED,
            seconds=timed.seconds[WARM_UP_STEPS:],
            losses=timed.losses[WARM_UP_STEPS:],
        )
    )
    path = trace_folder(trial.trial_id) / trace_name(trial.identity.rank)
    try:
        write_trace(profile, str(path))
    except OSError as error:
        message = f"rank {trial.identity.rank}: its trace can't be written: {error}"
        trial.say(TraceProblem(trial_id=trial.trial_id, message=message))
        return
    trial.leave(Path(path), "trace")
