"""What has a job kept on a volume, that its pods can't tell any more? A Job of ours reads it.

What it says is heard as a leader is that has nothing more to run. While it can't be read, the job
and what it kept stay: nothing is measured again of which nobody knows whether it was measured.
"""

from collections import Counter
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
from broadgauge.specs.errors import PlatformError, UncollectedError

POD_LIMIT_S = 300.0
"""For its pod to start: it needs no GPU."""
TELL_LIMIT_S = waiting_limit_s(120.0)
MOST_TRIES = 3
"""Readers that end without telling all, from the same event on."""
_READ = "its pods are gone, and all that it kept on its volume is read"


@dataclass(slots=True, kw_only=True)
class KeptResults:
    """Of the jobs of one run."""

    run_at: Callable[[JobPlace], RunJob]
    """What the job was made of. Raises InputError."""
    say: Callable[[str], None]
    """Takes what the user should know."""
    show: Callable[[str], None] = lambda _: None
    """Takes what is waited for; another for each launch."""
    _told: set[tuple[str, int]] = field(default_factory=set)
    """Of which job, after which event all was told: who learns nothing new does not ask again."""
    _tries: Counter[tuple[str, int]] = field(default_factory=Counter)

    def attach(self, job: RunningJob, after: int, why: str) -> AttachedLog | None:
        """Hear what it kept from the event after this one; None: there is no more, or no volume.

        `why`: nothing is heard of the job itself. Raises InputError, LinkLost; UncollectedError
        where it can't be read, also not by another try.
        """
        run = self.run_at(job.place)
        volume, key = run.settings.results_volume, (job.place.name, after)
        if volume is None or key in self._told:
            return None
        words = f"{why}: reading what it kept on volume {volume.name}"
        self.say(words)
        self.show(words)
        try:
            attached = self._attached(job, run, key)
        except (LinkLost, PlatformError) as loss:
            self._tries[key] += 1
            if self._tries[key] < MOST_TRIES:
                raise LinkLost(f"volume {volume.name} can't be read: {loss}") from loss
            raise UncollectedError(
                f"volume {volume.name}, on which {job.name} kept what it measured, can't be read: "
                f"{loss}",
                hint="it stays there: `broadgauge run --resume` tries it again, `broadgauge "
                "cleanup` gives it up",
            ) from loss
        return attached

    def _attached(self, job: RunningJob, run: RunJob, key: tuple[str, int]) -> AttachedLog:
        """Raises LinkLost, PlatformError."""
        _, after = key
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
            has_told_all=lambda: self._told.add(key),
        )
        attached = AttachedLog(link)
        try:
            link.wait_for_hello(TELL_LIMIT_S)
        except LinkLost as loss:
            attached.close()
            raise LinkLost("; ".join(lines) or str(loss)) from loss
        except BaseException:
            attached.close()
            raise
        return attached

    def _reader(self, job: RunningJob, run: RunJob, after: int) -> RunningJob:
        """Whose pod runs, or has run. Raises PlatformError."""
        name = reader_name(run)
        objects = reader_objects(run, name, after)
        made = create_all(job.api, job.place.namespace, objects, self.say)
        place = replace(job.place, name=name, kind="job", uid=None)
        reader = RunningJob(job.api, place, job.file, job.log_folder, self.say, container=READER)
        reader.is_created(made, 1)
        reader.wait_for_pods(1, POD_LIMIT_S, self.show)
        return reader


@dataclass(kw_only=True)
class _KeptLink(LogLink):
    """What is kept, as from a leader that has ended."""

    has_told_all: Callable[[], None]
    """Called at its end."""

    def _end(self) -> None:
        self.has_told_all()
        super()._end()

    def _ask_for(self, newest: int) -> None:
        """Another Job is asked, from there."""
        self._lose(f"its log lacks what comes after event {newest}")


def _refuse_order(order: LeaderOrder) -> None:
    """Raises NothingMore."""
    del order
    raise NothingMore(_READ)
