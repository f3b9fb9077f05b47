"""What goes on between the tool and a job's pods? They come up, are listened to, and go."""

import base64
import gzip
import json
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from broadgauge.manifests.labels import JOB, container_name, orders_name
from broadgauge.messages.codec import encode
from broadgauge.messages.leader import LeaderOrder, TakeJobs
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_place import JobPlace, PlaceFile
from broadgauge.platforms.kubernetes.job_states import RESOURCES
from broadgauge.platforms.kubernetes.json_shapes import JsonMap
from broadgauge.platforms.kubernetes.leader_log import AttachedLog, LogLink, LogPump
from broadgauge.platforms.kubernetes.log_stream import follow_log
from broadgauge.platforms.kubernetes.numbering import by_number
from broadgauge.platforms.kubernetes.owned import delete_all, selector_of
from broadgauge.platforms.kubernetes.ownership import created, events_of_makers, is_pod_of
from broadgauge.platforms.kubernetes.pod_lines import PodLines
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState
from broadgauge.platforms.kubernetes.pod_warnings import PodWarnings
from broadgauge.platforms.kubernetes.pods_wait import PodsWait, Queued
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import CONFIG_MAPS, PODS
from broadgauge.platforms.kubernetes.watching import PodWatch
from broadgauge.platforms.led.handle import LinkLost, NoLeader
from broadgauge.specs.errors import PlatformError

Say = Callable[[str], None]
HELLO_LIMIT_S = 120.0
"""From a running pod to its leader's first line."""
LOOK_EVERY_S = 1.0
_NEVER_TAKEN = (400, 403, 404, 413, 422)
"""What the API server says to an order that it will not take later either."""
ORDER_ANNOTATION = "broadgauge.dev/order"
"""A pod that changes is looked at by its kubelet, which then refreshes its volumes."""


def order_bytes(order: LeaderOrder) -> bytes:
    """As a leader in a pod reads it; equal orders, equal bytes."""
    return gzip.compress(json.dumps(encode(order)).encode(), mtime=0)


def order_key(number: int) -> str:
    """Of the ConfigMap of orders."""
    return f"order-{number:05}.json.gz"


