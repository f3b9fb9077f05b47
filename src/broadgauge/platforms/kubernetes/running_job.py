"""What goes on between the tool and a job's pods? They come up, are listened to, and go."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from broadgauge.manifests.names import JOB
from broadgauge.manifests.run_container import LEADER
from broadgauge.messages.leader import TOLD_TO_END, LeaderOrder
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.admission import Admission, Held
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_look import find_job, is_gone, makes_pods, why_over
from broadgauge.platforms.kubernetes.job_place import JobPlace, PlaceFile
from broadgauge.platforms.kubernetes.job_states import RESOURCES, trouble_of
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.leader_log import AttachedLog, LogLink, LogPump
from broadgauge.platforms.kubernetes.log_stream import follow_log
from broadgauge.platforms.kubernetes.numbering import by_number
from broadgauge.platforms.kubernetes.orders import put_order, with_number_used, with_order_taken
from broadgauge.platforms.kubernetes.owned import delete_all, selector_of
from broadgauge.platforms.kubernetes.ownership import created, events_of_makers, is_pod_of
from broadgauge.platforms.kubernetes.pod_lines import PodLines
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState
from broadgauge.platforms.kubernetes.pod_warnings import PodWarnings
from broadgauge.platforms.kubernetes.pods_wait import PodsWait
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import PODS
from broadgauge.platforms.kubernetes.watching import PodWatch
from broadgauge.platforms.led.handle import LeaderHandle, LinkLost, NoLeader
from broadgauge.specs.errors import PlatformError, UncollectedError

Say = Callable[[str], None]
HELLO_LIMIT_S = waiting_limit_s(120.0)
"""From a running pod to its leader's first line."""
SEEN_LIMIT_S = waiting_limit_s(10.0)
"""For the watch of a tool that has just started."""
TOLD_LIMIT_S = waiting_limit_s(10.0)
"""For a kubelet to say why a container has ended, which its agent can't."""
LOOK_EVERY_S = 1.0
LIMIT_HINT = (
    "`--set kubernetes.pending_limit_s=2h` waits longer; `kubectl get events --namespace {}` still "
    "has what was said of its pods"
)


