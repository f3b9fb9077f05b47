"""What does each rank run? `python -m broadgauge.probes.worker`, under an agent's pipes.

It says hello, then runs one trial after another until it is told to end. Any exception is
reported, its traceback goes to the log, and the process ends with exit code 1: after a failure the
state of the other ranks is unknown, so the rest of the trials need another launch.
"""

import faulthandler
import importlib.metadata
import os
import signal
import sys
import time
import traceback
from dataclasses import replace

import torch
import torch.distributed as dist

from broadgauge.messages.rank import Done, EndCommand, Hello, TrialCommand
from broadgauge.messages.storage import StorageTask
from broadgauge.messages.tasks import CollectivesTask, CommandTask, TrainTask
from broadgauge.messages.vocabulary import Phase, assert_never
from broadgauge.probes.channel import Channel
from broadgauge.probes.collectives.probe import measure_collectives
from broadgauge.probes.devices import Device, choose_device
from broadgauge.probes.failures import describe_failure
from broadgauge.probes.groups import Rendezvous
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.process_age import process_age_s
from broadgauge.probes.training.probe import measure_training
from broadgauge.probes.trial import RefusedError, Trial


def main() -> int:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    identity = RankIdentity.from_environment(os.environ)
    channel = Channel.from_environment(os.environ)
    started_s = process_age_s()
    channel.send(_hello(identity))
    rendezvous = Rendezvous(identity)
    while not isinstance(command := channel.receive(), EndCommand):
        if not isinstance(command, TrialCommand):
            raise TypeError(f"waiting for a trial, got {command!r}")
        trial = Trial(
            command=command,
            identity=identity,
            channel=channel,
            enter_phase=rendezvous.enter_phase,
            start_up_s=started_s,
        )
        try:
            run_trial(trial, rendezvous)
        except BaseException as error:  # noqa: BLE001  a rank reports whatever ends it
            _log(error)
            channel.send(describe_failure(trial.trial_id, error))
            _leave_failed()
        channel.send(Done(trial_id=trial.trial_id))
    return 0


def _log(error: BaseException) -> None:
    """A refusal is no crash: its words say it all."""
    if isinstance(error, RefusedError):
        sys.stderr.write(f"refused: {error}\n")
    else:
        traceback.print_exc()


def run_trial(trial: Trial, rendezvous: Rendezvous) -> None:
    """Rendezvous, measure, tear down; raises whatever goes wrong."""
    layout = trial.layout
    if layout.world_size != trial.identity.world_size:
        raise ValueError(
            f"the trial has {layout.world_size} ranks, the launch {trial.identity.world_size}"
        )
    trial.begin_phase(Phase.RENDEZVOUS)
    begin_s = time.monotonic()
    device = choose_device(layout.device, trial.identity.local_rank)
    with rendezvous.process_group(trial.command, device):
        if trial.start_up_s is not None:
            waited_s = time.monotonic() - begin_s
            trial = replace(trial, start_up_s=trial.start_up_s + waited_s)
        measure(trial, device)
        trial.begin_phase(Phase.TEARDOWN)
        # No rank closes its connections while another still reads from them.
        trial.mark("teardown")


def measure(trial: Trial, device: Device) -> None:
    """The only place on the ranks that asks which kind of task it is. A pod's program has of the
    rarer ones those of its case."""
    match trial.command.task:
        case CollectivesTask(engine="nccl-tests") as task:
            from broadgauge.probes.nccl_tests.probe import measure_with_nccl_tests

            measure_with_nccl_tests(trial, task, device)
        case CollectivesTask() as task:
            measure_collectives(trial, task, device)
        case TrainTask() as task:
            measure_training(trial, task, device)
        case StorageTask() as task:
            from broadgauge.probes.storage.probe import measure_storage

            measure_storage(trial, task, device)
        case CommandTask():
            raise TypeError("a command is run by broadgauge.probes.command")
        case unknown:
            assert_never(unknown)


def _hello(identity: RankIdentity) -> Hello:
    nccl = torch.cuda.nccl.version() if dist.is_nccl_available() else None
    return Hello(
        rank=identity.rank,
        pid=os.getpid(),
        torch=importlib.metadata.version("torch"),
        nccl=None if nccl is None else ".".join(map(str, nccl)),
        cuda=torch.version.cuda,
    )


def _leave_failed() -> None:
    """Without the interpreter's own end, in which a communicator with lost peers can hang."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
