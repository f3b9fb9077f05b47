"""What is a job itself now, as the API server has it: to come, over, or gone? Who ended it?"""

import time
from collections.abc import Callable

from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_place import JobPlace
from broadgauge.platforms.kubernetes.job_states import RESOURCES, has_ended, trouble_of
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, mapping

TOLD_LIMIT_S = waiting_limit_s(10.0)
"""For an operator to say why pods have ended, which they do first."""
LOOK_EVERY_S = 1.0
_DEADLINE = "eadline"
"""In what is said of a job whose `deadline_s` is over. Source: Kubernetes, Job, reason
`DeadlineExceeded`; training-operator 1.9, pkg/controller.v1/common/job.go, "has failed because it
was active longer than specified deadline"."""


def find_job(api: Api, place: JobPlace) -> JsonMap | None:
    """As it is now; None: it is deleted, or about to be, or another one has its name. Raises
    ApiError."""
    found = api.find(RESOURCES[place.kind], place.namespace, place.name)
    metadata = mapping((found or {}).get("metadata"))
    if metadata.get("deletionTimestamp") or place.uid not in (None, metadata.get("uid")):
        return None
    return found


def makes_pods(api: Api, place: JobPlace) -> bool:
    """Will its operator still make some? Raises ApiError."""
    job = find_job(api, place)
    return job is not None and trouble_of(job) is None and not has_ended(job)


def is_gone(api: Api, place: JobPlace) -> bool:
    """Can no pods be made of it any more? Those that a dead node still has stay for a while."""
    try:
        return find_job(api, place) is None
    except ApiError:  # nobody knows
        return False


def why_over(
    api: Api, place: JobPlace, name: str, *, is_expected: bool, pause: Callable[[float], None]
) -> str | None:
    """Was it deleted, or did its time run out? None: no, or nobody knows.

    `name`: of the job, for people. `is_expected`: its pods have ended, so that it will say why:
    that is waited for. `pause`: for so long at most.
    """
    deadline_s = time.monotonic() + (TOLD_LIMIT_S if is_expected else 0.0)
    while True:
        try:
            job = find_job(api, place)
        except ApiError:
            return None
        if job is None:
            return f"{name} was deleted by somebody"
        trouble = trouble_of(job)
        if trouble is not None:
            return f"{name}: {trouble}" if _DEADLINE in trouble else None
        if time.monotonic() > deadline_s:
            return None
        pause(LOOK_EVERY_S)
