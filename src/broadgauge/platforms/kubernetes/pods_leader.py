"""What leads a run in pods, and what is left of it when they are gone?"""

from broadgauge.platforms.kubernetes.kept_results import KeptResults
from broadgauge.platforms.kubernetes.leader_log import AttachedLog
from broadgauge.platforms.kubernetes.running_job import RunningJob
from broadgauge.platforms.led.handle import LeaderHandle, NoLeader


class PodsLeader:
    """The leader of a job's pods."""

    def __init__(self, job: RunningJob, kept: KeptResults) -> None:
        """`kept`: what outlives its pods."""
        self.job = job
        self._kept = kept

    @property
    def name(self) -> str:
        """Of the job."""
        return self.job.name

    def attach(self, after: int) -> AttachedLog:
        """Hear it from its event after this one. Raises NoLeader, LinkLost, PlatformError."""
        try:
            return self.job.attach(after)
        except NoLeader:
            kept = self._kept.attach(after)
            if kept is None:
                raise
            return kept

    def stop(self) -> bool:
        """Delete the job and all that belongs to it; False: nobody knows whether that worked."""
        return self.job.delete()


_: type[LeaderHandle] = PodsLeader
