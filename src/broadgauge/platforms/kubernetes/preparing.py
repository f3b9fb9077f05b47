"""Are model and data set on their volume before the pods that need them are asked for?

A Job fetches them, once: what is there already it leaves alone. GPUs wait for nothing.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broadgauge.manifests.claims import claims_file
from broadgauge.manifests.prepare import prepare_file, prepare_name
from broadgauge.manifests.request import JobRequest
from broadgauge.platforms.kubernetes.admission import UNMANAGED_HINT, Admission, Held
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_states import trouble_of
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping, mappings
from broadgauge.platforms.kubernetes.owned import create_all
from broadgauge.platforms.kubernetes.owner_references import owned_by
from broadgauge.platforms.kubernetes.plain_job import events_of, job_now, pods_of
from broadgauge.platforms.kubernetes.pod_states import PodStage, PodState, waits
from broadgauge.platforms.kubernetes.pod_warnings import PodWarnings
from broadgauge.specs.errors import PlatformError

Say = Callable[[str], None]
LOOK_EVERY_S = 1.0
LAST_LINES = 5
LOG_LIMIT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparing:
    """The Job of one request."""

    api: Api
    namespace: str
    request: JobRequest
    log_folder: Path
    say: Say
    """What the user should know."""
    show: Say
    """What goes on while it lasts."""
    owner: JsonMap
    """Of what is made for it."""

    def run(self, pending_limit_s: float) -> None:
        """Until all is there. Raises PlatformError where it can't be had."""
        file = prepare_file(self.request)
        if file is None:
            return
        claims = claims_file(self.request)
        objects = [*(() if claims is None else claims.objects), *file.objects]
        owned = owned_by(self.owner, self.request, objects)
        create_all(self.api, self.namespace, owned, self.say)
        started_s, shown = time.monotonic(), ""
        warnings = PodWarnings(api=self.api, namespace=self.namespace)
        admission = Admission(api=self.api, namespace=self.namespace)
        while not self._is_done(job := self._job()):
            states = warnings.explained(self._pods(job))
            held = admission.held(job)
            lack = warnings.lack(0 if states or held else 1, events_of(job))
            words = _words(states, held) + lack
            if words != shown:
                self.show(words)
                shown = words
            is_queued = held is not None and held.is_managed
            if is_queued or any(state.stage is PodStage.RUNNING for state in states):
                started_s = time.monotonic()
            self._refuse_doomed(states)
            if time.monotonic() - started_s > pending_limit_s:
                raise PlatformError(
                    f"Job {self._name}: after {pending_limit_s:g} s: {words}",
                    hint="`kubernetes: {pending_limit_s: …}` waits longer"
                    if held is None
                    else UNMANAGED_HINT,
                )
            time.sleep(LOOK_EVERY_S)
        lines = self._keep_log(self._pods(job))
        told = f": {lines[-1].removeprefix('broadgauge: ')}" if lines else ""
        self.say(f"Job {self._name} has prepared its volume{told}")

    @property
    def _name(self) -> str:
        return prepare_name(self.request)

    def _job(self) -> JsonMap:
        """As it is now. Raises PlatformError."""
        return job_now(self.api, self.namespace, self._name, self.say)

    def _is_done(self, job: JsonMap) -> bool:
        """Raises PlatformError where the Job has failed."""
        conditions = mappings(mapping(job.get("status")).get("conditions"))
        is_done = {"type": "Complete", "status": "True"}.items()
        if any(is_done <= each.items() for each in conditions):
            return True
        trouble = trouble_of(job)
        if trouble is not None:
            lines = self._keep_log(self._pods(job))
            told = f": {' | '.join(lines)}" if lines else ""
            raise PlatformError(
                f"Job {self._name} could not prepare its volume: {trouble}{told}",
                hint=_hint(lines),
            )
        return False

    def _pods(self, job: JsonMap) -> list[PodState]:
        return pods_of(self.api, self.namespace, job, self.say)

    def _refuse_doomed(self, states: list[PodState]) -> None:
        """Raises PlatformError where waiting does not help; a pod that failed is tried again."""
        for state in states:
            if state.is_doomed and not state.has_ended:
                raise PlatformError(f"Job {self._name}: {state.words}")

    def _keep_log(self, states: list[PodState]) -> list[str]:
        """Into the run's logs; its last lines. A log that is gone fails nothing."""
        ended = [state for state in states if state.has_ended]
        if not ended:
            return []
        try:
            pieces = self.api.log(
                self.namespace, ended[-1].name, {"container": "prepare"}, LOG_LIMIT_S
            )
            data = b"".join(pieces)
        except ApiError as error:
            self.say(f"the log of {ended[-1].name} can't be read: {error}")
            return []
        self.log_folder.mkdir(0o700, parents=True, exist_ok=True)
        (self.log_folder / f"{self._name}.log").write_bytes(data)
        return data.decode(errors="replace").strip().splitlines()[-LAST_LINES:]


def _hint(lines: list[str]) -> str | None:
    """None: the script's own words say what helps."""
    if any("kubernetes.fs_group" in line for line in lines):
        return None
    return "`kubernetes.prepare` says what it fetches; secrets as HF_TOKEN by `kubernetes.secrets`"


def _words(states: list[PodState], held: Held | None) -> str:
    if held is not None:
        return f"preparing its volume: {held.words}"
    if not states:
        return "preparing its volume: waiting for a pod to be made"
    tried = f", try {len(states)}" if len(states) > 1 else ""
    newest = states[-1]
    if newest.stage is PodStage.RUNNING:
        return f"preparing its volume: {newest.words}{tried}"
    return f"preparing its volume: {waits([newest])}{tried}"
