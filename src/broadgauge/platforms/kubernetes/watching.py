"""How does the tool know what a run's pods do? One watch for all of them, in a thread.

A watch that ends, a version that is too old, a server that restarts: the list is read again and the
watch goes on. What can't come right (credentials that are not accepted any more, answers that are
none for a quarter of an hour) is told, and so is whatever else ends the thread.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.api import AGAIN_AFTER_S, LONGEST_PAUSE_S, Api
from broadgauge.platforms.kubernetes.api_errors import MALFORMED, ApiError, version_of
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState, pod_state
from broadgauge.platforms.kubernetes.resources import PODS
from broadgauge.specs.errors import UncollectedError

WATCH_S = 300.0
"""Of one watch; then the server ends it, and another begins."""
SAY_AFTER_S = 10.0
"""A server that is away for less is not worth a line."""
SHORT_WATCH_S = 5.0
"""One that ends sooner and told nothing is not begun again at once."""
AWAY_LIMIT_S = waiting_limit_s(900.0)
"""Of a server, or of answers that are none: as for the log (log_stream.py)."""
GONE = 410


class PodWatch:
    """The pods of a run, as they are now."""

    def __init__(self, api: Api, namespace: str, selector: str, say: Callable[[str], None]) -> None:
        self._api = api
        self._namespace = namespace
        self._selector = selector
        self._say = say
        self._pods: dict[str, PodState] = {}
        self.has_listed = False
        """Are those that are there known?"""
        self._failure: BaseException | None = None
        """Why the thread has ended, without being told to."""
        self._version: str | None = None
        self._opened_s: float | None = None
        """When the server said yes to the watch."""
        self._away_since_s: float | None = None
        self._has_said = False
        self._attempt = 0
        """Tries in a row of which nothing came."""
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True, name="watch of pods")
        self._thread.start()

    def pods(self) -> list[PodState]:
        """By name, those that were deleted as GONE.

        Where it can't go on: raises ApiError, or UncollectedError for a fault of its own.
        """
        with self._changed:
            if isinstance(self._failure, ApiError):
                raise self._failure
            if self._failure is not None:
                name = type(self._failure).__name__
                raise UncollectedError(
                    f"the watch of pods has broken: {name}: {self._failure}",
                    hint="`broadgauge run --resume` goes on; please report it",
                ) from self._failure
            return [self._pods[name] for name in sorted(self._pods)]

    def wait(self, timeout_s: float) -> None:
        """Until something has changed, at most so long."""
        with self._changed:
            self._changed.wait(timeout_s)

    def close(self) -> None:
        """Stop looking; the thread ends with its watch."""
        self._is_closed = True

    def _run(self) -> None:
        try:
            while not self._is_closed:
                self._look()
        except BaseException as error:  # noqa: BLE001  whoever waits is told whatever ends it
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _look(self) -> None:
        """Once, until the server ends it. Raises ApiError where another look is no help."""
        self._opened_s = None
        try:
            if self._version is None:
                self._list()
            began_s = time.monotonic()
            num_events = self._follow(str(self._version))
            if num_events == 0 and time.monotonic() - began_s < SHORT_WATCH_S:
                self._pause()  # a server or proxy that ends every watch at once
        except ApiError as error:
            if error.status in (401, 403) and not error.is_passing:
                raise
            if error.status == GONE or error.reason == "Expired":
                self._version = None
            elif self._is_cut_idle(error):
                with self._changed:
                    self._is_back()
            else:
                self._is_away(error)
            self._pause(min(error.retry_after_s, LONGEST_PAUSE_S))

    def _is_cut_idle(self, error: ApiError) -> bool:
        """Was the watch open until somebody between here and the server found it too quiet?"""
        was_open = self._opened_s is not None and error.status is None and error.reason != MALFORMED
        return was_open and time.monotonic() - (self._opened_s or 0.0) >= SHORT_WATCH_S

    def _pause(self, asked_s: float = 0.0) -> None:
        """Longer each time in a row, until something is heard; as long as the server asks for."""
        time.sleep(max(asked_s, AGAIN_AFTER_S[min(self._attempt, len(AGAIN_AFTER_S) - 1)]))
        self._attempt += 1

    def _list(self) -> None:
        found = self._api.list(PODS, self._namespace, self._selector)
        self._version = version_of(found, "list", PODS.words(self._namespace))
        states = [pod_state(pod) for pod in found["items"]]
        with self._changed:
            names = {state.name for state in states}
            for name, state in self._pods.items():
                if name not in names:
                    self._pods[name] = _gone(state)
            for state in states:
                self._pods[state.name] = state
            self.has_listed = True
            self._is_back()

    def _follow(self, version: str) -> int:
        """How many events came before the server ended it."""
        num_events = 0

        def opened() -> None:
            self._opened_s = time.monotonic()

        events = self._api.watch(
            PODS, self._namespace, self._selector, version, WATCH_S, opened=opened
        )
        for kind, pod in events:
            if self._is_closed:
                break
            num_events += 1
            self._version = pod["metadata"]["resourceVersion"]
            with self._changed:
                if kind != "BOOKMARK":
                    state = pod_state(pod)
                    self._pods[state.name] = _gone(state) if kind == "DELETED" else state
                self._is_back()
        return num_events

    def _is_away(self, error: ApiError) -> None:
        """Raises it where that has lasted too long."""
        now_s = time.monotonic()
        if self._away_since_s is None:
            self._away_since_s = now_s
        if now_s - self._away_since_s > AWAY_LIMIT_S:
            raise error
        if now_s - self._away_since_s > SAY_AFTER_S and not self._has_said:
            self._has_said = True
            self._say(
                f"the API server does not answer as it should: {error}; the run goes on in its pods"
            )

    def _is_back(self) -> None:
        if self._has_said:
            self._say("the API server answers again")
        self._away_since_s, self._has_said, self._attempt = None, False, 0
        self._changed.notify_all()


def _gone(state: PodState) -> PodState:
    """As it was last seen, and deleted."""
    if state.has_ended and state.stage is not PodStage.GONE:
        return replace(state, is_leading=False)
    return replace(
        state,
        stage=PodStage.GONE,
        why=state.why or "it was deleted",
        is_doomed=True,
        is_leading=False,
        exit_code=None,
        image_id=None,
    )
