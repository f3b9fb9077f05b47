"""What does each rank run? `python -m broadgauge.probes.worker`, under a supervisor's pipes.

It says hello, then runs one trial after another until it is told to end. Any exception is
reported, its traceback goes to the log, and the process ends with exit code 1: after a failure the
state of the other ranks is unknown, so the rest of the trials need another launch.
"""

import faulthandler
import importlib.metadata
import os
import signal
import sys
import traceback

import torch
import torch.distributed as dist

from broadgauge.probes.channel import Channel
from broadgauge.probes.collectives.probe import measure_collectives
from broadgauge.probes.devices import Device, choose_device
from broadgauge.probes.failures import describe_failure
from broadgauge.probes.groups import Rendezvous
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.nccl_tests.probe import measure_with_nccl_tests
from broadgauge.probes.training.probe import measure_training
from broadgauge.probes.trial import Trial
from broadgauge.specs.rank_messages import Done, EndCommand, Hello, TrialCommand
from broadgauge.specs.record import Phase
from broadgauge.specs.workload import CollectivesWorkload, TrainWorkload


def main() -> int:
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    identity = RankIdentity.from_environment(os.environ)
    channel = Channel.from_environment(os.environ)
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
        )
        try:
            run_trial(trial, rendezvous)
        except BaseException as error:  # noqa: BLE001  a rank reports whatever ends it
            traceback.print_exc()
            channel.send(describe_failure(trial.trial_id, error))
            _leave_failed()
        channel.send(Done(trial_id=trial.trial_id))
    return 0


def run_trial(trial: Trial, rendezvous: Rendezvous) -> None:
    """Rendezvous, measure, tear down; raises whatever goes wrong."""
    case = trial.case
    if case.world_size != trial.identity.world_size:
        raise ValueError(
            f"the case has {case.world_size} ranks, the launch {trial.identity.world_size}"
        )
    trial.begin_phase(Phase.RENDEZVOUS)
    device = choose_device(case.device, trial.identity.local_rank)
    with rendezvous.process_group(trial.command, device):
        measure(trial, device)
        trial.begin_phase(Phase.TEARDOWN)
        # No rank closes its connections while another still reads from them.
        trial.mark("teardown")


def measure(trial: Trial, device: Device) -> None:
    match trial.case.workload:
        case CollectivesWorkload(engine="nccl-tests") as workload:
            measure_with_nccl_tests(trial, workload, device)
        case CollectivesWorkload() as workload:
            measure_collectives(trial, workload, device)
        case TrainWorkload() as workload:
            measure_training(trial, workload, device)
        case workload:
            raise TypeError(f"a worker runs no `{workload.kind}` workload")


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
