"""What must be looked at before a leader's jobs, and which of them are not to be started then?"""

from collections.abc import Sequence

from broadgauge.leader.agents import AgentEvent, Agents
from broadgauge.leader.preflight.asked import Asked, refusals_of
from broadgauge.leader.preflight.check import Preflight
from broadgauge.messages.leader import Job
from broadgauge.messages.preflight import PreflightDone, PreflightFinding, PreflightMode


class BeforeJobs:
    """Of one leader. Its findings are those of the last preflight, also for jobs that come later
    and ask for nothing that was not looked at."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._num_asked = 0
        self._wanted: Preflight | None = None
        self._looked_at = Asked()
        self._findings: tuple[PreflightFinding, ...] = ()
        """Of what was looked at."""

    @property
    def is_wanted(self) -> bool:
        """Is there anything to be looked at before the next job?"""
        return self._wanted is not None

    def take(self, jobs: Sequence[Job], mode: PreflightMode) -> None:
        """These are to be run, instead of those before. What was looked at is not again."""
        self.cancel()
        self._wanted = None
        if mode == "no":
            self._findings = ()
            return
        asked = Asked.of(jobs)
        if jobs and (mode == "only" or not asked.is_within(self._looked_at)):
            self._num_asked += 1
            self._wanted = Preflight(agents=self._agents, asked=asked, number=self._num_asked)

    async def check(self) -> PreflightDone | None:
        """What is wanted; None: it was cancelled."""
        preflight = self._wanted
        assert preflight is not None, "is_wanted was asked"
        done = await preflight.check()
        if done is None or self._wanted is not preflight:
            return None
        self._wanted = None
        self._findings, self._looked_at = done.findings, preflight.asked
        return done

    def cancel(self) -> None:
        """End what goes on; whoever waits for its agents is told so."""
        if self._wanted is not None:
            self._wanted.cancel()
            self._agents.events.put_nowait(AgentEvent(agent=-1, event=None))

    def refusals_of(self, job: Job) -> tuple[str, ...]:
        """Why this launch would fail or hang."""
        return tuple(refusals_of(self._findings, job, self._looked_at))
