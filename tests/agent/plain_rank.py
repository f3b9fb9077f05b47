"""A rank of Python and the zip file alone, `plain_rank.py ZIP`: its command needs no torchrun."""

import os
import subprocess
import sys

sys.path.insert(0, sys.argv[1])

from broadgauge.messages.rank import CommandSamples, Done, EndCommand, Hello, TrialCommand
from broadgauge.messages.tasks import CommandTask
from broadgauge.probes.channel import Channel
from broadgauge.probes.command_output import SampleReader
from broadgauge.probes.identity import RankIdentity
from broadgauge.probes.trial import Trial


def run_trial(trial: Trial) -> None:
    task = trial.command.task
    assert isinstance(task, CommandTask)
    reader = SampleReader(task.metrics)
    with trial.between_marks("command"):
        ended = subprocess.run(task.command, capture_output=True, text=True, check=True)
    for line in ended.stdout.splitlines():
        reader.feed(line)
    samples = reader.samples | {"nothing_else_count": (float("torch" in sys.modules),)}
    trial.say(CommandSamples(trial_id=trial.trial_id, samples=samples, exit_code=0))


identity = RankIdentity.from_environment(os.environ)
channel = Channel.from_environment(os.environ)
version = ".".join(map(str, sys.version_info[:2]))
channel.send(Hello(rank=identity.rank, pid=os.getpid(), torch=version, nccl=None, cuda=None))
while not isinstance(command := channel.receive(), EndCommand):
    assert isinstance(command, TrialCommand)
    run_trial(Trial(command=command, identity=identity, channel=channel))
    channel.send(Done(trial_id=command.trial_id))
