"""How far is a Job of one pod, beside the run's own?"""

from collections.abc import Callable
from typing import TypeVar

from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, text
from broadgauge.platforms.kubernetes.ownership import is_made_by
from broadgauge.platforms.kubernetes.pod_states import PodState, pod_state
from broadgauge.platforms.kubernetes.pod_warnings import about
from broadgauge.platforms.kubernetes.refusals import refusal
from broadgauge.platforms.kubernetes.resources import JOBS, PODS

T = TypeVar("T")
Say = Callable[[str], None]
ANSWER_LIMIT_S = 300.0
"""For an API server that is away while the Job goes on."""
POD_OF_JOB = "batch.kubernetes.io/job-name"


def pods_of(api: Api, namespace: str, job: JsonMap, say: Say) -> list[PodState]:
    """Those that it made, the newest last. Raises PlatformError."""
    name = str(job["metadata"]["name"])
    selector = f"{POD_OF_JOB}={name}"
    found = patiently(api, name, lambda: api.list(PODS, namespace, selector), say)
    items = sorted(found["items"], key=_made_at)
    states = [pod_state(each) for each in items]
    return [each for each in states if is_made_by(job, each)]


def events_of(job: JsonMap) -> tuple[str, ...]:
    """Selectors of what its controller says of it."""
    uid = text(job["metadata"].get("uid"))
    return () if uid is None else (about(uid),)


def job_now(api: Api, namespace: str, name: str, say: Say) -> JsonMap:
    """As the API server has it. Raises PlatformError."""
    return patiently(api, name, lambda: api.get(JOBS, namespace, name), say)


def patiently(api: Api, job: str, ask: Callable[[], T], say: Say) -> T:
    """Raises PlatformError."""
    try:
        return api.patiently(ask, ANSWER_LIMIT_S, say)
    except ApiError as error:
        raise refusal(error, f"looking at Job {job}") from error


def _made_at(item: JsonMap) -> str:
    return str(item["metadata"].get("creationTimestamp"))
