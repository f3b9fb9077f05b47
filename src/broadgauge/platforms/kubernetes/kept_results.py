"""What has a job kept on a volume, that its pods can't tell any more? A Job of ours reads it.

What it says is heard as a leader is that has nothing more to run.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from broadgauge.manifests.request import JobRequest
from broadgauge.manifests.results_reader import CONTAINER, reader_objects
from broadgauge.messages.leader import LeaderOrder, Spooled
from broadgauge.platforms.kubernetes.admission import Admission, Held
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.leader_log import AttachedLog, LogLink, LogPump
from broadgauge.platforms.kubernetes.log_stream import follow_log
from broadgauge.platforms.kubernetes.owned import create_all
from broadgauge.platforms.kubernetes.plain_job import events_of, job_now, pods_of
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState
from broadgauge.platforms.kubernetes.pod_warnings import PodWarnings
from broadgauge.platforms.led.handle import LinkLost, NothingMore

Say = Callable[[str], None]
POD_LIMIT_S = 300.0
"""For its pod to start: it needs no GPU."""
TELL_LIMIT_S = 120.0
LOOK_EVERY_S = 1.0


@dataclass(slots=True, kw_only=True)
class KeptResults:
    """Of one job."""

    api: Api
    place: JobPlace
    volume: str | None
    """Its name in the experiment; None: nothing outlives the pods."""
    make_request: Callable[[], JobRequest]
    """What the job was asked for with; it takes a while. Raises InputError."""
    say: Say
    _begun: set[int] = field(default_factory=set)
    """After which events it was read: who learns nothing new does not ask again."""
    _was_held: bool = False

    def attach(self, after: int) -> AttachedLog | None:
        """Hear it from the event after this one; None: there is no more. Raises LinkLost,
        PlatformError."""
        if self.volume is None or after in self._begun:
            return None
        self._begun.add(after)
        self.say(f"job {self.place.name} has no pod that can be heard: reading {self.volume}")
        request = self.make_request()
        objects = reader_objects(request, after)
        *_, job = create_all(self.api, self.place.namespace, objects, self.say, adopts=True)
        pod = self._wait_for_pod(job)
        lines: list[str] = []
        link = KeptLink(
            pump=LogPump(self._stream(job, pod)),
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

    def _wait_for_pod(self, job: JsonMap) -> str:
        """Its name, once it runs or has run; a queue's wait does not count. Raises LinkLost,
        PlatformError."""
        deadline_s = time.monotonic() + POD_LIMIT_S
        warnings = PodWarnings(api=self.api, namespace=self.place.namespace)
        admission = Admission(api=self.api, namespace=self.place.namespace)
        words = ""
        while time.monotonic() < deadline_s:
            states = warnings.explained(self._pods(job))
            held = None if states else self._held(job, admission)
            if held is not None and held.is_managed:
                deadline_s = time.monotonic() + POD_LIMIT_S
            lack = warnings.lack(0 if states or held else 1, events_of(job))
            words = f"no pod was made{lack}" if held is None else held.words
            for state in states:
                if state.stage is PodStage.RUNNING or state.has_ended:
                    return state.name
                if state.is_doomed:
                    raise LinkLost(state.words)
                words = state.words
            time.sleep(LOOK_EVERY_S)
        raise LinkLost(f"reading {self.volume}: after {POD_LIMIT_S:g} s: {words}")

    def _held(self, job: JsonMap, admission: Admission) -> Held | None:
        """It is said by whom, once. Raises PlatformError."""
        name = str(job["metadata"]["name"])
        held = admission.held(job_now(self.api, self.place.namespace, name, self.say))
        if held is not None and not self._was_held:
            self._was_held = True
            self.say(f"Job {name}, which reads {self.volume}, is {held.words}")
        return held

    def _stream(self, job: JsonMap, pod: str) -> Iterator[bytes]:
        return follow_log(
            self.api,
            self.place.namespace,
            pod,
            CONTAINER,
            has_ended=lambda: all(state.has_ended for state in self._pods(job)),
            say=self.say,
        )

    def _pods(self, job: JsonMap) -> list[PodState]:
        """Raises PlatformError."""
        return pods_of(self.api, self.place.namespace, job, self.say)


class KeptLink(LogLink):
    """What is kept, as from a leader that has ended."""

    __slots__ = ()

    def receive(self, timeout_s: float) -> Spooled | None:
        """The next event; None: none came in time. Raises NothingMore after the last, and LinkLost
        where some of them are missing."""
        try:
            return super().receive(timeout_s)
        except LinkLost as loss:
            if self.hello is None or self.last + 1 < self.hello.next_number:
                raise
            raise NothingMore(_READ) from loss

    def _ask_for(self, newest: int) -> None:
        """Another Job is asked, from there."""
        self._lose(f"its log lacks what comes after event {newest}")


_READ = "its pods are gone, and all that it kept on its volume is read"


def _refuse_order(order: LeaderOrder) -> None:
    """Raises NothingMore."""
    del order
    raise NothingMore(_READ)
