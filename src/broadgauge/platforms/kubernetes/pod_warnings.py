"""Why do pods not start, or aren't made? No status says it, but the events of kubelets, controllers
and storage do.

They are asked for by the object that they are about, since a namespace may have thousands of them.
Source: Kubernetes API reference, Event v1, whose field selectors are `involvedObject.*`, `type` and
`reason`; pkg/kubelet/events/event.go.
"""

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping, text
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState
from broadgauge.platforms.kubernetes.resources import EVENTS

QUIET_S = 10.0
"""A pod that starts in less is not asked about."""
ASK_EVERY_S = 4.0
MOST_ASKED = 3
"""Pods a look: what keeps one from starting mostly keeps all."""
_OVERCOME = frozenset({"Pulling", "Pulled", "Created", "Started"})
"""Once a kubelet says this, volumes are mounted and the sandbox is there."""
_EARLIER = "FailedScheduling"
"""The scheduler's, of a pod that has its node since."""
_LONG_ID = re.compile(r"[0-9a-f]{32,}")
"""Of a sandbox: another in each try."""


def about(uid: str) -> str:
    """Field selector of the events of one object."""
    return f"involvedObject.uid={uid}"


def about_name(kind: str, name: str) -> str:
    """Of an object whose uid is not known."""
    return f"involvedObject.kind={kind},involvedObject.name={name}"


@dataclass(slots=True, kw_only=True)
class PodWarnings:
    """About the pods of one job, as they were last asked for."""

    api: Api
    namespace: str
    _since_s: dict[str, float] = field(default_factory=dict)
    """By uid: when a pod was first seen to start, without a word why."""
    _why: dict[str, str] = field(default_factory=dict)
    """By uid, of pods that were asked about."""
    _lack: str = ""
    _pods_asked_s: float | None = None
    _lack_asked_s: float | None = None
    """At first when pods were first seen to lack: that needs no word yet."""

    def explained(self, states: Iterable[PodState]) -> list[PodState]:
        """Those that start for long without a word get their events'."""
        found, now_s = list(states), time.monotonic()
        silent = [each.uid for each in found if _is_silent(each)]
        self._since_s = {uid: self._since_s.get(uid, now_s) for uid in silent}
        stuck = [uid for uid, since_s in self._since_s.items() if now_s - since_s > QUIET_S]
        is_asked = self._pods_asked_s is None or now_s - self._pods_asked_s > ASK_EVERY_S
        if stuck and is_asked:
            self._pods_asked_s = now_s
            self._why = {uid: self._newest(uid) for uid in stuck[:MOST_ASKED]}
        return [
            replace(each, why=self._why[each.uid])
            if _is_silent(each) and self._why.get(each.uid)
            else each
            for each in found
        ]

    def lack(self, number: int, controllers: Sequence[str]) -> str:
        """`; 2 pods can't be made: …` in the words of who makes them, as that a quota is used up;
        empty: all are there, or nobody says why not. `controllers`: selectors of their events."""
        now_s = time.monotonic()
        if self._lack_asked_s is None:
            self._lack_asked_s = now_s
        if number <= 0:
            self._lack = ""
        elif now_s - self._lack_asked_s > ASK_EVERY_S:
            self._lack_asked_s = now_s
            self._lack = self._refusal(number, controllers)
        return self._lack

    def _refusal(self, number: int, controllers: Sequence[str]) -> str:
        events = [
            event
            for selector in controllers
            for event in self._events(f"{selector},type=Warning")
            if "FailedCreate" in _reason(event) or _reason(event).endswith("CreationFailed")
        ]
        if not events:
            return ""
        newest = max(events, key=_time_of)
        return f"; {number} pod{'s' * (number > 1)} can't be made: {_message(newest)}"

    def _newest(self, uid: str) -> str:
        """`FailedMount: …`; empty: nothing is said, or that is overcome."""
        events = self._events(about(uid))
        warnings = [
            each for each in events if each.get("type") == "Warning" and _reason(each) != _EARLIER
        ]
        if not warnings:
            return ""
        newest = max(warnings, key=_time_of)
        if any(_reason(each) in _OVERCOME and _time_of(each) > _time_of(newest) for each in events):
            return ""
        return f"{_reason(newest)}: {_message(newest)}"

    def _events(self, fields: str) -> list[JsonMap]:
        """None where they can't be had: they tell what is waited for, and are not waited for."""
        try:
            found: list[JsonMap] = self.api.list(EVENTS, self.namespace, fields=fields)["items"]
        except ApiError:
            return []
        return found


def _is_silent(pod: PodState) -> bool:
    return pod.stage is PodStage.STARTING and pod.why is None


def _reason(event: JsonMap) -> str:
    return text(event.get("reason")) or ""


def _message(event: JsonMap) -> str:
    """On one line; equal in each try."""
    return _LONG_ID.sub("…", " ".join((text(event.get("message")) or "no message").split()))


def _time_of(event: JsonMap) -> str:
    """When it was last told; of one server, so that texts compare."""
    series = mapping(event.get("series"))
    for found in (
        event.get("lastTimestamp"),
        series.get("lastObservedTime"),
        event.get("eventTime"),
    ):
        if text(found) is not None:
            return str(found)
    return ""
