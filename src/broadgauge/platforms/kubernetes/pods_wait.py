"""How long are a job's pods waited for, and what is said meanwhile?"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.admission import UNMANAGED_HINT, Held
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState, waits
from broadgauge.platforms.kubernetes.pod_warnings import PodWarnings
from broadgauge.platforms.kubernetes.pull_failures import PullFailures
from broadgauge.specs.errors import PlatformError

Say = Callable[[str], None]
Queued = Callable[[], Held | None]
"""Who holds the job back, before its pods are made; None: nobody."""
LOOK_EVERY_S = 1.0
SETTLE_S = 0.1
"""Changes that come together are looked at once: a look takes as long as there are pods."""
TRIES_LIMIT_S = waiting_limit_s(120.0)
"""For what a kubelet tries again, a pull or a secret: registries and API servers fail for a while.
"""
NO_PODS_LIMIT_S = waiting_limit_s(90.0)
"""For an operator to make the pods of a job that nobody holds back."""


@dataclass(slots=True, kw_only=True)
class PodsWait:
    """For all pods of one job."""

    name: str
    """Of the job, for people."""
    num_pods: int
    limit_s: float
    """The user's: for pods that nobody holds back to run."""
    controllers: Sequence[str]
    """Selectors of the events of those who make the pods."""
    warnings: PodWarnings
    queued: Queued
    show: Say
    limit_hint: str | None = None
    """How to wait longer."""
    _shown: str = ""
    _pulls: PullFailures = field(default_factory=PullFailures)

    def until_all_run(
        self, pods: Callable[[], Sequence[PodState]], pause: Callable[[float], None]
    ) -> None:
        """Raises PlatformError where they can't, or don't in time. `pause`: until something has
        changed, at most so long."""
        started_s = asked_s = time.monotonic()
        failed_s: float | None = None
        held: Held | None = None
        while True:
            # One that is deleted has a successor, or its job has failed: the job says which.
            explained = self._pulls.explained(self.warnings.explained(pods()))
            states = [each for each in explained if not _is_gone(each)]
            if len(states) >= self.num_pods and all(_runs(state) for state in states):
                return
            now_s = time.monotonic()
            if states:
                held = None
            elif now_s - asked_s > LOOK_EVERY_S:
                held, asked_s = self.queued(), now_s
            if held is not None and held.is_managed:
                started_s = now_s
            lack = self.warnings.lack(self.num_pods - len(states), self.controllers)
            waiting = waits(states) if states else "waiting for its pods to be made"
            self._tell(waiting + lack if held is None else held.words)
            failing = any(state.is_tried_again for state in states)
            failed_s = None if not failing else now_s if failed_s is None else failed_s
            _refuse_doomed(self.name, states)
            if failed_s is not None and now_s - failed_s > min(TRIES_LIMIT_S, self.limit_s):
                raise _tried_enough(self.name, states)
            if held is not None and not held.is_managed:
                self._refuse_unmanaged(held, now_s - started_s)
            else:
                self._refuse_late(states, now_s - started_s, lack)
            pause(LOOK_EVERY_S)
            time.sleep(SETTLE_S)

    def _tell(self, words: str) -> None:
        """Each line once."""
        if words != self._shown:
            self.show(words)
            self._shown = words

    def _refuse_unmanaged(self, held: Held, waited_s: float) -> None:
        """Raises PlatformError."""
        if waited_s > self.limit_s:
            words = f"{self.name}: after {self.limit_s:g} s: {held.words}"
            raise PlatformError(words, hint=UNMANAGED_HINT)

    def _refuse_late(self, states: list[PodState], waited_s: float, lack: str) -> None:
        """Raises PlatformError."""
        no_pods_limit_s = min(NO_PODS_LIMIT_S, self.limit_s)
        if not states and waited_s > no_pods_limit_s:
            raise PlatformError(
                f"{self.name}: no pods were made in {no_pods_limit_s:g} s{lack}",
                hint="does the operator of this kind of job run? `--set kubernetes.job=job` "
                "needs none",
            )
        if waited_s > self.limit_s:
            raise PlatformError(
                f"{self.name}: after {self.limit_s:g} s: {waits(states)}{lack}",
                hint=_pull_hint(states) or self.limit_hint,
            )


def _refuse_doomed(name: str, states: list[PodState]) -> None:
    """Raises PlatformError where waiting does not help."""
    for state in states:
        if state.is_doomed:
            raise PlatformError(f"{name}: {state.words}")


def _tried_enough(name: str, states: list[PodState]) -> PlatformError:
    return PlatformError(f"{name}: {waits(states)}", hint=_pull_hint(states))


def _pull_hint(states: list[PodState]) -> str | None:
    """Waiting longer helps a pull that has failed less than another image. None: none has."""
    is_pull = any(state.is_tried_again and state.stage is PodStage.PULLING for state in states)
    return "`kubernetes: {image: …, image_pull_secrets: […]}`" if is_pull else None


def _is_gone(state: PodState) -> bool:
    return state.stage is PodStage.GONE


def _runs(state: PodState) -> bool:
    """Or did: a job may be over before it was looked at."""
    return state.stage in (PodStage.RUNNING, PodStage.SUCCEEDED)