@dataclass(slots=True)
class RunningJob:
    """A job that was created, by this life of the tool or an earlier one."""

    api: Api
    place: JobPlace
    file: PlaceFile
    log_folder: Path
    say: Say
    watch: PodWatch = field(init=False)
    _lines: PodLines = field(init=False)
    _ended_after: int | None = None
    """The last event that was known when the log had been read to its end."""

    def __post_init__(self) -> None:
        place = self.place
        selector = f"{selector_of(place.run)},{JOB}={place.name}"
        self._lines = PodLines(self.log_folder / f"{place.name}.pod0.log")
        self.watch = PodWatch(self.api, place.namespace, selector, self.say)

    @property
    def name(self) -> str:
        """For people."""
        return f"job {self.place.name} in namespace {self.place.namespace}"

    def pods(self) -> dict[int, PodState]:
        """Of this job, by the number of their node. Raises PlatformError."""
        try:
            seen = self.watch.pods()
        except ApiError as error:
            raise refusal(error, "watching the pods") from error
        own = [pod for pod in seen if is_pod_of(self.place, pod)]
        return by_number(own, self.place.num_pods)

    def is_created(self, objects: Iterable[JsonMap], num_pods: int) -> None:
        """These are there, the job among them: its uid tells its pods from others'."""
        self.place = created(self.place, objects, num_pods)

    def pod_name(self, number: int) -> str:
        """With its node, for people."""
        pod = self.pods().get(number)
        if pod is None:
            return f"node {number}"
        return pod.name if pod.node is None else f"{pod.name} on {pod.node}"

    def wait_for_pods(self, num_pods: int, limit_s: float, show: Say, queued: Queued) -> None:
        """Until all run. Raises PlatformError where they can't, or don't in time."""
        place = self.place
        PodsWait(
            name=self.name,
            num_pods=num_pods,
            limit_s=limit_s,
            controllers=events_of_makers(place),
            warnings=PodWarnings(api=self.api, namespace=place.namespace),
            queued=queued,
            show=show,
        ).until_all_run(lambda: list(self.pods().values()), self.watch.wait)

    def attach(self, after: int) -> AttachedLog:
        """Hear its leader. Raises NoLeader, LinkLost, PlatformError."""
        first = self._first_pod()
        link = LogLink(
            pump=LogPump(self._stream(first)),
            tell=self.tell,
            hear_line=self._lines.keep,
            begins=self._lines.begins,
            why_ended=self._why_deaf,
            last=after,
            generation=self.place.generation,
        )
        attached = AttachedLog(link)
        try:
            if first.has_ended and self._ended_after == after:
                raise NoLeader(f"{self.name}: {self._cause(first)}")
            self._ended_after = after if first.has_ended else None
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
                raise refusal(error, f"{self.name} goes on in its pods, unheard") from error

    def tell(self, order: LeaderOrder) -> None:
        """Put an order where the leader finds it. Raises LinkLost, PlatformError."""
        place, data = self.place, base64.b64encode(order_bytes(order)).decode()
        generation = order.generation if isinstance(order, TakeJobs) else place.generation
        self.place = replace(place, next_order=place.next_order + 1, generation=generation)
        self.file.write(self.place)
        keys: dict[str, str | None] = {order_key(place.next_order): data}
        if isinstance(order, TakeJobs):  # instead of all before it, which would fill the ConfigMap
            keys |= {order_key(number): None for number in range(place.next_order)}
        try:
            self.api.merge(
                CONFIG_MAPS,
                place.namespace,
                orders_name(place.name),
                {"binaryData": keys},
            )
        except ApiError as error:
            # What is beside a job goes with it: then there is nobody to be told.
            is_gone = error.status == 404 and self.is_gone()
            if error.status in _NEVER_TAKEN and not error.is_passing and not is_gone:
                raise refusal(error, f"telling {self.name} what to do") from error
            raise LinkLost(f"{self.name} can't be told anything: {error}") from error
        self._hasten(place.next_order)

    def _hasten(self, number: int) -> None:
        """Have the kubelet refresh the orders now. Raises LinkLost."""
        annotation = {"metadata": {"annotations": {ORDER_ANNOTATION: str(number)}}}
        try:
            self.api.merge(PODS, self.place.namespace, self._first_pod().name, annotation)
        except NoLeader as error:
            raise LinkLost(f"{self.name} can't be told anything: {error}") from error
        except ApiError as error:  # it refreshes them by itself, within a minute or so
            self.say(f"{self.name} hears of what to do a little later: {error}")

    def delete(self) -> bool:
        """All of the run's objects; False: nobody knows whether they are gone."""
        self.watch.close()
        return delete_all(
            self.api, self.place.namespace, self.place.run, self.say, RESOURCES[self.place.kind]
        )

    def is_gone(self) -> bool:
        """Can no pods be made of it any more? Those that a dead node still has stay for a while."""
        place = self.place
        try:
            return self.api.find(RESOURCES[place.kind], place.namespace, place.name) is None
        except ApiError:  # nobody knows
            return False

    def _first_pod(self) -> PodState:
        """Raises NoLeader."""
        deadline_s = time.monotonic() + 10.0
        while True:  # the watch of a tool that has just started has seen nothing yet
            first = self.pods().get(0)
            if first is not None:
                break
            if time.monotonic() > deadline_s:
                raise NoLeader(f"{self.name} has no pod that leads it")
            self.watch.wait(LOOK_EVERY_S)
        if first.stage is PodStage.GONE:
            raise NoLeader(f"{self.name}: {self._cause(first)}")
        return first

    def _cause(self, first: PodState) -> str:
        """A job whose pod fails takes the others with it: the one that failed says why."""
        failed = [pod for pod in self.pods().values() if pod.stage is PodStage.FAILED]
        return "; ".join(pod.words for pod in failed or [first])

    def _stream(self, pod: PodState) -> Iterator[bytes]:
        def has_ended() -> bool:
            state = self.pods().get(0)
            return state is None or state.has_ended or state.uid != pod.uid

        place = self.place
        return follow_log(
            self.api,
            place.namespace,
            pod.name,
            container_name(place.kind),
            has_ended=has_ended,
            say=self.say,
        )

    def _why_deaf(self) -> str | None:
        try:
            first = self.pods().get(0)
        except PlatformError as error:
            return str(error)
        is_gone = first is not None and first.stage is PodStage.GONE
        return first.words if first is not None and is_gone else None
