"""Who holds a job back before it has pods, and does anybody mean to let it go?

Kueue makes a Workload for each job of a kind that it manages, within seconds. A job that it does
not manage stays suspended for ever, and no status says so.
Source: Kueue 0.10, "Workload"; its configuration's `integrations.frameworks`.
"""

import time
from dataclasses import dataclass

from broadgauge.manifests.indexed_job import KUEUE_LABEL
from broadgauge.messages.waiting_limits import waiting_limit_s
from broadgauge.platforms.kubernetes.api import Api
from broadgauge.platforms.kubernetes.api_errors import ApiError
from broadgauge.platforms.kubernetes.job_states import served_as
from broadgauge.platforms.kubernetes.json_shapes import JsonMap, labels_in, mapping, mappings, text
from broadgauge.platforms.kubernetes.resources import WORKLOADS

UNMANAGED_AFTER_S = waiting_limit_s(60.0)
ASK_EVERY_S = 30.0
UNMANAGED_HINT = (
    "does Kueue run, with this kind of job among its `integrations.frameworks`? "
    "`--set kubernetes.job=…` takes another kind"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A job that has no pods because it may not."""

    words: str
    is_managed: bool = True
    """False: nobody admits it, so that waiting has its limit."""


@dataclass(slots=True, kw_only=True)
class Admission:
    """Of one job."""

    api: Api
    namespace: str
    _since_s: float | None = None
    _asked_s: float | None = None
    _is_managed: bool = True

    def held(self, job: JsonMap) -> Held | None:
        """As the job is now; None: nobody holds it back."""
        queue = labels_in(job).get(KUEUE_LABEL)
        if not _is_suspended(job):
            self._since_s = None
            return None
        if queue is None:
            return Held(words="suspended")
        words = f"queued in {queue}"
        if self._is_managed_now(job):
            return Held(words=words)
        kind = text(job.get("kind")) or "job"
        return Held(
            words=f"{words}, but Kueue has no Workload for this {kind}: nobody will admit it",
            is_managed=False,
        )

    def _is_managed_now(self, job: JsonMap) -> bool:
        """Also where nobody can tell."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s, self._is_managed = now_s, True
        is_due = self._asked_s is None or now_s - self._asked_s > ASK_EVERY_S
        if now_s - self._since_s > UNMANAGED_AFTER_S and is_due:
            self._asked_s = now_s
            try:
                self._is_managed = self._has_workload(job)
            except ApiError:  # a Role of an older version may not list them
                self._is_managed = True
        return self._is_managed

    def _has_workload(self, job: JsonMap) -> bool:
        """Raises ApiError."""
        served, uid = served_as(self.api, WORKLOADS), mapping(job.get("metadata")).get("uid")
        if served is None:
            return False
        found = self.api.list_metadata(served, self.namespace, "")["items"]
        owners = [
            owner.get("uid")
            for each in found
            for owner in mappings(each["metadata"].get("ownerReferences"))
        ]
        return uid in owners


def _is_suspended(job: JsonMap) -> bool:
    spec = mapping(job.get("spec"))
    return bool(spec.get("suspend") or mapping(spec.get("runPolicy")).get("suspend"))