@dataclass(slots=True)
class RunningJob:
    """A job that was created, by this life of the tool or an earlier one; its first pod leads."""

    api: Api
    place: JobPlace
    file: PlaceFile
    log_folder: Path
    say: Say
    container: str = LEADER
    """Whose log tells its events."""
    kept: "Callable[[RunningJob, int, str], AttachedLog | None] | None" = None
    """Hears what it has kept beyond its pods, told why their log can't be read; None: nothing."""
    watch: PodWatch = field(init=False)
    _lines: PodLines = field(init=False)
    _is_stopped: bool = False
    """By us: who ended it before is known then, or was nobody."""
    _over: str | None = None
    _ended_after: int | None = None
    """The last event that was known when the log had been read to its end."""

    def __post_init__(self) -> None:
        place = self.place
        selector = f"{selector_of(place.run)},{JOB}={place.name}"
        self._lines = PodLines(self.log_folder / f"{place.name}.leader.log")
        self.watch = PodWatch(self.api, place.namespace, selector, self.say)

    @property
    def name(self) -> str:
        """For people."""
        return f"job {self.place.name} in namespace {self.place.namespace}"

    def pods(self) -> dict[int, PodState]:
        """Of this job, by the number of their node. Raises PlatformError."""
        return by_number(self._own_pods(), self.place.num_pods)

    def _own_pods(self) -> list[PodState]:
        """With those that others have taken the place of. Raises PlatformError."""
        try:
            seen = self.watch.pods()
        except ApiError as error:
            raise refusal(error, "watching the pods", UncollectedError) from error
        return [pod for pod in seen if is_pod_of(self.place, pod)]

    def is_created(self, objects: Iterable[JsonMap], num_pods: int) -> None:
        """These are there, the job among them: its uid tells its pods from others'."""
        self.place = created(self.place, objects, num_pods)

    def pod_name(self, number: int) -> str:
        """With its node, for people."""
        try:
            pod = self.pods().get(number)
        except PlatformError:
            pod = None
        if pod is None:
            return f"node {number}"
        return pod.name if pod.node is None else f"{pod.name} on {pod.node}"

    def why_ended(self, number: int) -> str | None:
        """What is said of a pod whose agent is lost; None: it seems to run, or nobody knows."""
        ended = self._ended(lambda: self.pods().get(number))
        return None if ended is None else ended.state_words

    def _in_full(self, first: PodState, words: str) -> str:
        """A leader that is told to end does not know why: its kubelet says so a moment later."""
        if words != TOLD_TO_END:
            return words
        ended = self._ended(lambda: self._pod_of(first.uid))
        return words if ended is None else f"{words}: {ended.words}"

    def _pod_of(self, uid: str) -> PodState | None:
        """That one, not another that was made in its place. Raises PlatformError."""
        return next((pod for pod in self._own_pods() if pod.uid == uid), None)

    def _ended(self, look: Callable[[], PodState | None]) -> PodState | None:
        """The pod once it has ended; None: it seems to run, or nobody knows."""
        deadline_s = time.monotonic() + TOLD_LIMIT_S
        while time.monotonic() < deadline_s:
            try:
                pod = look()
            except PlatformError:
                return None
            if pod is not None and pod.has_ended:
                return pod
            self.watch.wait(LOOK_EVERY_S)
        return None

    def wait_for_pods(self, num_pods: int, limit_s: float, show: Say) -> None:
        """Until all run. Raises PlatformError where they can't, or don't in time."""
        place = self.place
        admission = Admission(api=self.api, namespace=place.namespace)
        PodsWait(
            name=self.name,
            num_pods=num_pods,
            limit_s=limit_s,
            controllers=events_of_makers(place),
            warnings=PodWarnings(api=self.api, namespace=place.namespace),
            queued=lambda: self._held(admission),
            show=show,
            limit_hint=LIMIT_HINT.format(place.namespace),
        ).until_all_run(lambda: list(self.pods().values()), self.watch.wait)

    def _held(self, admission: Admission) -> Held | None:
        """Who holds its pods back? Raises PlatformError where it is gone, or its operator says that
        it has failed."""
        words = f"{self.place.kind} {self.place.name}"
        try:
            job = find_job(self.api, self.place)
        except ApiError as error:
            if error.is_passing:  # the next look tells
                return None
            raise refusal(error, f"looking at {words}") from error
        if job is None:
            raise PlatformError(f"{words} is gone: somebody deleted it")
        trouble = trouble_of(job)
        if trouble is not None:
            raise PlatformError(f"{words}: {trouble}")
        return admission.held(job)

    def is_coming_up(self) -> bool:
        """Are its pods still to come? Not once the first runs, one has ended, or no more are made:
        its log, or what it kept, tells how it went then. Raises UncollectedError."""
        first = self._seen_first()
        if first is not None and first.stage is PodStage.RUNNING:
            return False
        ends = (PodStage.SUCCEEDED, PodStage.FAILED)
        if any(pod.stage in ends for pod in self.pods().values()):
            return False
        try:
            return makes_pods(self.api, self.place)
        except ApiError as error:
            raise refusal(error, f"looking at {self.name}", UncollectedError) from error

    def attach(self, after: int) -> AttachedLog:
        """Hear its leader, or what it kept. Raises NoLeader, LinkLost, PlatformError."""
        try:
            return self._attach(after)
        except NoLeader as error:
            kept = None if self.kept is None else self.kept(self, after, str(error))
            if kept is None:
                raise
            return kept

    def _attach(self, after: int) -> AttachedLog:
        """Raises NoLeader, LinkLost, PlatformError."""
        first = self.first_pod()
        link = LogLink(
            pump=LogPump(self.stream(first)),
            tell=self.tell,
            hear_line=self._lines.keep,
            begins=self._lines.begins,
            why_ended=self._why_deaf,
            in_full=partial(self._in_full, first),
            last=after,
            generation=self.place.generation,
        )
        attached = AttachedLog(link)
        try:
            if _has_led(first) and self._ended_after == after:
                raise NoLeader(f"{self.name}: {self._cause(first)}")
            self._ended_after = after if _has_led(first) else None
            link.wait_for_hello(HELLO_LIMIT_S)
        except BaseException as error:
            attached.close()
            if isinstance(error, LinkLost):
                self._refuse_where_shut_out(first.name)
            raise
        return attached

    def _refuse_where_shut_out(self, pod: str) -> None:
        """Raises PlatformError where the cluster does not know us any more: waiting is no help.

        A watch that is open goes on without being judged again, so that it does not tell.
        """
        try:
            self.api.get(PODS, self.place.namespace, pod)
        except ApiError as error:
            if error.status in (401, 403) and not error.is_passing:
                words = f"{self.name} goes on in its pods, unheard"
                raise refusal(error, words, UncollectedError) from error

    def tell(self, order: LeaderOrder) -> None:
        """Put an order where the leader finds it.

        Raises LinkLost, PlatformError, RunFolderError.
        """
        self._know(with_number_used(self.place))  # of a tool that is killed now, too
        first = self.pods().get(0)
        name = None if first is None else first.name
        put_order(self.api, self.place, order, first_pod=name, is_gone=self.is_gone)
        self._know(with_order_taken(self.place, order))

    def _know(self, place: JobPlace) -> None:
        """Also for a tool that comes later. Raises RunFolderError."""
        if place != self.place:
            self.file.write(place)
            self.place = place

    def stop(self) -> bool:
        """Delete all that belongs to the run; False: nobody knows whether all is gone."""
        if not self._is_stopped:
            self._over, self._is_stopped = self._seen_over(), True
        self.watch.close()
        return delete_all(
            self.api, self.place.namespace, self.place.run, self.say, RESOURCES[self.place.kind]
        )

    def is_gone(self) -> bool:
        """Can no pods be made of it any more? Those that a dead node still has stay for a while."""
        return is_gone(self.api, self.place)

    def why_over(self) -> str | None:
        """Was it deleted, which we did not, or did its time run out? None: no, or nobody knows."""
        return self._over if self._is_stopped else self._seen_over()

    def _seen_over(self) -> str | None:
        has_lost_pods = self._has_lost_pods()
        return why_over(
            self.api, self.place, self.name, is_expected=has_lost_pods, pause=self.watch.wait
        )

    def _has_lost_pods(self) -> bool:
        try:
            return any(pod.has_ended for pod in self.pods().values())
        except PlatformError:
            return False

    def _seen_first(self) -> PodState | None:
        """None: there is none, or the watch does not know yet."""
        deadline_s = time.monotonic() + SEEN_LIMIT_S
        while not self.watch.has_listed and time.monotonic() < deadline_s:
            self.pods()  # says where it never will
            self.watch.wait(LOOK_EVERY_S)
        return self.pods().get(0)

    def first_pod(self) -> PodState:
        """That leads it. Raises NoLeader, LinkLost, PlatformError."""
        first = self._seen_first()
        if first is None and not self.watch.has_listed:
            raise LinkLost(f"the pods of {self.name} were not listed in {SEEN_LIMIT_S:g} s")
        if first is None:
            raise NoLeader(f"{self.name} has no pod that leads it")
        if first.stage is PodStage.GONE:
            raise NoLeader(f"{self.name}: {self._cause(first)}")
        return first

    def _cause(self, first: PodState) -> str:
        """A job whose pod fails takes the others with it: the one that failed says why."""
        failed = [pod for pod in self.pods().values() if pod.stage is PodStage.FAILED]
        return "; ".join(pod.words for pod in failed or [first])

    def stream(self, pod: PodState) -> Iterator[bytes]:
        """What it writes. Raises LinkLost, PlatformError."""

        def has_ended() -> bool:
            state = self.pods().get(0)
            return state is None or state.uid != pod.uid or _has_led(state)

        place = self.place
        return follow_log(
            self.api, place.namespace, pod.name, self.container, has_ended=has_ended, say=self.say
        )

    def _why_deaf(self) -> str | None:
        try:
            first = self.pods().get(0)
        except PlatformError as error:
            return str(error)
        is_gone = first is not None and first.stage is PodStage.GONE
        return first.words if first is not None and is_gone else None


def _has_led(pod: PodState) -> bool:
    """Does its leader run no more? It outlives ranks that were killed, and has more to tell."""
    return pod.stage is PodStage.GONE or (pod.has_ended and not pod.is_leading)


_: type[LeaderHandle] = RunningJob
