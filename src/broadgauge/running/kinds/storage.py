"""What does a phase on a storage need to be started?"""

from broadgauge.agent.bundle import STORAGE_POD_PARTS
from broadgauge.running.kinds.kind import KindInRunning


class StorageInRunning(KindInRunning):
    """Any phase as it is started."""

    @property
    def pod_parts(self) -> tuple[str, ...]:
        return STORAGE_POD_PARTS
