"""What has a job kept on a volume, that its pods can't tell any more? A Job of ours reads it.

What it says is heard as a leader is that has nothing more to run.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from broadgauge.manifests.kept_results import READER, reader_name, reader_objects
from broadgauge.manifests.run_job import RunJob
from broadgauge.messages.leader import LeaderOrder
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.leader_log import AttachedLog, LogLink, LogPump
from broadgauge.platforms.kubernetes.owned import create_all
from broadgauge.platforms.kubernetes.running_job import RunningJob
from broadgauge.platforms.led.handle import LinkLost, NothingMore

POD_LIMIT_S = 300.0
"""For its pod to start: it needs no GPU."""
TELL_LIMIT_S = waiting_limit_s(120.0)
_READ = "its pods are gone, and all that it kept on its volume is read"


@dataclass(slots=True, kw_only=True)
class KeptResults:
    """Of the jobs of one run."""

    run_at: Callable[[JobPlace], RunJob]
    """What the job was made of. Raises InputError."""
    say: Callable[[str], None]
    _begun: set[tuple[str, int]] = field(default_factory=set)
    """Of which job, after which event it was read: who learns nothing new does not ask again."""

    def attach(self, job: RunningJob, after: int) -> AttachedLog | None:
        """Hear what it kept from the event after this one; None: there is no more, or no volume.

        Raises InputError, LinkLost, PlatformError.
        """
        run = self.run_at(job.place)
        volume, key = run.settings.results_volume, (job.place.name, after)
        if volume is None or key in self._begun:
            return None
        self._begun.add(key)
        self.say(f"{job.name} has no pod that can be heard: reading volume {volume.name}")
        reader = self._reader(job, run, after)
        lines: list[str] = []
        link = _KeptLink(
            pump=LogPump(reader.stream(reader.first_pod())),
            tell=_refuse_order,
            begins=lines.clear,
            hear_line=lines.append,
            why_ended=lambda: None,
            last=after,
            generation=-1,
        )
        attached = AttachedLog(link)
        try:
            link.wait_for_hello(TELL_LIMIT_S)
        except LinkLost as loss:
            attached.close()
            raise LinkLost("; ".join(lines) or str(loss)) from loss
        return attached

    def _reader(self, job: RunningJob, run: RunJob, after: int) -> RunningJob:
        """Whose pod runs, or has run. Raises PlatformError."""
        objects = reader_objects(run, after)
        made = create_all(job.api, job.place.namespace, objects, self.say, adopts=True)
        place = replace(job.place, name=reader_name(run, after), kind="job", uid=None)
        reader = RunningJob(job.api, place, job.file, job.log_folder, self.say, container=READER)
        reader.is_created(made, 1)
        reader.wait_for_pods(1, POD_LIMIT_S, lambda _: None)
        return reader


class _KeptLink(LogLink):
    """What is kept, as from a leader that has ended."""

    __slots__ = ()

    def _ask_for(self, newest: int) -> None:
        """Another Job is asked, from there."""
        self._lose(f"its log lacks what comes after event {newest}")


def _refuse_order(order: LeaderOrder) -> None:
    """Raises NothingMore."""
    del order
    raise NothingMore(_READ)
