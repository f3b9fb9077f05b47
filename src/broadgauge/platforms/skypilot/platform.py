"""Where do cases run on clusters of a cloud? On hosts that are there for them, and gone after.

One cluster at a time: a plan for SkyPilot runs all launches of a cluster in a row.
"""

import hashlib
from collections.abc import Callable, Sequence

from broadgauge.manifests.skypilot.budget import hold_limit_s
from broadgauge.manifests.skypilot.clusters import ClusterKey, cluster_key, clusters_of
from broadgauge.platforms.hosts.allocation import forget_place
from broadgauge.platforms.hosts.platform import HostsOf, HostsPlatform
from broadgauge.platforms.launch_folders import LaunchFolders
from broadgauge.platforms.led.dry_run_lines import command_lines
from broadgauge.platforms.led.launch import FollowedLaunch
from broadgauge.platforms.led.orders import Seat, Seats
from broadgauge.platforms.skypilot.cluster import (
    CloudRun,
    LiveCluster,
    bring_down,
    bring_up,
    find_again,
)
from broadgauge.platforms.skypilot.ledger import Ledger
from broadgauge.specs.case import Case
from broadgauge.specs.errors import InputError
from broadgauge.specs.experiment import Experiment
from broadgauge.specs.launching import LaunchRequest, TrialProgress
from broadgauge.specs.record import Phase
from broadgauge.specs.secrets import Masker, Secrets, SecretText

NODE = "node{number}"
"""Of a dry run, which knows no names."""


class SkypilotPlatform:
    """The clusters of a run, one after the other."""

    def __init__(
        self,
        folders: LaunchFolders,
        experiment: Experiment,
        *,
        secrets: Secrets,
        cases: Sequence[Case],
    ) -> None:
        """Nothing is asked of a cloud yet. Raises InputError, RunFolderError."""
        _check(experiment, cases)
        self._folders = folders
        self._secrets = secrets
        self._cases = tuple(cases)
        self._around = CloudRun(
            experiment=experiment,
            base_folder=folders.working,
            logs=folders.logs,
            ledger=Ledger(folders.logs),
            run=hashlib.sha256(str(folders.logs.absolute()).encode()).hexdigest()[:6],
            clean=_cleaner(experiment, secrets, cases),
        )
        self._expected: tuple[LaunchRequest, ...] = ()
        self._cluster: LiveCluster | None = None
        self._hosts: HostsPlatform | None = None
        self._notes: dict[str, None] = {}
        self._is_left = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Of all clusters so far."""
        if self._hosts is not None:
            self._notes |= dict.fromkeys(self._hosts.notes)
        return tuple(self._notes)

    def expect(self, requests: Sequence[LaunchRequest]) -> None:
        """Each cluster is told of its own."""
        self._expected = tuple(requests)
        if self._hosts is not None and self._cluster is not None:
            self._hosts.expect(self._of(self._cluster.key))

    def start(self, request: LaunchRequest, progress: TrialProgress) -> FollowedLaunch:
        """On its cluster, which is brought up first, and the one before it down. Raises
        LaunchError, PlatformError, RunFolderError."""
        key = cluster_key(request.cases[0])
        if self._hosts is None or self._cluster is None or self._cluster.key != key:
            self._leave_cluster(lambda text: self._tell(progress, text), but=key)
            self._hosts = self._enter_cluster(key, progress)
        return self._hosts.start(request, progress)

    def rank_commands(self, request: LaunchRequest) -> tuple[str, ...]:
        """The environment and command of each rank; nodes have no names before they are there."""
        case = request.cases[0]
        seat = Seat(num_cores=request.cores_per_node, interfaces=("{interface}",))
        seats = Seats(seats=(seat,) * case.nodes, master_address=NODE.format(number=0))
        python = self._around.experiment.skypilot.python
        return tuple(
            line
            for node in range(case.nodes)
            for line in command_lines(request, node, seats, NODE.format(number=node), python)
        )

    def leave(self) -> None:
        """Let go: what is measured goes on there, and the cluster ends when nobody comes."""
        if self._hosts is not None:  # else nothing runs there that is worth its money
            self._hosts.leave()
            self._is_left = True

    def close(self) -> None:
        """End what runs there, and every cluster of the run; safe to call twice."""
        if self._is_left:
            self._stop_following()
            return
        self._leave_cluster(self._note)

    def _enter_cluster(self, key: ClusterKey, progress: TrialProgress) -> HostsPlatform:
        cluster = find_again(self._around, key)
        if cluster is None:
            forget_place(self._folders.logs)  # of a leader on machines that are gone
            cluster = bring_up(
                self._around,
                key,
                say=lambda text: self._tell(progress, text),
                show=lambda text: progress(Phase.RENDEZVOUS, text),
            )
        self._cluster = cluster
        settings = self._around.experiment.skypilot
        facts = {
            "cluster": cluster.held.name,
            "infra": settings.infra,
            "accelerators": settings.accelerators,
            "network_tier": key.network_tier,
        }
        whose = HostsOf(platform="skypilot", facts=facts, keep_s=settings.keep_s)
        hosts = HostsPlatform(
            self._folders, cluster.hosts, secrets=self._secrets, cases=self._cases, whose=whose
        )
        hosts.expect(self._of(key))
        return hosts

    def _leave_cluster(self, say: Callable[[str], None], but: ClusterKey | None = None) -> None:
        """Whatever becomes of the leader: the machines end, and those of earlier lives too.

        `but`: a cluster that is wanted next, and may be there.
        """
        hosts, self._hosts = self._hosts, None
        self._stop_following()
        self._cluster = None
        try:
            if hosts is not None:
                self._notes |= dict.fromkeys(hosts.notes)
                hosts.close()
        finally:
            for held in self._around.ledger.open:
                if but is not None and held.is_of(but):
                    continue
                bring_down(self._around, held, say)

    def _stop_following(self) -> None:
        if self._cluster is not None and self._cluster.following is not None:
            self._cluster.following.end()

    def _of(self, key: ClusterKey) -> tuple[LaunchRequest, ...]:
        return tuple(each for each in self._expected if cluster_key(each.cases[0]) == key)

    def _tell(self, progress: TrialProgress, text: str) -> None:
        progress(Phase.RENDEZVOUS, text)
        self._note(text)

    def _note(self, text: str) -> None:
        self._notes[text] = None


def _check(experiment: Experiment, cases: Sequence[Case]) -> None:
    """Raises InputError."""
    if experiment.skypilot.is_on_kubernetes and any(case.nodes > 1 for case in cases):
        raise InputError(
            f"skypilot.infra: {experiment.skypilot.infra}: several nodes that are pods are reached "
            "through a tunnel, and can't reach each other by that",
            hint="`--on kubernetes`, or `render --for skypilot`",
        )
    for cluster in clusters_of(cases):
        hold_limit_s(experiment, cluster.key.nodes)


def _cleaner(
    experiment: Experiment, secrets: Secrets, cases: Sequence[Case]
) -> Callable[[str], str]:
    """What takes the values of secrets out of what SkyPilot prints."""
    of_ranks = secrets.masker(cases)
    found = (secrets.find(name) for name in experiment.skypilot.secrets)
    of_setup = Masker(each for each in found if isinstance(each, SecretText))
    return lambda text: of_setup(of_ranks(text))
