"""Why did the ranks of a life not come up, and is its leader still of use?"""

from dataclasses import dataclass

from broadgauge.messages.agent import Refused
from broadgauge.messages.leader import AgentLost, JobsDone, TrialBegins
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.launch_logs import LaunchLogs
from broadgauge.platforms.led.allocation import Allocation
from broadgauge.platforms.led.following import Followed, FollowedLeader, logs_of
from broadgauge.platforms.led.launch import ReportedLife
from broadgauge.platforms.reading_logs import read_logs
from broadgauge.specs.case import Case
from broadgauge.specs.errors import LaunchError
from broadgauge.specs.records.record import Confidence, Finding, Severity

REFUSED = "launch-refused"

AHEAD_IDLE_S = 3.0
"""What a leader has told already comes without a pause; to look for an agent it takes longer."""


class AgentGone(Exception):  # noqa: N818  says what is so, and is always caught
    """No launch can come up with the agents that are left."""


@dataclass(frozen=True, slots=True)
class LifeFailures:
    """Of the lives of one run, in words."""

    folders: LaunchFolders
    allocation: Allocation

    def raise_for(self, life: ReportedLife, case: Case, leading: FollowedLeader) -> None:
        """Raises LaunchError: the ranks of this life did not come up. Raises AgentGone where
        nothing came up after it either; LeaderGone."""
        gone = [lost for lost in life.lost if not lost.is_connected]
        if gone:
            words = f"{life.life_id}: {self.loss_words(gone[0])}"
            if not isinstance(leading.look_ahead(_tells, AHEAD_IDLE_S), TrialBegins):
                raise AgentGone(words)
            raise LaunchError(words)  # what was measured since, or without that agent, counts
        if life.refusal is not None:
            raise LaunchError(
                f"{life.life_id}: {life.refusal.message}",
                hint=life.refusal.hint,
                findings=(_finding(life.refusal),),
            )
        logs = logs_of(self.folders.logs, life.life_id, life.num_ranks)
        error = life.symptoms.error(logs)
        slow = [self.loss_words(lost) for lost in life.lost]
        message = error.message if error is not None else "its ranks did not come up"
        findings = () if error is None else self.logs_of(life).of_trial(case, error).findings
        raise LaunchError(
            f"{life.life_id} did not come up: {'; '.join((message, *slow))}",
            error=error,
            findings=findings,
        )

    def logs_of(self, life: ReportedLife) -> LaunchLogs:
        """That its ranks wrote, once they have come."""
        return LaunchLogs(folder=self.folders.logs, launch_id=life.life_id, read=read_logs)

    def loss_words(self, lost: AgentLost) -> str:
        """`the agent on node-b: it closed the connection`."""
        why = self.allocation.why_lost(lost.agent)
        words = f"the agent on {self.allocation.agent_name(lost.agent)}: {lost.message}"
        return words if why is None else f"{words}; {why}"


def _finding(refusal: Refused) -> Finding:
    """The first of its lines with what is below it as evidence."""
    symptom, *evidence = refusal.message.splitlines() or ["no rank was started"]
    return Finding(
        rule=REFUSED,
        severity=Severity.ERROR,
        symptom=symptom,
        evidence=tuple(evidence),
        fix=refusal.hint,
        confidence=Confidence.CERTAIN,
    )


def _tells(event: Followed) -> bool:
    """Does it say whether a life came up?"""
    return isinstance(event, (TrialBegins, JobsDone))
