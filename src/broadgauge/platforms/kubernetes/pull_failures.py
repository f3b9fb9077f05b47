"""Why does a pull fail? A kubelet tells in turn that one has failed and that it waits before the
next: one state for whoever waits, with the cause of the last."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from broadgauge.platforms.kubernetes.pod_states import PodState

_FAILED = "ErrImagePull: "
_WAITS = "ImagePullBackOff: "


@dataclass(slots=True)
class PullFailures:
    """Of the pods of one job."""

    _causes: dict[str, str] = field(default_factory=dict)
    """By the uid of a pod."""

    def explained(self, states: Iterable[PodState]) -> list[PodState]:
        """Those that wait before the next try with what the last one failed of, where it is known:
        newer kubelets say it again meanwhile."""
        return [self._explained(state) for state in states]

    def _explained(self, state: PodState) -> PodState:
        why = state.why or ""
        if why.startswith(_FAILED):
            self._causes[state.uid] = why
        if not why.startswith(_WAITS):
            return state
        _, repeated, cause = why.partition(f": {_FAILED}")
        if repeated:
            self._causes[state.uid] = _FAILED + cause
        return replace(state, why=self._causes.get(state.uid, why))
